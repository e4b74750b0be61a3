"""Reliability diagrams, beside the other pictures of models."""

from crfkit.calibration import ReliabilityDisplay as ReliabilityDisplay
