"""Defaults: held-out scores by penalty, and by preset of templates, over all shared sets.

    python benchmarks/defaults.py [--presets] [--only SET ...]

Penalties: each set with the templates that the command line takes by default (letters and hyphens:
with the attributes that they come with), cut to a size that is learned in seconds; of Brown, with
171 tags, 1,000 sentences from all its texts. What is scored is what each task is scored by: F1 of
names, chunks, words and fields, accuracy of tags, letters and hyphens. An error is 1 minus that.
Presets: the same with the default penalty. Writes ``results/defaults.json``.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import _conll
import _data
import _measure
import numpy as np
from _conll import Columns, data_home
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, PackedSequences, SequenceVectorizer, TemplateFeatures
from crfkit.features import preset
from crfkit.metrics import entity_f1_score, flat_accuracy_score, segment_f1_score

NAME = "defaults"
C2S = (0.01, 0.03, 0.1, 0.3, 1.0)
C1S = (0.0, 0.1)
KINDS = {"names": "names", "chunks": "names", "tags": "tags"}  # preset of a set, else "fields"
SMALL = 400_000  # entries of the data up to which c1 is tried, too
Score = Callable[[Any, Any], float]


class Task(NamedTuple):
    """Rows of columns, the label last, to learn from and to be scored on."""

    train: list[Columns]
    test: list[Columns]
    score: Score


def names_f1(y: Any, found: Any) -> float:
    """Return the F1 of names, tagged in any scheme that conlleval knows."""
    return float(entity_f1_score(y, found))


def fields_f1(y: Any, found: Any) -> float:
    """Return the F1 of runs of equal labels."""
    return float(segment_f1_score(y, found, scheme="runs"))


def accuracy(y: Any, found: Any) -> float:
    """Return the share of the tokens that have the right label."""
    return float(flat_accuracy_score(y, found))


def blocks(path: str, separator: str) -> list[Columns]:
    """Return the sequences of a file without the lines that are no tokens."""
    rows = _data.read_blocks(path, separator)
    kept = ([row for row in block if len(row) > 1 and row[0] != "-DOCSTART-"] for block in rows)
    return [block for block in kept if block]


def conllu(folder: str, part: str, column: int) -> list[Columns]:
    """Return the forms and one column of a treebank."""
    path = data_home() / folder / f"{part}.conllu.gz"
    text = gzip.open(path, "rt", encoding="utf-8").read()
    lines = ([line.split("\t") for line in block.split("\n")] for block in text.split("\n\n"))
    return [
        rows for block in lines if (rows := [[r[1], r[column]] for r in block if r[0].isdigit()])
    ]


def characters(part: str) -> list[Columns]:
    """Return the characters of a Chinese treebank, labeled by their place in the word."""
    out = []
    for sentence in conllu("ud_chinese_gsdsimp", f"zh_gsdsimp-ud-{part}", 1):
        rows = []
        for word, _ in sentence:
            tags = "S" if len(word) == 1 else "B" + "I" * (len(word) - 2) + "E"
            rows += [[character, f"{tag}-W"] for character, tag in zip(word, tags, strict=True)]
        out.append(rows)
    return out


def every(rows: list[Columns], step: int, score: Score) -> Task:
    """Return each so many-th sequence to score, and the others to learn from."""
    return Task([r for i, r in enumerate(rows) if i % step != step - 1], rows[step - 1 :: step],
                score)  # fmt: skip


def parts(paths: Iterable[str], separator: str, score: Score) -> Task:
    """Return a file to learn from and one to score."""
    train, test = (blocks(path, separator) for path in paths)
    return Task(train, test, score)


def addresses(which: str) -> Task:
    """Return a kind of addresses."""
    return parts([f"usaddress/{which}{p}.tsv.gz" for p in ("train", "test")], "\t", fields_f1)


def treebank(folder: str, train: str, test: str, column: int) -> Task:
    """Return the tags of a treebank."""
    return Task(conllu(folder, train, column), conllu(folder, test, column), accuracy)


def treebank_en(column: int) -> Task:
    """Return the tags of the English treebank."""
    return treebank("ud_english_ewt", "en_ewt-ud-train", "en_ewt-ud-dev", column)


TASKS: dict[str, Callable[[], Task]] = {
    "names, Spanish": lambda: parts(
        ["conll2002_es/esp.train.gz", "conll2002_es/esp.testa.gz"], " ", names_f1),
    "names, English (Wikigold)": lambda: every(
        blocks("wikigold/wikigold.conll.txt.gz", " "), 5, names_f1),
    "names, English (GMB)": lambda: every(blocks("gmb_ner/gmb.txt.xz", "\t"), 10, names_f1),
    "chunks, English": lambda: Task(
        _conll.read_part("train"), _conll.read_part("test"), names_f1),
    "tags, English (UPOS)": lambda: treebank_en(3),
    "tags, English (XPOS)": lambda: treebank_en(4),
    "tags, English (Brown)": lambda: every(
        blocks("brown_pos/brown.txt.xz", "\t")[::20], 3, accuracy),
    "tags, Czech (UPOS)": lambda: treebank("ud_czech_mix", "train", "test", 3),
    "words, Chinese": lambda: Task(characters("dev"), characters("test"), names_f1),
    "addresses": lambda: addresses(""),
    "addresses (US50)": lambda: addresses("us50_"),
    "addresses (OSM)": lambda: addresses("osm_"),
    "references": lambda: every(blocks("citations_cora/cora.iob.tsv.gz", "\t"), 3, names_f1),
    "headers": lambda: every(blocks("headers_cora/headers.iob.tsv.gz", "\t"), 3, names_f1),
}  # fmt: skip
# Sequences to learn from and to score: a fit takes seconds.
MOST = {"names, Spanish": 2000, "tags, English (Brown)": 1000, "letters": 2000}
LIMIT = 2500


def hyphens(part: str) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Return the attributes of the letters of words, and whether one may be parted there."""
    lines = (data_home() / "hyphenation" / f"sparse.hyphen.6.{part}").read_text().split("\n")[1:]
    rows = [line.split() for line in lines if line]
    words = [list(group) for _, group in itertools.groupby(rows, key=lambda row: row[0])]
    return [[r[3:-1] for r in w] for w in words], [[r[-1] for r in w] for w in words]


