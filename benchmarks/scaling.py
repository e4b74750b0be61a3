"""Scaling in tokens, labels and attributes: seconds of a pass and tokens a second of tagging.

Synthetic sequences with sparse attributes. python-crfsuite takes part where an iteration of it is
to be expected within the time that is given.
"""

from __future__ import annotations

import functools
import statistics
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _crfsuite
import _data
import _measure
import _plots
import numpy as np
import pycrfsuite
from _objectives import objective_of

from crfkit import CRFClassifier

THREADS = (1, 2)
REPEATS = 3
# Which of tokens, labels and attributes varies, and what the others are.
TOKENS = [10**4, 10**5, 10**6, 10**7]
LABELS = [3, 10, 30, 100, 300, 1000, 1500]
ATTRIBUTES = [10**3, 10**4, 10**5, 10**6, 10**7]
FIXED = {"tokens": 100_000, "labels": 20, "attributes": 100_000}
QUICK = {"tokens": [10**3, 10**4], "labels": [3, 30], "attributes": [10**3, 10**4]}
# python-crfsuite runs up to so many tokens times squared labels, and so many tokens.
CELLS, MOST_TOKENS = 2e9, 10**6


def measure(tokens: int, labels: int, attributes: int) -> dict[str, Any]:
    """Return what one size takes."""
    data = _data.synthetic(tokens, labels, attributes)
    found = {"sizes": data.sizes(), "seconds a pass": {}, "tokens a second": {}}
    for n_jobs in THREADS:
        found["weights"], seconds = seconds_of_pass(data, n_jobs)
        found["seconds a pass"][f"{n_jobs} threads"] = seconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two iterations are not enough, on purpose
        crf = CRFClassifier(solver="lbfgs", max_iter=2, n_jobs=2).fit(data.X, data.y)
    for n_jobs in THREADS:
        crf.n_jobs = n_jobs
        crf.predict(data.X_test)
        seconds = min(_measure.seconds(lambda: crf.predict(data.X_test)) for _ in range(REPEATS))
        found["tokens a second"][f"{n_jobs} threads"] = data.X_test.n_tokens / seconds
    if tokens > MOST_TOKENS or data.X.n_tokens * labels**2 > CELLS:
        return found | {"python-crfsuite": "left out: too large"}
    theirs = crfsuite(data)
    found["seconds a pass"]["python-crfsuite"] = theirs[0]
    found["tokens a second"]["python-crfsuite"] = theirs[1]
    return found


def seconds_of_pass(data: _data.Labeled, n_jobs: int) -> tuple[int, float]:
    """Return the number of weights and the median seconds of a value and a gradient."""
    with objective_of(data, 0.0, 1.0, n_jobs) as objective:
        w = 0.1 * np.random.default_rng(0).normal(size=objective.n_parameters)
        run = functools.partial(objective.value_and_grad, w)
        run()
        return objective.n_parameters, _measure.medians({"": run}, REPEATS)[""]


def crfsuite(data: _data.Labeled) -> tuple[float, float]:
    """Return seconds of an iteration and tokens a second of python-crfsuite."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        log = _crfsuite.trainer_of(data).run(path, c2=1.0, max_iterations=3)
        tagger = _crfsuite.open_tagger(path)
    items = [pycrfsuite.ItemSequence(sequence) for sequence in _data.attributes(data.X_test)]
    seconds = min(
        _measure.seconds(lambda: [tagger.tag(item) for item in items]) for _ in range(REPEATS)
    )
    return statistics.median(entry.seconds for entry in log), data.X_test.n_tokens / seconds


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    sizes = QUICK if quick else {"tokens": TOKENS, "labels": LABELS, "attributes": ATTRIBUTES}
    fixed = FIXED | {"tokens": 10**4} if quick else FIXED
    return {
        f"{what}, {size}": functools.partial(measure, **(fixed | {what: size}))
        for what, several in sizes.items()
        for size in several
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw both measures over each of the three sizes."""
    panels: dict[str, _plots.Series] = {}
    for name, case in results.items():
        what, size = name.split(", ")
        for measured in ("seconds a pass", "tokens a second"):
            panel = panels.setdefault(f"{measured} / {what}", {})
            for who, value in case[measured].items():
                panel.setdefault(who, []).append((float(size), value))
    for panel in panels.values():
        for points in panel.values():
            points.sort()
    order = sorted(panels)  # all of seconds, then all of tokens
    _plots.panels(folder / "scaling.png", {name: panels[name] for name in order}, "size", "")
