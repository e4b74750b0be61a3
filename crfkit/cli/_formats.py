"""The file formats of the command line, each with the same few methods."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from crfkit.io import iter_columns, iter_conllu, iter_crfsuite_text, read_crfsuite_text

CONLLU_COLUMNS = ("form", "lemma", "upos", "xpos", "feats", "deprel")


class Labeled(NamedTuple):
    """Tokens and labels of all sequences, and their weights where the file has such."""

    X: list[Any]
    y: list[list[str]]
    weight: Any = None


class DataFormat(abc.ABC):
    """A format of labeled and unlabeled sequences.

    Parameters
    ----------
    label : str or None
        The column of the labels, as the user gave it.
    sep : str or None
        What stands between the columns.
    encoding : str
        Encoding of the file.
    """

    name: ClassVar[str]
    has_columns: ClassVar[bool] = True  # else the tokens are dicts of attributes

    def __init__(self, label: str | None, sep: str | None, encoding: str) -> None:
        self.label, self.sep, self.encoding = label, sep, encoding

    def options(self) -> dict[str, Any]:
        """Return what a model file must remember to read more of the same."""
        return {"format": self.name, "label": self.label, "sep": self.sep}

    @abc.abstractmethod
    def read(self, source: Any) -> Labeled:
        """Return tokens and labels of all sequences."""

    @abc.abstractmethod
    def iterate(self, source: Any, width: int) -> Iterator[tuple[list[Any], list[str]]]:
        """Yield the tokens of each sequence and the lines to print before their labels.

        `width` is the number of columns that the model was trained on, without the label.
        """

    def columns(self, width: int) -> Sequence[str] | None:
        """Return names of the columns, where they have any."""
        return None


class ColumnFormat(DataFormat):
    """One token a line, blank lines between sequences."""

    name = "columns"

    def _place(self, width: int) -> int:
        text = "-1" if self.label is None else self.label
        try:
            place = int(text)
        except ValueError:
            raise ValueError(
                f"--label {text}: the column must be a number, counted from 0."
            ) from None
        if not -width <= place < width:
            raise ValueError(f"--label {place}: the file has {width} columns, counted from 0.")
        return place % width

    def read(self, source: Any) -> Labeled:
        """Return the other columns as tuples, and the label column."""
        X: list[Any] = []
        y: list[list[str]] = []
        for rows in iter_columns(source, sep=self.sep, encoding=self.encoding):
            place = self._place(len(rows[0]))
            if len(rows[0]) < 2:
                raise ValueError("the file has one column: training needs tokens and labels.")
            X.append([row[:place] + row[place + 1 :] for row in rows])
            y.append([row[place] for row in rows])
        return Labeled(X, y)

    def iterate(self, source: Any, width: int) -> Iterator[tuple[list[Any], list[str]]]:
        """Yield rows without the label column, where there is one, and the rows as text."""
        between = self.sep or " "
        for rows in iter_columns(source, sep=self.sep, encoding=self.encoding):
            found = len(rows[0])
            lines = [between.join(row) + between for row in rows]
            if found == width + 1:
                place = self._place(found)
                rows = [row[:place] + row[place + 1 :] for row in rows]
            elif found != width:
                raise ValueError(
                    f"the file has {found} columns, but the model was trained on {width} and the "
                    "label: give the same columns, with or without the label."
                )
            yield rows, lines


class ConlluFormat(DataFormat):
    """CoNLL-U: the columns form, lemma, upos, xpos, feats and deprel, without the label."""

    name = "conllu"

    @property
    def _label(self) -> str:
        label = (self.label or "upos").lower()
        if label not in CONLLU_COLUMNS:
            raise ValueError(f"--label {label}: choose one of {', '.join(CONLLU_COLUMNS)}.")
        return label

    def columns(self, width: int) -> Sequence[str]:
        """Return the names of the fields."""
        return [name for name in CONLLU_COLUMNS if name != self._label]

    def _sentences(self, source: Any) -> Iterator[tuple[list[Any], list[str], list[str]]]:
        fields, label = self.columns(0), self._label
        for sentence in iter_conllu(source, encoding=self.encoding):
            tokens = [tuple(word.text(name) for name in fields) for word in sentence.words]
            labels = [word.text(label) for word in sentence.words]
            yield tokens, labels, [f"{word.form}\t" for word in sentence.words]

    def read(self, source: Any) -> Labeled:
        """Return the fields of the words as tuples, and the label field."""
        X: list[Any] = []
        y: list[list[str]] = []
        for tokens, labels, _ in self._sentences(source):
            X.append(tokens)
            y.append(labels)
        return Labeled(X, y)

    def iterate(self, source: Any, width: int) -> Iterator[tuple[list[Any], list[str]]]:
        """Yield the fields of the words, and their forms as text."""
        for tokens, _, lines in self._sentences(source):
            yield tokens, lines


class CRFsuiteFormat(DataFormat):
    """CRFsuite's text: a label and attributes, split by tabs."""

    name = "crfsuite"
    has_columns = False

    def read(self, source: Any) -> Labeled:
        """Return the attributes as dicts, and the labels."""
        X, y, weight = read_crfsuite_text(source, encoding=self.encoding)
        return Labeled(X, y, None if (weight == 1.0).all() else weight)

    def iterate(self, source: Any, width: int) -> Iterator[tuple[list[Any], list[str]]]:
        """Yield the attributes; nothing is printed before the labels."""
        for sequence in iter_crfsuite_text(source, encoding=self.encoding):
            yield sequence.attributes, [""] * len(sequence.attributes)


FORMATS: dict[str, type[DataFormat]] = {
    kind.name: kind for kind in (ColumnFormat, ConlluFormat, CRFsuiteFormat)
}
