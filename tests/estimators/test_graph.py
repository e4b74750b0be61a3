"""GraphCRF: chains and trees as other estimators have them, and graphs as enumeration does."""

import pickle
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from crfkit import UNLABELED, CRFClassifier, GraphCRF, SequenceVectorizer, TreeFeatures
from crfkit.constraints import Count, Known
from crfkit.data import FeatureGraph
from crfkit.features import GraphVectorizer, SkipChainFeatures
from crfkit.graphs import (
    complete,
    grid,
    multilabel_graphs,
    multilabel_indicators,
    multilabel_labels,
)
from crfkit.graphs.junction_tree import JunctionTree
from crfkit.graphs.methods import BudgetError
from crfkit.persistence import dumps, loads
from crfkit.solvers import OEG, SAG
from crfkit.solvers.margin import BlockFrankWolfe, CuttingPlane, Subgradient
from crfkit.structures import MissingCapabilityError
from tests.estimators.checks import parametrize_variants


def images(count, seed=0, size=(3, 3)):
    """Graphs of pixels whose colors are noisy, and labels of regions."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        edges, ways = grid(*size)
        half = np.arange(size[1]) < rng.integers(size[1] + 1)
        truth = np.tile(half, size[0]).astype(int)
        nodes = np.column_stack([np.ones(truth.size), truth + rng.normal(0.0, 0.7, truth.size)])
        X.append(FeatureGraph(nodes, edges, ways))
        y.append(["ab"[label] for label in truth])
    return X, y


X, Y = images(20)


@parametrize_variants([GraphCRF(directed=True)], reading=False)
def test_it_is_an_estimator_of_sequences(estimator, check):
    check(estimator)


def sentences(count, seed=0):
    """Words, parents and labels that depend on both."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        words, labels = rng.integers(3, size=rng.integers(1, 7)).tolist(), [0]
        heads = [None, *(int(rng.integers(t)) for t in range(1, len(words)))]
        for t in range(1, len(words)):
            labels.append(words[t] if words[t] else (labels[heads[t]] + 1) % 3)
        X.append(
            [
                {"w": str(w), "parent": -1 if h is None else h}
                for w, h in zip(words, heads, strict=True)
            ]
        )
        y.append([f"L{label}" for label in labels])
    return X, y


TREES, TAGS = sentences(30)


@pytest.mark.parametrize("options", [{}, {"loss": "pseudolikelihood"}, {"loss": "softmax_margin"}])
@pytest.mark.parametrize("is_tree", [False, True])
def test_chains_and_trees_are_those_of_other_estimators(is_tree, options):
    vectorizer, tags = SequenceVectorizer(), TAGS[:29]  # the last one may have two best labelings
    data = (TreeFeatures(vectorizer) if is_tree else vectorizer).fit_transform(TREES[:29])
    plain = CRFClassifier(all_possible_transitions=True, **options).fit(data, tags)
    model = GraphCRF(directed=True, **options).fit(data, tags)
    np.testing.assert_allclose(model.objective_, plain.objective_, rtol=1e-7)
    np.testing.assert_allclose(model.transitions_, plain.transitions_, atol=1e-3)
    ours, theirs = model.predict_proba(data), plain.predict_proba(data)
    np.testing.assert_allclose(np.vstack(ours), np.vstack(theirs), atol=1e-4)
    assert ours.exact_.all() and model.predict(data) == plain.predict(data)
    logs = model.sequence_log_proba(data, tags), plain.sequence_log_proba(data, tags)
    np.testing.assert_allclose(*logs, atol=1e-3)


def scores_of_all(model, graph):
    """The score of each labeling of a graph, by its weights, and the labelings."""
    unary = graph.nodes @ model.coef_.toarray()
    size = len(model.classes_)
    pair = model.transitions_ + (graph.edge_features @ model.transition_coef_.toarray()).reshape(
        -1, size, size
    )
    labelings = np.array(list(product(range(size), repeat=len(unary))))
    scores = unary[np.arange(len(unary)), labelings].sum(axis=1)
    for table, (s, t) in zip(pair, graph.edges, strict=True):
        scores += table[labelings[:, s], labelings[:, t]]
    return scores, labelings


