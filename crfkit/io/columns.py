"""Column files: one token per line, blank lines between sequences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from crfkit.data import UNLABELED
from crfkit.io.streams import (
    ColumnFormatError,
    Source,
    Target,
    iter_lines,
    source_name,
    write_blocks,
)

# Only blanks and tabs separate: Unicode's other white space (a no-break space in "10 000", a
# vertical tab in a scraped page) belongs to the token, or a file would not survive a round trip.
_RUN_OF_BLANKS = re.compile("[ \t]+")

Row = tuple[str, ...]
LabelReader = Callable[[int, Iterable[str]], list[Any]]


def _rows(
    source: Source, sep: str | None, comment: str | None, encoding: str, skip_docstart: bool
) -> Iterator[Row]:
    """Yield the row of every line, an empty one where a sequence ends."""
    width = 0
    for number, line in enumerate(iter_lines(source, encoding), start=1):
        if comment is not None and line.startswith(comment):
            continue
        cells = line.split(" " if sep is None else sep)
        if sep is None and ("" in cells or "\t" in line):
            cells = _RUN_OF_BLANKS.split(line.strip(" \t"))
        skipped = skip_docstart and cells[0] == "-DOCSTART-"
        blank = cells == [""] if sep is None else _is_blank(line, sep)
        row = () if skipped or blank else tuple(cells)
        width = width or len(row)
        if row and len(row) != width:
            raise ColumnFormatError(
                f"{source_name(source)}, line {number}: expected {width} columns as in the first "
                f"row, found {len(row)}; mend the line, or check `sep` (cells that hold blanks "
                "need sep='\\t') and `comment`"
            )
        yield row


def _sequences(
    rows: Iterator[Row], columns: Sequence[int] | None, name: str
) -> Iterator[list[Row]]:
    for has_cells, group in groupby(rows, bool):
        if has_cells:
            yield list(group) if columns is None else [_selected(r, columns, name) for r in group]


def _selected(row: Row, columns: Sequence[int], name: str) -> Row:
    try:
        return tuple(row[column] for column in columns)
    except IndexError:
        raise ColumnFormatError(
            f"{name}: columns={list(columns)} asks for more than the {len(row)} columns of the "
            "file; count from 0, or check `sep`"
        ) from None


def iter_columns(
    source: Source,
    *,
    columns: Sequence[int] | None = None,
    sep: str | None = None,
    comment: str | None = None,
    encoding: str = "utf-8",
    skip_docstart: bool = False,
) -> Iterator[list[tuple[str, ...]]]:
    r"""Iterate over the sequences of a column file, holding one sequence in memory at a time.

    Parameters
    ----------
    source : path, file object or iterable of str
        A path (unpacked if it ends in ``.gz``, ``.xz``, ``.bz2``, ``.zst`` or ``.zip``), an open
        text or binary stream (which stays open), or lines. A ``str`` is a path. Only ``\n`` and
        ``\r\n`` end a line; a byte order mark at the start is skipped.
    columns : sequence of int, optional
        The columns to keep, from 0 (negative: from the end), in this order. By default all.
    sep : str, optional
        One character between cells. By default any run of blanks and tabs; other white space
        belongs to the cell. With ``sep="\t"`` cells may be empty or hold blanks.
    comment : str, optional
        Lines that begin with this are skipped; they do not end a sequence.
    encoding : str, default="utf-8"
        The encoding of a path or binary stream.
    skip_docstart : bool, default=False
        Whether a row whose first cell is ``-DOCSTART-`` ends a sequence instead of being a token.

    Yields
    ------
    list of tuple of str, length T
        One tuple of cells per token. Sequences are never empty.

    Raises
    ------
    ColumnFormatError, ValueError
        If a row has another number of columns than the first, `columns` asks for one that is
        not there, bytes cannot be decoded, or compressed data are damaged; `sep` is unusable.

    Examples
    --------
    >>> for sequence in iter_columns(["the DT\n", "dog NN\n", "\n", "yes UH\n"]):
    ...     print(sequence)
    [('the', 'DT'), ('dog', 'NN')]
    [('yes', 'UH')]
    """
    _check_separator(sep)
    if comment == "":
        raise ValueError("comment has to be None or a non-empty str: '' would skip every line")
    rows = _rows(source, sep, comment, encoding, skip_docstart)
    return _sequences(rows, columns, source_name(source))


def read_columns(
    source: Source,
    *,
    columns: Sequence[int] | None = None,
    sep: str | None = None,
    comment: str | None = None,
    encoding: str = "utf-8",
    skip_docstart: bool = False,
) -> list[list[tuple[str, ...]]]:
    """Read all sequences of a column file: what :func:`iter_columns` yields, as a list.

    Parameters and errors are the same.
    """
    sequences = iter_columns(
        source, columns=columns, sep=sep, comment=comment, encoding=encoding,
        skip_docstart=skip_docstart,
    )  # fmt: skip
    return list(sequences)


def read_conll(
    source: Source,
    *,
    label_column: int = -1,
    sep: str | None = None,
    comment: str | None = None,
    encoding: str = "utf-8",
    skip_docstart: bool = False,
    unlabeled: str | None = None,
    alternatives: str | None = None,
) -> tuple[list[list[tuple[str, ...]]], list[list[Any]]]:
    """Read a column file and set one column apart as the labels.

    Parameters
    ----------
    source, sep, comment, encoding, skip_docstart
        As for :func:`iter_columns`.
    label_column : int, default=-1
        The column of the labels, counted from 0 (negative: from the end).
    unlabeled, alternatives : str, optional
        What stands for a label that is not known, such as ``"_"``, and between labels of which one
        is right, such as ``"|"``: see :func:`known_labels`.

    Returns
    -------
    tokens_rows : list of list of tuple of str, length S
        Per token the cells of all other columns, also if there is only one.
    labels : list of list, length S
        The label of each token.

    Raises
    ------
    ColumnFormatError, ValueError
        As of :func:`iter_columns`, or if the file has a single column or lacks `label_column`.

    Examples
    --------
    >>> read_conll(["the DT O", "dog NN B"])
    ([[('the', 'DT'), ('dog', 'NN')]], [['O', 'B']])
    """
    X: list[list[Row]] = []
    y: list[list[Any]] = []
    for tokens, labels in iter_conll(
        source, label_column=label_column, sep=sep, comment=comment, encoding=encoding,
        skip_docstart=skip_docstart, unlabeled=unlabeled, alternatives=alternatives,
    ):  # fmt: skip
        X.append(tokens)
        y.append(labels)
    return X, y


def iter_conll(
    source: Source,
    *,
    label_column: int = -1,
    sep: str | None = None,
    comment: str | None = None,
    encoding: str = "utf-8",
    skip_docstart: bool = False,
    unlabeled: str | None = None,
    alternatives: str | None = None,
) -> Iterator[tuple[list[tuple[str, ...]], list[Any]]]:
    """Iterate over what :func:`read_conll` reads: tokens and labels of one sequence at a time.

    Parameters and errors are the same.
    """
    sequences = iter_columns(
        source, sep=sep, comment=comment, encoding=encoding, skip_docstart=skip_docstart
    )
    known = label_reader(unlabeled, alternatives)
    return _labeled(sequences, label_column, known, source_name(source))


def _labeled(
    sequences: Iterator[list[Row]], label_column: int, known: LabelReader, name: str
) -> Iterator[tuple[list[Row], list[Any]]]:
    """Yield the other columns of sequences, and their labels."""
    for s, rows in enumerate(sequences):
        width = len(rows[0])
        if width < 2 or not -width <= label_column < width:
            raise ColumnFormatError(
                f"{name}: label_column={label_column} needs a file with that column and at least "
                f"one other, found {width} column(s); check `label_column` and `sep`"
            )
        label = label_column % width
        labels = known(s, [row[label] for row in rows])
        yield [row[:label] + row[label + 1 :] for row in rows], labels


def known_labels(
    y: Iterable[Iterable[str]], *, unlabeled: str | None = None, alternatives: str | None = None
) -> list[list[Any]]:
    """Return labels of a file, in which what marks unknown ones is read.

    Parameters
    ----------
    y : iterable of sequences of str
        Labels as they are written.
    unlabeled : str, optional
        What is written for :data:`crfkit.UNLABELED`.
    alternatives : str, optional
        What parts labels of which one is right: a label with it becomes a set of labels.

    Raises
    ------
    ValueError
        If one of several labels is empty; it names the sequence and the position.

    Examples
    --------
    >>> known_labels([["O", "_"], ["B-PER", "O|I-PER"]], unlabeled="_")
    [['O', UNLABELED], ['B-PER', 'O|I-PER']]
    >>> [[one]] = known_labels([["O|I-PER"]], alternatives="|")
    >>> sorted(one)
    ['I-PER', 'O']
    """
    known = label_reader(unlabeled, alternatives)
    return [known(s, row) for s, row in enumerate(y)]


def label_reader(unlabeled: str | None = None, alternatives: str | None = None) -> LabelReader:
    """Return a function of the number and the labels of a sequence: see :func:`known_labels`."""

    def read(s: int, t: int, label: str) -> Any:
        if label == unlabeled:
            return UNLABELED
        if alternatives is None or alternatives not in label:
            return label
        parts = label.split(alternatives)
        if not all(parts):
            raise ValueError(
                f"sequence {s}, position {t}: the label {label!r} has {alternatives!r} with "
                "nothing on one side. Give labels that this does not stand in, or another mark."
            )
        return frozenset(parts)

    if alternatives == "":
        raise ValueError("alternatives='' parts no labels: give a mark such as '|'.")
    if unlabeled is None and alternatives is None:
        return lambda s, row: list(row)
    return lambda s, row: [read(s, t, label) for t, label in enumerate(row)]


def _check_cell(cell: object, sep: str, where: str) -> None:
    if not isinstance(cell, str):
        raise TypeError(f"{where}: expected str, got {type(cell).__name__}; convert the cell first")
    # The default reader also splits at tabs when blanks separate.
    forbidden = set("\r\n" + sep + ("\t" if sep == " " else ""))
    if found := forbidden.intersection(cell):
        raise ColumnFormatError(
            f"{where}: the cell {cell!r} contains {min(found)!r}, which separates cells or lines; "
            f"replace it or choose another sep"
        )
    if not cell and sep == " ":
        raise ColumnFormatError(
            f"{where}: the cell is empty, which blanks cannot express; use sep='\\t' or a "
            f"placeholder such as '_'"
        )


def _check_row(row: Sequence[str], sep: str, where: str, width: int) -> None:
    if isinstance(row, str):
        raise TypeError(f"{where}: the row is the str {row!r}; expected a tuple of cells")
    for column, cell in enumerate(row):
        _check_cell(cell, sep, f"{where}, column {column}")
    if len(row) != width:
        raise ColumnFormatError(
            f"{where}: expected {width} columns as in the first row, found {len(row)}"
        )
    if _is_blank(sep.join(row), sep):
        raise ColumnFormatError(f"{where}: the row {row!r} would read as the end of a sequence")


def _blocks(sequences: Iterable[Iterable[Sequence[str]]], sep: str) -> Iterator[str]:
    """Yield the lines of each sequence with the blank line that ends it."""
    width = 0
    for index, sequence in enumerate(sequences):
        lines = []
        for position, row in enumerate(sequence):
            width = width or len(row)
            _check_row(row, sep, f"sequence {index}, position {position}", width)
            lines.append(sep.join(row))
        if not lines:
            raise ColumnFormatError(f"sequence {index} is empty, which a column file cannot hold")
        yield "\n".join(lines) + "\n\n"


def write_columns(
    target: Target, sequences: Iterable[Iterable[Sequence[str]]], *, sep: str = " "
) -> None:
    r"""Write sequences to a column file: one token per line, a blank line after each sequence.

    What was written reads back as the same cells with :func:`read_columns` (and the same `sep`,
    or None for a blank). A path is replaced only after all was written and flushed to the disk,
    so an error leaves the old file whole; a stream keeps what was written before the error.

    Parameters
    ----------
    target : path or file object
        A path (packed if it ends in ``.gz``, ``.xz``, ``.bz2``, ``.zst`` or ``.zip``) or an open
        text or binary stream, which stays open. The encoding is UTF-8, except for a text stream,
        which has its own.
    sequences : iterable of iterable of sequence of str
        One row of cells per token. May be a generator: one sequence is held at a time.
    sep : str, default=" "
        One character between cells. With ``sep="\t"`` cells may be empty or hold blanks.

    Raises
    ------
    ColumnFormatError
        If a cell holds the separator or a newline, or is empty while a blank separates; a sequence
        is empty; rows differ in their number of columns; or a character cannot be encoded. The
        message names sequence, position and column (from 0).
    TypeError, ValueError
        If a row is a str or a cell is not; if `sep` is unusable.

    Examples
    --------
    >>> import sys
    >>> write_columns(sys.stdout, [[("the", "DT"), ("dog", "NN")]])
    the DT
    dog NN
    <BLANKLINE>
    """
    if sep is None:
        raise ValueError("sep has to be one character other than a newline, got None")
    _check_separator(sep)
    write_blocks(target, _blocks(sequences, sep))


def _check_separator(sep: str | None) -> None:
    """Raise ValueError unless `sep` is None or one character that does not end a line."""
    if sep is not None and (len(sep) != 1 or sep in "\r\n"):
        raise ValueError(f"sep has to be None or one character other than a newline, got {sep!r}")


def _is_blank(line: str, sep: str | None) -> bool:
    r"""Whether `line` ends a sequence. With ``sep="\t"`` a line of tabs is a row of empty cells."""
    return not line.strip(" " if sep == "\t" else " \t")
