"""One short sequence at a time, and many at once: crfkit against python-crfsuite.

    python benchmarks/latency.py

Tags recipe ingredient lines from lists of strings, with models of the same data. Writes
``results/latency.json``.
"""

from __future__ import annotations

from typing import Any

import _measure
from train_conll2000 import train_crfsuite

from crfkit import CRFClassifier
from crfkit.datasets import ingredient_features, load_ingredients

CALLS = 500


def main() -> None:
    """Run the benchmark."""
    corpus = load_ingredients()
    X: list[Any] = [ingredient_features(tokens) for tokens in corpus.tokens]
    crf = CRFClassifier(c2=0.1).fit(X, corpus.tags)
    tagger = train_crfsuite(X, corpus.tags, 0.0, 0.1)["tagger"]
    line = next(sequence for sequence in X if len(sequence) == 10)
    ways = {
        "crfkit, one line a call": lambda: [crf.predict([line]) for _ in range(CALLS)],
        "crfsuite, one line a call": lambda: [tagger.tag(line) for _ in range(CALLS)],
        "crfkit, all lines at once": lambda: crf.predict(X),
        "crfsuite, all lines": lambda: [tagger.tag(sequence) for sequence in X],
    }
    for way in ways.values():
        way()
    times = _measure.medians(ways, 7)
    counts = {name: CALLS if "a call" in name else len(X) for name in ways}
    micros = {name: 1e6 * t / counts[name] for name, t in times.items()}
    _measure.write("latency", {"microseconds_a_line": micros})


if __name__ == "__main__":
    main()
