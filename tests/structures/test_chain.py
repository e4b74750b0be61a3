import pickle

import numpy as np
import pytest
from hypothesis import given

from crfkit._parallel import ThreadMap
from crfkit.structures import Chain, ChainPotentials, NoPathError
from crfkit.structures.chain import MAX_LABELS, MOST_LABELS
from tests.oracles import chain_scores, enumerated_sum, log_domain_sums, random_scores
from tests.sampling import examples

CHAIN = Chain()


def sum_of(scores, weight=None):
    out = CHAIN.zeros(scores)
    weight = np.ones(len(scores.offsets) - 1) if weight is None else weight
    return CHAIN.log_partition(scores, weight, out), out


@given(chain_scores(scales=(1.0, 100.0, 1e3, 1e4)))
@examples(40)
def test_sum_equals_enumeration_for_scores_of_any_size(scores):
    weight = np.linspace(0.5, 2.0, len(scores.offsets) - 1)
    log_z, out = sum_of(scores, weight)
    expected_z, expected = enumerated_sum(scores, weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=1e-10)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-10)


@given(chain_scores(scales=(1.0, 1e4)))
@examples(10)
def test_marginals_and_expected_steps_agree(scores):
    _, out = sum_of(scores)
    lengths = np.diff(scores.offsets)
    np.testing.assert_allclose(out.unary.sum(axis=1), 1.0, rtol=1e-10)
    np.testing.assert_allclose(out.pair.sum(), np.maximum(lengths - 1, 0).sum(), atol=1e-9)
    last = scores.offsets[1:][lengths > 0] - 1
    leaving = out.pair.sum(axis=(0, 2))
    np.testing.assert_allclose(
        leaving, out.unary.sum(axis=0) - out.unary[last].sum(axis=0), atol=1e-9
    )


@given(chain_scores(scales=(1.0, 1e4)))
@examples(10)
def test_the_best_path_is_never_above_log_z_and_its_score_is_its_value(scores):
    labels, value = CHAIN.argmax(scores)
    log_z, _ = sum_of(scores)
    assert (value <= log_z + 1e-9 * np.maximum(1.0, np.abs(log_z))).all()
    np.testing.assert_allclose(CHAIN.score(scores, labels), value, rtol=1e-12, atol=1e-12)


def test_a_prefix_of_vanishing_probability_may_win_in_the_end():
    """Two worlds that no step connects: the first leads by 1,000 nats and then dies."""
    n_tokens = 1001
    unary = np.zeros((n_tokens, 2))
    unary[:, 0] = 1.0
    unary[-1] = [-np.inf, 0.0]
    pair = np.array([[[0.0, -np.inf], [-np.inf, 0.0]]])
    log_z, out = sum_of(ChainPotentials.of(unary, pair, np.array([0, n_tokens])))
    assert log_z[0] == 0.0
    np.testing.assert_allclose(out.unary[:, 1], 1.0, rtol=1e-13)


def test_a_late_score_may_revive_a_label_that_underflowed():
    unary = np.array([[0.0, -9e3], [0.0, 0.0], [0.0, 1e4]])
    pair = np.array([[[0.0, -1e4], [-1e4, 0.0]]])
    scores = ChainPotentials.of(unary, pair, np.array([0, 3]))
    log_z, out = sum_of(scores)
    expected_z, expected = enumerated_sum(scores, np.ones(1))
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-14)
    np.testing.assert_allclose(out.unary, expected.unary, atol=1e-11)


def test_many_tokens_agree_with_sums_of_logarithms():
    """Two sequences, of scores near 0 and far from it."""
    both = [random_scores(0, [30_000], 3, scale=scale) for scale in (1.0, 1e4)]
    unary, pair = (np.stack([getattr(s, name) for s in both], 1) for name in ("unary", "pair"))
    expected_z, marginals = log_domain_sums(unary, pair)
    for i, scores in enumerate(both):
        log_z, out = sum_of(scores)
        np.testing.assert_allclose(log_z[0], expected_z[i], rtol=1e-12)
        np.testing.assert_allclose(out.unary, marginals[:, i], atol=1e-9)


