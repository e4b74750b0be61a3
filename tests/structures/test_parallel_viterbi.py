"""The best path of a long sequence in blocks against the whole sequence and against enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit._parallel import ThreadMap
from crfkit.structures import Chain, ChainPotentials, NoPathError, chain, long_chain
from tests.oracles import chain_paths, random_scores
from tests.sampling import examples

BLOCK = 16  # whose eighths are two tokens


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    set_sizes(monkeypatch)


def set_sizes(monkeypatch, block=BLOCK, reach=2, probes=2, most=0.75):
    monkeypatch.setattr(long_chain, "BLOCK_TOKENS", block)
    monkeypatch.setattr(chain, "LONG_TOKENS", block)
    monkeypatch.setattr(long_chain, "REACH", reach)
    monkeypatch.setattr(long_chain, "FURTHER", 2)
    monkeypatch.setattr(long_chain, "BATCH", 3)
    monkeypatch.setattr(long_chain, "PROBES", probes)
    monkeypatch.setattr(long_chain, "MOST", most)


def ask_runs_only(monkeypatch):
    """Fail where the whole sequence would be asked."""
    search = long_chain.viterbi_in_blocks

    def found(*arguments):
        labels = search(*arguments)
        assert labels is not None
        return labels

    monkeypatch.setattr(long_chain, "viterbi_in_blocks", found)


@pytest.fixture
def in_runs_only(monkeypatch):
    """The whole sequence is not asked, even where the paths of runs do not meet."""
    monkeypatch.setattr(long_chain, "MOST", 0.0)
    ask_runs_only(monkeypatch)


def best_of(scores, n_jobs=2):
    with ThreadMap(n_jobs) as threads:
        labels, value = Chain(threads).argmax(scores)
    assert labels.dtype == np.int32
    return labels, value[0]


def whole(scores):
    labels, value = Chain().argmax(scores)
    return labels, value[0]


def assert_same(scores, expected=None):
    labels, value = best_of(scores)
    expected_labels, expected_value = expected or whole(scores)
    np.testing.assert_array_equal(labels, expected_labels)
    np.testing.assert_allclose(value, expected_value, rtol=1e-12, atol=1e-11)


def rounded(scores):
    """Scores whose sums are exact, with many equal ones."""
    return scores._replace(unary=np.round(scores.unary), pair=np.round(scores.pair))


def apart(scores, penalty):
    """Make all labels stay for ever, or nearly."""
    scores.pair[...] = penalty
    for table in scores.pair:
        np.fill_diagonal(table, 0.0)
    return scores


random_chains = st.builds(
    random_scores,
    st.integers(0, 2**32 - 1), st.lists(st.integers(BLOCK + 1, 6 * BLOCK), min_size=1, max_size=1),
    st.integers(1, 5) | st.integers(8, 14),
    shared_tables=st.booleans(), own_steps=st.booleans(), scale=st.sampled_from([0.3, 1.0, 30.0]),
    forbidden=st.sampled_from([0.0, 0.4]),
)  # fmt: skip
blocks = st.sampled_from([1, 3, 8, BLOCK])
shares = st.sampled_from([0.0, 0.75, 2.0])  # of runs that must know more than their own


@given(random_chains, blocks, st.integers(1, 4), st.integers(1, 3), shares)
@examples(60)
def test_exact_sums_give_the_very_path_of_the_whole(scores, block, reach, probes, most):
    with pytest.MonkeyPatch.context() as patch:
        set_sizes(patch, block, reach, probes, most)
        assert_same(rounded(scores))


@given(random_chains, st.sampled_from([0.0, -1.0, -4.0, -50.0, -np.inf]), blocks, shares)
@examples(60)
def test_labels_that_rarely_change_give_the_very_path_of_the_whole(scores, penalty, block, most):
    with pytest.MonkeyPatch.context() as patch:
        set_sizes(patch, block, reach=1, most=most)
        assert_same(apart(rounded(scores), penalty))


@given(
    st.integers(0, 2**32 - 1), st.integers(2, 10), st.integers(1, 3), st.sampled_from([1, 2, 8]),
    st.sampled_from([0.4, 1.0, 1e4]), st.booleans(), st.sampled_from([0.0, 0.4]), shares,
)  # fmt: skip
@examples(30)
def test_the_path_is_the_lowest_of_the_best_ones(
    seed, length, size, block, scale, tables, forbidden, most
):
    if size == 3:
        length = min(length, 7)
    scores = rounded(random_scores(seed, [length], size, shared_tables=tables, scale=scale,
                                   forbidden=forbidden))  # fmt: skip
    paths = list(chain_paths(scores, 0))
    top = max(score for _, score in paths)
    lowest = min((path for path, score in paths if score == top), key=lambda path: path[::-1])
    with pytest.MonkeyPatch.context() as patch:
        set_sizes(patch, min(block, length - 1), reach=1, most=most)
        assert_same(scores, (lowest, top))


@given(random_chains, st.sampled_from([1.0, 1e4]))
@examples(20)
def test_rounded_sums_give_a_path_of_the_largest_score(scores, scale):
    scores = scores._replace(unary=scale * scores.unary, pair=scale * scores.pair)
    labels, value = best_of(scores)
    np.testing.assert_allclose(value, whole(scores)[1], rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(Chain().score(scores, labels)[0], value, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("length", [BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1, 3 * BLOCK - 1])
@pytest.mark.parametrize("size", [1, 3, 13, 14])
def test_runs_are_enough_where_paths_meet(length, size, monkeypatch):
    set_sizes(monkeypatch, reach=8)
    scores = random_scores(0, [length], size, scale=3.0)
    expected = whole(scores)
    ask_runs_only(monkeypatch)
    assert_same(scores, expected)


def test_of_equal_paths_the_lowest_labels_are_taken(in_runs_only):
    labels, value = best_of(
        ChainPotentials.of(np.zeros((50, 3)), np.zeros((1, 3, 3)), np.array([0, 50]))
    )
    np.testing.assert_array_equal(labels, 0)
    assert value == 0.0


def test_a_path_goes_on_by_itself_until_it_meets_another(in_runs_only):
    """Labels stay for ever over several blocks; all paths meet before and after."""
    scores = rounded(random_scores(1, [20 * BLOCK], 3, shared_tables=True))
    scores.transition_index[...] = 0
    scores.transition_index[3 * BLOCK + 4 : 9 * BLOCK + 5] = 1
    scores.pair[1] = np.where(np.eye(3) > 0, 0.0, -np.inf)
    expected = whole(scores)
    assert len(set(expected[0][3 * BLOCK + 4 : 9 * BLOCK + 5])) == 1
    assert_same(scores, expected)


def test_what_is_decided_at_the_very_end_is_known_in_all_blocks(in_runs_only):
    scores = apart(random_scores(1, [10 * BLOCK], 3, scale=0.01), -np.inf)
    scores.unary[-1] = [0.0, 100.0, 0.0]
    labels, _ = best_of(scores)
    np.testing.assert_array_equal(labels, 1)


def test_where_paths_do_not_meet_the_whole_is_asked(monkeypatch):
    scores = apart(random_scores(1, [10 * BLOCK], 3, scale=0.01), -np.inf)
    expected = whole(scores)
    monkeypatch.setattr(long_chain._Path, "join", None)
    assert_same(scores, expected)


def test_where_paths_meet_late_blocks_are_not_cut(monkeypatch):
    """Eighths look two tokens beyond their own and blocks eight; paths meet at every fifth."""
    scores = apart(
        ChainPotentials.of(np.zeros((200, 3)), np.zeros((1, 3, 3)), np.array([0, 200])), -5.0
    )
    scores.unary[::5] += 20.0 * np.eye(3)[np.arange(40) % 3]
    expected = whole(scores)
    set_sizes(monkeypatch)
    monkeypatch.setattr(long_chain, "FURTHER", 4)
    ask_runs_only(monkeypatch)
    ways = []
    for name in ("_side_by_side", "_one_by_one"):
        way = getattr(long_chain, name)
        noted = lambda *given, name=name, way=way: ways.append(name) or way(*given)  # noqa: E731
        monkeypatch.setattr(long_chain, name, noted)
    assert_same(scores, expected)
    assert ways[:2] == ["_side_by_side"] * 2
    assert set(ways[2:]) == {"_one_by_one"}
    assert len(ways) == 2 + 13


def test_labels_that_only_a_block_by_itself_can_reach_do_not_count():
    """The largest score of a block belongs to a label that the sequence has left for good."""
    scores = rounded(random_scores(1, [6 * BLOCK], 4))
    scores.pair[0] = np.where(np.triu(np.ones((4, 4))) > 0, 0.0, -np.inf)
    scores.unary[:, 0] = 50.0
    scores.unary[BLOCK // 2, 0] = -np.inf
    scores.unary[4 * BLOCK + 2, 2:] = -np.inf
    assert_same(scores)


def test_the_result_is_the_same_to_the_last_bit_for_any_number_of_threads():
    scores = random_scores(2, [500], 3, scale=0.5)
    first = best_of(scores, 1)
    for n_jobs in (2, 3):
        labels, value = best_of(scores, n_jobs)
        np.testing.assert_array_equal(labels, first[0])
        assert value == first[1]


@pytest.mark.parametrize("position", [0, 5, BLOCK - 1, BLOCK, 2 * BLOCK + 3, 4 * BLOCK - 1])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_the_error_names_the_position_without_a_path(position, scale):
    scores = random_scores(3, [4 * BLOCK], 2, scale=scale)._replace(first=7)
    scores.unary[position] = -np.inf
    with pytest.raises(NoPathError, match=f"sequence 7: .* position {position}:"):
        best_of(scores)


@pytest.mark.parametrize("position", [BLOCK, BLOCK + 5, 4 * BLOCK - 1])
def test_a_step_may_be_the_one_that_is_forbidden(position, monkeypatch):
    set_sizes(monkeypatch, most=0.0)
    scores = random_scores(3, [4 * BLOCK], 2)
    scores.pair[0] = [[0.0, -np.inf], [-np.inf, 0.0]]
    scores.unary[:position, 1] = -np.inf
    scores.unary[position:, 0] = -np.inf
    with pytest.raises(NoPathError, match=f"position {position}:"):
        best_of(scores)


@given(random_chains, st.integers(0, 2**32 - 1))
@examples(10)
def test_the_score_of_a_path_is_that_of_its_blocks(scores, seed):
    size = scores.unary.shape[1]
    labels = np.random.default_rng(seed).integers(size, size=len(scores.unary)).astype(np.int32)
    expected = Chain().score(scores, labels)
    with ThreadMap(2) as threads:
        np.testing.assert_allclose(Chain(threads).score(scores, labels), expected, rtol=1e-12)


def test_several_sequences_are_left_to_the_chain():
    scores = random_scores(0, [20, 30], 2)
    with ThreadMap(2) as threads:
        structure = Chain(threads)
        labels, value = structure.argmax(scores)
        score = structure.score(scores, labels)
    expected_labels, expected = Chain().argmax(scores)
    np.testing.assert_array_equal(labels, expected_labels)
    np.testing.assert_array_equal(value, expected)
    np.testing.assert_array_equal(score, Chain().score(scores, labels))


@pytest.mark.parametrize("size", [3, 9])
def test_blocks_of_the_real_size_agree_with_the_whole(monkeypatch, size):
    monkeypatch.undo()
    scores = rounded(random_scores(0, [400_000], size, scale=5.0))
    scores.pair[0] += 15.0 * np.eye(size)
    expected = whole(scores)
    ask_runs_only(monkeypatch)
    assert_same(scores, expected)


@pytest.mark.parametrize("base", np.arange(1, 40))
def test_where_sums_round_a_tie_breaks_no_path(monkeypatch, base):
    """Two ways to the same label are equally good but for rounding, which is not that of a run."""
    set_sizes(monkeypatch, block=4, reach=1, probes=1, most=0.0)
    size, start, labels = 60, 20, 11
    pair = np.full((1, labels, labels), -np.inf)
    ways = [(0, 0), (1, 1), (0, 2), (1, 2), (2, 3), (2, 4), (3, 5), (3, 6), (4, 7), (5, 8), (5, 9),
            (7, 8), (7, 9), (6, 10), (8, 8), (9, 9), (10, 10)]  # fmt: skip
    pair[0][tuple(np.transpose(ways))] = 0.0
    unary = np.full((size, labels), -np.inf)
    unary[:start, :2] = 0.0
    unary[0, :2] = 0.1 * base, 0.1 * base - 1.0
    unary[start, 2] = 0.0
    unary[start + 1, 3:5] = 0.1, 0.3
    unary[start + 2, 5:8] = 0.2, 0.2, 0.0
    unary[start + 3 :, 8:] = 0.0
    unary[start + 7 :, 10] = -np.inf
    unary[-1, 8] = 1.0
    scores = ChainPotentials.of(unary, pair, np.array([0, size]))
    labels_found, value = best_of(scores)
    np.testing.assert_allclose(value, whole(scores)[1], rtol=1e-14)
    np.testing.assert_allclose(Chain().score(scores, labels_found), value, rtol=1e-14)
