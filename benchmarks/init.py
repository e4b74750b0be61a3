"""What a start saves: iterations and processor seconds of L-BFGS from zeros, counts, and a model.

    python benchmarks/init.py [--limit 2000]

The log loss of three sets with c2 = 0.1, to 1 % and to 0.01 % above the optimum; the model to start
from is the optimum with ten times the penalty, whose own time is told beside. Writes
``results/init.json``.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import _data
import _measure
import numpy as np

from crfkit import CRFClassifier
from crfkit._parallel import ThreadMap
from crfkit.solvers import LBFGS
from crfkit.training.fit import Fit

NAME = "init"
SETS = ("conll2000", "conll2002_es", "usaddress")
C2 = 0.1
TARGETS = {"1 %": 1.01, "0.01 %": 1.0001}


def measure(name: str, limit: int) -> dict[str, Any]:
    """Return what each start takes on a set."""
    data = _data.load(name, limit)
    problem = CRFClassifier(c2=C2)._problem()
    fit = Fit(problem, problem.read(data.X, data.y))
    started = time.process_time()
    coarse = CRFClassifier(c2=10.0 * C2, solver="lbfgs").fit(data.X, data.y)
    model_seconds = time.process_time() - started
    with ThreadMap(1) as threads:
        objective = problem.objective(fit.model, fit.training, threads)
        zeros = fit.start()
        objective.value_and_grad(zeros)  # prepares the data
        optimum = LBFGS(tol=1e-9, max_iter=2_000).solve(objective, zeros).value
        found = {}
        for start, init in (("zeros", "zeros"), ("counts", "counts"), ("model", coarse)):
            begin = time.process_time()
            first = fit.start(init)
            found[start] = {"seconds of the start": time.process_time() - begin}
            found[start] |= _search(objective, first, optimum)
    return {
        **data.sizes(), "optimum": optimum, "seconds of the model": model_seconds, "starts": found
    }  # fmt: skip


def _search(objective: Any, start: np.ndarray, optimum: float) -> dict[str, Any]:
    """Return the first value over the optimum, and iterations and seconds to each target."""
    seen: list[tuple[int, float, float]] = []
    begin = time.process_time()

    def note(record: Any, w: Any) -> bool:
        seen.append((record.iteration, record.value, time.process_time() - begin))
        return bool(record.value <= min(TARGETS.values()) * optimum)

    LBFGS(tol=1e-9, max_iter=2_000).solve(objective, start, note)
    reached = {
        target: next([i, s] for i, value, s in seen if value <= factor * optimum)
        for target, factor in TARGETS.items()
    }
    return {"first": seen[0][1] / optimum, **reached}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=2_000, help="sequences to learn from")
    limit = parser.parse_args().limit
    measure(SETS[-1], 50)  # compiles
    _measure.write(NAME, {"cases": {name: measure(name, limit) for name in SETS}})


if __name__ == "__main__":
    main()
