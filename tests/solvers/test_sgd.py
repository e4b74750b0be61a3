"""Stochastic gradient descent: lazy steps, rates, averages, the L1 penalty, parts of a pass."""

import contextlib
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier
from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.datasets import load_ingredients
from crfkit.kernels.solvers.sgd import SCALE
from crfkit.losses import HingeLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.linear import choose_features
from crfkit.solvers import OWLQN, SGD, AutoSolver
from crfkit.solvers.margin import BlockFrankWolfe
from crfkit.solvers.stochastic import sgd as gradient_descent
from crfkit.solvers.stochastic.sgd import Descent, calibrate, has_settled
from crfkit.structures import Chain
from tests.solvers.stochastic import optimum, problem


def solve(objective, start=None, callback=None, **options):
    start = np.zeros(objective.n_parameters) if start is None else start
    return SGD(**{"batch_tokens": 12, "max_iter": 30} | options).solve(objective, start, callback)


def gradient_of(batches, w, index):
    scores = batches.scores(batches.bind(w), index)
    out = np.zeros_like(w)
    residual = batches.value_and_residual(scores, index)[1]
    out[batches.places(index)] = batches.gradient(index, residual)
    return out


def pay(w, paid, due):
    """Equations 6 to 8 of Tsuruoka, Tsujii and Ananiadou (2009)."""
    after = np.where(
        w > 0, np.maximum(0, w - (due + paid)), np.where(w < 0, np.minimum(0, w + due - paid), 0.0)
    )
    return after, paid + after - w


def eager(batches, start, eta0, order, average):
    """One pass with whole vectors; returns the last parameters and the mean."""
    count, penalty = len(batches), batches.penalty
    decay, power = 2.0 * penalty.l2 / count, 0.75 if average else 1.0
    w, total, paid, due = start.copy(), np.zeros_like(start), np.zeros_like(start), 0.0
    for step, index in enumerate(order):
        rate = min(eta0 / (1.0 + decay * eta0 * step) ** power, 0.5 / decay if decay else np.inf)
        if penalty.l1 or not decay:
            rate = eta0 * 0.85 ** (step / count)
        w = (1.0 - rate * decay) * w - rate * gradient_of(batches, w, index)
        if penalty.l1:
            due += rate * penalty.l1 / count
            touched = batches.places(index)
            w[touched], paid[touched] = pay(w[touched], paid[touched], due)
        total += w
    if penalty.l1:
        w, paid = pay(w, paid, due)
    return w, total / len(order)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("penalty", [(0, 0), (0, 0.3), (0, 1e3), (0.4, 0), (0.4, 0.2), (50.0, 0.1)])
def test_lazy_steps_equal_eager_ones(rng, penalty, average):
    with problem(features=40, blocks="sparse", penalty=penalty) as objective:
        batches = objective.minibatches(6, 0)
        start = rng.normal(size=objective.n_parameters)
        order = np.random.RandomState(1).permutation(len(batches))
        descent = Descent(batches, start, 0.3, average)
        descent.run_pass(order, 1)
        w, mean = eager(batches, start, 0.3, order, average)
    np.testing.assert_allclose(descent.weights(), w, rtol=1e-9, atol=1e-12)
    assert (descent.weights() == 0.0).any() == (penalty[0] > 0.0)
    if not average:
        np.testing.assert_array_equal(descent.mean(), descent.weights())
    elif not penalty[0]:
        np.testing.assert_allclose(descent.mean(), mean, rtol=1e-9, atol=1e-12)


def test_a_round_is_computed_from_the_same_parameters(rng):
    with problem(penalty=(0.0, 0.0)) as objective:
        batches = objective.minibatches(6, 0)
        start = rng.normal(size=objective.n_parameters)
        descent = Descent(batches, start, 0.1, False)
        descent.run_pass(np.arange(3), 3)
        count = len(batches)
        expected = start - sum(
            0.1 * 0.85 ** (i / count) * gradient_of(batches, start, i) for i in range(3)
        )
    np.testing.assert_allclose(descent.weights(), expected, atol=1e-12)


@pytest.mark.parametrize("average", [False, True])
def test_it_comes_near_the_optimum(average):
    with problem(count=60) as objective:
        value, _ = optimum(objective)
        result = solve(objective, average=average, tol=1e-6, max_iter=100)
        exact = objective.value_and_grad(result.parameters)[0]
    assert result.converged
    assert value <= result.value <= value * (1.0 + 1e-2)
    np.testing.assert_allclose(result.value, exact, rtol=1e-12)


