"""Labels that are known in part: F1 by the share of labels that are there, and by what is done.

Two ways to lose labels. Tokens at random lose theirs; or only a part of the entities (or chunks) is
annotated, and of no other token it is known that it is outside. Three things to do: to leave the
others unlabeled, so that the sum over all that they may be counts; to drop the sentences that are
not labeled in full (where entities are annotated, those without one); to call the others "O". Where
only entities are annotated, nothing says what is outside. Parts of speech do: tokens of those in
`OUTSIDE` are called "O" when the others are left unlabeled.

Means over draws of the labels and of the sentences; tests on the official test part.
"""

from __future__ import annotations

import functools
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import _conll
import _data
import numpy as np
from _words import read_blocks
from sklearn.exceptions import ConvergenceWarning

from crfkit import UNLABELED, CRFClassifier, PackedSequences
from crfkit.metrics import entity_f1_score, spans_from_tags

SENTENCES, TESTED, QUICK_SENTENCES = 1000, 1500, 60
DRAWS, QUICK_DRAWS = 3, 1
C2, MAX_ITER = 0.1, 150
UNKNOWN_SHARES = (0.0, 0.5, 0.8, 0.95)
ANNOTATED_SHARES = (1.0, 0.5, 0.2)
# Parts of speech that are hardly ever in a chunk, or in a name.
OUTSIDE = {
    "conll2000": (",", ".", ":", "(", ")", "''", "``"),
    "conll2002_es": ("CC", "CS", "DD", "DI", "DN", "DP", "F", "P", "R", "VA", "VS"),
}
NOTHING = "all labels"
UNLABELED_WAY, DROPPED, CALLED_O = "unlabeled", "dropped", 'called "O"'
WAYS = (UNLABELED_WAY, DROPPED, CALLED_O)
Labels = list[list[Any]]


class Corpus(NamedTuple):
    """Sentences with their labels, and with tokens that are surely outside.

    Attributes
    ----------
    X, X_test : PackedSequences
        The attributes.
    y, y_test : list of list of str
        The labels.
    outside : list of ndarray of bool
        Which tokens have a part of speech that is hardly ever in an entity.
    """

    X: PackedSequences
    y: Labels
    X_test: PackedSequences
    y_test: Labels
    outside: list[np.ndarray]

    def take(self, chosen: np.ndarray) -> Corpus:
        """Return some of the sentences to learn from."""
        return self._replace(X=self.X[chosen], y=[self.y[i] for i in chosen],
                             outside=[self.outside[i] for i in chosen])  # fmt: skip


@functools.lru_cache(maxsize=1)
def load(name: str, tested: int) -> Corpus:
    """Return a corpus."""
    data = _data.load(name)
    if name == "conll2000":
        rows = _conll.read_part("train")
    else:
        rows = read_blocks(f"{name}/esp.train.gz", " ")
    outside = [np.array([row[1].startswith(OUTSIDE[name]) for row in one]) for one in rows]
    return Corpus(data.X, data.y, data.X_test[:tested], data.y_test[:tested], outside)


def without_tokens(y: Labels, share: float, random: np.random.Generator) -> list[np.ndarray]:
    """Return which tokens keep their labels, at random."""
    return [random.uniform(size=len(row)) >= share for row in y]


def of_entities(y: Labels, share: float, random: np.random.Generator) -> list[np.ndarray]:
    """Return which tokens are of an entity that is annotated."""
    found = []
    for row in y:
        known = np.zeros(len(row), bool)
        for start, stop, _ in spans_from_tags(row):
            known[start:stop] = random.uniform() < share
        found.append(known)
    return found


def labels_for(way: str, y: Labels, known: list[np.ndarray]) -> Labels:
    """Return labels of which only some are known."""
    other = "O" if way == CALLED_O else UNLABELED
    return [
        [label if is_known else other for label, is_known in zip(row, mask, strict=True)]
        for row, mask in zip(y, known, strict=True)
    ]


def score(corpus: Corpus, y: Labels, kept: np.ndarray) -> dict[str, float]:
    """Return the F1 of a model that learned from the sentences that are kept."""
    if not len(kept):
        return {"F1": 0.0, "sentences": 0, "processor seconds": 0.0}
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        crf = CRFClassifier(c2=C2, max_iter=MAX_ITER).fit(corpus.X[kept], [y[i] for i in kept])
    seconds = time.process_time() - started
    found = crf.predict(corpus.X_test)
    return {"F1": 100.0 * entity_f1_score(corpus.y_test, found), "sentences": len(kept),
            "processor seconds": seconds}  # fmt: skip


