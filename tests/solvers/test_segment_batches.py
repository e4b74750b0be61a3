"""Compiled batches of segments: their updates are those on the parts of any structure."""

import numpy as np
import pytest

from crfkit._parallel import ThreadMap
from crfkit.kernels.semimarkov.batches import expected_of_segments
from crfkit.kernels.solvers.batches import add_gradient, gather, loss
from crfkit.oracles.batches import is_compiled
from crfkit.oracles.segment_batches import SegmentBatchOracle
from crfkit.potentials.chain_blocks import TransitionBlock
from crfkit.solvers.stochastic.exponentiated_gradient import DualState
from crfkit.solvers.stochastic.general import GeneralBatchOracle, make_batch_oracle
from crfkit.solvers.stochastic.sag import SagState
from tests.oracles import finite_difference
from tests.solvers.test_average_moves import assert_same
from tests.solvers.test_segment_oracle import LENGTHS, WEIGHT, wide_objective
from tests.solvers.test_segments import FIXED, problem

OPTIONS = {"lengths": LENGTHS, "weight": WEIGHT}
SHAPES = pytest.mark.parametrize(("dense", "rows"), [(True, True), (False, True), (False, False)])
KINDS = pytest.mark.parametrize("fixed", FIXED)


def assert_same_dual_steps(batches, rng, together=1, n_passes=5):
    """Distributions are kept as potentials of 32 bits, which are others in the general form."""
    fast, plain = (
        DualState(batches, False, oracle) for oracle in (None, GeneralBatchOracle(batches))
    )
    assert type(fast.oracle) is SegmentBatchOracle
    for state in (fast, plain):
        state.rates[:] = 0.3
    for _ in range(n_passes):
        order = rng.permutation(len(batches))
        for state in (fast, plain):
            state.advance(order, together, 0.5, 0.0)
        np.testing.assert_allclose(fast.oracle.unpack(fast.w), plain.w, atol=2e-6)
        for name in ("entropies", "rates", "gaps"):
            found, known = getattr(fast, name), getattr(plain, name)
            np.testing.assert_allclose(found, known, rtol=1e-5, atol=2e-6)
    assert fast.w.any()


@KINDS
@SHAPES
def test_dual_steps_of_segments_are_those_of_any_structure(rng, fixed, dense, rows):
    with problem(fixed, dense=dense, rows=rows, **OPTIONS) as objective:
        assert_same_dual_steps(objective.minibatches(5, 0), rng)


@KINDS
@SHAPES
@pytest.mark.parametrize("together", [1, 3])
def test_average_steps_of_segments_are_those_of_any_structure(fixed, dense, rows, together):
    with problem(fixed, dense=dense, rows=rows, **OPTIONS) as objective:
        one, other = objective.minibatches(5, 0), objective.minibatches(5, 0)
        start = np.zeros(objective.n_parameters)
        fast, plain = SagState(one, start), SagState(other, start, GeneralBatchOracle(other))
        assert type(fast.oracle) is SegmentBatchOracle
        for seed in range(4):
            for state in (fast, plain):
                state.run_pass(np.random.RandomState(seed), together)
            assert_same(fast, plain)


@pytest.mark.parametrize("n_labels", [1, 7, 9, 17])
@pytest.mark.parametrize(("rows", "boundaries"), [(True, True), (False, False), (False, True)])
def test_they_are_for_any_number_of_labels(rng, n_labels, rows, boundaries):
    with ThreadMap(1) as threads:
        objective = wide_objective(
            rng, n_labels, threads, rows=rows, boundaries=boundaries, all_pairs=False
        )
        assert_same_dual_steps(objective.minibatches(6, 0), rng)


@KINDS
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_losses_and_gradients_are_those_of_the_objective(rng, fixed, scale):
    """Scores that are far from 0 are summed by logarithms."""
    with problem(fixed, dense=True, **OPTIONS) as objective:
        batches, w = (
            objective.minibatches(5, 0),
            rng.normal(scale=scale, size=objective.n_parameters),
        )
        oracle = make_batch_oracle(batches)
        plain, bound = GeneralBatchOracle(batches), batches.bind(w)
        found, known = (DualState(batches, False, of).value(w) for of in (oracle, plain))
        np.testing.assert_allclose(found, known, rtol=1e-10)
        total, of_weights = np.zeros(objective.n_parameters), oracle.weights(oracle.pack(w))
        out, workspace = oracle.weights(oracle.pack(0.0 * w)), oracle.workspace()
        for batch in range(len(batches)):
            values = []
            for value in (expected_of_segments, loss):
                gather(oracle.problem, batch, 1.0, of_weights, workspace)
                values.append(value(oracle.problem, batch, workspace))
            known, residual = batches.value_and_residual(batches.scores(bound, batch), batch)
            np.testing.assert_allclose(values[1], known, rtol=1e-9, atol=1e-9 * abs(values[0]))
            total[batches.places(batch)] += batches.gradient(batch, residual)
            workspace.change[:] = workspace.counts
            add_gradient(oracle.problem, batch, out, workspace)
        np.testing.assert_allclose(oracle.unpack(out.flat), total, rtol=1e-8, atol=1e-8)


def test_gradients_are_finite_differences(rng):
    with problem("poisson", dense=True, **OPTIONS) as objective:
        batches, w = objective.minibatches(5, 0), rng.normal(size=objective.n_parameters)
        state = SagState(batches, w)
        slope = finite_difference(lambda at: state.value(at) - batches.penalty_at(at), w)
        np.testing.assert_allclose(state.direction, slope, rtol=1e-5, atol=1e-6)


def test_results_are_bit_equal_for_any_number_of_threads():
    found = []
    for n_jobs in (1, 2, 4):
        with problem("poisson", n_jobs=n_jobs, dense=True, **OPTIONS) as objective:
            batches = objective.minibatches(5, 0)
            dual, sag = DualState(batches, False), SagState(batches, np.zeros(batches.n_parameters))
            dual.rates[:] = 0.3
            dual.advance(np.arange(len(batches)), 3, 0.5, 0.0)
            sag.run_pass(np.random.RandomState(0), 3)
            found.append((dual.w, dual.entropies, sag.weights(), sag.value(sag.weights())))
    assert found[0][0].any()
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_true_segments_that_are_forbidden_are_left_to_the_general_form():
    with problem("free", lengths=(2, 3, 2)) as objective:
        objective.model.get(TransitionBlock).forbidden = np.array([[False, True], [False, False]])
        objective.labels[:] = [2, 0, 2, 0, 3, 3, 2]
        batches = objective.minibatches(3, 0)
        assert is_compiled(batches.model, batches.structure)
        assert type(make_batch_oracle(batches)) is GeneralBatchOracle
