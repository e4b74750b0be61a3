"""What calibrates probabilities, and what it learns from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from crfkit._types import FloatArray, IntArray, ObjectArray
from crfkit.data.labels import check_sample_weight
from crfkit.labels.sequences import token_weights

NOTHING_HELD_OUT = (
    "there are no held-out sequences whose labels the model can have: give more, or others."
)


class HeldOut(NamedTuple):
    """Sequences with their labels, and a model that has not learned from them."""

    model: Any
    X: Any
    y: Any
    sample_weight: Any = None  # as for `fit`

    def weights(self, offsets: IntArray) -> FloatArray:
        """Return the weight of each token, (N,), all 0 where no sequence of a fold counts."""
        if self.sample_weight is not None:
            lengths = np.diff(offsets).astype(np.intp)
            found = token_weights(self.sample_weight, lengths)
            if not found.any():
                return found
        return check_sample_weight(self.sample_weight, offsets)


class Calibration(ABC):
    """A function of probabilities, that held-out data tell."""

    answers_all: ClassVar[bool]  # whether all that a model tells of probabilities is calibrated

    @classmethod
    @abstractmethod
    def fit(cls, held: Sequence[HeldOut], classes: ObjectArray) -> Self:
        """Return what makes the probabilities of models, with these labels, agree with the data."""

    @abstractmethod
    def applied(self, model: Any) -> Any:
        """Return a model whose probabilities are to be passed on to the methods here."""

    @abstractmethod
    def proba(self, rows: list[FloatArray]) -> list[FloatArray]:
        """Return the probabilities of labels, (T, K), of sequences."""

    @abstractmethod
    def confidence(self, found: Any, of: str) -> Any:
        """Return the confidence of spans, (n,) for each sequence, or of sequences, (S,)."""
