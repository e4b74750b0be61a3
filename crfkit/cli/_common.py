"""What the commands share: options, reading of files, errors."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from crfkit.cli._formats import FORMATS, DataFormat
from crfkit.io import known_labels
from crfkit.labels.schemes import get_scheme


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
    return str(error)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings as one line on standard error, without a source line."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"crfkit: warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the number of threads."""
    parser.add_argument("--jobs", type=int, help="threads (default: 1; -1: all cores)")


def chosen_scheme(name: str, others: tuple[str, ...]) -> str:
    """Return the name of a scheme of tags, or one of `others`, without regard to case."""
    if name.lower() in others:
        return name.lower()
    try:
        return get_scheme(name).name
    except ValueError as error:
        raise ValueError(", ".join((str(error), *others))) from None


def check_target(option: str, path: str) -> None:
    """Raise CommandError if no file can be written at a path."""
    folder = os.path.dirname(os.path.realpath(path))
    special = os.path.exists(path) and not os.path.isfile(path)  # a pipe is not replaced
    if os.path.isdir(path) or not os.access(path if special else folder, os.W_OK):
        raise CommandError(f"{option} {path}: no file can be written there.")


def add_allow(parser: argparse.ArgumentParser) -> None:
    """Add the functions that a model may use."""
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="let the model use this function of yours",
    )


def _text_encoding(name: str) -> str:
    try:
        "".encode(name)
    except LookupError:
        raise argparse.ArgumentTypeError(f"{name!r} is no encoding of text") from None
    return name


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add what tells how a file is read."""
    group = parser.add_argument_group("file format")
    group.add_argument(
        "--format",
        choices=sorted(FORMATS),
        help="columns: a token a line, blank lines between sequences; conllu; crfsuite: label TAB "
        "attribute TAB ... (default: conllu for *.conllu, else columns)",
    )
    group.add_argument(
        "--label",
        metavar="COLUMN",
        help="the column of the labels: a number counted from 0, negative from the end "
        "(default: -1), or a CoNLL-U field (default: upos)",
    )
    group.add_argument(
        "--tabs", action="store_true", help="columns are split at tabs only, and may hold blanks"
    )
    group.add_argument(
        "--encoding",
        type=_text_encoding,
        default="utf-8",
        help="of the data that are read (default: %(default)s)",
    )


def add_unknown(parser: argparse.ArgumentParser) -> None:
    """Add what marks labels that are not known."""
    group = parser.add_argument_group("labels that are known in part")
    group.add_argument(
        "--unlabeled", metavar="MARK", help="what stands for a label that is not known, such as _"
    )
    group.add_argument(
        "--alternatives",
        metavar="MARK",
        help="what stands between labels of which one is right, such as | in NOUN|VERB",
    )


def read_unknown(arguments: argparse.Namespace, y: list[list[str]]) -> list[list[Any]]:
    """Return labels of a file, in which what marks unknown ones is read."""
    return known_labels(y, unlabeled=arguments.unlabeled, alternatives=arguments.alternatives)


def chosen_format(arguments: argparse.Namespace, path: str) -> DataFormat:
    """Return how to read a file, by the options and its name."""
    stem = path
    for packed in (".gz", ".xz", ".bz2"):
        stem = stem.removesuffix(packed)
    name = arguments.format or ("conllu" if stem.endswith(".conllu") else "columns")
    separator = "\t" if arguments.tabs else None
    return FORMATS[name](label=arguments.label, sep=separator, encoding=arguments.encoding)


def source(path: str) -> Any:
    """Return what to read: a path, or standard input for ``-``."""
    if path != "-":
        return path
    if sys.stdin is None:
        raise CommandError("standard input is closed; name a file.")
    if sys.stdin.isatty():
        print("reading from the terminal; Ctrl-D ends the input", file=sys.stderr)
    return sys.stdin.buffer
