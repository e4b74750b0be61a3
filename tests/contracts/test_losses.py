"""Every loss on every structure: gradients, second derivatives, weights."""

import itertools
from functools import partial

import numpy as np
import pytest

from crfkit.data import Edges
from crfkit.data.targets import Targets, Weights
from crfkit.graphs.potentials import GraphPotentials
from crfkit.graphs.structure import GraphStructure
from crfkit.labels.costs import AdditiveCost
from crfkit.losses import (
    LOSSES,
    HingeLoss,
    LogLoss,
    MarginalLoss,
    PerceptronLoss,
    SoftenedHingeLoss,
)
from crfkit.losses.softmax_margin import CostAugmentedLoss
from crfkit.structures import Capability, Chain, SemiMarkov, SparseChain, Tree, TreePotentials
from tests.contracts.structures import random_forest
from tests.extensions.cross_entropy import GeneralizedCrossEntropy
from tests.extensions.ring import Ring
from tests.oracles import evaluate, finite_difference, random_scores, random_segment_scores, thinned

STRUCTURES = {
    "chain": Chain(),
    "sparse chain": SparseChain([0, 0, 1, 2], [0, 2, 1, 0], 3),
    "segments": SemiMarkov(),
    "forest": Tree(),
    "graph": GraphStructure(),
    "ring (an extension)": Ring(),
}

ALL_LOSSES = LOSSES | {
    "perceptron": PerceptronLoss,
    "softened_hinge": SoftenedHingeLoss,
    "hinge with rescaled slack": partial(HingeLoss, rescaling="slack"),
    "hinge of whole sequences": partial(HingeLoss, "zero_one"),
    "generalized cross-entropy (an extension)": GeneralizedCrossEntropy,
}


LATENT = (LogLoss, PerceptronLoss, HingeLoss, CostAugmentedLoss, MarginalLoss)


def has_latent(loss):
    """Whether a loss has a value where labels are known in part."""
    additive = getattr(loss, "cost", None) != "zero_one" and loss.rescaling != "slack"
    return isinstance(loss, LATENT) and additive


BY_ERRORS = ("hinge with rescaled slack", "hinge of whole sequences")
# What losses need of structures beyond what they declare, and which losses have no Hessian.
NEEDS = dict.fromkeys(BY_ERRORS, {Capability.ARGMAX_BY_HAMMING})
WITHOUT_HESSIAN = (GeneralizedCrossEntropy, MarginalLoss)


def needed(name):
    return NEEDS.get(name, ALL_LOSSES[name]().requires)


PAIRS = [
    (loss, structure)
    for loss in sorted(ALL_LOSSES)
    for structure in sorted(STRUCTURES)
    if needed(loss) <= STRUCTURES[structure].capabilities
]


@pytest.fixture(params=PAIRS, ids=" on ".join)
def pair(request):
    return request.param


@pytest.fixture
def loss(pair):
    return ALL_LOSSES[pair[0]]()


@pytest.fixture
def structure(pair):
    return STRUCTURES[pair[1]]


@pytest.fixture(params=sorted(STRUCTURES))
def structure_alone(request):
    return STRUCTURES[request.param]


def problem(structure, seed, own_steps=False):
    labels = np.random.default_rng(seed).integers(3, size=8).astype(np.int32)
    if isinstance(structure, SemiMarkov):
        scores = random_segment_scores(seed, [3, 1, 4], 3, 3, own_steps=own_steps)
        begins = np.array([True, False, True, True, True, False, True, False])
        labels = np.where(begins, labels, np.roll(labels, 1)).astype(np.int32)
        return scores, labels + 3 * begins.astype(np.int32)
    scores = random_scores(seed, [3, 1, 4], 3, own_steps=own_steps)
    if isinstance(structure, SparseChain):
        scores = thinned(scores, structure)
    if isinstance(structure, Tree):
        forest = random_forest(np.random.default_rng(seed), [3, 1, 4])
        scores = TreePotentials(*scores, *forest.arrays)
    if isinstance(structure, GraphStructure):
        unary, pair, index, *rest = scores
        edges = [[(0, 1), (2, 1), (0, 2)], [], [(0, 3), (1, 0), (1, 3)]]
        topology = Edges.of_graphs(edges, [3, 1, 4])
        own = index[[0, 1, 2, 4, 5, 6]] if own_steps else index
        scores = GraphPotentials(unary, pair, own, *rest, *topology.arrays)
    return scores, labels


