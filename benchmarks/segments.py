"""SemiMarkovCRF against a CRF of tags: F1 of segments, and what a pass costs.

F1 is the mean over five folds of sequences. All models have the same features of tokens. Of each
model the penalty is chosen on the training part of the first fold, or its first 40,000 tokens: the
model is fitted to four fifths of them and scored on the rest. Dictionaries are made of each
training part: segments that at least two of its sequences have. The CRF is told where around a
token their longest entries begin and go on (from the left), the semi-Markov model which segments
are entries; in its last form both, and the words and shapes of segments, where these come at least
twice.

Costs are those of a value and a gradient of the objective; memory is the peak of what these
allocate.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import statistics
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import _data
import _measure
import _objectives
import _plots
import _segment_data
import numpy as np
from _segment_data import Dictionaries, Segment, Task
from sklearn.model_selection import KFold

from crfkit import CRFClassifier, PackedSequences, SemiMarkovCRF
from crfkit._parallel import ThreadMap, make_chunks
from crfkit._types import FloatArray
from crfkit.estimators.segments import SegmentLimits, Segments
from crfkit.features import SegmentFeatures, TemplateFeatures, make_sequence_union, window
from crfkit.labels.segments import SegmentLabels
from crfkit.losses import LogLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.semimarkov import SegmentWeights

FOLDS = 5
# Tokens that penalties are chosen on, and variants tried.
FEWER = 40_000
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
QUICK_SEQUENCES, QUICK_PENALTIES = 60, (0.3,)
SEMI = "SemiMarkovCRF"
TEXTS, LONGEST_TEXT = ["lower(seg.text)", "seg.length|seg.shape"], 6
# Sizes of the curves, and what the others are: tokens, labels of segments, attributes.
LENGTHS = (1, 2, 4, 8, 16, 32, 64)
T_OF_LENGTHS = 1000
SIZES = (10, 100, 1000, 10_000, 100_000)
TOKENS, LABELS, ATTRIBUTES, L = 100_000, 10, 100_000, 10
THREADS = (1, 2)
REPEATS = 5
# The same optimum for all, whatever way leads to it.
OPTIONS = {"solver": "lbfgs", "n_jobs": 2}
# Tasks whose variants are tried.
VARIED_C2 = 0.3
VARIED = ("usaddress", "citations_cora", "conll2002_es", "ud_chinese_gsdsimp")


class Model(NamedTuple):
    """A model to compare.

    Attributes
    ----------
    make : callable
        Returns an estimator for a penalty.
    scheme : str or None
        The scheme of its tags; None for a model of segments.
    marks : bool
        Whether tokens are marked where the longest entries of dictionaries begin and go on.
    dictionary : bool
        Whether segments that are entries are told.
    texts : bool
        Whether segments up to `LONGEST_TEXT` tokens have their words and shapes as attributes.
    """

    make: Callable[..., Any]
    scheme: str | None = None
    marks: bool = False
    dictionary: bool = False
    texts: bool = False

    def features(self, task: Task, known: Dictionaries) -> Any:
        """Return what makes attributes of the tokens of a task."""
        templates, lexicons = list(task.templates), {k: v for k, v in known.items() if v}
        if self.marks:
            templates += [mark for name in lexicons for mark in marks(name)]
        of_tokens = TemplateFeatures(templates, columns=["w"], lexicons=lexicons)
        if not self.dictionary:
            return of_tokens
        parts = [of_tokens]
        if lexicons:
            entries = [f"lower(seg.text) in {name}" for name in lexicons]
            parts.append(SegmentFeatures(entries, columns=["w"], lexicons=lexicons))
        if self.texts:
            parts.append(SegmentFeatures(TEXTS, columns=["w"], max_length=LONGEST_TEXT, min_freq=2))
        return make_sequence_union(*parts)


def marks(name: str) -> list[str]:
    """Return templates of where the longest entries of a lexicon begin and go on around a token."""
    before, here, behind = (f'lexicon(lower(w[{i}]), "{name}")' for i in (-1, 0, 1))
    return [*window(here, -2, 2), f"{before}|{here}", f"{here}|{behind}"]


MODELS = {
    "CRF, IOB2": Model(CRFClassifier, "IOB2"),
    "CRF, IOBES": Model(CRFClassifier, "IOBES"),
    "CRF, IOBES, dictionary": Model(CRFClassifier, "IOBES", True),
    SEMI: Model(SemiMarkovCRF),
    f"{SEMI}, dictionary": Model(SemiMarkovCRF, dictionary=True),
    f"{SEMI}, all of these, words, shapes": Model(
        SemiMarkovCRF, marks=True, dictionary=True, texts=True
    ),
}
# One at a time, of the model of segments.
VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "outside: long": {"outside": "long"},
    "max_length: 64": {"max_length": 64},
    "length: none": {"length": None},
    "length: indicator": {"length": "indicator"},
    "length: geometric": {"length": "geometric"},
    "length: poisson": {"length": "poisson"},
    "token_parts: inside": {"token_parts": ("inside",)},
    "token_parts: inside, first": {"token_parts": ("inside", "first")},
    "token_parts: first, last": {"token_parts": ("first", "last")},
    "token_parts: inside, first, last": {"token_parts": ("inside", "first", "last")},
}


def fit(model: Model, train: Task, test: Task, **params: Any) -> dict[str, float]:
    """Fit a model and return its F1 on new sequences, the processor's seconds, and its size."""
    features = model.features(train, train.known())
    X, X_test = features.fit_transform(train.tokens), features.transform(test.tokens)
    y = train.segments if model.scheme is None else train.tags(model.scheme)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether it converged is noted
        fitted = model.make(**params).fit(X, y)
    seconds = time.process_time() - started
    return {
        "f1": _segment_data.f1(test.segments, segments_of(fitted, X_test)),
        "processor seconds": seconds,
        "weights": fitted.n_parameters_, "iterations": fitted.n_iter_,
        "converged": bool(fitted.converged_),
    }  # fmt: skip


