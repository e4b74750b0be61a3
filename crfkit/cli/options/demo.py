"""Arguments of ``crfkit demo``."""

from __future__ import annotations

import argparse

from crfkit.cli.options.common import add_jobs

HELP = "train a CRF on recipe ingredients, judge it and tag new lines"
USAGE = "crfkit demo [--write FOLDER] [options]"
DESCRIPTION = """\
Train a CRF on the recipe ingredients that ship with crfkit, judge it on a held-out fifth, tag three
new lines and show the strongest weights.
"""
EPILOG = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_jobs(parser)
    parser.add_argument("--c2", type=float, default=0.1, help="L2 penalty (default: %(default)s)")
    what = "instead write the ingredients as files to try the other commands on: train.txt, "
    what += "test.txt, raw.txt (without labels) and template.txt"
    parser.add_argument("--write", metavar="FOLDER", help=what)
