"""What the labels of a fitted model are, and what its potentials are made of."""

from __future__ import annotations

from typing import Any

from crfkit.estimators._kernelized import KernelledTokens
from crfkit.labels.base import LabelSpace
from crfkit.labels.segments import SegmentLabels
from crfkit.labels.tokens import TokenLabels
from crfkit.training.problem import weights_of


def fitted_labels(estimator: Any) -> LabelSpace:
    """Return the label space of a fitted estimator, whatever its parameters say by now."""
    own: LabelSpace | None = type(estimator).label_space
    if own is not None:
        return own
    return SegmentLabels(None) if "length_scores_" in vars(estimator) else TokenLabels()


def fitted_weights(estimator: Any) -> Any:
    """Return what knows the model of the fitted weights."""
    if "dual_coef_" in vars(estimator):
        return KernelledTokens.of(estimator)
    return weights_of(fitted_labels(estimator))
