"""Learning from one batch of data after another."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray
from crfkit.data import PackedSequences
from crfkit.data.labels import LabelStream
from crfkit.estimators._base import check_names, check_steps
from crfkit.estimators._input import pack_more, pack_training
from crfkit.estimators._layout import TokenLabels
from crfkit.estimators._solving import SolvedChainClassifier
from crfkit.estimators._training import TrainingData, read_training
from crfkit.features import SequenceVectorizer
from crfkit.labels.coding import read_labels
from crfkit.potentials import LinearModel
from crfkit.potentials.transfer import NamedWeights, extend, transfer_weights
from crfkit.solvers import SOLVERS

_OF_WHOLE_FIT = (
    "objective_", "gap_", "converged_", "training_log_", "validation_scores_", "best_iteration_",
    "best_score_",
)  # fmt: skip


class OnlineChainClassifier(SolvedChainClassifier):
    """What `partial_fit` needs.

    A solver that can be used has ``handles_partial = True`` and a method
    ``partial(objective, start, state)``, which makes one pass over the data of the objective and
    returns the parameters and its state: a dict. `state` is what it returned the last time, or
    None. Arrays of shape (P,) in it belong to the weights and follow them when the model grows: a
    new weight has 0 in them. All else must be numbers, strings and the like, so that it can be
    saved.
    """

    classes_: NDArray[np.object_]
    _partial_state: dict[str, Any]

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        """Learn from a batch; to be called by `partial_fit`, which carries the documentation."""
        self._check_parameters()
        if any(type(one) is not TokenLabels for one in (self._layout, self._fitted_layout)):
            raise ValueError("partial_fit learns labels of tokens, not of segments: use fit.")
        solver = self._make_solver()
        if not getattr(solver, "handles_partial", False):
            raise ValueError(
                f"partial_fit needs a solver that learns from batches, which "
                f"{type(solver).__name__} does not: set solver to one of {_partial_solvers()}."
            )
        training = read_training(
            X, y, sample_weight, pack=self._pack_batch,
            read=partial(read_labels, classes=self._all_classes(classes)),
        )  # fmt: skip
        model = self._choose_model(training)
        start, state = np.zeros(model.n_parameters), None
        if hasattr(self, "coef_"):
            model, start, state = self._continue(model, training)
        with ThreadMap(self.n_jobs) as threads:
            objective = self._objective(model, training, threads)
            parameters, state = solver.partial(objective, start, state)
        attributes = self._model_attributes(model, training, parameters)
        self._forget(_OF_WHOLE_FIT)
        self._set_fitted(
            attributes
            | {
                "n_parameters_": model.n_parameters,
                "n_iter_": getattr(self, "n_iter_", 0) + 1,
                "_partial_state": self._store(state or {}, model),
            }
        )
        return self

    def _all_classes(self, classes: Any) -> NDArray[np.object_]:
        """Return the labels of the model: those of the first call, or of the last fit."""
        if classes is None:
            if not hasattr(self, "coef_"):
                raise ValueError(
                    "the first call of partial_fit needs classes: all labels that will occur."
                )
            return self.classes_
        given = _distinct(classes)
        if not hasattr(self, "coef_"):
            return given
        if set(given) != set(self.classes_):
            raise ValueError(
                f"classes={list(given)!r:.80} are not those of the model, "
                f"{list(self.classes_)!r:.80}: leave classes out, or fit a new model."
            )
        return self.classes_

    def _pack_batch(self, X: Any) -> tuple[PackedSequences, SequenceVectorizer | None]:
        if not hasattr(self, "coef_"):
            return pack_training(X)
        data, vectorizer = pack_more(X, self.vectorizer_, self.n_features_in_)
        check_steps(data, self._n_steps)
        # A larger vocabulary begins with the names of the model.
        known = vectorizer is self.vectorizer_
        check_names(data, self._feature_names if known else None, self._transition_names)
        return data, vectorizer

    def _continue(
        self, model: LinearModel, training: TrainingData
    ) -> tuple[LinearModel, FloatArray, dict[str, Any] | None]:
        """Return the model with all weights it had before, their values, and the solver's state."""
        weights, stored = self._named_weights(), getattr(self, "_partial_state", {})
        arrays = {
            name: weights._replace(fitted=fitted)
            for name, fitted in stored.get("arrays", {}).items()
        }
        model = extend(model, [named.fitted for named in (weights, *arrays.values())])

        def values(named: NamedWeights) -> FloatArray:
            return transfer_weights(named, model, training.classes, training.names)

        state = stored.get("others", {}) | {name: values(named) for name, named in arrays.items()}
        return model, values(weights), state or None

    def _store(self, state: dict[str, Any], model: LinearModel) -> dict[str, Any]:
        """Return the state of a solver with its arrays as fitted weights, which can be saved."""
        shape = (model.n_parameters,)
        arrays, others = {}, {}
        for name, value in state.items():
            if isinstance(value, np.ndarray) and value.shape == shape:
                arrays[name] = model.fitted(value)
            else:
                others[name] = value
        return {"arrays": arrays, "others": others}


def _distinct(classes: Any) -> NDArray[np.object_]:
    """Return the labels that are listed, sorted where they can be compared."""
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__iter__"):
        raise TypeError(f"classes={classes!r:.60} must be a list of labels.")
    try:
        return LabelStream([list(classes)]).classes()
    except (TypeError, ValueError) as error:
        raise type(error)(f"in classes: {error}") from error


def _partial_solvers() -> list[str]:
    """Return the names of the solvers that learn from batches."""
    return sorted(n for n, solver in SOLVERS.items() if getattr(solver, "handles_partial", False))
