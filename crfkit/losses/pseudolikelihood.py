"""The negative log-pseudolikelihood."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crfkit._types import CodeArray, Counts, FloatArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.data.targets import Targets, Weights
from crfkit.kernels.chain.sum import chain_shift
from crfkit.kernels.token_losses import slopes_of_logarithm
from crfkit.losses.base import Loss
from crfkit.losses.likelihood import forbidden_labels
from crfkit.structures import Capability, Structure
from crfkit.structures.potentials import exp_in_place


class PseudolikelihoodLoss(Loss):
    """``- sum_t w_t log P(y_t | x, all other labels)`` (Besag 1975).

    In a chain these are the labels of the two neighbors, in a forest those of the parent and the
    children, so that each term is a softmax over the labels of one token: no labelings are summed
    over, and the loss is convex. It has the optimum of the log loss where the data are those of a
    model and plenty. Where labels follow from their neighbors, it learns transitions that are too
    strong for labels that are not known. Of segments, a term is that of the code of a token: with
    all other codes given, it may begin a segment or go on with one.

    `w_t` is the weight of the token. One of weight 0 has no term of its own, but its label stands
    in those of its neighbors; labels that are known in part are an error.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> CRFClassifier(loss="pseudolikelihood")
    CRFClassifier(loss='pseudolikelihood')
    """

    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.CONDITIONALS})
    is_convex: ClassVar[bool] = True
    has_hessian: ClassVar[bool] = True

    def value_and_grad(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> float:
        """Return the loss of a batch and its gradient, as in :class:`Loss`."""
        labels = targets.labels
        terms, slopes = _compare(structure, potentials, labels, weights.tokens)
        structure.add_conditional_counts(potentials, labels, slopes, out)
        return float(np.sum(terms))

    def hessian_product(
        self,
        structure: Structure,
        potentials: Potentials,
        tangent: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> None:
        """Write the product of the Hessian with a direction, as :meth:`LogLoss.hessian_product`.

        Of any structure, and with any weights.
        """
        labels = targets.labels
        p = _probabilities(structure, potentials, labels)
        moved = potentials.with_arrays(*tangent.arrays())
        change = structure.without_offset().conditional_scores(moved, labels)
        change[p == 0.0] = 0.0
        change -= np.sum(p * change, axis=1, keepdims=True)
        slopes = weights.tokens[:, None] * p * change
        structure.add_conditional_counts(potentials, labels, slopes, out)

    def hessian_diagonal(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> None:
        """Write an estimate of the diagonal of the Hessian: the variances of all codes."""
        labels = targets.labels
        p = _probabilities(structure, potentials, labels)
        variance = weights.tokens[:, None] * p * (1.0 - p)
        structure.add_conditional_counts(potentials, labels, variance, out)


def _compare(
    structure: Structure, potentials: Potentials, labels: CodeArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the weighted loss of each token, (N,), and its slopes by the scores, (N, C)."""
    scores = structure.conditional_scores(potentials, labels)
    own = scores[np.arange(len(labels)), labels]
    top, others = np.empty((2, len(own)))
    slopes = np.empty_like(scores)  # not the scores themselves: vectors of columns overlap
    chain_shift(frozen(scores), slopes, top)
    impossible = np.isneginf(own) & (top < np.inf)  # an overflow is no such case
    if impossible.any():
        raise forbidden_labels(potentials, int(np.argmax(impossible)))
    exp_in_place(slopes)
    slopes_of_logarithm(frozen(slopes), frozen(labels), frozen(weight), slopes, others)
    rest = others + (np.exp(own - top) - 1.0)  # exact where the label is the best one
    return weight * (np.log1p(rest) + (top - own)), slopes


def _probabilities(structure: Structure, potentials: Potentials, labels: CodeArray) -> FloatArray:
    """Return the probability of each code of a token, all others given, shape (N, C)."""
    slopes = _compare(structure, potentials, labels, np.ones(len(labels)))[1]
    slopes[np.arange(len(labels)), labels] += 1.0
    return slopes
