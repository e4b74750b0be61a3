"""A model of python-crfsuite with awkward names, read, used, written and read back.

    python benchmarks/crfsuite_round_trip.py

Compares labels, marginals and probabilities on random sequences. Writes
``results/crfsuite_round_trip.json``.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import _measure
import numpy as np
import pycrfsuite
import scipy.sparse as sp

from crfkit.compat.crfsuite import load_crfsuite, save_crfsuite
from crfkit.compat.pycrfsuite import Tagger
from crfkit.io.crfsuite_model import CRFsuiteModel, read_crfsuite_model, write_crfsuite_model

SEQUENCES = 2000
NAMES = ["", " ", "a\nb", "a\tb", "x:y", "日本語", "naïve", "\u2028", "} ", "(0) a --> b: 1.0",
         "long" * 2560, *(f"w{i}" for i in range(200))]  # fmt: skip
LABELS = ["O", "B-X", "I-X\n", "人名", "", "a b"]
LARGE = 340_000


def sequence(rng: random.Random) -> list[dict[str, Any]]:
    """Return items with strings, numbers, booleans, lists and nesting."""
    return [
        {
            "w": rng.choice(NAMES),
            "n": round(rng.gauss(0.0, 1.0), 3),
            "flag": rng.random() < 0.5,
            "bag": rng.sample(NAMES, 2),
            "previous": {"w": rng.choice(NAMES), "deep": {"n": rng.random()}},
        }
        for _ in range(rng.randint(1, 12))
    ]


def train(path: str, rng: random.Random) -> None:
    """Train a model with python-crfsuite."""
    trainer = pycrfsuite.Trainer(verbose=False)
    for _ in range(500):
        tokens = sequence(rng)
        trainer.append(tokens, [rng.choice(LABELS) for _ in tokens])
    trainer.set_params({"c1": 0.05, "c2": 0.1, "max_iterations": 60})
    trainer.train(path)


def differences(path: str, X: list[Any]) -> dict[str, float]:
    """Return how often labels differ, and the largest differences of probabilities."""
    theirs, shim = pycrfsuite.Tagger(), Tagger()
    for tagger in (theirs, shim):
        tagger.open(path)
    model = load_crfsuite(path)
    labels = model.classes_.tolist()
    predicted, proba = model.predict(X), model.predict_proba(X)
    whole = np.exp(model.sequence_log_proba(X, predicted))
    found = {"labels that differ": 0, "marginals": 0.0, "probabilities": 0.0}
    for tokens, ours, marginals, probability in zip(X, predicted, proba, whole, strict=True):
        expected = theirs.tag(tokens)
        both = zip(ours, shim.tag(tokens), expected, strict=True)
        found["labels that differ"] += sum(len(set(row)) > 1 for row in both)
        reference = [[theirs.marginal(y, t) for y in labels] for t in range(len(tokens))]
        gap = float(np.abs(marginals - reference).max())
        found["marginals"] = max(found["marginals"], gap)
        gaps = [abs(p - theirs.probability(expected))
                for p in (probability, shim.probability(expected))]  # fmt: skip
        found["probabilities"] = max(found["probabilities"], *map(float, gaps))
    return found


def large_model() -> dict[str, float]:
    """Return the best seconds to write and to read a model of many attributes."""
    rng = np.random.default_rng(0)
    columns = np.append(rng.integers(0, 22, LARGE), rng.integers(0, 22, LARGE // 3))
    rows = np.append(np.arange(LARGE), rng.integers(0, LARGE, LARGE // 3))
    state = sp.csr_array((rng.normal(size=len(rows)), (rows, columns)), (LARGE, 22))
    names = [f"U{i % 30:02}:word-{i}" for i in range(LARGE)]
    steps = rng.normal(size=(22, 22))
    model = CRFsuiteModel([f"L{i}" for i in range(22)], names, state, steps, steps != 0.0)
    times: dict[str, list[float]] = {"write": [], "read": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.crfsuite"
        for _ in range(5):
            times["write"].append(_measure.seconds(lambda: write_crfsuite_model(model, path)))
            times["read"].append(_measure.seconds(lambda: read_crfsuite_model(path)))
    found = {f"{name} seconds": min(values) for name, values in times.items()}
    return {"attributes": LARGE, "weights": state.nnz, **found}


def main() -> None:
    """Run the benchmark."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        path, copy = (str(Path(folder) / name) for name in ("a.crfsuite", "b.crfsuite"))
        train(path, rng)
        X = [sequence(rng) for _ in range(SEQUENCES)]
        save_crfsuite(load_crfsuite(path), copy)
        results = {
            "sequences": SEQUENCES,
            "tokens": sum(map(len, X)),
            "read": differences(path, X),
            "written back": differences(copy, X),
            "same bytes": Path(path).read_bytes() == Path(copy).read_bytes(),
            "large model": large_model(),
        }
    _measure.write("crfsuite_round_trip", results)


if __name__ == "__main__":
    main()
