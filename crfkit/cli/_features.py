"""``crfkit features``."""

from __future__ import annotations

import argparse
import sys

from crfkit.cli import _models
from crfkit.cli._common import source, user_errors
from crfkit.cli.formats import chosen_format
from crfkit.io import write_crfsuite_text


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage."""
    if not chosen_format(arguments, arguments.data).has_columns:
        raise ValueError("--format crfsuite: such a file has its attributes already.")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    data = chosen_format(arguments, arguments.data)
    with user_errors():
        labeled = data.read(source(arguments.data))
        width = len(labeled.X[0][0]) if labeled.X else 1
        packed = _models.make_features(arguments.template, data, width).fit_transform(labeled.X)
    steps = 0 if packed.transitions is None else packed.transitions.n_features
    if arguments.count:
        counts = f"{packed.n_features:,} attributes, {steps:,} of transitions"
        print(f"{counts}, in {packed.n_tokens:,} tokens")
        return
    if steps:
        left_out = "attributes of transitions are left out: the format has no place for them."
        print(f"crfkit: warning: {steps:,} {left_out}", file=sys.stderr)
    with user_errors():
        write_crfsuite_text(sys.stdout, packed.to_dicts(), labeled.y)
