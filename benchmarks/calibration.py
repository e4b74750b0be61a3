"""How far confidence can be trusted: tokens, spans and sequences, before and after calibration.

Over draws of what is learned from: a model as it is, and calibrated on predictions of its own
training part by cross-validation (temperature, isotonic). Two penalties: the one that the data are
given in other measurements, and a hundredth of it, which fits the training part too well. And for
records what ranks fields best: their probability, or what is made of those of their tokens.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _tasks
import numpy as np
from _tasks import Part, Split

from crfkit import CRFClassifier
from crfkit.calibration import CalibratedSequenceClassifier, ReliabilityDisplay
from crfkit.metrics import (
    ReliabilityCurve,
    brier_score,
    confidence_average_precision,
    expected_calibration_error,
    judged_confidence,
    log_loss,
    reliability_curve,
    risk_coverage_area,
    risk_coverage_curve,
)

SEEDS, QUICK_SEEDS, FOLDS, BINS = 3, 1, 4, 10
# What is learned from, and what is judged: sequences.
SIZES = {
    "conll2002_es": (1000, 1500),
    "citations_cora": (150, 350),
    "headers_cora": (200, 400),
    "usaddress": (500, 800),
}
CALIBRATED = ("conll2002_es", "citations_cora", "usaddress")
AS_IT_IS, WAYS = "as it is", ("as it is", "temperature", "isotonic")
LEVELS = ("tokens", "spans", "sequences")
PENALTIES = {"usual penalty": 1.0, "hardly any penalty": 0.01}
COVERAGES = (0.5, 0.8, 0.9, 0.95, 1.0)
QUICK = 60


def drawn(name: str, seed: int, quick: bool) -> Split:
    """Return what is learned from and what is judged."""
    is_record = name in _tasks.RECORDS
    part = _tasks.records(name) if is_record else _tasks.names(name, 200 if quick else 6000)
    n_train, n_test = (QUICK, QUICK) if quick else SIZES[name]
    return _tasks.split(part, n_train, n_test, seed)


def model_of(name: str, factor: float) -> CRFClassifier:
    """Return the classifier that is calibrated."""
    return CRFClassifier(c2=(_tasks.RECORDS | _tasks.NAMES)[name] * factor, max_iter=150)


def levels(model: Any, test: Part) -> tuple[dict[str, dict[str, float]], dict[str, Any]]:
    """Return the figures of each level, and its reliability curve."""
    found, curves = {}, {}
    for level in LEVELS:
        sure, right, _ = judged_confidence(model, *test, of=level)
        found[level] = {
            "right, %": 100.0 * float(np.mean(right)),
            "ECE, %": 100.0 * expected_calibration_error(sure, right, n_bins=BINS),
            "Brier": brier_score(sure, right),
            "log loss": log_loss(sure, right),
            "AP, %": 100.0 * confidence_average_precision(sure, right),
            "risk-coverage area, %": 100.0 * risk_coverage_area(sure, right),
        }
        curve = reliability_curve(sure, right, n_bins=BINS)
        curves[level] = [[round(float(x), 5) for x in part] for part in curve]
    return found, curves


def calibrated(name: str, factor: float, quick: bool) -> dict[str, Any]:
    """Return the figures of each way over draws, and the curves of the first draw."""
    runs: dict[str, dict[str, list[dict[str, float]]]] = {}
    curves: dict[str, Any] = {}
    for seed in range(QUICK_SEEDS if quick else SEEDS):
        train, test = drawn(name, seed, quick)
        for way in WAYS:
            model: Any = model_of(name, factor)
            if way != AS_IT_IS:
                model = CalibratedSequenceClassifier(model, method=way, cv=FOLDS)
            found, curve = levels(_tasks.quietly(model.fit, *train), test)
            curves.setdefault(way, curve)
            for level, figures in found.items():
                runs.setdefault(level, {}).setdefault(way, []).append(figures)
    return {
        "levels": {
            level: {way: _tasks.gathered(found) for way, found in ways.items()}
            for level, ways in runs.items()
        },
        "curves": curves,
    }


def of_tokens(model: Any, test: Part, spans: Any) -> dict[str, list[np.ndarray]]:
    """Return what the probabilities of the tokens of spans make of these."""
    tokens = model.confidence(test.X, of="tokens")
    made: dict[str, Callable[[np.ndarray], float]] = {
        "product of tokens": np.prod, "least of tokens": np.min, "mean of tokens": np.mean
    }  # fmt: skip
    return {
        kind: [np.array([make(sure[span.start : span.stop]) for span in row])
               for sure, row in zip(tokens, spans, strict=True)]
        for kind, make in made.items()
    }  # fmt: skip


def ranked(model: Any, test: Part) -> dict[str, float]:
    """Return average precisions of fields and of records, and errors by what is kept."""
    spans = model.predict_spans(test.X)
    right = [np.array([span in true for span in row], bool)
             for true, row in zip(test.spans(), spans, strict=True)]  # fmt: skip
    fields = {"probability": model.confidence(test.X, of="spans")} | of_tokens(model, test, spans)
    found = {f"fields, {kind}": 100.0 * confidence_average_precision(sure, right)
             for kind, sure in fields.items()}  # fmt: skip
    y = model.predict(test.X)
    whole = np.array([list(a) == list(b) for a, b in zip(test.y, y, strict=True)])
    tokens = model.confidence(test.X, of="tokens")
    records = {
        "probability": model.confidence(test.X, of="sequences"),
        "product of tokens": [np.prod(sure) for sure in tokens],
        "least field": [min(sure, default=1.0) for sure in fields["probability"]],
    }
    found |= {f"records, {kind}": 100.0 * confidence_average_precision(np.array(sure), whole)
              for kind, sure in records.items()}  # fmt: skip
    found |= {"fields right, %": 100.0 * float(np.mean(np.concatenate(right))),
              "records right, %": 100.0 * float(np.mean(whole))}  # fmt: skip
    for kind, pair in (("fields", (fields["probability"], right)),
                       ("records", (records["probability"], whole))):  # fmt: skip
        curve = risk_coverage_curve(*pair)
        for coverage in COVERAGES:
            place = min(int(np.searchsorted(curve.coverage, coverage)), len(curve.risk) - 1)
            found[f"{kind} wrong of the surest {100 * coverage:g} %"] = 100.0 * float(
                curve.risk[place]
            )
    return found


def ranking(name: str, quick: bool) -> dict[str, Any]:
    """Return average precisions over draws."""
    runs = []
    for seed in range(QUICK_SEEDS if quick else SEEDS):
        train, test = drawn(name, seed, quick)
        runs.append(ranked(_tasks.quietly(model_of(name, 1.0).fit, *train), test))
    return {"learned from": len(train.y), "judged": len(test.y)} | _tasks.gathered(runs)


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for name, (penalty, factor) in itertools.product(CALIBRATED, PENALTIES.items()):
        found[f"{name}, {penalty}"] = functools.partial(calibrated, name, factor, quick)
    for name in _tasks.RECORDS:
        found[f"ranking, {name}"] = functools.partial(ranking, name, quick)
    return found


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw reliability before and after, of each set and level."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    drawn_ = {name: case["curves"] for name, case in results.items() if "curves" in case}
    if not drawn_:
        return
    figure, axes = pyplot.subplots(
        len(drawn_), len(LEVELS), figsize=(3.4 * len(LEVELS), 3.2 * len(drawn_)), squeeze=False,
        layout="constrained", sharex=True, sharey=True,
    )  # fmt: skip
    for row, (name, curves) in zip(axes, drawn_.items(), strict=True):
        for axis, level in zip(row, LEVELS, strict=True):
            for way, of_levels in curves.items():
                found = ReliabilityCurve(*map(np.array, of_levels[level]))
                ReliabilityDisplay(found, found.confidence).plot(ax=axis, name=way, marker=".")
            axis.set_title(f"{name}: {level}", fontsize="small")
            axis.legend(fontsize="x-small")
    figure.savefig(folder / "calibration.png", dpi=70)
    pyplot.close(figure)
