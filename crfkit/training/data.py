"""Labeled sequences, read and checked: what a model is fitted to, or scored on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data import LabelSequences, PackedSequences
from crfkit.data.labels import LabelStream
from crfkit.data.packed import ranges
from crfkit.data.validation import (
    check_lengths,
    check_sample_weight,
    check_training,
    warn_if_badly_scaled,
)
from crfkit.features import SequenceVectorizer
from crfkit.labels.base import Coded, LabelCoding
from crfkit.labels.costs import Cost, make_cost
from crfkit.labels.tokens import TokenCoding
from crfkit.training.input import Schema, pack_new, pack_training

Read = Callable[[Any, IntArray], Coded]
LABELS: LabelCoding = TokenCoding()
Pack = Callable[[Any], tuple[PackedSequences, SequenceVectorizer | None]]


class TrainingData(NamedTuple):
    """What a model is fitted to.

    Attributes
    ----------
    data : PackedSequences
        S sequences of N tokens with D attributes.
    vectorizer : SequenceVectorizer or None
        The vocabulary, if one was learned.
    classes : ndarray of shape (K,)
        Labels.
    codes : ndarray of shape (N,)
        Label codes.
    weight : ndarray of shape (N,)
        Token weights.
    known : ndarray of shape (K2,) or None
        Labels of the whole data, where this is a part; None if those are the classes.
    coding : LabelCoding
        What the codes stand for.
    """

    data: PackedSequences
    vectorizer: SequenceVectorizer | None
    classes: NDArray[np.object_]
    codes: CodeArray
    weight: FloatArray
    known: NDArray[np.object_] | None = None
    coding: LabelCoding = LABELS

    def cost(self, cost: Any) -> Cost:
        """Return a cost for these classes, given what the user says of those of the whole data."""
        if self.known is None:
            return self.coding.cost(make_cost(cost, self.classes))
        place = {label: code for code, label in enumerate(self.known.tolist())}
        codes = np.array([place[label] for label in self.classes.tolist()], np.int64)
        return self.coding.cost(make_cost(cost, self.known).of_labels(codes))

    @property
    def labels(self) -> LabelSequences:
        """The labels as sequences."""
        return self.coding.write(self.codes, self.classes, self.data.offsets)

    def take(self, sequences: IntArray) -> TrainingData:
        """Return some of the sequences, with the labels that occur in them.

        Attributes keep their columns. Those that none of the sequences has get no weights where
        only observed pairs do, and weights of 0 otherwise, so that the model is the one of the
        sequences alone.

        Raises
        ------
        ValueError
            If all their weights are 0.
        """
        data = self.data
        tokens = ranges(data.offsets[:-1][sequences], data.lengths[sequences])
        present, codes = self.coding.restrict(self.codes[tokens], len(self.classes))
        weight = self.weight[tokens]
        if not weight.any():
            raise ValueError(
                "the sequences that are left to learn from all have the sample weight 0: give "
                "more sequences, or leave out those of weight 0."
            )
        return TrainingData(
            data[sequences], self.vectorizer, self.classes[present], codes, weight,
            self.classes if self.known is None else self.known, self.coding,
        )  # fmt: skip


class Labeled(NamedTuple):
    """Sequences with their labels, to score a model on."""

    data: PackedSequences
    labels: LabelSequences


def read_training(
    X: Any, y: Any, sample_weight: Any, *, read: Read, pack: Pack = pack_training
) -> TrainingData:
    """Read and check what a model is to be fitted to.

    Parameters
    ----------
    X, y, sample_weight
        What `fit` was given.
    read : callable
        From y and where the sequences start to codes.
    pack : callable
        From X to packed features and their vocabulary, if they have one.
    """
    data, vectorizer = pack(X)
    classes, codes, coding = read(y, data.offsets)
    check_training(data)
    weight = check_sample_weight(sample_weight, data.offsets)
    warn_if_badly_scaled(data)
    if data.transitions is not None:
        warn_if_badly_scaled(data.transitions, "of transitions ")
    if data.segments is not None:
        warn_if_badly_scaled(data.segments.rows, "of segments ")
    return TrainingData(data, vectorizer, classes, codes, weight, coding=coding)


def read_validation(X: Any, y: Any, training: TrainingData) -> Labeled:
    """Read and check what a model is to be scored on; errors say that it is X_val or y_val."""
    try:
        data = pack_new(X, training.vectorizer, training.data.n_features)
        schema = Schema.of(training.data)
        schema.check_counts(data)
        schema.check_names(data)
        stream = LabelStream(training.coding.as_predicted(y, data.offsets))
        check_lengths(data.offsets, stream.offsets, "y")
    except (TypeError, ValueError) as error:
        raise type(error)(f"in X_val or y_val: {error}") from error
    if not data.n_tokens:
        raise ValueError("X_val has no tokens: there is nothing to score the model on.")
    classes = stream.classes()
    codes = stream.codes_for(classes)
    return Labeled(data, LabelSequences.from_codes(codes, classes, data.offsets))
