"""``crfkit features``."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from crfkit.cli._common import add_format, chosen_format, source, user_errors

_EPILOG = """\
examples:
  crfkit features train.txt.gz --template chunks.tpl | head
  crfkit features train.txt.gz --template chunks.tpl --count
  crfkit features train.txt.gz --template chunks.tpl > for-crfsuite.txt
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "features",
        help="show the attributes that templates make of a file",
        description="Print label and attributes of each token in CRFsuite's text format.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", help="labeled sequences (.gz, .xz, .bz2 are unpacked; -: stdin)")
    parser.add_argument("--template", help="feature templates (default: as `crfkit train`)")
    parser.add_argument("--count", action="store_true", help="print only how many there are")
    add_format(parser)
    parser.set_defaults(check=check, run=run)


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage."""
    if not chosen_format(arguments, arguments.data).has_columns:
        raise ValueError("--format crfsuite: such a file has its attributes already.")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from crfkit.cli import _models
    from crfkit.io import write_crfsuite_text

    data = chosen_format(arguments, arguments.data)
    with user_errors():
        labeled = data.read(source(arguments.data))
        width = len(labeled.X[0][0]) if labeled.X else 1
        packed = _models.make_features(arguments.template, data, width).fit_transform(labeled.X)
    steps = 0 if packed.transitions is None else packed.transitions.n_features
    if arguments.count:
        print(
            f"{packed.n_features:,} attributes, {steps:,} of transitions, in "
            f"{packed.n_tokens:,} tokens"
        )
        return
    if steps:
        message = (
            f"{steps:,} attributes of transitions are left out: the format has no place for them."
        )
        print(f"crfkit: warning: {message}", file=sys.stderr)
    with user_errors():
        write_crfsuite_text(sys.stdout, packed.to_dicts(), labeled.y)
