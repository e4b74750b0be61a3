"""Active learning: which sequences are worth a label."""

from crfkit.active_learning.queries import (
    information_density,
    least_confidence,
    margin,
    n_best_entropy,
    query,
    sequence_entropy,
    token_entropy,
)

__all__ = [
    "information_density",
    "least_confidence",
    "margin",
    "n_best_entropy",
    "query",
    "sequence_entropy",
    "token_entropy",
]
