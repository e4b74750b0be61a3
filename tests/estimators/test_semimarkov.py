"""The semi-Markov CRF as an estimator."""

import copy
import dataclasses
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline

from crfkit import (
    CRFClassifier,
    EarlyStopping,
    PackedSequences,
    SegmentLimits,
    Segments,
    SemiMarkovCRF,
    SequenceVectorizer,
    StructuredPerceptron,
)
from crfkit._parallel import ThreadMap
from crfkit.data import PackedSegments
from crfkit.metrics import Segment
from crfkit.persistence import dumps, load, loads, save
from crfkit.potentials.base import FeatureChoice
from crfkit.solvers import LBFGS
from tests.estimators.segmentations import SPANS, TAGS, X, packed, with_segments, with_transitions
from tests.estimators.test_callbacks import Inspector
from tests.ids import stable
from tests.sampling import examples

EXACT = LBFGS(tol=0.0, gtol=1e-9)
RUNS = [["O", "P", "P", "O", "O", "L", "L", "L"], ["P", "P", "O", "L"], ["O"] * 3,
        ["P", "P", "O", "P", "O", "L"], ["P"] * 3]  # fmt: skip


def model(**parameters):
    return SemiMarkovCRF(**{"c2": 0.3, "solver": "lbfgs"} | parameters)


def exact(**parameters):
    return model(**{"solver": EXACT} | parameters)


ALL_WEIGHTS = {
    "boundary_weights": True, "all_possible_states": True, "all_possible_transitions": True
}  # fmt: skip


class Bounded(SemiMarkovCRF):
    """With the weights that a chain can be asked to have."""

    def _problem(self):
        features = FeatureChoice(min_freq=self.min_freq, **ALL_WEIGHTS)
        return dataclasses.replace(super()._problem(), features=features)


SINGLE = {"max_length": 1, "length": None, "token_parts": ["inside"]}
SPLIT = SegmentLimits(too_long="split")
SAME = {
    "plain": ({}, SemiMarkovCRF, packed),
    "lasso": ({"c1": 0.05, "solver": "owlqn"}, SemiMarkovCRF, packed),
    "steps": ({"solver": LBFGS(tol=0.0, gtol=1e-7)}, SemiMarkovCRF, with_transitions),
    "everything": ({"solver": LBFGS(tol=0.0, gtol=1e-8)}, Bounded, with_transitions),
    "rare": ({"min_freq": 2}, SemiMarkovCRF, packed),
}


@pytest.fixture(params=SAME)
def twins(request):
    """Return a model of segments of one token, a chain, and data."""
    parameters, form, data = SAME[request.param]
    given = {"c2": 0.1, "solver": EXACT} | parameters
    flags = ALL_WEIGHTS if form is Bounded else {}
    return form(**given, **SINGLE, limits=SPLIT), CRFClassifier(**given, **flags), data()


def test_segments_of_one_token_have_the_objective_of_a_chain(twins):
    data, found = twins[2], []
    for estimator in twins[:2]:
        problem = estimator._problem()
        training = problem.read(data, RUNS, [1.0, 2.0, 0.5, 1.0, 3.0])
        scores = problem.model(training)
        w = np.random.default_rng(3).normal(size=scores.n_parameters)
        with ThreadMap(1) as threads:
            found.append(problem.objective(scores, training, threads).value_and_grad(w))
    (value, gradient), (chain_value, chain_gradient) = found
    np.testing.assert_allclose(value, chain_value, rtol=1e-13)
    np.testing.assert_allclose(gradient, chain_gradient, rtol=1e-11, atol=1e-12)


def test_segments_of_one_token_are_a_chain(twins):
    segments, chain, data = twins
    segments.fit(data, RUNS)
    chain.fit(data, RUNS)
    assert segments.n_parameters_ == chain.n_parameters_
    np.testing.assert_allclose(segments.objective_, chain.objective_, rtol=1e-12)
    for name in ("coef_", "transitions_", "start_weights_", "end_weights_", "transition_coef_"):
        ours, theirs = (getattr(m, name) for m in (segments, chain))
        if theirs is not None:
            ours, theirs = (a if isinstance(a, np.ndarray) else a.toarray() for a in (ours, theirs))
            np.testing.assert_allclose(ours, theirs, atol=2e-7)
    assert segments.predict(data) == chain.predict(data)
    for ours, theirs in zip(segments.predict_proba(data), chain.predict_proba(data), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-7)
    ours, theirs = (m.sequence_log_proba(data, RUNS) for m in (segments, chain))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert segments.score(data, RUNS) == chain.score(data, RUNS)


