"""Mixtures of orders: HMM, MEMM and CRF of first order on sources between first and second order.

The experiment of Lafferty, McCallum and Pereira (2001, section 5.2): for eleven weights of the
second order, twenty random sources of five labels and 26 symbols each, 1,000 sequences of length 25
to learn from and as many to test on. The models have features of a label and its symbol, and of two
labels. Beside them the least error, that of the posteriors by the tables of the source. A source is
mixed at each step, as in the paper, or for whole sequences.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _family_plots
import numpy as np
from _sources import chains, label_error, split, wrong

from crfkit.datasets import bayes_posteriors, make_markov_sequences

ALPHAS = [round(0.1 * i, 1) for i in range(11)]
QUICK_ALPHAS = [0.0, 0.5, 1.0]
N_MODELS, QUICK_MODELS = 20, 2
N_SEQUENCES, QUICK_SEQUENCES, LENGTH = 1000, 100, 25
C2 = 0.1
SAID = ("weight 0.5 and more", "weight below 0.5")
STYLE = {"HMM": "C0.-", "MEMM": "C1.-", "CRF": "C3.-", "source": "k.--"}
PAIRS = [("MEMM", "CRF"), ("MEMM", "HMM"), ("CRF", "HMM")]


def measure(quick: bool, mixing: str, alpha: float) -> dict[str, Any]:
    """Return the share of wrong labels of each model, on each source."""
    n = QUICK_SEQUENCES if quick else N_SEQUENCES
    errors: dict[str, list[float]] = {}
    started = time.process_time()
    for seed in range(QUICK_MODELS if quick else N_MODELS):
        # One seed gives the same four tables for all weights.
        data = make_markov_sequences(
            2 * n, LENGTH, alpha=alpha, mixing=mixing, random_state=seed
        )  # fmt: skip
        parts = split(data, n)
        for name, model in chains(C2).items():
            errors.setdefault(name, []).append(label_error(model, parts))
        best = [np.take(data.states, rows.argmax(axis=1)) for rows in
                bayes_posteriors(data, data.X[n:])]  # fmt: skip
        errors.setdefault("source", []).append(float(wrong(parts.y_test, best).mean()))
    return {
        "alpha": alpha, "mixing": mixing, "sequences": n, "length": LENGTH, "c2": C2,
        "processor seconds": time.process_time() - started, "errors": errors,
    }  # fmt: skip


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    return {
        f"{mixing}, alpha = {alpha:g}": functools.partial(measure, quick, mixing, alpha)
        for mixing in ("local", "global")
        for alpha in (QUICK_ALPHAS if quick else ALPHAS)
    }


def of(results: dict[str, Any], mixing: str) -> list[dict[str, Any]]:
    """Return the cases of a mixing, by weight."""
    found = [case for case in results.values() if case["mixing"] == mixing]
    return sorted(found, key=lambda case: float(case["alpha"]))


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw errors against errors, and how they grow with the weight."""
    growth: dict[str, Any] = {}
    for mixing in ("local", "global"):
        found = of(results, mixing)
        if not found:
            continue
        names = found[0]["errors"]
        percent = {
            name: [100 * error for case in found for error in case["errors"][name]]
            for name in names
        }
        filled = [case["alpha"] >= 0.5 for case in found for _ in case["errors"]["CRF"]]
        path = folder / f"mixed_orders_{mixing}.png"
        _family_plots.against(path, PAIRS, percent, filled, SAID)
        alphas = [case["alpha"] for case in found]
        growth[f"mixed at each {'step' if mixing == 'local' else 'sequence'}"] = {
            name: (alphas, [[100 * error for error in case["errors"][name]] for case in found])
            for name in names
        }
    if growth:
        _family_plots.curves(
            folder / "mixed_orders.png",
            growth,
            "weight of the second order",
            "wrong labels, %",
            STYLE,
        )
