"""CRFsuite's training parameters, and the fit and log they stand for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._jit import frozen
from crfkit._params import check_option
from crfkit._types import CodeArray, FloatArray, IntArray, IterationRecord, SolverResult
from crfkit._validation import check_lengths
from crfkit.compat._counting import ZeroValues, choose_as_crfsuite
from crfkit.data import PackedSequences
from crfkit.data.chunks import make_chunks
from crfkit.data.labels import LabelStream
from crfkit.estimators import CRFClassifier
from crfkit.estimators._input import pack_new
from crfkit.estimators._training import TrainingData
from crfkit.kernels.vector import vector_dot
from crfkit.persistence import register
from crfkit.scores import LinearScores
from crfkit.solvers import LBFGS, OWLQN, SGD
from crfkit.solvers.base import Callback, SmoothObjective

Value = float | int | bool | str

UNLIMITED = 2**31 - 1  # CRFsuite's default number of iterations of L-BFGS
LINE_SEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")
_FEATURES: dict[str, Value] = {
    "feature.minfreq": 0.0,
    "feature.possible_states": False,
    "feature.possible_transitions": False,
}
#: The parameters of each algorithm, by python-crfsuite's names, with their defaults.
PARAMETERS: dict[str, dict[str, Value]] = {
    "lbfgs": _FEATURES
    | {
        "c1": 0.0, "c2": 1.0, "max_iterations": UNLIMITED, "num_memories": 6, "epsilon": 1e-5,
        "period": 10, "delta": 1e-5, "linesearch": "MoreThuente", "max_linesearch": 20,
    },
    "l2sgd": _FEATURES
    | {
        "c2": 1.0, "max_iterations": 1000, "period": 10, "delta": 1e-6, "calibration.eta": 0.1,
        "calibration.rate": 2.0, "calibration.samples": 1000.0, "calibration.candidates": 10,
        "calibration.max_trials": 20,
    },
}  # fmt: skip
#: Algorithms of CRFsuite that are not there, with other names for them.
MISSING = {
    "ap": "ap", "averaged-perceptron": "ap", "pa": "pa", "passive-aggressive": "pa",
    "arow": "arow",
}  # fmt: skip
ALIASES = {"stop": "period"}
# Of all other numbers 0.
_LEAST = {"num_memories": 1, "max_linesearch": 1, "feature.minfreq": -math.inf}


class Options:
    """An algorithm and its parameters.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd"}
        "l2sgd" minimizes the same function as "lbfgs" with ``c1=0``, and comes near its optimum.

    Raises
    ------
    ValueError
        If there is no such algorithm.
    """

    def __init__(self, algorithm: str = "lbfgs") -> None:
        name = str(algorithm).lower()
        if name in MISSING:
            raise ValueError(
                f"algorithm={algorithm!r} is not available (yet): use algorithm='lbfgs'."
            )
        check_option("algorithm", name, PARAMETERS)
        self.algorithm = name
        self.values = dict(PARAMETERS[name])

    def set(self, name: str, value: Any, shown: str | None = None) -> None:
        """Set a parameter; `shown` is its name in messages.

        Raises
        ------
        ValueError
            If the algorithm has no such parameter, or the value is none for it.
        """
        name = ALIASES.get(name, name)
        shown = shown or name
        if name not in self.values:
            raise ValueError(
                f"algorithm={self.algorithm!r} has no parameter {shown!r}. It has "
                f"{', '.join(self.values)}."
            )
        chosen = _cast(shown, value, PARAMETERS[self.algorithm][name])
        if isinstance(chosen, str):
            check_option(shown, chosen, LINE_SEARCHES)
        elif chosen < (least := _LEAST.get(name, 0)):
            raise ValueError(f"{shown}={value!r} must be at least {least}.")
        self.values[name] = chosen

    def solver(self) -> LBFGS | SGD:
        """Return the solver with its stopping rules, which mean the same as CRFsuite's."""
        values = self.values
        rules: dict[str, Any] = {
            "max_iter": int(values["max_iterations"]),
            "tol": float(values["delta"]),
            "period": int(values["period"]) or UNLIMITED,  # 0 turns this test off
        }
        if self.algorithm == "l2sgd":
            return SGD(**rules)
        return (OWLQN if values["c1"] else LBFGS)(
            **rules,
            memory=int(values["num_memories"]),
            gtol=float(values["epsilon"]),
            max_line_search=int(values["max_linesearch"]),
        )


def _cast(name: str, value: Any, default: Value) -> Value:
    """Return a value, which may be a string, as the type of the default."""
    kind = type(default)
    try:
        if kind is str:
            return str(value)
        number = float(value)
        if kind is float and math.isfinite(number):
            return number
        if kind is not float and number == int(number) and (kind is int or number in (0, 1)):
            return kind(number)
    except (TypeError, OverflowError, ValueError):
        pass  # told below, as any other value that does not fit
    wanted = {float: "a finite number", int: "a whole number", bool: "True, False, 1 or 0"}[kind]
    raise ValueError(f"{name}={value!r} must be {wanted}.")


