"""What each decoder gives: tokens that are right, precision, recall and F1 of spans.

Over draws of the sentences that are learned from. All decoders read the same probabilities, of
labelings that the tag scheme allows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _tasks
from _tasks import Part, Split

from crfkit.constraints import TagScheme
from crfkit.inference import ExpectedSpans, MinimumRisk
from crfkit.metrics import segment_precision_recall_fscore_support

SEEDS, QUICK_SEEDS = 3, 1
SENTENCES, TESTED, READ, QUICK = 1000, 1500, 6000, 60
RECORDS = {"citations_cora": (100, 400), "usaddress": (300, 800)}
NAMES = ("conll2002_es", "gmb_ner", "wikigold")
THRESHOLDS = (0.2, 0.35, 0.5, 0.65, 0.8)
WEIGHTS_OF_O = (0.2, 5.0)


def decoders_of(name: str) -> dict[str, Any]:
    """Return the decoders by name; costs of missing "O" where there are tokens outside."""
    weights = WEIGHTS_OF_O if name in NAMES else ()
    return {
        'decoding="viterbi"': "viterbi",
        'decoding="posterior"': "posterior",
        **{f'MinimumRisk({{"O": {weight:g}}})': MinimumRisk({"O": weight}) for weight in weights},
        **{f"ExpectedSpans({threshold})": ExpectedSpans(threshold) for threshold in THRESHOLDS},
    }


def drawn(name: str, seed: int, quick: bool) -> Split:
    """Return what is learned from and what is judged."""
    if name in RECORDS:
        sizes = (QUICK, QUICK) if quick else RECORDS[name]
        return _tasks.split(_tasks.records(name), *sizes, seed)
    part = _tasks.names(name, 2 * QUICK if quick else READ)
    return _tasks.split(part, QUICK if quick else SENTENCES, TESTED, seed)


def judged(crf: Any, test: Part, rules: Any) -> dict[str, float]:
    """Return scores of a decoder, in percent."""
    y = [list(labels) for labels in crf.predict(test.X, constraints=rules)]
    spans = crf.predict_spans(test.X, constraints=rules)
    precision, recall, f1, _ = segment_precision_recall_fscore_support(
        test.spans(), spans, average="micro"
    )
    return {"tokens": _tasks.judged(test, y)["tokens"], "precision": 100.0 * precision,
            "recall": 100.0 * recall, "F1": 100.0 * f1}  # fmt: skip


def measure(name: str, quick: bool) -> dict[str, Any]:
    """Return the scores of all decoders over draws."""
    runs: dict[str, list[dict[str, float]]] = {}
    for seed in range(QUICK_SEEDS if quick else SEEDS):
        one = drawn(name, seed, quick)
        crf = _tasks.fitted(one.train, (_tasks.RECORDS | _tasks.NAMES)[name])
        rules = None if name == "usaddress" else TagScheme("IOB2")
        for kind, decoding in decoders_of(name).items():
            crf.set_params(decoding=decoding)
            runs.setdefault(kind, []).append(judged(crf, one.test, rules))
    return {"learned from": len(one.train.y), "judged": len(one.test.y)} | {
        kind: _tasks.gathered(found) for kind, found in runs.items()
    }


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    return {name: functools.partial(measure, name, quick) for name in (*NAMES, *RECORDS)}


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: the page has a table."""
