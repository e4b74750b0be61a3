"""Steps of the dual of a margin: what they keep, and the compiled ones are those for any chain."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit._parallel import ThreadMap
from crfkit.kernels.solvers.frank_wolfe import FrankWolfeOptions
from crfkit.labels.costs import AdditiveCost, find_cost
from crfkit.losses import HingeLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.linear import choose_features
from crfkit.solvers.margin.dual_state import ENOUGH, ChainMarginalFW, VertexState, make_margin_state
from crfkit.solvers.margin.planes import PlaneState
from crfkit.structures import Chain
from tests.solvers.margins import enumerated_value, margin_problem
from tests.solvers.test_dual_moves import LENGTHS, make_wide

BOTH = pytest.mark.parametrize("pairwise", [True, False], ids=["pairwise", "classic"])


def random_costs(rng, n_labels):
    table = rng.random((n_labels, n_labels))
    np.fill_diagonal(table, 0.0)
    return AdditiveCost(table)


def wide_objective(rng, n_labels, threads, *, values=False, dense=False, cost="hamming"):
    lengths = LENGTHS * 2
    data, codes = make_wide(rng, n_labels, lengths, values)
    if dense:
        table = rng.normal(size=(data.n_tokens, 3)) * (rng.random((data.n_tokens, 3)) < 0.7)
        data = data._from_arrays(**data.__dict__ | {"dense": table})
    weight = np.repeat(rng.random(len(lengths)) + 0.1, lengths)
    model = choose_features(data, codes, n_labels)
    return Objective(
        model, Chain(), HingeLoss(cost), ElasticNet(0.0, 0.2), data, codes, weight, threads
    )


def shares_of(steps, index):
    """The labelings of a batch and their shares, in the order of the labelings."""
    begin, end = steps.offsets[index : index + 2]
    if begin == end:
        return [([], 1.0)]
    if type(steps) is PlaneState:
        kept = steps._kept[index]
        labels = [np.frombuffer(path, np.int32).tolist() for path in kept._paths]
        shares = kept._shares.tolist()
    else:
        vertices, alphas, counts = steps.active
        labels = vertices[: counts[index], begin:end].tolist()
        shares = alphas[: counts[index], index].tolist()
    return sorted((path, share) for path, share in zip(labels, shares, strict=True) if share > 0.0)


def plain_state(batches, pairwise, most=1):
    """The state of a structure without an oracle, one sequence at a time, without more steps."""
    options = FrankWolfeOptions(pairwise, most, ENOUGH, batches.penalty.l2)
    return PlaneState(batches, options, together=False)


def fast_state(batches, pairwise, most=1):
    state = make_margin_state(batches, "pairwise" if pairwise else "classic", most)
    assert type(state) is VertexState
    return state


def planes_of(state, index):
    """The planes of a batch after a search, dense, with their levels and shares."""
    state._search(index)
    planes = state._kept[index].planes()
    table = np.zeros((len(planes.levels), state.batches.n_parameters))
    for row, (first, last) in enumerate(itertools.pairwise(planes.ptr)):
        table[row, planes.places[first:last]] = planes.changes[first:last]
    return table, planes.levels, planes.shares.copy()


def assert_same_steps(objective, pairwise, n_passes=6):
    rng = np.random.RandomState(0)
    batches = objective.minibatches(1, 0)
    fast, plain = fast_state(batches, pairwise), plain_state(batches, pairwise)
    for _ in range(n_passes):
        order = rng.permutation(len(batches))
        for steps in (fast, plain):
            steps.advance(order)
        np.testing.assert_allclose(fast.unpack(fast.w), plain.w, atol=1e-9)
        np.testing.assert_allclose(fast.levels, plain.levels, atol=1e-9)
        np.testing.assert_allclose(fast.gaps, plain.gaps, atol=1e-8)
        np.testing.assert_allclose(fast.lower_bound, plain.lower_bound, rtol=1e-9)
        assert np.count_nonzero(fast.w) <= objective.n_parameters  # none where no weight is
    for index in range(len(batches)):
        found, expected = shares_of(fast, index), shares_of(plain, index)
        assert [labels for labels, _ in found] == [labels for labels, _ in expected]
        np.testing.assert_allclose(
            [share for _, share in found], [share for _, share in expected], atol=1e-9
        )
    w = np.random.default_rng(1).normal(size=objective.n_parameters)
    np.testing.assert_allclose(fast.value(w), plain.value(w), rtol=1e-11)
    return fast


@BOTH
@pytest.mark.parametrize(
    ("n_labels", "values"),
    [(2, True), (8, True), (9, False), (9, True), (22, False), (26, True), (49, False), (49, True)],
)
def test_the_steps_of_a_chain_are_those_of_any_structure(rng, n_labels, values, pairwise):
    cost = random_costs(rng, n_labels)  # else rounding would decide between equal labelings
    with ThreadMap(1) as threads:
        objective = wide_objective(rng, n_labels, threads, values=values, dense=values, cost=cost)
        assert_same_steps(objective, pairwise)


@BOTH
@pytest.mark.parametrize("most", [2, 5])
@pytest.mark.parametrize("kind", [fast_state])
def test_a_visit_of_several_steps_is_several_visits(pairwise, most, kind):
    with margin_problem(lengths=(4, 3, 0, 1), c2=0.1) as objective:
        batches = objective.minibatches(1, 0)
        several, single = kind(batches, pairwise, most), kind(batches, pairwise)
        for index in 2 * list(range(len(batches))):
            several.advance(np.array([index]))
            found = []
            while len(found) < most and not (found and found[-1] <= ENOUGH * found[0]):
                single.advance(np.array([index]))
                found.append(single.gaps[index])
            np.testing.assert_array_equal(several.w, single.w)
            np.testing.assert_array_equal(several.levels, single.levels)


@BOTH
def test_there_is_room_for_any_number_of_labelings(pairwise):
    with margin_problem(lengths=(6, 5, 7), n_features=6) as objective:
        steps = assert_same_steps(objective, pairwise, 40)
    assert len(steps.active.vertices) > 8


@BOTH
@pytest.mark.parametrize("loss", [HingeLoss(), HingeLoss(rescaling="slack"), HingeLoss("zero_one")])
def test_shares_stay_shares_and_parameters_those_of_the_shares(pairwise, loss):
    with margin_problem(1, loss=loss, c2=0.1, boundaries=True) as objective:
        batches = objective.minibatches(1, 0)
        steps = plain_state(batches, pairwise)
        order, bounds = np.arange(len(batches)), [0.0]
        total = np.zeros(objective.n_parameters)
        for _ in range(20):
            steps.advance(order)
            bounds.append(steps.lower_bound)
        cost = find_cost(loss.cost, 3)
        for index in order[np.diff(steps.offsets) > 0]:
            scores, labels = batches.scores(batches.bind(steps.w), index), batches.labels(index)
            counts, expected = batches.structure.zeros(scores), 0.0
            weight, shares = batches.sequence_weight(index), shares_of(steps, index)
            np.testing.assert_allclose(sum(share for _, share in shares), 1.0, rtol=1e-12)
            for vertex, share in shares:
                codes = np.array(vertex, np.int32)
                paid = cost.total(labels, codes, scores.offsets)
                factor = weight * share * (paid if loss.rescaling == "slack" else 1.0)
                batches.structure.add_counts(scores, codes, factor, counts)
                batches.structure.add_counts(scores, labels, -factor, counts)
                expected += float((weight * share * paid).sum())
            np.testing.assert_allclose(steps.levels[index], expected, atol=1e-12)
            total[batches.places(index)] += batches.gradient(index, counts)
    np.testing.assert_allclose(steps.w, -total / (2.0 * 0.1), atol=1e-12)
    assert (np.diff(bounds) >= -1e-12).all()


@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize("lengths", [(6, 0, 5, 1, 7), (1, 1, 1), (0, 2)])
def test_marginals_stay_those_of_distributions(lengths, most):
    with margin_problem(1, lengths=lengths, c2=0.05, n_features=6, all_states=True) as objective:
        batches = objective.minibatches(1, 0)
        steps = make_margin_state(batches, "marginals", most)
        assert type(steps) is ChainMarginalFW
        bounds = [0.0]
        for _ in range(40):
            steps.advance(np.arange(len(batches)))
            bounds.append(steps.lower_bound)
        before, after, share, counts = steps.edges
        total = np.zeros(objective.n_parameters)
        for index, chunk in enumerate(batches.chunks):
            scores = batches.scores(batches.bind(steps.unpack(steps.w)), index)
            found, last, level = batches.structure.zeros(scores), np.eye(3)[0], 0.0
            labels = batches.labels(index)
            for row, t in enumerate(range(chunk.tokens.start, chunk.tokens.stop)):
                used = slice(0, counts[t])
                table = np.zeros((3, 3))
                np.add.at(table, (before[used, t], after[used, t]), share[used, t])
                assert share[used, t].min() > 0.0
                np.testing.assert_allclose(table.sum(axis=1), last, atol=1e-11)
                last = table.sum(axis=0)
                level += 1.0 - last[labels[row]]
                found.unary[row] += last
                found.pair[0] += table if row else 0.0
            np.testing.assert_allclose(steps.levels[index], level, atol=1e-11)
            weight = -batches.sequence_weight(index)
            batches.structure.add_counts(scores, labels, weight, found)
            total[batches.places(index)] += batches.gradient(index, found)
    np.testing.assert_allclose(steps.unpack(steps.w), -total / (2.0 * 0.05), atol=1e-9)
    assert (np.diff(bounds) >= -1e-11).all()
    assert bounds[-1] > bounds[1] or sum(lengths) < 4
    assert (counts > 1).any()


@BOTH
def test_parts_of_the_gap_add_up_to_it(pairwise):
    with margin_problem(2, c2=0.1) as objective:
        batches = objective.minibatches(1, 0)
        steps = plain_state(batches, pairwise)
        for _ in range(5):
            steps.advance(np.arange(len(batches)))
        w, bound = steps.w.copy(), steps.lower_bound
        gaps = []
        for index in np.flatnonzero(np.diff(steps.offsets)):
            table, levels, shares = planes_of(steps, index)
            values = levels + table @ w
            gaps.append(values.max() - shares @ values)
        np.testing.assert_allclose(sum(gaps), enumerated_value(objective, w) - bound, rtol=1e-9)


@given(
    seed=st.integers(0, 2**31), pairwise=st.booleans(), c2=st.sampled_from([1e-3, 0.1, 10.0]),
    bounded=st.sampled_from([0.0, 0.5, 1.0]),
)  # fmt: skip
def test_no_step_lowers_the_dual_and_none_could_raise_it_more(seed, pairwise, c2, bounded):
    with margin_problem(seed, c2=c2, lengths=(2, 3), n_features=3) as objective:
        bounds = np.random.default_rng(seed).random(objective.n_parameters) < bounded
        objective.nonnegative = bounds
        batches = objective.minibatches(1, 0)
        steps = plain_state(batches, pairwise)
        for index in [0, 1, 0, 1]:
            table, levels, shares = planes_of(steps, index)
            before, sums = steps.lower_bound, steps.w.copy()
            values = levels + table @ steps.unpack(sums)
            moved = shares > 0.0
            if pairwise:
                moved &= values == values[moved].min()
            target = np.eye(len(levels))[values.argmax()]
            step = shares[moved].sum() * target - np.where(moved, shares, 0.0)
            steps.advance(np.array([index]))
            after = steps.lower_bound
            assert after >= before - 1e-12 * (1.0 + abs(before))
            for length in np.linspace(0.0, 1.0, 7):
                level = steps.levels.sum() - steps.levels[index] + levels @ (shares + length * step)
                dual = steps.dual(level, sums - length / (2.0 * c2) * step @ table)
                assert dual <= after + 1e-9 * (1.0 + abs(before))
            np.testing.assert_allclose(shares_of(steps, index)[0][1] <= 1.0 + 1e-12, True)


@pytest.mark.parametrize("options", [
    {"loss": HingeLoss(rescaling="slack")}, {"loss": HingeLoss("zero_one")},
])  # fmt: skip
def test_losses_that_are_no_sum_over_tokens_have_no_oracle(options):
    with margin_problem(**options) as objective:
        assert type(make_margin_state(objective.minibatches(1, 0), "marginals")) is PlaneState


def test_boundary_weights_move_by_marginals():
    with margin_problem(boundaries=True) as objective:
        state = make_margin_state(objective.minibatches(1, 0), "marginals")
        assert type(state) is ChainMarginalFW


@pytest.mark.parametrize("kind", ["marginals", "pairwise", "classic"])
def test_steps_of_a_chain_count_their_visits(kind):
    with margin_problem() as objective:
        batches = objective.minibatches(1, 0)
        steps = make_margin_state(batches, kind)
        steps.advance(np.arange(len(batches)))
        assert batches.n_computed == len(batches)


def test_scores_of_any_size_are_no_trouble(rng):
    with ThreadMap(1) as threads:
        objective = wide_objective(rng, 9, threads)
        batches = objective.minibatches(1, 0)
        fast, plain = make_margin_state(batches, "marginals"), plain_state(batches, True)
        w = 1e4 * rng.normal(size=objective.n_parameters)
        np.testing.assert_allclose(fast.value(w), plain.value(w), rtol=1e-11)
