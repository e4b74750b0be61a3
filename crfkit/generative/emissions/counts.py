"""Multinomial and Bernoulli distributions: of how often attributes are in a token, or whether."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._params import check_number, check_positive
from crfkit._types import CodeArray, FloatArray, IntArray, Random
from crfkit.data import PackedSequences
from crfkit.data.names import name_array
from crfkit.data.validation import token_place
from crfkit.generative.base import Emission, LinearEmission, Statistics
from crfkit.generative.emissions.symbols import TOLERANCE, dealt

MANY = 1 << 20  # numbers of a dense block of tokens that are drawn


class MultinomialTables(NamedTuple):
    """Log-probabilities of attributes."""

    logs: FloatArray  # (D, K)
    size: FloatArray  # () the mean number of attributes of a token


class BernoulliTables(NamedTuple):
    """Log-probabilities that a token has an attribute, and that it has not."""

    present: FloatArray  # (D, K)
    absent: FloatArray  # (D, K)
    others: FloatArray  # () how many values of the training data were neither 0 nor 1


def features(data: PackedSequences, tokens: slice = slice(None)) -> sp.csr_array:
    """Return the features of a run of tokens, (n, D), without zeros."""
    begin, end, _ = tokens.indices(data.n_tokens)
    run = slice(data.indptr[begin], data.indptr[end])
    values = np.ones(run.stop - run.start) if data.values is None else data.values[run]
    rows = values, data.indices[run], data.indptr[begin : end + 1] - run.start
    sparse = sp.csr_array(rows, shape=(end - begin, data.n_sparse))
    if data.dense is None:
        return sparse
    dense = sp.csr_array(data.dense[begin:end])
    return sp.csr_array(sp.hstack([sparse, dense], format="csr")) if data.n_sparse else dense


def column_of_labels(codes: CodeArray, weight: FloatArray, n_labels: int) -> sp.csr_array:
    """Return the weights of tokens in the columns of their labels, (N, K)."""
    ptr = np.arange(len(codes) + 1)
    return sp.csr_array((weight, codes, ptr), shape=(len(codes), n_labels))


def in_parts(
    rows: Callable[[CodeArray], FloatArray], labels: CodeArray, n_features: int
) -> sp.csr_array:
    """Return the sparse rows of tokens that are drawn, (n, D), of which few are dense at a time."""
    step = max(1, MANY // max(n_features, 1))
    parts = [sp.csr_array(rows(labels[n : n + step])) for n in range(0, len(labels), step)]
    return sp.csr_array(sp.vstack([sp.csr_array((0, n_features)), *parts], format="csr"))


def check_logs(name: str, logs: Any, shape: tuple[int, int]) -> None:
    """Raise ValueError if something is no table of log-probabilities of a shape."""
    if type(logs) is not np.ndarray or logs.dtype != np.float64 or logs.shape != shape:
        raise ValueError(f"{name} is no array of float64 of shape {shape}")
    if not np.all(logs <= TOLERANCE):
        raise ValueError(f"{name} has a probability above 1, or NaN")


def check_single(value: Any, name: str) -> None:
    """Raise ValueError if something is no array of one number that is finite and not negative."""
    if type(value) is not np.ndarray or value.dtype != np.float64 or value.shape != ():
        raise ValueError(f"{name} is no array of one float64")
    if not 0.0 <= value < np.inf:
        raise ValueError(f"{name} is negative or infinite")


def place(data: PackedSequences, token: int, feature: int) -> str:
    """Return how messages name a feature of a token."""
    name = feature if data.names is None else repr(name_array(data.names)[feature])
    return f"{token_place(data.offsets, token)}, feature {name}"


def check_not_negative(data: PackedSequences, emission: str) -> None:
    """Raise ValueError, naming the place, if a count is negative."""
    if (data.values is None or np.all(data.values >= 0)) and (
        data.dense is None or np.all(data.dense >= 0)
    ):
        return
    rows = features(data).tocoo()
    worst = int(np.argmin(rows.data >= 0))
    token, feature = (int(axis[worst]) for axis in rows.coords)
    raise ValueError(
        f"{place(data, token, feature)}: the value is {rows.data[worst]:g}, but {emission} is of "
        "counts, none of which is negative."
    )


class _Counts(Emission, ABC):
    """Sparse features whose sums by label are all that is needed of them."""

    def n_features(self, tables: Any) -> int:
        """Return how many features D tables are of."""
        return len(tables[0])

    def vectorizer(self) -> None:
        """Return None: tokens are read as for a CRF."""
        return None

    def extend(self, statistics: Statistics, columns: IntArray, n_features: int) -> Statistics:
        """Return sums of more features: those of what was number d, for number columns[d]."""
        sums, *others = statistics
        larger = np.zeros((n_features, sums.shape[1]))
        larger[columns] = sums
        return (larger, *others)


@dataclass(kw_only=True, eq=False, repr=False)
class Multinomial(_Counts):
    """Counts of attributes: a token is a bag, from which attributes are drawn by its label.

    ``log P(x | k) = sum_a x_a log P(a | k)``, without the multinomial coefficient, which is the
    same for all labels, and ``P(a | k) = (n_ak + alpha) / (n_k + alpha D)``, where ``n_ak`` adds up
    the values of attribute ``a`` of tokens with label ``k``.

    Parameters
    ----------
    alpha : float, default=1.0
        What is added to each count; 0 is maximum likelihood.

    Notes
    -----
    Without transitions this is scikit-learn's ``MultinomialNB``. How many attributes a token has is
    not modelled: tokens that are drawn have as many as those of the training data on average, a
    Poisson number.

    References
    ----------
    A. McCallum, K. Nigam: A comparison of event models for naive Bayes text classification.
    AAAI workshop on learning for text categorization (1998).
    """

    alpha: float = 1.0

    def check(self, data: PackedSequences) -> None:
        """Raise ValueError if a value is negative."""
        check_not_negative(data, "multinomial")

    def check_tables(self, tables: Any, n_labels: int, n_features: int) -> None:
        """Raise ValueError if tables are not of K labels and D features, or no distributions."""
        if type(tables) is not MultinomialTables:
            raise ValueError("the tables of counts are none")
        check_logs("logs", tables.logs, (n_features, n_labels))
        if not np.allclose(np.exp(tables.logs).sum(axis=0), 1.0, rtol=0.0, atol=TOLERANCE):
            raise ValueError("the probabilities of attributes do not add up to 1")
        check_single(tables.size, "the mean number of attributes")

    def count_labels(
        self, data: PackedSequences, codes: CodeArray, weight: FloatArray, n_labels: int
    ) -> Statistics:
        """Return sums of features by label, (D, K), and the weight of all tokens."""
        labels = column_of_labels(codes, weight, n_labels)
        return (features(data).T @ labels).toarray(), np.array(weight.sum())

    def count(self, data: PackedSequences, tokens: slice, shares: FloatArray) -> Statistics:
        """Return expected sums of features by label, (D, K), and the weight of all tokens."""
        return features(data, tokens).T @ shares, np.array(shares.sum())

    def estimate(self, statistics: Statistics, data: PackedSequences) -> MultinomialTables:
        """Return the distributions of sums; uniform ones where there are none."""
        check_number("alpha", self.alpha)
        sums, weight = statistics
        smoothed = sums + self.alpha
        totals = smoothed.sum(axis=0)
        logs = np.full(sums.shape, -np.log(max(len(sums), 1)))
        with np.errstate(divide="ignore"):
            np.log(smoothed, out=logs, where=totals > 0)
            logs[:, totals > 0] -= np.log(totals[totals > 0])
        return MultinomialTables(logs, np.array(sums.sum() / weight if weight > 0 else 0.0))

    def log_prior(self, tables: MultinomialTables) -> float:
        """Return that of Dirichlet distributions, of which additive smoothing is the mode."""
        return 0.0 if self.alpha == 0.0 else self.alpha * float(tables.logs.sum())

    def initial(self, data: PackedSequences, n_labels: int, random: Random) -> MultinomialTables:
        """Return tables where each attribute is dealt to the labels at random."""
        uses = np.asarray(features(data).sum(axis=0)).reshape(-1)
        return self.estimate((dealt(uses, n_labels, random), np.array(float(data.n_tokens))), data)

    def scores(
        self, tables: MultinomialTables, data: PackedSequences, tokens: slice, out: FloatArray
    ) -> None:
        """Add the log-probabilities of the attributes of each token, times their counts."""
        out += features(data, tokens) @ tables.logs

    def draw(
        self, tables: MultinomialTables, labels: CodeArray, random: Random, vectorizer: Any
    ) -> sp.csr_array:
        """Return tokens as rows of counts, a matrix of shape (n, D)."""
        shares = np.exp(tables.logs).T
        shares /= shares.sum(axis=1, keepdims=True)  # to the last digit

        def rows(part: CodeArray) -> FloatArray:
            sizes = random.poisson(tables.size, len(part))
            pairs = zip(sizes, shares[part], strict=True)
            return np.array([random.multinomial(size, share) for size, share in pairs], float)

        return in_parts(rows, labels, len(tables.logs))

    def linear(self, tables: MultinomialTables) -> LinearEmission:
        """Return the log-probabilities as weights."""
        return LinearEmission(sp.csr_array(tables.logs), np.zeros(tables.logs.shape[1]))


@dataclass(kw_only=True, eq=False, repr=False)
class Bernoulli(_Counts):
    """Attributes that a token has or has not, independent of each other given its label.

    ``P(x | k) = prod_a P(a | k)^[x_a > threshold] (1 - P(a | k))^[x_a <= threshold]`` with
    ``P(a | k) = (n_ak + alpha) / (n_k + 2 alpha)``, where ``n_ak`` counts tokens of label ``k``
    that have attribute ``a``, and ``n_k`` all of label ``k``.

    Parameters
    ----------
    alpha : float, default=1.0
        What is added to each count; above 0.
    threshold : float, default=0.0
        A token has an attribute whose value is above this; not negative, so that those that are
        not listed are absent.

    Notes
    -----
    Without transitions this is scikit-learn's ``BernoulliNB``.

    References
    ----------
    A. McCallum, K. Nigam: A comparison of event models for naive Bayes text classification.
    AAAI workshop on learning for text categorization (1998).
    """

    alpha: float = 1.0
    threshold: float = 0.0

    def check(self, data: PackedSequences) -> None:
        """Do nothing: any number is above the threshold or not."""

    def check_tables(self, tables: Any, n_labels: int, n_features: int) -> None:
        """Raise ValueError if tables are not of K labels and D features, or no distributions."""
        if type(tables) is not BernoulliTables:
            raise ValueError("the tables of attributes are none")
        for name in ("present", "absent"):
            logs = getattr(tables, name)
            check_logs(name, logs, (n_features, n_labels))
            if np.any(np.isneginf(logs)):
                raise ValueError(f"{name} has a probability of 0")
        check_single(tables.others, "the number of other values")
        if not np.allclose(np.exp(tables.present) + np.exp(tables.absent), 1.0, atol=TOLERANCE):
            raise ValueError("the probabilities of attributes do not add up to 1")

    def count_labels(
        self, data: PackedSequences, codes: CodeArray, weight: FloatArray, n_labels: int
    ) -> Statistics:
        """Return how often attributes and labels occur together, (D, K), and labels, (K,).

        And how many values are neither 0 nor 1.
        """
        labels = column_of_labels(codes, weight, n_labels)
        rows, others = self._present(data)
        return (rows.T @ labels).toarray(), np.bincount(codes, weight, n_labels), others

    def count(self, data: PackedSequences, tokens: slice, shares: FloatArray) -> Statistics:
        """Return how often they are expected to occur."""
        rows, others = self._present(data, tokens)
        return rows.T @ shares, shares.sum(axis=0), others

    def estimate(self, statistics: Statistics, data: PackedSequences) -> BernoulliTables:
        """Return the distributions of counts."""
        check_positive("alpha", self.alpha)
        uses, labels, others = statistics
        totals = np.log(labels + 2.0 * self.alpha)
        missing = np.maximum(labels - uses, 0.0)  # not below 0 by rounding
        present, absent = (np.log(part + self.alpha) - totals for part in (uses, missing))
        return BernoulliTables(present, absent, np.asarray(others))

    def log_prior(self, tables: BernoulliTables) -> float:
        """Return that of Beta distributions, of which additive smoothing is the mode."""
        return self.alpha * float(tables.present.sum() + tables.absent.sum())

    def initial(self, data: PackedSequences, n_labels: int, random: Random) -> BernoulliTables:
        """Return tables where each attribute is dealt to the labels at random."""
        rows, others = self._present(data)
        uses = dealt(np.asarray(rows.sum(axis=0)).reshape(-1), n_labels, random)
        labels = np.maximum(data.n_tokens / n_labels, uses.max(axis=0, initial=0.0))
        return self.estimate((uses, labels, others), data)

    def scores(
        self, tables: BernoulliTables, data: PackedSequences, tokens: slice, out: FloatArray
    ) -> None:
        """Add the log-probability of what each token has and has not."""
        out += self._present(data, tokens)[0] @ (tables.present - tables.absent)
        out += tables.absent.sum(axis=0)

    def draw(
        self, tables: BernoulliTables, labels: CodeArray, random: Random, vectorizer: Any
    ) -> sp.csr_array:
        """Return tokens as rows of 0 and above the threshold, a matrix of shape (n, D)."""
        shares, value = np.exp(tables.present).T, self.threshold + 1.0

        def rows(part: CodeArray) -> FloatArray:
            drawn = random.random_sample((len(part), shares.shape[1])) < shares[part]
            return np.where(drawn, value, 0.0)

        return in_parts(rows, labels, shares.shape[1])

    def linear(self, tables: BernoulliTables) -> LinearEmission:
        """Return the logarithms of odds as weights; ValueError where values were not 0 and 1."""
        if tables.others > 0 or not 0.0 <= self.threshold < 1.0:
            raise ValueError(
                "bernoulli: the log-probability is a linear function of values that are 0 and 1, "
                "but the training data had others."
            )
        constant = tables.absent.sum(axis=0)
        return LinearEmission(sp.csr_array(tables.present - tables.absent), constant)

    def _present(
        self, data: PackedSequences, tokens: slice = slice(None)
    ) -> tuple[sp.csr_array, FloatArray]:
        """Return which attributes the tokens have, as ones, (n, D), and how many values are not."""
        check_number("threshold", self.threshold)
        rows = features(data, tokens)
        others = np.array(float(np.count_nonzero(rows.data != 1.0)))
        rows.data = (rows.data > self.threshold).astype(float)
        rows.eliminate_zeros()
        return rows, others
