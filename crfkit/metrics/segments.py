"""Precision, recall and F1 over segments: of lists of segments, of runs of labels, of tags.

A segment is right if its label, its first and its last token are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit._types import Segment
from crfkit.data.labels import UNLABELED
from crfkit.labels.fields import as_segment, holds_segments, segment_fields
from crfkit.labels.known_spans import read_known_runs, read_known_spans
from crfkit.labels.schemes import (
    OUTSIDE_LABEL,
    RUNS,
    UNTYPED,
    allowed_transitions,
    get_scheme,
    looks_like_tag,
)
from crfkit.labels.sequences import (
    FlatLabels,
    IntArray,
    as_lists,
    check_same_lengths,
    flatten,
    names_of,
    resolve,
)
from crfkit.labels.spans import FoundSpans, read_spans
from crfkit.metrics._counts import count, report, summarize

SegmentLists = Iterable[Iterable[Any]] | npt.NDArray[Any]


def segment_precision_recall_fscore_support(
    y_true: SegmentLists,
    y_pred: SegmentLists,
    *,
    beta: float = 1.0,
    labels: Sequence[Hashable] | None = None,
    average: str | None = None,
    scheme: str | None = None,
    zero_division: float | str = 0,
) -> tuple[Any, Any, Any, Any]:
    """Compute precision, recall, F-score and support of segments.

    Parameters
    ----------
    y_true, y_pred : iterable of S lists of segments, or of S sequences of labels
        True and predicted segments of each sequence: (start, stop, label) or :class:`Segment`, also
        with a probability, in any order; they may overlap. With `scheme`, each
        may also be labels or tags of all tokens.
    beta, labels, average, zero_division
        As for :func:`entity_precision_recall_fscore_support`, of labels in place of types.
    scheme : str, optional
        How labels of tokens are read: ``"runs"``, where a run of equal labels is a segment, or a
        scheme of tags, as in :func:`spans_from_tags`: ``"conll"`` reads any tags.

    Returns
    -------
    precision, recall, fscore : float or ndarray of shape (n_labels,)
    support : int or ndarray of shape (n_labels,), number of segments in the truth

    Raises
    ------
    ValueError, TypeError
        If the sequences differ in number or length, an item is no segment, one is listed twice, or
        a tag is not one of the scheme's.

    Notes
    -----
    Of true segments that are listed, those labeled :data:`crfkit.UNLABELED` are not counted, nor
    are predicted ones that overlap these; `UNLABELED` in place of a segment is one wherever there
    is no other. One whose label is a set is right with any of its labels.

    Runs and listed segments of the label ``"O"`` are tokens outside of all segments, and not
    counted. Where segments are compared with tags, their labels are the names in the tags:
    ``str(label)``.

    Examples
    --------
    >>> from crfkit.metrics import segment_precision_recall_fscore_support
    >>> y_true = [[(0, 2, "street"), (2, 3, "city")]]
    >>> y_pred = [[(0, 2, "street"), (2, 4, "city")]]
    >>> segment_precision_recall_fscore_support(y_true, y_pred, average="micro")
    (0.5, 0.5, 0.5, 2)
    """
    counts = count(*find_segments(y_true, y_pred, scheme)).select(labels)
    return summarize(counts, average, beta, zero_division)


def segment_precision_score(
    y_true: SegmentLists, y_pred: SegmentLists, *, average: str | None = "micro", **kwargs: Any
) -> Any:
    """Compute the precision of segments; see :func:`segment_precision_recall_fscore_support`."""
    return segment_precision_recall_fscore_support(y_true, y_pred, average=average, **kwargs)[0]


def segment_recall_score(
    y_true: SegmentLists, y_pred: SegmentLists, *, average: str | None = "micro", **kwargs: Any
) -> Any:
    """Compute the recall of segments; see :func:`segment_precision_recall_fscore_support`."""
    return segment_precision_recall_fscore_support(y_true, y_pred, average=average, **kwargs)[1]


def segment_f1_score(
    y_true: SegmentLists, y_pred: SegmentLists, *, average: str | None = "micro", **kwargs: Any
) -> Any:
    """Compute the harmonic mean of the precision and the recall of segments.

    All but `average` is as for :func:`segment_precision_recall_fscore_support`. The same of tags,
    by the rules of the conlleval script, is :func:`entity_f1_score`.

    Examples
    --------
    >>> from crfkit.metrics import segment_f1_score
    >>> segment_f1_score([[(0, 2, "city")]], [[(0, 2, "city")]])
    1.0
    >>> y_true, y_pred = [["no", "road", "road"]], [["no", "no", "road"]]
    >>> segment_f1_score(y_true, y_pred, scheme="runs")
    0.0
    """
    return segment_precision_recall_fscore_support(y_true, y_pred, average=average, **kwargs)[2]


def segment_classification_report(
    y_true: SegmentLists,
    y_pred: SegmentLists,
    *,
    labels: Sequence[Hashable] | None = None,
    scheme: str | None = None,
    digits: int = 2,
    output_dict: bool = False,
    zero_division: float | str = 0,
) -> str | dict[str, dict[str, float | int]]:
    """Build a report of precision, recall, F1 and support of segments per label and averaged.

    Parameters are as for :func:`segment_precision_recall_fscore_support` and, of the form of the
    report, :func:`entity_classification_report`.

    Examples
    --------
    >>> from crfkit.metrics import segment_classification_report
    >>> y_true, y_pred = [["no", "road", "road"]], [["no", "no", "road"]]
    >>> report = segment_classification_report(y_true, y_pred, scheme="runs", output_dict=True)
    >>> report["road"]["f1-score"]
    0.0
    """
    counts = count(*find_segments(y_true, y_pred, scheme)).select(labels)
    return report(counts, digits=digits, output_dict=output_dict, zero_division=zero_division)


def are_tags(labels: Iterable[Any]) -> bool:
    """Whether all labels are tags such as ``B-PER`` and ``O``."""
    try:
        allowed_transitions(list(labels), "conll")
    except (TypeError, ValueError):
        return False
    return True


def are_typed_tags(labels: Iterable[Any]) -> bool:
    """Whether all labels are tags with a type, or ``O``: bare letters may be no tags."""
    return all(label == OUTSIDE_LABEL or looks_like_tag(label) for label in labels)


def scheme_beside(scheme: str | None, *labels: SegmentLists) -> str:
    """Return how labels of tokens are read: the tags of a model with a scheme, or typed ones."""
    if scheme == RUNS:
        return RUNS
    names = names_of(*(flatten(each, "y").labels for each in labels))
    tags = are_typed_tags(names) if scheme is None else are_tags(names)
    return "conll" if tags else RUNS


def find_segments(
    y_true: SegmentLists, y_pred: SegmentLists, scheme: str | None
) -> tuple[FoundSpans, FoundSpans]:
    """Return the segments of truth and prediction, each in any form."""
    if scheme not in (None, RUNS):
        get_scheme(scheme)
    true, pred = as_lists(y_true, "y_true"), as_lists(y_pred, "y_pred")
    if len(true) != len(pred):
        raise ValueError(f"y_true has {len(true)} sequences but y_pred has {len(pred)}")
    listed = holds_segments(true), holds_segments(pred)
    if scheme is None or all(listed):
        pairs = [_judged(s, *pair) for s, pair in enumerate(zip(true, pred, strict=True))]
        true, pred = [one for one, _ in pairs], [other for _, other in pairs]
        return _read_listed(true, "y_true"), _read_listed(pred, "y_pred")
    if listed[0]:
        labels = flatten(pred, "y_pred")
        return _read_beside(true, "y_true", labels.lengths, scheme), _read_labels(labels, scheme)
    labels = flatten(true, "y_true")
    if listed[1]:
        return _read_labels(labels, scheme), _read_beside(pred, "y_pred", labels.lengths, scheme)
    others = flatten(pred, "y_pred")
    check_same_lengths(labels.lengths, others.lengths, "y_pred")
    labels = resolve(labels, others)
    if scheme != RUNS:
        return read_known_spans(labels, others, get_scheme(scheme))
    return read_known_runs(labels, others)


def _judged(s: int, true: Any, pred: Any) -> tuple[Any, Any]:
    """Return the true segments of a sequence that are known, and predicted ones to compare."""
    where = "{}, sequence " + str(s)
    if not any(item is UNLABELED or _is_open(item) for item in true):
        return true, pred
    given = [as_segment(item, where.format("y_true")) for item in true if item is not UNLABELED]
    found = [as_segment(item, where.format("y_pred")) for item in pred]
    known = [one for one in given if one.label is not UNLABELED]
    # Tokens that must all, or of which none may, be those of a segment that is judged.
    rest = len(given) < len(true)
    marked = known if rest else [one for one in given if one.label is UNLABELED]

    def is_judged(one: Segment) -> bool:
        shared = sum(max(0, min(one.stop, x.stop) - max(one.start, x.start)) for x in marked)
        return shared == (one.stop - one.start if rest else 0)

    chosen = {one[:2]: one.label for one in found}
    for i, one in enumerate(known):
        if isinstance(one.label, frozenset):
            label = chosen.get(one[:2])
            first = min(one.label, key=lambda name: (type(name).__name__, repr(name)))
            known[i] = one._replace(label=label if label in one.label else first)
    return known, [one for one in found if is_judged(one)]


def _is_open(item: Any) -> bool:
    """Whether an item is a segment whose label is not known, or known to be one of several."""
    fields = segment_fields(item)
    return fields is not None and (
        fields[2] is UNLABELED or isinstance(fields[2], (set, frozenset))
    )


def _read_listed(sequences: list[Any], name: str, lengths: IntArray | None = None) -> FoundSpans:
    """Return the segments that are listed for each sequence, of a length that may be known."""
    index: dict[Any, int] = {}
    rows: list[tuple[int, int, int, int]] = []
    for s, sequence in enumerate(sequences):
        where, known = f"{name}, sequence {s}", len(rows)
        n_tokens = np.inf if lengths is None else lengths[s]
        for item in sequence:
            start, stop, label = as_segment(item, where, n_tokens)
            if label is UNLABELED or isinstance(label, frozenset):
                raise ValueError(
                    f"{where}: the label of {item!r:.60} is open, which only those of true "
                    "segments may be, where predicted ones are listed too."
                )
            if label != OUTSIDE_LABEL:
                rows.append((index.setdefault(label, len(index)), s, start, stop))
        own = rows[known:]
        if len(set(own)) < len(own):
            twice = next(row for row in own if own.count(row) > 1)
            raise ValueError(
                f"{where}: the segment {(*twice[2:], list(index)[twice[0]])} is listed twice."
            )
    columns = np.array(rows, np.intp).reshape(-1, 4).T
    return FoundSpans(list(index), *columns)


def _read_beside(sequences: list[Any], name: str, lengths: IntArray, scheme: str) -> FoundSpans:
    """Return listed segments of sequences of known lengths, with the labels that others have."""
    found = _read_listed(sequences, name, lengths)
    if scheme == RUNS:
        return found
    return found._replace(names=[str(label) or UNTYPED for label in found.names])


def _read_labels(flat: FlatLabels, scheme: str) -> FoundSpans:
    """Return the segments that labels of tokens stand for: those outside are none."""
    if scheme != RUNS:
        return read_spans([flat], get_scheme(scheme))[0]
    return read_known_runs(flat, flat)[0]
