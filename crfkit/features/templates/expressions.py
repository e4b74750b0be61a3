"""Templates written as Python expressions; they are parsed, never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from crfkit.features.functions import FLAG, ITEMS, Calls, Functions, find_function
from crfkit.features.templates.cells import CELL
from crfkit.features.templates.plan import (
    BOS,
    EOS,
    FARTHEST,
    INPUT,
    LEXICON,
    POSITION,
    Plan,
    PlanBuilder,
)

Template = str | Sequence[Any]

_CELL_NAME = "__cell__"
_INNER_CELL = re.compile(_CELL_NAME + r"\((-?\d+), (\d+)\)")
_IS_TRUE: Calls = (("is true", ()),)
STEP = "step"
# What a template describes instead of all tokens, and how the names of its attributes begin.
_PLACES = {
    STEP: "",
    "first": "seg.first.",
    "last": "seg.last.",
    "single": "seg.single.",
}


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
    return [_text(_Shift(offset).visit(_parse(expression))) for offset in range(first, last + 1)]


def step(expression: str) -> str:
    """Return a template that describes the step into a token by an expression."""
    return f"step({expression})"


class _Shift(ast.NodeTransformer):
    """Moves the columns of an expression to another token."""

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if called(node) == "col":
            return self._moved(node)
        if called(node) == _CELL_NAME:
            node.args[0] = ast.Constant((whole_number(node.args[0]) or 0) + self.offset)
            return node
        node.args = [self.visit(argument) for argument in node.args]
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
        return ast.parse(CELL.sub(rf"{_CELL_NAME}(\1, \2)", text.strip()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"template {text!r} is not an expression ({error}). Examples: w, w[-1], w[-1]|w, "
            "suffix(w, 3), step(pos[-1]|pos), col('any name')[-1]."
        ) from error


def whole_number(node: ast.expr) -> int | None:
    """Return a whole number that is written out, None for all else."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class _Part(NamedTuple):
    """A column, functions of it, an offset."""

    column: int
    calls: Calls
    offset: int


def flatten(templates: Template) -> Iterator[str]:
    """Yield the templates of a text (one a line) or of nested lists."""
    if isinstance(templates, str):
        for line in templates.splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                yield line.strip()
    elif isinstance(templates, (list, tuple)):
        for item in templates:
            yield from flatten(item)
    else:
        raise TypeError(
            f"templates must be a string or a list of strings, not {type(templates).__name__}: "
            f"{templates!r}."
        )


def expression_plan(
    templates: Template,
    functions: Functions,
    lexicons: Mapping[str, Any],
    policy: str,
    joint: str = "=",
) -> Plan:
    """Translate templates that are Python expressions.

    Raises
    ------
    TypeError, ValueError
        If a template has another form than those of :class:`TemplateFeatures`.
    """
    compiler = _Compiler(PlanBuilder(functions, policy), lexicons, joint)
    for text in flatten(templates):
        compiler.add(text)
    return compiler.builder.finish()


