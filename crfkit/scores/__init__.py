"""Score models turn packed features and parameters into scores, and pull gradients back."""

from crfkit.scores.base import ScoreModel
from crfkit.scores.linear import LinearScores

__all__ = ["LinearScores", "ScoreModel"]
