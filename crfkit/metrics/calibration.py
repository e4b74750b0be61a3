"""How far confidence can be trusted: log loss, Brier score, calibration, risk and coverage.

A confidence is the probability that a prediction is right: of a token, a span or a sequence. Here
it stands beside whether it was: ``(confidence, correct)``, arrays of shape (n,) or lists of arrays,
one for each sequence, as `confidence` of an estimator returns them. All are NaN where there are no
predictions.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn import metrics

from crfkit._params import check_option, check_whole
from crfkit._types import BoolArray, FloatArray, IntArray
from crfkit.data.labels import LabelStream, by_sequence, check_lengths
from crfkit.data.soft import most_probable
from crfkit.labels.sequences import token_weights

STRATEGIES = ("uniform", "quantile")
NORMS = ("l1", "l2", "max")
# Probabilities count as at least this, as in scikit-learn's log loss: what has none is not lost.
LEAST = float(np.finfo(np.float64).eps)
# Probabilities may miss 0 and 1 by so much, by rounding.
ROUNDING = 1e-6


class ReliabilityCurve(NamedTuple):
    """Predictions by their confidence, in bins that have any."""

    confidence: FloatArray  # (B,) the mean confidence of each bin
    accuracy: FloatArray  # (B,) the share of its predictions that are right
    weight: FloatArray  # (B,) their number, or weight


class RiskCoverageCurve(NamedTuple):
    """How often those predictions are wrong whose confidence is at least a threshold."""

    coverage: FloatArray  # (n,) the share of predictions that are kept, rising to 1
    risk: FloatArray  # (n,) the share of these that are wrong
    threshold: FloatArray  # (n,) the least confidence of these, falling


class _Read(NamedTuple):
    """Confidences, whether the predictions are right, and weights above 0, all (n,)."""

    confidence: FloatArray
    correct: FloatArray
    weight: FloatArray


class _Ranked(NamedTuple):
    """Each different confidence, (n,), and all predictions, (m,), the most confident first."""

    confidence: FloatArray  # (n,)
    weight: FloatArray  # (n,) of the predictions of this confidence
    errors: FloatArray  # (n,) of those that are wrong
    which: IntArray  # (m,) the place of the confidence of each prediction
    weights: FloatArray  # (m,)


def brier_score(confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
    """Compute the mean squared difference of confidence and correctness (Brier 1950).

    Parameters
    ----------
    confidence, correct : arrays of shape (n,), or lists of such arrays
        The probability that a prediction is right, and whether it is.
    sample_weight : the same, optional
        Weights of predictions.

    Returns
    -------
    float
        From 0 (certain, and right) to 1.

    Examples
    --------
    >>> from crfkit.metrics import brier_score
    >>> brier_score([0.9, 0.6], [True, False])
    0.185
    """
    read = _read(confidence, correct, sample_weight)
    if not len(read.weight):
        return float("nan")
    return float(np.average((read.confidence - read.correct) ** 2, weights=read.weight))


def log_loss(confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
    """Compute the mean negative logarithm of the probability of what came true, in nats.

    Parameters are those of :func:`brier_score`; probabilities are cut at the smallest number that
    changes 1, as in :func:`sklearn.metrics.log_loss`.

    Examples
    --------
    >>> from crfkit.metrics import log_loss
    >>> round(log_loss([0.9, 0.6], [True, False]), 4)
    0.5108
    """
    read = _read(confidence, correct, sample_weight)
    if not len(read.weight):
        return float("nan")
    pairs = np.column_stack([1.0 - read.confidence, read.confidence])
    found = metrics.log_loss(read.correct, pairs, labels=[0, 1], sample_weight=read.weight)
    return float(found)


def reliability_curve(
    confidence: Any,
    correct: Any,
    *,
    n_bins: int = 10,
    strategy: str = "uniform",
    sample_weight: Any = None,
) -> ReliabilityCurve:
    """Compute how often predictions are right, by their confidence: a reliability diagram.

    Of a calibrated model, both are the same in each bin.

    Parameters
    ----------
    confidence, correct, sample_weight
        As for :func:`brier_score`.
    n_bins : int, default=10
        The number of bins; those without predictions are left out.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, from 0 to 1, or of equal weight, as far as equal confidences, which
        stay together, allow. A confidence at an edge belongs to the lower bin.

    Returns
    -------
    ReliabilityCurve
        Mean confidence, share of right predictions and weight of each bin, by rising confidence.

    Examples
    --------
    >>> from crfkit.metrics import reliability_curve
    >>> curve = reliability_curve([0.9, 0.8, 0.3], [True, False, False], n_bins=2)
    >>> curve.confidence.round(2).tolist(), curve.accuracy.tolist(), curve.weight.tolist()
    ([0.3, 0.85], [0.0, 0.5], [1.0, 2.0])
    """
    check_whole("n_bins", n_bins, 1)
    check_option("strategy", strategy, STRATEGIES)
    read = _read(confidence, correct, sample_weight)
    if not len(read.weight):
        return ReliabilityCurve(*np.zeros((3, 0)))
    edges: FloatArray = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    if strategy == "quantile":
        edges = np.quantile(read.confidence, edges, weights=read.weight, method="inverted_cdf")
    which = np.searchsorted(edges, read.confidence)
    weight = np.bincount(which, read.weight, n_bins).astype(np.float64)
    sums = [np.bincount(which, read.weight * part, n_bins) for part in read[:2]]
    filled = weight > 0.0
    mean, accuracy = (part[filled] / weight[filled] for part in sums)
    return ReliabilityCurve(mean, accuracy, weight[filled])


def expected_calibration_error(
    confidence: Any,
    correct: Any,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    norm: str = "l1",
    sample_weight: Any = None,
) -> float:
    """Compute how far confidence is from the share of right predictions (Guo et al. 2017).

    Parameters
    ----------
    confidence, correct, n_bins, strategy, sample_weight
        As for :func:`reliability_curve`.
    norm : {"l1", "l2", "max"}, default="l1"
        How the differences of the bins are summed up: by their mean, weighted as the bins are (the
        expected calibration error), by the root of the mean square, or the largest one (the maximum
        calibration error).

    Returns
    -------
    float
        From 0 to 1. With few predictions in a bin it is above 0 by chance alone, also of a
        calibrated model, so that only values of the same bins and of as many predictions compare.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015), "Obtaining well calibrated probabilities using Bayesian
    binning"; Guo, Pleiss, Sun and Weinberger (2017), "On calibration of modern neural networks".

    Examples
    --------
    >>> from crfkit.metrics import expected_calibration_error
    >>> round(expected_calibration_error([0.9, 0.9, 0.4], [True, True, False]), 4)
    0.2
    """
    check_option("norm", norm, NORMS)
    curve = reliability_curve(
        confidence, correct, n_bins=n_bins, strategy=strategy, sample_weight=sample_weight
    )
    if not len(curve.weight):
        return float("nan")
    gaps = np.abs(curve.accuracy - curve.confidence)
    if norm == "max":
        return float(gaps.max())
    if norm == "l2":
        return float(np.sqrt(np.average(gaps**2, weights=curve.weight)))
    return float(np.average(gaps, weights=curve.weight))


def risk_coverage_curve(
    confidence: Any, correct: Any, *, sample_weight: Any = None
) -> RiskCoverageCurve:
    """Compute the share of errors among the predictions of most confidence.

    What is left to errors if the others are not trusted (Geifman and El-Yaniv 2017). The confidence
    may be any number that is larger for what is rather right.

    Parameters
    ----------
    confidence, correct, sample_weight
        As for :func:`brier_score`.

    Returns
    -------
    RiskCoverageCurve
        One point for each different confidence.

    References
    ----------
    Geifman and El-Yaniv (2017), "Selective classification for deep neural networks".

    Examples
    --------
    >>> from crfkit.metrics import risk_coverage_curve
    >>> curve = risk_coverage_curve([0.9, 0.8, 0.8, 0.3], [True, True, False, False])
    >>> curve.coverage.tolist(), curve.risk.round(2).tolist(), curve.threshold.tolist()
    ([0.25, 0.75, 1.0], [0.0, 0.33, 0.5], [0.9, 0.8, 0.3])
    """
    found = _by_confidence(confidence, correct, sample_weight)
    kept = np.cumsum(found.weight)
    risk = np.cumsum(found.errors) / kept
    return RiskCoverageCurve(kept / found.weight.sum(), risk, found.confidence)


def risk_coverage_area(confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
    """Compute the area under the curve of risk and coverage: the mean risk over all coverages.

    The better confidence tells right predictions from wrong ones, the smaller it is, at an equal
    number of errors. Errors among equal confidences are spread evenly over these.

    Parameters are those of :func:`risk_coverage_curve`.

    Examples
    --------
    >>> from crfkit.metrics import risk_coverage_area
    >>> risk_coverage_area([0.9, 0.8, 0.3, 0.2], [True, True, True, False])
    0.0625
    """
    found = _by_confidence(confidence, correct, sample_weight)
    if not len(found.weight):
        return float("nan")
    spread = np.cumsum(found.weights * (found.errors / found.weight)[found.which])
    return float(np.average(spread / np.cumsum(found.weights), weights=found.weights))


def confidence_average_precision(
    confidence: Any, correct: Any, *, sample_weight: Any = None
) -> float:
    """Compute the average precision of a list of predictions by falling confidence.

    The mean, over all right predictions, of the share of right ones among those of at least that
    confidence: 1 where each right prediction comes before all wrong ones (Culotta and McCallum
    2004). That of confidences that say nothing is about the share of right predictions.

    Parameters are those of :func:`risk_coverage_curve`; 0 where no prediction is right.

    References
    ----------
    Culotta and McCallum (2004), "Confidence estimation for information extraction".

    Examples
    --------
    >>> from crfkit.metrics import confidence_average_precision
    >>> round(confidence_average_precision([0.9, 0.8, 0.3], [True, False, True]), 4)
    0.8333
    """
    read = _read(confidence, correct, sample_weight, proba=False)
    if not len(read.weight):
        return float("nan")
    if not read.correct.any():
        return 0.0
    score = metrics.average_precision_score
    return float(score(read.correct, read.confidence, sample_weight=read.weight))


def token_log_loss(
    y_true: Any, proba: Any, classes: Sequence[Hashable], *, sample_weight: Any = None
) -> float:
    """Compute the mean negative logarithm of the probability of the true label of a token, in nats.

    Parameters
    ----------
    y_true : list of S sequences of labels
        True labels. Those that are `UNLABELED` are left out; of a set of labels the probability is
        that of all of them.
    proba : list of S arrays of shape (T, K), or array of shape (N, K)
        Probabilities of labels, as `predict_proba` returns them.
    classes : sequence of K labels
        The labels of the columns. Any other one has the probability 0, which counts as the smallest
        number that changes 1, as in :func:`sklearn.metrics.log_loss`.
    sample_weight : array of shape (S,), list of S arrays, or array of shape (N,), optional
        Weights of sequences or of tokens.

    Examples
    --------
    >>> from crfkit.metrics import token_log_loss
    >>> round(token_log_loss([["A", "B"]], [[[0.9, 0.1], [0.5, 0.5]]], ["A", "B"]), 4)
    0.3993
    """
    table, allowed, weight = _tokens(y_true, proba, classes, sample_weight)
    if not weight.any():
        return float("nan")
    true = np.clip((table * allowed).sum(axis=1), LEAST, 1.0)
    return float(np.average(-np.log(true), weights=weight))


def token_brier_score(
    y_true: Any, proba: Any, classes: Sequence[Hashable], *, sample_weight: Any = None
) -> float:
    """Compute the Brier score of the labels of tokens: the mean of their squared errors.

    For each token the sum over all labels of the squared difference of the probability from 1 (the
    true label) or 0 (Brier 1950): from 0 to 2. Parameters are those of :func:`token_log_loss`; of a
    set of labels the most probable one counts as the true one.

    Examples
    --------
    >>> from crfkit.metrics import token_brier_score
    >>> round(token_brier_score([["A", "B"]], [[[0.9, 0.1], [0.5, 0.5]]], ["A", "B"]), 4)
    0.26
    """
    table, allowed, weight = _tokens(y_true, proba, classes, sample_weight)
    if not weight.any():
        return float("nan")
    true = np.where(allowed, table, -1.0).max(axis=1, initial=-1.0)
    other = np.where(true < 0.0, 1.0, 1.0 - 2.0 * true)  # a label that is none of the columns
    return float(np.average((table**2).sum(axis=1) + other, weights=weight))


def sequence_log_loss(log_proba: Any, *, lengths: Any = None, sample_weight: Any = None) -> float:
    """Compute the mean negative log-probability of the true labels of whole sequences, in nats.

    Parameters
    ----------
    log_proba : array of shape (S,)
        As `sequence_log_proba` returns them for the true labels.
    lengths : array of shape (S,), optional
        Numbers of tokens. With them, a sequence counts as at least as probable as if each of its
        tokens had the least probability that :func:`token_log_loss` counts, so that the loss is
        finite; else it is infinite where the model excludes the true labels of one.
    sample_weight : array of shape (S,), optional
        Weights of sequences.

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit.metrics import sequence_log_loss
    >>> round(sequence_log_loss(np.log([0.5, 0.25])), 4)
    1.0397
    """
    found = np.asarray(log_proba, np.float64)
    if lengths is not None:
        found = np.maximum(found, np.log(LEAST) * np.asarray(lengths))
    weight = np.ones(len(found)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if weight.shape != found.shape:
        raise ValueError(
            f"sample_weight has the shape {weight.shape}, log_proba the shape {found.shape}: give "
            "one weight for each sequence."
        )
    counted = weight > 0.0
    if not counted.any():
        return float("nan")
    return float(np.average(-found[counted], weights=weight[counted]))


def _read(confidence: Any, correct: Any, sample_weight: Any, *, proba: bool = True) -> _Read:
    """Return flat arrays, without what has no weight; ValueError if they do not fit together."""
    found, right = _flat(confidence, "confidence"), _flat(correct, "correct")
    weight = np.ones(len(found)) if sample_weight is None else _flat(sample_weight, "sample_weight")
    for name, part in (("correct", right), ("sample_weight", weight)):
        if len(part) != len(found):
            raise ValueError(f"{name} has {len(part)} values, confidence has {len(found)}.")
    if not np.isin(right, (0.0, 1.0)).all():
        raise ValueError("correct has other values than True and False.")
    if not (np.isfinite(weight).all() and np.all(weight >= 0.0)):
        raise ValueError("sample_weight has values that are negative or not finite.")
    least, most = (-ROUNDING, 1.0 + ROUNDING) if proba else (-np.inf, np.inf)
    bad = np.flatnonzero(~((found >= least) & (found <= most)))
    if len(bad):
        raise ValueError(
            f"confidence {found[bad[0]]} (number {bad[0]}) is "
            + ("no probability: they lie between 0 and 1." if proba else "not a number.")
        )
    counted = weight > 0.0
    if proba:
        found = np.clip(found, 0.0, 1.0)
    return _Read(found[counted], right[counted], weight[counted])


def _flat(values: Any, name: str) -> FloatArray:
    """Return numbers that may be listed by sequence as one array."""
    rows = values if isinstance(values, np.ndarray) and values.dtype != object else list(values)
    if any(np.ndim(row) for row in rows):
        rows = np.concatenate([np.asarray(row, np.float64) for row in rows])
    found = np.asarray(rows, np.float64)
    if found.ndim != 1:
        raise ValueError(f"{name} has the shape {found.shape}; it must be flat, or list flat ones.")
    return found


def _by_confidence(confidence: Any, correct: Any, sample_weight: Any) -> _Ranked:
    """Return predictions by falling confidence."""
    read = _read(confidence, correct, sample_weight, proba=False)
    values, which = np.unique(-read.confidence, return_inverse=True)
    order = np.argsort(which, kind="stable")
    weight, errors = np.zeros((2, len(values)))
    np.add.at(weight, which, read.weight)
    np.add.at(errors, which, read.weight * (1.0 - read.correct))
    return _Ranked(-values, weight, errors, which[order].astype(np.int64), read.weight[order])


def _tokens(
    y_true: Any, proba: Any, classes: Sequence[Hashable], sample_weight: Any
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Return the probabilities of tokens and which labels they may have, (N, K), and weights.

    Tokens that are `UNLABELED` have the weight 0.
    """
    lengths: IntArray
    if isinstance(proba, np.ndarray) and proba.ndim == 2 and proba.dtype != object:
        stream, table = LabelStream(most_probable(y_true), partial=True), proba
        lengths = np.diff(stream.offsets)
        if len(table) != lengths.sum():
            raise ValueError(f"y_true has {lengths.sum()} tokens, proba has {len(table)} rows.")
    else:
        rows = [np.asarray(each, np.float64).reshape(-1, len(classes)) for each in proba]
        table = np.concatenate([np.zeros((0, len(classes))), *rows])
        lengths = np.array([len(each) for each in rows], np.int64)
        offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
        stream = LabelStream(by_sequence(most_probable(y_true), offsets), partial=True)
        check_lengths(offsets, stream.offsets, "y_true")
    if table.shape[1] != len(classes):
        raise ValueError(f"proba has {table.shape[1]} columns for {len(classes)} classes.")
    allowed = stream.allowed_for(classes)
    if allowed is None:
        allowed = stream.codes_for(classes)[:, None] == np.arange(len(classes))
    weight = np.ones(len(table))
    if sample_weight is not None:
        weight = token_weights(sample_weight, lengths.astype(np.intp))
    return table, allowed, np.where(stream.unlabeled, 0.0, weight)
