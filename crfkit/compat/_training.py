"""A fit with CRFsuite's parameters, and its log."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray, IntArray, IterationRecord, SolverResult
from crfkit.compat._counting import ZeroValues, choose_as_crfsuite
from crfkit.compat._options import UNLIMITED, Options
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.data.chunks import make_chunks
from crfkit.data.labels import LabelStream
from crfkit.data.validation import check_lengths
from crfkit.estimators import CRFClassifier
from crfkit.estimators._input import pack_new
from crfkit.estimators._training import Labeled, TrainingData
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.persistence import register
from crfkit.potentials import LinearChainModel
from crfkit.potentials.blocks import NAMES_OF
from crfkit.solvers.base import Callback, SmoothObjective


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
        For each iteration ``num``, ``loss``, ``feature_norm``, ``time`` and ``scores``; of "lbfgs"
        also ``active_features``, ``error_norm`` and ``linesearch_trials``, of "l2sgd" the first of
        these. For "pa" with averaging, ``feature_norm`` is that of the model, where CRFsuite's is
        that of the weights before they are averaged. With held-out data also ``avg_precision``,
        ``avg_recall``, ``avg_f1``, ``item_accuracy``, ``instance_accuracy`` (fractions) and these
        with ``_float`` at the end.
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
    model : LinearChainModel
        The score model of the fit.
    training : TrainingData
        Tells the attributes and labels.
    X, y : iterable of sequences
        Held-out data.
    """

    def __init__(self, model: LinearChainModel, training: TrainingData, X: Any, y: Any) -> None:
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
        found = [structure.argmax(self.model.scores(weights, self.data, c))[0] for c in chunks]
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
    """The solver of an algorithm, which writes each iteration into a log.

    Parameters
    ----------
    options : Options
        Algorithm and parameters.
    log : TrainingLog
        Written into.
    holdout : Holdout or None
        Scored after each iteration.
    n_sequences : int
        S; the loss of a pass of an online algorithm is a sum over them.
    """

    def __init__(
        self, options: Options, log: TrainingLog, holdout: Holdout | None, n_sequences: int
    ) -> None:
        self.options, self.log, self.holdout = options, log, holdout
        self.solver, self.n_sequences = options.solver(), max(n_sequences, 1)
        self.max_iter = self.solver.max_iter if self.solver.max_iter < UNLIMITED else None

    def solve(
        self, objective: SmoothObjective, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize an objective; see :class:`crfkit.solvers.base.Solver`."""
        last, ended = IterationRecord(0, 0.0, 0.0, 0, 0, 0.0), False

        def note(record: IterationRecord, parameters: FloatArray) -> bool:
            nonlocal last, ended
            if record.iteration:
                self._note(record, last, parameters)
            last, ended = record, self._is_last(record)
            return (callback is not None and bool(callback(record, parameters))) or ended

        result = self.solver.solve(objective, start, note)
        self.log.training_seconds = last.seconds
        return result._replace(converged=result.converged or ended)

    def _is_last(self, record: IterationRecord) -> bool:
        """Return whether an online algorithm ends after a pass, by CRFsuite's rules."""
        if not self.options.is_online:
            return False
        few = record.iteration > 0 and self.options.is_enough(record.value / self.n_sequences)
        return few or record.iteration == self.solver.max_iter

    def _note(self, record: IterationRecord, last: IterationRecord, parameters: FloatArray) -> None:
        entry = {
            "num": record.iteration,
            "scores": {},
            "loss": record.value,
            "feature_norm": math.sqrt(vector_dot(frozen(parameters), frozen(parameters))),
            "time": record.seconds - last.seconds,
        }
        if not self.options.is_online:
            entry["active_features"] = record.nonzero
        if self.options.algorithm == "lbfgs":
            entry["error_norm"] = record.gradient_norm
            entry["linesearch_trials"] = record.evaluations - last.evaluations
        if self.holdout is not None:
            entry |= self.holdout.scores(parameters)
        self.log.iterations.append(entry)


class CRFsuiteClassifier(CRFClassifier):
    """A CRFClassifier that chooses its weights as CRFsuite does, and keeps CRFsuite's log."""

    _options: Options
    _log: TrainingLog
    _zeros: ZeroValues
    _n_sequences: int
    _kept: NDArray[np.bool_] | None = None
    _dev: tuple[Any, Any] | None = None
    _holdout: Holdout | None = None

    def _learn(self, training: TrainingData, validation: Labeled | None = None) -> Self:
        """Fit to data that were read, the labels in the order of their first appearance.

        CRFsuite decides by it between equal scores.
        """
        order = np.argsort(np.unique(training.codes, return_index=True)[1])
        codes = np.argsort(order).astype(np.int32)[training.codes]
        ordered = training._replace(classes=training.classes[order], codes=codes)
        return super()._learn(ordered, validation)

    def _choose_model(self, training: TrainingData) -> LinearChainModel:
        values = self._options.values
        model = choose_as_crfsuite(
            training.data,
            training.codes,
            len(training.classes),
            self._zero_entries(training),
            min_freq=float(values["feature.minfreq"]),
            all_states=bool(values["feature.possible_states"]),
            all_transitions=bool(values["feature.possible_transitions"]),
        )
        self._log.featgen_num_features, self._n_sequences = model.n_parameters, len(training.data)
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
        return LoggedSolver(self._options, self._log, self._holdout, self._n_sequences)


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
        c2=float(values.get("c2", 0.0)),
        n_jobs=n_jobs,
        verbose=2 * bool(verbose),
    )
    log = TrainingLog()
    classifier._options, classifier._log, classifier._dev = options, log, dev
    classifier._zeros, classifier._kept = (ZeroValues(), None) if zeros is None else zeros
    classifier.fit(X if isinstance(X, PackedSequences) else classifier._zeros.watch(X), y)
    fitted = CRFClassifier(**classifier.get_params(deep=False))
    kept = (name for name in vars(classifier) if name.endswith("_") or name in NAMES_OF.values())
    fitted._set_fitted({name: getattr(classifier, name) for name in kept})
    return fitted, log


def _vocabulary(training: TrainingData) -> dict[str, int]:
    """Return the columns of the attributes of training data by their names."""
    if training.vectorizer is not None:
        return training.vectorizer.vocabulary_
    names = training.data.feature_names
    return {} if names is None else {name: column for column, name in enumerate(names)}
