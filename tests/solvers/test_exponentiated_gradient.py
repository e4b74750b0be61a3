"""Online exponentiated gradient: the certificate, the common optimum, bookkeeping."""

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit._parallel import ThreadMap
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.solvers.eg import (
    LARGEST,
    LEAST_RATE,
    MOST,
    ZERO,
    BatchVectors,
    BlockPlace,
    compare_short,
    keep_short,
    limits,
    round_short,
)
from crfkit.losses import HingeLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.linear import choose_features
from crfkit.solvers import LBFGS, OEG, OWLQN
from crfkit.solvers.stochastic import dual_store
from crfkit.solvers.stochastic.exponentiated_gradient import DualState, _Dual, drawn_by_gap
from crfkit.structures import Chain
from tests.objective.test_batch import make_data, make_objective

TIGHT = {"tol": 0.0, "gtol": 1e-11, "max_iter": 3000}


@pytest.fixture
def data(rng):
    return make_data(rng, lengths=tuple(rng.integers(0, 9, size=40)), n_features=6)


@pytest.fixture(params=[(0.0, 0.5), (0.0, 0.08), (0.4, 0.3)], ids=["c2", "small c2", "c1 and c2"])
def penalty(request):
    return ElasticNet(*request.param)


def optimum(objective):
    kind = OWLQN if objective.l1 else LBFGS
    return kind(**TIGHT).solve(objective, np.zeros(objective.n_parameters))


def test_the_gap_bounds_the_distance_from_the_optimum_at_every_pass(data, penalty):
    with ThreadMap(1) as threads:
        objective = make_objective(*data, threads, penalty, boundaries=True)
        best = optimum(objective).value
        solver = OEG(tol=1e-7, batch_tokens=12, check_every=1, max_iter=2000)
        result = solver.solve(objective, np.zeros(objective.n_parameters))
    assert result.converged
    for record in result.history:
        assert record.value - best <= record.gap + 1e-10 * best
        assert record.value >= best - 1e-10 * best
    assert result.history[-1].gap <= 1e-7 * best


def test_it_reaches_the_optimum_of_the_batch_solvers(data, penalty):
    with ThreadMap(1) as threads:
        objective = make_objective(*data, threads, penalty)
        expected = optimum(objective)
        result = OEG(tol=1e-10, batch_tokens=12, max_iter=3000).solve(
            objective, np.zeros(objective.n_parameters)
        )
    assert result.converged
    np.testing.assert_allclose(result.value, expected.value, rtol=1e-9)
    np.testing.assert_allclose(result.parameters, expected.parameters, atol=2e-4)


def test_the_parameters_are_those_of_the_expected_counts(data, penalty):
    with ThreadMap(1) as threads:
        objective = make_objective(*data, threads, penalty, boundaries=True)
        batches = objective.minibatches(10, 0)
        dual = _Dual(batches, penalty, np.zeros(objective.n_parameters))
        for number in range(5):
            dual.lower_c2(number)
            dual.run_pass(np.random.RandomState(number).permutation(len(batches)), 2)
        total = np.zeros(objective.n_parameters)
        for index in range(len(batches)):
            scores = batches.scores(batches.bind(dual.weights()), index)
            counts = batches.structure.zeros(scores)

            def subtract(order, at, potentials, residuals, index=index, counts=counts):
                for out, ptr in ((counts.unary, at.unary), (counts.pair, at.pair)):
                    out -= residuals[ptr[index] : ptr[index + 1]].reshape(out.shape)

            dual.steps.store.work_on(np.array([index]), subtract)
            np.add.at(total, batches.places(index), batches.gradient(index, counts))
    shrunk = np.sign(total) * np.maximum(np.abs(total) - penalty.l1, 0.0)
    np.testing.assert_allclose(dual.weights(), shrunk / (2.0 * dual.c2), atol=1e-10)