@pytest.mark.parametrize("name", BY_ERRORS)
def test_losses_that_count_errors_say_that_segments_cannot_be_searched_so(name):
    structure = SemiMarkov()
    scores, labels = problem(structure, 0)
    with pytest.raises(ValueError, match="SemiMarkov has no best paths by numbers of errors"):
        evaluate(ALL_LOSSES[name](), structure, scores, labels, np.ones(8))


WEIGHTS = {
    "ones": np.ones(8),
    "per sequence": np.repeat([0.5, 2.0, 3.0], [3, 1, 4]),
    "per token": np.array([1.0, 2.0, 0.5, 3.0, 0.0, 1.0, 1.0, 2.5]),
    "zero for one sequence": np.repeat([1.0, 0.0, 1.0], [3, 1, 4]),
}


def takes(loss, weight):
    """Whether a loss has a value for the weights; if it has not, it must say so."""
    if weight is not WEIGHTS["per token"] or not loss.needs_sequence_weights:
        return True
    scores, labels = problem(Chain(), 0)
    with pytest.raises(ValueError, match=f"{type(loss).__name__} needs the same weight"):
        evaluate(loss, Chain(), scores, labels, weight)
    return False


def step_of(loss):
    """Half of what a difference reaches: the curvature of a loss at a low temperature is large."""
    coldest = min(getattr(loss, "temperatures", (1.0,)))
    steepest = max(getattr(loss, "slopes", (1.0,)))
    return 1e-3 * getattr(loss, "temperature", coldest) / steepest


def check_gradient(ask, scores, step, rtol=0.0, scale=1.0, n_directions=3):
    """Along directions drawn at random, which an error in any derivative shows in."""
    (value, out), rng = ask(scores=scores), np.random.default_rng(0)
    largest = np.sqrt((out.unary**2).sum() + (out.pair**2).sum())
    for _ in range(n_directions):
        unary, pair = (rng.normal(size=array.shape) for array in (scores.unary, scores.pair))
        unary, pair = (change / np.sqrt(unary.size + pair.size) for change in (unary, pair))

        def along(t, unary=unary, pair=pair):
            moved = scores._replace(unary=scores.unary + t * unary, pair=scores.pair + t * pair)
            return ask(scores=moved)[0]

        found = (out.unary * unary).sum() + (out.pair * pair).sum()
        numeric = finite_difference(along, np.zeros(()), step)
        rounding = 3e-14 * max(1.0, value / 40, scale / 5)
        close = rtol * largest / np.sqrt(unary.size + pair.size) + rounding / step
        np.testing.assert_allclose(found, numeric, rtol=0, atol=close)


@pytest.mark.parametrize("own_steps", [False, True])
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=list(WEIGHTS))
def test_gradient_equals_finite_differences(loss, structure, own_steps, weight):
    if not takes(loss, weight):
        return
    scores, labels = problem(structure, 0, own_steps)
    ask = partial(evaluate, loss, structure, labels=labels, weight=weight)
    check_gradient(ask, scores, step_of(loss))


@pytest.mark.parametrize("scale", [30.0, 1e3])
def test_gradient_is_exact_at_large_scores(loss, structure, scale):
    if not (loss.requires or loss.is_log_likelihood):
        return
    scores, labels = problem(structure, 3, own_steps=True)
    large = scores._replace(unary=scale * scores.unary, pair=scale * scores.pair)
    ask = partial(evaluate, loss, structure, labels=labels, weight=WEIGHTS["per token"])
    check_gradient(ask, large, step_of(loss), rtol=1e-7, scale=scale)


