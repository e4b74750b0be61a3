"""What questions cost: processor time of public calls on packed data, and peak memory.

All calls of a case in turns, in one process, with one thread: medians of the ratios to `predict`
(which chooses labels) or `predict_proba` (which sums over all). And from columns of text on, with
the same template: best labels, ten best and marginals of crfkit, python-crfsuite (marginals only),
CRF++ and Wapiti, where these are found; the time to load a model is taken off. ``crf_learn`` and
``crf_test`` of CRF++ come with ``pip install crfpy``; the sources of Wapiti are also in the package
``libwapiti`` (``make`` in its folder ``cwapiti``).
"""

from __future__ import annotations

import copy
import ctypes
import functools
import gc
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import _conll
import _crfsuite
import _data
import _measure
import pycrfsuite
from _words import read_blocks

from crfkit import CRFClassifier, TemplateFeatures
from crfkit.constraints import TagScheme
from crfkit.inference import ExpectedSpans, MinimumRisk
from crfkit.io import read_conll

ITERATIONS = 30  # the speed does not need the optimum
REPEATS, QUICK_REPEATS = 9, 3
QUICK_SENTENCES = 100
SCHEME, N_BEST = "IOB2", 10
PEER_SENTENCES, PEER_ITERATIONS = 1000, 15
PREDICT, PROBA = "predict", "predict_proba"
Way = Callable[[], Any]


