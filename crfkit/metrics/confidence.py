"""The confidence of an estimator's predictions, and which of these are right."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from crfkit._params import check_option
from crfkit._types import LEVELS, BoolArray, FloatArray, IntArray, Segment
from crfkit.data.labels import UNLABELED, by_sequence, check_lengths
from crfkit.data.soft import most_probable
from crfkit.labels.base import TokenLabels
from crfkit.labels.fields import are_segments, holds_segments, lists, read_listed, segment_fields
from crfkit.labels.reading import as_typed_tags
from crfkit.labels.schemes import CONLL, OUTSIDE_LABEL, RUNS, is_tag, parse_tag
from crfkit.labels.segments import SegmentLabels
from crfkit.labels.sequences import as_lists, flatten_pair, token_weights
from crfkit.labels.spans import FoundSpans
from crfkit.metrics.segments import find_segments, scheme_beside

# A label that no model has.
_OTHER = object()


class JudgedConfidence(NamedTuple):
    """Confidences of predictions, whether these are right, and their weights, all (n,)."""

    confidence: FloatArray
    correct: BoolArray
    sample_weight: FloatArray


def judged_confidence(
    estimator: Any, X: Any, y: Any, *, of: str = "tokens", sample_weight: Any = None
) -> JudgedConfidence:
    """Return the confidence of what an estimator predicts, and whether that is right.

    What the metrics of calibration compare, ``brier_score(*judged_confidence(crf, X, y)[:2])``.

    Parameters
    ----------
    estimator : fitted estimator with `predict` and `predict_proba`
        Of spans also with `predict_spans` and `confidence`, of sequences with `sequence_log_proba`;
        a pipeline or a search of such too.
    X, y : lists of S sequences
        As for `predict` and `score`.
    of : {"tokens", "spans", "sequences"}, default="tokens"
        What is predicted: the label of a token, a span (an entity, a segment) with its ends and its
        label, or all labels of a sequence. Where the truth is not known, there is nothing to judge:
        of sequences all labels must be, of spans those that tell (see
        :func:`segment_precision_recall_fscore_support`), and empty sequences are left out.
    sample_weight : array of shape (S,) or list of S arrays of shape (T,), optional
        Weights of sequences or tokens; a span, or a sequence, has the mean weight of its tokens.

    Returns
    -------
    JudgedConfidence
        `confidence`, `correct` and `sample_weight`, arrays of shape (n,), in the order of X.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.metrics import judged_confidence
    >>> X, y = [[["the"], ["dog"]], [["dog"]]], [["D", "N"], ["N"]]
    >>> crf = CRFClassifier(c2=0.1).fit(X, y)
    >>> judged_confidence(crf, X, [["D", "N"], ["V"]]).correct.tolist()
    [True, True, False]
    """
    check_option("of", of, LEVELS)
    model, X = last_step(estimator, X)
    predicted = model.predict(X)
    offsets: IntArray = np.cumsum([0, *map(len, predicted)], dtype=np.int64)
    y = by_sequence(y, offsets)
    weight = np.ones(int(offsets[-1]))
    if sample_weight is not None:
        weight = token_weights(sample_weight, np.diff(offsets).astype(np.intp))
    found = _confidence(model, X, predicted, of)
    if of == "tokens":
        right, known = _right_tokens(model, y, predicted, offsets)
        return JudgedConfidence(found[known], right[known], weight[known])
    if of == "sequences":
        right, known = _right_sequences(model, y, predicted, offsets)
        start, stop = offsets[:-1], offsets[1:]
    else:
        spans = model.predict_spans(X)
        right, known = _right_spans(model, y, predicted, spans)
        start, stop = _ends(spans, offsets)
    mean = _means(weight, start[known], stop[known])
    return JudgedConfidence(found[known], right[known], mean)


def last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return what predicts within searches, pipelines and models of frames, and its input."""
    if hasattr(estimator, "best_estimator_"):
        return last_step(estimator.best_estimator_, X)
    if hasattr(estimator, "sequences"):  # a FrameClassifier
        return last_step(estimator.estimator_, estimator.sequences(X))
    if hasattr(estimator, "model_filename"):  # a drop-in of sklearn-crfsuite
        return estimator._fitted(), X
    if not isinstance(estimator, Pipeline):
        return estimator, X
    before = estimator[:-1]
    return last_step(estimator[-1], before.transform(X) if len(before) else X)


def as_predicted(model: Any, y: Any, offsets: IntArray) -> Any:
    """Return true labels in the form in which a model predicts them."""
    space = TokenLabels() if getattr(model, "scheme_", None) is None else SegmentLabels(None)
    return space.coding(model).as_predicted(y, offsets)


def labels_of_tokens(model: Any, y: Any, offsets: IntArray) -> Any:
    """Return true labels as those that `predict_proba` of a model has columns for."""
    scheme = getattr(model, "scheme_", None)
    if scheme is None:
        return y
    sequences = lists(most_probable(y))
    coding = SegmentLabels(None).coding(model)
    if are_segments(sequences, offsets):
        flat = [OUTSIDE_LABEL] * int(offsets[-1])
        listed = read_listed(sequences, offsets, "y", partial=True)
        for start, stop, label in zip(listed.start, listed.stop, listed.labels, strict=True):
            flat[start:stop] = [label] * (stop - start)
    else:
        check_lengths(offsets, np.cumsum([0, *map(len, sequences)]), "y")
        flat = list(chain.from_iterable(sequences))
        if scheme != RUNS:
            flat = [_each(label, _type_of_tag) for label in flat]
    known = {coding.key(label): label for label in model.classes_.tolist()}
    names = [_each(label, lambda one: known.get(coding.key(one), _OTHER)) for label in flat]
    return [names[begin:end] for begin, end in pairwise(offsets.tolist())]


