"""A fit with CRFsuite's parameters, and its log."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from crfkit._parallel import SERIAL, free_cores
from crfkit._progress import is_heard, working
from crfkit._types import CodeArray, FloatArray, IterationRecord
from crfkit.compat._counting import CRFsuiteWeights
from crfkit.compat._options import UNLIMITED, Options
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.data.labels import LabelStream, check_lengths
from crfkit.data.targets import Targets
from crfkit.estimators import CRFClassifier
from crfkit.features.attributes import ZeroValues
from crfkit.inference import ViterbiDecoder
from crfkit.inference.base import FittedModel
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.persistence import register
from crfkit.potentials import LinearChainModel
from crfkit.training.data import Schema, TrainingData, pack_new, pack_training, read_training
from crfkit.training.expected import IterationsLeft
from crfkit.training.fit import Fit


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
    featgen_num_features, training_seconds : int, float or None
        Number of weights, and wall time.
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
    """Held-out sequences, labeled by each iteration's weights."""

    def __init__(self, model: LinearChainModel, training: TrainingData, X: Any, y: Any) -> None:
        self.model = model
        self.data: PackedSequences = pack_new(X, training.vectorizer, training.data.n_features)
        Schema.of(training.data).check(Schema.of(self.data))
        stream = LabelStream(y)
        check_lengths(self.data.offsets, stream.offsets, "y_dev")
        self.labels = training.classes.tolist()
        self.truth: CodeArray = stream.codes_for(training.classes)

    def scores(self, parameters: FloatArray) -> dict[str, Any]:
        """Return the entries of the log."""
        model = FittedModel(self.model, self.model.bind(parameters))
        answers = model.ask(self.data, ViterbiDecoder().decode, SERIAL)
        found = np.concatenate([np.empty(0, np.int32), *answers])
        right = found == self.truth
        sequences = np.repeat(np.arange(len(self.data)), self.data.lengths)
        wrong = np.bincount(sequences[~right], minlength=len(self.data)) > 0
        rows = self._label_scores(found, right)
        items = Fraction(int(right.sum()), max(1, len(right)))
        instances = Fraction(int((~wrong).sum()), max(1, len(wrong)))
        averages = {
            f"avg_{name}": sum(getattr(row, name) or 0.0 for row in rows.values()) / len(rows)
            for name in ("precision", "recall", "f1")
        }
        return averages | {
            "scores": rows,
            "item_accuracy": items,
            "item_accuracy_float": float(items),
            "instance_accuracy": instances,
            "instance_accuracy_float": float(instances),
        }

    def _label_scores(self, found: CodeArray, right: Any) -> dict[Any, LabelScore]:
        counts = [
            np.bincount(codes[codes >= 0], minlength=len(self.labels)).tolist()
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


class LogWriter:
    """A callback that logs iterations; `ended` says whether the last one met CRFsuite's rule."""

    def __init__(
        self, options: Options, log: TrainingLog, holdout: Holdout | None, n_sequences: int
    ) -> None:
        self.options, self.log, self.holdout = options, log, holdout
        self.n_sequences, self.ended = max(n_sequences, 1), False
        self._last = IterationRecord(0, 0.0, 0.0, 0, 0, 0.0)

    def __call__(self, record: IterationRecord, parameters: FloatArray) -> bool:
        """Return whether the fit should end."""
        if record.iteration:
            self._note(record, parameters)
        if self.options.is_online:  # whose losses are sums over the sequences
            enough = self.options.is_enough(record.value / self.n_sequences)
            last = record.iteration == int(self.options.values["max_iterations"])
            self.ended = last or (record.iteration > 0 and enough)
        self._last = record
        self.log.training_seconds = record.seconds
        return self.ended

    def _note(self, record: IterationRecord, parameters: FloatArray) -> None:
        entry = {
            "num": record.iteration,
            "scores": {},
            "loss": record.value,
            "feature_norm": math.sqrt(vector_dot(frozen(parameters), frozen(parameters))),
            "time": record.seconds - self._last.seconds,
        }
        if not self.options.is_online:
            entry["active_features"] = record.nonzero
        if self.options.algorithm == "lbfgs":
            entry["error_norm"] = record.gradient_norm
            entry["linesearch_trials"] = record.evaluations - self._last.evaluations
        if self.holdout is not None:
            entry |= self.holdout.scores(parameters)
        self.log.iterations.append(entry)


def fit_classifier(
    options: Options,
    X: Any,
    y: Any,
    dev: tuple[Any, Any] | None = None,
    *,
    zeros: ZeroValues | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> tuple[CRFClassifier, TrainingLog]:
    """Fit a classifier with CRFsuite's parameters.

    Returns the classifier, its labels in the order of their first appearance, and the log, which
    has the scores of the held-out X and y `dev`. Where X is packed, `zeros` are its values of 0.
    """
    values, log = options.values, TrainingLog()
    classifier = CRFClassifier(
        c1=float(values.get("c1", 0.0)),
        c2=float(values.get("c2", 0.0)),
        n_jobs=n_jobs,
        verbose=2 * bool(verbose),
    )
    weights = CRFsuiteWeights(values, zeros)
    problem = replace(
        classifier._problem(), solver=options.solver(), weights=weights,
        n_jobs=free_cores() if n_jobs is None else n_jobs,
    )  # fmt: skip
    pack = partial(pack_training, learn=weights.learn)
    training = read_training(X, y, None, read=problem.labels.read, pack=pack)
    if training.targets.allowed is not None:
        raise ValueError(
            "y has tokens whose label is not known, or one of a set, which CRFsuite has no way to "
            "learn from: use crfkit.CRFClassifier."
        )
    fit = Fit(problem, _by_appearance(training))
    log.featgen_num_features = fit.model.n_parameters
    holdout = None if dev is None else Holdout(fit.model, fit.training, *dev)
    writer = LogWriter(options, log, holdout, len(fit.training.data))
    start = np.zeros(fit.model.n_parameters)
    most = values.get("max_iterations", UNLIMITED)
    with working("fitting", None if most == UNLIMITED else float(most), "iterations") as task:
        left = IterationsLeft(problem.solver) if is_heard() else None

        def told(record: IterationRecord, parameters: FloatArray) -> bool:
            if left is not None:
                task.update(record.iteration, objective=record.value, left=left.after(record))
            return writer(record, parameters)

        result = fit.run(start, told)
        task.tell(objective=result.value, interrupted=result.interrupted)
    result = result._replace(converged=result.converged or writer.ended)
    classifier._set_fitted(fit.attributes(result.parameters) | fit.results(start, result))
    fit.report(result)
    return classifier, log


def _by_appearance(training: TrainingData) -> TrainingData:
    """Return training data with the labels by appearance, which decides between equal scores."""
    order = np.argsort(np.unique(training.codes, return_index=True)[1])
    codes = np.argsort(order).astype(np.int32)[training.codes]
    return training._replace(classes=training.classes[order], targets=Targets(codes))
