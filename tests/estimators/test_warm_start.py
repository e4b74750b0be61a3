"""A warm start on other data: more or fewer attributes and labels, in any order, by any solver."""

import itertools
import warnings
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV

from crfkit import CRFClassifier, EarlyStopping, MaxMarginCRF, SemiMarkovCRF, SequenceVectorizer
from crfkit.persistence import dumps, loads
from crfkit.solvers import LBFGS, SOLVERS
from tests.estimators.test_early_stopping import make

X, Y = make(0, 20, noise=0.1)
EXACT = LBFGS(tol=0.0, gtol=1e-9)
MORE_X = [*X, [{"w": "new"}, {"w": "3", "flag": True}], [{"AAA": 2.0}, {"w": "5"}]]
MORE_Y = [*Y, [7, 0], [-1, 2]]
RENAMED = [[{"w": token["w"]} for token in s] for s in X]


def named(crf):
    weights = {**crf.state_features_, **crf.transition_features_, **crf.transition_attributes_}
    starts = zip(crf.classes_, crf.start_weights_, crf.end_weights_, strict=True)
    return weights | {("boundary", label): (s, e) for label, s, e in starts if s or e}


def started(crf, X, y):
    """The weights that a fit starts from."""
    crf.set_params(max_iter=0, solver=LBFGS(gtol=0.0))  # also where the start is the optimum
    with pytest.warns(ConvergenceWarning, match="max_iter=0"):
        crf.fit(X, y)
    return named(crf)


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ((MORE_X, MORE_Y), lambda key: True),
        ((X[:5], Y[:5]), None),
        ((RENAMED, Y), lambda key: not str(key[0]).startswith("id:")),
        ((X[::-1], Y[::-1]), lambda key: True),
        ((X, [[0 if label == 2 else label for label in s] for s in Y]), lambda key: 2 not in key),
    ],
    ids=["more", "fewer", "fewer attributes", "another order", "fewer labels"],
)
@pytest.mark.parametrize("boundaries", [False, True])
def test_a_fit_starts_at_the_weights_of_the_same_names(data, kept, boundaries):
    crf = CRFClassifier(c2=0.1, boundary_weights=boundaries, warm_start=True).fit(X, Y)
    before = named(crf)
    after = started(crf, *data)
    if kept is None:
        places = CRFClassifier(c2=0.1, boundary_weights=boundaries).fit(*data)
        kept = named(places).__contains__
    assert after == {key: weight for key, weight in before.items() if kept(key)}


def test_attributes_of_steps_are_carried_over():
    def pack(X):
        packed = SequenceVectorizer().fit_transform(X)
        words = SequenceVectorizer().fit_transform([[[t.get("w", "?")] for t in s] for s in X])
        return packed.with_transitions(words)

    crf = CRFClassifier(c2=0.1, warm_start=True).fit(pack(X), Y)
    before = named(crf)
    assert started(crf, pack(MORE_X), MORE_Y) == before
    assert crf.transition_coef_.shape == (
        len(crf.transition_feature_names_in_),
        len(crf.classes_) ** 2,
    )
    plain = SequenceVectorizer().fit_transform(X)
    without = {key: w for key, w in before.items() if not isinstance(key[1], tuple)}
    assert started(crf, plain, Y) == without
    assert started(crf, pack(X), Y) == without


@pytest.mark.parametrize("name", sorted({*SOLVERS} - {"iis"}))  # as gis, but slower
def test_every_solver_goes_on_from_the_weights_it_is_given(name):
    crf = CRFClassifier(c2=0.1, solver=name, warm_start=True, max_iter=500, random_state=0)
    optimum = CRFClassifier(c2=0.1, solver=EXACT).fit(MORE_X, MORE_Y).objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of solvers with slow last steps
        cold = CRFClassifier(c2=0.1, solver=name, max_iter=500, random_state=0)
        cold.fit(MORE_X, MORE_Y)
        crf.fit(X, Y).fit(MORE_X, MORE_Y)
    if name != "oeg":  # it starts from distributions over labels, not from weights
        assert crf.training_log_[0].value < 0.8 * cold.training_log_[0].value
    assert optimum - 1e-6 <= crf.objective_ <= optimum * 1.01