@pytest.mark.parametrize("short", [False, True])
def test_a_batch_does_not_stay_where_no_short_step_raises_the_dual(short):
    """Weights are more certain of true labels than what is kept at first: it falls towards that."""
    tokens = np.arange(60)
    values = sp.csr_array((np.ones(60), (tokens, tokens % 2)))
    data, codes = PackedSequences(values, offsets=[0, 20, 40, 60]), (tokens % 2).astype(np.int32)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, ElasticNet(0.0, 0.5))
        steps = DualState(objective.minibatches(20, 0), own_w=False, short=short)
        steps.rates[:], seen = 0.01, []  # as where long steps led too far
        steps.w[:] = steps.oracle.pack(10.0 * optimum(objective).parameters)
        before = steps.w.copy()
        while steps.entropies[1] == 0.0 and len(seen) < 9:
            steps.advance(np.array([1]), 1, 0.5, 0.0)
            seen.append(steps.rates[1])
    assert steps.entropies[1] > 0.0 and (steps.w != before).any()
    assert min(seen) < LEAST_RATE < seen[-1]
    assert steps.entropies[0] == steps.entropies[2] == 0.0


@pytest.mark.parametrize("c1", [0.0, 0.4])
def test_numbers_of_16_bits_bound_the_distance_from_the_optimum(data, c1):
    with ThreadMap(1) as threads:
        objective = make_objective(*data, threads, ElasticNet(c1, 0.5), boundaries=True)
        best, zeros = optimum(objective).value, np.zeros(objective.n_parameters)
        cold = OEG(tol=2e-5, batch_tokens=12, check_every=1, max_iter=2000).solve(objective, zeros)
        warm = OEG(tol=2e-5, batch_tokens=12, check_every=1).solve(objective, cold.parameters)
        batches = objective.minibatches(12, 0)
        assert OEG()._start(batches, zeros, None).steps.store.short
    for result in (cold, warm):
        assert result.converged
        for record in result.history:
            assert record.value - best <= record.gap + 1e-6 * best
        assert result.value - best <= 2e-5 * best
    assert warm.n_iter <= cold.n_iter
    assert any(0.0 < record.gap < 1e-3 * best for record in cold.history)


def test_short_numbers_are_near_what_they_stand_for(rng):
    count, step = 5000, 2.0 / MOST**2
    residual = rng.normal(size=count) ** 5 / 4000.0
    residual[7], exact = -2.0, residual.copy()
    exact[7] = -2.0
    potentials, direction, change = rng.normal(size=(3, count))
    along = direction.copy()
    before = rng.integers(1, 65_536, size=count).astype(np.uint16)
    known = (before - ZERO) * np.abs(before - ZERO) * 1e-9
    place, vectors = BlockPlace(0, 0, 0, count, 0), (potentials, direction, residual, change)
    found = compare_short(place, 1e-9, step, frozen(before), BatchVectors(*vectors))
    assert (np.abs(residual - exact) <= 1.001 * np.sqrt(step * np.abs(exact)) + step).all()
    np.testing.assert_allclose(change, residual - known)
    products = potentials @ residual, change @ along, change @ change
    np.testing.assert_allclose(found, products)
    kept = np.empty((2, count), np.uint16)
    low, high = limits(0, count, frozen(potentials))
    assert (low, high) == (potentials.min(), potentials.max())
    own = (high - low) / 65_535
    keep_short(place, low, own, BatchVectors(*vectors), *kept)
    np.testing.assert_allclose(low + own * kept[0], potentials, atol=0.51 * own)
    np.testing.assert_array_equal(step * (kept[1] - ZERO) * np.abs(kept[1] - ZERO), residual)


@pytest.mark.parametrize("size", [1.0, 1e4])
def test_potentials_are_rounded_to_steps_at_random_and_the_same_again(rng, size):
    potentials = size * rng.normal(size=5000)
    place, exact = BlockPlace(0, 0, 1, 4998, 1), potentials.copy()
    low, high = limits(1, 4998, frozen(potentials))
    step = (high - low) / LARGEST
    round_short(place, low, step, potentials)
    assert (potentials[[0, -1]] == exact[[0, -1]]).all()
    error = (potentials - exact)[1:-1] / step
    assert np.abs(error).max() <= 1.0 and abs(error.mean()) < 0.03
    assert (error < -0.4).any() and (error > 0.4).any()
    steps = (potentials[1:-1] - low) / step
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    again = potentials.copy()
    round_short(place, low, step, again)
    np.testing.assert_allclose(again, potentials, rtol=0.0, atol=1e-6 * step)


