import copy
import io
import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline

import crfkit
from crfkit import (
    CalibratedSequenceClassifier,
    CRFClassifier,
    MEMMClassifier,
    SequenceVectorizer,
    SoftLabels,
    TemplateFeatures,
)
from crfkit.calibration.isotonic import Isotonic, RisingFunction
from crfkit.calibration.temperature import Temperature
from crfkit.cli._common import CommandError
from crfkit.cli._models import open_model
from crfkit.cli.formats import FORMATS, FormatOptions
from crfkit.compat import sklearn_crfsuite
from crfkit.metrics import get_scorer
from crfkit.model_selection import StratifiedSequenceKFold
from crfkit.persistence import dumps, loads
from crfkit.testing import estimator_checks
from tests.calibration.data import sentences
from tests.estimators.checks import is_of_reading

X, Y = sentences(40)
X_NEW, Y_NEW = sentences(20, seed=1)
WORDS = [[token["word"] for token in row] for row in X]


def same(ours, theirs):
    pairs = zip(ours.predict_proba(X_NEW), theirs.predict_proba(X_NEW), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


# How the estimator reads features and labels of all kinds, its own tests tell.
CHECKS = [
    check for check in estimator_checks(CalibratedSequenceClassifier()) if not is_of_reading(check)
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_passes_the_checks_of_estimators(check):
    check(CalibratedSequenceClassifier(CRFClassifier(), cv=2))


def test_folds_are_those_of_clones_on_parts():
    model = CalibratedSequenceClassifier(CRFClassifier(c2=0.3), cv=KFold(2)).fit(X, Y)
    folds = [
        (CRFClassifier(c2=0.3).fit(*([part[i] for i in train] for part in (X, Y))), test)
        for train, test in KFold(2).split(X)
    ]

    def loss(temperature):
        total = 0.0
        for fold, test in folds:
            held = ([part[i] for i in test] for part in (X, Y))
            total -= Temperature(temperature).applied(fold).sequence_log_proba(*held).sum()
        return total

    here = loss(model.temperature_)
    assert here < min(loss(model.temperature_ * 1.02), loss(model.temperature_ / 1.02))
    whole = CRFClassifier(c2=0.3).fit(X, Y)
    np.testing.assert_array_equal(
        model.estimator_.transitions_, whole.transitions_ / model.temperature_
    )


def test_forms_of_data_make_no_difference():
    model = CalibratedSequenceClassifier(CRFClassifier(), cv=2).fit(X, Y)
    packed = SequenceVectorizer().fit_transform(X)
    streams = (iter(s) for s in X), (iter(s) for s in Y)
    soft = SoftLabels.from_labels(Y)
    for x, y in ((packed, Y), streams, (np.array(X), np.array(Y)), (X, soft)):
        other = CalibratedSequenceClassifier(CRFClassifier(), cv=2).fit(x, y)
        for ours, theirs in zip(other.predict_proba(packed), model.predict_proba(X), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("method", ["temperature", "isotonic"])
def test_the_number_of_threads_changes_no_bit(method):
    given = {"method": method, "cv": StratifiedSequenceKFold(2)}
    one = CalibratedSequenceClassifier(CRFClassifier(n_jobs=1), n_jobs=1, **given).fit(X, Y)
    two = CalibratedSequenceClassifier(CRFClassifier(n_jobs=2), n_jobs=2, **given).fit(X, Y)
    assert same(one, two)


@pytest.mark.parametrize("method", ["temperature", "isotonic"])
def test_models_are_saved_and_copied(method):
    model = CalibratedSequenceClassifier(CRFClassifier(c2=0.3), method=method, cv=2).fit(X, Y)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = crfkit.load(file)
    for other in (loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert same(other, model) and other.predict(X_NEW) == model.predict(X_NEW)
        np.testing.assert_array_equal(other.confidence(X_NEW), model.confidence(X_NEW))
    assert repr(loaded) == repr(model)
    again = clone(model)
    with pytest.raises(NotFittedError):
        again.predict(X)
    assert same(again.fit(X, Y), model)


def test_the_command_line_opens_calibrated_models(tmp_path):
    features = TemplateFeatures(["w"], columns=["w"])
    model = CalibratedSequenceClassifier(CRFClassifier(features=features), cv=2).fit(WORDS, Y)
    path = str(tmp_path / "model.crfkit")
    model.save(path)
    opened, columns = open_model(path), FORMATS["columns"](FormatOptions())
    assert opened.crf.predict(opened.pack(WORDS, columns)) == model.predict(WORDS)
    pipeline = make_pipeline(SequenceVectorizer(), CRFClassifier(c2=0.3))
    crfkit.save(CalibratedSequenceClassifier(pipeline, cv=2).fit(X, Y), path)
    opened = open_model(path)
    assert type(opened.crf) is CRFClassifier and opened.features is not None
    crfkit.save(CalibratedSequenceClassifier(method="isotonic", cv=2).fit(X, Y), path)
    with pytest.raises(CommandError, match="method='isotonic', which the command line cannot ask"):
        open_model(path)


def test_files_whose_numbers_do_not_fit_are_refused():
    model = CalibratedSequenceClassifier(CRFClassifier(c2=0.3), method="isotonic", cv=2).fit(X, Y)
    assert loads(dumps(model.calibration_)).labels[0].arguments.shape
    falling = RisingFunction(np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    whole = RisingFunction(np.array([0, 1]), np.array([0, 1]))
    for bad in (Temperature(-1.0), Temperature(float("nan")), falling, whole,
                Isotonic([3], falling, falling)):  # fmt: skip
        with pytest.raises(ValueError, match="temperature|points|function"):
            loads(dumps(bad))


def test_pipelines_and_searches_are_calibrated():
    pipeline = make_pipeline(SequenceVectorizer(), CRFClassifier(c2=0.3))
    direct = CalibratedSequenceClassifier(CRFClassifier(c2=0.3), cv=2).fit(X, Y)
    piped = CalibratedSequenceClassifier(pipeline, cv=2).fit(X, Y)
    assert piped.temperature_ == pytest.approx(direct.temperature_, rel=1e-3)
    assert piped.predict(X_NEW) == piped.estimator_.predict(X_NEW) == direct.predict(X_NEW)
    assert piped.score(X_NEW, Y_NEW) == direct.score(X_NEW, Y_NEW)
    np.testing.assert_allclose(
        piped.sequence_log_proba(X_NEW, Y_NEW), direct.sequence_log_proba(X_NEW, Y_NEW), atol=0.01
    )
    assert pipeline[-1].__sklearn_is_fitted__() is False
    search = GridSearchCV(pipeline, {"crfclassifier__c2": [0.3, 100.0]}, cv=2)
    found = CalibratedSequenceClassifier(search, cv=2).fit(X, Y, sample_weight=np.ones(len(X)))
    assert found.estimator_[-1].c2 == 0.3
    assert found.temperature_ == pytest.approx(piped.temperature_, rel=1e-3)
    outer = make_pipeline(SequenceVectorizer(), CalibratedSequenceClassifier(CRFClassifier(), cv=2))
    assert outer.fit(X, Y).predict(X_NEW) == direct.predict(X_NEW)


def test_parameters_of_the_estimator_are_searched():
    model = CalibratedSequenceClassifier(CRFClassifier(), cv=2)
    assert model.set_params(estimator__c2=7.0).estimator.c2 == 7.0
    grid = {"estimator__c2": [0.1, 1000.0]}
    search = GridSearchCV(model, grid, scoring=get_scorer("neg_token_log_loss"), cv=2)
    assert search.fit(X, Y).best_params_ == {"estimator__c2": 0.1}
    assert len(cross_val_predict(model, X, Y, cv=2)) == len(X)


def test_fitted_estimators_are_calibrated_as_they_are():
    crf = CRFClassifier(c2=0.3).fit(X, Y)
    weights = crf.transitions_
    prefit = CalibratedSequenceClassifier(crf, cv="prefit").fit(X_NEW, Y_NEW)
    frozen = CalibratedSequenceClassifier(FrozenEstimator(crf)).fit(X_NEW, Y_NEW)
    assert same(prefit, frozen) and crf.transitions_ is weights
    np.testing.assert_array_equal(prefit.estimator_.transitions_, weights / prefit.temperature_)
    assert same(clone(frozen).fit(X_NEW, Y_NEW), frozen)
    pipeline = make_pipeline(SequenceVectorizer(), CRFClassifier(c2=0.3)).fit(X, Y)
    piped = CalibratedSequenceClassifier(pipeline, cv="prefit").fit(X_NEW, Y_NEW)
    assert piped.temperature_ == pytest.approx(prefit.temperature_, rel=1e-3)
    assert piped.estimator_[-1] is not pipeline[-1]
    with pytest.raises(NotFittedError):
        CalibratedSequenceClassifier(CRFClassifier(), cv="prefit").fit(X, Y)


def test_all_questions_are_asked_of_the_calibrated_model():
    model = CalibratedSequenceClassifier(CRFClassifier(c2=0.3), cv=2).fit(X, Y)
    crf = model.estimator_
    assert model.predict_n_best(X_NEW, 2) == crf.predict_n_best(X_NEW, 2)
    assert model.sample(X_NEW, 2, random_state=0) == crf.sample(X_NEW, 2, random_state=0)
    assert model.predict_spans(X_NEW) == crf.predict_spans(X_NEW)
    assert model.predict_with_bounds(X_NEW) == crf.predict_with_bounds(X_NEW)
    assert model.likely_spans(X_NEW, threshold=0.3) == crf.likely_spans(X_NEW, threshold=0.3)
    assert model.predict_marginals(X_NEW) == crf.predict_marginals(X_NEW)
    np.testing.assert_array_equal(model.entropy(X_NEW), crf.entropy(X_NEW))
    for of in ("tokens", "spans", "sequences"):
        for ours, theirs in zip(
            model.confidence(X_NEW, of=of), crf.confidence(X_NEW, of=of), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(
        model.predict_span_proba(X_NEW), crf.predict_span_proba(X_NEW), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert not hasattr(model, "expected_lengths")
    assert model.sample.__doc__ == crf.sample.__doc__


def test_probabilities_given_constraints_are_calibrated():
    held = CRFClassifier(c2=0.3, constraints="IOB2").fit(X, Y)
    model = CalibratedSequenceClassifier(held, cv="prefit").fit(X_NEW, Y_NEW)
    found = model.temperature_

    def loss(temperature):
        return -Temperature(temperature).applied(held).sequence_log_proba(X_NEW, Y_NEW).sum()

    assert loss(found) < min(loss(found * 1.01), loss(found / 1.01))
    broken = [["I-PER", *tags[1:]] if s % 9 == 0 else tags for s, tags in enumerate(Y_NEW)]
    kept = [[one for s, one in enumerate(part) if s % 9] for part in (X_NEW, Y_NEW)]
    short = CalibratedSequenceClassifier(held, cv="prefit").fit(*kept)
    again = CalibratedSequenceClassifier(held, cv="prefit").fit(X_NEW, broken)
    assert again.temperature_ == short.temperature_  # labels that break them are left out


def test_constraints_may_hold_in_one_question():
    free = CalibratedSequenceClassifier(CRFClassifier(c2=0.3), cv=2).fit(X, Y)
    crf, given = free.estimator_, {"constraints": "IOB2"}
    assert free.predict(X_NEW, **given) == crf.predict(X_NEW, **given)
    np.testing.assert_array_equal(free.confidence(X_NEW, **given), crf.confidence(X_NEW, **given))
    held = CRFClassifier(c2=0.3, constraints="IOB2")
    isotonic = CalibratedSequenceClassifier(held, method="isotonic", cv=2).fit(X, Y)
    assert isotonic.predict(X_NEW, **given) == isotonic.predict(X_NEW)
    for ask in (isotonic.predict_proba, isotonic.confidence):
        with pytest.raises(ValueError, match="under the constraints of the estimator alone"):
            ask(X_NEW, **given)


def test_labels_that_are_withheld_are_calibrated_as_if_said():
    decoding = crfkit.inference.Abstain(threshold=0.6, label="?")
    model = CRFClassifier(c2=0.3, decoding=decoding)
    for method in ("temperature", "isotonic"):
        found = CalibratedSequenceClassifier(model, method=method, cv=2).fit(X, Y)
        assert {"?"} < {label for tags in found.predict(X_NEW) for label in tags}
        tokens = np.concatenate(found.confidence(X_NEW, of="tokens"))
        assert tokens.shape == (100,) and np.all(tokens > 0)


def test_forests_have_labels_but_no_spans():
    heads = [[{"word": token["word"], "head": t} for t, token in enumerate(row)] for row in X]
    trees = crfkit.TreeFeatures(SequenceVectorizer(), parent="head", first=1)
    model = make_pipeline(trees, CRFClassifier(c2=0.3))
    for method in ("temperature", "isotonic"):
        found = CalibratedSequenceClassifier(model, method=method, cv=2).fit(heads, Y)
        assert found.confidence(heads).shape == (len(X),)
        np.testing.assert_allclose(found.predict_proba(heads)[0].sum(axis=1), 1.0)


def test_features_are_made_once_for_all_folds():
    features = TemplateFeatures(["w", "w[-1]"], columns=["w"])
    model = CalibratedSequenceClassifier(CRFClassifier(features=features), cv=2).fit(WORDS, Y)
    assert model.estimator_.vectorizer_ is not None
    assert [len(row) for row in model.predict(WORDS)] == [5] * len(WORDS)


def test_weights_reach_pipelines():
    weight = np.where(np.arange(len(X)) < 20, 1.0, 0.0)
    pipeline = make_pipeline(SequenceVectorizer(), CRFClassifier(c2=0.3))
    found = CalibratedSequenceClassifier(pipeline, cv=[(np.arange(20), np.arange(20))])
    found.fit(X, Y, sample_weight=weight)
    part = CalibratedSequenceClassifier(pipeline, cv=[(np.arange(20), np.arange(20))])
    part.fit(X[:20], Y[:20])
    assert found.temperature_ == pytest.approx(part.temperature_, rel=1e-3)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            SequenceVectorizer(), CRFClassifier(c2=0.3).set_fit_request(sample_weight=True)
        )
        routed = CalibratedSequenceClassifier(pipeline, cv=found.cv)
        routed.fit(X, Y, sample_weight=weight)
    assert routed.temperature_ == found.temperature_


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "sigmoid"}, "method='sigmoid' is not known"),
        ({"cv": "loo"}, "cv='loo' is not known"),
        ({"cv": iter([])}, "cv gives no folds"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        CalibratedSequenceClassifier(**given).fit(X, Y)


def test_estimators_that_cannot_be_calibrated_are_refused():
    compat = sklearn_crfsuite.CRF().fit(X, Y)
    with pytest.raises(TypeError, match="CRF cannot be calibrated: give CRFClassifier"):
        CalibratedSequenceClassifier(compat, cv="prefit").fit(X, Y)
    local = MEMMClassifier().fit(X, Y)  # weights divided change what is normalized at each token
    with pytest.raises(ValueError, match="MEMMClassifier are normalized at each token: use method"):
        CalibratedSequenceClassifier(local, cv="prefit").fit(X, Y)
    CalibratedSequenceClassifier(local, cv="prefit", method="isotonic").fit(X, Y)
