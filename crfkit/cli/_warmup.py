"""``crfkit warmup``."""

from __future__ import annotations

import argparse


def check(arguments: argparse.Namespace) -> None:
    """Refuse names of which there are no kernels."""
    from crfkit.warmup import check_families

    check_families(arguments.only)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from crfkit.warmup import run as compile_kernels

    compile_kernels(arguments)