@pytest.mark.parametrize("own_steps", [False, True])
def test_second_derivatives_are_those_of_the_gradient(loss, structure, own_steps):
    if not loss.has_hessian:
        assert not loss.is_smooth or isinstance(loss, WITHOUT_HESSIAN)
        return
    scores, labels = problem(structure, 0, own_steps)
    tangent, weight = problem(structure, 1, own_steps)[0], WEIGHTS["per sequence"]
    step = step_of(loss)
    product = structure.zeros(scores)
    known = Targets(labels), Weights.of(weight, scores.offsets)
    if not (loss.requires or {Capability.HESSIAN_PRODUCT}) <= structure.capabilities:
        with pytest.raises(ValueError, match="no products with the Hessian. Use solver='lbfgs'"):
            loss.hessian_product(structure, scores, tangent, *known, product)
        return
    loss.hessian_product(structure, scores, tangent, *known, product)
    ends = []
    for shift in (-step, step):
        moved = scores._replace(
            unary=scores.unary + shift * tangent.unary, pair=scores.pair + shift * tangent.pair
        )
        ends.append(evaluate(loss, structure, moved, labels, weight)[1])
    for below, above, found in zip(*ends, product, strict=True):
        numeric = (above - below) / (2 * step)
        close = 1e-4 * np.abs(found).max() + 1e-12 / step
        np.testing.assert_allclose(found, numeric, rtol=0, atol=close)


def test_the_estimate_of_the_curvature_is_that_of_single_labels(loss, structure):
    if not loss.has_hessian:
        assert not loss.is_smooth or isinstance(loss, WITHOUT_HESSIAN)
        return
    scores, labels = problem(structure, 4)
    weight, estimate = WEIGHTS["per sequence"], structure.zeros(scores)
    known = Targets(labels), Weights.of(weight, scores.offsets)
    loss.hessian_diagonal(structure, scores, *known, estimate)
    step = step_of(loss)
    for place in np.ndindex(scores.unary.shape):
        ends = []
        for shift in (-step, step):
            moved = scores.unary.copy()
            moved[place] += shift
            ends.append(evaluate(loss, structure, scores._replace(unary=moved), labels, weight)[1])
        numeric = (ends[1].unary[place] - ends[0].unary[place]) / (2 * step)
        close = 1e-4 * abs(numeric) + 1e-12 / step
        if loss.requires and isinstance(structure, SemiMarkov):  # several codes have a part
            assert estimate.unary[place] >= numeric - close
            continue
        np.testing.assert_allclose(estimate.unary[place], numeric, atol=close)


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=list(WEIGHTS))
def test_weights_multiply(loss, structure, weight):
    if not takes(loss, weight):
        return
    scores, labels = problem(structure, 1)
    value, out = evaluate(loss, structure, scores, labels, weight)
    doubled, out2 = evaluate(loss, structure, scores, labels, 2 * weight)
    np.testing.assert_allclose(doubled, 2 * value, rtol=1e-12)
    np.testing.assert_allclose(out2.unary, 2 * out.unary, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(out2.pair, 2 * out.pair, rtol=1e-9, atol=1e-13)


def test_a_sequence_weight_is_a_repetition(loss, structure):
    scores, labels = problem(structure, 2)
    rows = np.concatenate([np.arange(3), np.arange(8)])
    twice = scores.take_tokens(rows, np.concatenate([[0], scores.offsets + 3]))
    weight = np.repeat([2.0, 1.0, 1.0], [3, 1, 4])
    weighted, _ = evaluate(loss, structure, scores, labels, weight)
    again = np.concatenate([labels[:3], labels])
    repeated, _ = evaluate(loss, structure, twice, again, np.ones(11))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)


