"""Skip-chain CRFs (Sutton and McCallum 2004): names in Spanish news, each word tagged everywhere.

A sequence is a document of CoNLL-2002, told by datelines, so that equal words with a capital letter
far apart are joined, each with the next one. The features are those of a chain; edges between equal
words have what stands around either of them. Sums of graphs with cycles are those of loopy belief
propagation. Where few documents are learned from, most names of others are new.
"""

from __future__ import annotations

import functools
import itertools
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from spanish_names import spanish

from crfkit import GraphCRF, TemplateFeatures
from crfkit.features import SkipChainFeatures, window
from crfkit.graphs.belief_propagation import BeliefPropagation
from crfkit.metrics import (
    convert_tags,
    entity_f1_score,
    entity_precision_score,
    entity_recall_score,
)

TEMPLATES = [
    *window("lower(w)", -2, 2), *window("shape(w)", -1, 1), *window("p", -1, 1), "w",
    *(f"{part}(w, {n})" for part in ("prefix", "suffix") for n in (1, 2, 3, 4)),
    "lower(w[-1])|lower(w)", "lower(w)|lower(w[1])", "p[-1]|p|p[1]",
]  # fmt: skip
# What is told of one place of a word counts at the others.
SKIP = ["lower(w[-1])", "lower(w[1])", "p[-1]", "p[1]"]
C2, MAX_ITER = 0.5, 40
# Of the training data, and of the test data of a quick run.
DOCUMENTS, QUICK_DOCUMENTS = (60, 300), 3


@functools.cache
def read(name: str, most: int | None) -> tuple[list[Any], list[list[str]]]:
    """Return documents, as columns and IOB2 tags."""
    part = spanish(name)
    numbers = sorted(set(part.numbers))[:most]
    X: dict[int, list[Any]] = {number: [] for number in numbers}
    y: dict[int, list[str]] = {number: [] for number in numbers}
    for number, columns, tags in zip(part.numbers, part.columns, part.y, strict=True):
        if number in X:
            X[number] += columns
            y[number] += convert_tags(tags, "IOBES", "IOB2")
    return list(X.values()), list(y.values())


def models() -> dict[str, Callable[[], Any]]:
    """Return the models that are compared, each a maker of features."""
    plain = TemplateFeatures(TEMPLATES, columns=["w", "p"])
    return {
        "chain": plain,
        "skip edges": SkipChainFeatures(plain, word=0, pairs="next"),
        "skip edges with words around": SkipChainFeatures(
            plain, word=0, pairs="next", skip=TemplateFeatures(SKIP, columns=["w", "p"])
        ),
    }  # fmt: skip


def consistency(X: list[Any], y: list[list[str]]) -> float:
    """Return the share of pairs of equal words with a capital in a document of one type.

    Of pairs of which at least one is tagged as a part of a name.
    """
    same = total = 0
    for tokens, tags in zip(X, y, strict=True):
        kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for (word, *_), tag in zip(tokens, tags, strict=True):
            if word[:1].isupper():
                kinds[word][tag[2:] or tag] += 1
        for counts in kinds.values():
            for a, b in itertools.combinations_with_replacement(sorted(counts), 2):
                pairs = counts[a] * (counts[a] - 1) // 2 if a == b else counts[a] * counts[b]
                if (a, b) != ("O", "O"):
                    total += pairs
                    same += pairs if a == b else 0
    return same / max(total, 1)


def measure(name: str, documents: int, most: int | None) -> dict[str, Any]:
    """Return F1 and consistency of the test data, and seconds."""
    (X, y), (X_test, y_test) = read("esp.train", documents), read("esp.testb", most)
    features = models()[name]
    train, test = features.fit_transform(X), features.transform(X_test)
    inference = "exact" if name == "chain" else BeliefPropagation(tol=1e-5, max_iter=100)
    model = GraphCRF(directed=True, inference=inference, decoding="posterior", c2=C2,
                     max_iter=MAX_ITER)  # fmt: skip
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(train, y)
    fitted = time.process_time()
    predicted = model.predict(test)
    judges = entity_precision_score, entity_recall_score, entity_f1_score
    scores = [judge(y_test, predicted) for judge in judges]
    return {
        "documents": len(X), "tokens": train.n_tokens,
        "skip edges": int((train.ends[0] >= 0).sum() - train.n_tokens + len(X)),
        "precision": scores[0], "recall": scores[1], "F1": scores[2],
        "consistency": consistency(X_test, predicted),
        "consistency of the truth": consistency(X_test, y_test),
        "processor seconds of the fit": fitted - started, "iterations": model.n_iter_,
        "processor seconds of the tags": time.process_time() - fitted,
    }  # fmt: skip


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    most = QUICK_DOCUMENTS if quick else None
    return {
        f"{documents} documents: {name}": functools.partial(measure, name, most or documents, most)
        for documents in DOCUMENTS
        for name in models()
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: a table says it."""
