"""``crfkit evaluate``."""

from __future__ import annotations

import argparse
from typing import Any

from crfkit.cli._common import add_format, add_jobs, check_jobs, source, user_errors
from crfkit.io import read_columns
from crfkit.metrics import (
    conlleval_report,
    entity_classification_report,
    flat_classification_report,
)

_EPILOG = """\
examples:
  crfkit evaluate test.txt --model chunks.crfkit
  crfkit tag chunks.crfkit test.txt | crfkit evaluate
  crfkit evaluate tagged.txt --report entities --scheme IOB2
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "evaluate",
        help="judge a model, or labels that were predicted already",
        description="Compare labels with the true ones. With --model the file is tagged first; "
        "without, its last two columns are the true and the predicted labels.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", nargs="?", default="-", help="labeled sequences (default: stdin)")
    parser.add_argument("--model", help="a model file of crfkit or CRFsuite")
    parser.add_argument(
        "--report",
        choices=("conlleval", "entities", "tokens"),
        default="conlleval",
        help="the text of the conlleval script, entities by a strict tag scheme, or single labels "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--scheme",
        default="IOB2",
        help="tag scheme of --report entities: IOB1, IOB2, IOE1, IOE2, IOBES, IO (default: "
        "%(default)s)",
    )
    parser.add_argument("--allow", action="append", default=[], metavar="MODULE:FUNCTION",
                        help="let the model use this function of yours")  # fmt: skip
    add_jobs(parser)
    add_format(parser)
    parser.set_defaults(check=check_jobs, run=run)


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
        _print_report(truth, [[row[-1] for row in sequence] for sequence in rows], arguments)


def judge(path: str, data_path: str, arguments: argparse.Namespace) -> None:
    """Print the report of a model on a file of labeled sequences."""
    from crfkit.cli import _models  # estimators are imported only by commands that need them

    model = _models.open_model(path, getattr(arguments, "allow", ()))
    model.crf.set_params(n_jobs=arguments.jobs)
    with user_errors():
        labeled = model.data_format(arguments, data_path).read(source(data_path))
        _print_report(labeled.y, model.crf.predict(model.pack(labeled.X)), arguments)


def _print_report(truth: Any, predicted: Any, arguments: argparse.Namespace) -> None:
    kind = getattr(arguments, "report", "conlleval")
    if kind == "tokens":
        print(flat_classification_report(truth, predicted, digits=3))
    elif kind == "entities":
        print(entity_classification_report(truth, predicted, mode="strict",
                                           scheme=arguments.scheme, digits=4))  # fmt: skip
    else:
        print(conlleval_report(truth, predicted))