class Split(NamedTuple):
    """Attributes and labels to learn from and to score."""

    X: PackedSequences
    y: list[list[str]]
    X_test: PackedSequences
    y_test: list[list[str]]
    score: Score


def packed(name: str, kind: str = "words") -> Split:
    """Return a set with the attributes of a preset of templates."""
    if name == "letters":
        found = _data.letters(MOST[name])
        return Split(found.X, found.y, found.X_test, found.y_test, accuracy)
    if name == "hyphens":
        (X, y), (X_test, y_test) = hyphens("train"), hyphens("test")
        vectorizer = SequenceVectorizer()
        return Split(vectorizer.fit_transform(X), y, vectorizer.transform(X_test), y_test, accuracy)
    task = TASKS[name]()
    train, test = task.train[: MOST.get(name, LIMIT)], task.test[:LIMIT]
    features = TemplateFeatures(preset(kind, 0, range(1, len(train[0][0]) - 1)))
    X, X_test = ([[tuple(r[:-1]) for r in rows] for rows in part] for part in (train, test))
    y, y_test = ([[r[-1] for r in rows] for rows in part] for part in (train, test))
    return Split(features.fit_transform(X), y, features.transform(X_test), y_test, task.score)


SETS = (*TASKS, "letters", "hyphens")


def scores(split: Split) -> dict[str, list[float]]:
    """Return the held-out scores, a row for each c1, and the seconds of the first row."""
    table, seconds = {}, []
    for c1 in C1S if len(split.X.indices) < SMALL else C1S[:1]:
        row = []
        for c2 in C2S:
            started = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                crf = CRFClassifier(c1=c1, c2=c2).fit(split.X, split.y)
            seconds.append(time.process_time() - started)
            row.append(round(split.score(split.y_test, crf.predict(split.X_test)), 4))
        table[f"c1={c1:g}"] = row
    return table | {"cpu seconds": [round(value, 1) for value in seconds[: len(C2S)]]}


def of_preset(name: str) -> dict[str, Any]:
    """Return the held-out score with the templates of the kind of task."""
    kind = KINDS.get(name.split(",")[0], "fields")
    split = packed(name, kind)
    started = time.process_time()
    crf = CRFClassifier().fit(split.X, split.y)
    return {
        "preset": kind,
        "score": round(split.score(split.y_test, crf.predict(split.X_test)), 4),
        "attributes a token": round(len(split.X.indices) / split.X.n_tokens, 1),
        "cpu seconds": round(time.process_time() - started, 1),
    }


def summary(sets: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    """Return how much each penalty loses, and how they rank."""
    out: dict[str, Any] = {}
    for title, rows in (("all sets", C1S[:1]), ("small sets", C1S)):
        keys = [f"c1={c1:g}" for c1 in rows]
        kept = [result for result in sets.values() if set(keys) <= set(result)]
        if not kept:
            continue
        errors = 1.0 - np.array([[result[key] for key in keys] for result in kept])
        lost = 100.0 * (errors - errors.min(axis=(1, 2), keepdims=True)).mean(axis=0)
        relative = (errors / errors[:, :1, -1:]).mean(axis=0)
        ranks = rankdata(errors.reshape(len(errors), -1), axis=1).mean(axis=0)
        for kind, table in (
            ("points lost to the best penalty of each set, mean", lost),
            ("error relative to c1=0, c2=1, mean", relative),
            ("rank, mean", ranks.reshape(relative.shape)),
        ):
            rows_of = zip(keys, np.round(table, 3).tolist(), strict=True)
            out[f"{title}: {kind}"] = dict(rows_of)
    return out


def main() -> None:
    """Score the penalties, or the presets, on the sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--presets", action="store_true")
    parser.add_argument("--only", nargs="+", choices=SETS, default=SETS)
    arguments = parser.parse_args()
    results = _measure.read(NAME)
    part = "presets" if arguments.presets else "sets"
    found = results.setdefault(part, {})
    for name in arguments.only:
        if arguments.presets and name not in TASKS:
            continue
        found[name] = of_preset(name) if arguments.presets else scores(packed(name))
        print(name, found[name], flush=True)
        results[part] = {name: found[name] for name in SETS if name in found}
        results["c2"], results["summary"] = list(C2S), summary(results.get("sets", {}))
        _measure.write(NAME, results, show=False)
    print(json.dumps(results["summary"], indent=1))


if __name__ == "__main__":
    main()
