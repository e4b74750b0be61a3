"""Templates of CRF++."""

from __future__ import annotations

from crfkit.features.functions import Functions
from crfkit.features.templates.cells import CELL, bad_line, template_lines
from crfkit.features.templates.plan import INPUT, Plan, PlanBuilder


def crfpp_plan(text: str, functions: Functions) -> Plan:
    """Translate the text of a CRF++ template.

    Lines that begin with ``U`` describe tokens, lines that begin with ``B`` transitions. A line
    ``B`` alone stands for weights of pairs of labels, which a CRF always has. Names of attributes
    are those of CRF++ (T. Kudo, CRF++: Yet Another CRF toolkit, the section on templates), also
    outside of the sequence: ``_B-1``, ``_B+1``. Unlike there, cells may be further than 4 tokens
    away.

    Raises
    ------
    ValueError
        If a line is no template.
    """
    builder = PlanBuilder(functions)
    for number, line in template_lines(text):
        if line.startswith("#") or line == "B":
            continue
        if line[0] not in "UB":
            raise bad_line(number, line, "a template of CRF++ begins with U or B, a comment with #")
        try:
            _add_line(builder, line)
        except ValueError as error:
            raise bad_line(number, line, str(error)) from error
    return builder.finish()


def _add_line(builder: PlanBuilder, line: str) -> None:
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
