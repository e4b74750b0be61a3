"""Which scheme the labels of tokens follow, and which sequences of tags it cannot write."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit.data.labels import LabelStream
from crfkit.data.validation import token_place
from crfkit.labels.schemes import (
    CONLL,
    IO,
    IOB1,
    LETTERS,
    RUNS,
    get_scheme,
    is_tag,
    looks_like_tag,
    parse_tag,
)
from crfkit.labels.spans import detect_scheme, illegal_tags


def find_scheme(sequences: list[list[Any]], stream: LabelStream, outside: str) -> str:
    """Return the scheme that labels of tokens follow: that of their tags, or "runs".

    ValueError tells that they are tags but legal in no scheme, or may be tags as well as others.
    """
    labels: list[Any] = [label for label in stream.index if label != outside]
    tags = [label for label in labels if looks_like_tag(label)]
    if labels and len(tags) == len(labels):
        try:
            found = detect_scheme(sequences)
        except ValueError as error:
            raise ValueError(
                f"{error}; or, if the labels are no tags and their runs are segments, give "
                f"scheme={RUNS!r}."
            ) from error
        # A part of the data may lack the tags that tell IOB1 from IO, which merges what touches.
        return IOB1.name if found == IO.name else found
    # Tags of one type have several letters, which labels that only look like tags lack.
    if len({tag[2:] for tag in tags}) < len(tags):
        other = next(label for label in labels if label not in tags)
        likely = _likely_scheme([[t if t in tags else outside for t in s] for s in sequences])
        raise ValueError(
            f"{_place(other, stream)}: the label {other!r} is no tag such as {tags[0]!r}, which "
            f"others are. Say what they are: scheme={likely!r} (or another one) for tags, where "
            f"it has to be corrected; scheme={RUNS!r} for labels whose runs are segments."
        )
    if "B" in labels and len(labels) > 1 and all(label in LETTERS for label in labels):
        raise ValueError(
            f"{_place('B', stream)}: the labels are letters such as 'B', which may be tags without "
            f"a type. Say what they are: scheme={_likely_scheme(sequences)!r} (or another one) for "
            f"tags, scheme={RUNS!r} for labels whose runs are segments."
        )
    return RUNS


def illegible(sequences: list[list[Any]], scheme: str, outside: str) -> NDArray[np.bool_]:
    """Return which sequences of labels a scheme cannot write, whatever the segments: (S,)."""
    found = np.zeros(len(sequences), bool)
    if scheme == RUNS:
        return found
    rules, stream = get_scheme(scheme), LabelStream(sequences)
    foreign = np.array(
        [not is_tag(t, rules) or parse_tag(t, rules)[1] == outside for t in stream.index], bool
    )
    lengths = np.diff(stream.offsets)
    found[np.repeat(np.arange(len(sequences)), lengths)[foreign[stream.codes]]] = True
    rest = [[] if bad else tags for tags, bad in zip(sequences, found.tolist(), strict=True)]
    found[[one.sequence for one in illegal_tags(rest, scheme)]] = True
    return found


def _likely_scheme(sequences: list[list[Any]]) -> str:
    """Return a scheme in which tags are legal, or the one that reads any tags."""
    try:
        return detect_scheme(sequences)
    except ValueError:
        return CONLL.name


def _place(label: Any, stream: LabelStream) -> str:
    """Return what messages call the first token that has a label."""
    return token_place(stream.offsets, int(np.argmax(stream.codes == stream.index[label])))
