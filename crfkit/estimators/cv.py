"""A conditional random field that chooses its penalty by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn import model_selection
from sklearn.exceptions import ConvergenceWarning

from crfkit._callbacks import CallbackSupportMixin, told_as_a_whole
from crfkit._parallel import ThreadMap
from crfkit._params import check_flag, check_number, check_whole
from crfkit._progress import Task, working
from crfkit._types import FloatArray, IntArray, SolverResult
from crfkit._warnings import warn_user
from crfkit.estimators.crf import CRFClassifier
from crfkit.estimators.linear import LinearClassifier
from crfkit.model_selection import StratifiedSequenceKFold
from crfkit.objective.batch import Objective
from crfkit.persistence import check_chain_model, register
from crfkit.solvers import Solver
from crfkit.training.data import Labeled, TrainingData, fitted_attributes
from crfkit.training.early_stopping import Scorer, check_score, find_scorer
from crfkit.training.fit import Fit, Problem

Grid = tuple[FloatArray, FloatArray]  # penalties c1 and c2 to be tried, from strong to weak

# A grid that is given as a number of values lies between these.
STRONGEST, WEAKEST = 10.0, 1e-3

_PASSED_ON = (
    "solver", "max_iter", "features", "min_freq", "all_possible_states", "all_possible_transitions",
    "boundary_weights", "decoding", "constraints", "random_state", "n_jobs", "verbose",
)  # fmt: skip

register(StratifiedSequenceKFold)
for _splitter in (
    "GroupKFold", "GroupShuffleSplit", "KFold", "LeaveOneGroupOut", "LeaveOneOut",
    "PredefinedSplit", "ShuffleSplit", "TimeSeriesSplit",
):  # fmt: skip
    register(getattr(model_selection, _splitter))


class Path(NamedTuple):
    """What the fits of one fold gave: (C1, C2) scores and iterations, and complaints of solvers."""

    scores: FloatArray
    n_iter: IntArray
    messages: list[str]


@register(check=check_chain_model)
@dataclass(kw_only=True, eq=False, repr=False)
class CRFClassifierCV(CallbackSupportMixin, LinearClassifier):
    """Linear-chain CRF whose penalties `c1` and `c2` are chosen by cross-validation.

    As good as a ``GridSearchCV`` over the penalties of :class:`CRFClassifier`, but faster: each
    fold is prepared once, and each fit starts at the weights of the last one with a stronger
    penalty (Friedman, Hastie and Tibshirani 2010, section 2.5), or further on the line through the
    last two (a predictor, Park and Hastie 2007), where the objective is smaller there.

    Parameters
    ----------
    c1s, c2s : int or array of shape (C1,), (C2,), default=(0.0,) and 10
        Weights of the L1 and of the L2 penalty to be tried, or how many, spaced evenly on a
        logarithmic scale from 10 down to 0.001.
    cv : int, splitter or iterable, default=5
        Number of folds, a splitter of scikit-learn, or pairs of arrays with the training and test
        sequences. Sequences are neither shuffled nor stratified by default.
    scoring : str, callable or None, default=None
        What is to be large: token accuracy if None, the name of a scorer
        (:func:`crfkit.metrics.get_scorer_names`), or ``scoring(estimator, X, y)`` of packed X.
    refit : bool, default=True
        Fit the best penalties to all data. Without, the model only has its scores.
    solver, max_iter, features, min_freq, all_possible_states, all_possible_transitions
    boundary_weights, decoding, constraints, random_state, n_jobs
        As for :class:`CRFClassifier`, in each fit; the scores depend on `decoding` and
        `constraints` as well.
    verbose : int, default=0
        1 prints a line for each fit; more also prints the iterations of the last fit.

    Attributes
    ----------
    c1_, c2_, best_score_ : float
        The best penalties, those of the highest mean score (the stronger ones where scores are
        equal), and that score.
    c1s_, c2s_ : ndarray of shape (C1,), (C2,)
        The penalties that were tried, from strong to weak.
    scores_ : ndarray of shape (F, C1, C2)
        The score of each of the F folds for each pair of penalties.
    n_iter_ : ndarray of shape (F, C1, C2)
        The iterations of each fit.
    classes_, coef_, transitions_, ...
        With `refit`, those of :class:`CRFClassifier`; `training_log_`, `solver_`, `converged_`,
        `objective_`, `gap_` and `n_parameters_` are those of the fit to all data.

    Notes
    -----
    Sample weights are used for fitting, not for the scores. Attributes and labels that only occur
    in the test part of a fold are not known to its model, as with ``GridSearchCV``.

    Examples
    --------
    >>> from crfkit import CRFClassifierCV
    >>> X = [[["the"], ["dog"]], [["a"], ["cat"], ["sleeps"]], [["the"], ["cat"]]] * 4
    >>> y = [["DET", "NOUN"], ["DET", "NOUN", "VERB"], ["DET", "NOUN"]] * 4
    >>> crf = CRFClassifierCV(c2s=[0.01, 0.1, 1.0], cv=3).fit(X, y)
    >>> crf.c2_, crf.scores_.shape
    (1.0, (3, 1, 3))
    >>> crf.predict([[["a"], ["dog"], ["sleeps"]]])
    [['DET', 'NOUN', 'VERB']]
    """

    c1s: Any = (0.0,)
    c2s: Any = 10
    cv: Any = 5
    scoring: str | Scorer | None = None
    refit: bool = True
    solver: str | Solver = "auto"
    max_iter: int | None = None
    features: Any = None
    min_freq: int = 0
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    boundary_weights: bool = False
    decoding: Any = "viterbi"
    constraints: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    has_probabilities = True

    @told_as_a_whole
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the penalties and, with `refit`, fit the weights; return the estimator.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`CRFClassifier.fit`.
        groups : array of shape (S,), optional
            Which group a sequence belongs to, for splitters such as ``GroupKFold``.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter cannot be used, or all mean scores are NaN.
        KeyboardInterrupt
            If the user ends the search; before the last fit there is no model to keep.
        """
        grid = (_penalties("c1s", self.c1s), _penalties("c2s", self.c2s))
        check_flag("refit", self.refit)
        find_scorer(self.scoring)
        crf = self._classifier()
        problem = crf._problem()
        training = problem.read(X, y, sample_weight)
        attributes = self._search(crf.set_params(verbose=0), training, grid, groups)
        crf.set_params(c1=attributes["c1_"], c2=attributes["c2_"])
        if self.refit:
            crf.set_params(verbose=max(0, int(self.verbose) - 1))
            crf._learn(Fit(crf._problem(), training))
        self._set_fitted(fitted_attributes(crf) | attributes)
        return self

    def _classifier(self) -> CRFClassifier:
        """Return what is fitted with each pair of penalties."""
        return CRFClassifier(**{name: getattr(self, name) for name in _PASSED_ON})

    def _problem(self) -> Problem:
        return self._classifier()._problem()

    def _search(
        self, crf: CRFClassifier, training: TrainingData, grid: Grid, groups: Any
    ) -> dict[str, Any]:
        """Return the fitted attributes that tell of the search."""
        labels, places, paths = training.labels, np.arange(len(training.data)), []
        folds = list(model_selection.check_cv(self.cv).split(places, labels, groups))
        if not folds:
            raise ValueError("cv gives no folds: is it an iterator that was used up?")
        with working("search", len(folds) * len(grid[0]) * len(grid[1]), "fits") as task:
            for number, (train, test) in enumerate(folds, 1):
                held = Labeled(training.data[places[test]], labels[places[test]])
                path = self._follow(crf, training.take(places[train]), held, grid, task)
                paths.append(path)
                if self.verbose:
                    print(f"fold {number} of {len(folds)}: {_describe(path, grid)}", flush=True)
        _warn_of_failures(paths)
        scores = np.array([path.scores for path in paths])
        mean = scores.mean(axis=0)
        if np.isnan(mean).all():
            raise ValueError("the mean scores of all penalties are NaN: look at scoring and cv.")
        c1, c2 = np.unravel_index(np.nanargmax(mean), mean.shape)
        best = {"c1_": grid[0][c1], "c2_": grid[1][c2], "best_score_": mean[c1, c2]}
        return {name: float(value) for name, value in best.items()} | {
            "c1s_": grid[0],
            "c2s_": grid[1],
            "scores_": scores,
            "n_iter_": np.array([path.n_iter for path in paths]),
        }

    def _follow(
        self, crf: CRFClassifier, training: TrainingData, held: Labeled, grid: Grid, task: Task
    ) -> Path:
        """Fit the models of one fold, each from the weights of a stronger penalty."""
        scorer, fit = find_scorer(self.scoring), Fit(crf._problem(), training)
        shape = (len(grid[0]), len(grid[1]))
        path = Path(np.zeros(shape), np.zeros(shape, np.int64), [])
        row = np.zeros(fit.model.n_parameters)  # weights at the strongest c2, for the next c1
        with ThreadMap(self.n_jobs) as threads:
            objective = fit.problem.objective(fit.model, fit.training, threads)
            for i, c1 in enumerate(grid[0]):
                weights, before = row, row
                for j, c2 in enumerate(grid[1]):
                    problem = crf.set_params(c1=float(c1), c2=float(c2))._problem()
                    here = objective.with_penalty(problem.penalty)
                    start = _predict(here, weights, before, _stride(grid[1], j))
                    result: SolverResult = problem.solver.solve(here, start)
                    if result.interrupted:  # Ctrl-C ends the search
                        raise KeyboardInterrupt
                    before, weights = weights, result.parameters
                    row = weights if j == 0 else row
                    fitted = crf._with(fit.attributes(weights))
                    path.scores[i, j] = check_score(scorer(fitted, *held))
                    path.n_iter[i, j] = result.n_iter
                    task.advance()
                    task.tell(score=path.scores[i, j])
                    if not result.converged:
                        path.messages.append(f"c1={c1:g}, c2={c2:g}: {result.message}")
        return path


