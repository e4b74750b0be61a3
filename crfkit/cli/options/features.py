"""Arguments of ``crfkit features``."""

from __future__ import annotations

import argparse

from crfkit.cli.options.common import DATA, add_format

HELP = "show the attributes that templates make of a file"
USAGE = "crfkit features DATA [--template FILE] [--count] [options]"
DESCRIPTION = "Print label and attributes of each token in CRFsuite's text format."
EPILOG = """\
examples:
  crfkit features train.txt.gz --template chunks.tpl | head
  crfkit features train.txt.gz --template chunks.tpl --count
  crfkit features train.txt.gz --template chunks.tpl > for-crfsuite.txt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("data", help=DATA)
    parser.add_argument("--template", help="file or preset, as for `crfkit train`")
    parser.add_argument("--count", action="store_true", help="print only how many there are")
    add_format(parser)