def segments_of(fitted: Any, X: PackedSequences) -> list[list[Segment]]:
    """Return the segments that a model predicts."""
    if hasattr(fitted, "predict_spans"):
        return [[tuple(segment) for segment in one] for one in fitted.predict_spans(X)]
    return _segment_data.from_tags(fitted.predict(X))


def parts(task: Task) -> list[tuple[Task, Task]]:
    """Return the training and the test part of each fold."""
    splits = KFold(FOLDS, shuffle=True, random_state=0).split(task.tokens)
    return [(task.take(train), task.take(test)) for train, test in splits]


def beginning(task: Task) -> Task:
    """Return the first sequences of a task, with `FEWER` tokens at most."""
    ends = np.cumsum([len(row) for row in task.tokens])
    return task.take(range(np.count_nonzero(ends <= FEWER)))


def chosen(model: Model, train: Task, penalties: tuple[float, ...]) -> dict[float, float]:
    """Return the F1 of each penalty on a fifth of a training part, or of its first tokens."""
    if len(penalties) == 1:
        return {penalties[0]: 0.0}
    inner, held_out = parts(beginning(train))[0]
    return {c2: fit(model, inner, held_out, c2=c2, **OPTIONS)["f1"] for c2 in penalties}


def score(name: str, title: str, limit: int | None, penalties: tuple[float, ...]) -> dict[str, Any]:
    """Return the F1 of a model over the folds of a task."""
    task, model = _segment_data.load(name, limit), MODELS[title]
    folds = parts(task)
    tried = chosen(model, folds[0][0], penalties)
    c2 = max(tried, key=lambda penalty: tried[penalty])
    runs = [fit(model, *fold, c2=c2, **OPTIONS) for fold in folds]
    scores = [run["f1"] for run in runs]
    return {
        "sizes": task.sizes(), "c2": c2,
        "F1 on the inner split": {f"{k:g}": value for k, value in tried.items()},
        "f1": {"mean": statistics.mean(scores), "deviation": statistics.stdev(scores),
               "all": scores},
        "processor seconds of a fit": statistics.median(run["processor seconds"] for run in runs),
        "weights": runs[0]["weights"], "converged": sum(run["converged"] for run in runs),
    }  # fmt: skip


def variants(name: str, limit: int | None) -> dict[str, Any]:
    """Return the F1 of forms of the model of segments on the first fold of the first tokens."""
    task = beginning(_segment_data.load(name, limit))
    train, test = parts(task)[0]
    inside = all(sum(j - i for i, j, _ in one) == len(row)
                 for row, one in zip(task.tokens, task.segments, strict=True))  # fmt: skip
    return {
        "c2": VARIED_C2,
        "variants": {
            title: fit(MODELS[SEMI], train, test, c2=VARIED_C2, **OPTIONS, **params)
            for title, params in VARIANTS.items()
            if not (inside and "outside" in params)
        },
    }


@contextlib.contextmanager
def objective_of(
    X: PackedSequences, y: Any, n_jobs: int, max_length: int | None = None
) -> Iterator[Objective]:
    """Provide the objective of segments, given as tags."""
    limits = SegmentLimits(too_long="split")
    segments = Segments(max_length=max_length, limits=limits)
    labels = SegmentLabels(segments)
    coded = labels.read(y, X.offsets)
    training = SimpleNamespace(data=X, **coded._asdict())
    model = SegmentWeights(labels).choose(SemiMarkovCRF(), training)
    with ThreadMap(n_jobs) as threads:
        yield Objective(
            model, model.structure, LogLoss(), ElasticNet(0.0, 1.0), X, coded.codes,
            np.ones(len(coded.codes)), threads,
        )  # fmt: skip


def iob2(y: Any) -> list[list[str]]:
    """Return labels, whose runs are segments, as tags."""
    return [
        [f"{'I' if t and row[t - 1] == label else 'B'}-{label}" for t, label in enumerate(row)]
        for row in y
    ]


def chain_of(data: _data.Labeled, y: Any) -> _data.Labeled:
    """Return the same attributes with other labels."""
    return _data.labeled(data.name, data.X, y, data.X_test, y[: len(data.X_test)])


