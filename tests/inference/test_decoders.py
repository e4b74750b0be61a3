import numpy as np
import pytest

from crfkit import CRFClassifier
from crfkit.inference import DECODERS, DecodedLabels, MinimumRisk, PosteriorDecoder, marginals
from crfkit.labels.base import TokenCoding
from crfkit.structures import Chain, ChainPotentials
from tests.oracles import random_scores

NAMES = DecodedLabels(np.array(["O", "X", "Y"], object), TokenCoding())


@pytest.mark.parametrize("name", sorted(DECODERS))
def test_equal_choices_take_the_lowest_label(name):
    scores = random_scores(0, [3, 0, 1], 3, scale=0.0)
    assert DECODERS[name]().decode(Chain(), scores, NAMES).tolist() == [0, 0, 0, 0]


def test_posterior_decoding_keeps_to_steps_that_are_allowed():
    """The most probable labels of the tokens, 0 and 1, may not follow each other."""
    with np.errstate(divide="ignore"):
        steps = np.log([[0.23, 0.0, 0.22], [0.01, 0.27, 0.01], [0.01, 0.25, 0.01]])
    scores = ChainPotentials.of(np.zeros((4, 3)), steps[None], np.array([0, 2, 4]))
    proba = marginals(Chain(), scores)[0][:2]
    assert proba.argmax(axis=1).tolist() == [0, 1]
    pairs = {(i, j): proba[0, i] + proba[1, j] for i in range(3) for j in range(3)}
    best = max((pair for pair in pairs if pair != (0, 1)), key=pairs.get)
    assert PosteriorDecoder().decode(Chain(), scores).tolist() == [*best, *best]


def test_a_cost_of_true_labels_is_a_bias_of_log_probabilities():
    scores = random_scores(0, [5, 3], 3)
    proba, _ = marginals(Chain(), scores)
    biased = (np.log(proba) + np.log([0.25, 1.0, 3.0])).argmax(axis=1)
    found = MinimumRisk({"O": 0.25, "Y": 3.0}).decode(Chain(), scores, NAMES)
    assert found.tolist() == biased.tolist() != proba.argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("cost", "labels", "message"),
    [
        ("zero_one", NAMES, "decoding='viterbi' has the least"),
        (np.eye(3), NAMES, "0 on the diagonal"),
        (np.ones((2, 2)), NAMES, r"give a matrix of shape \(3, 3\)"),
        ({"O": -1.0}, NAMES, "must be finite and at least 0"),
        ({"O": 1.0}, None, "read by the labels"),
    ],
)
def test_costs_that_cannot_be_used_are_told(cost, labels, message):
    with pytest.raises(ValueError, match=message):
        MinimumRisk(cost).decode(Chain(), random_scores(0, [2], 3), labels)


def test_a_cost_of_an_unknown_label_is_told_once_for_all_chunks():
    X, y = [[["a"], ["b"]]] * 1000, [["O", "X"]] * 1000
    crf = CRFClassifier(decoding=MinimumRisk({"Z": 2.0})).fit(X, y)
    with pytest.warns(UserWarning, match="cost names the label 'Z'") as caught:
        crf.predict(X)
    assert len(caught) == 1
