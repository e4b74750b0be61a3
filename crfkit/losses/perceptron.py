"""The loss that the perceptron goes down."""

from __future__ import annotations

import numpy as np

from crfkit._types import CodeArray, FloatArray, Potentials
from crfkit.losses._worst import WorstLabellingLoss
from crfkit.structures import Structure


class PerceptronLoss(WorstLabellingLoss):
    """``max_y score(x, y) - score(x, y_i)``: how much the best labelling scores above the true one.

    A step along its subgradient is the update of the structured perceptron (Collins 2002). It has
    no margin, so that it is 0, its least value, where all weights are 0: a search that starts there
    stays there. To learn by such steps use :class:`crfkit.StructuredPerceptron`.

    Examples
    --------
    >>> from crfkit.losses import PerceptronLoss
    >>> PerceptronLoss()
    PerceptronLoss()
    """

    def _search(
        self, structure: Structure, scores: Potentials, labels: CodeArray, gold: FloatArray
    ) -> CodeArray:
        return structure.argmax(scores)[0]

    def _linear(
        self, scores: Potentials, labels: CodeArray, path: CodeArray, rise: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        return rise, np.ones_like(rise)
