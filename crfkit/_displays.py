"""What all pictures of models and predictions share, wherever they are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np


class Display:
    """A picture, drawn by `plot`; `name` is that of what it shows."""

    name: str | None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


def pyplot(what: str) -> Any:
    """Return matplotlib's pyplot; ImportError says what needs it, and how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{what} needs matplotlib: pip install 'crfkit[plot]'.") from error
    return plt


def divided(ax: Any, rows: int, columns: int, *, sharex: bool = True) -> Any:
    """Return a flat array of Axes: those given, or a grid of new ones in the place of a single one.

    ValueError, if the single one has no place in a grid, so that it cannot be divided.
    """
    axes = np.atleast_1d(ax).ravel()
    if len(axes) > 1 or rows * columns == 1:
        return axes
    place = axes[0].get_subplotspec()
    if place is None:
        raise ValueError(
            f"ax has no place in a grid, so that it cannot be divided into {rows * columns} panels:"
            " give an array of Axes, or one that plt.subplots made."
        )
    axes[0].set_axis_off()
    return place.subgridspec(rows, columns).subplots(sharex=sharex, squeeze=False).ravel()
