"""Losses of the probabilities of single labels: sums over tokens of functions of marginals."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._params import check_number, check_option
from crfkit._types import BoolArray, CodeArray, Counts, FloatArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.data.targets import Targets, Weights
from crfkit.kernels.token_losses import (
    NONE,
    slopes_of_cost,
    slopes_of_difference,
    slopes_of_logarithm,
)
from crfkit.labels.costs import added_cost, find_cost
from crfkit.losses.base import Loss
from crfkit.losses.likelihood import LogLoss, forbidden_labels
from crfkit.structures import Capability, Posterior, Structure

# Of less probable labels, the logarithm of the probability is asked for.
TINY = 1e-100
STARTS = ("log", "given")


class MarginalLoss(Loss):
    """A sum over tokens, ``sum_t w_t f(P(y_t = . | x))``, which is not convex.

    Any weight `w_t` of a token multiplies its term, so that a token of weight 0 counts as
    unlabeled. Where a token may have several labels (``Targets.allowed``), the term is that of
    their set; it is 0 where all are allowed. The gradient is the covariance of the parts with the
    derivatives of the terms (Kakade, Teh and Roweis 2002; Gross, Russakovsky, Do and Batzoglou
    2006), which the structure computes: :class:`crfkit.structures.Posterior`.
    """

    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.POSTERIOR})

    def value_and_grad(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> float:
        """Return the loss of a batch and its gradient, as in :class:`Loss`."""
        posterior, weight = structure.posterior(potentials), weights.tokens
        if targets.allowed is not None:
            weight = np.where(targets.allowed.all(axis=1), 0.0, weight)
        terms, slopes = self._terms(potentials, posterior, targets, frozen(weight))
        posterior.pull_back(slopes, out)
        return float(np.sum(terms))

    @abstractmethod
    def _terms(
        self, potentials: Potentials, posterior: Posterior, targets: Targets, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the weighted terms, (N,), and their slopes, (N, C), see `Posterior`."""