def test_the_dual_never_falls(data):
    with ThreadMap(1) as threads:
        objective = make_objective(*data, threads, ElasticNet(0.0, 2.0))
        batches = objective.minibatches(10, 0)
        dual = _Dual(batches, objective.penalty, np.zeros(objective.n_parameters))
        for number in range(8):
            dual.run_pass(np.random.RandomState(number).permutation(len(batches)), 3)
    assert (np.diff(dual.bounds) >= -1e-9).all()


def test_distributions_in_a_file_are_those_in_memory(rng, monkeypatch):
    data = make_data(rng, "sparse", lengths=tuple(rng.integers(0, 9, size=30)))
    monkeypatch.setattr(dual_store, "AT_A_TIME", 100)  # some of the batches at a time
    monkeypatch.setattr(dual_store, "MANY_LABELS", 2)
    results = []
    for most, kind in ((1 << 24, dual_store.InMemory), (0, dual_store.InFile)):
        monkeypatch.setattr(dual_store, "IN_MEMORY", most)
        with ThreadMap(2) as threads:
            objective = make_objective(*data, threads)
            zeros = np.zeros(objective.n_parameters)
            state = _Dual(objective.minibatches(10, 0), objective.penalty, zeros).steps
            assert type(state.store) is kind
            for together, tol in ((1, 1e-4), (3, 1e-6)):
                solver = OEG(tol=tol, batch_tokens=10, batches_per_update=together)
                results.append(solver.solve(objective, zeros))
                results.append(solver.solve(objective, results[-1].parameters))
    for found, expected in zip(results[4:], results, strict=False):
        np.testing.assert_array_equal(found.parameters, expected.parameters)


def test_where_there_can_be_no_file_distributions_are_in_memory(data, monkeypatch):
    def full(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr(dual_store, "IN_MEMORY", 0)
    monkeypatch.setattr(dual_store, "MANY_LABELS", 2)
    monkeypatch.setattr(dual_store.os, "posix_fallocate", full)
    with ThreadMap(1) as threads:
        objective = make_objective(*data, threads)
        start = np.zeros(objective.n_parameters)
        dual = _Dual(objective.minibatches(10, 0), objective.penalty, start)
    assert type(dual.steps.store) is dual_store.InMemory


def test_batches_are_drawn_as_often_as_their_gaps_ask_for():
    gaps = np.array([0.0, 1.0, 3.0, 4.0, 0.0, 2.0])
    drawn = np.array(
        [np.bincount(drawn_by_gap(gaps, np.random.RandomState(i)), minlength=6) for i in range(900)]
    )
    expected = 0.5 + 0.5 * 6 * gaps / gaps.sum()
    assert (drawn.sum(axis=1) == 6).all()
    assert (np.abs(drawn - expected) < 1.0).all()
    np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.05)


@pytest.mark.parametrize("gaps", [[], [0.0, 0.0], [1.0, np.nan], [np.inf, 1.0]])
def test_batches_without_known_gaps_are_all_visited_once(gaps):
    drawn = drawn_by_gap(np.array(gaps), np.random.RandomState(0))
    np.testing.assert_array_equal(drawn, np.arange(len(gaps)))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_what_is_known_of_the_gaps_adds_up_to_about_the_gap(rng, kind):
    packed, codes = make_data(rng, kind, lengths=tuple(rng.integers(1, 9, size=60)))
    with ThreadMap(1) as threads:
        objective = make_objective(packed, codes, threads, ElasticNet(0.0, 0.5))
        batches = objective.minibatches(12, 0)
        dual = _Dual(batches, objective.penalty, np.zeros(objective.n_parameters))
        for number in range(12):
            dual.run_pass(np.random.RandomState(number).permutation(len(batches)), 1)
        dual.steps.rates[:] = 2e-4  # the distributions stay about where they are
        dual.run_pass(np.arange(len(batches)), 1)
        gap = batches.value(dual.weights()) - dual.lower_bound
    assert gap > 1e-7
    assert 0.5 * gap < dual.steps.gaps.sum() < 2.0 * gap


