"""What a loss has to do."""

from __future__ import annotations

from typing import ClassVar, Protocol

from crfkit._types import CodeArray, Counts, FloatArray, Potentials
from crfkit.structures import Structure


class Loss(Protocol):
    """A function of scores and labels, for any structure that offers what it requires.

    A loss may say more of itself, by attributes and methods that solvers ask for:

    - ``is_convex``, by default False: whether it lies above its tangents where the tokens of each
      sequence have one weight;
    - ``is_smooth``, by default True: whether it has a gradient everywhere, not only subgradients;
    - ``is_log_likelihood``, by default False: whether it is the log loss;
    - ``needs_sequence_weights``, by default False: whether it raises ValueError where the weights
      of the tokens of a sequence differ;
    - ``hessian_product(structure, scores, tangent, labels, weight, out)`` and
      ``curvature(structure, scores, labels, weight, out)``, as those of :class:`LogLoss`;
    - ``takes_cost``, by default False: whether estimators make its attribute ``cost`` a cost;
    - ``stages()``, losses that are minimized one after the other to come to its minimum.
    """

    requires: ClassVar[tuple[str, ...]]

    def value_and_grad(
        self,
        structure: Structure,
        scores: Potentials,
        labels: CodeArray,
        weight: FloatArray,
        out: Counts,
    ) -> float:
        """Return the loss of a batch, summed, and its gradient with respect to the scores.

        Parameters
        ----------
        structure : Structure
            Answers questions about the scores.
        scores : Potentials
            Potentials of the parts of N tokens.
        labels : ndarray of shape (N,)
            The true labels.
        weight : ndarray of shape (N,)
            Weights of the tokens, constant within a sequence where sequences are weighted.
        out : Counts
            The gradient: ``out.unary`` is replaced, ``out.pair`` is added to.
        """
