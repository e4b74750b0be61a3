"""Passes of online learning: what they find, when they stop, and what they tell."""

import itertools

import numpy as np
import pytest

from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.inference import BeamSearch
from crfkit.labels.costs import ZeroOneCost, make_cost
from crfkit.oracles.label_order import LabelOrder
from crfkit.solvers import AROW, MIRA, OnlineSolver, PassiveAggressive, Perceptron
from crfkit.solvers.online.learner import MistakeLoss, OnlineProblem, make_learner
from crfkit.solvers.online.updates import UPDATES, find_coefficients
from tests.objective.test_batch import make_data, make_objective
from tests.solvers.test_average_moves import make_form
from tests.solvers.test_dual_moves import wide_objective

LENGTHS = (3, 0, 1, 5, 2, 0, 6, 0, 9, 1)


def make(rng, threads, n_labels=3, lengths=LENGTHS, form="sparse"):
    data, codes = make_form(rng, form, n_labels, lengths)
    return wide_objective(data, codes, n_labels, threads)


def zeros(objective):
    return np.zeros(objective.n_parameters)


class NoRule:
    def coefficients(self):
        return 3


@pytest.fixture
def threads():
    with ThreadMap(1) as pool:
        yield pool


@pytest.mark.parametrize("rule", UPDATES)
@pytest.mark.parametrize("averaging", ["average", None])
def test_training_data_are_learned_by_every_rule(rng, threads, rule, averaging):
    """Each token has an attribute of its own, with some exceptions."""
    objective = make(rng, threads)
    solver = OnlineSolver(rule, averaging=averaging, max_iter=100)
    result = solver.solve(objective, zeros(objective))
    losses = [record.value for record in result.history[1:]]
    assert losses[-1] < 0.3 * losses[0]
    assert result.converged
    assert np.isnan(result.history[0].value)
    assert [record.iteration for record in result.history] == list(range(result.n_iter + 1))
    assert objective.evaluations == result.n_iter
    assert result.value == losses[-1]


@pytest.mark.parametrize("averaging", ["average", None, "batch"])
def test_results_depend_on_the_seed_alone(rng, averaging):
    data, codes = make_form(rng, "both", 5, tuple(rng.integers(0, 9, size=60).tolist()))
    found = []
    for n_jobs in (1, 2, 4):
        with ThreadMap(n_jobs) as pool:
            objective = wide_objective(data, codes, 5, pool)
            solver = OnlineSolver(averaging=averaging, max_iter=4, random_state=3)
            found.append(solver.solve(objective, zeros(objective)).parameters)
            again = solver.solve(objective, zeros(objective)).parameters
            np.testing.assert_array_equal(again, found[-1])
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    with ThreadMap(1) as pool:
        objective = wide_objective(data, codes, 5, pool)
        other = OnlineSolver(averaging=averaging, max_iter=4, random_state=4)
        changed = (other.solve(objective, zeros(objective)).parameters != found[0]).any()
        assert changed == (averaging != "batch")


def test_orders_are_shuffled_again_before_each_pass(rng, threads):
    class Reverse(np.random.RandomState):
        def shuffle(self, x):
            x[:] = x[::-1].copy()

    objective = make(rng, threads)
    solver = OnlineSolver(averaging=None, max_iter=3, random_state=Reverse())
    found = solver.solve(objective, zeros(objective)).parameters
    ties = LabelOrder.by_appearance(objective.labels, 3, objective.weight)
    task = OnlineProblem(objective, find_coefficients("perceptron"), order=ties)
    visits, forth = make_learner(task, zeros(objective)), np.arange(len(LENGTHS))
    for order in (forth[::-1], forth, forth[::-1]):
        visits.run(order)
    np.testing.assert_array_equal(found, visits.weights())
    plain = OnlineSolver(averaging=None, max_iter=1, shuffle=False, random_state=Reverse())
    visits = make_learner(task, zeros(objective))
    visits.run(forth)
    np.testing.assert_array_equal(
        plain.solve(objective, zeros(objective)).parameters, visits.weights()
    )


