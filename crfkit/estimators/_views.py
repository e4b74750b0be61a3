"""Fitted weights as mappings from names."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp


class WeightView(Mapping[tuple[Hashable, Hashable], float]):
    """``{(row, column): weight}`` of a sparse matrix with named rows and columns.

    A view: no dict is built, the names are looked up when asked for. Weights that are 0 are not
    part of it.

    Parameters
    ----------
    matrix : csr_array of shape (R, C)
        The weights.
    rows, columns : sequence
        Names.
    """

    def __init__(self, matrix: sp.csr_array, rows: Sequence[Any], columns: Sequence[Any]) -> None:
        self._matrix = matrix
        self._rows, self._columns = rows, columns
        self._row_index: dict[Any, int] | None = None

    def __len__(self) -> int:
        return int(np.count_nonzero(self._matrix.data))

    def __iter__(self) -> Iterator[tuple[Hashable, Hashable]]:
        matrix = self._matrix
        for row, (begin, end) in enumerate(zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)):
            for entry in range(begin, end):
                if matrix.data[entry] != 0.0:
                    yield self._rows[row], self._columns[matrix.indices[entry]]

    def __getitem__(self, key: tuple[Hashable, Hashable]) -> float:
        if self._row_index is None:
            self._row_index = {name: row for row, name in enumerate(self._rows)}
            self._column_index = {name: column for column, name in enumerate(self._columns)}
        try:
            row, column = self._row_index[key[0]], self._column_index[key[1]]
        except (KeyError, TypeError, IndexError):
            raise KeyError(key) from None
        weight = float(self._matrix[row, column])
        if weight == 0.0:
            raise KeyError(key)
        return weight

    def top(self, count: int = 10) -> list[tuple[tuple[Hashable, Hashable], float]]:
        """Return the weights of the largest size, largest first.

        Parameters
        ----------
        count : int
            How many at most.
        """
        matrix = self._matrix
        order = np.argsort(-np.abs(matrix.data), kind="stable")[:count]
        rows = np.searchsorted(matrix.indptr, order, side="right") - 1
        names = [(self._rows[r], self._columns[c]) for r, c in zip(rows, matrix.indices[order],
                                                                   strict=True)]  # fmt: skip
        weights = matrix.data[order].tolist()
        return [(n, w) for n, w in zip(names, weights, strict=True) if w != 0.0]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}: {weight:.4g}" for name, weight in self.top(3))
        return f"<{len(self):,} weights, largest {{{shown}}}>"
