"""CoNLL-2000 with the attributes of a CRF++ template, as plain lists of strings."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from pathlib import Path

Columns = list[list[str]]


def data_home() -> Path:
    """Return the folder of the benchmark data, from ``CRFKIT_DATA`` or beside the project."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    home = Path(os.environ.get("CRFKIT_DATA", default))
    if not home.is_dir():
        raise SystemExit(f"No benchmark data in {home}: set CRFKIT_DATA to their folder.")
    return home


def read_part(part: str) -> list[Columns]:
    """Return the sentences of 'train' or 'test', each a list of (word, tag, chunk) rows."""
    text = gzip.open(data_home() / "conll2000" / f"{part}.txt.gz", "rt", encoding="utf-8").read()
    blocks = (block for block in text.split("\n\n") if block.strip())
    return [[line.split(" ") for line in block.strip().split("\n")] for block in blocks]


def read_template() -> list[tuple[str, list[tuple[int, int]]]]:
    """Return (name, [(row, column), ...]) for each unigram line of the template."""
    lines = (data_home() / "conll2000" / "template.crfpp").read_text().split()
    cells = re.compile(r"%x\[(-?\d+),(\d+)\]")
    unigrams = [line.split(":", 1) for line in lines if line.startswith("U")]
    return [(name, [(int(r), int(c)) for r, c in cells.findall(rest)]) for name, rest in unigrams]


def apply_template(
    sentence: Columns, template: list[tuple[str, list[tuple[int, int]]]]
) -> list[list[str]]:
    """Return the attribute strings of each token."""
    size = len(sentence)

    def cell(t: int, column: int) -> str:
        if t < 0:
            return f"_B{t}"
        return sentence[t][column] if t < size else f"_B+{t - size + 1}"

    return [
        [f"{name}:" + "/".join(cell(t + r, c) for r, c in parts) for name, parts in template]
        for t in range(size)
    ]


def stream(part: str) -> Iterator[list[list[str]]]:
    """Yield the attributes of 'train' or 'test', sentence by sentence."""
    template = read_template()
    return (apply_template(sentence, template) for sentence in read_part(part))


def load(part: str) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Return the attributes and the labels of 'train' or 'test'."""
    return list(stream(part)), labels(part)


def labels(part: str) -> list[list[str]]:
    """Return the labels of 'train' or 'test'."""
    return [[row[2] for row in sentence] for sentence in read_part(part)]
