"""A picture of how a fit went."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from crfkit._displays import Display, divided, pyplot
from crfkit._params import check_option
from crfkit._types import IterationRecord
from crfkit.inspection.models import name_of, opened
from crfkit.inspection.plotting import FOURTH, NEGATIVE, POSITIVE, THIRD, plain

_X = {"iteration": "iteration", "seconds": "seconds", "evaluations": "evaluations or passes"}


class TrainingDisplay(Display):
    """The objective, how far it is from the optimum, and the score on held-out data.

    Made by :meth:`from_estimator`, as the displays of scikit-learn are. It needs matplotlib
    (``pip install crfkit[plot]``).

    Parameters
    ----------
    log : list of IterationRecord
        The fitted attribute ``training_log_``.
    validation_scores : dict of int to float, optional
        The fitted attribute ``validation_scores_``: scores by iteration.
    name : str, optional
        The title.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each of what is known: "objective", "gap", "gradient norm", "mistakes",
        "validation score".
    ax_, figure_ : matplotlib Axes and Figure
        The first of these, and their figure.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from crfkit import CRFClassifier
    >>> from crfkit.inspection import TrainingDisplay
    >>> X, y = [[{"w": "the"}, {"w": "dog"}]] * 3, [["DET", "NOUN"]] * 3
    >>> display = TrainingDisplay.from_estimator(CRFClassifier().fit(X, y))
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['objective', 'gradient norm']
    """

    def __init__(
        self,
        log: Sequence[IterationRecord],
        validation_scores: Mapping[int, float] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        self.log, self.name = list(log), name
        self.validation_scores = dict(validation_scores or {})

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> Self:
        """Draw the last fit of a model.

        Parameters
        ----------
        estimator : estimator
            As for :func:`crfkit.inspection.weights`.
        **options
            As for :meth:`plot`.

        Raises
        ------
        ValueError
            If no iterations are known: of models that are counted, learned by ``partial_fit``, or
            calibrated.
        """
        fitted = vars(opened(estimator).model)
        log = fitted.get("training_log_")
        if not log:
            raise ValueError(
                f"this {name_of(estimator)} has no log of iterations: models that are counted, or "
                "were learned by partial_fit, have none."
            )
        display = cls(log, fitted.get("validation_scores_"), name=name_of(estimator))
        return display.plot(**options)

    def curves(self) -> dict[str, tuple[list[int], list[float]]]:
        """Return what is known of iterations: numbers of records, and values."""
        columns = {
            "objective": [r.value for r in self.log],
            "gap": [r.gap for r in self.log],
            "gradient norm": [r.gradient_norm for r in self.log],
            "mistakes": [math.nan if r.mistakes < 0 else float(r.mistakes) for r in self.log],
        }
        place = {r.iteration: i for i, r in enumerate(self.log)}
        known = {place[i]: score for i, score in self.validation_scores.items() if i in place}
        columns["validation score"] = [known.get(i, math.nan) for i in range(len(self.log))]
        found = {
            name: [i for i, value in enumerate(values) if math.isfinite(value)]
            for name, values in columns.items()
        }
        if found["gap"]:  # it certifies what the norm only hints at
            found.pop("gradient norm")
        return {n: (own, [columns[n][i] for i in own]) for n, own in found.items() if own}

    def plot(
        self,
        ax: Any = None,
        *,
        x: str = "iteration",
        panels: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a panel for each of what is known.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, optional
            Where to draw, the objective first; a single one is divided. By default a new figure.
        x : {"iteration", "seconds", "evaluations"}, default="iteration"
            What goes to the right; evaluations of the objective, or passes over the data.
        panels : sequence of str, optional
            Which ones, in which order, such as ``["objective", "validation score"]``.
        **kwargs
            For ``matplotlib.axes.Axes.plot``.

        Raises
        ------
        ValueError
            If something in `panels` is not known of this fit, or there are fewer Axes than panels.
        """
        check_option("x", x, _X)
        plt, curves = pyplot("TrainingDisplay"), self.curves()
        for name in panels or ():
            check_option("panels", name, curves)
        curves = {name: curves[name] for name in (panels or curves)}
        if ax is None:
            size = (6.4, 1.9 * len(curves) + 0.6)
            figure, axes = plt.subplots(
                len(curves), 1, figsize=size, sharex=True, squeeze=False, layout="constrained"
            )
            axes = axes.ravel()
            figure.suptitle(self.name or "")
        else:
            axes = divided(ax, len(curves), 1)
            if len(axes) < len(curves):
                known = ", ".join(map(repr, curves))
                raise ValueError(f"there are {len(axes)} Axes for {len(curves)} panels ({known}).")
        at = [float(getattr(record, x)) for record in self.log]
        colors = (POSITIVE, NEGATIVE, THIRD, FOURTH, POSITIVE)
        drawn = list(zip(axes, curves.items(), colors, strict=False))
        for panel, (name, (places, values)), color in drawn:
            style = {"color": color, "linewidth": 1.8, "marker": "o", "markersize": 2.5} | kwargs
            panel.plot([at[i] for i in places], values, **style)
            panel.set_ylabel(name)
            if name != "validation score" and 0.0 < 20.0 * min(values) < max(values):
                panel.set_yscale("log")
                panel.yaxis.set_minor_formatter("")
            plain(panel, "both")
            if name == "validation score":
                _mark_best(panel, [at[i] for i in places], values)
        drawn[-1][0].set_xlabel(_X[x])
        self.axes_ = np.array([panel for panel, *_ in drawn])
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        return self


def _mark_best(ax: Any, at: list[float], values: list[float]) -> None:
    """Mark the best score, whose weights are kept."""
    best = int(np.argmax(values))
    ax.plot(at[best], values[best], "o", markersize=7, markerfacecolor="none", color=NEGATIVE)
    ax.annotate(
        f"best: {values[best]:.4g}", (at[best], values[best]), textcoords="offset points",
        xytext=(0, 8), ha="center", fontsize=9,
    )  # fmt: skip
    ax.margins(y=0.22)  # above the best score is no line, but the number needs room
