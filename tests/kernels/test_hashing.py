import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.compiler.jit import frozen
from crfkit.features.attributes import SKIP, AttributeRows
from crfkit.features.templates.tables import PairTable
from crfkit.kernels.text import hashing
from tests.sampling import examples

codes = st.integers(-1, 2**31 - 1) | st.integers(-1, 3)


def array(values, dtype=np.int32):
    return frozen(np.array(values, dtype))


@examples(10)
@given(st.lists(st.integers(0, 4), max_size=5), st.integers(-5, 5))
def test_shift_and_spread_read_marks_outside_of_a_sequence(lengths, offset):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values = np.arange(offsets[-1], dtype=np.int32)
    marks = np.arange(100, 110, dtype=np.int32)
    shifted, spread = np.empty_like(values), np.empty_like(values)
    for absolute, moved in ((False, shifted), (True, spread)):
        hashing.codes_shift(frozen(values), frozen(offsets), offset, absolute, frozen(marks), moved)

    def cell(begin, end, place):
        if place < begin:
            return marks[begin - place - 1]
        return marks[5 + place - end] if place >= end else values[place]

    spans = [(b, e, t) for b, e in zip(offsets, offsets[1:], strict=False) for t in range(b, e)]
    assert shifted.tolist() == [cell(b, e, t + offset) for b, e, t in spans]
    place = [(e + offset if offset < 0 else b + offset - 1) for b, e, _ in spans]
    assert spread.tolist() == [
        cell(b, e, p) for (b, e, _), p in zip(spans, place, strict=True)
    ]  # fmt: skip


@examples(10)
@given(st.lists(st.tuples(codes, codes), max_size=60), st.lists(st.tuples(codes, codes)))
def test_pairs_are_numbered_in_order_and_found_again(pairs, others):
    table = PairTable()
    index = {}
    expected = [
        -1 if min(pair) < 0 else index.setdefault(pair, len(index)) for pair in pairs
    ]  # fmt: skip
    left, right = ([p[i] for p in pairs] for i in (0, 1))
    assert table.number(array(left), array(right)).tolist() == expected
    asked = pairs + others
    left, right = ([p[i] for p in asked] for i in (0, 1))
    found = [index.get(pair, -1) for pair in asked]
    assert table.find(array(left), array(right)).tolist() == found
    again = PairTable(table.keys)
    assert again.find(array(left), array(right)).tolist() == found
    assert again.keys.tolist() == [a * hashing.SHIFT + b for a, b in index]


@pytest.mark.parametrize("count", [511, 512, 513, 20_000])
def test_a_table_grows_and_keeps_its_numbers(count):
    left = np.arange(count, dtype=np.int32) // 7
    right = np.arange(count, dtype=np.int32) * 3
    table = PairTable()
    assert table.number(left, right).tolist() == list(range(count))
    assert len(table) == len(table.keys) == count
    assert PairTable(table.keys).find(left, right).tolist() == list(range(count))


def test_rows_leave_out_what_is_unknown_or_beyond_its_template():
    ids = array([[0, 1, -1, 5], [0, 2, 1, 0]])
    indptr, indices = np.empty(5, np.int64), np.empty(8, np.int32)
    starts, columns = array([0, 2, 4], np.int64), array([-1, 0, 1, 2])
    n = hashing.rows_fill(ids, starts, columns, indptr, indices)
    assert indptr.tolist() == [0, 1, 2, 3, 4]
    assert indices[:n].tolist() == [1, 0, 2, 1]


def test_entries_of_two_origins_follow_each_other_row_by_row():
    rows = AttributeRows.of_entries(
        np.array([0, 0, 2, 0, 1, 0, 1, 2]), array([4, 5, 6, 17, 18, 17, SKIP, 3]),
        np.array([1.0, 1.0, 1.0, 2.0, 3.0, 0.5, 4.0, 0.0]), np.array([0, 3]),
    )  # fmt: skip
    assert rows.indices.tolist() == [4, 5, 17, 18, 6]
    assert rows.values.tolist() == [1.0, 1.0, 2.5, 3.0, 1.0]
    assert rows.indptr.tolist() == [0, 3, 4, 5]
