"""Margins on graphs: by searches that are exact, and by those that know a bound alone."""

import contextlib
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit._parallel import ThreadMap
from crfkit.data import Edges, PackedSequences
from crfkit.data.targets import Targets
from crfkit.graphs.junction_tree import JunctionTree
from crfkit.graphs.methods import Maximum, MaxMethod
from crfkit.graphs.mplp import MPLP
from crfkit.graphs.structure import GraphStructure
from crfkit.losses import HingeLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.base import FeatureChoice
from crfkit.potentials.graph import ASSOCIATIVE, DIRECTED, GraphWeights
from crfkit.solvers.margin import BlockFrankWolfe, CuttingPlane
from tests.solvers.margins import enumerated_optimum, enumerated_value

SIZES, ENDS = (4, 0, 1, 3, 4), ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2))
SOLVER = BlockFrankWolfe(tol=1e-6, max_iter=3000)


class Blind(MaxMethod):
    """Tells nothing of how large other scores may be."""

    def maximum(self, graph):
        found = JunctionTree().maximum(graph)
        return Maximum(found.values, found.score, np.full(len(found.score), np.inf), found.n_iter)


@contextlib.contextmanager
def graph_problem(search, kind, seed=0, c2=0.3, noise=1.0):
    """Graphs with cycles, three labels, attributes of edges that are not negative."""
    rng, offsets = np.random.default_rng(seed), np.cumsum([0, *SIZES])
    ends = [np.array([e for e in ENDS if max(e) < n], int).reshape(-1, 2) for n in SIZES]
    counts, (source, target) = np.cumsum([0, *map(len, ends)]), np.concatenate(ends).T
    x, z = rng.normal(size=(offsets[-1], 3)), rng.random((counts[-1], 2))
    codes = (x + noise * rng.normal(size=x.shape)).argmax(axis=1).astype(np.int32)
    data = PackedSequences(sp.csr_array(x), offsets=offsets)
    data = data.with_topology(Edges(source, target, offsets, counts))
    data = data.with_transitions(PackedSequences(sp.csr_array(z), offsets=counts))
    structure = GraphStructure(search=search, directed=kind == DIRECTED)
    training = SimpleNamespace(
        data=data, codes=codes, targets=Targets(codes), weight=np.ones(len(codes)),
        classes=np.arange(3), coding=None,
    )  # fmt: skip
    model = GraphWeights(None, structure, kind).choose(FeatureChoice(), training)
    with ThreadMap(1) as threads:
        yield Objective(
            model, structure, HingeLoss(), ElasticNet(0.0, c2), data, codes,
            np.ones(len(codes)), threads,
        )  # fmt: skip


@pytest.mark.parametrize("kind", [DIRECTED, ASSOCIATIVE])
def test_the_optimum_on_graphs_is_that_of_the_program_over_all_labelings(kind):
    with graph_problem(JunctionTree(), kind) as objective:
        best, _ = enumerated_optimum(objective)
        found = SOLVER.solve(objective, np.zeros(objective.n_parameters))
        value = enumerated_value(objective, found.parameters)
    assert found.converged
    np.testing.assert_allclose([found.value, value], best, rtol=2e-6)
    assert found.gap <= 1e-6 * found.value
    bounded = objective.nonnegative
    assert (bounded is not None) == (kind == ASSOCIATIVE)
    assert bounded is None or (found.parameters[bounded] >= 0.0).all()


def test_the_gap_is_certified_by_the_bound_of_a_search_that_misses_labelings():
    """One pass over scores of noise, which pull pairs of labels in all directions."""
    wide = 0
    for seed in range(2):
        with graph_problem(MPLP(max_iter=1), DIRECTED, seed, c2=0.01, noise=9.0) as objective:
            solver, records = BlockFrankWolfe(tol=1e-4, max_iter=20, check_every=2), []
            start = np.zeros(objective.n_parameters)
            result = solver.solve(objective, start, partial(_keep, records))
            best, _ = enumerated_optimum(objective)
            for record, w in records:
                true = enumerated_value(objective, w)
                assert record.value <= true * (1.0 + 1e-9)
                assert record.gap >= (true - best) * (1.0 - 1e-9) - 1e-7 * best
                wide += record.gap > record.value - best * (1.0 - 1e-3)
            assert np.isfinite(result.gap)
    assert wide


def _keep(records, record, w):
    records.append((record, w))


def test_without_a_bound_there_is_no_gap_but_an_end():
    with graph_problem(Blind(), DIRECTED) as objective:
        start = np.zeros(objective.n_parameters)
        for solver in (BlockFrankWolfe(tol=1e-3), CuttingPlane(tol=1e-3)):
            result = solver.solve(objective, start)
            assert result.converged
            assert np.isnan(result.gap)
        assert "as far as searches have found" in SOLVER.solve(objective, start).message