def test_the_optimum_does_not_depend_on_the_start():
    crf = CRFClassifier(c2=0.1, solver=EXACT, warm_start=True).fit(X, Y).fit(MORE_X, MORE_Y)
    cold = CRFClassifier(c2=0.1, solver=EXACT).fit(MORE_X, MORE_Y)
    np.testing.assert_allclose(crf.coef_.toarray(), cold.coef_.toarray(), atol=1e-7)
    assert crf.n_iter_ < cold.n_iter_


def test_early_stopping_goes_on_from_the_best_weights():
    rules = EarlyStopping(patience=2)
    crf = CRFClassifier(c2=0.001, early_stopping=rules, warm_start=True, random_state=0).fit(X, Y)
    best = crf.best_score_
    crf.fit(X, Y)
    assert crf.validation_scores_[0] == best <= crf.best_score_


def test_weights_assigned_by_hand_are_a_start():
    crf = CRFClassifier(c2=0.1, warm_start=True).fit(X, Y)
    crf.transitions_ = np.full((3, 3), -np.inf)
    assert crf.fit(X, Y).converged_
    crf.transitions_ = np.full((3, 3), 0.25)
    started(crf, X, Y)
    assert set(crf.transition_features_.values()) == {0.25}


def test_a_failed_fit_leaves_the_start_of_the_next_one():
    crf = CRFClassifier(c2=0.1, warm_start=True).fit(X, Y)
    before = named(crf)
    with pytest.raises(ValueError, match="y has 19"):
        crf.fit(X, Y[:-1])
    assert named(crf) == before


WORDS = [["a", "b"], ["b", "a", "c"], ["a"], ["c", "c", "b"], ["a", "a"]]
TAGS = [["A", "B"], ["B", "A", "C"], ["B"], ["C", "A", "B"], ["A", "A"]]


@pytest.mark.parametrize("every", [False, True], ids=["seen", "all"])
def test_counts_of_one_attribute_a_token_are_a_hidden_markov_model(every):
    """Its posterior, by Bayes' rule, between labelings all of whose parts have weights."""
    options = {"all_possible_states": every, "all_possible_transitions": every}
    crf = CRFClassifier(init="counts", max_iter=0, boundary_weights=True, **options)
    with pytest.warns(ConvergenceWarning, match="max_iter=0"):
        crf.fit([[[word] for word in s] for s in WORDS], TAGS)
    emitted, steps = Counter(), Counter()
    for words, tags in zip(WORDS, TAGS, strict=True):
        emitted.update(zip(words, tags, strict=True))
        steps.update(itertools.pairwise(["start", *tags, "end"]))

    def log_share(counts, chosen, key):
        raised = {x: counts[x] + 1.0 for x in chosen}
        return np.log(raised[key] / sum(raised.values()))

    told = {word: np.array([emitted[word, b] + 1.0 for b in "ABC"]) for word in "abc"}
    told = np.mean([told[word] / told[word].sum() for s in WORDS for word in s], axis=0)
    told = dict(zip("ABC", np.log(told), strict=True))

    def by_hand(words, tags):
        """``log P(y | x)``, but for what all labelings share, by means of ``P(y_t | x_t)``."""
        prior = Counter(tag for s in TAGS for tag in s)
        first, last = (
            Counter({b: steps[ends(b)] for b in "ABC"})
            for ends in (lambda b: ("start", b), lambda b: (b, "end"))
        )
        total = sum(np.log(emitted[pair] + 1.0) for pair in zip(words, tags, strict=True))
        total += log_share(first, "ABC", tags[0]) - told[tags[0]]
        total += log_share(last, "ABC", tags[-1]) - log_share(prior, "ABC", tags[-1])
        for a, b in itertools.pairwise(tags):
            total += log_share(steps, [(a, c) for c in "ABC"], (a, b)) - told[b]
        return total

    for words in (["a", "c"], ["b", "c", "a"]):
        expected, found = [], []
        for tags in itertools.product("ABC", repeat=len(words)):
            seen = set(zip(words, tags, strict=True)) <= set(emitted)
            if every or (seen and set(itertools.pairwise(tags)) <= set(steps)):
                expected.append(by_hand(words, tags))
                found.append(crf.sequence_log_proba([[[word] for word in words]], [tags])[0])
        assert len(found) >= 2
        np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=1e-9)


