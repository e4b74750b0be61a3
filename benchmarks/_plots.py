"""Curves as PNG."""

from __future__ import annotations

import math
from pathlib import Path

Series = dict[str, list[tuple[float, float]]]
PEERS = {"python-crfsuite", "seqlearn"}


def panels(
    path: Path,
    content: dict[str, Series],
    xlabel: str,
    ylabel: str,
    bottom: float | None = None,
    top: float | None = None,
    columns: int = 3,
) -> None:
    """Draw one panel for each entry, with both axes logarithmic; peers are dashed."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    columns = min(len(content), columns)
    rows = math.ceil(len(content) / columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(5 * columns, 3.8 * rows), squeeze=False, layout="constrained"
    )
    names = list(dict.fromkeys(name for series in content.values() for name in series))
    for ax in axes.flat[len(content) :]:
        ax.axis("off")
    for ax, (title, series) in zip(axes.flat, content.items(), strict=False):
        for name, points in series.items():
            style = ("k" if name in PEERS else f"C{names.index(name)}") + "-"
            dashed = "--" if name in PEERS else "-"
            ax.plot(*zip(*points, strict=True), style[:-1], linestyle=dashed, label=name,
                    marker="." if len(points) < 12 else None)  # fmt: skip
        ax.set(xscale="log", yscale="log", title=title, xlabel=xlabel, ylabel=ylabel)
        ax.set_ylim(bottom, top)
        ax.grid(alpha=0.3)
        ax.legend(fontsize="x-small")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def bars(path: Path, content: dict[str, dict[str, float]], xlabel: str) -> None:
    """Draw a group of bars for each entry, if there are any."""
    if not content:
        return
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    kinds = list(dict.fromkeys(kind for group in content.values() for kind in group))
    figure, ax = pyplot.subplots(figsize=(8, 1.0 + 0.5 * len(content)), layout="constrained")
    height = 0.8 / max(len(kinds), 1)
    for place, kind in enumerate(kinds):
        values = [group.get(kind, math.nan) for group in content.values()]
        ax.barh([row + place * height for row in range(len(content))], values, height, label=kind)
    ax.set_yticks([row + 0.4 - height / 2 for row in range(len(content))], list(content))
    ax.invert_yaxis()
    ax.set_xlabel(xlabel)
    ax.axvline(1.0, color="k", linewidth=0.8)
    ax.legend(fontsize="small")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
