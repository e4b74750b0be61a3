"""``crfkit demo``."""

from __future__ import annotations

import argparse
import os

from crfkit._params import check_number
from crfkit.cli._common import user_errors
from crfkit.datasets import load_ingredients
from crfkit.io import write_columns
from crfkit.io.streams import open_output

TEMPLATE = """\
# One template a line: functions of columns at offsets, joined by |. %x[0,0] is column 0 here.
lower(%x[0,0])
lower(%x[-1,0])
lower(%x[1,0])
lower(%x[-1,0])|lower(%x[0,0])
lower(%x[0,0])|lower(%x[1,0])
suffix(lower(%x[0,0]), 2)
suffix(lower(%x[0,0]), 3)
shape(%x[-1,0])
shape(%x[0,0])
shape(%x[1,0])
bos()
eos()
"""


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage, so that any later error is shown as the defect it is."""
    check_number("c2", arguments.c2)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    if arguments.write is not None:
        with user_errors():
            write_files(arguments.write)
        return
    from crfkit.demo import run_demo

    run_demo(n_jobs=arguments.jobs, c2=arguments.c2)


def write_files(folder: str) -> None:
    """Write the ingredients in columns, four fifths to learn from, and templates for them."""
    corpus = load_ingredients()
    pairs = zip(corpus.tokens, corpus.tags, strict=True)
    labeled = [list(zip(tokens, tags, strict=True)) for tokens, tags in pairs]
    n_train = len(labeled) * 4 // 5
    os.makedirs(folder, exist_ok=True)
    write_columns(os.path.join(folder, "train.txt"), labeled[:n_train])
    write_columns(os.path.join(folder, "test.txt"), labeled[n_train:])
    raw = [[(token,) for token in tokens] for tokens in corpus.tokens[n_train:]]
    write_columns(os.path.join(folder, "raw.txt"), raw)
    with open_output(os.path.join(folder, "template.txt")) as write:
        write(TEMPLATE)
