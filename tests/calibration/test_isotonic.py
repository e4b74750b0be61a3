import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from crfkit import UNLABELED, CalibratedSequenceClassifier, CRFClassifier, SemiMarkovCRF
from crfkit.calibration.base import HeldOut
from crfkit.calibration.isotonic import Isotonic, RisingFunction
from crfkit.calibration.temperature import Temperature
from crfkit.metrics import expected_calibration_error, judged_confidence, token_log_loss
from tests.calibration.data import sentences

X, Y = sentences()
X_NEW, Y_NEW = sentences(300, seed=1)
X_TEST, Y_TEST = sentences(300, seed=2)


@pytest.fixture(scope="module")
def too_sure():
    """A model with weights that are three times too large."""
    return Temperature(1 / 3).applied(CRFClassifier(c2=0.1).fit(X, Y))


@pytest.fixture(scope="module")
def mended(too_sure):
    return CalibratedSequenceClassifier(too_sure, method="isotonic", cv="prefit").fit(X_NEW, Y_NEW)


def test_functions_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    confidence, weight = rng.random(50).round(1), rng.random(50)
    correct = rng.random(50) < confidence**2
    found = RisingFunction.fit(confidence, correct, weight)
    expected = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    expected.fit(confidence, correct, sample_weight=weight)
    grid = np.linspace(0, 1, 41)
    np.testing.assert_allclose(found(grid), expected.predict(grid))
    assert np.all(np.diff(found(grid)) >= 0)
    nothing = RisingFunction.fit(confidence, correct, np.zeros(50))
    np.testing.assert_array_equal(nothing(grid), grid)


def test_probabilities_of_labels_are_mended_and_sum_to_one(too_sure, mended):
    rows = mended.predict_proba(X_TEST)
    for table in rows:
        assert np.all(table >= 0)
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
    classes = mended.classes_.tolist()
    before = token_log_loss(Y_TEST, too_sure.predict_proba(X_TEST), classes)
    assert token_log_loss(Y_TEST, rows, classes) < 0.7 * before


@pytest.mark.parametrize("of", ["tokens", "spans", "sequences"])
def test_confidence_is_mended(too_sure, mended, of):
    errors = [
        expected_calibration_error(*judged_confidence(model, X_TEST, Y_TEST, of=of)[:2])
        for model in (too_sure, mended)
    ]
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("of", ["spans", "sequences"])
def test_confidence_keeps_its_order(too_sure, mended, of):
    before, after = (np.concatenate([np.ravel(c) for c in model.confidence(X_TEST, of=of)])
                     for model in (too_sure, mended))  # fmt: skip
    order = np.argsort(before)
    assert np.all(np.diff(after[order]) >= 0) and len({*after.tolist()}) > 3


def test_the_confidence_of_a_token_is_the_probability_of_its_label(mended):
    place = {label: k for k, label in enumerate(mended.classes_.tolist())}
    rows, predicted = mended.predict_proba(X), mended.predict(X)
    for found, table, labels in zip(
        mended.confidence(X, of="tokens"), rows, predicted, strict=True
    ):
        assert found.tolist() == [
            row[place[label]] for row, label in zip(table, labels, strict=True)
        ]


def test_what_is_not_calibrated_is_not_answered(mended):
    for name in ("sequence_log_proba", "predict_n_best", "predict_span_proba", "likely_spans"):
        assert not hasattr(mended, name)
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
            getattr(mended, name)
        assert "Use method='temperature'" in str(caught.value.__cause__)
    assert not hasattr(CalibratedSequenceClassifier(method="isotonic"), "sequence_log_proba")
    assert hasattr(CalibratedSequenceClassifier(), "sequence_log_proba")
    assert not hasattr(mended, "temperature_")
    assert mended.predict(X) == mended.estimator_.predict(X)


def test_labels_that_are_open_do_not_count(too_sure):
    y = [[UNLABELED, {"O", "B-PER"}, *tags[2:]] for tags in Y_NEW]
    weight = [[0.0, 0.0, 1.0, 1.0, 1.0]] * len(Y_NEW)
    classes = too_sure.classes_
    found = Isotonic.fit([HeldOut(too_sure, X_NEW, y)], classes).labels
    expected = Isotonic.fit([HeldOut(too_sure, X_NEW, Y_NEW, weight)], classes).labels
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.arguments, theirs.arguments)
        np.testing.assert_allclose(ours.values, theirs.values)


def test_labels_that_a_fold_lacks_have_no_probability_there():
    y = [["NEW", *tags[1:]] if s == 0 else tags for s, tags in enumerate(Y)]
    model = CalibratedSequenceClassifier(CRFClassifier(), method="isotonic", cv=2).fit(X, y)
    k = model.classes_.tolist().index("NEW")
    assert model.calibration_.labels[k](np.ones(1)) < 0.1


def test_tokens_of_which_all_labels_become_impossible_keep_their_probabilities():
    nothing = RisingFunction(np.array([0.0, 1.0]), np.zeros(2))
    same = RisingFunction(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    rows = [np.array([[0.25, 0.75], [0.0, 1.0]]), np.zeros((0, 2))]
    found = Isotonic([nothing, nothing], same, same).proba(rows)
    np.testing.assert_array_equal(found[0], rows[0])
    found = Isotonic([same, nothing], same, same).proba(rows)
    np.testing.assert_array_equal(found[0], [[1.0, 0.0], [0.0, 1.0]])
    assert found[1].shape == (0, 2)


def test_models_of_segments_are_calibrated():
    model = SemiMarkovCRF(c2=0.3).fit(X, Y)
    found = CalibratedSequenceClassifier(model, method="isotonic", cv="prefit").fit(X_NEW, Y_NEW)
    rows, tokens = found.predict_proba(X), found.confidence(X, of="tokens")
    classes = found.classes_.tolist()
    for table, own, tags in zip(rows, tokens, found.predict(X), strict=True):
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        said = [classes.index(tag[2:] or tag) for tag in tags]
        np.testing.assert_array_equal(own, table[np.arange(len(own)), said])
    assert [len(c) for c in found.confidence(X, of="spans")] == [*map(len, found.predict_spans(X))]
    assert found.confidence(X).shape == (len(X),)


def test_an_empty_sequence_is_certain(mended):
    found = mended.confidence([X_NEW[0], []])
    assert found[1] == 1.0 and found[0] == mended.confidence(X_NEW[:1])[0]
