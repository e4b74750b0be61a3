"""Words of the data sets and their attributes; nothing is imported here that takes memory."""

from __future__ import annotations

import functools
import gzip
import itertools
import lzma
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any

import _conll
from _conll import Columns, data_home

Attributes = Callable[[Columns], list[list[str]]]


def word_attributes(rows: Columns) -> list[list[str]]:
    """Return about 20 attributes of each word, its tag if it has one, and its neighbors."""
    own = [_of_word(*row) for row in rows]
    size = len(own)
    return [
        ["bias", *own[t],
         *(["BOS"] if t == 0 else [f"-1:{name}" for name in own[t - 1]]),
         *(["EOS"] if t == size - 1 else [f"+1:{name}" for name in own[t + 1]])]
        for t in range(size)
    ]  # fmt: skip


@functools.cache
def _of_word(word: str, tag: str = "") -> list[str]:
    """Return the attributes of one word."""
    kinds = ("X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else c
             for c in word)  # fmt: skip
    shape = "".join(kind for kind, _ in itertools.groupby(kinds))
    found = [f"w={word.lower()}", f"s2={word[-2:]}", f"s3={word[-3:]}", f"shape={shape}"]
    found += [name for name, has in (("title", word.istitle()), ("upper", word.isupper()),
                                     ("digit", word.isdigit())) if has]  # fmt: skip
    return [*found, f"pos={tag}", f"pos2={tag[:2]}"] if tag else found


def read_blocks(path: str, separator: str) -> list[Columns]:
    """Return the sequences of a packed file of columns, the label last."""
    return list(blocks(path, separator))


def blocks(path: str, separator: str) -> Iterator[Columns]:
    """Yield the sequences of a packed file of columns, the label last; no comments."""
    opener: Any = lzma.open if path.endswith(".xz") else gzip.open
    rows: Columns = []
    file: IO[str]
    with opener(data_home() / path, "rt", encoding="utf-8") as file:
        for line in itertools.chain(file, ["\n"]):
            row = line.rstrip("\n").split(separator)
            if len(row) > 1:
                rows.append(row)
            elif line == "\n" and rows:
                yield rows
                rows = []


FILES = {
    "conll2000": ("conll2000/train.txt.gz", " "),
    "conll2002_es": ("conll2002_es/esp.train.gz", " "),
    "usaddress": ("usaddress/train.tsv.gz", "\t"),
    "gmb_ner": ("gmb_ner/gmb.txt.xz", "\t"),
    "citations_cora": ("citations_cora/cora.iob.tsv.gz", "\t"),
    "headers_cora": ("headers_cora/headers.iob.tsv.gz", "\t"),
    "brown_pos": ("brown_pos/brown.txt.xz", "\t"),
    "ud_english_ewt": ("ud_english_ewt/en_ewt-ud-train.conllu.gz", "\t"),
}


def _label(name: str) -> Callable[[list[str]], str]:
    """Return what reads the label of a row: of Brown the tag without what is joined to it."""
    if name == "brown_pos":
        return lambda row: row[-1].split("-")[0].split("+")[0].rstrip("*$") or row[-1]
    return lambda row: row[-1]


def stream(name: str, limit: int | None = None) -> Iterator[tuple[list[list[str]], list[str]]]:
    """Yield the attributes and the labels of each sequence of a data set to learn from."""
    template = _conll.read_template() if name == "conll2000" else None

    def make(rows: Columns) -> list[list[str]]:
        if template is not None:
            return _conll.apply_template(rows, template)
        return word_attributes([row[:-1] for row in rows])

    label = _label(name)
    for rows in itertools.islice(blocks(*FILES[name]), limit):
        if name == "ud_english_ewt":  # word and coarse tag of each word
            rows = [[row[1], row[3]] for row in rows if row[0].isdigit()]
        yield make(rows), [sys.intern(label(row)) for row in rows]
