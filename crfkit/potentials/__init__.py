"""Score models turn packed features and parameters into scores, and pull gradients back."""

from crfkit.potentials.base import PotentialsModel
from crfkit.potentials.linear_chain import LinearChainModel

__all__ = ["LinearChainModel", "PotentialsModel"]
