"""Checks of predictions, probabilities and scores."""

from __future__ import annotations

import itertools
import json
import warnings
from typing import Any
from unittest import mock

import numpy as np

from crfkit.data import LabelSequences
from crfkit.testing._data import (
    Labels,
    Tokens,
    as_arrays,
    as_packed,
    assert_same_predictions,
    fitted,
    fresh,
    make_data,
    make_token,
    needs,
)


def check_predict_returns_label_sequences(model: Any, X: Tokens) -> None:
    """``predict`` returns a LabelSequences with a label for each token, which JSON can hold."""
    predicted = model.predict(X)
    assert isinstance(predicted, LabelSequences)
    assert all(type(labels) is list for labels in predicted)
    assert [len(labels) for labels in predicted] == [len(s) for s in X]
    assert json.loads(json.dumps(predicted)) == predicted


def check_predict_array_is_1d(estimator: Any) -> None:
    """As an array the predictions have shape (S,), for ragged and for equal lengths."""
    for equal in (False, True):
        X, y = make_data(equal=equal)
        array = np.asarray(fitted(estimator, X, y).predict(X))
        assert array.shape == (len(X),) and array.dtype == object


def check_predictions_are_classes(model: Any, X: Tokens) -> None:
    """All predicted labels are in ``classes_``, whatever the features."""
    shuffled = [sequence[::-1] + sequence for sequence in X]
    labels = {label for row in model.predict(shuffled) for label in row}
    assert labels <= set(model.classes_)


def check_predict_no_sequences(estimator: Any, X: Tokens, y: Labels) -> None:
    """No sequences have no labels, in every form."""
    for form in (X, as_packed(X), as_arrays(X)):
        assert fitted(estimator, form, y).predict(form[:0]) == []


def check_predict_empty_sequence(estimator: Any, model: Any, X: Tokens, y: Labels) -> None:
    """A sequence of no tokens gets no labels and changes nothing for the others."""
    expected = model.predict(X[:2])
    assert model.predict([[]]) == [[]]
    assert model.predict([[], X[0], [], X[1], []]) == [[], expected[0], [], expected[1], []]
    of_arrays = fitted(estimator, as_arrays(X), y)
    assert of_arrays.predict([np.zeros((0, of_arrays.n_features_in_)), []]) == [[], []]


def check_sequences_of_length_one(estimator: Any, X: Tokens, y: Labels) -> None:
    """Sequences of one token can be learned from and predicted."""
    tokens = [[token] for sequence in X for token in sequence]
    labels = [[label] for sequence in y for label in sequence]
    predicted = fitted(estimator, tokens, labels).predict(tokens)
    assert [len(row) for row in predicted] == [1] * len(tokens)
    assert len(fitted(estimator).predict(tokens)) == len(tokens)


def check_single_training_sequence(estimator: Any, X: Tokens, y: Labels) -> None:
    """One sequence is enough to learn from."""
    assert [len(row) for row in fitted(estimator, X[:1], y[:1]).predict(X)] == [len(s) for s in X]


def check_single_label(estimator: Any, X: Tokens, y: Labels) -> None:
    """With one label only, that label is predicted, with probability 1."""
    model = fitted(estimator, X, [["O"] * len(labels) for labels in y])
    assert model.predict(X) == [["O"] * len(labels) for labels in y]
    if hasattr(model, "predict_proba"):
        for rows in model.predict_proba(X):
            np.testing.assert_allclose(rows, 1.0, rtol=0, atol=1e-12)


def check_predictions_do_not_depend_on_the_batch(model: Any, X: Tokens) -> None:
    """A sequence is predicted alone as among others, in any order and number."""
    together = model.predict(X)
    assert [model.predict([sequence])[0] for sequence in X] == together
    assert model.predict(X[::-1]) == together[::-1]
    assert model.predict(X * 3) == together * 3


def check_packed_slices(estimator: Any, X: Tokens, y: Labels) -> None:
    """Slices, masks and index arrays of packed sequences are predicted as the whole is."""
    packed = as_packed(X)
    model = fitted(estimator, packed, y)
    together = model.predict(packed)
    mask = np.arange(len(X)) % 2 == 0
    for key in (slice(1, 4), slice(None, None, -1), mask, np.array([3, 0, 3])):
        assert model.predict(packed[key]) == together[key]


def check_unseen_attributes_are_ignored(estimator: Any, X: Tokens) -> None:
    """Attributes that the training data do not have change nothing."""
    more = [[{**token, "new": "x", "size": 9.0} for token in sequence] for sequence in X]
    model = fitted(estimator)
    assert_same_predictions(model, model, X, more)


