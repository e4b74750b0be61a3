"""The file formats of the command line, each with the same few methods."""

from __future__ import annotations

import argparse
from typing import Any

from crfkit.cli.formats.base import DataFormat as DataFormat
from crfkit.cli.formats.base import FormatOptions as FormatOptions
from crfkit.cli.formats.base import Labeled as Labeled
from crfkit.cli.formats.base import Words as Words
from crfkit.cli.formats.base import note_line as note_line
from crfkit.cli.formats.columns import ColumnFormat
from crfkit.cli.formats.conllu import ConlluFormat
from crfkit.cli.formats.crfsuite import CRFsuiteFormat
from crfkit.cli.formats.csv_tables import CSVFormat
from crfkit.cli.formats.jsonl import JSONLFormat
from crfkit.cli.formats.plain import TextFormat, TokenFormat
from crfkit.io import known_labels
from crfkit.labels.schemes import get_scheme

FORMATS: dict[str, type[DataFormat]] = {
    kind.name: kind
    for kind in (
        ColumnFormat, ConlluFormat, CSVFormat, JSONLFormat, TokenFormat, TextFormat, CRFsuiteFormat,
    )
}  # fmt: skip
_PACKED = (".gz", ".xz", ".bz2", ".zst", ".zip")
_ENDINGS = {".conllu": "conllu", ".csv": "csv", ".jsonl": "jsonl"}


def format_name(path: str) -> str | None:
    """Return the format that the name of a file tells, None where it tells none."""
    return next((name for end, name in _ENDINGS.items() if _stem(path).endswith(end)), None)


def _stem(path: str) -> str:
    stem = path.lower()
    for packed in _PACKED:
        stem = stem.removesuffix(packed)
    return stem


def separator(arguments: argparse.Namespace, path: str) -> str | None:
    r"""Return the character between cells, by options or the name of a file; ``\t`` is a tab."""
    if arguments.sep is None:
        return "\t" if arguments.tabs or _stem(path).endswith(".tsv") else None
    sep = str(arguments.sep).replace("\\t", "\t")
    if len(sep) != 1:
        raise ValueError(f"--sep {arguments.sep!r} must be one character; \\t is a tab.")
    return sep


def chosen_format(arguments: argparse.Namespace, path: str) -> DataFormat:
    """Return how to read a file, by the options and its name."""
    name = arguments.format or format_name(path) or "columns"
    options = FormatOptions(
        arguments.label, separator(arguments, path), arguments.encoding, arguments.header,
        arguments.tokenizer, arguments.by,
    )  # fmt: skip
    return FORMATS[name](options)


def chosen_scheme(name: str, others: tuple[str, ...]) -> str:
    """Return the name of a scheme of tags, or one of `others`, without regard to case."""
    if name.lower() in others:
        return name.lower()
    try:
        return get_scheme(name).name
    except ValueError as error:
        raise ValueError(", ".join((str(error), *others))) from None


def read_unknown(arguments: argparse.Namespace, y: list[list[str]]) -> list[list[Any]]:
    """Return labels of a file, in which what marks unknown ones is read."""
    return known_labels(y, unlabeled=arguments.unlabeled, alternatives=arguments.alternatives)
