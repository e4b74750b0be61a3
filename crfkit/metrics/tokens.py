"""Token metrics: scikit-learn's classification metrics over all tokens of all sequences.

Names and signatures are those of sklearn-crfsuite; labels may be any hashable objects. Tokens whose
true label is `UNLABELED` are left out; where it is one of a set, the predicted label is right if it
is in the set, else the first of the set, in sorted order, counts as the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from sklearn import metrics

from crfkit.labels.sequences import (
    Sequences,
    Weights,
    encode_labels,
    flatten_pair,
    sequence_index,
    shown_names,
    token_weights,
)

#: scikit-learn's defaults, spelled out because a positive label must be translated.
_BINARY: dict[str, Any] = {"average": "binary", "pos_label": 1}


def flat_accuracy_score(
    y_true: Sequences,
    y_pred: Sequences,
    *,
    normalize: bool = True,
    sample_weight: Weights | None = None,
) -> float:
    """Compute the share of tokens with the right label.

    Parameters
    ----------
    y_true, y_pred : list of sequences of labels
        True and predicted labels, any hashable objects; arrays of any kind are lists of sequences
        too.
    normalize : bool, default=True
        Whether to return the share rather than the number (or weight) of right tokens.
    sample_weight : array-like of shape (S,), list of S arrays or array-like of shape (N,), optional
        Weights per sequence or per token.

    Raises
    ------
    ValueError
        If the sequences differ in number or in length, or there are no tokens.
    TypeError
        If a string stands where a sequence of labels is expected.

    Examples
    --------
    >>> from crfkit.metrics import flat_accuracy_score
    >>> flat_accuracy_score([["N", "V"], ["N", "N"]], [["N", "V"], ["V", "N"]])
    0.75
    """
    kwargs = {"normalize": normalize, "sample_weight": sample_weight}
    return float(_score_flat(metrics.accuracy_score, y_true, y_pred, kwargs))


def flat_precision_score(y_true: Sequences, y_pred: Sequences, **kwargs: Any) -> Any:
    """Compute the precision of tokens, one number or, with ``average=None``, one a label.

    Parameters
    ----------
    y_true, y_pred : list of sequences of labels
        True and predicted labels.
    **kwargs
        ``labels``, ``pos_label``, ``average``, ``zero_division`` as in
        :func:`sklearn.metrics.precision_score`; ``sample_weight`` as in
        :func:`flat_accuracy_score`.

    Examples
    --------
    >>> from crfkit.metrics import flat_precision_score
    >>> flat_precision_score([["N", "V"]], [["N", "N"]], average=None, zero_division=0)
    array([0.5, 0. ])
    """
    return _score_flat(metrics.precision_score, y_true, y_pred, _BINARY | kwargs)


def flat_recall_score(y_true: Sequences, y_pred: Sequences, **kwargs: Any) -> Any:
    """Compute the recall of tokens, with the parameters of :func:`flat_precision_score`."""
    return _score_flat(metrics.recall_score, y_true, y_pred, _BINARY | kwargs)


def flat_f1_score(y_true: Sequences, y_pred: Sequences, **kwargs: Any) -> Any:
    """Compute the F1 score of tokens, with the parameters of :func:`flat_precision_score`.

    Examples
    --------
    Leave out the frequent ``O`` by naming the other labels:

    >>> from crfkit.metrics import flat_f1_score
    >>> y_true, y_pred = [["B", "O", "O"]], [["O", "O", "O"]]
    >>> flat_f1_score(y_true, y_pred, average="micro", labels=["B"])
    0.0
    """
    return _score_flat(metrics.f1_score, y_true, y_pred, _BINARY | kwargs)


def flat_fbeta_score(y_true: Sequences, y_pred: Sequences, beta: float, **kwargs: Any) -> Any:
    """Compute the F-beta score of tokens, with the parameters of :func:`flat_precision_score`.

    `beta` is the weight of recall against precision.
    """
    return _score_flat(metrics.fbeta_score, y_true, y_pred, {"beta": beta, **_BINARY, **kwargs})


def flat_classification_report(
    y_true: Sequences, y_pred: Sequences, labels: Sequence[Hashable] | None = None, **kwargs: Any
) -> Any:
    """Build a report of precision, recall, F1 and support per label, as text or dict.

    `labels` to report are in this order, by default all, sorted; ``target_names``, ``digits``,
    ``output_dict`` and ``zero_division`` as in :func:`sklearn.metrics.classification_report`, the
    rest as in :func:`flat_precision_score`.
    """
    kwargs = {"labels": labels, **kwargs}
    return _score_flat(metrics.classification_report, y_true, y_pred, kwargs)


def sequence_accuracy_score(
    y_true: Sequences, y_pred: Sequences, *, sample_weight: Weights | None = None
) -> float:
    """Compute the share of sequences whose labels are all right, 0 if there are no sequences.

    An empty sequence is right; of `UNLABELED` tokens nothing is asked, and sequences of these alone
    are left out. `sample_weight`, shape (S,), has weights of sequences.

    Examples
    --------
    >>> from crfkit.metrics import sequence_accuracy_score
    >>> sequence_accuracy_score([["N", "V"], ["N"]], [["N", "N"], ["N"]])
    0.5
    """
    true, pred = flatten_pair(y_true, y_pred)
    known, lengths = true.known, true.lengths
    true, pred = true.take(known), pred.take(known)
    _, (true_codes, pred_codes) = encode_labels(true, pred)
    wrong = sequence_index(true.lengths)[true_codes != pred_codes]
    right = np.bincount(wrong, minlength=len(lengths)) == 0
    judged = (true.lengths > 0) | (lengths == 0)
    weights = None if sample_weight is None else np.asarray(sample_weight)[judged]
    return float(np.average(right[judged], weights=weights)) if judged.any() else 0.0


def _score_flat(
    metric: Callable[..., Any], y_true: Sequences, y_pred: Sequences, kwargs: dict[str, Any]
) -> Any:
    """Call a scikit-learn metric on numbers of labels, as it takes no tuples and mixed types."""
    true, pred = flatten_pair(y_true, y_pred)
    kwargs, known = dict(kwargs), true.known
    if kwargs.get("sample_weight") is not None:
        kwargs["sample_weight"] = token_weights(kwargs["sample_weight"], true.lengths)[known]
    true, pred = true.take(known), pred.take(known)
    labels = kwargs.get("labels")
    vocabulary, (true_codes, pred_codes) = encode_labels(
        true, pred, extra=() if labels is None else labels
    )
    if labels is not None:
        kwargs["labels"] = [vocabulary.index(label) for label in labels]
    if kwargs.get("average") == "binary":
        kwargs["pos_label"] = _positive_code(kwargs["pos_label"], vocabulary)
    if metric is metrics.classification_report and kwargs.get("target_names") is None:
        shown = np.union1d(true_codes, pred_codes) if labels is None else kwargs["labels"]
        kwargs["target_names"] = shown_names(vocabulary[code] for code in shown)
    return metric(true_codes, pred_codes, **kwargs)


def _positive_code(label: Hashable, vocabulary: list[Any]) -> int:
    if label in vocabulary:
        return vocabulary.index(label)
    # With more than two labels scikit-learn's own error, on the average, is the better one.
    if len(vocabulary) == 2:
        raise ValueError(f"pos_label={label!r} is not a valid label; it is one of {vocabulary}")
    return len(vocabulary)
