"""The estimator of sklearn-crfsuite, by its parameter names, over CRFClassifier."""

from __future__ import annotations

import io
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from crfkit._callbacks import CallbackSupportMixin, told_as_a_whole
from crfkit._doc_links import DocLink
from crfkit._other_names import NamedParameters
from crfkit._warnings import warn_user
from crfkit.compat._options import Options
from crfkit.compat._training import TrainingLog, fit_classifier
from crfkit.compat.crfsuite import load_crfsuite, save_crfsuite
from crfkit.compat.pycrfsuite import Tagger
from crfkit.data import LabelSequences
from crfkit.estimators import CRFClassifier
from crfkit.estimators._interface import asked_for_tags, restore, score
from crfkit.persistence import SaveMixin, register
from crfkit.training.data import fitted_labels

#: Parameters of python-crfsuite that have another name here.
_NAMES = {
    "min_freq": "feature.minfreq",
    "all_possible_states": "feature.possible_states",
    "all_possible_transitions": "feature.possible_transitions",
    "pa_type": "type",
}
_NO_PARAMETERS = (
    "algorithm", "verbose", "model_filename", "keep_tempfiles", "trainer_cls", "n_jobs",
)  # fmt: skip


def _of_model(name: str, doc: str) -> property:
    """Return the property that a fitted CRFClassifier has by the same name."""
    return property(lambda self: getattr(self._fitted(), name), doc=doc)


