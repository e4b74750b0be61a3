"""Smoothing of transitions: probabilities of labels that were seldom or never seen together.

All of it is about the distributions of the next label, given the label before or the two before;
where the end of sequences is modelled, it is one more outcome. The start is one more label before,
after which there is no end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from crfkit._params import check_number, find_named
from crfkit._types import FloatArray
from crfkit.generative.base import Smoothing, StepCounts, StepTables


@dataclass(kw_only=True, eq=False, repr=False)
class Additive(Smoothing):
    """Add `alpha` to each count, the same for all outcomes (Lidstone; Laplace for 1).

    The estimate is the mode of the posterior distribution where each row of probabilities has a
    Dirichlet prior with the parameter ``alpha + 1``. With 0 it is the relative frequency, and a row
    without counts is uniform.

    Parameters
    ----------
    alpha : float, default=0.1
    """

    alpha: float = 0.1

    is_maximizer = True

    def estimate(self, counts: StepCounts, stop: bool) -> StepTables:
        """Return probabilities; those of the end where `stop`."""
        check_number("alpha", self.alpha)
        rows = _raised(_outcomes(counts, stop), self.alpha)
        triples = None
        if counts.triples is not None:
            triples = _raised(counts.triples, self.alpha) * _going_on(rows)
        return _tables(_raised(counts.start, self.alpha), rows, triples, stop)

    def log_prior(self, tables: StepTables) -> float:
        """Return the logarithm of the prior density, up to a constant."""
        start, steps, end, triples = tables
        parts, size = [start], len(start)
        if triples is None:
            parts += [steps] if end is None else [steps, end]
        else:
            rest = np.ones(size) if end is None else 1.0 - end
            parts += [_shares(triples, np.zeros(size))]
            parts += [] if end is None else [end, np.repeat(rest, size)]
        return float(sum(xlogy(self.alpha, part).sum() for part in parts))


@dataclass(kw_only=True, eq=False, repr=False)
class WittenBell(Smoothing):
    """Leave to what was not seen as much as there are kinds of what was seen (method C).

    After a label that was followed `n` times by `T` different labels::

        P(j | i) = (n[i, j] + T[i] P(j)) / (n[i] + T[i])

    where ``P(j)`` is estimated from all labels in the same way, with a uniform distribution in the
    place of the last term; and in order 2, ``P(j | h, i)`` with ``P(j | i)``. A count below 1, as
    of labels that are only expected, is that part of a kind.

    References
    ----------
    I. H. Witten and T. C. Bell (1991). The zero-frequency problem: estimating the probabilities of
    novel events in adaptive text compression. IEEE Transactions on Information Theory 37.
    """

    is_maximizer = False

    def estimate(self, counts: StepCounts, stop: bool) -> StepTables:
        """Return probabilities; those of the end where `stop`."""
        size, outcomes = len(counts.start), _outcomes(counts, stop)
        every = outcomes.sum(axis=0)
        every[:size] += counts.start
        below = _witten_bell(every, np.full(len(every), 1.0 / len(every)))
        rows = _witten_bell(outcomes, below)
        start = _witten_bell(counts.start, below[:size] / below[:size].sum())
        triples = None
        if counts.triples is not None:
            shares = _shares(rows[:, :size], np.full(size, 1.0 / size))
            triples = _witten_bell(counts.triples, shares) * _going_on(rows)
        return _tables(start, rows, triples, stop)

    def log_prior(self, tables: StepTables) -> float:
        """Return 0: there is none."""
        return 0.0


@dataclass(kw_only=True, eq=False, repr=False)
class DeletedInterpolation(Smoothing):
    """Mix relative frequencies given no label, the last one, and the last two.

    The weights of the mixture are the same after all labels. Each transition that was seen votes,
    by how often it was, for the frequency that is largest when one occurrence is left out (of equal
    ones, for each with the same part): ``(n[h, i, j] - 1) / (n[h, i] - 1)``, ``(n[i, j] - 1) /
    (n[i] - 1)`` or ``(n[j] - 1) / (N - 1)``, 0 where nothing else was seen. A frequency that is not
    known, as nothing was seen after the labels, is that of the last one alone, or of none.

    In order 2 the end of a sequence depends on the last label alone: its probability is that of
    order 1, and what is mixed are the labels if there is one more.

    References
    ----------
    T. Brants (2000). TnT - a statistical part-of-speech tagger. Applied Natural Language
    Processing, figure 1.
    """

    is_maximizer = False

    def estimate(self, counts: StepCounts, stop: bool) -> StepTables:
        """Return probabilities; those of the end where `stop`."""
        size = len(counts.start)
        outcomes = _outcomes(counts, stop)
        start = np.pad(counts.start, (0, outcomes.shape[1] - size))
        pairs = np.vstack([outcomes, start])
        singles = pairs.sum(axis=0)
        weights = _interpolation_weights([singles, pairs])
        below = _shares(singles, np.full(len(singles), 1.0 / len(singles)))
        rows = _mixed(weights, [below, _shares(outcomes, below)])
        of_labels = _shares(below[:size], np.full(size, 1.0 / size))
        starts = _mixed(weights, [of_labels, _shares(counts.start, of_labels)])
        triples = None
        if counts.triples is not None:
            labels = counts.steps.sum(axis=0) + counts.start
            weights = _interpolation_weights([labels, counts.steps, counts.triples])
            one = _shares(counts.steps, of_labels)
            shares = _mixed(weights, [of_labels, one, _shares(counts.triples, one)])
            triples = shares * _going_on(rows)
        return _tables(starts, rows, triples, stop)

    def log_prior(self, tables: StepTables) -> float:
        """Return 0: there is none."""
        return 0.0


#: Smoothings by the names that estimators know them by.
SMOOTHINGS: dict[str, type[Smoothing]] = {
    "additive": Additive,
    "witten_bell": WittenBell,
    "deleted_interpolation": DeletedInterpolation,
}


def find_smoothing(smoothing: Any) -> Smoothing:
    """Return a smoothing, given as an object or by name."""
    known = f"one of {sorted(SMOOTHINGS)}"
    found: Smoothing = find_named("smoothing", smoothing, SMOOTHINGS, "estimate", known)
    return found


def _outcomes(counts: StepCounts, stop: bool) -> FloatArray:
    """Return how often each label was followed by each outcome, (K, V): the end is the last."""
    return np.column_stack([counts.steps, counts.end]) if stop else counts.steps.copy()


def _going_on(rows: FloatArray) -> FloatArray:
    """Return the probability that there is another label after each, (K, 1), given outcomes."""
    size = len(rows)
    found: FloatArray = rows[:, :size].sum(axis=1, keepdims=True)
    return found


def _tables(
    start: FloatArray, rows: FloatArray, triples: FloatArray | None, stop: bool
) -> StepTables:
    """Return tables, given probabilities of the outcomes after each label."""
    size = len(start)
    end = np.ascontiguousarray(rows[:, size]) if stop else None
    return StepTables(start, np.ascontiguousarray(rows[:, :size]), end, triples)


def _shares(counts: FloatArray, otherwise: FloatArray) -> FloatArray:
    """Return counts divided by their sums along the last axis; `otherwise` where these are 0."""
    total = counts.sum(axis=-1, keepdims=True)
    shares = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0.0)
    found: FloatArray = np.where(total > 0.0, shares, otherwise)
    return found


def _raised(counts: FloatArray, alpha: float) -> FloatArray:
    """Return the shares of counts to which something was added."""
    return _shares(counts + alpha, np.full(counts.shape[-1], 1.0 / counts.shape[-1]))


def _witten_bell(counts: FloatArray, below: FloatArray) -> FloatArray:
    kinds = np.minimum(counts, 1.0).sum(axis=-1, keepdims=True)
    return _shares(counts + kinds * below, below)


def _interpolation_weights(levels: list[FloatArray]) -> FloatArray:
    """Return the weight of each level: counts given no label, the last one, the last two."""
    last, ratios = levels[-1], []
    seen = np.unravel_index(np.flatnonzero(last.reshape(-1) != 0.0), last.shape)
    for counts in levels:
        places = seen[last.ndim - counts.ndim :]
        others = np.sum(counts, axis=-1)[places[:-1]] - 1.0
        left = np.maximum(counts[places] - 1.0, 0.0)
        ratios.append(np.divide(left, others, out=np.zeros_like(left), where=others > 0.0))
    chosen = np.equal(ratios, np.max(ratios, axis=0)).astype(np.float64)
    votes: FloatArray = chosen * (last[seen] / chosen.sum(axis=0))
    return _shares(votes.sum(axis=1), np.eye(len(levels))[0])


def _mixed(weights: FloatArray, levels: list[FloatArray]) -> FloatArray:
    parts = [weight * level for weight, level in zip(weights, levels, strict=True)]
    found: FloatArray = sum(parts[1:], parts[0])
    return found
