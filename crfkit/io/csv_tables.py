"""Tables with a header and quotes: one token a row, or one sequence a row."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict, Unpack

from crfkit._params import check_flag, meant
from crfkit._warnings import warn_user
from crfkit.data import UNLABELED
from crfkit.io.columns import label_reader
from crfkit.io.streams import (
    MOST_CHARACTERS,
    ColumnFormatError,
    Source,
    Target,
    raw_lines,
    source_name,
    write_blocks,
)

Name = str | int
JSON = "json"


class Written(TypedDict, total=False):
    """How characters and labels that are not known are written."""

    encoding: str
    unlabeled: str | None
    alternatives: str | None


LONG = 500  # tokens, of which a table seldom has one sequence alone


def read_csv(
    source: Source,
    *,
    label: Name | None = -1,
    columns: Sequence[Name] | None = None,
    by: Name | None = None,
    within: str | None = None,
    sep: str = ",",
    header: bool = True,
    **written: Unpack[Written],
) -> tuple[list[list[Any]], list[list[Any]]]:
    r"""Read sequences of tokens and labels from a table of comma-separated values.

    Parameters
    ----------
    source : path, file object or iterable of lines
        As for :func:`iter_columns`. Cells in quotes may hold separators and ends of lines.
    label : str or int or None, default=-1
        The column of the labels: its name, or its number (negative: from the end); None if there
        is none.
    columns : sequence of str or int, optional
        The columns of the tokens; by default all but those of `label` and `by`.
    by : str or int, optional
        The column that tells sequences apart. It may be filled in the first row of each sequence
        alone: an empty cell belongs to the sequence above. By default, rows whose cells are all
        empty, and blank lines, end sequences.
    within : str, optional
        What parts the tokens in a cell, such as ``" "``: then a row is a sequence, and the cells of
        tokens and labels hold as many parts. ``"json"`` for cells that hold lists of JSON.
    sep : str, default=","
        One character between cells.
    header : bool, default=True
        Whether the first row holds the names of the columns.
    encoding : str, default="utf-8"
        The encoding of a path or binary stream: tables of spreadsheets often have ``"cp1252"``.
    unlabeled, alternatives : str, optional
        What stands for a label that is not known, such as ``""`` (empty cells) or ``"_"``, and
        between labels of which one is right, such as ``"|"``: see :func:`known_labels`.

    Returns
    -------
    tokens : list of S lists
        Tokens as dicts of cells by the names of columns, or, without header, as tuples.
    labels : list of S lists
        Empty lists if `label` is None.

    Raises
    ------
    ColumnFormatError, ValueError
        Naming file and line, if a row has another number of cells than the first, quotes are not
        closed, a column is missing, a sequence comes back after another one, or cells of a sequence
        do not have as many parts.

    Examples
    --------
    >>> lines = ["Sentence #,Word,Tag\n", "Sentence: 1,Ann,B-PER\n", ',"said ""no"", twice",O\n']
    >>> read_csv(lines, by="Sentence #")
    ([[{'Word': 'Ann'}, {'Word': 'said "no", twice'}]], [['B-PER', 'O']])
    >>> read_csv(["text;tags\n", "Ann sleeps;B-PER O\n"], within=" ", sep=";")
    ([[{'text': 'Ann'}, {'text': 'sleeps'}]], [['B-PER', 'O']])
    """
    X: list[list[Any]] = []
    y: list[list[Any]] = []
    for tokens, labels in iter_csv(
        source, label=label, columns=columns, by=by, within=within, sep=sep, header=header,
        **written,
    ):  # fmt: skip
        X.append(tokens)
        y.append(labels)
    return X, y


def iter_csv(
    source: Source,
    *,
    label: Name | None = -1,
    columns: Sequence[Name] | None = None,
    by: Name | None = None,
    within: str | None = None,
    sep: str = ",",
    header: bool = True,
    **written: Unpack[Written],
) -> Iterator[tuple[list[Any], list[Any]]]:
    """Iterate over what :func:`read_csv` reads: tokens and labels of one sequence at a time.

    Parameters and errors are the same.
    """
    check_flag("header", header)
    _check_sep(sep)
    if within is not None and (by is not None or not within):
        raise ValueError("within= is for tables with a sequence a row, which need no by=")
    if unknown := set(written).difference(Written.__annotations__):
        raise TypeError(f"tables are read without {sorted(unknown)}: there are no such parameters")
    known = label_reader(written.get("unlabeled"), written.get("alternatives"))
    rows = _Rows(source, sep, written.get("encoding", "utf-8"), header)
    shape = rows.shape(label, columns, by)
    sequences = _whole(rows, shape, within) if within else _grouped(rows, shape)
    names = shape.names if header else None
    parts = by is not None or within is not None
    return (
        (_tokens(tokens, names), known(s, labels))
        for s, (tokens, labels) in enumerate(_looked_at(sequences, rows, shape, parts))
    )


def _looked_at(
    sequences: Iterator[tuple[list[Any], list[Any]]], rows: _Rows, shape: _Shape, parts: bool
) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield sequences, and warn at last where the table looks to be of another form."""
    name = rows.header[shape.label] if rows.header and shape.label is not None else None
    count, size, found = 0, 0, False
    for sequence in sequences:
        count, size, found = count + 1, size + len(sequence[0]), found or name in sequence[1]
        yield sequence
    if found:
        warn_user(
            f"{rows.name}: the first row holds the names of columns, but {name!r} is a label of "
            "other rows, too: if it is a row like all others, say header=False, or --no-header."
        )
    if count == 1 and size >= LONG and not parts:
        warn_user(
            f"{rows.name}: all {size:,} rows are one sequence, as there are no blank rows: name "
            "the column that tells sequences apart, by=..., or --by COLUMN."
        )


