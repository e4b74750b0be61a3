import copy
import io
import os
import pickle
import sys
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline

from crfkit import CRFClassifier, PackedSequences, SequenceVectorizer
from crfkit.inference import ViterbiDecoder
from crfkit.losses import LOSSES, LogLoss
from crfkit.persistence import (
    ModelFileError,
    SaveMixin,
    describe,
    dumps,
    load,
    loads,
    register,
    save,
)
from crfkit.persistence.decoder import _OLD_PARTS
from crfkit.solvers import SGD
from tests.ids import kinds
from tests.persistence import models
from tests.persistence.fuzz import assemble

MODELS = [models.pipeline, models.direct, models.on_matrices, models.of_segments]


@pytest.fixture(params=MODELS, ids=lambda make: make.__name__)
def model(request):
    return request.param()


def test_a_loaded_model_predicts_the_same_to_the_last_bit(model, tmp_path):
    expected = models.predictions(model)
    save(model, tmp_path / "model.crfkit")
    for mmap in (False, True):
        loaded = load(tmp_path / "model.crfkit", mmap=mmap)
        assert models.predictions(loaded) == expected
        assert dumps(loaded) == dumps(model)
    assert models.predictions(loads(dumps(model))) == expected


def test_a_loaded_model_can_be_pickled_cloned_and_fitted_again(model, tmp_path):
    if isinstance(model, dict):
        model = model["model"]
    loaded = loads(dumps(model))
    for again in (pickle.loads(pickle.dumps(loaded)), clone(loaded)):
        assert repr(again) == repr(model)
    joblib.dump(loaded, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    assert dumps(again) == dumps(model)


@pytest.mark.parametrize(
    "labels",
    [
        ["A", "B"], [0, 1], [("B", "PER"), ("I", "PER")], ["A", 1, (2, "x")],
        [True, 2.5], [frozenset({"x", "y"}), b"bytes"],
        [np.datetime64("2020-01-01"), np.datetime64("2021-05-05T10:00")],
    ],
    ids=kinds,
)  # fmt: skip
def test_labels_of_any_type_come_back_as_they_were(labels):
    X = [[{"n": float(n)} for n in range(len(labels))]] * 3
    crf = CRFClassifier(max_iter=5, c2=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five iterations are enough here
        crf.fit(X, [labels] * 3)
    again = loads(dumps(crf))
    assert list(map(type, again.classes_)) == list(map(type, crf.classes_))
    assert again.predict(X) == crf.predict(X)
    assert again.predict_marginals(X) == crf.predict_marginals(X)


def test_paths_may_be_of_any_script_and_files_objects(tmp_path):
    path = tmp_path / "modèle 名前.crfkit"
    save({"a": 1}, str(path))
    assert load(path) == load(str(path)) == {"a": 1}
    with open(path, "rb") as file:
        assert load(file) == {"a": 1}
    stream = io.BytesIO()
    save({"a": 1}, stream)
    assert stream.getvalue() == path.read_bytes()
    stream.seek(0)
    assert load(stream) == {"a": 1}
    with pytest.raises(ValueError, match="mmap=True needs a path"):
        load(stream, mmap=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system here")
def test_a_model_is_read_from_a_pipe():
    reader, writer = os.pipe()
    with open(writer, "wb") as file:
        save([1, 2], file)
    with open(reader, "rb") as file:
        assert load(f"/dev/fd/{file.fileno()}") == [1, 2]


def test_streams_without_a_buffer_get_all_bytes():
    class Reluctant(io.RawIOBase):
        taken = b""

        def writable(self):
            return True

        def write(self, data):
            self.taken += bytes(data[:1000])
            return min(len(data), 1000)

    stream, value = Reluctant(), [np.arange(5000)]
    save(value, stream)
    assert stream.taken == dumps(value)


def test_streams_that_return_nothing_have_taken_all():
    class Plain:
        taken = b""

        def write(self, data):
            self.taken += bytes(data)

    stream, value = Plain(), [np.arange(5000)]
    save(value, stream)
    assert stream.taken == dumps(value)


@pytest.mark.parametrize("answer", [None, 0, -1, 10**9])
def test_a_stream_that_takes_nothing_is_an_error(answer):
    """A raw stream returns None where it would have to wait."""

    class Full(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data):
            return answer

    with pytest.raises(OSError, match="takes no more"):
        save([1], Full())


def test_of_a_search_its_best_estimator_is_saved():
    X, y = models.sentences()
    search = GridSearchCV(models.pipeline(), {"crf__c2": [0.1, 1.0]}, cv=2, scoring="accuracy")
    for place in (search, Pipeline([("search", search)])):
        with pytest.raises(TypeError, match="fit it, with refit=True, and save its best_estimator"):
            dumps(place)
    search.set_params(scoring=None).fit(X, y)
    assert loads(dumps(search.best_estimator_)).predict(X) == search.predict(X)


def test_a_mapped_model_is_read_only_and_its_file_may_be_replaced(tmp_path):
    path = tmp_path / "model.crfkit"
    save({"weights": np.arange(5.0)}, path)
    mapped, copied = load(path, mmap=True), load(path)
    save({"weights": np.zeros(5)}, path)
    np.testing.assert_array_equal(mapped["weights"], np.arange(5.0))
    with pytest.raises(ValueError, match="read-only"):
        mapped["weights"][0] = 1.0
    copied["weights"][0] = 1.0
    assert mapped["weights"].ctypes.data % 64 == 0


def test_objects_without_attributes_come_back():
    again = loads(dumps(CRFClassifier(decoding=ViterbiDecoder())))
    assert type(again.decoding) is ViterbiDecoder


def test_weights_of_steps_come_back_and_are_checked(rng):
    data, y = models.packed_data()
    steps = PackedSequences(sp.csr_array(np.eye(12)[:, :3]), offsets=data.offsets)
    crf = CRFClassifier(c2=0.5).fit(data.with_transitions(steps), y)
    again = loads(dumps({"crf": crf, "data": data.with_transitions(steps)}))
    assert again["crf"].predict(again["data"]) == crf.predict(data.with_transitions(steps))
    crf.transition_coef_ = crf.transition_coef_[:, :24]
    with pytest.raises(ModelFileError, match="transition_coef_ is no csr_array of 25 columns"):
        loads(dumps(crf))


def test_unfitted_models_are_saved_too():
    pipeline = Pipeline([("v", SequenceVectorizer()), ("crf", CRFClassifier(c1=np.float64(0.5)))])
    again = loads(dumps(pipeline))
    assert repr(again) == repr(pipeline) and not hasattr(again[-1], "coef_")


def test_a_parameter_that_is_newer_than_the_file_has_its_default():
    crf = CRFClassifier(c2=3.0)
    del crf.decoding
    assert "decoding" not in vars(crf)
    again = loads(assemble({"root": ["ref", 0], "table": [
        ["object", "crfkit.CRFClassifier", dict(vars(crf))]], "arrays": []}, b""))  # fmt: skip
    assert again.get_params() == CRFClassifier(c2=3.0).get_params()
    assert vars(again) == vars(CRFClassifier(c2=3.0))


def test_unions_and_steps_that_do_nothing_come_back():
    union = FeatureUnion([("a", SequenceVectorizer()), ("b", "drop")], transformer_weights={"a": 2})
    pipeline = Pipeline([("skip", "passthrough"), ("union", union)])
    again = loads(dumps(pipeline))
    assert repr(again) == repr(pipeline)
    assert again.steps[1][1].transformer_weights == {"a": 2}


def test_a_part_that_cannot_be_saved_is_named_by_its_step():
    class Odd(CRFClassifier):
        pass

    solver = Pipeline([("v", SequenceVectorizer()), ("crf", CRFClassifier(solver=iter("a")))])
    with pytest.raises(TypeError, match="Pipeline, step 1 'crf', attribute solver: a builtins"):
        dumps(solver)
    with pytest.raises(TypeError, match="Pipeline, step 0 'crf': a .*Odd cannot be saved"):
        dumps(Pipeline([("crf", Odd())]))
    inner = FeatureUnion([("in", SequenceVectorizer(min_freq=object()))])
    with pytest.raises(TypeError, match="step 0 'u', step 0 'in', attribute min_freq: a builtins"):
        dumps(Pipeline([("u", inner)]))


def test_another_version_of_scikit_learn_does_not_warn(monkeypatch):
    data = dumps(models.pipeline())
    monkeypatch.setattr("sklearn.__version__", "99.9")
    monkeypatch.setattr("sklearn.base.__version__", "99.9")
    assert type(loads(data)) is Pipeline
    assert sklearn.__version__.encode() not in data


def test_metadata_requests_come_back():
    with sklearn.config_context(enable_metadata_routing=True):
        crf = CRFClassifier().set_fit_request(sample_weight=True)
        crf.set_score_request(sample_weight="weight")
        again = loads(dumps(crf))
        assert str(again.get_metadata_routing()) == str(crf.get_metadata_routing())


def test_a_file_tells_what_is_in_it(tmp_path):
    path = tmp_path / "model.crfkit"
    save(models.direct(), path, metadata={"f1": np.float64(0.93), "epochs": np.int64(3)})
    told = describe(path)
    assert told["class"] == "crfkit.CRFClassifier" and told["labels"] == ["L0", "L1", "L2"]
    assert told["metadata"] == {"f1": 0.93, "epochs": 3}
    assert told["parameters"]["c1"] == "0.1" and told["libraries"]["numpy"] == np.__version__
    assert set(told) == {"format", "crfkit", "libraries", "class", "parameters", "labels",
                         "metadata"}  # fmt: skip


@pytest.mark.parametrize("metadata", [{"x": object()}, {"x": float("nan")}, {(1, 2): 3}, [1]])
def test_metadata_that_json_cannot_hold_are_refused(metadata):
    with pytest.raises((TypeError, ValueError), match="metadata must be"):
        dumps([], metadata=metadata)


def test_the_mixin_saves(tmp_path):
    @register(name="test.Mixed")
    class Mixed(SaveMixin):
        def __init__(self):
            self.a = 1

    Mixed().save(tmp_path / "m", metadata={"k": 1})
    assert load(tmp_path / "m").a == 1 and describe(tmp_path / "m")["metadata"] == {"k": 1}


def test_files_of_the_first_format_stay_readable():
    """Written by the first version, byte for byte; never to be changed."""
    stored = models.ROOT / "tests" / "persistence" / "format1.crfkit"
    loaded = load(stored)
    X = [[{"w": "a"}, {"w": "b", "n": 2.5}]]
    assert loaded["pipeline"].predict(X) == [["A", "B"]]
    assert loaded["pipeline"][-1].get_params()["early_stopping"] is False
    np.testing.assert_array_equal(loaded["array"], np.arange(6, dtype=np.int16).reshape(2, 3))
    assert loaded["values"] == (None, True, 2**70, "\ud800", b"x", {1: [2.5]})


def test_a_large_model_keeps_its_predictions(data_home, tmp_path):
    if not (data_home / "conll2000").is_dir():
        pytest.skip(f"no CoNLL-2000 in {data_home}")
    sys.path.insert(0, str(models.ROOT / "benchmarks"))
    import _conll

    X, y = (part[:800] for part in _conll.load("test"))
    packed = SequenceVectorizer().fit_transform(X)
    assert isinstance(packed, PackedSequences)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the weights need not be good
        crf = CRFClassifier(max_iter=3).fit(packed, y)
    save({"crf": crf, "data": packed}, tmp_path / "model.crfkit")
    loaded = load(tmp_path / "model.crfkit", mmap=True)
    assert loaded["crf"].predict(loaded["data"]) == crf.predict(packed)
    assert loaded["crf"]._feature_names is loaded["data"].names


def test_models_with_older_names_of_attributes_come_back(rng):
    """Transitions were called steps, and parts of the state of a solver had names of their own."""
    data, y = models.packed_data()
    steps = PackedSequences(sp.csr_array(np.eye(12)[:, :3]), offsets=data.offsets)
    data = data.with_transitions(steps)
    crf = CRFClassifier(solver=SGD(average=True)).partial_fit(data, y, classes=sorted(
        {label for s in y for label in s}, key=str))  # fmt: skip
    older = copy.copy(crf)
    vars(older)["step_coef_"] = vars(older).pop("transition_coef_")
    vars(older)["_step_names"] = vars(older).pop("_transition_names")
    old = {new: name for name, new in _OLD_PARTS.items()}
    state = older._partial_state
    arrays = {n: {old[a]: v for a, v in part.items()} for n, part in state["arrays"].items()}
    older._partial_state = state | {"arrays": arrays}
    again = loads(dumps(older))
    assert again.predict(data) == crf.predict(data)
    assert again.partial_fit(data, y).predict(data) == crf.partial_fit(data, y).predict(data)


def test_what_is_found_by_name_can_be_saved(monkeypatch):
    class MyLoss(LogLoss):
        """Registered by name alone."""

    with pytest.raises(TypeError, match="MyLoss"):
        dumps(MyLoss())
    monkeypatch.setitem(LOSSES, "my_loss", MyLoss)
    assert type(loads(dumps(MyLoss()))) is MyLoss
