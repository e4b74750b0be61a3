"""Labels of tokens: a label is a code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data import LabelSequences
from crfkit.data.labels import UNKNOWN, LabelStream
from crfkit.data.validation import check_lengths, token_place
from crfkit.labels.base import Coded, FittedLabels, LabelCoding, LabelSpace, present
from crfkit.labels.costs import Cost


class TokenCoding(LabelCoding):
    """A label is a code."""

    def write(
        self, codes: CodeArray, classes: NDArray[np.object_], offsets: IntArray
    ) -> LabelSequences:
        """Return the labels that codes stand for."""
        return LabelSequences.from_codes(codes, classes, offsets)

    def restrict(self, codes: CodeArray, n_labels: int) -> tuple[IntArray, CodeArray]:
        """Return which labels occur, rising, and codes with respect to these."""
        return present(codes)

    def cost(self, cost: Cost) -> Cost:
        """Return the cost itself."""
        return cost

    def as_predicted(self, y: Any, offsets: IntArray) -> Any:
        """Return the labels themselves."""
        return y


class TokenLabels(LabelSpace):
    """A label for each token."""

    of_segments = False

    def read(self, y: Any, offsets: IntArray, classes: NDArray[np.object_] | None = None) -> Coded:
        """Return the codes of labels, with respect to given classes or those that occur.

        ValueError or TypeError tells that y does not fit the sequences, or a label is not given.
        """
        stream = LabelStream(y)
        check_lengths(offsets, stream.offsets, "y")
        classes = stream.classes() if classes is None else classes
        codes = stream.codes_for(classes)
        if np.any(codes == UNKNOWN):
            token = int(np.argmax(codes == UNKNOWN))
            label = list(stream.index)[stream.codes[token]]
            raise ValueError(
                f"{token_place(stream.offsets, token)}: the label {label!r} is not one of the "
                "classes of the model. Give all labels in the first call of partial_fit."
            )
        return Coded(classes, codes, TokenCoding())

    def coding(self, fitted: FittedLabels) -> TokenCoding:
        """Return how the codes of a fitted model are read and written."""
        return TokenCoding()

    def codes(
        self, fitted: FittedLabels, y: Any, offsets: IntArray
    ) -> tuple[CodeArray, NDArray[np.bool_]]:
        """Return codes of labels for a fitted model, and whether it knows the label, both (N,)."""
        stream = LabelStream(y)
        check_lengths(offsets, stream.offsets, "y")
        codes = stream.codes_for(fitted.classes_)
        known = codes != UNKNOWN
        return np.where(known, codes, 0).astype(np.int32), known

    def learned_from(self, weight: FloatArray, offsets: IntArray) -> NDArray[np.bool_]:
        """Return which sequences a model may learn from: all, (S,)."""
        return np.ones(len(offsets) - 1, bool)
