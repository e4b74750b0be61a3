"""Functions of a string that templates may name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache, partial
from keyword import iskeyword
from numbers import Real
from string import ascii_lowercase, ascii_uppercase
from typing import Any, NamedTuple

import numpy as np

from crfkit.features.attributes import check_name, finite_number

TEXT = "text"  # gives a string
FLAG = "flag"  # gives True or False
ITEMS = "items"  # gives a list of strings
ANY = "any"  # a function of the user: None, a string, a boolean, a number, a list of strings

Call = tuple[str, tuple[Any, ...]]  # name and further arguments of a function
Calls = tuple[Call, ...]  # the innermost first
Functions = Mapping[str, Callable[[str], Any]]
Items = list[tuple[str | int, float]]  # a string, or FLAG_ITEM or NUMBER_ITEM, and its value
Attributes = list[tuple[str, float]]  # names and values


class Function(NamedTuple):
    """A function of a string: how it is called, what it gives, the numbers it takes."""

    call: Callable[..., Any]
    kind: str
    least: int = 0
    most: int = 0


def _kind(character: str) -> str:
    if character.isupper():
        return "X"
    if character.islower():
        return "x"
    return "d" if character.isdigit() else character


def shape(string: str) -> str:
    """Write X for upper case, x for lower case and d for digits; the rest stays: ``Xx-dd``."""
    return "".join(map(_kind, string))


def short_shape(string: str) -> str:
    """Return the shape with runs of one character written once."""
    full = shape(string)
    return "".join(c for c, before in zip(full, "\0" + full, strict=False) if c != before)


def ngrams(string: str, n: int, m: int | None = None) -> list[str]:
    """Return all substrings of `n`, or of `n` to `m`, characters."""
    sizes = range(n, min(len(string), n if m is None else m) + 1)
    return [string[i : i + size] for size in sizes for i in range(len(string) - size + 1)]


SUFFIXES = ("ing", "ogy", "ed", "s", "ly", "ion", "tion", "ity", "ies")


def spelling(string: str) -> list[str]:
    """Return which of the spellings that tell parts of speech of English a word has.

    They are those of Lafferty, McCallum and Pereira (2001): ``digit`` and ``upper``, whether it
    starts with one, ``hyphen``, whether it has one, and ``-ing``, ``-ogy``, ``-ed``, ``-s``,
    ``-ly``, ``-ion``, ``-tion``, ``-ity``, ``-ies``, how it ends, in upper case too.
    """
    first, low = string[:1], string.lower()
    told = {"digit": first.isdigit(), "upper": first.isupper(), "hyphen": "-" in string}
    return [name for name, is_so in told.items() if is_so] + [
        f"-{suffix}" for suffix in SUFFIXES if low.endswith(suffix)
    ]


# Classes of Wapiti's regular expressions, as the body of a set; the C locale knows ASCII only.
_CLASSES = {
    "a": "A-Za-z",
    "d": "0-9",
    "l": "a-z",
    "p": r"!-/:-@\[-`{-~",
    "s": r" \t\n\r\f\v",
    "u": "A-Z",
    "w": "A-Za-z0-9",
}


def _unit(text: str, i: int) -> tuple[str, int]:
    """Translate the character, dot or class at position `i`; return where the next one starts."""
    if text[i] in "*?":
        raise ValueError(f"{text[i]!r} follows no character; write \\{text[i]} for the character")
    if text[i] == "\\":
        if i + 1 == len(text):
            raise ValueError("the expression ends in a backslash")
        name = text[i + 1]
        if name.lower() in _CLASSES:
            return f"[{'^' if name.isupper() else ''}{_CLASSES[name.lower()]}]", i + 2
        return re.escape(name), i + 2
    return ("." if text[i] == "." else re.escape(text[i])), i + 1


@lru_cache(maxsize=256)
def wapiti_regex(text: str) -> re.Pattern[str]:
    r"""Translate a regular expression of Wapiti.

    It knows ``.``, the classes ``\a \d \l \p \s \u \w`` and their complements in upper case,
    ``^`` first, ``$`` last, ``*`` (as few as possible) and ``?`` (one if possible). All else
    stands for itself. ValueError if ``*`` or ``?`` follows nothing, or a backslash is the last.
    """
    out, i = (r"\A", 1) if text.startswith("^") else ("", 0)
    while i < len(text):
        if text[i] == "$" and i + 1 == len(text):
            out += r"\Z"
            break
        unit, i = _unit(text, i)
        repeat = text[i : i + 1]
        if repeat in ("*", "?"):
            unit += "*?" if repeat == "*" else "?"
            i += 1
        out += unit
    return re.compile(out, re.DOTALL)


def wapiti_test(string: str, regex: str) -> str:
    """Return whether an expression of Wapiti is found, as ``true`` or ``false``."""
    return "true" if wapiti_regex(regex).search(string) else "false"


def wapiti_match(string: str, regex: str) -> str:
    """Return what an expression of Wapiti finds first, an empty string if nothing."""
    found = wapiti_regex(regex).search(string)
    return found.group() if found else ""


FUNCTIONS = {
    "lower": Function(str.lower, TEXT),
    "shape": Function(shape, TEXT),
    "short_shape": Function(short_shape, TEXT),
    "prefix": Function(lambda string, n: string[:n], TEXT, 1, 1),
    "suffix": Function(lambda string, n: string[-n:], TEXT, 1, 1),
    "ngrams": Function(ngrams, ITEMS, 1, 2),
    "spelling": Function(spelling, ITEMS),
    "digits": Function(partial(re.compile(r"\d").sub, "0"), TEXT),
    "length": Function(lambda string: str(len(string)), TEXT),
    "is_title": Function(str.istitle, FLAG),
    "is_upper": Function(str.isupper, FLAG),
    "is_lower": Function(str.islower, FLAG),
    "is_digit": Function(str.isdigit, FLAG),
    "is_alpha": Function(str.isalpha, FLAG),
}

_LOWERED = str.maketrans(ascii_uppercase, ascii_lowercase)  # as Wapiti does in the C locale

# Not for expressions: other syntaxes are translated to them.
HIDDEN = {
    "is true": Function(lambda string: string == "True", FLAG),
    "ascii lower": Function(lambda string: string.translate(_LOWERED), TEXT),
    "wapiti test": Function(wapiti_test, TEXT),
    "wapiti match": Function(wapiti_match, TEXT),
}


def checked_functions(
    functions: Mapping[str, Callable[..., Any]] | None, reserved: Iterable[str]
) -> dict[str, Callable[..., Any]]:
    """Return functions of the user; raise if one cannot be called or named in a template."""
    for name, function in (functions or {}).items():
        if name in FUNCTIONS or name in reserved:
            raise ValueError(f"functions: {name!r} is the name of a function there is.")
        if not str(name).isidentifier() or iskeyword(name):
            raise ValueError(f"functions: {name!r} cannot be the name of a function.")
        if not callable(function):
            raise TypeError(f"functions: {name!r} is {function!r}, which cannot be called.")
    return dict(functions or {})


def find_function(name: str, user: Functions) -> Function:
    """Return a function by name; ValueError if there is none."""
    if name in user:
        return Function(user[name], ANY)
    known = FUNCTIONS.get(name) or HIDDEN.get(name)
    if known is None:
        known_names = sorted([*FUNCTIONS, *user])
        close = get_close_matches(name.lower(), known_names, n=1)
        meant = f": did you mean {close[0]!r}? There are" if close else "; choose one of"
        raise ValueError(
            f"there is no function {name!r}{meant} {known_names}, or give it: "
            f"functions={{{name!r}: ...}}"
        )
    return known


def result_kind(calls: Calls, user: Functions) -> str:
    """Return what a chain of calls gives."""
    return find_function(calls[-1][0], user).kind if calls else TEXT


def evaluate(calls: Calls, user: Functions, string: str) -> Any:
    """Apply the functions of a chain to a string, the innermost first; None stays None."""
    value: Any = string
    for name, arguments in calls:
        if value is None:
            break
        if not isinstance(value, str):
            raise TypeError(
                f"{name}() needs a string but the function within it gave {value!r} for {string!r}"
            )
        try:
            value = find_function(name, user).call(value, *arguments)
        except Exception as error:
            error.add_note(f"in the function {name}() of a template, for the string {value!r}")
            raise
    return value


# Numbers of what has no text of its own among the items of a function.
NUMBER_ITEM = 0
FLAG_ITEM = 1


def as_items(result: Any, source: str) -> Items:
    """Return what a function of the user gave as pairs (item, value); raises if it is none."""
    if result is None:
        return []
    if isinstance(result, str):
        return [(check_name(result), 1.0)]
    if isinstance(result, (bool, np.bool_)):
        return [(FLAG_ITEM, float(result))]
    if isinstance(result, Real):
        return [(NUMBER_ITEM, finite_number(source, result))]
    if isinstance(result, (list, tuple, set, frozenset)) and all(
        isinstance(item, str) for item in result
    ):
        ordered = sorted(result) if isinstance(result, (set, frozenset)) else result
        return [(check_name(item), 1.0) for item in ordered]
    raise TypeError(
        f"{source} gave {result!r} of type {type(result).__name__}; a function must give a string, "
        "a boolean, a number, None or a list of strings"
    )


def attributes_of(lead: str, joint: str, seps: Sequence[str], cells: Sequence[Items]) -> Attributes:
    """Return the attributes that a template makes of the items of its cells.

    Those of one cell are `lead`, or ``lead + joint + item + seps[0]``, with the value of the item;
    those of several cells all ``lead + item + seps[0] + item + seps[1] ...``, with the value 1.
    TypeError if one of several items is a number.
    """
    if len(cells) == 1:
        return [
            (lead if isinstance(item, int) else lead + joint + item + seps[0], value)
            for item, value in cells[0]
        ]
    texts = [lead]
    for items, sep in zip(cells, seps, strict=True):
        texts = [text + _spelled(lead, *item) + sep for text in texts for item in items]
    return [(text, 1.0) for text in texts]


def _spelled(lead: str, item: str | int, value: float) -> str:
    """Return the text of an item within a conjunction."""
    if item == NUMBER_ITEM:
        raise TypeError(
            f"template {lead.removesuffix('=')!r}: a function gave the number {value:g} within a "
            "conjunction; let it give a string"
        )
    return str(bool(value)) if item == FLAG_ITEM else str(item)
