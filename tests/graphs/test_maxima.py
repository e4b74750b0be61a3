"""Maxima of factor graphs, against enumeration."""

import numpy as np
import pytest

from crfkit.graphs.auto import AutoSearch
from crfkit.graphs.enumeration import Enumeration
from crfkit.graphs.expansion import ExpansionMoves
from crfkit.graphs.integer_program import IntegerProgram
from crfkit.graphs.methods import BudgetError
from crfkit.graphs.minimum_cut import MinimumCut
from crfkit.graphs.mplp import MPLP
from crfkit.graphs.potentials import GraphPotentials
from crfkit.graphs.structure import GraphStructure
from crfkit.graphs.tables import factor_tables, scores_of, side_by_side
from crfkit.io import read_uai

inf = np.inf


def random_graph(rng, arity, forbidden):
    """Up to 7 variables of 1 to 4 states, factors of up to `arity` of them."""
    n = int(rng.integers(1, 8))
    sizes = rng.integers(1, 5, size=n)
    scopes = [[v] for v in rng.permutation(n)[: rng.integers(0, n + 1)]] + [[]]
    widths = rng.integers(2, arity + 1, size=rng.integers(0, 9))
    scopes += [rng.permutation(n)[: min(n, k)].tolist() for k in widths]
    tables = [np.asarray(rng.normal(size=sizes[scope])) for scope in scopes]
    for table in tables:
        if table.ndim and rng.random() < 0.5:
            table[rng.random(table.shape) < forbidden] = -inf
    return factor_tables(sizes, scopes, tables)


def associative_graph(rng, forbidden=0.15):
    """Up to 8 variables of two states, or one; some pairs fixed, forbidden or of equal score."""
    n = int(rng.integers(2, 9))
    sizes = np.where(rng.random(n) < 0.05, 1, 2)
    scopes = [[v] for v in rng.integers(0, n, size=2 * n)] + [[]]
    scopes += [rng.permutation(n)[:2].tolist() for _ in range(rng.integers(0, 14))]
    tables = [np.asarray(rng.normal(size=[2] * len(scope))) for scope in scopes]
    for table in tables:
        if table.ndim == 2:
            table[1, 1] += max(table[0, 1] + table[1, 0] - table[0, 0] - table[1, 1], 0.0)
            table[[0, 1], [1, 0]] = np.where(rng.random(2) < forbidden, -inf, table[[0, 1], [1, 0]])
        if table.ndim and rng.random() < forbidden / 2:
            table[rng.integers(2)] = -inf
    shapes = [tuple(slice(0, sizes[v]) for v in scope) for scope in scopes]
    return factor_tables(
        sizes, scopes, [table[shape] for table, shape in zip(tables, shapes, strict=True)]
    )


def potts_graph(rng, states):
    """Different labels cost; equal ones are worth something, each label its own."""
    n = int(rng.integers(2, 7))
    scopes = [[v] for v in range(n)] + [rng.permutation(n)[:2].tolist() for _ in range(2 * n)]
    tables = [-3.0 * rng.random(states) for _ in range(n)]
    tables[0][rng.integers(states)] = -inf
    for _ in range(2 * n):
        different = -2.0 * rng.random() * (1.0 - np.eye(states))
        tables.append(different - np.diag(rng.random(states) * -different.min() / 2))
    return factor_tables([states] * n, scopes, tables)


def holds(found, graph, best):
    """Whether a maximum tells the truth: its score is that of its values, no bound too low."""
    allowed = found.score > -inf
    np.testing.assert_allclose(scores_of(graph, found.values)[allowed], found.score[allowed])
    assert (found.score <= best + 1e-9).all()
    assert (found.bound >= best - 1e-9 * (1.0 + abs(best))).all() or (best == -inf).all()
    np.testing.assert_allclose(found.score[found.exact], best[found.exact], atol=1e-8)
    return True


def test_a_cut_is_exact_on_associative_graphs():
    rng = np.random.default_rng(0)
    graphs = [associative_graph(rng) for _ in range(150)]
    best = np.concatenate([Enumeration().maximum(graph).score for graph in graphs])
    assert (best > -inf).mean() > 0.5
    found = MinimumCut().maximum(side_by_side(graphs))
    np.testing.assert_allclose(found.score, best, rtol=1e-9, atol=1e-9)
    assert holds(found, side_by_side(graphs), best)
    assert found.exact.all()