class LabelScore(NamedTuple):
    """Counts and scores of a label on held-out data, as python-crfsuite names them."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


@register(name="crfkit.compat.TrainingLog")
class TrainingLog:
    """What happened during a fit.

    Attributes
    ----------
    iterations : list of dict
        For each iteration ``num``, ``loss``, ``feature_norm``, ``active_features``, ``time`` and
        ``scores``; of "lbfgs" also ``error_norm`` and ``linesearch_trials``; with held-out data
        also ``avg_precision``, ``avg_recall``, ``avg_f1``, ``item_accuracy``,
        ``instance_accuracy`` (fractions) and these with ``_float`` at the end.
    last_iteration : dict or None
        The last of them.
    featgen_num_features : int or None
        Number of weights.
    training_seconds : float or None
        Wall time.
    """

    def __init__(self) -> None:
        self.iterations: list[dict[str, Any]] = []
        self.featgen_num_features: int | None = None
        self.training_seconds: float | None = None

    @property
    def last_iteration(self) -> dict[str, Any] | None:
        """The last iteration."""
        return self.iterations[-1] if self.iterations else None


class Holdout:
    """Held-out sequences, labeled by each iteration's weights.

    Parameters
    ----------
    model : LinearScores
        The score model of the fit.
    training : TrainingData
        Tells the attributes and labels.
    X, y : iterable of sequences
        Held-out data.
    """

    def __init__(self, model: LinearScores, training: TrainingData, X: Any, y: Any) -> None:
        self.model = model
        self.data: PackedSequences = pack_new(X, training.vectorizer, training.data.n_features)
        stream = LabelStream(y)
        check_lengths(self.data.offsets, stream.offsets, "y_dev")
        self.labels = training.classes.tolist()
        self.truth: CodeArray = stream.codes_for(training.classes)

    def scores(self, parameters: FloatArray) -> dict[str, Any]:
        """Return the entries of the log."""
        found = self._predict(parameters)
        right = found == self.truth
        sequences = np.repeat(np.arange(len(self.data)), self.data.lengths)
        wrong = np.bincount(sequences[~right], minlength=len(self.data)) > 0
        rows = self._label_scores(found, right)
        items = Fraction(int(right.sum()), max(1, len(right)))
        instances = Fraction(int((~wrong).sum()), max(1, len(wrong)))
        averages = [sum(row[i] or 0.0 for row in rows.values()) / len(rows) for i in (3, 4, 5)]
        return {
            "scores": rows,
            **dict(zip(("avg_precision", "avg_recall", "avg_f1"), averages, strict=True)),
            "item_accuracy": items,
            "item_accuracy_float": float(items),
            "instance_accuracy": instances,
            "instance_accuracy_float": float(instances),
        }

    def _predict(self, parameters: FloatArray) -> CodeArray:
        weights = self.model.bind(parameters)
        chunks = make_chunks(self.data.offsets, self.model.chunk_tokens)
        structure = self.model.structure
        found = [structure.max(self.model.scores(weights, self.data, c))[0] for c in chunks]
        return np.concatenate([np.empty(0, np.int32), *found])

    def _label_scores(self, found: CodeArray, right: Any) -> dict[Any, LabelScore]:
        size = len(self.labels)
        counts = [
            np.bincount(codes[codes >= 0], minlength=size).tolist()
            for codes in (found[right], found, self.truth)
        ]
        columns = zip(self.labels, *counts, strict=True)
        return {label: _label_score(*numbers) for label, *numbers in columns}


def _label_score(match: int, model: int, ref: int) -> LabelScore:
    if not ref:
        return LabelScore(0, 0, 0, None, None, None)
    precision, recall = match / max(1, model), match / ref
    f1 = 2.0 * precision * recall / (precision + recall) if match else 0.0
    return LabelScore(match, model, ref, precision, recall, f1)


class LoggedSolver:
    """A solver that writes each iteration into a log."""

    def __init__(self, solver: LBFGS | SGD, log: TrainingLog, holdout: Holdout | None) -> None:
        self.solver, self.log, self.holdout = solver, log, holdout
        self.max_iter = solver.max_iter if solver.max_iter < UNLIMITED else None

    def solve(
        self, objective: SmoothObjective, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize an objective; see :class:`crfkit.solvers.base.Solver`."""
        last = IterationRecord(0, 0.0, 0.0, 0, 0, 0.0)

        def note(record: IterationRecord, parameters: FloatArray) -> bool | None:
            nonlocal last
            if record.iteration:
                self._note(record, last, parameters)
            last = record
            return callback(record, parameters) if callback is not None else None

        result = self.solver.solve(objective, start, note)
        self.log.training_seconds = last.seconds
        return result

    def _note(self, record: IterationRecord, last: IterationRecord, parameters: FloatArray) -> None:
        entry = {
            "num": record.iteration,
            "scores": {},
            "loss": record.value,
            "feature_norm": math.sqrt(vector_dot(frozen(parameters), frozen(parameters))),
            "active_features": record.nonzero,
            "time": record.seconds - last.seconds,
        }
        if not isinstance(self.solver, SGD):
            entry["error_norm"] = record.gradient_norm
            entry["linesearch_trials"] = record.evaluations - last.evaluations
        if self.holdout is not None:
            entry |= self.holdout.scores(parameters)
        self.log.iterations.append(entry)