@pytest.mark.parametrize("directed", [False, True])
def test_answers_are_those_of_all_labelings(directed):
    model = GraphCRF(directed=directed, c2=1.0).fit(X, Y)
    graph = X[0]
    scores, labelings = scores_of_all(model, graph)
    (found,) = model.infer([graph])
    p = np.exp(scores - logsumexp(scores))
    np.testing.assert_allclose(found.log_partition, logsumexp(scores))
    np.testing.assert_allclose(found.score, scores.max())
    np.testing.assert_allclose(found.marginals[:, 1], p @ labelings, atol=1e-9)
    (s, t), both = graph.edges[0], found.edge_marginals[0]
    np.testing.assert_allclose(both[0, 1], p @ ((labelings[:, s] == 0) & (labelings[:, t] == 1)))
    assert found.labels == [model.classes_[code] for code in labelings[scores.argmax()]]
    assert found.exact_ and found.bound_ == "exact" and found.score_bound == found.score
    own = [model.classes_.tolist().index(label) for label in Y[0]]
    at = (labelings == own).all(axis=1)
    np.testing.assert_allclose(model.sequence_log_proba([graph], [Y[0]]), np.log(p[at]))
    assert np.array_equal(model.transitions_, model.transitions_.T) is not directed
    best = model.predict_n_best([graph], 3)[0]
    np.testing.assert_allclose([one.score for one in best], np.sort(scores)[:-4:-1])
    np.testing.assert_allclose(model.entropy([graph]), -p @ np.log(p))
    drawn = model.sample([graph], 300, random_state=0)[0]
    share = np.mean([labels[0] == model.classes_[1] for labels in drawn])
    np.testing.assert_allclose(share, found.marginals[0, 1], atol=0.1)


def test_graphs_may_be_without_edges_and_without_nodes():
    one, none = FeatureGraph(np.ones((1, 1)), []), FeatureGraph(np.ones((0, 1)), [])
    assert GraphCRF().fit([one], [["a"]]).predict([one, none]) == [["a"], []]
    model = GraphCRF().fit([one, (np.ones((2, 1)), [(0, 1)])], [["a"], ["b", "a"]])
    for inference in ("exact", "bp", "trw", "mean_field"):
        single, empty = model.set_params(inference=inference).infer([one, none])
        scores = model.coef_.toarray()[0]
        np.testing.assert_allclose(single.log_partition, logsumexp(scores))
        np.testing.assert_allclose(single.marginals[0], np.exp(scores - logsumexp(scores)))
        assert empty.log_partition == 0.0 and empty.marginals.shape == (0, 2)


def test_which_end_comes_first_does_not_matter_without_directions():
    turned = [graph._replace(edges=graph.edges[:, ::-1]) for graph in X]
    one, two = (GraphCRF(c2=1.0).fit(graphs, Y) for graphs in (X, turned))
    np.testing.assert_allclose(one.objective_, two.objective_, rtol=1e-9)
    assert one.predict(turned) == two.predict(X)
    np.testing.assert_allclose(one.transitions_, one.transitions_.T)


def test_graphs_do_better_than_single_nodes():
    new, truth = images(10, seed=1)
    alone = [graph._replace(edges=[], edge_features=None) for graph in X]
    single = GraphCRF().fit(alone, Y)
    baseline = single.score([graph._replace(edges=[], edge_features=None) for graph in new], truth)
    for options in (
        {},
        {"inference": "trw"},
        {"inference": "bp", "decoding": "posterior"},
        {"loss": "hinge", "solver": BlockFrankWolfe(tol=0.1), "c2": 1.0},
        {"associative": True},
    ):
        model = GraphCRF(**options).fit(X, Y)
        assert model.score(new, truth) > baseline + 0.03, options


def test_bounds_of_the_likelihood_are_on_their_sides():
    exact = GraphCRF(c2=1.0).fit(X, Y)
    assert exact.objective_ < clone(exact).set_params(inference="trw").fit(X, Y).objective_
    for name, side in (("trw", 1), ("mean_field", -1)):
        truth = exact.infer(X[:3])
        for a, b in zip(exact.set_params(inference=name).infer(X[:3]), truth, strict=True):
            assert side * (a.log_partition - b.log_partition) > 0 and not a.exact_
        assert not exact.predict_proba(X[:2]).exact_.any()
        exact.set_params(inference="exact")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_gap_is_told_only_where_log_z_is_convex():
    data = X[:4], Y[:4]
    for inference in ("bp", "mean_field"):
        for solver in ("sag", "lbfgs"):
            model = GraphCRF(inference=inference, solver=solver, max_iter=2).fit(*data)
            assert np.isnan(model.gap_)
        for solver in (OEG(), CuttingPlane(), Subgradient()):
            with pytest.raises(ValueError, match="inference='exact' or 'trw', or solver='lbfgs'"):
                GraphCRF(inference=inference, solver=solver).fit(*data)
    best = GraphCRF(c2=1.0, inference="trw").fit(*data)
    for solver in (SAG(max_iter=40), OEG(max_iter=40)):
        found = GraphCRF(c2=1.0, inference="trw", solver=solver).fit(*data)
        assert found.objective_ - best.objective_ <= found.gap_ < 0.5 * best.objective_


