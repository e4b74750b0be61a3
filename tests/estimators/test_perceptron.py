"""The structured perceptron as an estimator, and its relatives in scikit-learn."""

import copy

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline

import crfkit
from crfkit import (
    CRFClassifier,
    EarlyStopping,
    PackedSequences,
    SequenceVectorizer,
    StructuredPerceptron,
)
from crfkit.inference import BeamSearch, ViterbiDecoder
from crfkit.solvers import AROW, MIRA, PassiveAggressive
from tests.estimators.checks import parametrize_variants
from tests.estimators.test_early_stopping import make

X, Y = make(0, 40)
CLASSES = [0, 1, 2]
FORMS = {
    "average": {},
    "none": {"averaging": None, "update": "arow"},
    "batch": {"averaging": "batch", "max_iter": 30},
    "vote": {"averaging": "vote", "max_iter": 3},
    "cost": {"cost": "hamming", "update": "pa1"},
    "boundaries": {"boundary_weights": True, "update": "mira"},
    "beam": {"search": BeamSearch(width=2)},
    "several": {"update": MIRA(n_best=2), "max_iter": 3},
    "all": {"all_possible_states": True, "all_possible_transitions": True, "update": "pa2"},
}


@parametrize_variants(
    [
        StructuredPerceptron(),
        StructuredPerceptron(averaging="vote"),
        StructuredPerceptron(update="arow", averaging=None, search=BeamSearch(), n_jobs=2),
    ]
)
def test_all_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("form", FORMS)
def test_training_data_are_learned(form):
    model = StructuredPerceptron(random_state=0, **FORMS[form]).fit(X, Y)
    assert model.score(X, Y) > 0.75
    assert model.n_iter_ == len(model.training_log_) - 1
    assert model.objective_ == model.training_log_[-1].value
    assert model.training_log_[-1].mistakes >= 0
    assert np.isnan(model.gap_)
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("form", FORMS)
def test_a_saved_model_predicts_the_same(form, tmp_path):
    model = StructuredPerceptron(random_state=0, **FORMS[form]).fit(X, Y)
    again = crfkit.load(model.save(tmp_path / "model") or tmp_path / "model")
    assert again.predict(X) == model.predict(X)
    assert again.get_params().keys() == model.get_params().keys()
    assert repr(again) == repr(model)


@pytest.mark.parametrize("form", FORMS)
def test_fits_are_the_same_for_any_number_of_threads(form):
    fits = [StructuredPerceptron(n_jobs=n, **FORMS[form]).fit(X, Y) for n in (1, 2, 1)]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.coef_.toarray(), fits[0].coef_.toarray())
        assert other.predict(X) == fits[0].predict(X)


def rows(rng, count=60, size=5):
    """Tokens on their own, of two kinds.

    Where all weights are 0 the first kind is predicted. The first token has it, and moves nothing;
    the second has the other kind, so that all begin with a step.
    """
    x = rng.normal(size=(count, size))
    y = (x @ rng.normal(size=size) + 0.8 * rng.normal(size=count) > 0).astype(int)
    x[0], y[:2] = 0.0, (0, 1)
    return x, y


def alone(x, y):
    """Tokens as sequences of length 1."""
    return PackedSequences.from_flat(x, np.ones(len(x), int)), [[label] for label in y]


def difference(model):
    coef = model.coef_.toarray()
    return coef[:, 1] - coef[:, 0]


PLAIN = {"shuffle": False, "all_possible_states": True}
ALL = PLAIN | {"all_possible_transitions": True}


@pytest.mark.parametrize("passes", [1, 2, 7])
def test_on_single_tokens_it_is_the_perceptron_of_scikit_learn(rng, passes):
    """Both labels have weights, which move in opposite directions: twice as far apart."""
    x, y = rows(rng)
    theirs = Perceptron(shuffle=False, max_iter=passes, tol=None, fit_intercept=False).fit(x, y)
    ours = StructuredPerceptron(averaging=None, max_iter=passes, tol=0.0, **PLAIN)
    with pytest.warns(ConvergenceWarning):
        ours.fit(*alone(x, y))
    np.testing.assert_allclose(difference(ours), 2.0 * theirs.coef_[0], rtol=1e-12)


