"""Stopping a fit when a validation part is predicted no better."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from crfkit._params import check_number, check_whole
from crfkit._types import FloatArray, IterationRecord, SolverResult
from crfkit.metrics import get_scorer
from crfkit.training.data import Labeled, TrainingData, read_validation

Scorer = Callable[[Any, Any, Any], float]


class EarlyStopping(BaseEstimator):  # type: ignore[misc]
    """When to end a fit that is watched on a validation part.

    Where the loss has stages, such as "annealed_hinge", only the last one is watched, from its
    first weights on: those of the stages before are no models of that loss.

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

    Examples
    --------
    >>> from crfkit import CRFClassifier, EarlyStopping
    >>> CRFClassifier(early_stopping=EarlyStopping(scoring="entity_f1", patience=3))
    CRFClassifier(early_stopping=EarlyStopping(patience=3, scoring='entity_f1'))
    """

    def __init__(
        self,
        *,
        scoring: str | Scorer = "accuracy",
        patience: int = 5,
        every: int = 1,
        tol: float = 0.0,
    ) -> None:
        self.scoring = scoring
        self.patience = patience
        self.every = every
        self.tol = tol

    def _check_parameters(self) -> None:
        """Raise TypeError or ValueError if a parameter cannot be used."""
        find_scorer(self.scoring)
        check_whole("patience", self.patience, 1)
        check_whole("every", self.every, 1)
        check_number("tol", self.tol)


def find_rules(given: Any) -> EarlyStopping | None:
    """Return the rules of the parameter `early_stopping`; None where a fit is not watched.

    Raises
    ------
    TypeError, ValueError
        If it is neither a flag nor rules, or these have a parameter that cannot be used.
    """
    if isinstance(given, EarlyStopping):
        given._check_parameters()
        return given
    if not isinstance(given, (bool, np.bool_)):
        raise TypeError(f"early_stopping={given!r} must be True, False or an EarlyStopping.")
    return EarlyStopping() if given else None


def hold_out(
    training: TrainingData, X_val: Any, y_val: Any, *, early: bool, fraction: float,
    random_state: Any,
) -> tuple[TrainingData, Labeled | None]:  # fmt: skip
    """Return what to learn from, and what to watch the fit on, if it is to be watched.

    Parameters
    ----------
    training : TrainingData
        All that there is to learn from.
    X_val, y_val
        What the user wants the fit to be watched on, if anything.
    early : bool
        Whether it is to be watched.
    fraction : float
        The share of the sequences that are held out for it.
    random_state : int, RandomState or None
        Chooses them.

    Raises
    ------
    ValueError, TypeError
        If X_val and y_val cannot be used, or nothing is left to learn from.
    """
    given = X_val is not None
    if given != (y_val is not None):
        missing, present = ("y_val", "X_val") if given else ("X_val", "y_val")
        raise ValueError(f"{present} was given without {missing}: give both, or neither.")
    if not early:
        if given:
            raise ValueError(
                "X_val and y_val are used by early stopping only: set early_stopping=True, or "
                "leave them out."
            )
        return training, None
    if given:
        return training, read_validation(X_val, y_val, training)
    total = len(training.data)
    count = math.ceil(fraction * total)
    if count >= total:
        raise ValueError(
            f"early_stopping holds out {count} of {total} sequences, which leaves none to "
            "learn from: give more sequences, or X_val and y_val."
        )
    order = check_random_state(random_state).permutation(total)
    held, kept = np.sort(order[:count]), np.sort(order[count:])
    return training.take(kept), Labeled(training.data[held], training.labels[held])


def find_scorer(scoring: Any) -> Scorer:
    """Return a scorer by its name, or the callable itself.

    Parameters
    ----------
    scoring : str, callable or None
        None and "accuracy" are the method `score` of the estimator.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If there is no scorer of that name.
    """
    if scoring is None or isinstance(scoring, str) and scoring == "accuracy":
        return _token_accuracy
    if isinstance(scoring, str):
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
    """A callback of solvers that scores the model, keeps the best weights and says when to stop.

    Parameters
    ----------
    rules : EarlyStopping
        When to score and to stop.
    score : callable
        The score of parameters on the validation part.

    Attributes
    ----------
    scores : dict of int to float
        The scores by iteration.
    stopped : bool
        Whether it asked the solver to stop.
    """

    def __init__(self, rules: EarlyStopping, score: Callable[[FloatArray], float]) -> None:
        self.rules = rules
        self.score = score
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
        score = check_score(self.score(parameters))
        self.scores[record.iteration] = score
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

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes that tell of the validation."""
        if self._best is None:
            return {"validation_scores_": {}, "best_iteration_": None, "best_score_": None}
        record, score, _ = self._best
        return {
            "validation_scores_": self.scores,
            "best_iteration_": record.iteration,
            "best_score_": score,
        }