class _Compiler:
    """Translates expressions; `text` is the template at hand, for messages."""

    def __init__(self, builder: PlanBuilder, lexicons: Mapping[str, Any], joint: str) -> None:
        self.builder = builder
        self.lexicons = lexicons
        self.joint = joint
        self.text = ""

    def add(self, text: str, place: str = "") -> None:
        """Add the families of a template; `place` says what it describes, if not all tokens."""
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
            parts = [self._part(node) for node in operands(tree)]
            if any(abs(part.offset) > FARTHEST for part in parts):
                raise self._fail(f"a cell can be {FARTHEST} tokens away, not more")
            cells = [self.builder.cell(*part) for part in parts]
            lead = _PLACES[place] + text.strip() if place else text.strip()
            self.builder.add_named(lead, self.joint, cells, "|", place == STEP)

    def _fail(self, problem: str) -> ValueError:
        return ValueError(f"template {self.text!r}: {problem}.")

    def _add_place(self, text: str, tree: Any, name: str, outer: str) -> None:
        if outer or len(tree.args) != 1 or tree.keywords:
            raise self._fail(f"{name}() takes one expression and stands outermost")
        if isinstance(tree.args[0], ast.Constant) and isinstance(tree.args[0].value, str):
            self.add(tree.args[0].value, name)
        else:
            self.add(text.strip().removeprefix(name).strip()[1:-1].strip(), name)

    def _window_arguments(self, tree: Any) -> tuple[str | int, int, int]:
        bounds = [whole_number(node) for node in tree.args[1:]]
        if len(bounds) != 2 or None in bounds or tree.keywords:
            raise self._fail("window() takes an expression and two whole numbers")
        first = tree.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, (str, int)):
            return first.value, bounds[0], bounds[1]  # type: ignore[return-value]
        return _text(first), bounds[0], bounds[1]  # type: ignore[return-value]

    def _add_affixes(self, tree: Any, place: str) -> None:
        most = whole_number(tree.args[1]) if len(tree.args) == 2 and not tree.keywords else None
        if most is None or not 1 <= most <= FARTHEST:
            raise self._fail(
                "affixes() takes an expression and a whole number of at least 1, and at most "
                f"{FARTHEST}"
            )
        inner = _text(tree.args[0])
        for name in ("prefix", "suffix"):
            for size in range(1, most + 1):
                self.add(f"{name}({inner}, {size})", place)

    def _part(self, node: ast.expr) -> _Part:
        if isinstance(node, ast.Subscript):
            column = self._column(node.value)
            offset = whole_number(node.slice)
            if offset is None:
                raise self._fail(f"{_source(node)}: an offset must be a whole number")
            return _Part(column, (), offset)
        if isinstance(node, ast.Name) or called(node) == "col":
            return _Part(self._column(node), (), 0)
        if isinstance(node, ast.Call):
            return self._call(node)
        problem = f"{_source(node)} is neither a column nor a function of one"
        if isinstance(node, ast.Attribute):
            problem += (
                "; seg.text and others of whole segments are templates of SegmentFeatures, and "
                "first(w), last(w) and single(w) describe the tokens of segments here"
            )
        raise self._fail(problem)

    def _column(self, node: ast.expr) -> int:
        if isinstance(node, ast.Name):
            return self.builder.column(INPUT, node.id)
        if called(node) == "col" and len(node.args) == 1:  # type: ignore[attr-defined]
            argument = node.args[0]  # type: ignore[attr-defined]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, (str, int)):
                return self.builder.column(INPUT, argument.value)
        raise self._fail(
            f"{_source(node)} is no column; write w, w[-1], col('any name')[-1] or %x[-1,0]"
        )

    def _call(self, node: ast.Call) -> _Part:
        name = called(node)
        if name is None or node.keywords:
            raise self._fail(f"{_source(node)} is not a call of a known function by position")
        if name == _CELL_NAME:
            offset, number = (whole_number(argument) for argument in node.args)
            return _Part(self.builder.column(INPUT, number), (), offset or 0)
        if name in (BOS, EOS, POSITION):
            return self._position(name, node)
        if name in ("window", "affixes", *_PLACES):
            raise self._fail(f"{name}() stands outermost")
        if not node.args:
            raise self._fail(f"{name}() needs an expression to work on")
        inner = self._part(node.args[0])
        if self.builder.columns[inner.column][0] != INPUT:
            raise self._fail(f"{name}() cannot work on what {_source(node.args[0])} gives")
        if name == LEXICON:
            return self._lexicon(node, inner)
        return inner._replace(calls=(*inner.calls, (name, self._numbers(name, node, inner))))

    def _numbers(self, name: str, node: ast.Call, inner: _Part) -> tuple[int, ...]:
        """Return the numbers a function takes, checked."""
        try:
            return call_numbers(name, node, inner.calls, self.builder.functions)
        except ValueError as error:
            raise self._fail(str(error)) from error

    def _position(self, name: str, node: ast.Call) -> _Part:
        numbers = [whole_number(argument) for argument in node.args]
        if name != POSITION:
            if numbers:
                raise self._fail(f"{name}() takes nothing")
            return _Part(self.builder.column(name), _IS_TRUE, 0)
        if len(numbers) != 1 or numbers[0] is None or not 1 <= numbers[0] <= FARTHEST:
            raise self._fail(f"position() takes the number of parts of the sequence, to {FARTHEST}")
        return _Part(self.builder.column(POSITION, numbers[0]), (), 0)

    def _lexicon(self, node: ast.Call, inner: _Part) -> _Part:
        names = [argument.value for argument in node.args[1:] if isinstance(argument, ast.Constant)]
        if len(node.args) != 2 or len(names) != 1 or not isinstance(names[0], str):
            raise self._fail("lexicon() takes an expression and the name of a lexicon in quotes")
        if names[0] not in self.lexicons:
            raise self._fail(
                f"there is no lexicon {names[0]!r} among {sorted(self.lexicons)}; give it: "
                f"lexicons={{{names[0]!r}: ...}}"
            )
        source = self.builder.cell(inner.column, inner.calls, 0).source
        return _Part(self.builder.column(LEXICON, source, names[0]), (), inner.offset)


def call_numbers(name: str, node: ast.Call, inner: Calls, functions: Functions) -> tuple[int, ...]:
    """Return the numbers that a function takes besides an expression.

    Raises
    ------
    ValueError
        If there is no such function, what `inner` gives is no string, or the numbers do not fit.
    """
    function = find_function(name, functions)
    if inner and find_function(inner[-1][0], functions).kind in (ITEMS, FLAG):
        raise ValueError(f"{name}() needs a string, which {_source(node.args[0])} is not")
    numbers = [whole_number(argument) for argument in node.args[1:]]
    if not function.least <= len(numbers) <= function.most:
        wanted = " or ".join(map(str, sorted({function.least, function.most})))
        raise ValueError(f"{name}() takes an expression and {wanted} numbers")
    if any(n is None or n < 1 for n in numbers) or numbers != sorted(numbers, key=_order):
        raise ValueError(f"{name}() takes whole numbers from 1, the smaller first")
    return tuple(n for n in numbers if n is not None)


def _order(number: int | None) -> int:
    return 0 if number is None else number


def called(node: ast.expr) -> str | None:
    """Return the name of the function that an expression calls."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id
    return None


def operands(node: ast.expr) -> list[ast.expr]:
    """Return the parts that are joined by ``|``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*operands(node.left), *operands(node.right)]
    return [node]


def _text(node: ast.expr) -> str:
    """Return the text of an expression, with cells as they are written."""
    return _INNER_CELL.sub(r"%x[\1,\2]", ast.unparse(node))


def _source(node: ast.expr) -> str:
    return repr(_text(node))
