"""The command line: ``crfkit demo``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from crfkit._params import check_number
from crfkit._version import __version__

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process if not given.

    Returns
    -------
    int
        Exit code: 0 done, 2 wrong usage, 130 interrupted by Ctrl-C.
    """
    arguments = _parser().parse_args(argv)
    try:
        arguments.check(arguments)
    except (TypeError, ValueError) as error:
        print(f"crfkit: {error}", file=sys.stderr)
        return EXIT_USAGE
    try:
        arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has seen enough; nothing is left to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="crfkit",
        description="Conditional random fields and other structured linear models for sequences.",
        epilog="exit codes: 0 done, 2 wrong usage, 130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"crfkit {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    demo = commands.add_parser(
        "demo",
        help="train a CRF on recipe ingredients, judge it and tag new lines",
        description="Train a CRF on the recipe ingredients that ship with crfkit, judge it on a "
        "held-out fifth, tag three new lines and show the strongest weights.",
    )
    demo.add_argument("--jobs", type=int, default=None, help="threads (default: 1; -1: all cores)")
    demo.add_argument("--c2", type=float, default=0.1, help="L2 penalty (default: %(default)s)")
    demo.set_defaults(check=_check_demo, run=_run_demo)
    return parser


def _check_demo(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage, so that any later error is shown as the defect it is."""
    check_number("c2", arguments.c2)
    if arguments.jobs == 0:
        raise ValueError("--jobs 0 has no meaning; use 1, a number of threads, or -1 for all.")


def _run_demo(arguments: argparse.Namespace) -> None:
    from crfkit.demo import run_demo  # only this command pays for the estimators

    run_demo(n_jobs=arguments.jobs, c2=arguments.c2)


if __name__ == "__main__":
    sys.exit(main())