class CRFsuiteClassifier(CRFClassifier):
    """A CRFClassifier that chooses its weights as CRFsuite does, and keeps CRFsuite's log."""

    _options: Options
    _log: TrainingLog
    _order: IntArray
    _zeros: ZeroValues
    _kept: NDArray[np.bool_] | None = None
    _dev: tuple[Any, Any] | None = None
    _holdout: Holdout | None = None

    def _choose_model(self, training: TrainingData) -> LinearScores:
        values = self._options.values
        model = choose_as_crfsuite(
            training.data,
            training.codes,
            len(training.classes),
            self._zero_entries(training),
            min_freq=float(values["feature.minfreq"]),
            all_states=bool(values["feature.possible_states"]),
            all_steps=bool(values["feature.possible_transitions"]),
        )
        self._order = np.argsort(np.unique(training.codes, return_index=True)[1])
        self._log.featgen_num_features = model.n_parameters
        if self._dev is not None:
            self._holdout = Holdout(model, training, *self._dev)
        return model

    def _zero_entries(self, training: TrainingData) -> tuple[IntArray, IntArray]:
        """Return the columns of attributes with the value 0, and the tokens."""
        names, tokens = self._zeros.entries(self._kept)
        vocabulary = _vocabulary(training) if self._zeros.index else {}
        columns = np.array([vocabulary[name] for name in self._zeros.index], np.int64)
        return columns[names] if len(names) else names, tokens

    def _make_solver(self) -> Any:
        return LoggedSolver(self._options.solver(), self._log, self._holdout)


def fit_classifier(
    options: Options,
    X: Any,
    y: Any,
    dev: tuple[Any, Any] | None = None,
    *,
    zeros: tuple[ZeroValues, NDArray[np.bool_]] | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> tuple[CRFClassifier, TrainingLog]:
    """Fit a classifier with CRFsuite's parameters.

    Parameters
    ----------
    options : Options
        Algorithm and parameters.
    X, y : iterable of sequences
        As for :meth:`crfkit.CRFClassifier.fit`.
    dev : tuple or None
        Held-out ``X`` and ``y``, scored after each iteration.
    zeros : tuple or None
        Where X is packed: the values of 0, and which of their tokens are those of X.
    n_jobs : int or None
        Threads.
    verbose : bool
        Print each iteration.

    Returns
    -------
    classifier : CRFClassifier
        The fitted classifier, its labels in the order of their first appearance.
    log : TrainingLog
        The log.
    """
    values = options.values
    classifier = CRFsuiteClassifier(
        c1=float(values.get("c1", 0.0)),
        c2=float(values["c2"]),
        n_jobs=n_jobs,
        verbose=2 * bool(verbose),
    )
    log = TrainingLog()
    classifier._options, classifier._log, classifier._dev = options, log, dev
    classifier._zeros, classifier._kept = (ZeroValues(), None) if zeros is None else zeros
    classifier.fit(X if isinstance(X, PackedSequences) else classifier._zeros.watch(X), y)
    fitted = CRFClassifier(**classifier.get_params(deep=False))
    fitted._set_fitted({name: getattr(classifier, name) for name in _KEPT})
    fitted._set_fitted(_reordered(classifier, classifier._order))
    return fitted, log


def _vocabulary(training: TrainingData) -> dict[str, int]:
    """Return the columns of the attributes of training data by their names."""
    if training.vectorizer is not None:
        return training.vectorizer.vocabulary_
    names = training.data.feature_names
    return {} if names is None else {name: column for column, name in enumerate(names)}


_KEPT = (
    "start_weights_", "end_weights_", "step_coef_", "n_features_in_", "vectorizer_",
    "_feature_names", "_step_names", "n_parameters_", "n_iter_", "converged_", "objective_",
    "gap_", "training_log_",
)  # fmt: skip


def _reordered(classifier: CRFClassifier, order: IntArray) -> dict[str, Any]:
    """Return labels and weights with the labels in another order; boundary weights are all 0."""
    coef = sp.csr_array(classifier.coef_[:, order])
    coef.sort_indices()
    return {
        "classes_": classifier.classes_[order],
        "coef_": coef,
        "transitions_": np.ascontiguousarray(classifier.transitions_[np.ix_(order, order)]),
    }
