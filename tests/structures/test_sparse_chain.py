"""A chain of few scored steps against the dense chain and enumeration."""

import numpy as np
import pytest
from hypothesis import given

from crfkit.structures import Chain, ChainPotentials, NoPathError, SparseChain, sparse_chain
from tests.oracles import enumerated_sum, filled_up, sparse_chain_scores
from tests.sampling import examples


def sum_of(structure, scores, weight=None):
    weight = np.ones(len(scores.offsets) - 1) if weight is None else weight
    out = structure.zeros(scores)
    return structure.log_partition(scores, weight, out), out


def random_problem(seed, lengths, n_labels, share, scale=1.0):
    rng = np.random.default_rng(seed)
    structure = SparseChain(*np.nonzero(rng.random((n_labels, n_labels)) < share), n_labels)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    unary = rng.normal(size=(offsets[-1], n_labels))
    pair = scale * rng.normal(size=(1, len(structure.source)))
    return structure, ChainPotentials.of(unary, pair, offsets)


def assert_same_sums(structure, scores, weight=None, atol=1e-12):
    dense = filled_up(scores, structure)
    log_z, out = sum_of(structure, scores, weight)
    expected_z, expected = sum_of(Chain(), dense, weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=atol)
    steps = expected.pair[0, structure.source, structure.target]
    np.testing.assert_allclose(out.pair[0], steps, rtol=0, atol=atol)


def rounding_of(scores):
    """How far a probability may be off: logarithms have no more digits than the scores."""
    parts = np.concatenate([scores.unary.ravel(), scores.pair.ravel()])
    return max(1e-10, 4.0 * np.spacing(np.abs(parts[np.isfinite(parts)]).max(initial=0.0)))


@given(sparse_chain_scores(scales=(0.1, 1.0, 50.0, 1e4)))
@examples(40)
def test_sums_equal_enumeration(drawn):
    structure, scores = drawn
    weight = np.linspace(-0.5, 2.0, len(scores.offsets) - 1)
    log_z, out = sum_of(structure, scores, weight)
    expected_z, expected = enumerated_sum(filled_up(scores, structure), weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=rounding_of(scores))
    steps = expected.pair[0, structure.source, structure.target]
    np.testing.assert_allclose(out.pair[0], steps, rtol=0, atol=rounding_of(scores))


@given(sparse_chain_scores(scales=(0.1, 1.0, 50.0, 1e4)))
@examples(40)
def test_answers_are_those_of_the_dense_chain(drawn):
    structure, scores = drawn
    dense = filled_up(scores, structure)
    labels, value = structure.argmax(scores)
    expected_labels, expected_value = Chain().argmax(dense)
    np.testing.assert_array_equal(labels, expected_labels)
    np.testing.assert_array_equal(value, expected_value)
    np.testing.assert_array_equal(structure.score(scores, labels), Chain().score(dense, labels))
    assert_same_sums(structure, scores, atol=rounding_of(scores))


@given(sparse_chain_scores())
@examples(20)
def test_of_equal_paths_the_lowest_labels_win_as_in_a_dense_chain(drawn):
    structure, scores = drawn
    scores = scores._replace(unary=np.round(scores.unary), pair=np.round(scores.pair))
    expected, _ = Chain().argmax(filled_up(scores, structure))
    np.testing.assert_array_equal(structure.argmax(scores)[0], expected)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("scale", [1.0, 50.0, 2000.0])
def test_many_labels_agree_with_the_dense_chain(share, scale):
    """Where scores are spread, sums of logarithms follow the scored steps too."""
    structure, scores = random_problem(0, [30, 0, 1, 25], 60, share, scale)
    assert_same_sums(structure, scores, np.array([1.0, 1.0, 2.0, 0.5]), 1e-12 * scale)
    dense = filled_up(scores, structure)
    np.testing.assert_array_equal(structure.argmax(scores)[0], Chain().argmax(dense)[0])


@pytest.mark.parametrize("step", [-30.0, -700.0, -np.inf])
def test_digits_survive_where_nearly_all_paths_take_forbidden_steps(step):
    """All minus the scored predecessors is a difference of nearly equal numbers here."""
    n_labels = 6
    structure = SparseChain(np.zeros(n_labels - 1), np.arange(1, n_labels), n_labels)
    unary = np.full((4, n_labels), -20.0)
    unary[[0, 2], 0] = 0.0
    unary[[1, 3], 0] = -np.inf
    scores = ChainPotentials.of(unary, np.full((1, n_labels - 1), step), np.array([0, 4]))
    dense = filled_up(scores, structure)
    log_z, out = sum_of(structure, scores)
    expected_z, expected = enumerated_sum(dense, np.ones(1))
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-14)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=1e-12)
    np.testing.assert_allclose(out.pair[0], expected.pair[0, 0, 1:], rtol=1e-12)


