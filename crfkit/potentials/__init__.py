"""Score models turn packed features and parameters into scores, and pull gradients back."""

from crfkit.potentials.base import ScoreModel
from crfkit.potentials.linear_chain import LinearScores

__all__ = ["LinearScores", "ScoreModel"]
