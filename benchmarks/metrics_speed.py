"""Time entity metrics on 100,000 tokens against seqeval, in one process, equal results checked.

Run ``python benchmarks/metrics_speed.py``; writes ``results/metrics_speed.json`` next to it.
"""

import json
import platform
import random
import time
import warnings
from importlib.metadata import version
from pathlib import Path

from seqeval import scheme as seqeval_scheme
from seqeval.metrics import classification_report, f1_score

from crfkit.metrics import (
    entity_classification_report,
    entity_f1_score,
    flat_accuracy_score,
    flat_f1_score,
    sequence_accuracy_score,
    tags_from_spans,
)

N_TOKENS = 100_000
MEAN_LENGTH = 20
TYPES = ("LOC", "MISC", "ORG", "PER")
NOISE = 0.1
REPEATS = 5
RESULT = Path(__file__).parent / "results" / "metrics_speed.json"


def random_sequence(rng, length):
    spans, start = [], 0
    while start < length:
        stop = min(length, start + rng.randint(1, 4))
        if rng.random() < 0.3:
            spans.append((start, stop, rng.choice(TYPES)))
        start = stop
    return tags_from_spans(spans, length, "IOB2")


def random_data(rng):
    y_true, n_tokens = [], 0
    while n_tokens < N_TOKENS:
        length = min(rng.randint(1, 2 * MEAN_LENGTH), N_TOKENS - n_tokens)
        y_true.append(random_sequence(rng, length))
        n_tokens += length
    tags = sorted({tag for sequence in y_true for tag in sequence})
    y_pred = [
        [rng.choice(tags) if rng.random() < NOISE else tag for tag in sequence]
        for sequence in y_true
    ]
    return y_true, y_pred


def seconds(call):
    """Return the best and the median time of a call in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return {"best": min(times), "median": sorted(times)[REPEATS // 2]}


def measure():
    y_true, y_pred = random_data(random.Random(0))
    strict = {"mode": "strict", "scheme": "IOB2"}
    seqeval_strict = {"mode": "strict", "scheme": seqeval_scheme.IOB2}
    pairs = {
        "f1, conlleval rules": (
            lambda: entity_f1_score(y_true, y_pred),
            lambda: f1_score(y_true, y_pred),
        ),
        "f1, strict IOB2": (
            lambda: entity_f1_score(y_true, y_pred, **strict),
            lambda: f1_score(y_true, y_pred, **seqeval_strict),
        ),
        "report, conlleval rules": (
            lambda: entity_classification_report(y_true, y_pred),
            lambda: classification_report(y_true, y_pred),
        ),
        "report, strict IOB2": (
            lambda: entity_classification_report(y_true, y_pred, **strict),
            lambda: classification_report(y_true, y_pred, **seqeval_strict),
        ),
    }
    rows = {}
    for name, (ours, theirs) in pairs.items():
        if ours() != theirs():
            raise AssertionError(f"{name}: {ours()} is not seqeval's {theirs()}")
        rows[name] = {"crfkit": seconds(ours), "seqeval": seconds(theirs)}
        rows[name]["times_faster"] = rows[name]["seqeval"]["best"] / rows[name]["crfkit"]["best"]
    tokens = {
        "flat_accuracy_score": lambda: flat_accuracy_score(y_true, y_pred),
        "flat_f1_score, weighted": lambda: flat_f1_score(y_true, y_pred, average="weighted"),
        "sequence_accuracy_score": lambda: sequence_accuracy_score(y_true, y_pred),
    }
    rows |= {name: {"crfkit": seconds(call)} for name, call in tokens.items()}
    return {"n_tokens": N_TOKENS, "n_sequences": len(y_true), "seconds": rows}


def main():
    warnings.simplefilter("ignore")
    packages = {name: version(name) for name in ("numpy", "scikit-learn", "seqeval")}
    result = {"python": platform.python_version(), "packages": packages, **measure()}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result["seconds"], indent=2))


if __name__ == "__main__":
    main()