def check_token_without_known_attributes(model: Any) -> None:
    """Tokens without any known attribute, or without any, get a label of the model."""
    for token in ({}, {"new": "x"}, [], ["unseen"]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of data that the model does not know
            labels = model.predict([[token, token, token]])[0]
        assert len(labels) == 3 and set(labels) <= set(model.classes_)


def check_long_sequence(model: Any, X: Tokens) -> None:
    """A sequence of thousands of tokens neither overflows nor underflows."""
    long = [token for sequence in X for token in sequence] * 200
    assert len(model.predict([long])[0]) == len(long)
    if hasattr(model, "predict_proba"):
        rows = model.predict_proba([long])[0]
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-9)


def check_training_data_are_learned(estimator: Any) -> None:
    """On data whose words tell the labels, the model labels most training tokens right."""
    for equal in (False, True):
        X, y = make_data(equal=equal)
        assert fitted(estimator, X * 3, y * 3).score(X, y) > 0.8


def check_score_is_token_accuracy(model: Any, X: Tokens, y: Labels) -> None:
    """``score`` is the share of tokens with the right label: unknown ones are wrong."""
    predicted = [label for labels in model.predict(X) for label in labels]
    shifted = [labels[1:] + labels[:1] for labels in y]
    for truth in (y, shifted, [["?"] * len(labels) for labels in y]):
        true = [label for labels in truth for label in labels]
        right = [a == b for a, b in zip(predicted, true, strict=True)]
        assert abs(model.score(X, truth) - sum(right) / len(right)) < 1e-15


def check_score_weights(model: Any, X: Tokens) -> None:
    """``score`` weights sequences, or tokens, by ``sample_weight``."""
    truth = model.predict(X)
    wrong = [["?"] * len(truth[0])] + truth[1:]
    sizes = np.array([len(labels) for labels in truth])
    weight = np.arange(1.0, len(X) + 1)
    expected = 1 - weight[0] * sizes[0] / (weight @ sizes)
    per_token = [np.full(n, w) for n, w in zip(sizes, weight, strict=True)]
    for given in (weight, list(weight), per_token):
        assert abs(model.score(X, wrong, sample_weight=given) - expected) < 1e-12


@needs("n_jobs")
def check_n_jobs(estimator: Any, X: Tokens, y: Labels) -> None:
    """Any number of threads gives the same model and predictions to the last bit."""
    # Chunks of a few tokens, so that there is work for several threads.
    with mock.patch("crfkit._parallel.CHUNK_CELLS", 6):
        models = [fresh(estimator, n_jobs=n).fit(X, y) for n in (1, 2, 4)]
        for model in models[1:]:
            assert_same_predictions(models[0], model, X)
            if hasattr(model, "sequence_log_proba"):
                ours, theirs = (m.sequence_log_proba(X, y) for m in (models[0], model))
                np.testing.assert_array_equal(ours, theirs)


@needs("predict_proba")
def check_proba_rows_are_distributions(model: Any, X: Tokens) -> None:
    """``predict_proba`` returns arrays of shape (T, K), whose rows lie in [0, 1] and sum to 1."""
    sequences = X + [sequence[::-1] for sequence in X]
    found = model.predict_proba(sequences)
    assert [rows.shape for rows in found] == [(len(s), len(model.classes_)) for s in sequences]
    for rows in found:
        assert np.all((rows >= 0) & (rows <= 1 + 1e-12))
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-9)


@needs("predict_proba")
def check_proba_follows_classes(estimator: Any, X: Tokens, y: Labels) -> None:
    """Column k is the probability of ``classes_[k]``: clear cases have their label on top."""
    model = fitted(estimator, X * 3, y * 3)
    for word, label in (("the", "D"), ("cat", "N"), ("runs", "V")):
        row = model.predict_proba([[make_token(word)]])[0][0]
        assert model.classes_[row.argmax()] == label


@needs("predict_proba")
def check_proba_of_empty_sequences(model: Any) -> None:
    """A sequence of no tokens has probabilities of shape (0, K); no sequences have none."""
    assert len(model.predict_proba([])) == 0
    assert model.predict_proba([[]])[0].shape == (0, len(model.classes_))


@needs("predict_proba")
def check_proba_does_not_depend_on_the_batch(model: Any, X: Tokens) -> None:
    """The probabilities of a sequence are the same alone and among others."""
    for sequence, together in zip(X, model.predict_proba(X), strict=True):
        np.testing.assert_array_equal(model.predict_proba([sequence])[0], together)


