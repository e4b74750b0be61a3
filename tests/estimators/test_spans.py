"""Spans, their probabilities and confidence: asked in the same way of chains and of segments."""

import collections
import copy
from itertools import product

import numpy as np
import pytest

from crfkit import (
    CRFClassifier,
    CRFClassifierCV,
    MaxMarginCRF,
    Segments,
    SemiMarkovCRF,
    StructuredPerceptron,
)
from crfkit.constraints import Count, Known
from crfkit.inference import base as fitted_model
from crfkit.metrics import Segment, illegal_tags, spans_from_tags
from tests.estimators.segmentations import TAGS, X, enumerated

SHORT = [X[1], X[2], X[4], []]
RUNS = [[tag[2:] or tag for tag in row] for row in TAGS]
MODELS = {
    "chain": (CRFClassifier(solver="lbfgs", c2=0.3), TAGS),
    "chain, posterior": (CRFClassifier(solver="lbfgs", c2=0.3, decoding="posterior"), TAGS),
    "chain of runs": (CRFClassifier(solver="lbfgs", c2=0.3), RUNS),
    "search": (CRFClassifierCV(c2s=[0.3], cv=2), TAGS),
    "segments": (SemiMarkovCRF(c2=0.3, solver="lbfgs"), TAGS),
    "segments, long": (SemiMarkovCRF(c2=0.3, solver="lbfgs", outside="long"), TAGS),
}
WITHOUT = {
    "perceptron": (StructuredPerceptron(), TAGS),
    "votes": (StructuredPerceptron(averaging="vote"), TAGS),
    "margin": (MaxMarginCRF(), TAGS),
    "perceptron of segments": (StructuredPerceptron(structure=Segments()), TAGS),
    "margin of segments": (MaxMarginCRF(structure=Segments()), TAGS),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    estimator, y = MODELS[request.param]
    return estimator.fit(X, y)


@pytest.fixture(scope="module", params=[name for name in MODELS if "segments" not in name])
def chain(request):
    estimator, y = MODELS[request.param]
    return copy.copy(estimator).fit(X, y)


def spans_of(labels):
    """Read the spans of tags, or of runs of labels, but for those outside."""
    if any(label[1:2] == "-" for label in labels):
        return spans_from_tags(labels)
    bounds = [
        t for t in range(len(labels) + 1) if t in (0, len(labels)) or labels[t - 1] != labels[t]
    ]
    pairs = zip(bounds, bounds[1:], strict=False)
    return [Segment(a, b, labels[a]) for a, b in pairs if labels[a] != "O"]


def labelings(model, tokens):
    """The spans of each labeling, its labels where it has such, and its probability."""
    if "length_scores_" in vars(model):
        paths, shares = enumerated(model, tokens)
        return [(inside(path), None, share) for path, share in zip(paths, shares, strict=True)]
    paths = list(map(list, product(model.classes_.tolist(), repeat=len(tokens))))
    shares = np.exp(model.sequence_log_proba([tokens] * len(paths), paths))
    return [(spans_of(path), path, share) for path, share in zip(paths, shares, strict=True)]


def inside(path):
    return [segment for segment in path if segment[2] != "O"]


def totals(found):
    """The probability of each span, given those of labelings."""
    whole, by_span = sum(share for *_, share in found), collections.Counter()
    for spans, _, share in found:
        by_span.update({tuple(span): share / whole for span in spans})
    return by_span


def test_spans_are_those_of_the_labels_that_are_predicted(model):
    assert model.predict_spans(X) == [spans_of(labels) for labels in model.predict(X)]


@pytest.mark.parametrize("name", WITHOUT)
def test_models_without_probabilities_predict_spans(name):
    estimator, y = WITHOUT[name]
    model = estimator.fit(X, y)
    assert model.predict_spans(X) == [spans_of(labels) for labels in model.predict(X)]
    for question in ("predict_span_proba", "likely_spans", "confidence"):
        with pytest.raises(AttributeError, match=f"has no probabilities, so no {question}: use"):
            getattr(model, question)


def test_probabilities_of_spans_of_chains_are_those_of_enumeration(chain):
    expected = [totals(labelings(chain, tokens)) for tokens in SHORT]
    found = chain.predict_span_proba(SHORT, [list(spans)[::-1] for spans in expected])
    for ours, spans in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, list(spans.values())[::-1], rtol=1e-9)
    for threshold in (0.01, 0.3, 1.0):
        for ours, spans in zip(
            chain.likely_spans(SHORT, threshold=threshold), expected, strict=True
        ):
            likely = {span: p for span, p in spans.items() if p >= threshold}
            assert [one[:3] for one in ours] == sorted(likely)
            np.testing.assert_allclose([p for *_, p in ours], [likely[s[:3]] for s in ours])


FIRST = Segment(0, 1, "PER")
RULES = {
    "legal": ("IOB2", lambda spans, labels: not labels or not illegal_tags([labels], "IOB2")),
    "count": (
        Count("PER", at_most=1),
        lambda spans, labels: [label for *_, label in spans].count("PER") < 2,
    ),
    "known": (Known([[FIRST]]), lambda spans, labels: FIRST in spans),
}


