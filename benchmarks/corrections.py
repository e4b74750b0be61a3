"""A user corrects one field of a record: what the model makes of it (Kristjansson et al. 2004).

Records in which something is wrong: the user sets one wrong field right, and the labels are found
anew with this field given (`Known`). What is still wrong beyond it is compared with what was wrong
there before. The field is drawn at random, or it is the one under the least confident wrong field.
And how many corrections a record takes until all is right, with and without finding labels anew;
and how many fields a user looks at until the first wrong one, in three orders. Records with labels
that the model has not seen are left out.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import _tasks
import numpy as np
from _tasks import Labels, Part, Spans

from crfkit import CRFClassifier
from crfkit.constraints import Known, TagScheme

SEEDS, QUICK_SEEDS = 5, 1
TRAINED, TESTED = (100, 300), 400
MOST_ROUNDS = 15
AT_RANDOM, LEAST_CONFIDENT = "at random", "least confident"


class Answers(NamedTuple):
    """What a model says of records.

    Attributes
    ----------
    y : list of list of str
        The labels.
    spans : list of list of Segment
        The fields.
    confidence : list of ndarray
        The probability of each field.
    """

    y: Labels
    spans: Spans
    confidence: list[np.ndarray]


class Model:
    """A classifier whose tags are legal."""

    def __init__(self, crf: CRFClassifier, is_tagged: bool) -> None:
        self.crf, self.rules = crf, [TagScheme("IOB2")] if is_tagged else []

    def ask(self, X: Any, known: Spans | None = None) -> Answers:
        """Return what the model says, some fields given."""
        rules = [*self.rules, *([] if known is None else [Known(known)])] or None
        y = [list(labels) for labels in self.crf.predict(X, constraints=rules)]
        spans = [_tasks.spans_of(labels) for labels in y]
        return Answers(y, spans, self.crf.predict_span_proba(X, spans, constraints=rules))


def missed(true: list[Any], found: list[Any]) -> list[Any]:
    """Return the true fields that were not found."""
    return [span for span in true if span not in found]


def overlap(a: Any, b: Any) -> int:
    """Return how many tokens two spans share."""
    return max(0, min(a.stop, b.stop) - max(a.start, b.start))


def to_correct(true: list[Any], said: list[Any], sure: np.ndarray, random: Any) -> Any:
    """Return the true field that a user sets right: any, or that under the least sure wrong one."""
    wrong = missed(true, said)
    if random is not None:
        return wrong[random.integers(len(wrong))]
    for place in np.argsort(sure, kind="stable"):
        shared = [overlap(span, said[place]) for span in wrong]
        if max(shared) > 0 and said[place] not in true:
            return wrong[int(np.argmax(shared))]
    return wrong[0]


def overwritten(labels: list[str], true: list[str], span: Any) -> list[str]:
    """Return labels of which one field is set right, and nothing else."""
    return [*labels[: span.start], *true[span.start : span.stop], *labels[span.stop :]]


def beyond(true: list[str], y: list[str], span: Any) -> int:
    """Return how many tokens outside of a span are wrong."""
    return sum(a != b for t, (a, b) in enumerate(zip(true, y, strict=True))
               if not span.start <= t < span.stop)  # fmt: skip


def one_correction(model: Model, test: Part, said: Answers, random: Any) -> dict[str, float]:
    """Return what is wrong beyond one corrected field, with and without finding labels anew."""
    true = test.spans()
    wrong = [s for s, spans in enumerate(true) if missed(spans, said.spans[s])]
    chosen = [to_correct(true[s], said.spans[s], said.confidence[s], random) for s in wrong]
    anew = model.ask(test.X[wrong], [[span] for span in chosen])
    tokens, fields = np.zeros(2), np.zeros(2)
    for place, (s, span) in enumerate(zip(wrong, chosen, strict=True)):
        by_hand = overwritten(said.y[s], test.y[s], span)
        for way, labels in enumerate((by_hand, anew.y[place])):
            tokens[way] += beyond(test.y[s], labels, span)
            fields[way] += len(missed(true[s], _tasks.spans_of(labels)))
    return {
        "records": len(wrong),
        "wrong tokens beyond it": tokens[0], "after": tokens[1],
        "wrong fields beyond it": fields[0], "fields after": fields[1],
        "fewer wrong tokens, %": 100.0 * (1.0 - tokens[1] / max(tokens[0], 1.0)),
        "fewer wrong fields, %": 100.0 * (1.0 - fields[1] / max(fields[0], 1.0)),
    }  # fmt: skip


def until_right(model: Model, test: Part, said: Answers, random: Any) -> float:
    """Return how many corrections a wrong record takes if labels are found anew after each."""
    true, count = test.spans(), 0
    open_ = [s for s, spans in enumerate(true) if missed(spans, said.spans[s])]
    known: Spans = [[] for _ in true]
    n_wrong, current = len(open_), {s: (said.spans[s], said.confidence[s]) for s in open_}
    for _ in range(MOST_ROUNDS):
        if not open_:
            break
        for s in open_:
            known[s].append(to_correct(true[s], *current[s], random))
        count += len(open_)
        anew = model.ask(test.X[open_], [known[s] for s in open_])
        current = {s: (anew.spans[i], anew.confidence[i]) for i, s in enumerate(open_)}
        open_ = [s for s in open_ if missed(true[s], current[s][0])]
    return count / max(n_wrong, 1)


def by_hand(test: Part, said: Answers) -> float:
    """Return how many corrections a wrong record takes if they change nothing else."""
    counts = [len(missed(*pair)) for pair in zip(test.spans(), said.spans, strict=True)]
    return sum(counts) / max(np.count_nonzero(counts), 1)


def looked_at(test: Part, said: Answers, random: Any) -> dict[str, float]:
    """Return the fields shown until the first wrong one, and how often the first one is wrong."""
    orders: dict[str, Callable[[np.ndarray], Any]] = {
        "as they stand": lambda sure: np.arange(len(sure)),
        AT_RANDOM: lambda sure: random.permutation(len(sure)),
        LEAST_CONFIDENT: lambda sure: np.argsort(sure, kind="stable"),
    }
    found: dict[str, float] = {}
    for name, order in orders.items():
        ranks = []
        for true, spans, sure in zip(test.spans(), said.spans, said.confidence, strict=True):
            wrong = [span not in true for span in spans]
            if any(wrong):
                ranks.append(1 + [wrong[place] for place in order(sure)].index(True))
        found[f"{name}: fields until one is wrong"] = float(np.mean(ranks))
        found[f"{name}: first is wrong, %"] = 100.0 * float(np.mean(np.array(ranks) == 1))
    return found


def measure(name: str, n_train: int, quick: bool) -> dict[str, Any]:
    """Return the spread of all figures over draws of the records."""
    part = _tasks.records(name)
    is_tagged = any("-" in label for label in itertools.chain(*part.y))
    runs: dict[str, list[dict[str, float]]] = {AT_RANDOM: [], LEAST_CONFIDENT: [], "looked at": []}
    for seed in range(QUICK_SEEDS if quick else SEEDS):
        one = _tasks.split(part, min(n_train, 30) if quick else n_train,
                           40 if quick else TESTED, seed)  # fmt: skip
        model = Model(_tasks.fitted(one.train, _tasks.RECORDS[name]), is_tagged)
        # What the model has never seen it cannot be told.
        known = set(model.crf.classes_)
        test = one.test.take([s for s, labels in enumerate(one.test.y) if known.issuperset(labels)])
        said = model.ask(test.X)
        for way in (AT_RANDOM, LEAST_CONFIDENT):
            runs[way].append(
                one_correction(model, test, said, _drawn(way, seed))
                | {"corrections by hand": by_hand(test, said),
                   "corrections": until_right(model, test, said, _drawn(way, seed))}
            )  # fmt: skip
        runs["looked at"].append(looked_at(test, said, np.random.default_rng(seed)))
    return {way: _tasks.gathered(found) for way, found in runs.items()}


def _drawn(way: str, seed: int) -> Any:
    return np.random.default_rng(seed) if way == AT_RANDOM else None


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    return {
        f"{name}, {size} records": functools.partial(measure, name, size, quick)
        for name, size in itertools.product(_tasks.RECORDS, TRAINED)
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: the page has tables."""
