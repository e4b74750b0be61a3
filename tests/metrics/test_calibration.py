import pickle

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import average_precision_score, brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from crfkit import (
    UNLABELED,
    CRFClassifier,
    CRFClassifierCV,
    EarlyStopping,
    SemiMarkovCRF,
    SequenceVectorizer,
    SoftLabels,
)
from crfkit.inference import Abstain
from crfkit.metrics import (
    Segment,
    brier_score,
    confidence_average_precision,
    expected_calibration_error,
    get_scorer,
    get_scorer_names,
    judged_confidence,
    log_loss,
    reliability_curve,
    risk_coverage_area,
    risk_coverage_curve,
    scorers,
    sequence_log_loss,
    spans_from_tags,
    token_brier_score,
    token_log_loss,
)

OF_PAIRS = (
    brier_score, confidence_average_precision, expected_calibration_error, log_loss,
    risk_coverage_area,
)  # fmt: skip


@pytest.fixture
def pairs():
    """Confidences with ties, whether predictions are right, and weights."""
    rng = np.random.default_rng(0)
    confidence = rng.random(200).round(2)
    return confidence, rng.random(200) < confidence, rng.integers(1, 4, 200)


def ragged(values):
    return [values[:3], values[3:3], values[3:]]


def test_scores_of_pairs_are_those_of_scikit_learn(pairs):
    confidence, correct, weight = pairs
    given = {"sample_weight": weight}
    assert brier_score(confidence, correct, **given) == pytest.approx(
        brier_score_loss(correct, confidence, **given)
    )
    assert log_loss(confidence, correct, **given) == pytest.approx(
        sklearn_log_loss(correct, confidence, **given)
    )
    found = confidence_average_precision(confidence, correct, **given)
    assert found == pytest.approx(average_precision_score(correct, confidence, **given))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_reliability_curve_is_that_of_scikit_learn(pairs, strategy):
    confidence, correct, _ = pairs
    rng = np.random.default_rng(1)
    if strategy == "quantile":  # there edges lie between different confidences
        confidence = (np.argsort(rng.random(200)) + 0.5) / 200
    curve = reliability_curve(confidence, correct, n_bins=8, strategy=strategy)
    right, mean = calibration_curve(correct, confidence, n_bins=8, strategy=strategy)
    np.testing.assert_allclose(curve.accuracy, right)
    np.testing.assert_allclose(curve.confidence, mean)
    assert curve.weight.sum() == 200


def test_bins_of_equal_weight_have_it():
    rng = np.random.default_rng(2)
    confidence, weight = rng.random(400), rng.random(400)
    curve = reliability_curve(
        confidence, confidence > 0.5, n_bins=10, strategy="quantile", sample_weight=weight
    )
    np.testing.assert_allclose(curve.weight, weight.sum() / 10, atol=1.0)
    tied = reliability_curve([0.5] * 9 + [0.9], [True] * 10, n_bins=5, strategy="quantile")
    assert tied.weight.tolist() == [9.0, 1.0]


@pytest.mark.parametrize("metric", OF_PAIRS)
def test_weights_of_pairs_repeat_them(pairs, metric):
    confidence, correct, weight = pairs
    repeated = np.repeat(confidence, weight), np.repeat(correct, weight)
    found = metric(confidence, correct, sample_weight=weight)
    if metric is risk_coverage_area:  # a mean over predictions, of which one steps further
        assert found == pytest.approx(metric(*repeated), abs=0.01)
    else:
        assert found == pytest.approx(metric(*repeated))
    some = np.where(np.arange(200) < 100, weight, 0)
    short = metric(confidence[:100], correct[:100], sample_weight=weight[:100])
    assert metric(confidence, correct, sample_weight=some) == pytest.approx(short)


@pytest.mark.parametrize("metric", OF_PAIRS)
def test_pairs_may_be_listed_by_sequence(pairs, metric):
    listed = [ragged(part) for part in pairs]
    expected = metric(*pairs[:2], sample_weight=pairs[2])
    assert metric(*listed[:2], sample_weight=listed[2]) == expected
    assert np.isnan(metric([], [])) and np.isnan(metric([np.zeros(0)], [np.zeros(0, bool)]))


