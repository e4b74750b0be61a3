"""Labelings that models draw, and entropies: of whole sequences, and of single tokens."""

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit import (
    CRFClassifier,
    CRFClassifierCV,
    MaxMarginCRF,
    SemiMarkovCRF,
    SequenceVectorizer,
    StructuredPerceptron,
    TreeFeatures,
)
from crfkit.inference import base

X = [[{"w": w} for w in text.split()] for text in ("I saw New York", "Ann left", "York saw Ann I")]
Y = [["O", "O", "B-LOC", "I-LOC"], ["B-PER", "O"], ["B-LOC", "O", "B-PER", "O"]]
NEW = [*X, [], X[0][:1], X[1] + X[0]]


@pytest.fixture(
    params=[CRFClassifier, SemiMarkovCRF], ids=lambda kind: kind.__name__, scope="module"
)
def model(request):
    return request.param(c2=0.5).fit(X, Y)


def test_labelings_are_as_frequent_as_they_are_probable(model):
    drawn = model.sample(NEW, 2000, random_state=0)
    for labelings, one, rows in zip(drawn, NEW, model.predict_proba(NEW), strict=True):
        assert {len(labels) for labels in labelings} == {len(one)}
        for t, row in enumerate(rows):
            found = [labels[t] for labels in labelings]
            if isinstance(model, SemiMarkovCRF):
                found = [label.removeprefix("B-").removeprefix("I-") for label in found]
            shares = np.array([found.count(label) / 2000 for label in model.classes_])
            assert (np.abs(shares - row) < 5.0 * np.sqrt(row * (1 - row) / 2000)).all()


def test_labels_have_the_form_of_predicted_ones(model):
    """Weights that are multiplied leave the best labeling alone."""
    sure = type(model)(c2=1e-3).fit(X, Y)
    for name in ("coef_", "first_coef_", "last_coef_", "single_coef_", "transitions_"):
        if name in vars(sure):
            setattr(sure, name, 1e3 * getattr(sure, name))
    assert [labelings[0] for labelings in sure.sample(X)] == list(sure.predict(X)) == Y


def test_what_is_drawn_is_told_by_the_random_state_alone(model, monkeypatch):
    drawn = model.sample(NEW, 3, random_state=1)
    assert drawn == model.sample(NEW, 3, random_state=np.random.RandomState(1))
    assert drawn != model.sample(NEW, 3, random_state=2)
    assert [labelings[:2] for labelings in drawn] == model.sample(NEW, 2, random_state=1)
    moving = np.random.RandomState(1)
    assert model.sample(NEW, 3, random_state=moving) == drawn
    assert model.sample(NEW, 3, random_state=moving) != drawn
    monkeypatch.setattr(base, "LEAST_CHUNK", 1)
    threaded = type(model)(c2=0.5, n_jobs=2).fit(X, Y)
    assert threaded.sample(NEW, 3, random_state=1) == drawn
    np.testing.assert_array_equal(threaded.entropy(NEW), model.entropy(NEW))


def test_a_sequence_has_random_numbers_of_its_own(model):
    drawn = model.sample(NEW, 20, random_state=0)
    other = model.sample([X[2], X[1][:1], *NEW[2:]], 20, random_state=0)
    assert other[2:] == drawn[2:]
    alike = model.sample([X[0]] * 2, 20, random_state=0)
    assert alike[0] != alike[1]


def test_entropies_are_means_of_surprise(model):
    drawn = model.sample(NEW, 1000, random_state=0)
    for s, (labelings, found) in enumerate(zip(drawn, model.entropy(NEW), strict=True)):
        each = {tuple(labels) for labels in labelings}
        one = [NEW[s]] * len(each)
        lost = -model.sequence_log_proba(one, [list(labels) for labels in each])
        counts = np.array([labelings.count(list(labels)) for labels in each])
        mean, spread = np.average(lost, weights=counts), np.sqrt(np.cov(lost, fweights=counts))
        assert abs(mean - found) <= 5.0 * (np.nan_to_num(spread) / np.sqrt(1000) + 1e-12)


