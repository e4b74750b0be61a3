"""``crfkit warmup``."""

from __future__ import annotations

import argparse

HELP = "compile kernels ahead of the first fit"
DESCRIPTION = """\
Compile kernels ahead of time and keep their machine code on disk, so that no later process waits
for that: once after installing, or when the image of a container is built.
"""
EPILOG = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        help="chain (what the default estimator needs), solvers, online, margin, segments, "
        "templates, trees, second_order (default: all)",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing")


def check(arguments: argparse.Namespace) -> None:
    """Refuse names of which there are no kernels."""
    from crfkit.warmup import check_families

    check_families(arguments.only)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from crfkit.warmup import run as compile_kernels

    compile_kernels(arguments)