@needs("sequence_log_proba")
def check_log_proba_is_not_positive(model: Any, X: Tokens, y: Labels) -> None:
    """Log-probabilities of sequences have shape (S,) and are 0 at most, 0 for an empty one."""
    log_proba = model.sequence_log_proba(X, y)
    assert log_proba.shape == (len(X),) and np.all(log_proba <= 1e-12)
    np.testing.assert_array_equal(model.sequence_log_proba([[]], [[]]), [0.0])


@needs("sequence_log_proba")
def check_log_proba_of_all_labelings(model: Any, X: Tokens) -> None:
    """The probabilities of all labelings of a sequence sum to 1, and to those of the tokens."""
    codes = list(itertools.product(range(len(model.classes_)), repeat=3))
    paths = [[model.classes_[code] for code in path] for path in codes]
    proba = np.exp(model.sequence_log_proba([X[1]] * len(paths), paths))
    assert abs(proba.sum() - 1.0) < 1e-9
    if hasattr(model, "predict_proba"):
        rows = np.zeros((3, len(model.classes_)))
        for path, share in zip(codes, proba, strict=True):
            rows[np.arange(3), list(path)] += share
        np.testing.assert_allclose(model.predict_proba([X[1]])[0], rows, rtol=0, atol=1e-9)


@needs("sequence_log_proba")
def check_log_proba_of_unknown_labels(model: Any, X: Tokens, y: Labels) -> None:
    """A sequence with a label that the model does not know has the log-probability -inf."""
    log_proba = model.sequence_log_proba(X, [["?", *y[0][1:]], *y[1:]])
    assert log_proba[0] == -np.inf
    np.testing.assert_array_equal(log_proba[1:], model.sequence_log_proba(X, y)[1:])


@needs("confidence")
def check_confidence_of_tokens_is_that_of_their_labels(model: Any, X: Tokens) -> None:
    """The confidence of a token is a probability of `predict_proba`, of which none is larger."""
    sequences = [*X, [], X[0][::-1]]
    found = model.confidence(sequences, of="tokens")
    for own, rows in zip(found, model.predict_proba(sequences), strict=True):
        assert own.shape == (len(rows),)
        if len(rows):
            np.testing.assert_allclose(np.abs(rows - own[:, None]).min(axis=1), 0, atol=1e-12)


@needs("confidence")
def check_confidence_of_sequences_and_spans(model: Any, X: Tokens) -> None:
    """Confidence lies in [0, 1]: one for each sequence, or for each span that is predicted."""
    sequences = [*X, [], X[0][::-1]]
    whole, of_spans = model.confidence(sequences), model.confidence(sequences, of="spans")
    assert whole.shape == (len(sequences),) and np.all((whole >= 0) & (whole <= 1))
    assert [len(own) for own in of_spans] == [len(s) for s in model.predict_spans(sequences)]
    assert all(np.all((own >= 0) & (own <= 1 + 1e-12)) for own in of_spans)
    if hasattr(model, "sequence_log_proba"):  # all labels are right only where each of them is
        tokens = model.confidence(sequences, of="tokens")
        least = [own.min(initial=1.0) for own in tokens]
        assert np.all(whole <= np.array(least) + 1e-9)


@needs("sample")
def check_samples_are_labelings(model: Any, X: Tokens) -> None:
    """Samples have a label for each token; the same number as random state gives the same ones."""
    sequences = [*X, [], X[0][::-1]]
    drawn = model.sample(sequences, 3, random_state=0)
    assert [len(own) for own in drawn] == [3] * len(sequences)
    for labelings, sequence in zip(drawn, sequences, strict=True):
        assert [len(labels) for labels in labelings] == [len(sequence)] * 3
    labels = {label for own in drawn for labels in own for label in labels}
    assert labels <= set(model.classes_)
    fewer = model.sample(sequences, 1, random_state=0)
    assert fewer == [own[:1] for own in drawn]


@needs("entropy", "predict_proba")
def check_entropies_are_those_of_probabilities(model: Any, X: Tokens) -> None:
    """Entropies of tokens are those of `predict_proba`; none of sequences is below 0."""
    sequences = [*X, [], X[0][::-1]]
    whole, of_tokens = model.entropy(sequences), model.entropy(sequences, of="tokens")
    assert whole.shape == (len(sequences),) and np.all(whole >= 0) and whole[len(X)] == 0
    for own, rows in zip(of_tokens, model.predict_proba(sequences), strict=True):
        known = -np.sum(rows * np.log(np.maximum(rows, 1e-300)), axis=1)
        np.testing.assert_allclose(own, known, rtol=0, atol=1e-9)
