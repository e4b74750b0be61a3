"""Sums over factor graphs that are approximate, against enumeration."""

import numpy as np
import pytest

from crfkit.graphs.belief_propagation import BeliefPropagation
from crfkit.graphs.enumeration import Enumeration
from crfkit.graphs.gibbs import GibbsSampling
from crfkit.graphs.mean_field import MeanField
from crfkit.graphs.tables import factor_tables, scores_of, side_by_side, tables_of
from crfkit.graphs.tree_reweighted import TreeReweighted
from crfkit.io import read_fg

inf = np.inf


def random_graph(rng, scale, forbidden=0.0, arity=3, factors=10):
    """Up to 7 variables of 1 to 3 states; some values of variables are sure to be allowed."""
    n = int(rng.integers(1, 8))
    sizes = rng.integers(1, 4, n)
    widths = rng.integers(0, arity + 1, rng.integers(0, factors))
    scopes = [rng.permutation(n)[: min(n, k)].tolist() for k in widths]
    tables, allowed = [], [rng.integers(size) for size in sizes]
    for scope in scopes:
        table = np.asarray(scale * rng.normal(size=sizes[scope]))
        if scope:
            place = tuple(allowed[v] for v in scope)
            kept = table[place]
            table[rng.random(table.shape) < forbidden] = -inf
            table[place] = kept
        tables.append(table)
    return factor_tables(sizes, scopes, tables)


def graphs_of_all_kinds(count, **options):
    rng = np.random.default_rng(0)
    kinds = [(0.3, 0.0), (1.0, 0.0), (3.0, 0.3), (10.0, 0.5), (1e4, 0.3)]
    return side_by_side([random_graph(rng, *kinds[i % 5], **options) for i in range(count)])


GRAPHS = graphs_of_all_kinds(150)
TRUE = Enumeration().sums(GRAPHS)
ROUNDING = 1e-10 * (1.0 + abs(TRUE.log_partition))


def each_state(graph, values):
    """The values of graphs, for each of their states, and for each entry of their tables."""
    states = graph.state_ptr[graph.variable_ptr]
    entries = graph.score_ptr[graph.factor_ptr]
    return np.repeat(values, np.diff(states)), np.repeat(values, np.diff(entries))


def assert_true_where_exact(sums):
    assert 20 < sums.exact.sum() < 150 and sums.converged[sums.exact].all()
    assert (abs(sums.log_partition - TRUE.log_partition) <= ROUNDING)[sums.exact].all()
    for exact, found, true in zip(
        each_state(GRAPHS, sums.exact), sums[1:3], TRUE[1:3], strict=True
    ):
        np.testing.assert_allclose(found[exact], true[exact], atol=1e-10)


@pytest.mark.parametrize("schedule", ["residual", "sweeps"])
def test_belief_propagation_is_exact_on_forests(schedule):
    assert_true_where_exact(BeliefPropagation(schedule=schedule).sums(GRAPHS))


def test_belief_propagation_keeps_to_what_is_forbidden():
    sums = BeliefPropagation(max_iter=50).sums(GRAPHS)
    entries = np.isneginf(GRAPHS.scores)
    assert (sums.beliefs[entries] == 0.0).all()
    totals = np.add.reduceat(sums.marginals, GRAPHS.state_ptr[:-1])
    np.testing.assert_allclose(totals, 1.0, rtol=1e-12)


def test_schedules_and_damping_find_the_same_fixed_point():
    graph = graphs_of_all_kinds(2, arity=2)
    found = [
        BeliefPropagation(schedule=schedule, damping=damping, tol=1e-13).sums(graph)
        for schedule in ("residual", "sweeps")
        for damping in (0.0, 0.3)
    ]
    assert all(sums.converged.all() for sums in found)
    for sums in found[1:]:
        np.testing.assert_allclose(sums.log_partition, found[0].log_partition, rtol=1e-11)
        np.testing.assert_allclose(sums.marginals, found[0].marginals, atol=1e-10)


def test_what_does_not_settle_is_reported():
    odd = [[-5.0, 5.0], [5.0, -5.0]]
    pairs = [(u, v) for u in range(5) for v in range(u)]
    graph = factor_tables([2] * 5, [*pairs, [0]], [*[odd] * 10, [0.1, 0.0]])
    for schedule in ("residual", "sweeps"):
        sums = BeliefPropagation(schedule=schedule, max_iter=7).sums(graph)
        assert not sums.converged[0] and sums.n_iter[0] == 7 and not sums.exact[0]


@pytest.mark.parametrize("max_iter", [1, 4, 1000])
def test_the_reweighted_sum_is_an_upper_bound_converged_or_not(max_iter):
    sums = TreeReweighted(n_trees=6, max_iter=max_iter, tol=1e-8).sums(GRAPHS)
    assert (sums.log_partition >= TRUE.log_partition - ROUNDING).all()
    assert_true_where_exact(sums)
    if max_iter == 1000:
        modest = np.arange(150) % 5 < 2
        assert sums.converged[modest].all()
        assert (sums.log_partition - TRUE.log_partition)[modest].max() < 2.0


