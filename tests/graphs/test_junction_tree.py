"""Junction trees, against enumeration and the structures of the house."""

import numpy as np
import pytest
from scipy.special import logsumexp, xlogy

from crfkit._types import Counts
from crfkit.compiler.jit import frozen
from crfkit.data import Forest
from crfkit.graphs import plan
from crfkit.graphs.enumeration import Enumeration, all_scores
from crfkit.graphs.enumeration import _marginal as added_up
from crfkit.graphs.junction_tree import JunctionTree
from crfkit.graphs.methods import BudgetError
from crfkit.graphs.tables import factor_tables, scores_of, side_by_side, tables_of
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.structures import Chain, ChainPotentials, Tree, TreePotentials


def random_factors(seed):
    """Variables of 1 to 4 states, factors of 0 to 4; zeros, scores of 1e4, loose parts."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(0, 9))
    sizes = rng.integers(1, 5 if count < 7 else 4, count).tolist()
    scopes, tables = [], []
    for _ in range(rng.integers(0, 9)):
        scope = rng.permutation(count)[: rng.integers(0, min(count, 4) + 1)].tolist()
        table = rng.normal(size=[sizes[v] for v in scope]) * [1.0, 30.0, 1e4][seed % 3]
        table = np.where(rng.random(table.shape) < [0.0, 0.2, 0.1][seed // 3 % 3], -np.inf, table)
        scopes.append(scope)
        tables.append(table)
    return factor_tables(sizes, scopes, tables)


BATCH = side_by_side([random_factors(seed) for seed in range(180)])


def test_sums_are_those_of_enumeration():
    sums, expected = JunctionTree().sums(BATCH), Enumeration().sums(BATCH)
    np.testing.assert_allclose(sums.log_partition, expected.log_partition, rtol=1e-13, atol=1e-13)
    assert np.isneginf(expected.log_partition).any() and sums.exact.all()
    np.testing.assert_allclose(sums.marginals, expected.marginals, atol=2e-11)
    np.testing.assert_allclose(sums.beliefs, expected.beliefs, atol=2e-11)


def test_groups_of_terms_change_nothing(monkeypatch):
    """Small tables that are multiplied with one another first, which only large cliques have."""
    expected, sums = Enumeration().sums(BATCH), JunctionTree().sums(BATCH)
    monkeypatch.setattr(plan, "GROUPED", 8)
    method = JunctionTree(budget=1 << 21)
    grouped = method.sums(BATCH)
    assert len(method.plans(BATCH).trees.rows) > len(JunctionTree().plans(BATCH).trees.rows)
    np.testing.assert_allclose(grouped.log_partition, sums.log_partition, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(grouped.marginals, expected.marginals, atol=2e-11)
    np.testing.assert_allclose(grouped.beliefs, expected.beliefs, atol=2e-11)
    np.testing.assert_allclose(method.maximum(BATCH).score, JunctionTree().maximum(BATCH).score)
    np.testing.assert_allclose(method.entropy(BATCH), JunctionTree().entropy(BATCH), atol=1e-9)
    lists, others = method.k_best(BATCH, 5), JunctionTree().k_best(BATCH, 5)
    np.testing.assert_allclose(lists.scores, others.scores, rtol=1e-12, atol=1e-12)


def test_maxima_are_those_of_enumeration():
    maximum, expected = JunctionTree().maximum(BATCH), Enumeration().maximum(BATCH)
    np.testing.assert_allclose(maximum.score, expected.score, rtol=1e-12)
    assert maximum.exact.all()


def joints(count=60):
    """Some graphs with allowed values, all their scores, probabilities and scopes."""
    for seed in range(count):
        graph = random_factors(seed)
        scores, scopes = all_scores(graph, 0), tables_of(graph, 0)[1]
        if scores.max() > -np.inf:
            yield graph, scores, np.exp(scores - logsumexp(scores)), scopes


def test_the_k_best_are_those_of_enumeration():
    graphs, scores, _, _ = zip(*joints(), strict=True)
    best = JunctionTree().k_best(side_by_side(graphs), 12)
    first = np.cumsum([0, *(len(graph.sizes) for graph in graphs)])
    for s, every in enumerate(scores):
        allowed = np.sort(every[every > -np.inf])[::-1][:12]
        assert best.counts[s] == len(allowed)
        np.testing.assert_allclose(best.scores[s, : len(allowed)], allowed, rtol=1e-12, atol=1e-12)
        assert (best.scores[s, len(allowed) :] == -np.inf).all()
        values = best.values[: len(allowed), first[s] : first[s + 1]]
        assert len(np.unique(values, axis=0)) == len(allowed) or values.shape[1] == 0


def test_entropies_are_those_of_enumeration():
    graphs, _, shares, _ = zip(*joints(), strict=True)
    entropy = JunctionTree().entropy(side_by_side(graphs))
    expected = [-xlogy(joint, joint).sum() for joint in shares]
    np.testing.assert_allclose(entropy, expected, rtol=1e-10, atol=1e-12)
    sure = factor_tables([2, 2], [[0, 1]], [[[0.0, -np.inf], [-80.0, -np.inf]]])
    assert JunctionTree().entropy(sure) == pytest.approx(81.0 * np.exp(-80.0), rel=1e-12)


def test_slopes_are_covariances_with_the_score_of_the_direction():
    graphs, _, shares, scopes = zip(*joints(), strict=True)
    batch = side_by_side(graphs)
    tangent = np.random.default_rng(0).normal(size=len(batch.scores))
    slopes = JunctionTree().derivative(batch, tangent)
    moved = [all_scores(batch._replace(scores=tangent), s) for s in range(len(graphs))]
    along = [joint * (t - (joint * t).sum()) for joint, t in zip(shares, moved, strict=True)]
    expected = [added_up(slope, [v]) for slope in along for v in range(slope.ndim)]
    np.testing.assert_allclose(slopes.marginals, np.concatenate(expected), atol=1e-9)
    expected = [
        added_up(slope, scope) for slope, own in zip(along, scopes, strict=True) for scope in own
    ]
    np.testing.assert_allclose(slopes.beliefs, np.concatenate(expected), atol=1e-9)


def test_samples_are_those_of_the_distribution():
    uniforms = np.random.default_rng(0).random((4000, len(BATCH.sizes)))
    values = JunctionTree().sample(BATCH, uniforms)
    sums = JunctionTree().sums(BATCH)
    alive = np.repeat(sums.log_partition > -np.inf, np.diff(BATCH.variable_ptr))
    for v in np.flatnonzero(alive):
        expected = sums.marginals[BATCH.state_ptr[v] : BATCH.state_ptr[v + 1]]
        counts = np.bincount(values[:, v], minlength=len(expected))
        assert (abs(counts - 4000 * expected) <= 5.0 * np.sqrt(4000 * expected) + 1e-6).all()
    assert (values[:, ~alive] == 0).all()
    scores = scores_of(BATCH, frozen(values[0]))
    assert (np.isfinite(scores) == (sums.log_partition > -np.inf)).all()
    again = JunctionTree().sample(BATCH, uniforms[:3])
    assert (again == values[:3]).all()


def test_each_graph_of_a_batch_is_as_if_alone():
    sums, maximum = JunctionTree().sums(BATCH), JunctionTree().maximum(BATCH)
    for s in (3, 44, 100):
        graph = random_factors(s)
        states = slice(*BATCH.state_ptr[BATCH.variable_ptr[s : s + 2]])
        assert (JunctionTree().sums(graph).marginals == sums.marginals[states]).all()
        values = maximum.values[BATCH.variable_ptr[s] : BATCH.variable_ptr[s + 1]]
        assert (JunctionTree().maximum(graph).values == values).all()


def test_a_chain_and_a_tree_are_the_structures_of_the_house():
    rng = np.random.default_rng(1)
    parent = np.array([-1, 0, 0, 1, 1, 2, 5, 5, 5, 8])
    unary, pair = rng.normal(size=(10, 3)), rng.normal(size=(3, 3))
    pair[1, 2] = -np.inf
    offsets = np.array([0, 10])
    chain = ChainPotentials.of(unary, pair[None], offsets)
    forest = TreePotentials(*chain, *Forest(parent, offsets).arrays)
    cases = [
        (Chain(), chain, [(t, t + 1) for t in range(9)]),
        (Tree(), forest, [(int(p), c) for c, p in enumerate(parent) if p >= 0]),
    ]
    for structure, scores, edges in cases:
        out = Counts(np.zeros_like(unary), np.zeros((1, 3, 3)))
        log_z = structure.log_partition(scores, np.ones(1), out)
        scopes = [*([t] for t in range(10)), *edges]
        sums = JunctionTree().sums(factor_tables([3] * 10, scopes, [*unary, *[pair] * len(edges)]))
        np.testing.assert_allclose(sums.log_partition, log_z, rtol=1e-13)
        np.testing.assert_allclose(sums.marginals, out.unary.ravel(), atol=1e-13)
        beliefs = sums.beliefs[30:].reshape(-1, 3, 3).sum(axis=0)
        np.testing.assert_allclose(beliefs, out.pair[0], atol=1e-12)


@pytest.mark.parametrize(("n", "scale"), [(30_000, 1.0), (1_000, 1e3)])
def test_a_chain_of_many_nodes(n, scale):
    rng = np.random.default_rng(0)
    unary, pair = scale * rng.normal(size=(n, 2)), scale * rng.normal(size=(2, 2))
    pairs = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).ravel()
    states = np.arange(0, 2 * n + 1, 2)
    arrays = (
        np.full(n, 2), states, np.append(np.arange(n), pairs),
        np.append(np.arange(n), np.arange(n, 3 * n - 1, 2)),
        np.append(unary.ravel(), np.tile(pair.ravel(), n - 1)),
        np.append(states[:-1], np.arange(2 * n, 6 * n - 3, 4)), np.array([0, n]),
        np.array([0, 2 * n - 1]),
    )  # fmt: skip
    graph = FactorTables(*map(frozen, arrays))
    scores = ChainPotentials.of(unary, pair[None], np.array([0, n]))
    out = Counts(np.zeros_like(unary), np.zeros_like(scores.pair))
    log_z = Chain().log_partition(scores, np.ones(1), out)
    sums = JunctionTree().sums(graph)
    np.testing.assert_allclose(sums.log_partition, log_z, rtol=1e-13)
    np.testing.assert_allclose(sums.marginals, out.unary.ravel(), atol=1e-9)
    assert JunctionTree().maximum(graph).score == pytest.approx(Chain().argmax(scores)[1][0])


def grid(n):
    """The edges of a grid of n x n variables."""
    place = np.arange(n * n).reshape(n, n)
    return [*zip(place[:, :-1].flat, place[:, 1:].flat, strict=True),
            *zip(place[:-1].flat, place[1:].flat, strict=True)]  # fmt: skip


def test_a_table_over_the_budget_is_an_error_that_names_other_methods():
    edges = grid(7)
    graph = factor_tables([2] * 49, edges, [np.eye(2)] * len(edges))
    JunctionTree(1 << 8).sums(graph)
    with pytest.raises(BudgetError, match=r"table .* has 2\^8.0 entries, and the .* 2\^7.0.*trw"):
        JunctionTree(1 << 7).sums(graph)
    with pytest.raises(BudgetError, match='"expansion", "mplp", "milp"'):
        JunctionTree(1 << 7).maximum(graph)
    edges = grid(110)
    graph = factor_tables([2] * 110**2, edges, [np.eye(2)] * len(edges))
    with pytest.raises(BudgetError, match=r"2\^10\d.* or more entries"):
        JunctionTree().sums(graph)


def test_wrong_questions_are_refused():
    graph, method = factor_tables([2, 2], [[0, 1]], [np.eye(2)]), JunctionTree()
    for ask, message in [
        (lambda: method.sample(graph, np.zeros((3, 1))), "2 variables need"),
        (lambda: method.derivative(graph, np.zeros(3)), "4 scores need"),
        (lambda: method.k_best(graph, 0), "one or more"),
        (lambda: JunctionTree(budget=0).sums(graph), "at least one entry"),
    ]:
        with pytest.raises(ValueError, match=message):
            ask()
    empty = side_by_side([])
    assert method.sums(empty).log_partition.shape == method.maximum(empty).score.shape == (0,)


@pytest.mark.parametrize("score", [1.5e308, -1.5e308])
def test_scores_whose_sum_is_no_number_are_an_error(score):
    table = np.full((2, 2), score)
    graph = factor_tables([2, 2, 2], [[0, 1], [1, 2], [0, 2]], [table] * 3)
    for ask in (JunctionTree().sums, JunctionTree().maximum):
        with pytest.raises(ValueError, match="graph 0: its scores, up to 1.5e.308, add up to more"):
            ask(graph)
