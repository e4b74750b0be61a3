"""Models turn packed features and parameters into potentials, and pull gradients back."""

from crfkit.potentials.base import PotentialsModel
from crfkit.potentials.linear import LinearModel
from crfkit.potentials.linear_chain import LinearChainModel

__all__ = ["LinearChainModel", "LinearModel", "PotentialsModel"]
