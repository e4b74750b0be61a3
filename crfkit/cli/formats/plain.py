"""Sequences without labels: tokens between blanks, and texts that a tokenizer splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crfkit.cli.formats.base import DataFormat, Labeled, Words, tagged_rows
from crfkit.io.streams import iter_lines
from crfkit.text import as_tokenizer


class TokenFormat(DataFormat):
    """One sequence a line, tokens between blanks."""

    name = "tokens"
    has_labels = False

    def _check_label(self) -> None:
        if self.label is not None:
            raise ValueError(f"--label: --format {self.name} has no labels.")

    def read(self, source: Any, width: int | None = None) -> Labeled:
        """Raise ValueError: there are no labels."""
        raise ValueError(f"--format {self.name} has no labels.")

    def iterate(self, source: Any, width: int | None) -> Iterator[tuple[list[Any], Words]]:
        """Yield the tokens of lines."""
        for line in iter_lines(source, self.encoding):
            words = [word for word in line.replace("\t", " ").split(" ") if word]
            rows = [(word,) for word in words]
            yield list(rows), Words(words, rows)

    def tagged(
        self, sequence: Words, columns: Sequence[Sequence[str]], notes: Mapping[str, str]
    ) -> list[str]:
        """Return a line for each token, with its label."""
        return tagged_rows(sequence.words, columns, notes, self.sep or " ")

    def words(self, tokens: Sequence[Any], sequence: Words) -> Words:
        """Return what was read."""
        return sequence


class TextFormat(DataFormat):
    """One text a line, which a tokenizer splits."""

    name = "text"
    has_labels = False
    output = "jsonl"

    def _check_label(self) -> None:
        if self.label is not None:
            raise ValueError(f"--label: --format {self.name} has no labels.")
        self.places = as_tokenizer(self.given.tokenizer or "words")

    def read(self, source: Any, width: int | None = None) -> Labeled:
        """Raise ValueError: there are no labels."""
        raise ValueError(f"--format {self.name} has no labels.")

    def iterate(self, source: Any, width: int | None) -> Iterator[tuple[list[Any], Words]]:
        """Yield the tokens of lines."""
        for line in iter_lines(source, self.encoding):
            yield tokenized(line, self.places)

    def tagged(
        self, sequence: Words, columns: Sequence[Sequence[str]], notes: Mapping[str, str]
    ) -> list[str]:
        """Return a line for each token, with its label."""
        return tagged_rows(sequence.words, columns, notes, self.sep or " ")

    def words(self, tokens: Sequence[Any], sequence: Words) -> Words:
        """Return what was read."""
        return sequence


def tokenized(text: str, places: Any, record: Any = None) -> tuple[list[Any], Words]:
    """Return the tokens of a text as rows of one column, and what is known of them."""
    offsets = places(text)
    words = [text[start:stop] for start, stop in offsets]
    rows = [(word,) for word in words]
    return list(rows), Words(words, rows, text, offsets, record)
