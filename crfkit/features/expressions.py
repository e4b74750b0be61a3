"""Templates written as Python expressions: parsed, checked, and never run."""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from crfkit.features.functions import FLAG, ITEMS, Calls, Functions, find_function

Templates = str | Sequence[Any]

LEXICON = "lexicon"
CELL = re.compile(r"%x\[\s*([+-]?\d+)\s*,\s*(\d+)\s*\]")
CELL_NAME = "__cell__"  # the function that stands for a cell such as %x[-1,0]
_INNER_CELL = re.compile(CELL_NAME + r"\((-?\d+), (\d+)\)")


def flatten(templates: Templates) -> Iterator[str]:
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


def parse(text: str) -> ast.expr:
    """Return the tree of an expression; ValueError tells what is wrong, without the text."""
    try:
        return ast.parse(CELL.sub(rf"{CELL_NAME}(\1, \2)", text.strip()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"not an expression ({error})") from error


def written(node: ast.expr) -> str:
    """Return the text of an expression, with cells as they are written."""
    return _INNER_CELL.sub(r"%x[\1,\2]", ast.unparse(node))


def whole_number(node: ast.expr) -> int | None:
    """Return a whole number that is written out, None for all else."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


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


@dataclass
class TemplateCompiler(ABC):
    """Translator of templates, with functions of the user and the names of lexicons."""

    functions: Functions
    lexicons: Collection[str]
    text: str = field(default="", init=False)  # the template at hand, for messages

    @abstractmethod
    def cell(self, node: ast.expr) -> Any:
        """Return what is known of a cell, one of the expressions that ``|`` joins."""

    def fail(self, problem: str) -> ValueError:
        """Return the error of the template at hand."""
        return ValueError(f"template {self.text!r}: {problem}.")

    def cells(self, tree: ast.expr) -> list[Any]:
        """Return what is known of the cells that are joined by ``|``."""
        if isinstance(tree, ast.Compare):
            if any(len(operands(term)) > 1 for term in (tree.left, *tree.comparators)):
                raise self.fail("| binds more than a comparison: put that in parentheses")
        return list(map(self.cell, operands(tree)))

    def membership(self, node: ast.expr) -> tuple[ast.expr, str] | None:
        """Return text and lexicon of ``text in name`` or ``lexicon(text, name)``, or None."""
        if isinstance(node, ast.Compare):
            if len(node.ops) == 1 and isinstance(node.ops[0], ast.In):
                return node.left, self.lexicon(node.comparators[0])
        elif called(node) == LEXICON:
            arguments = node.args  # type: ignore[attr-defined]
            if len(arguments) != 2 or node.keywords:  # type: ignore[attr-defined]
                raise self.fail("lexicon() takes an expression and the name of a lexicon")
            return arguments[0], self.lexicon(arguments[1])
        return None

    def call(self, node: ast.Call) -> str:
        """Return the name of the function of a call, whose arguments have no names."""
        name = called(node)
        if name is None or node.keywords:
            raise self.fail(f"{written(node)!r} is not a call of a function by position")
        return name

    def operand(self, node: ast.Call) -> ast.expr:
        """Return the expression that a function works on."""
        if not node.args:
            raise self.fail(f"{called(node)}() needs an expression to work on")
        return node.args[0]

    def lexicon(self, node: ast.expr) -> str:
        """Return the name of a lexicon, in quotes or not."""
        name = node.id if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value
        if name is None:
            raise self.fail(f"{written(node)!r} is no name of a lexicon")
        if name not in self.lexicons:
            raise self.fail(
                f"there is no lexicon {name!r} among {sorted(self.lexicons)}; give it: "
                f"lexicons={{{name!r}: ...}}"
            )
        return name

    def numbers(self, name: str, node: ast.Call, inner: Calls) -> tuple[int, ...]:
        """Return the numbers that a function takes besides an expression, of which `inner` is."""
        try:
            function = find_function(name, self.functions)
        except ValueError as error:
            raise self.fail(str(error)) from error
        if inner and find_function(inner[-1][0], self.functions).kind in (ITEMS, FLAG):
            raise self.fail(f"{name}() needs a string, which {written(node.args[0])!r} is not")
        numbers = [whole_number(argument) for argument in node.args[1:]]
        if not function.least <= len(numbers) <= function.most:
            wanted = " or ".join(map(str, sorted({function.least, function.most})))
            raise self.fail(f"{name}() takes an expression and {wanted} numbers")
        known = [number for number in numbers if number is not None and number >= 1]
        if len(known) < len(numbers) or known != sorted(known):
            raise self.fail(f"{name}() takes whole numbers from 1, the smaller first")
        return tuple(known)
