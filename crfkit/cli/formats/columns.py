"""One token a line, blank lines between sequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crfkit.cli.formats.base import DataFormat, Labeled, Words, tagged_rows
from crfkit.io import iter_columns


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
        return tagged_rows(sequence, columns, notes, self.sep or " ")

    def words(self, tokens: Sequence[Any], sequence: list[str]) -> Words:
        """Return the first cells, and all of them."""
        rows = [tuple(line.split(self.sep or " ")) for line in sequence]
        return Words([token[0] for token in tokens], rows)


def _wrong_width(found: int, wanted: str) -> ValueError:
    return ValueError(f"the file has {found} columns, but the model was trained on {wanted}")
