"""Baselines of collective classification."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline

import crfkit
from crfkit import UNLABELED, TokenClassifier
from crfkit.collective import (
    GibbsClassifier,
    IterativeClassifier,
    LabelPropagation,
    NeighborFeatures,
    NodeClassifier,
)
from crfkit.collective.links import adjacency_of, colors
from crfkit.collective.local import AGGREGATES
from crfkit.collective.relational import Sweeps
from crfkit.data import FeatureGraph
from crfkit.datasets import make_planted_partition
from crfkit.features import GraphVectorizer

LOCAL = TokenClassifier(c2=1.0, all_possible_states=True)
DATA = make_planted_partition(300, n_graphs=2, random_state=0)
TRAIN, TEST = (DATA.X[:1], DATA.y[:1]), (DATA.X[1:], DATA.y[1:])
ALL = [
    NodeClassifier(),
    IterativeClassifier(),
    IterativeClassifier(soft=True, aggregate="proportion", n_rounds=2),
    GibbsClassifier(burn_in=2, n_samples=5, random_state=0),
    LabelPropagation(estimator=LOCAL),
    LabelPropagation(estimator=LOCAL, method="spreading"),
]


def hidden(y, share, seed=0):
    """Labels of which a share is left, the first of each label among them."""
    keep = np.random.default_rng(seed).uniform(size=len(y)) < share
    keep[np.unique(y, return_index=True)[1]] = True
    return [label if kept else UNLABELED for label, kept in zip(y, keep, strict=True)]


def test_neighbors_labels_tell_what_attributes_do_not():
    data = make_planted_partition(400, p_correct=0.7, n_graphs=2, random_state=0)
    train, test = (data.X[:1], data.y[:1]), (data.X[1:], data.y[1:])
    alone = NodeClassifier(estimator=LOCAL).fit(*train).score(*test)
    for model in (
        IterativeClassifier(estimator=LOCAL),
        GibbsClassifier(estimator=LOCAL, burn_in=10, n_samples=20, random_state=0),
    ):
        assert model.fit(*train).score(*test) > alone + 0.1


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_known_labels_are_kept_and_probabilities_are_distributions(model):
    y = hidden(DATA.y[0], 0.5)
    model = clone(model).fit(DATA.X[:1], [y])
    proba = model.predict_proba(DATA.X[:1], known=[y])[0]
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    labels = model.predict(DATA.X[:1], known=[y])
    assert labels == model.transduction_
    assert model.classes_[proba.argmax(axis=1)].tolist() == labels[0]
    for label, known in zip(labels[0], y, strict=True):
        assert known in (UNLABELED, label)


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_a_copy_a_file_and_a_graph_beside_others_give_the_same(model, tmp_path):
    model = clone(model).fit(*TRAIN)
    expected = model.predict_proba(TEST[0])[0]
    model.save(tmp_path / "model")
    for other in (clone(model).fit(*TRAIN), crfkit.load(tmp_path / "model")):
        np.testing.assert_array_equal(other.predict_proba(TEST[0])[0], expected)
    beside = model.predict_proba([*TEST[0], *TRAIN[0]])
    assert [len(rows) for rows in beside] == [300, 300]
    if not isinstance(model, GibbsClassifier):  # whose random numbers are those of all nodes
        np.testing.assert_allclose(
            beside[0], expected, atol=1e-3 if "soft" in repr(model) else 1e-9
        )


def test_labels_stand_at_a_fixed_point_of_the_classifier():
    y = hidden(DATA.y[0], 0.3)
    model = IterativeClassifier(estimator=LOCAL).fit(DATA.X[:1], [y])
    network = model._network(DATA.X[:1], [y])
    codes = np.searchsorted(model.classes_.astype(str), model.transduction_[0])
    sweeps = Sweeps(model.estimator_, "count", network, np.eye(4)[codes])
    for nodes, proba in sweeps.groups():
        np.testing.assert_array_equal(proba.argmax(axis=1), codes[nodes])


def test_groups_of_nodes_have_no_edges_within_and_all_nodes():
    links = adjacency_of(GraphVectorizer().fit_transform(DATA.X[:1]))
    groups = colors(links)
    assert sorted(np.concatenate(groups).tolist()) == list(range(300))
    assert all(links[group][:, group].nnz == 0 for group in groups)


def test_gibbs_sampling_finds_the_marginals_of_a_pair():
    """Two nodes, whose conditional probabilities are those of a model: the marginals are known."""
    rng = np.random.default_rng(0)
    both = rng.choice(4, p=[0.5, 0.1, 0.15, 0.25], size=2000)
    X = [FeatureGraph([["a"], ["b"]] * 2000, np.arange(4000).reshape(-1, 2))]
    y = [np.column_stack([both // 2, both % 2]).ravel().tolist()]
    local = TokenClassifier(c2=1e-4, all_possible_states=True)
    model = GibbsClassifier(estimator=local, aggregate="exists", burn_in=5, n_samples=20,
                            random_state=0).fit(X, y)  # fmt: skip
    found = model.predict_proba(X)[0][:, 1].reshape(-1, 2).mean(axis=0)
    np.testing.assert_allclose(found, np.reshape(y, (-1, 2)).mean(axis=0), atol=0.03)


def closed_form(links, y, classes, method, alpha=0.9):
    """What labels spread to, by inverses of dense matrices."""
    given = np.array([[label == one for one in classes] for label in y], float)
    degrees = links.sum(axis=1)
    if method == "spreading":
        scale = np.diag(degrees**-0.5)
        found = np.linalg.inv(np.eye(len(y)) - alpha * scale @ links @ scale) @ given
    else:
        free = given.sum(axis=1) == 0
        walk = links / degrees[:, None]
        inner = np.linalg.inv(np.eye(free.sum()) - walk[free][:, free])
        found = given.copy()
        found[free] = inner @ walk[free] @ given
    return found / found.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("method", ["harmonic", "spreading"])
def test_label_propagation_is_its_closed_form(method):
    rng = np.random.default_rng(1)
    edges = np.array([(i, rng.integers(i)) for i in range(1, 40)] + [(0, 39), (5, 30), (5, 30)])
    graph = FeatureGraph(np.ones((40, 1)), edges)
    y = hidden(rng.integers(3, size=40).tolist(), 0.2)
    model = LabelPropagation(method=method).fit([graph], [y])
    links = np.zeros((40, 40))
    np.add.at(links, tuple(edges.T), 1.0)
    expected = closed_form(links + links.T, y, model.classes_, method)
    free = [label is UNLABELED for label in y]
    found = model.predict_proba([graph], known=[y])[0]
    np.testing.assert_allclose(found[free], expected[free], atol=1e-8)


def test_what_a_classifier_says_counts_as_one_more_neighbor():
    """A node between two known ones, and one without edges."""
    graph = FeatureGraph([["a"], ["a"], ["b"], ["b"]], [(0, 1), (1, 2)])
    y = [["A", UNLABELED, "B", UNLABELED]]
    model = LabelPropagation(estimator=LOCAL, weight=0.5).fit([graph], y)
    found = model.predict_proba([graph], known=y)[0]
    alone = NodeClassifier(estimator=LOCAL).fit([graph], y).predict_proba([graph])[0]
    np.testing.assert_allclose(found[1], 0.5 * np.array([0.5, 0.5]) + 0.5 * alone[1])
    np.testing.assert_allclose(found[3], alone[3])
    plain = LabelPropagation().fit([graph], y)
    assert plain.predict_proba([graph], known=y)[0][3].tolist() == [0.5, 0.5]  # the prior


def test_label_propagation_needs_labels_or_a_classifier():
    model = LabelPropagation().fit([DATA.X[0]], [hidden(DATA.y[0], 0.1)])
    with pytest.raises(ValueError, match="no label of the graphs is known"):
        model.predict(TEST[0])


@pytest.mark.parametrize("aggregate", ["mean", "sum", "count", "normalized"])
@pytest.mark.parametrize("dense", [False, True])
def test_features_of_neighbors_are_products_of_dense_matrices(aggregate, dense):
    rng = np.random.default_rng(2)
    values = [rng.integers(3, size=(n, 4)).astype(float) for n in (6, 1, 4)]
    edges = [[(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (3, 4)], [], [(0, 1)]]
    nodes = values if dense else [sp.csr_array(rows) for rows in values]
    X = [FeatureGraph(rows, own) for rows, own in zip(nodes, edges, strict=True)]
    packed = NeighborFeatures(hops=[0, 2, 1], aggregate=aggregate).fit_transform(X)
    assert (packed.dense is not None) == dense
    for s, rows in enumerate(values):
        A = np.zeros((len(rows), len(rows)))
        for i, j in edges[s]:
            A[i, j] += 1
            A[j, i] += 1
        own = np.maximum(A.sum(axis=1), 1.0)
        A1 = A + np.eye(len(A))
        root = np.diag(A1.sum(axis=1) ** -0.5)
        step = {"mean": A / own[:, None], "normalized": root @ A1 @ root}.get(aggregate, A)
        first = (rows != 0) if aggregate == "count" else rows
        expected = np.hstack([rows, step @ step @ first, step @ first])
        begin, end = packed.offsets[s : s + 2]
        np.testing.assert_allclose(packed.to_csr().toarray()[begin:end], expected, atol=1e-12)
    assert packed.topology.source.tolist() == [i for own in edges for i, _ in own]
    assert packed.feature_names[4] == f"2 {aggregate}__0"


def test_pipelines_and_searches_over_graphs():
    X = make_planted_partition(60, n_graphs=4, random_state=1)
    search = GridSearchCV(
        make_pipeline(NeighborFeatures(), IterativeClassifier()),
        {"neighborfeatures__hops": [(0,), (0, 1)]}, cv=2,
    ).fit(X.X, X.y)  # fmt: skip
    assert search.best_score_ > 0.5  # one in four by chance
    assert [len(labels) for labels in search.predict(X.X)] == [60] * 4


def test_labels_that_still_change_are_a_warning():
    model = IterativeClassifier(estimator=LOCAL, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="labels still change after max_iter=1 passes"):
        model.fit(*TRAIN).predict(TEST[0])


def test_what_a_node_is_told_of_its_neighbors():
    counts = np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, 2.0]])
    expected = {
        "count": counts,
        "proportion": [[0.25, 0.75, 0.0], [0.0, 0.0, 0.0], [0.5, 0.0, 0.5]],
        "mode": [[0, 1, 0], [0, 0, 0], [1, 0, 0]],
        "exists": [[1, 1, 0], [0, 0, 0], [1, 0, 1]],
    }
    assert expected.keys() == AGGREGATES.keys()
    for name, rows in expected.items():
        np.testing.assert_array_equal(AGGREGATES[name](counts), rows)


@pytest.mark.parametrize("estimator", [LogisticRegression(), BernoulliNB(), TokenClassifier()])
def test_any_classifier_with_probabilities_is_a_local_one(estimator):
    model = IterativeClassifier(estimator=estimator).fit(*TRAIN)
    assert model.score(*TEST) > 0.5


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (IterativeClassifier(aggregate="max"), ["a", "b"], "aggregate='max' is not known"),
        (IterativeClassifier(estimator=NeighborFeatures()), ["a", "b"], "'predict_proba'"),
        (GibbsClassifier(n_samples=0), ["a", "b"], "n_samples=0 must be at least 1"),
        (LabelPropagation(alpha=1.0), ["a", "b"], "alpha=1.0 must be below 1"),
        (LabelPropagation(weight=2), ["a", "b"], "weight=2 must be at most 1"),
        (NodeClassifier(), ["a"], "X has 2 .*, but y has 1 items"),
        (NodeClassifier(), [UNLABELED, UNLABELED], "there is nothing to learn from"),
        (NodeClassifier(), ["c", {"a", "b"}], "position 1: the label is one of several"),
    ],
)
def test_what_cannot_be_used_is_an_error(model, y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit([FeatureGraph([["a"], ["b"]], [(0, 1)])], [y])


def test_new_graphs_must_be_like_those_of_the_fit():
    model = NodeClassifier().fit([FeatureGraph(np.eye(3), [(0, 1)])], [["a", "b", "b"]])
    with pytest.raises(ValueError, match="2 features"):
        model.predict([FeatureGraph(np.eye(2), [(0, 1)])])
    with pytest.raises(ValueError, match="position 1: the known label"):
        model.predict([FeatureGraph(np.eye(3), [])], known=[["a", "c", UNLABELED]])
    with pytest.raises(ValueError, match="must name different hops"):
        NeighborFeatures(hops=[1, 1]).fit([FeatureGraph(np.eye(3), [])])