def of_tokens(corpus: Corpus, share: float, way: str, seed: int) -> dict[str, float]:
    """Return the F1 where a share of the tokens has lost its label."""
    known = without_tokens(corpus.y, share, np.random.default_rng(seed))
    whole = np.array([mask.all() for mask in known])
    kept = np.flatnonzero(whole) if way == DROPPED else np.arange(len(whole))
    y = corpus.y if way == DROPPED else labels_for(way, corpus.y, known)
    return score(corpus, y, kept)


def of_annotated(corpus: Corpus, share: float, way: str, seed: int) -> dict[str, float]:
    """Return the F1 where only a share of the entities has labels."""
    known = of_entities(corpus.y, share, np.random.default_rng(seed))
    some = np.array([mask.any() for mask in known])
    kept = np.flatnonzero(some) if way == DROPPED else np.arange(len(some))
    if way != UNLABELED_WAY:
        return score(corpus, labels_for(CALLED_O, corpus.y, known), kept)
    y = [
        [label if mine else "O" if sure else UNLABELED
         for label, mine, sure in zip(*rows, strict=True)]
        for rows in zip(corpus.y, known, corpus.outside, strict=True)
    ]  # fmt: skip
    return score(corpus, y, kept)


def measure(
    name: str, lost: Callable[..., dict[str, float]], share: float, way: str, quick: bool
) -> dict[str, Any]:
    """Return the F1 over draws of sentences and labels."""
    corpus, runs = load(name, QUICK_SENTENCES if quick else TESTED), []
    for seed in range(QUICK_DRAWS if quick else DRAWS):
        order = np.random.default_rng(seed).permutation(len(corpus.y))
        few = corpus.take(order[: QUICK_SENTENCES if quick else SENTENCES])
        runs.append(lost(few, share, way, seed))
    f1 = [run["F1"] for run in runs]
    return {
        "F1": {"mean": statistics.mean(f1), "all": [round(value, 2) for value in f1],
               "deviation": statistics.stdev(f1) if len(f1) > 1 else 0.0},
        "sentences": statistics.mean(run["sentences"] for run in runs),
        "processor seconds of a fit": statistics.mean(run["processor seconds"] for run in runs),
    }  # fmt: skip


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for name in OUTSIDE:
        for share in UNKNOWN_SHARES:
            for way in WAYS if share else (NOTHING,):
                found[f"{name}, tokens, {100 * share:g} % without: {way}"] = functools.partial(
                    measure, name, of_tokens, share, way, quick
                )
        for share in ANNOTATED_SHARES:
            for way in WAYS:
                found[f"{name}, entities, {100 * share:g} % annotated: {way}"] = functools.partial(
                    measure, name, of_annotated, share, way, quick
                )
    return found


def curves(results: dict[str, Any]) -> dict[str, dict[str, list[tuple[float, float, float]]]]:
    """Return share, mean F1 and deviation of each way, by data set and kind."""
    found: dict[str, dict[str, list[tuple[float, float, float]]]] = {}
    for key, case in results.items():
        setting, _, way = key.partition(": ")
        name, kind, share = setting.split(", ")
        point = (float(share.split()[0]), case["F1"]["mean"], case["F1"]["deviation"])
        panel = found.setdefault(f"{name}, {kind}", {})
        for one in WAYS if way == NOTHING else (way,):
            panel.setdefault(one, []).append(point)
    return found


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw F1 by the share of labels that are known."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    panels = curves(results)
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(3.6 * len(panels), 3.2), squeeze=False, layout="constrained"
    )
    for ax, (title, series) in zip(axes.flat, panels.items(), strict=True):
        for way, points in series.items():
            share, mean, deviation = zip(*points, strict=True)
            ax.errorbar(share, mean, deviation, label=way, marker=".", capsize=2)
        tokens = title.endswith("tokens")
        ax.set(title=title, xlabel="% of the tokens without a label" if tokens
               else "% of the entities annotated", ylabel="test F1")  # fmt: skip
        ax.invert_xaxis() if not tokens else None
        ax.grid(alpha=0.3)
        ax.legend(fontsize="x-small")
    figure.savefig(folder / "partial_labels.png", dpi=110)
    pyplot.close(figure)
