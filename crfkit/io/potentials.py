"""Numbers of files of factor graphs: read token by token, written so that scores come back."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np

from crfkit._types import FloatArray
from crfkit.graphs.factors import Factor
from crfkit.io.streams import ColumnFormatError, Source, iter_lines, source_name

# Longer numbers hold more digits than a double, of a score next to 0.
LONG = 25
# Digits that a double needs, and some.
DIGITS = 20
LARGEST_TABLE = 1 << 28
# Exponents of larger potentials, and of smaller ones, are out of reach.
LARGEST_SCORE = 1e15


class GraphFormatError(ColumnFormatError):
    """A file of a factor graph, or a random field to be written to one, breaks the format.

    The message names file and line, or the score, and what is wrong.
    """


class NumberReader:
    """The numbers of a file in turn, whatever the lines are; errors name the line."""

    def __init__(self, source: Source, comment: str | None = None) -> None:
        self.name = source_name(source)
        self._tokens: list[str] = []
        self._starts: list[int] = []  # which token each line starts with
        for line in iter_lines(source, "utf-8"):
            self._starts.append(len(self._tokens))
            if comment is None or not line.startswith(comment):
                self._tokens += line.split()
        self._next = 0

    def __len__(self) -> int:
        return len(self._tokens) - self._next

    def error(self, message: str, token: int | None = None) -> GraphFormatError:
        """Return an error about a token, the last one by default."""
        place = max(self._next - 1 if token is None else token, 0)
        line = max(bisect_right(self._starts, place), 1)
        return GraphFormatError(f"{self.name}, line {line}: {message}")

    def words(self, count: int, what: str) -> list[str]:
        """Return the next tokens."""
        if len(self) < count:
            found = len(self)
            self._next = len(self._tokens)
            raise self.error(f"the file ends where {what} should be: {found} of {count} are there.")
        self._next += count
        return self._tokens[self._next - count : self._next]

    def integers(self, count: int, what: str, least: int = 0, most: int = 2**31) -> list[int]:
        """Return the next whole numbers, none of which is below or above limits."""
        words = self.words(count, what)
        for place, word in enumerate(words):
            if not (word.isascii() and word.isdigit()) or not least <= int(word) <= most:
                raise self.error(
                    f"{what}: {word!r} is no whole number from {least} to {most}.",
                    self._next - count + place,
                )
        return [int(word) for word in words]

    def integer(self, what: str, least: int = 0, most: int = 2**31) -> int:
        """Return the next whole number."""
        return self.integers(1, what, least, most)[0]

    def scores(self, count: int, what: str) -> FloatArray:
        """Return the logarithms of the next potentials."""
        words = self.words(count, what)
        scores = np.empty(count)
        for place, word in enumerate(words):
            try:
                scores[place] = _score(word)
            except ValueError:
                raise self.error(
                    f"{what}: {word!r} is no potential; it must be a number, not below 0.",
                    self._next - count + place,
                ) from None
        return scores

    def scope(self, f: int, n_variables: int) -> list[int]:
        """Return the next variables, after their number, no one twice."""
        count = self.integer(f"the number of variables of factor {f}")
        scope = self.integers(count, f"the variables of factor {f}", most=n_variables - 1)
        if len(set(scope)) != len(scope):
            raise self.error(f"factor {f} has a variable twice: {scope}.")
        return scope

    def end(self) -> None:
        """Raise an error if something is left."""
        if len(self):
            [word] = self.words(1, "a number")
            raise self.error(f"{word!r} stands after the end; there must be nothing more.")


def _score(word: str) -> float:
    """Return the logarithm of a potential; ValueError if it is none."""
    if "_" in word or not word.isascii():
        raise ValueError
    potential = float(word)
    if word.lower().lstrip("+-").startswith(("inf", "nan")):
        raise ValueError
    if 1e-300 < potential < math.inf and len(word) < LONG:
        return math.log(potential)
    exact = Decimal(word)
    if exact < 0:
        raise ValueError
    return float(exact.ln(_context(len(word)))) if exact else -math.inf


def _context(digits: int) -> Context:
    return Context(prec=DIGITS + digits, rounding=ROUND_HALF_EVEN, Emax=10**15, Emin=-(10**15))


def potential_text(score: float) -> str:
    """Return the exponential of a score; its logarithm is the score, to the last bit.

    Scores that no potential in double precision stands for (below -690, above 709, next to 0) are
    written with a larger exponent, or with more digits. Other programs round them.
    GraphFormatError if a score is beyond `LARGEST_SCORE`.
    """
    if score == -math.inf:
        return "0"
    if abs(score) > LARGEST_SCORE:
        raise GraphFormatError(
            f"the score {score!r} has no potential that can be written: scores must be between "
            f"{-LARGEST_SCORE:g} and {LARGEST_SCORE:g}."
        )
    if abs(score) < 690.0:
        potential = math.exp(score)
        near = [float(f"{potential:.{digits}g}") for digits in (15, 16, 17)]
        near += [math.nextafter(potential, 0.0), math.nextafter(potential, math.inf)]
        for each in near:
            if math.log(each) == score:
                return repr(each)
    exact = Decimal(score)
    return str(exact.exp(_context(max(LONG - DIGITS, -exact.adjusted()))))


def numbered(factors: Sequence[Factor], n_nodes: int, sizes: Sequence[int]) -> list[Factor]:
    """Return the factors, and one of zeros for each variable from 0 that no factor has."""
    named = {node for factor in factors for node in factor.nodes}
    lonely = [node for node in range(n_nodes) if node not in named]
    return [*factors, *(Factor.of((node,), np.zeros(sizes[node])) for node in lonely)]
