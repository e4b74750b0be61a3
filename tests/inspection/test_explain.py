"""Explanations add up to differences of log-probabilities, whatever the model."""

from itertools import product

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from crfkit import (
    CRFClassifier,
    GraphCRF,
    HMMClassifier,
    MaxMarginCRF,
    MEMMClassifier,
    PackedSequences,
    SemiMarkovCRF,
    SequenceVectorizer,
    TransitionFeatures,
    TreeFeatures,
)
from crfkit.inspection import explain

RANDOM = np.random.RandomState(0)
WORDS = [RANDOM.randint(0, 5, n) for n in (4, 1, 3, 5, 2, 3) * 3]
X = [[{"w": str(w), "size": float(w), "one": True} for w in own] for own in WORDS]
Y = [["ABC"[(w + RANDOM.randint(2)) % 3] for w in own] for own in WORDS]
GRAPHS = [(x, [(0, t) for t in range(1, len(x))] + [(1, 2)] * (len(x) > 2)) for x in X]
HEADS = [[token | {"head": max(t - 2, -1)} for t, token in enumerate(x)] for x in X]

MODELS = {
    "chain": (CRFClassifier(boundary_weights=True, n_jobs=1), X),
    "all pairs": (CRFClassifier(all_possible_states=True, all_possible_transitions=True), X),
    "attributes of transitions": (
        make_pipeline(TransitionFeatures(SequenceVectorizer()), CRFClassifier()), X,
    ),
    "trees": (
        make_pipeline(
            TreeFeatures(SequenceVectorizer(), parent="head"), CRFClassifier(boundary_weights=True)
        ),
        HEADS,
    ),
    "graphs": (GraphCRF(), GRAPHS),
    "label by label": (MEMMClassifier(boundary_weights=True), X),
    "hidden": (HMMClassifier(), [[token["w"] for token in x] for x in X]),
    "hidden, order 2": (HMMClassifier(order=2), [[token["w"] for token in x] for x in X]),
    "hidden, order 2, densities": (
        HMMClassifier(order=2, emissions="gaussian"),
        [RANDOM.normal(size=(len(x), 2)) for x in X],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_terms_add_up_to_the_difference_of_log_probabilities(name):
    model, given = MODELS[name]
    model.fit(given, Y)
    last = getattr(model, "steps", [(None, model)])[-1][1]
    data = model[:-1].transform(given) if last is not model else given
    for s in (0, 2, 3):
        for position in range(len(Y[s])):
            why = explain(model, given[s], position)
            one = data[[s]] if hasattr(data, "offsets") else [data[s]]
            pairs = [last.sequence_log_proba(one, [y])[0] for y in (why.labels, why.other)]
            assert why.labels == last.predict(one)[0]
            assert why.labels[position] != why.other[position]
            assert [why.log_proba, why.other_log_proba] == pytest.approx(pairs, abs=1e-9)
            added = sum(term.contribution for term in why.terms)
            assert added == pytest.approx(pairs[0] - pairs[1], abs=1e-9)
            assert why.by_token().sum() == pytest.approx(added, abs=1e-9)
            assert sum(r.contribution for r in why.reasons()) == pytest.approx(added, abs=1e-9)
            scores = why.to_frame("labels").contribution.sum()
            assert scores == pytest.approx(why.score, abs=1e-9)


def test_packed_sequences_are_explained_and_numbers_stay_what_they_are():
    rows = [np.eye(3)[[0, 1, 2, 1]]] * 3
    packed = PackedSequences.from_matrices(rows)
    model = CRFClassifier(max_iter=20).fit(packed, [[0, 1, 2, 1]] * 3)
    why = explain(model, packed[[1]], 1)
    assert str(why) == str(explain(model, rows[1], 1))
    terms = why.to_frame()
    assert {type(k) for k in terms.label} == {int}
    assert {type(k) for k in terms.attribute if k is not None} == {int}


def test_the_other_labeling_is_the_best_with_another_label_there():
    model = CRFClassifier().fit(X, Y)
    every = model.predict_n_best([X[0]], 3 ** len(X[0]))[0]
    best = every[0].labels
    for t in range(len(best)):
        others = [one.labels for one in every if one.labels[t] != best[t]]
        assert explain(model, X[0], t).other == explain(model, X[0], t - len(best)).other
        assert explain(model, X[0], t).other == others[0]
        named = next(one.labels for one in every if one.labels[t] == others[-1][t])
        assert explain(model, X[0], t, label=named[t]).other == named
    assert explain(model, X[0]).other == every[1].labels


def test_segments_are_explained_by_what_each_segmentation_has():
    tags = [["O" if k == "C" else f"B-{k}" for k in own] for own in Y]
    model = SemiMarkovCRF().fit(X, tags)
    for position in range(len(X[3])):
        why = explain(model, X[3], position)
        added = sum(term.contribution for term in why.terms)
        assert added == pytest.approx(why.score - why.other_score, abs=1e-9)
        assert why.to_frame("other").contribution.sum() == pytest.approx(why.other_score, abs=1e-9)
    spans = [(0, 1, "A"), (1, 2, "B"), (2, 3, "O"), (3, 4, "O"), (4, 5, "A")]
    why = explain(model, X[3], other=spans)
    assert why.other[:2] == ["B-A", "B-B"]
    (known,) = model.sequence_log_proba([X[3]], [spans])
    assert why.other_log_proba == pytest.approx(known, abs=1e-9)


def test_scores_of_a_kernel_are_sums_over_support_tokens():
    numbers = [np.array([[token["size"], 1.0] for token in x]) for x in X]
    model = MaxMarginCRF(kernel="rbf", boundary_weights=True).fit(numbers, Y)
    for position in range(len(Y[3])):
        why = explain(model, numbers[3], position)
        added = sum(term.contribution for term in why.terms)
        assert added == pytest.approx(why.score - why.other_score, abs=1e-9)
        assert why.to_frame("labels").contribution.sum() == pytest.approx(why.score, abs=1e-9)
        of_tokens = [term for term in why.terms if term.kind == "support token"]
        assert of_tokens and {term.attribute for term in of_tokens} <= set(model.support_)
        term = of_tokens[0]
        place = list(model.support_).index(term.attribute)
        assert term.weight == model.dual_coef_[place, list(model.classes_).index(term.label)]


def test_labelings_that_are_given_are_compared_and_models_without_probabilities_have_scores():
    model = MaxMarginCRF().fit(X, Y)
    mine, theirs = ["A"] * len(X[0]), ["B"] * len(X[0])
    why = explain(model, X[0], labels=mine, other=theirs, tokens=["<i>"] * len(X[0]))
    assert (why.labels, why.other, why.probabilities) == (mine, theirs, None)
    added = sum(term.contribution for term in why.terms)
    assert added == pytest.approx(why.difference, abs=1e-9) and np.isnan(why.log_proba)
    assert "<i>" not in why.to_html() and "&lt;i&gt;" in why.to_html()
    with pytest.raises(ValueError, match="no probabilities"):
        explain(model, X[0], 0).without()
    model = CRFClassifier().fit(X, Y)
    best = explain(model, X[0])
    worse = explain(model, X[0], labels=best.other, other=best.labels)
    assert f" win by {np.exp(best.difference):.4g} : 1 " in best.to_html()
    assert f" lose by 1 : {np.exp(best.difference):.4g} " in worse.to_html()


def test_without_an_attribute_the_model_is_asked_again():
    model = CRFClassifier().fit(X, Y)
    why = explain(model, X[0], 1)
    left_out = why.without(100, window=1)
    assert {row.position for row in left_out} == {0, 1, 2}
    for row in left_out:
        changed = [dict(token) for token in X[0]]
        key = row.attribute.partition(":")[0]
        del changed[row.position][key]
        place = list(model.classes_).index(why.labels[1])
        again = model.predict_proba([changed])[0][1, place]
        assert row.probability == pytest.approx(again, abs=1e-12)
        assert row.change == pytest.approx(why.probabilities[1, place] - again, abs=1e-12)


def test_without_an_attribute_of_an_hmm_of_order_2_all_labelings_are_scored_without_it():
    model, given = MODELS["hidden, order 2"]
    model.fit(given, Y)
    why = explain(model, given[2], 1)
    terms = [explain(model, given[2], labels=y, other=list("ABC"))
             for y in map(list, product("ABC", repeat=3))]  # fmt: skip
    terms = [(why.labels, why.to_frame("labels")) for why in terms]
    for row in why.without():
        proba = dict.fromkeys("ABC", 0.0)
        for labels, frame in terms:
            left_out = (frame.position == row.position) & (frame.attribute == row.attribute)
            proba[labels[1]] += np.exp(frame.contribution[~left_out].sum())
        expected = proba[why.labels[1]] / sum(proba.values())
        assert row.probability == pytest.approx(expected, abs=1e-12)


def test_edges_are_named_by_both_ends_and_what_cancels_is_no_reason():
    star = [{"w": w} for w in "aba"], [(0, 1), (0, 2)]
    model = GraphCRF().fit([star] * 2, [["A", "B", "A"]] * 2)
    why = explain(model, star, 0, tokens=["x", "y", "z"])
    edges = {row.token for row in why.reasons() if row.kind == "transition"}
    assert edges and edges <= {"x – y", "x – z"}
    assert all(row.contribution != 0.0 for row in why.reasons())
    assert set(why.to_frame().query("kind == 'transition'").source) == {0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"position": 9}, "outside of the sequence, of 4 tokens"),
        ({"position": 0, "label": "X"}, "which has A, B, C"),
        ({"label": "A"}, "needs a position"),
        ({"position": 0, "other": ["A"] * 4}, "either other"),
        ({"other": ["A", "A", "A", "X"]}, "position 3"),
        ({"tokens": ["a"]}, "tokens has 1 items"),
    ],
)
def test_what_cannot_be_compared_is_named(options, message):
    model = CRFClassifier().fit(X, Y)
    with pytest.raises(ValueError, match=message):
        explain(model, X[0], **options)
