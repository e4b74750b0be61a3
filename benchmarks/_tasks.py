"""Records of fields, and sentences with names: drawn splits of packed attributes and labels."""

from __future__ import annotations

import functools
import statistics
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from _conll import Columns
from _words import FILES, read_blocks, word_attributes
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, PackedSequences, SequenceVectorizer, TemplateFeatures
from crfkit.features import preset
from crfkit.metrics import convert_tags, segment_f1_score, spans_from_tags

Labels = list[list[str]]
Spans = list[list[Any]]
# All records of a kind of text, and with which penalty it is learned.
RECORDS = {"citations_cora": 0.1, "headers_cora": 0.1, "usaddress": 0.3}
NAMES = {"conll2002_es": 0.1, "gmb_ner": 0.1, "wikigold": 0.1}
LINE_END = "+L+"  # a token of headers_cora
PARTS = {"usaddress": ("train", "test")}


class Part(NamedTuple):
    """Sequences with their labels.

    Attributes
    ----------
    X : PackedSequences
        The attributes.
    y : list of list of str
        Tags or, of addresses, parts whose runs are fields.
    """

    X: PackedSequences
    y: Labels

    def take(self, chosen: Any) -> Part:
        """Return some of the sequences."""
        return Part(self.X[chosen], [self.y[i] for i in chosen])

    def spans(self) -> Spans:
        """Return the true spans."""
        return [spans_of(labels) for labels in self.y]


class Split(NamedTuple):
    """Sequences to learn from, and others to judge by."""

    train: Part
    test: Part


def spans_of(labels: Sequence[str]) -> list[Any]:
    """Return the spans of tags, or the runs of labels that are none."""
    is_tagged = all(label == "O" or label[:2] in ("B-", "I-", "E-", "S-") for label in labels)
    found = spans_from_tags(list(labels) if is_tagged else [f"I-{label}" for label in labels])
    return [span for span in found if span.label != "O"]


def _without_marks(rows: Iterable[Columns]) -> list[Columns]:
    return [row for row in rows if row[0][0] != "-DOCSTART-"]


@functools.cache
def columns(name: str) -> list[Columns]:
    """Return the rows of a data set, the label last."""
    if name == "wikigold":
        rows = _without_marks(read_blocks("wikigold/wikigold.conll.txt.gz", " "))
    else:
        rows = read_blocks(*FILES[name])
    return [row for row in rows if any(len(token) > 1 for token in row)]


def texts(name: str) -> list[list[str]]:
    """Return the words."""
    return [[row[0] for row in rows] for rows in columns(name)]


@functools.lru_cache(maxsize=2)
def records(name: str) -> Part:
    """Return all records of a data set, with the attributes of fields."""
    rows = [[[row[0]] for row in one] for one in columns(name)]
    X = TemplateFeatures(preset("fields"), columns=[0]).fit_transform(rows)
    return Part(X, [[row[-1] for row in one] for one in columns(name)])


@functools.lru_cache(maxsize=2)
def names(name: str, limit: int | None = None, scheme: str = "IOB2") -> Part:
    """Return the first sentences of a data set, with the attributes of words."""
    rows = columns(name)[:limit]
    X = SequenceVectorizer().fit_transform(word_attributes([r[:-1] for r in one]) for one in rows)
    tags = [[row[-1] for row in one] for one in rows]
    return Part(X, [convert_tags(one, "conll", scheme) for one in tags])


def split(part: Part, n_train: int, n_test: int, seed: int) -> Split:
    """Return sequences drawn at random to learn from, and others."""
    order = np.random.default_rng(seed).permutation(len(part.y))
    return Split(part.take(order[:n_train]), part.take(order[n_train : n_train + n_test]))


def quietly(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a fit returns; iterations may be too few for its tolerance."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return call(*arguments)


def fitted(train: Part, c2: float, **options: Any) -> CRFClassifier:
    """Return a classifier that has learned."""
    return quietly(CRFClassifier(c2=c2, **{"max_iter": 150} | options).fit, *train)


def judged(true: Part, y: Labels) -> dict[str, float]:
    """Return percentages: tokens and whole sequences that are right, and the F1 of spans."""
    right = [np.array([a == b for a, b in zip(*rows, strict=True)])
             for rows in zip(true.y, y, strict=True)]  # fmt: skip
    return {
        "tokens": 100.0 * float(np.mean(np.concatenate(right))),
        "F1": 100.0 * float(segment_f1_score(true.spans(), [spans_of(labels) for labels in y])),
        "whole": 100.0 * float(np.mean([row.all() for row in right])),
    }


def spread(values: Iterable[float]) -> dict[str, Any]:
    """Return mean, standard deviation, and all values."""
    found = [float(value) for value in values]
    return {
        "mean": statistics.mean(found),
        "deviation": statistics.stdev(found) if len(found) > 1 else 0.0,
        "all": [round(value, 3) for value in found],
    }


def gathered(runs: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return mean, standard deviation, and all values of each key of some runs."""
    return {key: spread(run[key] for run in runs) for key in runs[0]}