def test_a_cut_of_a_grid_is_the_best_of_all_labelings():
    rng = np.random.default_rng(1)
    places = np.arange(16).reshape(4, 4)
    pairs = [*zip(places[:, :-1].flat, places[:, 1:].flat, strict=True)]
    pairs += [*zip(places[:-1].flat, places[1:].flat, strict=True)]
    scopes = [[v] for v in range(16)] + [list(pair) for pair in pairs]
    for scale in (1.0, 1e4):
        tables = [scale * rng.normal(size=2) for _ in range(16)]
        tables += [scale * rng.random() * np.eye(2) for _ in pairs]
        graph = factor_tables([2] * 16, scopes, tables)
        found, best = MinimumCut().maximum(graph), Enumeration().maximum(graph)
        np.testing.assert_array_equal(found.values, best.values)
        np.testing.assert_allclose(found.bound, best.score, rtol=1e-12)
        assert (best.score <= Enumeration().sums(graph).log_partition).all()


@pytest.mark.parametrize("arity", [2, 4])
def test_the_bound_of_message_passing_falls_and_is_never_too_low(arity):
    rng = np.random.default_rng(arity)
    graphs = [random_graph(rng, arity, 0.2) for _ in range(60)]
    best = np.concatenate([Enumeration().maximum(graph).score for graph in graphs])
    graph, before = side_by_side(graphs), np.full(60, inf)
    for passes in (1, 2, 5, 50):
        found = MPLP(max_iter=passes).maximum(graph)
        assert holds(found, graph, best)
        assert (found.bound <= before + 1e-9).all()
        before = found.bound
    assert found.exact.mean() > 0.8
    for each, bound in zip(graphs[:5], found.bound, strict=False):  # alone as among others
        assert MPLP(max_iter=50).maximum(each).bound[0] == bound


def test_message_passing_is_exact_on_trees_after_one_pass():
    rng = np.random.default_rng(3)
    scopes = [[v] for v in range(7)] + [[rng.integers(v), v] for v in range(1, 7)]
    tables = [rng.normal(size=[3] * len(scope)) for scope in scopes]
    graph = factor_tables([3] * 7, scopes, tables)
    found, best = MPLP(max_iter=1).maximum(graph), Enumeration().maximum(graph)
    np.testing.assert_array_equal(found.values, best.values)
    assert found.exact.all()


def test_an_integer_program_is_the_best_of_all_labelings():
    rng = np.random.default_rng(4)
    graphs = [random_graph(rng, 3, 0.3) for _ in range(12)]
    best = np.concatenate([Enumeration().maximum(graph).score for graph in graphs])
    found = IntegerProgram().maximum(side_by_side(graphs))
    assert holds(found, side_by_side(graphs), best)
    assert found.exact.all()


@pytest.mark.parametrize("states", [2, 3, 4])
def test_expansion_costs_twice_the_least_at_most(states):
    rng = np.random.default_rng(states)
    graphs = [potts_graph(rng, states) for _ in range(30)]
    best = np.concatenate([Enumeration().maximum(graph).score for graph in graphs])
    found = ExpansionMoves().maximum(side_by_side(graphs))
    assert holds(found, side_by_side(graphs), best)
    assert (found.score >= 2.0 * best).all()
    assert found.exact.all() == (states == 2)
    assert ExpansionMoves(bound=MPLP()).maximum(side_by_side(graphs)).exact.mean() > 0.9


def test_the_search_is_chosen_for_each_graph():
    rng = np.random.default_rng(6)
    graphs = [associative_graph(rng) for _ in range(10)]
    graphs += [potts_graph(rng, 3) for _ in range(5)] + [
        random_graph(rng, 3, 0.2) for _ in range(9)
    ]
    graph, best = side_by_side(graphs), Enumeration().maximum(side_by_side(graphs)).score
    assert holds(AutoSearch().maximum(graph), graph, best)
    assert AutoSearch().maximum(graph).exact.all()
    found = AutoSearch(budget=4).maximum(graph)  # no tables but those of pairs of two states
    assert holds(found, graph, best)
    assert found.exact[:10].all() and found.exact.mean() > 0.8


@pytest.mark.parametrize("method", [MinimumCut(), ExpansionMoves(), MPLP(), IntegerProgram()])
def test_extremes(method):
    single = factor_tables([2], [[0]], [np.array([0.0, 1e4])])
    free = factor_tables([2, 1, 2], [], [])
    nothing = factor_tables([], [[]], [np.array(2.0)])
    hard = factor_tables([2, 2], [[0, 1], [0]], [[[0.0, -inf], [-inf, 0.0]], [-inf, 0.0]])
    same, unlike = [[0.0, -inf], [-inf, 0.0]], [[-inf, 0.0], [0.0, -inf]]
    barred = factor_tables([2, 2], [[0, 1], [0], [1]], [same, *unlike])
    graph = side_by_side([single, free, nothing, hard, barred])
    found = method.maximum(graph)
    np.testing.assert_array_equal(found.score, [1e4, 0.0, 2.0, 0.0, -inf])
    assert found.exact.all()
    assert method.maximum(side_by_side([])).score.shape == (0,)


