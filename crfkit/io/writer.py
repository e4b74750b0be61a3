"""Writing column files that read back as the same sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from crfkit.io.columns import ColumnFormatError, check_separator, is_blank
from crfkit.io.streams import Target, open_output


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
    if is_blank(sep.join(row), sep):
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


def _without_leading_mark(blocks: Iterator[str]) -> Iterator[str]:
    for index, block in enumerate(blocks):
        if index == 0 and block.startswith("\ufeff"):
            raise ColumnFormatError(
                "sequence 0, position 0: U+FEFF at the start of a file would read as a "
                "byte order mark; remove it"
            )
        yield block


def write_blocks(target: Target, blocks: Iterator[str]) -> None:
    """Write the text of each sequence; ColumnFormatError names one that cannot be encoded."""
    with open_output(target) as write:
        for index, block in enumerate(_without_leading_mark(blocks)):
            try:
                write(block)
            except UnicodeEncodeError as error:
                raise ColumnFormatError(
                    f"sequence {index}: {error.object[error.start : error.end]!r} cannot be "
                    f"encoded as {error.encoding}"
                ) from error


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
        A path (packed with gzip, xz or bzip2 if it ends in ``.gz``, ``.xz`` or ``.bz2``) or
        an open text or binary stream, which stays open. The encoding is UTF-8, except for a
        text stream, which has its own.
    sequences : iterable of iterable of sequence of str
        One row of cells per token. May be a generator: one sequence is held at a time.
    sep : str, default=" "
        One character between cells. With ``sep="\t"`` cells may be empty or hold blanks.

    Raises
    ------
    ColumnFormatError
        If a cell holds the separator or a newline, or is empty while a blank separates;
        if a sequence is empty; if rows differ in their number of columns; if a character
        cannot be encoded. The message names sequence, position and column (from 0).
    TypeError
        If a row is a str or a cell is not.
    ValueError
        If `sep` is unusable.

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
    check_separator(sep)
    write_blocks(target, _blocks(sequences, sep))
