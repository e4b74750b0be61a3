"""Tagging CoNLL-2000: crfkit against python-crfsuite, same features, same process run.

    python benchmarks/tag_conll2000.py

Both tag the test part from attributes in memory: each package's own form (PackedSequences against
ItemSequence), and lists of strings, which both have to look up. Writes
``results/tag_conll2000.json``.
"""

from __future__ import annotations

import warnings
from typing import Any

import _conll
import _measure
import pycrfsuite
from train_conll2000 import train_crfsuite

from crfkit import CRFClassifier, SequenceVectorizer

REPEATS = 7


def main() -> None:
    """Run the benchmark."""
    X, y = _conll.load("train")
    Xt, _ = _conll.load("test")
    vectorizer = SequenceVectorizer()
    packed = vectorizer.fit_transform(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the speed of tagging does not need the optimum
        model = CRFClassifier(max_iter=50, n_jobs=2).fit(packed, y)
    crfs: dict[int, Any] = {n: CRFClassifier() for n in (1, 2)}
    for n_jobs, crf in crfs.items():
        crf.__dict__.update({**model.__dict__, "n_jobs": n_jobs})
    tagger = train_crfsuite(X, y, 0.0, 1.0, max_iterations=50)["tagger"]
    test, items = vectorizer.transform(Xt), [pycrfsuite.ItemSequence(s) for s in Xt]

    def raw(n_jobs: int) -> Any:
        return crfs[n_jobs].predict(vectorizer.transform(Xt))

    ways = {
        "crfsuite ItemSequence": lambda: [tagger.tag(item) for item in items],
        "crfsuite lists": lambda: [tagger.tag(sequence) for sequence in Xt],
        "crfkit packed, 1 thread": lambda: crfs[1].predict(test),
        "crfkit packed, 2 threads": lambda: crfs[2].predict(test),
        "crfkit lists, 1 thread": lambda: raw(1),
        "crfkit lists, 2 threads": lambda: raw(2),
    }
    outputs = {name: way() for name, way in ways.items()}
    tokens = test.n_tokens
    agree = sum(
        a == b
        for ours, theirs in zip(
            outputs["crfkit packed, 1 thread"], outputs["crfsuite lists"], strict=True
        )
        for a, b in zip(ours, theirs, strict=True)
    )
    marginals = {
        "crfsuite": lambda: [marginals_of(tagger, item) for item in items[:200]],
        "crfkit, 1 thread": lambda: crfs[1].predict_proba(test[:200]),
    }
    speeds = {name: tokens / t for name, t in _measure.medians(ways, REPEATS).items()}
    part = test[:200].n_tokens
    proba = {name: part / t for name, t in _measure.medians(marginals, REPEATS).items()}
    _measure.write(
        "tag_conll2000",
        {
            "tokens": tokens,
            "tokens_with_the_same_tag": agree,
            "tokens_per_second": speeds,
            "marginals_tokens_per_second": proba,
            "ratio_packed_2_threads": speeds["crfkit packed, 2 threads"]
            / speeds["crfsuite ItemSequence"],
            "ratio_packed_1_thread": speeds["crfkit packed, 1 thread"]
            / speeds["crfsuite ItemSequence"],
            "ratio_lists_1_thread": speeds["crfkit lists, 1 thread"] / speeds["crfsuite lists"],
            "ratio_marginals_1_thread": proba["crfkit, 1 thread"] / proba["crfsuite"],
        },
    )


def marginals_of(tagger: Any, item: Any) -> list[list[float]]:
    """Return all label probabilities of a sequence, as python-crfsuite offers them."""
    tagger.set(item)
    labels = tagger.labels()
    return [[tagger.marginal(label, t) for label in labels] for t in range(len(item))]


if __name__ == "__main__":
    main()
