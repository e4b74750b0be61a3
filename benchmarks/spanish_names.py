"""Names without other data: two stages that see whole documents.

    python benchmarks/spanish_names.py [--part esp.testa] [--c2 0.3] [--stages 2] [--wikigold]

The first stage has the templates ``preset("names")`` and what documents tell
(``_document_names.py``). It tags the training data out of fold, too. The second stage has, beside
that: the tags of the first one here and at the neighbors, and what the same word and the same
phrase were tagged elsewhere in the document and in all data. Its own tags then take the place of
those of the first stage, once. Documents of CoNLL-2002 are told apart by their datelines. With
``--wikigold`` English articles are tagged, each fifth by a model of the others; with ``--stages 0``
the templates stand alone.
Writes ``results/spanish_names.json``.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import _measure
import numpy as np
import scipy.sparse as sp
from _conll import Columns
from _data import read_blocks
from _document_names import (
    Documents,
    Memory,
    Sentence,
    Tags,
    counted,
    kind,
    sentence,
    with_neighbors,
)
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, PackedSequences, SequenceVectorizer, TemplateFeatures
from crfkit.features import preset
from crfkit.metrics import convert_tags, entity_f1_score
from crfkit.solvers import OEG

NAME = "spanish_names"
FOLDS, ROUNDS = 4, 2
DATELINE = re.compile(r"\d+ [a-z]{3} \( EFE")


class Part(NamedTuple):
    """Sentences, the number of the document of each (rising), their columns and their tags."""

    sentences: list[Sentence]
    numbers: list[int]
    columns: list[list[tuple[str, ...]]]
    y: Tags

    def take(self, chosen: list[int]) -> Part:
        """Return some of the sentences."""
        return Part(*([field[i] for i in chosen] for field in self))


def part_of(rows: list[Columns], begins: list[bool], after: int = 0) -> Part:
    """Return rows of columns, the tag last; `begins` tells where documents begin."""
    return Part(
        [sentence(row) for row in rows],
        [after + int(number) for number in np.cumsum(begins)],
        [[tuple(token[:-1]) for token in row] for row in rows],
        [convert_tags([token[-1] for token in row], "conll", "IOBES") for row in rows],
    )


def spanish(name: str, after: int = 0) -> Part:
    """Return a part of CoNLL-2002, its documents numbered from `after`."""
    rows = read_blocks(f"conll2002_es/{name}.gz", " ")
    begins = [bool(DATELINE.search(" ".join(token[0] for token in row))) for row in rows]
    return part_of(rows, begins, after)


def wikigold() -> Part:
    """Return all articles of Wikigold."""
    rows: list[Columns] = []
    begins: list[bool] = []
    is_first = False
    for block in read_blocks("wikigold/wikigold.conll.txt.gz", " "):
        is_first = is_first or block[0][0] == "-DOCSTART-"
        kept = [token for token in block if token[0] != "-DOCSTART-"]
        if kept:
            rows.append(kept)
            begins.append(is_first)
            is_first = False
    return part_of(rows, begins)


def stacked(words: Sentence, number: int, tags: list[str], memory: Memory) -> list[list[str]]:
    """Return the attributes of the second stage."""
    found: list[list[str]] = []
    for t, tag in enumerate(tags):
        own, counts = Counter([kind(tag)]), memory.counts
        found.append([])
        for place, name in enumerate(words.names(t)):
            what = ("word", "phrase")[place]
            found[t] += counted(f"document {what}", counts[place, name, number], own)
            found[t] += counted(f"all {what}", counts[place, name], own)
    heads = [
        [f"tag={tag}", *(name for name in names if " word " in name)]
        for tag, names in zip(tags, found, strict=True)
    ]
    around = ["_", *tags, "_"]
    threes = ["|".join(around[t : t + 3]) for t in range(len(tags))]
    rows = [
        [*names, f"tag={tag}", f"tags={three}"]
        for names, tag, three in zip(found, tags, threes, strict=True)
    ]
    return with_neighbors(rows, heads)


class Stages:
    """The stages, learned from the training data; seconds of each step are printed."""

    def __init__(self, c2: float, n_stages: int = 2) -> None:
        self.c2, self.n_stages, self.started = c2, n_stages, time.process_time()

    def say(self, *what: Any) -> None:
        """Print with the seconds so far."""
        print(f"{time.process_time() - self.started:6.0f} s", *what, flush=True)

    def fit(self, X: PackedSequences, y: Tags) -> CRFClassifier:
        """Train a classifier, 40 passes at most."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return CRFClassifier(c2=self.c2, solver=OEG(tol=1e-2, max_iter=40)).fit(X, y)

    def learn(self, train: Part) -> None:
        """Train the stages."""
        self.train = train
        self.templates = TemplateFeatures(preset("names", 0, range(1, len(train.columns[0][0]))))
        self.documents = Documents(train.sentences, train.numbers, train.y)
        self.local = SequenceVectorizer()
        X = self.templates.fit_transform(train.columns)
        if self.n_stages > 0:
            told = self.documents.attributes(train.sentences, train.numbers)
            X = side_by_side(X, self.local.fit_transform(told))
        self.first = self.second = self.fit(X, train.y)
        self.say("first stage:", self.first.n_parameters_, "weights")
        if self.n_stages > 1:
            self.tags = self.out_of_fold(X)
            self.vectorizer = SequenceVectorizer()
            Z = self.vectorizer.fit_transform(self.stacked(train, self.tags))
            self.second = self.fit(side_by_side(X, Z), train.y)
            self.say("second stage:", self.second.n_parameters_, "weights")

    def out_of_fold(self, X: PackedSequences) -> Tags:
        """Return the tags of the training data by models of other documents."""
        place = np.unique(self.train.numbers, return_inverse=True)[1]
        fold = place * FOLDS // (place[-1] + 1)
        tags: Tags = []
        for k in range(FOLDS):
            inner = np.flatnonzero(fold != k)
            crf = self.fit(X[inner], [self.train.y[i] for i in inner])
            tags += crf.predict(X[np.flatnonzero(fold == k)])
            self.say("fold", k + 1)
        return tags

    def stacked(self, part: Part, tags: Tags) -> Iterator[list[list[str]]]:
        """Yield what the tags of a part tell, those of the training data known."""
        seen = (part.sentences, part.numbers, tags)
        if part is not self.train:
            known = (self.train.sentences, self.train.numbers, self.tags)
            seen = tuple([*a, *b] for a, b in zip(known, seen, strict=True))
        memory = Memory(*seen)
        for each in zip(part.sentences, part.numbers, tags, strict=True):
            yield stacked(*each, memory)

    def tag(self, part: Part) -> list[Tags]:
        """Return the tags of the first stage, and those of each round of the second."""
        X = self.templates.transform(part.columns)
        if self.n_stages > 0:
            told = self.documents.attributes(part.sentences, part.numbers)
            X = side_by_side(X, self.local.transform(told))
        found = [list(self.first.predict(X))]
        for _ in range(ROUNDS if self.n_stages > 1 else 0):
            Z = self.vectorizer.transform(self.stacked(part, found[-1]))
            found.append(list(self.second.predict(side_by_side(X, Z))))
        return found


