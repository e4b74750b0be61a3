"""Compiled visits of segments: they are those of any structure, and tell what cannot be."""

import numpy as np
import pytest

from crfkit._parallel import ThreadMap
from crfkit.kernels.solvers.online import ONE, ROOT, WHOLE, UpdateCoefficients
from crfkit.labels.costs import AdditiveCost
from crfkit.losses import HingeLoss, LogLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.oracles.label_order import LabelOrder
from crfkit.oracles.semimarkov import SegmentOracle
from crfkit.potentials.chain_blocks import TransitionBlock
from crfkit.potentials.semimarkov import TOKEN_PARTS, LengthBlock, choose_segment_features
from crfkit.solvers.margin.dual_state import VertexState, make_margin_state
from crfkit.solvers.online.learner import (
    InfiniteScoresError,
    OnlineProblem,
    SequentialLearner,
    make_learner,
)
from crfkit.structures import NoSegmentationError
from tests.oracles import random_segment_codes
from tests.solvers.test_average_moves import make_form
from tests.solvers.test_margin_moves import plain_state, shares_of
from tests.solvers.test_online_moves import assert_same
from tests.solvers.test_segments import COST, FIXED, LABELS, LONGEST, make_segments, problem

LENGTHS = (3, 0, 1, 4, 2, 5, 6, 1, 2)
WEIGHT = [1.0, 1.0, 2.0, 0.5, 0.0, 1.0, 1.0, 1.0, 2.0]
RULES = {
    "perceptron": UpdateCoefficients(rate=0.5),
    "pa": UpdateCoefficients(pays=ROOT),
    "pa1": UpdateCoefficients(cap=0.05, pays=ONE),
    "pa2": UpdateCoefficients(extra=0.7, pays=ROOT),
    "mira": UpdateCoefficients(cap=0.3, pays=WHOLE),
    "arow": UpdateCoefficients(extra=2.0, variance=3.0, pays=WHOLE),
}
SHAPES = pytest.mark.parametrize(
    ("dense", "rows"), [(True, True), (False, True), (True, False), (False, False)]
)
KINDS = pytest.mark.parametrize("fixed", FIXED)
# Costs that are no whole numbers: few labelings score the same, between which rounding decides.
UNEVEN = np.random.default_rng(0).random((4, 4)) * (1.0 - np.eye(4))


def make_task(objective, rule, cost=None):
    ties = LabelOrder.by_appearance(
        objective.labels, objective.model.n_labels, objective.weight, objective.model.n_codes
    )
    return OnlineProblem(objective, rule, cost, None, ties)


def assert_same_visits(task, rng, n_passes=4):
    start = rng.normal(scale=0.1, size=task.objective.n_parameters)
    before = start.copy()
    fast, plain = make_learner(task, start), SequentialLearner(task, start)
    assert fast.is_compiled
    for _ in range(n_passes):
        order = rng.permutation(len(task.objective.data))
        found, expected = fast.run(order), plain.run(order)
        assert found[1] == expected[1]
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
        assert_same(fast, plain, 1e-11)
    assert (fast.weights() != before).any()
    np.testing.assert_array_equal(start, before)
    again = make_learner(task, 0.0 * start, fast.save())
    again.run(order), plain.run(order)
    assert_same(again, plain, 1e-11)


@SHAPES
@KINDS
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("cost", [None, AdditiveCost(UNEVEN)], ids=["free", "costly"])
def test_online_visits_are_those_of_any_structure(rng, rule, fixed, dense, rows, cost):
    options = {"lengths": LENGTHS, "weight": WEIGHT, "dense": dense, "rows": rows}
    with problem(fixed, **options) as objective:
        assert_same_visits(make_task(objective, RULES[rule], cost), rng)


def wide_objective(rng, n_labels, threads, *, rows, boundaries, all_pairs, loss=None):
    """An objective over segments of many labels, whose lengths have ranges as functions."""
    offsets, longest = np.cumsum([0, *LENGTHS]), 4
    codes = random_segment_codes(
        rng, offsets, np.full(n_labels, longest), np.zeros((n_labels, n_labels), bool)
    )
    data, _ = make_form(rng, "both", n_labels, LENGTHS)
    if rows:
        data = data.with_segments(make_segments(rng, offsets))
    basis = np.tri(longest) * rng.random((longest, longest)).round(1)
    chosen = rng.random((longest, n_labels)) < 0.7
    model = choose_segment_features(
        data, codes, n_labels, lengths=LengthBlock(np.zeros((longest, n_labels)), basis, chosen),
        parts=rng.random((data.n_features, len(TOKEN_PARTS))) < 0.7, boundaries=boundaries,
        all_states=all_pairs, all_transitions=all_pairs,
    )  # fmt: skip
    weight = np.repeat(WEIGHT, LENGTHS)
    return Objective(
        model, model.structure, loss or LogLoss(), ElasticNet(0.0, 0.05), data, codes, weight,
        threads,
    )  # fmt: skip


