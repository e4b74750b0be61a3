"""What a model says of tokens, beside what is true: marks, and which of them are wrong."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import Segment
from crfkit.data import PackedSequences
from crfkit.data.labels import UNLABELED, by_sequence
from crfkit.inspection.models import Opened
from crfkit.inspection.spans import check_fit, segments_of_labels
from crfkit.inspection.tokens import text_of, token_texts


class Marked(NamedTuple):
    """A span, or a token, with its label."""

    start: int
    stop: int
    label: Hashable
    probability: float | None = None
    is_wrong: bool = False


Rows = Iterable[tuple[list[Marked] | None, list[Marked] | None]]


def first_sequences(sequences: Any, n: int) -> tuple[Any, int | None]:
    """Return the first sequences, and how many are left out."""
    if isinstance(sequences, PackedSequences):
        return sequences[:n], max(0, len(sequences) - n)
    if isinstance(sequences, Sequence) or hasattr(sequences, "__len__"):
        return list(islice(iter(sequences), n)), max(0, len(sequences) - n)
    iterator = iter(sequences)
    found = list(islice(iterator, n))
    return found, None if next(iterator, None) is not None else 0


def true_rows(y: Any, lengths: list[int], n: int) -> list[Any]:
    """Return the true labels, or segments, of the first sequences."""
    if hasattr(y, "to_numpy"):
        offsets = np.cumsum([0, *lengths])
        y = by_sequence(y[: offsets[-1]], offsets)
    found = [list(own) for own in first_sequences(y, n)[0]]
    if len(found) != len(lengths):
        raise ValueError(f"y has {len(found)} sequences, but {len(lengths)} are shown.")
    check_fit(found, lengths)
    return found


def given_texts(tokens: Any, X: Any, found: Opened | None) -> list[list[str]]:
    """Return given words, which must be as many as the tokens."""
    texts = [list(map(str, own)) for own in first_sequences(tokens, len(X))[0]]
    lengths = list(map(len, X if found is None else shown_texts(X, found)))
    if [len(own) for own in texts] != lengths:
        raise ValueError(f"tokens has {[*map(len, texts)]} words, but X has {lengths} tokens.")
    return texts


def shown_texts(X: Any, found: Opened | None) -> list[list[str]]:
    """Return how the tokens of sequences are shown."""
    if found is None:
        return [[text_of(item) or str(item)[:40] for item in own] for own in X]
    data = found.model._pack(found.transform(X))
    if isinstance(X, list):
        return [token_texts(own, data[[s]], found.model) for s, own in enumerate(X)]
    return [token_texts(None, data[[s]], found.model) for s in range(len(data))]


def rows_of_spans(
    found: Opened | None, X: Any, y: list[Any] | None, confidence: bool, constraints: Any
) -> Rows:
    """Yield predicted and true spans of sequences."""
    if found is None:
        return [(None, [Marked(*one) for one in own]) for own in segments_of_labels(y)[0]]
    predicted = found.model.predict_spans(found.transform(X), constraints=constraints)
    proba = found.confidence(X, "spans", constraints) if confidence else None
    chances = [[None] * len(own) for own in predicted] if proba is None else proba
    truth: list[Any] = [None] * len(predicted)
    if y is not None:
        truth = segments_of_labels(y, known=found.model.classes_.tolist())[0]
    return [_compared(*row) for row in zip(predicted, chances, truth, strict=True)]


def _compared(
    predicted: list[Segment], chances: Any, true: list[Segment] | None
) -> tuple[list[Marked], list[Marked] | None]:
    """Return spans of a sequence with their probabilities and whether they are wrong."""
    own, others = set(predicted), None if true is None else set(true)
    marked = [
        Marked(*span, None if p is None else float(p), others is not None and span not in others)
        for span, p in zip(predicted, chances, strict=True)
    ]
    if true is None:
        return marked, None
    return marked, [Marked(*span, None, span not in own) for span in true]


def rows_of_tokens(
    found: Opened | None, X: Any, y: list[Any] | None, confidence: bool, constraints: Any
) -> Rows:
    """Yield predicted and true labels of tokens."""
    true = None if y is None else [_labels(own) for own in y]
    if found is None:
        return [
            (None, [mark._replace(label=_written(mark.label)) for mark in own])
            for own in true or []
        ]
    rows = found.model.predict(found.transform(X), constraints=constraints)
    predicted = [_labels(own) for own in rows]
    proba = found.confidence(X, "tokens", constraints) if confidence else None
    if proba is not None:
        predicted = [
            [mark._replace(probability=float(p)) for mark, p in zip(own, chances, strict=True)]
            for own, chances in zip(predicted, proba, strict=True)
        ]
    if true is None:
        return [(own, None) for own in predicted]
    return [_tokens_compared(s, *row) for s, row in enumerate(zip(predicted, true, strict=True))]


def _tokens_compared(
    s: int, predicted: list[Marked], true: list[Marked]
) -> tuple[list[Marked], list[Marked]]:
    """Return tokens of a sequence with whether their labels are wrong."""
    if len(predicted) != len(true):
        raise ValueError(f"sequence {s}: y has {len(true)} labels for {len(predicted)} tokens.")
    pairs = zip(predicted, true, strict=True)
    wrong = [_is_wrong(mine.label, right.label) for mine, right in pairs]
    named = [mark._replace(label=_written(mark.label)) for mark in true]
    return tuple(  # type: ignore[return-value]
        [mark._replace(is_wrong=bad) for mark, bad in zip(own, wrong, strict=True)]
        for own in (predicted, named)
    )


def _is_wrong(predicted: Any, true: Any) -> bool:
    if isinstance(true, (set, frozenset)):
        return predicted not in true
    return true is not UNLABELED and bool(predicted != true)


def _written(label: Any) -> Any:
    """Return a true label, also where it is one of a set, as it is shown."""
    if isinstance(label, (set, frozenset)):
        return " or ".join(sorted(map(str, label)))
    return label


def _labels(labels: Any) -> list[Marked]:
    return [Marked(t, t + 1, label) for t, label in enumerate(labels)]
