"""What the labels of a model are, and what its weights are called when it is fitted.

A layout knows how labels become codes, which score model learns from them, and how its parameters
are kept as fitted attributes and found again. An estimator chooses it by its parameter
`structure`; all else that estimators do is the same for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data.labels import UNKNOWN, LabelStream
from crfkit.data.names import LazyNames
from crfkit.data.validation import check_lengths
from crfkit.labels.coding import Coded, LabelCoding, read_labels
from crfkit.potentials import LinearChainModel, LinearModel
from crfkit.potentials.linear import fitted_names, from_fitted
from crfkit.potentials.selection import choose_features

# Attributes whose names begin so count for first, last or single tokens of segments alone; the name
# of a part of a union may stand before. One group without repetition: time grows with the length.
END = re.compile(r"(?:[\w.-]+?__)??seg\.(first|last|single)\.")


class TokenLabels:
    """A label for each token."""

    of_segments: ClassVar[bool] = False
    MODEL: ClassVar[type[LinearModel]] = LinearChainModel

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

    def choose(self, estimator: Any, training: Any) -> LinearModel:
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

    @property
    def fitted_names(self) -> tuple[str, ...]:
        """The fitted attributes that potentials are made of."""
        return fitted_names(self.MODEL)

    def attributes(
        self, model: Any, parameters: FloatArray, classes: NDArray[np.object_], coding: Any
    ) -> dict[str, Any]:
        """Return parameters as fitted attributes."""
        fitted: dict[str, Any] = model.fitted(parameters)
        return {"classes_": classes} | fitted

    def model(self, fitted: Any, sizes: Mapping[str, int]) -> tuple[LinearModel, Any]:
        """Return the model of fitted weights, and the weights in their places.

        `sizes` tells how many attributes are sparse, by what they describe.
        """
        return from_fitted(self.MODEL, vars(fitted), sizes)


def _check_no_ends(names: Any) -> None:
    """Raise ValueError if templates describe first, last or only tokens of segments."""
    for lead in names.leads() if isinstance(names, LazyNames) else ():
        if END.match(lead):
            raise ValueError(
                f"X has attributes of the first, last or only tokens of segments ({lead}...), "
                "which a model of single tokens cannot use: fit a SemiMarkovCRF, or leave "
                "first(...), last(...) and single(...) out of the templates."
            )