@pytest.mark.parametrize("n_labels", [1, 7, 8, 9, 17])
@pytest.mark.parametrize(
    ("rows", "boundaries", "all_pairs"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_they_are_for_any_number_of_labels(rng, n_labels, rows, boundaries, all_pairs):
    with ThreadMap(1) as threads:
        objective = wide_objective(
            rng, n_labels, threads, rows=rows, boundaries=boundaries, all_pairs=all_pairs
        )
        assert_same_visits(make_task(objective, RULES["mira"]), rng)


def test_a_row_that_segments_of_a_sequence_share_is_scored_once():
    with problem(lengths=(5, 0, 4, 3), rows=True) as objective:
        order, data = LabelOrder.by_code(objective.model.n_codes), objective.data
        with ThreadMap(1) as threads:
            oracle = SegmentOracle(objective.model, objective.structure, data, order, threads)
        ptr, length, number = oracle.problem.spans
        own = oracle.workspace(np.zeros(oracle.weights.size))
    n_rows = data.segments.rows.n_tokens
    assert len(number) > n_rows == len(own.spans)
    local = data.segments.within(0, data.n_tokens)
    where = zip(local.stop.tolist(), local.length.tolist(), strict=True)
    rows = dict(zip(where, local.row.tolist(), strict=True))
    ends = np.repeat(np.arange(1, len(ptr)), np.diff(ptr))
    listed = [rows[pair] for pair in zip(ends.tolist(), length.tolist(), strict=True)]
    bounds = ptr[data.offsets]
    for begin, end in zip(bounds[:-1], bounds[1:], strict=True):
        pairs = dict(zip(number[begin:end].tolist(), listed[begin:end], strict=True))
        assert sorted(pairs) == list(range(len(pairs)))
        assert len(set(pairs.values())) == len(pairs)
        assert [pairs[i] for i in number[begin:end].tolist()] == listed[begin:end]


def test_of_segmentations_that_score_the_same_the_one_of_the_first_labels_is_predicted():
    with problem("free", lengths=(3, 2)) as objective:
        for codes in ([2, 0, 3, 2, 3], [3, 1, 2, 3, 2]):
            objective.labels[:] = codes
            task = make_task(objective, RULES["perceptron"])
            zero = np.zeros(objective.n_parameters)
            fast, plain = make_learner(task, zero), SequentialLearner(task, zero)
            fast.run(np.array([0])), plain.run(np.array([0]))
            assert fast.weights().any()
            np.testing.assert_array_equal(fast.weights(), plain.weights())


@pytest.mark.parametrize("rule", ["perceptron", "mira"])
def test_the_recorder_is_told_of_each_step_of_each_weight_once(rng, rule):
    with problem("poisson", lengths=LENGTHS, dense=True) as objective:
        task, told = make_task(objective, RULES[rule]), ([], [])
        zero = np.zeros(objective.n_parameters)
        for kind, steps in zip((make_learner, SequentialLearner), told, strict=True):
            visits, moved = kind(task, zero), zero.copy()
            visits.recorder = lambda *step, steps=steps: steps.append(step)
            visits.run(np.tile(np.arange(len(LENGTHS)), 3))
            for _, places, changes in steps:
                assert len(np.unique(places)) == len(places)
                assert changes.all()
                moved[places] += changes
            np.testing.assert_allclose(moved, visits.weights(), atol=1e-12)
    assert len(told[0]) == len(told[1]) > 3
    assert [count for count, _, _ in told[0]] == [count for count, _, _ in told[1]]


def test_scores_that_are_not_finite_are_told():
    with problem("free") as objective:
        task = make_task(objective, RULES["mira"])
        for place in (0, len(objective.model.state.columns), objective.n_parameters - 1):
            start = np.zeros(objective.n_parameters)
            start[place] = np.inf
            with pytest.raises(InfiniteScoresError):
                make_learner(task, start).run(np.arange(len(objective.data)))


def test_a_sequence_without_a_segmentation_is_named():
    with problem("free", lengths=(1, 0, 1, 4, 2)) as objective:
        fixed = np.full((LONGEST, LABELS), -np.inf)
        fixed[0, 0] = 0.0
        objective.model.lengths.fixed = fixed
        objective.model.get(TransitionBlock).forbidden = np.ones((LABELS, LABELS), bool)
        task = make_task(objective, RULES["mira"])
        zero, errors = np.zeros(objective.n_parameters), []
        for kind in (make_learner, SequentialLearner):
            with pytest.raises(NoSegmentationError) as error:
                kind(task, zero).run(np.array([0, 1, 2, 3, 4]))
            errors.append(error.value)
        assert errors[0].sequence == errors[1].sequence == 3
        assert str(errors[0]) == str(errors[1])


def assert_same_steps(objective, kind, n_passes=12):
    rng, batches = np.random.default_rng(1), objective.minibatches(1, 0)
    fast, plain = make_margin_state(batches, kind), plain_state(batches, kind != "classic")
    assert type(fast) is VertexState
    for _ in range(n_passes):
        order = rng.permutation(len(batches))
        fast.advance(order), plain.advance(order)
        np.testing.assert_allclose(fast.unpack(fast.w), plain.w, atol=1e-9)
        np.testing.assert_allclose(fast.levels, plain.levels, atol=1e-9)
        np.testing.assert_allclose(fast.gaps, plain.gaps, atol=1e-8)
        np.testing.assert_allclose(fast.lower_bound, plain.lower_bound, rtol=1e-9)
    assert not fast._workspace.weights.scratch.any()
    for index in range(len(batches)):
        ours, theirs = shares_of(fast, index), shares_of(plain, index)
        assert [labels for labels, _ in ours] == [labels for labels, _ in theirs]
        np.testing.assert_allclose([a for _, a in ours], [a for _, a in theirs], atol=1e-9)
    w = rng.normal(size=objective.n_parameters)
    np.testing.assert_allclose(fast.value(w), plain.value(w), rtol=1e-11)
    return fast


# With numbers as features, few values are equal, between which rounding would decide.
@KINDS
@pytest.mark.parametrize("kind", ["pairwise", "classic"])
@pytest.mark.parametrize("rows", [True, False])
def test_margin_steps_are_those_of_any_structure(fixed, kind, rows):
    options = {"lengths": LENGTHS, "weight": WEIGHT, "dense": True, "rows": rows}
    with problem(fixed, HingeLoss(AdditiveCost(UNEVEN)), penalty=(0.0, 0.05), **options) as found:
        assert_same_steps(found, kind)


@pytest.mark.parametrize("n_labels", [3, 9])
@pytest.mark.parametrize("kind", ["pairwise", "classic"])
def test_margin_steps_are_for_any_number_of_labels(rng, n_labels, kind):
    cost = rng.random((2 * n_labels, 2 * n_labels)) * (1.0 - np.eye(2 * n_labels))
    with ThreadMap(1) as threads:
        objective = wide_objective(
            rng, n_labels, threads, rows=True, boundaries=True, all_pairs=False,
            loss=HingeLoss(AdditiveCost(cost)),
        )  # fmt: skip
        fast = assert_same_steps(objective, kind, 20)
    if kind == "classic":
        assert len(fast.active.vertices) > 8  # there is room for any number of segmentations


def test_a_visit_of_several_steps_is_several_visits():
    options = {"lengths": LENGTHS, "dense": True}
    with problem("poisson", HingeLoss(COST), penalty=(0.0, 0.05), **options) as objective:
        batches = objective.minibatches(1, 0)
        several, single = (make_margin_state(batches, "pairwise", most) for most in (3, 1))
        for index in 2 * list(range(len(batches))):
            several.advance(np.array([index]))
            first = None
            for _ in range(3):
                single.advance(np.array([index]))
                first = single.gaps[index] if first is None else first
                if not single.gaps[index] > 0.1 * first:
                    break
            np.testing.assert_array_equal(several.w, single.w)
            np.testing.assert_array_equal(several.levels, single.levels)


def test_forbidden_true_segments_are_named():
    with problem("free", HingeLoss(COST), lengths=(2, 3, 2)) as objective:
        objective.model.get(TransitionBlock).forbidden = np.array([[False, True], [False, False]])
        objective.labels[:] = [2, 0, 2, 0, 3, 3, 2]
        batches = objective.minibatches(1, 0)
        steps = make_margin_state(batches, "marginals")
        with pytest.raises(ValueError, match="sequence 1: its labels have the score -inf"):
            steps.advance(np.arange(3))
        with pytest.raises(ValueError, match="sequence 1: its labels have the score -inf"):
            steps.value(np.zeros(objective.n_parameters))


def test_margins_whose_scores_are_not_finite_are_told():
    with problem("free", HingeLoss(COST)) as objective:
        steps = make_margin_state(objective.minibatches(1, 0), "marginals")
        with np.errstate(all="ignore"), pytest.raises(ValueError, match="became infinite"):
            steps.value(np.full(objective.n_parameters, np.inf))
