"""Features and labels in any accepted form, read and checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray, ObjectArray
from crfkit._warnings import warn_user
from crfkit.data import LabelSequences, PackedSequences
from crfkit.data.labels import (
    LabelStream,
    by_sequence,
    check_lengths,
    check_sample_weight,
    iterate_sequences,
)
from crfkit.data.names import Names, name_array
from crfkit.data.packed import ranges
from crfkit.data.targets import Targets
from crfkit.data.validation import is_matrix, warn_of_one
from crfkit.features import SequenceVectorizer
from crfkit.labels.base import Coded, LabelCoding, LabelSpace, TokenCoding, TokenLabels
from crfkit.labels.costs import Cost, make_cost
from crfkit.labels.segments import SegmentLabels
from crfkit.potentials.blocks import NAMES_OF, TOKENS, features_of
from crfkit.training.mistakes import swapped_are_told, told_of_dicts, warn_if_padded, warn_of_rows

LABELS: LabelCoding = TokenCoding()
SHOWN_NAMES = 5  # of each kind in a message
MOST_LABELS = 20_000
# Fitted attributes whose names do not end as those of scikit-learn.
PRIVATE = (*NAMES_OF.values(), "_partial_state")
Packed = tuple[PackedSequences, Any]  # sequences, and what made them: a fitted transformer or None


def learn_vocabulary(sequences: Any) -> Packed:
    """Pack sequences of dicts or strings."""
    vectorizer = SequenceVectorizer()
    return vectorizer.fit_transform(sequences), vectorizer


def pack_training(
    X: Any, y: Any = None, features: Any = None, learn: Callable[[Any], Packed] = learn_vocabulary
) -> Packed:
    """Pack training features; where they need it, fit a clone of `features` or a vocabulary."""
    if features is not None:
        return pack_made(X, y, features, pack_training)
    if isinstance(X, PackedSequences):
        return X, None
    matrices, sequences = _look_ahead(X)
    if matrices:
        return PackedSequences.from_matrices(sequences), None
    warn_of_rows(X)
    return learn(sequences)


def pack_made(X: Any, y: Any, features: Any, pack: Callable[[Any], Packed]) -> Packed:
    """Pack what a transformer makes of tokens; if that are dicts, learn their vocabulary too."""
    if isinstance(X, PackedSequences):
        raise ValueError(
            "X are PackedSequences, which have their features: give the tokens that "
            "features=... makes them of, or set features=None."
        )
    features = clone(features)
    data, vectorizer = pack(features.fit_transform(X, y))
    if vectorizer is None:
        return data, features
    from sklearn.pipeline import Pipeline  # which loads much that few fits need

    return data, Pipeline([("features", features), ("vectorizer", vectorizer)])


def pack_new(X: Any, vectorizer: Any, n_features: int) -> PackedSequences:
    """Pack features for a model with D attributes, by what made those of the training data."""
    if isinstance(X, PackedSequences):
        data = X
    elif not (vectorizer is None or isinstance(vectorizer, SequenceVectorizer)):
        return pack_new(vectorizer.transform(X), None, n_features)
    else:
        matrices, sequences = _look_ahead(X)
        if vectorizer is not None and not matrices:
            return vectorizer.transform(sequences)
        if not matrices and not all(map(_is_empty, sequences := list(sequences))):
            raise TypeError(
                "the model was fitted on matrices and has no vocabulary for tokens: give X as "
                "matrices or PackedSequences too. The last step of a pipeline takes what the "
                "others make, pipeline[:-1].transform(X)."
            )
        with told_of_dicts(vectorizer is not None, n_features):
            data = PackedSequences.from_matrices(sequences, n_features)
    if data.n_features != n_features and data.names is None:  # else `Schema.check` tells more
        raise ValueError(
            f"X has {data.n_features} features a token, but the model was fitted with {n_features}."
        )
    return data


def _look_ahead(X: Any) -> tuple[bool, Any]:
    """Return whether the first sequence with tokens is a matrix, and all sequences."""
    if X.__class__ is list and X and X[0].__class__ is list and X[0]:
        return False, X
    stream = iterate_sequences(X, "X")
    seen = []
    for sequence in stream:
        seen.append(sequence)
        if (matrix := is_matrix(sequence)) or not _is_empty(sequence):
            return matrix, chain(seen, stream)
    return False, seen


def _is_empty(sequence: Any) -> bool:
    return hasattr(sequence, "__len__") and len(sequence) == 0


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """Return what a fit has set."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if (name.endswith("_") and not name.startswith("_")) or name in PRIVATE
    }


