"""Reading and writing of column files, one token per line (public names, nothing else)."""

from crfkit.io.columns import ColumnFormatError
from crfkit.io.reader import iter_columns, read_columns, read_conll
from crfkit.io.writer import write_columns

__all__ = ["ColumnFormatError", "iter_columns", "read_columns", "read_conll", "write_columns"]
