"""What a fit is to minimize, and how: all that an estimator says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit.labels.base import LabelSpace
from crfkit.labels.segments import SegmentLabels
from crfkit.losses import Loss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.blocks import NAMES_OF, names_of
from crfkit.potentials.spaces import SegmentWeights, TokenWeights, WeightSpace
from crfkit.training.data import TrainingData, read_training
from crfkit.training.early_stopping import EarlyStopping


class FeatureChoice(NamedTuple):
    """Which features get a weight; see :class:`crfkit.CRFClassifier`."""

    min_freq: int = 0
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    boundary_weights: bool = False


@dataclass(frozen=True)
class Problem:
    """What a model is, and how it is fitted.

    Attributes
    ----------
    labels : LabelSpace
        What labels stand for: reads them, and names fitted weights.
    loss : callable
        From the training data, whose labels a cost may name, to the loss.
    penalty : ElasticNet
        Of the parameters.
    solver : Solver
        Ready to be used.
    scale : float
        The loss is multiplied by it.
    features : FeatureChoice
        Which features get a weight.
    weights : object, optional
        Chooses the weights and names fitted ones: `choose` and `attributes` as those of `labels`,
        which is asked if not given.
    early_stopping : EarlyStopping or None
        Watches the fit.
    validation_fraction : float
        The share of the sequences that it holds out.
    random_state : int, RandomState or None
        Chooses them.
    further : callable, optional
        From the fit, its first parameters and the number of iterations that count to further
        fitted attributes.
    n_jobs : int or None
        Threads.
    verbose : int
        How often iterations are printed.
    """

    labels: LabelSpace
    loss: Callable[[TrainingData], Loss]
    penalty: ElasticNet
    solver: Any
    scale: float = 1.0
    features: FeatureChoice = FeatureChoice()
    weights: Any = None
    early_stopping: EarlyStopping | None = None
    validation_fraction: float = 0.1
    random_state: Any = None
    further: Callable[..., dict[str, Any]] | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def read(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
        """Read and check what the model is to be fitted to."""
        training = read_training(X, y, sample_weight, read=self.labels.read)
        used = self.labels.learned_from(training.weight, training.data.offsets)
        return training if used.all() else training.take(np.flatnonzero(used))

    def model(self, training: TrainingData) -> Any:
        """Return the model of potentials with the weights that are to be fitted."""
        return self._weights.choose(self.features, training)

    @property
    def _weights(self) -> Any:
        """What chooses the weights, by what labels are, if it is not given."""
        if self.weights is not None:
            return self.weights
        return weights_of(self.labels)

    def objective(self, model: Any, training: TrainingData, threads: ThreadMap) -> Objective:
        """Return what the solver minimizes."""
        return Objective(
            model, model.structure, self.loss(training), self.penalty,
            training.data, training.codes, self.scale * training.weight, threads,
        )  # fmt: skip

    def attributes(self, model: Any, training: TrainingData, parameters: Any) -> dict[str, Any]:
        """Return the fitted attributes that prediction needs."""
        data = training.data
        named: dict[str, Any] = self._weights.attributes(
            model, parameters, training.classes, training.coding
        )
        return named | {
            "n_features_in_": data.n_features,
            "vectorizer_": training.vectorizer,
            **{NAMES_OF[kind]: names for kind, names in names_of(data).items()},
        }


def weights_of(labels: LabelSpace) -> WeightSpace:
    """Return the weights that models of labels have."""
    return SegmentWeights(labels.segments) if isinstance(labels, SegmentLabels) else TokenWeights()
