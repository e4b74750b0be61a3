"""A parser of arguments that names what was probably meant."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

_CHOICE = re.compile(r"argument (.+?): invalid choice: '?(.*?)'? \(choose from (.*)\)")
_MISSING = "the following arguments are required"


class CommandParser(argparse.ArgumentParser):
    """Tells in one line what is wrong, and what was probably meant."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **settings)
        self._given: list[str] = []

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse arguments; those that are not known are an error of the command they follow."""
        self._given = list(sys.argv[1:] if args is None else args)
        found, unknown = super().parse_known_args(self._given, namespace)
        if unknown:
            self.error(self._unknown(unknown))
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Print how the command is used and what is wrong, and exit with 2."""
        choice = _CHOICE.fullmatch(message)
        if choice is not None:
            message = self._no_choice(*choice.groups())
        elif message.startswith(_MISSING):
            names = [given.partition("=")[0] for given in self._given if given.startswith("--")]
            strange = [name for name in names if not self._begins(name)]
            message += f"; {self._unknown(strange)}" if strange else ""
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: error: {message}\n")

    def _begins(self, name: str) -> bool:
        """Whether an option, or the beginning of one, has this name."""
        return any(option.startswith(name) for option in self._option_string_actions)

    def _unknown(self, unknown: Sequence[str]) -> str:
        options = [text for text in unknown if text.startswith("-")]
        if not options:
            return f"unexpected {' '.join(unknown)!r}; {self.prog} --help lists what there is"
        name = options[0].partition("=")[0]
        known = [option for option in self._option_string_actions if option.startswith("--")]
        hint = meant(name, known) or f"; {self.prog} --help lists all"
        return f"unknown option {name}{hint}"

    def _no_choice(self, argument: str, given: str, listed: str) -> str:
        choices = re.findall(r"[\w.-]+", listed)
        what = "command" if argument == "command" else argument.partition("/")[0]
        known = f"choose one of {', '.join(choices)}"
        return f"{what} {given!r} is not known{meant(given, choices, '; ' + known)}"


def meant(given: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a question for the known name that is most like a given one, or something else."""
    from difflib import get_close_matches  # only errors need it

    close = get_close_matches(given.lower(), list(known), n=1)
    return f"; did you mean {close[0]}?" if close else otherwise