def test_the_value_is_not_negative_and_zero_for_certain_labels(loss, structure):
    scores, labels = problem(structure, 3)
    taken = [weight for weight in WEIGHTS.values() if takes(loss, weight)]
    for weight in taken:
        assert evaluate(loss, structure, scores, labels, weight)[0] >= 0.0
    scores.unary[np.arange(8), labels] += 1e3
    steepest = max(getattr(loss, "slopes", (np.inf,)))  # a certain label is all but no error
    for weight in taken:
        least = weight.sum() / (1.0 + np.exp(steepest))
        assert evaluate(loss, structure, scores, labels, weight)[0] < least * (1.0 + 1e-9) + 1e-9


@pytest.mark.parametrize("weight", ["ones", "per sequence", "per token"])
def test_labels_that_are_known_in_part_are_summed_over(loss, structure, weight):
    scores, labels = problem(structure, 5)
    allowed = np.random.default_rng(0).random((8, scores.n_codes)) < 0.6
    allowed[np.arange(8), labels] = True
    ask = partial(evaluate, loss, structure, labels=labels, weight=WEIGHTS[weight], allowed=allowed)
    if not has_latent(loss) or loss.needs_sequence_weights and weight == "per token":
        with pytest.raises(ValueError, match="known label|known in part|needs the same weight"):
            ask(scores=scores)
        return
    value, _ = ask(scores=scores)
    if weight == "per sequence" and loss.is_log_likelihood:
        ones = np.ones(3)
        whole, left = (
            structure.log_partition(each, ones, structure.zeros(each))
            for each in (scores, scores.clamp(allowed))
        )
        np.testing.assert_allclose(value, np.sum([0.5, 2.0, 3.0] * (whole - left)), rtol=1e-12)
    check_gradient(ask, scores, step_of(loss), n_directions=8)


@pytest.mark.parametrize("name", ["hinge", "perceptron", "softmax_margin"])
def test_margins_are_those_to_the_best_allowed_labeling(name):
    """By enumeration; a label costs the least that it does where an allowed one is true."""
    loss, rng = ALL_LOSSES[name](), np.random.default_rng(3)
    table = rng.random((3, 3)) * (1.0 - np.eye(3))
    if loss.takes_cost:
        loss.cost = AdditiveCost(table)
    scores, allowed = random_scores(2, [4], 3), rng.random((4, 3)) < 0.5
    allowed[np.arange(4), rng.integers(3, size=4)] = True
    paths = np.array(list(itertools.product(range(3), repeat=4)), np.int32)
    values = np.array([Chain().score(scores, path)[0] for path in paths])
    inside = allowed[np.arange(4), paths].all(axis=1)
    costs = np.array([[min(table[a, k] for a in np.flatnonzero(row)) for k in range(3)]
                      for row in allowed])  # fmt: skip
    total = costs[np.arange(4), paths].sum(axis=1) * loss.takes_cost
    reduce = np.logaddexp.reduce if name == "softmax_margin" else np.max
    expected = reduce(values + total) - reduce(values[inside])
    found, _ = evaluate(loss, Chain(), scores, paths[0], np.ones(4), allowed)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_single_allowed_label_is_a_known_one(structure_alone):
    scores, labels = problem(structure_alone, 6)
    allowed = labels[:, None] == np.arange(scores.n_codes)
    for weight in WEIGHTS.values():
        value, out = evaluate(LogLoss(), structure_alone, scores, labels, weight, allowed)
        expected, counts = evaluate(LogLoss(), structure_alone, scores, labels, weight)
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(out.unary, counts.unary, atol=1e-12)
        np.testing.assert_allclose(out.pair, counts.pair, atol=1e-12)


def test_second_derivatives_of_labels_that_are_known_in_part(structure_alone):
    structure, weight, step = structure_alone, WEIGHTS["per sequence"], 1e-5
    if Capability.HESSIAN_PRODUCT not in structure.capabilities:
        return
    scores, labels = problem(structure, 7)
    tangent = problem(structure, 8)[0]
    allowed = np.random.default_rng(1).random((8, scores.n_codes)) < 0.6
    allowed[np.arange(8), labels] = True
    product, ends = structure.zeros(scores), []
    known = Targets(labels, allowed), Weights.of(weight, scores.offsets)
    LogLoss().hessian_product(structure, scores, tangent, *known, product)
    for shift in (-step, step):
        both = zip(scores.arrays(), tangent.arrays(), strict=True)
        moved = scores.with_arrays(*(array + shift * change for array, change in both))
        ends.append(evaluate(LogLoss(), structure, moved, labels, weight, allowed)[1])
    for below, above, found in zip(*ends, product, strict=True):
        np.testing.assert_allclose(found, (above - below) / (2 * step), atol=1e-8)


