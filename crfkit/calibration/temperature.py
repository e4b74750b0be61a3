"""One number by which all scores are divided."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq

from crfkit._types import FloatArray, ObjectArray, Potentials
from crfkit.calibration.base import NOTHING_HELD_OUT, Calibration, HeldOut
from crfkit.data import PackedSequences
from crfkit.data.labels import by_sequence
from crfkit.data.soft import most_probable
from crfkit.data.targets import Targets, Weights
from crfkit.estimators._questions import SHARE, tokens_of
from crfkit.estimators.linear import LinearClassifier
from crfkit.labels.segmentation import allowed_codes
from crfkit.losses import LogLoss
from crfkit.persistence import register
from crfkit.potentials.semimarkov import WEIGHTS_OF
from crfkit.structures import Structure
from crfkit.training.data import fitted_attributes

# Temperatures lie between 1 / MOST and MOST.
MOST = 100.0


@register
@dataclass(frozen=True)
class Temperature(Calibration):
    """All weights are divided by one number (Guo, Pleiss, Sun and Weinberger 2017).

    It is that of the largest likelihood of held-out labels. Scores keep their order, so the best
    labels are the same; above 1 the distribution becomes flatter, below sharper.
    """

    temperature: float

    answers_all: ClassVar[bool] = True

    @classmethod
    def fit(cls, held: Sequence[HeldOut], classes: ObjectArray) -> Self:
        """Return that of the largest likelihood; ValueError if models have no such weights."""
        for one in held:
            _check_that_it_scales(one.model)
        questions = [_Likelihood.of(one) for one in held]
        if not any(len(each.data) for each in questions):
            raise ValueError(NOTHING_HELD_OUT)

        @cache
        def slope(log_factor: float) -> float:
            return sum(each.slope(math.exp(log_factor)) for each in questions)

        return cls(math.exp(-_root(slope, math.log(MOST))))

    def applied(self, model: LinearClassifier) -> LinearClassifier:
        """Return a copy of the model with all weights divided."""
        fitted = fitted_attributes(model)
        fitted.pop("_partial_state", None)  # weights that learning in parts would go on from
        labels = model._fitted_labels()
        for name in WEIGHTS_OF[type(labels)](labels).fitted_names:
            if fitted.get(name) is not None:
                fitted[name] = _divided(fitted[name], self.temperature)
        return model._with(fitted)

    def proba(self, rows: list[FloatArray]) -> list[FloatArray]:
        """Return probabilities as they are: weights make them."""
        return rows

    def confidence(self, found: Any, of: str) -> Any:
        """Return confidence as it is."""
        return found

    def _check_state(self) -> None:
        if type(self.temperature) is not float or not 0.0 < self.temperature < math.inf:
            raise ValueError(f"the temperature is {self.temperature!r:.40}")


class _Likelihood(NamedTuple):
    """The negative log-likelihood of labels, as a function of what scores are multiplied by."""

    model: LinearClassifier
    data: PackedSequences
    targets: Targets
    weight: FloatArray
    constraints: Any  # those of the model, compiled for the data

    @classmethod
    def of(cls, held: HeldOut) -> Self:
        """Return that of the held-out sequences whose labels the model can have."""
        model: Any = held.model
        data = model._pack(held.X)
        y = most_probable(by_sequence(held.y, data.offsets))
        weight, sequences = held.weights(data.offsets), np.arange(len(data))
        counted = np.bincount(np.repeat(sequences, data.lengths), weight, len(data)) > 0.0
        kept = counted & (model.sequence_log_proba(data, y) > -np.inf)
        places, tokens = np.flatnonzero(kept), np.repeat(kept, data.lengths)
        targets = _targets(model, y, data).take(np.flatnonzero(tokens))
        data = data[places]
        return cls(model, data, targets, weight[tokens], model._held(None, data))

    def slope(self, factor: float) -> float:
        """Return the derivative by the factor: expected minus observed scores."""

        def ask(structure: Structure, potentials: Potentials) -> float:
            tokens = tokens_of(self.data, potentials)
            weights = Weights.of(self.weight[tokens], potentials.offsets)
            return derivative(structure, potentials, factor, self.targets.take(tokens), weights)

        # Chunks do not depend on the number of threads, so that sums do not.
        model: Any = self.model
        found: list[float] = model._ask(self.data, ask, share=SHARE, constraints=self.constraints)
        return sum(found)


def _check_that_it_scales(model: Any) -> None:
    if not model.scales:
        raise ValueError(
            f"method='temperature' divides weights and with them all scores, but those of "
            f"{type(model).__name__} are normalized at each token: use method='isotonic', or "
            "calibrate a CRFClassifier."
        )


def derivative(
    structure: Structure, potentials: Potentials, factor: float, targets: Targets, weights: Weights
) -> float:
    """Return that of the loss by what all potentials are multiplied by: where it is `factor`."""
    scores = potentials.arrays()
    scaled = potentials.with_arrays(scores[0] * factor, scores[1] * factor)
    gradient = structure.zeros(scaled)
    LogLoss().value_and_grad(structure, scaled, targets, weights, gradient)
    pairs = zip(gradient, scores, strict=True)
    # What is forbidden is neither expected nor observed.
    return sum(float(np.vdot(g, np.where(np.isneginf(x), 0.0, x))) for g, x in pairs)


def _divided(weights: Any, number: float) -> Any:
    """Return weights, sparse or not, divided by a number."""
    if not sp.issparse(weights):
        return weights / number
    parts = weights.data / number, weights.indices, weights.indptr
    return sp.csr_array(parts, weights.shape)


def _targets(model: LinearClassifier, y: Any, data: PackedSequences) -> Targets:
    """Return what is known of the labels of tokens, as codes of a fitted model."""
    labels = model._fitted_labels()
    known = labels.codes(model, y, data.offsets)
    if not labels.of_segments:
        return Targets(known.codes, known.allowed)
    return Targets.of_allowed(allowed_codes(known.codes, len(model.classes_)))


def _root(slope: Callable[[float], float], most: float) -> float:
    """Return where a function of at most this size of its argument becomes positive, near 0."""
    here = slope(0.0)
    if here == 0.0:
        return 0.0
    sign, inner, outer = (-1.0 if here > 0.0 else 1.0), 0.0, math.log(2.0)
    while True:
        if slope(sign * outer) * here <= 0.0:
            return float(brentq(slope, sign * inner, sign * outer, xtol=1e-10))
        if outer == most:
            return sign * most
        inner, outer = outer, min(2.0 * outer, most)
