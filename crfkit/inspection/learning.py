"""How scores grow with the number of sequences that are learned from."""

from __future__ import annotations

from typing import Any, Self

from sklearn.model_selection import learning_curve

from crfkit._displays import Display, pyplot
from crfkit._params import check_option
from crfkit._types import FloatArray, IntArray
from crfkit.inspection.plotting import NEGATIVE, POSITIVE, plain
from crfkit.metrics import get_scorer


class LearningCurveDisplay(Display):
    """Scores of models that were fitted to more and more sequences.

    Made by :meth:`from_estimator`, as the displays of scikit-learn are. It needs matplotlib
    (``pip install crfkit[plot]``).

    Parameters
    ----------
    train_sizes : array of shape (n,)
        Numbers of sequences.
    train_scores, test_scores : array of shape (n, F)
        Scores of the F folds, on the sequences of the fit and on the others.
    score_name : str, default="score"
        What scores are called.
    name : str, optional
        What the legend calls the model, where several are drawn into one picture.

    Attributes
    ----------
    lines_ : dict of str to matplotlib Line2D
        Those of "training" and "test" that are drawn.
    ax_, figure_ : matplotlib Axes and Figure

    See Also
    --------
    sklearn.model_selection.learning_curve : What is drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from crfkit import CRFClassifier
    >>> from crfkit.inspection import LearningCurveDisplay
    >>> X, y = [[{"w": "the"}, {"w": "dog"}]] * 12, [["DET", "NOUN"]] * 12
    >>> display = LearningCurveDisplay.from_estimator(
    ...     CRFClassifier(), X, y, cv=2, train_sizes=[2, 6])
    >>> display.train_sizes.tolist(), display.test_scores.shape
    ([2, 6], (2, 2))
    """

    def __init__(
        self,
        train_sizes: IntArray,
        train_scores: FloatArray,
        test_scores: FloatArray,
        *,
        score_name: str = "score",
        name: str | None = None,
    ) -> None:
        self.train_sizes, self.train_scores = train_sizes, train_scores
        self.test_scores, self.score_name, self.name = test_scores, score_name, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        scoring: Any = None,
        name: str | None = None,
        ax: Any = None,
        score_type: str = "both",
        **options: Any,
    ) -> Self:
        """Fit an estimator to parts of the data, and draw its scores.

        Parameters
        ----------
        estimator : estimator
            It is cloned, and need not be fitted.
        X, y
            As for its `fit`.
        scoring : str or callable, optional
            A scorer, ``scorer(estimator, X, y)``, or the name of one of :mod:`crfkit.metrics`, such
            as "entity_f1"; by default `score` of the estimator, the share of right labels.
        name : str, optional
            What the legend calls the model.
        ax, score_type
            As for :meth:`plot`, which draws without the deviation of the folds, too.
        **options
            For :func:`sklearn.model_selection.learning_curve`: `train_sizes`, shares of the
            sequences that a fold is fitted to, or their numbers; `cv`, `groups`, `n_jobs`. By
            default sequences are drawn at random (``shuffle=True``), with ``random_state=0``; rows
            of a data frame stay in order, and ``cv=StratifiedSequenceKFold(by=...)`` of
            :mod:`crfkit.model_selection` keeps those of a sequence together.
        """
        scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
        given = {
            "shuffle": not hasattr(X, "columns"),
            "random_state": 0,
            "error_score": "raise",
        } | options
        if not hasattr(X, "__getitem__"):
            X = list(X)
        found = learning_curve(estimator, X, y, scoring=scorer, **given)
        called = scoring if isinstance(scoring, str) else "score"
        called = called.replace("_", " ").replace("f1", "F1")
        display = cls(*found[:3], score_name=called, name=name)
        return display.plot(ax, score_type=score_type)

    def plot(
        self, ax: Any = None, *, std: bool = True, score_type: str = "both", **kwargs: Any
    ) -> Self:
        """Draw the means of the folds.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        std : bool, default=True
            Whether to draw a band of the standard deviation of the folds.
        score_type : {"both", "train", "test"}, default="both"
            Which scores to draw; "test" for several models in one picture.
        **kwargs
            For ``matplotlib.axes.Axes.plot``.
        """
        check_option("score_type", score_type, ("both", "train", "test"))
        plt, both = pyplot("LearningCurveDisplay"), score_type == "both"
        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        self.lines_ = {}
        rows = {"training": (self.train_scores, NEGATIVE), "test": (self.test_scores, POSITIVE)}
        for part, (scores, color) in rows.items():
            if not (both or part.startswith(score_type)):
                continue
            mean, spread = scores.mean(axis=1), scores.std(axis=1)
            names = [name for name in (self.name, part if both or not self.name else None) if name]
            style = {"marker": "o" if part == "test" else "s", "markersize": 4}
            style |= {"color": color} if both else {}  # else each model has the next color
            style |= {"label": ", ".join(names)} | kwargs
            (line,) = ax.plot(self.train_sizes, mean, **style)
            self.lines_[part] = line
            if std:
                band = {"color": line.get_color(), "alpha": 0.18, "linewidth": 0}
                ax.fill_between(self.train_sizes, mean - spread, mean + spread, **band)
        ax.set(xlabel="sequences in training", ylabel=self.score_name)
        ax.legend(frameon=False)
        plain(ax, "both")
        self.ax_, self.figure_ = ax, ax.figure
        return self
