"""Models turn packed features and parameters into potentials, and pull gradients back."""

from crfkit.potentials.base import PotentialsModel
from crfkit.potentials.linear import LinearChainModel, LinearModel

__all__ = ["LinearChainModel", "LinearModel", "PotentialsModel"]
