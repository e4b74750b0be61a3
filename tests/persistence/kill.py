"""Kill a process while it saves, many times: the file must be the old one or the new one, whole.

``python -m tests.persistence.kill --count 100`` prints what was found. POSIX only.
"""

import argparse
import collections
import os
import random
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

from crfkit.persistence import dumps, load, save

SIZE = 500_000  # numbers: enough for a kill to fall into the writing


def leftovers(folder):
    return sorted(Path(folder).glob(".crfkit-*.tmp"))


def kill_while_saving(path, models, delay):
    """Fork a process that saves both models in turn for ever, and kill it after a delay."""
    child = os.fork()
    if not child:
        while True:
            for model in models:
                save(model, path)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def run(folder, count, seed=0):
    """Return how often which file was found whole, and how often something was left behind."""
    rng = random.Random(seed)
    path = Path(folder) / "modèle.crfkit"
    models = [{"weights": np.arange(SIZE) * factor} for factor in (1.0, 2.0)]
    files = [dumps(model) for model in models]
    started = time.perf_counter()
    save(models[0], path)
    longest = 3 * (time.perf_counter() - started)
    counts = collections.Counter()
    for _ in range(count):
        kill_while_saving(path, models, rng.uniform(0.0, longest))
        counts["old or new" if path.read_bytes() in files else "DAMAGED"] += 1
        assert load(path)["weights"][1] in (1.0, 2.0)
        counts["left a temporary file"] += bool(leftovers(folder))
        save(models[0], path)
        counts["not cleaned by the next save"] += bool(leftovers(folder))
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    with tempfile.TemporaryDirectory() as folder:
        for what, n in run(folder, parser.parse_args().count).items():
            print(f"{n:5d}  {what}")


if __name__ == "__main__":
    main()
