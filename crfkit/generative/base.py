"""What the parts of a generative model have to do: transitions, their smoothing, and emissions.

A hidden Markov model (Rabiner 1989) says that labels are a Markov chain, and that a token depends
on its label alone::

    P(x, y) = P(y_1) prod_t P(y_t | y_{t-1}) P(end | y_T) prod_t P(x_t | y_t)

All of it is estimated from counts that add up: of labels next to each other, and what an emission
needs to know of the tokens of each label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import scipy.sparse as sp
from sklearn.base import BaseEstimator

from crfkit._types import CodeArray, FloatArray, IntArray, Random
from crfkit.data import PackedSequences

# Sufficient statistics of emissions: arrays that add up over tokens, of the same shapes. Some may
# be sparse matrices: they are added as ``a + b``, and not in place.
Statistics = tuple[Any, ...]
Tables = Any  # what an emission has fitted: a NamedTuple of arrays, known to model files


class StepCounts(NamedTuple):
    """Weighted counts of labels that follow one another; those of data in parts add up."""

    start: FloatArray  # (K,) first labels
    steps: FloatArray  # (K, K) a label, the next label
    end: FloatArray  # (K,) last labels
    # Order 2: (K + 1, K, K) the label two before, row K where there is none, a label, the next one.
    triples: FloatArray | None = None


class StepTables(NamedTuple):
    """Probabilities of labels, in the form of `StepCounts`.

    Rows of `steps` add up to ``1 - end[i]``, and so do rows ``triples[h, i]``: the end depends on
    the last label alone.
    """

    start: FloatArray
    steps: FloatArray
    end: FloatArray | None  # None where the end of sequences is not modelled: it costs nothing
    triples: FloatArray | None = None


class HiddenCounts(NamedTuple):
    """All that is counted for a hidden Markov model."""

    steps: StepCounts
    emission: Statistics


class HiddenTables(NamedTuple):
    """All that is fitted of a hidden Markov model."""

    steps: StepTables
    emission: Tables


def add_statistics(one: Statistics, other: Statistics) -> Statistics:
    """Return the statistics of two parts of data together."""
    return tuple(ours + theirs for ours, theirs in zip(one, other, strict=True))


class LinearEmission(NamedTuple):
    """``log P(x | k) = x coef[:, k] + constant[k]``, plus what is the same for all labels."""

    coef: sp.csr_array  # (D, K)
    constant: FloatArray  # (K,)
    # Transforms packed sequences to those with the attributes that `coef` is of; None: their own.
    features: Any = None


class Smoothing(BaseEstimator, ABC):  # type: ignore[misc]
    """From counts of labels to probabilities, also of what was never seen."""

    # Whether tables maximize ``log P(counts | tables) + log_prior(tables)``, so that EM rises.
    is_maximizer: ClassVar[bool]

    @abstractmethod
    def estimate(self, counts: StepCounts, stop: bool) -> StepTables:
        """Return probabilities; those of the end where `stop`. Rows without counts are no NaN."""

    @abstractmethod
    def log_prior(self, tables: StepTables) -> float:
        """Return the logarithm of the prior density, up to a constant: 0 where there is none."""


class Emission(BaseEstimator, ABC):  # type: ignore[misc]
    """A family of distributions of tokens, one for each label.

    An object holds parameters only; what is fitted are its tables.
    """

    # Whether tables maximize ``log P(tokens | tables) + log_prior(tables)``, so that EM rises.
    is_maximizer: ClassVar[bool] = True

    @abstractmethod
    def vectorizer(self) -> Any | None:
        """Return a new transformer that packs tokens; None: they are read as for a CRF."""

    @abstractmethod
    def check(self, data: PackedSequences) -> None:
        """Raise ValueError, naming sequence, position and feature, if data have no such tokens."""

    @abstractmethod
    def n_features(self, tables: Tables) -> int:
        """Return the number of features D that tables are of."""

    @abstractmethod
    def check_tables(self, tables: Tables, n_labels: int, n_features: int) -> None:
        """Raise ValueError if tables, of a file or set by hand, are not of K labels and D features.

        The check is complete: types, shapes, values that are distributions.
        """

    @abstractmethod
    def count_labels(
        self, data: PackedSequences, codes: CodeArray, weight: FloatArray, n_labels: int
    ) -> Statistics:
        """Return the statistics of tokens of known labels, (N,), with weights, (N,)."""

    @abstractmethod
    def count(self, data: PackedSequences, tokens: slice, shares: FloatArray) -> Statistics:
        """Return the statistics of a run of n tokens with weighted shares of labels, (n, K)."""

    @abstractmethod
    def extend(self, statistics: Statistics, columns: IntArray, n_features: int) -> Statistics:
        """Return statistics for data that have more features than before.

        What was feature ``d`` is now the feature ``columns[d]`` of `n_features`. ValueError if
        there cannot be more.
        """

    @abstractmethod
    def estimate(self, statistics: Statistics, data: PackedSequences) -> Tables:
        """Return the tables of the most probable distributions.

        `data` are any that have the features that were counted, whose names may tell what they are.
        """

    @abstractmethod
    def log_prior(self, tables: Tables) -> float:
        """Return the logarithm of the prior density, up to a constant: 0 where there is none."""

    def log_likelihood(self, tables: Tables, statistics: Statistics) -> float | None:
        """Return ``log P(x | y)`` of what was counted, if statistics tell it without more data."""

    @abstractmethod
    def initial(self, data: PackedSequences, n_labels: int, random: Random) -> Tables:
        """Return tables to start from where no label is known."""

    @abstractmethod
    def scores(self, tables: Tables, data: PackedSequences, tokens: slice, out: FloatArray) -> None:
        """Add ``log P(x_t | k)`` of a run of n tokens to `out`, (n, K); ``-inf`` is allowed."""

    @abstractmethod
    def draw(self, tables: Tables, labels: CodeArray, random: Random, vectorizer: Any) -> Any:
        """Return tokens drawn for labels, (n,), such that slices of them are sequences for `fit`.

        `vectorizer` is the fitted one that has packed tokens; None where it was none.
        """

    @abstractmethod
    def linear(self, tables: Tables) -> LinearEmission:
        """Return ``log P(x | k)`` as linear in features; ValueError where it is not."""
