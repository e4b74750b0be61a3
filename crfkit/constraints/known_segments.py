"""Segments that are known, as codes that tokens may have."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import CodeArray, IntArray
from crfkit.data.labels import UNKNOWN
from crfkit.labels.schemes import OUTSIDE_LABEL
from crfkit.labels.segmentation import ANY, BEGINS, Segmentation
from crfkit.labels.segments import longest


def fixed_codes(model: Any, runs: Segmentation, offsets: IntArray) -> CodeArray:
    """Return the code that each token has to have, `ANY`, or `BEGINS` for any beginning, (N,).

    Known segments do not overlap. ValueError if the model cannot have one, or two that touch.
    """
    order = np.argsort(runs.start)
    runs = Segmentation(*(part[order] for part in runs))
    _check_fixed(model, runs, offsets)
    _check_touching(model, runs, offsets)
    codes = np.full(offsets[-1] + 1, ANY, np.int32)
    codes[runs.stop] = BEGINS
    codes[offsets[:-1]] = ANY
    size, most = len(model.classes_), longest(model.length_scores_).tolist()
    for start, stop, label in zip(*(part.tolist() for part in runs), strict=True):
        codes[start:stop] = label
        codes[start : stop : most[label]] = label + size  # tokens outside may be more
    return codes[:-1]


def _check_fixed(model: Any, runs: Segmentation, offsets: IntArray) -> None:
    """Raise ValueError if a segment has a label or a length that the model cannot have."""
    allowed, most = model.length_scores_ > -np.inf, longest(model.length_scores_)
    for i, (size, k) in enumerate(zip((runs.stop - runs.start).tolist(), runs.label, strict=True)):
        if k == UNKNOWN:
            why = "has a label that the model does not know"
        elif model.classes_[k] == OUTSIDE_LABEL or (size <= most[k] and allowed[size - 1, k]):
            continue
        elif size > most[k]:
            why = (
                f"is longer than segments of the label {model.classes_[k]!r} can be: {most[k]} "
                "tokens. Fit with a larger max_length"
            )
        else:
            why = (
                f"is shorter than segments of the label {model.classes_[k]!r} can be: "
                f"{np.argmax(allowed[:, k]) + 1} tokens. Fit with a smaller min_length"
            )
        s, begin = _sequence_of(int(runs.start[i]), offsets)
        raise ValueError(
            f"sequence {s} of Known: the segment ({runs.start[i] - begin}, {runs.stop[i] - begin}) "
            f"{why}."
        )


def _check_touching(model: Any, runs: Segmentation, offsets: IntArray) -> None:
    """Raise ValueError if a segment follows one that it may not follow."""
    touch = (runs.stop[:-1] == runs.start[1:]) & ~np.isin(runs.start[1:], offsets)
    never = np.isneginf(model.transitions_)[runs.label[:-1], runs.label[1:]]
    wrong = np.flatnonzero(touch & never)
    if len(wrong):
        i = int(wrong[0])
        before, after = (model.classes_[k] for k in runs.label[i : i + 2])
        s, begin = _sequence_of(int(runs.start[i + 1]), offsets)
        raise ValueError(
            f"sequence {s} of Known: the segment of label {after!r} at position "
            f"{runs.start[i + 1] - begin} follows one of {before!r}, which the model was fitted to "
            "forbid. Leave one out, or fit without this pair in `forbidden`."
        )


def _sequence_of(token: int, offsets: IntArray) -> tuple[int, int]:
    """Return the sequence of a token, and its first token."""
    s = int(np.searchsorted(offsets, token, side="right")) - 1
    return s, int(offsets[s])