class PointwiseLoss(MarginalLoss):
    """``- sum_t w_t log P(y_t | x)``: each label on its own has to be probable.

    The loss of Kakade, Teh and Roweis (2002), for which Gupta (2006, section 2.3) says
    pseudo-likelihood, and Gross et al. (2006, equation 4) pointwise likelihood. That the labels
    of neighbors fit together does not matter to it. Of several allowed labels, the term is that of
    the sum of their probabilities.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> CRFClassifier(loss="pointwise", decoding="posterior")
    CRFClassifier(decoding='posterior', loss='pointwise')
    """

    def _terms(
        self, potentials: Potentials, posterior: Posterior, targets: Targets, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        marginals, allowed, counted = posterior.marginals, targets.allowed, weight > 0.0
        if allowed is None:
            labels, slopes, others = targets.labels, np.empty_like(marginals), np.empty(len(weight))
            inside = marginals[np.arange(len(weight)), labels]
            slopes_of_logarithm(frozen(marginals), frozen(labels), weight, slopes, others)
        else:
            slopes, inside, others = _slopes_of_set(marginals, allowed, weight)
        terms = np.zeros(len(weight))
        with np.errstate(over="ignore"):
            np.divide(others, inside, out=terms, where=counted & (inside != 0.0))
        terms = weight * np.log1p(terms)
        lost = np.flatnonzero(counted & (inside < TINY))
        if len(lost):
            logs = _log_probabilities(posterior, lost, targets.mask(potentials.n_codes)[lost])
            whole = np.logaddexp.reduce(logs, axis=1)
            if np.isneginf(whole).any():
                raise forbidden_labels(potentials, int(lost[np.argmin(whole)]))
            terms[lost] = -weight[lost] * whole
            if allowed is not None:
                share = np.exp(logs - whole[:, None])
                outside = posterior.marginals[lost] * ~allowed[lost]
                slopes[lost] = weight[lost, None] * (outside - share * others[lost, None])
        return terms, slopes


def _slopes_of_set(
    marginals: FloatArray, allowed: BoolArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the slopes of minus the logarithm of what is allowed, its probability, the rest."""
    within, without = marginals * allowed, marginals * ~allowed
    inside, others = within.sum(axis=1), without.sum(axis=1)
    odds = np.zeros_like(others)
    np.divide(others, inside, out=odds, where=inside > TINY)
    return weight[:, None] * (without - within * odds[:, None]), inside, others


def _log_probabilities(posterior: Posterior, tokens: Any, allowed: BoolArray) -> FloatArray:
    """Return the logarithms of probabilities of what is allowed, ``-inf`` for others, (n, C)."""
    logs, (rows, codes) = np.full(allowed.shape, -np.inf), np.nonzero(allowed)
    logs[rows, codes] = posterior.log_probability(tokens[rows], codes)
    return logs


class RiskLoss(BaseEstimator, MarginalLoss):  # type: ignore[misc]
    """``sum_t w_t sum_k P(y_t = k | x) cost(y_t, k)``: the cost to expect of a drawn labeling.

    With the Hamming cost, the expected number of wrong labels. A label that is given up, because
    the model finds it all but impossible, no longer moves the weights: the loss is robust against
    wrong labels, and has local minima, in which a search from weights of 0 ends. So an estimator
    lets its solver minimize the log loss first. Of several allowed labels, the cheapest one counts.

    Parameters
    ----------
    cost : "hamming", Cost, dict or array of shape (K, K), default="hamming"
        As for :class:`crfkit.losses.SoftmaxMarginLoss`.
    start : {"log", "given"}, default="log"
        What it starts from: weights of the log loss, found from those that are given, or these
        themselves.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> CRFClassifier(loss="risk", cost={"O": 0.5})
    CRFClassifier(cost={'O': 0.5}, loss='risk')
    """

    takes_cost: ClassVar[bool] = True
    is_staged: ClassVar[bool] = True

    def __init__(self, cost: Any = "hamming", *, start: str = "log") -> None:
        self.cost = cost
        self.start = start

    def stages(self) -> list[Loss]:
        """Return the losses that are minimized one after the other."""
        return [*_before(self.start), RiskLoss(self.cost, start="given")]

    def _terms(
        self, potentials: Potentials, posterior: Posterior, targets: Targets, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        size, marginals = potentials.n_codes, frozen(posterior.marginals)
        slopes, expected = np.empty_like(marginals), np.empty(len(weight))
        if targets.allowed is None:
            known, rows = Targets(np.arange(size, dtype=np.int32)), targets.labels
        else:
            sets, rows = targets.sets(size)
            known = Targets.of_allowed(sets)
        costs = added_cost(find_cost(self.cost, size), known)
        slopes_of_cost(marginals, frozen(costs), frozen(rows), weight, slopes, expected)
        return weight * expected, slopes


class LabelwiseLoss(BaseEstimator, MarginalLoss):  # type: ignore[misc]
    """``sum_t w_t (1 - Q(P(y_t | x) - max_k P(k | x)))``, where k is another label than the true.

    With ``Q(d) = 1 / (1 + exp(-slope d))`` a smooth count of the labels that the most probable one
    at each token gets wrong (Gross, Russakovsky, Do and Batzoglou 2006, equations 9 and 10), to
    which it tends for steep slopes. The other label is the most probable one at each evaluation, so
    that the loss has kinks where two other labels are equally probable: a search may end at one,
    where the gradient does not vanish. Of several allowed labels, the most probable one counts
    against the most probable of the others.

    It is far from convex, and its value is that of the last slope. An estimator lets its solver
    minimize first the log loss, whose optimum is the only one, then the loss with one slope after
    the other, each from the weights of the one before.

    Parameters
    ----------
    slopes : sequence of float, default=(5.0, 15.0)
        Rising slopes of the sigmoid, above 0.
    start : {"log", "given"}, default="log"
        As for :class:`RiskLoss`.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.losses import LabelwiseLoss
    >>> CRFClassifier(loss=LabelwiseLoss(slopes=(15.0,)), decoding="posterior")
    CRFClassifier(decoding='posterior', loss=LabelwiseLoss(slopes=(15.0,)))
    """

    is_staged: ClassVar[bool] = True
    has_kinks: ClassVar[bool] = True

    def __init__(self, *, slopes: Sequence[float] = (5.0, 15.0), start: str = "log") -> None:
        self.slopes = slopes
        self.start = start

    def stages(self) -> list[Loss]:
        """Return the losses that are minimized one after the other, of rising slopes."""
        slopes = [LabelwiseLoss(slopes=(slope,)) for slope in self._checked_slopes()]
        return [*_before(self.start), *slopes]

    def _terms(
        self, potentials: Potentials, posterior: Posterior, targets: Targets, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        marginals, steepest = frozen(posterior.marginals), self._checked_slopes()[-1]
        if targets.allowed is None:
            labels, rivals = targets.labels, np.full(len(weight), NONE, np.int32)
        else:
            labels = _best_of(marginals, targets.allowed)
            rivals = _best_of(marginals, ~targets.allowed)
        slopes, errors = np.empty_like(marginals), np.empty(len(weight))
        slopes_of_difference(
            marginals, frozen(labels), frozen(rivals), weight, steepest, slopes, errors
        )
        return weight * errors, slopes

    def _checked_slopes(self) -> list[float]:
        found: list[float] = []
        if not isinstance(self.slopes, Iterable) or isinstance(self.slopes, str):
            raise TypeError(f"slopes={self.slopes!r} must be a sequence of rising numbers above 0.")
        for slope in self.slopes:
            check_number("slopes", slope)
            if not math.isfinite(slope) or slope <= (found[-1] if found else 0.0):
                raise ValueError(f"slopes={self.slopes!r} must be rising numbers above 0.")
            found.append(float(slope))
        if not found:
            raise ValueError("slopes=() must have at least one number.")
        return found


def _before(start: str) -> list[Loss]:
    """Return the losses that come before the one that is asked for."""
    check_option("start", start, STARTS)
    return [LogLoss()] if start == "log" else []


def _best_of(marginals: FloatArray, chosen: BoolArray) -> CodeArray:
    """Return the most probable code of those that are chosen at each token, shape (N,)."""
    best: CodeArray = np.where(chosen, marginals, -1.0).argmax(axis=1).astype(np.int32)
    return best
