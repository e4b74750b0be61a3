"""Vectors of eight numbers: the instructions do what their definitions in Python say."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from crfkit.compiler.blocks import lay_column, lay_rows, take_column, take_rows
from crfkit.compiler.jit import frozen, kernel
from crfkit.compiler.simd import (
    WIDTH,
    add,
    add_few,
    divide,
    fill,
    fill_at,
    lanes_from,
    larger,
    largest,
    load,
    load_at,
    load_few,
    load_of,
    multiply,
    multiply_add,
    prefetch,
    prefetch_at,
    rounded,
    rounded_number,
    smaller,
    smallest,
    store,
    store_at,
    store_of,
    subtract,
    total,
    where_bits,
    where_positive,
)

X = np.array([[0.5, -1.0, math.inf, 3.0, -math.inf, 0.0, 7.0, -2.0, 9.0, 1e300, -0.25, 4.0]])
Y = np.array([[2.0, -3.0, 1.0, 0.5, 1.0, -4.0, 7.0, 1e-3, 0.0, 1e-300, -0.5, 8.0]])


@kernel
def pairwise(x, y, start, out):
    """Write what each function of two vectors gives."""
    a, b = load(x, 0, start), load(y, 0, start)
    store(add(a, b), out, 0, 0)
    store(multiply(a, b), out, 1, 0)
    store(multiply_add(a, b, fill(1.5)), out, 2, 0)
    store(larger(a, b), out, 3, 0)
    store(smaller(a, b), out, 4, 0)
    store(where_positive(a, b), out, 5, 0)
    store(subtract(a, b), out, 6, 0)
    store(rounded(a), out, 7, 0)
    store(where_bits(0b10100101, b), out, 8, 0)
    store(fill(rounded_number(0.1)), out, 9, 0)
    store(divide(a, b), out, 10, 0)


@kernel
def reduced(x, start):
    """Return what each reduction gives."""
    a = load(x, 0, start)
    return total(a), largest(a), smallest(a)


@kernel
def move_table(tables, m, i, j, out):
    """Copy a part of a row of a table."""
    store_of(load_of(tables, m, i, j), out, i, m, j)


@kernel
def lay(x, first, size, t, column, count, out, where):
    """Write rows as columns, and the first of these once more."""
    lay_rows(x, first, size, t, column, count, out, where)
    lay_column(x, first, size, t, column, out, where + WIDTH * WIDTH)


@kernel
def take(x, place, first, size, t, column, count, out):
    """Write columns as rows, but the last of these on its own."""
    take_rows(out, first, size, t, column, count, x, place)
    take_column(out, first, size, t, column + count, x, place + WIDTH * count)


@kernel
def move_places(x, place, out):
    """Copy from and to places of arrays of one dimension."""
    store_at(add(load_at(x, place), fill_at(x, place + 1)), out, place)


def test_places(rng):
    x, out = rng.normal(size=20), np.zeros(20)
    move_places(frozen(x), 3, out)
    np.testing.assert_array_equal(out[3:11], x[3:11] + x[4])
    assert not out[:3].any() and not out[11:].any()


@kernel
def add_some(table, row, column, count, out):
    """Add a few columns of a row to another table."""
    add_few(load_few(table, row, column, count), out, row + 1, column, count)


@pytest.mark.parametrize("count", range(WIDTH))
def test_a_few_columns(rng, count):
    table, out = rng.normal(size=(3, 9)), rng.normal(size=(3, 9))
    expected = out.copy()
    expected[2, 2 : 2 + count] += table[1, 2 : 2 + count]
    add_some(frozen(table), 1, 2, count, out)
    np.testing.assert_array_equal(out, expected)


@kernel
def few_at_the_end(table, out):
    """Read the last columns of a table, whose memory ends there."""
    for row in range(table.shape[0]):
        store(load_few(table, row, 0, table.shape[1]), out, row, 0)


@pytest.mark.parametrize("count", range(1, WIDTH))
def test_lanes_beyond_the_few_are_zero(rng, count):
    table, out = rng.normal(size=(5, count)), np.empty((5, WIDTH))
    few_at_the_end(frozen(table), out)
    np.testing.assert_array_equal(out[:, :count], table)
    assert not out[:, count:].any()


@kernel
def mask(first, out):
    """Write the lanes from one on."""
    store(lanes_from(first), out, 0, 0)


@pytest.mark.parametrize("start", [0, 1, 4])
def test_functions_of_two_vectors(start):
    out = np.empty((11, WIDTH))
    a, b = X[0, start : start + WIDTH], Y[0, start : start + WIDTH]
    pairwise(frozen(X), frozen(Y), start, out)
    np.testing.assert_array_equal(out[0], a + b)
    np.testing.assert_array_equal(out[1], a * b)
    np.testing.assert_allclose(out[2], a * b + 1.5, rtol=1e-15)
    np.testing.assert_array_equal(out[3], np.maximum(a, b))
    np.testing.assert_array_equal(out[4], np.minimum(a, b))
    np.testing.assert_array_equal(out[5], np.where(a > 0.0, b, 0.0))
    np.testing.assert_array_equal(out[6], a - b)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out[7], a.astype(np.float32))
    np.testing.assert_array_equal(out[8], np.where([1, 0, 1, 0, 0, 1, 0, 1], b, 0.0))
    np.testing.assert_array_equal(out[9], np.full(WIDTH, np.float32(0.1)))
    with np.errstate(divide="ignore", over="ignore"):
        np.testing.assert_array_equal(out[10], a / b)


def test_reductions():
    found = reduced(frozen(Y), 2)
    np.testing.assert_allclose(found[0], Y[0, 2:10].sum(), rtol=1e-15)
    assert found[1:] == (Y[0, 2:10].max(), Y[0, 2:10].min())
    with np.errstate(invalid="ignore"):
        assert reduced(frozen(X), 0)[1:] == (math.inf, -math.inf)


def test_rows_of_tables(rng):
    tables, out = rng.normal(size=(2, 3, 12)), np.zeros((3, 2, 12))
    move_table(frozen(tables), 1, 2, 3, out)
    expected = np.zeros_like(out)
    expected[2, 1, 3 : 3 + WIDTH] = tables[1, 2, 3 : 3 + WIDTH]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("first", [-24, -1, 0, 1, 7, 8, 30])
def test_lanes_from(first):
    out = np.empty((1, WIDTH))
    mask(first, out)
    np.testing.assert_array_equal(out[0], (np.arange(WIDTH) >= first).astype(float))


@kernel
def asked(array, place):
    """Ask for memory, in bounds and beyond, and return what was there all along."""
    prefetch(array, 0, place)
    prefetch(array, 1000, place)
    return array[0, place]


@kernel
def asked_at(array, place):
    """The same in one dimension."""
    prefetch_at(array, place)
    prefetch_at(array, 1 << 40)
    return array[place]


def test_asking_for_memory_changes_nothing():
    assert asked(frozen(Y), 3) == 0.5
    assert asked_at(frozen(Y[0]), 3) == 0.5


NEWER = """
import numba, pytest
numba.__version__ = "99.0.1"
{change}
from crfkit.compiler import simd
assert simd.emits() is {emits}
assert pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-k", "not newer", {path!r}]) == 0
"""
CHANGES = {"import numba.extending; numba.extending.intrinsic = None": False, "": True}


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="needs the compiler")
@pytest.mark.parametrize(("change", "emits"), CHANGES.items(), ids=["broken", "the same"])
def test_a_newer_numba_without_the_instructions_gives_the_same(tmp_path, change, emits):
    """All tests of this file pass where instructions cannot be built any more."""
    code = NEWER.format(change=change, emits=emits, path=__file__)
    # How well it is optimized changes nothing but the time that it takes; a process that forks from
    # one with numba has chosen that before.
    chosen = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "0"}
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, cwd=tmp_path, env=chosen, capture_output=True, text=True)
    assert " passed" in output.stdout


SIZES, FIRST = np.array([4, 4, 3, 3, 2, 1, 0, 0]), np.array([0, 4, 11, 8, 14, 16, 0, 0])


@pytest.mark.parametrize("count", [1, 5, 8])
@pytest.mark.parametrize("t", [0, 2])
def test_rows_of_lanes_become_vectors(rng, t, count):
    x, out = rng.normal(size=(17, 9)), np.full(90, -1.0)
    lay(frozen(x), FIRST, SIZES, t, 1, count, out, 5)
    expected = np.zeros((8, 8))
    for lane in np.flatnonzero(t < SIZES):
        expected[:count, lane] = x[FIRST[lane] + t, 1 : 1 + count]
    np.testing.assert_array_equal(out[5:69].reshape(8, 8), expected)
    np.testing.assert_array_equal(out[69:77], expected[0])
    assert (out[:5] == -1.0).all() and (out[77:] == -1.0).all()


@pytest.mark.parametrize("count", [1, 5, 7])
@pytest.mark.parametrize("t", [0, 2])
def test_vectors_become_rows_of_lanes_and_nothing_else_is_written(rng, t, count):
    x, out = rng.normal(size=80), np.full((17, 9), -1.0)
    take(frozen(x), 3, FIRST, SIZES, t, 1, count, out)
    expected = np.full((17, 9), -1.0)
    for lane in np.flatnonzero(t < SIZES):
        expected[FIRST[lane] + t, 1 : 2 + count] = x[3:].take(lane + 8 * np.arange(count + 1))
    np.testing.assert_array_equal(out, expected)