def fitted(X: Any, y: Any, **options: Any) -> CRFClassifier:
    """Return a classifier that has learned for a while."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not converge, on purpose
        return CRFClassifier(solver="lbfgs", max_iter=ITERATIONS, **options).fit(X, y)


def with_decoding(crf: CRFClassifier, decoding: Any) -> CRFClassifier:
    """Return a classifier of the same weights that chooses labels otherwise."""
    return copy.copy(crf).set_params(decoding=decoding)


def questions(crf: CRFClassifier, X: Any) -> dict[str, tuple[str, Way]]:
    """Return what each question is compared with, and what asks it."""
    spans = crf.predict_spans(X)
    posterior, risk, expected = (
        with_decoding(crf, one) for one in ("posterior", MinimumRisk(), ExpectedSpans())
    )
    scheme = TagScheme(SCHEME)
    return {
        PREDICT: (PREDICT, lambda: crf.predict(X)),
        "predict, tag scheme": (PREDICT, lambda: crf.predict(X, constraints=scheme)),
        "predict_spans": (PREDICT, lambda: crf.predict_spans(X)),
        f"predict_n_best, n = {N_BEST}": (PREDICT, lambda: crf.predict_n_best(X, N_BEST)),
        PROBA: (PROBA, lambda: crf.predict_proba(X)),
        "predict_proba, tag scheme": (PROBA, lambda: crf.predict_proba(X, constraints=scheme)),
        "predict_span_proba, of predicted spans": (PROBA, lambda: crf.predict_span_proba(X, spans)),
        "likely_spans, threshold = 0.1": (PROBA, lambda: crf.likely_spans(X, threshold=0.1)),
        "confidence of sequences": (PROBA, lambda: crf.confidence(X)),
        "sample, n = 1": (PROBA, lambda: crf.sample(X, 1, random_state=0)),
        "sample, n = 10": (PROBA, lambda: crf.sample(X, 10, random_state=0)),
        "entropy of sequences": (PROBA, lambda: crf.entropy(X)),
        "entropy of tokens": (PROBA, lambda: crf.entropy(X, of="tokens")),
        'predict, decoding="posterior"': (PROBA, lambda: posterior.predict(X)),
        "predict, MinimumRisk()": (PROBA, lambda: risk.predict(X)),
        "predict, ExpectedSpans()": (PROBA, lambda: expected.predict(X)),
    }


def processor_seconds(way: Way) -> float:
    """Return the processor time of a call, without collections of garbage, as `timeit` has it."""
    gc.disable()
    try:
        started = time.process_time()
        way()
        return time.process_time() - started
    finally:
        gc.enable()


def peak_mib(way: Way) -> float:
    """Return what memory peaks at beyond what there was before a call; NaN where nothing tells."""
    reset = Path("/proc/self/clear_refs")
    if not reset.exists():
        return float("nan")
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    reset.write_text("5")  # the peak is that from now on
    before = _measure.rss_mib()
    way()
    return _measure.peak_mib() - before


def cost(name: str, quick: bool) -> dict[str, Any]:
    """Return seconds, ratios and memory of each question on a data set."""
    data = _data.load(name, QUICK_SENTENCES if quick else None)
    crf, X = fitted(data.X, data.y), data.X_test
    ways = questions(crf, X)
    for _, way in ways.values():
        way()
    times: dict[str, list[float]] = {key: [] for key in ways}
    for _ in range(QUICK_REPEATS if quick else REPEATS):
        for key, (_, way) in ways.items():
            times[key].append(processor_seconds(way))
    of = {key: base for key, (base, _) in ways.items()}
    return {
        "tokens": X.n_tokens, "labels": len(crf.classes_),
        "spans": sum(map(len, crf.predict_spans(X))),
        "questions": {
            key: {
                "of": of[key], "seconds": statistics.median(values),
                "times": statistics.median(
                    a / b for a, b in zip(values, times[of[key]], strict=True)
                ),
                "peak MiB": peak_mib(ways[key][1]),
            }
            for key, values in times.items()
        },
    }  # fmt: skip


def rows_of(name: str, part: str) -> list[_conll.Columns]:
    """Return words, tags and labels."""
    if name == "conll2000":
        return _conll.read_part(part)
    return read_blocks(f"{name}/{ {'train': 'esp.train', 'test': 'esp.testb'}[part] }.gz", " ")


def write_rows(rows: Sequence[_conll.Columns], path: Path) -> Path:
    """Write columns as text."""
    path.write_text("".join("\n".join(map(" ".join, one)) + "\n\n" for one in rows), "utf-8")
    return path


def of_children(command: Sequence[str | Path], **options: Any) -> float:
    """Return the processor time of a program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(list(map(str, command)), check=True, capture_output=True, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def program(name: str, folder: Path, template: Path) -> dict[str, Callable[[Path], Sequence[Any]]]:
    """Train a program; return the commands that answer each question about a file."""
    train, model = folder / "train.txt", folder / f"{name}.model"
    if name == "Wapiti":
        of_children(["wapiti", "train", "-a", "l-bfgs", "-i", str(PEER_ITERATIONS), "-2", "2",
                     "-p", template, train, model])  # fmt: skip
        label = ["wapiti", "label", "-m", model]
        return {
            "best": lambda path: [*label, path, folder / "out"],
            "ten best": lambda path: [*label, "-n", str(N_BEST), path, folder / "out"],
            "marginals": lambda path: [*label, "-p", "-s", path, folder / "out"],
        }
    of_children(["crf_learn", "-c", "0.5", "-m", str(PEER_ITERATIONS), template, train, model])
    label = ["crf_test", "-m", model, "-o", folder / "out"]
    return {
        "best": lambda path: [*label, path],
        "ten best": lambda path: [*label, "-n", str(N_BEST), path],
        "marginals": lambda path: [*label, "-v", "2", path],
    }


def of_programs(folder: Path, test: Path, one: Path, template: Path) -> dict[str, dict[str, float]]:
    """Return the seconds of programs that are on PATH, without those that load the model."""
    found: dict[str, dict[str, float]] = {}
    for name, needed in (("CRF++", "crf_test"), ("Wapiti", "wapiti")):
        if shutil.which(needed) is None:
            print(f"  {needed} is not on PATH: left out", flush=True)
            continue
        commands = program(name, folder, template)
        found[name] = {
            kind: max(of_children(command(test)) - of_children(command(one)), 0.0)
            for kind, command in commands.items()
        }
    return found


def of_crfkit(train: Sequence[_conll.Columns], test: Path, template: Path) -> dict[str, float]:
    """Return the seconds from a file of columns to answers."""
    features = TemplateFeatures.from_file(template)
    X = [[row[:-1] for row in one] for one in train]
    crf = fitted(X, [[row[-1] for row in one] for one in train], c2=1.0, features=features)

    def asked(question: Callable[[Any], Any]) -> Way:
        return lambda: question(read_conll(test.read_text("utf-8").split("\n"), sep=" ")[0])

    ways = {
        "best": asked(crf.predict),
        "ten best": asked(lambda rows: crf.predict_n_best(rows, N_BEST)),
        "marginals": asked(crf.predict_proba),
    }
    for way in ways.values():
        way()
    return {kind: statistics.median(processor_seconds(way) for _ in range(3))
            for kind, way in ways.items()}  # fmt: skip


def of_crfsuite(name: str, test: Sequence[_conll.Columns], folder: Path) -> dict[str, float]:
    """Return the seconds of python-crfsuite, from columns on; it has no lists of the best."""
    template = _conll.read_template()
    train = rows_of(name, "train")[:PEER_SENTENCES]
    X = [_conll.apply_template(one, template) for one in train]
    trainer = _crfsuite.trainer(X, [[row[-1] for row in one] for one in train])
    path = str(folder / "crfsuite")
    trainer.run(path, c2=1.0, max_iterations=PEER_ITERATIONS)
    tagger = _crfsuite.open_tagger(path)

    def each(question: Callable[[Any], Any]) -> Way:
        return lambda: [
            question(pycrfsuite.ItemSequence(_conll.apply_template(one, template))) for one in test
        ]

    ways = {"best": each(tagger.tag), "marginals": each(lambda item: _crfsuite.marginals_of(
        tagger, item))}  # fmt: skip
    return {kind: processor_seconds(way) for kind, way in ways.items()}


def peers(name: str, quick: bool) -> dict[str, Any]:
    """Return tokens a second from columns of text on, of each program that is there."""
    train = rows_of(name, "train")[: QUICK_SENTENCES if quick else PEER_SENTENCES]
    test = rows_of(name, "test")[: QUICK_SENTENCES if quick else None]
    template = _conll.data_home() / "conll2000" / "template.crfpp"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_rows(train, folder / "train.txt")
        path = write_rows(test, folder / "test.txt")
        one = write_rows(test[:1], folder / "one.txt")
        seconds = {"crfkit": of_crfkit(train, path, template)} | of_programs(
            folder, path, one, template
        )
        seconds["python-crfsuite"] = of_crfsuite(name, test, folder)
    tokens = sum(map(len, test))
    return {
        "tokens": tokens,
        "programs": {
            program: {
                kind: {"tokens a second": tokens / max(value, 1e-9),
                       "of best": value / max(found["best"], 1e-9)}
                for kind, value in found.items()
            }
            for program, found in seconds.items()
        },
    }  # fmt: skip


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    names = ("conll2000", "conll2002_es")
    return {name: functools.partial(cost, name, quick) for name in names} | {
        f"{name}, programs": functools.partial(peers, name, quick) for name in names
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: the page has tables."""
