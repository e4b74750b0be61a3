"""Lists of label sequences as flat integer arrays: the input side of every metric."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain, compress
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from crfkit.data.label_checks import IGNORED, is_ignored
from crfkit.data.labels import UNLABELED, by_sequence, iterate_sequences, label_list
from crfkit.data.soft import most_probable
from crfkit.data.validation import token_place
from crfkit.labels.fields import has_names, is_hashable, segment_fields

Sequences: TypeAlias = Iterable[Iterable[Hashable]] | npt.NDArray[Any]
Weights: TypeAlias = Iterable[Any] | npt.NDArray[Any]
IntArray: TypeAlias = npt.NDArray[np.intp]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


# Types of what is no single label.
SETS = {set, frozenset, type(UNLABELED)}


class FlatLabels(NamedTuple):
    """The labels of all sequences one after another, and how many each sequence has."""

    labels: list[Any]
    lengths: IntArray  # (S,)

    @property
    def offsets(self) -> IntArray:
        """Where the sequences start, and the end, (S + 1,)."""
        return np.append(0, np.cumsum(self.lengths))

    @property
    def known(self) -> BoolArray:
        """Which tokens are not `UNLABELED`, (N,)."""
        if type(UNLABELED) not in set(map(type, self.labels)):
            return np.ones(len(self.labels), bool)
        return np.array([label is not UNLABELED for label in self.labels], bool)

    def take(self, tokens: BoolArray) -> FlatLabels:
        """Return the labels of chosen tokens, (N,)."""
        lengths = np.bincount(sequence_index(self.lengths)[tokens], minlength=len(self.lengths))
        return FlatLabels(list(compress(self.labels, tokens)), lengths.astype(np.intp))


def flatten(y: Sequences, name: str) -> FlatLabels:
    """Flatten sequences of labels; TypeError, which says ``name``, if one is no sequence."""
    sequences = as_lists(y, name)
    lengths = np.fromiter(map(len, sequences), np.intp, len(sequences))
    return FlatLabels(list(chain.from_iterable(sequences)), lengths)


def as_lists(y: Sequences, name: str) -> list[list[Any] | tuple[Any, ...]]:
    """Return sequences as lists or tuples, of distributions the most probable labels.

    ``name`` is what errors call the argument.
    """
    return [
        labels if isinstance(labels, (list, tuple)) else label_list(s, labels, name)
        for s, labels in enumerate(iterate_sequences(most_probable(y), name))
    ]


def flatten_pair(y_true: Sequences, y_pred: Sequences) -> tuple[FlatLabels, FlatLabels]:
    """Flatten labels of tokens, truth and prediction together; raises if they do not match.

    A set in the truth becomes the predicted label, where it has it, else the first that it has.
    """
    if hasattr(y_true, "to_numpy"):  # maybe a column of a frame
        y_pred = as_lists(y_pred, "y_pred")
        y_true = by_sequence(y_true, np.cumsum([0, *map(len, y_pred)]))
    given = as_lists(y_true, "y_true"), as_lists(y_pred, "y_pred")
    _refuse_segments(*given)
    true, pred = flatten(given[0], "y_true"), flatten(given[1], "y_pred")
    check_same_lengths(true.lengths, pred.lengths, "y_pred")
    plain = {label for label in true.labels if isinstance(label, (str, Real))}
    if is_ignored(plain) and IGNORED not in pred.labels:
        place = token_place(true.offsets, true.labels.index(IGNORED))
        raise ValueError(
            f"{place} of y_true: the label is -100, "
            "which marks tokens that do not count, but would count as an error. Leave these tokens "
            "out of y_true and y_pred, or give them crfkit.UNLABELED in y_true."
        )
    return resolve(true, pred), pred


def resolve(true: FlatLabels, pred: FlatLabels) -> FlatLabels:
    """Return the truth with one label in place of each set of labels.

    That is the predicted one, where it is in the set, else the first of the set. ValueError if a
    prediction is no label.
    """
    for token, label in enumerate(pred.labels if SETS & set(map(type, pred.labels)) else ()):
        if type(label) in SETS:
            place = token_place(pred.offsets, token)
            raise ValueError(f"{place} of y_pred: {label!r:.60} is no label that can be predicted.")
    if not SETS & set(map(type, true.labels)) - {type(UNLABELED)}:
        return true
    found = list(true.labels)
    for token, label in enumerate(found):
        if isinstance(label, (set, frozenset)):
            if not label:
                place = token_place(true.offsets, token)
                raise ValueError(f"{place} of y_true: the set of labels is empty.")
            predicted = pred.labels[token]
            is_right = is_hashable(predicted) and predicted in label
            found[token] = predicted if is_right else sorted_labels(set(label))[0]
    return FlatLabels(found, true.lengths)


def names_of(*sequences: Iterable[Any]) -> set[Any]:
    """Return the labels that stand in some lists, those in sets too, without `UNLABELED`."""
    found: set[Any] = set()
    for label in chain.from_iterable(sequences):
        found.update(label if isinstance(label, (set, frozenset)) else (label,))
    return found - {UNLABELED}


def encode_labels(
    *flats: FlatLabels, extra: Iterable[Hashable] = ()
) -> tuple[list[Any], list[IntArray]]:
    """Return the distinct labels of all arguments, sorted, and for each its codes, shape (N,)."""
    vocabulary = sorted_labels(set(extra).union(*(_distinct(flat) for flat in flats)))
    index = {label: code for code, label in enumerate(vocabulary)}
    codes = [
        np.fromiter(map(index.__getitem__, flat.labels), np.intp, len(flat.labels))
        for flat in flats
    ]
    return vocabulary, codes


def token_weights(sample_weight: Weights, lengths: IntArray) -> FloatArray:
    """Return weights of sequences or of tokens for each token, (N,); ValueError if none fit."""
    rows = list(sample_weight)
    if all(np.ndim(row) == 0 for row in rows):
        weights = np.asarray(rows, dtype=np.float64)
        if len(weights) not in (len(lengths), lengths.sum()):
            raise ValueError(
                f"sample_weight has {len(weights)} values, but there are {len(lengths)} sequences "
                f"and {lengths.sum()} tokens"
            )
        return np.repeat(weights, lengths) if len(weights) == len(lengths) else weights
    row_lengths = np.fromiter(map(len, rows), np.intp, len(rows))
    check_same_lengths(lengths, row_lengths, "sample_weight")
    return np.asarray(list(chain.from_iterable(rows)), dtype=np.float64)


def shown_names(labels: Iterable[Any]) -> list[str]:
    """Return different names for different labels: 1 and "1" would be one key of a dictionary."""
    labels = list(labels)
    names = [str(label) for label in labels]
    return names if len(set(names)) == len(names) else [repr(label) for label in labels]


def sequence_index(lengths: IntArray) -> IntArray:
    """Return for each token the index of its sequence."""
    return np.repeat(np.arange(len(lengths), dtype=np.intp), lengths)


def _refuse_segments(true: list[Any], pred: list[Any]) -> None:
    """Raise TypeError for segments; a plain triple may be a label, if both sides have as many."""
    firsts = [[sequence[0] for sequence in y if len(sequence)] for y in (true, pred)]
    found = [next(filter(segment_fields, first), None) for first in firsts]
    labels = [*map(len, true)] == [*map(len, pred)] and not any(map(has_names, found))
    for name, segment in zip(("y_true", "y_pred"), found, strict=True):
        if segment is not None and not labels:
            raise TypeError(
                f"{name} has segments, such as {segment!r:.60}, but labels of tokens are compared "
                "here: take segment_f1_score (as a scorer, 'segment_f1'), or write segments as "
                "tags with tags_from_spans."
            )


def _distinct(flat: FlatLabels) -> set[Any]:
    try:
        return set(flat.labels)
    except TypeError:
        token = next(i for i, label in enumerate(flat.labels) if not is_hashable(label))
    raise TypeError(
        f"the label at {token_place(flat.offsets, token)} is not hashable: "
        f"{flat.labels[token]!r}; labels are strings, numbers, tuples ..."
    )


def sorted_labels(labels: set[Any]) -> list[Any]:
    """Return labels in their order; where they have none, by type and name."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, repr(label)))


def check_same_lengths(expected: IntArray, found: IntArray, name: str) -> None:
    """Raise ValueError unless sequences are as many and as long as those of y_true."""
    if len(expected) != len(found):
        raise ValueError(f"y_true has {len(expected)} sequences but {name} has {len(found)}")
    differs = np.flatnonzero(expected != found)
    if len(differs):
        i = differs[0]
        raise ValueError(
            f"sequence {i} has {expected[i]} labels in y_true but {found[i]} in {name}"
        )
