"""Models that go to CRFsuite and come from it."""

import io
import tempfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from crfkit import CRFClassifier, PackedSequences
from crfkit.compat.crfsuite import load_crfsuite, save_crfsuite
from crfkit.features import SequenceVectorizer
from crfkit.io.crfsuite_model import ModelFormatError

pycrfsuite = pytest.importorskip("pycrfsuite")
WORDS = ["the", "dog\n", "犬", "", "a b", "x:y"]


def sequences(rng, count):
    """Dicts with strings, numbers, booleans and nesting."""

    def token():
        return {
            "w": str(rng.choice(WORDS)),
            "n": float(np.round(rng.normal(), 2)),
            "flag": bool(rng.random() < 0.5),
            "more": {"inner": [str(rng.choice(WORDS))]},
        }

    return [[token() for _ in range(rng.integers(1, 7))] for _ in range(count)]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = sequences(rng, 60)
    y = [[str(rng.choice(["A", "B\t", "丙"])) for _ in tokens] for tokens in X]
    return X, y, sequences(rng, 200)


def saved(model):
    file = io.BytesIO()
    save_crfsuite(model, file)
    return file.getvalue()


def crfsuite_tagger(data):
    """Open a model from a file: from memory, python-crfsuite does not keep the bytes alive."""
    tagger = pycrfsuite.Tagger()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.crfsuite"
        path.write_bytes(data)
        tagger.open(str(path))
    return tagger


def assert_same_predictions(model, tagger, X):
    assert list(model.predict(X)) == [tagger.tag(tokens) for tokens in X]
    labels = model.classes_.tolist()
    for tokens, proba in zip(X[:50], model.predict_proba(X[:50]), strict=True):
        tagger.set(tokens)
        theirs = [[tagger.marginal(y, t) for y in labels] for t in range(len(tokens))]
        np.testing.assert_allclose(proba, theirs, atol=1e-10)


def test_a_loaded_model_predicts_as_crfsuite(data, tmp_path):
    X, y, new = data
    path = str(tmp_path / "model.crfsuite")
    trainer = pycrfsuite.Trainer(verbose=False)
    for tokens, labels in zip(X, y, strict=True):
        trainer.append(tokens, labels)
    trainer.train(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    model = load_crfsuite(path, decoding="viterbi", n_jobs=1)
    assert model.classes_.tolist() == tagger.labels()
    assert_same_predictions(model, tagger, new)
    for tokens, probability in zip(new, model.sequence_log_proba(new, model.predict(new)),
                                   strict=True):  # fmt: skip
        labels = tagger.tag(tokens)
        np.testing.assert_allclose(np.exp(probability), tagger.probability(labels), atol=1e-10)


@pytest.mark.parametrize("c1", [0.0, 0.5])
def test_a_saved_model_is_served_by_crfsuite(data, c1):
    X, y, new = data
    model = CRFClassifier(c1=c1, c2=0.1).fit(X, y)
    assert_same_predictions(model, crfsuite_tagger(saved(model)), new)


def test_a_model_survives_being_saved_and_loaded(data):
    X, y, new = data
    model = CRFClassifier(c1=0.5).fit(X, y)
    again = load_crfsuite(saved(model))
    assert again.predict(new) == model.predict(new)
    assert dict(again.state_features_) == dict(model.state_features_)
    assert dict(again.transition_features_) == dict(model.transition_features_)
    assert saved(again) == saved(model)


def test_attributes_without_weights_are_left_out(data):
    X, y, _ = data
    model = CRFClassifier(c1=3.0).fit(X, y)
    used = int((np.diff(model.coef_.indptr) > 0).sum())
    assert 0 < used < model.n_features_in_
    assert load_crfsuite(saved(model)).n_features_in_ == used


def test_the_last_step_of_a_pipeline_is_saved(data):
    X, y, new = data
    pipeline = make_pipeline(SequenceVectorizer(), CRFClassifier()).fit(X, y)
    predicted = [crfsuite_tagger(saved(pipeline)).tag(tokens) for tokens in new]
    assert predicted == list(pipeline.predict(new))


def test_named_columns_of_numbers_are_attributes_with_values(rng):
    X = [rng.normal(size=(4, 2)) for _ in range(10)]
    packed = PackedSequences.from_flat(np.vstack(X), [4] * 10, ["height", "width"])
    model = CRFClassifier().fit(packed, [["a", "b", "a", "a"]] * 10)
    tokens = [
        [dict(zip(["height", "width"], map(float, row), strict=True)) for row in m] for m in X
    ]
    tagger = crfsuite_tagger(saved(model))
    assert [tagger.tag(sequence) for sequence in tokens] == list(model.predict(packed))


def test_what_crfsuite_cannot_express_is_an_error(rng):
    tokens, y = [[["a"], ["b"]]], [["A", "B"]]
    with pytest.raises(ModelFormatError, match="first and last labels"):
        saved(CRFClassifier(boundary_weights=True).fit(tokens, y))
    with pytest.raises(ModelFormatError, match="without names"):
        saved(CRFClassifier().fit([rng.normal(size=(2, 3))], y))
    packed = SequenceVectorizer().fit_transform(tokens)
    with pytest.raises(ModelFormatError, match="attributes of transitions"):
        saved(CRFClassifier().fit(packed.with_transitions(packed), y))
    with pytest.raises(TypeError, match="label 1 is not a string"):
        saved(CRFClassifier().fit(tokens, [[1, 2]]))
    with pytest.raises(NotFittedError):
        saved(CRFClassifier())


def test_a_vectorizer_of_a_vocabulary_keeps_its_order():
    vectorizer = SequenceVectorizer.from_vocabulary(["z", "a:1", ""])
    assert vectorizer.get_feature_names_out().tolist() == ["z", "a:1", ""]
    packed = vectorizer.transform([[{"a": "1", "z": 0.5, "new": 1}], [[""]]])
    np.testing.assert_array_equal(packed.to_csr().toarray(), [[0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(ValueError, match="'b' occurs twice"):
        SequenceVectorizer.from_vocabulary(["b", "a", "b"])
    with pytest.raises(TypeError, match="1 is not a string"):
        SequenceVectorizer.from_vocabulary([1])
