"""Weights of graphs: gradients, the model of chains and forests, types of nodes, kinds of pairs."""

from types import SimpleNamespace

import numpy as np
import pytest

from crfkit._parallel import SERIAL, Chunk
from crfkit.data import UNLABELED, Edges, Forest, PackedSequences
from crfkit.graphs.structure import GraphStructure
from crfkit.labels.base import TokenLabels
from crfkit.losses import LOSSES
from crfkit.objective.penalties import ElasticNet
from crfkit.persistence.checks import check_chain_model
from crfkit.potentials.base import FeatureChoice
from crfkit.potentials.blocks import sparse_counts
from crfkit.potentials.graph import PAIRS_OF_LABELS, GraphWeights
from crfkit.solvers import LBFGS
from crfkit.training.fit import Fit, Problem
from crfkit.training.start import weights_of

LENGTHS = [3, 1, 4, 2]
PAIRS = [[(0, 1), (2, 1), (2, 0)], [], [(0, 1), (1, 2), (3, 2), (3, 0), (0, 1)], [(1, 0)]]
Y = [["a", "b", "a"], ["b"], ["c", "c", "a", "b"], ["b", "a"]]


def graphs(pairs=PAIRS, types=None, own=True, positive=False):
    """Random features of small graphs, and of their edges."""
    rng = np.random.default_rng(0)
    nodes = PackedSequences.from_flat(rng.normal(size=(sum(LENGTHS), 3)), LENGTHS)
    data = nodes.with_topology(Edges.of_graphs(pairs, LENGTHS, types))
    if own:
        values = rng.normal(size=(sum(map(len, pairs)), 2)).round(1)
        values = abs(values) if positive else values
        of_edges = PackedSequences.from_flat(values, [*map(len, pairs)])
        data = data.with_transitions(of_edges)
    return data


def problem(kind, loss="log", **options):
    weights = GraphWeights(TokenLabels(), GraphStructure(directed=kind == "directed"), kind)
    return Problem(
        TokenLabels(),
        lambda training: LOSSES[loss](),
        ElasticNet(0.0, 0.1),
        LBFGS(**options),
        weights=weights,
    )


def fit_of(task, data, y=Y):
    return Fit(task, task.read(data, y))


def objective_of(fit):
    return fit.problem.objective(fit.model, fit.training, SERIAL)


@pytest.mark.parametrize("loss", ["log", "pseudolikelihood"])
@pytest.mark.parametrize("kind", PAIRS_OF_LABELS)
def test_gradients_are_differences_and_fitted_weights_give_the_same_scores(kind, loss):
    data = graphs(positive=True)
    fit = fit_of(problem(kind, loss), data)
    objective, rng, step = objective_of(fit), np.random.default_rng(1), 1e-6
    w = rng.normal(size=fit.model.n_parameters)
    gradient = objective.value_and_grad(w)[1]
    for i in range(len(w)):
        change = step * (np.arange(len(w)) == i)
        above, below = (objective.value_and_grad(w + sign * change)[0] for sign in (1, -1))
        assert gradient[i] == pytest.approx((above - below) / (2 * step), abs=1e-5)
    fitted = SimpleNamespace(**fit.attributes(w))
    model, bound = fit.problem.weights.model(fitted, sparse_counts(data))
    chunk = Chunk(0, data.offsets)
    ours, again = fit.model.scores(fit.model.bind(w), data, chunk), model.scores(bound, data, chunk)
    np.testing.assert_allclose(again.unary, ours.unary, atol=1e-14)
    np.testing.assert_allclose(again.pair, ours.pair, atol=1e-14)
    np.testing.assert_array_equal(weights_of(vars(fitted), fit), w)  # a warm start
    if kind != "directed":
        np.testing.assert_array_equal(fitted.transitions_, fitted.transitions_.T)
        np.testing.assert_array_equal(ours.pair, ours.pair.transpose(0, 2, 1))


def test_it_does_not_matter_in_which_direction_an_edge_of_an_undirected_graph_is_written():
    turned = [[(v, u) for u, v in edges] for edges in PAIRS]
    results = []
    for pairs in (PAIRS, turned):
        fit = fit_of(problem("undirected", tol=1e-10), graphs(pairs))
        results.append(fit.run(fit.start()))
    assert results[0].value == pytest.approx(results[1].value, rel=1e-12)
    np.testing.assert_allclose(results[0].parameters, results[1].parameters, atol=1e-6)


@pytest.mark.parametrize("shape", ["chain", "forest"])
def test_a_chain_or_forest_written_as_a_graph_has_the_objective_and_weights_of_one(shape):
    data = graphs(own=False).with_topology(None)
    rng, parents = np.random.default_rng(3), [[None, 0, 0], [None], [2, None, 1, 1], [1, None]]
    attributes = PackedSequences.from_flat(rng.normal(size=(sum(LENGTHS), 2)), LENGTHS)
    sequences = data.with_transitions(attributes)
    if shape == "forest":
        sequences = sequences.with_topology(Forest.from_lists(parents))
    source, target = sequences.ends
    kept = np.flatnonzero(source >= 0)
    counts = np.diff(np.searchsorted(kept, data.offsets))
    begin, starts = np.repeat(data.offsets[:-1], counts), np.cumsum([0, *counts])
    edges = Edges(source[kept] - begin, target[kept] - begin, data.offsets, starts)
    own = PackedSequences.from_flat(attributes.dense[kept], counts)
    graph = data.with_topology(edges).with_transitions(own)
    every = FeatureChoice(all_possible_transitions=True)
    plain = Problem(
        TokenLabels(),
        lambda training: LOSSES["log"](),
        ElasticNet(0.0, 0.1),
        LBFGS(tol=1e-12),
        features=every,
    )
    results = [
        fit.run(fit.start())
        for fit in (fit_of(plain, sequences), fit_of(problem("directed", tol=1e-12), graph))
    ]
    assert results[0].value == pytest.approx(results[1].value, rel=1e-10)
    np.testing.assert_allclose(results[1].parameters, results[0].parameters, atol=1e-8)
    w = rng.normal(size=len(results[0].parameters))
    values = [
        objective_of(fit_of(task, x)).value_and_grad(w)
        for task, x in ((plain, sequences), (problem("directed"), graph))
    ]
    np.testing.assert_allclose(values[1][0], values[0][0], rtol=1e-12)
    np.testing.assert_allclose(values[1][1], values[0][1], atol=1e-12)


