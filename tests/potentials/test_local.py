"""Locally normalized chains and forests, and the single tokens that they are learned from."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp

from crfkit import UNLABELED, MEMMClassifier, PackedSequences, SoftLabels, TokenClassifier
from crfkit._parallel import SERIAL
from crfkit.data import Forest
from crfkit.data.topology import tokens_before
from crfkit.potentials.local import normalized, normalized_list
from crfkit.structures import Chain, NoPathError, TreePotentials
from crfkit.training.fit import Fit
from tests.contracts.structures import random_forest
from tests.oracles import enumerated_sum, finite_difference, random_scores, table_of
from tests.sampling import in_turns


def step(potentials, t, before):
    """Scores of the labels of a token, given the one before (None: there is none)."""
    pair = 0.0 if before is None else potentials.pair[table_of(potentials, t), before]
    return potentials.unary[t] + pair


@given(
    st.integers(0, 10**6), st.integers(1, 3), st.lists(st.integers(0, 4), min_size=1, max_size=3),
    st.sampled_from([0.1, 1.0, 30.0, 1e3]), st.sampled_from([0.0, 0.4]),
    st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_paths_have_the_product_of_local_probabilities(
    seed, size, lengths, scale, forbidden, own, is_forest, is_listed
):
    found = random_scores(seed, lengths, size, forbidden=forbidden, shared_tables=own, scale=scale)
    before = tokens_before(found.offsets)
    if is_forest:
        forest = random_forest(np.random.default_rng(seed), lengths)
        found, before = TreePotentials(*found, *forest.arrays), forest.before
    if is_listed:
        source, target = np.nonzero(np.random.default_rng(seed).random((size, size)) < 0.6)
        value = found.pair[:1, source, target]
        local = normalized_list(found._replace(pair=value), before, source, target)
        pair = np.zeros((1, size, size))
        pair[0, source, target] = value
        found = found._replace(pair=pair, transition_index=np.zeros(1, np.uint32))
        local = local._replace(pair=pair, transition_index=found.transition_index)
    else:
        local = normalized(found, before)
    for begin, end in itertools.pairwise(found.offsets.tolist()):
        for path in itertools.product(range(size), repeat=end - begin):
            score, truth = 0.0, 0.0
            for t, label in enumerate(path, begin):
                up = None if before[t] < 0 else path[before[t] - begin]
                score += step(local, t, up)[label]
                ours = step(found, t, up)
                dead = np.isneginf(ours).all()  # no label may follow
                truth += -np.inf if dead else log_softmax(ours)[label]
            np.testing.assert_allclose(score, truth, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_sums_of_single_tokens_are_those_of_short_sequences(scale):
    found, weight = random_scores(3, [1] * 5, 3, forbidden=0.3, scale=scale), np.arange(5.0)
    chain, (log_z, truth) = Chain(SERIAL), enumerated_sum(found, weight)
    out = chain.zeros(found)
    np.testing.assert_allclose(chain.log_partition(found, weight, out), log_z, rtol=1e-14)
    np.testing.assert_allclose(out.unary, truth.unary, atol=1e-14)
    unary = found.unary.copy()
    unary[[2, 4]] = -np.inf
    dead = found._replace(unary=unary, first=10)
    with pytest.raises(NoPathError, match="sequence 12: no path is left at position 0") as caught:
        chain.log_partition(dead, weight, out)
    assert caught.value.others == (14,)


LENGTHS = [3, 1, 2, 4]
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
LABELS = [["a", "b", "c"], ["b"], ["c", "a"], ["b", "b", "a", "c"]]
PARTLY = [["a", {"b", "c"}, "c"], [{"a", "b"}], [UNLABELED, "a"], ["b", "b", UNLABELED, "c"]]
WEIGHT = [[1.0, 2.0, 0.5], [3.0], [0.0, 1.5], [1.0, 0.0, 2.0, 1.0]]


def packed(*, dense=False, transitions=False, forest=False):
    """Ten tokens of four sequences."""
    rng = np.random.default_rng(5)
    blocks = {"sparse": _sparse(rng, 4), "dense": rng.normal(size=(10, 2)) if dense else None}
    of_steps = PackedSequences(
        _sparse(rng, 3), rng.normal(size=(10, 1)) if dense else None, offsets=OFFSETS
    )
    trees = Forest.from_lists([[1, None, 1], [None], [None, 0], [2, 0, None, 2]])
    return PackedSequences(
        **blocks, offsets=OFFSETS, transitions=of_steps if transitions else None,
        topology=trees if forest else None,
    )  # fmt: skip


def _sparse(rng, width):
    import scipy.sparse as sp

    return sp.csr_array(np.where(rng.random((10, width)) < 0.6, rng.integers(1, 3, (10, width)), 0))


def soft():
    rng = np.random.default_rng(1)
    tables = [rng.dirichlet(np.ones(3), size=n) for n in LENGTHS]
    tables[0][0] = [0.0, 1.0, 0.0]
    return SoftLabels(tables, ["a", "b", "c"])


def loss(model, data, y, weight):
    """Minus the log-probability of labels given those before, token by token, and the penalty."""
    scores = data.to_csr() @ model.coef_.toarray()
    steps = None
    if model.transition_coef_ is not None:
        steps = (data.transitions.to_csr() @ model.transition_coef_.toarray()).reshape(-1, 3, 3)
    labels, value, before = model.classes_.tolist(), 0.0, data.before
    shares = np.concatenate([shares_of(row, labels) for row in y])
    weight = np.concatenate(weight)
    for t, up in enumerate(before.tolist()):
        if not weight[t] or np.isnan(shares[t]).any():
            continue
        if up < 0:
            value -= weight[t] * told(scores[t] + model.start_weights_, shares[t])
            continue
        if not weight[up] or np.isnan(shares[up]).any() or isinstance_of_set(shares[up]):
            continue
        for i, share in enumerate(shares[up]):
            given_i = scores[t] + model.transitions_[i] + (0.0 if steps is None else steps[t, i])
            value -= weight[t] * share * told(given_i, shares[t])
    return value


def isinstance_of_set(shares):
    return shares.sum() > 1.5


def told(scores, shares):
    """The log-probability of a set, or the expected one of a distribution."""
    found = log_softmax(scores)
    if isinstance_of_set(shares):
        return logsumexp(found[shares > 0])
    return shares @ np.where(shares > 0, found, 0.0)


def shares_of(row, labels):
    """A distribution, indicators of a set, or NaN, for each token."""
    if isinstance(row, np.ndarray):
        return row
    found = np.zeros((len(row), len(labels)))
    for t, label in enumerate(row):
        if label is UNLABELED:
            found[t] = np.nan
        else:
            for each in label if isinstance(label, set) else [label]:
                found[t, labels.index(each)] = 1.0
    return found


CASES = {
    "plain": ({}, LABELS, None),
    "weights": ({"transitions": True}, LABELS, WEIGHT),
    "sets": ({"dense": True, "transitions": True}, PARTLY, None),
    "soft": ({"dense": True}, soft(), WEIGHT),
    "forest": ({"forest": True, "transitions": True}, LABELS, None),
}


@pytest.mark.parametrize(("name", "everything"), in_turns(CASES, [False, True]))
def test_objective_and_gradient_are_those_of_the_product(name, everything):
    kinds, y, weight = CASES[name]
    data = packed(**kinds)
    memm = MEMMClassifier(
        c2=0.3, boundary_weights=everything, all_possible_states=everything,
        all_possible_transitions=everything,
    )  # fmt: skip
    problem = memm._problem()
    fit = Fit(problem, problem.read(data, y, weight))
    seen = problem.examples(fit.model, fit.training)
    objective = problem.objective(seen.model, seen.training, SERIAL)
    w = np.random.default_rng(0).normal(size=fit.model.n_parameters)
    truth = soft().probabilities if name == "soft" else y
    if name == "soft":
        truth = np.split(truth, OFFSETS[1:-1])
    given_weight = WEIGHT if weight is not None else [np.ones(n) for n in LENGTHS]

    def value(w):
        model = memm._with(fit.attributes(w))
        return loss(model, data, truth, given_weight) + 0.3 * w @ w

    found, gradient = objective.value_and_grad(seen.inward(w))
    np.testing.assert_allclose(found, value(w), rtol=1e-12)
    slope = finite_difference(value, w, step=1e-3)
    np.testing.assert_allclose(seen.outward(gradient), slope, atol=1e-8)


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(ValueError, match="has a known label before it"):
        MEMMClassifier().fit([[["a"], ["b"]]] * 2, [[UNLABELED, "x"], [UNLABELED, "y"]])
    with pytest.raises(ValueError, match="with_transitions"):
        TokenClassifier().fit(packed(transitions=True), LABELS)
