"""What methods of inference find out about a random field."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from crfkit._types import FloatArray


@dataclass(frozen=True)
class FieldSums:
    """Log Z and probabilities of a random field, or what a method takes for them.

    Attributes
    ----------
    log_partition : float
        In nats; -inf where each combination of values is forbidden.
    marginals : dict
        The probabilities of the values of each variable.
    beliefs : tuple of ndarray
        Those of the combinations of each factor, an axis for each of its variables.
    exact_ : bool
        Whether these are the true ones, but for rounding.
    bound_ : str
        What `log_partition` is to the true one: "exact", "upper", "lower", or "none", of which
        nothing is known.
    converged_ : bool
        Whether the method has come to its end. Only `exact_` is a warrant.
    n_iter_ : int
        How many iterations it took.
    """

    log_partition: float
    marginals: dict[Hashable, FloatArray]
    beliefs: tuple[FloatArray, ...]
    exact_: bool
    bound_: str
    converged_: bool
    n_iter_: int


@dataclass(frozen=True)
class FieldMaximum:
    """Values of a random field that have a large score.

    Attributes
    ----------
    values : dict
        The value of each variable.
    score : float
        The score of these values, -inf where none were found that are allowed.
    score_bound : float
        No values have a larger score; inf where nothing is known.
    exact_ : bool
        Whether that proves that no others are better, by more than 1e-9 of the score.
    n_iter_ : int
        How many iterations it took.
    """

    values: dict[Hashable, int]
    score: float
    score_bound: float
    exact_: bool
    n_iter_: int
