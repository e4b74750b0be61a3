"""A block of weights: of the labels of each second token."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from crfkit.potentials.blocks import LABELS, ONE, Pattern, Table, WeightBlock


class EvenBlock(WeightBlock):
    """Weights of the labels of each second token."""

    name = "even"
    kind = "even token x label"
    tables: ClassVar = (Table("even_weights_", ONE, LABELS, "even tokens"),)
    is_full = True

    def __init__(self, n_labels: int) -> None:
        self.pattern = Pattern.of_numbers(np.arange(n_labels), (1, n_labels), 1)

    @classmethod
    def of_pattern(cls, pattern) -> Self:
        return cls(pattern.n_columns)

    @classmethod
    def choose(cls, choice) -> Self:
        return cls(choice.n_labels)

    def bind(self, parameters):
        return parameters

    def prepare(self, data, chunks, reading):
        """Return the tokens of each chunk."""
        starts = [np.repeat(chunk.offsets[:-1], np.diff(chunk.offsets)) for chunk in chunks]
        pairs = zip(chunks, starts, strict=True)
        return [
            np.flatnonzero((np.arange(c.tokens.start, c.tokens.stop) - s) % 2) for c, s in pairs
        ]

    def add(self, bound, prepared, index, parts):
        parts.unary[prepared[index]] += bound

    def pullback(self, residuals, prepared, out):
        for chunk, index in zip(residuals.chunks, residuals.chosen, strict=True):
            first = chunk.tokens.start - residuals.begin
            out += residuals.unary[first + prepared[index]].sum(axis=0)

    def active(self, prepared):
        return self.all_weights
