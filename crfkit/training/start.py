"""The first parameters of a fit: zeros, counts, or the weights of a fitted model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from crfkit._params import check_method, check_option
from crfkit._types import FloatArray
from crfkit.potentials.blocks import NAMES_OF, names_of
from crfkit.potentials.counting import Evidence, count_weights
from crfkit.potentials.transfer import NamedWeights, transfer_weights
from crfkit.training.data import TrainingData

if TYPE_CHECKING:
    from crfkit.training.fit import Fit

STARTS = ("zeros", "counts")


def check_init(init: Any) -> None:
    """Raise unless a parameter says where a solver may start."""
    if isinstance(init, str):
        check_option("init", init, STARTS)
        return
    check_method("init", init, "predict", "'zeros', 'counts'")
    fitted = _attributes(init)
    if "dual_coef_" in fitted:
        raise ValueError(
            f"init={init!r:.60} was fitted with a kernel: it has no weights of attributes to start "
            "from. Use kernel='linear' there, or init='zeros'."
        )
    if "coef_" not in fitted:
        raise NotFittedError(
            f"init={init!r:.60} is not fitted, so has no weights to start from: fit it first, or "
            "use init='counts'. In a grid, which clones its values, give FrozenEstimator(model) of "
            "sklearn.frozen."
        )


def first_parameters(init: Any, fit: Fit) -> FloatArray:
    """Return what a fit starts from: zeros, counts, or the weights of a model, by their names."""
    if isinstance(init, str):
        if init == "counts":
            known = evidence(fit.training, fit.problem.labels.of_segments)
            return count_weights(fit.model, fit.training.data, known)
        return np.broadcast_to(0.0, fit.model.n_parameters)  # which takes no room
    return weights_of(_attributes(init), fit)


def _attributes(model: Any) -> Mapping[str, Any]:
    """Return the attributes of a model, or of the one that a FrozenEstimator holds."""
    held: Any = model.estimator if isinstance(model, FrozenEstimator) else model
    attributes: Mapping[str, Any] = vars(held)
    return attributes


def weights_of(fitted: Mapping[str, Any], fit: Fit) -> FloatArray:
    """Return fitted weights as first parameters; ValueError if they are of other labels."""
    of_segments = "length_scores_" in fitted
    if of_segments != fit.problem.labels.of_segments:
        kinds = ("tokens", "segments")
        raise ValueError(
            f"init: that model has learned labels of {kinds[of_segments]}, this one is to learn "
            f"those of {kinds[not of_segments]}: start from one of its kind, or from 'counts'."
        )
    return carried_over(named_weights(fitted), fit.model, fit.training)


def named_weights(fitted: Mapping[str, Any]) -> NamedWeights:
    """Return fitted attributes as weights with their names."""
    names = {kind: fitted.get(name) for kind, name in NAMES_OF.items()}
    return NamedWeights(fitted["classes_"], names, fitted)


def carried_over(weights: NamedWeights, model: Any, training: TrainingData) -> FloatArray:
    """Return older weights as parameters of a model, matched by names."""
    return transfer_weights(weights, model, training.classes, names_of(training.data))


def evidence(training: TrainingData, of_segments: bool) -> Evidence:
    """Return what training data tell of labels: nothing of tokens of weight 0, or of several."""
    data, size, targets = training.data, len(training.classes), training.targets
    before, known = data.before, training.weight > 0.0
    if targets.soft is not None:
        return Evidence(sp.csr_array(targets.soft * known[:, None]), training.weight, before)
    if of_segments:
        before = np.where(targets.states < size, -1, before)
    if targets.allowed is not None:
        known &= targets.allowed.sum(axis=1) == 1
    ends, labels = np.append(0, np.cumsum(known)), training.codes[known] % size
    shares = sp.csr_array((np.ones(len(labels)), labels, ends), (data.n_tokens, size))
    return Evidence(shares, training.weight, before)