def test_the_calibration_error_of_calibrated_predictions_vanishes():
    rng = np.random.default_rng(3)
    errors = []
    for size in (100, 3000, 100_000):
        confidence = rng.random(size)
        correct = rng.random(size) < confidence
        norms = ("l1", "l2", "max")
        errors.append([expected_calibration_error(confidence, correct, norm=n) for n in norms])
    assert np.all(np.array(errors[2]) < [0.005, 0.005, 0.015])
    assert np.all(np.diff(errors, axis=0) < 0)


def test_the_calibration_error_sums_up_the_bins():
    confidence, correct = [0.05, 0.95, 0.85, 0.85], [False, True, False, True]
    gaps, share = np.array([0.05, 0.05, 0.35]), np.array([0.25, 0.25, 0.5])
    given = {"n_bins": 10}
    assert expected_calibration_error(confidence, correct, **given) == pytest.approx(share @ gaps)
    root = expected_calibration_error(confidence, correct, norm="l2", **given)
    assert root == pytest.approx(np.sqrt(share @ gaps**2))
    assert expected_calibration_error(confidence, correct, norm="max", **given) == pytest.approx(
        0.35
    )


def test_risk_and_coverage_are_counted_at_each_threshold(pairs):
    confidence, correct, weight = pairs
    curve = risk_coverage_curve(confidence, correct, sample_weight=weight)
    assert np.all(np.diff(curve.threshold) < 0) and len(curve.threshold) == len({*confidence})
    for coverage, risk, threshold in zip(*curve, strict=True):
        kept = confidence >= threshold
        assert coverage == pytest.approx(weight[kept].sum() / weight.sum())
        assert risk == pytest.approx(weight[kept & ~correct].sum() / weight[kept].sum())


def test_the_area_is_the_mean_risk_over_random_orders_of_ties():
    rng = np.random.default_rng(4)
    confidence, correct = rng.integers(0, 4, 12) / 4.0, rng.random(12) < 0.6
    areas = []
    for _ in range(3000):
        order = np.lexsort((rng.random(12), -confidence))
        areas.append(np.mean(np.cumsum(~correct[order]) / np.arange(1, 13)))
    assert risk_coverage_area(confidence, correct) == pytest.approx(np.mean(areas), abs=0.005)


def test_confidence_that_ranks_may_be_any_number():
    scores, correct = [-3.0, 40.0, 7.0], [False, True, True]
    assert confidence_average_precision(scores, correct) == 1.0
    assert risk_coverage_area(scores, correct) == pytest.approx(1 / 9)
    assert confidence_average_precision(scores, [False] * 3) == 0.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([0.5, 1.5], [True, False]), "1.5 .number 1. is no probability"),
        (([0.5, np.nan], [True, False]), "is no probability"),
        (([0.5], [True, False]), "correct has 2 values, confidence has 1"),
        (([0.5], [0.3]), "other values than True and False"),
        (([[[0.5]]], [True]), "must be flat"),
    ],
)
def test_what_are_no_pairs_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        brier_score(*given)
    with pytest.raises(ValueError, match="sample_weight has 2 values"):
        brier_score([0.5], [True], sample_weight=[1.0, 1.0])
    with pytest.raises(ValueError, match="negative or not finite"):
        brier_score([0.5], [True], sample_weight=[-1.0])
    with pytest.raises(ValueError, match="not a number"):
        risk_coverage_curve([np.nan], [True])
    with pytest.raises(ValueError, match="n_bins=0"):
        reliability_curve([0.5], [True], n_bins=0)


# Probabilities of labels.
CLASSES = ["A", "B", "C"]
PROBA = [np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]), np.array([[0.3, 0.6, 0.1]])]


def test_losses_of_tokens_are_those_of_scikit_learn():
    y, flat = [["A", "C"], ["A"]], [0, 2, 0]
    rows, weight = np.concatenate(PROBA), [1.0, 2.0, 3.0]
    found = token_log_loss(y, PROBA, CLASSES, sample_weight=[[1.0, 2.0], [3.0]])
    assert found == pytest.approx(
        sklearn_log_loss(flat, rows, labels=[0, 1, 2], sample_weight=weight)
    )
    assert token_log_loss(y, rows, CLASSES, sample_weight=weight) == pytest.approx(found)
    squares = np.sum((rows - np.eye(3)[flat]) ** 2, axis=1)
    score = token_brier_score(y, PROBA, CLASSES, sample_weight=[1.0, 2.0])
    assert score == pytest.approx(np.average(squares, weights=[1.0, 1.0, 2.0]))


