"""Sequences without labels: tokens between blanks, and texts that a tokenizer splits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crfkit.cli.formats.base import Labeled, Words, WordsFormat
from crfkit.io.streams import iter_lines
from crfkit.text import as_tokenizer


class TokenFormat(WordsFormat):
    """One sequence a line, tokens between blanks."""

    name = "tokens"
    has_labels = False

    def _check_label(self) -> None:
        if self.label is not None:
            raise _no_labels(self.name, "--label: ")

    def read(self, source: Any, width: int | None = None) -> Labeled:
        """Raise ValueError: there are no labels."""
        raise _no_labels(self.name)

    def iterate(self, source: Any, width: int | None) -> Iterator[tuple[list[Any], Words]]:
        """Yield the tokens of lines."""
        for line in iter_lines(source, self.encoding):
            words = [word for word in line.replace("\t", " ").split(" ") if word]
            rows = [(word,) for word in words]
            yield list(rows), Words(words, rows)


class TextFormat(WordsFormat):
    """One text a line, which a tokenizer splits."""

    name = "text"
    has_labels = False
    output = "jsonl"

    def _check_label(self) -> None:
        if self.label is not None:
            raise _no_labels(self.name, "--label: ")
        self.places = as_tokenizer(self.given.tokenizer or "words")

    def read(self, source: Any, width: int | None = None) -> Labeled:
        """Raise ValueError: there are no labels."""
        raise _no_labels(self.name)

    def iterate(self, source: Any, width: int | None) -> Iterator[tuple[list[Any], Words]]:
        """Yield the tokens of lines."""
        for line in iter_lines(source, self.encoding):
            yield tokenized(line, self.places)


def tokenized(text: str, places: Any, record: Any = None) -> tuple[list[Any], Words]:
    """Return the tokens of a text as rows of one column, and what is known of them."""
    offsets = places(text)
    words = [text[start:stop] for start, stop in offsets]
    rows = [(word,) for word in words]
    return list(rows), Words(words, rows, text, offsets, record)


def _no_labels(name: str, option: str = "") -> ValueError:
    return ValueError(f"{option}--format {name} has no labels.")
