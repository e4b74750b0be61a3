"""Online learning: an update after each mistake."""

from crfkit.kernels.solvers.online import UpdateCoefficients

__all__ = ["UpdateCoefficients"]