def measured(ways: dict[str, Callable[[int], Any]]) -> dict[str, Any]:
    """Return seconds and peak memory of a pass of each objective, measured in turns."""
    found: dict[str, Any] = {name: {"seconds a pass": {}} for name in ways}
    for n_jobs in THREADS:
        runs: dict[str, Callable[[], Any]] = {}
        with contextlib.ExitStack() as stack:
            for name, way in ways.items():
                objective = stack.enter_context(way(n_jobs))
                w = 0.1 * np.random.default_rng(0).normal(size=objective.n_parameters)
                runs[name] = functools.partial(objective.value_and_grad, w)
                runs[name]()
                found[name]["weights"] = objective.n_parameters
                if n_jobs == 1:
                    found[name]["seconds of the sums"] = seconds_of_sums(objective, w)
            for name, seconds in _measure.medians(runs, REPEATS).items():
                found[name]["seconds a pass"][f"{n_jobs} threads"] = seconds
            for name, run in runs.items() if n_jobs == 1 else ():
                found[name]["peak MiB"] = peak_mib(run)
    return found


def seconds_of_sums(objective: Objective, w: FloatArray) -> float:
    """Return the median seconds of the sums over labelings and their marginals alone."""
    model, data, bound = objective.model, objective.data, objective.model.bind(w)
    structure = model.structure
    every = [
        model.scores(bound, data, chunk) for chunk in make_chunks(data.offsets, model.chunk_tokens)
    ]

    def run() -> None:
        for scores in every:
            structure.log_partition(
                scores, np.ones(len(scores.offsets) - 1), structure.zeros(scores)
            )

    return _measure.medians({"": run}, REPEATS)[""]


def peak_mib(run: Callable[[], Any]) -> float:
    """Return the peak of what a call allocates."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def cost(tokens: int, length: int, longest: int) -> dict[str, Any]:
    """Return what a pass over sequences of a length takes with segments up to a length."""
    data = _data.synthetic(tokens, LABELS, ATTRIBUTES, length=length)
    tags = chain_of(data, iob2(data.y))
    return {
        "sizes": data.sizes(),
        "models": measured({
            "CRF, labels": lambda n_jobs: _objectives.objective_of(data, 0.0, 1.0, n_jobs),
            "CRF, IOB2": lambda n_jobs: _objectives.objective_of(tags, 0.0, 1.0, n_jobs),
            SEMI: lambda n_jobs: objective_of(data.X, data.y, n_jobs, longest),
        }),
    }  # fmt: skip


def real(name: str, limit: int | None) -> dict[str, Any]:
    """Return what a pass over real data takes with segments up to L tokens."""
    data = _data.load(name, limit)
    tags = chain_of(data, iob2(data.y)) if name == "usaddress" else data
    return {
        "sizes": data.sizes(),
        "models": measured({
            "CRF, IOB2": lambda n_jobs: _objectives.objective_of(tags, 0.0, 1.0, n_jobs),
            SEMI: lambda n_jobs: objective_of(data.X, data.y, n_jobs, L),
        }),
    }  # fmt: skip


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    limit, penalties = (QUICK_SEQUENCES, QUICK_PENALTIES) if quick else (None, PENALTIES)
    tokens = TOKENS // 20 if quick else TOKENS
    found: dict[str, Callable[[], dict[str, Any]]] = {
        f"cost, L = {longest}": functools.partial(cost, tokens, T_OF_LENGTHS, longest)
        for longest in (LENGTHS[:3] if quick else LENGTHS)
    }
    for length in SIZES[:3] if quick else SIZES:
        found[f"cost, T = {length}"] = functools.partial(cost, tokens, length, L)
    for name in ("usaddress", "conll2000"):
        found[f"pass, {name}"] = functools.partial(real, name, limit)
    for name, title in itertools.product(_segment_data.TASKS, MODELS):
        found[f"F1, {name}: {title}"] = functools.partial(score, name, title, limit, penalties)
    for name in VARIED:
        found[f"variants, {name}"] = functools.partial(variants, name, limit)
    return found


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw seconds and memory of a pass over L and over T."""
    panels: dict[str, _plots.Series] = {}
    for name, case in results.items():
        kind, _, size = name.partition(", ")
        if kind != "cost":
            continue
        what, value = size.split(" = ")
        title = {
            "L": f"longest segment L (T = {T_OF_LENGTHS})",
            "T": f"length of sequences T (L = {L})",
        }[what]
        for model, row in case["models"].items():
            figures = {
                "seconds a pass": row["seconds a pass"]["1 threads"],
                "of it the sums": row["seconds of the sums"],
                "peak MiB of a pass": row["peak MiB"],
            }
            for measure, figure in figures.items():
                panel = panels.setdefault(f"{measure}: {title}", {})
                panel.setdefault(model, []).append((float(value), figure))
    for panel in panels.values():
        for points in panel.values():
            points.sort()
    if panels:
        _plots.panels(folder / "segments.png", panels, "", "")
