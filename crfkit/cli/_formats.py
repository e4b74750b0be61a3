"""The file formats of the command line, each with the same few methods."""

from __future__ import annotations

import abc
import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from crfkit.io import (
    ConlluSentence,
    iter_columns,
    iter_conllu,
    iter_crfsuite_text,
    known_labels,
    read_crfsuite_text,
)
from crfkit.io.conllu import sentence_lines
from crfkit.labels.schemes import get_scheme

CONLLU_COLUMNS = ("form", "lemma", "upos", "xpos", "feats", "deprel")
_PROBABILITY = "Probability"  # the entry of MISC


class Labeled(NamedTuple):
    """Tokens and labels of all sequences, and their weights where the file has such."""

    X: list[Any]
    y: list[list[str]]
    weight: Any = None


class DataFormat(abc.ABC):
    """A format of sequences, given the column of the labels as the user named it."""

    name: ClassVar[str]
    has_columns: ClassVar[bool] = True  # else the tokens are dicts of attributes
    has_labels: ClassVar[bool] = True
    columns: list[str] | None = None  # their names, where they have any

    def __init__(self, label: str | None, sep: str | None, encoding: str) -> None:
        self.label, self.sep, self.encoding = label, sep, encoding
        self._check_label()

    @abc.abstractmethod
    def _check_label(self) -> None:
        """Raise ValueError if `label` is none of this format."""

    def options(self) -> dict[str, Any]:
        """Return what a model file must remember to read more of the same."""
        return {"format": self.name, "label": self.label, "sep": self.sep}

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

    def text(self, tokens: Sequence[Any]) -> str:
        """Return the text of tokens, as far as it is known."""
        return " ".join(token[0] for token in tokens) if self.has_columns else ""


def note_line(notes: Mapping[str, str]) -> list[str]:
    """Return the line of notes on a sequence, if there are any."""
    return ["# " + " ".join(notes.values())] if notes else []


class ColumnFormat(DataFormat):
    """One token a line, blank lines between sequences."""

    name = "columns"

    def _check_label(self) -> None:
        if self.label is not None and not self.label.removeprefix("-").isdecimal():
            raise ValueError(f"--label {self.label}: the column must be a number, counted from 0.")

    def _split(self, rows: list[tuple[str, ...]]) -> tuple[list[Any], list[str]]:
        """Return the other columns of a sequence, and the one of the labels."""
        width, place = len(rows[0]), -1 if self.label is None else int(self.label)
        if not -width <= place < width:
            raise ValueError(f"--label {place}: the file has {width} columns, counted from 0.")
        place %= width
        return [row[:place] + row[place + 1 :] for row in rows], [row[place] for row in rows]

    def read(self, source: Any, width: int | None = None) -> Labeled:
        """Return the other columns as tuples, and the label column."""
        labeled = Labeled([], [])
        for rows in iter_columns(source, sep=self.sep, encoding=self.encoding):
            found = len(rows[0])
            if found < 2:
                raise ValueError("the file has one column, but tokens and labels are needed.")
            if width is not None and found != width + 1:
                raise _wrong_width(found, f"{width} and the label: give the same columns.")
            tokens, labels = self._split(rows)
            labeled.X.append(tokens)
            labeled.y.append(labels)
        return labeled

    def iterate(self, source: Any, width: int | None) -> Iterator[tuple[list[Any], list[str]]]:
        """Yield rows without the label column, where there is one, and the rows as text."""
        for rows in iter_columns(source, sep=self.sep, encoding=self.encoding):
            found = len(rows[0])
            lines = [(self.sep or " ").join(row) for row in rows]
            if found == width + 1 if width is not None else self.label is not None:
                rows, _ = self._split(rows)
            elif width not in (None, found):
                raise _wrong_width(
                    found,
                    f"{width} and the label: give the same columns, with or without the label.",
                )
            yield rows, lines

    def tagged(
        self, sequence: list[str], columns: Sequence[Sequence[str]], notes: Mapping[str, str]
    ) -> list[str]:
        """Return the lines with further columns."""
        lines = [(self.sep or " ").join(cells) for cells in zip(sequence, *columns, strict=True)]
        return note_line(notes) + lines


def _wrong_width(found: int, wanted: str) -> ValueError:
    return ValueError(f"the file has {found} columns, but the model was trained on {wanted}")


