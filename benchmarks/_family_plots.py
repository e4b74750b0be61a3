"""Pictures of the experiments with hidden Markov models, their relatives and sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

Line = tuple[list[float], list[list[float]]]  # places, and the values of repetitions at each


def _figure(n_panels: int, width: float, height: float) -> tuple[Any, Any]:
    """Return a figure of panels side by side."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    return pyplot.subplots(
        1, n_panels, figsize=(width * n_panels, height), squeeze=False, layout="constrained"
    )


def _save(figure: Any, path: Path) -> None:
    """Write a figure and forget it."""
    from matplotlib import pyplot

    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def against(
    path: Path,
    pairs: Sequence[tuple[str, str]],
    errors: dict[str, Any],
    filled: Any,
    said: tuple[str, str],
) -> None:
    """Draw the errors of a model over those of another, a panel a pair.

    Dots are filled or open; `said` are the names of both kinds.
    """
    figure, axes = _figure(len(pairs), 4.2, 4.4)
    filled = np.asarray(filled)
    most = 1.05 * max(max(errors[name]) for pair in pairs for name in pair)
    for ax, (down, across) in zip(axes.flat, pairs, strict=True):
        x, y = np.array(errors[across]), np.array(errors[down])
        ax.plot([0, most], [0, most], color="0.7", linewidth=0.8)
        ax.scatter(x[~filled], y[~filled], s=16, facecolors="none", edgecolors="C0", label=said[1])
        ax.scatter(x[filled], y[filled], s=16, color="C3", label=said[0])
        ax.set(xlabel=f"{across}: wrong labels, %", ylabel=f"{down}: wrong labels, %")
        ax.set(xlim=(0, most), ylim=(0, most), title=f"{down} v {across}")
        ax.set_box_aspect(1)
        ax.legend(fontsize="small", loc="upper left")
    _save(figure, path)


def curves(
    path: Path,
    panels: dict[str, dict[str, Line]],
    xlabel: str,
    ylabel: str,
    style: dict[str, str],
    scale: str = "linear",
) -> None:
    """Draw means over repetitions, a panel an entry; `style` has the format of each line."""
    figure, axes = _figure(len(panels), 4.8, 4.0)
    for ax, (title, lines) in zip(axes.flat, panels.items(), strict=True):
        for name, (places, values) in lines.items():
            ax.plot(places, [np.mean(row) for row in values], style[name], label=name)
        ax.set(title=title, xlabel=xlabel, ylabel=ylabel, xscale=scale)
        if scale == "log":
            ax.set_xticks(places, [f"{place:g}" for place in places], fontsize="small")
            ax.minorticks_off()
        ax.set_ylim(bottom=0.0)
        ax.grid(alpha=0.3)
        ax.legend(fontsize="small")
    _save(figure, path)


def lattices(path: Path, models: dict[str, Any], word: str, states: Sequence[str]) -> None:
    """Draw the probability of each label given the one before, a panel a model.

    The steps of a model are those to the first label, (K,), and to the others, (T - 1, K, K). The
    shade of a node is its marginal probability, that of an edge the probability of the step times
    that of its label before; the number at an edge is that of the step.
    """
    figure, axes = _figure(len(models), 5.2, 4.2)
    for ax, (title, (first, steps)) in zip(axes.flat, models.items(), strict=True):
        _lattice(ax, np.asarray(first), np.asarray(steps))
        ax.set(title=title, xlim=(-1.4, len(word) - 0.5), ylim=(len(states) - 0.4, -0.6))
        ax.set_xticks(range(len(word)), list(word), fontsize="large")
        ax.set_yticks(range(len(states)), list(states))
        ax.set(xlabel="letter", ylabel="label")
    _save(figure, path)