@pytest.mark.parametrize(
    ("penalty", "near"), [((0.0, 10.0), True), ((0.0, 0.1), False), ((0.1, 0.01), False)]
)
def test_only_what_is_near_the_optimum_is_called_converged(penalty, near):
    """Passes stop to help as the rate falls: with a small penalty far from the optimum."""
    corpus = load_ingredients()
    X = [[{"word": w, "suffix": w[-2:]} for w in tokens] for tokens in corpus.tokens[:40]]
    parameters = {"c1": penalty[0], "c2": penalty[1]}
    best = CRFClassifier(**parameters, max_iter=3000).fit(X, corpus.tags[:40])
    told = pytest.warns(ConvergenceWarning, match="gradient norm is still .* far above its opt")
    with contextlib.nullcontext() if near else told:
        crf = CRFClassifier(**parameters, solver="sgd").fit(X, corpus.tags[:40])
    above = crf.objective_ - best.objective_
    assert crf.converged_ == near and crf.n_iter_ < 100
    assert 0.0 <= above <= crf.gap_ and (above < 1e-3 * best.objective_) == near


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("c1, c2, solver", [(0, 0, "sgd"), (0, 0, "sag"), (0.1, 0.1, "sgd")])
def test_convergence_is_claimed_at_no_scale_of_features_far_from_the_optimum(
    scale, c1, c2, solver, rng
):
    X = [scale * rng.normal(size=(4, 6)) for _ in range(60)]
    weights = rng.normal(size=(6, 3))
    noise = [2.0 * rng.gumbel(size=(4, 3)) for _ in X]
    y = [(x @ weights / scale + n).argmax(axis=1) for x, n in zip(X, noise, strict=True)]
    model = CRFClassifier(c1=c1, c2=c2)
    best = clone(model).set_params(solver="dense_newton").fit(X, y).objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = model.set_params(solver=solver).fit(X, y)
    assert not found.converged_ or found.objective_ < 1.005 * best


def test_the_l1_penalty_comes_near_the_optimum_with_zeros():
    with problem(count=60, penalty=(1.0, 0.0)) as objective:
        start = np.zeros(objective.n_parameters)
        best = OWLQN(tol=0.0, gtol=1e-8).solve(objective, start)
        result = solve(objective, tol=1e-5, max_iter=100)
    assert best.value <= result.value <= best.value * (1.0 + 1e-2)
    assert np.count_nonzero(result.parameters) < objective.n_parameters


def test_the_result_is_the_best_pass():
    with problem() as objective:
        result = solve(objective, eta0=3.0, tol=0.0, max_iter=12)
        exact = objective.minibatches(12, 0).value(result.parameters)
    values = [record.value for record in result.history]
    assert len(values) == len({round(value, 9) for value in values})
    assert result.value == min(values)
    np.testing.assert_allclose(result.value, exact, rtol=1e-13)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_calibrated_rate_lowers_the_objective_at_any_scale(scale):
    with problem(count=60, blocks="sparse") as objective:
        batches = objective.minibatches(12, 0)
        batches.data.values.flags.writeable = True
        batches.data.values[:] *= scale
        zeros = np.zeros(objective.n_parameters)
        rate = calibrate(batches, zeros, np.random.RandomState(0), 1)
        descent = Descent(batches, zeros, rate, False)
        descent.run_pass(np.arange(len(batches)), 1)
        assert batches.value(descent.weights()) < batches.value(zeros)


def test_results_do_not_depend_on_threads_and_repeat():
    found = []
    for n_jobs in (1, 2, 1):
        with problem(n_jobs=n_jobs, count=60) as objective:
            found.append(solve(objective, max_iter=4, tol=0.0, batches_per_update=3).parameters)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    with problem(count=60) as objective:
        other = solve(
            objective, max_iter=4, tol=0.0, batches_per_update=3, random_state=1
        ).parameters
    assert not np.array_equal(found[0], other)


@pytest.mark.parametrize("lengths", [(0,), (0, 0, 1), (5,), (1,)])
@pytest.mark.parametrize("penalty", [(0.0, 1.0), (1.0, 0.5)])
def test_few_tokens(lengths, penalty):
    with problem(lengths=lengths, penalty=penalty) as objective:
        result = solve(objective)
    assert result.converged
    assert result.value <= result.history[0].value
    assert np.isfinite(result.parameters).all()


@pytest.mark.parametrize("average", [False, True])
def test_passes_of_partial_are_those_of_a_run(average):
    with problem(count=40) as objective:
        w, state = np.zeros(objective.n_parameters), None
        values = []
        for _ in range(8):
            solver = SGD(average=average, batch_tokens=12, eta0=0.05)
            w, state = solver.partial(objective, w, state)
            values.append(objective.value_and_grad(w)[0])
        value, _ = optimum(objective)
        count = len(objective.minibatches(12, 0))
    assert state["steps"] == 8 * count
    assert values[-1] < values[0]
    assert values[-1] <= value * 1.05


