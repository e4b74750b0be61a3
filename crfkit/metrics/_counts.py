"""Precision, recall, F-score and reports of counted spans: of entities in tags, of segments."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from crfkit._warnings import warn_user
from crfkit.labels.sequences import FloatArray, IntArray, shown_names, sorted_labels
from crfkit.labels.spans import FoundSpans

AVERAGES = ("micro", "macro", "weighted")

Scores = tuple[FloatArray, FloatArray, FloatArray]
Row = dict[str, float | int]


class Counts(NamedTuple):
    """Numbers of spans per label, for the labels that are in the truth or the prediction."""

    names: list[Any]
    true: IntArray
    predicted: IntArray
    correct: IntArray

    def select(self, labels: Iterable[Hashable] | None) -> Counts:
        """Return the counts of given labels in the given order; unknown labels count zero."""
        if labels is None:
            return self
        names = list(labels)
        index = {name: i for i, name in enumerate(self.names)}
        rows = [index.get(name, len(self.names)) for name in names]
        return Counts(names, *(np.append(column, 0)[rows] for column in self[1:]))

    def total(self) -> Counts:
        """Return the counts of all labels together, as one label."""
        return Counts(["all"], *(column.sum(keepdims=True) for column in self[1:]))


def count(true: FoundSpans, pred: FoundSpans) -> Counts:
    """Count the spans per label, and those whose label, first and last token are right."""
    vocabulary = sorted_labels({*true.names, *pred.names})
    place = {label: i for i, label in enumerate(vocabulary)}
    types = [np.array([place[n] for n in f.names], np.intp)[f.types] for f in (true, pred)]
    rows = [np.concatenate(types)]
    rows += [np.concatenate(pair) for pair in zip(true[2:], pred[2:], strict=True)]
    order = np.lexsort(rows)
    # A span that both sides have stands twice, the true one first.
    twice = np.all([row[order[1:]] == row[order[:-1]] for row in rows], axis=0)
    hits = rows[0][order[:-1][twice]]
    columns = [np.bincount(labels, minlength=len(vocabulary)) for labels in (*types, hits)]
    # A type that only stands in broken chunks has no entity on either side: it is not a type.
    present = np.flatnonzero(columns[0] + columns[1])
    return Counts([vocabulary[i] for i in present], *(column[present] for column in columns))


def summarize(
    counts: Counts, average: str | None, beta: float, zero_division: float | str
) -> tuple[Any, Any, Any, Any]:
    """Return precision, recall, F-score and support: per label, or averaged."""
    if not beta >= 0:
        raise ValueError(f"beta is at least 0, not {beta!r}")
    if average is not None and average not in AVERAGES:
        raise ValueError(f"average is None or one of {AVERAGES}, not {average!r}")
    if zero_division not in (0, 1, "warn"):
        raise ValueError(f"zero_division is 0, 1 or 'warn', not {zero_division!r}")
    if average is None:
        return *scores(counts, beta, zero_division), counts.true
    summed = counts.total() if average == "micro" else counts
    weights = counts.true if average == "weighted" else np.ones(len(summed.names))
    support = int(counts.true.sum())
    if not weights.any():  # no label counts; wrong predictions still have precision 0
        value = _zero_division_value(zero_division)
        precision = 0.0 if counts.predicted.any() else value
        return precision, value, precision, support
    precision, recall, fscore = (
        float(np.average(score, weights=weights)) for score in scores(summed, beta, zero_division)
    )
    return precision, recall, fscore, support


def scores(counts: Counts, beta: float, zero_division: float | str) -> Scores:
    """Return precision, recall and F-score per label."""
    precision = _divide(counts.correct, counts.predicted, "Precision", zero_division)
    recall = _divide(counts.correct, counts.true, "Recall", zero_division)
    if np.isposinf(beta):
        return precision, recall, recall
    weighted = beta**2 * precision + recall
    # Both are zero together only where there is nothing to divide: the F-score is zero there.
    weighted[weighted == 0] = 1
    return precision, recall, (1 + beta**2) * precision * recall / weighted


def report(
    counts: Counts, *, digits: int, output_dict: bool, zero_division: float | str
) -> str | dict[str, Row]:
    """Build a report per label and averaged, as text or as a dictionary."""
    columns = summarize(counts, None, 1.0, zero_division)
    names = shown_names(counts.names)
    types = {name: _row(*values) for name, *values in zip(names, *columns, strict=True)}
    averages = {
        f"{average} avg": _row(*summarize(counts, average, 1.0, zero_division))
        for average in AVERAGES
    }
    if output_dict:
        return {**types, **averages}
    width = max(map(len, [*types, *averages]))
    header = f"{'':>{width}s} " + "".join(f" {name:>9s}" for name in averages["micro avg"])
    blocks = [
        "\n".join(_format_row(*item, width, digits) for item in rows.items())
        for rows in (types, averages)
    ]
    return "\n\n".join([header, *filter(None, blocks)]) + "\n"


def _divide(
    correct: IntArray, total: IntArray, name: str, zero_division: float | str
) -> FloatArray:
    undefined = total == 0
    if zero_division == "warn" and undefined.any():
        message = f"{name} is 0/0 for some label and set to 0; see zero_division"
        warn_user(message, UndefinedMetricWarning)
    value = _zero_division_value(zero_division)
    return np.where(undefined, value, correct / np.maximum(total, 1))


def _zero_division_value(zero_division: float | str) -> float:
    return 0.0 if zero_division == "warn" else float(zero_division)


def _row(precision: float, recall: float, fscore: float, support: int) -> Row:
    scores = {"precision": float(precision), "recall": float(recall), "f1-score": float(fscore)}
    return scores | {"support": int(support)}


def _format_row(name: str, row: Row, width: int, digits: int) -> str:
    *values, support = row.values()
    return f"{name:>{width}s} " + "".join(f" {x:>9.{digits}f}" for x in values) + f" {support:>9d}"
