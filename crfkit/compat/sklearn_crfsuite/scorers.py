"""The scorers of sklearn-crfsuite, from `crfkit.metrics`."""

from crfkit.metrics.scorers import flat_accuracy, sequence_accuracy

__all__ = ["flat_accuracy", "sequence_accuracy"]