def test_update_for_update_the_perceptron_of_scikit_learn(rng):
    x, y = rows(rng)
    theirs = Perceptron(shuffle=False, fit_intercept=False)
    ours = StructuredPerceptron(averaging=None, **PLAIN)
    for n in range(len(x)):
        theirs.partial_fit(x[n : n + 1], y[n : n + 1], classes=[0, 1])
        ours.partial_fit(*alone(x[n : n + 1], y[n : n + 1]), classes=[0, 1])
        np.testing.assert_allclose(difference(ours), 2.0 * theirs.coef_[0], rtol=1e-12)


def test_on_single_tokens_the_mean_is_that_of_scikit_learn(rng):
    """Theirs does not count the start, which is 0."""
    x, y = rows(rng)
    theirs = SGDClassifier(
        loss="perceptron", penalty=None, learning_rate="constant", eta0=1.0, average=True,
        shuffle=False, fit_intercept=False, tol=None, max_iter=3,
    ).fit(x, y)  # fmt: skip
    ours = StructuredPerceptron(max_iter=3, **PLAIN).fit(*alone(x, y))
    count = 3 * len(x)
    expected = 2.0 * theirs.coef_[0] * count / (count + 1)
    np.testing.assert_allclose(difference(ours), expected, rtol=1e-10)


@pytest.mark.parametrize(("variant", "rate"), [("PA-I", "pa1"), ("PA-II", "pa2")])
@pytest.mark.parametrize("C", [0.01, 0.3, 100.0])
def test_on_single_tokens_passive_aggressive_steps_are_those_of_scikit_learn(rng, variant, rate, C):
    """With a cost, a step is made wherever the margin is below 1. Two weights share a step."""
    x, y = rows(rng)
    theirs = SGDClassifier(
        loss="hinge", penalty=None, learning_rate=rate, eta0=C, shuffle=False, tol=None,
        fit_intercept=False, max_iter=4,
    ).fit(x, y)  # fmt: skip
    update = PassiveAggressive(variant=variant, C=C / 2.0)
    ours = StructuredPerceptron(update=update, averaging=None, cost="hamming", max_iter=4, **PLAIN)
    ours.fit(*alone(x, y))
    np.testing.assert_allclose(difference(ours), theirs.coef_[0], rtol=1e-9)


def test_on_single_tokens_of_many_kinds_it_is_the_multiclass_perceptron(rng):
    x, y = rng.normal(size=(80, 4)), np.append(np.arange(4), rng.integers(4, size=76))
    w = np.zeros((4, 4))
    for _ in range(3):
        for row, label in zip(x, y, strict=True):
            best = int((row @ w).argmax())
            w[:, label] += row
            w[:, best] -= row
    ours = StructuredPerceptron(averaging=None, max_iter=3, **PLAIN).fit(*alone(x, y))
    np.testing.assert_allclose(ours.coef_.toarray(), w, atol=1e-12)


def test_votes_are_those_of_all_weights():
    """Counted with models fitted on the first looks alone; what they predict has few ties."""
    X_few, y_few = X[:12], Y[:12]
    voted = StructuredPerceptron(averaging="vote", max_iter=1, **ALL).fit(X_few, y_few)
    ballots = np.zeros((sum(map(len, X)), 3))
    last = StructuredPerceptron(averaging=None, max_iter=1, **ALL)
    for seen in range(1, len(X_few) + 1):
        last.fit(X_few, y_few, sample_weight=(np.arange(len(X_few)) < seen).astype(float))
        ballots[np.arange(len(ballots)), np.concatenate(last.predict(X))] += 1
    found, order = np.concatenate(voted.predict(X)), voted.vote_order_
    same = found == order[ballots[:, order].argmax(axis=1)]
    assert same.mean() > 0.95
    assert voted.vote_counts_.sum() == len(X_few)
    np.testing.assert_array_equal(voted.coef_.toarray(), last.coef_.toarray())
    plain = voted.set_params(averaging="average").fit(X_few, y_few)
    assert not hasattr(plain, "vote_counts_")


@pytest.mark.parametrize("averaging", ["average", None, "vote"])
def test_votes_of_an_older_fit_decide_nothing(averaging):
    """Not when to stop early either, nor where labels or weights were others."""
    rules = {"averaging": averaging, "early_stopping": True, "max_iter": 6, "random_state": 0}
    fresh = StructuredPerceptron(**rules).fit(X, Y)
    names = [[f"label {label}" for label in row] for row in Y]
    others = {
        "the same": (X, Y),
        "other labels": (X, names),
        "fewer": (X, [[min(label, 1) for label in row] for row in Y]),
        "more": ([[{"q": "r"}, {"s": "t"}]] * 12, [["a", "b"]] * 6 + [["c", "d"]] * 6),
    }
    for data, labels in others.values():
        model = StructuredPerceptron(averaging="vote", max_iter=3, random_state=0)
        model.fit(data, labels).set_params(**rules).fit(X, Y)
        assert model.validation_scores_ == fresh.validation_scores_
        assert model.best_iteration_ == fresh.best_iteration_
        assert model.predict(X) == fresh.predict(X)
        assert hasattr(model, "vote_counts_") == (averaging == "vote")


