"""What the codes of tokens say of spans: where one begins, goes on and ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from crfkit._types import LabelReading, ReadSpans
from crfkit.data.labels import UNLABELED
from crfkit.labels.schemes import (
    CONLL,
    INSIDE,
    LETTERS,
    OUTSIDE,
    OUTSIDE_LABEL,
    Scheme,
    get_scheme,
    is_tag,
    looks_like_tag,
    pair_index,
    parse_tag,
    tag_table,
    write_tag,
)

# Of tags: whether letters come last, and what stands between them and types.
NOTATIONS = ((False, "_"), (True, "-"), (True, "_"))

__all__ = ["LabelReading", "ReadSpans", "as_typed_tags", "read_labels", "read_segment_codes"]


def read_labels(
    classes: Iterable[Any], scheme: Scheme | None = None, *, outside: bool = False
) -> LabelReading:
    """Return what labels of tokens say: the code of each, (K,), is its place among them.

    By the rules of a scheme; ValueError or TypeError if a label is none of its tags. Without one,
    labels such as ``B-PER`` are read as tags, as the conlleval script does. So are ``B_PER``,
    ``PER-B`` and ``PER_B`` where all labels are written so, and letters alone, with ``B`` and
    another. Of any other label, a run of equal ones is a span. Labels that merely look like tags,
    no two of one type, are no tags beside others. "O" is outside; runs of it are spans too if that
    is asked for (`outside`).
    """
    labels = list(classes)
    others = [label for label in labels if label != OUTSIDE_LABEL]
    tags, rules = _tags_among(others) if scheme is None else (others, scheme)
    read = {tag: parse_tag(tag, rules) for tag in tags}
    table = tag_table([read.get(label, (OUTSIDE, "")) for label in labels])
    pairs = pair_index(table.roles[:, None], table.roles, table.types[:, None] == table.types)
    continues = rules.continues[pairs]
    opens, closes = rules.opens[pairs] & ~continues, rules.closes[pairs]
    type_of, number = table.types[:-1].astype(np.int64), dict[Any, int]()
    number.update(zip(table.names, range(len(table.names)), strict=True))
    hidden = set(read) if outside else {*read, OUTSIDE_LABEL}
    runs = [k for k, label in enumerate(labels) if label not in hidden]
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


def as_typed_tags(
    classes: Iterable[Any], *labels: Iterable[Iterable[Any]]
) -> tuple[list[list[list[Any]]], dict[str, Any]] | None:
    """Return sequences of labels as tags such as ``B-PER`` that are read as a model's labels are.

    None if none of these is a tag. A label whose runs are spans becomes an ``I-``. `UNLABELED` and
    sets stay such. And what the types are called that are written otherwise.
    """
    others = [label for label in classes if label != OUTSIDE_LABEL]
    tags, rules = _tags_among(others)
    if not tags:
        return None
    runs, names = set(others) - set(tags), dict[str, Any]()

    def written(label: Any) -> Any:
        if isinstance(label, (set, frozenset)):
            return frozenset(map(written, label))
        if label is UNLABELED or label == OUTSIDE_LABEL:
            return label
        if label not in runs and is_tag(label, rules):
            return write_tag(*parse_tag(label, rules), CONLL)
        names[str(label)] = label
        return write_tag(INSIDE, str(label), CONLL)

    return [[list(map(written, own)) for own in each] for each in labels], names


def _tags_among(labels: list[Any]) -> tuple[list[Any], Scheme]:
    """Return the labels that are tags, and how they are written."""
    if "B" in labels and len(labels) > 1 and all(label in LETTERS for label in labels):
        return labels, CONLL
    tags = [label for label in labels if looks_like_tag(label)]
    if len(tags) == len(labels) or _share_types(tags, CONLL):
        return tags, CONLL
    for suffix, delimiter in NOTATIONS:
        rules = get_scheme(CONLL.name, suffix, delimiter)
        written = all(is_tag(label, rules) and rules.split(label)[1] for label in labels)
        if written and _share_types(labels, rules):
            return labels, rules
    return [], CONLL


def _share_types(tags: list[Any], rules: Scheme) -> bool:
    """Whether two tags are of one type."""
    return len({rules.split(tag)[1] for tag in tags}) < len(tags)
