"""Words: known ones by relative frequency, unknown ones by what they end in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit import HMMClassifier, PackedSequences
from crfkit.generative.emissions import Words
from crfkit.persistence import dumps, loads
from tests.sampling import examples

WORDS = ["ding", "sing", "ring", "dog", "dog"]
CODES = np.array([1, 1, 0, 0, 0], np.int32)  # N is 0, V is 1


def fitted(emission, X, codes, n_labels=2, weight=None):
    vectorizer = emission.vectorizer()
    data = vectorizer.fit_transform(X)
    weight = np.ones(len(codes)) if weight is None else weight
    statistics = emission.count_labels(data, codes, weight, n_labels)
    return vectorizer, data, emission.estimate(statistics, data)


def logs_of(vectorizer, tables, word):
    (number,) = vectorizer.transform([["dog", word]]).indices[1:]
    return tables.dense()[number]


def test_suffixes_are_abstracted_one_letter_after_the_other():
    """By hand: with theta 1/2, from P(N) = 3/5 over all words, -g, -ng (1/3), -ing (1/3)."""
    vectorizer, data, tables = fitted(Words(theta=0.5), [WORDS], CODES)
    g = 0.6
    ng = (1 / 3 + 0.5 * g) / 1.5
    ing = (1 / 3 + 0.5 * ng) / 1.5
    assert ing == pytest.approx(0.362963, abs=1e-6)
    # Shares of -ing, -ng, -g, lower-case letters, lower case, any: rare tokens of each, plus 1.
    shares = np.array([4, 1, 3, 1, 1, 1]) / 11
    labels = np.array([ing, ng, g, 0.6, 0.6, 0.6])
    once = 3  # ding, sing, ring
    nouns = 3 + once * shares @ labels
    verbs = 2 + once * shares @ (1 - labels)
    assert np.exp(logs_of(vectorizer, tables, "dog")) == pytest.approx([2 / nouns, 0.0])
    assert np.exp(logs_of(vectorizer, tables, "ring")) == pytest.approx([1 / nouns, 0.0])
    assert np.exp(logs_of(vectorizer, tables, "sing")) == pytest.approx([0.0, 1 / verbs])
    for n, word in enumerate(("bring", "gong", "bug", "map", "X-1", "...")):
        if n < 4:
            mass = once * shares[n]
            expected = [mass * labels[n] / nouns, mass * (1 - labels[n]) / verbs]
            assert np.exp(logs_of(vectorizer, tables, word)) == pytest.approx(expected)
        assert np.isfinite(logs_of(vectorizer, tables, word)).all()
    assert np.allclose(tables.totals(), 1.0, rtol=1e-12)


def test_the_default_weight_is_the_deviation_of_the_shares_of_labels():
    theta = np.std([0.6, 0.4], ddof=1)
    one, other = (fitted(Words(theta=t), [WORDS], CODES)[2] for t in (None, theta))
    assert np.array_equal(one.dense(), other.dense())


LETTERS = st.text("aBc1-", min_size=1, max_size=4)
TOKENS = st.lists(
    st.tuples(LETTERS, st.sampled_from("pq"), st.integers(0, 2), st.sampled_from([0.0, 0.5, 1.0])),
    min_size=1, max_size=12,
)  # fmt: skip


@examples(12)
@given(TOKENS, st.sampled_from([0.0, 0.4]), st.sampled_from([None, 0.0, 0.5]), st.integers(0, 4))
def test_all_words_are_possible_and_probabilities_add_up(rows, backoff, theta, max_length):
    words, others, codes, weight = zip(*rows, strict=True)
    emission = Words(
        columns=["w", "t"], column="w", backoff=backoff, theta=theta, max_length=max_length,
        max_count=2,
    )  # fmt: skip
    tokens = list(zip(words, others, strict=True))
    arrays = np.array(codes, np.int32), 3, np.array(weight)
    vectorizer, data, tables = fitted(emission, [tokens], *arrays)
    emission.check_tables(tables, 3, data.n_features)
    assert np.allclose(tables.totals(), 1.0, rtol=1e-10)
    logs = tables.dense()[: data.names.starts[1]]
    assert np.isfinite(logs.max(axis=1)).all()  # each has some label
    classes = logs[data.names.n_known[0] :]
    seen = np.bincount(codes, weight, 3) > 0
    if theta != 0.0:
        assert np.isfinite(classes).all()
    if backoff and theta != 0.0:
        assert np.isfinite(logs).all()
    elif not backoff:
        counts = emission.count_labels(data, *arrays[::2], 3)[0][: data.names.n_known[0]]
        known = counts.any(axis=1)
        possible = np.isfinite(logs[: len(known)])
        assert np.array_equal(possible[known][:, seen], counts[known][:, seen] > 0)


def test_words_without_counts_are_as_unknown_ones():
    weight = np.array([1, 1, 1, 1, 0.0])
    words = ["ding", "sing", "ring", "dog", "king"]
    _, _, tables = fitted(Words(), [words], CODES, weight=weight)
    logs = dict(zip(sorted(words), np.exp(tables.dense()[:5]), strict=True))
    assert (logs["king"] > 0).all() and (logs["ring"] > 0).tolist() == [True, False]


def test_parameters_and_data_are_checked():
    data = PackedSequences.from_flat(np.eye(2), [2])
    for parameters, message in (
        ({"theta": -1.0}, "theta=-1"), ({"backoff": -1}, "backoff=-1"), ({"alpha": -1}, "alpha=-1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            fitted(Words(**parameters), [WORDS], CODES)
    with pytest.raises(ValueError, match="needs to know what words end in"):
        Words().estimate((np.eye(2),), data)
    with pytest.raises(TypeError, match="which has no suffixes"):
        Words().vectorizer().fit([[1, 2]])


X = [
    ["The", "dog", "barks"],
    ["dogs", "bark"],
    ["the", "cats", "walk", "."],
    ["1984", "dogs", "sing"],
]
Y = [["D", "N", "V"], ["N", "V"], ["D", "N", "V", "P"], ["D", "N", "V"]]
NEW = [["Dogs", "walks"], ["the", "1,204", "-", "cows", "moo", "NATO"]]


@pytest.mark.parametrize("order", [0, 1, 2])
def test_models_of_words(order):
    hmm = HMMClassifier(order=order, emissions=Words(max_length=3)).fit(X, Y)
    assert np.isfinite(hmm.log_likelihood([*X, *NEW])).all()
    parts = HMMClassifier(order=order, emissions=Words(max_length=3))
    for part in (slice(0, 1), slice(1, 4)):
        parts.partial_fit(X[part], Y[part], classes=["D", "N", "P", "V"])
    # The columns of what was learned first are the first.
    assert np.abs(parts.log_likelihood(X) - hmm.log_likelihood(X)).max() < 1e-9
    again = loads(dumps(parts))
    assert np.array_equal(again.log_likelihood(NEW), parts.log_likelihood(NEW))
    assert again.partial_fit(X, Y).predict(X) == parts.partial_fit(X, Y).predict(X)
    drawn, labels = hmm.generate([4] * 20, random_state=0)
    assert np.isfinite(hmm.log_likelihood(drawn, labels)).all()
    if order < 2:
        crf = hmm.to_crf()
        for ours, theirs in zip(hmm.predict_proba(NEW), crf.predict_proba(NEW), strict=True):
            assert np.abs(ours - theirs).max() < 1e-10
