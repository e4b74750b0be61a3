import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline

from crfkit import EarlyStopping, SemiMarkovCRF, SequenceVectorizer, metrics
from crfkit.metrics import get_scorer, get_scorer_names, scorers, segment_f1_score
from tests.sampling import in_turns

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


# Those of probabilities have tests of their own.
NAMES = [name for name in get_scorer_names() if not name.startswith("neg_")]


@pytest.mark.parametrize("name", NAMES)
def test_scorers_equal_their_metrics(name):
    tagger = LookupTagger().fit(X[:2], Y[:2])
    metric_name, _, average = name.partition("_score")[0].rpartition("_")
    if average not in ("micro", "macro", "weighted"):
        metric_name, average = name, None
    metric = getattr(metrics, f"{metric_name}_score")
    kwargs = {"average": average, "zero_division": 0} if average else {}
    if metric_name.startswith("segment"):
        kwargs |= {"scheme": "conll", "average": average or "micro"}
    assert get_scorer(name)(tagger, X, Y) == metric(Y, tagger.predict(X), **kwargs)


@pytest.mark.parametrize("kind", ["entity", "segment"])
@pytest.mark.parametrize("score", ["precision", "recall", "f1"])
def test_averages_of_spans_differ(kind, score):
    tagger = LookupTagger().fit(X[:2], Y[:2])
    names = [f"{kind}_{score}{average}" for average in ("", "_macro", "_weighted")]
    values = {get_scorer(name)(tagger, X, Y) for name in names}
    # Weighted recall is micro recall by definition.
    assert len(values) == (2 if score == "recall" else 3)


@pytest.mark.parametrize("name", NAMES)
def test_labels_never_predicted_score_zero_without_a_warning(name):
    y_true = [["B-PER", "B-LOC"]]
    assert get_scorer(name)(LookupTagger(blind=True).fit(X, Y), [["ann", "rome"]], y_true) == 0


@pytest.mark.parametrize("name", NAMES)
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
    scoring = {name: get_scorer(name) for name in NAMES}
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


# Segments in the three forms that models of segments are fitted on.
WORDS = [[[word] for word in x] for x in X]
TAGS = [
    ["B-PER", "O", "B-LOC"],
    ["B-LOC"],
    ["B-PER", "O"],
    ["B-PER", "I-PER", "B-LOC"],
    ["B-PER", "I-PER"],
    ["O", "B-PER"],
    ["B-LOC", "I-LOC"],
]
FORMS = {
    "tags": TAGS,
    "runs": [[tag[2:] or "O" for tag in tags] for tags in TAGS],
    "segments": [metrics.spans_from_tags(tags) for tags in TAGS],
}


class Recorder(SemiMarkovCRF):
    """Predict segments or labels that are given."""

    def __init__(self, segments=None, labels=None, scheme_="runs"):
        self.segments, self.labels, self.scheme_ = segments, labels, scheme_

    def predict_spans(self, X):
        return self.segments

    def predict(self, X):
        return self.labels


@pytest.mark.parametrize(("form", "piped"), in_turns(FORMS, [False, True]))
def test_grid_search_over_segments_takes_labels_in_every_form(form, piped):
    model = SemiMarkovCRF()
    grid = {"c2": [0.1, 1000.0], "max_length": [2, 3]}
    if piped:
        model = make_pipeline(SequenceVectorizer(), model)
        grid = {f"semimarkovcrf__{name}": values for name, values in grid.items()}
    search = GridSearchCV(model, grid, scoring=get_scorer("segment_f1"), cv=2, error_score="raise")
    search.fit(WORDS, FORMS[form])
    assert search.best_params_[next(iter(grid))] == 0.1
    best = search.best_estimator_
    found = (
        best[-1].predict_spans(best[:-1].transform(WORDS)) if piped else best.predict_spans(WORDS)
    )
    expected = segment_f1_score(FORMS["segments"], found)
    # A search is an estimator too: what it found is asked.
    assert search.score(WORDS, FORMS[form]) == expected
    assert get_scorer("segment_f1")(search, WORDS, FORMS[form]) == expected > 0