@register(name="crfkit.compat.sklearn_crfsuite.CRF")
@dataclass(eq=False, repr=False)
class CRF(CallbackSupportMixin, NamedParameters, BaseEstimator):  # type: ignore[misc]
    """Linear-chain CRF with the parameters, attributes and methods of sklearn-crfsuite 0.5.

    A parameter that is None has CRFsuite's default.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, default="lbfgs"
        "l2sgd" minimizes the same function as "lbfgs" with ``c1=0`` and comes near its optimum, by
        :class:`crfkit.solvers.SGD`. "ap" (averaged perceptron), "pa" (passive-aggressive) and
        "arow" visit the sequences in the order that CRFsuite has on Linux in a program that trains
        for the first time: the weights are CRFsuite's but for rounding (which may decide between
        equal scores). The same data give the same model.
    min_freq : float, default=0
        (Attribute, label) and (label, next label) pairs get a weight if they occur at least so
        often. As in CRFsuite, an attribute counts with its value: pairs whose values add up to
        less than 0 have no weight unless `min_freq` is negative.
    all_possible_states, all_possible_transitions : bool, default=False
        Give all pairs a weight, also those that do not occur. As in CRFsuite without effect
        where `min_freq` is above 0.
    c1, c2 : float, default=0 and 1
        Weights of the L1 and L2 penalties; `c1` is for "lbfgs" alone.
    max_iterations : int, optional
        Iterations at most; not limited for "lbfgs", 1000 for "l2sgd", 100 passes for the others.
    num_memories : int, optional
        Correction pairs of L-BFGS; 6 to 96, the more the fewer parameters there are, by default.
    epsilon : float, default=1e-5, and 0 for "ap", "pa" and "arow"
        Stop when the norm of the gradient is below this times the norm of the weights (or 1). For
        "ap" and "pa", when the mean loss of a sequence in a pass is below this; for "arow", when it
        is not above it.
    period, delta : int and float, default=10 and 1e-5
        Stop when the objective fell by less than `delta`, relatively, in `period` iterations. For
        "l2sgd" the default of `delta` is 1e-6.
    linesearch : {"MoreThuente", "Backtracking", "StrongBacktracking"}, optional
        Accepted without effect: there is one line search, for the strong Wolfe conditions, and with
        `c1` one that backtracks.
    max_linesearch : int, default=20
        Evaluations in one line search at most.
    calibration_eta, calibration_rate, calibration_samples : optional
    calibration_candidates, calibration_max_trials : optional
        Accepted for "l2sgd", without effect: the calibration has no parameters.
    pa_type : {0, 1, 2}, default=1
        For "pa": PA, PA-I or PA-II of Crammer et al. (2006).
    c : float, default=1.0
        For "pa": what a step is at most (PA-I), or how stiff it is (PA-II).
    error_sensitive, averaging : bool, default=True
        For "pa": a labeling costs the square root of its number of wrong labels, not 1; the weights
        are the mean of those after each sequence.
    variance, gamma : float, default=1.0
        For "arow": the variance of all weights at first, and how stiff a step is.
    verbose : bool, default=False
        Print each iteration.
    model_filename : str, optional
        Where `fit` keeps the model as a ``.crfsuite`` file, which python-crfsuite can open. Where
        the file exists, an estimator that is not fitted predicts with it.
    keep_tempfiles, trainer_cls
        Deprecated, without effect: there are no temporary files and no trainer.
    n_jobs : int, optional
        Threads, as for :class:`crfkit.CRFClassifier`; but if not given, `fit` takes all cores, at
        most ``OMP_NUM_THREADS``, and one thread in a worker of joblib. The result does not depend
        on it. Not in sklearn-crfsuite.

    Attributes
    ----------
    model_ : crfkit.CRFClassifier
        The fitted model.
    training_log_ : TrainingLog
        With ``iterations``, a list of dicts, and ``last_iteration``.

    Examples
    --------
    >>> from crfkit.compat import sklearn_crfsuite
    >>> X, y = [[{"w": "the"}, {"w": "dog"}]], [["DET", "NOUN"]]
    >>> sklearn_crfsuite.CRF(algorithm="lbfgs", c2=0.1).fit(X, y).predict(X)
    [['DET', 'NOUN']]
    """

    algorithm: str | None = None
    min_freq: float | None = None
    all_possible_states: bool | None = None
    all_possible_transitions: bool | None = None
    c1: float | None = None
    c2: float | None = None
    max_iterations: int | None = None
    num_memories: int | None = None
    epsilon: float | None = None
    period: int | None = None
    delta: float | None = None
    linesearch: str | None = None
    max_linesearch: int | None = None
    calibration_eta: float | None = None
    calibration_rate: float | None = None
    calibration_samples: int | None = None
    calibration_candidates: int | None = None
    calibration_max_trials: int | None = None
    pa_type: int | None = None
    c: float | None = None
    error_sensitive: bool | None = None
    averaging: bool | None = None
    variance: float | None = None
    gamma: float | None = None
    verbose: bool = False
    model_filename: str | None = None
    keep_tempfiles: bool = False
    trainer_cls: Any = None
    n_jobs: int | None = None

    save = SaveMixin.save
    _doc_link_module = "crfkit"
    _doc_link_template = DocLink()
    score = score
    _fitted_labels, __setstate__ = fitted_labels, restore

    def __sklearn_tags__(self) -> Tags:
        return asked_for_tags(super().__sklearn_tags__())

    @told_as_a_whole
    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None) -> Self:
        """Fit the weights, and return the estimator.

        Parameters
        ----------
        X, y : iterables of S sequences
            As for :meth:`crfkit.CRFClassifier.fit`, also in what is raised.
        X_dev, y_dev : iterable of sequences, optional
            Held-out data, scored after each iteration for `training_log_`. They do not change the
            model.
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("give both X_dev and y_dev, or neither.")
        model, log = fit_classifier(
            self._options(), X, y, None if X_dev is None else (X_dev, y_dev),
            n_jobs=self.n_jobs, verbose=bool(self.verbose),
        )  # fmt: skip
        if self.model_filename is not None:
            save_crfsuite(model, self.model_filename)
        self._set_model(model, log)
        return self

    def _options(self) -> Options:
        for name in ("keep_tempfiles", "trainer_cls"):
            if getattr(self, name):
                warn_user(f"{name} has no effect and is deprecated: leave it out.", FutureWarning)
        options = Options("lbfgs" if self.algorithm is None else self.algorithm)
        for name, value in self.get_params(deep=False).items():
            if name not in _NO_PARAMETERS and value is not None:
                parameter = _NAMES.get(name, name.replace("calibration_", "calibration."))
                options.set(parameter, value, name)
        return options

    def _set_model(self, model: CRFClassifier, log: TrainingLog) -> None:
        self.model_, self.training_log_ = model, log
        self.__dict__.pop("_tagger", None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is derived."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_tagger"}

    def _check_state(self) -> None:
        """Raise ValueError if a restored model is none."""
        model = vars(self).get("model_")
        if model is not None and type(model) is not CRFClassifier:
            raise ValueError("model_ is no CRFClassifier")

    def _fitted(self) -> CRFClassifier:
        """Return the model; that of `model_filename` where there was no fit."""
        if not hasattr(self, "model_") and self.model_filename is not None:
            try:
                self._set_model(load_crfsuite(self.model_filename), TrainingLog())
            except FileNotFoundError:
                pass  # it will be written by fit, which check_is_fitted asks for
        check_is_fitted(self)
        return self.model_

    def predict(self, X: Any) -> LabelSequences:
        """Return the most probable labels of sequences, as :class:`crfkit.CRFClassifier`."""
        return self._fitted().predict(X)

    def predict_single(self, xseq: Any) -> list[Hashable]:
        """Return the most probable labels of one sequence, a list of tokens."""
        labels: list[Hashable] = self.predict([xseq])[0]
        return labels

    def predict_marginals(self, X: Any) -> list[list[dict[Hashable, float]]]:
        """Return the probabilities of the labels of each token, as a dict; `X` as for `fit`."""
        return self._fitted().predict_marginals(X)

    def predict_marginals_single(self, xseq: Any) -> list[dict[Hashable, float]]:
        """Return the probabilities of the labels of each token of one sequence."""
        return self.predict_marginals([xseq])[0]

    @property
    def classes_(self) -> list[Hashable]:
        """The labels, in the order of their first appearance in the training data."""
        return self._fitted().classes_.tolist()  # type: ignore[no-any-return]

    n_features_in_ = _of_model("n_features_in_", "Number of attributes D of the training data.")
    feature_names_in_ = _of_model(
        "feature_names_in_", "Names of the attributes, shape (D,), where they are known."
    )
    state_features_ = _of_model(
        "state_features_", "The weights that are not 0: ``{(attribute, label): weight}``."
    )
    transition_features_ = _of_model(
        "transition_features_", "The weights that are not 0: ``{(label, next label): weight}``."
    )

    @property
    def attributes_(self) -> list[str]:
        """The attributes that have a weight other than 0."""
        model = self._fitted()
        used = (model.coef_.indptr[1:] > model.coef_.indptr[:-1]).nonzero()[0]
        return model.feature_names_in_[used].tolist()  # type: ignore[no-any-return]

    @property
    def num_attributes_(self) -> int:
        """The number of attributes that have a weight other than 0."""
        return len(self.attributes_)

    @property
    def size_(self) -> int:
        """The size of the model as a ``.crfsuite`` file, in bytes; its labels must be strings."""
        file = io.BytesIO()
        save_crfsuite(self._fitted(), file)
        return len(file.getvalue())

    @property
    def tagger_(self) -> Tagger:
        """The model as a tagger of python-crfsuite."""
        if "_tagger" not in self.__dict__:
            self._tagger = Tagger.from_classifier(self._fitted())
        return self._tagger