def test_the_mean_of_partial_is_that_of_all_its_steps():
    with problem(penalty=(0.0, 0.0), count=20) as objective:
        zeros = np.zeros(objective.n_parameters)
        solver = SGD(average=True, batch_tokens=12, eta0=0.05)
        first, state = solver.partial(objective, zeros, None)
        last = state["last"]
        second, state = solver.partial(objective, first, state)
        batches = objective.minibatches(12, np.random.RandomState(0))
        descent = Descent(batches, last, 0.05, True)
        descent.steps, descent.passes = len(batches), 1
        random = np.random.RandomState(0)
        objective.minibatches(12, random)
        descent.run_pass(random.permutation(len(batches)), 1)
    np.testing.assert_allclose(second, 0.5 * (first + descent.mean()), atol=1e-12)
    np.testing.assert_allclose(state["last"], descent.weights(), atol=1e-12)


@pytest.mark.parametrize("penalty", [(0.0, 0.0), (0.1, 0.0)])
def test_the_rate_of_partial_falls_by_the_pass_whatever_the_size_of_the_batches(penalty):
    with problem(count=40, penalty=penalty) as many, problem(count=1, penalty=penalty) as one:
        solver = SGD(batch_tokens=6, eta0=0.1)
        _, state = solver.partial(many, np.zeros(many.n_parameters), None)
        assert state["passes"] == 1
        descent = Descent(one.minibatches(6, 0), np.zeros(one.n_parameters), 0.1, False)
        descent.steps, descent.passes = state["steps"], state["passes"]
        assert descent.rate == pytest.approx(0.85 * 0.1)


def test_the_mean_survives_that_weights_are_written_anew(monkeypatch):
    found = []
    for least in (0.0, 0.5):
        monkeypatch.setattr(gradient_descent, "LEAST_SCALE", least)
        with problem(penalty=(0.0, 3.0)) as objective:
            batches = objective.minibatches(6, 0)
            descent = Descent(batches, np.zeros(objective.n_parameters), 0.3, True)
            for _ in range(3):
                descent.run_pass(np.arange(len(batches)), 1)
            found.append((descent.numbers[SCALE], descent.weights(), descent.mean()))
    assert found[0][0] < 0.5 <= found[1][0]
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found[1][2], found[0][2], rtol=1e-11, atol=1e-13)


def test_the_calibration_ends_where_no_other_rate_is_better(monkeypatch):
    tried = []
    run_pass = Descent.run_pass

    def counted(self, order, batches_per_update):
        tried.append(self._eta0)
        run_pass(self, order, batches_per_update)

    monkeypatch.setattr(Descent, "run_pass", counted)
    with problem(count=60, blocks="sparse", penalty=(0.0, 1e-3)) as objective:
        # A first rate between two that are worse: found by its neighbors, and not by 40 more.
        zeros = np.zeros(objective.n_parameters)
        best = calibrate(objective.minibatches(12, 0), zeros, np.random.RandomState(0), 1)
        monkeypatch.setattr(gradient_descent, "FIRST_RATE", best)
        tried.clear()
        again = calibrate(objective.minibatches(12, 0), zeros, np.random.RandomState(0), 1)
    assert again == best
    assert sorted(tried) == pytest.approx([best / 2, best, 2 * best])


def test_partial_calibrates_once_and_leaves_its_start_alone():
    with problem(count=40) as objective:
        start = np.zeros(objective.n_parameters)
        w, state = SGD(batch_tokens=12).partial(objective, start, None)
        _, again = SGD(batch_tokens=12).partial(objective, w, state)
    assert not start.any()
    assert again["eta0"] == state["eta0"] > 0.0
    assert again["steps"] == 2 * state["steps"]


def test_an_average_of_sparse_weights_is_refused():
    with problem(penalty=(1.0, 1.0)) as objective:
        with pytest.raises(ValueError, match="average=True needs c1=0"):
            solve(objective, average=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_iter", -1), ("tol", -1.0), ("period", 0), ("eta0", -1.0), ("batch_tokens", 0),
     ("batches_per_update", 0)],
)  # fmt: skip
def test_parameters_out_of_range_are_errors(name, value):
    with problem() as objective, pytest.raises(ValueError, match=name):
        solve(objective, **{name: value})


def test_a_start_without_a_finite_value_is_an_error():
    with problem() as objective, pytest.raises(ValueError, match="finite"):
        solve(objective, np.full(objective.n_parameters, np.nan))


