"""Reading column files: one token per line, blank lines between sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from crfkit.io.columns import ColumnFormatError, check_separator, is_blank, split_row
from crfkit.io.streams import Source, iter_lines, source_name

Row = tuple[str, ...]


def _ragged(name: str, number: int, expected: int, found: int) -> ColumnFormatError:
    return ColumnFormatError(
        f"{name}, line {number}: expected {expected} columns as in the first row, found {found}; "
        f"mend the line, or check `sep` (cells that hold blanks need sep='\\t') and `comment`"
    )


def _rows(
    source: Source, sep: str | None, comment: str | None, encoding: str, skip_docstart: bool
) -> Iterator[Row]:
    """Yield the row of every line, an empty one where a sequence ends."""
    width = 0
    for number, line in enumerate(iter_lines(source, encoding), start=1):
        if comment is not None and line.startswith(comment):
            continue
        row = () if is_blank(line, sep) else split_row(line, sep)
        if skip_docstart and row[:1] == ("-DOCSTART-",):
            row = ()
        width = width or len(row)
        if row and len(row) != width:
            raise _ragged(source_name(source), number, width, len(row))
        yield row


def _selector(columns: Sequence[int] | None, name: str) -> Callable[[Row], Row]:
    def select(row: Row) -> Row:
        try:
            return tuple(row[column] for column in columns or ())
        except IndexError:
            raise ColumnFormatError(
                f"{name}: columns={list(columns or ())} asks for more than the {len(row)} columns "
                f"of the file; count from 0, or check `sep`"
            ) from None

    return tuple if columns is None else select


def _sequences(rows: Iterator[Row], select: Callable[[Row], Row]) -> Iterator[list[Row]]:
    sequence: list[Row] = []
    for row in rows:
        if row:
            sequence.append(select(row))
        elif sequence:
            yield sequence
            sequence = []
    if sequence:
        yield sequence


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
        A path (packed with gzip, xz or bzip2 if it ends in ``.gz``, ``.xz`` or ``.bz2``),
        an open text or binary stream (which stays open), or lines. A ``str`` is a path.
        Only ``\n`` and ``\r\n`` end a line; a byte order mark at the start is skipped.
    columns : sequence of int, optional
        The columns to keep, counted from 0 (negative: from the end), in this order.
        By default all.
    sep : str, optional
        One character between cells. By default any run of blanks and tabs; other white space
        (such as a no-break space) belongs to the cell. With ``sep="\t"`` cells may be empty
        or hold blanks.
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
    ColumnFormatError
        If a row has another number of columns than the first, `columns` asks for one that is
        not there, bytes cannot be decoded, or compressed data are damaged.
    ValueError
        If `sep` or `comment` is unusable.

    Examples
    --------
    >>> for sequence in iter_columns(["the DT\n", "dog NN\n", "\n", "yes UH\n"]):
    ...     print(sequence)
    [('the', 'DT'), ('dog', 'NN')]
    [('yes', 'UH')]
    """
    check_separator(sep)
    if comment == "":
        raise ValueError("comment has to be None or a non-empty str: '' would skip every line")
    rows = _rows(source, sep, comment, encoding, skip_docstart)
    return _sequences(rows, _selector(columns, source_name(source)))


def read_columns(
    source: Source,
    *,
    columns: Sequence[int] | None = None,
    sep: str | None = None,
    comment: str | None = None,
    encoding: str = "utf-8",
    skip_docstart: bool = False,
) -> list[list[tuple[str, ...]]]:
    """Read all sequences of a column file.

    Parameters
    ----------
    source, columns, sep, comment, encoding, skip_docstart
        As for :func:`iter_columns`, which reads lazily.

    Returns
    -------
    list of list of tuple of str, length S
        One tuple of cells per token; empty if `source` holds no token.

    Raises
    ------
    ColumnFormatError, ValueError
        As of :func:`iter_columns`.
    """
    return list(
        iter_columns(
            source,
            columns=columns,
            sep=sep,
            comment=comment,
            encoding=encoding,
            skip_docstart=skip_docstart,
        )
    )


def _label_index(label_column: int, width: int, name: str) -> int:
    if width < 2 or not -width <= label_column < width:
        raise ColumnFormatError(
            f"{name}: label_column={label_column} needs a file with that column and at least one "
            f"other, found {width} column(s); check `label_column` and `sep`"
        )
    return label_column % width


def read_conll(
    source: Source,
    *,
    label_column: int = -1,
    sep: str | None = None,
    comment: str | None = None,
    encoding: str = "utf-8",
    skip_docstart: bool = False,
) -> tuple[list[list[tuple[str, ...]]], list[list[str]]]:
    """Read a column file and set one column apart as the labels.

    Parameters
    ----------
    source, sep, comment, encoding, skip_docstart
        As for :func:`iter_columns`.
    label_column : int, default=-1
        The column of the labels, counted from 0 (negative: from the end).

    Returns
    -------
    tokens_rows : list of list of tuple of str, length S
        Per token the cells of all other columns, also if there is only one.
    labels : list of list of str, length S
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
    sequences = read_columns(
        source, sep=sep, comment=comment, encoding=encoding, skip_docstart=skip_docstart
    )
    if not sequences:
        return [], []
    label = _label_index(label_column, len(sequences[0][0]), source_name(source))
    rest = [[row[:label] + row[label + 1 :] for row in sequence] for sequence in sequences]
    return rest, [[row[label] for row in sequence] for sequence in sequences]
