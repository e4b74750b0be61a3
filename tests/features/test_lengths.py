"""Features of lengths."""

import ast
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.features.lengths import length_basis, value_of

LENGTHS = st.integers(1, 600)


@given(LENGTHS)
def test_indicators_tell_each_length(longest):
    found = length_basis("indicator", longest)
    np.testing.assert_array_equal(found.basis.toarray(), np.eye(longest))
    assert found.names == [f"seg.length={d}" for d in range(1, longest + 1)]
    assert not found.fixed.any()


@given(LENGTHS)
def test_buckets_part_the_lengths_into_ranges_that_grow(longest):
    found = length_basis("buckets", longest)
    basis = found.basis.toarray()
    assert set(np.unique(basis)) <= {0.0, 1.0}
    np.testing.assert_array_equal(basis.sum(1), np.ones(longest))
    which = basis.argmax(1)
    assert np.all(np.diff(which) >= 0)
    assert np.all(basis.any(0))
    sizes = np.bincount(which)
    assert np.all(sizes[:5] == 1)
    assert np.all(np.diff(sizes[:-1]) >= 0)
    for name, bucket in zip(found.names, range(len(sizes)), strict=True):
        lengths = np.flatnonzero(which == bucket) + 1
        condition = name if "<=" in name else name.replace("=", "==")
        tree = ast.parse(condition, mode="eval").body
        assert np.all(value_of(tree, "seg.length", lengths))


@pytest.mark.parametrize("kind", ["indicator", "buckets"])
def test_one_feature_a_length_takes_no_table_of_all_pairs(kind):
    found = length_basis(kind, 10_000)
    basis = found.basis
    assert basis.data.nbytes + basis.indices.nbytes + basis.indptr.nbytes <= 24 * 10_001
    assert basis.shape == (10_000, len(found.names))


def test_few_buckets_stand_for_many_lengths():
    assert [len(length_basis("buckets", n).names) for n in (5, 10, 100, 535)] == [5, 8, 15, 20]


@given(LENGTHS)
def test_poisson_and_geometric_lengths_are_distributed_so(longest):
    rate = 0.7
    for kind in ("geometric", "poisson"):
        found = length_basis(kind, longest)
        scores = found.fixed + found.basis.toarray()[:, 0] * math.log(rate)
        extra = np.arange(longest)
        wanted = extra * math.log(rate)
        if kind == "poisson":
            wanted = wanted - [math.lgamma(n + 1) for n in extra]
        np.testing.assert_allclose(scores, wanted, atol=1e-9, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3 <= seg.length <= 5", lambda d: 3 <= d <= 5),
        ("seg.length", lambda d: d),
        ("log(seg.length)", math.log),
        ("-sqrt(seg.length) / 2", lambda d: -math.sqrt(d) / 2),
        ("(seg.length - 4) ** 2", lambda d: (d - 4) ** 2),
        ("seg.length % 2 == 0", lambda d: d % 2 == 0),
        ("seg.length // 3", lambda d: d // 3),
        ("min(seg.length, 4) + max(seg.length, 2)", lambda d: min(d, 4) + max(d, 2)),
        ("seg.length < 2 or seg.length > 4 and 6 != seg.length", lambda d: d < 2 or d in (5, 7, 8)),
        ("1 > 2", lambda d: 0),
    ],
)
def test_an_expression_is_what_python_makes_of_it(text, value):
    found = length_basis(text, 8)
    np.testing.assert_allclose(found.basis.toarray()[:, 0], [float(value(d)) for d in range(1, 9)])
    assert found.names == [text]


def test_functions_and_lists_of_kinds_stand_side_by_side():
    def shares(lengths):
        return np.column_stack([1 / lengths, lengths > 2])

    found = length_basis(["indicator", shares, "poisson", lambda d: d / 4], 3)
    basis = found.basis.toarray()
    np.testing.assert_array_equal(basis[:, :3], np.eye(3))
    np.testing.assert_allclose(basis[:, 3], [1, 1 / 2, 1 / 3])
    np.testing.assert_allclose(basis[:, 4], [0, 0, 1])
    np.testing.assert_allclose(basis[:, 5:], [[0, 0.25], [1, 0.5], [2, 0.75]])
    assert found.names[3:] == ["shares[0]", "shares[1]", "seg.length-1", "<lambda>[0]"]
    np.testing.assert_allclose(found.fixed, [0, 0, -math.log(2)], atol=1e-12)


@pytest.mark.parametrize("kinds", [None, [], ()])
def test_no_kinds_are_no_features(kinds):
    found = length_basis(kinds, 4)
    assert found.basis.shape == (4, 0)
    assert found.names == []


@pytest.mark.parametrize(
    ("kinds", "error", "problem"),
    [
        ("seg.text", ValueError, "nor an expression"),
        ("3 <= seg.length <=", ValueError, "nor an expression"),
        ("__import__('os')", ValueError, "nor an expression"),
        ("seg.length in e", ValueError, "nor an expression"),
        ("log(seg.length, base=2)", ValueError, "nor an expression"),
        ("'a'", ValueError, "nor an expression"),
        ("seg.length * " + "9" * 400, ValueError, "nor an expression"),
        ("min(seg.length, 2, seg.length)", ValueError, "nor an expression"),
        ("log(seg.length, 2)", ValueError, "nor an expression"),
        ("1 / 0", ValueError, "not finite"),
        ("log(seg.length - 1)", ValueError, "not finite"),
        (3, TypeError, "one of indicator"),
        ([3], TypeError, "one of indicator"),
        (lambda lengths: lengths[1:], ValueError, "shape"),
        (lambda lengths: lengths * np.inf, ValueError, "finite"),
    ],
)
def test_bad_kinds_are_named(kinds, error, problem):
    with pytest.raises(error, match=problem):
        length_basis(kinds, 3)
