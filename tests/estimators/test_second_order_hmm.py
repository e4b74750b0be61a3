"""Hidden Markov models of order 2: all that they say of labels against enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

from crfkit import UNLABELED, HMMClassifier
from crfkit.constraints import Contiguous, Steps
from crfkit.persistence import dumps, loads

X = [list("abcab"), list("bca"), list("c"), list("aabbccab"), list("ca")]
Y = [list("XYZXY"), list("YZX"), list("Z"), list("XXYYZZXZ"), list("ZY")]
NEW = [list("acb"), list("b"), [], list("caab")]


@pytest.fixture(scope="module", params=[True, False], ids=["stop", "no stop"])
def hmm(request):
    return HMMClassifier(order=2, stop=request.param).fit(X, Y)


def joint(hmm, tokens, labels):
    """``log P(x, y)``, read off the probabilities of the model."""
    scores, codes = np.zeros((len(tokens), 3)), labels
    data = hmm.vectorizer_.transform([tokens])
    hmm.emissions_.scores(hmm.emission_tables_, data, slice(0, len(tokens)), scores)
    p = hmm.start_probabilities_[codes[0]]
    for t in range(1, len(codes)):
        two_before = codes[t - 2] if t > 1 else 3
        p *= hmm.second_order_probabilities_[two_before, codes[t - 1], codes[t]]
    if hmm.end_probabilities_ is not None:
        p *= hmm.end_probabilities_[codes[-1]]
    return float(np.log(p) + scores[np.arange(len(codes)), codes].sum())


def listed(hmm, tokens, keeps=lambda labels: True):
    """Labelings, the best first, and ``log P(x, y)`` of each."""
    paths = product(range(3), repeat=len(tokens))
    found = [(joint(hmm, tokens, [*path]), "".join("XYZ"[k] for k in path)) for path in paths]
    return sorted(((score, labels) for score, labels in found if keeps(labels)), reverse=True)


def test_tables_are_the_smoothed_counts_of_triples(hmm):
    counts = np.full((4, 3, 3), 0.1)
    for labels in Y:
        codes = ["XYZ".index(label) for label in labels]
        for t in range(1, len(codes)):
            counts[codes[t - 2] if t > 1 else 3, codes[t - 1], codes[t]] += 1
    end = 0.0 if hmm.end_probabilities_ is None else hmm.end_probabilities_
    expected = counts / counts.sum(axis=2, keepdims=True) * (1.0 - end * np.ones(3))[:, None]
    np.testing.assert_allclose(hmm.second_order_probabilities_, expected, rtol=1e-12)


def test_answers_are_those_of_enumeration(hmm):
    known = [listed(hmm, tokens) if tokens else [] for tokens in NEW]
    totals = [logsumexp([score for score, _ in each]) if each else 0.0 for each in known]
    np.testing.assert_allclose(hmm.log_likelihood(NEW), totals, rtol=1e-10)
    predicted, proba = hmm.predict(NEW), hmm.predict_proba(NEW)
    best, entropies = hmm.predict_n_best(NEW, 3), hmm.entropy(NEW)
    of_tokens = hmm.entropy(NEW, of="tokens")
    for s, (each, total) in enumerate(zip(known, totals, strict=True)):
        if not each:
            continue
        shares = np.exp([score - total for score, _ in each])
        assert predicted[s] == [*each[0][1]]
        assert ["".join(one.labels) for one in best[s]] == [labels for _, labels in each[:3]]
        np.testing.assert_allclose([one.probability for one in best[s]], shares[:3], rtol=1e-10)
        marginals = np.zeros((len(NEW[s]), 3))
        for (_, labels), share in zip(each, shares, strict=True):
            marginals[np.arange(len(labels)), ["XYZ".index(label) for label in labels]] += share
        np.testing.assert_allclose(proba[s], marginals, atol=1e-10)
        assert entropies[s] == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-10)
        expected = -(marginals * np.log(marginals)).sum(axis=1)
        np.testing.assert_allclose(of_tokens[s], expected, rtol=1e-10)
        labels = [*each[-1][1]]
        assert hmm.log_likelihood([NEW[s]], [labels])[0] == pytest.approx(each[-1][0], rel=1e-10)
        found = hmm.sequence_log_proba([NEW[s]], [labels])[0]
        assert found == pytest.approx(each[-1][0] - total, rel=1e-10)


def test_answers_keep_rules(hmm):
    tokens = NEW[3]
    for rule, keeps in (
        (Steps(forbidden=[("X", "X")]), lambda labels: "XX" not in labels),
        (Contiguous("Z"), lambda labels: "Z" * labels.count("Z") in labels),
    ):
        known = listed(hmm, tokens, keeps)
        total = logsumexp([score for score, _ in known])
        assert hmm.predict([tokens], constraints=rule) == [[*known[0][1]]]
        (bounded,) = hmm.predict_with_bounds([tokens], constraints=rule)
        assert bounded.is_optimal
        assert bounded.score == pytest.approx(known[0][0], rel=1e-10)
        proba = hmm.predict_proba([tokens], constraints=rule)[0]
        first = sum(np.exp(score - total) for score, labels in known if labels[0] == "X")
        assert proba[0, 0] == pytest.approx(first, rel=1e-10)
        drawn = hmm.sample([tokens], 20, constraints=rule, random_state=0)[0]
        assert all(keeps("".join(labels)) for labels in drawn)


def test_spans_are_runs_of_labels(hmm):
    tokens = NEW[3]
    known = listed(hmm, tokens)
    total = logsumexp([score for score, _ in known])
    spans = hmm.likely_spans([tokens], threshold=1e-3)[0]
    assert spans
    for span in spans:
        kept = [
            score
            for score, labels in known
            if labels[span.start : span.stop] == span.label * (span.stop - span.start)
            and (span.start == 0 or labels[span.start - 1] != span.label)
            and (span.stop == len(tokens) or labels[span.stop] != span.label)
        ]
        assert span.probability == pytest.approx(np.exp(logsumexp(kept) - total), rel=1e-9)


def test_labels_known_in_part_are_learned_from():
    y = [labels.copy() for labels in Y]
    y[3][2:6] = [UNLABELED] * 4
    hmm = HMMClassifier(order=2, tol=0.0, max_iter=20).fit(X, y)
    values = np.array([record.value for record in hmm.training_log_])
    assert (np.diff(values) <= 1e-10 * np.abs(values[1:])).all()
    again = loads(dumps(hmm))
    np.testing.assert_array_equal(
        again.second_order_probabilities_, hmm.second_order_probabilities_
    )
    assert again.predict(NEW) == hmm.predict(NEW)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("emissions", ["categorical", "words", "gaussian"])
def test_the_likelihood_of_a_fit_is_that_of_its_data(order, emissions):
    random = np.random.default_rng(order)
    y = [random.choice(["a", "b", "c"], n).tolist() for n in (5, 1, 2, 7)]
    X = [[f"{label}{random.integers(3)}" for label in labels] for labels in y]
    if emissions == "gaussian":
        X = [random.normal(size=(len(labels), 2)) for labels in y]
    weight = np.array([1.0, 2.5, 0.0, 0.5])
    for stop in (True, False):
        model = HMMClassifier(order=order, emissions=emissions, stop=stop)
        model.fit(X, y, weight)
        expected = weight[weight > 0] @ model.log_likelihood(X, y)[weight > 0]
        np.testing.assert_allclose(model.log_likelihood_, expected, rtol=1e-12)