@pytest.mark.parametrize(("sampling", "kind"), [("gap", "dense"), ("uniform", "sparse")])
def test_every_sampling_reaches_the_optimum(rng, sampling, kind):
    data = make_data(rng, kind, lengths=tuple(rng.integers(0, 9, size=20)))
    with ThreadMap(2) as threads:
        objective = make_objective(*data, threads)
        best = optimum(objective).value
        solver = OEG(
            tol=1e-8, batch_tokens=9, batches_per_update=3, sampling=sampling, max_iter=2000
        )
        result = solver.solve(objective, np.zeros(objective.n_parameters))
    assert result.converged
    np.testing.assert_allclose(result.value, best, rtol=1e-8)


def test_results_do_not_depend_on_the_number_of_threads(data):
    results = []
    for jobs in (1, 3):
        with ThreadMap(jobs) as threads:
            objective = make_objective(*data, threads)
            solver = OEG(batch_tokens=9, batches_per_update=4, tol=1e-6, random_state=3)
            results.append(solver.solve(objective, np.zeros(objective.n_parameters)))
    np.testing.assert_array_equal(results[0].parameters, results[1].parameters)
    assert results[0].n_iter == results[1].n_iter
    values = [[(r.value, r.gap) for r in result.history] for result in results]
    assert values[0] == values[1]


def test_weights_of_sequences_count_as_repetitions(rng):
    lengths = (3, 1, 4, 2, 5)
    data, codes = make_data(rng, lengths=lengths)
    repeats = [1, 0, 2, 3, 1]
    chosen = np.repeat(np.arange(5), repeats)
    rows = np.concatenate([np.arange(data.offsets[i], data.offsets[i + 1]) for i in chosen])
    model = choose_features(data, codes, 3)
    solver = OEG(tol=1e-11, batch_tokens=4, max_iter=3000)
    weight = np.repeat(np.array(repeats, float), lengths)
    with ThreadMap(1) as threads:
        weighted = make_objective(data, codes, threads, weight=weight)
        repeated = Objective(
            model, Chain(), weighted.loss, weighted.penalty, data[chosen], codes[rows],
            np.ones(len(rows)), threads,
        )  # fmt: skip
        found = [solver.solve(o, np.zeros(model.n_parameters)) for o in (weighted, repeated)]
    np.testing.assert_allclose(found[0].value, found[1].value, rtol=1e-10)
    np.testing.assert_allclose(found[0].parameters, found[1].parameters, atol=1e-4)


def test_a_start_at_the_optimum_is_recognized(data):
    with ThreadMap(1) as threads:
        objective = make_objective(*data, threads)
        best = optimum(objective)
        result = OEG(tol=1e-8).solve(objective, best.parameters)
    assert result.converged
    assert result.n_iter == 0


def test_a_start_far_away_does_no_harm(data, rng):
    with ThreadMap(1) as threads:
        objective = make_objective(*data, threads)
        best = optimum(objective)
        start = 50.0 * rng.normal(size=objective.n_parameters)
        result = OEG(tol=1e-8, batch_tokens=20, max_iter=2000).solve(objective, start)
    np.testing.assert_allclose(result.value, best.value, rtol=1e-7)


@pytest.mark.parametrize("lengths", [(), (0, 0), (1,), (1, 1, 0, 1)])
def test_little_data_is_no_problem(rng, lengths):
    data, codes = make_data(rng, lengths=lengths)
    with ThreadMap(2) as threads:
        objective = make_objective(data, codes, threads)
        best = optimum(objective)
        result = OEG(tol=1e-9, max_iter=1000).solve(objective, np.zeros(objective.n_parameters))
    np.testing.assert_allclose(result.value, best.value, rtol=1e-8, atol=1e-12)


def test_one_label_has_nothing_to_learn():
    data = PackedSequences(dense=np.ones((4, 1)), offsets=[0, 1, 4])
    codes = np.zeros(4, np.int32)
    with ThreadMap(1) as threads:
        model = choose_features(data, codes, 1)
        base = make_objective(*make_data(np.random.default_rng(0)), threads)
        objective = Objective(
            model, Chain(), base.loss, base.penalty, data, codes, np.ones(4), threads
        )
        result = OEG().solve(objective, np.zeros(model.n_parameters))
    assert result.value == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(result.parameters, 0.0, atol=1e-12)


