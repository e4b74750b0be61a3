"""The command line: ``crfkit train | tag | evaluate | info | features | demo | warmup``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from crfkit._version import __version__
from crfkit.cli._common import CommandError, describe_error, plain_warnings
from crfkit.cli.options import demo, evaluate, features, info, tag, train, warmup
from crfkit.cli.options.parser import CommandParser

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


def main(argv: Sequence[str] | None = None, *, tells: bool = False) -> int:
    """Run the command line with these arguments, or those of the process; return its exit code.

    If it `tells`, a line is printed where kernels have to be compiled.
    """
    if sys.stdout is None:
        print("crfkit: standard output is closed.", file=sys.stderr)
        return EXIT_FAILURE
    try:
        return _run(_parser().parse_args(argv), tells)
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


def _run(arguments: argparse.Namespace, tells: bool) -> int:
    """Import what a command does, let it check its arguments, and run it."""
    command = import_module(f"crfkit.cli._{arguments.command}")
    if tells:
        import_module("crfkit.compiler.jit").tell_of_compiling()
    try:
        if getattr(arguments, "jobs", None) == 0:
            raise ValueError("--jobs 0 has no meaning; use 1, a number of threads, or -1 for all.")
        command.check(arguments)
    except (TypeError, ValueError) as error:
        print(f"crfkit: {error}", file=sys.stderr)
        return EXIT_USAGE
    with plain_warnings():
        command.run(arguments)
    sys.stdout.flush()
    return 0


def _abandon_output() -> None:
    """Let what is still to be printed go nowhere, so that the end of the process is quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="crfkit",
        description="Conditional random fields and other structured linear models for sequences.",
        epilog=_EPILOG,
        usage="crfkit COMMAND ... (crfkit COMMAND --help lists the options of a command)",
    )
    parser.add_argument("--version", action="version", version=f"crfkit {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    for command in (train, tag, evaluate, info, features, demo, warmup):
        name = command.__name__.rpartition(".")[2]
        own = commands.add_parser(
            name,
            prog=f"crfkit {name}",
            help=command.HELP,
            usage=command.USAGE,
            description=command.DESCRIPTION,
            epilog=command.EPILOG,
        )
        command.add_arguments(own)
    return parser
