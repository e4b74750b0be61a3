"""The entries of rows that templates make: by number for most, by name for the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data.packed import ranges
from crfkit.features.attributes import AttributeRows
from crfkit.features.functions import Attributes, attributes_of
from crfkit.features.templates.coded import FALSE, TokenReader
from crfkit.features.templates.columns import numbers
from crfkit.features.templates.pairs import distinct_tuples
from crfkit.features.templates.plan import Cell, Plan, Template, colliding
from crfkit.features.templates.tables import NOTHING
from crfkit.kernels.text.hashing import rows_join

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


def block_ids(
    reader: TokenReader, templates: TemplateGroup, number: PairNumbers, code: Code
) -> CodeArray:
    """Return the codes of the templates that own columns, shape (F, N)."""
    ids = np.empty((len(templates.blocks), reader.n_tokens), np.int32)
    known: dict[tuple[Cell, ...], CodeArray] = {}
    for row, template in zip(ids, templates.blocks, strict=True):
        row[:] = _template_ids(reader, template, number, code, known) if template.cells else 0
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

    def rows(self, offsets: IntArray, n_columns: int) -> AttributeRows:
        """Return the entries as rows, those of one attribute of a token added up."""
        kept = (self.columns >= 0) & (self.values != 0.0)
        places = (self.tokens[kept], self.columns[kept])
        shape = (int(offsets[-1]), n_columns)
        matrix = sp.coo_array((self.values[kept], places), shape=shape).tocsr()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        indices, indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int64)
        return AttributeRows(indices, matrix.data, indptr, offsets)


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
    if len(items) == 1 and not reader.is_plain(template.cells[0].source):
        joint = template.joint
    elif len(items) == 1 and items[0][0][0] == FALSE:
        return [(template.lead, 0.0)]
    return attributes_of(template.lead, joint, template.seps, items)


def frequent(named: Named, size: int, min_freq: int) -> CodeArray:
    """Return the new columns of names, -1 for those that are left out."""
    counts = np.bincount(named.columns[named.values != 0.0], minlength=size)
    kept = counts >= min_freq
    return np.where(kept, np.cumsum(kept) - 1, NOTHING).astype(np.int32)


def join(first: AttributeRows, second: AttributeRows, shift: int) -> AttributeRows:
    """Return rows that are those of the first followed by those of the second, `shift` later."""
    size = len(first.indices) + len(second.indices)
    indices, origin = np.empty(size, np.int32), np.empty(size, np.int64)
    ptr, moved = frozen(second.indptr), frozen(second.indices + np.int32(shift))
    rows_join(frozen(first.indptr), frozen(first.indices), ptr, moved, indices, origin)
    indptr, values = first.indptr + second.indptr, None
    if second.values is not None and not np.all(second.values == 1.0):
        values = np.where(origin < 0, 1.0, second.values[origin])
    return AttributeRows(indices, values, indptr, first.offsets)
