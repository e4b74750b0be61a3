"""Tables with a header and quotes, a token a row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crfkit.cli.formats.base import DataFormat, Labeled, Words, tagged_rows
from crfkit.io import iter_csv


class CSVFormat(DataFormat):
    """Comma-separated values: a token a row; blank rows, or a column, tell sequences apart."""

    name = "csv"
    output = "csv"
    has_fixed_columns = False

    def _check_label(self) -> None:
        self._has_header = self.given.header is not False
        text = self.label
        is_number = text is not None and text.removeprefix("-").isdecimal()
        if text is not None and not is_number and not self._has_header:
            raise ValueError(f"--label {text}: without a header the column must be a number.")
        self._column: Any = -1 if text is None else int(text) if is_number else text

    def _read(self, source: Any, label: Any) -> Iterator[tuple[list[Any], list[str]]]:
        """Yield tokens as tuples, and the labels."""
        sequences = iter_csv(
            source, label=label, by=_name(self.given.by), sep=self.sep or ",",
            header=self._has_header, encoding=self.encoding,
        )  # fmt: skip
        for tokens, labels in sequences:
            if self._has_header:
                self.columns = list(tokens[0])
            yield [tuple(_cells(token)) for token in tokens], labels

    def read(self, source: Any, width: int | None = None) -> Labeled:
        """Return the other columns as tuples, and the label column."""
        pairs = list(self._read(source, self._column))
        return Labeled([tokens for tokens, _ in pairs], [labels for _, labels in pairs])

    def iterate(self, source: Any, width: int | None) -> Iterator[tuple[list[Any], Words]]:
        """Yield all columns; that of the labels, if it is there, is matched by no name."""
        for rows, _ in self._read(source, None):
            tokens = rows
            if not self._has_header and self.label is not None:
                place = range(len(rows[0]))[self._column]
                tokens = [row[:place] + row[place + 1 :] for row in rows]
            yield tokens, Words([token[0] for token in tokens], rows)

    def tagged(
        self, sequence: Words, columns: Sequence[Sequence[str]], notes: Mapping[str, str]
    ) -> list[str]:
        """Return the rows as they were, with further cells."""
        sep = self.sep or ","
        return tagged_rows([csv_row(row, sep) for row in sequence.rows], columns, notes, sep)

    def words(self, tokens: Sequence[Any], sequence: Words) -> Words:
        """Return what was read."""
        return sequence


def csv_row(cells: Sequence[str], sep: str) -> str:
    """Return a row of a table, with quotes where they are needed."""
    line = io.StringIO()
    csv.writer(line, delimiter=sep, lineterminator="\r\n").writerow(cells)
    return line.getvalue().removesuffix("\r\n")


def _name(given: str | None) -> str | int | None:
    return int(given) if given is not None and given.isdecimal() else given


def _cells(token: Any) -> Sequence[str]:
    return list(token.values()) if isinstance(token, dict) else token