def _stride(values: FloatArray, place: int) -> float:
    """Return how far it is to a penalty from the one before it, in steps of the last such way."""
    if place < 2 or not values[place]:
        return 0.0
    far, last, here = np.log(values[place - 2 : place + 1])
    return float((here - last) / (last - far))


def _predict(
    objective: Objective, weights: FloatArray, before: FloatArray, stride: float
) -> FloatArray:
    """Return the weights of the last fit, or what the last two point to, if that is better."""
    if not stride:
        return weights
    ahead = weights + stride * (weights - before)
    values = [
        objective.value_and_grad(w)[0] + objective.l1 * np.abs(w).sum() for w in (weights, ahead)
    ]
    return ahead if values[1] < values[0] else weights


def _penalties(name: str, values: Any) -> FloatArray:
    """Return the values of a penalty to be tried, from strong to weak."""
    if isinstance(values, (int, np.integer)):
        check_whole(name, values, 1)
        return np.geomspace(STRONGEST, WEAKEST, int(values))
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise TypeError(
            f"{name}={values!r} must be a list of numbers, or how many to try between "
            f"{STRONGEST:g} and {WEAKEST:g}. For one value give [{values!r}]."
        )
    if not len(values):
        raise ValueError(f"{name} is empty: give at least one value.")
    for place, value in enumerate(values):
        check_number(f"{name}[{place}]", value)
    return np.unique(np.asarray(values, np.float64))[::-1].copy()


def _describe(path: Path, grid: Grid) -> str:
    """Return what a line of the log says of a fold."""
    scores = np.where(np.isnan(path.scores), -np.inf, path.scores)
    c1, c2 = np.unravel_index(scores.argmax(), scores.shape)
    return (
        f"score {path.scores[c1, c2]:.6g} at c1={grid[0][c1]:g}, c2={grid[1][c2]:g}; "
        f"{path.n_iter.sum()} iterations"
    )


def _warn_of_failures(paths: list[Path]) -> None:
    """Warn once of all fits that did not converge."""
    messages = [f"fold {f}, {text}" for f, path in enumerate(paths, 1) for text in path.messages]
    if messages:
        total = sum(path.scores.size for path in paths)
        warn_user(
            f"{len(messages)} of {total} fits did not converge; the first is {messages[0]}.",
            ConvergenceWarning,
        )
