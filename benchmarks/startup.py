"""Import, first fit, first prediction, demo and warm-up, without compiled kernels and with them.

    python benchmarks/startup.py [--all]

Seconds of CPU of child processes: of the steps of a small program, of which each is the median of
several runs, and of whole commands; with ``--all`` also of the warm-up of all kernels, which takes
minutes. Writes ``results/startup.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from resource import RUSAGE_CHILDREN, getrusage

import _measure

PROBE = """
import json, time
times = [time.process_time()]
def step():
    times.append(time.process_time())
import numba, sklearn.base, sklearn.callback, sklearn.metrics, sklearn.model_selection, scipy.sparse
step()
from crfkit import CRFClassifier
step()
X = [[{"w": "the"}, {"w": "dog"}], [{"w": "a"}, {"w": "cat"}, {"w": "sleeps"}]]
y = [["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
crf = CRFClassifier().fit(X, y)
step()
crf.predict(X)
step()
names = ["numba_and_scikit_learn", "crfkit_beyond_them", "first_fit", "first_predict"]
print(json.dumps({name: b - a for name, a, b in zip(names, times, times[1:])}))
"""
# Commands in the order in which they run: each finds what those before it have compiled.
COMMANDS = {
    "demo": ["demo"],
    "warmup_chain": ["warmup", "--only", "chain"],
    "warmup_nothing_left": ["warmup", "--only", "chain"],
}
COMPLETE = COMMANDS | {"warmup_all": ["warmup"]}
REPEATS = 3


def child(cache: str, *arguments: str) -> str:
    """Run Python with a folder for machine code; return what it prints."""
    return subprocess.run(
        [sys.executable, *arguments], env=os.environ | {"NUMBA_CACHE_DIR": cache},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
    ).stdout  # fmt: skip


def command(cache: str, *arguments: str) -> float:
    """Return the seconds of CPU of a command."""
    before = getrusage(RUSAGE_CHILDREN)
    child(cache, "-m", "crfkit", *arguments)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="compile all kernels, too")
    chosen = COMPLETE if parser.parse_args().all else COMMANDS
    cold, warm = [], []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(json.loads(child(cache, "-c", PROBE)))
            warm.append(json.loads(child(cache, "-c", PROBE)))
    with tempfile.TemporaryDirectory() as cache:
        commands = {name: command(cache, *words) for name, words in chosen.items()}

    def middle(runs: list[dict[str, float]]) -> dict[str, float]:
        return {name: statistics.median(run[name] for run in runs) for name in runs[0]}

    _measure.write(
        "startup",
        {"cold_seconds": middle(cold), "warm_seconds": middle(warm), "commands_seconds": commands},
    )


if __name__ == "__main__":
    main()