def fitted_labels(estimator: Any) -> LabelSpace:
    """Return the labels of a fitted model, whatever its parameters say by now."""
    return SegmentLabels(None) if "length_scores_" in vars(estimator) else TokenLabels()


class Attributes(NamedTuple):
    """How many attributes there are, and their names, where they have any."""

    size: int
    names: Names | None


class Schema(NamedTuple):
    """The attributes of tokens, of transitions and of segments; None where there are no such."""

    tokens: Attributes
    transitions: Attributes | None
    segments: Attributes | None

    @classmethod
    def of(cls, data: PackedSequences) -> Self:
        """Return those of packed sequences."""
        parts = features_of(data).values()
        found: Any = [None if x is None else Attributes(x.n_features, x.names) for x in parts]
        return cls(*found)

    def check(self, given: Schema, passed: Schema | None = None) -> None:
        """Raise ValueError if data have other attributes than the model, or in another order.

        Names that `passed` has were compared already, which takes its time for 300,000 of them.
        """
        for kind, ours, theirs, known in zip(
            self._fields, given, self, passed or self, strict=True
        ):
            fits = ours is theirs
            if ours is not None and theirs is not None:
                if known is None or ours.names is not known.names:
                    _check_names(ours.names, theirs.names)
                fits = ours.size == theirs.size
            if not fits:
                counts = ["no" if part is None else part.size for part in (ours, theirs)]
                raise ValueError(
                    f"X has {counts[0]} attributes of {kind}, but the model was fitted with "
                    f"{counts[1]}. Transform X with the transformer the model was fitted with."
                )

    def warn_of_missing_names(self, given: Schema, model: str) -> None:
        """Warn as scikit-learn where attributes of only one, the model or X, have names."""
        ours, theirs = given.tokens.names, self.tokens.names
        if ours is None and theirs is not None:
            warn_user(
                f"X does not have valid feature names, but {model} was fitted with feature names"
            )
        elif ours is not None and theirs is None:
            warn_user(f"X has feature names, but {model} was fitted without feature names")


def _check_names(names: Names | None, expected: Names | None) -> None:
    if names is None or expected is None or names is expected:
        return
    ours, theirs = name_array(names), name_array(expected)
    if not np.array_equal(ours, theirs):
        raise ValueError(_names_differ(ours.tolist(), theirs.tolist()))