def test_weights_that_a_chain_has_give_its_probabilities_to_the_last_digits():
    data = packed()
    chain = CRFClassifier(c2=0.1).fit(data, RUNS)
    segments = model(**SINGLE, limits=SPLIT).fit(data, RUNS)
    segments.coef_, segments.transitions_ = chain.coef_, chain.transitions_
    for ours, theirs in zip(segments.predict_proba(data), chain.predict_proba(data), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)
    ours, theirs = (m.sequence_log_proba(data, RUNS) for m in (segments, chain))
    np.testing.assert_allclose(ours, theirs, rtol=1e-11)


@pytest.mark.parametrize("outside", ["single", "long"])
def test_the_objective_is_the_penalized_negative_log_likelihood(outside):
    weight = np.array([1.0, 2.0, 0.5, 3.0, 1.0])
    fitted = exact(length="indicator", outside=outside).fit(packed(), TAGS, sample_weight=weight)
    names = "coef_", "first_coef_", "last_coef_", "single_coef_"
    parts = [getattr(fitted, name).data for name in names]
    parts += [fitted.transitions_.ravel(), fitted.length_scores_[fitted.length_scores_ > -np.inf]]
    penalty = 0.3 * sum((part**2).sum() for part in parts)
    if outside == "single":  # tags tell the segmentation
        loss = -(weight * fitted.sequence_log_proba(packed(), TAGS)).sum()
        np.testing.assert_allclose(fitted.objective_, loss + penalty, rtol=1e-10)
    else:  # a segmentation with longest runs outside is one of those that the tags stand for
        loss = -(weight * fitted.sequence_log_proba(packed(), TAGS)).sum()
        assert loss + penalty < fitted.objective_


def test_tags_spans_and_segments_give_the_same_model():
    fits = [
        model(scheme=scheme).fit(X, y)
        for scheme, y in (
            ("auto", TAGS),
            ("IOB2", SPANS),
            ("auto", [[Segment(i, j, k) for i, j, k in row[::-1]] for row in SPANS]),
        )
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].coef_.toarray(), other.coef_.toarray())
        assert other.predict(X) == fits[0].predict(X) and other.scheme_ == "IOB2"
    assert fits[0].predict(X) == TAGS
    assert [[tuple(s) for s in row] for row in fits[0].predict_spans(X)] == SPANS
    again = model().fit(X, fits[0].predict_spans(X))
    np.testing.assert_array_equal(again.coef_.toarray(), fits[0].coef_.toarray())


def test_the_score_takes_tags_and_segments():
    fitted = model().fit(X, TAGS)
    wrong = [[(1, 2, "PER"), (5, 8, "LOC")], *SPANS[1:]]
    assert fitted.score(X, TAGS) == fitted.score(X, SPANS) == 1.0
    assert fitted.score(X, wrong) == 1.0 - 1 / sum(map(len, X))
    assert fitted.score(X[2:3], [[]]) == 1.0
    assert fitted.score(X, [[(0, 1, "ORG")], *SPANS[1:]]) < 1.0


def test_right_segments_are_right_in_any_tags():
    y = [[tag.replace("B-", "I-") for tag in row] for row in TAGS[:4]]
    fitted = model(scheme="conll").fit(X[:4], y)
    assert fitted.predict_spans(X[:4]) == model(scheme="IOB2").fit(X, TAGS).predict_spans(X[:4])
    assert fitted.score(X[:4], y) == fitted.score(X[:4], TAGS[:4]) == 1.0
    assert fitted.score(X[:1], [["X", *y[0][1:]]]) < 1.0


def test_labels_of_segments_may_be_no_strings():
    y = [[(i, j, {"PER": 1, "LOC": 2}[k]) for i, j, k in row] for row in SPANS]
    fitted = model().fit(X, y)
    assert fitted.classes_.tolist() == [1, 2, "O"]
    assert fitted.predict(X)[1] == ["B-1", "I-1", "O", "B-2"]
    assert [[tuple(s) for s in row] for row in fitted.predict_spans(X)] == y
    assert fitted.score(X, y) == fitted.score(X, fitted.predict(X)) == 1.0
    np.testing.assert_array_equal(
        fitted.sequence_log_proba(X, y), fitted.sequence_log_proba(X, fitted.predict(X))
    )