def test_a_fit_that_fails_leaves_the_votes_and_no_more():
    model = StructuredPerceptron(averaging="vote", max_iter=3).fit(X, Y)
    before, names = model.predict(X), set(vars(model))
    with pytest.raises(ValueError, match="one length"):
        model.set_params(averaging="batch", update="pa1").fit(X, Y)
    model.set_params(averaging="vote", update="perceptron")
    with pytest.raises(ValueError, match="use 'average' for partial_fit"):
        model.partial_fit(X, Y)

    def fail(*_):
        raise RuntimeError("no score")

    with pytest.raises(RuntimeError, match="no score"):
        model.set_params(early_stopping=EarlyStopping(scoring=fail)).fit(X, Y)
    assert set(vars(model)) == names
    assert model.predict(X) == before
    fresh = StructuredPerceptron(averaging="vote")
    with pytest.raises(ValueError, match="use 'average' for partial_fit"):
        fresh.partial_fit(X, Y, classes=CLASSES)
    assert set(vars(fresh)) == set(fresh.get_params(deep=False))


@pytest.mark.filterwarnings("ignore:max_iter=0")
def test_weights_of_the_start_vote_where_no_pass_was_better():
    first = StructuredPerceptron(max_iter=5, random_state=0).fit(X, Y)  # few ties
    held, constant = {"X_val": X, "y_val": Y}, EarlyStopping(scoring=lambda *_: 0.5)
    for rules, validation in (
        ({"max_iter": 0}, {}),
        ({"max_iter": 0, "early_stopping": True}, held),
        ({"max_iter": 3, "early_stopping": constant}, held),
    ):
        model = copy.deepcopy(first).set_params(averaging="vote", warm_start=True, **rules)
        model.fit(X, Y, **validation)
        assert model.vote_counts_.tolist() == [1]
        assert model.score(X, Y) == first.score(X, Y) > 0.75
        np.testing.assert_array_equal(model.coef_.toarray(), first.coef_.toarray())
        if rules.get("early_stopping") is True:
            assert model.best_iteration_ == 0
            assert model.score(X, Y) == model.best_score_


def test_an_interrupt_of_the_first_score_leaves_the_start():
    def interrupt(*_):
        raise KeyboardInterrupt

    for averaging in ("vote", "average"):
        model = StructuredPerceptron(
            averaging=averaging, early_stopping=EarlyStopping(scoring=interrupt)
        )
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model.fit(X, Y)
        assert (model.n_iter_, model.best_iteration_) == (0, None)
        assert [len(row) for row in model.predict(X)] == [len(row) for row in X]
    assert not model.coef_.nnz