def shares_of(labels, n_codes):
    """Return probabilities of labels, of which some tokens have one alone."""
    shares = np.random.default_rng(2).dirichlet(np.ones(n_codes), len(labels))
    shares[::3] = np.eye(n_codes)[labels[::3]]
    return shares


def test_shares_of_labels_cost_what_is_expected_of_independent_ones(structure_alone):
    structure, weight = structure_alone, WEIGHTS["per sequence"]
    scores, labels = problem(structure, 9)
    shares = shares_of(labels, scores.n_codes)
    ask = partial(evaluate, LogLoss(), structure, labels=labels, weight=weight)
    if Capability.SHARES not in structure.capabilities:
        with pytest.raises(ValueError, match="Use labels of tokens: independent ones are no dist"):
            ask(scores=scores, soft=shares)
        return
    value, out = ask(scores=scores, soft=shares)
    sums = structure.log_partition(scores, np.ones(3), structure.zeros(scores))
    expected = weight[[0, 3, 4]] @ sums
    for path in np.ndindex(*(3,) * 8):
        share = np.prod(shares[np.arange(8), path])
        if share:
            found = structure.score(scores, np.array(path, np.int32))
            expected -= share * (weight[[0, 3, 4]] @ found)
    np.testing.assert_allclose(value, expected, rtol=1e-11)
    for found, name in zip(out, ("unary", "pair"), strict=True):
        numeric = finite_difference(
            lambda array, name=name: ask(scores=scores._replace(**{name: array}), soft=shares)[0],
            getattr(scores, name), 1e-3,
        )  # fmt: skip
        np.testing.assert_allclose(found, numeric, rtol=0, atol=1e-10)
    large = scores.with_arrays(1e3 * scores.unary, 1e3 * scores.pair)
    far, slope = ask(scores=large, soft=shares)
    assert np.isfinite(far) and all(np.isfinite(each).all() for each in slope)
    with pytest.raises(ValueError, match="need the same weight for all tokens of a sequence"):
        evaluate(LogLoss(), structure, scores, labels, WEIGHTS["per token"], soft=shares)


def test_shares_of_one_label_are_that_label(structure_alone):
    if Capability.SHARES not in structure_alone.capabilities:
        return
    scores, labels = problem(structure_alone, 6)
    tangent, weight = problem(structure_alone, 1)[0], WEIGHTS["per sequence"]
    soft = np.eye(3)[labels]
    value, out = evaluate(LogLoss(), structure_alone, scores, labels, weight, soft=soft)
    expected, counts = evaluate(LogLoss(), structure_alone, scores, labels, weight)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    for found, wanted in zip(out, counts, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-15)
    if Capability.HESSIAN_PRODUCT in structure_alone.capabilities:
        ends, of = (
            [structure_alone.zeros(scores) for _ in range(2)],
            Weights.of(weight, scores.offsets),
        )
        for end, known in zip(ends, (Targets(labels), Targets(labels, soft=soft)), strict=True):
            LogLoss().hessian_product(structure_alone, scores, tangent, known, of, end)
        np.testing.assert_array_equal(*(end.unary for end in ends))
    impossible = scores.with_arrays(scores.unary.copy(), scores.pair)
    impossible.unary[4, 1], soft[4] = -np.inf, 1 / 3
    with pytest.raises(ValueError, match="sequence 2: its labels have the score -inf"):
        evaluate(LogLoss(), structure_alone, impossible, labels, weight, soft=soft)
