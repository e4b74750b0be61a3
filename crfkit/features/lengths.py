"""Features of the length of a segment."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from crfkit._types import FloatArray, IntArray

KINDS = ("indicator", "buckets", "geometric", "poisson")
# A bucket of lengths is longer than the last one by this share of its first length.
GROWTH = 0.4


class LengthBasis(NamedTuple):
    """Features of the lengths 1, ..., L; of most kinds each length has one or two."""

    basis: sp.csr_array  # (L, F) their values
    fixed: FloatArray  # (L,) what each length scores beside them
    names: list[str]


def length_basis(kinds: Any, longest: int) -> LengthBasis:
    """Return features of the lengths up to `longest`, of one kind or a list of kinds.

    "indicator", one feature a length; "buckets", one for 1 to 5 each, then for ranges that grow;
    "geometric": the length less 1, so that ``exp(score)`` falls (or rises) geometrically;
    "poisson": the same and minus the logarithm of its factorial, which makes the length less 1
    Poisson distributed; a condition or number such as ``"3 <= seg.length <= 5"``,
    ``"log(seg.length)"``; a function of the lengths that returns an array of shape (L,) or (L, F).
    None: no features. ValueError or TypeError if a kind cannot be used.
    """
    lengths = np.arange(1, longest + 1)
    fixed, names, columns = np.zeros(longest), list[str](), [sp.csr_array((longest, 0))]
    listed = [kinds] if isinstance(kinds, str) or not isinstance(kinds, Iterable) else kinds
    for kind in () if kinds is None else listed:
        values, labels = _features(kind, lengths)
        columns.append(sp.csr_array(values))
        names += labels
        if kind == "poisson":
            fixed -= gammaln(lengths)
    return LengthBasis(sp.csr_array(sp.hstack(columns, format="csr")), fixed, names)


def _features(kind: Any, lengths: Any) -> tuple[FloatArray | sp.csr_array, list[str]]:
    """Return the values of one kind of features, shape (L, F), and their names."""
    if callable(kind):
        return _called(kind, lengths)
    if not isinstance(kind, str):
        raise TypeError(
            f"length={kind!r:.60} must be one of {', '.join(KINDS)}, a condition such as "
            "'3 <= seg.length <= 5', a function, a list of these, or None."
        )
    if kind == "indicator":
        return _one_each(lengths - 1), [f"seg.length={d}" for d in lengths.tolist()]
    if kind == "buckets":
        return _buckets(len(lengths))
    if kind in ("geometric", "poisson"):
        return (lengths - 1.0)[:, None], ["seg.length-1"]
    return _expression(kind, lengths), [kind]


def _one_each(which: IntArray) -> sp.csr_array:
    """Return features of which each length has one, shape (L, F); all F occur."""
    rows = np.ones(len(which)), which, np.arange(len(which) + 1)
    return sp.csr_array(rows, shape=(len(which), int(which.max()) + 1))


def _buckets(longest: int) -> tuple[sp.csr_array, list[str]]:
    starts = [1]
    while starts[-1] <= longest:
        starts.append(starts[-1] + max(1, math.ceil(GROWTH * (starts[-1] - 3))))
    pairs = [(first, after - 1) for first, after in zip(starts, starts[1:], strict=False)]
    which = np.searchsorted(starts, np.arange(1, longest + 1), side="right") - 1
    names = [
        f"seg.length={first}" if first == last else f"{first} <= seg.length <= {last}"
        for first, last in pairs
    ]
    return _one_each(which), names


def _called(function: Callable[..., Any], lengths: Any) -> tuple[FloatArray, list[str]]:
    try:
        values = np.asarray(function(lengths), np.float64)
    except Exception as error:
        error.add_note(f"length: the function got the array of the lengths 1 to {len(lengths)}.")
        raise
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != len(lengths) or not np.isfinite(values).all():
        raise ValueError(
            f"length: the function returned an array of shape {values.shape} for {len(lengths)} "
            "lengths, or a value that is not finite; one finite number, or row of such, for each "
            "length is needed."
        )
    name = getattr(function, "__name__", "length")
    return values, [f"{name}[{i}]" for i in range(values.shape[1])]


_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal,
    ast.Eq: np.equal, ast.NotEq: np.not_equal, ast.Add: np.add, ast.Sub: np.subtract,
    ast.Mult: np.multiply, ast.Div: np.true_divide, ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod, ast.Pow: np.float_power,
}  # fmt: skip
_CALLS: dict[str, np.ufunc] = {
    "log": np.log, "sqrt": np.sqrt, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def _expression(text: str, lengths: Any) -> FloatArray:
    """Return the values of an expression over ``seg.length``, shape (L, 1); it is never run."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        with np.errstate(all="ignore"):  # what is not finite is refused below
            values = np.asarray(value_of(tree, "seg.length", lengths), np.float64)
    except (SyntaxError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise ValueError(
            f"length={text!r} is neither one of {', '.join(KINDS)} nor an expression over "
            "seg.length, such as '3 <= seg.length <= 5' or 'log(seg.length)'."
        ) from error
    column = np.broadcast_to(values, lengths.shape)
    if not np.isfinite(column).all():
        raise ValueError(f"length={text!r} is not finite for all lengths up to {len(lengths)}.")
    return column[:, None]


def value_of(node: ast.expr, variable: str, values: Any) -> Any:
    """Return the value of arithmetic over one variable; TypeError or KeyError of anything else."""
    inner = partial(value_of, variable=variable, values=values)
    if ast.unparse(node) == variable:
        return values
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.BinOp):
        return _OPERATIONS[type(node.op)](inner(node.left), inner(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -inner(node.operand)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = _CALLS[node.func.id]
        if len(node.args) == function.nin:  # a further one would be overwritten
            return function(*map(inner, node.args))
    if isinstance(node, ast.BoolOp):
        join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        return reduce(join, map(inner, node.values))
    if isinstance(node, ast.Compare):
        terms = list(map(inner, (node.left, *node.comparators)))
        pairs = zip(node.ops, terms, terms[1:], strict=False)
        return reduce(np.logical_and, [_OPERATIONS[type(op)](a, b) for op, a, b in pairs])
    raise TypeError(ast.unparse(node))