def test_a_million_tokens_with_large_scores_need_linear_memory_and_do_not_overflow():
    n_tokens = 1_000_000
    rng = np.random.default_rng(0)
    unary = rng.choice([-1e4, 1e4], size=(n_tokens, 2))
    pair = np.array([[[1e4, -1e4], [-1e4, 1e4]]])
    scores = ChainPotentials.of(unary, pair, np.array([0, n_tokens]))
    log_z, out = sum_of(scores)
    labels, value = CHAIN.argmax(scores)
    assert value <= log_z <= value + n_tokens * np.log(2)
    np.testing.assert_allclose(out.unary.sum(axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize("sum_or_max", [lambda s: sum_of(s), lambda s: CHAIN.argmax(s)])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_the_error_names_the_sequence_and_position_without_a_path(sum_or_max, scale):
    scores = random_scores(3, [2, 3, 2], 2, scale=scale)._replace(first=10)
    scores.unary[4] = -np.inf
    with pytest.raises(NoPathError, match=r"sequence 11: no path is left at position 2") as error:
        sum_or_max(scores)
    assert (error.value.sequence, error.value.position) == (11, 2)
    assert pickle.loads(pickle.dumps(error.value)).args == error.value.args


def test_forbidden_labels_and_steps_have_probability_zero():
    scores = random_scores(0, [5], 3)
    scores.unary[2, 1] = -np.inf
    scores.pair[0, 0, 2] = -np.inf
    _, out = sum_of(scores)
    assert out.unary[2, 1] == 0.0
    assert out.pair[0, 0, 2] == 0.0
    labels, _ = CHAIN.argmax(scores)
    assert labels[2] != 1


def test_one_label_leaves_one_path(rng):
    scores = random_scores(0, [4], 1, scale=1e4)
    log_z, out = sum_of(scores)
    labels, value = CHAIN.argmax(scores)
    np.testing.assert_allclose(log_z, value, rtol=1e-14)
    np.testing.assert_array_equal(out.unary, 1.0)
    assert labels.tolist() == [0, 0, 0, 0]


def test_add_path_adds_the_parts_of_the_score(rng):
    scores = random_scores(0, [3, 2], 3, own_steps=True)
    labels = rng.integers(3, size=5).astype(np.int32)
    out = CHAIN.zeros(scores)
    CHAIN.add_counts(scores, labels, np.ones(2), out)
    total = (out.unary * scores.unary).sum() + (out.pair * scores.pair).sum()
    np.testing.assert_allclose(total, CHAIN.score(scores, labels).sum(), rtol=1e-13)


def test_z_is_the_product_of_matrices():
    """Z as an entry of the product of transition matrices (Lafferty, McCallum, Pereira 2001)."""
    scores = random_scores(5, [6], 4, own_steps=True)
    row = np.exp(scores.unary[0])
    for t in range(1, 6):
        row = row @ (np.exp(scores.pair[t]) * np.exp(scores.unary[t])[None, :])
    np.testing.assert_allclose(sum_of(scores)[0], np.log(row.sum()), rtol=1e-13)


@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e300, -np.inf])
def test_the_pair_scores_of_a_first_token_are_not_used(entry):
    scores = random_scores(0, [3, 0, 2], 3, own_steps=True)
    log_z, out = sum_of(scores)
    changed = scores._replace(pair=scores.pair.copy())
    changed.pair[[0, 3]] = entry
    log_z_changed, out_changed = sum_of(changed)
    np.testing.assert_array_equal(log_z, log_z_changed)
    np.testing.assert_array_equal(out.pair, out_changed.pair)
    np.testing.assert_array_equal(CHAIN.argmax(scores)[0], CHAIN.argmax(changed)[0])


@pytest.mark.parametrize("n_labels", [3, 8, 17, 22, 25, 32, 48, 50])
def test_the_marginals_of_a_sequence_do_not_depend_on_the_others(n_labels):
    lengths = [5, 9, 1, 30, 0, 9, 12, 7]
    scores = random_scores(1, lengths, n_labels)
    together = Chain().zeros(scores)
    log_z = Chain().log_partition(scores, np.ones(len(lengths)), together)
    for s, (begin, end) in enumerate(zip(scores.offsets[:-1], scores.offsets[1:], strict=True)):
        one = scores._replace(unary=scores.unary[begin:end], offsets=np.array([0, end - begin]))
        alone = Chain().zeros(one)
        np.testing.assert_array_equal(Chain().log_partition(one, np.ones(1), alone), log_z[s])
        np.testing.assert_array_equal(alone.unary, together.unary[begin:end])


@pytest.mark.parametrize("n_labels", [8, 30])
@pytest.mark.parametrize("n_forbidden", [1, 4])
def test_a_vanishing_probability_in_some_sequences_leaves_the_others_as_they_are(
    n_labels, n_forbidden
):
    lengths = [6] * 12
    scores = random_scores(2, lengths, n_labels)
    free = Chain().zeros(scores)
    expected = Chain().log_partition(scores, np.ones(12), free)
    some = scores._replace(unary=scores.unary.copy())
    some.unary[: 12 * n_forbidden : 12, 0] = -np.inf  # in every other sequence
    found = Chain().zeros(scores)
    log_z = Chain().log_partition(some, np.ones(12), found)
    np.testing.assert_array_equal(log_z[2 * n_forbidden :], expected[2 * n_forbidden :])
    np.testing.assert_array_equal(found.unary[12 * n_forbidden :], free.unary[12 * n_forbidden :])
    assert (log_z[: 2 * n_forbidden : 2] < expected[: 2 * n_forbidden : 2]).all()


@pytest.mark.parametrize("n_labels", [MAX_LABELS + 2, MOST_LABELS + 1])
def test_chains_of_many_labels_are_summed_in_the_same_order_in_training(n_labels):
    scores = random_scores(3, [4, 30, 2, 9, 17, 9, 1, 25, 3], n_labels)
    found = []
    for structure in (Chain(), Chain(ThreadMap(1))):
        out = structure.zeros(scores)
        found.append((structure.log_partition(scores, np.ones(9), out), out))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1].unary, found[1][1].unary)
    np.testing.assert_array_equal(found[0][1].pair, found[1][1].pair)


def test_one_table_that_tokens_number_is_not_taken_for_one_that_all_share(rng):
    pair = rng.normal(size=(1, 3, 3))
    pair.setflags(write=False)
    shared = ChainPotentials(
        rng.normal(size=(4, 3)), pair, np.zeros(1, np.uint32), np.array([0, 4])
    )
    numbered = shared._replace(transition_index=np.zeros(4, np.uint32), offsets=np.array([0, 1, 4]))
    for order in ((shared, numbered), (numbered, shared)):
        with ThreadMap(2) as threads:
            chain = Chain(threads)
            for potentials in order:
                found, known = chain.zeros(potentials), Chain().zeros(potentials)
                ones = np.ones(len(potentials.offsets) - 1)
                np.testing.assert_allclose(
                    chain.log_partition(potentials, ones, found),
                    Chain().log_partition(potentials, ones, known), rtol=1e-13,
                )  # fmt: skip
                np.testing.assert_allclose(found.pair, known.pair, atol=1e-13)
