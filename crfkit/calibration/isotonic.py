"""Rising functions from confidence to how often it is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.isotonic import IsotonicRegression

from crfkit._types import CodeArray, FloatArray, ObjectArray
from crfkit.calibration.base import NOTHING_HELD_OUT, Calibration, HeldOut
from crfkit.data.labels import LabelStream, by_sequence
from crfkit.data.soft import most_probable
from crfkit.metrics.confidence import JudgedConfidence, judged_confidence, labels_of_tokens
from crfkit.persistence import register
from crfkit.structures.base import MissingCapabilityError


@register
class RisingFunction(NamedTuple):
    """A function that does not fall: straight lines between points, and beyond them constant."""

    arguments: FloatArray  # (n,) rising
    values: FloatArray  # (n,) from 0 to 1

    @classmethod
    def fit(cls, confidence: Any, correct: Any, weight: Any) -> Self:
        """Return that of the least squared error; one that changes nothing where there are none."""
        counted = weight > 0.0
        if not counted.any():
            return cls(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
        found = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        found.fit(confidence[counted], correct[counted], sample_weight=weight[counted])
        points = found.X_thresholds_, found.y_thresholds_
        return cls(*(np.asarray(part, np.float64) for part in points))

    def __call__(self, confidence: FloatArray) -> FloatArray:
        """Return the values at some arguments."""
        values: FloatArray = np.interp(confidence, self.arguments, self.values)
        return values

    def _check_state(self) -> None:
        for part in self:
            if type(part) is not np.ndarray or part.dtype != np.float64 or part.ndim != 1:
                raise ValueError("the points of a function are no arrays of numbers")
        if not len(self.arguments) or len(self.arguments) != len(self.values):
            raise ValueError("a function has no points, or arguments without values")
        if not np.all(np.diff(self.arguments) >= 0.0) or not np.all(np.diff(self.values) >= 0.0):
            raise ValueError("the points of a function fall")


@register
@dataclass(frozen=True)
class Isotonic(Calibration):
    """Confidence is replaced by how often it was right, as a function that does not fall.

    Of the labels of tokens there is one function for each label, against all others; what they give
    is divided by its sum (Zadrozny and Elkan 2002). Of spans, and of sequences, there is one.
    """

    labels: list[RisingFunction]  # (K,)
    spans: RisingFunction
    sequences: RisingFunction

    answers_all: ClassVar[bool] = False

    @classmethod
    def fit(cls, held: Sequence[HeldOut], classes: ObjectArray) -> Self:
        """Return the functions of the least squared error on all held-out data."""
        tokens = [_tokens(one, classes) for one in held]
        proba, true, weight = (np.concatenate(parts) for parts in zip(*tokens, strict=True))
        if not np.any((true >= 0) & (weight > 0.0)):
            raise ValueError(NOTHING_HELD_OUT)
        labels = [RisingFunction.fit(proba[:, k], true == k, weight) for k in range(len(classes))]
        return cls(labels, _of_level(held, "spans"), _of_level(held, "sequences"))

    def applied(self, model: Any) -> Any:
        """Return the model itself."""
        return model

    def proba(self, rows: list[FloatArray]) -> list[FloatArray]:
        """Return calibrated probabilities; of tokens of which they are all 0, those given."""
        found = []
        for given in rows:
            each = [function(p) for function, p in zip(self.labels, given.T, strict=True)]
            table = np.column_stack(each) if len(given) else given
            total = table.sum(axis=1, keepdims=True)
            found.append(np.divide(table, total, out=given.copy(), where=total > 0.0))
        return found

    def confidence(self, found: Any, of: str) -> Any:
        """Return calibrated confidence of spans, (n,) for each sequence, or of sequences, (S,)."""
        if of == "spans":
            return [self.spans(each) for each in found]
        return self.sequences(found)

    def _check_state(self) -> None:
        functions = [*self.labels, self.spans, self.sequences] if type(self.labels) is list else []
        if set(map(type, functions)) != {RisingFunction}:
            raise ValueError("a calibration holds what is no function")


def _of_level(held: Sequence[HeldOut], of: str) -> RisingFunction:
    """Return the function of the confidence of spans, or sequences."""
    judged = []
    for model, X, y, weight in held:
        try:
            judged.append(judged_confidence(model, X, y, of=of, sample_weight=weight))
        except MissingCapabilityError:  # forests have no spans, and say so when asked
            judged.append(JudgedConfidence(np.zeros(0), np.zeros(0, bool), np.zeros(0)))
    return RisingFunction.fit(*map(np.concatenate, zip(*judged, strict=True)))


def _tokens(held: HeldOut, classes: ObjectArray) -> tuple[FloatArray, CodeArray, FloatArray]:
    """Return probabilities of labels, (N, K), the place of the true one, -1 for none, and weights.

    Those of tokens are 0 of which it is not known.
    """
    rows: list[FloatArray] = held.model.predict_proba(held.X)
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    place = {label: k for k, label in enumerate(classes.tolist())}
    proba = np.zeros((int(offsets[-1]), len(classes) + 1))
    own = [place.get(label, len(classes)) for label in held.model.classes_.tolist()]
    proba[:, own] = np.concatenate([np.zeros((0, len(own))), *rows])
    y = by_sequence(most_probable(held.y), offsets)
    stream = LabelStream(labels_of_tokens(held.model, y, offsets), partial=True)
    weight = held.weights(offsets)
    allowed = stream.allowed_for(classes)
    if allowed is not None:
        weight = np.where(allowed.sum(axis=1) > 1, 0.0, weight)
    return proba[:, :-1], stream.codes_for(classes), weight
