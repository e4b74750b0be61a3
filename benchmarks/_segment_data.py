"""Tasks with segments: tokens, true segments, and the templates of their tokens.

Segments are (start, stop, label); tokens that are in none are outside.
"""

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from _conll import data_home
from _words import read_blocks

from crfkit.datasets import fetch_ud, make_segment_sequences
from crfkit.metrics import segment_f1_score, spans_from_tags, tags_from_spans

Segment = tuple[int, int, str]
Sentences = list[list[str]]
Dictionaries = dict[str, set[str]]

WORDS = [
    "lower(w)", "lower(w[-1])", "lower(w[1])", "lower(w[-2])", "lower(w[2])",
    "lower(w[-1])|lower(w)", "lower(w)|lower(w[1])", "affixes(w, 4)", "digits(w)", "shape(w)",
    "short_shape(w)", "short_shape(w[-1])", "short_shape(w[1])",
    "short_shape(w[-1])|short_shape(w)|short_shape(w[1])",
    "bos()", "eos()", "position(5)",
]  # fmt: skip
CHARACTERS = [
    "w[-2]", "w[-1]", "w", "w[1]", "w[2]", "w[-2]|w[-1]", "w[-1]|w", "w|w[1]", "w[1]|w[2]",
    "w[-1]|w[1]", "short_shape(w)", "short_shape(w[-1])|short_shape(w)|short_shape(w[1])",
    "bos()", "eos()",
]  # fmt: skip
# The first sentences of conll2002_es: five fits of each model take long.
SPANISH = 4000
# Entries of dictionaries are segments that so many sequences of the training part have: all that
# one has would tell a model the labels of the sequence it learns from, and nothing of others.
LEAST_SEQUENCES = 2


class Task(NamedTuple):
    """Sequences with their segments.

    Attributes
    ----------
    tokens : list of list of str
        The tokens of S sequences.
    segments : list of list of (start, stop, label)
        The segments of each.
    templates : list of str
        Features of tokens, in which ``w`` is the token.
    dictionaries : dict of str to set of str, optional
        Known segments of each label; made of the training part if not given.
    """

    tokens: Sentences
    segments: list[list[Segment]]
    templates: list[str]
    dictionaries: Dictionaries | None = None

    def sizes(self) -> dict[str, int]:
        """Return what there is of everything."""
        every = list(itertools.chain(*self.segments))
        return {
            "sequences": len(self.tokens), "tokens": sum(map(len, self.tokens)),
            "segments": len(every), "labels": len({label for _, _, label in every}),
            "longest segment": max(stop - start for start, stop, _ in every),
        }  # fmt: skip

    def take(self, sequences: Iterable[int]) -> Task:
        """Return some of the sequences."""
        chosen = list(sequences)
        return self._replace(
            tokens=[self.tokens[s] for s in chosen], segments=[self.segments[s] for s in chosen]
        )

    def tags(self, scheme: str) -> list[list[str]]:
        """Return the segments as tags."""
        pairs = zip(self.segments, self.tokens, strict=True)
        return [tags_from_spans(one, len(row), scheme) for one, row in pairs]

    def known(self) -> Dictionaries:
        """Return the dictionaries, made of these sequences where none were given."""
        if self.dictionaries is not None:
            return self.dictionaries
        counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        for row, segments in zip(self.tokens, self.segments, strict=True):
            for label, text in {(k, " ".join(row[i:j]).lower()) for i, j, k in segments}:
                counts[label][text] += 1
        return {
            label: {text for text, count in counter.items() if count >= LEAST_SEQUENCES}
            for label, counter in sorted(counts.items())
        }


def from_tags(rows: Iterable[Iterable[str]]) -> list[list[Segment]]:
    """Return the segments that tags stand for."""
    return [[tuple(span) for span in spans_from_tags(tags)] for tags in rows]


def _columns(path: str, separator: str) -> tuple[Sentences, Sentences]:
    """Return the first and the last column of a file."""
    blocks = read_blocks(path, separator)
    words, labels = ([[row[i] for row in rows] for rows in blocks] for i in (0, -1))
    return words, labels


def _usaddress() -> Task:
    """Return addresses; a run of equal labels is a segment."""
    tokens, labels = _columns("usaddress/train.tsv.gz", "\t")
    segments = []
    for row in labels:
        runs = [(k, len(list(same))) for k, same in itertools.groupby(row)]
        stops = list(itertools.accumulate(length for _, length in runs))
        segments.append([(j - n, j, k) for (k, n), j in zip(runs, stops, strict=True)])
    return Task(tokens, segments, WORDS)


def _tagged(path: str, separator: str, limit: int | None = None) -> Task:
    """Return sequences whose segments are written as tags, or the first of them."""
    tokens, tags = (column[:limit] for column in _columns(path, separator))
    return Task(tokens, from_tags(tags), WORDS)


def _chinese() -> Task:
    """Return characters, of which words are the segments; one label."""
    parts = [fetch_ud("zh_gsdsimp", part, mirror=data_home()) for part in ("dev", "test")]
    words = [sentence for part in parts for sentence in part.tokens]
    segments = []
    for sentence in words:
        stops = list(itertools.accumulate(map(len, sentence)))
        segments.append([(j - len(w), j, "W") for w, j in zip(sentence, stops, strict=True)])
    return Task([list("".join(sentence)) for sentence in words], segments, CHARACTERS)


def _synthetic() -> Task:
    """Return the sequences that only a dictionary of whole segments tells apart."""
    data = make_segment_sequences(600, random_state=0)
    return Task(
        [[symbol for (symbol,) in row] for row in data.X], data.segments,
        ["w[-1]", "w", "w[1]", "w[-1]|w", "w|w[1]", "bos()", "eos()"],
        {label: {entry.lower() for entry in found} for label, found in data.dictionaries.items()},
    )  # fmt: skip


TASKS: dict[str, Callable[[], Task]] = {
    "usaddress": _usaddress,
    "citations_cora": functools.partial(_tagged, "citations_cora/cora.iob.tsv.gz", "\t"),
    "conll2002_es": functools.partial(_tagged, "conll2002_es/esp.train.gz", " ", SPANISH),
    "ud_chinese_gsdsimp": _chinese,
    "headers_cora": functools.partial(_tagged, "headers_cora/headers.iob.tsv.gz", "\t"),
    "dictionary of segments": _synthetic,
}


@functools.cache
def load(name: str, limit: int | None = None) -> Task:
    """Return a task, or its first sequences alone."""
    task = TASKS[name]()
    return task if limit is None else task.take(range(min(limit, len(task.tokens))))


def f1(true: list[list[Segment]], found: Iterable[Iterable[Any]]) -> float:
    """Return the F1 of segments: start, stop and label have to be right, in percent."""
    return 100.0 * float(segment_f1_score(true, [list(one) for one in found]))
