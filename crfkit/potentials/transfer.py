"""Weights of one model among those of others: by name, and by number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import FloatArray, IntArray, ObjectArray
from crfkit.data.names import Names, name_array
from crfkit.potentials.blocks import LABELS, ONE, PAIRS, Pattern
from crfkit.potentials.linear import LinearModel


class NamedWeights(NamedTuple):
    """Fitted weights with the names of their attributes and labels."""

    classes: ObjectArray  # (K,) labels
    names: Mapping[str, Names | None]  # of attributes of tokens, transitions and segments
    fitted: Mapping[str, Any]  # fitted attributes


def transfer_weights(
    old: NamedWeights, model: LinearModel, classes: ObjectArray, names: Mapping[str, Names | None]
) -> FloatArray:
    """Return parameters of a model with the weights of an older one, 0 where that has none.

    `classes` and `names` are its labels, and those of its attributes: these are matched by name,
    attributes without names by their number. ValueError if there are other numbers of such.
    """
    labels = _match(classes, old.classes)
    before, after = labels[:, None], labels[None, :]
    known = (before >= 0) & (after >= 0)
    places: dict[str, IntArray] = {
        ONE: np.zeros(1, np.int64),
        LABELS: labels,
        PAIRS: np.where(known, before * len(old.classes) + after, -1).ravel(),
    }
    found = []
    for block in model.blocks:
        matrix, rows = block.stacked(old.fitted), block.rows
        if matrix is not None and rows not in places:
            size = block.pattern.shape[0]
            places[rows] = _attributes(names.get(rows), old.names.get(rows), size, matrix.shape[0])
        found.append(block.carried(matrix, places))
    return np.concatenate(found)


def extend(model: LinearModel, others: list[Mapping[str, Any]]) -> LinearModel:
    """Return a model that also has the weights that are not 0 in older ones.

    `others` are fitted attributes, with the same labels in the same order, and the same attributes
    in the same columns, but for newer ones behind them.
    """
    return type(model)([block.extended(others) for block in model.blocks])


def _attributes(names: Names | None, old: Names | None, size: int, old_size: int) -> IntArray:
    """Return the place of each attribute among the old ones, -1 if it is not there."""
    if names is not None and old is not None:
        return _match(name_array(names), name_array(old))
    if size == old_size:
        return np.arange(size)
    raise ValueError(
        f"warm_start or init: X has {size} features without names, the model to start from "
        f"{old_size}. Name the features, keep their number, or set warm_start=False and "
        "init='zeros'."
    )


def _match(new: ObjectArray, old: ObjectArray) -> IntArray:
    """Return the place of each new name among the old ones, -1 if it is not there."""
    if new is old:
        return np.arange(len(new))
    places = dict(zip(old.tolist(), range(len(old)), strict=True))
    found = map(places.get, new.tolist(), repeat(-1))
    return np.fromiter(found, np.int64, len(new))


class AllWeights(NamedTuple):
    """All weights that models of a kind could have, numbered block by block, row by row."""

    kind: type[LinearModel]  # of the models
    shapes: Mapping[str, tuple[int, int]]  # (R, C) of each block by its name

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
        ends = itertools.accumulate(map(math.prod, self.shapes.values()), initial=0)
        return dict(zip(self.shapes, ends, strict=False))

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(map(math.prod, self.shapes.values()))

    @property
    def always(self) -> IntArray:
        """The numbers of weights that each model has."""
        runs = [
            np.arange(first, first + math.prod(self.shapes[name]))
            for name, first in self.firsts.items()
            if self.kind.block_types[name].is_full
        ]
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
            low, high = np.searchsorted(numbers, [first, first + math.prod(shape)])
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
            shapes[name] = (1 if table.rows == ONE else n_labels, table.width(n_labels))
    return shapes
