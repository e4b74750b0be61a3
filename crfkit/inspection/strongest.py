"""A picture of the strongest weights of labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from crfkit._displays import Display, divided, pyplot
from crfkit._params import check_whole
from crfkit.inspection.models import name_of
from crfkit.inspection.plotting import NEGATIVE, POSITIVE, plain, shortened
from crfkit.inspection.transitions import in_order
from crfkit.inspection.weight_tables import Weight, weights

_PANELS = 9  # labels that are shown if none are named
_ACROSS = 3  # panels in a row


class WeightsDisplay(Display):
    """The strongest weights of attributes, by label.

    Made by :meth:`from_estimator`, as the displays of scikit-learn are. It needs matplotlib
    (``pip install crfkit[plot]``).

    Parameters
    ----------
    weights : dict of label to list of Weight
        Those that are shown.
    name : str, optional
        The title.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each label.
    ax_, figure_ : matplotlib Axes and Figure
        The first of these, and their figure.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from crfkit import CRFClassifier
    >>> from crfkit.inspection import WeightsDisplay
    >>> X, y = [[{"w": "the"}, {"w": "dog"}]] * 3, [["DET", "NOUN"]] * 3
    >>> display = WeightsDisplay.from_estimator(CRFClassifier().fit(X, y), n=5)
    >>> [ax.get_title() for ax in display.axes_]
    ['DET', 'NOUN']
    """

    def __init__(self, weights: Mapping[Any, Sequence[Weight]], *, name: str | None = None) -> None:
        self.weights, self.name = dict(weights), name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        labels: Sequence[Any] | None = None,
        n: int = 10,
        kind: str = "attribute",
        by: str = "absolute",
        **options: Any,
    ) -> Self:
        """Draw the strongest weights of a fitted model.

        Parameters
        ----------
        estimator : estimator
            As for :func:`crfkit.inspection.weights`.
        labels : sequence, optional
            Which labels, in which order; by default nine at most, those of the largest weights.
        n : int, default=10
            How many weights of each label.
        kind, by
            As for :meth:`crfkit.inspection.Weights.top`. Those of kind "length" are drawn from the
            shortest to the longest.
        **options
            As for :meth:`plot`.
        """
        check_whole("n", n, 1)
        found = weights(estimator)
        chosen = found.classes.tolist() if labels is None else list(labels)
        tops = {label: found.top(n, label=label, kind=kind, by=by) for label in chosen}
        strength = {label: abs(own[0].weight) for label, own in tops.items() if own}
        if kind == "length":  # they have an order of their own
            for own in tops.values():
                own.sort(key=lambda w: w.attribute)
        if labels is None:
            kept = set(sorted(strength, key=lambda label: -strength[label])[:_PANELS])
            tops = {label: tops[label] for label in in_order(chosen) if label in kept}
        return cls(tops, name=name_of(estimator)).plot(**options)

    def plot(self, ax: Any = None, *, sharex: bool = True, **kwargs: Any) -> Self:
        """Draw bars, blue above 0 and orange below.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, optional
            Where to draw, one for each label; a single one is divided. By default a new figure.
        sharex : bool, default=True
            Whether bars of one length are equal weights in all panels that are made.
        **kwargs
            For ``matplotlib.axes.Axes.barh``.

        Raises
        ------
        ValueError
            If there are fewer Axes than labels, or nothing is to be drawn.
        """
        plt, count = pyplot("WeightsDisplay"), len(self.weights)
        if not count:
            raise ValueError("there are no weights of these labels to draw.")
        across = min(count, _ACROSS)
        rows = math.ceil(count / across)
        if ax is None:
            axes = self._new(plt, rows, across, sharex)
        else:
            axes = divided(ax, rows, across, sharex=sharex)
        if len(axes) < count:
            raise ValueError(f"there are {count} labels, but {len(axes)} Axes to draw them in.")
        for panel, (label, own) in zip(axes, self.weights.items(), strict=False):
            _bars(panel, label, own, kwargs)
        for panel in axes[count:]:
            panel.set_visible(False)
        self.axes_ = axes[:count]
        self.ax_, self.figure_ = axes[0], axes[0].figure
        return self

    def _new(self, plt: Any, rows: int, across: int, sharex: bool) -> Any:
        """Return the Axes of a new figure, one for each label at least."""
        longest = max(map(len, self.weights.values()))
        size = (3.9 * across, rows * (0.21 * longest + 0.75) + 0.3)
        figure, axes = plt.subplots(
            rows, across, figsize=size, sharex=sharex, squeeze=False, layout="constrained"
        )
        if self.name:
            figure.suptitle(self.name)
        return axes.ravel()


def _bars(ax: Any, label: Any, own: Sequence[Weight], kwargs: dict[str, Any]) -> None:
    """Draw the weights of a label, the strongest at the top."""
    values = np.array([w.weight for w in own])
    places = np.arange(len(own))
    names = [_name(w) for w in own]
    ax.barh(places, values, **{"color": np.where(values >= 0, POSITIVE, NEGATIVE)} | kwargs)
    ax.set_yticks(places, names, fontsize=8)
    ax.invert_yaxis()
    ax.axvline(0.0, color="#808080", linewidth=0.8)
    ax.set_title(shortened(label), fontsize=10, fontweight="bold")
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8)
    plain(ax, "x")


def _name(weight: Weight) -> str:
    """Return what a bar is called: the attribute, and of transitions the label before."""
    before = "" if weight.from_label is None else f"{weight.from_label} → "
    name = "" if weight.attribute is None else str(weight.attribute)
    name = f"length {name}" if weight.kind == "length" else name
    shown = f"{name}{' ' if before and name else ''}{before}"
    return shortened(shown or weight.label, 34)
