"""Import and first fit, with an empty and with a filled cache of compiled kernels.

    python benchmarks/startup.py

Each time is the median of child processes. Writes ``results/startup.json``.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import _measure

PROBE = """
import json, time
t0 = time.perf_counter()
import numba, sklearn.base, sklearn.callback, sklearn.metrics, sklearn.model_selection, scipy.sparse
t1 = time.perf_counter()
from crfkit import CRFClassifier
t2 = time.perf_counter()
X = [[{"w": "the"}, {"w": "dog"}], [{"w": "a"}, {"w": "cat"}, {"w": "sleeps"}]]
y = [["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
crf = CRFClassifier(c2=0.1).fit(X, y)
t3 = time.perf_counter()
crf.predict(X)
t4 = time.perf_counter()
names = ["numba_and_scikit_learn", "crfkit_beyond_them", "first_fit", "first_predict"]
print(json.dumps(dict(zip(names, [t1 - t0, t2 - t1, t3 - t2, t4 - t3]))))
"""


def run(cache: str) -> dict[str, float]:
    """Run the probe in a fresh process."""
    result = subprocess.run(
        [sys.executable, "-c", PROBE], env=os.environ | {"NUMBA_CACHE_DIR": cache},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(result.stdout)


def main() -> None:
    """Run the benchmark."""
    cache = tempfile.mkdtemp()
    cold, warm = [], []
    for _ in range(3):
        shutil.rmtree(cache, ignore_errors=True)
        cold.append(run(cache))
        warm.append(run(cache))
    shutil.rmtree(cache, ignore_errors=True)

    def middle(runs: list[dict[str, float]]) -> dict[str, float]:
        return {name: statistics.median(run[name] for run in runs) for name in runs[0]}

    _measure.write("startup", {"cold_seconds": middle(cold), "warm_seconds": middle(warm)})


if __name__ == "__main__":
    main()
