"""Random fields of five to eight nodes: every statement is compared with enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

from crfkit._types import Counts
from crfkit.graphs import Factor, Graph, RandomField, canonical_factors
from crfkit.structures import Chain, ChainPotentials

SEEDS = range(6)


def random_field(seed, n_nodes=5, n_values=None):
    """A field of random scores on the largest cliques of a random graph."""
    rng = np.random.default_rng(seed)
    names = list("abcdefgh"[:n_nodes])
    pairs = list(itertools.combinations(names, 2))
    chosen = [pair for pair in pairs if rng.random() < 0.45]
    sizes = {name: n_values or int(rng.integers(2, 4)) for name in names}
    graph = Graph(chosen, names)
    factors = [
        Factor.of(clique, rng.normal(scale=2.0, size=[sizes[node] for node in clique]))
        for clique in graph.cliques()
    ]
    return RandomField(factors, names), graph


def states(field):
    """All combinations of values, as mappings."""
    for values in itertools.product(*map(range, field.sizes)):
        yield dict(zip(field.nodes, values, strict=True))


def by_hand(field, values):
    return sum(factor.scores[tuple(values[node] for node in factor.nodes)]
               for factor in field.factors)  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_are_those_of_enumeration(seed):
    field, _ = random_field(seed)
    every = list(states(field))
    scores = np.array([by_hand(field, values) for values in every])
    log_z = logsumexp(scores)
    assert field.log_partition == pytest.approx(log_z, abs=1e-12)
    np.testing.assert_allclose(field.joint.ravel(), np.exp(scores - log_z), atol=1e-15)
    assert field.argmax() == every[int(scores.argmax())]
    for values, score in zip(every[::7], scores[::7], strict=True):
        assert field.score(values) == pytest.approx(score, abs=1e-12)
        assert field.log_probability(values) == pytest.approx(score - log_z, abs=1e-12)

    def probability(**known):
        keeps = [all(values[n] == v for n, v in known.items()) for values in every]
        return np.exp(scores[keeps] - log_z).sum()

    c, a = field.nodes[2], field.nodes[0]
    both, given_a = field.marginal(c, a), field.conditional([c], [a])
    for i, j in np.ndindex(both.shape):
        expected = probability(**{c: i, a: j})
        np.testing.assert_allclose(both[i, j], expected, atol=1e-14)
        np.testing.assert_allclose(given_a[i, j], expected / probability(**{a: j}), atol=1e-14)
        np.testing.assert_allclose(field.log_probability({c: i, a: j}), np.log(expected))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_product_over_cliques_has_all_markov_properties(seed):
    """Hammersley and Clifford, the easy way: local and global, also given sets that separate."""
    field, graph = random_field(seed)
    assert field.graph.edges == graph.edges
    statements = [
        *graph.pairwise_independences(),
        *graph.local_independences(),
        *graph.global_independences(),
    ]
    assert all(graph.separates(s.given, s.left, s.right) for s in statements)
    assert max(field.dependence(*s) for s in statements) < 1e-12
    # P(X_A | all others) = P(X_A | neighbors), of sets too.
    for chosen in (field.nodes[:1], field.nodes[1:3]):
        near = graph.neighbors(*chosen)
        far = [node for node in field.nodes if node not in {*chosen, *near}]
        given_all = field.conditional(chosen, [*near, *far])
        given_near = field.conditional(chosen, near)
        shape = given_near.shape + (1,) * len(far)
        np.testing.assert_allclose(given_all, np.broadcast_to(
            given_near.reshape(shape), given_all.shape), rtol=1e-12)  # fmt: skip
    # And what is not separated depends on one another, where nothing is accidental.
    for u, v in graph.edges:
        assert field.dependence([u], [v], [n for n in field.nodes if n not in (u, v)]) > 1e-4


def test_eight_nodes_on_a_ring_are_independent_given_two_that_separate_them():
    rng = np.random.default_rng(0)
    ring = [(i, (i + 1) % 8) for i in range(8)]
    field = RandomField(Factor.of(edge, rng.uniform(1.0, 2.0) * np.eye(2)) for edge in ring)
    assert field.dependence([1, 2, 3], [5, 6, 7], given=[0, 4]) < 1e-14
    assert field.dependence([1, 2, 3], [5, 6, 7], given=[0]) > 1e-3
    assert field.dependence([1], [5]) > 1e-4
    assert all(field.dependence(*s) < 1e-12 for s in field.graph.local_independences())


def test_potentials_are_not_marginals():
    """A pair may have the larger potential where it agrees, and agree less often than not."""
    agree, differ = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1.0, 9.0], [9.0, 1.0]])
    strong = differ[::-1]
    field = RandomField(
        [
            Factor.of_potentials("ab", agree),
            Factor.of_potentials("bc", strong),
            Factor.of_potentials("ca", differ),
        ]
    )
    pair = field.marginal("a", "b")
    assert pair[0, 0] < pair[0, 1] and agree[0, 0] > agree[0, 1]
    # Nor is the joint distribution the product of marginals of cliques, but on trees, where
    # products of pairs are divided by what single nodes count twice.
    chain = RandomField([Factor.of_potentials("ab", agree), Factor.of_potentials("bc", differ)])
    product = np.einsum("ab,bc,b->abc", chain.marginal("a", "b"), chain.marginal("b", "c"),
                        1.0 / chain.marginal("b"))  # fmt: skip
    np.testing.assert_allclose(product, chain.joint, rtol=1e-14)
    # Different potentials give one distribution: what one factor says of b, another may say.
    told = np.array([3.0, -1.0])
    moved = RandomField(
        [
            ("ab", np.log(agree) + told),
            ("bc", np.log(strong) - told[:, None]),
            Factor.of_potentials("ca", differ),
        ]
    )
    np.testing.assert_allclose(moved.joint, field.joint, rtol=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_local_markov_property_leaves_canonical_potentials_on_cliques_alone(seed):
    """Hammersley and Clifford, the hard way: nothing but the table of probabilities is known."""
    field, graph = random_field(seed)
    reference = {node: size - 1 for node, size in zip(field.nodes, field.sizes, strict=True)}
    for base in ({}, reference):
        factors = canonical_factors(field.joint, field.nodes, base)
        assert {f.nodes for f in factors if len(f.nodes) == 2} <= set(graph.edges)
        assert all(graph.is_clique(factor.nodes) for factor in factors)
        again = RandomField(factors, field.nodes)
        assert again.graph.edges == graph.edges
        assert again.log_partition == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_allclose(again.joint, field.joint, rtol=1e-9)
        for factor in factors[1:]:
            for axis, node in enumerate(factor.nodes):
                assert not factor.scores.take(base.get(node, 0), axis).any()


def test_canonical_potentials_are_sums_over_subsets_with_signs():
    field, _ = random_field(3)
    log_p = np.log(field.joint)
    for factor in canonical_factors(field.joint, field.nodes, tol=-1.0):
        places = [field.nodes.index(node) for node in factor.nodes]
        for values in np.ndindex(factor.scores.shape):
            total = 0.0
            for kept in itertools.product([0, 1], repeat=len(values)):
                state = np.zeros(len(field.nodes), int)
                state[places] = np.multiply(values, kept)
                total += (-1) ** (len(values) - sum(kept)) * log_p[tuple(state)]
            assert factor.scores[values] == pytest.approx(total, abs=1e-12)


def test_distributions_that_are_not_positive_may_be_markov_without_clique_potentials():
    """Eight of the sixteen states of four nodes on a ring (Moussouri 1974)."""
    shown = ["0000", "1000", "1100", "1110", "0001", "0011", "0111", "1111"]
    table = np.zeros((2, 2, 2, 2))
    for state in shown:
        table[tuple(map(int, state))] = 1 / 8
    ring = Graph([(0, 1), (1, 2), (2, 3), (3, 0)])
    field = RandomField([Factor.of_potentials(range(4), table)])
    for statement in (*ring.local_independences(), *ring.global_independences()):
        assert field.dependence(*statement) == 0.0
    # Potentials of pairs that occur are positive, so their product is so everywhere.
    assert all((field.marginal(*edge) > 0.0).all() for edge in ring.edges)
    with pytest.raises(ValueError, match="no positive probability"):
        canonical_factors(table, range(4))


def chain_field(unary, pair):
    """The random field of a linear chain."""
    labels = [Factor.of([t], row) for t, row in enumerate(unary)]
    return RandomField([*labels, *(Factor.of([t, t + 1], pair) for t in range(len(unary) - 1))])


def test_a_chain_is_the_structure_of_chains(rng):
    unary, pair = rng.normal(size=(6, 3)), rng.normal(size=(3, 3))
    pair[1, 2] = -np.inf
    scores = ChainPotentials.of(unary, pair[None], np.array([0, 6]))
    out = Counts(np.zeros_like(unary), np.zeros_like(scores.pair))
    log_z = Chain().log_partition(scores, np.ones(1), out)
    field = chain_field(unary, pair)
    assert field.graph.cliques() == [(t, t + 1) for t in range(5)]
    np.testing.assert_allclose(field.log_partition, log_z[0], rtol=1e-13)
    np.testing.assert_allclose([field.marginal(t) for t in range(6)], out.unary, atol=1e-13)
    pairs = sum(field.marginal(t, t + 1) for t in range(5))
    np.testing.assert_allclose(pairs, out.pair[0], atol=1e-13)
    labels, best = Chain().argmax(scores)
    assert list(field.argmax().values()) == labels.tolist()
    np.testing.assert_allclose(field.score(field.argmax()), best[0], rtol=1e-13)


def test_a_field_with_known_nodes_is_a_conditional_random_field():
    """Labels and words of four tokens: given the words, labels are a chain, and so are scores."""
    rng = np.random.default_rng(1)
    pair, told = rng.normal(size=(2, 2)), rng.normal(size=(2, 3))
    steps = [Factor.of([f"y{t}", f"y{t + 1}"], pair) for t in range(3)]
    words = [Factor.of([f"y{t}", f"x{t}"], told) for t in range(4)]
    field = RandomField([*steps, *words])
    labels = [f"y{t}" for t in range(4)]
    seen = {"x0": 2, "x1": 0, "x2": 0, "x3": 1}
    given = field.clamped(seen)
    assert set(given.nodes) == set(labels)
    expected = field.conditional(labels, list(seen))[..., 2, 0, 0, 1]
    np.testing.assert_allclose(given.marginal(*labels), expected, rtol=1e-12)
    unary = told[:, list(seen.values())].T
    np.testing.assert_allclose(given.log_partition, chain_field(unary, pair).log_partition)
    np.testing.assert_allclose(
        np.log(field.marginal(*seen)[2, 0, 0, 1]), field.log_probability(seen), rtol=1e-12
    )
    # Its Markov property is that of the labels alone, given all words.
    for v, others, near in given.graph.local_independences():
        assert field.dependence(v, others, [*near, *seen]) < 1e-12
        for node in near:
            rest = [n for n in near if n != node]
            assert field.dependence(v, [node], [*rest, *others, *seen]) > 1e-3


def test_graphs():
    graph = Graph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")], nodes="aeb")
    assert graph.nodes == ("a", "e", "b", "c", "d")
    assert graph.edges == [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]
    assert graph.cliques() == [("a", "b", "c"), ("e",), ("c", "d")]
    assert graph.neighbors("c", "a") == ("b", "d")
    assert graph.components() == [("a", "b", "c", "d"), ("e",)]
    assert graph.components(["c"]) == [("a", "b"), ("e",), ("d",)]
    assert graph.separates("c", "ab", "d") and not graph.separates("b", "a", "d")
    assert not graph.is_clique("abd") and graph.is_clique("a")
    assert Graph([]).cliques() == [] == list(Graph([]).global_independences())
    assert Graph.of_cliques(["abc", "cd", "e"]).edges == graph.edges
    with pytest.raises(ValueError, match="from 'a' to itself"):
        Graph(["aa"])


@pytest.mark.parametrize("seed", SEEDS)
def test_cliques_and_separation_are_those_of_the_definitions(seed):
    _, graph = random_field(seed, n_nodes=7)
    sets = [s for n in range(1, 8) for s in itertools.combinations(graph.nodes, n)]
    every = [set(s) for s in sets if graph.is_clique(s)]
    largest = [c for c in every if not any(c < other for other in every)]
    assert sorted(map(sorted, largest)) == sorted(map(sorted, graph.cliques()))
    for given in sets[::5]:
        left = [n for n in graph.nodes if n not in given]
        for part in graph.components(given):
            near = set(graph.neighbors(*part))
            assert near <= set(given)  # a path out of it leads through what is given
            assert graph.separates(given, part, [n for n in left if n not in part])


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([("ab", np.zeros(3))], "an axis for each"),
        ([("aa", np.zeros((2, 2)))], "an axis for each"),
        ([("a", [0.0, np.nan])], "nan or inf"),
        ([("a", np.zeros(2)), ("ab", np.zeros((3, 2)))], "'a' has 2 values in one factor, 3"),
    ],
)
def test_factors_that_do_not_fit_are_refused(factors, message):
    with pytest.raises(ValueError, match=message):
        RandomField(factors)


def test_more_than_four_million_combinations_are_not_enumerated():
    field = RandomField([(range(6), np.zeros([2] * 6)), ((6,), np.ones(1 << 20))])
    assert field.score(dict.fromkeys(range(7), 0)) == 1.0
    assert field.clamped({6: 0}).log_partition == pytest.approx(1.0 + math.log(64))
    with pytest.raises(ValueError, match=r"2\^26.0 combinations"):
        field.joint  # noqa: B018


def test_wrong_questions_are_refused():
    field = RandomField([("ab", [[0.0, 0.0], [-np.inf, -np.inf]])])
    with pytest.raises(ValueError, match="no factor has 'z'"):
        RandomField(field.factors, "z")
    for values in ({"z": 0}, {"a": 2}, {"a": -1}):
        with pytest.raises(ValueError, match="no variable .* has the value"):
            field.clamped(values)
    with pytest.raises(ValueError, match="'a' has no value"):
        field.score({"b": 0})
    with pytest.raises(ValueError, match="no variable 'b' has the value -1"):
        field.score({"a": 1, "b": -1})
    assert field.score({"a": True, "b": 0}) == field.score({"a": 1, "b": 0}) == -math.inf
    for nodes in ("aa", "z"):
        with pytest.raises(ValueError, match="are not variables of the field, all different"):
            field.marginal(*nodes)
    with pytest.raises(ValueError, match="'b' has no values"):
        RandomField([("ab", np.zeros((2, 0)))])
    assert field.clamped({"a": False}).log_partition == field.clamped({"a": 0}).log_partition
    assert field.log_probability({"b": 1}) == pytest.approx(math.log(0.5))
    assert np.isnan(field.conditional("b", "a")[:, 1]).all()
    with pytest.raises(ValueError, match="score -inf"):
        field.clamped({"a": 1}).log_partition  # noqa: B018
