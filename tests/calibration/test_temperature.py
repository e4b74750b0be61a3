import numpy as np
import pytest
from sklearn.model_selection import KFold

from crfkit import (
    UNLABELED,
    CalibratedSequenceClassifier,
    CRFClassifier,
    MaxMarginCRF,
    Segments,
    SemiMarkovCRF,
    StructuredPerceptron,
)
from crfkit.calibration.base import HeldOut
from crfkit.calibration.temperature import MOST, Temperature, _Likelihood, _root
from crfkit.metrics import spans_from_tags
from tests.calibration.data import sentences

X, Y = sentences()
X_NEW, Y_NEW = sentences(seed=1)


@pytest.fixture(scope="module")
def crf():
    return CRFClassifier(c2=0.3, boundary_weights=True).fit(X, Y)


@pytest.fixture(scope="module")
def segments():
    return SemiMarkovCRF(c2=0.3).fit(X, Y)


def calibrated(model, X=X_NEW, y=Y_NEW, **given):
    return CalibratedSequenceClassifier(model, cv="prefit").fit(X, y, **given)


def scaled(model, temperature):
    return Temperature(temperature).applied(model)


def loss(model, temperature, X=X_NEW, y=Y_NEW, weight=None):
    found = scaled(model, temperature).sequence_log_proba(X, y)
    return -np.average(found, weights=weight)


@pytest.mark.parametrize("kind", ["crf", "segments"])
def test_the_temperature_is_that_of_the_largest_likelihood(kind, request):
    model = request.getfixturevalue(kind)
    found = calibrated(model).temperature_
    grid = np.geomspace(0.4, 2.5, 19)
    best = grid[np.argmin([loss(model, t) for t in grid])]
    assert best / 1.11 < found < best * 1.11
    here = loss(model, found)
    assert here < min(loss(model, found * 1.01), loss(model, found / 1.01))


