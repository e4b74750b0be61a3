import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, cross_validate

from crfkit import metrics
from crfkit.metrics import get_scorer, get_scorer_names, scorers

# Chosen so that the micro, macro and weighted averages of a tagger that saw two sequences differ.
X = [
    ["ann", "saw", "rome"],
    ["rome"],
    ["bob", "left"],
    ["ann", "left", "rome"],
    ["bob", "bob"],
    ["saw", "bob"],
    ["ann", "ann"],
]
Y = [
    ["B-PER", "O", "B-LOC"],
    ["B-LOC"],
    ["B-PER", "O"],
    ["B-PER", "O", "B-LOC"],
    ["B-PER", "B-PER"],
    ["O", "B-PER"],
    ["B-LOC", "B-LOC"],
]


class LookupTagger(BaseEstimator):
    """Tag a word as last seen, or as ``O``; ``blind`` tags all as ``O``."""

    def __init__(self, blind=False):
        self.blind = blind

    def fit(self, X, y):
        words = zip(X, y, strict=True)
        self.tags_ = {w: t for x, tags in words for w, t in zip(x, tags, strict=True)}
        return self

    def predict(self, X):
        tags = {} if self.blind else self.tags_
        return [[tags.get(word, "O") for word in sequence] for sequence in X]


@pytest.mark.parametrize("name", get_scorer_names())
def test_scorers_equal_their_metrics(name):
    tagger = LookupTagger().fit(X[:2], Y[:2])
    metric_name, _, average = name.partition("_score")[0].rpartition("_")
    if average not in ("micro", "macro", "weighted"):
        metric_name, average = name, None
    metric = getattr(metrics, f"{metric_name}_score")
    kwargs = {"average": average, "zero_division": 0} if average else {}
    assert get_scorer(name)(tagger, X, Y) == metric(Y, tagger.predict(X), **kwargs)


@pytest.mark.parametrize("score", ["precision", "recall", "f1"])
def test_entity_averages_differ(score):
    tagger = LookupTagger().fit(X[:2], Y[:2])
    names = [f"entity_{score}{average}" for average in ("", "_macro", "_weighted")]
    values = {get_scorer(name)(tagger, X, Y) for name in names}
    # Weighted recall is micro recall by definition.
    assert len(values) == (2 if score == "recall" else 3)


@pytest.mark.parametrize("name", get_scorer_names())
def test_labels_never_predicted_score_zero_without_a_warning(name):
    y_true = [["B-PER", "B-LOC"]]
    assert get_scorer(name)(LookupTagger(blind=True).fit(X, Y), [["ann", "rome"]], y_true) == 0


@pytest.mark.parametrize("name", get_scorer_names())
def test_scorers_survive_pickling(name):
    tagger = LookupTagger().fit(X[:2], Y[:2])
    scorer = pickle.loads(pickle.dumps(get_scorer(name)))
    assert scorer(tagger, X, Y) == get_scorer(name)(tagger, X, Y) > 0


@pytest.mark.parametrize("name", get_scorer_names())
def test_scorers_are_attributes_of_the_module(name):
    assert repr(getattr(scorers, name)) == repr(get_scorer(name))


@pytest.mark.parametrize("scoring", [scorers.entity_f1, scorers.flat_f1_weighted])
def test_grid_search_prefers_the_tagger_that_sees(scoring):
    search = GridSearchCV(LookupTagger(), {"blind": [True, False]}, scoring=scoring, cv=2)
    search.fit(X, Y)
    assert search.best_params_ == {"blind": False}


def test_cross_validation_takes_several_scorers_at_once():
    scoring = {name: get_scorer(name) for name in get_scorer_names()}
    result = cross_validate(LookupTagger(), X, Y, scoring=scoring, cv=3, error_score="raise")
    for name in scoring:
        scores = result[f"test_{name}"]
        assert scores.shape == (3,)
        assert np.all((scores >= 0) & (scores <= 1))


def test_scorers_are_copies():
    assert get_scorer("entity_f1") is not get_scorer("entity_f1")


def test_the_names_users_know_are_there():
    known = {"flat_accuracy", "sequence_accuracy", "flat_f1_weighted", "entity_f1"}
    known |= {"entity_f1_macro", "entity_precision", "entity_recall"}
    assert known <= set(get_scorer_names())


def test_unknown_scorers_are_answered_with_close_ones():
    with pytest.raises(ValueError, match="unknown scorer 'entity_fl'; try .*entity_f1"):
        get_scorer("entity_fl")