@pytest.mark.parametrize("rule", RULES)
def test_constraints_hold_for_spans_and_for_what_is_said_of_them(model, rule):
    constraints, kept = RULES[rule]
    if rule == "legal" and "PER" in model.classes_ and "length_scores_" not in vars(model):
        pytest.skip("no tags")
    for tokens in SHORT[:-1]:
        found = [one for one in labelings(model, tokens) if kept(*one[:2])]
        expected = totals(found)
        (ours,) = model.predict_span_proba([tokens], [list(expected)], constraints=constraints)
        np.testing.assert_allclose(ours, list(expected.values()), rtol=1e-8)
        (likely,) = model.likely_spans([tokens], threshold=0.2, constraints=constraints)
        assert {one[:3] for one in likely} == {s for s, p in expected.items() if p >= 0.2}
        (spans,) = model.predict_spans([tokens], constraints=constraints)
        (labels,) = model.predict([tokens], constraints=constraints)
        assert spans == spans_of(labels) and kept(spans, labels)
        (alone,) = model.confidence([tokens], of="spans", constraints=constraints)
        np.testing.assert_allclose(alone, [expected[tuple(span)] for span in spans], rtol=1e-8)
        whole = sum(share for *_, share in found)
        share = sum(
            p
            for seen, path, p in found
            if path == labels or (not path and [*map(tuple, spans)] == seen)
        )
        np.testing.assert_allclose(
            model.confidence([tokens], constraints=constraints), share / whole, rtol=1e-8
        )


def test_confidence_is_the_probability_of_what_is_predicted(model):
    labels, spans = model.predict(X), model.predict_spans(X)
    np.testing.assert_allclose(
        model.confidence(X), np.exp(model.sequence_log_proba(X, labels)), rtol=1e-12
    )
    for ours, given in zip(
        model.confidence(X, of="spans"), model.predict_span_proba(X, spans), strict=True
    ):
        np.testing.assert_array_equal(ours, given)
    for ours, alone, predicted in zip(
        model.confidence(X, of="spans"), model.predict_span_proba(X), spans, strict=True
    ):
        assert ours.tobytes() == alone.tobytes() and len(ours) == len(predicted)
    names = model.classes_.tolist()
    for ours, rows, said in zip(
        model.confidence(X, of="tokens"), model.predict_proba(X), labels, strict=True
    ):
        places = [names.index(tag if tag in names else tag[2:]) for tag in said]
        np.testing.assert_array_equal(ours, rows[np.arange(len(rows)), places])


def test_what_cannot_be_has_the_probability_0(model):
    found, outside = model.predict_span_proba(
        [X[1], X[2]], [[(0, 1, "ORG"), (0, 1, 3)], [(0, 3, "O"), (0, 1, "O"), (0, 1, "PER")]]
    )
    assert found.tolist() == [0.0, 0.0]
    single = model.__dict__.get("outside") == "single"
    assert (outside[0] == 0.0) == single and 0.0 < outside[1] < 1.0 and outside[2] > 0.0
    with pytest.raises(ValueError, match="sequence 0 of spans: .* is not within the 4"):
        model.predict_span_proba([X[1]], [[(2, 5, "PER")]])


def test_wrong_questions_are_refused(model):
    for threshold in (0.0, -1.0, 1.5, float("nan"), "0.5", True):
        with pytest.raises((TypeError, ValueError), match="threshold="):
            model.likely_spans(SHORT, threshold=threshold)
    with pytest.raises(ValueError, match="of='words'"):
        model.confidence(X, of="words")


def test_no_sequences_have_no_spans(model):
    assert model.predict_spans([]) == [] == model.likely_spans([])
    assert model.predict_span_proba([]) == [] == model.predict_span_proba([], [])
    assert model.confidence([], of="spans") == [] == model.confidence([], of="tokens")
    assert model.confidence([]).shape == (0,) and model.confidence([[]]).tolist() == [1.0]
    empty = [[], X[2][:0]]
    assert model.predict_spans(empty) == [[], []] == model.likely_spans(empty)
    assert [row.tolist() for row in model.predict_span_proba(empty)] == [[], []]


def test_answers_are_bit_equal_for_any_number_of_threads(model, monkeypatch):
    sequences, found = (X + SHORT) * 3, []
    for n_jobs in (1, 2, 4):
        monkeypatch.setattr(fitted_model, "LEAST_CHUNK", 3 * n_jobs)
        monkeypatch.setattr(model, "n_jobs", n_jobs)
        levels = model.confidence(sequences, of="tokens"), model.confidence(sequences, of="spans")
        found.append(
            (
                model.predict_spans(sequences),
                model.likely_spans(sequences, threshold=0.1),
                model.confidence(sequences).tobytes(),
                [row.tobytes() for level in levels for row in level],
            )
        )
    assert found[0] == found[1] == found[2]