def side_by_side(*parts: PackedSequences) -> PackedSequences:
    """Return the attributes of packed sequences as one."""
    stack = sp.hstack([part.to_csr() for part in parts], format="csr")
    return PackedSequences.from_flat(stack, np.diff(parts[0].offsets))


def scores(y: Tags, found: list[Tags]) -> list[float]:
    """Return the F1 of the first stage, and of each round of the second."""
    return [round(100 * entity_f1_score(y, tags), 2) for tags in found]


def articles(stages: Stages) -> list[float]:
    """Return the F1 on Wikigold, by cross-validation over articles."""
    part = wikigold()
    fold = np.array(part.numbers) % 5
    y: Tags = []
    found: list[Tags] = [[], [], []][: 1 + ROUNDS * (stages.n_stages > 1)]
    for k in range(5):
        test = part.take(np.flatnonzero(fold == k).tolist())
        stages.learn(part.take(np.flatnonzero(fold != k).tolist()))
        y += test.y
        for tags, more in zip(found, stages.tag(test), strict=True):
            tags += more
    return scores(y, found)


def main() -> None:
    """Train the stages and score them on a part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", nargs="+", default=["esp.testa"])
    parser.add_argument("--c2", type=float, default=0.3)
    parser.add_argument("--stages", type=int, choices=(0, 1, 2), default=2)
    parser.add_argument("--wikigold", action="store_true")
    arguments = parser.parse_args()
    suffix = "" if arguments.stages == 2 else f", stages: {arguments.stages}"
    stages = Stages(arguments.c2, arguments.stages)
    results = _measure.read(NAME)
    if arguments.wikigold:
        results[f"wikigold{suffix}"] = articles(stages)
    else:
        train = spanish("esp.train")
        stages.learn(train)
        for name in arguments.part:
            part = spanish(name, train.numbers[-1] + 1)
            results[f"{name}{suffix}"] = scores(part.y, stages.tag(part))
            stages.say(name, results[f"{name}{suffix}"])
        results[f"cost{suffix}"] = {
            "weights": stages.second.n_parameters_,
            "cpu seconds": round(time.process_time() - stages.started),
            "peak MiB": round(_measure.peak_mib()),
        }
    results["c2"] = arguments.c2
    _measure.write(NAME, results)


if __name__ == "__main__":
    main()
