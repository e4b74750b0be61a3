"""What the codes of tokens say of spans: where one begins, goes on and ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import BoolArray, CodeArray, IntArray
from crfkit.labels.schemes import (
    CONLL,
    LETTERS,
    OUTSIDE,
    OUTSIDE_LABEL,
    Scheme,
    looks_like_tag,
    pair_index,
    parse_tag,
    tag_table,
)


class ReadSpans(NamedTuple):
    """Spans of all sequences: the first token of each, the one after its last, its type: (n,)."""

    start: IntArray
    stop: IntArray
    type: IntArray


class LabelReading(NamedTuple):
    """What codes say of spans.

    A span begins at a token whose code `opens` one after the code before it, takes in all that
    follow as long as each `continues` the one before, and is one if the last `closes` it.
    """

    types: list[Any]  # the labels of spans, (Y,)
    type_of: IntArray  # (C,) which of these a code has, -1 outside
    opens: BoolArray  # (C + 1, C) code (axis 1) after code (axis 0), the last row at the start
    continues: BoolArray  # (C, C) code (axis 1) goes on with the span of the code before (axis 0)
    closes: BoolArray  # (C, C + 1) the code (axis 0) is the last before code (axis 1), or the end

    def spans(self, codes: CodeArray, offsets: IntArray) -> ReadSpans:
        """Return the spans that the codes of tokens, (N,), stand for."""
        size = len(self.type_of)
        behind = np.append(codes[1:], size)[: len(codes)].astype(np.int64)
        before = np.concatenate([[size], codes[:-1]])[: len(codes)].astype(np.int64)
        filled = offsets[:-1] < offsets[1:]
        before[offsets[:-1][filled]] = behind[offsets[1:][filled] - 1] = size
        start = np.flatnonzero(self.opens[before, codes])
        ends = behind == size
        ends[~ends] = ~self.continues[codes[~ends], behind[~ends]]
        last = np.flatnonzero(ends)
        last = last[np.searchsorted(last, start)]
        closed = self.closes[codes[last], behind[last]]
        start, last = start[closed], last[closed]
        return ReadSpans(start, last + 1, self.type_of[codes[start]])


def read_labels(classes: Iterable[Any], scheme: Scheme | None = None) -> LabelReading:
    """Return what labels of tokens say: the code of each, (K,), is its place among them.

    By the rules of a scheme; ValueError or TypeError if a label is none of its tags. Without one,
    labels such as ``B-PER`` are read as tags, as the conlleval script does, and so are letters of
    tags alone, with ``B`` and another; of any other label, a run of equal ones is a span. "O" is
    outside. Labels that merely look like tags, no two of one type, are no tags beside others.
    """
    labels = list(classes)
    is_tag = np.ones(len(labels), bool) if scheme is not None else _are_tags(labels)
    rules = CONLL if scheme is None else scheme
    parsed = [
        parse_tag(label, rules) if tag else (OUTSIDE, "")
        for label, tag in zip(labels, is_tag.tolist(), strict=True)
    ]
    table = tag_table(parsed)
    pairs = pair_index(table.roles[:, None], table.roles, table.types[:, None] == table.types)
    continues = rules.continues[pairs]
    opens, closes = rules.opens[pairs] & ~continues, rules.closes[pairs]
    type_of, number = table.types[:-1].astype(np.int64), dict[Any, int]()
    number.update(zip(table.names, range(len(table.names)), strict=True))
    runs = np.flatnonzero(~is_tag)
    type_of[runs] = [number.setdefault(labels[k], len(number)) for k in runs]
    opens[:, runs] = closes[runs] = continues[runs, runs] = True
    opens[runs, runs] = closes[runs, runs] = False
    return LabelReading(list(number), type_of, opens[:, :-1], continues[:-1, :-1], closes[:-1])


def read_segment_codes(classes: Iterable[Any]) -> LabelReading:
    """Return what codes of segments say: ``k`` that one goes on, ``K + k`` that one begins."""
    labels = list(classes)
    inside = np.array([label != OUTSIDE_LABEL for label in labels], bool)
    types = [label for label, shown in zip(labels, inside.tolist(), strict=True) if shown]
    size, shown = len(labels), np.tile(inside, 2)
    type_of = np.where(shown, np.tile(np.cumsum(inside) - 1, 2), -1)
    begins = np.arange(2 * size) >= size
    same = type_of[:, None] == type_of
    continues = same & ~begins & shown
    closes = np.repeat(shown[:, None], 2 * size + 1, axis=1)
    closes[:, :-1] &= ~continues
    opens = np.repeat((begins & shown)[None], 2 * size + 1, axis=0)
    return LabelReading(types, type_of, opens, continues, closes)


def _are_tags(labels: list[Any]) -> BoolArray:
    """Return which labels are tags, "O" among them, or label tokens outside: (K,)."""
    others = [label for label in labels if label != OUTSIDE_LABEL]
    letters = "B" in others and len(others) > 1 and all(label in LETTERS for label in others)
    like = [letters or looks_like_tag(label) for label in others]
    types = [label[2:] for label, tag in zip(others, like, strict=True) if tag]
    if not all(like) and len(set(types)) == len(types):
        like = [False] * len(others)
    found = np.array([label == OUTSIDE_LABEL for label in labels], bool)
    found[~found] = like
    return found
