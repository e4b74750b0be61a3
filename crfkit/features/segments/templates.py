"""Templates of segments, written as Python expressions."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from crfkit.features.expressions import TemplateCompiler, Templates, called, flatten, parse, written
from crfkit.features.functions import FLAG, ITEMS, Call, Functions, result_kind
from crfkit.features.lengths import value_of
from crfkit.features.segments.cells import (
    Length,
    Membership,
    Own,
    SegmentCell,
    SegmentTemplate,
    Similarity,
    Text,
    WordList,
)
from crfkit.features.segments.similarity import LEAST
from crfkit.features.templates.columns import Reference

SEGMENT, LENGTH, WORDS = "seg", "seg.length", "words"
# Functions for which f("a b") is f("a") and f("b") joined by a blank.
_WORD_BY_WORD = ("lower", "shape", "digits")
_PLACE = re.compile(rf"{SEGMENT}\.(first|last|single)\b(?:\.(\w+)|\[(.+?)\])?")
_EXAMPLES = "seg.text, lower(seg.text) in cities, jaccard(seg.text, cities) >= 0.5, seg.shape"


def segment_templates(
    templates: Templates,
    functions: Functions,
    lexicons: Collection[str],
    columns: Sequence[str] | None,
) -> list[SegmentTemplate]:
    """Translate templates, each once; TypeError or ValueError if one has no form that is known."""
    compiler = _SegmentCompiler(functions, lexicons, columns)
    texts = list(dict.fromkeys(flatten(templates)))
    if not texts:
        raise ValueError(f"there are no templates: give at least one, such as {_EXAMPLES}.")
    return [compiler.template(text.strip()) for text in texts]


@dataclass
class _SegmentCompiler(TemplateCompiler):
    """Translator of templates of segments."""

    columns: Sequence[str] | None

    def template(self, text: str) -> SegmentTemplate:
        """Return a template."""
        self.text = text
        try:
            tree = parse(text)
        except ValueError as error:
            raise self.fail(f"it is {error}. Examples: {_EXAMPLES}") from error
        cells = tuple(self.cells(tree))
        if all(isinstance(cell, Length) for cell in cells):
            raise self.fail(
                "all segments would have it. Lengths have weights of their own, by length=... of "
                "the estimator; here they can be joined with others: seg.length|seg.shape"
            )
        if len(cells) > 1 and any(isinstance(c, Similarity) and not c.condition for c in cells):
            raise self.fail("a number cannot be joined with others; compare it: (... >= 0.5)|...")
        return SegmentTemplate(text, cells)

    def cell(self, node: ast.expr) -> SegmentCell:
        membership = self.membership(node)
        if membership is not None:
            return Membership(self._one_string(membership[0]), membership[1])
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if ast.unparse(node) == LENGTH:
            return Length()
        name = called(node)
        if name in LEAST:
            return self._similarity(node)  # type: ignore[arg-type]
        if name in self.functions and isinstance(node, ast.Call) and not node.keywords:
            arguments = [self._argument(argument) for argument in node.args]
            if not arguments:
                raise self.fail(f"{name}() needs seg.text, words(seg.text) or others to work on")
            if len(arguments) > 1 or isinstance(arguments[0], WordList):
                return Own(str(name), tuple(arguments))
        return self._string(node)

    def _argument(self, node: ast.expr) -> Text | WordList:
        if called(node) != WORDS:
            return self._string(node)
        if len(node.args) != 1 or node.keywords:  # type: ignore[attr-defined]
            raise self.fail("words() takes the text of a column, such as seg.text")
        text = self._string(node.args[0])  # type: ignore[attr-defined]
        if text.calls:
            raise self.fail(
                f"words() cannot part what {ast.unparse(node)} names; of functions it knows "
                f"{', '.join(_WORD_BY_WORD)}"
            )
        return WordList(text)

    def _comparison(self, node: ast.Compare) -> SegmentCell:
        terms = [node.left, *node.comparators]
        variables = [term for term in terms if not _is_number(term)]
        if len(variables) != 1 or any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
            raise self.fail(
                f"{written(node)!r} is no condition there is; those are 'seg.text in cities', "
                "'3 <= seg.length <= 5' and 'jaccard(seg.text, cities) >= 0.5'"
            )
        variable, condition = ast.unparse(variables[0]), ast.unparse(node)
        if variable == LENGTH:
            return Length(condition)
        if called(variables[0]) not in LEAST:
            raise self.fail(f"only seg.length and {', '.join(LEAST)} can be compared")
        if np.any(value_of(node, variable, np.zeros(1))):
            raise self.fail("it holds for segments that are like no entry: ask for >= or > more")
        call: ast.Call = variables[0]  # type: ignore[assignment]
        found = self._similarity(call)
        # What is said takes the place of what is asked for where nothing is said.
        least = max(_lower_bound(node, variable), found.least if len(call.args) == 3 else 0.0)
        return found._replace(least=least, condition=condition, written=variable)

    def _similarity(self, node: ast.Call) -> Similarity:
        kind = str(called(node))
        if not 2 <= len(node.args) <= 3 or node.keywords:
            raise self.fail(
                f"{kind}() takes a text, a lexicon and, if it is to be larger than some number, "
                "that number"
            )
        least = LEAST[kind]
        if len(node.args) == 3:
            if not _is_number(node.args[2]) or not 0 <= _number(node.args[2]) <= 1:
                raise self.fail(f"the least value of {kind}() must be a number from 0 to 1")
            least = _number(node.args[2])
        return Similarity(kind, self._one_string(node.args[0]), self.lexicon(node.args[1]), least)

    def _one_string(self, node: ast.expr) -> Text:
        """Return a text that is one string."""
        text = self._string(node)
        if text.calls and result_kind(text.calls, self.functions) in (FLAG, ITEMS):
            raise self.fail(f"a string is needed, which {written(node)!r} is not")
        return text

    def _string(self, node: ast.expr) -> Text:
        """Return a column, and functions of it."""
        if isinstance(node, ast.Call):
            return self._call(node)
        owner = node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else None
        self._check_place(node)
        if not isinstance(owner, ast.Name) or owner.id != SEGMENT:
            raise self.fail(
                f"{written(node)!r} is nothing that segments have; that is seg.text, "
                "seg.shape, seg.length, seg.pos for a column pos, seg['any name'], seg[0]"
            )
        if isinstance(node, ast.Subscript):
            return Text(self._column(node))
        assert isinstance(node, ast.Attribute)
        if node.attr == "length":
            raise self.fail("seg.length is a number; functions need a string")
        if node.attr in ("text", "shape"):
            word_calls: tuple[Call, ...] = (("short_shape", ()),) if node.attr == "shape" else ()
            return Text(self._first_column(node.attr), word_calls)
        return Text(node.attr)

    def _check_place(self, node: ast.expr) -> None:
        """Raise an error that says how to write ``seg.first``, ``seg.first.shape`` and the like."""
        found = _PLACE.match(ast.unparse(node))
        if not found:
            return
        place, name, subscript = found.groups()
        column = self.columns[0] if self.columns and self.columns[0].isidentifier() else "w"
        inner = {None: column, "text": column, "shape": f"shape({column})"}.get(name, name)
        if subscript:
            inner = f"col({subscript})"
        token = "only" if place == "single" else place
        raise self.fail(
            f"what the {token} token of a segment has is described by TemplateFeatures, joined "
            f"with these by make_sequence_union: {place}({inner})"
        )

    def _first_column(self, name: str) -> int:
        if self.columns is not None and name in self.columns[1:]:
            raise self.fail(
                f"seg.{name} is that of the first column, {self.columns[0]!r}; the column is "
                f"seg[{name!r}]"
            )
        return 0

    def _column(self, node: ast.Subscript) -> Reference:
        place = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(place, str) or (type(place) is int and place >= 0):
            return place
        raise self.fail(f"{written(node)!r}: seg[...] takes the name or number of a column")

    def _call(self, node: ast.Call) -> Text:
        name = self.call(node)
        if name == WORDS:
            raise self.fail("words() gives a list, which only functions of the user take")
        if name in LEAST:
            raise self.fail(f"{name}() gives a number, which stands alone or is compared")
        inner = self._string(self.operand(node))
        numbers = self.numbers(name, node, (*inner.word_calls, *inner.calls))
        if name in _WORD_BY_WORD and not inner.calls:
            return inner._replace(word_calls=(*inner.word_calls, (name, numbers)))
        return inner._replace(calls=(*inner.calls, (name, numbers)))


def _is_number(node: ast.expr) -> bool:
    try:
        return type(ast.literal_eval(node)) in (int, float)
    except (ValueError, TypeError):
        return False


def _number(node: ast.expr) -> float:
    return float(ast.literal_eval(node))


def _lower_bound(node: ast.Compare, variable: str) -> float:
    """Return what a similarity is at least where a condition holds, as far as it says so."""
    terms = [node.left, *node.comparators]
    bounds = [-np.inf]
    for left, op, right in zip(terms, node.ops, terms[1:], strict=False):
        if ast.unparse(right) == variable and isinstance(op, (ast.Lt, ast.LtE, ast.Eq)):
            bounds.append(_number(left))
        if ast.unparse(left) == variable and isinstance(op, (ast.Gt, ast.GtE, ast.Eq)):
            bounds.append(_number(right))
    return float(max(bounds))
