"""Options that several commands have."""

from __future__ import annotations

import argparse

from crfkit.cli.options.names import FORMATS, TOKENIZERS
from crfkit.cli.options.parser import meant

DATA = "labeled sequences (.gz, .xz, .bz2, .zst, .zip are unpacked; -: stdin)"


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the number of threads."""
    parser.add_argument("--jobs", type=int, metavar="N", help="threads (default: 1; -1: all cores)")


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
        from encodings.aliases import aliases  # only errors need it

        question = meant(name, [key.replace("_", "-") for key in sorted({*aliases.values()})])
        raise argparse.ArgumentTypeError(f"{name!r} is no encoding of text{question}") from None
    return name


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add what tells how a file is read."""
    add = parser.add_argument_group("file format").add_argument
    what = "columns: a token a line, blank lines between sequences; conllu; csv; jsonl; tokens: a "
    what += "sequence a line, tokens split at blanks; text: a text a line; crfsuite: label TAB "
    what += "attribute TAB ... (default: by the ending .conllu, .csv, .jsonl; else columns)"
    add("--format", choices=FORMATS, help=what, metavar="NAME")
    what = "the column of the labels: its name, or a number counted from 0, negative from the end "
    what += "(default: -1; of CoNLL-U upos)"
    add("--label", metavar="COLUMN", help=what)
    add(
        "--sep",
        metavar="CHARACTER",
        help="what cells are split at (default: blanks; csv: ,; of files .tsv tabs)",
    )
    add("--tabs", action="store_true", help="cells are split at tabs only, and may hold blanks")
    what = "csv: whether the first row has the names of columns, also of what is printed (default: "
    what += "--header)"
    add("--header", action=argparse.BooleanOptionalAction, help=what)
    what = "csv: the column that tells sequences apart (default: blank rows do)"
    add("--by", metavar="COLUMN", help=what)
    what = f"how text becomes tokens: {', '.join(TOKENIZERS)}, or a regular expression of a token "
    what += "(default: that of the model, or words)"
    add("--tokenizer", metavar="NAME", help=what)
    what = "of the data that are read (default: %(default)s)"
    add("--encoding", type=_text_encoding, default="utf-8", help=what)


def add_unknown(parser: argparse.ArgumentParser) -> None:
    """Add what marks labels that are not known."""
    add = parser.add_argument_group("labels that are known in part").add_argument
    what = "what stands for a label that is not known, such as _"
    add("--unlabeled", metavar="MARK", help=what)
    what = "what stands between labels of which one is right, such as | in NOUN|VERB"
    add("--alternatives", metavar="MARK", help=what)