@pytest.mark.parametrize("score", [800.0, -800.0])
def test_steps_beyond_the_linear_domain_are_summed_in_the_log_domain(score):
    structure = SparseChain([0, 1], [1, 0], 2)
    unary = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    scores = ChainPotentials.of(unary, np.full((1, 2), score), np.array([0, 3]))
    log_z, out = sum_of(structure, scores, np.array([2.0]))
    expected_z, expected = enumerated_sum(filled_up(scores, structure), np.array([2.0]))
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-14)
    np.testing.assert_allclose(out.unary, expected.unary, atol=1e-11)
    np.testing.assert_allclose(out.pair[0], expected.pair[0, [0, 1], [1, 0]], atol=1e-11)


@pytest.mark.parametrize("answer", [lambda c, s: sum_of(c, s), lambda c, s: c.argmax(s)])
def test_the_error_names_the_sequence_and_position_without_a_path(answer):
    structure, scores = random_problem(3, [2, 3, 2], 3, 0.4)
    scores.unary[4] = -np.inf
    with pytest.raises(NoPathError, match=r"sequence 11: no path is left at position 2"):
        answer(structure, scores._replace(first=10))


@pytest.mark.parametrize("answer", [lambda c, s: sum_of(c, s), lambda c, s: c.argmax(s)])
def test_forbidding_all_steps_leaves_no_path(answer):
    structure = SparseChain([0, 0, 1, 1], [0, 1, 0, 1], 2)
    scores = ChainPotentials.of(np.zeros((3, 2)), np.full((1, 4), -np.inf), np.array([0, 3]))
    with pytest.raises(NoPathError, match="position 1"):
        answer(structure, scores)


def test_add_path_adds_the_parts_of_the_score(rng):
    structure, scores = random_problem(0, [3, 0, 2], 4, 0.5)
    labels = rng.integers(4, size=5).astype(np.int32)
    out = structure.zeros(scores)
    structure.add_counts(scores, labels, np.ones(3), out)
    total = (out.unary * scores.unary).sum() + (out.pair * scores.pair).sum()
    np.testing.assert_allclose(total, structure.score(scores, labels).sum(), rtol=1e-13)


def test_the_curvature_is_the_derivative_of_the_expected_counts():
    structure, scores = random_problem(1, [4, 0, 3], 4, 0.4)
    _, tangent = random_problem(2, [4, 0, 3], 4, 0.4)
    tangent = tangent._replace(pair=np.linspace(-1.0, 1.0, scores.pair.size)[None])
    weight, step = np.array([1.0, 1.0, 2.0]), 1e-5

    def counts_at(shift):
        unary, pair = (a + shift * b for a, b in zip(scores[:2], tangent[:2], strict=True))
        return sum_of(structure, scores._replace(unary=unary, pair=pair), weight)[1]

    out = structure.zeros(scores)
    structure.hessian_product(scores, tangent, weight, out)
    ahead, behind = counts_at(step), counts_at(-step)
    for found, after, before in zip(out, ahead, behind, strict=True):
        np.testing.assert_allclose(found, (after - before) / (2 * step), atol=1e-9)


def test_one_label_leaves_one_path():
    structure, scores = random_problem(0, [4], 1, 1.0)
    log_z, out = sum_of(structure, scores)
    np.testing.assert_allclose(log_z, structure.argmax(scores)[1], rtol=1e-14)
    np.testing.assert_array_equal(out.unary, 1.0)
    np.testing.assert_allclose(out.pair, 3.0, rtol=1e-15)


def test_no_sequences_and_empty_sequences_have_the_sum_of_one_empty_path():
    structure = SparseChain([0], [1], 2)
    for count in (0, 2):
        scores = ChainPotentials.of(
            np.zeros((0, 2)), np.ones((1, 1)), np.zeros(count + 1, np.int64)
        )
        log_z, out = sum_of(structure, scores)
        assert log_z.tolist() == [0.0] * count
        assert out.pair.tolist() == [[0.0]]
        assert structure.argmax(scores)[1].tolist() == [0.0] * count


@pytest.mark.parametrize(
    ("source", "target"), [([1, 0], [0, 0]), ([0, 0], [1, 1]), ([0], [2]), ([-1], [0])]
)
def test_pairs_that_are_not_sorted_labels_are_refused(source, target):
    with pytest.raises(ValueError, match="numbers below 2, sorted by source"):
        SparseChain(source, target, 2)


def test_labels_that_no_path_reaches_do_not_count_in_sums_of_logarithms():
    """Their way to the end would be the best by far."""
    n_labels, dead = 30, 3
    rng = np.random.default_rng(1)
    scored = rng.random((n_labels, n_labels)) < 0.2
    scored[:, dead] = scored[dead] = True
    structure = SparseChain(*np.nonzero(scored), n_labels)
    unary, pair = rng.normal(size=(21, n_labels)), 900.0 * rng.normal(size=(1, scored.sum()))
    unary[[0, 12], dead] = -np.inf
    pair[0, structure.source == dead] = 5000.0
    pair[0, structure.target == dead] = -np.inf
    assert_same_sums(structure, ChainPotentials.of(unary, pair, np.array([0, 12, 21])), atol=1e-10)


def test_the_linear_domain_is_left_only_where_scores_are_spread(monkeypatch):
    monkeypatch.setattr(sparse_chain, "sparse_sum_log", None)
    structure, scores = random_problem(0, [40], 20, 0.3)
    assert np.isfinite(sum_of(structure, scores)[0]).all()
