"""Loops over the tables of junction trees and of their terms: multiply and add."""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import part

# A product of two numbers above this is no subnormal: what is possible does not become 0.
LEAST = 1e-150
# What the entries of a term do to those of a table.
COPY, MULTIPLY, ADD = 0, 1, 2


class JunctionTrees(NamedTuple):
    """Plans of P different graphs, C cliques in all, children before parents. Read-only.

    A term is a table that is multiplied into a clique, a factor or the message of a child. Entry
    `i` of the clique, in turn, belongs to an entry of the term: runs of `run` entries each either
    all belong to one (`step` 0) or to as many in turn (`step` 1), and run `j * len(low) + i` starts
    at ``high[j] + low[i]``.
    """

    clique_ptr: IntArray  # (P + 1,) where the cliques of each plan start, and the end
    rows: IntArray  # (C,) how many values the separators have together
    columns: IntArray  # (C,) the same of the other variables
    table_at: IntArray  # (C,) where each table starts among those of its plan
    message_at: IntArray  # (C,) and each message
    member_ptr: IntArray  # (C + 1,) where the variables of each clique start
    separator_end: IntArray  # (C,) where those of its separator end
    members: IntArray  # numbers of variables in the graph, the last fastest in a table
    term_ptr: IntArray  # (C + 1,) where the terms of each clique start
    source: IntArray  # number of a factor in the graph, or ~number of a clique in the plan
    nest: IntArray  # which loops over a clique and the term
    variable_ptr: IntArray  # (P + 1,) where the variables of each plan start
    home: IntArray  # of each variable: a factor or a clique, as `source`, that has it
    home_nest: IntArray  # loops over its table and the states of the variable; -1: it has one
    run: IntArray  # of each nest of loops
    step: IntArray
    low: IntArray
    low_ptr: IntArray
    high: IntArray
    high_ptr: IntArray


class JunctionWorkspace(NamedTuple):
    """Room for the tables of any one of the plans, and for the factors of any one graph."""

    table: FloatArray
    message: FloatArray
    factor: FloatArray
    slope: FloatArray  # as `table`, where slopes are asked for
    message_slope: FloatArray
    none: FloatArray  # (0,) where beliefs of factors are not asked for


@part
def clear(array: FloatArray, begin: int, size: int, value: float) -> None:
    """Write one number to each place of a part."""
    for i in range(begin, begin + size):
        array[i] = value


@part
def _put(table: FloatArray, i: int, x: float, how: int) -> None:
    """Write, multiply or add a number to an entry of a table."""
    if how == COPY:
        table[i] = x
    elif how == MULTIPLY:
        table[i] *= x
    else:
        table[i] += x


@part
def _put_term(
    trees: JunctionTrees, n: int, table: FloatArray, at: int, other: FloatArray, start: int,
    scale: float, how: int,
) -> None:  # fmt: skip
    """Put the entries of a term, times a number, into a table; `how` is a constant."""
    run, step = trees.run[n], trees.step[n]
    first, last = trees.low_ptr[n], trees.low_ptr[n + 1]
    for h in range(trees.high_ptr[n], trees.high_ptr[n + 1]):
        base = start + trees.high[h]
        if run == 1:
            for j in range(first, last):
                _put(table, at + j - first, other[base + trees.low[j]] * scale, how)
            at += last - first
            continue
        for j in range(first, last):
            place = base + trees.low[j]
            if step == 0:
                number = other[place] * scale
                for i in range(at, at + run):
                    _put(table, i, number, how)
            else:
                for i in range(run):
                    _put(table, at + i, other[place + i] * scale, how)
            at += run


@part
def copy_term(
    trees: JunctionTrees, n: int, table: FloatArray, at: int, other: FloatArray, start: int
) -> None:
    """Write the entries of a term to a table."""
    _put_term(trees, n, table, at, other, start, 1.0, COPY)


@part
def multiply(
    trees: JunctionTrees, n: int, table: FloatArray, at: int, other: FloatArray, start: int,
    scale: float,
) -> None:  # fmt: skip
    """Multiply a term into a table, and all of it with a number."""
    _put_term(trees, n, table, at, other, start, scale, MULTIPLY)


@part
def add_term(
    trees: JunctionTrees, n: int, table: FloatArray, at: int, other: FloatArray, start: int
) -> None:
    """Add a term to a table: logarithms, and slopes of these."""
    _put_term(trees, n, table, at, other, start, 1.0, ADD)


@part
def checked_sum(table: FloatArray, begin: int, end: int) -> float:
    """Return the sum of a table, or -1 where what is possible is too small for another product."""
    whole, small = 0.0, 0
    for i in range(begin, end):
        whole += table[i]
        small += (table[i] < LEAST) & (table[i] > 0.0)
    return whole if small == 0 else -1.0


@part
def add_up(
    trees: JunctionTrees, n: int, table: FloatArray, at: int, other: FloatArray, start: int
) -> None:
    """Add a table up to the entries of a term."""
    run, step = trees.run[n], trees.step[n]
    first, last = trees.low_ptr[n], trees.low_ptr[n + 1]
    for h in range(trees.high_ptr[n], trees.high_ptr[n + 1]):
        base = start + trees.high[h]
        if run == 1:
            for j in range(first, last):
                other[base + trees.low[j]] += table[at + j - first]
            at += last - first
            continue
        for j in range(first, last):
            place = base + trees.low[j]
            if step == 0:
                total = 0.0
                for i in range(at, at + run):
                    total += table[i]
                other[place] += total
            else:
                for i in range(run):
                    other[place + i] += table[at + i]
            at += run
