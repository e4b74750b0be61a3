"""Hidden Markov models: what they count, against enumeration, and as conditional random fields."""

from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import FunctionTransformer

from crfkit import (
    UNLABELED,
    CalibratedSequenceClassifier,
    CRFClassifier,
    HMMClassifier,
    PackedSequences,
    SoftLabels,
)
from crfkit.features import QuadraticFeatures, SymbolVectorizer
from crfkit.generative import Additive, DeletedInterpolation
from crfkit.generative.emissions import Gaussian, GaussianTables, SymbolTables
from crfkit.persistence import dumps, loads
from crfkit.testing import parametrize_with_checks

X = [text.split() for text in ("the dog runs", "a cat sees the dog", "dogs run", "the cat sleeps")]
Y = [text.split() for text in ("D N V", "D N V D N", "N V", "D N V")]
NEW = [["the", "cat", "runs"], ["a", "zebra"], ["dogs"]]
SYMBOLS = ["p", "q", "r", "s"]


def distributions(random, *shape):
    return random.dirichlet(np.ones(shape[-1]), shape[:-1])


def given(order, stop, seed=0, **parameters):
    """A model with random probabilities of three labels and four symbols."""
    random = np.random.RandomState(seed)
    rows = distributions(random, 3, 4) if stop else np.pad(distributions(random, 3, 3), (0, 1))[:3]
    triples = None
    if order == 2:
        triples = distributions(random, 4, 3, 3) * (1.0 - rows[:, 3:])
    emission = SymbolTables.from_probabilities(distributions(random, 3, 5).T)
    return HMMClassifier.from_probabilities(
        ["A", "B", "C"], random.dirichlet(np.ones(3)), rows[:, :3], emission,
        end=rows[:, 3] if stop else None, second_order=triples, emissions="categorical",
        vectorizer=SymbolVectorizer().fit([SYMBOLS]), **parameters,
    )  # fmt: skip


def joint(model, x, labels):
    """``P(x, y)``, factor by factor."""
    codes = [model.classes_.tolist().index(label) for label in labels]
    logs = model.emission_tables_.dense()
    names = model.vectorizer_.get_feature_names_out().tolist()
    found = model.start_probabilities_[codes[0]]
    triples = model.second_order_probabilities_
    for t, (before, code) in enumerate(pairwise(codes), 1):
        if triples is None:
            found *= model.transition_probabilities_[before, code]
        else:
            found *= triples[codes[t - 2] if t > 1 else len(model.classes_), before, code]
    if model.end_probabilities_ is not None:
        found *= model.end_probabilities_[codes[-1]]
    for symbol, code in zip(x, codes, strict=True):
        name = f"symbol={symbol}"
        found *= np.exp(logs[names.index(name if name in names else "symbol=<unknown>"), code])
    return found


@pytest.mark.parametrize(("order", "stop"), [(1, True), (1, False), (2, True), (2, False)])
def test_likelihoods_and_posteriors_are_those_of_all_labelings(order, stop):
    model, sequences = given(order, stop), [["p", "s", "q", "p"], ["r"], ["z", "q"]]
    for x, rows in zip(sequences, model.predict_proba(sequences), strict=True):
        labelings = [list(labels) for labels in product("ABC", repeat=len(x))]
        shares = np.array([joint(model, x, labels) for labels in labelings])
        found = model.log_likelihood([x] * len(labelings), labelings)
        np.testing.assert_allclose(found, np.log(shares), rtol=1e-12)
        np.testing.assert_allclose(model.log_likelihood([x]), [np.log(shares.sum())], rtol=1e-12)
        expected = np.zeros(rows.shape)
        for labels, share in zip(labelings, shares / shares.sum(), strict=True):
            expected[np.arange(len(x)), ["ABC".index(label) for label in labels]] += share
        np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-12)
        assert model.predict([x])[0] == labelings[shares.argmax()]