def test_expansion_of_nodes_that_may_not_have_all_labels():
    rng = np.random.default_rng(5)
    unary = np.where(rng.random((12, 4)) < 0.3, -inf, rng.normal(size=(12, 4)))
    unary[:, 3] = np.maximum(unary[:, 3], -2.0)
    source, target = rng.permutation(12)[:10], rng.permutation(12)[:10]
    source, target = source[source != target], target[source != target]
    potentials = GraphPotentials(
        unary, np.eye(4)[None], np.zeros(1, np.uint32), np.array([0, 12]), 0, source, target,
        np.array([0, len(source)]),
    )  # fmt: skip
    labels, score = GraphStructure(search=ExpansionMoves(bound=MPLP())).argmax(potentials)
    expected, best = GraphStructure(search=MPLP()).argmax(potentials)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_allclose(score, best)


def test_segmentations_of_images_are_certified(data_folder):
    """The optima were computed otherwise; isolated nodes are set."""
    folder = data_folder("uai/associative")
    for line in (folder / "optima.tsv").read_text().splitlines()[1:]:
        name, labels, optimum = line.split("\t")
        graph = read_uai(folder / f"{name}.xz", folder / f"{name}.evid").tables
        for method in [MPLP()] + [MinimumCut()] * (labels == "2"):
            found = method.maximum(graph)
            assert found.exact.all()
            assert found.score[0] == pytest.approx(float(optimum), abs=2e-6)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (MPLP(max_iter=0), "max_iter=0 must be at least 1"),
        (MPLP(tol=-1.0), "tol=-1.0 must be finite and at least 0"),
        (AutoSearch(budget=2, max_iter=0), "max_iter=0 must be at least 1"),
        (ExpansionMoves(max_iter=0), "max_iter=0 must be at least 1"),
        (IntegerProgram(time_limit=0), "time_limit=0 must be above 0"),
        (IntegerProgram(max_size=-1), "max_size=-1 must be at least 0"),
    ],
    ids=repr,
)
def test_options_are_checked(method, message):
    with pytest.raises(ValueError, match=message):
        method.maximum(factor_tables([2, 2], [[0, 1]], [np.eye(2)]))


def test_what_a_cut_does_not_take_is_named():
    unlike = factor_tables([2, 2], [[0], [1, 0]], [np.zeros(2), [[0.0, 1.0], [1.0, 0.0]]])
    with pytest.raises(ValueError, match=r"graph 1: factor 1, of the variables 1, 0, is not assoc"):
        MinimumCut().maximum(side_by_side([factor_tables([2], [], []), unlike]))
    with pytest.raises(ValueError, match=r"variable 1 has 3 states.*expansion"):
        MinimumCut().maximum(factor_tables([2, 3], [], []))
    with pytest.raises(ValueError, match=r"0, 1, 2, has more than two.*mplp"):
        MinimumCut().maximum(factor_tables([2] * 3, [[0, 1, 2]], [np.zeros((2, 2, 2))]))
    with pytest.raises(ValueError, match=r"has 2 and 3 states; expansion needs the same labels"):
        ExpansionMoves().maximum(factor_tables([2, 3], [[0, 1]], [np.zeros((2, 3))]))
    with pytest.raises(ValueError, match=r"is not like a distance.*mplp"):
        ExpansionMoves().maximum(factor_tables([3, 3], [[0, 1]], [1.0 - np.eye(3)]))
    with pytest.raises(BudgetError, match=r"18 indicators, more than max_size=12"):
        IntegerProgram(max_size=12).maximum(
            factor_tables([2] * 3, [[0, 1], [1, 2], [2, 0]], [1.0 - np.eye(2)] * 3)
        )


@pytest.mark.parametrize(
    "method", [ExpansionMoves(), ExpansionMoves(bound=MPLP()), IntegerProgram()]
)
def test_what_is_found_of_a_graph_does_not_depend_on_those_beside_it(method):
    rng = np.random.default_rng(4)
    graphs = [associative_graph(rng, 0.0), potts_graph(rng, 3), factor_tables([], [], [])] * 2
    together = method.maximum(side_by_side(graphs))
    alone = [method.maximum(each) for each in graphs]
    for name, own in zip(together._fields, zip(*alone, strict=True), strict=True):
        np.testing.assert_array_equal(getattr(together, name), np.concatenate(own))
