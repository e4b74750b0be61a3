"""How many tokens a batch of online exponentiated gradient should have.

Passes, and processor seconds of one thread, until the gap is below the default tolerance.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _ordinary_data
from ordinary_settings import LIMITS, QUICK_SEQUENCES
from threadpoolctl import threadpool_limits

from crfkit import CRFClassifier
from crfkit.solvers import OEG

DATASETS = ("conll2000", "conll2002_es", "ud_english_ewt", "headers_cora", "brown_pos")
PENALTIES = (1.0, 0.1)
SIZES = (400, 200, 100, 50)
MOST_PASSES = 500


def measure(dataset: str, c2: float, limit: int | None) -> dict[str, Any]:
    """Fit with batches of each size."""
    data = _ordinary_data.load(dataset, limit)
    fit(data, c2, SIZES[0], 2)  # compiles
    runs = {str(size): fit(data, c2, size, MOST_PASSES) for size in SIZES}
    return {"sizes": data.sizes(), "c2": c2, "limit": limit, "tokens of a batch": runs}


def fit(data: Any, c2: float, size: int, passes: int) -> dict[str, Any]:
    """Fit with batches of about so many tokens."""
    crf = CRFClassifier(c1=0.0, c2=c2, solver=OEG(batch_tokens=size, max_iter=passes), n_jobs=1)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # whether it converged is noted
        started = time.process_time()
        crf.fit(data.X, data.y)
    return {
        "passes": crf.training_log_[-1].iteration, "seconds": time.process_time() - started,
        "converged": bool(crf.converged_),
    }  # fmt: skip


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    return {
        f"{name}, c2={c2:g}": functools.partial(
            measure, name, c2, QUICK_SEQUENCES if quick else LIMITS.get(name)
        )
        for name in DATASETS
        for c2 in PENALTIES
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: a table says it all."""
