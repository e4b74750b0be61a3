"""An emission: tokens that are vectors of counts, each of a Poisson distribution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from crfkit._types import CodeArray, FloatArray, IntArray, Random
from crfkit.data import PackedSequences
from crfkit.data.validation import token_place
from crfkit.generative.base import Emission, LinearEmission, Statistics
from crfkit.persistence import register


@register(name="example.PoissonTables")
class PoissonTables(NamedTuple):
    """What is fitted."""

    rate: FloatArray  # (K, D) mean counts


@register(name="example.Poisson")
class Poisson(Emission):
    """``P(x | k) = prod_d rate[k, d]**x_d exp(-rate[k, d]) / x_d!``, for matrices of counts.

    Parameters
    ----------
    alpha : float, default=0.1
        Above 0: as if each label had so many tokens more, all of whose counts are 1.
    """

    def __init__(self, alpha: float = 0.1) -> None:
        self.alpha = alpha

    def vectorizer(self) -> None:
        return None  # matrices are read as they are

    def check(self, data: PackedSequences) -> None:
        if data.dense is None or data.n_sparse:
            raise ValueError("Poisson emissions are of dense matrices.")
        wrong = np.any((data.dense < 0) | (data.dense % 1 != 0), axis=1)
        if wrong.any():
            place = token_place(data.offsets, int(wrong.argmax()))
            raise ValueError(f"{place}: a value is no count, that is 0, 1, 2, ...")

    def n_features(self, tables: PoissonTables) -> int:
        return int(tables.rate.shape[1])

    def check_tables(self, tables: PoissonTables, n_labels: int, n_features: int) -> None:
        if type(tables) is not PoissonTables or tables.rate.shape != (n_labels, n_features):
            raise ValueError(f"no PoissonTables of shape {(n_labels, n_features)}")
        if not np.all((tables.rate > 0) & (tables.rate < np.inf)):
            raise ValueError("a rate is not above 0, or infinite")

    def count_labels(
        self, data: PackedSequences, codes: CodeArray, weight: FloatArray, n_labels: int
    ) -> Statistics:
        return self.count(data, slice(None), weight[:, None] * np.eye(n_labels)[codes])

    def count(self, data: PackedSequences, tokens: slice, shares: FloatArray) -> Statistics:
        return shares.sum(0), shares.T @ data.dense[tokens]  # they add up

    def extend(self, statistics: Statistics, columns: IntArray, n_features: int) -> Statistics:
        return statistics  # matrices have the same columns in each batch

    def estimate(self, statistics: Statistics, data: PackedSequences) -> PoissonTables:
        tokens, sums = statistics
        return PoissonTables((sums + self.alpha) / (tokens[:, None] + self.alpha))

    def log_prior(self, tables: PoissonTables) -> float:
        return float(self.alpha * (np.log(tables.rate) - tables.rate).sum())

    def initial(self, data: PackedSequences, n_labels: int, random: Random) -> PoissonTables:
        mean = data.dense.mean(0) + self.alpha
        return PoissonTables(mean * random.uniform(0.5, 1.5, (n_labels, len(mean))))

    def scores(
        self, tables: PoissonTables, data: PackedSequences, tokens: slice, out: FloatArray
    ) -> None:
        counts = data.dense[tokens]
        out += counts @ np.log(tables.rate).T - tables.rate.sum(1)
        out -= gammaln(counts + 1.0).sum(1)[:, None]

    def draw(
        self, tables: PoissonTables, labels: CodeArray, random: Random, vectorizer: None
    ) -> FloatArray:
        return random.poisson(tables.rate[labels]).astype(np.float64)

    def linear(self, tables: PoissonTables) -> LinearEmission:
        return LinearEmission(sp.csr_array(np.log(tables.rate).T), -tables.rate.sum(1))