def test_counts_are_a_better_start_than_zeros_and_the_optimum_is_the_same():
    zeros, counts = (CRFClassifier(init=init).fit(X, Y) for init in ("zeros", "counts"))
    assert counts.training_log_[0].value < 0.8 * zeros.training_log_[0].value
    np.testing.assert_allclose(counts.objective_, zeros.objective_, rtol=2e-4)
    with pytest.warns(ConvergenceWarning):
        models = [
            MaxMarginCRF(init=init, solver="subgradient", max_iter=1).fit(X, Y)
            for init in ("zeros", "counts")
        ]
    values = [model.training_log_[0].value for model in models]
    assert values[1] < 0.8 * values[0]


def test_segments_start_from_counts_and_from_models_of_segments():
    zeros = SemiMarkovCRF().fit(X, Y)
    counts = SemiMarkovCRF(init="counts", max_iter=40).fit(X, Y)
    assert counts.training_log_[0].value < 0.8 * zeros.training_log_[0].value
    again = SemiMarkovCRF(init=zeros).fit(X, Y)
    assert again.training_log_[0].value < 0.5 * zeros.training_log_[0].value
    with pytest.raises(ValueError, match="has learned labels of segments.* those of tokens"):
        CRFClassifier(init=zeros).fit(X, Y)
    with pytest.raises(ValueError, match="has learned labels of tokens.* those of segments"):
        SemiMarkovCRF(init=CRFClassifier().fit(X, Y)).fit(X, Y)


def test_a_fit_starts_from_another_model_by_names_and_keeps_it():
    model = CRFClassifier(c2=1.0).fit(MORE_X, MORE_Y)
    before = named(model)
    crf = CRFClassifier(init=model)
    wanted = named(CRFClassifier(c2=0.1).fit(X, Y))
    assert started(crf, X, Y) == {key: w for key, w in before.items() if key in wanted}
    assert clone(crf).init is model
    assert named(model) == before
    frozen = CRFClassifier(init=FrozenEstimator(model))
    assert started(frozen, X, Y) == started(CRFClassifier(init=model), X, Y)
    assert named(loads(dumps(frozen)).init.estimator) == before
    search = GridSearchCV(CRFClassifier(), {"init": ["zeros", frozen.init]}, cv=2).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    # The last fit is the start of the next one, not the model.
    crf.set_params(warm_start=True, max_iter=None, solver="lbfgs").fit(X, Y)
    assert started(crf, X, Y) == named(crf)
    assert named(crf) != {key: w for key, w in before.items() if key in wanted}


def test_tokens_of_weight_zero_and_negative_values_are_not_counted():
    tokens = [[{"a": 1.0, "v": -1.0}, {"b": 1.0, "v": 2.0}, {"a": 1.0}]]
    y = [["A", "B", "A"], ["B", "A", "B"]]
    data = [*tokens, *tokens]
    with pytest.warns(ConvergenceWarning):
        one = CRFClassifier(init="counts", max_iter=0).fit(data, y, sample_weight=[1.0, 0.0])
        alone = CRFClassifier(init="counts", max_iter=0).fit(tokens, y[:1])
        part = [np.ones(3), np.array([0.0, 0.0, 1.0])]
        two = CRFClassifier(init="counts", max_iter=0).fit(data, y, sample_weight=part)
    assert named(one) == named(alone)
    assert {key[0] for key in alone.state_features_} == {"a", "b"}
    assert two.state_features_[("a", "B")] < one.state_features_[("a", "A")]


@pytest.mark.parametrize(
    ("init", "error", "words"),
    [
        ("hmm", ValueError, "init='hmm' is not known"),
        (3, TypeError, "init=3 must be 'zeros', 'counts'"),
        (CRFClassifier, TypeError, "must be 'zeros', 'counts'"),
        (CRFClassifier(), NotFittedError, "is not fitted"),
    ],
)
def test_a_start_that_is_none_is_refused(init, error, words):
    with pytest.raises(error, match=words):
        CRFClassifier(init=init).fit(X, Y)


def test_models_with_kernels_start_at_zero():
    with pytest.raises(ValueError, match="init='counts' are weights of attributes"):
        MaxMarginCRF(kernel="rbf", init="counts").fit(X, Y)
    with pytest.warns(ConvergenceWarning):
        kernelled = MaxMarginCRF(kernel="rbf", max_iter=1).fit(X, Y)
    with pytest.raises(ValueError, match="was fitted with a kernel"):
        CRFClassifier(init=kernelled).fit(X, Y)