def test_stops_are_told_and_control_c_keeps_the_best_pass():
    seen = {}

    def interrupt(record, w):
        seen[record.iteration] = w.copy()
        if record.iteration == 3:
            raise KeyboardInterrupt

    with problem() as objective:
        short = solve(objective, tol=0.0, max_iter=2)
        asked = solve(objective, callback=lambda record, w: record.iteration == 1)
        result = solve(objective, callback=interrupt, tol=0.0)
    assert (short.n_iter, short.converged) == (2, False)
    assert "max_iter=2" in short.message
    assert (asked.n_iter, asked.converged) == (1, False)
    assert (result.n_iter, result.interrupted) == (3, True)
    best = min(result.history, key=lambda record: record.value)
    np.testing.assert_array_equal(result.parameters, seen[best.iteration])


@contextlib.contextmanager
def noisy_hinge(penalty, n_labels=5, count=100):
    """Short sequences whose labels follow their attribute but for noise; many labels tie at 0."""
    rng = np.random.default_rng(4)
    lengths = rng.integers(2, 7, size=count)
    words = rng.integers(40, size=lengths.sum())
    wrong = rng.random(len(words)) < 0.2
    codes = np.where(wrong, rng.integers(n_labels, size=len(words)), words % n_labels)
    rows = np.repeat(np.arange(len(words)), 2)
    columns = np.column_stack([words, 40 + words // 8]).ravel()
    sparse = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(words), 45))
    data = PackedSequences(sparse=sparse, offsets=np.concatenate([[0], np.cumsum(lengths)]))
    codes = codes.astype(np.int32)
    model = choose_features(data, codes, n_labels)
    with ThreadMap(1) as threads:
        yield Objective(model, Chain(), HingeLoss(), ElasticNet(*penalty), data, codes,
                        np.ones(len(codes)), threads)  # fmt: skip


def test_a_hinge_loss_of_many_labels_comes_near_its_optimum():
    with noisy_hinge((0.0, 0.1)) as objective:
        zeros = np.zeros(objective.n_parameters)
        best = BlockFrankWolfe(tol=1e-3, max_iter=500).solve(objective, zeros)
        assert best.value < 0.9 * best.history[0].value
        for average in (False, True):
            result = SGD(average=average).solve(objective, zeros)
            exact = objective.value_and_grad(result.parameters)[0]
            assert best.value * (1.0 - 1e-3) <= result.value <= 1.04 * best.value
            assert result.value == min(record.value for record in result.history)
            np.testing.assert_allclose(result.value, exact, rtol=1e-12)


def test_a_hinge_loss_with_an_l1_penalty_is_lowered_by_the_chosen_solver():
    with noisy_hinge((1.0, 0.0)) as objective:
        result = AutoSolver().solve(objective, np.zeros(objective.n_parameters))
        longer = SGD(tol=0.0, max_iter=60).solve(objective, np.zeros(objective.n_parameters))
    assert result.value < 1.002 * longer.value
    assert 0 < np.count_nonzero(result.parameters) < objective.n_parameters


@pytest.mark.parametrize("penalty", [(0.0, 1.0), (1.0, 0.0)])
def test_a_hinge_loss_that_no_pass_lowers_is_not_called_converged(penalty):
    with noisy_hinge(penalty, count=40) as objective:
        start = np.zeros(objective.n_parameters)
        result = SGD(eta0=0.0, max_iter=60).solve(objective, start)
    assert (result.converged, result.n_iter) == (False, 60)
    assert {record.value for record in result.history} == {result.value}


def test_a_rise_of_the_hinge_loss_is_no_convergence():
    values = [9.0, 8.0, 8.5, 8.4, 7.0, 7.5, 7.4, 7.2]
    assert not any(has_settled(values[:n], 3, 1e-3) for n in range(1, 8))
    assert has_settled(values, 3, 1e-3) and not has_settled(values, 4, 1e-3)
    assert not has_settled([9.0, 9.5, 9.5, 9.2], 2, 1e-3)


def test_the_first_rate_is_kept_where_none_lowers_the_objective():
    """Sequences without tokens teach nothing, and must not slow down the batches after them."""
    with problem(lengths=(0, 0)) as empty:
        _, state = SGD(batch_tokens=12).partial(empty, np.zeros(empty.n_parameters), None)
    assert state["eta0"] == gradient_descent.FIRST_RATE


def test_the_rate_for_a_hinge_loss_falls_with_the_passes():
    with noisy_hinge((0.0, 1e-3), count=40) as objective:
        start = np.zeros(objective.n_parameters)
        descent = Descent(objective.minibatches(32, 0), start, 0.2, False)
        assert descent.rate == 0.2
        descent.passes = 4
        assert descent.rate == pytest.approx(0.2 / 3)
        descent.steps = 10**9
        assert descent.rate < 1e-4
