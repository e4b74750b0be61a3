"""Ctrl-C is heard between two calls of kernels, so that none of them takes many tokens."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from crfkit import SemiMarkovCRF
from crfkit._parallel import CHUNK_CELLS, CHUNKS_AT_ONCE, chunk_tokens, cut_order
from crfkit.kernels.solvers.online import UpdateCoefficients
from crfkit.losses import HingeLoss
from crfkit.oracles.batches import CompiledBatchOracle
from crfkit.potentials import semimarkov
from crfkit.solvers import OEG, SAG, SGD
from crfkit.solvers.margin import BlockFrankWolfe, dual_state
from crfkit.solvers.online import learner
from crfkit.solvers.online.learner import OnlineProblem, make_learner
from crfkit.solvers.stochastic import state
from crfkit.structures import SemiMarkov
from tests.solvers.stochastic import problem

SOLVERS = [
    OEG(batch_tokens=12, max_iter=2),
    SAG(batch_tokens=12, max_iter=2),
    SGD(batch_tokens=12, max_iter=2, eta0=0.1),
]


def test_a_list_of_sequences_is_cut_into_runs_of_so_many_tokens(rng):
    lengths = rng.integers(0, 9, size=50)
    lengths[7] = 40
    order = rng.integers(50, size=200)
    runs = cut_order(order, lengths, 20)
    np.testing.assert_array_equal(np.concatenate(runs), order)
    assert all(lengths[run].sum() <= 20 or len(run) == 1 for run in runs)
    assert max(len(run) for run in runs) > 1


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_batches_are_updated_and_evaluated_a_few_at_a_time(solver, monkeypatch):
    sizes, run = {}, CompiledBatchOracle.run

    def counted(self, kernel):
        def call(order, *others):
            if len(others) > 2:  # not of all weights at the end of a pass
                sizes.setdefault(kernel.__name__, []).append(len(order))
            return run(self, kernel)(order, *others)

        return call

    def solve():
        with problem(count=200) as objective:
            return solver.solve(objective, np.zeros(objective.n_parameters))

    whole = solve()
    monkeypatch.setattr(CompiledBatchOracle, "run", counted)
    monkeypatch.setattr(state, "AT_ONCE", 3)
    result = solve()
    assert len(sizes) == 2 and {max(each) for each in sizes.values()} == {3}
    np.testing.assert_array_equal(result.parameters, whole.parameters)
    assert result.value == whole.value


def test_segments_of_a_few_tokens_are_summed_at_a_time(monkeypatch):
    """In a fit of segments, too, no call of a kernel takes many tokens."""
    X = [[[f"w{(s + t) % 7}"] for t in range(40)] for s in range(200)]
    y = [[(t, t + 20, "AB"[s % 2]) for t in (0, 20)] for s in range(200)]
    sizes, log_partition = [], SemiMarkov.log_partition

    def counted(self, potentials, *others):
        sizes.append(len(potentials.unary))
        return log_partition(self, potentials, *others)

    monkeypatch.setattr(SemiMarkov, "log_partition", counted)
    monkeypatch.setattr(semimarkov, "chunk_tokens", lambda *_, **__: 100)
    with pytest.warns(ConvergenceWarning):
        SemiMarkovCRF(solver="lbfgs", max_iter=2, c2=1.0, max_length=20).fit(X, y)
    assert len(sizes) >= 2 * 100 and max(sizes) <= 100
    assert chunk_tokens(12, own_transitions=False) * 12 <= CHUNK_CELLS


@pytest.mark.parametrize("steps", ["pairwise", "marginals"])
def test_sequences_of_a_margin_are_updated_and_evaluated_a_few_at_a_time(steps, monkeypatch):
    spans = []
    updates, losses = dual_state.frank_wolfe_updates, dual_state.margin_losses

    def solve():
        with problem(count=60) as objective:
            objective.model.chunk_tokens = 5
            objective = objective.with_loss(HingeLoss())
            solver = BlockFrankWolfe(max_iter=3, steps=steps)
            return solver.solve(objective, np.zeros(objective.n_parameters))

    def counted(order, chosen, *others):
        spans.append(int(np.diff(chosen.offsets)[order].sum()))
        return updates(order, chosen, *others)

    def counted_losses(first, last, chosen, *others):
        spans.append(int(np.diff(chosen.offsets[[first, last]])[0]))
        return losses(first, last, chosen, *others)

    whole = solve()
    monkeypatch.setattr(dual_state, "frank_wolfe_updates", counted)
    monkeypatch.setattr(dual_state, "margin_losses", counted_losses)
    result = solve()
    assert len(spans) > 30 and max(spans) <= CHUNKS_AT_ONCE * 5
    np.testing.assert_array_equal(result.parameters, whole.parameters)


def test_sequences_of_online_learning_are_learned_a_few_at_a_time(monkeypatch):
    tokens, updates = [], learner.kernels.online_updates
    with problem(count=60) as objective:
        objective.model.chunk_tokens = 5

        def counted(order, *others):
            tokens.append(int(objective.data.lengths[order].sum()))
            return updates(order, *others)

        monkeypatch.setattr(learner.kernels, "online_updates", counted)
        online = OnlineProblem(objective, UpdateCoefficients(rate=1.0))
        one = make_learner(online, np.zeros(objective.n_parameters))
        one.run(np.arange(len(objective.data)))
    assert sum(tokens) >= objective.data.n_tokens and max(tokens) <= CHUNKS_AT_ONCE * 5
