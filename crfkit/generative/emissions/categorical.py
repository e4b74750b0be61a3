"""Categorical distributions: of symbols in one or several columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from crfkit._params import check_number
from crfkit.data import PackedSequences
from crfkit.features.symbols import SymbolVectorizer
from crfkit.generative.base import Statistics
from crfkit.generative.emissions.symbols import (
    SymbolEmission,
    SymbolTables,
    column_starts,
    listed_counts,
)


def additive(counts: sp.csr_array, starts: list[int], alpha: float) -> SymbolTables:
    """Return ``(n_ak + alpha) / (n_k + alpha V)`` of counts (D, K), V attributes in each column.

    Labels without counts have uniform distributions.
    """
    counts.sum_duplicates()
    counts.eliminate_zeros()
    sizes = np.diff(starts)
    block = np.repeat(np.arange(len(sizes)), sizes)
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    cells = block[row] * counts.shape[1] + counts.indices
    sums = np.bincount(cells, counts.data, minlength=len(sizes) * counts.shape[1])
    sums = sums.reshape(len(sizes), -1) + alpha * sizes[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(sums)
        floor = np.where(sums > 0.0, np.log(alpha) - logs, -np.log(sizes)[:, None])
    values = np.log(counts.data + alpha) - logs[block[row], counts.indices]
    listed = sp.csr_array((values, counts.indices, counts.indptr), shape=counts.shape)
    return SymbolTables.of(starts, np.arange(len(sizes)), listed, floor)


def additive_prior(tables: SymbolTables, blocks: slice, alpha: float) -> float:
    """Return the log density of the Dirichlet prior whose mode is additive smoothing."""
    if alpha == 0.0:
        return 0.0
    chosen = np.zeros(len(tables.column), bool)
    chosen[blocks] = True
    unlisted = tables.unlisted()[chosen]
    rest = np.where(unlisted > 0, tables.floor[chosen], 0.0) * unlisted
    listed = tables.values[chosen[tables.block[tables.row]]]
    return alpha * float(listed.sum() + rest.sum())


@dataclass(kw_only=True, eq=False, repr=False)
class Categorical(SymbolEmission):
    """Symbols in one or several columns, each with a distribution for each label.

    ``P(x | k) = prod_c P(x_c | k)`` with ``P(a | k) = (n_ak + alpha) / (n_k + alpha V_c)``, where
    ``n_ak`` counts symbol ``a`` with label ``k``, and ``V_c`` is the number of symbols of the
    column, with one more for all that are unknown.

    Parameters
    ----------
    alpha : float, default=0.1
        What is added to each count; 0 is maximum likelihood, which gives unknown symbols the
        probability 0.
    columns, min_freq
        As of :class:`crfkit.features.SymbolVectorizer`, which reads the tokens.

    Notes
    -----
    Data that are :class:`crfkit.data.PackedSequences` are one column, where each token has one
    attribute, of value 1. Without transitions and with ``alpha=1`` this is scikit-learn's
    ``CategoricalNB``, where that has ``min_categories`` of one more.

    References
    ----------
    L. R. Rabiner: A tutorial on hidden Markov models and selected applications in speech
    recognition. Proceedings of the IEEE 77 (1989).
    """

    alpha: float = 0.1
    columns: list[str] | None = None
    min_freq: int = 0

    def vectorizer(self) -> SymbolVectorizer:
        """Return what packs symbols."""
        return SymbolVectorizer(columns=self.columns, min_freq=self.min_freq)

    def estimate(self, statistics: Statistics, data: PackedSequences) -> SymbolTables:
        """Return the distributions of counts."""
        check_number("alpha", self.alpha)
        (counts,) = statistics
        return additive(listed_counts(counts), column_starts(data).tolist(), self.alpha)

    def log_prior(self, tables: SymbolTables) -> float:
        """Return that of Dirichlet distributions, of which additive smoothing is the mode."""
        return additive_prior(tables, slice(None), self.alpha)
