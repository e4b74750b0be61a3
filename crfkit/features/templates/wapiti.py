"""Patterns of Wapiti."""

from __future__ import annotations

import re

from crfkit.features.functions import Calls, Functions, wapiti_regex
from crfkit.features.templates.cells import bad_line, template_lines
from crfkit.features.templates.plan import APPLY, INPUT, Cell, Plan, PlanBuilder

_COMMAND = re.compile(r'%([xtmXTM])\[(@?)([+-]?\d+),(\d+)(?:,"((?:[^"\\]|\\.)*)")?\]', re.DOTALL)


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
    pairs of labels, which a CRF always has.

    Raises
    ------
    ValueError
        If a line is no pattern.
    """
    builder = PlanBuilder(functions, APPLY, "_x", last=4)
    for number, raw in template_lines(text):
        line = raw.split("#")[0].rstrip()
        if line:
            try:
                _add_line(builder, line)
            except ValueError as error:
                raise bad_line(number, line, str(error)) from error
    return builder.finish()


def _add_line(builder: PlanBuilder, line: str) -> None:
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