def test_labels_that_are_open_or_unknown_count_as_they_should():
    first = -np.log(0.7)
    assert token_log_loss([["A", UNLABELED], [UNLABELED]], PROBA, CLASSES) == pytest.approx(first)
    either = token_log_loss([["A", {"A", "C"}], [UNLABELED]], PROBA, CLASSES)
    assert either == pytest.approx((first - np.log(0.9)) / 2)
    score = token_brier_score([[UNLABELED, {"A", "C"}], [UNLABELED]], PROBA, CLASSES)
    assert score == pytest.approx(0.1**2 + 0.1**2 + 0.2**2)
    other = [[UNLABELED, UNLABELED], ["?"]]
    assert token_log_loss(other, PROBA, CLASSES) == pytest.approx(-np.log(np.finfo(float).eps))
    assert token_brier_score(other, PROBA, CLASSES) == pytest.approx(0.3**2 + 0.6**2 + 0.1**2 + 1)
    soft = SoftLabels([[[1.0, 0.0], [0.4, 0.6]], [[0.9, 0.1]]], ["A", "C"])
    assert token_log_loss(soft, PROBA, CLASSES) == token_log_loss(
        [["A", "C"], ["A"]], PROBA, CLASSES
    )
    assert np.isnan(token_log_loss([[]], [np.zeros((0, 3))], CLASSES))
    assert np.isnan(token_brier_score([[UNLABELED]], [[[0.1, 0.2, 0.7]]], CLASSES))


def test_probabilities_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="sequence 1: X has 1 tokens, but y_true has 2 items"):
        token_log_loss([["A", "A"], ["A", "A"]], PROBA, CLASSES)
    with pytest.raises(ValueError, match="y_true has 2 tokens, proba has 3 rows"):
        token_log_loss([["A", "A"]], np.concatenate(PROBA), CLASSES)
    with pytest.raises(ValueError, match="proba has 3 columns for 2 classes"):
        token_log_loss([["A", "A", "A"]], np.concatenate(PROBA), CLASSES[:2])


def test_the_loss_of_sequences_is_cut_where_it_would_be_infinite():
    log_proba = np.array([-1.0, -np.inf, -3.0])
    assert sequence_log_loss(log_proba) == np.inf
    assert sequence_log_loss(log_proba, sample_weight=[1, 0, 3]) == pytest.approx(2.5)
    least = -np.log(np.finfo(float).eps)
    found = sequence_log_loss(log_proba, lengths=[1, 2, 1])
    assert found == pytest.approx((1 + 3 + 2 * least) / 3)
    assert np.isnan(sequence_log_loss([]))
    with pytest.raises(ValueError, match="one weight for each sequence"):
        sequence_log_loss(log_proba, sample_weight=[1.0])


class Fixed:
    """Predictions and probabilities that are given."""

    classes_ = np.array(["B-X", "I-X", "O"], object)

    def __init__(self, labels, proba=None, log_proba=None, confidence=None, scheme_=None):
        self.labels, self.proba, self.log_proba = labels, proba, log_proba
        self.of_spans, self.scheme_ = confidence, scheme_
        if confidence is not None:
            self.confidence = lambda X, of: self.of_spans

    def predict(self, X):
        return self.labels

    def predict_proba(self, X):
        return self.proba

    def sequence_log_proba(self, X, y):
        assert y == self.labels
        return np.array(self.log_proba)

    def predict_spans(self, X):
        return [spans_from_tags(tags) for tags in self.labels]


TAGS = [["B-X", "I-X", "O", "B-X"], ["B-X"], []]
TRUTH = [["B-X", "I-X", "O", "O"], ["B-X"], []]


