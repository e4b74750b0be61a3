"""Templates of tokens, written as Python expressions."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from typing import Any, NamedTuple

from crfkit.features.expressions import (
    CELL_NAME,
    LEXICON,
    TemplateCompiler,
    Templates,
    called,
    flatten,
    parse,
    whole_number,
    written,
)
from crfkit.features.functions import Calls, Functions
from crfkit.features.templates.plan import (
    BOS,
    EOS,
    FARTHEST,
    INPUT,
    PHRASE,
    POSITION,
    Plan,
    PlanBuilder,
)

_IS_TRUE: Calls = (("is true", ()),)
TRANSITION = "transition"
_OF_CRFPP = re.compile(r"[UuBb*][\w-]*:.*%")
# Words for what a template describes instead of all tokens, and how its attributes' names begin.
_PLACES = {TRANSITION: "", "first": "seg.first.", "last": "seg.last.", "single": "seg.single."}


def window(expression: str | int, first: int, last: int) -> list[str]:
    """Return an expression at the tokens `first` to `last` around each token.

    Parameters
    ----------
    expression : str or int
        An expression over columns, or the number of a column.
    first, last : int
        Offsets: ``window("pos", -1, 1)`` is ``["pos[-1]", "pos", "pos[1]"]``.

    Raises
    ------
    ValueError
        If `first` is larger than `last`, one is too far away, or the expression is none.
    """
    if first > last:
        raise ValueError(f"window({expression!r}, {first}, {last}): the first is larger.")
    if max(abs(first), abs(last)) > FARTHEST:
        raise ValueError(
            f"window({expression!r}, {first}, {last}): a cell can be {FARTHEST} tokens away."
        )
    if isinstance(expression, int):
        return [f"%x[{offset},{expression}]" for offset in range(first, last + 1)]
    return [written(_Shift(offset).visit(_parse(expression))) for offset in range(first, last + 1)]


def transition(expression: str) -> str:
    """Return a template that describes the transition into a token by an expression."""
    return f"{TRANSITION}({expression})"


class _Shift(ast.NodeTransformer):
    """Moves the columns of an expression to another token."""

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if called(node) == "col":
            return self._moved(node)
        if called(node) == CELL_NAME:
            node.args[0] = ast.Constant((whole_number(node.args[0]) or 0) + self.offset)
            return node
        shifted = node.args[:1] if called(node) == LEXICON else node.args  # not the lexicon's name
        node.args = [*map(self.visit, shifted), *node.args[len(shifted) :]]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        node.left = self.visit(node.left)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._moved(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        inner = whole_number(node.slice)
        if inner is None:
            raise ValueError(f"{ast.unparse(node)!r}: an offset must be a whole number.")
        return _at(node.value, inner + self.offset)

    def _moved(self, node: ast.expr) -> ast.AST:
        return _at(node, self.offset)


def _at(node: ast.expr, offset: int) -> ast.expr:
    if offset == 0:
        return node
    return ast.Subscript(value=node, slice=ast.Constant(offset), ctx=ast.Load())


def _parse(text: str) -> ast.expr:
    try:
        return parse(text)
    except ValueError as error:
        if _OF_CRFPP.match(text):
            raise ValueError(
                f"template {text!r} is one of CRF++ or Wapiti: give syntax='crfpp' or 'wapiti', "
                "and all templates in that notation; or leave out what stands before the colon."
            ) from error
        raise ValueError(
            f"template {text!r} is {error}. Examples: w, w[-1], w[-1]|w, suffix(w, 3), "
            "w in cities, transition(pos[-1]|pos), col('any name')[-1]."
        ) from error


class _ColumnCell(NamedTuple):
    """A column, functions of it, an offset."""

    column: int
    calls: Calls
    offset: int


def expression_plan(templates: Templates, functions: Functions, lexicons: Collection[str]) -> Plan:
    """Translate Python expressions; TypeError or ValueError if one has no form that is known."""
    compiler = _TokenCompiler(functions, lexicons)
    for text in flatten(templates):
        compiler.add(text)
    return compiler.builder.finish()


class _TokenCompiler(TemplateCompiler):
    """Translator of templates of tokens."""

    def __init__(self, functions: Functions, lexicons: Collection[str]) -> None:
        super().__init__(functions, lexicons)
        self.builder = PlanBuilder(functions)

    def add(self, text: str, place: str = "") -> None:
        """Add the plan of a template; `place` says what it describes, if not all tokens."""
        self.text = text
        tree = _parse(text)
        name = called(tree)
        if name in _PLACES:
            self._add_place(text, tree, name, place)
        elif name == "window":
            for shifted in window(*self._window_arguments(tree)):
                self.add(shifted, place)
        elif name == "affixes":
            self._add_affixes(tree, place)
        else:
            parts = self.cells(tree)
            if any(abs(part.offset) > FARTHEST for part in parts):
                raise self.fail(f"a cell can be {FARTHEST} tokens away, not more")
            cells = [self.builder.cell(*part) for part in parts]
            lead = _PLACES[place] + text.strip() if place else text.strip()
            self.builder.add_named(lead, "=", cells, "|", place == TRANSITION)

    def _add_place(self, text: str, tree: Any, name: str, outer: str) -> None:
        if outer or len(tree.args) != 1 or tree.keywords:
            raise self.fail(f"{name}() takes one expression and stands outermost")
        if isinstance(tree.args[0], ast.Constant) and isinstance(tree.args[0].value, str):
            self.add(tree.args[0].value, name)
        else:
            self.add(text.strip().removeprefix(name).strip()[1:-1].strip(), name)

    def _window_arguments(self, tree: Any) -> tuple[str | int, int, int]:
        bounds = [whole_number(node) for node in tree.args[1:]]
        if len(bounds) != 2 or None in bounds or tree.keywords:
            raise self.fail("window() takes an expression and two whole numbers")
        first = tree.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, (str, int)):
            return first.value, bounds[0], bounds[1]  # type: ignore[return-value]
        return written(first), bounds[0], bounds[1]  # type: ignore[return-value]

    def _add_affixes(self, tree: Any, place: str) -> None:
        most = whole_number(tree.args[1]) if len(tree.args) == 2 and not tree.keywords else None
        if most is None or not 1 <= most <= FARTHEST:
            raise self.fail(
                "affixes() takes an expression and a whole number of at least 1, and at most "
                f"{FARTHEST}"
            )
        inner = written(tree.args[0])
        for name in ("prefix", "suffix"):
            for size in range(1, most + 1):
                self.add(f"{name}({inner}, {size})", place)

    def cell(self, node: ast.expr) -> _ColumnCell:
        if isinstance(node, ast.Subscript):
            column = self._column(node.value)
            offset = whole_number(node.slice)
            if offset is None:
                raise self.fail(f"{written(node)!r}: an offset must be a whole number")
            return _ColumnCell(column, (), offset)
        if isinstance(node, ast.Name) or called(node) == "col":
            return _ColumnCell(self._column(node), (), 0)
        membership = self.membership(node)
        if membership is not None:
            return self._lexicon(*membership)
        if isinstance(node, ast.Call):
            return self._call(node)
        problem = (
            f"{written(node)!r} is neither a column nor a function of one; columns that come "
            "together are joined by |, as in w[-1]|w"
        )
        if isinstance(node, ast.Attribute):
            problem += (
                "; seg.text and others of whole segments are templates of SegmentFeatures, and "
                "first(w), last(w) and single(w) describe the tokens of segments here"
            )
        raise self.fail(problem)

    def _column(self, node: ast.expr) -> int:
        if isinstance(node, ast.Name):
            return self.builder.column(INPUT, node.id)
        if called(node) == "col" and len(node.args) == 1:  # type: ignore[attr-defined]
            argument = node.args[0]  # type: ignore[attr-defined]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, (str, int)):
                return self.builder.column(INPUT, argument.value)
        raise self.fail(
            f"{written(node)!r} is no column; write w, w[-1], col('any name')[-1] or %x[-1,0]"
        )

    def _call(self, node: ast.Call) -> _ColumnCell:
        name = self.call(node)
        if name == CELL_NAME:
            offset, number = (whole_number(argument) for argument in node.args)
            return _ColumnCell(self.builder.column(INPUT, number), (), offset or 0)
        if name in (BOS, EOS, POSITION):
            return self._position(name, node)
        if name == PHRASE:
            return self._phrase(node)
        if name in ("window", "affixes", *_PLACES):
            raise self.fail(f"{name}() stands outermost")
        inner = self._input(self.operand(node), f"{name}()")
        return inner._replace(calls=(*inner.calls, (name, self.numbers(name, node, inner.calls))))

    def _input(self, node: ast.expr, user: str) -> _ColumnCell:
        """Return a cell of strings, which something works on."""
        inner = self.cell(node)
        if self.builder.columns[inner.column][0] not in (INPUT, PHRASE):
            raise self.fail(f"{user} cannot work on what {written(node)!r} gives")
        return inner

    def _position(self, name: str, node: ast.Call) -> _ColumnCell:
        numbers = [whole_number(argument) for argument in node.args]
        if name != POSITION:
            if numbers:
                raise self.fail(f"{name}() takes nothing")
            return _ColumnCell(self.builder.column(name), _IS_TRUE, 0)
        if len(numbers) != 1 or numbers[0] is None or not 1 <= numbers[0] <= FARTHEST:
            raise self.fail(f"position() takes the number of parts of the sequence, to {FARTHEST}")
        return _ColumnCell(self.builder.column(POSITION, numbers[0]), (), 0)

    def _phrase(self, node: ast.Call) -> _ColumnCell:
        inner = self.cell(self.operand(node))
        kind, *reference = self.builder.columns[inner.column]
        side = [whole_number(argument) for argument in node.args[1:]] or [0]
        if kind != INPUT or inner.calls or side not in ([-1], [0], [1]):
            raise self.fail("phrase() takes a column, and -1 or 1 for the token before or after")
        return _ColumnCell(self.builder.column(PHRASE, *reference, *side), (), inner.offset)

    def _lexicon(self, node: ast.expr, name: str) -> _ColumnCell:
        inner = self._input(node, "a lexicon")
        source = self.builder.cell(inner.column, inner.calls, 0).source
        return _ColumnCell(self.builder.column(LEXICON, source, name), (), inner.offset)