def test_listed_segments_are_compared_with_predicted_segments():
    touching = [[(0, 1, "a"), (1, 2, "a")]]
    model = Recorder(segments=touching, labels=[["a", "a"]])
    assert scorers.segment_f1(model, WORDS[2:3], touching) == 1.0
    assert scorers.segment_f1(model, WORDS[2:3], [[(0, 2, "a")]]) == 0.0
    assert scorers.segment_f1(make_pipeline(model), WORDS[2:3], touching) == 1.0


def test_labels_that_cannot_part_segments_are_compared_with_predicted_labels():
    model = Recorder(segments=[[(0, 1, "a"), (1, 2, "a")]], labels=[["a", "a"]])
    assert scorers.segment_f1(model, WORDS[2:3], [["a", "a"]]) == 1.0


def test_the_scheme_of_the_model_tells_how_labels_are_read():
    y = [["B", "B"]]
    assert scorers.segment_recall(Recorder(labels=[["B", "O"]]), WORDS[2:3], y) == 0.0
    tags = Recorder(labels=[["B", "O"]], scheme_="IOB2")
    assert scorers.segment_recall(tags, WORDS[2:3], y) == 0.5


def test_labels_of_tokens_that_are_no_tags_are_read_as_runs():
    y = [["street", "street", "city"]]
    assert scorers.segment_f1(Recorder(labels=y, scheme_=None), WORDS[:1], y) == 1.0
    half = Recorder(labels=[["street", "city", "city"]], scheme_=None)
    assert scorers.segment_f1(half, WORDS[:1], y) == 0.0
    spans = [[(0, 2, "street"), (2, 3, "city")]]
    assert scorers.segment_f1(Recorder(labels=y, scheme_=None), WORDS[:1], spans) == 1.0


def test_bare_letters_are_labels_unless_the_model_says_that_they_are_tags():
    y, half = [["E", "E", "I"]], [["E", "I", "I"]]
    for scheme, found in ((None, 0.0), ("runs", 0.0), ("IOE2", 1 / 3)):
        model = Recorder(labels=half, scheme_=scheme)
        assert scorers.segment_recall(model, WORDS[:1], y) == found
    for labels in (y, half):  # a part of the data that lacks a label is read the same way
        assert scorers.segment_f1(Recorder(labels=labels, scheme_=None), WORDS[:1], labels) == 1.0
    y, one = [["E", "E", "O"]], Recorder(labels=[["E", "O", "O"]], scheme_=None)
    assert scorers.segment_recall(one, WORDS[:1], y) == 0.0


def test_labels_that_a_model_of_tags_does_not_know_are_read_as_runs():
    model = Recorder(labels=[["B-1", "B-1", "O"]], scheme_="IOB2")
    assert scorers.segment_recall(model, WORDS[:1], [["B-1", "B-1", "A-1"]]) == 0.5
    assert scorers.segment_recall(model, WORDS[:1], [["B-1", "B-1", "O"]]) == 1.0


def test_users_may_say_how_labels_are_read():
    y, predicted = [["B-1", "B-1", "O"]], [["B-1", "O", "O"]]
    runs = make_scorer(segment_f1_score, scheme="runs")
    model = Recorder(labels=predicted, scheme_=None)
    assert runs(model, WORDS[:1], y) == 0.0 < scorers.segment_f1(model, WORDS[:1], y)
    scores = cross_validate(LookupTagger(), X, Y, scoring=runs, cv=3, error_score="raise")
    assert scores["test_score"].max() > 0


def test_a_part_without_any_segment_is_scored():
    model = Recorder(segments=[[(0, 1, "a")], []])
    assert scorers.segment_precision(model, WORDS[:2], [[], []]) == 0.0


@pytest.mark.parametrize("form", FORMS)
def test_early_stopping_watches_segments(form):
    rules = EarlyStopping(scoring="segment_f1", patience=2)
    model = SemiMarkovCRF(c2=0.1, early_stopping=rules)
    model.fit(WORDS, FORMS[form], X_val=WORDS[:3], y_val=FORMS[form][:3])
    assert model.best_score_ == get_scorer("segment_f1")(model, WORDS[:3], FORMS[form][:3]) > 0


def test_scorers_of_segments_stand_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_validate(
            SemiMarkovCRF(c2=0.1), WORDS, FORMS["segments"], cv=2, error_score="raise",
            scoring={name: get_scorer(name) for name in ("segment_f1", "segment_recall")},
        )  # fmt: skip
    assert len(scores["test_segment_f1"]) == 2