def _each(label: Any, change: Callable[[Any], Any]) -> Any:
    """Return what a label is changed to, or each of a set; one that is not known stays."""
    if label is UNLABELED:
        return label
    if isinstance(label, (set, frozenset)):
        return frozenset(map(change, label))
    return change(label)


def _type_of_tag(tag: Any) -> Any:
    """Return the label of the segment that a tag is of, `_OTHER` of what is no tag."""
    if tag == OUTSIDE_LABEL:
        return tag
    return parse_tag(tag, CONLL)[1] if is_tag(tag, CONLL) else _OTHER


def _confidence(model: Any, X: Any, predicted: Any, of: str) -> FloatArray:
    """Return the confidence of each predicted label, span or sequence, one after the other."""
    if of == "spans" or hasattr(model, "confidence"):
        return np.concatenate([np.zeros(0), *map(np.atleast_1d, model.confidence(X, of=of))])
    if of == "sequences":
        whole: FloatArray = np.exp(model.sequence_log_proba(X, predicted))
        return np.minimum(whole, 1.0)
    proba = model.predict_proba(X)
    place = {label: column for column, label in enumerate(list(model.classes_))}
    columns = [place[label] for label in chain.from_iterable(predicted)]
    rows = np.concatenate([np.zeros((0, len(place))), *proba])
    found: FloatArray = rows[np.arange(len(columns)), columns]
    return found


def _right_tokens(
    model: Any, y: Any, predicted: Any, offsets: IntArray
) -> tuple[BoolArray, BoolArray]:
    """Return which labels are right, and of which tokens they are known, (N,)."""
    true, pred = flatten_pair(as_predicted(model, y, offsets), predicted)
    pairs = zip(true.labels, pred.labels, strict=True)
    right, known = np.array([ours == theirs for ours, theirs in pairs], bool), true.known
    if getattr(model, "scheme_", None) is None:  # what is withheld is no prediction
        labels = {*np.asarray(model.classes_, object).tolist()}
        known = known & np.array([label in labels for label in pred.labels], bool)
    return right, known


def _right_sequences(
    model: Any, y: Any, predicted: Any, offsets: IntArray
) -> tuple[BoolArray, BoolArray]:
    """Return which sequences are right as a whole, and of which all labels are known, (S,)."""
    tokens = _right_tokens(model, y, predicted, offsets)
    filled = offsets[:-1] < offsets[1:]
    found = np.zeros((2, len(filled)), bool)
    if filled.any():
        found[:, filled] = np.logical_and.reduceat(tokens, offsets[:-1][filled], axis=1)
    return found[0], found[1]


def _right_spans(
    model: Any, y: Any, predicted: Any, spans: list[list[Segment]]
) -> tuple[BoolArray, BoolArray]:
    """Return which predicted spans are right, and of which the truth tells whether they are."""
    truth, scheme = as_lists(y, "y"), getattr(model, "scheme_", None)
    tags, names = None, dict[str, Any]()
    if holds_segments(truth):
        pair = find_segments(truth, spans, None)
    else:
        if scheme is None:
            tags = as_typed_tags(model.classes_.tolist(), truth, predicted)
        if tags is not None:
            (read, said), names = tags
            pair = find_segments(read, said, CONLL.name)
        else:
            pair = find_segments(truth, predicted, scheme_beside(scheme, truth, predicted))
    true, judged = (_keys(found, names) for found in pair)
    is_open = [any(_is_open(item) for item in sequence) for sequence in truth]
    keys = [(s, *span) for s, own in enumerate(spans) for span in own]
    right = np.array([key in true for key in keys], bool)
    return right, np.array([not is_open[key[0]] or key in judged for key in keys], bool)


def _is_open(item: Any) -> bool:
    """Whether a label, or that of a segment, is not known."""
    fields = segment_fields(item)
    return item is UNLABELED or (fields is not None and fields[2] is UNLABELED)


def _keys(found: FoundSpans, names: dict[str, Any]) -> set[tuple[Any, ...]]:
    """Return spans as sequence, start, stop and label, for which another name may be given."""
    labels = [names.get(name, name) for name in found.names] if names else found.names
    rows = zip(*(part.tolist() for part in (*found[2:], found.types)), strict=True)
    return {(s, start, stop, labels[kind]) for s, start, stop, kind in rows}


def _ends(spans: list[list[Segment]], offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first token of each span, and the one after the last, among all: (n,)."""
    begins = zip(offsets.tolist(), spans, strict=False)
    pairs = [(begin + span[0], begin + span[1]) for begin, own in begins for span in own]
    start, stop = np.array(pairs, np.int64).reshape(-1, 2).T
    return start, stop


def _means(weight: FloatArray, start: IntArray, stop: IntArray) -> FloatArray:
    """Return the mean weight of runs of tokens."""
    before = np.append(0.0, np.cumsum(weight))
    means: FloatArray = (before[stop] - before[start]) / (stop - start)
    return means
