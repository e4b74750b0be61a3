"""Attributes of templates: numbers while features are made, names when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from crfkit._progress import working
from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray, ObjectArray
from crfkit.compiler.jit import frozen
from crfkit.data.labels import object_array
from crfkit.data.names import LazyNames
from crfkit.data.packed import ranges
from crfkit.features.attributes import AttributeRows
from crfkit.features.functions import Attributes, attributes_of
from crfkit.features.templates.coded import FALSE, TokenReader
from crfkit.features.templates.columns import NOTHING, numbers
from crfkit.features.templates.plan import Cell, Plan, Template, colliding
from crfkit.features.templates.tables import (
    PairTable,
    TextTable,
    check_codes,
    check_texts,
    distinct_tuples,
)
from crfkit.kernels.text.hashing import SHIFT, rows_fill
from crfkit.kernels.text.tokens import SKIP

__all__ = ["TemplateVocabulary"]  # which model files may hold

Path = tuple[int, ...]  # the sources of the cells of a conjunction
PairNumbers = Callable[[Path, CodeArray, CodeArray], CodeArray]
Code = Callable[[int, str], int]


class TemplateGroup(NamedTuple):
    """The templates of a vocabulary: of tokens, or of transitions.

    Transitions lead into tokens: the first token of a sequence has none.
    """

    blocks: list[Template]  # those that share no name with others
    named: list[Template]  # the others
    numeric: Sequence[str | int]  # columns of numbers
    names: Sequence[str]  # their names
    transition: bool

    @classmethod
    def of(
        cls, plan: Plan, numeric: Sequence[str | int], names: Sequence[str], transition: bool
    ) -> TemplateGroup:
        """Return templates of one kind, those that share names with others apart."""
        templates = [template for template in plan.templates if template.transition == transition]
        apart = colliding(templates, plan, names)
        apart |= {t for t in templates if any(s.gives_items for s in plan.sources_of(t))}
        blocks = [template for template in templates if template not in apart]
        named = [template for template in templates if template in apart]
        return cls(blocks, named, numeric, names, transition)


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
        counts = np.bincount(named.columns[named.values != 0.0], minlength=len(index))
        kept = counts >= min_freq
        self.named = list(compress(index, kept.tolist()))
        return self._rows(reader, ids, named._replace(columns=_places(kept)[named.columns]))

    def encode(self, reader: TokenReader, templates: TemplateGroup) -> AttributeRows:
        """Return the rows of some tokens."""

        def number(path: Path, left: CodeArray, right: CodeArray) -> CodeArray:
            return self._tables[path].find(left, right)

        ids = block_ids(
            reader, templates, number, lambda source, text: self.tables[source].code(text)
        )
        named = named_entries(reader, templates, lambda name: self._index.get(name, NOTHING))
        return self._rows(reader, ids, named)

    def _number(self, template: Template, ids: CodeArray, min_freq: int, flags: bool) -> CodeArray:
        """Return the columns of the codes of a template: the next ones for those that stay."""
        counts = np.bincount(ids[ids >= 0])
        seen = counts > 0
        if flags:
            counts, seen = self._merge_flags(template.cells[0], counts, seen)
        kept = seen & (counts >= min_freq)
        columns = _places(kept, self.n_blocked)
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
        starts, columns = self._flat
        indptr = np.zeros(reader.n_tokens + 1, np.int64)
        indices = np.empty(ids.size, np.int32)
        size = rows_fill(frozen(ids), starts, columns, indptr, indices)
        if 2 * size < indices.size:
            indices = indices[:size].copy()  # lest a large array be kept for a small part of it
        offsets, indices = reader.tokens.offsets, indices[:size]
        if not len(named.tokens):
            return AttributeRows(indices, None, indptr, offsets)
        tokens = np.repeat(np.arange(reader.n_tokens), np.diff(indptr))
        columns = np.where(named.columns < 0, SKIP, named.columns + np.int32(self.n_blocked))
        return AttributeRows.of_entries(
            np.concatenate([tokens, named.tokens]), np.concatenate([indices, columns]),
            np.concatenate([np.ones(size), named.values]), offsets,
        )  # fmt: skip

    @cached_property
    def _flat(self) -> tuple[IntArray, CodeArray]:
        """Where the columns of each block start, and the columns of all."""
        starts = np.cumsum([0, *map(len, self.columns)]).astype(np.int64)
        return frozen(starts), frozen(np.concatenate([*self.columns, np.zeros(0, np.int32)]))

    @cached_property
    def _tables(self) -> dict[Path, PairTable]:
        return {tuple(path): PairTable(keys) for path, keys in self.pairs}

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: column for column, name in enumerate(self.named)}

    def _build(self) -> ObjectArray:
        keys = {tuple(path): pairs for path, pairs in self.pairs}
        names: list[str] = []
        for (lead, sources, seps), columns in zip(self.blocks, self.columns, strict=True):
            codes = np.flatnonzero(columns >= 0)
            ends = [""] * len(codes)
            for n in range(len(sources) - 1, -1, -1):
                texts, sep, last = self.tables[sources[n]].texts, seps[n], codes
                if n:
                    codes, last = np.divmod(keys[tuple(sources[: n + 1])][codes], SHIFT)
                pairs = zip(last.tolist(), ends, strict=True)
                ends = [texts[code] + sep + end for code, end in pairs]
            names += [lead + end for end in ends]
        return object_array(names + self.named)

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


def _places(kept: BoolArray, first: int = 0) -> CodeArray:
    """Return numbers from `first` on for what is kept, -1 for the rest."""
    return np.where(kept, first - 1 + np.cumsum(kept), NOTHING).astype(np.int32)


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


def block_ids(
    reader: TokenReader, templates: TemplateGroup, number: PairNumbers, code: Code
) -> CodeArray:
    """Return the codes of the templates that own columns, shape (F, N)."""
    ids = np.empty((len(templates.blocks), reader.n_tokens), np.int32)
    known: dict[tuple[Cell, ...], CodeArray] = {}
    with working("features", len(ids), "templates") as task:
        for row, template in zip(ids, templates.blocks, strict=True):
            row[:] = _template_ids(reader, template, number, code, known) if template.cells else 0
            task.advance()
    if templates.transition:
        ids[:, _firsts(reader)] = NOTHING
    return ids


def _firsts(reader: TokenReader) -> IntArray:
    """Return the first token of each sequence."""
    return reader.offsets[:-1][np.diff(reader.offsets) > 0]


def _template_ids(
    reader: TokenReader,
    template: Template,
    number: PairNumbers,
    code: Code,
    known: dict[tuple[Cell, ...], CodeArray],
) -> CodeArray:
    """Return the code of a template for each token; `known` keeps those of first cells."""
    cells = [reader.cell(cell) for cell in template.cells]
    changed = _read_off_names(reader, template, cells, code)
    memory = {} if changed else known
    ids = cells[0]
    for n in range(1, len(cells)):
        key = template.cells[: n + 1]
        if key not in memory:
            memory[key] = number(tuple(cell.source for cell in key), ids, cells[n])
        ids = memory[key]
    return ids


def _read_off_names(
    reader: TokenReader, template: Template, cells: list[CodeArray], code: Code
) -> bool:
    """Replace tuples that are not what is read off their name; return whether there are any."""
    inner = zip(template.cells[:-1], template.seps, strict=False)
    found = [
        reader.holding(cell, sep[0]) if sep else np.arange(reader.n_tokens) for cell, sep in inner
    ]
    if not any(map(len, found)):
        return False
    tokens = np.unique(np.concatenate(found))
    tokens = tokens[np.all([codes[tokens] >= 0 for codes in cells], axis=0)]
    if not len(tokens):
        return False
    rows = list(zip(*(codes[tokens].tolist() for codes in cells), strict=True))
    sources = [cell.source for cell in template.cells]
    seen: dict[tuple[int, ...], list[int]] = {}
    for row in rows:
        if row not in seen:
            strings = _read_off(list(map(reader.text, sources, row)), template.seps)
            seen[row] = list(map(code, sources, strings))
    for n, column in enumerate(zip(*(seen[row] for row in rows), strict=True)):
        cells[n] = cells[n].copy()
        cells[n][tokens] = column
    return True


def _read_off(strings: list[str], seps: tuple[str, ...]) -> list[str]:
    """Join strings and part them again, each ending where its separator is first found."""
    rest = "".join(string + sep for string, sep in zip(strings, [*seps[:-1], ""], strict=True))
    parts = []
    for sep in seps[:-1]:
        head, _, rest = rest.partition(sep) if sep else ("", "", rest)
        parts.append(head)
    return [*parts, rest]


class Named(NamedTuple):
    """Entries by name: tokens, columns (-1 for none) and values."""

    tokens: IntArray
    columns: CodeArray
    values: FloatArray


def named_entries(
    reader: TokenReader, templates: TemplateGroup, column: Callable[[str], int]
) -> Named:
    """Return the entries of the templates that share names, and of numeric columns."""
    parts = [_named_template(reader, template, column) for template in templates.named]
    for reference, name in zip(templates.numeric, templates.names, strict=True):
        tokens = np.arange(reader.n_tokens)
        columns = np.full(reader.n_tokens, column(name), np.int32)
        parts.append(Named(tokens, columns, numbers(reader.tokens, reference)))
    parts.append(Named(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0)))
    return Named(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _named_template(reader: TokenReader, template: Template, column: Callable[[str], int]) -> Named:
    """Return the entries of one template: names are built once for each different tuple."""
    start = np.zeros(reader.n_tokens, np.int32)
    if template.transition:
        start[_firsts(reader)] = NOTHING
    tokens, ids, rows = distinct_tuples(start, [reader.cell(cell) for cell in template.cells])
    found = [_names(reader, template, row) for row in rows]
    sizes = np.array([len(pairs) for pairs in found], np.int64)
    ends = np.cumsum(sizes)
    flat = [pair for pairs in found for pair in pairs]
    entries = ranges((ends - sizes)[ids], sizes[ids])
    return Named(
        np.repeat(tokens, sizes[ids]),
        np.array([column(name) for name, _ in flat], np.int32)[entries],
        np.array([value for _, value in flat], np.float64)[entries],
    )


def _names(reader: TokenReader, template: Template, codes: tuple[int, ...]) -> Attributes:
    """Return the attributes of a tuple with their values; of no cells, the lead alone."""
    items = [reader.items(cell, code) for cell, code in zip(template.cells, codes, strict=True)]
    joint = ""
    if len(items) == 1 and reader.plan.sources_of(template)[0].gives_items:
        joint = template.joint
    elif len(items) == 1 and items[0][0][0] == FALSE:
        return [(template.lead, 0.0)]
    return attributes_of(template.lead, joint, template.seps, items)
