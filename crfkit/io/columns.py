"""The format of column files: errors, separators and blank lines."""

from __future__ import annotations

import re

# Only blanks and tabs separate: Unicode's other white space (a no-break space in "10 000", a
# vertical tab in a scraped page) belongs to the token, or a file would not survive a round trip.
_RUN_OF_BLANKS = re.compile("[ \t]+")


class ColumnFormatError(ValueError):
    """A column file, or the sequences to be written to one, break the format.

    The message names the place (file and line, or sequence, position and column) and a remedy.
    """


def check_separator(sep: str | None) -> None:
    """Raise ValueError unless `sep` is None or one character that does not end a line."""
    if sep is not None and (len(sep) != 1 or sep in "\r\n"):
        raise ValueError(f"sep has to be None or one character other than a newline, got {sep!r}")


def is_blank(line: str, sep: str | None) -> bool:
    r"""Whether `line` ends a sequence. With ``sep="\t"`` a line of tabs is a row of empty cells."""
    return not line.strip(" " if sep == "\t" else " \t")


def split_row(line: str, sep: str | None) -> tuple[str, ...]:
    """Return the cells of a line that is not blank."""
    if sep is None:
        return tuple(_RUN_OF_BLANKS.split(line.strip(" \t")))
    return tuple(line.split(sep))