def test_unlabeled_nodes_of_one_graph_are_predicted():
    (graph,), (truth,) = images(1, seed=3, size=(6, 3))
    known = [label if t % 3 else UNLABELED for t, label in enumerate(truth)]
    for options in ({}, {"loss": "pseudolikelihood"}, {"inference": "trw"}):
        model = GraphCRF(c2=0.5, **options).fit([graph], [known])
        (found,) = model.predict([graph])
        assert np.mean(np.array(found) == truth) > 0.8
    some = [{"a", "b"} if label is UNLABELED else label for label in known]
    whole = GraphCRF(c2=0.5).fit([graph], [some])
    np.testing.assert_allclose(whole.objective_, GraphCRF(c2=0.5).fit([graph], [known]).objective_)


def test_besag_s_loss_leaves_out_unknown_nodes():
    graph, known = X[0], [UNLABELED if t in (0, 4) else label for t, label in enumerate(Y[0])]
    kept = np.setdiff1d(np.arange(9), [0, 4])
    inside = np.isin(graph.edges, kept).all(axis=1)
    fewer = FeatureGraph(graph.nodes[kept], np.searchsorted(kept, graph.edges[inside]),
                         graph.edge_features[inside])  # fmt: skip
    options = {"loss": "pseudolikelihood", "c2": 0.5}
    one = GraphCRF(**options).fit([X[1], graph], [Y[1], known])
    two = GraphCRF(**options).fit([X[1], fewer], [Y[1], [Y[0][t] for t in kept]])
    np.testing.assert_allclose(one.objective_, two.objective_)


def test_types_of_nodes_have_their_labels():
    rng = np.random.default_rng(0)
    graphs, labels = [], []
    for _ in range(10):
        x = rng.normal(size=4)
        graphs.append(FeatureGraph(np.column_stack([x, np.ones(4)]), [[0, 2], [1, 3]],
                                   types=["sea", "sea", "sky", "sky"]))  # fmt: skip
        labels.append([*np.where(x[:2] > 0, "calm", "wild"), *np.where(x[2:] > 0, "blue", "gray")])
    model = GraphCRF().fit(graphs, labels)
    assert model.score(graphs, labels) > 0.9
    proba = model.predict_proba([FeatureGraph(np.ones((1, 2)), [], types=["sky"])])[0][0]
    classes = model.classes_.tolist()
    assert proba[classes.index("calm")] == proba[classes.index("wild")] == 0.0


def test_constraints_are_kept():
    model = GraphCRF(c2=1.0).fit(X, Y)
    free = model.infer(X[:3])
    flipped = ["b" if label == "a" else "a" for label in free[0].labels]
    rule = Known([[flipped[0], *[UNLABELED] * 8], [UNLABELED] * 9, [UNLABELED] * 9])
    held = model.infer(X[:3], constraints=rule)
    assert held[0].labels[0] == flipped[0] and held[1].labels == free[1].labels
    scores, labelings = scores_of_all(model, X[0])
    kept = labelings[:, 0] == model.classes_.tolist().index(flipped[0])
    np.testing.assert_allclose(held[0].log_partition, logsumexp(scores[kept]))
    with pytest.raises(ValueError, match="the order of tokens, which forests and graphs do not"):
        model.predict(X, constraints=Count("a", at_most=1))


def test_labels_of_examples_are_a_graph():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    Z = np.column_stack([x[:, 0] > 0, x[:, 0] + rng.normal(0, 1, 60) > 0, x[:, 1] > 0])
    data = multilabel_graphs(x, complete(3))
    model = GraphCRF(c2=0.1).fit(data, multilabel_labels(Z))
    assert (multilabel_indicators(model.predict(data)) == Z).mean() > 0.8