def test_a_reweighted_sum_that_has_not_settled_is_a_bound_near_the_best_one():
    best = TreeReweighted().sums(GRAPHS)
    early = TreeReweighted(max_iter=4).sums(GRAPHS)
    unsettled = best.converged & ~early.converged
    assert unsettled.sum() > 10
    above = (early.log_partition - best.log_partition)[unsettled]
    assert (above > -ROUNDING[unsettled]).all() and np.median(above) < 1e-3


def test_reweighted_marginals_are_the_gradient_of_their_sum():
    rng = np.random.default_rng(1)
    graph = side_by_side([random_graph(rng, 1.0, 0.2) for _ in range(20)])
    method, step = TreeReweighted(tol=1e-12), 1e-5
    direction = rng.normal(size=len(graph.scores))
    sums = method.sums(graph)
    ends = [
        method.sums(graph._replace(scores=graph.scores + sign * step * direction)).log_partition
        for sign in (1.0, -1.0)
    ]
    slopes = [
        float(direction[slice(*graph.score_ptr[graph.factor_ptr[s : s + 2]])]
              @ sums.beliefs[slice(*graph.score_ptr[graph.factor_ptr[s : s + 2]])])
        for s in range(20)
    ]  # fmt: skip
    assert not sums.exact.all() and sums.converged.all()
    np.testing.assert_allclose((ends[0] - ends[1]) / (2.0 * step), slopes, atol=1e-8)


def test_reweighted_sums_are_convex_along_lines():
    rng = np.random.default_rng(2)
    graph = side_by_side([random_graph(rng, 2.0) for _ in range(20)])
    others = rng.normal(size=len(graph.scores), scale=2.0)
    ways = [graph._replace(scores=graph.scores + t * others) for t in (-1.0, 0.0, 1.0)]
    left, middle, right = (TreeReweighted().sums(each).log_partition for each in ways)
    assert (left + right >= 2.0 * middle - 1e-9).all()


def test_the_bound_of_mean_field_rises_and_is_a_lower_bound():
    before = np.full(150, -inf)
    for max_iter in (1, 2, 4, 1000):
        sums = MeanField(max_iter=max_iter).sums(GRAPHS)
        assert (sums.log_partition >= before - ROUNDING).all()
        before = sums.log_partition
    assert sums.converged.all()
    assert (before <= TRUE.log_partition + ROUNDING).all()
    near = abs(before - TRUE.log_partition) <= ROUNDING
    assert sums.exact.any() and near[sums.exact].all()
    assert (sums.beliefs[np.isneginf(GRAPHS.scores)] == 0.0).all()
    more = MeanField(n_starts=4).sums(GRAPHS).log_partition
    assert (more >= before).all() and (more > before + 0.01).any()


def random_rules(rng):
    """Pairs and triples of variables that forbid much; about half of the graphs allow nothing."""
    sizes = rng.integers(1, 4, 7)
    scopes = [rng.permutation(7)[: 2 + i % 2].tolist() for i in range(9)]
    tables = [np.where(rng.random(sizes[scope]) < 0.25, -inf, 0.0) for scope in scopes]
    return factor_tables(sizes, scopes, tables)


def test_values_that_are_allowed_are_found_or_proved_not_to_be_there():
    rng = np.random.default_rng(3)
    graph = side_by_side([random_rules(rng) for _ in range(60)])
    true = Enumeration().sums(graph).log_partition
    sums = MeanField().sums(graph)
    np.testing.assert_array_equal(np.isneginf(sums.log_partition), np.isneginf(true))
    assert 10 < np.isneginf(true).sum() < 50 and sums.exact[np.isneginf(true)].all()
    assert (sums.log_partition <= true + 1e-9).all()
    gibbs = GibbsSampling(n_samples=5, burn_in=1).sums(graph)
    np.testing.assert_array_equal(np.isneginf(gibbs.log_partition), np.isneginf(true))
    assert (gibbs.beliefs[np.isneginf(graph.scores)] == 0.0).all()


def test_a_search_that_gives_up_is_an_error():
    """Nine pigeons in eight holes: no short proof."""
    apart = np.where(np.eye(8) > 0.0, -inf, 0.0)
    pairs = [(u, v) for u in range(9) for v in range(u)]
    graph = factor_tables([8] * 9, pairs, [apart] * len(pairs))
    with pytest.raises(ValueError, match="graph 0: no allowed values"):
        GibbsSampling().sums(graph)


