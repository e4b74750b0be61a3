"""Lists of the best labelings of fitted models."""

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

from crfkit import (
    CRFClassifier,
    CRFClassifierCV,
    MaxMarginCRF,
    Segments,
    SemiMarkovCRF,
    SequenceVectorizer,
    StructuredPerceptron,
    TreeFeatures,
)
from crfkit.constraints import AllowedAt
from crfkit.metrics import RankedLabels, Segment, spans_from_tags
from crfkit.training.data import fitted_attributes

WORDS = [["a", "b", "c"], ["b"], ["c", "c"], ["a", "a", "c", "b"], [], ["b", "c", "a"]] * 3
X = [[{"w": w, "n": 0.1 * t} for t, w in enumerate(words)] for words in WORDS]
Y = [
    [
        {"a": "B-X", "c": "O"}.get(word, "I-X" if before in ("a", "b") else "B-X")
        for before, word in zip(["", *words], words, strict=False)
    ]
    for words in WORDS
]
HEADS = [[{**token, "head": t} for t, token in enumerate(tokens)] for tokens in X]
FOREST = TreeFeatures(SequenceVectorizer(), parent="head", first=1)
MODELS = {
    "crf": CRFClassifier(),
    "cv": CRFClassifierCV(c2s=[1.0], cv=2),
    "perceptron": StructuredPerceptron(max_iter=2, random_state=0),
    "margin": MaxMarginCRF(max_iter=5),
    "kernel": MaxMarginCRF(kernel="rbf", max_iter=5),
    "segments": SemiMarkovCRF(max_length=2, scheme="IOB2"),
    "perceptron of segments": StructuredPerceptron(structure=Segments(max_length=2), max_iter=2),
    "forest": CRFClassifier(features=FOREST),
}


@pytest.fixture(scope="module", params=sorted(MODELS))
def fitted(request):
    """A model, and sequences as it reads them."""
    given = HEADS if request.param == "forest" else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that some have not converged
        filled = [s for s, words in enumerate(WORDS) if words]
        model = clone(MODELS[request.param])
        return model.fit([given[s] for s in filled], [Y[s] for s in filled]), given


def scored(model, sequence):
    """The codes of all labelings of a sequence, the best first, and their scores."""

    def score(structure, potentials):
        every = list(product(range(potentials.n_codes), repeat=len(sequence)))
        many = potentials.take(np.zeros(len(every), np.int64))
        return every, structure.score(many, np.array(every, np.int32).reshape(-1))

    ((every, scores),) = model._ask(model._pack([sequence]), score)
    if "length_scores_" in vars(model):  # codes that go on do so with the label before
        size = len(model.classes_)
        pairs = [zip((0, *codes), codes, strict=False) for codes in every]
        goes = [all(b >= size or a in (b, b + size) for a, b in two) for two in pairs]
        first = [not codes or codes[0] >= size for codes in every]
        scores = np.where(np.array(goes) & np.array(first), scores, -np.inf)
    order = np.argsort(-scores, kind="stable")[: np.count_nonzero(scores > -np.inf)]
    return [every[i] for i in order], scores[order]


def test_labelings_are_those_of_the_largest_scores(fitted):
    model, given = fitted
    best = model.predict_n_best(given[:6], 10**9)
    assert [each[0].labels for each in best] == model.predict(given[:6])
    for sequence, found in zip(given[:6], best, strict=True):
        _, scores = scored(model, sequence)
        np.testing.assert_allclose([one.score for one in found], scores, rtol=1e-10, atol=1e-12)
        (few,) = model.predict_n_best([sequence], 4)
        assert [one.labels for one in few] == [one.labels for one in found[:4]]
        probabilities = [one.probability for one in found]
        if not model.has_probabilities:
            assert np.isnan(probabilities).all()
            continue
        np.testing.assert_allclose(sum(probabilities), 1.0, rtol=1e-10)
        labels = [one.labels for one in found]
        assert all(type(one) is RankedLabels for one in found)
        if "length_scores_" not in vars(model):
            assert len({tuple(each) for each in labels}) == len(found) == 3 ** len(sequence)
            log_proba = model.sequence_log_proba([sequence] * len(found), labels)
            np.testing.assert_allclose(np.log(probabilities), log_proba, rtol=1e-9, atol=1e-12)


def test_labelings_are_read_as_spans(fitted):
    model, given = fitted
    for tags, spans in zip(
        model.predict_n_best(given, 5), model.predict_n_best(given, 5, as_spans=True), strict=True
    ):
        for tagged, read in zip(tags, spans, strict=True):
            assert read.labels == [Segment(*span) for span in spans_from_tags(tagged.labels)]
            assert read[1:] == tagged[1:]


def test_labelings_do_not_depend_on_the_batch_or_the_threads(fitted):
    model, given = fitted
    many = given * 40
    found = clone(model).set_params(n_jobs=3)._with(fitted_attributes(model))
    listed, expected = found.predict_n_best(many, 3), model.predict_n_best(given, 3) * 40
    if "dual_coef_" not in vars(model):  # whose scores are rounded by the batch
        assert listed == expected
    for one, other in zip(listed, expected, strict=True):
        assert [each.labels for each in one] == [each.labels for each in other]
    assert model.predict_n_best([], 3) == []
    assert [len(each) for each in model.predict_n_best([[], given[0]], 1)] == [1, 1]


def test_labelings_keep_to_constraints(fitted):
    model, given = fitted
    free = model.predict_n_best(given[:6], 10**9)
    held = model.predict_n_best(given[:6], 10**9, constraints=AllowedAt({0: ["O"]}))
    for every, kept in zip(free, held, strict=True):
        expected = [one for one in every if one.labels[:1] in ([], ["O"])]
        assert [one.labels for one in kept] == [one.labels for one in expected]
        scores = [one.score for one in expected]
        np.testing.assert_allclose([one.score for one in kept], scores, rtol=1e-10, atol=1e-12)
        if model.has_probabilities:
            np.testing.assert_allclose(sum(one.probability for one in kept), 1.0, rtol=1e-10)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"n": 0}, ValueError), ({"n": 1.5}, TypeError), ({"n": True}, TypeError),
        ({"n": 1, "as_spans": 1}, TypeError),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_for_is_named(asked, error):
    model = StructuredPerceptron(max_iter=1).fit(X[:4], Y[:4])
    with pytest.raises(error, match=f"{list(asked)[-1]}="):
        model.predict_n_best(X, **asked)


def test_votes_elect_no_labelings():
    model = StructuredPerceptron(averaging="vote", max_iter=1).fit(X[:4], Y[:4])
    with pytest.raises(ValueError, match="labelings have no scores: use averaging='average'"):
        model.predict_n_best(X, 2)