@pytest.mark.parametrize("kind", ["crf", "segments"])
def test_a_model_that_is_twice_too_sure_is_mended(kind, request):
    model = request.getfixturevalue(kind)
    right = scaled(model, calibrated(model).temperature_)
    assert calibrated(right).temperature_ == pytest.approx(1.0, abs=1e-8)
    twice = scaled(right, 0.5)
    mended = calibrated(twice)
    assert mended.temperature_ == pytest.approx(2.0, abs=1e-7)
    for ours, theirs in zip(mended.predict_proba(X), right.predict_proba(X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-7)
    assert mended.predict(X) == model.predict(X)


@pytest.mark.parametrize("kind", ["crf", "segments"])
def test_the_derivative_is_that_of_the_loss(kind, request):
    model = request.getfixturevalue(kind)
    weight = np.linspace(0.0, 2.0, len(X_NEW))
    likelihood = _Likelihood.of(HeldOut(model, X_NEW, Y_NEW, weight))
    for factor in (0.3, 1.0, 2.5):
        ends = [loss(model, 1 / (factor + e), weight=weight) for e in (-1e-5, 1e-5)]
        expected = weight.sum() * (ends[1] - ends[0]) / 2e-5
        assert likelihood.slope(factor) == pytest.approx(expected, rel=1e-5, abs=1e-4)


def test_all_weights_are_divided(crf, segments):
    for model in (crf, segments):
        half = scaled(model, 2.0)
        for name, value in vars(model).items():
            if name.endswith("_") and hasattr(value, "dtype") and value.dtype == np.float64:
                other = getattr(half, name)
                np.testing.assert_array_equal(
                    *(
                        np.ravel(v.toarray() if hasattr(v, "toarray") else v)
                        for v in (value / 2.0, other)
                    )
                )
    assert np.isneginf(scaled(segments, 3.0).length_scores_).any()


def test_forbidden_transitions_stay_forbidden(crf):
    model = scaled(crf, 1.0)
    forbidden = model.transitions_.copy()
    forbidden[0, 1] = -np.inf
    model.transitions_ = forbidden
    found = calibrated(model)
    assert found.estimator_.transitions_[0, 1] == -np.inf
    possible = np.isfinite(model.sequence_log_proba(X_NEW, Y_NEW))
    assert 0 < possible.sum() < len(X_NEW)
    some = [[s for s, keep in zip(part, possible, strict=True) if keep] for part in (X_NEW, Y_NEW)]
    assert found.temperature_ == calibrated(model, *some).temperature_


def test_labels_that_are_open_are_summed_over(crf):
    y = [[UNLABELED, {"O", "B-PER"}, *tags[2:]] for tags in Y_NEW]
    found = calibrated(crf, y=y).temperature_
    here = loss(crf, found, y=y)
    assert here < min(loss(crf, found * 1.02, y=y), loss(crf, found / 1.02, y=y))
    assert found != calibrated(crf).temperature_


def test_weights_count(crf, segments):
    weight = np.arange(len(X_NEW)) % 3
    repeated = [[s for s, n in zip(part, weight, strict=True) for _ in range(n)]
                for part in (X_NEW, Y_NEW)]  # fmt: skip
    for model in (crf, segments):
        found = calibrated(model, sample_weight=weight).temperature_
        assert found == pytest.approx(calibrated(model, *repeated).temperature_, rel=1e-7)
    tokens = [np.where(np.arange(5) < 3, 1.0, 0.0) for _ in X_NEW]
    known = [[*tags[:3], UNLABELED, UNLABELED] for tags in Y_NEW]
    found = calibrated(crf, sample_weight=tokens).temperature_
    assert found == pytest.approx(calibrated(crf, y=known).temperature_, rel=1e-7)


@pytest.mark.parametrize("method", ["temperature", "isotonic"])
def test_folds_in_which_nothing_counts_are_left_out(method):
    weight = np.where(np.arange(len(X)) < 20, 0.0, 1.0)
    model = CalibratedSequenceClassifier(CRFClassifier(c2=0.3), method=method, cv=KFold(3))
    found = model.fit(X, Y, sample_weight=weight).calibration_
    two = list(KFold(3).split(X))[1:]
    again = model.set_params(cv=two).fit(X, Y, sample_weight=weight).calibration_
    np.testing.assert_array_equal(
        *(c.proba([np.full((1, len(model.classes_)), 0.2)]) for c in (found, again))
    )
    assert repr(found) == repr(again)


def test_models_without_probabilities_get_them(crf):
    for model in (MaxMarginCRF(C=0.1), StructuredPerceptron(max_iter=5)):
        found = CalibratedSequenceClassifier(model, cv=2).fit(X, Y)
        assert type(found.estimator_) is CRFClassifier
        assert found.predict(X_NEW) == model.fit(X, Y).predict(X_NEW)
        proba = found.predict_proba(X_NEW)
        np.testing.assert_allclose([p.sum() for p in proba], [len(p) for p in proba])
        np.testing.assert_array_equal(
            found.estimator_.coef_.data, model.coef_.data / found.temperature_
        )
    listed = [spans_from_tags(tags) for tags in Y]
    model = StructuredPerceptron(structure=Segments(), max_iter=5)
    found = CalibratedSequenceClassifier(model, cv=2).fit(X, listed)
    assert type(found.estimator_) is SemiMarkovCRF
    assert found.predict_spans(X_NEW) == model.fit(X, listed).predict_spans(X_NEW)
    assert np.all(found.sequence_log_proba(X_NEW, Y_NEW) <= 0.0)


def test_models_whose_scores_are_not_linear_in_weights_are_refused():
    vote = StructuredPerceptron(averaging="vote", max_iter=2)
    kernel = MaxMarginCRF(kernel="rbf", max_iter=2)
    arrays = [np.eye(3)[[0, 1]]] * 4
    with pytest.raises(ValueError, match="kernel, or averaging='vote'.*kernel='linear'"):
        CalibratedSequenceClassifier(vote, cv=2).fit(X[:6], Y[:6])
    with pytest.raises(ValueError, match="kernel, or averaging='vote'"):
        CalibratedSequenceClassifier(kernel, cv=2).fit(arrays, [["A", "B"]] * 4)


def test_labels_that_no_model_knows_cannot_calibrate(crf):
    with pytest.raises(ValueError, match="no held-out sequences whose labels"):
        calibrated(crf, y=[["?"] * 5] * len(X_NEW))
    with pytest.raises(ValueError, match="no held-out sequences whose labels"):
        isotonic = CalibratedSequenceClassifier(crf, method="isotonic", cv="prefit")
        isotonic.fit(X_NEW, [["?"] * 5] * len(X_NEW))


def test_a_root_is_found_on_either_side_or_none():
    for root in (-3.0, -1e-3, 0.0, 0.5, 4.0):
        assert _root(lambda x, r=root: x - r, np.log(MOST)) == pytest.approx(root, abs=1e-9)
    most = np.log(MOST)
    assert _root(lambda x: 1.0, most) == -most and _root(lambda x: -1.0, most) == most
