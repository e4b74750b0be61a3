"""Labels of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data.labels import UNKNOWN, LabelStream
from crfkit.data.validation import check_lengths
from crfkit.labels.base import FittedLabels, LabelSpace
from crfkit.labels.coding import Coded, TokenCoding, read_labels


class TokenLabels(LabelSpace):
    """A label for each token."""

    of_segments = False

    def read(self, y: Any, offsets: IntArray) -> Coded:
        """Return the codes of labels.

        Raises
        ------
        ValueError, TypeError
            If the labels do not fit the sequences, or cannot be read.
        """
        return read_labels(y, offsets)

    def coding(self, fitted: FittedLabels) -> TokenCoding:
        """Return what the codes of a fitted model stand for."""
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

    def labels(self, fitted: FittedLabels, y: Any, offsets: IntArray) -> Any:
        """Return true labels in the form of predicted ones."""
        return y

    def learned_from(self, weight: FloatArray, offsets: IntArray) -> NDArray[np.bool_]:
        """Return which sequences a model may learn from: all, (S,)."""
        return np.ones(len(offsets) - 1, bool)
