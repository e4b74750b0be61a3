"""Factors: scores of the values of a few variables together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import FloatArray


class Factor(NamedTuple):
    """A score for each combination of the values of some variables, in nats.

    The score is the logarithm of a potential; ``-inf`` forbids a combination. Potentials need not
    add up to 1, and are no probabilities.

    Attributes
    ----------
    nodes : tuple
        The variables.
    scores : ndarray
        One axis for each of them; the values of a variable are the positions along its axis.
    """

    nodes: tuple[Hashable, ...]
    scores: FloatArray

    @classmethod
    def of(cls, nodes: Sequence[Hashable], scores: ArrayLike) -> Factor:
        """Return a factor; ValueError if the scores have another number of axes than of nodes."""
        table = np.array(scores, float)
        if table.ndim != len(nodes) or len(set(nodes)) != len(nodes):
            raise ValueError(
                f"scores of {', '.join(map(repr, nodes)) or 'nothing'} need an axis for each of "
                f"them, and have {table.ndim}."
            )
        if 0 in table.shape:
            raise ValueError(f"{nodes[table.shape.index(0)]!r} has no values: give it one or more.")
        if np.isnan(table).any() or (table == np.inf).any():
            raise ValueError(f"scores of {', '.join(map(repr, nodes))} are nan or inf.")
        return cls(tuple(nodes), table)

    @classmethod
    def of_potentials(cls, nodes: Sequence[Hashable], potentials: ArrayLike) -> Factor:
        """Return a factor, given the exponentials of its scores, none of which is negative."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return cls.of(nodes, np.log(np.asarray(potentials, float)))

    def clamped(self, values: Mapping[Hashable, int]) -> Factor:
        """Return what is left when some variables have known values."""
        free = tuple(node for node in self.nodes if node not in values)
        place = tuple(values.get(node, slice(None)) for node in self.nodes)
        return Factor(free, np.asarray(self.scores[place]))
