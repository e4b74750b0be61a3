"""Stochastic average gradient: the optimum, the certificate, the bookkeeping."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import crfkit.solvers.stochastic.lipschitz as module
from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.kernels.solvers.sag import LEAST_CHANGE, LESS, LONGEST_PAUSE, MORE
from crfkit.objective.penalties import ElasticNet
from crfkit.solvers import SAG
from crfkit.solvers.stochastic.lipschitz import LipschitzEstimates, Preconditioner
from crfkit.solvers.stochastic.sag import SagState
from tests.objective.test_batch import make_objective
from tests.solvers.stochastic import optimum, problem


def solve(objective, start=None, callback=None, **options):
    start = np.zeros(objective.n_parameters) if start is None else start
    return SAG(**{"batch_tokens": 12, "max_iter": 3000} | options).solve(objective, start, callback)


@pytest.mark.parametrize("batches_per_update", [1, 3])
@pytest.mark.parametrize("blocks", ["sparse", "dense", "sparse dense"])
def test_it_reaches_the_optimum(blocks, batches_per_update):
    with problem(blocks=blocks) as objective:
        value, w = optimum(objective)
        result = solve(objective, tol=0.0, gtol=1e-7, batches_per_update=batches_per_update)
    assert result.converged
    np.testing.assert_allclose(result.value, value, rtol=1e-10)
    np.testing.assert_allclose(result.parameters, w, atol=1e-6)


def test_weights_that_few_batches_touch_reach_the_optimum_too():
    with problem(blocks="sparse", features=30) as objective:
        value, w = optimum(objective)
        result = solve(objective, tol=0.0, gtol=1e-7)
    np.testing.assert_allclose(result.parameters, w, atol=1e-6)


def test_the_gap_is_never_below_the_distance_to_the_optimum():
    with problem() as objective:
        value, _ = optimum(objective)
        result = solve(objective, tol=1e-8, gtol=0.0)
    assert result.converged
    assert "gap" in result.message
    assert np.isnan(result.history[0].gap)  # no batch was looked at
    for record in result.history[1:]:
        assert record.value - value <= record.gap + 1e-10
    assert 0.0 <= result.history[-1].gap <= 1e-8 * result.value


def test_the_objective_is_evaluated_rarely_where_the_gap_is_known():
    with problem(count=40) as objective:
        rare, often = solve(objective, tol=1e-6), solve(objective, tol=1e-6, check_every=1)
        free = solve(objective, tol=0.0, max_iter=7)
    assert rare.converged
    assert len(rare.history) < rare.n_iter
    assert len(often.history) == often.n_iter + 1
    assert rare.n_iter <= often.n_iter + 8
    assert [record.iteration for record in free.history] == [0, 5, 7]


def test_without_an_l2_penalty_the_gradient_tells_the_end():
    with problem(penalty=(0.0, 0.0), count=60) as objective:
        value, _ = optimum(objective)
        result = solve(objective, tol=0.0, gtol=1e-7, batch_tokens=40)
        _, gradient = objective.value_and_grad(result.parameters)
    assert result.converged
    np.testing.assert_allclose(result.value, value, rtol=1e-8)
    assert np.linalg.norm(gradient) <= 1e-7 * max(1.0, np.linalg.norm(result.parameters))


def test_token_weights_are_those_of_the_objective(rng):
    lengths = (3, 4, 0, 2, 5, 1)
    weight = rng.random(15)
    with problem(lengths=lengths, weight=weight, penalty=(0.0, 1.0)) as objective:
        value, w = optimum(objective)
        result = solve(objective, tol=0.0, gtol=1e-7, batch_tokens=4)
    np.testing.assert_allclose(result.parameters, w, atol=1e-6)
    assert np.isnan(result.history[-1].gap)  # the loss need not be convex


def run(average, passes, batches_per_update=1):
    random = np.random.RandomState(1)
    for _ in range(passes):
        average.run_pass(random, batches_per_update)


@pytest.mark.parametrize("batches_per_update", [1, 4])
def test_the_direction_is_the_sum_of_the_remembered_gradients(batches_per_update):
    with problem(features=40, blocks="sparse") as objective:
        batches = objective.minibatches(6, 0)
        average = SagState(batches, np.zeros(objective.n_parameters))
        run(average, 30, batches_per_update)
        total = np.zeros(objective.n_parameters)
        at, residuals = average.oracle.index, average._memory.residuals
        for index in range(len(batches)):
            out = batches.structure.zeros(batches.scores(batches.bind(total), index))
            for part, ptr in ((out.unary, at.unary), (out.pair, at.pair)):
                part[...] = residuals[ptr[index] : ptr[index + 1]].reshape(part.shape)
            total[batches.places(index)] += batches.gradient(index, out)
    np.testing.assert_allclose(average.direction, total, atol=1e-11)


class Estimates(LipschitzEstimates):
    """Tests of estimates and lengths of steps, as simple as can be."""

    def __init__(self, batches):
        super().__init__(batches)
        self.batches, self.guess = batches, batches.mean_square

    def is_due(self, index):
        if self.estimates[index] == 0.0:
            self.estimates[index] = self.guess / LESS
            return True
        self.wait[index] -= 1
        return self.wait[index] < 0

    def test(self, index, scores, value, gradient, places):
        vector = np.zeros(self.batches.n_parameters)
        vector[places] = gradient
        square, estimate = gradient @ gradient, LESS * self.estimates[index]
        if square <= LEAST_CHANGE * abs(value) * estimate:
            return
        along = self.batches.scores(self.batches.bind(vector), index)
        tests, after = 0, np.inf
        while after > value - 0.5 * square / estimate:
            estimate *= MORE if tests else 1.0
            both = zip(scores.arrays(), along.arrays(), strict=True)
            moved = scores.with_arrays(*(a - b / estimate for a, b in both))
            after, tests = self.batches.value_and_residual(moved, index)[0], tests + 1
        pause = min(2 * max(self.pause[index], 1), LONGEST_PAUSE) if tests == 1 else 1
        self.estimates[index], self.pause[index], self.wait[index] = estimate, pause, pause

    def guess_from(self, index):
        if self.pause[index]:
            self.guess = 0.5 * self.estimates[index]

    def step(self, decay):
        most, mean = self.estimates.max(), self.estimates[self.estimates > 0.0].mean()
        length = 0.5 / (most + decay) + 0.5 / (mean + decay)
        return min(length, 0.5 / decay) if decay else length


def eager(batches, start, passes):
    """The same method with whole vectors and without anything put off."""
    random, smoothness = np.random.RandomState(1), Estimates(batches)
    decay = 2.0 * batches.penalty.l2 / len(batches)

    def look(w, index):
        scores, places = batches.scores(batches.bind(w), index), batches.places(index)
        value, residual = batches.value_and_residual(scores, index)
        gradient = np.zeros_like(w)
        gradient[places] = batches.gradient(index, residual)
        return scores, value, gradient, places

    stored = [look(start, index)[2] if start.any() else None for index in range(len(batches))]
    w = start.copy()
    for _ in range(passes):
        for index in smoothness.draw(random):
            scores, value, stored[index], places = look(w, index)
            if smoothness.is_due(index):
                smoothness.test(index, scores, value, stored[index][places], places)
            smoothness.guess_from(index)
            known = [g for g in stored if g is not None]
            length = smoothness.step(decay)
            w = (1.0 - length * decay) * w - length / len(known) * np.sum(known, axis=0)
    return w


@pytest.mark.parametrize("size", [0.0, 1.0])
@pytest.mark.parametrize("l2", [0.0, 0.3, 1e4])
def test_lazy_steps_equal_eager_ones(rng, l2, size):
    with problem(features=40, blocks="sparse", penalty=(0.0, l2)) as objective:
        batches = objective.minibatches(6, 0)
        start = size * rng.normal(size=objective.n_parameters)
        average = SagState(batches, start)
        run(average, 4)
        expected = eager(batches, start, 4)
    np.testing.assert_allclose(average.weights(), expected, rtol=1e-9, atol=1e-12)


def test_estimates_bound_the_decrease_along_the_gradient(rng):
    with problem() as objective:
        batches = objective.minibatches(8, 0)
        w = rng.normal(size=objective.n_parameters)
        state, metric = SagState(batches, w), Preconditioner(batches)
        state._settings = state._settings._replace(longest=1e-300)  # tests, and moves nothing
        state.update(np.arange(len(batches)))
        for index in range(len(batches)):
            scores, vector = batches.scores(batches.bind(w), index), np.zeros_like(w)
            value, residual = batches.value_and_residual(scores, index)
            gradient, places = batches.gradient(index, residual), batches.places(index)
            vector[places] = gradient
            vector[metric.always] = metric(vector[metric.always])
            estimate, moved = state.smoothness.estimates[index], w.copy()
            moved -= vector / estimate
            after = batches.value_and_residual(batches.scores(batches.bind(moved), index), index)[0]
            assert after <= value - 0.5 * gradient @ vector[places] / estimate + 1e-12


def test_half_of_the_visits_are_in_proportion_to_the_estimates():
    with problem(count=60) as objective:
        batches = objective.minibatches(8, 0)
        smoothness = LipschitzEstimates(batches)
        smoothness.estimates[:] = 1.0
        smoothness.estimates[3] = 1e9
        order = smoothness.draw(np.random.RandomState(0))
    assert len(order) == len(smoothness.estimates)
    assert np.sum(order == 3) >= len(order) // 2
    assert np.unique(order[1::2]).size == len(order) // 2


def test_results_do_not_depend_on_threads_and_repeat():
    found = []
    for n_jobs in (1, 2, 1):
        with problem(n_jobs=n_jobs, count=60) as objective:
            found.append(solve(objective, max_iter=6, batches_per_update=3).parameters)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    with problem(count=60) as objective:
        other = solve(objective, max_iter=6, batches_per_update=3, random_state=1).parameters
    assert not np.array_equal(found[0], other)


def test_a_warm_start_at_the_optimum_stops_soon():
    with problem() as objective:
        _, w = optimum(objective)
        before = w.copy()
        result = solve(objective, w, tol=1e-6)
    assert result.converged
    assert result.n_iter <= 2
    np.testing.assert_array_equal(w, before)


@pytest.mark.parametrize("lengths", [(0,), (0, 0, 1), (5,), (1,)])
def test_few_tokens(lengths):
    with problem(lengths=lengths) as objective:
        value, w = optimum(objective)
        result = solve(objective, tol=0.0, gtol=1e-7)
    assert result.converged
    np.testing.assert_allclose(result.parameters, w, atol=1e-6)


def test_large_values_and_scores_stay_finite():
    with problem() as objective:
        start = np.full(objective.n_parameters, 1e4)
        start[::2] *= -1.0
        value, _ = optimum(objective)
        result = solve(objective, start, tol=1e-9, gtol=0.0)
    assert result.converged
    np.testing.assert_allclose(result.value, value, rtol=1e-8)


def test_a_start_without_a_finite_value_is_an_error():
    with problem() as objective, pytest.raises(ValueError, match="finite"):
        solve(objective, np.full(objective.n_parameters, np.nan))


def test_a_start_without_data_is_no_problem():
    with problem(lengths=(), all_states=True, all_transitions=True) as objective:
        result = solve(objective, np.ones(objective.n_parameters), max_iter=2)
    assert result.n_iter == 2


def test_an_l1_penalty_is_refused():
    with problem(penalty=(1.0, 1.0)) as objective:
        with pytest.raises(ValueError, match="SAG needs a differentiable objective"):
            solve(objective)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_iter", -1),
        ("tol", -1.0),
        ("gtol", np.nan),
        ("batch_tokens", 0),
        ("batches_per_update", 0),
        ("check_every", 0),
    ],
)
def test_parameters_out_of_range_are_errors(name, value):
    with problem() as objective, pytest.raises(ValueError, match=name):
        solve(objective, **{name: value})


def test_stops_are_told_and_control_c_keeps_the_last_pass():
    seen = {}

    def interrupt(record, w):
        seen[record.iteration] = w.copy()
        if record.iteration == 3:
            raise KeyboardInterrupt

    with problem() as objective:
        short = solve(objective, tol=0.0, max_iter=2)
        asked = solve(objective, callback=lambda record, w: record.iteration == 5, tol=0.0)
        result = solve(objective, callback=interrupt, tol=0.0, check_every=1)
        exact = [objective.minibatches(8, 0).value(w) for w in seen.values()]
    assert (short.n_iter, short.converged) == (2, False)
    assert "max_iter=2" in short.message
    assert (asked.n_iter, asked.converged) == (5, False)
    assert (result.n_iter, result.interrupted) == (3, True)
    np.testing.assert_array_equal(result.parameters, seen[3])
    np.testing.assert_allclose([record.value for record in result.history], exact, rtol=1e-13)


def test_a_rise_of_the_objective_makes_steps_shorter_once(monkeypatch):
    """Also where the next passes are made without a look at the objective."""
    raised = []
    monkeypatch.setattr(LipschitzEstimates, "raise_all", lambda self: raised.append(1))
    monkeypatch.setattr(SagState, "evaluate", lambda self, w: (w, 1e4 + next(rising)))
    rising = iter([0.0, 1.0, 0.5, 2.0, 1.0, 0.5, 0.2, 0.1])
    with problem() as objective:
        solve(objective, tol=0.0, gtol=0.0, check_every=5, max_iter=30)
    assert len(raised) == 2


@pytest.mark.parametrize("most", [0, 512])
def test_a_metric_of_single_features_leads_to_the_same_optimum(monkeypatch, most):
    monkeypatch.setattr(module, "MOST_FEATURES", most)
    with problem(blocks="sparse dense") as objective:
        value, w = optimum(objective)
        metric = Preconditioner(objective.minibatches(12, 0))
        fast = solve(objective, tol=0.0, gtol=1e-7)
    assert (metric.features.shape[1] == 1) == (most == 0)
    np.testing.assert_allclose(fast.value, value, rtol=1e-10)
    np.testing.assert_allclose(fast.parameters, w, atol=1e-6)


def test_a_block_of_no_dense_features_and_a_large_penalty_need_no_care(rng):
    codes = rng.integers(0, 3, size=60).astype(np.int32)
    sparse = (rng.random((60, 4)) < 0.5).astype(float)
    data = PackedSequences(csr_array(sparse), dense=np.empty((60, 0)), offsets=np.arange(61))
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, ElasticNet(0.0, 1e4))
        value, _ = optimum(objective)
        result = solve(objective, tol=1e-6)
    assert result.converged
    np.testing.assert_allclose(result.value, value, rtol=1e-6)


def test_batches_of_weight_zero_leave_the_smoothness_of_others_alone():
    lengths = (4,) * 300
    weight = np.zeros(1200)
    weight[:12] = 1.0
    with problem(lengths=lengths, weight=weight, penalty=(0.0, 0.1)) as objective:
        value, _ = optimum(objective)
        result = solve(objective, batch_tokens=4, tol=1e-5, max_iter=300)
    assert result.converged
    np.testing.assert_allclose(result.value, value, rtol=1e-5)