def test_equal_words_share_their_labels():
    X = [["x", "Ada", "y", "z", "Ada"], ["q", "Bob", "q", "y", "Bob"], ["q", "z"]] * 3
    y = [["O", "P", "O", "O", "P"], ["O", "Q", "O", "O", "Q"], ["O", "O"]] * 3
    tokens = [[{"w": w, "before": b} for b, w in zip(["", *s], s, strict=False)] for s in X]
    features = SkipChainFeatures(SequenceVectorizer(), word="w")
    model = make_pipeline(features, GraphCRF(directed=True)).fit(tokens, y)
    assert model.predict(tokens) == y
    direct = GraphCRF(directed=True, features=features).fit(tokens, y)
    assert direct.predict(tokens) == y and loads(dumps(direct)).predict(tokens) == y


def test_scikit_learn_takes_graphs_apart():
    search = GridSearchCV(GraphCRF(), {"c2": [0.1, 100.0], "inference": ["exact", "trw"]}, cv=2)
    assert search.fit(X, Y).best_params_["c2"] == 0.1
    packed = GraphVectorizer().fit_transform(X)
    scores = cross_val_score(GraphCRF(), X, Y, cv=2)
    np.testing.assert_array_equal(cross_val_score(GraphCRF(), packed, Y, cv=2), scores)


def test_models_are_kept_and_go_on():
    model = GraphCRF(c2=1.0, inference="trw", n_jobs=2).fit(X, Y)
    for again in (loads(dumps(model)), pickle.loads(pickle.dumps(model))):
        assert again.predict(X) == model.predict(X)
        np.testing.assert_array_equal(
            np.vstack(again.predict_proba(X)), np.vstack(model.predict_proba(X))
        )
    one = clone(model).set_params(n_jobs=1).fit(X, Y)
    np.testing.assert_array_equal(one.coef_.toarray(), model.coef_.toarray())
    np.testing.assert_array_equal(one.transitions_, model.transitions_)
    first = model.n_iter_
    assert model.set_params(warm_start=True).fit(X, Y).n_iter_ < first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inference": "sum"}, "inference='sum' is not known"),
        ({"search": 3}, "search=3 must be a string or an object with the method 'maximum'"),
        ({"directed": 1}, "directed=1 must be True or False"),
        ({"loss": "hinge", "solver": "lbfgs"}, "HingeLoss"),
        ({"inference": "gibbs"}, "inference=.gibbs. has no log Z, which loss=.log. needs"),
        (
            {"inference": "gibbs", "loss": "softmax_margin"},
            "has no log Z, which loss=.softmax_margin. needs",
        ),
    ],
)
def test_parameters_are_checked(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        GraphCRF(**options).fit(X, Y)


def test_graphs_that_are_too_wide_raise_and_name_what_else_there_is():
    model = GraphCRF(inference=JunctionTree(budget=8))
    with pytest.raises(BudgetError, match=r"graph 0.*\"trw\""):
        model.fit(X, Y)
    model.set_params(inference="bp").fit(X, Y)
    assert not model.predict_proba(X).exact_.any()
    with pytest.raises(BudgetError):
        model.set_params(inference=JunctionTree(budget=8)).predict_proba(X)
    assert model.set_params(inference="exact").predict_proba(X).exact_.all()


def test_labels_that_are_not_proved_to_be_the_best_bring_a_warning():
    model = GraphCRF(max_iter=5).fit([(np.ones((2, 1)), [(0, 1)])], [["a", "b"]])
    model.transitions_ = -np.eye(2)
    ring = (np.ones((25, 1)), complete(25))
    with pytest.warns(UserWarning, match="labels of 1 graphs are not proved to be the best"):
        labels = model.predict([ring])[0]
    assert abs(labels.count("a") - labels.count("b")) == 1
    (found,) = model.set_params(search="mplp").predict_with_bounds([ring])
    assert not found.is_optimal and found.bound > found.score and found.method == "mplp"


def test_questions_without_an_answer_are_refused_by_their_names():
    model = GraphCRF(c2=1.0).fit(X, Y)
    for name in ("predict_spans", "predict_span_proba", "likely_spans", "confidence"):
        with pytest.raises(AttributeError, match=f"no spans, and no {name}"):
            getattr(model, name)
    model.set_params(inference="gibbs")
    with pytest.raises(ValueError, match="no log Z, which probabilities of labelings need"):
        model.sequence_log_proba(X, Y)
    with pytest.raises(MissingCapabilityError, match="this method of inference: use .*exact"):
        GraphCRF(loss="pointwise", inference="bp").fit(X, Y)
