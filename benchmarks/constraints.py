"""What constraints give: legal tags of names, and records whose fields come once and in order.

Names: models of some sentences, with tags that a scheme allows or without, over draws of the
sentences; where labels are IOB2 or IOBES, decoded as a whole (viterbi) or token by token
(posterior). Records: the labels that come in one block in all records that are learned from
(`Contiguous`), and the pairs that have one order in all of them (`Before`), if at least `LEAST`
records have them.
"""

from __future__ import annotations

import collections
import functools
import itertools
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import _tasks
import numpy as np
from _tasks import Labels, Part

from crfkit import CRFClassifier
from crfkit.constraints import Before, Constraints, Contiguous, TagScheme
from crfkit.metrics import illegal_tags

SEEDS, QUICK_SEEDS = 5, 1
SENTENCES, TESTED, READ, QUICK = (100, 1000), 1500, 6000, 60
RECORDS_TRAINED, RECORDS_TESTED = (30, 100, 300), 400
LEAST = 10  # records that have a field, or both of a pair, before there is a rule
FREE, LEGAL, ONCE, ORDER = "no constraints", "tag scheme", "each field once", "once, in order"
# Of the product of labels and automata, at most; seconds for what is left to other methods.
STATES, SECONDS, HARD_TESTED = (2000, 8, 5, 1), 1.0, 200
DECODINGS = ("viterbi", "posterior")


def illegal(y: Labels, scheme: str) -> int:
    """Return how many tags the scheme does not allow where they stand."""
    return len(illegal_tags(y, scheme))


def of_names(name: str, scheme: str, n_train: int, quick: bool) -> dict[str, Any]:
    """Return scores of names with and without a tag scheme."""
    part = _tasks.names(name, QUICK * 2 if quick else READ, scheme)
    runs: dict[str, dict[str, list[dict[str, float]]]] = {way: {} for way in DECODINGS}
    for seed in range(QUICK_SEEDS if quick else SEEDS):
        one = _tasks.split(part, QUICK if quick else n_train, TESTED, seed)
        crf = _tasks.fitted(one.train, _tasks.NAMES[name])
        for way in DECODINGS:
            crf.set_params(decoding=way)
            for rule, given in ((FREE, None), (LEGAL, TagScheme(scheme))):
                y = crf.predict(one.test.X, constraints=given)
                found = _tasks.judged(one.test, y) | {"illegal tags": illegal(y, scheme)}
                runs[way].setdefault(rule, []).append(found)
    spans = sum(map(len, one.test.spans()))
    return {"tested": len(one.test.y), "spans": spans} | {
        way: with_gains(found) for way, found in runs.items()
    }


