"""Numbers of weights among all that models of a kind could have."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import IntArray
from crfkit.potentials.blocks import Pattern, size_of
from crfkit.potentials.linear import LinearModel


class AllWeights(NamedTuple):
    """All weights that models of a kind could have, numbered block by block, row by row.

    Attributes
    ----------
    kind : type
        Of the models.
    shapes : dict
        The shape (R, C) of each block by its name.
    """

    kind: type[LinearModel]
    shapes: Mapping[str, tuple[int, int]]

    @classmethod
    def of_model(cls, model: LinearModel) -> AllWeights:
        """Return those that models of the same attributes and labels could have."""
        found = {block.name: block.pattern.shape for block in model.blocks}
        return cls(type(model), _shapes(type(model), found, model.n_labels))

    @classmethod
    def of_fitted(
        cls, kind: type[LinearModel], fitted: Mapping[str, Any], n_labels: int
    ) -> AllWeights:
        """Return those that models of the same fitted attributes could have."""
        stacks = {name: block.stacked(fitted) for name, block in kind.block_types.items()}
        found = {name: matrix.shape for name, matrix in stacks.items() if matrix is not None}
        return cls(kind, _shapes(kind, found, n_labels))

    @property
    def firsts(self) -> dict[str, int]:
        """The first number of each block."""
        sizes = [rows * columns for rows, columns in self.shapes.values()]
        return dict(zip(self.shapes, itertools.accumulate([0, *sizes]), strict=False))

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(rows * columns for rows, columns in self.shapes.values())

    @property
    def always(self) -> IntArray:
        """The numbers of weights that each model has."""
        full = [name for name in self.shapes if self.kind.block_types[name].is_full]
        runs = [np.arange(np.prod(self.shapes[name])) + self.firsts[name] for name in full]
        return np.concatenate([np.zeros(0, np.int64), *runs])

    def numbers(self, model: LinearModel) -> IntArray:
        """Return the number of each parameter of a model, shape (P,)."""
        firsts = self.firsts
        return np.concatenate([b.pattern.numbers + firsts[b.name] for b in model.blocks])

    def model(self, numbers: IntArray, sizes: Mapping[str, int]) -> LinearModel:
        """Return a model with weights of rising numbers, `always` among them, in this order.

        `sizes` tells how many attributes are sparse, by what they describe.
        """
        blocks = []
        for name, first in self.firsts.items():
            shape, block = self.shapes[name], self.kind.block_types[name]
            low, high = np.searchsorted(numbers, [first, first + shape[0] * shape[1]])
            sparse = sizes.get(block.tables[0].rows, shape[0])
            pattern = Pattern.of_numbers(numbers[low:high] - first, shape, sparse)
            blocks.append(block.of_pattern(pattern))
        return self.kind(blocks)


def _shapes(
    kind: type[LinearModel], found: Mapping[str, tuple[int, ...]], n_labels: int
) -> dict[str, tuple[int, int]]:
    """Return the shapes of all blocks that have one: of labels, or found."""
    shapes = {}
    for name, block in kind.block_types.items():
        if name in found:
            shapes[name] = (int(found[name][0]), int(found[name][1]))
        elif block.tables and block.is_known and not block.tables[0].is_sparse:
            table = block.tables[0]
            shapes[name] = (size_of(table.rows, n_labels), table.width(n_labels))
    return shapes
