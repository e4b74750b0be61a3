import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.pipeline import make_pipeline

from crfkit import (
    CRFClassifier,
    PackedSequences,
    SemiMarkovCRF,
    SequenceVectorizer,
    TemplateFeatures,
)
from crfkit.active_learning import (
    information_density,
    least_confidence,
    margin,
    n_best_entropy,
    query,
    sequence_entropy,
    token_entropy,
)
from tests.calibration.data import sentences

X, Y = sentences(20, length=4)
NEW = [row[: 1 + i % 4] for i, row in enumerate(sentences(8, seed=1, length=4)[0])]
TAGS = ["B", "O", "X"]
Y = [[tag[0] if tag[0] != "I" else "X" for tag in tags] for tags in Y]


@pytest.fixture(scope="module")
def crf():
    return CRFClassifier(c2=1.0).fit(X, Y)


@pytest.fixture(scope="module")
def listed(crf):
    """The probabilities of all labelings of each sequence, falling."""
    found = []
    for row in NEW:
        paths = [list(path) for path in itertools.product(TAGS, repeat=len(row))]
        found.append(np.sort(np.exp(crf.sequence_log_proba([row] * len(paths), paths)))[::-1])
    return found


def entropy(p):
    return -np.sum(p[p > 0] * np.log(p[p > 0]))


def test_scores_are_those_of_enumeration(crf, listed):
    assert crf.classes_.tolist() == TAGS
    close = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(least_confidence(crf, NEW), [1 - p[0] for p in listed], **close)
    np.testing.assert_allclose(margin(crf, NEW), [1 - p[0] + p[1] for p in listed], **close)
    np.testing.assert_allclose(sequence_entropy(crf, NEW), [*map(entropy, listed)], **close)
    for n in (1, 3, 100):
        best = [p[:n] for p in listed]
        shares = [entropy(p / p.sum()) for p in best]
        np.testing.assert_allclose(n_best_entropy(crf, NEW, n), shares, **close)
        plain = n_best_entropy(crf, NEW, n, normalize=False)
        np.testing.assert_allclose(plain, [*map(entropy, best)], **close)


def test_entropies_of_tokens_are_added_up(crf):
    rows = crf.predict_proba(NEW)
    sums = [entropy(p.ravel()) for p in rows]
    np.testing.assert_allclose(token_entropy(crf, NEW), sums)
    means = [total / len(p) for total, p in zip(sums, rows, strict=True)]
    np.testing.assert_allclose(token_entropy(crf, NEW, mean=True), means)
    assert np.all(token_entropy(crf, NEW) >= sequence_entropy(crf, NEW) - 1e-12)


@pytest.mark.parametrize(
    "score", [least_confidence, margin, n_best_entropy, sequence_entropy, token_entropy]
)
def test_models_of_all_kinds_are_asked(crf, score):
    piped = make_pipeline(SequenceVectorizer(), CRFClassifier(c2=1.0)).fit(X, Y)
    np.testing.assert_allclose(score(piped, NEW), score(crf, NEW), rtol=1e-3)
    model = SemiMarkovCRF(c2=1.0).fit(X, [[(0, 1, "A"), (1, 3, "B")]] * len(X))
    found = score(model, [[], *NEW])
    assert found.shape == (9,) and found[0] == 0.0 and np.all(found >= 0)
    assert score(crf, []).shape == (0,)


@pytest.mark.parametrize("beta", [0.0, 1.0, 2.5])
def test_density_is_the_mean_similarity_to_all(beta):
    data = SequenceVectorizer().fit_transform(X)
    vectors = np.array([matrix.sum(axis=0) for matrix in data])
    expected = np.arange(len(X)) * cosine_similarity(vectors).mean(axis=1) ** beta
    scores = np.arange(float(len(X)))
    for form in (X, data, list(data), [matrix.toarray() for matrix in data]):
        np.testing.assert_allclose(information_density(scores, form, beta=beta), expected)


def test_density_takes_what_the_model_reads():
    words = [[token["word"] for token in row] for row in X]
    features = TemplateFeatures(["w"], columns=["w"])
    crf = CRFClassifier(features=features, c2=1.0).fit(words, Y)
    found = information_density(np.ones(len(X)), words, model=crf)
    expected = information_density(np.ones(len(X)), [[[w] for w in row] for row in words])
    np.testing.assert_allclose(found, expected)


def test_sequences_without_attributes_are_like_no_other():
    data = PackedSequences.from_matrices(
        [np.eye(2), np.zeros((1, 2)), np.zeros((0, 2)), -np.eye(2)]
    )
    np.testing.assert_allclose(information_density(np.ones(4), data), [0, 0, 0, 0])
    sparse = [sp.csr_array(np.eye(2)), sp.csr_array((0, 2))]
    np.testing.assert_allclose(information_density(np.ones(2), sparse), [0.5, 0.0])
    assert information_density([], PackedSequences.from_matrices([], 2)).shape == (0,)


def test_density_of_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="2 scores for 20 sequences"):
        information_density([1.0, 2.0], X)
    with pytest.raises(ValueError, match="must not be negative"):
        information_density([-1.0] * len(X), X)
    with pytest.raises(ValueError, match="beta=-1"):
        information_density([1.0] * len(X), X, beta=-1)


def test_queries_go_by_scores_and_then_by_order():
    scores = [0.5, 0.9, 0.5, 0.1, 0.9, np.inf]
    assert query(scores).tolist() == [5, 1, 4, 0, 2, 3]
    assert query(scores, n=2).tolist() == [5, 1]
    assert query(scores, n=0).tolist() == []
    lengths = np.array([3, 6, 1, 2, 4, 5])
    assert query(scores, tokens=12, lengths=lengths).tolist() == [5, 1, 2]
    assert query(scores, n=2, tokens=9, lengths=lengths).tolist() == [5, 4]
    assert query(scores, tokens=0, lengths=lengths).tolist() == []
    assert query([], n=3).dtype == np.int64
    rng = np.random.default_rng(0)
    scores, lengths = rng.random(200).round(1), rng.integers(1, 20, 200)
    found = query(scores, tokens=300, lengths=lengths)
    assert lengths[found].sum() <= 300 and np.all(np.diff(scores[found]) <= 0)
    left = 300 - np.cumsum(lengths[found])
    for place in set(range(200)) - {*found.tolist()}:  # it was too long when it was its turn
        before = [i for i, f in enumerate(found) if (-scores[f], f) < (-scores[place], place)]
        assert lengths[place] > (left[before[-1]] if before else 300)


@pytest.mark.parametrize(
    ("scores", "given", "message"),
    [
        ([0.1, np.nan], {}, "score of sequence 1 is NaN"),
        ([[0.1]], {}, "the shape"),
        ([0.1], {"n": -1}, "n=-1"),
        ([0.1], {"tokens": 3}, "needs lengths="),
        ([0.1], {"tokens": 3, "lengths": [1, 2]}, "needs lengths="),
        ([0.1], {"tokens": -3, "lengths": [1]}, "tokens=-3"),
    ],
)
def test_queries_that_mean_nothing_are_refused(scores, given, message):
    with pytest.raises(ValueError, match=message):
        query(scores, **given)
