"""Colors, names and axes of pictures."""

from __future__ import annotations

from typing import Any

from crfkit.inspection.markup import BLUE, ORANGE, short

POSITIVE, NEGATIVE, THIRD, FOURTH = BLUE, ORANGE, "#009e73", "#cc79a7"


def shortened(name: Any, most: int = 28) -> str:
    """Return the text of a label for an axis, its middle left out where it is long.

    A dollar sign would begin a formula.
    """
    return short(name, most).replace("$", r"\$")


def text_color(background: Any) -> str:
    """Return the color of text that can be read on a background, (red, green, blue, ...)."""
    red, green, blue = background[:3]
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def mixed(ax: Any, color: Any, share: float) -> tuple[float, float, float]:
    """Return the background of a figure with a share of a color in it."""
    from matplotlib.colors import to_rgb

    below, above = to_rgb(ax.figure.get_facecolor()), to_rgb(color)
    red, green, blue = ((1.0 - share) * b + share * a for b, a in zip(below, above, strict=True))
    return red, green, blue


def quiet(ax: Any) -> tuple[float, float, float]:
    """Return a gray that is near the background of a figure, light or dark."""
    return mixed(ax, "#808080", 0.22)


def plain(ax: Any, grid: str = "") -> None:
    """Leave out the upper and the right frame of axes; `grid` has lines for "x", "y" or "both"."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid:
        ax.grid(True, axis=grid, color="#808080", alpha=0.3, linewidth=0.6)
        ax.set_axisbelow(True)
