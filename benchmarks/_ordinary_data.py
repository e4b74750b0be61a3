"""The data sets of the ordinary settings, with the features that each is usually given."""

from __future__ import annotations

import functools
import gzip
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import _data
from _conll import Columns, data_home
from _segment_data import CHARACTERS

from crfkit import SequenceVectorizer
from crfkit.datasets import fetch_ud
from crfkit.features import TemplateFeatures, WindowFeatures

BASES = [
    "window(w, -5, 5)", "w[-2]|w[-1]|w", "w[-1]|w|w[1]", "w|w[1]|w[2]",
    "w[-5]|w[-4]|w[-3]|w[-2]|w[-1]|w", "w|w[1]|w[2]|w[3]|w[4]|w[5]",
]  # fmt: skip
FLANK = 50  # bases of exon on either side of an intron


class Source(NamedTuple):
    """Sequences of rows (fields of a token, its label last), and what makes features of them.

    Attributes
    ----------
    read : callable
        Returns the sequences.
    features : callable
        Returns the transformer of rows without their labels.
    about : str
        Labels and features in a few words.
    """

    read: Callable[[], Iterable[Columns]]
    features: Callable[[], Any]
    about: str


def _blocks(path: str, separator: str) -> Iterator[Columns]:
    """Yield the sequences of a file, without its marks of documents."""
    for rows in _data.read_blocks(path, separator):
        kept = [row for row in rows if len(row) > 1 and row[0] != "-DOCSTART-"]
        if kept:
            yield kept


def _ud(treebank: str, part: str) -> Iterator[Columns]:
    """Yield the words of a treebank with their universal parts of speech."""
    found = fetch_ud(treebank, part, mirror=data_home())
    for words, tags in zip(found.tokens, found.tags, strict=True):
        yield [[word, tag] for word, tag in zip(words, tags, strict=True)]


def _czech() -> Iterator[Columns]:
    """Yield words with their universal parts of speech."""
    for rows in _data.read_blocks("ud_czech_mix/train.conllu.gz", "\t"):
        words = [row for row in rows if row[0].isdigit()]
        yield [[row[1], row[3]] for row in words]


def _chinese() -> Iterator[Columns]:
    """Yield characters, with whether they begin a word."""
    for part in ("dev", "test"):
        for words in fetch_ud("zh_gsdsimp", part, mirror=data_home()).tokens:
            yield [[c, "I" if place else "B"] for word in words for place, c in enumerate(word)]


def _hyphens() -> Iterator[Columns]:
    """Yield letters of words, each the numbers of its attributes and its label."""
    path = data_home() / "hyphenation" / "sparse.hyphen.6.train"
    lines = (line.split() for line in path.read_text(encoding="utf-8").splitlines()[1:])
    for _, rows in itertools.groupby(lines, lambda line: line[0]):
        yield [row[3:] for row in rows]


def _genes() -> Iterator[Columns]:
    """Yield bases around introns."""
    path = data_home() / "genes_dmel" / "exon_intron_exon.txt.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            before, intron, after, *_ = line.split()
            labels = ["exon"] * len(before) + ["intron"] * len(intron) + ["exon"] * len(after)
            yield [list(pair) for pair in zip(before + intron + after, labels, strict=True)]


def _tutorial(tag: int | None = None) -> WindowFeatures:
    return WindowFeatures(tag=tag)


def _templates(templates: list[str]) -> TemplateFeatures:
    return TemplateFeatures(templates, columns=["w"], bias=True)


WORDS = "features of the tutorial"


def _words(about: str, path: str, separator: str = "\t", tag: int | None = None) -> Source:
    """Return columns of words, and of tags, that are read as in the tutorial."""
    return Source(
        functools.partial(_blocks, path, separator), functools.partial(_tutorial, tag),
        f"{about}; {WORDS}{', with tags' if tag else ''}",
    )  # fmt: skip


SOURCES: dict[str, Source] = {
    "conll2002_es": _words("Spanish names", "conll2002_es/esp.train.gz", " ", 1),
    "gmb_ner": _words("English names", "gmb_ner/gmb.txt.xz", tag=1),
    "wikigold": _words("English names", "wikigold/wikigold.conll.txt.gz", " "),
    "usaddress": _words("parts of addresses", "usaddress/train.tsv.gz"),
    "citations_cora": _words("fields of references", "citations_cora/cora.iob.tsv.gz"),
    "headers_cora": _words("fields of headers", "headers_cora/headers.iob.tsv.gz"),
    "ud_english_ewt": Source(
        functools.partial(_ud, "en_ewt", "train"), _tutorial, f"parts of speech; {WORDS}"
    ),
    "ud_czech_mix": Source(_czech, _tutorial, f"parts of speech; {WORDS}"),
    "brown_pos": _words("fine parts of speech", "brown_pos/brown.txt.xz"),
    "ud_chinese_gsdsimp": Source(
        _chinese, functools.partial(_templates, CHARACTERS),
        "borders of words; templates of characters",
    ),
    "genes_dmel": Source(
        _genes, functools.partial(_templates, BASES), "introns; templates of bases"
    ),
    "hyphenation": Source(_hyphens, SequenceVectorizer, "hyphens; a window of six letters"),
}  # fmt: skip
OF_OTHERS = {
    "conll2000": "chunks; the classic template",
    "ocr_letters": "letters; 128 pixels and a constant",
}
NAMES = [*OF_OTHERS, *SOURCES]


def about(name: str) -> str:
    """Return the labels and features of a data set in a few words."""
    return OF_OTHERS.get(name) or SOURCES[name].about


@functools.lru_cache(maxsize=1)
def load(name: str, limit: int | None = None) -> _data.Labeled:
    """Return the first sequences of a data set; none are for tests."""
    if name in OF_OTHERS:
        return _data.load(name, limit)
    source = SOURCES[name]
    sequences = list(itertools.islice(source.read(), limit))
    rows = [[row[:-1] for row in one] for one in sequences]
    X = source.features().fit_transform(rows)
    y = [[row[-1] for row in one] for one in sequences]
    return _data.labeled(name, X, y, X[:0], [])
