"""The entries of rows that templates make: by number for most, by name for the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data.packed import ranges
from crfkit.features.functions import FLAG_ITEM, NUMBER_ITEM
from crfkit.features.templates.coded import FALSE, Batch
from crfkit.features.templates.columns import numbers
from crfkit.features.templates.pairs import PairTable
from crfkit.features.templates.plan import Cell, Family
from crfkit.features.templates.tables import NOTHING, Items
from crfkit.kernels.text.hashing import rows_join

Path = tuple[int, ...]  # the sources of the cells of a conjunction
Look = Callable[[Path, CodeArray, CodeArray], CodeArray]
Code = Callable[[int, str], int]


class Entries(NamedTuple):
    """Entries of rows in the order of the rows; `values` is None where all are 1."""

    indptr: IntArray
    indices: CodeArray
    values: FloatArray | None


class Families(NamedTuple):
    """The templates of a vocabulary.

    Attributes
    ----------
    blocks : list of Family
        Those that share no name with others.
    named : list of Family
        The others.
    numeric : list of str or int
        Columns of numbers.
    names : list of str
        Their names.
    step : bool
        Whether they describe steps, of which the first token of a sequence has none.
    """

    blocks: list[Family]
    named: list[Family]
    numeric: Sequence[str | int]
    names: Sequence[str]
    step: bool


def block_ids(batch: Batch, families: Families, look: Look, code: Code) -> CodeArray:
    """Return the codes of the families that own columns, shape (F, N)."""
    ids = np.empty((len(families.blocks), batch.n_tokens), np.int32)
    known: dict[tuple[Cell, ...], CodeArray] = {}
    for row, family in zip(ids, families.blocks, strict=True):
        row[:] = _family_ids(batch, family, look, code, known) if family.cells else 0
    if families.step:
        ids[:, _firsts(batch)] = NOTHING
    return ids


def _firsts(batch: Batch) -> IntArray:
    """Return the first token of each sequence."""
    return batch.offsets[:-1][np.diff(batch.offsets) > 0]


def _family_ids(
    batch: Batch, family: Family, look: Look, code: Code, known: dict[tuple[Cell, ...], CodeArray]
) -> CodeArray:
    """Return the code of a family for each token; `known` keeps those of first cells."""
    cells = [batch.cell(cell) for cell in family.cells]
    changed = _read_off_names(batch, family, cells, code)
    memory = {} if changed else known
    ids = cells[0]
    for n in range(1, len(cells)):
        key = family.cells[: n + 1]
        if key not in memory:
            memory[key] = look(tuple(cell.source for cell in key), ids, cells[n])
        ids = memory[key]
    return ids


def _read_off_names(batch: Batch, family: Family, cells: list[CodeArray], code: Code) -> bool:
    """Replace tuples that are not what is read off their name; return whether there are any."""
    inner = zip(family.cells[:-1], family.seps, strict=False)
    found = [
        batch.holding(cell, sep[0]) if sep else np.arange(batch.n_tokens) for cell, sep in inner
    ]
    if not any(map(len, found)):
        return False
    tokens = np.unique(np.concatenate(found))
    tokens = tokens[np.all([codes[tokens] >= 0 for codes in cells], axis=0)]
    if not len(tokens):
        return False
    seen: dict[tuple[int, ...], list[int]] = {}
    for row in zip(*(codes[tokens].tolist() for codes in cells), strict=True):
        if row not in seen:
            strings = [
                batch.text(cell.source, n) for cell, n in zip(family.cells, row, strict=True)
            ]
            read = _read_off(strings, family.seps)
            seen[row] = [
                code(cell.source, text) for cell, text in zip(family.cells, read, strict=True)
            ]
    rows = zip(*(codes[tokens].tolist() for codes in cells), strict=True)
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

    def rows(self, n_tokens: int, n_columns: int) -> Entries:
        """Return the entries as rows, those of one attribute of a token added up."""
        kept = (self.columns >= 0) & (self.values != 0.0)
        places = (self.tokens[kept], self.columns[kept])
        matrix = sp.coo_array((self.values[kept], places), shape=(n_tokens, n_columns)).tocsr()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return Entries(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)


def named_entries(batch: Batch, families: Families, column: Callable[[str], int]) -> Named:
    """Return the entries of the families that share names, and of numeric columns."""
    parts = [_named_family(batch, family, column) for family in families.named]
    for reference, name in zip(families.numeric, families.names, strict=True):
        tokens = np.arange(batch.n_tokens)
        columns = np.full(batch.n_tokens, column(name), np.int32)
        parts.append(Named(tokens, columns, numbers(batch.tokens, reference)))
    parts.append(Named(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0)))
    return Named(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _named_family(batch: Batch, family: Family, column: Callable[[str], int]) -> Named:
    """Return the entries of one family: names are built once for each different tuple."""
    ids = np.zeros(batch.n_tokens, np.int32)
    if family.step:
        ids[_firsts(batch)] = NOTHING
    cells = [batch.cell(cell) for cell in family.cells]
    for codes in cells:
        ids = PairTable().number(ids, codes)
    tokens = np.flatnonzero(ids >= 0)
    if not len(tokens):
        return Named(tokens, np.zeros(0, np.int32), np.zeros(0))
    ids = ids[tokens]
    first = np.zeros(int(ids.max()) + 1, np.int64)
    first[ids[::-1]] = tokens[::-1]
    rows = zip(*(codes[first].tolist() for codes in cells), strict=True) if cells else [()]
    found = [_names(batch, family, row) for row in rows]
    sizes = np.array([len(pairs) for pairs in found])
    ends = np.cumsum(sizes)
    flat = [pair for pairs in found for pair in pairs]
    entries = ranges((ends - sizes)[ids], sizes[ids])
    return Named(
        np.repeat(tokens, sizes[ids]),
        np.array([column(name) for name, _ in flat], np.int32)[entries],
        np.array([value for _, value in flat], np.float64)[entries],
    )


def _names(batch: Batch, family: Family, codes: tuple[int, ...]) -> list[tuple[str, float]]:
    """Return the attributes of a tuple with their values; of no cells, the lead alone."""
    items = [batch.items(cell, code) for cell, code in zip(family.cells, codes, strict=True)]
    if len(items) == 1:
        return _names_of_one(batch, family, items[0])
    names = []
    for combination in product(*items):
        texts = [_joined(item, value, family) for item, value in combination]
        pieces = (text + sep for text, sep in zip(texts, family.seps, strict=True))
        names.append((family.lead + "".join(pieces), 1.0))
    return names


def _names_of_one(batch: Batch, family: Family, items: Items) -> list[tuple[str, float]]:
    """Return the attributes of a family of one cell."""
    number, tail = family.cells[0].source, family.seps[0]
    if batch.plan.sources[number].joint is not None and items[0][0] == FALSE:
        return [(family.lead, 0.0)]
    lead = family.lead + ("" if batch.is_plain(number) else family.joint)
    return [
        (family.lead if isinstance(item, int) else lead + item + tail, value)
        for item, value in items
    ]


def _joined(item: str | int, value: float, family: Family) -> str:
    """Return the text of an item within a conjunction."""
    if item == NUMBER_ITEM:
        raise TypeError(
            f"template {family.lead!r}: a function gave the number {value:g} within a conjunction; "
            "let it give a string"
        )
    return str(bool(value)) if item == FLAG_ITEM else str(item)


def frequent(named: Named, size: int, min_freq: int) -> CodeArray:
    """Return the new columns of names, -1 for those that are left out."""
    counts = np.bincount(named.columns[named.values != 0.0], minlength=size)
    kept = counts >= min_freq
    return np.where(kept, np.cumsum(kept) - 1, NOTHING).astype(np.int32)


def join(first: Entries, second: Entries, shift: int) -> Entries:
    """Return rows that are those of the first followed by those of the second, `shift` later."""
    size = len(first.indices) + len(second.indices)
    indices, origin = np.empty(size, np.int32), np.empty(size, np.int64)
    moved = second.indices + np.int32(shift)
    rows_join(
        frozen(first.indptr),
        frozen(first.indices),
        frozen(second.indptr),
        frozen(moved),
        indices,
        origin,
    )
    indptr = first.indptr + second.indptr
    if second.values is None or np.all(second.values == 1.0):
        return Entries(indptr, indices, None)
    return Entries(indptr, indices, np.where(origin < 0, 1.0, second.values[origin]))