def separable(seed):
    """Sequences whose labels some weights prefer to all others, by a margin."""
    rng = np.random.default_rng(seed)
    lengths = tuple(rng.integers(1, 4, size=12).tolist())
    with ThreadMap(1) as pool:
        data, codes = make_data(rng, "sparse", lengths, n_features=6)
        objective = make_objective(data, codes, pool, all_states=True, all_transitions=True)
        truth = rng.normal(size=objective.n_parameters)
        batches = objective.minibatches(0, 0)
        bound = batches.bind(truth)
        for index, chunk in enumerate(batches.chunks):
            path, _ = objective.structure.argmax(batches.scores(bound, index))
            begin, end = data.offsets[int(batches._order[chunk.first]) :][:2]
            codes[begin:end] = path
    return data, codes, truth


@pytest.mark.parametrize("seed", range(4))
def test_mistakes_on_separable_chains_are_bounded(threads, seed):
    """At most ``R**2 / gamma**2`` (Novikoff 1962; Collins 2002, theorem 1)."""
    data, codes, truth = separable(seed)
    objective = make_objective(data, codes, threads, all_states=True, all_transitions=True)
    batches = objective.minibatches(0, 0)
    bound, radius, margin = batches.bind(truth), 0.0, np.inf
    for index in range(len(batches)):
        scores, labels = batches.scores(bound, index), batches.labels(index)
        for path in itertools.product(range(3), repeat=len(labels)):
            other = np.array(path, np.int32)
            if (other == labels).all():
                continue
            out = objective.structure.zeros(scores)
            objective.structure.add_counts(scores, labels, np.ones(1), out)
            objective.structure.add_counts(scores, other, -np.ones(1), out)
            delta = batches.gradient(index, out)
            radius = max(radius, float(delta @ delta))
            margin = min(margin, float(delta @ truth[batches.places(index)]))
    assert margin > 0.0
    solver = OnlineSolver(averaging=None, max_iter=100_000)
    result = solver.solve(objective, zeros(objective))
    assert result.history[-1].mistakes == 0
    mistakes = sum(record.mistakes for record in result.history[1:])
    assert 0 < mistakes <= radius * float(truth @ truth) / margin**2


def test_it_stops_after_a_pass_without_a_mistake_or_below_tol(rng, threads):
    data, codes, _ = separable(0)
    objective = make_objective(data, codes, threads)
    free = OnlineSolver(max_iter=1000).solve(objective, zeros(objective))
    assert free.history[-1].mistakes == 0
    assert all(record.mistakes for record in free.history[1:-1])
    assert free.converged
    strict = OnlineSolver(max_iter=free.n_iter + 5, tol=0.0).solve(objective, zeros(objective))
    assert strict.n_iter == free.n_iter + 5
    assert not strict.converged
    assert "max_iter" in strict.message
    loose = OnlineSolver(max_iter=1000, tol=0.1).solve(objective, zeros(objective))
    losses = [record.value / len(data) for record in loose.history[1:]]
    assert losses[-1] < 0.1 <= min(losses[:-1])
    some = OnlineSolver(max_iter=1).solve(objective, zeros(objective))
    assert some.converged  # all passes that were asked for


def test_no_pass_leaves_the_start(rng, threads):
    objective = make(rng, threads)
    start = rng.normal(size=objective.n_parameters)
    result = OnlineSolver(max_iter=0).solve(objective, start)
    np.testing.assert_array_equal(result.parameters, start)
    assert result.n_iter == 0


def test_callbacks_see_the_mean_and_may_stop(rng, threads):
    objective, seen = make(rng, threads), []

    def watch(record, w):
        seen.append(w.copy())
        return record.iteration == 2

    result = OnlineSolver(max_iter=9).solve(objective, zeros(objective), watch)
    assert (result.n_iter, result.message, result.converged) == (2, "stopped by a callback", False)
    np.testing.assert_array_equal(result.parameters, seen[2])
    for passes in (1, 2):
        short = OnlineSolver(max_iter=passes).solve(objective, zeros(objective))
        np.testing.assert_array_equal(short.parameters, seen[passes])
    start = OnlineSolver().solve(objective, zeros(objective), lambda record, w: True)
    assert start.n_iter == 0


def test_an_interrupt_keeps_the_last_finished_pass(rng, threads):
    objective, seen = make(rng, threads), []

    def interrupt(record, w):
        seen.append(w)
        if record.iteration == 2:
            raise KeyboardInterrupt

    result = OnlineSolver().solve(objective, zeros(objective), interrupt)
    assert result.interrupted
    assert not result.converged
    np.testing.assert_array_equal(result.parameters, seen[-1])


