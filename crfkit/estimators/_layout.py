"""What the labels of a model are, and what its weights are called when it is fitted.

A layout knows how labels become codes, which score model learns from them, and how its parameters
are kept as fitted attributes and found again. An estimator chooses it by its parameter
`structure`; all else that estimators do is the same for all of them.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data.labels import UNKNOWN, LabelStream
from crfkit.data.names import LazyNames
from crfkit.data.validation import check_lengths
from crfkit.labels.coding import Coded, LabelCoding, read_labels
from crfkit.potentials import LinearChainModel
from crfkit.potentials.attributes import AttributeWeights, BoundWeights
from crfkit.potentials.selection import choose_features
from crfkit.potentials.transitions import HomogeneousTransitions, InputDependentTransitions

# Attributes whose names begin so count for first, last or single tokens of segments alone; the name
# of a part of a union may stand before. One group without repetition: time grows with the length.
END = re.compile(r"(?:[\w.-]+?__)??seg\.(first|last|single)\.")

Layout = tuple[int, ...]


class TokenLabels:
    """A label for each token."""

    # The fitted attributes that scores are made of.
    FITTED: ClassVar[tuple[str, ...]] = (
        "coef_", "transitions_", "start_weights_", "end_weights_", "transition_coef_",
    )  # fmt: skip

    def read(self, y: Any, offsets: IntArray) -> Coded:
        """Return the codes of labels.

        Raises
        ------
        ValueError, TypeError
            If the labels do not fit the sequences, or cannot be read.
        """
        return read_labels(y, offsets)

    def coding(self, fitted: Any) -> LabelCoding:
        """Return what the codes of a fitted model stand for."""
        return LabelCoding()

    def codes(self, fitted: Any, y: Any, offsets: IntArray) -> tuple[CodeArray, NDArray[np.bool_]]:
        """Return codes of labels for a fitted model, and whether it knows the label, both (N,)."""
        stream = LabelStream(y)
        check_lengths(offsets, stream.offsets, "y")
        codes = stream.codes_for(fitted.classes_)
        known = codes != UNKNOWN
        return np.where(known, codes, 0).astype(np.int32), known

    def labels(self, fitted: Any, y: Any, offsets: IntArray) -> Any:
        """Return true labels in the form of predicted ones."""
        return y

    def drop_zero_weight_sequences(self, training: Any) -> Any:
        """Return the training data without sequences whose weights of 0 would tell something."""
        return training

    def choose(self, estimator: Any, training: Any) -> LinearChainModel:
        """Return the score model with the weights that are to be fitted."""
        if training.data.segments is not None:
            raise ValueError(
                "X has attributes of segments, which a model of single tokens cannot use: fit a "
                "SemiMarkovCRF, or leave them out."
            )
        _check_no_ends(training.data.names)
        return choose_features(
            training.data,
            training.codes,
            len(training.classes),
            min_freq=estimator.min_freq,
            all_states=estimator.all_possible_states,
            all_transitions=estimator.all_possible_transitions,
            boundaries=estimator.boundary_weights,
        )

    def attributes(
        self, model: Any, parameters: FloatArray, classes: NDArray[np.object_], coding: Any
    ) -> dict[str, Any]:
        """Return parameters as fitted attributes."""
        weights = model.bind(parameters)
        none = np.zeros(model.n_labels)
        return {
            "classes_": classes,
            "coef_": weight_matrix(model.state, weights.state),
            "transitions_": model.transition_matrix(parameters),
            "start_weights_": weights.start.copy() if model.boundaries else none,
            "end_weights_": weights.end.copy() if model.boundaries else none.copy(),
            "transition_coef_": transition_coef_matrix(model.transitions, weights.transitions),
        }

    def model(self, fitted: Any, layout: Layout) -> tuple[LinearChainModel, Any]:
        """Return the score model of fitted weights, and the weights in their places.

        `layout` tells how many attributes of tokens, and of steps, are sparse.
        """
        source, target = np.nonzero(fitted.transitions_)
        state = in_order(fitted.coef_)
        triples = None if fitted.transition_coef_ is None else in_order(fitted.transition_coef_)
        model = LinearChainModel(
            weight_places(state, layout[0]),
            source,
            target,
            boundaries=True,
            transitions=None
            if triples is None
            else InputDependentTransitions(weight_places(triples, layout[1])),
        )
        values = np.zeros(0) if triples is None else triples.data
        moves = fitted.transitions_[source, target]
        ends = fitted.start_weights_, fitted.end_weights_
        return model, model.place(state.data, moves, *ends, values)


def _check_no_ends(names: Any) -> None:
    """Raise ValueError if templates describe first, last or only tokens of segments."""
    for lead in names.leads() if isinstance(names, LazyNames) else ():
        if END.match(lead):
            raise ValueError(
                f"X has attributes of the first, last or only tokens of segments ({lead}...), "
                "which a model of single tokens cannot use: fit a SemiMarkovCRF, or leave "
                "first(...), last(...) and single(...) out of the templates."
            )


def weight_matrix(places: AttributeWeights, bound: BoundWeights) -> sp.csr_array:
    """Return weights as a matrix of shape (D, C) that stores those that are not 0."""
    shape = (places.n_features, places.n_columns)
    matrix = sp.csr_array((bound.pairs, places.columns, places.ptr), shape, copy=True)
    matrix.eliminate_zeros()
    return matrix


def transition_coef_matrix(
    steps: HomogeneousTransitions | InputDependentTransitions, bound: Any
) -> sp.csr_array | None:
    """Return the weights of attributes of transitions, shape (D2, K * K), where there are any."""
    return (
        weight_matrix(steps.weights, bound)
        if isinstance(steps, InputDependentTransitions)
        else None
    )


def in_order(matrix: sp.csr_array) -> sp.csr_array:
    """Return weights with rising columns in each row and none twice: by hand, they may be."""
    view = sp.csr_array((matrix.data, matrix.indices, matrix.indptr), matrix.shape)
    if view.has_canonical_format:  # asked of a view, because a matrix remembers the answer
        return view
    ordered = view.copy()
    ordered.sum_duplicates()
    return ordered


def weight_places(matrix: sp.csr_array, n_sparse: int) -> AttributeWeights:
    """Return where the weights of a matrix belong."""
    return AttributeWeights(
        matrix.indptr, matrix.indices, n_columns=matrix.shape[1], n_sparse=n_sparse
    )