def test_means_of_gibbs_sampling_are_within_their_standard_error():
    rng = np.random.default_rng(4)
    graph = side_by_side([random_graph(rng, 1.0) for _ in range(12)])
    true = Enumeration().sums(graph)
    runs = [GibbsSampling(400, 50, 1, random_state=seed).sums(graph) for seed in range(24)]
    for name in ("marginals", "beliefs"):
        found = np.array([getattr(run, name) for run in runs])
        error = found.std(axis=0, ddof=1) / np.sqrt(24) + 1e-12
        scores = abs(found.mean(axis=0) - getattr(true, name)) / error
        assert scores.max() < 5.0 and np.mean(scores < 2.0) > 0.9
    agreed = GibbsSampling(400, 50).sums(graph)
    assert agreed.converged.all() and np.isnan(agreed.log_partition).all()
    assert not runs[0].converged.any()


def test_chains_that_do_not_mix_are_reported():
    graph = factor_tables([2, 2], [[0, 1]], [[[9.0, -9.0], [-9.0, 9.0]]])
    assert not GibbsSampling(random_state=1).sums(graph).converged[0]


def test_samples_have_the_frequencies_of_their_distribution():
    rng = np.random.default_rng(5)
    one = random_graph(rng, 1.0, 0.2, factors=12)
    graph = side_by_side([factor_tables([2], [], []), one, factor_tables([], [], [])])
    uniforms = rng.random((3000, len(graph.sizes)))
    method = GibbsSampling(burn_in=20)
    samples = method.sample(graph, uniforms)
    true = Enumeration().sums(graph).marginals
    for v, size in enumerate(graph.sizes):
        shares = np.bincount(samples[:, v], minlength=size) / 3000
        expected = true[graph.state_ptr[v] : graph.state_ptr[v + 1]]
        assert abs(shares - expected).max() < 0.05
    assert all(np.isfinite(scores_of(graph, values)).all() for values in samples[:20])
    np.testing.assert_array_equal(method.sample(one, uniforms[:5, 1:]), samples[:5, 1:])


@pytest.mark.parametrize(
    "method",
    [
        BeliefPropagation(),
        TreeReweighted(n_trees=5),
        MeanField(n_starts=2),
        GibbsSampling(20, 5, 2),
    ],
)
def test_the_bits_of_a_graph_do_not_depend_on_those_beside_it(method):
    together = method.sums(GRAPHS)
    for s in (0, 7, 149):
        alone = method.sums(factor_tables(*tables_of(GRAPHS, s)))
        states = slice(*GRAPHS.state_ptr[GRAPHS.variable_ptr[s : s + 2]])
        np.testing.assert_array_equal(alone.log_partition[0], together.log_partition[s])
        np.testing.assert_array_equal(alone.marginals, together.marginals[states])


@pytest.mark.parametrize("method", [BeliefPropagation(), TreeReweighted(), MeanField()])
def test_sums_at_extremes(method):
    step = np.array([[1e4, -1e4], [-inf, 1e4]])
    graphs = [
        factor_tables([], [], []),
        factor_tables([3], [], []),
        factor_tables([1], [[]], [np.float64(2.0)]),
        factor_tables([2, 2], [[0, 1], [0], [1]], [step, [-inf, 0.0], [0.0, -inf]]),  # none is left
        factor_tables([2] * 4, [[0, 1], [1, 2], [2, 3], [3, 0]], [step] * 4),
    ]
    sums = method.sums(side_by_side(graphs))
    np.testing.assert_allclose(sums.log_partition[:4], [0, np.log(3), 2, -inf])
    assert sums.log_partition[4] == pytest.approx(4e4 + np.log(2), abs=0.7)
    assert sums.marginals[:8].tolist() == [1 / 3] * 3 + [1.0] + [0.0] * 4
    n = 20000
    long = factor_tables([2] * n, [*zip(range(n - 1), range(1, n), strict=True)], [step] * (n - 1))
    found = method.sums(long)
    assert found.log_partition[0] == pytest.approx(1e4 * (n - 1) + np.log(2))


def test_options_are_checked():
    graph = factor_tables([2], [], [])
    for method, message in [
        (BeliefPropagation(damping=1.0), "damping=1.0 must be below 1"),
        (BeliefPropagation(schedule="all"), "schedule='all' is not known"),
        (TreeReweighted(n_trees=0), "n_trees=0 must be at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            method.sums(graph)


@pytest.mark.parametrize(
    ("method", "name"), [(BeliefPropagation(), "BP_SEQMAX"), (MeanField(), "MF")]
)
def test_errors_are_those_of_libdai(method, name, data_folder):
    folder = data_folder("graphs_small")
    field = read_fg(folder / "testfast.fg")
    graph = factor_tables(field.sizes, *zip(*field.factors, strict=True))
    rows = (folder / "testfast_errors.tsv").read_text().splitlines()[1:]
    printed = {name: numbers for name, *numbers in (row.split("\t") for row in rows)}
    true = Enumeration().sums(graph)
    sums = method.sums(graph)
    errors = abs(sums.marginals - true.marginals).reshape(-1, 2).max(axis=1)
    of_log_z = (sums.log_partition - true.log_partition)[0]
    found = [f"{errors.max():.3e}", f"{errors.mean():.3e}", f"{of_log_z:+.3e}"]
    assert found == printed[name]
