"""Labels that seem to mean something else than labels."""

from __future__ import annotations

import re
from collections.abc import Collection
from numbers import Real
from typing import Any

import numpy as np

from crfkit._warnings import warn_user
from crfkit.data.labels import LabelStream

_PADDING = re.compile(r"\W*_*(end)?pad(ding)?_*\W*", re.IGNORECASE)
IGNORED = -100  # the label of tokens that losses of PyTorch leave out


def check_labels(stream: LabelStream, known: Collection[Any] = ()) -> None:
    """Raise ValueError, or warn, where labels seem to mean something else than labels.

    That is -100, as PyTorch and Hugging Face mark tokens that do not count, among numbers from -1
    on or strings; -1 that only fills sequences up to one length; numbers and the same as strings.
    Labels that are `known` to the model are what they are.
    """
    if is_ignored(stream.index) and IGNORED not in known:
        raise ValueError(
            f"{stream.place_of(IGNORED)}: the label is -100, which marks tokens that do not "
            f"count, but would be learned as a label. {_WITHOUT_LABEL}"
        )
    if -1 in stream.index and -1 not in known and _is_padded(stream):
        warn_user(
            f"{stream.place_of(-1)}: the label is -1, as in all sequences that have it from some "
            "token to the end, and all are of one length. It is learned as a label; if it fills "
            f"short sequences up, remove it. {_WITHOUT_LABEL}"
        )
    strings = {label for label in stream.index if isinstance(label, str)}
    filling = next((label for label in strings - set(known) if _PADDING.fullmatch(label)), None)
    if filling is not None:
        warn_user(
            f"{stream.place_of(filling)}: the label is {filling!r}, which is learned as a label. "
            "If it fills short sequences up, cut what is filled up off X and y: sequences may be "
            "of any lengths."
        )
    mark = str(IGNORED)
    if mark in strings - set(known) and all(label.isdigit() for label in strings - {mark}):
        warn_user(
            f"{stream.place_of(mark)}: the label is {mark!r}, which is learned as a label. If it "
            "marks tokens that do not count, leave them out of X and y, or give them "
            "crfkit.UNLABELED."
        )
    padded = (label for label in strings if label.strip() != label)
    blanks = next((label for label in padded if label.strip() in strings), None)
    if blanks is not None:
        warn_user(
            f"y has the labels {blanks!r} and {blanks.strip()!r}, which are two different labels: "
            "strip blanks off, if they are meant to be one."
        )
    if len(strings) < len(stream.index):
        twins = [label for label in stream.index.keys() - strings if str(label) in strings]
        if twins:
            warn_user(
                f"y has the labels {twins[0]!r} and {str(twins[0])!r}, which are two different "
                "labels: convert all to one type."
            )


def is_ignored(labels: Collection[Any]) -> bool:
    """Whether -100 among labels marks tokens that do not count, rather than a label."""
    return IGNORED in labels and _are_usual(set(labels) - {IGNORED})


def _are_usual(others: Any) -> bool:
    """Whether labels are strings, or numbers from -1 on, which -100 does not go with."""
    if not others or {100} <= set(others) <= {0, 100}:
        return False
    return all(isinstance(x, str) or (isinstance(x, Real) and float(x) >= -1.0) for x in others)


_WITHOUT_LABEL = (
    "Leave these tokens out of X and y; or, where they are tokens of an unknown label, give them "
    "crfkit.UNLABELED. If it is a label indeed, give it a name, such as 'minus 100'."
)


def _is_padded(stream: LabelStream) -> bool:
    """Whether -1 stands at ends of sequences of one length only, after labels from 0 on."""
    lengths = np.diff(stream.offsets)
    others = stream.index.keys() - {-1}
    if len(lengths) < 2 or np.any(lengths != lengths[0]) or 0 not in others:
        return False
    if not all(isinstance(label, Real) and label >= 0 for label in others):
        return False
    filled = (stream.codes == stream.index[-1]).reshape(len(lengths), -1)
    return bool(not filled[:, 0].any() and np.all(filled[:, 1:] >= filled[:, :-1]))
