"""Labels that are distributions."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from crfkit._params import check_number
from crfkit._types import CodeArray, FloatArray, IntArray, ObjectArray
from crfkit.data.label_checks import check_labels
from crfkit.data.labels import (
    LabelSequences,
    LabelStream,
    check_lengths,
    iterate_sequences,
    object_array,
    sorted_labels,
)
from crfkit.data.packed import ranges
from crfkit.data.validation import token_place

# Probabilities of a token may miss 1 by so much, as those of 32 bits do; they are rescaled.
ROUNDING = 1e-4


class SoftLabels:
    """A distribution over labels for each token: what a teacher, or several annotators, say.

    As `y` in `fit` of :class:`crfkit.CRFClassifier` with the log loss, the labels of tokens count
    as independent draws from it. It can be indexed as an array of sequences, so folds, pipelines
    and searches take it. Where predictions are compared with it, by scorers, they are compared with
    the most probable labels.

    Parameters
    ----------
    probabilities : iterable of S arrays of shape (T, K)
        Those of the K labels at each token, as `predict_proba` returns them.
    classes : sequence of K labels
        The labels of the columns.

    Attributes
    ----------
    probabilities : ndarray of shape (N, K)
        Those of all tokens. Read-only.
    classes : ndarray of shape (K,)
        The labels.
    offsets : ndarray of shape (S + 1,)
        Where the sequences start in `probabilities`, and the end.

    Raises
    ------
    ValueError, TypeError
        If the arrays do not have K columns, or a number is no probability, or those of a token do
        not add up to 1; the message says where.

    Examples
    --------
    >>> from crfkit import SoftLabels
    >>> y = SoftLabels([[[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5]]], ["A", "B"])
    >>> len(y), y.argmax()
    (2, [['A', 'B'], ['A']])
    >>> SoftLabels.from_votes([[["A", "B"]], [["A", "C"]]])[0].tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
    """

    def __init__(
        self, probabilities: Iterable[ArrayLike], classes: Sequence[Hashable] | ObjectArray
    ) -> None:
        self.classes = _distinct(classes)
        rows = [
            _table(s, each, len(self.classes))
            for s, each in enumerate(iterate_sequences(probabilities, "probabilities"))
        ]
        self.offsets: IntArray = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        table = np.concatenate([np.empty((0, len(self.classes))), *rows])
        self.probabilities = _checked(table, self.offsets)

    @classmethod
    def of_table(cls, table: FloatArray, classes: ObjectArray, offsets: IntArray) -> Self:
        """Return labels of probabilities that are known to be such."""
        found = cls.__new__(cls)
        table.flags.writeable = False
        found.probabilities, found.classes, found.offsets = table, classes, offsets
        return found

    @classmethod
    def from_dicts(
        cls,
        y: Iterable[Iterable[Mapping[Hashable, float]]],
        classes: Sequence[Hashable] | ObjectArray | None = None,
    ) -> Self:
        """Return those of a dict ``{label: probability}`` for each token.

        As `predict_marginals` returns them; labels that a dict lacks have the probability 0.
        """
        sequences = [list(sequence) for sequence in iterate_sequences(y, "y")]
        offsets: IntArray = np.cumsum([0, *map(len, sequences)], dtype=np.int64)
        tokens = list(itertools.chain.from_iterable(sequences))
        for token, given in enumerate(tokens):
            if not isinstance(given, Mapping):
                raise TypeError(
                    f"{token_place(offsets, token)}: {given!r:.60} is no dict of the "
                    "probabilities of labels; for labels take SoftLabels.from_labels."
                )
        found = LabelStream([list(given) for given in tokens])
        known = found.classes() if classes is None else _distinct(classes)
        columns = found.codes_for(known)
        values = np.array([p for given in tokens for p in given.values()], np.float64)
        rows = np.repeat(np.arange(len(tokens)), np.diff(found.offsets))
        for entry in np.flatnonzero((columns < 0) & (values != 0.0))[:1].tolist():
            label = list(found.index)[found.codes[entry]]
            raise ValueError(
                f"{token_place(offsets, rows[entry])}: the label {label!r} is none of the classes."
            )
        table = np.zeros((len(tokens), len(known)))
        table[rows[columns >= 0], columns[columns >= 0]] = values[columns >= 0]
        return cls.of_table(_checked(table, offsets), known, offsets)

    @classmethod
    def from_labels(
        cls,
        y: Iterable[Iterable[Hashable]],
        classes: Sequence[Hashable] | ObjectArray | None = None,
    ) -> Self:
        """Return those of labels that are certain: the probability 1 of one label a token."""
        return cls.from_votes([y], classes)

    @classmethod
    def from_votes(
        cls,
        annotations: Iterable[Iterable[Iterable[Hashable]]],
        classes: Sequence[Hashable] | ObjectArray | None = None,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Return the shares of votes: for each annotator, labels of all sequences.

        ``UNLABELED`` is no vote, a set of labels an equal share for each. `weights` are those of
        the annotators.
        """
        streams = [LabelStream(y, partial=True) for y in annotations]
        if not streams:
            raise ValueError("annotations are none: give the labels of one annotator at least.")
        offsets = streams[0].offsets
        for number, stream in enumerate(streams):
            check_lengths(offsets, stream.offsets, f"annotation {number}")
            check_labels(stream)
        if classes is None:
            known = sorted_labels(label for stream in streams for label in stream.index)
        else:
            known = _distinct(classes)
        votes = np.zeros((int(offsets[-1]), len(known)))
        for stream, weight in zip(streams, _weights(weights, len(streams)), strict=True):
            votes += weight * label_shares(stream, known)
        total = votes.sum(axis=1, keepdims=True)
        if len(total) and not total.all():
            raise ValueError(
                f"{token_place(offsets, int(np.argmin(total)))}: nobody has voted for a label of "
                "the token. Leave its sequence out, or give a distribution that says nothing."
            )
        return cls.of_table(votes / total, known, offsets)

    def argmax(self) -> LabelSequences:
        """Return the most probable labels, of equal ones the first."""
        return LabelSequences.from_codes(self.codes, self.classes, self.offsets)

    @property
    def codes(self) -> CodeArray:
        """The column of the most probable label of each token, shape (N,)."""
        found: CodeArray = self.probabilities.argmax(axis=1).astype(np.int32)
        return found

    @property
    def shape(self) -> tuple[int]:
        """``(S,)``: as an array of sequences, which is how scikit-learn indexes it."""
        return (len(self),)

    def table_for(self, classes: ObjectArray) -> FloatArray:
        """Return the probabilities with other columns, (N, K); ValueError if one lacks a label."""
        places = {label: column for column, label in enumerate(self.classes.tolist())}
        columns = [places.get(label, -1) for label in classes.tolist()]
        left = sorted(set(range(len(self.classes))) - set(columns))
        for column in left:
            token = int(np.argmax(self.probabilities[:, column]))
            if self.probabilities[:, column].any():
                raise ValueError(
                    f"{token_place(self.offsets, token)}: the label {self.classes[column]!r} is "
                    "not one of the classes."
                )
        padded = np.column_stack([self.probabilities, np.zeros(len(self.probabilities))])
        return np.ascontiguousarray(padded[:, columns])

    def pruned(self, least: float) -> SoftLabels:
        """Return the labels without probabilities below `least`, those left being rescaled.

        A pair of an attribute and a label gets a weight where the label has a probability above 0,
        so that this makes models smaller. The most probable label always stays.
        """
        check_number("least", least)
        kept = self.probabilities >= least
        kept[np.arange(len(kept)), self.codes] = True
        table = np.where(kept, self.probabilities, 0.0)
        table /= table.sum(axis=1, keepdims=True)
        return self.of_table(table, self.classes, self.offsets)

    def mixed(self, other: SoftLabels, share: float) -> SoftLabels:
        """Return ``(1 - share)`` of these probabilities plus `share` of others, of equal lengths.

        A teacher is often mixed with the true labels, or these with a uniform distribution.
        """
        check_number("share", share)
        if share > 1.0:
            raise ValueError(f"share={share!r} must be between 0 and 1.")
        check_lengths(self.offsets, other.offsets, "other")
        known = sorted_labels([*self.classes, *other.classes])
        parts = self.table_for(known), other.table_for(known)
        return self.of_table((1.0 - share) * parts[0] + share * parts[1], known, self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[FloatArray]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        """Return the probabilities of one sequence, shape (T, K), or of the chosen sequences."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # scikit-learn indexes what has a shape with [key, ...]
        if isinstance(key, (int, np.integer)):
            begin, end = self.offsets[range(len(self))[key] :][:2]
            return self.probabilities[begin:end]
        if not isinstance(key, slice):
            key = np.asarray(key)
            if key.dtype == bool and key.shape != self.shape:
                raise IndexError(f"a mask of shape {key.shape} for {len(self)} sequences")
            key = key if key.size else key.astype(np.int64)
        chosen, lengths = np.arange(len(self))[key], np.diff(self.offsets)
        tokens = ranges(self.offsets[:-1][chosen], lengths[chosen])
        offsets = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64)
        return self.of_table(self.probabilities[tokens], self.classes, offsets)

    def __add__(self, other: SoftLabels) -> SoftLabels:
        """Return the sequences of both, one after the other; labels may differ."""
        if not isinstance(other, SoftLabels):
            return NotImplemented
        known = sorted_labels([*self.classes, *other.classes])
        table = np.concatenate([self.table_for(known), other.table_for(known)])
        offsets = np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]])
        return self.of_table(table, known, offsets)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SoftLabels):
            return NotImplemented
        pairs = (
            (self.classes, other.classes),
            (self.offsets, other.offsets),
            (self.probabilities, other.probabilities),
        )
        return all(np.array_equal(*pair) for pair in pairs)

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> ObjectArray:
        if copy is False:
            raise ValueError("SoftLabels is no array of sequences: one of it is always a copy.")
        return object_array(self)

    def __repr__(self) -> str:
        return (
            f"<SoftLabels: {len(self):,} sequences, {len(self.probabilities):,} tokens, "
            f"{len(self.classes):,} labels>"
        )


def most_probable(y: Any) -> Any:
    """Return labels to compare predictions with: of distributions, the most probable ones."""
    return y.argmax() if isinstance(y, SoftLabels) else y


def label_shares(stream: LabelStream, classes: ObjectArray) -> FloatArray:
    """Return 1 for the label of each token, equal shares of several, 0 where it is `UNLABELED`.

    The shape is (N, K); ValueError if a label is none of the classes.
    """
    known = set(classes)
    for label in stream.index:
        if label not in known:
            place = stream.place_of(label)
            raise ValueError(f"{place}: the label {label!r} is none of the classes.")
    allowed = stream.allowed_for(classes)
    if allowed is None:
        return np.eye(len(classes))[stream.codes_for(classes)]
    shares = allowed.astype(np.float64)
    shares[stream.unlabeled] = 0.0
    counts = shares.sum(axis=1, keepdims=True)
    found: FloatArray = np.divide(shares, counts, out=shares, where=counts > 0.0)
    return found


def _weights(given: ArrayLike | None, count: int) -> FloatArray:
    """Return the weights of annotators, shape (n,)."""
    if given is None:
        return np.ones(count)
    weights = np.asarray(given, np.float64)
    if weights.shape != (count,) or not np.all(np.isfinite(weights) & (weights >= 0.0)):
        raise ValueError(
            f"weights={given!r:.60} must be a number for each of the {count} annotators, finite "
            "and not negative."
        )
    return weights


def _distinct(classes: Sequence[Hashable] | ObjectArray) -> ObjectArray:
    """Return labels as an array; ValueError if one comes twice."""
    if isinstance(classes, (str, bytes)):
        raise TypeError(f"classes={classes!r:.60} must be a list of labels.")
    stream = LabelStream([list(classes)])
    if len(stream.index) != len(stream.codes):
        raise ValueError(f"classes={list(classes)!r:.80} has a label twice.")
    return object_array(stream.index)


def _table(s: int, given: ArrayLike, n_labels: int) -> FloatArray:
    """Return the probabilities of a sequence, shape (T, K)."""
    try:
        table = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"sequence {s}: the probabilities are no array of shape (T, {n_labels}) of numbers."
        ) from error
    if table.shape == (0,):
        table = table.reshape(0, n_labels)
    if table.ndim != 2 or table.shape[1] != n_labels:
        raise ValueError(
            f"sequence {s}: the probabilities have the shape {table.shape}, not (T, {n_labels}), "
            f"for {n_labels} classes."
        )
    return table


def _checked(table: FloatArray, offsets: IntArray) -> FloatArray:
    """Return probabilities whose rows add up to 1, but for rounding, and do so then."""
    bad = np.argwhere(~(table >= 0.0) | np.isinf(table))
    if len(bad):
        token, column = bad[0]
        raise ValueError(
            f"{token_place(offsets, token)}: {table[token, column]} is no probability."
        )
    total = table.sum(axis=1, keepdims=True)
    off = np.flatnonzero(np.abs(total - 1.0) > ROUNDING)
    if len(off):
        raise ValueError(
            f"{token_place(offsets, off[0])}: the probabilities add up to {total[off[0], 0]:g}, "
            "not to 1."
        )
    found: FloatArray = table / total
    found.flags.writeable = False
    return found
