"""Losses turn potentials and labels into a value and a gradient to the potentials."""

from crfkit.losses.base import Loss
from crfkit.losses.likelihood import LogLoss
from crfkit.losses.margin import HingeLoss, PerceptronLoss
from crfkit.losses.marginal import LabelwiseLoss, MarginalLoss, PointwiseLoss, RiskLoss
from crfkit.losses.pseudolikelihood import PseudolikelihoodLoss
from crfkit.losses.softmax_margin import AnnealedHingeLoss, SoftenedHingeLoss, SoftmaxMarginLoss

# Losses by the names that `loss=` takes.
LOSSES: dict[str, type[Loss]] = {
    "log": LogLoss,
    "softmax_margin": SoftmaxMarginLoss,
    "hinge": HingeLoss,
    "annealed_hinge": AnnealedHingeLoss,
    "labelwise": LabelwiseLoss,
    "pointwise": PointwiseLoss,
    "pseudolikelihood": PseudolikelihoodLoss,
    "risk": RiskLoss,
}

__all__ = [
    "LOSSES",
    "AnnealedHingeLoss",
    "HingeLoss",
    "LabelwiseLoss",
    "LogLoss",
    "Loss",
    "MarginalLoss",
    "PerceptronLoss",
    "PointwiseLoss",
    "PseudolikelihoodLoss",
    "RiskLoss",
    "SoftenedHingeLoss",
    "SoftmaxMarginLoss",
]
