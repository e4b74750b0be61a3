"""Templates a line: the files of CRF++ and of Wapiti."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from crfkit.features.expressions import CELL
from crfkit.features.functions import Calls, Functions, wapiti_regex
from crfkit.features.templates.plan import APPLY, INPUT, Cell, Plan, PlanBuilder

_COMMAND = re.compile(r'%([xtmXTM])\[(@?)([+-]?\d+),(\d+)(?:,"((?:[^"\\]|\\.)*)")?\]', re.DOTALL)


def template_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that are not blank, with their numbers from 1."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r")


def _plan(
    builder: PlanBuilder, lines: Iterable[tuple[int, str]], add: Callable[[PlanBuilder, str], None]
) -> Plan:
    """Return the plan of numbered lines; ValueError tells which of them is no template."""
    for number, line in lines:
        try:
            add(builder, line)
        except ValueError as error:
            problem = f"line {number} of the templates, {line!r}: {error}."
            raise ValueError(problem) from error
    return builder.finish()


def crfpp_plan(text: str, functions: Functions) -> Plan:
    """Translate the text of a CRF++ template.

    Lines that begin with ``U`` describe tokens, lines that begin with ``B`` transitions. A line
    ``B`` alone stands for weights of pairs of labels, which a CRF always has. Names of attributes
    are those of CRF++ (T. Kudo, CRF++: Yet Another CRF toolkit, the section on templates), also
    outside of the sequence: ``_B-1``, ``_B+1``. Unlike there, cells may be further than 4 tokens
    away. ValueError if a line is no template.
    """
    lines = ((n, s) for n, s in template_lines(text) if s != "B" and not s.startswith("#"))
    return _plan(PlanBuilder(functions), lines, _add_crfpp)


def _add_crfpp(builder: PlanBuilder, line: str) -> None:
    if line[0] not in "UB":
        raise ValueError("a template of CRF++ begins with U or B, a comment with #")
    pieces = CELL.split(line)  # text, offset, column, text, ...
    if any("%" in text for text in pieces[::3]):
        raise ValueError(
            "a % must begin a cell %x[row,column] of whole numbers (for %t, %m and %X use "
            "syntax='wapiti')"
        )
    cells = [
        builder.cell(builder.column(INPUT, int(column)), (), int(offset))
        for offset, column in zip(pieces[1::3], pieces[2::3], strict=True)
    ]
    builder.add(pieces[0], cells, pieces[3::3], line[0] == "B")


def wapiti_plan(text: str, functions: Functions) -> Plan:
    r"""Translate the text of a pattern file of Wapiti.

    ``u`` describes tokens, ``b`` transitions, ``*`` both; the letter is written small in names.
    All after a ``#`` is a comment. ``%x[offset,column]`` is a cell, ``%t[offset,column,"regex"]``
    tells ``true`` or ``false``, ``%m[offset,column,"regex"]`` is what was found; in upper case
    the result is written in lower case (the letters A to Z alone). An offset ``@1`` is the first
    token of the sequence, ``@-1`` the last. Outside of the sequence stand ``_x-1`` to ``_x-4``,
    ``_x-#`` and the same with ``+``, and regular expressions see those (T. Lavergne, O. Cappé,
    F. Yvon, Practical very large scale CRFs, 2010; manual page of Wapiti, section PATTERNS).
    Unlike there, ``.`` is a character and not a byte. A line ``b`` alone stands for weights of
    pairs of labels, which a CRF always has. ValueError if a line is no pattern.
    """
    lines = ((n, raw.split("#")[0].rstrip()) for n, raw in template_lines(text))
    builder = PlanBuilder(functions, APPLY, "_x", last=4)
    return _plan(builder, ((n, line) for n, line in lines if line), _add_wapiti)


def _add_wapiti(builder: PlanBuilder, line: str) -> None:
    kind, name = line[0].lower(), line[0].lower() + line[1:]
    if kind not in "ub*":
        raise ValueError("a pattern of Wapiti begins with u, b or *")
    cells, texts, end = [], [], 0
    for found in _COMMAND.finditer(name):
        texts.append(name[end : found.start()])
        cells.append(_cell(builder, found))
        end = found.end()
    texts.append(name[end:])
    if any("%" in text for text in texts):
        raise ValueError(
            'a % must begin a command %x[offset,column], %t[offset,column,"regex"] or '
            '%m[offset,column,"regex"] (an offset that is read from a cell, [*n,column], is not '
            "supported)"
        )
    if kind in "u*":
        builder.add(texts[0], cells, texts[1:], False)
    if kind in "b*" and len(name) > 1:
        builder.add(texts[0], cells, texts[1:], True)


def _cell(builder: PlanBuilder, found: re.Match[str]) -> Cell:
    command, absolute, offset, column, regex = found.groups()
    if (command in "xX") != (regex is None):
        raise ValueError(f"%{command} {'takes no' if regex else 'needs a'} regex")
    calls: Calls = ()
    if regex is not None:
        try:
            wapiti_regex(regex)
        except ValueError as error:
            raise ValueError(f"the regex {regex!r}: {error}") from error
        calls = (("wapiti test" if command in "tT" else "wapiti match", (regex,)),)
    if command.isupper():
        calls += (("ascii lower", ()),)
    return builder.cell(builder.column(INPUT, int(column)), calls, int(offset), bool(absolute))
