"""Attributes of templates: numbers while features are made, names when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._types import CodeArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data.labels import object_array
from crfkit.data.names import LazyNames
from crfkit.features.attributes import AttributeRows
from crfkit.features.templates.coded import FALSE, TokenReader
from crfkit.features.templates.entries import (
    Named,
    Path,
    TemplateGroup,
    block_ids,
    frequent,
    join,
    named_entries,
)
from crfkit.features.templates.pairs import PairTable
from crfkit.features.templates.plan import Cell, Template
from crfkit.features.templates.tables import NOTHING, TextTable, check_codes, check_texts
from crfkit.kernels.text.hashing import SHIFT, rows_fill


class TemplateVocabulary(LazyNames):
    """The attributes of templates and their columns.

    A template that shares no name with another one owns a block of columns, and an attribute of it
    is a tuple of codes: of one cell the code itself, of more the number of the pair of the first
    ones and the last. The other templates share the columns after all blocks, by name.

    A tuple stands for a name because no other tuple of its template does: where a string holds the
    character that follows its cell, so that ``a/b`` and ``c`` would be named as ``a`` and ``b/c``,
    the tuple is replaced by the one that is read off the name from the left.
    """

    def __init__(self, tables: dict[int, TextTable]) -> None:
        # Of each template that owns columns: lead, sources and separators, and the column of each
        # code or number of a pair, -1 for none.
        self.blocks: list[list[Any]] = []
        self.columns: list[CodeArray] = []
        self.pairs: list[list[Any]] = []  # sources of a conjunction, and the pairs seen of it
        self.tables = tables  # the strings of the sources
        self.named: list[str] = []  # the names of the further columns
        self.n_blocked = 0

    def __len__(self) -> int:
        return self.n_blocked + len(self.named)

    def leads(self) -> Iterator[str]:
        """Yield what the names of each template begin with, and names that templates share."""
        yield from (block[0] for block in self.blocks)
        yield from self.named

    def learn(self, reader: TokenReader, templates: TemplateGroup, min_freq: int) -> AttributeRows:
        """Learn the attributes of some tokens and return the rows of them."""
        tables: dict[Path, PairTable] = {}

        def number(path: Path, left: CodeArray, right: CodeArray) -> CodeArray:
            return tables.setdefault(path, PairTable()).number(left, right)

        self.blocks = _layout(templates)
        ids = block_ids(
            reader, templates, number, lambda source, text: self.tables[source].add(text)
        )
        for template, found in zip(templates.blocks, ids, strict=True):
            flags = any(s.joint is not None for s in reader.plan.sources_of(template))
            self.columns.append(self._number(template, found, min_freq, flags))
        self.pairs = [[list(path), table.keys] for path, table in tables.items()]
        index: dict[str, int] = {}
        named = named_entries(reader, templates, lambda name: index.setdefault(name, len(index)))
        kept = frequent(named, len(index), min_freq)
        pairs = zip(index, kept.tolist(), strict=True)
        self.named = [name for name, column in pairs if column != NOTHING]
        return self._rows(reader, ids, named._replace(columns=kept[named.columns]))

    def encode(self, reader: TokenReader, templates: TemplateGroup) -> AttributeRows:
        """Return the rows of some tokens."""
        tables, index = self._lookups()

        def number(path: Path, left: CodeArray, right: CodeArray) -> CodeArray:
            return tables[path].find(left, right)

        ids = block_ids(
            reader, templates, number, lambda source, text: self.tables[source].code(text)
        )
        named = named_entries(reader, templates, lambda name: index.get(name, NOTHING))
        return self._rows(reader, ids, named)

    def _number(self, template: Template, ids: CodeArray, min_freq: int, flags: bool) -> CodeArray:
        """Return the columns of the codes of a template: the next ones for those that stay."""
        counts = np.bincount(ids[ids >= 0])
        seen = counts > 0
        if flags:
            counts, seen = self._merge_flags(template.cells[0], counts, seen)
        kept = seen & (counts >= min_freq)
        columns = np.where(kept, self.n_blocked - 1 + np.cumsum(kept), NOTHING).astype(np.int32)
        self.n_blocked += int(kept.sum())
        return columns

    def _merge_flags(self, cell: Cell, counts: Any, seen: Any) -> tuple[Any, Any]:
        """Let a flag that was not set count as its attribute with the value 0."""
        table = self.tables[cell.source]
        silent = table.code(FALSE)
        if not 0 <= silent < len(seen) or not seen[silent]:
            return counts, seen
        loud = table.add("")
        counts = np.append(counts, np.zeros(max(0, loud + 1 - len(counts)), counts.dtype))
        seen = np.append(seen, np.zeros(max(0, loud + 1 - len(seen)), bool))
        seen[loud], seen[silent] = True, False
        return counts, seen

    def _rows(self, reader: TokenReader, ids: CodeArray, named: Named) -> AttributeRows:
        """Return the rows of blocks of columns, followed by what is named."""
        starts, columns = self._flat_columns()
        indptr = np.zeros(reader.n_tokens + 1, np.int64)
        indices = np.empty(ids.size, np.int32)
        size = rows_fill(frozen(ids), starts, columns, indptr, indices)
        if 2 * size < indices.size:
            indices = indices[:size].copy()  # lest a large array be kept for a small part of it
        blocked = AttributeRows(indices[:size], None, indptr, reader.tokens.offsets)
        if not len(named.tokens):
            return blocked
        return join(blocked, named.rows(reader.tokens.offsets, len(self.named)), self.n_blocked)

    def _flat_columns(self) -> tuple[IntArray, CodeArray]:
        """Return where the columns of each block start, and the columns of all."""
        if "_flat" not in self.__dict__:
            starts = np.cumsum([0, *map(len, self.columns)]).astype(np.int64)
            columns = np.concatenate([*self.columns, np.zeros(0, np.int32)])
            self._flat = frozen(starts), frozen(columns)
        return self._flat

    def _lookups(self) -> tuple[dict[Path, PairTable], dict[str, int]]:
        """Return the tables of pairs and the index of names."""
        if "_tables" not in self.__dict__:
            self._tables = {tuple(path): PairTable(keys) for path, keys in self.pairs}
        if "_index" not in self.__dict__:
            self._index = {name: column for column, name in enumerate(self.named)}
        return self._tables, self._index

    def _build(self) -> NDArray[np.object_]:
        keys = {tuple(path): pairs for path, pairs in self.pairs}
        names: list[str] = []
        for (lead, sources, seps), columns in zip(self.blocks, self.columns, strict=True):
            codes = np.flatnonzero(columns >= 0)
            parts: list[list[str]] = []
            for n in range(len(sources) - 1, 0, -1):
                pairs = keys[tuple(sources[: n + 1])][codes]
                parts.append(self._spell(sources[n], pairs % SHIFT, seps[n]))
                codes = pairs // SHIFT
            if sources:
                parts.append(self._spell(sources[0], codes, seps[0]))
                names += [lead + "".join(row) for row in zip(*reversed(parts), strict=True)]
            else:
                names += [lead] * len(codes)
        return object_array(names + self.named)

    def _spell(self, source: int, codes: IntArray, sep: str) -> list[str]:
        texts = self.tables[source].texts
        return [texts[code] + sep for code in codes.tolist()]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the rest."""
        derived = ("_built", "_flat", "_tables", "_index")
        return {key: value for key, value in self.__dict__.items() if key not in derived}

    def check(self, templates: TemplateGroup) -> None:
        """Raise ValueError if a stored vocabulary is not that of some templates, or damaged."""
        if self.blocks != _layout(templates):
            raise ValueError("the vocabulary has other templates than the transformer.")
        self._check_state()

    def _check_state(self) -> None:
        """Raise ValueError if a stored vocabulary is damaged."""
        check_texts(self.named)
        sizes = {(source,): len(table.texts) for source, table in self.tables.items()}
        for path, keys in sorted(self.pairs, key=lambda pair: len(pair[0])):
            _check_keys(keys, sizes.get(tuple(path[:-1]), 0), sizes.get((path[-1],), 0))
            sizes[tuple(path)] = len(keys)
        if len(self.blocks) != len(self.columns):
            raise ValueError("a vocabulary has other templates than columns.")
        begin = 0
        for (_, sources, seps), columns in zip(self.blocks, self.columns, strict=True):
            check_codes(columns, self.n_blocked)
            kept = columns[columns >= 0]
            paths = [tuple(sources[: n + 1]) for n in range(len(sources))]
            size = min((sizes.get(path, -1) for path in paths[-1:]), default=1)
            rising = np.array_equal(kept, np.arange(begin, begin + len(kept)))
            known = all(path in sizes for path in paths)
            if not known or len(columns) > size or not rising or len(seps) != len(sources):
                raise ValueError("the columns of a vocabulary do not fit its templates.")
            begin += len(kept)
        if begin != self.n_blocked:
            raise ValueError("the columns of a vocabulary do not fit its templates.")


def _check_keys(keys: Any, lefts: int, rights: int) -> None:
    """Raise ValueError if something is not an array of different pairs of codes."""
    fits = isinstance(keys, np.ndarray) and keys.dtype == np.int64 and keys.ndim == 1
    if not fits or len(np.unique(keys)) != len(keys):
        raise ValueError("the pairs of a vocabulary are damaged.")
    if len(keys) and not (
        keys.min() >= 0 and (keys // SHIFT).max() < lefts and (keys % SHIFT).max() < rights
    ):
        raise ValueError("the pairs of a vocabulary do not fit its strings.")


def _layout(templates: TemplateGroup) -> list[list[Any]]:
    """Return lead, sources and separators of the templates that own columns."""
    return [
        [template.lead, [cell.source for cell in template.cells], list(template.seps)]
        for template in templates.blocks
    ]