def _names_differ(ours: list[str], theirs: list[str]) -> str:
    """Return what scikit-learn says of names that are not those of the fit, and what helps."""
    lines = ["The feature names should match those that were passed during fit."]
    new, missing = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
    for title, names in (
        ("Feature names unseen at fit time:", new),
        ("Feature names seen at fit time, yet now missing:", missing),
    ):
        if names:
            lines += [title, *(f"- {name}" for name in names[:SHOWN_NAMES])]
        if len(names) > SHOWN_NAMES:
            lines.append("- ...")
    if not new and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    place = next((p for p, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
    if place is not None:
        lines.append(f"Feature {place} of X is {ours[place]!r}; in fit it was {theirs[place]!r}.")
    lines.append("Transform X as the data of the fit, or give its columns in the same order.")
    return "\n".join(lines)


class TrainingData(NamedTuple):
    """What a model is fitted to: S sequences of N tokens with D attributes and K labels."""

    data: PackedSequences
    vectorizer: Any  # the fitted transformer that made the data, if one did
    classes: ObjectArray  # (K,)
    targets: Targets  # what is known of the labels
    weight: FloatArray  # of tokens, (N,)
    every: ObjectArray | None = None  # all labels, where this is a part of the data
    coding: LabelCoding = LABELS  # what the codes stand for

    @property
    def codes(self) -> CodeArray:
        """The code of each token, (N,); any of those it may have where that is not known."""
        return self.targets.states

    @property
    def known(self) -> BoolArray:
        """Which tokens count and have a label of which something is known, (N,)."""
        counts = self.weight > 0.0
        return counts if self.targets.allowed is None else counts & self.targets.known

    def cost(self, cost: Any) -> Cost:
        """Return a cost for these classes, given what the user says of those of the whole data."""
        if self.every is None:
            return self.coding.cost(make_cost(cost, self.classes))
        place = {label: code for code, label in enumerate(self.every.tolist())}
        codes = np.array([place[label] for label in self.classes.tolist()], np.int64)
        return self.coding.cost(make_cost(cost, self.every).of_labels(codes))

    @property
    def labels(self) -> Any:
        """The labels as sequences, of which some may be sets or `UNLABELED`."""
        return self.coding.write_known(self.targets, self.classes, self.data.offsets)

    def of_weight(self) -> TrainingData:
        """Return the sequences with a token that counts and is known, and the labels of such ones.

        The others have no part in a loss, but would have in what is allowed and what has weights.
        """
        if self.targets.allowed is None and self.weight.all():
            return self
        known = self.known
        if known.all():
            return self
        return self.take(np.flatnonzero(np.logical_or.reduceat(known, self.data.offsets[:-1])))

    def take(self, sequences: IntArray) -> TrainingData:
        """Return some of the sequences, with the labels that occur in them.

        Attributes keep their columns. Those that none of the sequences has get no weights where
        only observed pairs do, and weights of 0 otherwise, so that the model is the one of the
        sequences alone. Raises ValueError if none of their tokens counts and is known.
        """
        data = self.data
        tokens = ranges(data.offsets[:-1][sequences], data.lengths[sequences])
        weight, known = self.weight[tokens], self.known[tokens]
        present, targets = np.zeros(0, np.int64), self.targets.take(tokens)
        if known.any():
            present, targets = self.coding.restrict(targets, len(self.classes), weight > 0.0)
            known &= targets.known  # where the labels that are left are all allowed
        if not known.any():
            why = "no known label" if weight.any() else "the sample weight 0"
            raise ValueError(
                f"the sequences that are left to learn from all have {why}: give "
                f"more sequences, or leave out those of {why}."
            )
        return TrainingData(
            data[sequences], self.vectorizer, self.classes[present], targets, weight,
            self.classes if self.every is None else self.every, self.coding,
        )  # fmt: skip


class Labeled(NamedTuple):
    """Sequences with their labels, to score a model on."""

    data: PackedSequences
    labels: LabelSequences


def read_training(
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    read: Callable[[Any, IntArray], Coded],
    pack: Callable[[Any, Any], Packed] = pack_training,
    scales: bool = True,
) -> TrainingData:
    """Read and check what `fit` was given; `read` turns labels and offsets into codes.

    With `scales`, a feature that is far larger than others brings a warning.
    """
    with swapped_are_told(X, y):
        data, vectorizer = pack(X, y)
    coded = read(by_sequence(y, data.offsets), data.offsets)
    classes = coded.classes
    if len(classes) > MOST_LABELS:
        raise ValueError(
            f"y has {len(classes):,} different labels, such as {classes[0]!r:.40} and "
            f"{classes[1]!r:.40}; a model has tables of all pairs of them, of at most "
            f"{MOST_LABELS:,}. Does y hold the tokens, or numbers of them, in place of labels?"
        )
    check_training(data)
    weight = check_sample_weight(sample_weight, data.offsets)
    for kind, features in features_of(data).items():
        if features is not None and scales:
            warn_if_badly_scaled(features, "" if kind == TOKENS else f"of {kind} ")
    # Of segments codes tell the label and whether one begins.
    warn_if_padded(data, coded.targets.states % len(classes))
    return TrainingData(data, vectorizer, classes, coded.targets, weight, coding=coded.coding)


def check_training(data: PackedSequences) -> None:
    """Raise ValueError if there is nothing to learn from."""
    if len(data) == 0:
        raise ValueError("X has no sequences: there is nothing to learn from.")
    empty = np.flatnonzero(data.lengths == 0)
    if len(empty):
        raise ValueError(
            f"sequence {empty[0]} has no tokens ({len(empty)} such in all): nothing can be learned "
            "from it. Leave empty sequences out of the training data."
        )
    blocks = (data, data.transitions, data.segments)
    if not any([block.n_features for block in blocks if block is not None]):
        raise ValueError("no token of X has any feature: there is nothing to learn from.")


def warn_if_badly_scaled(data: PackedSequences, of: str = "") -> None:
    """Warn of a numeric feature (`of` what) that is a thousand times larger than most others."""
    if data.values is None and data.dense is None:
        return  # indicators are all of size 1

    def name(feature: int) -> Any:
        return feature if data.feature_names is None else repr(data.feature_names[feature])

    warn_of_one(column_sizes(data), name, of, np.inf)


def column_sizes(data: PackedSequences) -> FloatArray:
    """Return the root mean square of the non-zero values of each feature, shape (D,)."""
    uses = np.bincount(data.indices, minlength=data.n_sparse)
    squares = uses.astype(float)
    if data.values is not None:
        squares = np.bincount(data.indices, data.values**2, minlength=data.n_sparse)
    if data.dense is not None:
        uses = np.append(uses, np.count_nonzero(data.dense, axis=0))
        squares = np.append(squares, np.einsum("nf,nf->f", data.dense, data.dense))
    return np.sqrt(squares / np.maximum(uses, 1))


def read_validation(X: Any, y: Any, training: TrainingData) -> Labeled:
    """Read and check what a model is to be scored on; errors say that it is X_val or y_val."""
    try:
        data = pack_new(X, training.vectorizer, training.data.n_features)
        Schema.of(training.data).check(Schema.of(data))
        stream = LabelStream(
            training.coding.as_predicted(by_sequence(y, data.offsets), data.offsets), partial=True
        )
        check_lengths(data.offsets, stream.offsets, "y")
    except (TypeError, ValueError) as error:
        raise type(error)(f"in X_val or y_val: {error}") from error
    if not data.n_tokens:
        raise ValueError("X_val has no tokens: there is nothing to score the model on.")
    return Labeled(data, stream.labels())


def hold_out(
    training: TrainingData, X_val: Any, y_val: Any, fraction: float | None, random_state: Any
) -> tuple[TrainingData, Labeled | None]:
    """Return what to learn from, and what to watch the fit on, if it is to be watched.

    That is `X_val` and `y_val`, or a share of the sequences that `random_state` chooses; `fraction`
    is None where the fit is not watched. Raises ValueError or TypeError if that cannot be used, or
    nothing is left to learn from.
    """
    given = X_val is not None
    if given != (y_val is not None):
        missing, present = ("y_val", "X_val") if given else ("X_val", "y_val")
        raise ValueError(f"{present} was given without {missing}: give both, or neither.")
    if fraction is None:
        if given:
            raise ValueError(
                "X_val and y_val are used by early stopping only: set early_stopping=True, or "
                "leave them out."
            )
        return training, None
    if given:
        return training, read_validation(X_val, y_val, training)
    total = len(training.data)
    count = math.ceil(fraction * total)
    if count >= total:
        raise ValueError(
            f"early_stopping holds out {count} of {total} sequences, which leaves none to "
            "learn from: give more sequences, or X_val and y_val."
        )
    order = check_random_state(random_state).permutation(total)
    held, kept = np.sort(order[:count]), np.sort(order[count:])
    return training.take(kept), Labeled(training.data[held], training.labels[held])
