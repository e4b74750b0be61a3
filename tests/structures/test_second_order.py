"""Second-order chains against chains of first order: over the same labels, and over pairs of them.

tests/contracts/test_structures.py compares them with enumeration.
"""

import numpy as np
import pytest

from crfkit._types import Counts
from crfkit.structures import (
    Chain,
    ChainPotentials,
    NoPathError,
    SecondOrderChain,
    SecondOrderPotentials,
    second_order,
)
from tests.contracts.structures import MAKERS, under_rules
from tests.oracles import random_scores

SIZES = [(1, 0.0), (3, 0.3), (9, 0.0), (9, 0.7)]  # labels, and how many of them are not live


def potentials_of(n_labels, dead, lengths, scale=1.0, seed=0):
    """Scores of second order, of which those of some labels and of a tenth of steps are -inf."""
    rng = np.random.default_rng(seed)
    chain = random_scores(seed, lengths, n_labels, scale=scale)
    chain.unary[:, 1:][rng.random((sum(lengths), n_labels - 1)) < dead] = -np.inf
    pair = scale * rng.normal(size=(n_labels + 1, n_labels, n_labels))
    pair[rng.random(pair.shape) < dead / 3] = -np.inf
    pair[:, 0, 0] = 0.0
    return SecondOrderPotentials(chain.unary, pair, chain.offsets)


def over_pairs(potentials):
    """The chain whose labels are pairs: of the label before, or K, and of the own one."""
    size = potentials.n_labels
    before, own = np.divmod(np.arange((size + 1) * size), size)
    unary = potentials.unary[:, own]
    is_first = np.zeros(len(unary), bool)
    is_first[potentials.offsets[:-1][np.diff(potentials.offsets) > 0]] = True
    unary[is_first[:, None] != (before == size)] = -np.inf
    pair = np.where(own[:, None] == before, potentials.pair[before[:, None], own[:, None], own], 0)
    pair[own[:, None] != before] = -np.inf
    return ChainPotentials.of(unary, pair[None], potentials.offsets), own


@pytest.mark.parametrize(("n_labels", "dead"), SIZES)
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_it_is_a_chain_over_pairs_of_labels(n_labels, dead, scale):
    potentials = potentials_of(n_labels, dead, [1, 2, 0, 3, 12], scale)
    pairs, own = over_pairs(potentials)
    chain, plain = SecondOrderChain(), Chain()
    weight = np.array([1.0, 2.0, 1.0, -0.5, 3.0])
    out, expected = chain.zeros(potentials), plain.zeros(pairs)
    log_z = chain.log_partition(potentials, weight, out)
    of_pairs = plain.log_partition(pairs, weight, expected)
    np.testing.assert_allclose(log_z, of_pairs, rtol=1e-12, atol=1e-12)
    size = n_labels
    marginals = expected.unary.reshape(-1, size + 1, size).sum(axis=1)
    np.testing.assert_allclose(out.unary, marginals, atol=1e-11)
    before = np.arange(len(own)) // size
    triples = np.zeros_like(potentials.pair)
    np.add.at(triples, (before[:, None], own[:, None], own), expected.pair[0])
    np.testing.assert_allclose(out.pair, triples, atol=1e-11)
    labels, value = chain.argmax(potentials)
    np.testing.assert_array_equal(labels, own[plain.argmax(pairs)[0]])
    np.testing.assert_allclose(value, plain.argmax(pairs)[1], rtol=1e-13)
    np.testing.assert_allclose(chain.entropy(potentials), plain.entropy(pairs), rtol=1e-9)


@pytest.mark.parametrize(("n_labels", "dead"), SIZES)
def test_what_does_not_depend_on_the_label_two_before_is_a_chain(n_labels, dead):
    lengths = [40, 1, 700]
    second = potentials_of(n_labels, dead, lengths)
    plain = ChainPotentials.of(second.unary, second.pair[:1], second.offsets)
    second = second._replace(pair=np.repeat(plain.pair, n_labels + 1, axis=0))
    labels, value = SecondOrderChain().argmax(second)
    for found, expected in zip((labels, value), Chain().argmax(plain), strict=True):
        np.testing.assert_array_equal(found, expected)  # to the last bit
    np.testing.assert_allclose(SecondOrderChain().score(second, labels), value, rtol=1e-13)
    out, expected = SecondOrderChain().zeros(second), Chain().zeros(plain)
    weight = np.array([1.0, 0.0, 2.0])
    log_z = SecondOrderChain().log_partition(second, weight, out)
    np.testing.assert_allclose(log_z, Chain().log_partition(plain, weight, expected), rtol=1e-13)
    np.testing.assert_allclose(out.unary, expected.unary, atol=1e-11)
    np.testing.assert_allclose(out.pair.sum(axis=0), expected.pair[0], rtol=1e-9, atol=1e-11)
    numbers = np.random.default_rng(0).random((3, sum(lengths)))
    drawn = SecondOrderChain().sample(second, numbers)
    np.testing.assert_array_equal(drawn, Chain().sample(plain, numbers))
    one = second.take(np.array([0]))
    best = SecondOrderChain().k_best(one, 30)
    of_chain = Chain().k_best(plain.take(np.array([0])), 30)
    np.testing.assert_allclose(best.scores, of_chain.scores, rtol=1e-13)
    np.testing.assert_array_equal(best.codes, of_chain.codes)


