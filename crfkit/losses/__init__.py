"""Losses turn potentials and labels into a value and a gradient to the potentials."""

from crfkit.losses.base import Loss
from crfkit.losses.likelihood import LogLoss
from crfkit.losses.margin import HingeLoss, PerceptronLoss
from crfkit.losses.pseudolikelihood import PseudolikelihoodLoss
from crfkit.losses.softmax_margin import AnnealedHingeLoss, SoftenedHingeLoss, SoftmaxMarginLoss

LOSSES: dict[str, type[Loss]] = {
    "log": LogLoss,
    "softmax_margin": SoftmaxMarginLoss,
    "hinge": HingeLoss,
    "annealed_hinge": AnnealedHingeLoss,
    "pseudolikelihood": PseudolikelihoodLoss,
}

__all__ = [
    "LOSSES",
    "AnnealedHingeLoss",
    "HingeLoss",
    "LogLoss",
    "Loss",
    "PerceptronLoss",
    "PseudolikelihoodLoss",
    "SoftenedHingeLoss",
    "SoftmaxMarginLoss",
]