def test_runs_are_predicted_as_labels_and_as_segments():
    fitted = model().fit(X, RUNS)
    assert fitted.scheme_ == "runs" and fitted.predict(X) == RUNS
    segments = fitted.predict_spans(X[1:3])
    assert segments == [[(0, 2, "P"), (3, 4, "L")], []]
    assert fitted.max_lengths_ == {"L": 3, "O": 1, "P": 3}


def test_probabilities_of_label_sequences_of_runs_sum_to_one():
    fitted = model().fit(X, RUNS)
    paths = [[a, b, c] for a in "LOP" for b in "LOP" for c in "LOP"]
    found = fitted.sequence_log_proba([X[2]] * len(paths), paths)
    np.testing.assert_allclose(np.exp(found).sum(), 1.0, rtol=1e-12)
    exactly = fitted.sequence_log_proba([X[4]] * 2, [[(0, 3, "P")], [(0, 1, "P"), (1, 3, "P")]])
    together = fitted.sequence_log_proba([X[4]], [["P", "P", "P"]])
    assert np.logaddexp(*exactly) < together[0]


@pytest.mark.parametrize("outside", ["single", "long"])
def test_tokens_outside_are_segments_of_one_token_or_of_many(outside):
    fitted = model(outside=outside).fit(X, TAGS)
    assert fitted.max_lengths_["O"] == {"single": 1, "long": 3}[outside]
    o = fitted.classes_.tolist().index("O")
    assert (fitted.transitions_[o, o] != 0.0) == (outside == "single")
    assert fitted.predict(X) == TAGS
    longer = [[{"w": "the"}] * 7]
    assert np.isfinite(fitted.sequence_log_proba(longer, [["O"] * 7])).all()
    (found,) = fitted.sequence_log_proba([X[0][:2]], [["O", "O"]])
    together, _ = fitted.predict_span_proba([X[0][:2]] * 2, [[(0, 2, "O")], []])
    if outside == "single":
        assert together[0] == 0.0 < np.exp(found)
    else:
        assert 0.0 < together[0] < np.exp(found)


def test_long_runs_outside_are_cut_at_the_longest_length():
    fitted = model(outside="long", max_length=2, limits=SPLIT).fit(X, TAGS)
    assert set(fitted.max_lengths_.values()) == {2}


def test_lengths_may_be_given_by_number_by_label_or_learned():
    learned = model().fit(X, TAGS)
    assert learned.max_lengths_ == {"LOC": 3, "O": 1, "PER": 2}
    number = model(max_length=5).fit(X, TAGS)
    assert number.max_lengths_ == {"LOC": 5, "O": 1, "PER": 5}
    by_label = model(max_length={"PER": 4, "ORG": 9}).fit(X, TAGS)
    assert by_label.max_lengths_ == {"LOC": 3, "O": 1, "PER": 4}
    assert by_label.length_scores_.shape == (4, 3)


@pytest.mark.parametrize("length", ["indicator", "buckets", "geometric", "poisson", None,
                                    ["buckets", "3 <= seg.length <= 5", np.log]])  # fmt: skip
def test_features_of_the_length_are_learned(length):
    fitted = exact(length=length, max_length=6).fit(X, TAGS)
    counted = fitted.count_parameters(X, TAGS)
    assert counted.total == fitted.n_parameters_
    assert (counted.by_kind["length x label"] > 0) == (length is not None)
    assert fitted.predict(X) == TAGS


