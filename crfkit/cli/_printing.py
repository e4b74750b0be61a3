"""How labelings are printed: as lines of tokens, as tables, as objects."""

from __future__ import annotations

import argparse
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from crfkit.cli._answers import Answer
from crfkit.cli.formats import DataFormat, Words, note_line
from crfkit.cli.formats.csv_tables import csv_row
from crfkit.cli.formats.jsonl import PREDICTED, TAGS


class Printer(ABC):
    """Makes text of the labelings of sequences."""

    name: ClassVar[str]
    is_rich: ClassVar[bool] = False  # whether it prints labels, spans and their probabilities

    def __init__(self, data: DataFormat, arguments: argparse.Namespace) -> None:
        self.data, self.arguments = data, arguments

    @abstractmethod
    def lines(self, tokens: Sequence[Any], sequence: Any, answer: Answer) -> list[str]:
        """Return the lines of a labeling of a sequence."""


class ConllPrinter(Printer):
    """A token a line, as the format of the data has it, or spans in place of tokens."""

    name = "conll"

    def lines(self, tokens: Sequence[Any], sequence: Any, answer: Answer) -> list[str]:
        """Return the lines of tokens, or of spans, and a blank one."""
        if not tokens:
            return []
        if not self.arguments.spans:
            return [*self.data.tagged(sequence, answer.columns, answer.notes), ""]
        known = self.data.words(tokens, sequence)
        words = None if known is None else known.words
        spans = ["\t".join(_span_cells(words, *span)) for span in answer.spans]
        return [*note_line(answer.notes), *spans, ""]


def _span_cells(words: list[str] | None, span: Any, probability: str | None) -> list[str]:
    """Return what is printed of a span: its first token, the one after its last, label, text."""
    cells = [str(span.start), str(span.stop), str(span.label)]
    cells += [] if probability is None else [probability]
    return cells + ([] if words is None else [" ".join(words[span.start : span.stop])])


class JSONPrinter(Printer):
    """An object a line, with what the object that was read had besides."""

    name = "jsonl"
    is_rich = True

    def lines(self, tokens: Sequence[Any], sequence: Any, answer: Answer) -> list[str]:
        """Return one line."""
        words = self.data.words(tokens, sequence)
        found: dict[str, Any] = {} if words is None else dict(words.record or {})
        if words is not None and words.text is not None:
            found["text"] = words.text
        if not self.arguments.spans:
            found |= {} if words is None else {"tokens": words.words}
            kept = found.get(TAGS)
            found |= _labels(answer.columns)
            if kept is not None:  # the labels of the file stay, as further columns leave them
                found[PREDICTED], found[TAGS] = found[TAGS], kept
        found["spans"] = [_span(words, *span) for span in answer.spans]
        found |= {name: json.loads(value) for name, value in answer.notes.items()}
        return [json.dumps(found, ensure_ascii=False)]


def _labels(columns: list[list[str]]) -> dict[str, Any]:
    """Return labels, and their probabilities where they were asked for."""
    names = (TAGS, "tag_probabilities")
    found: dict[str, Any] = dict(zip(names, columns, strict=False))
    if len(columns) > 1:
        found["tag_probabilities"] = [float(p) for p in columns[1]]
    if len(columns) > 2:
        pairs = [[cell.rpartition(":") for cell in row] for row in zip(*columns[2:], strict=True)]
        found["marginals"] = [{label: float(p) for label, _, p in row} for row in pairs]
    return found


def _span(words: Words | None, span: Any, probability: str | None) -> dict[str, Any]:
    """Return a span of characters where the text is known, else of tokens."""
    start, end = span.start, span.stop
    found: dict[str, Any] = {"start": start, "end": end, "label": str(span.label)}
    if words is not None:
        found["text"] = " ".join(words.words[start:end])
        if words.text is not None and words.offsets is not None:
            start, end = words.offsets[start][0], words.offsets[end - 1][1]
            found |= {"start": start, "end": end, "text": words.text[start:end]}
    return found if probability is None else found | {"probability": float(probability)}


class CSVPrinter(Printer):
    """A token a row, with the names of columns first; blank rows end sequences."""

    name = "csv"
    _has_names = False

    def lines(self, tokens: Sequence[Any], sequence: Any, answer: Answer) -> list[str]:
        """Return the rows of tokens, or of spans, and a blank one."""
        if not tokens:
            return []
        sep, known = self.data.sep or ",", self.data.words(tokens, sequence)
        rows: list[list[str]] = [[] for _ in tokens]
        names: list[str] = []
        if self.arguments.spans:
            names, words = ["start", "stop", "label"], None if known is None else known.words
            names += ["probability"] * bool(self.arguments.confidence)
            names += ["text"] * bool(words)
            rows = [_span_cells(words, *span) for span in answer.spans]
        elif known is not None:
            rows = [list(row) for row in known.rows]
            given = ["token", *(f"token_{i}" for i in range(1, len(known.rows[0])))]
            names = [*(self.data.columns or given), *_names(answer.columns)]
            rows = [[*row, *more] for row, *more in zip(rows, *answer.columns, strict=True)]
        else:
            names = _names(answer.columns)
            rows = [list(row) for row in zip(*answer.columns, strict=True)]
        # A span has a probability of its own.
        notes = {} if "probability" in names and self.arguments.spans else answer.notes
        lines = [csv_row([*row, *notes.values()], sep) for row in rows]
        bare = self._has_names or self.data.given.header is False
        first = [] if bare else [csv_row([*names, *notes], sep)]
        self._has_names = True
        return [*first, *lines, ""]


def _names(columns: list[list[str]]) -> list[str]:
    """Return the names of labels and of what follows them."""
    names = [PREDICTED, "probability"][: len(columns)]
    return names + [column[0].rpartition(":")[0] for column in columns[2:]]


PRINTERS: dict[str, type[Printer]] = {
    kind.name: kind for kind in (ConllPrinter, CSVPrinter, JSONPrinter)
}
_ENDINGS = {"jsonl": "jsonl", "csv": "csv", "conllu": "conll"}


def chosen_printer(data: DataFormat, arguments: argparse.Namespace, named: str | None) -> Printer:
    """Return how labelings are printed: by options, by the name of the file, or as the data are."""
    name = arguments.output_format or _ENDINGS.get(named or "", data.output)
    return PRINTERS[name](data, arguments)
