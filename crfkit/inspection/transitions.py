"""A picture of the weights of transitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from crfkit._displays import Display, pyplot
from crfkit._types import FloatArray
from crfkit.inspection.models import name_of
from crfkit.inspection.plotting import quiet, shortened, text_color
from crfkit.inspection.weight_tables import weights
from crfkit.labels.schemes import OUTSIDE_LABEL, looks_like_tag

_WITH_VALUES = 14  # labels up to which cells have their weights written into them


class TransitionsDisplay(Display):
    """The weights of transitions between labels, as a table of colors.

    Made by :meth:`from_estimator`, as the displays of scikit-learn are. It needs matplotlib
    (``pip install crfkit[plot]``).

    Parameters
    ----------
    transitions : array of shape (K, K)
        Weights, from the labels of rows to those of columns; NaN where there is none.
    labels : sequence of K labels
    name : str, optional
        The title.

    Attributes
    ----------
    im_, ax_, figure_ : matplotlib AxesImage, Axes and Figure
    text_ : ndarray of shape (K, K) or None
        The weights as they are written into the cells, where they are.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from crfkit import CRFClassifier
    >>> from crfkit.inspection import TransitionsDisplay
    >>> X, y = [[{"w": "the"}, {"w": "dog"}]] * 3, [["DET", "NOUN"]] * 3
    >>> display = TransitionsDisplay.from_estimator(CRFClassifier().fit(X, y))
    >>> display.labels, display.ax_.get_xlabel()
    (['DET', 'NOUN'], 'to')
    """

    def __init__(
        self, transitions: FloatArray, labels: Sequence[Any], *, name: str | None = None
    ) -> None:
        self.transitions, self.labels, self.name = np.asarray(transitions), list(labels), name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, labels: Sequence[Any] | None = None, **options: Any
    ) -> Self:
        """Draw the transitions of a fitted model.

        Parameters
        ----------
        estimator : estimator
            As for :func:`crfkit.inspection.weights`.
        labels : sequence, optional
            Which labels, in which order; by default all, tags of one type side by side.
        **options
            As for :meth:`plot`.

        Raises
        ------
        ValueError
            If the model knows no such label.
        """
        found = weights(estimator)
        known = found.classes.tolist()
        chosen = in_order(known) if labels is None else list(labels)
        missing = [label for label in chosen if label not in known]
        if missing:
            raise ValueError(f"labels: the model does not know {missing[0]!r:.60}.")
        places = [known.index(label) for label in chosen]
        matrix = found.transitions()[np.ix_(places, places)]
        return cls(matrix, chosen, name=name_of(estimator)).plot(**options)

    def plot(
        self,
        ax: Any = None,
        *,
        include_values: bool | None = None,
        values_format: str = ".1f",
        cmap: Any = "RdBu",
        colorbar: bool = True,
        im_kw: dict[str, Any] | None = None,
        text_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the table.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure, as large as the labels need.
        include_values : bool, optional
            Whether to write the weights into the cells; by default where there are few labels.
        values_format : str, default=".1f"
            How weights are written.
        cmap : str or matplotlib Colormap, default="RdBu"
            Its middle is the weight 0. Pairs without a weight are left blank, forbidden ones are
            crossed out.
        colorbar : bool, default=True
        im_kw, text_kw : dict, optional
            For ``matplotlib.axes.Axes.imshow`` and ``text``.
        """
        plt, size = pyplot("TransitionsDisplay"), len(self.labels)
        values = np.where(np.isfinite(self.transitions), self.transitions, np.nan)
        if ax is None:
            ax, cell = self._new(plt)
        else:
            box = ax.get_position()
            cell = box.height * ax.figure.get_figheight() / max(size, 1)
        font = min(10.0, max(0.75 * 72.0 * cell, 3.0))  # points
        most = max(float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0, 1e-12)
        style = {"cmap": cmap, "vmin": -most, "vmax": most, "interpolation": "nearest"}
        self.im_ = ax.imshow(values, **style | (im_kw or {}))
        ax.set_facecolor(quiet(ax))
        names = [shortened(label) for label in self.labels]
        upright = size <= 4 or max(map(len, names)) <= 2
        ax.set_xticks(range(size), names, rotation=0 if upright else 90, fontsize=font)
        ax.set_yticks(range(size), names, fontsize=font)
        ax.tick_params(length=0)
        ax.set(xlabel="to", ylabel="from", title=self.name or "")
        for side in ax.spines.values():
            side.set_visible(False)
        self._write(ax, include_values, values_format, {"fontsize": 0.85 * font} | (text_kw or {}))
        if colorbar:
            bar = ax.figure.colorbar(self.im_, ax=ax, shrink=0.8, pad=0.02)
            bar.set_label("weight (gray: none was learned)")
            bar.outline.set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _new(self, plt: Any) -> tuple[Any, float]:
        """Return the Axes of a new figure, and how large a cell will be, in inches."""
        size = max(len(self.labels), 1)
        side = min(max(0.5 * size if size <= 15 else 7.0 + 0.1 * (size - 15), 2.6), 15.0)
        names = 0.075 * max((len(shortened(label)) for label in self.labels), default=0)
        figsize = (side + names + 1.3, side + names + 0.5)
        return plt.subplots(figsize=figsize, layout="constrained")[1], side / size

    def _write(
        self, ax: Any, include_values: bool | None, values_format: str, style: dict[str, Any]
    ) -> None:
        """Write weights into the cells, and cross out what is forbidden."""
        for i, j in np.argwhere(np.isneginf(self.transitions)):
            ax.text(j, i, "×", ha="center", va="center", fontsize=style["fontsize"])
        self.text_ = None
        if include_values is None:
            include_values = len(self.labels) <= _WITH_VALUES
        if not include_values:
            return
        self.text_ = np.full(self.transitions.shape, None, object)
        for i, j in np.argwhere(np.isfinite(self.transitions)):
            value = float(self.transitions[i, j])
            color = text_color(self.im_.cmap(self.im_.norm(value)))
            text = format(value, values_format)
            text = format(0.0, values_format) if float(text) == 0.0 else text.replace("-", "−")
            given = {"ha": "center", "va": "center", "color": color} | style
            self.text_[i, j] = ax.text(j, i, text, **given)


def in_order(labels: Sequence[Any]) -> list[Any]:
    """Return labels with tags of one type side by side, "O" first; others as they are."""
    others = [label for label in labels if label != OUTSIDE_LABEL]
    if not others or not all(looks_like_tag(label) for label in others):
        return list(labels)

    def key(label: Any) -> tuple[str, str]:
        letter, _, kind = str(label).partition("-")
        return (kind, letter) if label != OUTSIDE_LABEL else ("", "")

    return sorted(labels, key=key)