def _lattice(ax: Any, first: Any, steps: Any) -> None:
    """Draw one lattice, from a start on the left."""
    n_labels, middle = len(first), (len(first) - 1) / 2
    marginal = first
    edges = [((-1, middle), (0, k), first[k], first[k]) for k in range(n_labels)]
    nodes = [((0, k), first[k]) for k in range(n_labels)]
    for t, step in enumerate(steps, 1):
        edges += [
            ((t - 1, i), (t, k), step[i, k], marginal[i] * step[i, k])
            for i in range(n_labels)
            for k in range(n_labels)
        ]
        marginal = marginal @ step
        nodes += [((t, k), marginal[k]) for k in range(n_labels)]
    for (x0, y0), (x1, y1), probability, mass in edges:
        if mass >= 0.005:
            ax.plot([x0, x1], [y0, y1], color="C0", alpha=0.15 + 0.85 * mass, zorder=1,
                    linewidth=0.5 + 5.0 * mass)  # fmt: skip
            ax.annotate(f"{probability:.2f}", (0.62 * x0 + 0.38 * x1, 0.62 * y0 + 0.38 * y1),
                        fontsize="small", ha="center", va="bottom")  # fmt: skip
    ax.scatter([-1], [middle], s=60, color="0.4", zorder=2)
    for (x, y), mass in nodes:
        shade = str(0.95 - 0.75 * mass)
        ax.scatter([x], [y], s=240, color=shade, edgecolors="k", linewidths=0.6, zorder=2)


# Where each model stands in the square, and its edges: among labels, between a label and its token.
SQUARE = {
    "naive Bayes": ((0.0, 5.2), "", "label to token"),
    "logistic regression": ((11.0, 5.2), "", "line"),
    "HMM": ((0.0, 0.0), "next", "label to token"),
    "MEMM": ((5.5, 0.0), "next", "token to label"),
    "linear-chain CRF": ((11.0, 0.0), "line", "line"),
}
SAID = {
    "naive Bayes": r"$\prod_t\,P(y_t)\,P(x_t \mid y_t)$",
    "logistic regression": r"$\prod_t\,\exp s_t(y_t)\,/\,Z_t(x)$",
    "HMM": r"$\prod_t\,P(y_t \mid y_{t-1})\,P(x_t \mid y_t)$",
    "MEMM": r"$\prod_t\,P(y_t \mid y_{t-1}, x_t)$",
    "linear-chain CRF": r"$\exp \sum_t s_t(y_{t-1}, y_t)\,/\,Z(x)$",
}


def square(path: Path) -> None:
    """Draw the graphs of the models of labels and tokens; filled tokens are given."""
    figure, axes = _figure(1, 9.6, 4.9)
    ax = axes[0, 0]
    for name, ((left, low), among, between) in SQUARE.items():
        _graph(ax, left, low, among, between)
        ax.text(left + 1.5, low + 2.45, name, ha="center", fontsize="large")
        ax.text(left + 1.5, low - 0.95, SAID[name], ha="center", va="center")
    wide = {"arrowstyle": "simple,head_width=0.9,tail_width=0.3", "color": "C0", "alpha": 0.6}
    arrows = [(3.9, 6.0, 10.1, 6.0), (3.8, 0.8, 4.7, 0.8), (9.3, 0.8, 10.2, 0.8)]
    arrows += [(x, 3.75, x, 3.05) for x in (1.5, 12.5)]
    for x, y, x_to, y_to in arrows:
        ax.annotate("", (x_to, y_to), (x, y), arrowprops=wide)
    ax.text(7.0, 6.35, "labels, given the tokens", ha="center", color="C0")
    for x in (2.0, 13.0):
        ax.text(x, 3.4, "labels in sequence", va="center", color="C0")
    ax.set(xlim=(-0.6, 16.0), ylim=(-1.4, 8.0))
    ax.set_aspect("equal")
    ax.axis("off")
    _save(figure, path)


def _graph(ax: Any, left: float, low: float, among: str, between: str) -> None:
    """Draw three labels above their tokens."""
    places = [left + 1.5 * t for t in range(3)]
    for t, x in enumerate(places):
        up, down = (x, low + 1.6), (x, low)
        if t and among:
            _edge(ax, (places[t - 1], low + 1.6), up, among == "next")
        if between == "token to label":
            _edge(ax, down, up, True)
        else:
            _edge(ax, up, down, between == "label to token")
        given = between != "label to token"
        for (column, row), letter, filled in ((up, "y", False), (down, "x", given)):
            ax.scatter(column, row, s=420, zorder=2, edgecolors="k",
                       color="0.75" if filled else "w")  # fmt: skip
            ax.text(column, row, f"${letter}_{t + 1}$", ha="center", va="center", zorder=3)


def _edge(ax: Any, start: Any, end: Any, directed: bool) -> None:
    """Draw an edge between two nodes, whose discs cover its ends."""
    style = {"arrowstyle": "-|>" if directed else "-", "shrinkA": 11, "shrinkB": 11, "color": "k"}
    ax.annotate("", end, start, arrowprops=style, zorder=1)
