"""Labels, or spans, that are known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crfkit._types import BoolArray, IntArray
from crfkit.constraints.base import Limits, LocalRule, Part, Target
from crfkit.constraints.known_segments import fixed_codes
from crfkit.data.labels import UNLABELED, by_sequence, object_array
from crfkit.data.packed import ranges
from crfkit.data.targets import Targets
from crfkit.data.validation import token_place
from crfkit.labels.fields import Listed, are_segments, check_apart, lists, read_listed
from crfkit.labels.reading import LabelReading
from crfkit.labels.schemes import OUTSIDE_LABEL
from crfkit.labels.segmentation import Segmentation, allowed_codes

# Labels of more tokens are not told apart in messages.
MOST_PARTS = 500


@dataclass(eq=False, repr=False)
class Known(LocalRule):
    """Labels of some tokens, or some spans, are known.

    Parameters
    ----------
    y : iterable of S sequences of labels, or of S lists of (start, stop, label)
        One for each sequence of X. Labels as for `fit`: sets of which one is right, and
        `UNLABELED`, may be among them. Or spans that a sequence has: exactly these tokens, and no
        more of them; of other tokens nothing is said. The label of a span may be "O".

    Examples
    --------
    >>> from crfkit import UNLABELED
    >>> from crfkit.constraints import Known
    >>> Known([[UNLABELED, "B-PER", {"O"}]]), Known([[(1, 3, "PER")]])
    (Known(y=[[UNLABELED, 'B-PER', {'O'}]]), Known(y=[[(1, 3, 'PER')]]))
    """

    y: Iterable[Any]

    of_sequences: ClassVar[bool] = True

    def parts(self, s: int, target: Target) -> list[Part]:
        """Return what is known of single tokens, or spans, of a sequence."""
        offsets = target.data.offsets
        sequences = lists(by_sequence(self.y, offsets))
        items, spans = sequences[s], are_segments(sequences, offsets)
        if spans:
            return [Part(Known([[item]]), f"Known of the span {tuple(item)}") for item in items]
        if target.of_segments or len(items) > MOST_PARTS:
            return [Part(Known([items]), "Known")]
        found = []
        for t, item in enumerate(items):
            if item is not UNLABELED:
                row = [UNLABELED] * t + [item] + [UNLABELED] * (len(items) - t - 1)
                found.append(Part(Known([row]), f"Known at position {t} ({item!r:.60})"))
        return found

    def limit(self, target: Target, limits: Limits) -> None:
        """Leave out all else."""
        offsets = target.data.offsets
        try:
            sequences = lists(by_sequence(self.y, offsets))
            if len(sequences) != len(offsets) - 1:
                raise ValueError(
                    f"y has {len(sequences)} sequences, but X has {len(offsets) - 1}. It tells of "
                    "the sequences of one X: give it to the method that is asked about these, not "
                    "to an estimator that is asked about others too (folds, a validation part)."
                )
            if not are_segments(sequences, offsets):
                _limit_labels(sequences, target, limits)
                return
        except (TypeError, ValueError) as error:
            raise type(error)(f"Known: {error}") from error
        runs = read_listed(sequences, offsets, "Known")
        check_apart(runs, offsets, "Known")
        if target.of_segments:
            _limit_segments(runs, target, limits)
        else:
            _limit_spans(runs, target, limits)


def _limit_labels(y: list[list[Any]], target: Target, limits: Limits) -> None:
    """Leave tokens the labels that they are known to have."""
    offsets, classes = target.data.offsets, target.classes
    codes, possible, allowed = target.space.codes(target.fitted, y, offsets)
    if not possible.all():
        token = int(np.argmin(possible))
        s = int(np.searchsorted(offsets, token, side="right")) - 1
        scheme = f", whose tags are {target.fitted.scheme_}," if target.of_segments else ""
        raise ValueError(
            f"{token_place(offsets, token)}: {y[s][token - offsets[s]]!r:.60} is no label that the "
            f"model{scheme} can give there."
        )
    if target.of_segments:
        allowed = allowed_codes(codes, len(classes))
    _limit_to(Targets(codes, allowed), target.n_codes, limits)


def _limit_to(targets: Targets, n_codes: int, limits: Limits) -> None:
    """Leave tokens the codes that they may have."""
    sets, which = targets.sets(n_codes)
    for number, codes in enumerate(sets):
        limits.allow(np.flatnonzero(which == number), codes)


def _limit_segments(runs: Listed, target: Target, limits: Limits) -> None:
    """Leave the segmentations that have some segments."""
    places = target.space.coding(target.fitted).places(object_array(runs.labels), target.classes)
    known = Segmentation(runs.start, runs.stop, places)
    fixed = fixed_codes(target.fitted, known, target.data.offsets)
    allowed = allowed_codes(fixed, len(target.classes))
    _limit_to(Targets(fixed, allowed), target.n_codes, limits)


def _limit_spans(runs: Listed, target: Target, limits: Limits) -> None:
    """Leave the labels of tokens that are read so that there are some spans.

    A span begins at its first token after what stands before, each further token continues it, and
    it is closed by what stands behind.
    """
    if target.is_forest:
        raise ValueError("Known: spans are runs of tokens, which forests do not have: give labels.")
    reading, offsets, size = target.reading, target.data.offsets, target.n_codes
    numbers = {name: number for number, name in enumerate(reading.types)} | {OUTSIDE_LABEL: -1}
    for i, name in enumerate(runs.labels):
        if name not in numbers:
            s = int(np.searchsorted(offsets, runs.start[i], side="right")) - 1
            raise ValueError(
                f"sequence {s} of Known: the model has no spans of the label {name!r:.60}, but of "
                f"{', '.join(map(repr, reading.types))}."
            )
    types = np.array([numbers[name] for name in runs.labels], np.int64)
    for number in np.unique(types):
        start, stop = (end[types == number] for end in (runs.start, runs.stop))
        limits.allow(ranges(start, stop - start), reading.type_of == number)
    start, stop = (end[types >= 0] for end in (runs.start, runs.stop))
    is_first: BoolArray = np.isin(start, offsets)
    is_last: BoolArray = np.isin(stop, offsets)
    limits.allow(start[is_first], reading.opens[size])
    limits.allow_steps_into(start[~is_first], reading.opens[:size])
    limits.allow(stop[is_last] - 1, reading.closes[:, size])
    limits.allow_steps_into(stop[~is_last], reading.closes[:, :size])
    _limit_inside(start, stop, reading, limits)


def _limit_inside(start: IntArray, stop: IntArray, reading: LabelReading, limits: Limits) -> None:
    """Leave the labels of tokens that continue a span of the type that both are known to have."""
    length = stop - start - 1
    before: BoolArray = np.logical_or.reduce(reading.continues, axis=1)
    after: BoolArray = np.logical_or.reduce(reading.continues, axis=0)
    same = (reading.type_of[:, None] == reading.type_of) & (reading.type_of >= 0)
    if np.array_equal(reading.continues, same & before[:, None] & after):  # as in all tag schemes
        limits.allow(ranges(start, length), before)
        limits.allow(ranges(start + 1, length), after)
    else:
        limits.allow_steps_into(ranges(start + 1, length), reading.continues)