def with_gains(runs: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Return the spread of each way, and of what it gains on the first one, draw by draw."""
    base = next(iter(runs.values()))
    return {
        way: {
            **_tasks.gathered(found),
            "gains": _tasks.gathered([
                {key: one[key] - other[key] for key in ("tokens", "F1", "whole")}
                for one, other in zip(found, base, strict=True)
            ]),
        }
        for way, found in runs.items()
    }  # fmt: skip


def fields(labels: Iterable[str]) -> list[str]:
    """Return the labels of the spans in their order."""
    return [span.label for span in _tasks.spans_of(list(labels))]


def once(y: Labels, least: int) -> list[str]:
    """Return the labels of so many sequences at least that have one span of it, and no other."""
    found: dict[str, list[int]] = {}
    for labels in y:
        for label, count in collections.Counter(fields(labels)).items():
            found.setdefault(label, []).append(count)
    return sorted(k for k, counts in found.items() if len(counts) >= least and max(counts) == 1)


def orders(y: Labels, least: int) -> list[tuple[str, str]]:
    """Return the pairs of labels of which all spans of the first are before those of the second."""
    together: collections.Counter[tuple[str, str]] = collections.Counter()
    before: collections.Counter[tuple[str, str]] = collections.Counter()
    for labels in y:
        places: dict[str, list[int]] = {}
        for place, label in enumerate(fields(labels)):
            places.setdefault(label, []).append(place)
        for a, b in itertools.permutations(places, 2):
            together[a, b] += 1
            before[a, b] += max(places[a]) < min(places[b])
    return sorted(p for p, count in together.items() if count >= least and before[p] == count)


def rules(y: Labels, is_tagged: bool) -> dict[str, list[Any]]:
    """Return the constraints of each way, as learned from labels."""
    legal = [TagScheme("IOB2")] if is_tagged else []
    blocks = [*legal, Contiguous(once(y, LEAST))]
    found = {FREE: [], LEGAL: legal, ONCE: blocks,
             ORDER: [*blocks, *(Before(a, b) for a, b in orders(y, LEAST))]}  # fmt: skip
    return {way: given for way, given in found.items() if way != LEGAL or is_tagged}


def broken(true: Labels, learned: Labels) -> float:
    """Return the percentage of true records that break what others tell of order and blocks."""
    single, ordered = set(once(learned, LEAST)), orders(learned, LEAST)
    count = 0
    for labels in true:
        listed = fields(labels)
        places = {label: (listed.index(label), len(listed) - listed[::-1].index(label) - 1)
                  for label in set(listed)}  # fmt: skip
        count += any(n > 1 for k, n in collections.Counter(listed).items() if k in single) or any(
            places[a][1] > places[b][0] for a, b in ordered if a in places and b in places
        )
    return 100.0 * count / max(len(true), 1)


class Bounded(NamedTuple):
    """Labels under constraints, their scores, and how they were found and proved."""

    y: Labels
    scores: np.ndarray
    how: dict[str, float]


def bounded(crf: CRFClassifier, test: Part, given: Any) -> Bounded:
    """Return the labels of sequences under constraints."""
    started = time.process_time()
    found = crf.predict_with_bounds(test.X, constraints=given or None)
    seconds = time.process_time() - started
    methods = collections.Counter(one.method for one in found)
    how = {
        "optimal": 100.0 * sum(one.is_optimal for one in found) / len(found),
        "seconds": seconds,
        **{f"by {method}": 100.0 * count / len(found) for method, count in methods.items()},
    }
    scores = np.array([one.score for one in found])
    return Bounded([list(one.labels) for one in found], scores, how)


def of_records(name: str, n_train: int, quick: bool) -> dict[str, Any]:
    """Return scores of records with and without what fields tell of each other."""
    part, runs = _tasks.records(name), {}
    details: dict[str, list[dict[str, float]]] = {"rules": [], "broken": []}
    is_tagged = any("-" in label for label in itertools.chain(*part.y))
    for seed in range(QUICK_SEEDS if quick else SEEDS):
        one = _tasks.split(part, min(n_train, 30) if quick else n_train,
                           40 if quick else RECORDS_TESTED, seed)  # fmt: skip
        crf = _tasks.fitted(one.train, _tasks.RECORDS[name])
        learned = rules(one.train.y, is_tagged)
        for way, given in learned.items():
            y, _, how = bounded(crf, one.test, given)
            runs.setdefault(way, []).append(_tasks.judged(one.test, y) | how)
        details["rules"].append(len(learned[ORDER]) - len(learned[ONCE]))
        details["broken"].append(broken(one.test.y, one.train.y))
    every = {key for found in runs.values() for run in found for key in run}
    filled = {way: [{key: run.get(key, 0.0) for key in sorted(every)} for run in found]
              for way, found in runs.items()}  # fmt: skip
    return {
        "tested": len(one.test.y),
        "pairs in order": _tasks.spread(details["rules"]),
        "true records that break the rules, %": _tasks.spread(details["broken"]),
        "ways": with_gains(filled),
    }


def of_methods(name: str, quick: bool) -> dict[str, Any]:
    """Return how labels under rules are found, and proved, where products may be small only."""
    part, found = _tasks.records(name), {}
    is_tagged = any("-" in label for label in itertools.chain(*part.y))
    one = _tasks.split(part, 30, 40 if quick else HARD_TESTED, 0)
    crf = _tasks.fitted(one.train, _tasks.RECORDS[name])
    given = rules(one.train.y, is_tagged)[ORDER]
    best = None
    for most in STATES:
        limited = Constraints(given, max_states=most, time_limit=SECONDS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of labelings that are not proved
            y, scores, how = bounded(crf, one.test, limited)
        best = scores if best is None else best
        same = np.isclose(scores, best, rtol=1e-9)
        found[f"{most} states"] = {
            **_tasks.judged(one.test, y), **how, "best": 100.0 * float(np.mean(same))
        }  # fmt: skip
    return {"rules": len(given), "records": len(one.test.y), "budgets": found}


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for name, scheme, size in itertools.product(_tasks.NAMES, ("IOB2", "IOBES"), SENTENCES):
        found[f"{name}, {scheme}, {size} sentences"] = functools.partial(
            of_names, name, scheme, size, quick
        )
    for name, size in itertools.product(_tasks.RECORDS, RECORDS_TRAINED):
        found[f"{name}, {size} records"] = functools.partial(of_records, name, size, quick)
    for name in _tasks.RECORDS:
        found[f"methods, {name}"] = functools.partial(of_methods, name, quick)
    return found


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: the page has tables."""
