"""A long sequence in blocks against the same sequence as a whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit._parallel import ThreadMap, with_threads
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain import blocks as chain_blocks
from crfkit.structures import Chain, ChainPotentials, NoPathError, SparseChain, chain, long_chain
from crfkit.structures.potentials import chain_arrays
from tests.oracles import random_scores
from tests.sampling import examples

BLOCK = 37


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr(long_chain, "BLOCK_TOKENS", BLOCK)
    monkeypatch.setattr(chain, "LONG_TOKENS", BLOCK)


def sum_of(structure, scores, weight=1.0):
    out = structure.zeros(scores)
    return structure.log_partition(scores, np.array([weight]), out)[0], out


def sum_in_blocks(scores, weight=1.0, n_jobs=2):
    with ThreadMap(n_jobs) as threads:
        return sum_of(with_threads(Chain(), threads), scores, weight)


def assert_same(scores, weight=1.0, atol=1e-10):
    log_z, out = sum_in_blocks(scores, weight)
    expected_z, expected = sum_of(Chain(), scores, weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=atol)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=100 * atol)


@given(
    st.integers(0, 2**32 - 1), st.integers(BLOCK + 1, 6 * BLOCK), st.integers(1, 5),
    st.sampled_from([0.1, 1.0, 30.0, 1e3, 1e4]), st.booleans(), st.sampled_from([0.0, 0.3]),
    st.sampled_from([1.0, -0.5, 0.0]),
)  # fmt: skip
@examples(20)
def test_blocks_give_the_sums_of_the_whole(seed, length, size, scale, tables, forbidden, weight):
    scores = random_scores(
        seed, [length], size, shared_tables=tables, scale=scale, forbidden=forbidden
    )
    assert_same(scores, weight, atol=1e-9 if scale > 100 else 1e-11)
    with ThreadMap(2) as threads:
        entropy = with_threads(Chain(), threads).entropy(scores)
    assert entropy == with_threads(Chain(), ThreadMap(1)).entropy(scores)
    np.testing.assert_allclose(entropy, Chain().entropy(scores), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("length", [BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1, 3 * BLOCK - 1])
def test_a_last_block_may_be_short(length):
    assert_same(random_scores(0, [length], 3), atol=1e-13)


@pytest.mark.parametrize("stay", [0.0, -1e-3, -40.0, -800.0])
def test_labels_that_remember_are_carried_through_all_blocks(stay):
    """Labels that hardly ever change: the rows of a transfer matrix stay different."""
    scores = random_scores(1, [5 * BLOCK], 3, scale=0.01)
    scores.pair[0] = stay
    np.fill_diagonal(scores.pair[0], 0.0)
    assert_same(scores)


def test_labels_that_no_path_reaches_are_no_underflow():
    scores = random_scores(1, [4 * BLOCK], 4)
    scores.pair[0] = np.where(np.triu(np.ones((4, 4))) > 0, 0.0, -np.inf)
    scores.unary[0, 1:] = -np.inf
    scores.unary[3 * BLOCK + 5, 2:] = -np.inf
    assert_same(scores)


def test_the_result_is_the_same_to_the_last_bit_for_any_number_of_threads():
    scores = random_scores(2, [500], 3)
    results = [sum_in_blocks(scores, n_jobs=n) for n in (1, 2, 3)]
    for log_z, out in results[1:]:
        assert log_z == results[0][0]
        np.testing.assert_array_equal(out.unary, results[0][1].unary)
        np.testing.assert_array_equal(out.pair, results[0][1].pair)


@pytest.mark.parametrize("position", [0, 5, BLOCK - 1, BLOCK, 2 * BLOCK + 3, 4 * BLOCK - 1])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_the_error_names_the_position_without_a_path(position, scale):
    scores = random_scores(3, [4 * BLOCK], 2, scale=scale)._replace(first=7)
    scores.unary[position] = -np.inf
    with pytest.raises(NoPathError, match=f"sequence 7: .* position {position}:"):
        sum_in_blocks(scores)


def test_a_step_between_two_blocks_may_be_the_one_that_is_forbidden():
    scores = random_scores(3, [4 * BLOCK], 2)
    scores.pair[0] = [[0.0, -np.inf], [-np.inf, 0.0]]
    scores.unary[:BLOCK, 1] = -np.inf
    scores.unary[BLOCK:, 0] = -np.inf
    with pytest.raises(NoPathError, match=f"position {BLOCK}:"):
        sum_in_blocks(scores)


def test_blocks_are_used_for_one_long_sequence_only(monkeypatch):
    monkeypatch.setattr(long_chain, "_transfer", None)
    with ThreadMap(1) as threads:
        structure = with_threads(Chain(), threads)
        several = random_scores(0, [20, 30], 2)
        structure.log_partition(several, np.ones(2), structure.zeros(several))
        own_tables = random_scores(0, [2 * BLOCK], 3, own_steps=True)
        sum_of(structure, own_tables)
        with pytest.raises(TypeError):
            sum_of(structure, random_scores(0, [2 * BLOCK], 3))
        sparse = SparseChain([0], [0], 1)
        assert with_threads(sparse, threads) is sparse


def test_rows_that_agree_are_carried_on_as_one():
    """A row costs as much as a sequence; a chain that forgets pays for one."""
    unary = random_scores(0, [200], 3).unary
    pair = np.zeros((1, 3, 3))
    rows, scale = np.empty((3, 3)), np.empty(3)
    chain_blocks.block_transfer(
        chain_arrays(ChainPotentials.of(unary, pair, np.array([0, 200]))), frozen(np.exp(unary)),
        frozen(np.exp(pair)), False, np.empty(3), np.empty(3), rows, scale,
    )  # fmt: skip
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[0], rows[2])
    last = np.exp(unary[-1])
    np.testing.assert_allclose(rows[0], last / last.sum(), rtol=1e-14)
    total = np.log(np.exp(unary).sum(axis=1)).sum()
    np.testing.assert_allclose(scale, total, rtol=1e-13)


def test_blocks_of_the_real_size_agree_with_the_whole(monkeypatch):
    monkeypatch.undo()
    rng = np.random.default_rng(0)
    pair = np.log(np.array([[[0.999, 0.001], [0.002, 0.998]]]))
    scores = ChainPotentials.of(0.1 * rng.normal(size=(400_000, 2)), pair, np.array([0, 400_000]))
    assert_same(scores, atol=1e-10)
    zeros = scores._replace(unary=np.zeros_like(scores.unary), pair=np.zeros_like(pair))
    np.testing.assert_allclose(sum_in_blocks(zeros)[0], 400_000 * np.log(2), rtol=1e-13)
