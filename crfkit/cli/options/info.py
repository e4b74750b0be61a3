"""Arguments of ``crfkit info``."""

from __future__ import annotations

import argparse

from crfkit.cli.options.common import add_allow

HELP = "show what a model file holds"
USAGE = "crfkit info MODEL [--top N] [--json]"
DESCRIPTION = "Show versions, parameters, labels, sizes and the strongest weights."
EPILOG = "examples:\n  crfkit info m.crfkit --top 20\n  crfkit info model.crfsuite --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("model", help="a model file of crfkit or CRFsuite")
    what = "how many weights (default: 10)"
    parser.add_argument("--top", type=int, default=10, metavar="N", help=what)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_allow(parser)
