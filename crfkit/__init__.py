"""Structured linear models for sequences, in scikit-learn."""

from crfkit._version import __version__

__all__ = ["__version__"]
