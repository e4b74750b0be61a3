"""Precision, recall and F1 over entities, whose type, first and last token have to be right.

Tags are read as the conlleval script does, which gives illegal sequences their nearest meaning, or
strictly: chunks that the scheme does not allow are none. Where true tags are `UNLABELED`, only the
entities count whose ends the other tags tell, and predicted ones that overlap no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from crfkit.labels.known_spans import hide, read_known_spans
from crfkit.labels.schemes import OUTSIDE_LABEL, Scheme, get_scheme, is_tag
from crfkit.labels.sequences import FlatLabels, Sequences, encode_labels, flatten_pair
from crfkit.labels.spans import first_legal_scheme
from crfkit.metrics._counts import Counts, count, report, scores, summarize


class TagReading(TypedDict, total=False):
    """How tags are read; see :func:`entity_precision_recall_fscore_support`."""

    mode: str
    scheme: str | None
    suffix: bool
    delimiter: str


def entity_precision_recall_fscore_support(
    y_true: Sequences,
    y_pred: Sequences,
    *,
    beta: float = 1.0,
    labels: Sequence[str] | None = None,
    average: str | None = None,
    zero_division: float | str = 0,
    **reading: Unpack[TagReading],
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
    zero_division : {0, 1, "warn"}, default=0
        The precision of a type never predicted, and the recall of a type not in the truth.
    mode : {"conlleval", "strict"}, default="conlleval"
        How tags are read: by the rules of the conlleval script, or by those of a scheme.
    scheme : str, optional
        The scheme of strict mode. By default the first in which ``y_true`` is legal.
    suffix, delimiter
        As in :func:`spans_from_tags`.

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
    true, pred = flatten_pair(y_true, y_pred)
    counts = _count(true, pred, _rules(true, **reading)).select(labels)
    return summarize(counts, average, beta, zero_division)


def entity_precision_score(
    y_true: Sequences, y_pred: Sequences, *, average: str | None = "micro", **kwargs: Any
) -> Any:
    """Compute the precision of entities; see :func:`entity_precision_recall_fscore_support`."""
    return entity_precision_recall_fscore_support(y_true, y_pred, average=average, **kwargs)[0]


def entity_recall_score(
    y_true: Sequences, y_pred: Sequences, *, average: str | None = "micro", **kwargs: Any
) -> Any:
    """Compute the recall of entities; see :func:`entity_precision_recall_fscore_support`."""
    return entity_precision_recall_fscore_support(y_true, y_pred, average=average, **kwargs)[1]


def entity_f1_score(
    y_true: Sequences, y_pred: Sequences, *, average: str | None = "micro", **kwargs: Any
) -> Any:
    """Compute the harmonic mean of entity precision and recall.

    With the defaults this is the FB1 of the conlleval script, divided by 100.

    All but `average` is as for :func:`entity_precision_recall_fscore_support`.

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
    digits: int = 2,
    output_dict: bool = False,
    zero_division: float | str = 0,
    **reading: Unpack[TagReading],
) -> str | dict[str, dict[str, float | int]]:
    """Build a report of precision, recall, F1 and support per entity type and averaged.

    Parameters
    ----------
    y_true, y_pred, labels, mode, scheme, suffix, delimiter, zero_division
        As for :func:`entity_precision_recall_fscore_support`.
    digits : int, default=2
        Decimals of the text.
    output_dict : bool, default=False
        Whether to return a dict rather than text: for each type, ``"micro avg"``, ``"macro avg"``
        and ``"weighted avg"``, of ``"precision"``, ``"recall"``, ``"f1-score"`` and ``"support"``.

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
    true, pred = flatten_pair(y_true, y_pred)
    counts = _count(true, pred, _rules(true, **reading)).select(labels)
    return report(counts, digits=digits, output_dict=output_dict, zero_division=zero_division)


def conlleval_report(
    y_true: Sequences, y_pred: Sequences, *, suffix: bool = False, delimiter: str = "-"
) -> str:
    """Build the text that the conlleval script prints.

    Its percentages are explained on https://www.clips.uantwerpen.be/conll2000/chunking/output.html;
    the last number of a type's line is how often it was predicted. Parameters are as for
    :func:`entity_precision_recall_fscore_support`.

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
    counts = _count(true, pred, get_scheme("conll", suffix, delimiter))
    pairs = zip(true.labels, pred.labels, strict=True)
    agree = np.array([a == b for a, b in pairs], dtype=bool)[true.known]
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


def _rules(
    true: FlatLabels,
    mode: str = "conlleval",
    scheme: str | None = None,
    suffix: bool = False,
    delimiter: str = "-",
) -> Scheme:
    """Return the scheme by which tags are read."""
    if mode == "strict":
        if scheme is None:
            return first_legal_scheme(hide(true, true.known), suffix, delimiter)
        return get_scheme(scheme, suffix, delimiter)
    if mode != "conlleval":
        raise ValueError(f"mode is 'conlleval' or 'strict', not {mode!r}")
    if scheme is not None:
        raise ValueError(f"scheme={scheme!r} only acts with mode='strict'")
    return get_scheme("conll", suffix, delimiter)


def _count(true: FlatLabels, pred: FlatLabels, rules: Scheme) -> Counts:
    try:
        return count(*read_known_spans(true, pred, rules))
    except (TypeError, ValueError) as error:
        labels, _ = encode_labels(hide(true, true.known), pred)
        if "did you mean" in str(error) or not _are_mostly_none(labels, rules.delimiter):
            raise
        raise type(error)(
            f"{error}. Where labels are no tags, and runs of equal labels are segments, take "
            "segment_f1_score(..., scheme='runs') (as a scorer, 'segment_f1')."
        ) from None


def _are_mostly_none(labels: list[Any], delimiter: str) -> bool:
    """Whether most labels are tags of no scheme, whichever end the letter is at."""
    either = [get_scheme("conll", suffix, delimiter) for suffix in (False, True)]
    others = [label for label in labels if label != OUTSIDE_LABEL]
    none = [label for label in others if not any(is_tag(label, rules) for rules in either)]
    return 2 * len(none) > len(others)


def _percentages(counts: Counts) -> list[str]:
    percent: npt.NDArray[np.float64] = 100 * np.array(scores(counts, 1.0, 0)).T
    return [f"precision: {p:6.2f}%; recall: {r:6.2f}%; FB1: {f:6.2f}" for p, r, f in percent]
