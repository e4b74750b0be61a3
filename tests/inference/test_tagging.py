"""Few tokens are labeled by one kernel, and as all others are."""

import numpy as np
import pytest

from crfkit import CRFClassifier, SequenceVectorizer
from crfkit._parallel import SERIAL
from crfkit.compat.pycrfsuite import Tagger
from crfkit.inference import ViterbiDecoder
from crfkit.inference.tagging import ChainTagger
from crfkit.structures import NoPathError

rng = np.random.default_rng(0)


def token(t):
    return {"w": str(rng.integers(9)), "n": {"x": float(rng.integers(3)), "y": bool(t % 2)},
            "l": [str(rng.integers(4)) for _ in range(t % 3)]}  # fmt: skip


X = [[token(t) for t in range(rng.integers(1, 9))] for _ in range(60)]


@pytest.mark.parametrize("n_labels", [2, 9, 30])
@pytest.mark.parametrize("boundaries", [False, True])
def test_labels_are_those_of_the_potentials(n_labels, boundaries):
    y = [[str(rng.integers(n_labels)) for _ in sequence] for sequence in X]
    crf = CRFClassifier(boundary_weights=boundaries).fit(X, y)
    crf.transitions_ = rng.normal(size=crf.transitions_.shape).round()  # ties
    data = crf.vectorizer_.transform(X)
    model = crf._model_for(data)
    expected = np.concatenate(model.ask(data, ViterbiDecoder().decode, SERIAL))
    tagger = ChainTagger.of(*model)
    assert tagger.codes(data).tolist() == expected.tolist()
    labels = crf.classes_[expected].tolist()
    assert sum(crf.predict(X), []) == labels
    assert sum((crf.predict([sequence])[0] for sequence in X), []) == labels
    one = Tagger.from_classifier(crf)
    assert sum(map(one.tag, X), []) == labels


def test_attributes_that_occur_twice_count_twice():
    crf = CRFClassifier().fit([[["a", "b"], ["b"]]] * 4, [["A", "B"]] * 4)
    crf.coef_ = crf.coef_ * 0
    crf.transitions_ = np.zeros((2, 2))
    a, b = crf.vectorizer_.vocabulary_["a"], crf.vectorizer_.vocabulary_["b"]
    weights = np.zeros((2, 2))
    weights[a], weights[b] = [2.0, 0.0], [0.0, 1.5]
    crf.coef_ = type(crf.coef_)(weights)
    assert crf.predict([[["a", "b"], ["b", "a", "b"], ["c"], []]]) == [["A", "B", "A", "A"]]
    assert crf.predict([[{"a": 1, "b": 1.4}, {"b": 1.2, "a": 0.8}]]) == [["B", "B"]]


def test_what_has_no_path_is_told_as_of_many_tokens():
    crf = CRFClassifier().fit([[["a"], ["b"]]] * 4, [["A", "B"]] * 4)
    crf.transitions_ = np.full((2, 2), -np.inf)
    with pytest.raises(NoPathError) as few:
        crf.predict([[["a"]], [["a"], ["b"]]])
    with pytest.raises(NoPathError) as many:
        crf.predict([[["a"]], [["a"], ["b"]] * 400])
    assert str(few.value) == str(many.value)


def test_the_number_of_threads_is_checked_for_few_tokens_too():
    crf = CRFClassifier().fit([[["a"], ["b"]]] * 4, [["A", "B"]] * 4).set_params(n_jobs=0)
    with pytest.raises(ValueError, match="n_jobs=0"):
        crf.predict([[["a"]]])


def test_only_plain_chains_have_such_a_tagger():
    labels = [[str(t % 3) for t in range(len(sequence))] for sequence in X]
    data = SequenceVectorizer().fit_transform(X)
    crf = CRFClassifier().fit(data.with_transitions(data), labels)
    assert ChainTagger.of(*crf._model_for(data.with_transitions(data))) is None
    assert [list(map(str, row)) for row in crf.predict(data.with_transitions(data)[:2])]


def message(action):
    with pytest.raises((TypeError, ValueError)) as error:
        action()
    return type(error.value), str(error.value)


@pytest.mark.parametrize("change", [
    lambda crf: setattr(crf, "transitions_", rng.normal(size=crf.transitions_.shape)),
    lambda crf: setattr(crf.coef_, "data", -crf.coef_.data),
    lambda crf: setattr(crf, "classes_", crf.classes_[::-1].copy()),
    lambda crf: crf.set_params(decoding="posterior"),
    lambda crf: crf.fit(X[::2], [["a" if t % 2 else "b" for t in range(len(s))] for s in X[::2]]),
])  # fmt: skip
def test_one_sequence_is_labeled_by_what_is_fitted_now(change):
    y = [[str(rng.integers(5)) for _ in sequence] for sequence in X]
    crf = CRFClassifier(c2=0.01).fit(X, y)
    for _ in range(2):
        before = [crf.predict([sequence])[0] for sequence in X]
        assert before == crf.predict(X)
    change(crf)
    after = [crf.predict([sequence])[0] for sequence in X]
    assert after == crf.predict(X) != before


def test_what_is_wrong_with_one_sequence_is_told_each_time():
    crf = CRFClassifier().fit([[["a"], ["b"]]] * 4, [["A", "B"]] * 4)
    first = message(lambda: crf.predict([[["a"], [1]]]))
    assert crf.predict([[["a"], ["b"]]]) == [["A", "B"]]
    assert message(lambda: crf.predict([[["a"], [1]]])) == first
    assert crf.predict([[]]) == [[]]
    crf.set_params(decoding="best")
    assert message(lambda: crf.predict([[["a"]]])) == message(lambda: crf.predict([[["a"]]] * 2))
    crf.set_params(decoding="viterbi", n_jobs=0)
    assert message(lambda: crf.predict([[["a"]]])) == message(lambda: crf.predict([[["a"]]] * 2))
    crf.set_params(n_jobs=None).vectorizer_.fit([[["b"], ["c"]]])
    assert message(lambda: crf.predict([[["a"]]])) == message(lambda: crf.predict([[["a"]]] * 2))