TYPES = [["x", "y", "x"], ["y"], ["z", "z", "x", "y"], ["y", "x"]]


def test_nodes_have_labels_of_their_type_alone():
    y = [["a", "b", "d"], ["b"], ["c", UNLABELED, "a", "b"], [UNLABELED, "a"]]
    fit = fit_of(problem("undirected"), graphs(types=TYPES), y)
    model = fit.model
    named = {
        name: fit.training.classes[row].tolist()
        for name, row in zip(model.type_names.tolist(), model.type_labels, strict=True)
    }
    assert named == {"x": ["a", "d"], "y": ["b"], "z": ["c"]}
    rng, w = np.random.default_rng(0), np.zeros(model.n_parameters)
    w += rng.normal(size=len(w))
    part = graphs(types=TYPES)[[2, 3]]  # whose types are numbered alike, though "x" is not named
    scores = model.scores(model.bind(w), part, Chunk(0, part.offsets))
    labels = fit.training.classes[model.structure.argmax(scores)[0]].tolist()
    types = [name for own in TYPES[2:] for name in own]
    assert all(label in named[name] for label, name in zip(labels, types, strict=True))
    assert np.isfinite(objective_of(fit).value_and_grad(w)[0])
    bound, chunk = model.bind(w), Chunk(0, part.offsets)
    other = part.with_topology(Edges.of_graphs(PAIRS[2:], LENGTHS[2:], [["x"] * 4, ["x", "q"]]))
    with pytest.raises(ValueError, match="graph 1, node 1: the type 'q' was not among"):
        model.scores(bound, other, chunk)
    none = part.with_topology(Edges.of_graphs(PAIRS[2:], LENGTHS[2:]))
    with pytest.raises(ValueError, match="X has no types of nodes, but the model was fitted"):
        model.scores(bound, none, chunk)
    plain = fit_of(problem("undirected"), graphs()).model
    with pytest.raises(ValueError, match="X has types of nodes, but the model was fitted without"):
        plain.scores(plain.bind(np.zeros(plain.n_parameters)), part, chunk)
    unknown = [UNLABELED, UNLABELED, "a", "b"]
    with pytest.raises(ValueError, match="sequence 2, position 0: no node of the type 'z'"):
        fit_of(problem("undirected"), graphs(types=TYPES), [*y[:2], unknown, y[3]])


def test_associative_weights_are_those_of_equal_labels_and_may_not_be_negative():
    data = graphs(positive=True)
    fit = fit_of(problem("associative"), data)
    result = fit.run(fit.start())
    fitted = fit.attributes(result.parameters)
    assert fit.model.parameter_counts == {
        "attribute x label": 9,
        "label x label": 3,
        "attribute x label x label": 6,
    }
    assert fit.model.nonnegative.tolist() == [False] * 9 + [True] * 9
    assert (fitted["transitions_"] >= 0).all() and (fitted["transition_coef_"].data >= 0).all()
    off = ~np.eye(3, dtype=bool)
    assert not fitted["transitions_"][off].any()
    assert not fitted["transition_coef_"].toarray().reshape(2, 3, 3)[:, off].any()
    with pytest.raises(ValueError, match=r"graph \d, edge \d, attribute 0: the value is -"):
        fit_of(problem("associative"), graphs())
    model, bound = fit.problem.weights.model(SimpleNamespace(**fitted), sparse_counts(data))
    with pytest.raises(ValueError, match="must not be negative"):
        model.scores(bound, graphs(), Chunk(0, data.offsets))


def test_data_without_edges_are_refused():
    with pytest.raises(ValueError, match="X has no edges: give graphs"):
        fit_of(problem("directed"), graphs(own=False).with_topology(None))
    forest = Forest([-1] * 10, np.cumsum([0, *LENGTHS]))
    with pytest.raises(ValueError, match="X has a Forest, no graphs"):
        fit_of(problem("directed"), graphs(own=False).with_topology(forest))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("edge_weights_", "both", "does not say which pairs"),
        ("transitions_", np.triu(np.ones((3, 3))), "not symmetric"),
        ("type_labels_", np.ones((2, 3), bool), "type_labels_ is no array of bool"),
        ("type_names_", np.array(["x", "x", "y"], object), "not distinct"),
        ("type_names_", None, "type_names_ is no list"),
    ],
)
def test_damaged_attributes_in_files_are_refused(name, value, says):
    y = [["a", "b", "a"], ["b"], ["c", "c", "a", "b"], ["b", "a"]]
    fit = fit_of(problem("undirected"), graphs(types=TYPES), y)
    model = SimpleNamespace(**fit.attributes(np.ones(fit.model.n_parameters)), n_jobs=1)
    check_chain_model(model)
    setattr(model, name, value)
    with pytest.raises(ValueError, match=says):
        check_chain_model(model)
