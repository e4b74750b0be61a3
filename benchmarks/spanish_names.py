"""Spanish names (CoNLL-2002) without other data: two stages, the second sees whole documents.

    python benchmarks/spanish_names.py [--part esp.testa] [--c2 0.1]

The first stage has the templates ``preset("names")``, and the words around a token and within its
phrase. It tags the training data out of fold, too. The second stage has, beside that: the tags of
the first one here and at the neighbors, and what the same word and the same phrase were tagged
elsewhere in the document and in all data. Its own tags then take the place of those of the first
stage, once. Documents are told apart by their datelines. Writes ``results/spanish_names.json``.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import _measure
import numpy as np
import scipy.sparse as sp
from _conll import Columns
from _data import read_blocks
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from crfkit import CRFClassifier, PackedSequences, SequenceVectorizer, TemplateFeatures
from crfkit.features import SequenceUnion, preset
from crfkit.features._lexicons import find_phrases
from crfkit.metrics import convert_tags, entity_f1_score
from crfkit.solvers import OEG

NAME = "spanish_names"
FOLDS, ROUNDS = 4, 2
DATELINE = re.compile(r"\d+ [a-z]{3} \( EFE")
Tags = list[list[str]]


def documents(sentences: list[Columns]) -> list[int]:
    """Return the number of the document of each sentence."""
    begins = [bool(DATELINE.search(" ".join(row[0] for row in rows))) for rows in sentences]
    return np.cumsum(begins).tolist()


def phrases(words: list[str]) -> list[tuple[int, int] | None]:
    """Return where the phrase of each token begins and ends."""
    starts, ends = find_phrases(words, np.array([0, len(words)]))
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return [(start, end) if start >= 0 else None for start, end in pairs]


def beside(rows: Columns) -> list[list[str]]:
    """Return the words near each token, those of its phrase, and the tags around that."""
    words = [row[0].lower() for row in rows]
    found = phrases([row[0] for row in rows])
    tags = ["_B", *(row[1] for row in rows), "_E"]
    out = []
    for t, phrase in enumerate(found):
        names = [f"before={word}" for word in words[max(t - 5, 0) : t]]
        names += [f"after={word}" for word in words[t + 1 : t + 6]]
        if phrase is not None:
            start, end = phrase
            names += [f"first={words[start]}", f"last={words[end - 1]}"]
            names += [f"within={word}" for word in words[start:end]]
            names += [f"within-={word}" for word in words[start:t]]
            names += [f"within+={word}" for word in words[t + 1 : end]]
            names += [f"place={t - start}|{end - 1 - t}", f"tags={tags[start]}|{tags[end + 1]}"]
        out.append(names)
    return out


def kind(tag: str) -> str:
    """Return the type of a tag."""
    return tag[2:] or tag


def counted(lead: str, counts: Counter[str], own: Counter[str]) -> list[str]:
    """Return attributes of the types that something has elsewhere."""
    rest = counts - own
    total = rest.total()
    if total == 0:
        return [f"{lead} none"]
    best = max(rest, key=lambda name: (rest[name], name))
    share = "all" if rest[best] == total else "most" if 2 * rest[best] > total else "some"
    return [f"{lead} {best}", f"{lead} {best} {share} of {min(total, 3)}"]


def keys(rows: Columns) -> list[list[str]]:
    """Return the word with a capital first, and its phrase; nothing for other tokens."""
    words = [row[0] for row in rows]
    return [
        [] if pair is None or not word[:1].isupper() else [word, " ".join(words[slice(*pair)])]
        for word, pair in zip(words, phrases(words), strict=True)
    ]


class Memory:
    """How often each word and each phrase has a type, in each document and in all."""

    def __init__(self, sentences: Iterable[Columns], numbers: Iterable[int], tags: Tags) -> None:
        self.counts: defaultdict[Any, Counter[str]] = defaultdict(Counter)
        for rows, number, row in zip(sentences, numbers, tags, strict=True):
            for names, tag in zip(keys(rows), row, strict=True):
                for place, name in enumerate(names):
                    self.counts[place, name][kind(tag)] += 1
                    self.counts[place, name, number][kind(tag)] += 1


def stacked(rows: Columns, number: int, tags: list[str], memory: Memory) -> list[list[str]]:
    """Return the attributes of the second stage."""
    found, around = [], ["_", *tags, "_"]
    for t, names in enumerate(keys(rows)):
        own, counts = Counter([kind(tags[t])]), memory.counts
        found.append([])
        for place, name in enumerate(names):
            what = ("word", "phrase")[place]
            found[t] += counted(f"document {what}", counts[place, name, number], own)
            found[t] += counted(f"all {what}", counts[place, name], own)
    near = [[], *([name for name in names if " word " in name] for names in found), []]
    return [
        [*names, f"tag={around[t + 1]}", f"tag-={around[t]}", f"tag+={around[t + 2]}",
         f"tags={around[t]}|{around[t + 1]}|{around[t + 2]}",
         *(f"-{name}" for name in near[t]), *(f"+{name}" for name in near[t + 2])]
        for t, names in enumerate(found)
    ]  # fmt: skip


class Stages:
    """Both stages, learned from the training data; seconds of each step are printed."""

    def __init__(self, c2: float) -> None:
        self.c2, self.started = c2, time.process_time()

    def say(self, *what: Any) -> None:
        """Print with the seconds so far."""
        print(f"{time.process_time() - self.started:6.0f} s", *what, flush=True)

    def fit(self, X: PackedSequences, y: Tags) -> CRFClassifier:
        """Train a classifier, 60 passes at most."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return CRFClassifier(c2=self.c2, solver=OEG(tol=1e-2, max_iter=60)).fit(X, y)

    def learn(self, sentences: list[Columns]) -> None:
        """Train both stages."""
        self.sentences, self.numbers = sentences, documents(sentences)
        self.y = iobes(sentences)
        near = FunctionTransformer(lambda X: [beside(rows) for rows in X])
        self.local = SequenceUnion(
            [("templates", TemplateFeatures(preset("names", 0, [1]))),
             ("beside", make_pipeline(near, SequenceVectorizer()))]
        )  # fmt: skip
        X = self.local.fit_transform([[tuple(row[:2]) for row in rows] for rows in sentences])
        fold = np.array(self.numbers) * FOLDS // (self.numbers[-1] + 1)
        self.tags: Tags = [[] for _ in sentences]
        for k in range(FOLDS):
            inner, outer = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            crf = self.fit(X[inner], [self.y[i] for i in inner])
            for i, tags in zip(outer, crf.predict(X[outer]), strict=True):
                self.tags[i] = tags
            self.say("fold", k + 1)
        self.first = self.fit(X, self.y)
        self.say("first stage")
        self.vectorizer = SequenceVectorizer()
        memory = Memory(sentences, self.numbers, self.tags)
        seen = zip(sentences, self.numbers, self.tags, strict=True)
        Z = self.vectorizer.fit_transform(stacked(*each, memory) for each in seen)
        self.second = self.fit(side_by_side(X, Z), self.y)
        self.say("second stage:", self.second.n_parameters_, "weights")

    def tag(self, sentences: list[Columns]) -> list[Tags]:
        """Return the tags of the first stage, and those of each round of the second."""
        X = self.local.transform([[tuple(row[:2]) for row in rows] for rows in sentences])
        numbers = [self.numbers[-1] + 1 + number for number in documents(sentences)]
        found = [self.first.predict(X)]
        for _ in range(ROUNDS):
            tags = [*self.tags, *found[-1]]
            memory = Memory([*self.sentences, *sentences], [*self.numbers, *numbers], tags)
            seen = zip(sentences, numbers, found[-1], strict=True)
            Z = self.vectorizer.transform(stacked(*each, memory) for each in seen)
            found.append(self.second.predict(side_by_side(X, Z)))
        return found