def test_entropies_of_tokens_are_those_of_their_labels(model):
    of_tokens, of_sequences = model.entropy(NEW, of="tokens"), model.entropy(NEW)
    assert of_sequences[3] == 0.0 and of_tokens[3].shape == (0,)
    for rows, found, whole in zip(model.predict_proba(NEW), of_tokens, of_sequences, strict=True):
        np.testing.assert_allclose(found, -(rows * np.log(rows)).sum(axis=1), rtol=1e-12)
        assert isinstance(model, SemiMarkovCRF) or whole <= found.sum() + 1e-12


def test_tiny_entropies_have_all_their_digits():
    """Of a label of probability ``p``, which is all but 1: ``(1 - p) (1 - log(1 - p))``."""
    crf = CRFClassifier(all_possible_states=True).fit([[["a"], ["b"]]], [["A", "B"]])
    crf.transitions_ = np.zeros((2, 2))
    for gap in (0.0, 1.0, 40.0, 100.0, 600.0, 1e4):
        crf.coef_ = sp.csr_array([[gap, 0.0], [0.0, gap]])
        expected = np.log1p(np.exp(-gap)) + gap * np.exp(-gap) / (1.0 + np.exp(-gap))
        tokens = crf.entropy([[["a"], ["b"]]], of="tokens")[0]
        np.testing.assert_allclose(tokens, expected, rtol=1e-12)
        np.testing.assert_allclose(crf.entropy([[["a"], ["b"]]]), [2 * expected], rtol=1e-12)


def test_constraints_are_kept_to(model):
    legal = model.sample(NEW, 200, random_state=0, constraints="IOB2")
    assert not [row for one in legal for row in one if "I-LOC" in row[:1]]
    assert (model.entropy(NEW, constraints="IOB2") <= model.entropy(NEW) + 1e-12).all()


def test_wrong_questions_are_told(model):
    for n, error in ((0, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="n"):
            model.sample(NEW, n)
    with pytest.raises(ValueError, match="of='labels'"):
        model.entropy(NEW, of="labels")
    with pytest.raises(ValueError):
        model.sample(NEW, random_state="now")
    for kind in (MaxMarginCRF, StructuredPerceptron):
        with pytest.raises(AttributeError, match=f"{kind.__name__} has no probabilities"):
            kind().sample(NEW)
        assert not hasattr(kind(), "entropy")
    assert model.sample([]) == [] and model.entropy([]).shape == (0,)
    assert model.entropy([], of="tokens") == []


def test_trees_of_tokens_answer_too():
    """Where each token has the next one as its parent, the tree is the chain from behind."""
    rows, y = [[{"w": "a"}, {"w": "b"}, {"w": "a"}]] * 3, [["A", "B", "A"]] * 3
    above = [
        [token | {"up": up} for token, up in zip(row, (1, 2, -1), strict=True)] for row in rows
    ]
    forests = TreeFeatures(SequenceVectorizer(), parent="up").fit_transform(above)
    crf, chain = (CRFClassifier(all_possible_transitions=True) for _ in range(2))
    crf.fit(forests, y)
    chain.fit(rows, y)
    np.testing.assert_allclose(crf.entropy(forests), chain.entropy(rows), rtol=1e-4)
    drawn = crf.sample(forests, 500, random_state=0)[0]
    share = np.mean([labels == ["A", "B", "A"] for labels in drawn])
    expected = np.exp(crf.sequence_log_proba(forests, y)[0])
    assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / 500)


def test_a_search_over_penalties_answers_too():
    chosen = CRFClassifierCV(c2s=[0.1], cv=2).fit(X + X, Y + Y)
    assert len(chosen.sample(X, 2)[0]) == 2 and chosen.entropy(X).shape == (3,)
