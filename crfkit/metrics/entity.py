"""Precision, recall and F1 over whole entities (chunks), and reports of them.

An entity is correct if its type, its first and its last token are. Two readings of tags are at
hand: that of the conlleval script, which gives illegal sequences their nearest meaning, and the
strict one, which drops chunks that the scheme does not allow.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import UndefinedMetricWarning

from ._sequences import BoolArray, FlatLabels, FloatArray, IntArray, Sequences, flatten_pair
from .schemes import CONLL, Scheme, get_scheme
from .spans import SpanArrays, TagStream, find_spans, first_legal_scheme, read_streams

AVERAGES = ("micro", "macro", "weighted")

_Scores = tuple[FloatArray, FloatArray, FloatArray]


class EntityCounts(NamedTuple):
    """Numbers of entities per type, for the types that are in the truth or the prediction."""

    names: list[str]
    true: IntArray
    predicted: IntArray
    correct: IntArray

    def select(self, labels: Iterable[str]) -> EntityCounts:
        """Return the counts of given types in the given order; unknown types count zero."""
        names = list(labels)
        index = {name: i for i, name in enumerate(self.names)}
        rows = [index.get(name, len(self.names)) for name in names]
        return EntityCounts(names, *(np.append(column, 0)[rows] for column in self[1:]))

    def total(self) -> EntityCounts:
        """Return the counts of all types together, as one type."""
        return EntityCounts(["all"], *(column.sum(keepdims=True) for column in self[1:]))


def entity_precision_recall_fscore_support(
    y_true: Sequences,
    y_pred: Sequences,
    *,
    beta: float = 1.0,
    labels: Sequence[str] | None = None,
    average: str | None = None,
    mode: str = "conlleval",
    scheme: str | None = None,
    suffix: bool = False,
    delimiter: str = "-",
    zero_division: float | str = 0,
) -> tuple[Any, Any, Any, Any]:
    """Compute precision, recall, F-score and support of entities.

    Parameters
    ----------
    y_true, y_pred : list of sequences of str
        True and predicted tags, such as ``[["B-PER", "I-PER", "O"], ...]``.
    beta : float, default=1.0
        Weight of recall against precision in the F-score; ``inf`` gives recall.
    labels : sequence of str, optional
        Types to score, in this order; by default those in truth or prediction, sorted.
    average : {None, "micro", "macro", "weighted"}, default=None
        ``None`` returns one value per type; ``"micro"`` counts over all types; ``"macro"`` is the
        mean over types; ``"weighted"`` the mean weighted by support.
    mode : {"conlleval", "strict"}, default="conlleval"
        How tags are read: by the rules of the conlleval script, or by those of a scheme.
    scheme : str, optional
        The scheme of strict mode. By default the first in which ``y_true`` is legal.
    suffix, delimiter
        As in :func:`spans_from_tags`.
    zero_division : {0, 1, "warn"}, default=0
        The precision of a type never predicted, and the recall of a type not in the truth.

    Returns
    -------
    precision, recall, fscore : float or ndarray of shape (n_types,)
    support : int or ndarray of shape (n_types,), number of entities in the truth

    Raises
    ------
    ValueError
        If the sequences differ in number or length, or a tag is not one of the scheme's.

    References
    ----------
    Tjong Kim Sang and Buchholz (2000), "Introduction to the CoNLL-2000 shared task: chunking".

    Examples
    --------
    >>> from crfkit.metrics import entity_precision_recall_fscore_support
    >>> y_true, y_pred = [["B-PER", "O", "B-LOC"]], [["B-PER", "O", "B-PER"]]
    >>> entity_precision_recall_fscore_support(y_true, y_pred, average="micro")
    (0.5, 0.5, 0.5, 2)
    """
    _check_parameters(beta, average, zero_division)
    counts = _count(y_true, y_pred, mode, scheme, suffix, delimiter)
    counts = counts if labels is None else counts.select(labels)
    return _summarize(counts, average, beta, zero_division)


def entity_precision_score(
    y_true: Sequences, y_pred: Sequences, *, average: str | None = "micro", **kwargs: Any
) -> Any:
    """Compute the share of predicted entities that are in the truth.

    Parameters
    ----------
    y_true, y_pred : list of sequences of str
        True and predicted tags.
    average : {"micro", "macro", "weighted", None}, default="micro"
        See :func:`entity_precision_recall_fscore_support`.
    **kwargs
        ``mode``, ``scheme``, ``labels``, ``suffix``, ``delimiter`` and ``zero_division`` as there.

    Returns
    -------
    float or ndarray of shape (n_types,)

    Examples
    --------
    >>> from crfkit.metrics import entity_precision_score
    >>> entity_precision_score([["B-PER", "O", "O"]], [["B-PER", "O", "B-LOC"]])
    0.5
    """
    return entity_precision_recall_fscore_support(y_true, y_pred, average=average, **kwargs)[0]


def entity_recall_score(
    y_true: Sequences, y_pred: Sequences, *, average: str | None = "micro", **kwargs: Any
) -> Any:
    """Compute the share of true entities that are predicted.

    Parameters
    ----------
    y_true, y_pred : list of sequences of str
        True and predicted tags.
    average : {"micro", "macro", "weighted", None}, default="micro"
        See :func:`entity_precision_recall_fscore_support`.
    **kwargs
        ``mode``, ``scheme``, ``labels``, ``suffix``, ``delimiter`` and ``zero_division`` as there.

    Returns
    -------
    float or ndarray of shape (n_types,)

    Examples
    --------
    >>> from crfkit.metrics import entity_recall_score
    >>> entity_recall_score([["B-PER", "O", "B-LOC"]], [["B-PER", "O", "O"]])
    0.5
    """
    return entity_precision_recall_fscore_support(y_true, y_pred, average=average, **kwargs)[1]


def entity_f1_score(
    y_true: Sequences, y_pred: Sequences, *, average: str | None = "micro", **kwargs: Any
) -> Any:
    """Compute the harmonic mean of entity precision and recall.

    With the defaults this is the FB1 of the conlleval script, divided by 100.

    Parameters
    ----------
    y_true, y_pred : list of sequences of str
        True and predicted tags.
    average : {"micro", "macro", "weighted", None}, default="micro"
        See :func:`entity_precision_recall_fscore_support`.
    **kwargs
        ``mode``, ``scheme``, ``labels``, ``suffix``, ``delimiter`` and ``zero_division`` as there.

    Returns
    -------
    float or ndarray of shape (n_types,)

    Examples
    --------
    >>> from crfkit.metrics import entity_f1_score
    >>> y_true, y_pred = [["B-PER", "I-PER", "O"]], [["I-PER", "I-PER", "O"]]
    >>> entity_f1_score(y_true, y_pred)
    1.0
    >>> entity_f1_score(y_true, y_pred, mode="strict", scheme="IOB2")
    0.0
    """
    return entity_precision_recall_fscore_support(y_true, y_pred, average=average, **kwargs)[2]


def entity_classification_report(
    y_true: Sequences,
    y_pred: Sequences,
    *,
    labels: Sequence[str] | None = None,
    mode: str = "conlleval",
    scheme: str | None = None,
    suffix: bool = False,
    delimiter: str = "-",
    digits: int = 2,
    output_dict: bool = False,
    zero_division: float | str = 0,
) -> str | dict[str, dict[str, float | int]]:
    """Build a report of precision, recall, F1 and support per entity type and averaged.

    Parameters
    ----------
    y_true, y_pred : list of sequences of str
        True and predicted tags.
    labels, mode, scheme, suffix, delimiter, zero_division
        See :func:`entity_precision_recall_fscore_support`.
    digits : int, default=2
        Decimals of the text.
    output_dict : bool, default=False
        Whether to return a dictionary rather than text.

    Returns
    -------
    str or dict
        The dictionary has one entry per type and ``"micro avg"``, ``"macro avg"`` and
        ``"weighted avg"``, each with ``"precision"``, ``"recall"``, ``"f1-score"``, ``"support"``.

    Examples
    --------
    >>> from crfkit.metrics import entity_classification_report
    >>> y_true, y_pred = [["B-PER", "O", "B-LOC"]], [["B-PER", "O", "B-PER"]]
    >>> print(entity_classification_report(y_true, y_pred))
                  precision    recall  f1-score   support
    <BLANKLINE>
             LOC       0.00      0.00      0.00         1
             PER       0.50      1.00      0.67         1
    <BLANKLINE>
       micro avg       0.50      0.50      0.50         2
       macro avg       0.25      0.50      0.33         2
    weighted avg       0.25      0.50      0.33         2
    <BLANKLINE>
    """
    _check_parameters(1.0, None, zero_division)
    counts = _count(y_true, y_pred, mode, scheme, suffix, delimiter)
    counts = counts if labels is None else counts.select(labels)
    columns = _summarize(counts, None, 1.0, zero_division)
    types = {name: _row(*values) for name, *values in zip(counts.names, *columns, strict=True)}
    averages = {
        f"{average} avg": _row(*_summarize(counts, average, 1.0, zero_division))
        for average in AVERAGES
    }
    return {**types, **averages} if output_dict else _format_report(types, averages, digits)


def conlleval_report(
    y_true: Sequences, y_pred: Sequences, *, suffix: bool = False, delimiter: str = "-"
) -> str:
    """Build the text that the conlleval script prints.

    Parameters
    ----------
    y_true, y_pred : list of sequences of str
        True and predicted tags.
    suffix : bool, default=False
        Whether tags are written ``PER-B`` rather than ``B-PER``.
    delimiter : str, default="-"
        What stands between letter and type.

    Returns
    -------
    str
        Percentages; the last number of a type's line is how often it was predicted.

    References
    ----------
    https://www.clips.uantwerpen.be/conll2000/chunking/output.html describes the output.

    Examples
    --------
    >>> from crfkit.metrics import conlleval_report
    >>> print(conlleval_report([["B-PER", "O", "B-LOC"]], [["B-PER", "O", "B-PER"]]))
    processed 3 tokens with 2 phrases; found: 2 phrases; correct: 1.
    accuracy:  66.67%; precision:  50.00%; recall:  50.00%; FB1:  50.00
                  LOC: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
                  PER: precision:  50.00%; recall: 100.00%; FB1:  66.67  2
    """
    true, pred = flatten_pair(y_true, y_pred)
    counts = _count_spans(*read_streams([true, pred], CONLL, suffix=suffix, delimiter=delimiter))
    agree = np.array([a == b for a, b in zip(true.labels, pred.labels, strict=True)], dtype=bool)
    accuracy = 100 * agree.sum() / max(len(agree), 1)
    totals, lines = _percentages(counts.total())[0], _percentages(counts)
    return "\n".join(
        [
            f"processed {len(agree)} tokens with {counts.true.sum()} phrases; "
            f"found: {counts.predicted.sum()} phrases; correct: {counts.correct.sum()}.",
            f"accuracy: {accuracy:6.2f}%; {totals}",
            *(
                f"{name:>17s}: {line}  {found}"
                for name, line, found in zip(counts.names, lines, counts.predicted, strict=True)
            ),
        ]
    )


def _count(
    y_true: Sequences,
    y_pred: Sequences,
    mode: str,
    scheme: str | None,
    suffix: bool,
    delimiter: str,
) -> EntityCounts:
    true, pred = flatten_pair(y_true, y_pred)
    rules = _rules(true, mode, scheme, suffix, delimiter)
    return _count_spans(
        *read_streams([true, pred], rules, suffix=suffix, delimiter=delimiter), rules
    )


def _rules(true: FlatLabels, mode: str, scheme: str | None, suffix: bool, delimiter: str) -> Scheme:
    if mode == "strict" and scheme is None:
        return first_legal_scheme(true, suffix=suffix, delimiter=delimiter)
    if mode == "strict" and scheme is not None:
        return get_scheme(scheme)
    if mode != "conlleval":
        raise ValueError(f"mode is 'conlleval' or 'strict', not {mode!r}")
    if scheme is not None:
        raise ValueError(f"scheme={scheme!r} only acts with mode='strict'")
    return CONLL


def _count_spans(
    streams: Sequence[TagStream], names: list[str], rules: Scheme = CONLL
) -> EntityCounts:
    true, pred = (find_spans(stream, rules) for stream in streams)
    hits = true.types[_in_both(true, pred, len(streams[0].roles))]
    columns = [np.bincount(types, minlength=len(names)) for types in (true.types, pred.types, hits)]
    # A type that only stands in broken chunks has no entity on either side: it is not a type.
    present = np.flatnonzero(columns[0] + columns[1])
    return EntityCounts([names[i] for i in present], *(column[present] for column in columns))


def _in_both(true: SpanArrays, pred: SpanArrays, n_positions: int) -> BoolArray:
    """Mark the true spans that are predicted; spans of one side never share a start."""
    predicted_at = np.full(n_positions, -1, dtype=np.intp)
    predicted_at[pred.starts] = np.arange(len(pred.starts))
    match = predicted_at[true.starts]
    found = match >= 0
    found[found] = (pred.stops[match[found]] == true.stops[found]) & (
        pred.types[match[found]] == true.types[found]
    )
    return found


def _summarize(
    counts: EntityCounts, average: str | None, beta: float, zero_division: float | str
) -> tuple[Any, Any, Any, Any]:
    if average is None:
        return *_scores(counts, beta, zero_division), counts.true
    summed = counts.total() if average == "micro" else counts
    weights = counts.true if average == "weighted" else np.ones(len(summed.names))
    support = int(counts.true.sum())
    if not weights.any():
        return *_without_weight(counts, zero_division), support
    precision, recall, fscore = (
        float(np.average(score, weights=weights)) for score in _scores(summed, beta, zero_division)
    )
    return precision, recall, fscore, support


def _scores(counts: EntityCounts, beta: float, zero_division: float | str) -> _Scores:
    precision = _divide(counts.correct, counts.predicted, "Precision", zero_division)
    recall = _divide(counts.correct, counts.true, "Recall", zero_division)
    if np.isposinf(beta):
        return precision, recall, recall
    weighted = beta**2 * precision + recall
    # Both are zero together only where there is nothing to divide: the F-score is zero there.
    weighted[weighted == 0] = 1
    return precision, recall, (1 + beta**2) * precision * recall / weighted


def _divide(
    correct: IntArray, total: IntArray, name: str, zero_division: float | str
) -> FloatArray:
    undefined = total == 0
    if zero_division == "warn" and undefined.any():
        message = f"{name} is 0/0 for some entity type and set to 0; see zero_division"
        warnings.warn(message, UndefinedMetricWarning, stacklevel=5)
    ratio: FloatArray = correct / np.where(undefined, 1, total)
    ratio[undefined] = _zero_division_value(zero_division)
    return ratio


def _without_weight(counts: EntityCounts, zero_division: float | str) -> tuple[float, float, float]:
    """Return the averages where no type has weight; wrong predictions still have precision 0."""
    value = _zero_division_value(zero_division)
    precision = value if counts.predicted.sum() == 0 else 0.0
    return precision, value, precision


def _zero_division_value(zero_division: float | str) -> float:
    return 0.0 if zero_division == "warn" else float(zero_division)


def _check_parameters(beta: float, average: str | None, zero_division: float | str) -> None:
    if not beta >= 0:
        raise ValueError(f"beta is at least 0, not {beta!r}")
    if average is not None and average not in AVERAGES:
        raise ValueError(f"average is None or one of {AVERAGES}, not {average!r}")
    if zero_division not in (0, 1, "warn"):
        raise ValueError(f"zero_division is 0, 1 or 'warn', not {zero_division!r}")


def _row(precision: float, recall: float, fscore: float, support: int) -> dict[str, float | int]:
    return {
        "precision": float(precision),
        "recall": float(recall),
        "f1-score": float(fscore),
        "support": int(support),
    }


def _format_report(
    types: dict[str, dict[str, float | int]],
    averages: dict[str, dict[str, float | int]],
    digits: int,
) -> str:
    width = max(map(len, [*types, *averages]))
    header = f"{'':>{width}s} " + "".join(f" {name:>9s}" for name in _row(0, 0, 0, 0))
    blocks = ["\n".join(_format_row(*item, width, digits) for item in types.items())]
    blocks += ["\n".join(_format_row(*item, width, digits) for item in averages.items())]
    return "\n\n".join([header, *filter(None, blocks)]) + "\n"


def _format_row(name: str, row: dict[str, float | int], width: int, digits: int) -> str:
    *scores, support = row.values()
    return f"{name:>{width}s} " + "".join(f" {x:>9.{digits}f}" for x in scores) + f" {support:>9d}"


def _percentages(counts: EntityCounts) -> list[str]:
    percent: npt.NDArray[np.float64] = 100 * np.array(_scores(counts, 1.0, 0)).T
    return [f"precision: {p:6.2f}%; recall: {r:6.2f}%; FB1: {f:6.2f}" for p, r, f in percent]