def test_it_says_what_it_cannot_do(data):
    packed, codes = data
    with ThreadMap(1) as threads:
        start = np.zeros(make_objective(packed, codes, threads).n_parameters)
        with pytest.raises(ValueError, match="c2 > 0"):
            OEG().solve(make_objective(packed, codes, threads, ElasticNet(0.1, 0.0)), start)
        weight = np.linspace(0.0, 1.0, len(codes))
        with pytest.raises(ValueError, match="same weight for all tokens"):
            OEG().solve(make_objective(packed, codes, threads, weight=weight), start)
        other = make_objective(packed, codes, threads)
        other.loss = HingeLoss()
        with pytest.raises(ValueError, match="log loss"):
            OEG().solve(other, start)


@pytest.mark.parametrize(
    "options", [{"max_iter": -1}, {"tol": -1.0}, {"batch_tokens": 0}, {"batches_per_update": 0},
                {"check_every": 0}, {"sampling": "some"}],
)  # fmt: skip
def test_parameters_are_checked(data, options):
    with ThreadMap(1) as threads:
        objective = make_objective(*data, threads)
        with pytest.raises(ValueError, match=next(iter(options))):
            OEG(**options).solve(objective, np.zeros(objective.n_parameters))


def test_it_stops_when_told(data):
    with ThreadMap(1) as threads:
        objective = make_objective(*data, threads)
        start = np.zeros(objective.n_parameters)
        few = OEG(max_iter=2, tol=0.0).solve(objective, start)
        told = OEG(tol=0.0, check_every=1).solve(objective, start, lambda r, w: r.iteration == 3)

        def interrupt(record, w):
            if record.iteration == 2:
                raise KeyboardInterrupt

        cut = OEG(tol=0.0, check_every=1).solve(objective, start, interrupt)
    assert (few.n_iter, few.converged) == (2, False)
    assert "max_iter=2" in few.message
    assert (told.n_iter, told.converged) == (3, False)
    assert cut.interrupted
    assert cut.n_iter == 2


def test_control_c_keeps_passes_that_were_not_evaluated(data, monkeypatch):
    run_pass, reached = _Dual.run_pass, []

    def interrupt(self, *args):
        if len(reached) == 3:
            raise KeyboardInterrupt
        reached.append(run_pass(self, *args))
        return reached[-1]

    monkeypatch.setattr(_Dual, "run_pass", interrupt)
    with ThreadMap(1) as threads:
        objective = make_objective(*data, threads)
        best = optimum(objective).value
        cut = OEG(tol=0.0, check_every=9).solve(objective, np.zeros(objective.n_parameters))
        value = objective.minibatches(400, 0).value(cut.parameters)
    assert (cut.n_iter, cut.interrupted) == (3, True)
    np.testing.assert_array_equal(cut.parameters, reached[-1])
    np.testing.assert_allclose(cut.value, value, rtol=1e-12)
    assert cut.value - best <= cut.gap


def test_a_start_without_a_finite_value_is_an_error(data):
    with ThreadMap(1) as threads:
        objective = make_objective(*data, threads)
        with pytest.raises(ValueError, match="finite"):
            OEG().solve(objective, np.full(objective.n_parameters, np.nan))


@pytest.mark.parametrize("scale", [1e4, 1e150])
def test_features_of_any_size_leave_finite_parameters(data, scale):
    packed, codes = data
    dense = packed.dense * scale
    packed = packed._from_arrays(**packed.__dict__ | {"dense": dense})
    with ThreadMap(1) as threads:
        objective = make_objective(packed, codes, threads)
        result = OEG(max_iter=10, batch_tokens=20).solve(
            objective, np.zeros(objective.n_parameters)
        )
    assert np.isfinite(result.parameters).all()
    assert result.gap >= 0.0


@pytest.mark.parametrize("size", [1e10, 1e39, 1e150])
def test_a_start_whose_scores_have_lost_their_digits_is_no_certificate(rng, data, size):
    with ThreadMap(1) as threads:
        objective = make_objective(*data, threads, ElasticNet(0.0, 0.5))
        best = optimum(objective).value
        start = size * rng.normal(size=objective.n_parameters)
        result = OEG(tol=1e-6, batch_tokens=12, max_iter=2000).solve(objective, start)
    assert result.converged
    np.testing.assert_allclose(result.value, best, rtol=1e-6)
