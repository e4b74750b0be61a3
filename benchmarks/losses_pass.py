"""A pass of each loss against one of the log loss: seconds of value and gradient, peak memory.

    python benchmarks/losses_pass.py

Sentences of CoNLL-2000 (22 labels) and CoNLL-2002 (9 labels), and one sequence of 1,000,000 tokens
with four attributes each. Passes of all losses are taken in turns in one process; with one thread,
seconds are those of the processor, as other programs may run. Peak memory is that of a process
which reads the data and takes three passes. Writes ``results/losses_pass.json``.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import _data
import _measure
import numpy as np
import scipy.sparse as sp
from _objectives import objective_of

from crfkit import PackedSequences
from crfkit.losses import LOSSES

NAMES = ("log", "pseudolikelihood", "pointwise", "risk", "labelwise")
CASES = ("conll2000", "conll2002_es", "one sequence, 9 labels", "one sequence, 22 labels")
THREADS = (1, 2)
ROUNDS, PASSES = 9, 3
TOKENS, ATTRIBUTES, A_TOKEN = 1_000_000, 200, 4


def load(case: str) -> _data.Labeled:
    """Return the data of a case; a sequence is a walk over labels that often stays."""
    if case in CASES[:2]:
        return _data.load(case)
    n_labels, random = int(case.split()[-2]), np.random.default_rng(0)
    steps = (random.random(TOKENS) < 0.4) * random.integers(1, n_labels, TOKENS)
    codes = (np.cumsum(steps) % n_labels).astype(np.int32)
    # Each attribute tells the label, with much noise.
    columns = random.integers(0, ATTRIBUTES, (TOKENS, A_TOKEN))
    told = random.random((TOKENS, A_TOKEN)) < 0.3
    columns[told] = (columns // n_labels * n_labels + codes[:, None])[told] % ATTRIBUTES
    entries = (np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, A_TOKEN))
    matrix = sp.csr_array(entries, (TOKENS, ATTRIBUTES))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    packed = PackedSequences.from_flat(matrix, [TOKENS])
    return _data.Labeled(case, packed, [], packed, [], codes, n_labels)


def take_times(case: str, n_jobs: int) -> dict[str, Any]:
    """Return the seconds of a pass of each loss, and how many times that of the log loss it is."""
    clock = time.process_time if n_jobs == 1 else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in NAMES}
    with objective_of(load(case), 0.0, 1.0, n_jobs) as objective:
        w = 0.1 * np.random.default_rng(0).normal(size=objective.n_parameters)
        objectives = {name: objective.with_loss(LOSSES[name]()) for name in NAMES}
        for turn in range(ROUNDS + 1):
            for name, each in objectives.items():
                started = clock()
                each.value_and_grad(w)
                if turn:  # the first pass prepares the data
                    times[name].append(clock() - started)
    ratios = {
        name: statistics.median(a / b for a, b in zip(times[name], times["log"], strict=True))
        for name in NAMES
    }
    return {"seconds": {name: statistics.median(times[name]) for name in NAMES}, "times": ratios}


def take_memory(case: str, name: str, n_jobs: int) -> dict[str, float]:
    """Return the peak memory of some passes in MiB, and that of the data before them."""
    with objective_of(load(case), 0.0, 1.0, n_jobs) as objective:
        made = _measure.rss_mib()
        chosen = objective.with_loss(LOSSES[name]())
        w = 0.1 * np.random.default_rng(0).normal(size=objective.n_parameters)
        for _ in range(PASSES):
            chosen.value_and_grad(w)
    return {"data": made, "peak": _measure.peak_mib()}


def measure(case: str) -> dict[str, Any]:
    """Return seconds of all losses with one thread and with two, and memory with two."""
    memory = {name: _measure.in_child("losses_pass.py", case, "2", name) for name in NAMES}
    passes = {
        f"{n_jobs} threads": _measure.in_child("losses_pass.py", case, str(n_jobs))
        for n_jobs in THREADS
    }
    return passes | {
        "peak MiB": {name: memory[name]["peak"] for name in NAMES},
        "MiB of the data": memory["log"]["data"],
        "times the memory": {name: memory[name]["peak"] / memory["log"]["peak"] for name in NAMES},
    }


def main() -> None:
    """Run the benchmark, or a part of it."""
    if sys.argv[1:]:
        case, n_jobs, *name = sys.argv[1:]
        jobs = int(n_jobs)
        print(json.dumps(take_memory(case, name[0], jobs) if name else take_times(case, jobs)))
        return
    runs = {case: measure(case) for case in CASES}
    _measure.write("losses_pass", {"tokens of the one sequence": TOKENS, "runs": runs})


if __name__ == "__main__":
    main()