def test_likelihoods_of_what_is_known_in_part():
    model, x = given(1, True), ["p", "s", "q"]
    for labels, pairs in (
        (["A", UNLABELED, "C"], [["A", b, "C"] for b in "ABC"]),
        ([{"A", "B"}, "B", "B"], [[a, "B", "B"] for a in "AB"]),
    ):
        total = sum(joint(model, x, labeling) for labeling in pairs)
        np.testing.assert_allclose(model.log_likelihood([x], [labels]), [np.log(total)], rtol=1e-12)
    assert model.log_likelihood([x], [["A", "Z", "A"]]) == -np.inf
    assert model.log_likelihood([x], [["A", "Z", UNLABELED]]) == -np.inf
    assert model.log_likelihood([[]]) == model.log_likelihood([[]], [[]]) == 0.0


@pytest.mark.parametrize("stop", [True, False])
def test_the_joint_probability_is_a_linear_model(stop):
    """Wang's equations 8 to 11: scores of the CRF are log-probabilities of the HMM."""
    model = given(1, stop)
    crf, sequences = model.to_crf(), [["p", "s", "q", "z"], ["r"]]
    for ranked, x in zip(crf.predict_n_best(sequences, 81), sequences, strict=True):
        labelings = [one.labels for one in ranked]
        assert len(labelings) == 3 ** len(x)
        scores = model.log_likelihood([x] * len(ranked), labelings)
        np.testing.assert_allclose([one.score for one in ranked], scores, rtol=0, atol=1e-10)
    pairs = zip(crf.predict_proba(sequences), model.predict_proba(sequences), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        crf.sequence_log_proba([["p", "q"]], [["A", "B"]]),
        model.log_likelihood([["p", "q"]], [["A", "B"]]) - model.log_likelihood([["p", "q"]]),
        rtol=0, atol=1e-10,
    )  # fmt: skip


def test_three_labels_and_four_symbols_have_21_features():
    """Nine pairs of labels and twelve of a label and a symbol (Wang's notes)."""
    data = PackedSequences(sp.eye_array(4).tocsr()[[0, 1, 2, 3, 0]], offsets=[0, 3, 5])
    hmm = HMMClassifier(stop=False).fit(data, [["A", "B", "C"], ["A", "B"]])
    weights = hmm.to_crf()
    assert weights.coef_.shape == (4, 3) and weights.transitions_.shape == (3, 3)
    counts = CRFClassifier(all_possible_states=True, all_possible_transitions=True)
    found = counts.count_parameters(data, [["A", "B", "C"], ["A", "B"]])
    shapes = weights.coef_.shape, weights.transitions_.shape
    assert found.total == 9 + 12 == sum(rows * columns for rows, columns in shapes)


def test_without_smoothing_estimates_are_relative_frequencies():
    exact = HMMClassifier(smoothing=Additive(alpha=0), emissions="categorical").fit(X, Y)
    assert exact.classes_.tolist() == ["D", "N", "V"]
    np.testing.assert_array_equal(exact.start_probabilities_, [3 / 4, 1 / 4, 0])
    np.testing.assert_array_equal(
        exact.transition_probabilities_, [[0, 1, 0], [0, 0, 4 / 5], [1 / 4, 0, 0]]
    )
    np.testing.assert_array_equal(exact.end_probabilities_, [0, 1 / 5, 3 / 4])
    assert exact.n_iter_ == 1 and exact.converged_ and exact.training_log_ == []
    together = exact.log_likelihood(X, Y).sum()
    np.testing.assert_allclose(exact.log_likelihood_, together, rtol=1e-14)


def test_order_zero_classifies_tokens_alone():
    bayes = HMMClassifier(order=0, smoothing=Additive(alpha=0)).fit(X, Y)
    prior = np.array([4, 5, 4]) / 13
    np.testing.assert_allclose(bayes.start_probabilities_, prior, rtol=1e-15)
    np.testing.assert_allclose(bayes.transition_probabilities_, [prior] * 3, rtol=1e-15)
    assert bayes.end_probabilities_ is None
    tokens = [[token] for x in NEW for token in x]
    alone, together = bayes.predict_proba(tokens), bayes.predict_proba(NEW)
    np.testing.assert_allclose(np.vstack(alone), np.vstack(together), rtol=0, atol=1e-12)
    names = bayes.vectorizer_.get_feature_names_out().tolist()
    rows = np.exp(bayes.emission_tables_.dense()[names.index("symbol=the")]) * prior
    np.testing.assert_allclose(together[0][0], rows / rows.sum(), rtol=1e-12)