def test_passes_one_by_one_are_those_of_a_fit(rng, threads):
    objective = make(rng, threads, form="both")
    for averaging in ("average", None, "batch"):
        solver = OnlineSolver("arow" if averaging is None else "perceptron", averaging=averaging,
                              shuffle=False, max_iter=3)  # fmt: skip
        w, state = zeros(objective), None
        for _ in range(3):
            w, state = solver.partial(objective, w, state)
        whole = solver.solve(objective, zeros(objective)).parameters
        np.testing.assert_allclose(w, whole, rtol=1e-12, atol=1e-12)
        assert whole.any()


def test_scores_that_become_infinite_end_the_search(rng, threads):
    objective = make(rng, threads)
    solver = OnlineSolver(Perceptron(learning_rate=1e308), averaging=None, max_iter=9)
    result = solver.solve(objective, zeros(objective))
    assert not result.converged
    assert "infinite" in result.message
    with pytest.raises(ValueError, match="infinite"):
        solver.partial(objective, np.full(objective.n_parameters, 1e308), None)


@pytest.mark.parametrize(
    ("rule", "averaging", "size"),
    [(Perceptron(learning_rate=1e308), averaging, 3.0) for averaging in ("average", None, "batch")]
    + [(rule, None, 1e200) for rule in ("pa", "pa1", "pa2", "mira", "arow", MIRA(n_best=2))],
    ids=str,
)
@pytest.mark.parametrize("boundaries", [False, True])
def test_weights_that_overflow_in_the_last_look_end_the_search(
    threads, rule, averaging, size, boundaries
):
    """No later look tells of them. A square of a step that overflows is no step of length 0."""
    data = PackedSequences.from_flat(np.full((4, 1), size), (4,))
    codes = np.array([0, 1, 1, 1], np.int32)
    objective = make_objective(data, codes, threads, boundaries=boundaries)
    solver = OnlineSolver(rule, averaging=averaging, max_iter=1)
    result = solver.solve(objective, zeros(objective))
    assert "infinite" in result.message
    assert not result.converged
    np.testing.assert_array_equal(result.parameters, zeros(objective))
    with pytest.raises(ValueError, match="infinite"):
        solver.partial(objective, zeros(objective), None)


def test_no_pass_with_tol_is_told(rng, threads):
    objective = make(rng, threads)
    result = OnlineSolver(max_iter=0, tol=0.1).solve(objective, zeros(objective))
    assert not result.converged
    assert "max_iter=0 makes no pass" in result.message


@pytest.mark.parametrize(
    "rule",
    ["pa", "pa1", "pa2", "mira", PassiveAggressive(variant="PA", error_sensitive=False)],
    ids=str,
)
@pytest.mark.parametrize("boundaries", [False, True])
def test_with_a_cost_it_stops_where_nothing_moves(threads, rule, boundaries):
    """A step may end on the margin exactly, where wrong labels tie with the true ones."""
    data, codes, _ = separable(1)
    objective = make_objective(data, codes, threads, all_states=True, boundaries=boundaries)
    cost = make_cost("hamming", np.arange(3).astype(object))
    solver = OnlineSolver(rule, averaging=None, cost=cost, max_iter=3000)
    result = solver.solve(objective, zeros(objective))
    assert result.n_iter < 3000
    assert result.history[-1].mistakes == 0
    again = OnlineSolver(rule, averaging=None, cost=cost, max_iter=1)
    again = again.solve(objective, result.parameters)
    np.testing.assert_array_equal(again.parameters, result.parameters)
    assert all((record.mistakes > 0) == (record.value > 0.0) for record in result.history[1:])


def test_the_mean_loss_leaves_out_sequences_of_weight_0(rng, threads):
    data, codes = make_form(rng, "sparse", 3, (3, 4, 2, 5, 3, 1))
    weight = np.repeat([0.0, 0.0, 0.0, 0.0, 1.0, 1.0], (3, 4, 2, 5, 3, 1))
    objective = wide_objective(data, codes, 3, threads, weight)
    first = OnlineSolver(max_iter=1).solve(objective, zeros(objective)).value
    assert first > 0.0
    for tol, enough in ((first / 2 * 1.01, True), (first / 2 * 0.99, False)):
        result = OnlineSolver(max_iter=1, tol=tol).solve(objective, zeros(objective))
        assert result.converged == enough