def iobes(sentences: list[Columns]) -> Tags:
    """Return the tags by hand, with ends and single tokens marked."""
    return [convert_tags([row[2] for row in rows], "conll", "IOBES") for rows in sentences]


def side_by_side(*parts: PackedSequences) -> PackedSequences:
    """Return the attributes of packed sequences as one."""
    stack = sp.hstack([part.to_csr() for part in parts], format="csr")
    return PackedSequences.from_flat(stack, np.diff(parts[0].offsets))


def main() -> None:
    """Train both stages and score them on a part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", nargs="+", default=["esp.testa"])
    parser.add_argument("--c2", type=float, default=0.1)
    arguments = parser.parse_args()
    train, *parts = (
        read_blocks(f"conll2002_es/{p}.gz", " ") for p in ("esp.train", *arguments.part)
    )
    stages = Stages(arguments.c2)
    stages.learn(train)
    results = {"c2": arguments.c2, "weights": stages.second.n_parameters_}
    for part, sentences in zip(arguments.part, parts, strict=True):
        found = stages.tag(sentences)
        scores = [round(100 * entity_f1_score(iobes(sentences), tags), 2) for tags in found]
        results[part] = scores
        stages.say(part, scores)
    results["cpu seconds"] = round(time.process_time() - stages.started)
    results["peak MiB"] = round(_measure.peak_mib())
    _measure.write(NAME, results)


if __name__ == "__main__":
    main()
