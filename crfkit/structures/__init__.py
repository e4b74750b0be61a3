"""Structures answer questions about scores: sums, maxima, path scores, expectations."""

from crfkit.structures.base import NoPathError, Structure
from crfkit.structures.chain import Chain

__all__ = ["Chain", "NoPathError", "Structure"]