@pytest.mark.parametrize("general", [False, True])
def test_a_cost_asks_for_a_margin(rng, threads, general):
    data, codes, _ = separable(1)
    objective = make_objective(data, codes, threads, all_states=True, boundaries=general)
    cost = make_cost("hamming", np.arange(3).astype(object))
    solver = OnlineSolver(averaging=None, cost=cost, max_iter=10_000)
    result = solver.solve(objective, zeros(objective))
    assert result.history[-1].mistakes == 0
    batches = objective.minibatches(0, 0)
    bound = batches.bind(result.parameters)
    for index in range(len(batches)):
        scores, labels = batches.scores(bound, index), batches.labels(index)
        gold = objective.structure.score(scores, labels)[0]
        for path in itertools.product(range(3), repeat=len(labels)):
            wrong = int(np.count_nonzero(np.array(path) != labels))
            other = objective.structure.score(scores, np.array(path, np.int32))[0]
            assert gold >= other + wrong - 1e-9
    by_loss = objective.with_loss(MistakeLoss(cost))
    told = OnlineSolver(averaging=None, max_iter=10_000).solve(by_loss, zeros(objective))
    np.testing.assert_array_equal(told.parameters, result.parameters)


@pytest.mark.parametrize(
    ("solver", "error", "message"),
    [
        (OnlineSolver("pb"), ValueError, "update='pb'"),
        (OnlineSolver(Perceptron), TypeError, "must be one of"),
        (OnlineSolver(Perceptron(learning_rate=0.0)), ValueError, "learning_rate=0.0 must be"),
        (OnlineSolver(PassiveAggressive(C=0.0)), ValueError, "C=0.0 must be above 0"),
        (OnlineSolver(PassiveAggressive(variant="PA-3")), ValueError, "variant='PA-3'"),
        (OnlineSolver(PassiveAggressive(error_sensitive=1)), TypeError, "error_sensitive=1"),
        (OnlineSolver(AROW(variance=0)), ValueError, "variance=0 must be above 0"),
        (OnlineSolver(AROW(gamma=-1.0)), ValueError, "gamma=-1.0"),
        (OnlineSolver(MIRA(n_best=0)), ValueError, "n_best=0"),
        (OnlineSolver(MIRA(C=np.nan)), ValueError, "C=nan"),
        (OnlineSolver(averaging="mean"), ValueError, "averaging='mean'"),
        (OnlineSolver(max_iter=-1), ValueError, "max_iter=-1"),
        (OnlineSolver(tol=-1.0), ValueError, "tol=-1.0"),
        (OnlineSolver(shuffle=1), TypeError, "shuffle=1"),
        (OnlineSolver("pa1", averaging="batch"), ValueError, "averaging='batch' has steps of one"),
        (OnlineSolver(averaging="batch", search=BeamSearch()), ValueError, "an exact search"),
        (OnlineSolver(search="beam"), TypeError, "search='beam'"),
        (OnlineSolver(search=BeamSearch), TypeError, "must be None, a BeamSearch or an object"),
        (OnlineSolver(NoRule()), TypeError, r"NoRule.coefficients\(\) returned 3"),
        (OnlineSolver(cost=ZeroOneCost()), ValueError, "no sum over tokens"),
        (OnlineSolver(MIRA(n_best=2), search=BeamSearch()), ValueError, "n_best > 1 goes with"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_cannot_be_used_is_told(rng, threads, solver, error, message):
    objective = make(rng, threads)
    with pytest.raises(error, match=message):
        solver.solve(objective, zeros(objective))


def test_votes_are_no_matter_of_single_passes(rng, threads):
    objective = make(rng, threads)
    with pytest.raises(ValueError, match="use 'average' for partial_fit"):
        OnlineSolver(averaging="vote").partial(objective, zeros(objective), None)


def test_token_weights_are_refused(rng, threads):
    data, codes = make_form(rng, "sparse", 3, LENGTHS)
    uneven = wide_objective(data, codes, 3, threads, rng.random(len(codes)))
    for averaging in ("average", "batch"):
        with pytest.raises(ValueError, match="the same weight for all tokens of a sequence"):
            OnlineSolver(averaging=averaging).solve(uneven, zeros(uneven))
