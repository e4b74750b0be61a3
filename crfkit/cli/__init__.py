"""The command line: ``crfkit train | tag | evaluate | info | features | demo | warmup``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import crfkit.cli._demo as demo
import crfkit.cli._evaluate as evaluate
import crfkit.cli._features as features
import crfkit.cli._info as info
import crfkit.cli._tag as tag
import crfkit.cli._train as train
import crfkit.cli._warmup as warmup
from crfkit._version import __version__
from crfkit.cli._common import CommandError, describe_error, plain_warnings

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

_EPILOG = """
examples:
  crfkit train train.txt.gz --template chunks.tpl --model chunks.crfkit --jobs 2
  crfkit tag chunks.crfkit < raw.txt
  crfkit evaluate test.txt --model chunks.crfkit
  crfkit info chunks.crfkit

exit codes: 0 done, 1 a file cannot be read, used or written, 2 wrong usage, 130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments, or those of the process; return its exit code."""
    if sys.stdout is None:
        print("crfkit: standard output is closed.", file=sys.stderr)
        return EXIT_FAILURE
    try:
        return _run(_parser().parse_args(argv))
    except CommandError as error:
        print(f"crfkit: {describe_error(error)}", file=sys.stderr)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        _abandon_output()
        return 0
    except (OSError, UnicodeEncodeError) as error:
        print(f"crfkit: {describe_error(error)}", file=sys.stderr)
        _abandon_output()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    return EXIT_FAILURE


def _run(arguments: argparse.Namespace) -> int:
    try:
        if getattr(arguments, "jobs", None) == 0:
            raise ValueError("--jobs 0 has no meaning; use 1, a number of threads, or -1 for all.")
        arguments.check(arguments)
    except (TypeError, ValueError) as error:
        print(f"crfkit: {error}", file=sys.stderr)
        return EXIT_USAGE
    with plain_warnings():
        arguments.run(arguments)
    sys.stdout.flush()
    return 0


def _abandon_output() -> None:
    """Let what is still to be printed go nowhere, so that the end of the process is quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="crfkit",
        description="Conditional random fields and other structured linear models for sequences.",
        epilog=_EPILOG,
        formatter_class=raw,
    )
    parser.add_argument("--version", action="version", version=f"crfkit {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in (train, tag, evaluate, info, features, demo, warmup):
        own = commands.add_parser(
            command.__name__.rpartition("_")[2],
            help=command.HELP,
            description=command.DESCRIPTION,
            epilog=command.EPILOG,
            formatter_class=raw,
        )
        command.add_arguments(own)
        own.set_defaults(check=command.check, run=command.run)
    return parser