@pytest.mark.parametrize("averaging", ["average", None, "vote", "batch"])
@pytest.mark.parametrize("general", [False, True])
def test_sequences_of_weight_0_are_as_good_as_not_there(averaging, general):
    """With the same weights; one of them has a label of its own first."""
    keep = np.arange(len(X)) % 3 != 0
    parameters = ALL | {"averaging": averaging, "max_iter": 4, "boundary_weights": general}
    vectorizer = SequenceVectorizer().fit(X)
    data = vectorizer.transform(X)
    whole = StructuredPerceptron(**parameters).fit(data, Y, sample_weight=keep.astype(float))
    part = StructuredPerceptron(**parameters)
    part.fit(data[np.flatnonzero(keep)], [row for row, kept in zip(Y, keep, strict=True) if kept])
    for name in ("coef_", "transitions_", "start_weights_"):
        ours, theirs = (getattr(model, name) for model in (whole, part))
        ours, theirs = (x if isinstance(x, np.ndarray) else x.toarray() for x in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert whole.predict(data) == part.predict(data)
    if averaging == "vote":
        assert whole.vote_counts_.tolist() == part.vote_counts_.tolist()
        assert whole.vote_order_.tolist() == part.vote_order_.tolist()


def test_votes_go_on_from_a_warm_start():
    model = StructuredPerceptron(averaging="vote", max_iter=1, warm_start=True, shuffle=False)
    first = model.fit(X, Y).coef_.toarray()
    model.fit(X, Y)
    start = model.vote_changes_[[0]].toarray()[0, : first.size].reshape(first.shape)
    np.testing.assert_array_equal(start, first)
    changes = np.asarray(model.vote_changes_.sum(axis=0)).reshape(-1)
    np.testing.assert_allclose(
        changes[: first.size].reshape(first.shape), model.coef_.toarray(), atol=1e-12
    )


def test_votes_of_all_kinds_of_weights():
    """Attributes of transitions, dense features, boundaries."""
    templates = crfkit.TemplateFeatures(["w", "transition(w)"], columns=["w"])
    words = [[(str(token.get("w", len(token))),) for token in row] for row in X]
    data = templates.fit_transform(words)
    model = StructuredPerceptron(averaging="vote", max_iter=2, boundary_weights=True).fit(data, Y)
    assert model.predict(data) == crfkit.persistence.loads(crfkit.persistence.dumps(model)).predict(
        data
    )
    rng = np.random.default_rng(0)
    dense = [rng.normal(size=(len(row), 3)) for row in X]
    model = StructuredPerceptron(averaging="vote", max_iter=2).fit(dense, Y)
    assert model.vote_changes_.shape[1] == 3 * 3 + 3 * 5
    model.vote_counts_ = np.zeros_like(model.vote_counts_)
    model.vote_counts_[-1] = 1  # only the last weights vote
    plain = StructuredPerceptron(averaging=None, max_iter=2).fit(dense, Y)
    assert model.predict(dense) == plain.predict(dense)


def test_damaged_votes_are_noticed():
    model = StructuredPerceptron(averaging="vote", max_iter=2).fit(X, Y)
    model.vote_counts_ = model.vote_counts_[:-1]
    with pytest.raises(crfkit.persistence.ModelFileError, match="vote_changes_"):
        crfkit.persistence.loads(crfkit.persistence.dumps(model))
    model.fit(X, Y).vote_order_ = model.vote_order_.astype(float)
    with pytest.raises(crfkit.persistence.ModelFileError, match="vote_order_"):
        crfkit.persistence.loads(crfkit.persistence.dumps(model))


@pytest.mark.parametrize("parameters", [{}, {"update": AROW(gamma=3.0), "averaging": None}])
def test_new_weights_in_a_later_batch_are_those_of_one_fit(parameters):
    """A weight that was not there was 0 all the time, and had its first variance."""
    batches, singles = (StructuredPerceptron(**ALL | parameters) for _ in range(2))
    for part in (slice(0, 15), slice(15, 25), slice(25, 40)):
        batches.partial_fit(X[part], Y[part], classes=CLASSES)
    for n in range(40):
        singles.partial_fit(X[n : n + 1], Y[n : n + 1], classes=CLASSES)
    assert (batches.n_iter_, singles.n_iter_) == (3, 40)
    for name in ("state_features_", "transition_features_"):
        ours, theirs = (getattr(model, name) for model in (batches, singles))
        assert ours.keys() == theirs.keys()
        np.testing.assert_allclose(list(ours.values()), [theirs[k] for k in ours], rtol=1e-9)
    again = crfkit.persistence.loads(crfkit.persistence.dumps(batches))
    for other in (batches, again):
        other.partial_fit(X[:5], Y[:5])
    np.testing.assert_array_equal(batches.coef_.toarray(), again.coef_.toarray())


def test_it_can_be_searched_and_piped():
    pipeline = Pipeline([("features", SequenceVectorizer()), ("model", StructuredPerceptron())])
    dicts = [[{str(k): v for k, v in enumerate(np.asarray(t).ravel())} if not isinstance(t, dict)
              else t for t in row] for row in X]  # fmt: skip
    search = GridSearchCV(pipeline, {"model__update": ["perceptron", PassiveAggressive(C=0.1)],
                                     "model__averaging": ["average", None]}, cv=3,
                          error_score="raise")  # fmt: skip
    assert search.fit(dicts, Y).best_score_ > 0.4
    assert cross_val_score(StructuredPerceptron(), dicts, Y, cv=3).shape == (3,)
    nested = GridSearchCV(StructuredPerceptron(update=PassiveAggressive()), {"update__C": [0.1, 1]},
                          cv=2)  # fmt: skip
    assert nested.fit(dicts, Y).best_params_["update__C"] in (0.1, 1)


def test_early_stopping_keeps_the_best_pass():
    rules = EarlyStopping(patience=2)
    model = StructuredPerceptron(early_stopping=rules, max_iter=30, random_state=1).fit(X, Y)
    assert model.best_iteration_ <= model.n_iter_ <= 30
    assert model.best_score_ == max(model.validation_scores_.values())
    voted = StructuredPerceptron(averaging="vote", early_stopping=rules, random_state=1).fit(X, Y)
    assert voted.vote_counts_.sum() == voted.best_iteration_ * 36


class NoDecode:
    def violation(self, scores, labels):
        return labels, len(labels)


def test_that_there_are_no_probabilities_is_told():
    model = StructuredPerceptron().fit(X, Y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="use CRFClassifier"):
        model.predict_proba(X)


def test_parameters_that_do_not_fit_are_told():
    for parameters, error, message in (
        ({"averaging": "all"}, ValueError, "averaging='all'"),
        ({"update": "pa3"}, ValueError, "update='pa3'"),
        ({"search": "beam"}, TypeError, "search='beam'"),
        ({"search": BeamSearch}, TypeError, "'violation' and 'decode'"),
        ({"search": ViterbiDecoder()}, TypeError, "'violation' and 'decode'"),
        ({"search": NoDecode()}, TypeError, "'violation' and 'decode'"),
        ({"cost": "zero_one"}, ValueError, "no sum over tokens"),
        ({"cost": {"p": -2.0}}, ValueError, "cost"),
        ({"max_iter": None}, TypeError, "max_iter=None"),
        ({"tol": "no"}, TypeError, "tol='no'"),
        ({"shuffle": None}, TypeError, "shuffle=None"),
    ):
        with pytest.raises(error, match=message):
            StructuredPerceptron(**parameters).fit(X, Y)
    weight = [np.linspace(0.1, 1.0, len(row)) for row in X]
    with pytest.raises(ValueError, match="the same weight for all tokens"):
        StructuredPerceptron().fit(X, Y, sample_weight=weight)


def test_no_convergence_is_warned_of_where_it_was_asked_for():
    with pytest.warns(UserWarning, match="max_iter=2 passes were not enough"):
        StructuredPerceptron(max_iter=2, tol=1e-9).fit(X, Y)
    assert StructuredPerceptron(max_iter=2).fit(X, Y).converged_


def test_verbose_prints_the_mistakes(capsys):
    StructuredPerceptron(max_iter=2, verbose=2).fit(X, Y)
    assert "mistakes" in capsys.readouterr().out


def test_many_labels_with_few_steps_are_learned():
    """Such chains take the general way."""
    y = [[str(7 * s + t) for t in range(3)] for s in range(30)]
    data = [[{"w": label} for label in row] for row in y]
    model = StructuredPerceptron(max_iter=20).fit(data, y)
    assert model.score(data, y) > 0.9
    with pytest.raises(ValueError, match="a table of all steps"):
        StructuredPerceptron(search=BeamSearch()).fit(data, y)
    assert (
        StructuredPerceptron(update=MIRA(n_best=2), max_iter=20).fit(data, y).score(data, y) > 0.9
    )


def test_features_are_chosen_as_for_a_crf():
    counts = StructuredPerceptron(min_freq=2).count_parameters(X, Y)
    assert counts == CRFClassifier(min_freq=2).count_parameters(X, Y)


@pytest.mark.parametrize("labels", [[["a"]], [["a", "a"], ["a"]]])
def test_one_label_has_nothing_to_learn(labels):
    data = [[{"x": 1.0} for _ in row] for row in labels]
    model = StructuredPerceptron().fit(data, labels)
    assert model.predict(data) == labels
    assert model.n_iter_ == 1


@pytest.mark.parametrize(
    "parameters",
    [{}, {"boundary_weights": True}, {"averaging": "batch"}, {"update": MIRA(n_best=2)},
     {"search": BeamSearch(width=3)}],
    ids=str,
)  # fmt: skip
def test_what_is_learned_does_not_depend_on_what_labels_are_called(parameters):
    """The one that occurs first wins ties."""
    names = {0: "z", 1: "b", 2: "a"}
    renamed = [[names[label] for label in row] for row in Y]
    ours = StructuredPerceptron(max_iter=3, **parameters).fit(X, Y)
    theirs = StructuredPerceptron(max_iter=3, **parameters).fit(X, renamed)
    assert ours.objective_ == theirs.objective_
    assert len(ours.state_features_) == len(theirs.state_features_)
    for (attribute, label), weight in ours.state_features_.items():
        np.testing.assert_allclose(theirs.state_features_[attribute, names[label]], weight)