class ConlluFormat(DataFormat):
    """CoNLL-U: the columns form, lemma, upos, xpos, feats and deprel, without the label."""

    name = "conllu"

    def _check_label(self) -> None:
        self._label = (self.label or "upos").lower()
        if self._label not in CONLLU_COLUMNS:
            raise ValueError(f"--label {self.label}: choose one of {', '.join(CONLLU_COLUMNS)}.")
        self.columns = [name for name in CONLLU_COLUMNS if name != self._label]

    def read(self, source: Any, width: int | None = None) -> Labeled:
        """Return the fields of the words as tuples, and the label field."""
        labeled = Labeled([], [])
        for tokens, sentence in self.iterate(source, width):
            labeled.X.append(tokens)
            labeled.y.append([word.text(self._label) for word in sentence.words])
        return labeled

    def iterate(self, source: Any, width: int | None) -> Iterator[tuple[list[Any], ConlluSentence]]:
        """Yield the fields of the words, and the sentences."""
        fields = self.columns or []
        for sentence in iter_conllu(source, encoding=self.encoding):
            yield [tuple(word.text(name) for name in fields) for word in sentence.words], sentence

    def tagged(
        self, sequence: ConlluSentence, columns: Sequence[Sequence[str]], notes: Mapping[str, str]
    ) -> list[str]:
        """Return all lines of the sentence with the label in its field, a second column in MISC."""
        cells, rows = zip(*columns, strict=True), []
        for row in sequence.rows:
            if row.id.isdigit():
                label, *probability = next(cells)
                filled: dict[str, Any] = {self._label: label}
                if probability:
                    filled["misc"] = row.misc | {_PROBABILITY: probability[0]}
                row = row._replace(**filled)
            rows.append(row)
        added = [f"{name} = {value}" for name, value in notes.items()]
        return sentence_lines(ConlluSentence(rows, sequence.comments + added))


class CRFsuiteFormat(DataFormat):
    """CRFsuite's text: a label and attributes, split by tabs."""

    name = "crfsuite"
    has_columns = False

    def _check_label(self) -> None:
        if self.label is not None:
            raise ValueError("--label: the label of --format crfsuite is always the first cell.")

    def read(self, source: Any, width: int | None = None) -> Labeled:
        """Return the attributes as dicts, and the labels."""
        X, y, weight = read_crfsuite_text(source, encoding=self.encoding)
        return Labeled(X, y, None if (weight == 1.0).all() else weight)

    def iterate(self, source: Any, width: int | None) -> Iterator[tuple[list[Any], None]]:
        """Yield the attributes; nothing is printed before the labels."""
        for sequence in iter_crfsuite_text(source, encoding=self.encoding):
            yield sequence.attributes, None

    def tagged(
        self, sequence: None, columns: Sequence[Sequence[str]], notes: Mapping[str, str]
    ) -> list[str]:
        """Return the labels, and what follows them; notes as CRFsuite has them."""
        lines = [f"@{name}\t{value}" for name, value in notes.items()]
        return lines + ["\t".join(cells) for cells in zip(*columns, strict=True)]


FORMATS: dict[str, type[DataFormat]] = {
    kind.name: kind for kind in (ColumnFormat, ConlluFormat, CRFsuiteFormat)
}


def chosen_scheme(name: str, others: tuple[str, ...]) -> str:
    """Return the name of a scheme of tags, or one of `others`, without regard to case."""
    if name.lower() in others:
        return name.lower()
    try:
        return get_scheme(name).name
    except ValueError as error:
        raise ValueError(", ".join((str(error), *others))) from None


def read_unknown(arguments: argparse.Namespace, y: list[list[str]]) -> list[list[Any]]:
    """Return labels of a file, in which what marks unknown ones is read."""
    return known_labels(y, unlabeled=arguments.unlabeled, alternatives=arguments.alternatives)


def chosen_format(arguments: argparse.Namespace, path: str) -> DataFormat:
    """Return how to read a file, by the options and its name."""
    stem = path
    for packed in (".gz", ".xz", ".bz2"):
        stem = stem.removesuffix(packed)
    name = arguments.format or ("conllu" if stem.endswith(".conllu") else "columns")
    separator = "\t" if arguments.tabs else None
    return FORMATS[name](label=arguments.label, sep=separator, encoding=arguments.encoding)
