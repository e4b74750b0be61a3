"""Stopping a fit when a validation part is predicted no better."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._params import check_number, check_whole
from crfkit._types import FloatArray, IterationRecord, SolverResult

Scorer = Callable[[Any, Any, Any], float]


@dataclass(kw_only=True, eq=False, repr=False)
class EarlyStopping(BaseEstimator):  # type: ignore[misc]
    """When to end a fit that is watched on a validation part.

    Where the loss has stages ("annealed_hinge", "labelwise"), only the last one is watched, from
    its first weights on: those of the stages before are no models of that loss.

    Parameters
    ----------
    scoring : str or callable, default="accuracy"
        "accuracy" (of tokens), a name of :func:`crfkit.metrics.get_scorer_names`, or a callable
        ``scoring(estimator, X, y)`` whose result is the better the larger it is. X are packed
        sequences.
    patience : int, default=5
        The fit ends when that many scores in a row were no better than the best one.
    every : int, default=1
        Score the model after every so many iterations.
    tol : float, default=0.0
        A score is better if it exceeds the best one by more than this.
    validation_fraction : float, default=0.1
        The share of the sequences that is held out, chosen at random, where `fit` is given no
        `X_val`. Labels that occur in that part only count as errors.

    Examples
    --------
    >>> from crfkit import CRFClassifier, EarlyStopping
    >>> CRFClassifier(early_stopping=EarlyStopping(scoring="entity_f1", patience=3))
    CRFClassifier(early_stopping=EarlyStopping(patience=3, scoring='entity_f1'))
    """

    scoring: str | Scorer = "accuracy"
    patience: int = 5
    every: int = 1
    tol: float = 0.0
    validation_fraction: float = 0.1

    def _check_parameters(self) -> None:
        """Raise TypeError or ValueError if a parameter cannot be used."""
        find_scorer(self.scoring)
        check_whole("patience", self.patience, 1)
        check_whole("every", self.every, 1)
        check_number("tol", self.tol)
        check_number("validation_fraction", self.validation_fraction)
        if not 0.0 < self.validation_fraction < 1.0:
            raise ValueError(
                f"validation_fraction={self.validation_fraction!r} must be between 0 and 1."
            )


def find_scorer(scoring: Any) -> Scorer:
    """Return a scorer by its name, the callable itself, or accuracy by the estimator's `score`."""
    if scoring is None or isinstance(scoring, str) and scoring == "accuracy":
        return _token_accuracy
    if isinstance(scoring, str):
        from crfkit.metrics import get_scorer  # loads what few fits need

        return get_scorer(scoring)
    if callable(scoring):
        return scoring  # type: ignore[no-any-return]
    raise TypeError(
        f"scoring={scoring!r} must be the name of a scorer or a callable "
        "scoring(estimator, X, y) that returns a number."
    )


def _token_accuracy(estimator: Any, X: Any, y: Any) -> float:
    return float(estimator.score(X, y))


def check_score(score: Any) -> float:
    """Return a score as float; TypeError if it is not a number."""
    if isinstance(score, (int, float, np.number)):
        return float(score)
    raise TypeError(f"scoring returned {score!r:.80}; it must return a number.")


class Watch:
    """A callback that scores the model, keeps the best weights and says when to stop."""

    def __init__(self, rules: EarlyStopping, score: Callable[[FloatArray], float]) -> None:
        self.rules, self.score = rules, score
        self.scores: dict[int, float] = {}
        self.stopped = False
        self._best: tuple[IterationRecord, float, FloatArray] | None = None
        self._worse = 0

    def __call__(self, record: IterationRecord, parameters: FloatArray) -> bool:
        """Score an iteration, if it is its turn; returns whether the fit should end."""
        if record.iteration % self.rules.every:
            return False
        self._note(record, parameters)
        self.stopped = self._worse >= self.rules.patience
        return self.stopped

    def _note(self, record: IterationRecord, parameters: FloatArray) -> None:
        """Score parameters, and keep a copy where they are the best so far."""
        score = self.scores[record.iteration] = check_score(self.score(parameters))
        self._worse += 1
        if self._best is None or self._is_better(score, self._best[1]):
            # A copy, as solvers may use theirs again; all at once, as Ctrl-C may come at any time.
            self._best, self._worse = (record, score, np.array(parameters)), 0

    def _is_better(self, score: float, best: float) -> bool:
        """Whether a score exceeds the best one; any number exceeds NaN."""
        return score > best + self.rules.tol or (math.isnan(best) and not math.isnan(score))

    def finish(self, result: SolverResult) -> SolverResult:
        """Return the result with the best parameters in place of the last ones."""
        last = result.history[-1]
        if last.iteration not in self.scores and not result.interrupted:
            # Some solvers return the best parameters that they met, not the last ones.
            self._note(last._replace(value=result.value), result.parameters)
        if self._best is None:  # interrupted before the first score
            return result
        record, score, parameters = self._best
        if self.stopped:
            message = (
                f"stopped early after {result.n_iter} iterations: the best validation score "
                f"{score:.6g} was that of iteration {record.iteration}"
            )
            result = result._replace(message=message)
        return result._replace(parameters=parameters, value=record.value)

    def told(self, *, best: bool = False) -> dict[str, float]:
        """Return the last score, or the best one, for those who look on."""
        if self._best is None:
            return {}
        return {"score": self._best[1] if best else next(reversed(self.scores.values()))}

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes that tell of the validation."""
        found: tuple[Any, ...] = ({}, None, None)
        if self._best is not None:
            found = (self.scores, self._best[0].iteration, self._best[1])
        names = ("validation_scores_", "best_iteration_", "best_score_")
        return dict(zip(names, found, strict=True))