def test_tokens_are_judged():
    rows = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6], [0.5, 0.1, 0.4]])
    model = Fixed(TAGS, proba=[rows, np.array([[0.9, 0.1, 0.0]]), np.zeros((0, 3))])
    found = judged_confidence(model, TAGS, TRUTH, sample_weight=[1.0, 2.0, 1.0])
    assert found.confidence.tolist() == [0.8, 0.7, 0.6, 0.5, 0.9]
    assert found.correct.tolist() == [True, True, True, False, True]
    assert found.sample_weight.tolist() == [1.0, 1.0, 1.0, 1.0, 2.0]
    open_ = [["B-X", UNLABELED, {"O", "I-X"}, {"O", "I-X"}], ["B-X"], []]
    found = judged_confidence(model, TAGS, open_)
    assert found.confidence.tolist() == [0.8, 0.6, 0.5, 0.9]
    assert found.correct.tolist() == [True, True, False, True]
    assert not len(judged_confidence(Fixed([], proba=[]), [], []).correct)


def test_sequences_are_judged():
    model = Fixed(TAGS, log_proba=np.log([0.2, 0.9, 1.0]))
    weights = [[1.0, 2.0, 3.0, 4.0], [5.0], []]
    found = judged_confidence(model, TAGS, TRUTH, of="sequences", sample_weight=weights)
    np.testing.assert_allclose(found.confidence, [0.2, 0.9])
    assert found.correct.tolist() == [False, True] and found.sample_weight.tolist() == [2.5, 5.0]
    found = judged_confidence(
        model, TAGS, [["B-X", UNLABELED, "O", "O"], *TRUTH[1:]], of="sequences"
    )
    np.testing.assert_allclose(found.confidence, [0.9])


def test_spans_are_judged():
    model = Fixed(TAGS, confidence=[np.array([0.7, 0.4]), np.array([0.9]), np.zeros(0)])
    weights = [[1.0, 2.0, 3.0, 4.0], [5.0], []]
    found = judged_confidence(model, TAGS, TRUTH, of="spans", sample_weight=weights)
    assert found.confidence.tolist() == [0.7, 0.4, 0.9]
    assert found.correct.tolist() == [True, False, True]
    assert found.sample_weight.tolist() == [1.5, 4.0, 5.0]
    listed = [[Segment(0, 2, "X")], [Segment(0, 1, "Y")], []]
    found = judged_confidence(model, TAGS, listed, of="spans")
    assert found.correct.tolist() == [True, False, False]
    open_ = [["B-X", UNLABELED, "O", "B-X"], ["B-X"], []]  # the first may go on or not
    found = judged_confidence(model, TAGS, open_, of="spans")
    assert found.confidence.tolist() == [0.4, 0.9] and found.correct.all()


def test_levels_are_named():
    with pytest.raises(ValueError, match="of='words' is not known"):
        judged_confidence(Fixed(TAGS), TAGS, TRUTH, of="words")


# Scorers.
X = [[[word] for word in text.split()] for text in ("a b c", "b a", "b c a b", "a", "b c", "a b")]
Y = [[{"a": "O", "b": "B-X", "c": "I-X"}[t[0]] for t in x] for x in X]
Y[2][3] = "O"
PROBABLE = [name for name in get_scorer_names() if name.startswith("neg_")]


@pytest.fixture(scope="module")
def crf():
    return CRFClassifier(c2=0.1).fit(X, Y)


def test_scorers_of_probabilities_are_minus_their_losses(crf):
    proba, classes = crf.predict_proba(X), crf.classes_.tolist()
    assert scorers.neg_token_log_loss(crf, X, Y) == -token_log_loss(Y, proba, classes)
    assert scorers.neg_token_brier_score(crf, X, Y) == -token_brier_score(Y, proba, classes)
    loss = -crf.sequence_log_proba(X, Y)
    assert scorers.neg_sequence_log_loss(crf, X, Y) == pytest.approx(-loss.mean())
    weight = [1.0, 0.0, 2.0, 0.0, 0.0, 1.0]
    found = scorers.neg_sequence_log_loss(crf, X, Y, sample_weight=weight)
    assert found == pytest.approx(-np.average(loss, weights=weight))
    judged = judged_confidence(crf, X, Y)
    error = expected_calibration_error(*judged[:2])
    assert scorers.neg_token_calibration_error(crf, X, Y) == -error < 0
    of_sequences = judged_confidence(crf, X, Y, of="sequences")
    error = expected_calibration_error(*of_sequences[:2])
    assert scorers.neg_sequence_calibration_error(crf, X, Y) == -error
    assert np.isfinite(scorers.neg_sequence_log_loss(crf, X, [["?"] * len(y) for y in Y]))