ERRORS = {
    "too long": (model(max_length={"LOC": 2}), TAGS,
                 ["sequence 0, position 5", "'LOC' has 3 tokens", "max_length is 2", "too_long="]),
    "too short": (model(limits=SegmentLimits(min_length={"LOC": 2})), TAGS,
                  ["sequence 1, position 3", "'LOC' has 1 tokens", "min_length is 2"]),
    "crossed": (model(max_length={"PER": 2},
                      limits=SegmentLimits(min_length={"ORG": 1, "PER": 3})), SPANS[:1],
                ["sequence 0, position 1", "min_length is 3"]),
    "none so short": (model(max_length={"PER": 2}, outside="long", limits=SegmentLimits(
        min_length={"O": 2})), SPANS, ["sequence 0, position 0", "'O' has 1 tokens"]),
    "a tag": (model(max_length={"B-PER": 5}), TAGS, ["max_length: 'B-PER' is a tag", "'PER'"]),
    "a tag of segments": (model(limits=SegmentLimits(min_length={"LOC": 1, "S-LOC": 2})),
                          SPANS, ["min_length: 'S-LOC' is a tag", "'LOC'"]),
    "a tag forbidden": (model(limits=SegmentLimits(forbidden=[("O", "I-PER")])), TAGS,
                        ["forbidden: 'I-PER' is a tag", "'PER'"]),
    "no type": (model(max_length={"B": 5}, scheme="IOB2"), [["O", "B", "I", *"OOOOO"]],
                ["max_length: 'B' is a tag", "'_'"]),
    "twice": (model(max_length={1: 5, "1": 2}), [[(0, 1, 1)], *SPANS[1:]],
              ["max_length: 1 and '1' are the same label"]),
    "outside": (model(max_length={"O": 10}), TAGS, ["max_length['O']=10", "outside='long'"]),
    "outside least": (model(limits=SegmentLimits(min_length={"O": 2})), TAGS,
                      ["min_length['O']=2", "outside='single'"]),
    "forbidden": (model(limits=SegmentLimits(forbidden=[("PER", "PER")])), TAGS,
                  ["sequence 4, position 1", "'PER' follows one of 'PER'", "`forbidden`"]),
    "too far": (model(), [[(1, 12, "PER")], *SPANS[1:]], ["sequence 0 of y", "within the 8"]),
    "rest": (model(max_length=2, limits=SegmentLimits(min_length=2, too_long="split")),
             [[(5, 8, "LOC")], [], [], [], []], ["sequence 0, position 7", "was cut"]),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_segments_that_break_the_constraints_are_told_with_their_place(case):
    estimator, y, parts = ERRORS[case]
    with pytest.raises(ValueError) as info:
        estimator.fit(X[: len(y)], y)
    for part in parts:
        assert part in str(info.value)


PARAMETERS = {
    "max_length": [0, -1, 2.5, True, "3", {"PER": 0}, {"PER": None}],
    "length": ["bucket", 3, ["indicator", None], iter(["indicator"]), [np.log, "bucket"],
               [lambda lengths: lengths[99]], lambda lengths: np.full(len(lengths), np.inf)],
    "outside": ["shared", None],
    "scheme": ["IOB3", 3],
    "token_parts": ["inside", ["middle"], iter(["inside"]), 3],
    "limits": [{"min_length": 2}, SegmentLimits(min_length=0),
                    SegmentLimits(min_length={"PER": 1.5}),
                    SegmentLimits(forbidden=["PER"]), SegmentLimits(forbidden="PER"),
                    SegmentLimits(forbidden=[("PER", ["LOC"])]),
                    SegmentLimits(forbidden=[(None, "LOC")]),
                    SegmentLimits(forbidden=iter([("PER", "PER")])),
                    SegmentLimits(too_long="cut")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, values in PARAMETERS.items() for v in values], ids=stable
)
def test_bad_parameters_are_refused_by_name(name, value):
    nested = {"limits": "limits|min_length|forbidden|too_long", "scheme": "scheme"}
    with pytest.raises((TypeError, ValueError, IndexError), match=nested.get(name, name)):
        model(**{name: value}).fit(X, TAGS)


def test_functions_of_lengths_get_all_lengths_at_once():
    asked = []

    def fourth(lengths):
        asked.append(lengths.tolist())
        return lengths >= lengths[3]

    fitted = model(length=["buckets", fourth], max_length={"PER": 5}).fit(X, TAGS)
    assert asked == [[1, 2, 3, 4, 5]] and fitted.predict(X) == TAGS
    with pytest.raises(IndexError, match="length: the function got .* the lengths 1 to 3"):
        model(length=fourth).fit(X, TAGS)


def test_labels_that_a_part_of_the_data_lacks_are_left_out():
    limits = SegmentLimits(
        min_length={"ORG": 2, "PER": 1}, forbidden=[("ORG", "PER"), ("PER", "ORG")]
    )
    more = {"loss": "softmax_margin", "cost": {"PER": 2.0}}
    fitted = model(max_length={"ORG": 7, "PER": 2}, limits=limits, **more)
    assert fitted.fit(X, TAGS).max_lengths_ == {"LOC": 3, "O": 1, "PER": 2}


def test_a_dict_that_names_no_label_at_all_is_told():
    with pytest.warns(
        UserWarning, match=r"max_length names none of .*'LOC'.* but \['per', 'org'\]"
    ):
        fitted = model(max_length={"per": 7, "org": 2}).fit(X, TAGS)
    assert fitted.max_lengths_ == {"LOC": 3, "O": 1, "PER": 2}
    with pytest.warns(UserWarning, match="min_length names none of the labels of y"):
        model(limits=SegmentLimits(min_length={"loc": 1})).fit(X, TAGS)


@pytest.mark.parametrize("limits", [
    {"ORG": 3}, {"O": 10}, {"ADVP": 3}, {"O": 10, "ORG": 2},
], ids=str)  # fmt: skip
def test_a_dict_of_labels_that_a_fold_lacks_is_no_slip(limits):
    y = [[(i, j, "ADJP") for i, j, _ in row] for row in SPANS]
    runs = [["ADJP"] * len(row) for row in X]
    assert model(max_length=limits, outside="long").fit(X, y).max_lengths_["ADJP"] == 3
    model(max_length=limits, outside="long").fit(X, runs)


def test_a_slip_is_told_with_what_is_meant():
    with pytest.warns(UserWarning, match="Is 'per' meant to be 'PER'"):
        model(max_length={"ORG": 2, "per": 7}).fit(X, TAGS)


def test_long_lengths_are_told_what_to_give_instead():
    y, expected = [["P"] * 1200 + ["Q"]], r'of lengths is about 1.*length="log\(seg.length\)"'
    with pytest.warns(UserWarning, match=expected) as caught:
        model(length="geometric").count_parameters([[{"a": 1}] * 1201], y)
    assert not any("Scale numeric" in str(one.message) for one in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(length="log(seg.length)").count_parameters([[{"a": 1}] * 1201], y)


@pytest.mark.parametrize("scheme", ["IOB2", "runs"])
def test_limits_name_labels_as_they_are_told_from_others(scheme):
    spans = [[(i, j, {"PER": 1, "LOC": "2"}[k]) for i, j, k in one] for one in SPANS]
    limits = SegmentLimits(min_length={1: 1}, forbidden=[("1", 2)])
    fitted = model(max_length={"1": 6, 2: 7}, limits=limits, scheme=scheme)
    if scheme == "runs":
        with pytest.warns(UserWarning, match="max_length names none"):
            fitted.fit(X, spans)
        assert fitted.max_lengths_ == {1: 2, "O": 1, "2": 3}
        assert not np.isinf(fitted.transitions_).any()
    else:
        fitted.fit(X, spans)
        assert fitted.max_lengths_ == {1: 6, "O": 1, "2": 7}
        labels = fitted.classes_.tolist()
        assert fitted.transitions_[labels.index(1), labels.index("2")] == -np.inf


def test_what_is_unknown_counts_as_an_error_and_has_no_probability():
    fitted = model().fit(X[1:], TAGS[1:])
    assert fitted.max_lengths_["LOC"] == 1
    assert 0.0 < fitted.score(X[:1], TAGS[:1]) < 1.0
    assert np.isneginf(fitted.sequence_log_proba(X[:1], TAGS[:1])).all()
    assert np.isneginf(fitted.sequence_log_proba(X[1:2], [["B-ORG", "O", "O", "O"]])).all()


def test_forbidden_steps_have_no_weight():
    limits = SegmentLimits(forbidden=[("LOC", "PER"), ("PER", "LOC")])
    fitted = model(limits=limits).fit(X, TAGS)
    steps = [("LOC", "PER"), ("PER", "LOC")]
    assert all(fitted.transition_features_[step] == -np.inf for step in steps)
    assert np.isinf(fitted.transitions_).sum() == 2
    assert np.isneginf(fitted.sequence_log_proba(X[4:], [[(0, 1, "PER"), (1, 2, "LOC")]])).all()


def test_grid_search_over_lengths_penalties_and_constraints():
    grid = {
        "max_length": [None, {"PER": 3, "LOC": 4}],
        "c2": [0.1],
        "outside": ["single", "long"],
        "limits": [None, SegmentLimits(forbidden=[("LOC", "LOC")])],
    }
    search = GridSearchCV(model(limits=SPLIT), grid, cv=2, error_score="raise")
    search.fit(X, TAGS)
    assert len(search.cv_results_["params"]) == 8
    assert search.best_estimator_.predict(X) == search.predict(X)
    nested = {"limits__too_long": ["raise", "split"]}
    GridSearchCV(model(limits=SPLIT), nested, cv=2, error_score="raise").fit(X, SPANS)


def test_cross_validation_takes_segments_and_pipelines():
    pipeline = make_pipeline(SequenceVectorizer(), model())
    by_tags = cross_val_score(pipeline, X, TAGS, cv=2, error_score="raise")
    spans = np.empty(len(SPANS), object)
    spans[:] = SPANS
    by_spans = cross_val_score(pipeline, X, spans, cv=2, error_score="raise")
    np.testing.assert_array_equal(by_tags, by_spans)
    found = cross_val_predict(model(), X, TAGS, cv=2)
    assert [len(row) for row in found] == [len(row) for row in X]


def test_sequences_without_any_segments_are_learned_and_scored():
    fitted = model().fit(X[:2], [[], []])
    assert fitted.predict(X[:1]) == [["O"] * 8] and fitted.scheme_ == "IOB2"
    spans = [[], [], [(0, 1, "PER")], [(0, 2, "PER")]]
    scores = cross_val_score(model(limits=SPLIT), X[:4], spans, cv=2, error_score="raise")
    assert 0.0 <= scores[0] <= 1.0 and scores[1] == 6 / 9  # all outside, learned from none
    runs = model(scheme="runs").fit(X, RUNS)
    found = runs.predict_spans(X[2:3])
    assert found == [[]] and np.isfinite(runs.sequence_log_proba(X[2:3], found)).all()
    assert runs.score(X[2:3], [[]]) == 1.0


@pytest.mark.parametrize("y", [TAGS, SPANS], ids=["tags", "spans"])
def test_early_stopping_scores_tags_and_segments(y):
    rules = EarlyStopping(scoring="entity_f1", patience=2)
    fitted = model(early_stopping=rules, random_state=0).fit(X, TAGS, X_val=X, y_val=y)
    assert fitted.best_score_ == max(fitted.validation_scores_.values()) == 1.0
    held = model(early_stopping=True, random_state=0).fit(X * 3, list(y) * 3)
    assert held.best_iteration_ in held.validation_scores_
    with pytest.raises(ValueError, match="in X_val or y_val: .*sequence 0"):
        model(early_stopping=True).fit(X, TAGS, X_val=X, y_val=[[(0, 99, "PER")], *SPANS[1:]])


@pytest.mark.parametrize("data", ["dicts", "everything"])
def test_models_come_back_from_files_and_pickles(data, tmp_path):
    features = X if data == "dicts" else with_segments(with_transitions())
    limits = SegmentLimits(forbidden=[("LOC", "LOC")], min_length={"PER": 1})
    fitted = model(max_length={"LOC": 4}, limits=limits, length=["poisson"]).fit(features, TAGS)
    save(fitted, tmp_path / "model")
    others = [
        pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), loads(dumps(fitted)),
        load(tmp_path / "model"), load(tmp_path / "model", mmap=True),
    ]  # fmt: skip
    for other in others:
        assert other.predict(features) == fitted.predict(features)
        assert other.likely_spans(features) == fitted.likely_spans(features)
        assert other.max_lengths_ == fitted.max_lengths_
        assert repr(other.get_params()) == repr(fitted.get_params())
        assert dict(other.segment_features_) == dict(fitted.segment_features_)
    assert clone(fitted).fit(features, TAGS).predict(features) == fitted.predict(features)


def test_attributes_of_segments_are_learned_and_named():
    data = with_segments(packed())
    fitted = exact().fit(data, TAGS)
    assert fitted.segment_coef_.shape == (data.segments.n_features, 3)
    names = fitted.segment_feature_names_in_.tolist()
    assert names == data.segments.rows.feature_names.tolist()
    assert set(fitted.segment_features_) <= {(n, k) for n in names for k in ("PER", "LOC")}
    assert len(fitted.segment_features_) > 0
    counted = fitted.count_parameters(data, TAGS)
    count = counted.by_kind["attribute of segments x label"]
    assert count > 0 and counted.total == fitted.n_parameters_
    assert f"{count:,} attribute of segments x label" in str(counted)
    with pytest.raises(ValueError, match="no attributes of segments, but the model"):
        fitted.predict(packed())
    with pytest.raises(ValueError, match="2 attributes of segments|attributes of segments"):
        model().fit(packed(), TAGS).predict(data)


def test_attributes_of_segments_are_enough_to_learn_from():
    data = with_segments(packed())
    alone = PackedSequences(dense=np.zeros((24, 0)), offsets=data.offsets, segments=data.segments)
    assert alone.n_features == 0
    fitted = exact().fit(alone, TAGS)
    assert len(fitted.segment_features_) > 0 == fitted.coef_.nnz
    with pytest.raises(ValueError, match="no token of X has any feature"):
        model().fit(alone.with_segments(None), TAGS)


def test_other_names_of_attributes_of_segments_are_refused():
    data = with_segments(packed())
    rows = data.segments.rows
    turned = rows._from_arrays(**rows.__dict__ | {"names": np.array(["x", "y", "z"], object)})
    other = PackedSegments._from_arrays(
        turned, data.segments.ptr, data.segments.length, data.segments.row
    )
    fitted = model().fit(data, TAGS)
    with pytest.raises(ValueError, match="Feature 0 of X is 'x'; in fit it was"):
        fitted.predict(data.with_segments(other))
    with pytest.raises(ValueError, match="(?s)in X_val or y_val: .*'x'"):
        model(early_stopping=True).fit(data, TAGS, X_val=data.with_segments(other), y_val=TAGS)


def test_first_and_last_tokens_have_weights_of_their_own():
    fitted = exact().fit(X, TAGS)
    assert fitted.first_features_["w:new", "LOC"] > 0 < fitted.last_features_["w:city", "LOC"]
    assert fitted.first_features_["w:city", "LOC"] < 0 > fitted.last_features_["w:new", "LOC"]
    assert ("w:city", "PER") not in {**fitted.first_features_, **fitted.last_features_}
    names = [[{"w": t["w"], "seg.first.x": t["w"], "seg.last.y": t["w"]} for t in s] for s in X]
    other = exact(token_parts=["inside"]).fit(names, TAGS)
    assert {name.split(":")[0] for name, _ in other.state_features_} == {"w"}
    assert {name.split(":")[0] for name, _ in other.first_features_} == {"seg.first.x"}
    assert {name.split(":")[0] for name, _ in other.last_features_} == {"seg.last.y"}


def test_any_name_of_an_attribute_is_read_in_time():
    names = {"part__seg.first.x": "first", "seg.last.a__seg.first.b": "last",
             "_" * 3000: "", "x=seg.first.y": "", "x_seg.single.y": "",
             "_" * 3000 + "seg.single.z": "single"}  # fmt: skip
    fitted = exact(token_parts=["inside"]).fit(
        [[dict.fromkeys(names, True)] * 2] * 2, [["A"] * 2] * 2
    )
    for part in ("", "first", "last", "single"):
        weights = getattr(fitted, f"{part}_coef_" if part else "coef_")
        used = fitted.feature_names_in_[np.unique(weights.nonzero()[0])].tolist()
        assert sorted(used) == sorted(name for name, kind in names.items() if kind == part)


def test_the_model_is_bit_equal_for_any_number_of_threads(monkeypatch):
    from crfkit import _parallel

    monkeypatch.setattr(_parallel, "CHUNK_CELLS", 60)
    data = with_segments(with_transitions())
    fits = [model(n_jobs=n, outside="long").fit(data, TAGS) for n in (1, 2, 4)]
    for other in fits[1:]:
        for name in (
            "coef_",
            "first_coef_",
            "last_coef_",
            "single_coef_",
            "segment_coef_",
            "transition_coef_",
        ):
            assert getattr(other, name).data.tobytes() == getattr(fits[0], name).data.tobytes()
        assert other.transitions_.tobytes() == fits[0].transitions_.tobytes()
        assert other.length_scores_.tobytes() == fits[0].length_scores_.tobytes()


def test_a_token_of_weight_zero_does_not_teach_its_label():
    wrong = [TAGS[0][:4] + ["B-PER"] + TAGS[0][5:], *TAGS[1:]]
    weight = [np.ones(len(row)) for row in TAGS]
    weight[0][4] = 0.0
    fits = [
        Bounded(c2=0.3, solver=EXACT, max_length=3).fit(X, y, sample_weight=weight)
        for y in (TAGS, wrong)
    ]
    np.testing.assert_allclose(fits[0].transitions_, fits[1].transitions_, atol=1e-6)
    np.testing.assert_allclose(fits[0].coef_.toarray(), fits[1].coef_.toarray(), atol=1e-6)


def test_equal_token_weights_are_the_weight_of_the_sequence():
    weight = [2.0, 1.0, 3.0, 1.0, 0.5]
    tokens = [np.full(len(row), w) for row, w in zip(TAGS, weight, strict=True)]
    fits = [exact().fit(X, TAGS, sample_weight=w) for w in (weight, tokens)]
    np.testing.assert_array_equal(fits[0].coef_.data, fits[1].coef_.data)


@pytest.mark.parametrize("kind", [
    SemiMarkovCRF(c2=0.3, solver="lbfgs"), SemiMarkovCRF(loss="hinge", c2=0.3, max_iter=5),
    StructuredPerceptron(structure=Segments(), random_state=0),
], ids=lambda kind: f"{type(kind).__name__}-{getattr(kind, 'loss', '')}")  # fmt: skip
def test_sequences_of_weight_zero_teach_no_lengths_and_labels(kind):
    long = [[(0, 6, "PER"), (6, 8, "ORG")]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        without = clone(kind).fit(packed(), SPANS)
        weight = [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
        weighted = clone(kind).fit(packed()[[0, 0, 1, 2, 3, 4]], long + SPANS, sample_weight=weight)
    assert weighted.max_lengths_ == {"LOC": 3, "O": 1, "PER": 2}
    np.testing.assert_array_equal(weighted.coef_.toarray(), without.coef_.toarray())
    np.testing.assert_array_equal(weighted.length_scores_, without.length_scores_)


def test_a_cost_counts_the_labels_of_sequences_of_weight_zero():
    y = [[(0, 8, "ORG")], *SPANS[1:]]
    cost, weight = 1.0 - np.eye(4), [0.0, 1.0, 1.0, 1.0, 1.0]
    fitted = model(loss="softmax_margin", cost=cost).fit(X, y, sample_weight=weight)
    assert fitted.classes_.tolist() == ["LOC", "O", "PER"]


@pytest.mark.parametrize("loss", ["log", "softmax_margin", "hinge"])
def test_other_losses_separate_the_data(loss):
    solver = "auto" if loss == "hinge" else "lbfgs"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = model(loss=loss, solver=solver, c2=0.01, max_iter=50, random_state=0).fit(X, TAGS)
    assert fitted.predict(X) == TAGS


def test_callbacks_get_a_usable_model_and_tags():
    inspector = Inspector()
    fitted = model().set_callbacks(inspector).fit(X, SPANS)
    assert len(inspector.seen) == fitted.n_iter_ + 1
    for _, data, labels, other, predicted in inspector.seen:
        assert labels == TAGS and other.predict(data) == predicted
    assert inspector.seen[-1][3].predict_spans(X) == fitted.predict_spans(X)


def test_ctrl_c_keeps_the_weights_reached(monkeypatch):
    from crfkit.objective.batch import Objective

    calls, plain = [], Objective.value_and_grad

    def interrupt(self, *arguments):
        calls.append(None)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return plain(self, *arguments)

    monkeypatch.setattr(Objective, "value_and_grad", interrupt)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        fitted = model().fit(X, TAGS)
    assert 0 < fitted.n_iter_ < 4 and len(fitted.predict(X)) == len(X)


@examples(10)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from("ABO")), min_size=1, max_size=4),
    st.sampled_from(["single", "long"]),
)
def test_any_segments_can_be_learned(sizes, outside):
    stops = np.cumsum([size for size, _ in sizes]).tolist()
    spans = [
        (stop - size, stop, k) for stop, (size, k) in zip(stops, sizes, strict=True) if k != "O"
    ]
    tokens = [[f"t{t}"] for t in range(stops[-1])]
    fitted = SemiMarkovCRF(outside=outside, c2=1.0, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit([tokens], [spans or ["O"] * stops[-1]])
    assert np.isfinite(fitted.sequence_log_proba([tokens], [spans or ["O"] * stops[-1]])).all()
