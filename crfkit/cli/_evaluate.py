"""``crfkit evaluate``."""

from __future__ import annotations

import argparse
from typing import Any

from crfkit.cli._common import (
    add_allow,
    add_format,
    add_jobs,
    add_unknown,
    chosen_scheme,
    read_unknown,
    source,
    user_errors,
)
from crfkit.io import read_columns
from crfkit.labels.schemes import RUNS
from crfkit.labels.sequences import names_of
from crfkit.metrics import (
    conlleval_report,
    entity_classification_report,
    flat_classification_report,
    segment_classification_report,
)
from crfkit.metrics.segments import are_tags, are_typed_tags

HELP = "judge a model, or labels that were predicted already"
DESCRIPTION = """\
Compare labels with the true ones. With --model the file is tagged first; without, its last two
columns are the true and the predicted labels.
"""
EPILOG = """\
examples:
  crfkit evaluate test.txt --model chunks.crfkit
  crfkit tag chunks.crfkit test.txt | crfkit evaluate
  crfkit evaluate tagged.txt --report entities --scheme IOB2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("data", nargs="?", default="-", help="labeled sequences (default: stdin)")
    parser.add_argument("--model", help="a model file of crfkit or CRFsuite")
    parser.add_argument(
        "--report",
        choices=("conlleval", "entities", "segments", "tokens"),
        help="the text of the conlleval script, entities by a strict tag scheme, segments that "
        "tags or runs of equal labels are, or single labels (default: segments if the model is one "
        "of runs; else conlleval if all labels are tags such as B-NP, I-NP and O; else tokens)",
    )
    parser.add_argument(
        "--scheme",
        help="tag scheme of --report entities and segments: IOB1, IOB2, IOE1, IOE2, IOBES, IO ... "
        "(default: the model's; else IOB2 for entities); for segments also runs (default for "
        "labels that are not all tags)",
    )
    add_allow(parser)
    add_jobs(parser)
    add_format(parser)
    add_unknown(parser)


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage."""
    if arguments.scheme is not None:
        if arguments.report not in ("entities", "segments"):
            raise ValueError("--scheme is for --report entities and --report segments.")
        others = (RUNS,) if arguments.report == "segments" else ()
        arguments.scheme = chosen_scheme(arguments.scheme, others)
    if arguments.model is None:
        for option, own in (("label", None), ("format", "columns")):
            if getattr(arguments, option) not in (None, own):
                raise ValueError(
                    f"--{option} needs --model: without, the last two columns are read."
                )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    if arguments.model is not None:
        judge(arguments.model, arguments.data, arguments)
        return
    with user_errors():
        separator = "\t" if arguments.tabs else None
        rows = read_columns(source(arguments.data), sep=separator, encoding=arguments.encoding)
        if rows and len(rows[0][0]) < 2:
            raise ValueError("without --model the file needs two columns: true and predicted.")
        truth = [[row[-2] for row in sequence] for sequence in rows]
        truth = read_unknown(arguments, truth)
        _print_report(truth, [[row[-1] for row in sequence] for sequence in rows], arguments)


def judge(path: str, data_path: str, arguments: argparse.Namespace) -> None:
    """Print the report of a model on a file of labeled sequences."""
    from crfkit.cli import _models

    model = _models.open_model(path, getattr(arguments, "allow", ()))
    model.crf.set_params(n_jobs=arguments.jobs)
    with user_errors():
        data = model.data_format(arguments, data_path)
        labeled = data.read(source(data_path), model.width)
        predicted = [[*map(str, labels)] for labels in model.crf.predict(model.pack(labeled.X))]
        _print_report(
            read_unknown(arguments, labeled.y),
            predicted,
            arguments,
            getattr(model.crf, "scheme_", None),
        )


def _print_report(
    truth: Any, predicted: Any, arguments: argparse.Namespace, learned: str | None = None
) -> None:
    """Print the report that is asked for, else the usual one of such labels and models."""
    if not truth:
        raise ValueError("the file has no sequences: there is nothing to judge.")
    labels = names_of(*truth, *predicted)
    asked = getattr(arguments, "report", None)
    scheme = (asked and arguments.scheme) or learned  # that of `train` may be "auto"
    usual = "conlleval" if are_tags(labels) else "tokens"  # conlleval knows only tags
    kind = asked or ("segments" if learned == RUNS else usual)
    if kind == "tokens":
        report = flat_classification_report(truth, predicted, digits=3)
    elif kind == "segments":
        scheme = scheme or ("conll" if are_typed_tags(labels) else RUNS)
        report = segment_classification_report(truth, predicted, scheme=scheme, digits=4)
    elif kind == "entities":
        scheme = "IOB2" if scheme in (None, RUNS) else scheme
        report = entity_classification_report(
            truth, predicted, mode="strict", scheme=scheme, digits=4
        )
    else:
        report = conlleval_report(truth, predicted)
    print(report)
