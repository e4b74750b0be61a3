"""What the codes of tokens say of spans: where one begins, goes on and ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from crfkit._types import BoolArray, LabelReading, ReadSpans
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

__all__ = ["LabelReading", "ReadSpans", "read_labels", "read_segment_codes"]


def read_labels(
    classes: Iterable[Any], scheme: Scheme | None = None, *, outside: bool = False
) -> LabelReading:
    """Return what labels of tokens say: the code of each, (K,), is its place among them.

    By the rules of a scheme; ValueError or TypeError if a label is none of its tags. Without one,
    labels such as ``B-PER`` are read as tags, as the conlleval script does, and so are letters of
    tags alone, with ``B`` and another; of any other label, a run of equal ones is a span. Labels
    that merely look like tags, no two of one type, are no tags beside others. "O" is outside; runs
    of it are spans too if that is asked for (`outside`).
    """
    labels = list(classes)
    is_tag = np.ones(len(labels), bool) if scheme is not None else _are_tags(labels)
    if outside:
        is_tag[[k for k, label in enumerate(labels) if label == OUTSIDE_LABEL]] = False
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


def read_segment_codes(classes: Iterable[Any], *, outside: bool = False) -> LabelReading:
    """Return what codes of segments say: ``k`` that one goes on, ``K + k`` that one begins.

    Those of tokens outside are spans if that is asked for.
    """
    labels = list(classes)
    inside = np.array([outside or label != OUTSIDE_LABEL for label in labels], bool)
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
