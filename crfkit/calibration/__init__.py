"""Probabilities that are as often right as they say: calibration, and how to see it."""

from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names

if TYPE_CHECKING:
    from crfkit.calibration.classifier import (
        CalibratedSequenceClassifier as CalibratedSequenceClassifier,
    )
    from crfkit.calibration.display import ReliabilityDisplay as ReliabilityDisplay

__all__, __getattr__, __dir__ = lazy_names(
    __name__, {"classifier": "CalibratedSequenceClassifier", "display": "ReliabilityDisplay"}
)
