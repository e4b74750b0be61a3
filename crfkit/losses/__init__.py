"""Losses turn scores and labels into a value and a gradient with respect to the scores."""

from crfkit.losses.base import Loss
from crfkit.losses.likelihood import LogLoss

LOSSES: dict[str, type[Loss]] = {"log": LogLoss}

__all__ = ["LOSSES", "LogLoss", "Loss"]
