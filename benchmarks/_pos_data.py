"""Sentences with parts of speech, in two halves: one to learn from, one to judge by."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from _conll import data_home
from _words import FILES, blocks

from crfkit import PackedSequences, TemplateFeatures
from crfkit.datasets import fetch_ud

Strings = list[list[str]]
Sentences = Iterator[tuple[list[str], list[str]]]
SEED = 0
HELD_OUT = 0.2  # of the sentences to learn from, to choose penalties by
# Of a headline, of a title, of a word that is talked about; two tags are misspelled.
_MARKS = re.compile(r"(-(hl|tl|nc|t|n))+$")


def base_tag(tag: str) -> str:
    """Return a tag of Brown without what stands before and after the part of speech.

    The 472 tags become 92: without ``fw-`` (foreign word), ``-hl``, ``-tl``, ``-nc`` (headline,
    title, cited word) and ``*`` (not, as in ``do*`` of *don't*; alone it stays); of tags of two
    words in one, ``ppss+ber`` of *they're*, the first.
    """
    base = _MARKS.sub("", tag.removeprefix("fw-")).split("+")[0]
    return base.rstrip("*") or base


def brown() -> Sentences:
    """Yield the sentences of the Brown corpus, with base tags."""
    for rows in blocks(*FILES["brown_pos"]):
        words, tags = zip(*rows, strict=True)
        yield list(words), list(map(base_tag, tags))


def english(column: str) -> Sentences:
    """Yield the sentences of all three parts of the English Web Treebank."""
    for part in ("train", "dev", "test"):
        for sentence in fetch_ud("en_ewt", part, mirror=data_home()).sentences:
            words = sentence.words
            yield [word.form for word in words], [getattr(word, column) for word in words]


SETS: dict[str, Callable[[], Sentences]] = {
    "ewt, upos": functools.partial(english, "upos"),
    "ewt, xpos": functools.partial(english, "xpos"),
    "brown": brown,
}


class Part(NamedTuple):
    """Words and tags of some sentences."""

    words: Strings
    tags: Strings

    @property
    def n_tokens(self) -> int:
        """How many words there are."""
        return sum(map(len, self.words))


class Halves(NamedTuple):
    """Sentences to learn from, and others to judge by."""

    train: Part
    test: Part

    def known(self) -> set[str]:
        """Return the words to learn from."""
        return {word for words in self.train.words for word in words}


@functools.lru_cache(maxsize=1)
def halves(name: str, limit: int | None = None) -> Halves:
    """Return a set in two halves that are drawn at random, or some of its sentences alone."""
    sentences = list(SETS[name]())
    order = np.random.default_rng(SEED).permutation(len(sentences))[:limit].tolist()
    return _parted([sentences[i] for i in order], len(order) // 2)


def search_parts(train: Part, limit: int | None = None) -> Halves:
    """Return sentences to learn from in two: those to try penalties with, and those to judge by."""
    sentences = list(zip(*train, strict=True))[:limit]
    return _parted(sentences, round((1.0 - HELD_OUT) * len(sentences)))


def _parted(sentences: list[tuple[list[str], list[str]]], n_first: int) -> Halves:
    parts = (sentences[:n_first], sentences[n_first:])
    return Halves(*(Part(*map(list, zip(*part, strict=True))) for part in parts))


def packed(parts: Halves, templates: list[str]) -> tuple[PackedSequences, PackedSequences]:
    """Return the attributes of both parts."""
    features = TemplateFeatures(templates)
    return features.fit_transform(parts.train.words), features.transform(parts.test.words)
