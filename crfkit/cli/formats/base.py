"""What the formats of files have in common."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple


class Labeled(NamedTuple):
    """Tokens and labels of all sequences, and their weights where the file has such."""

    X: list[Any]
    y: list[list[str]]
    weight: Any = None


class FormatOptions(NamedTuple):
    """How a file is read, as far as the user has said so."""

    label: str | None = None  # the column, or field, of the labels
    sep: str | None = None
    encoding: str = "utf-8"
    header: bool | None = None  # whether the first line has names
    tokenizer: str | None = None
    by: str | None = None  # the column that tells sequences apart


class Words(NamedTuple):
    """What is known of a sequence besides its rows, for what is printed."""

    words: list[str]
    rows: Sequence[tuple[str, ...]]  # all cells of a token
    text: str | None = None
    offsets: list[tuple[int, int]] | None = None  # of the words in the text
    record: Mapping[str, Any] | None = None  # what else there was, of a file of objects


class DataFormat(abc.ABC):
    """A format of sequences, given the column of the labels as the user named it."""

    name: ClassVar[str]
    has_columns: ClassVar[bool] = True  # else the tokens are dicts of attributes
    has_labels: ClassVar[bool] = True
    has_fixed_columns: ClassVar[bool] = True  # else each file has columns of its own
    output: ClassVar[str] = "conll"  # what labels are printed as, if nothing else is said
    columns: list[str] | None = None  # their names, where they have any, once some were read

    def __init__(self, options: FormatOptions) -> None:
        self.given = options
        self.label, self.sep, self.encoding = options[:3]
        self._check_label()

    @abc.abstractmethod
    def _check_label(self) -> None:
        """Raise ValueError if `label` is none of this format."""

    def options(self) -> dict[str, Any]:
        """Return what a model file must remember to read more of the same."""
        known: dict[str, Any] = {"format": self.name, "label": self.label, "sep": self.sep}
        further = {"header": self.given.header, "by": self.given.by}
        return known | {name: value for name, value in further.items() if value is not None}

    @abc.abstractmethod
    def read(self, source: Any, width: int | None = None) -> Labeled:
        """Return tokens and labels of all sequences, of so many columns without the label."""

    @abc.abstractmethod
    def iterate(self, source: Any, width: int | None) -> Iterator[tuple[list[Any], Any]]:
        """Yield tokens of sequences, of `width` columns if known, and what `tagged` prints."""

    @abc.abstractmethod
    def tagged(
        self, sequence: Any, columns: Sequence[Sequence[str]], notes: Mapping[str, str]
    ) -> list[str]:
        """Return the lines of a sequence: notes on it, its labels, and what follows them."""

    @abc.abstractmethod
    def words(self, tokens: Sequence[Any], sequence: Any) -> Words | None:
        """Return the words of a sequence, None where they are not known."""


class WordsFormat(DataFormat):
    """A format that is not printed as it was read: a line for each word."""

    def tagged(
        self, sequence: Words, columns: Sequence[Sequence[str]], notes: Mapping[str, str]
    ) -> list[str]:
        """Return a line for each token, with its label."""
        return tagged_rows(sequence.words, columns, notes, self.sep or " ")

    def words(self, tokens: Sequence[Any], sequence: Words) -> Words:
        """Return what was read."""
        return sequence


def note_line(notes: Mapping[str, str]) -> list[str]:
    """Return the line of notes on a sequence, if there are any."""
    return ["# " + " ".join(notes.values())] if notes else []


def tagged_rows(
    rows: Sequence[str], columns: Sequence[Sequence[str]], notes: Mapping[str, str], sep: str
) -> list[str]:
    """Return the lines of tokens with further cells, after the notes on their sequence."""
    return note_line(notes) + [sep.join(cells) for cells in zip(rows, *columns, strict=True)]