def _tokens(rows: list[list[str]], names: list[str] | None) -> list[Any]:
    """Return tokens as dicts, or as tuples if the columns have no names."""
    if names is None:
        return [tuple(row) for row in rows]
    return [dict(zip(names, row, strict=True)) for row in rows]


class _Shape(NamedTuple):
    """Which columns are which."""

    names: list[str]  # of the columns of tokens
    columns: list[int]
    label: int | None
    by: int | None


class _Rows:
    """The rows of a table, with their lines."""

    def __init__(self, source: Source, sep: str, encoding: str, header: bool) -> None:
        self.name, self.number, self.width = source_name(source), 0, 0
        lines = _lines(raw_lines(source, encoding), self.name)
        self._reader = csv.reader(lines, delimiter=sep, strict=True)
        self._first = next(self._read(), None)
        self.header = self._first if header else None
        self._rest = [self._first] if self._first is not None and not header else []

    def __iter__(self) -> Iterator[list[str]]:
        yield from self._rest
        yield from self._read()

    def where(self) -> str:
        """Return the place of the last row, for messages."""
        return f"{self.name}, line {self.number}"

    def _read(self) -> Iterator[list[str]]:
        while True:
            self.number = self._reader.line_num + 1
            try:
                row = next(self._reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise ColumnFormatError(
                    f"{self.where()}: {error}; cells with quotes are quoted, and their quotes "
                    "doubled; check `sep`"
                ) from None
            self.width = self.width or len(row)
            if row and len(row) != self.width:
                raise ColumnFormatError(
                    f"{self.where()}: expected {self.width} cells as in the first row, found "
                    f"{len(row)}; quote cells that hold {self._reader.dialect.delimiter!r}, or "
                    "check `sep`"
                )
            yield row

    def shape(self, label: Name | None, columns: Sequence[Name] | None, by: Name | None) -> _Shape:
        """Return which columns are which, by names or numbers."""
        if self._first is None:
            return _Shape([], [], None, None)
        known = [self._place(each, what) for each, what in ((label, "label"), (by, "by"))]
        if columns is None:
            places = [place for place in range(self.width) if place not in known]
        else:
            chosen = [self._place(each, "columns") for each in columns]
            places = [place for place in chosen if place is not None]
        if not places:
            raise ColumnFormatError(
                f"{self.name}: no column is left for the tokens: the table has {self.width}, "
                f"{self._first!r:.60}; check `sep`, `label`, `by`, or pass label=None"
            )
        names = [self.header[place] if self.header else str(place) for place in places]
        return _Shape(names, places, *known)

    def _place(self, name: Name | None, what: str) -> int | None:
        if name is None:
            return None
        if isinstance(name, str):
            if self.header is None:
                raise ValueError(f"{what}={name!r}: without header, columns are numbers")
            if self.header.count(name) != 1:
                number = "no" if name not in self.header else "more than one"
                raise ColumnFormatError(
                    f"{self.name}: {number} column is named {name!r}: there are {self.header}; "
                    f"check `sep` and `header`.{meant(name, self.header)}"
                )
            return self.header.index(name)
        if not -self.width <= name < self.width:
            raise ColumnFormatError(
                f"{self.name}: {what}={name} asks for more than the {self.width} columns"
            )
        return name % self.width


def _lines(lines: Iterator[Any], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, str):
            raise TypeError(f"{name}, line {number}: expected str, got {type(line).__name__}")
        if len(line) >= MOST_CHARACTERS:
            raise ColumnFormatError(
                f"{name}, line {number}: the line is longer than {MOST_CHARACTERS:,} characters"
            )
        yield line.removeprefix("\ufeff") if number == 1 else line


def _grouped(rows: _Rows, shape: _Shape) -> Iterator[tuple[list[list[str]], list[str]]]:
    """Yield the tokens and labels of the rows of each sequence."""
    tokens: list[list[str]] = []
    labels: list[str] = []
    seen: set[str] = set()
    last = None
    for row in rows:
        if not any(row):
            if shape.by is None and tokens:
                yield tokens, labels
                tokens, labels = [], []
            continue
        name = "" if shape.by is None else row[shape.by]
        if name and name != last:
            if name in seen:
                raise ColumnFormatError(
                    f"{rows.where()}: the sequence {name!r} comes back after another one; sort "
                    "the rows, keeping the order of tokens"
                )
            seen.add(name)
            if tokens:
                yield tokens, labels
                tokens, labels = [], []
            last = name
        elif shape.by is not None and last is None:
            raise ColumnFormatError(f"{rows.where()}: the first row names no sequence")
        tokens.append([row[place] for place in shape.columns])
        labels += [] if shape.label is None else [row[shape.label]]
    if tokens:
        yield tokens, labels


def _whole(rows: _Rows, shape: _Shape, within: str) -> Iterator[tuple[list[list[str]], list[str]]]:
    """Yield the tokens and labels of the parts of the cells of each row."""
    for row in rows:
        if not any(row):
            continue
        where = rows.where()
        cells = [_parts(row[place], within, where) for place in shape.columns]
        labels = None if shape.label is None else _parts(row[shape.label], within, where)
        lengths = {len(each) for each in [*cells, *([] if labels is None else [labels])]}
        if len(lengths) > 1:
            raise ColumnFormatError(
                f"{where}: the cells of a sequence have {sorted(lengths)} parts; they must have as "
                "many tokens as labels, parted by `within`"
            )
        yield [list(token) for token in zip(*cells, strict=True)], labels or []


def _parts(cell: str, within: str, where: str) -> list[str]:
    if within != JSON:
        return cell.split(within) if cell else []
    try:
        parts = json.loads(cell)
    except json.JSONDecodeError as error:
        raise ColumnFormatError(f"{where}: no JSON: {error}") from None
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ColumnFormatError(f"{where}: expected a list of strings, found {cell!r:.60}")
    return parts


def write_csv(
    target: Target,
    X: Iterable[Iterable[Any]],
    y: Any = None,
    *,
    by: str | None = "sequence",
    within: str | None = None,
    sep: str = ",",
    unlabeled: str | None = None,
) -> None:
    """Write sequences of tokens, and labels, as a table of comma-separated values with a header.

    Parameters
    ----------
    target : path or file object
        As of :func:`write_columns`: a path is replaced after all was written.
    X : iterable of S sequences of dict, tuple or str
        The tokens. All dicts have the same keys, the names of the columns; those of tuples and
        strings are ``"token"``, ``"token_1"``, ...
    y : iterable of S sequences of str, or dict of such, optional
        The labels, in the column ``"label"``; or several columns by their names, for example true
        and predicted labels.
    by : str or None, default="sequence"
        The name of the column of the numbers of sequences; None writes a blank line after each.
    within : str, optional
        Write a sequence a row, its parts separated by this, or ``"json"``: see :func:`read_csv`.
    sep : str, default=","
        One character between cells.
    unlabeled : str, optional
        What is written for :data:`crfkit.UNLABELED`.

    Raises
    ------
    ColumnFormatError, TypeError, ValueError
        Naming sequence and position, if a cell is no string, tokens differ in their columns, there
        are not as many labels as tokens, a label is `UNLABELED` and nothing stands for it, a
        sequence is empty, or what is written would be read otherwise.

    Examples
    --------
    >>> import sys
    >>> write_csv(sys.stdout, [["Ann", "said, no"]], [["B-PER", "O"]])
    sequence,token,label
    0,Ann,B-PER
    0,"said, no",O
    """
    _check_sep(sep)
    added = {} if y is None else dict(y) if isinstance(y, Mapping) else {"label": y}
    writer = _Writer(None if within else by, within, sep, unlabeled)
    write_blocks(target, writer.blocks(X, added))


class _Writer:
    def __init__(self, by: str | None, within: str | None, sep: str, unlabeled: str | None) -> None:
        self.by, self.within, self.unlabeled = by, within, unlabeled
        self._lines: list[str] = []
        # Before Python 3.13, cells with a lone \r are quoted only where it ends lines.
        self._writer = csv.writer(self, delimiter=sep, lineterminator="\r\n")
        self.names: list[str] = []

    def write(self, line: str) -> None:
        """Take a line of the writer."""
        self._lines.append(line.removesuffix("\r\n") + "\n")

    def blocks(self, X: Iterable[Iterable[Any]], added: dict[str, Any]) -> Iterator[str]:
        """Yield the text of each sequence, the names of the columns before the first."""
        others = [iter(rows) for rows in added.values()]
        for s, sequence in enumerate(X):
            labels = [list(next(rows, ())) for rows in others]
            rows = [self._row(s, t, token, labels, list(added)) for t, token in enumerate(sequence)]
            if any(len(each) != len(rows) for each in labels):
                lengths = [len(each) for each in labels]
                raise ValueError(f"sequence {s}: {len(rows)} tokens, but {lengths} labels")
            if not rows:
                raise ColumnFormatError(f"sequence {s} is empty, which a table cannot hold")
            for row in [self._joined(s, rows)] if self.within else rows:
                self._writer.writerow([s, *row] if self.by is not None else row)
            yield self._taken() + ("\n" if self.by is None and not self.within else "")
        if any(next(rows, None) is not None for rows in others):
            raise ValueError("there are more sequences of labels than of tokens")

    def _taken(self) -> str:
        text = "".join(self._lines)
        self._lines.clear()
        return text

    def _row(
        self, s: int, t: int, token: Any, labels: list[list[Any]], added: list[str]
    ) -> list[str]:
        where = f"sequence {s}, position {t}"
        if isinstance(token, Mapping):
            names, cells = list(token), list(token.values())
        else:
            cells = [token] if isinstance(token, str) else list(token)
            names = ["token", *(f"token_{number}" for number in range(1, len(cells)))]
        if not self.names:
            self.names = names
            head = [*([] if self.by is None else [self.by]), *names, *added]
            if len(set(head)) < len(head):
                raise ValueError(f"columns have the same name: {head}; pass by= or name labels")
            self._writer.writerow(head)
        if names != self.names:
            raise ColumnFormatError(f"{where}: the columns are {names}, before {self.names}")
        cells += [self._label(each[t], where) for each in labels if t < len(each)]
        for cell in cells:
            if not isinstance(cell, str):
                raise TypeError(f"{where}: expected str, got {type(cell).__name__}: {cell!r:.60}")
        if self.by is None and not any(cells):
            raise ColumnFormatError(f"{where}: a row of empty cells would end the sequence")
        return cells

    def _label(self, label: Any, where: str) -> Any:
        if label is not UNLABELED:
            if self.unlabeled is not None and label == self.unlabeled:
                raise ColumnFormatError(
                    f"{where}: the label {label!r} is what stands for UNLABELED; pass another mark"
                )
            return label
        if self.unlabeled is None:
            raise ColumnFormatError(f"{where}: the label is UNLABELED; pass unlabeled='_'")
        return self.unlabeled

    def _joined(self, s: int, rows: list[list[str]]) -> list[str]:
        """Return the cells of a whole sequence."""
        columns = [list(column) for column in zip(*rows, strict=True)]
        within = str(self.within)
        if within == JSON:
            return [json.dumps(column, ensure_ascii=False) for column in columns]
        joined = [within.join(column) for column in columns]
        for column, cell in zip(columns, joined, strict=True):
            if _parts(cell, within, "") != column:
                raise ColumnFormatError(
                    f"sequence {s}: a cell holds {within!r}, or is empty; pass within='json'"
                )
        return joined


def _check_sep(sep: str) -> None:
    if not isinstance(sep, str) or len(sep) != 1 or sep in '\r\n"':
        raise ValueError(f"sep has to be one character other than a newline or quote, got {sep!r}")
