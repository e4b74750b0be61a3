"""Arguments of ``crfkit warmup``."""

from __future__ import annotations

import argparse

HELP = "compile kernels ahead of the first fit"
USAGE = "crfkit warmup [--only NAME ...] [--quiet]"
DESCRIPTION = """\
Compile kernels ahead of time and keep their machine code on disk, so that no later process waits
for that: once after installing, or when the image of a container is built.
"""
EPILOG = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    what = "chain (what the default estimator needs), solvers, online, margin, segments, "
    what += "templates, trees, second_order (default: all)"
    parser.add_argument("--only", nargs="+", metavar="NAME", help=what)
    parser.add_argument("--quiet", action="store_true", help="print nothing")
