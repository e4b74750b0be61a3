"""How scores grow with the number of sequences that are learned from."""

from __future__ import annotations

from typing import Any, Self

from sklearn.model_selection import learning_curve

from crfkit._types import FloatArray, IntArray
from crfkit.inspection.plotting import NEGATIVE, POSITIVE, plain, pyplot
from crfkit.metrics import get_scorer


class LearningCurveDisplay:
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

    Attributes
    ----------
    lines_ : dict of str to matplotlib Line2D
        Those of "training" and "test".
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
    ) -> None:
        self.train_sizes, self.train_scores = train_sizes, train_scores
        self.test_scores, self.score_name = test_scores, score_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        scoring: Any = None,
        ax: Any = None,
        std: bool = True,
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
        ax, std
            As for :meth:`plot`.
        **options
            For :func:`sklearn.model_selection.learning_curve`: `train_sizes`, shares of the
            sequences that a fold is fitted to, or their numbers; `cv`, `groups`, `n_jobs`. By
            default sequences are drawn at random (``shuffle=True``), with ``random_state=0``.
        """
        scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
        given = {"shuffle": True, "random_state": 0, "error_score": "raise"} | options
        if not hasattr(X, "__getitem__"):
            X = list(X)
        found = learning_curve(estimator, X, y, scoring=scorer, **given)
        name = scoring if isinstance(scoring, str) else "score"
        name = name.replace("_", " ").replace("f1", "F1")
        return cls(*found[:3], score_name=name).plot(ax, std=std)

    def plot(self, ax: Any = None, *, std: bool = True, **kwargs: Any) -> Self:
        """Draw the means of the folds.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        std : bool, default=True
            Whether to draw a band of the standard deviation of the folds.
        **kwargs
            For ``matplotlib.axes.Axes.plot``.
        """
        plt = pyplot("LearningCurveDisplay")
        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        self.lines_ = {}
        rows = {"training": (self.train_scores, NEGATIVE), "test": (self.test_scores, POSITIVE)}
        for name, (scores, color) in rows.items():
            mean, spread = scores.mean(axis=1), scores.std(axis=1)
            marker = "o" if name == "test" else "s"
            style = {"color": color, "marker": marker, "markersize": 4, "label": name} | kwargs
            (self.lines_[name],) = ax.plot(self.train_sizes, mean, **style)
            if std:
                low, high = mean - spread, mean + spread
                ax.fill_between(self.train_sizes, low, high, color=color, alpha=0.18, linewidth=0)
        ax.set(xlabel="sequences in training", ylabel=self.score_name)
        ax.legend(frameon=False)
        plain(ax, "both")
        self.ax_, self.figure_ = ax, ax.figure
        return self
