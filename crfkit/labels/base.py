"""What the labels of a model stand for: from labels to codes, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray, ObjectArray
from crfkit.data import LabelSequences
from crfkit.data.labels import UNKNOWN, LabelStream, check_labels, check_lengths
from crfkit.data.validation import token_place
from crfkit.labels.costs import Cost


class Coded(NamedTuple):
    """Labels, (K,), the codes of tokens, (N,), and the `LabelCoding` that reads and writes them."""

    classes: ObjectArray
    codes: CodeArray
    coding: Any


class LabelCoding(ABC):
    """How codes are read and written; `fitted` are the fitted attributes that tell it."""

    fitted: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def write(self, codes: CodeArray, classes: ObjectArray, offsets: IntArray) -> LabelSequences:
        """Return the labels that codes stand for."""

    @abstractmethod
    def restrict(self, codes: CodeArray, n_labels: int) -> tuple[IntArray, CodeArray]:
        """Return which labels occur, rising, and codes with respect to these."""

    @abstractmethod
    def cost(self, cost: Cost) -> Cost:
        """Return the cost of codes, given that of labels."""

    @abstractmethod
    def as_predicted(self, y: Any, offsets: IntArray) -> Any:
        """Return true labels in the form of predicted ones."""


class FittedLabels(Protocol):
    """What a fitted model knows of labels, (K,), and of segments: how tags write them."""

    classes_: ObjectArray
    scheme_: str


class LabelSpace(ABC):
    """From labels to codes, and back."""

    of_segments: ClassVar[bool]  # whether labels are those of segments

    @abstractmethod
    def read(self, y: Any, offsets: IntArray) -> Coded:
        """Return the codes of labels; ValueError or TypeError if they do not fit the sequences."""

    @abstractmethod
    def coding(self, fitted: FittedLabels) -> Any:
        """Return how the codes of a fitted model are read and written."""

    @abstractmethod
    def codes(self, fitted: FittedLabels, y: Any, offsets: IntArray) -> tuple[CodeArray, BoolArray]:
        """Return codes of labels for a fitted model, and whether it knows the label, both (N,)."""

    @abstractmethod
    def learned_from(self, weight: FloatArray, offsets: IntArray) -> BoolArray:
        """Return which sequences a model may learn from, (S,), given the weights of tokens, (N,).

        Those of weight 0 have no part in a loss, but may have in what is allowed.
        """


def present(codes: CodeArray) -> tuple[IntArray, CodeArray]:
    """Return which codes occur, rising, and codes with respect to these."""
    found, fewer = np.unique(codes, return_inverse=True)
    return found.astype(np.int64), fewer.astype(np.int32)


class TokenCoding(LabelCoding):
    """A label is a code."""

    def write(self, codes: CodeArray, classes: ObjectArray, offsets: IntArray) -> LabelSequences:
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

    def read(self, y: Any, offsets: IntArray, classes: ObjectArray | None = None) -> Coded:
        """Return the codes of labels, with respect to given classes or those that occur.

        ValueError or TypeError tells that y does not fit the sequences, or a label is not given.
        """
        stream = LabelStream(y)
        check_lengths(offsets, stream.offsets, "y")
        check_labels(stream, () if classes is None else classes)
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

    def codes(self, fitted: FittedLabels, y: Any, offsets: IntArray) -> tuple[CodeArray, BoolArray]:
        """Return codes of labels for a fitted model, and whether it knows the label, both (N,)."""
        stream = LabelStream(y)
        check_lengths(offsets, stream.offsets, "y")
        codes = stream.codes_for(fitted.classes_)
        known = codes != UNKNOWN
        return np.where(known, codes, 0).astype(np.int32), known

    def learned_from(self, weight: FloatArray, offsets: IntArray) -> BoolArray:
        """Return which sequences a model may learn from: all, (S,)."""
        return np.ones(len(offsets) - 1, bool)
