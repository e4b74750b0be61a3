"""What the commands share: errors, warnings, files that are read and written."""

from __future__ import annotations

import os
import re
import stat
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from crfkit._progress import say

# Arguments of Python in messages that the commands have as options.
_NAMES = "encoding|sep|by|label|scheme|tokenizer|unlabeled|alternatives|header"
_ARGUMENT = re.compile(rf"(?<!, )\b({_NAMES})='([^']*)'|`({_NAMES})`")

_READERS = "--format columns, plain text by --format text or tokens"
_READER = re.compile(r"read_columns\([^)]*\)")


class CommandError(Exception):
    """Something the user can mend: a file that cannot be read, used or written."""


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn errors of files and data into CommandError: no traceback is shown for them."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError, TypeError) as error:
        raise CommandError(str(error)) from error


def describe_error(error: Exception) -> str:
    """Return a message for the user."""
    cause = error.__cause__ if isinstance(error, CommandError) else error
    if isinstance(cause, OSError) and cause.strerror:
        place = "" if cause.filename is None else f"{os.fsdecode(cause.filename)}: "
        return place + cause.strerror
    if isinstance(cause, UnicodeEncodeError):
        text = cause.object[cause.start : cause.end]
        return (
            f"standard output is {cause.encoding} and cannot hold {text!r}; set "
            "PYTHONIOENCODING=utf-8, or write to a file with --output where there is one"
        )
    return _ARGUMENT.sub(_as_option, _READER.sub(_READERS, str(error)))


def _as_option(found: re.Match[str]) -> str:
    """Return an argument of Python as one writes it on the command line."""
    name, value, alone = found.groups()
    if alone is not None:
        return f"--{alone}"
    return f"--{name} {value}" if re.fullmatch(r"[\w-]+", value) else f"--{name} '{value}'"


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings as one line on standard error, without a source line."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        say(f"crfkit: warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def is_file(stream: Any) -> bool:
    """Whether a stream is a file, and no pipe, whose reader may print on the terminal, too."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # it is no stream of the system
        return False


def check_target(option: str, path: str, read: Iterable[str | None] = ()) -> None:
    """Raise CommandError if no file can be written at a path, ValueError if it is one of `read`."""
    if not path:
        raise ValueError(f"{option} has no file name.")
    folder = os.path.dirname(os.path.realpath(path))
    special = os.path.exists(path) and not os.path.isfile(path)  # a pipe is not replaced
    if os.path.isdir(path) or not os.access(path if special else folder, os.W_OK):
        raise CommandError(f"{option} {path}: no file can be written there.")
    for other in filter(os.path.isfile, filter(None, read)):
        if os.path.isfile(path) and os.path.samefile(other, path):
            raise ValueError(f"{option} {path} would replace a file that is read.")


def source(path: str) -> Any:
    """Return what to read: a path, or standard input for ``-``."""
    if path != "-":
        return path
    if sys.stdin is None:
        raise CommandError("standard input is closed; name a file.")
    if sys.stdin.isatty():
        print("reading from the terminal; Ctrl-D ends the input", file=sys.stderr)
    return sys.stdin.buffer
