"""Estimators under rules about whole sequences."""

import warnings

import numpy as np
import pytest

from crfkit import CRFClassifier, SemiMarkovCRF, StructuredPerceptron
from crfkit.constraints import Before, Constraints, Contiguous, Count, NotTogether, hard, joint
from tests.constraints.test_global_rules import count_of, in_one_block

X = [[[w] for w in words] for words in ("xyxz", "zyx", "xxyz", "yz", "xyxyxzzy")]
Y = [[{"x": "a", "y": "b", "z": "O"}[token[0]] for token in tokens] for tokens in X]
RULES = [Contiguous(), Count("a", at_least=1)]


@pytest.fixture(scope="module", params=[CRFClassifier, StructuredPerceptron, SemiMarkovCRF])
def fitted(request):
    return request.param().fit(X, Y)


def test_labels_keep_the_rules_and_are_the_best_ones(fitted):
    found = fitted.predict_with_bounds(X, constraints=RULES)
    labels = fitted.predict(X, constraints=RULES)
    assert [each.labels for each in found] == [list(row) for row in labels]
    for each, free in zip(found, fitted.predict_with_bounds(X), strict=True):
        assert in_one_block(each.labels, "ab") and count_of(each.labels, "a") >= 1
        assert each.is_optimal and each.score == each.bound <= free.score
        assert (each.method == "viterbi") == (each.score == free.score)
    if fitted.has_probabilities:
        marginals, best = fitted.predict_proba(X, constraints=RULES), fitted.classes_.tolist()
        np.testing.assert_allclose(marginals[0].sum(axis=1), 1.0)
        log_proba = fitted.sequence_log_proba(X, labels, constraints=RULES)
        assert (log_proba > fitted.sequence_log_proba(X, labels)).all()
        outside = fitted.sequence_log_proba(X[:1], [[*"abab"]], constraints=RULES)
        assert np.isneginf(outside).all() and best


def test_rules_that_cannot_hold_together_are_named(fitted):
    rules = [Contiguous("a"), NotTogether(["a", "b"]), Count("b", 1), Count("a", 1)]
    with pytest.raises(ValueError, match="sequence [01]: no labeling keeps to Not") as error:
        fitted.predict(X[:2], constraints=rules)
    told = str(error.value)
    assert "NotTogether" in told and "label='b'" in told and "Contiguous" not in told


def test_what_is_not_proved_is_warned_of_once(monkeypatch):
    crf = CRFClassifier().fit(X, Y)
    monkeypatch.setattr(joint, "WITHOUT_TABLE", 1)
    monkeypatch.setattr(hard, "solve", lambda *given: None)
    few = Constraints([Contiguous(), Before("b", "a"), Before("O", "b")], max_states=1)
    with pytest.warns(UserWarning, match="labelings of [1-5] sequences are not proved") as told:
        crf.predict(X, constraints=few)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = crf.predict_with_bounds(X, constraints=few)
    assert not all(each.is_optimal for each in found)
    with pytest.raises(ValueError, match=r"max_states=1 can be reached. The rules are Contiguous"):
        crf.predict_proba(X, constraints=few)


def test_limits_of_searches_are_checked_and_written():
    crf, rules = CRFClassifier().fit(X, Y), [Count("a", at_most=1)]
    for wrong, says in (({"max_states": 0}, "max_states=0"), ({"time_limit": 0}, "time_limit=0")):
        with pytest.raises(ValueError, match=says):
            crf.predict(X, constraints=Constraints(rules, **wrong))
    few = Constraints(rules, max_states=5)
    assert Constraints.from_json(few.to_json()) == few != Constraints(rules)
    with pytest.raises(ValueError, match="not 'most'"):
        Constraints.from_json('{"rules": [], "most": 1}')


def test_voting_has_no_scores():
    perceptron = StructuredPerceptron(max_iter=2, averaging="vote").fit(X, Y)
    with pytest.raises(ValueError, match="labelings have no scores.*for predict_with_bounds"):
        perceptron.predict_with_bounds(X)