@pytest.mark.parametrize("name", PROBABLE)
def test_grid_searches_take_scorers_of_probabilities(name):
    model = make_pipeline(SequenceVectorizer(), CRFClassifier())
    grid = {"crfclassifier__c2": [0.1, 1e4]}
    search = GridSearchCV(model, grid, scoring=name_of(name), cv=2, error_score="raise").fit(X, Y)
    assert search.best_params_ == {"crfclassifier__c2": 0.1}
    # A search is an estimator too: what it found is asked.
    assert get_scorer(name)(search, X, Y) == pytest.approx(search.score(X, Y))


def name_of(name):
    return pickle.loads(pickle.dumps(get_scorer(name)))


def test_fits_are_watched_and_chosen_by_probabilities():
    rules = EarlyStopping(scoring="neg_token_log_loss", patience=2)
    model = CRFClassifier(early_stopping=rules).fit(X, Y, X_val=X[:2], y_val=Y[:2])
    assert model.best_score_ == scorers.neg_token_log_loss(model, X[:2], Y[:2]) < 0
    chosen = CRFClassifierCV(c2s=[0.1, 1e4], cv=2, scoring="neg_token_brier_score").fit(X, Y)
    assert chosen.c2_ == 0.1


def test_models_of_segments_are_scored_by_the_labels_of_segments():
    model = SemiMarkovCRF(c2=0.1).fit(X, Y)
    labels = [["X" if tag != "O" else tag for tag in tags] for tags in Y]
    expected = -token_log_loss(labels, model.predict_proba(X), model.classes_.tolist())
    listed = [spans_from_tags(tags) for tags in Y]
    for y in (Y, listed):
        assert scorers.neg_token_log_loss(model, X, y) == pytest.approx(expected)
    open_ = [[UNLABELED, *tags[1:]] for tags in Y]
    hidden = [[UNLABELED, *tags[1:]] for tags in labels]
    expected = -token_brier_score(hidden, model.predict_proba(X), model.classes_.tolist())
    assert scorers.neg_token_brier_score(model, X, open_) == pytest.approx(expected)
    other = [["B-?", *Y[0][1:]], *Y[1:]]
    assert scorers.neg_token_log_loss(model, X, other) < -2.0
    with pytest.raises(ValueError, match="sequence 1: X has 2 tokens, but y has 1 items"):
        scorers.neg_token_log_loss(model, X, [Y[0], Y[1][:1], *Y[2:]])
    found = judged_confidence(model, X, listed, of="sequences")
    assert found.correct.tolist() == [
        a == b for a, b in zip(model.predict_spans(X), listed, strict=True)
    ]


@pytest.mark.parametrize(
    "written", ["{0}-{1}", "{1}-{0}", "{0}_{1}", "{0}", "{0}-1"],
    ids=["prefix", "suffix", "underscore", "bare", "beside runs"],
)  # fmt: skip
def test_spans_are_judged_as_the_model_reads_them(written):
    """Tags in any notation, and tags beside labels of which runs are spans."""
    B, I, C = (written.format(*tag) for tag in ("BX", "IX", "BY"))  # noqa: E741
    run = 7 if written == "{0}-1" else "O"
    y = [[B, I, "O", run, run], ["O", B, "O", C, "O"]] * 3
    X = [[{str(label): 1.0, f"at {t}": 1.0} for t, label in enumerate(row)] for row in y]
    crf = CRFClassifier(c2=0.01).fit(X, y)
    assert crf.predict(X) == y
    assert judged_confidence(crf, X, y, of="spans").correct.all()
    crf.set_params(decoding=Abstain(threshold=0.0, label="?"))
    judged = judged_confidence(crf, X, [["O", I, "O", run, run], [UNLABELED] * 5] * 3, of="spans")
    assert judged.correct.tolist() == [False, True] * 3 if run == 7 else not judged.correct.any()