def test_a_crf_starts_from_a_hidden_markov_model():
    hmm = HMMClassifier().fit(X, Y)
    start = hmm.to_crf()
    crf = CRFClassifier(
        init=start, boundary_weights=True, features=SymbolVectorizer(), max_iter=0, c2=0.01,
        all_possible_states=True, all_possible_transitions=True,
    )  # fmt: skip
    with pytest.warns(ConvergenceWarning):
        crf.fit(X, Y)
    for ours, theirs in zip(crf.predict_proba(X), hmm.predict_proba(X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


def test_its_probabilities_are_calibrated_as_those_of_its_crf():
    hmm = HMMClassifier().fit(X, Y)
    of_hmm, of_crf = (
        CalibratedSequenceClassifier(model, cv="prefit").fit(X, Y) for model in (hmm, hmm.to_crf())
    )
    assert of_hmm.predict(NEW) == hmm.predict(NEW)
    for ours, theirs in zip(of_hmm.predict_proba(NEW), of_crf.predict_proba(NEW), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_normal_distributions_as_a_crf(covariance):
    random = np.random.RandomState(0)
    labels = [list(random.choice(["a", "b"], size)) for size in (5, 3, 9)]
    matrices = [random.randn(len(y), 2) + (np.array(y) == "b")[:, None] for y in labels]
    hmm = HMMClassifier(emissions=Gaussian(covariance=covariance)).fit(matrices, labels)
    assert HMMClassifier().fit(matrices, labels).emissions_.covariance == "full"
    crf = loads(dumps(hmm.to_crf()))
    assert isinstance(crf.vectorizer_, QuadraticFeatures) == (covariance == "full")
    for ours, theirs in zip(crf.predict_proba(matrices), hmm.predict_proba(matrices), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
    if covariance == "full":
        best = [own[0].score for own in crf.predict_n_best(matrices, 1)]
        expected = hmm.log_likelihood(matrices, hmm.predict(matrices))
        np.testing.assert_allclose(best, expected, rtol=0, atol=1e-10)
    drawn, states = hmm.generate([4, 2], random_state=0)
    assert [rows.shape for rows in drawn] == [(4, 2), (2, 2)] and list(map(len, states)) == [4, 2]


def test_what_is_drawn_is_as_frequent_as_it_is_probable():
    """Labels given lengths, ends that are drawn, and symbols."""
    for model in (given(1, True), given(2, True)):
        drawn, labels = model.generate(4000, random_state=0)
        short = [tuple(y) for y in labels if len(y) == 2]
        for pair in (("A", "B"), ("C", "C")):
            share = sum(joint(model, x, pair) for x in product([*SYMBOLS, "z"], repeat=2))
            error = np.sqrt(share * (1 - share) / 4000)
            assert abs(short.count(pair) / 4000 - share) < 4 * error
        ones = [(x[0], y[0]) for x, y in zip(drawn, labels, strict=True)]
        logs, p = model.emission_tables_.dense(), model.start_probabilities_[1]
        share = p * np.exp(logs[0, 1])
        assert abs(ones.count(("p", "B")) / 4000 - share) < 4 * np.sqrt(share / 4000)
    model = given(1, True)
    _, labels = model.generate([3] * 4000, random_state=0)
    shares = {}
    for y in product("ABC", repeat=3):
        codes = ["ABC".index(label) for label in y]
        steps = model.transition_probabilities_[codes[:-1], codes[1:]]
        ends = model.start_probabilities_[codes[0]] * model.end_probabilities_[codes[-1]]
        shares[y] = ends * steps.prod()
    for y in shares:
        share = shares[y] / sum(shares.values())
        found = sum(tuple(own) == y for own in labels) / 4000
        assert abs(found - share) < 5 * np.sqrt(share * (1 - share) / 4000)
    assert model.generate([], random_state=0) == ([], []) and model.generate(0)[0] == []
    assert model.generate([2, 3], random_state=3) == model.generate([2, 3], random_state=3)


def test_drawing_what_never_ends_is_refused():
    with pytest.raises(ValueError, match="does not know where sequences end"):
        given(1, False).generate(3)
    endless = given(1, True)
    rows = np.array([[0.5, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    endless.transition_probabilities_, endless.end_probabilities_ = rows, 1.0 - rows.sum(axis=1)
    with pytest.raises(ValueError, match="never followed by an end"):
        endless.generate(3)
    for lengths in ([-1], [1.5], [[1]], [np.inf], [np.nan]):
        with pytest.raises(ValueError, match="whole numbers"):
            endless.generate(lengths)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_batches_are_as_good_as_all_data_at_once(order):
    whole = HMMClassifier(order=order, smoothing="witten_bell").fit(X, Y)
    parts = HMMClassifier(order=order, smoothing="witten_bell")
    parts.partial_fit(X[:1], Y[:1], classes=["D", "N", "V"])
    parts = loads(dumps(parts)).partial_fit(X[1:3], Y[1:3]).partial_fit(X[3:], Y[3:])
    assert parts.n_iter_ == 3 and np.isnan(parts.log_likelihood_)
    np.testing.assert_allclose(
        parts.transition_probabilities_, whole.transition_probabilities_, rtol=1e-14
    )
    np.testing.assert_allclose(parts.log_likelihood(NEW), whole.log_likelihood(NEW), rtol=1e-12)
    more = HMMClassifier(order=order, smoothing="witten_bell").fit(X[:2], Y[:2])
    more.partial_fit(X[2:], Y[2:])
    np.testing.assert_allclose(more.log_likelihood(NEW), whole.log_likelihood(NEW), rtol=1e-12)


def test_batches_that_cannot_be_counted():
    model = HMMClassifier()
    with pytest.raises(ValueError, match="needs classes"):
        model.partial_fit(X, Y)
    with pytest.raises(ValueError, match="labels that are known"):
        model.partial_fit(X[:1], [["D", UNLABELED, "V"]], classes=["D", "N", "V"])
    model.partial_fit(X, Y, classes=["D", "N", "V"])
    with pytest.raises(ValueError, match="'Z' is not one of the classes"):
        model.partial_fit([["x"]], [["Z"]])
    with pytest.raises(ValueError, match="order=1, but now order=2"):
        model.set_params(order=2).partial_fit(X, Y)


def test_weights_of_sequences():
    heavy = HMMClassifier().fit(X, Y, sample_weight=[1, 3, 0, 1])
    twice = HMMClassifier().fit([X[0], *[X[1]] * 3, X[3]], [Y[0], *[Y[1]] * 3, Y[3]])
    for name in ("start_probabilities_", "transition_probabilities_", "end_probabilities_"):
        np.testing.assert_allclose(getattr(heavy, name), getattr(twice, name), rtol=1e-14)
    np.testing.assert_allclose(heavy.log_likelihood_, twice.log_likelihood_, rtol=0.2)
    tokens = [np.arange(1.0, 1 + len(y)) for y in Y]
    with pytest.raises(ValueError, match="counts whole sequences"):
        HMMClassifier().fit(X, Y, sample_weight=tokens)
    halves = HMMClassifier(n_states=2, random_state=0)
    one, other = (halves.fit(X, None, w).log_likelihood(X) for w in ([1] * 4, [2] * 4))
    assert one.shape == other.shape == (4,)


def test_labels_known_in_part_are_learned_by_em():
    partly = [["D", UNLABELED, "V"], Y[1], [UNLABELED] * 2, ["D", {"N", "V"}, "V"]]
    model = HMMClassifier().fit(X, partly)
    assert model.n_iter_ > 1 and model.predict(X[:2] + X[3:]) == Y[:2] + Y[3:]
    known = model.log_likelihood(X, partly).sum()
    np.testing.assert_allclose(model.log_likelihood_, known, rtol=1e-6)
    soft = HMMClassifier().fit(X, SoftLabels.from_labels(Y).mixed(uniform(Y), 0.1))
    assert soft.predict(X) == Y
    with pytest.raises(ValueError, match="learned from by EM"):
        HMMClassifier(smoothing="witten_bell").fit(X, partly)


def uniform(y):
    return SoftLabels([np.full((len(labels), 3), 1 / 3) for labels in y], ["D", "N", "V"])


def test_hidden_states():
    random = np.random.RandomState(0)
    matrices = [random.randn(9, 1) * 0.1 + 5 * (np.arange(9)[:, None] % 2) for _ in range(4)]
    model = HMMClassifier(n_states=2, random_state=0).fit(matrices)
    assert model.classes_.tolist() == [0, 1]
    for labels in model.predict(matrices):
        assert all(a != b for a, b in pairwise(labels))
    known = model.log_likelihood(matrices).sum()
    np.testing.assert_allclose(model.log_likelihood_, known, rtol=1e-6)
    again = model.set_params(warm_start=True).fit(matrices)
    assert again.n_iter_ <= 2 and again.log_likelihood_ >= known - 1e-6
    again.set_params(emissions=Gaussian(covariance="diag")).fit(matrices)
    assert again.emission_tables_.covariance.shape == (2, 1)
    chain = HMMClassifier(n_states=2, stop=False, random_state=0).fit(matrices)
    alone = chain.set_params(order=0, warm_start=True).fit(matrices)
    values = [record.value for record in alone.training_log_]
    assert all(after <= before for before, after in pairwise(values))
    with pytest.raises(ValueError, match="n_states"):
        HMMClassifier().fit(matrices)


def test_how_tokens_are_read():
    """Whole numbers and strings are symbols, other numbers are vectors."""
    floats = [np.ones((len(y), 2)) * 0.5 + np.arange(len(y))[:, None] for y in Y]
    kinds = {"Gaussian": floats, "Categorical": [np.arange(len(y)) for y in Y]}
    for name, sequences in kinds.items():
        assert type(HMMClassifier().fit(sequences, Y).emissions_).__name__ == name
    several = [[{"w": word, "s": word[-1]} for word in x] for x in X]
    assert HMMClassifier().fit(several, Y).predict(several) == Y
    frames = [pd.DataFrame(x) for x in several]
    assert HMMClassifier().fit(frames, Y).predict(several) == Y
    of_numbers = HMMClassifier().fit([pd.DataFrame(x) for x in floats], Y)
    assert of_numbers.predict(floats) == HMMClassifier().fit(floats, Y).predict(floats)
    assert HMMClassifier().fit((list(x) for x in X), iter(Y)).predict(X) == Y
    upper = FunctionTransformer(lambda X: [[word.upper() for word in x] for x in X])
    model = HMMClassifier(features=upper).fit(X, Y)
    assert model.predict(X) == Y and "symbol=CAT" in model.feature_names_in_
    with pytest.raises(ValueError, match="emissions='multinomial'|one in each|values other than 1"):
        HMMClassifier(emissions="categorical").fit(floats, Y)


def test_new_data_are_checked():
    numbers = [np.array([[0.5], [1.5]])] * 2
    model = HMMClassifier().fit(numbers, [["a", "b"]] * 2)
    with pytest.raises(ValueError, match="sparse"):
        model.predict([sp.csr_array(numbers[0])])
    indicators = PackedSequences(sp.eye_array(3).tocsr(), offsets=[0, 2, 3])
    model = HMMClassifier().fit(indicators, [["a", "b"], ["a"]])
    with pytest.raises(ValueError, match="one in each of 1 columns"):
        model.predict(PackedSequences(sp.csr_array(np.ones((2, 3))), offsets=[0, 2]))


def test_questions_of_labels_and_spans():
    tagged = [["B-P", "I-P", "O"], ["O", "B-P", "O", "O", "B-P"], ["B-P", "O"], ["O", "B-P", "O"]]
    for order in (1, 2):
        model = HMMClassifier(order=order, constraints="IOB2").fit(X, tagged)
        spans = model.predict_spans(X)
        assert spans[0] == [(0, 2, "P")]
        shares = model.predict_span_proba(X, [[(0, 2, "P")], [], [], []])
        assert 0 < shares[0][0] < 1
        assert model.sequence_log_proba(X[:1], [["I-P", "O", "O"]]) == -np.inf
        assert np.isfinite(model.log_likelihood(X[:1], [["I-P", "O", "O"]]))
        assert len(model.predict_n_best(X, 3)[0]) == 3
        assert all(model.entropy(X) > 0) and len(model.confidence(X)) == 4
        assert [len(own) for own in model.sample(X, 2, random_state=0)] == [2] * 4
        rows = model.predict_proba(X)
        for own, labels in zip(
            rows, model.set_params(decoding="posterior").predict(X), strict=True
        ):
            assert own.shape == (len(labels), 3) and "O I-P" not in " ".join(["O", *labels])


def test_probabilities_may_be_assigned():
    model = given(1, True)
    before = model.log_likelihood([["p", "q"]])
    start = np.array([1.0, 0.0, 0.0])
    model.start_probabilities_ = start
    assert model.predict([["s", "s"]])[0][0] == "A"
    assert not start.flags.writeable and model.log_likelihood([["p", "q"]]) != before
    model.start_probabilities_ = np.array([1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="start_probabilities_ adds up to 2"):
        model.predict([["p"]])
    model.start_probabilities_ = np.zeros(4)
    with pytest.raises(ValueError, match=r"of shape \(3,\)"):
        model.predict([["p"]])
    model = given(1, False)
    model.start_probabilities_ = np.array([0.0, 0.0, 1.0])
    model.transition_probabilities_ = np.eye(3)
    table = [[1.0, 0, 0, 0, 0], [1.0, 0, 0, 0, 0], [0, 1.0, 0, 0, 0]]
    model.emission_tables_ = SymbolTables.from_probabilities(np.array(table).T)
    assert model.log_likelihood([["p"], ["q"], ["q", "p"]]).tolist() == [-np.inf, 0.0, -np.inf]
    with pytest.raises(ValueError, match="no path is left"):
        model.predict([["p"]])


def test_what_is_no_model_of_given_probabilities():
    tables = GaussianTables(np.zeros((2, 1)), np.ones((2, 1, 1)))
    make = HMMClassifier.from_probabilities
    model = make(["a", "b"], [0.5, 0.5], np.eye(2), tables, emissions="gaussian")
    assert model.predict([np.zeros((3, 1))]) in ([["a"] * 3], [["b"] * 3])
    with pytest.raises(ValueError, match="say which emissions"):
        make(["a", "b"], [0.5, 0.5], np.eye(2), tables)
    with pytest.raises(ValueError, match="transition_probabilities_ adds up to 2"):
        make(["a", "b"], [0.5, 0.5], np.ones((2, 2)), tables, emissions="gaussian")
    with pytest.raises(ValueError, match="means"):
        make(["a"], [1.0], np.eye(1), tables, emissions="gaussian")
    with pytest.raises(ValueError, match=r"no tables that Categorical has fitted"):
        make(["a", "b"], [0.5, 0.5], np.eye(2), tables, emissions="categorical")
    with pytest.raises(ValueError, match="not distinct"):
        make(["a", "a"], [0.5, 0.5], np.eye(2), tables, emissions="gaussian")
    with pytest.raises(ValueError, match="needs second_order"):
        make(["a", "b"], [0.5, 0.5], np.eye(2), tables, emissions="gaussian", order=2)
    with pytest.raises(ValueError, match="no counts"):
        model.partial_fit([np.zeros((1, 1))], [["a"]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"order": 3}, "order=3"),
        ({"stop": 1}, "stop=1"),
        ({"n_states": 0}, "n_states=0"),
        ({"emissions": "poisson"}, "emissions='poisson'"),
        ({"emissions": 3}, "emissions=3"),
        ({"smoothing": "kneser_ney"}, "smoothing='kneser_ney'"),
        ({"decoding": "best"}, "decoding='best'"),
        ({"tol": -1}, "tol=-1"),
        ({"n_init": 0}, "n_init=0"),
        ({"features": "words"}, "features='words'"),
        ({"constraints": 3}, "3"),
    ],
)
def test_parameters_that_cannot_be_used(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        HMMClassifier(**parameters).fit(X, Y)


def test_orders_that_are_no_chain_of_labels():
    with pytest.raises(ValueError, match="fit one with order=1"):
        HMMClassifier(order=2).fit(X, Y).to_crf()


@pytest.mark.parametrize("order", [1, 2])
def test_a_model_file(order, tmp_path):
    model = HMMClassifier(order=order, smoothing=DeletedInterpolation()).fit(X, Y)
    model.save(tmp_path / "hmm")
    read = loads((tmp_path / "hmm").read_bytes())
    np.testing.assert_array_equal(read.log_likelihood(NEW), model.log_likelihood(NEW))
    assert read.get_params()["smoothing"].__class__ is DeletedInterpolation


def counted(state, emission):
    return {"order": 1, "counts": state["counts"]._replace(emission=emission)}


def sparse(state, column):
    found = sp.csr_array(state["counts"].emission[0])
    found.indices[0] = column
    return found


@pytest.mark.parametrize("emissions", ["categorical", "words", "gaussian", "bernoulli"])
def test_a_model_that_was_read_counts_on(emissions):
    X = [[[0.0, 1.0], [1.0, 0.0], [0.0, 0.5]], [[1.0, 1.0], [0.0, 0.0]]]
    X = [np.array(rows) > 0.7 for rows in X] if emissions == "bernoulli" else X
    X = [["a", "b", "ab"], ["b", "a"]] if emissions in ("categorical", "words") else X
    X, y = [np.array(rows) for rows in X], [[0, 1, 0], [1, 0]]
    model = HMMClassifier(emissions=emissions).fit(X, y)
    for _ in range(2):
        again = loads(dumps(model)).partial_fit(X, y)
        found = model.partial_fit(X, y).log_likelihood(X)
        np.testing.assert_array_equal(again.log_likelihood(X), found)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("start_probabilities_", lambda a: a[:2], "shape"),
        ("transition_probabilities_", lambda a: a * 2, "no probability|adds up"),
        ("end_probabilities_", lambda a: -a, "no probability"),
        ("second_order_probabilities_", lambda a: np.ones((2, 3, 3)), "shape"),
        ("emission_tables_", lambda a: a._replace(labels=a.labels + 7), "symbols|column"),
        ("emission_tables_", lambda a: (1, 2), "symbols"),
        ("emissions_", lambda a: "categorical", "no family"),
        ("classes_", lambda a: a[:2], "shape"),
        ("n_features_in_", lambda a: a - 1, "symbols|column"),
        ("_partial_state", lambda a: {"order": 1, "counts": 3}, "counts"),
        ("_partial_state", lambda a: {"order": 2, "counts": a["counts"]}, "order 2"),
        ("_partial_state", lambda a: counted(a, (1,)), "is a int"),
        ("_partial_state", lambda a: counted(a, ()), "other parts"),
        ("_partial_state", lambda a: counted(a, a["counts"].emission[0].T), "other parts"),
        ("_partial_state", lambda a: counted(a, (a["counts"].emission[0].T,)), "no array of shape"),
        ("_partial_state", lambda a: counted(a, (a["counts"].emission[0] * np.nan,)), "no finite"),
        ("_partial_state", lambda a: counted(a, (sparse(a, 9),)), "sparse matrix|column 9"),
    ],
)
def test_a_damaged_model_file_is_refused(name, change, message):
    model = HMMClassifier().fit(X, Y)
    vars(model)[name] = change(vars(model)[name])
    with pytest.raises(ValueError, match=message):
        loads(dumps(model))


@parametrize_with_checks([HMMClassifier(emissions="multinomial")])
def test_checks_of_estimators(estimator, check):
    check(estimator)
