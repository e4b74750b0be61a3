"""Labels of segments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data.labels import UNKNOWN
from crfkit.labels.base import Coded, FittedLabels, LabelSpace
from crfkit.labels.detect import illegible
from crfkit.labels.fields import are_segments, lists
from crfkit.labels.limits import check_limits, check_names, find_limits, is_outside
from crfkit.labels.schemes import OUTSIDE_LABEL
from crfkit.labels.segmentation import EITHER, SegmentCoding, read_segments, segmentation_of

NO_LIMIT = np.iinfo(np.int64).max


class SegmentLabels(LabelSpace):
    """A label for each segment; `segments` says what the user wants, None for a fitted model."""

    of_segments = True

    def __init__(self, segments: Any) -> None:
        self.segments = segments

    def read(self, y: Any, offsets: IntArray) -> Coded:
        """Return the codes of the segments that labels stand for.

        ValueError or TypeError tells that the labels do not fit the sequences, cannot be read, or
        break the limits, or that these name labels as tags.
        """
        coded = read_segments(y, offsets, self.segments.scheme, OUTSIDE_LABEL)
        check_names(self.segments, coded)
        size, classes, codes = len(coded.classes), coded.classes, coded.codes.copy()
        _join(codes, offsets, classes, self.segments.outside)
        runs = segmentation_of(codes, offsets, size)
        limits = find_limits(self.segments, coded.coding, classes, runs)
        most = limits.most
        if self.segments._limits().too_long != "split":
            most = np.where(is_outside(classes), most, NO_LIMIT)
        _cut(codes, offsets, size, most)
        check_limits(segmentation_of(codes, offsets, size), offsets, classes, limits)
        return coded._replace(codes=codes)

    def coding(self, fitted: FittedLabels) -> SegmentCoding:
        """Return how the codes of a fitted model are read and written."""
        return SegmentCoding(fitted.scheme_, OUTSIDE_LABEL)

    def codes(
        self, fitted: FittedLabels, y: Any, offsets: IntArray
    ) -> tuple[CodeArray, NDArray[np.bool_]]:
        """Return which codes tokens may have, and whether the model can have their labels: (N,).

        What labels leave open (how tokens outside are cut; how a run of labels is) is open there:
        see :mod:`crfkit.inference.constraints`. Sequences of tags that the scheme cannot write are
        not known, from the first to the last token.
        """
        coding, sequences = self.coding(fitted), lists(y)
        listed = are_segments(sequences, offsets)
        legible = np.ones(len(sequences), bool)
        if not listed:
            legible = ~illegible(sequences, coding.scheme, OUTSIDE_LABEL)
            sequences = [
                tags if good else [OUTSIDE_LABEL] * len(tags)
                for tags, good in zip(sequences, legible.tolist(), strict=True)
            ]
        coded = read_segments(sequences, offsets, fitted.scheme_, OUTSIDE_LABEL)
        size, names = len(coded.classes), coded.classes.tolist()
        which = coded.codes % max(size, 1)
        labels = coding.places(coded.classes, fitted.classes_)[which]
        known = (labels != UNKNOWN) & np.repeat(legible, np.diff(offsets))
        labels[~known] = 0
        open_ = np.array([name == OUTSIDE_LABEL for name in names], bool)[which]
        if coding.merges and not listed:
            open_[:] = True
        exact = labels + len(fitted.classes_) * (coded.codes >= size)
        return np.where(open_, EITHER - labels, exact).astype(np.int32), known

    def learned_from(self, weight: FloatArray, offsets: IntArray) -> NDArray[np.bool_]:
        """Return which sequences a model may learn from: lengths are learned from all, (S,)."""
        used = np.diff(np.concatenate([[0], np.cumsum(weight > 0.0)])[offsets]) > 0
        chosen: NDArray[np.bool_] = used | (np.diff(offsets) == 0)
        return chosen


def _join(codes: CodeArray, offsets: IntArray, classes: NDArray[np.object_], outside: str) -> None:
    """Make one segment of each run of tokens outside of spans, where these are to be long."""
    size, labels = len(classes), classes.tolist()
    if outside == "single" or OUTSIDE_LABEL not in labels:
        return
    k = labels.index(OUTSIDE_LABEL)
    again = np.zeros(len(codes), bool)
    again[1:] = (codes[1:] % size == k) & (codes[:-1] % size == k)
    again[offsets[:-1][offsets[:-1] < len(codes)]] = False
    codes[again] = k


def _cut(codes: CodeArray, offsets: IntArray, size: int, most: IntArray) -> None:
    """Cut the segments that are longer than what is given for their labels."""
    runs = segmentation_of(codes, offsets, size)
    for i in np.flatnonzero(runs.stop - runs.start > most[runs.label]):
        k = runs.label[i]
        codes[runs.start[i] : runs.stop[i] : most[k]] = k + size
