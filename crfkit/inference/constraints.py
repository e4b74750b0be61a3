"""Scores that leave a token only some codes: what is known of a segmentation."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray, Potentials
from crfkit.data.labels import UNKNOWN
from crfkit.inference.base import expectations
from crfkit.labels.schemes import OUTSIDE_LABEL
from crfkit.labels.segmentation import ANY, BEGINS, EITHER, Segmentation
from crfkit.labels.segments import longest
from crfkit.structures import NoPathError, NoSegmentationError, Structure


def allowed_codes(fixed: CodeArray, size: int) -> BoolArray | None:
    """Return which codes each token may have, (N, 2 K), given the fixed ones; None for all."""
    if (fixed == ANY).all():
        return None
    allowed = np.ones((len(fixed), 2 * size), bool)
    known = np.flatnonzero((fixed >= 0) | (fixed <= EITHER))
    labels = np.where(fixed >= 0, fixed, EITHER - fixed)[known]
    allowed[known] = False
    allowed[known, labels] = True
    either = fixed[known] <= EITHER
    allowed[known[either], labels[either] + size] = True
    allowed[fixed == BEGINS, :size] = False
    return allowed


def with_fixed(potentials: Potentials, fixed: CodeArray) -> Potentials:
    """Return potentials that forbid all codes but the fixed ones, shape (N,)."""
    allowed = allowed_codes(fixed, potentials.n_labels)
    return potentials if allowed is None else potentials.clamp(allowed)


def conditional_log_proba(structure: Structure, scores: Potentials, fixed: CodeArray) -> FloatArray:
    """Return the log-probability of the fixed codes of each sequence, shape (S,)."""
    log_z = expectations(structure, scores)[1]
    clamped, possible = with_fixed(scores, fixed), np.ones(len(log_z), bool)
    try:
        return expectations(structure, clamped)[1] - log_z
    except NoSegmentationError as error:
        possible[np.array([error.sequence, *error.others]) - scores.first] = False
    rest = clamped.take(np.flatnonzero(possible))
    try:
        shares = expectations(structure, rest)[1]
    except NoPathError:  # one by one, so that none is summed again for each of the others
        shares = np.array([_log_sum_or_none(structure, one) for one in rest.each()])
    found = np.full(len(log_z), -np.inf)
    found[possible] = shares - log_z[possible]
    return found


def allowed_log_proba(structure: Structure, scores: Potentials, allowed: BoolArray) -> FloatArray:
    """Return the log-probability that all tokens have codes they may have, (N, C): shape (S,)."""
    log_z, clamped = expectations(structure, scores)[1], scores.clamp(allowed)
    try:
        return expectations(structure, clamped)[1] - log_z
    except NoPathError:
        return np.array([_log_sum_or_none(structure, one) for one in clamped.each()]) - log_z


def _log_sum_or_none(structure: Structure, one: Potentials) -> float:
    """Return log Z of the only sequence, ``-inf`` where it has no segmentation."""
    try:
        return float(expectations(structure, one)[1][0])
    except NoPathError:
        return -np.inf


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
            f"sequence {s} of fixed: the segment ({runs.start[i] - begin}, {runs.stop[i] - begin}) "
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
            f"sequence {s} of fixed: the segment of label {after!r} at position "
            f"{runs.start[i + 1] - begin} follows one of {before!r}, which the model was fitted to "
            "forbid. Leave one out, or fit without this pair in `forbidden`."
        )


def _sequence_of(token: int, offsets: IntArray) -> tuple[int, int]:
    """Return the sequence of a token, and its first token."""
    s = int(np.searchsorted(offsets, token, side="right")) - 1
    return s, int(offsets[s])


def infeasibility_message(
    model: Any, error: NoPathError, offsets: IntArray, fixed: CodeArray | None
) -> str:
    """Return what to tell of a sequence that has no segmentation."""
    begin, end = offsets[error.sequence : error.sequence + 2].tolist()
    allowed = model.length_scores_ > -np.inf
    shortest = int(np.argmax(allowed.any(axis=1))) + 1
    if end - begin < shortest:
        return (
            f"sequence {error.sequence}: it has {end - begin} tokens, but by the min_length that "
            f"the model was fitted with, no segment has fewer than {shortest}. Leave the sequence "
            "out, or fit with a smaller min_length."
        )
    if fixed is not None and np.any(fixed[begin:end] != ANY):
        return (
            f"sequence {error.sequence} of fixed: no segmentation has these segments: none gets "
            f"past position {error.position}, by the min_length, max_length and forbidden steps "
            "that the model was fitted with. Leave some of the segments out."
        )
    return (
        f"sequence {error.sequence}: no segmentation is allowed: none gets past position "
        f"{error.position}, by the min_length, max_length and forbidden steps that the model was "
        "fitted with. Fit with others, or leave the sequence out."
    )
