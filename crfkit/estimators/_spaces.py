"""What the labels of a fitted model are, and what its potentials are made of."""

from __future__ import annotations

from typing import Any

from crfkit.estimators._kernelized import KernelledTokens
from crfkit.estimators._layout import TokenLabels
from crfkit.estimators._segment_layout import SegmentLabels


def fitted_labels(estimator: Any) -> Any:
    """Return the label space of a fitted estimator, whatever its parameters say by now."""
    return SegmentLabels(None) if "length_scores_" in vars(estimator) else TokenLabels()


def fitted_weights(estimator: Any) -> Any:
    """Return what knows the model of the fitted weights."""
    if "dual_coef_" in vars(estimator):
        return KernelledTokens.of(estimator)
    return fitted_labels(estimator)
