"""Fewer rows to add: attributes that come only together with others take their rows along.

Templates over a window imply each other: a tag bigram comes only together with its two tags, a
frequent word only with its suffixes. Where all tokens with attribute ``a`` have ``b``, the row of
``a`` may hold that of ``b`` as well, and these tokens need ``b`` no more. In each token an
attribute is taken along by one other at most, which may be taken along itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.design.folding import fold_find, fold_keep, fold_rows, fold_settle, unfold_rows

# Fewer entries are not worth the search, nor is a link that is made use of less often.
LEAST_ENTRIES, LEAST_USES = 1 << 16, 4
# A pass saves an addition of rows twice for each of these uses, and copies all rows for it.
LEAST_SAVED = 2
# Links from a row at most.
MOST_LINKS = 16


class Folding:
    """Which rows of a table stand for others as well.

    Parameters
    ----------
    uses : ndarray of shape (H,)
        How many tokens have each row.
    count : ndarray of shape (H,)
        Number of its links.
    links : ndarray of shape (H, L)
        Rows that its own takes along; all of them more frequent, or as frequent and before it.
    """

    def __init__(self, uses: IntArray, count: IntArray, links: IdArray) -> None:
        self._links: tuple[IntArray, IdArray] | None = (frozen(count), frozen(links))
        # What is taken along has to be complete.
        order = np.lexsort((np.arange(len(uses)), -uses))
        some = order[count[order] > 0]
        self._owners: IdArray = frozen(np.repeat(some, count[some]).astype(np.uint32))
        members = [links[a, : count[a]] for a in some]
        self._members: IdArray = frozen(np.concatenate([np.empty(0, np.uint32), *members]))

    def fold(self, table: FloatArray) -> FloatArray:
        """Return a table whose rows hold what they take along."""
        folded = table.copy()
        fold_rows(self._owners, self._members, folded)
        return frozen(folded)

    def unfold(self, table: FloatArray) -> None:
        """Turn the gradient to the rows of a folded table into the one to all rows."""
        unfold_rows(self._owners, self._members, table)

    def left(self, uses: IntArray) -> IntArray:
        """Return how many entries of each row are left of so many."""
        taken = np.bincount(self._members, uses[self._owners], minlength=len(uses))
        left: IntArray = uses - taken.astype(np.int64)
        return left

    def kept(self, row_ptr: IntArray, slots: IdArray) -> NDArray[np.bool_]:
        """Return which entries are left: those that no other of their token takes along."""
        assert self._links is not None, "to be called before release_data"
        place = np.empty(len(self._links[0]), np.int64)
        kept = np.empty(len(slots), np.uint32)
        fold_keep(frozen(row_ptr), frozen(slots), *self._links, place, kept)
        marks: NDArray[np.bool_] = kept == 1
        return marks

    def release_data(self) -> None:
        """Let go of the memory that only `kept` needs."""
        self._links = None


def find_folding(parts: list[tuple[IntArray, IdArray]], n_rows: int) -> Folding | None:
    """Return what may be folded; None where that would save little.

    Parameters
    ----------
    parts : list of (ndarray of shape (N + 1,), ndarray of shape (nnz,))
        The rows of the table that the tokens have, each once: where those of each token start,
        and what they are.
    n_rows : int
        Number of rows H of the table.
    """
    if sum(len(slots) for _, slots in parts) < LEAST_ENTRIES:
        return None
    uses, count = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
    links, stamp = np.zeros((n_rows, MOST_LINKS), np.uint32), np.full(n_rows, -1)
    first = 0
    for row_ptr, slots in parts:
        fold_find(frozen(row_ptr), frozen(slots), first, stamp, uses, count, links)
        first += len(row_ptr) - 1
    links, count = _without_circles(uses, count, links)
    stamp[:] = -1
    owner, first = np.zeros(n_rows, np.uint32), 0
    for row_ptr, slots in parts:
        fold_settle(frozen(row_ptr), frozen(slots), first, frozen(uses), stamp, owner, count, links)
        first += len(row_ptr) - 1
    saved, cost = int((uses * count).sum()), n_rows + int(count.sum())
    return Folding(uses, count, links) if saved > LEAST_SAVED * cost else None


def _without_circles(uses: IntArray, count: IntArray, links: IdArray) -> tuple[IdArray, IntArray]:
    """Leave out links of rare rows, and those that would lead in a circle."""
    own = np.arange(len(uses))[:, None]
    more, same = uses[links] > uses[:, None], uses[links] == uses[:, None]
    kept = (np.arange(links.shape[1]) < count[:, None]) & (uses >= LEAST_USES)[:, None]
    kept &= more | (same & (links < own))
    order = np.argsort(~kept, axis=1, kind="stable")
    return np.take_along_axis(links, order, axis=1), kept.sum(axis=1)
