"""Reliability diagrams."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline

from crfkit._displays import Display, pyplot
from crfkit._types import FloatArray
from crfkit.metrics import ReliabilityCurve, judged_confidence, reliability_curve

_X_LABEL = "Mean confidence"
_Y_LABEL = "Share of right predictions"


class ReliabilityDisplay(Display):
    """A reliability diagram: how often predictions are right, by their confidence.

    Made by :meth:`from_estimator` or :meth:`from_predictions`, as the displays of scikit-learn are.
    It needs matplotlib (``pip install crfkit[plot]``).

    Parameters
    ----------
    curve : ReliabilityCurve
        What :func:`crfkit.metrics.reliability_curve` returns.
    histogram : array of shape (n,)
        The confidences, of which the lower diagram shows how many there are.
    name : str, optional
        What the legend says.

    Attributes
    ----------
    line_, ax_, figure_ : matplotlib Artist, Axes and Figure
        The curve, where it is drawn, and the figure of that.
    histogram_ax_ : matplotlib Axes or None
        Where the histogram is drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from crfkit.calibration import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions([0.9, 0.8, 0.3], [True, True, False])
    >>> display.ax_.get_ylabel(), display.curve.accuracy.tolist()
    ('Share of right predictions', [0.0, 1.0, 1.0])
    """

    def __init__(
        self, curve: ReliabilityCurve, histogram: FloatArray, *, name: str | None = None
    ) -> None:
        self.curve, self.histogram, self.name = curve, histogram, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        of: str = "tokens",
        sample_weight: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw the diagram of a fitted estimator.

        Parameters
        ----------
        estimator, X, y, of, sample_weight
            As for :func:`crfkit.metrics.judged_confidence`.
        name : str, optional
            By default that of the class of the estimator.
        **options
            As for :meth:`from_predictions`.
        """
        judged = judged_confidence(estimator, X, y, of=of, sample_weight=sample_weight)
        if name is None:
            last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
            name = type(last).__name__
        weight = judged.sample_weight
        return cls.from_predictions(*judged[:2], sample_weight=weight, name=name, **options)

    @classmethod
    def from_predictions(
        cls,
        confidence: Any,
        correct: Any,
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        sample_weight: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw the diagram of confidences and whether the predictions are right.

        Parameters
        ----------
        confidence, correct, n_bins, strategy, sample_weight
            As for :func:`crfkit.metrics.reliability_curve`.
        name : str, optional
            What the legend says.
        **options
            As for :meth:`plot`.
        """
        curve = reliability_curve(
            confidence, correct, n_bins=n_bins, strategy=strategy, sample_weight=sample_weight
        )
        parts = [np.zeros(0), *map(np.atleast_1d, confidence)]
        return cls(curve, np.concatenate(parts), name=name).plot(**options)

    def plot(
        self, ax: Any = None, *, name: str | None = None, ref_line: bool = True, **kwargs: Any
    ) -> Self:
        """Draw the diagram, and a histogram of the confidences below it.

        Parameters
        ----------
        ax : matplotlib Axes, or a pair of them, optional
            Where to draw the curve, and the histogram where a second one is given. A new figure
            with both by default.
        name : str, optional
            What the legend says.
        ref_line : bool, default=True
            Draw the line of a perfectly calibrated model.
        **kwargs
            For ``matplotlib.axes.Axes.plot``.
        """
        plt = pyplot("ReliabilityDisplay")
        below = None
        if ax is None:
            ratios = {"height_ratios": [3, 1]}
            _, (ax, below) = plt.subplots(2, 1, sharex=True, gridspec_kw=ratios)
        elif np.ndim(ax):
            ax, below = ax
        name = self.name if name is None else name
        known = ax.get_legend_handles_labels()[1]
        if ref_line and "Perfectly calibrated" not in known:
            ax.plot([0, 1], [0, 1], "k:", label="Perfectly calibrated")
        style = {"marker": "s", "linestyle": "-"} | ({} if name is None else {"label": name})
        (self.line_,) = ax.plot(self.curve.confidence, self.curve.accuracy, **style | kwargs)
        ax.set(ylabel=_Y_LABEL, **({} if below is not None else {"xlabel": _X_LABEL}))
        if ax.get_legend_handles_labels()[1]:
            ax.legend(loc="best")
        if below is not None:
            color, edges = self.line_.get_color(), np.linspace(0.0, 1.0, 11)
            below.hist(self.histogram, bins=edges, histtype="step", color=color, lw=2)
            below.set(xlabel=_X_LABEL, ylabel="Count")
        self.ax_, self.histogram_ax_, self.figure_ = ax, below, ax.figure
        return self