def test_tables_in_another_order_change_no_path():
    """Tokens of few labels stand beside those of all, so that steps are of every kind."""
    potentials = potentials_of(11, 0.5, [1, 2, 0, 30, 100], seed=3)
    unary = np.round(potentials.unary)  # with paths of equal scores
    rng = np.random.default_rng(0)
    unary[rng.random(len(unary)) < 0.4] = 0.0
    pair = np.round(potentials.pair)
    plain = potentials._replace(unary=unary, pair=pair)
    turned = plain._replace(turned=second_order.TurnedTables.of(pair))
    chain, one = SecondOrderChain(), np.array([3])
    for found, expected in zip(chain.argmax(turned), chain.argmax(plain), strict=True):
        np.testing.assert_array_equal(found, expected)
    best, expected = (chain.k_best(some.take(one), 20) for some in (turned, plain))
    np.testing.assert_array_equal(best.codes, expected.codes)
    np.testing.assert_array_equal(best.scores, expected.scores)
    others = {"pair": -pair[::-1].copy()}  # in another order, these are not known
    found, expected = (chain.argmax(some._replace(**others))[0] for some in (turned, plain))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(turned.take(one).by_last, pair.transpose(2, 0, 1))


def test_improbable_steps_alone_are_left():
    """Each is far less probable than others of the table, which no path takes."""
    pair = np.full((3, 2, 2), -np.inf)
    pair[:, 0, 0], pair[:, 1, 1] = -430.0, 0.0
    unary = np.zeros((6, 2))
    unary[0, 1] = -np.inf
    potentials, chain = SecondOrderPotentials(unary, pair, np.array([0, 6])), SecondOrderChain()
    out = chain.zeros(potentials)
    np.testing.assert_allclose(chain.log_partition(potentials, np.ones(1), out), [-5 * 430.0])
    np.testing.assert_allclose(out.unary, np.tile([1.0, 0.0], (6, 1)), atol=1e-12)
    np.testing.assert_allclose(out.pair[:, 0, 0], [4.0, 0.0, 1.0], atol=1e-12)


def test_lists_of_an_empty_sequence_read_no_states(monkeypatch):
    """There are none, so that where they start was not written."""
    unwritten = lambda states: np.full(states._longest + 1, 1 << 40)  # noqa: E731
    monkeypatch.setattr(second_order._States, "starts", unwritten)
    found = SecondOrderChain().k_best(potentials_of(3, 0.0, [0, 2]), 2)
    assert found.counts.tolist() == [1, 2]


def test_long_sequences_keep_their_digits():
    short = potentials_of(9, 0.8, [500])
    chain, times = SecondOrderChain(), 200
    long = short._replace(
        unary=np.tile(short.unary, (times, 1)), offsets=np.array([0, 500 * times])
    )
    out = chain.zeros(long)
    log_z = chain.log_partition(long, np.ones(1), out)
    np.testing.assert_allclose(out.unary.sum(axis=1), 1.0, rtol=1e-11)
    assert out.pair.sum() == pytest.approx(500 * times - 1, rel=1e-11)
    twice = short._replace(unary=np.tile(short.unary, (2, 1)), offsets=np.array([0, 1000]))
    one, two = (chain.log_partition(each, np.ones(1), chain.zeros(each)) for each in (short, twice))
    assert log_z[0] == pytest.approx((one + (times - 1) * (two - one))[0], rel=1e-4)
    labels, value = chain.argmax(long)
    assert chain.score(long, labels) == pytest.approx(value, rel=1e-12)
    assert value <= log_z


@pytest.mark.parametrize("position", [0, 1, 4])
def test_the_position_that_no_path_gets_past_is_named(position):
    potentials = potentials_of(4, 0.0, [2, 6])._replace(first=5)
    potentials.unary[2 + position, :] = -np.inf
    asks = [
        lambda: SecondOrderChain().log_partition(
            potentials, np.ones(2), Counts(*map(np.zeros_like, potentials.arrays()))
        ),
        lambda: SecondOrderChain().argmax(potentials),
        lambda: SecondOrderChain().sample(potentials, np.zeros((1, 8))),
        lambda: SecondOrderChain().entropy(potentials),
        lambda: SecondOrderChain().k_best(potentials, 2),
    ]
    for ask in asks:
        with pytest.raises(NoPathError) as error:
            ask()
        assert (error.value.sequence, error.value.position) == (6, position)


def test_labelings_under_rules_are_those_of_enumeration():
    case = under_rules(MAKERS["second-order chain"], 3, 1.0)
    for seed, own in ((0, False), (1, True), (2, False)):
        potentials = case.potentials(seed, [3, 0, 1, 4], 0.3, own)
        listed = case.finite(potentials)
        chain, weight = case.structure, np.array([1.0, 2.0, -0.5, 3.0])
        out, expected = chain.zeros(potentials), chain.zeros(potentials)
        log_z = chain.log_partition(potentials, weight, out)
        for each, total, factor in zip(listed, log_z, weight, strict=True):
            shares = [np.exp(score - total) for _, score, _ in each]
            assert sum(shares) == pytest.approx(1.0, rel=1e-12)
            for (_, _, add), share in zip(each, shares, strict=True):
                add(expected, factor * share)
        np.testing.assert_allclose(out.unary, expected.unary, atol=1e-12)
        np.testing.assert_allclose(out.pair, expected.pair, atol=1e-12)
        codes, value = chain.argmax(potentials)
        assert codes.tolist() == [code for each in listed for code in each[0][0]]
        np.testing.assert_allclose(value, [each[0][1] for each in listed], atol=1e-12)
        best = chain.k_best(potentials, 3)
        scores = [score for each in listed for _, score, _ in each[:3]]
        np.testing.assert_allclose(best.scores, scores, atol=1e-12)


def test_rules_that_need_too_many_copies_are_refused(monkeypatch):
    monkeypatch.setattr(second_order, "MOST_CELLS", 100)
    case = under_rules(MAKERS["second-order chain"], 3, 1.0)
    potentials = case.potentials(0, [3], 0.0, False)
    with pytest.raises(ValueError, match="or use a chain of first order"):
        case.structure.k_best(potentials, 2)
