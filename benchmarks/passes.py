"""One pass over the data: value and gradient, an epoch, against an iteration of the peers.

python-crfsuite's L-BFGS iteration against a value and a gradient, its averaged perceptron against
a pass of online exponentiated gradient; where Wapiti and CRF++ are found, their L-BFGS iterations
on CoNLL-2000, with two threads.
"""

from __future__ import annotations

import functools
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _conll
import _crfsuite
import _data
import _measure
import _plots
import numpy as np
from _objectives import leave_out_evaluations, objective_of
from training import Curve

from crfkit.solvers import OEG

ROUNDS, PASSES, ITERATIONS = 3, 7, 5
THREADS = (1, 2)
QUICK_SEQUENCES = 300


def gradient(dataset: str, all_states: bool, limit: int | None) -> dict[str, Any]:
    """Time passes and python-crfsuite's iterations in turns."""
    data = _data.load(dataset, limit)
    peer = _crfsuite.trainer_of(data)
    options = {"c2": 1.0, "max_iterations": ITERATIONS, "feature.possible_states": all_states}
    times: dict[str, list[float]] = {name: [] for name in ("crfsuite", *map(str, THREADS))}
    weights = 0
    for _ in range(ROUNDS):
        log = peer.run(**options)
        times["crfsuite"].append(statistics.median(entry.seconds for entry in log))
        for n_jobs in THREADS:
            with objective_of(data, 0.0, 1.0, n_jobs, all_states) as objective:
                weights = objective.n_parameters
                w = 0.1 * np.random.default_rng(0).normal(size=weights)
                objective.value_and_grad(w)
                run = functools.partial(objective.value_and_grad, w)
                passes = [_measure.seconds(run) for _ in range(PASSES)]
            times[str(n_jobs)].append(statistics.median(passes))
    theirs = peer.logparser.featgen_num_features
    return {
        "sizes": data.sizes(), "weights": weights, "weights of crfsuite": theirs, **compared(times)
    }  # fmt: skip


def epoch(dataset: str, limit: int | None) -> dict[str, Any]:
    """Time passes of online exponentiated gradient and epochs of the averaged perceptron."""
    data = _data.load(dataset, limit)
    peer = _crfsuite.trainer_of(data, "averaged-perceptron")
    times: dict[str, list[float]] = {name: [] for name in ("crfsuite", *map(str, THREADS))}
    epoch_of_oeg(data, 1, 1)  # compiles
    for _ in range(ROUNDS):
        log = peer.run(max_iterations=ITERATIONS, epsilon=0.0)
        times["crfsuite"].append(statistics.median(entry.seconds for entry in log))
        for n_jobs in THREADS:
            times[str(n_jobs)].append(epoch_of_oeg(data, n_jobs, PASSES))
    return {"sizes": data.sizes(), **compared(times)}


def epoch_of_oeg(data: _data.Labeled, n_jobs: int, count: int) -> float:
    """Return the median seconds of a pass, without the evaluations of the objective."""
    curve = Curve(0.0, np.inf)
    with objective_of(data, 0.0, 1.0, n_jobs) as objective:
        solver = OEG(max_iter=count, check_every=1, tol=0.0)
        leave_out_evaluations(solver, curve)
        solver.solve(objective, np.zeros(objective.n_parameters), curve)
    return float(np.median(np.diff([seconds for seconds, _, _ in curve.points])))


def compared(times: dict[str, list[float]]) -> dict[str, Any]:
    """Return medians, and how many times the seconds of crfkit the peer takes."""
    middle = {name: statistics.median(values) for name, values in times.items()}
    theirs = middle.pop("crfsuite")
    return {
        "crfsuite seconds": theirs,
        "crfkit seconds": {f"{name} threads": seconds for name, seconds in middle.items()},
        "times the seconds": {f"{name} threads": theirs / s for name, s in middle.items()},
    }


def other_programs(limit: int | None) -> dict[str, Any]:
    """Time an iteration of those of Wapiti and CRF++ that are installed, from two runs each.

    Both give all (attribute, label) pairs a weight and read the same template.
    """
    programs = {
        "wapiti": lambda count, files: [
            "wapiti", "train", "-a", "l-bfgs", "-t", "2", "-i", str(count), "-2", "2", "-p", *files,
        ],
        "crf_learn": lambda count, files: [
            "crf_learn", "-p", "2", "-c", "0.5", "-e", "1e-9", "-m", str(count), *files,
        ],
    }  # fmt: skip
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "train.txt"
        blocks = ("\n".join(map(" ".join, rows)) for rows in _conll.read_part("train")[:limit])
        text.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
        template = str(_conll.data_home() / "conll2000" / "template.crfpp")
        for name, command in programs.items():
            if shutil.which(name) is None:
                print(f"  {name} is not on PATH: left out", flush=True)
                continue
            files = [template, str(text), str(Path(folder) / "model")]
            short, long = (seconds_of(command(count, files)) for count in (5, 15))
            found[name] = {"seconds an iteration": (long - short) / 10}
    return found


def seconds_of(command: list[str]) -> float:
    """Return the wall time of a program."""
    return _measure.seconds(lambda: subprocess.run(command, check=True, capture_output=True))


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    limit = QUICK_SEQUENCES if quick else None
    names = ["conll2000", "ocr_letters", "gmb_ner"]
    one_pass = {
        f"gradient, {name}": functools.partial(gradient, name, False, limit) for name in names
    }
    return one_pass | {
        "gradient, conll2000, all state features": functools.partial(
            gradient, "conll2000", True, limit
        ),
        **{f"epoch, {name}": functools.partial(epoch, name, limit) for name in names[:2]},
        "other programs": functools.partial(other_programs, limit),
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw the ratios as bars."""
    _plots.bars(
        folder / "pass.png",
        {name: case["times the seconds"] for name, case in results.items()
         if "times the seconds" in case},
        "times faster than python-crfsuite",
    )  # fmt: skip
