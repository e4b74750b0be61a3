"""Arguments of ``crfkit evaluate``."""

from __future__ import annotations

import argparse

from crfkit.cli.options.common import add_allow, add_format, add_jobs, add_unknown
from crfkit.cli.options.names import REPORTS

HELP = "judge a model, or labels that were predicted already"
USAGE = "crfkit evaluate [DATA] [--model FILE] [options]"
DESCRIPTION = """\
Compare labels with the true ones. With --model the file is tagged first; without, its last two
columns are the true and the predicted labels; of csv the column "predicted", if there is one, and
the one before it, or --label.
"""
EPILOG = """\
examples:
  crfkit evaluate test.txt --model chunks.crfkit
  crfkit tag chunks.crfkit test.txt | crfkit evaluate
  crfkit evaluate tagged.csv
  crfkit evaluate tagged.txt --report entities --scheme IOB2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("data", nargs="?", default="-", help="labeled sequences (default: stdin)")
    parser.add_argument("--model", metavar="FILE", help="a model file of crfkit or CRFsuite")
    what = "the text of the conlleval script, entities by a strict tag scheme, segments that tags "
    what += "or runs of equal labels are, or single labels (default: segments if the model is one "
    what += "of runs; else conlleval if all labels are tags such as B-NP, I-NP and O; else tokens)"
    parser.add_argument("--report", choices=REPORTS, help=what)
    what = "tag scheme of --report entities and segments: IOB1, IOB2, IOE1, IOE2, IOBES, IO ... "
    what += "(default: the model's; else for entities the one that the labels are of); for "
    what += "segments also runs (default for labels that are not all tags)"
    parser.add_argument("--scheme", metavar="NAME", help=what)
    add_allow(parser)
    add_jobs(parser)
    add_format(parser)
    add_unknown(parser)
