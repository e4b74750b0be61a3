import copy
import json
import os
import pickle
import struct
import tracemalloc

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import FeatureUnion, Pipeline

from crfkit import (
    CRFClassifier,
    MaxMarginCRF,
    PackedSequences,
    SequenceVectorizer,
    TransitionFeatures,
    TreeFeatures,
    make_sequence_union,
)
from crfkit.compat import sklearn_crfsuite
from crfkit.persistence import ModelFileError, check_chain_model, describe, dumps, load, loads, save
from crfkit.persistence.checks import check_csr, check_packed, check_steps, check_vectorizer
from crfkit.persistence.container import MAGIC, Container
from crfkit.solvers import LBFGS
from tests.persistence import fuzz, models
from tests.persistence.fuzz import assemble, seal, take_apart

VALUE = {"weights": np.arange(40.0), "names": [f"n{i}" for i in range(20)]}


def table(*entries, arrays=(), data=b""):
    """Return a file with a table of our own."""
    header = {"root": ["ref", len(entries) - 1], "table": list(entries), "arrays": list(arrays)}
    return assemble(header, data)


def spec(dtype="<f8", shape=(1,), offset=0, checksum="0" * 32):
    return {"dtype": dtype, "shape": list(shape), "offset": offset, "checksum": checksum}


def test_each_flipped_bit_is_noticed_or_means_nothing():
    """Bytes that fill the room before an array are the only ones without meaning."""
    file = dumps(VALUE)
    for place in range(len(file)):
        changed = bytearray(file)
        changed[place] ^= 1 << (place % 8)
        try:
            again = loads(changed)
        except ModelFileError:
            continue
        assert file[place] == 0 and dumps(again) == file


def test_each_shortened_file_is_noticed():
    file = dumps(VALUE)
    for size in range(len(file)):
        with pytest.raises(ModelFileError, match="cut short|is empty"):
            loads(file[:size])
    with pytest.raises(ModelFileError, match="damaged"):
        loads(file + b"\0")


def test_mapped_files_are_checked_too(tmp_path):
    path = tmp_path / "model.crfkit"
    save(VALUE, path)
    file = bytearray(path.read_bytes())
    file[-3] ^= 4
    path.write_bytes(file)
    for mmap in (False, True):
        with pytest.raises(ModelFileError, match="model.crfkit: entry .* checksum of array"):
            load(path, mmap=mmap)
    path.write_bytes(b"")
    with pytest.raises(ModelFileError, match="model.crfkit: the file is empty"):
        load(path, mmap=True)


def test_files_of_others_are_told_apart(tmp_path):
    files = [
        (pickle.dumps(VALUE), "a pickle: open it with joblib.load or pickle.load"),
        (pickle.dumps(LBFGS(), 0), "a pickle"),
        (b"lCRF" + bytes(44), "a model of CRFsuite: open it with"),
        (b"#!/bin/sh\n", r"starts with b'#!/bin/s'"),
        (dumps(VALUE).replace(b"\n", b"\r\n"), "line ends were changed: transfer it as a binary"),
        (dumps(VALUE).replace(b"file", b"fine"), "what is left of one: the file is damaged"),
    ]
    kinds = [(0, "a pickle"), (3, "compressed joblib"), ("gzip", "by gzip: unpack it, or open it "
             "with joblib.load, if that made it and you trust"), ("bz2", "by bzip2"),
             ("xz", "by xz"), ("lzma", "by lzma")]  # fmt: skip
    for compress, message in kinds:
        joblib.dump(VALUE, tmp_path / "model", compress=compress)
        files.append(((tmp_path / "model").read_bytes(), message))
    np.savez(tmp_path / "a.npz", a=1)
    files.append(((tmp_path / "a.npz").read_bytes(), "a zip archive: open it with skops.io.load"))
    for data, message in files:
        with pytest.raises(ModelFileError, match=message):
            loads(data)
        (tmp_path / "file").write_bytes(data)
        with pytest.raises(ModelFileError, match=message):
            describe(tmp_path / "file")


class Watched(pickle._Unpickler):  # its find_class is called for each name
    def find_class(self, module, name):
        self.found = module, name
        return super().find_class(module, name)


def test_pickle_and_joblib_say_what_reads_a_model_file_and_run_nothing(tmp_path):
    """The file starts as a pickle that asks for something that crfkit does not have."""
    message = r"attribute 'model file: use crfkit\.load\(path\), not pickle or joblib'"
    path = tmp_path / "model.crfkit"
    save(VALUE, path)
    for read in (joblib.load, lambda path: pickle.loads(path.read_bytes())):
        with pytest.raises(AttributeError, match=message):
            read(path)
    with pytest.raises(pickle.UnpicklingError) as caught:
        np.load(path, allow_pickle=True)
    assert "use crfkit.load(path)" in str(caught.value.__cause__)
    with path.open("rb") as file:
        watched = Watched(file)
        with pytest.raises(AttributeError, match=message):
            watched.load()
        assert watched.found == (
            "crfkit",
            "model file: use crfkit.load(path), not pickle or joblib",
        )
        assert file.tell() == len(MAGIC)  # nothing that follows was read


def test_a_newer_format_asks_for_an_upgrade():
    file = bytearray(dumps(VALUE))
    file[64] = 3
    with pytest.raises(ModelFileError, match="newer crfkit .format 3, this crfkit reads up to 1"):
        loads(file)


@pytest.mark.parametrize("shape", [[2**60], [2**30, 2**30], [2**40], [-1], [1.0], [True], "1", [8]])
def test_sizes_that_the_file_does_not_hold_are_refused_before_anything_is_allocated(shape):
    file = table(["array", 0], arrays=[spec(shape=shape)], data=bytes(8))
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="array 0 of the header"):
        loads(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_a_header_that_does_not_fit_is_refused():
    file = bytearray(dumps(VALUE))
    file[72:80] = (2**60).to_bytes(8, "little")
    with pytest.raises(ModelFileError, match="header does not fit"):
        loads(file)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ([spec(), spec(offset=0)], "array 1 of the header: its offset must be 64"),
        ([spec(), spec(offset=32)], "its offset must be 64"),
        ([spec(), spec(offset=-64)], "its offset must be 64"),
        ([spec(shape=[3])], "bytes that belong to no array"),
        ([spec("|O")], "'|O' is no dtype"),
        ([spec("<U4")], "is no dtype"),
        ([spec("f8,(2**60,)f8")], "is no dtype"),
        ([spec(shape=[1] * 40)], "no short list"),
        ([{}], "array 0 of the header"),
        (7, "no list of arrays"),
    ],
)
def test_arrays_lie_where_the_layout_puts_them(specs, message):
    header = {"root": None, "table": [], "arrays": specs}
    with pytest.raises(ModelFileError, match=message):
        loads(assemble(header, bytes(72)))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (["list", [["ref", 0]]], "is no value"),
        (["list", [["ref", -1]]], "is no value"),
        (["list", {"strings": [1, 9]}], "no array 9"),
        (["list", 5], "are no items"),
        (["dict", ["a"], []], "zip"),
        (["dict", [["list"]], [1]], "is no value"),
        (["objects", [2**60], ["a"]], "its shape is"),
        (["objects", ["ref", 10**9], ["a"]], "its shape is"),
        (["objects", [2], ["a"]], "an array of shape"),
        (["object", "os.system", {}], "the class 'os.system' is not known"),
        (["object", "crfkit.LabelSequences", {}], "is a record"),
        (["record", "crfkit.LBFGS", []], "is no record"),
        (["record", "crfkit.IterationRecord", [1]], "missing 5 required"),
        (["object", "sklearn.Pipeline", {"memory": None}], "no attribute 'steps'"),
        (["list", [["scalar", "|O", "00"]]], "is no dtype"),
        (["list", [["scalar", "|b1", "02"]]], "neither 0 nor 1"),
        (["list", [["scalar", "<f8", "02"]]], "1 bytes for a scalar of 8"),
        (["bytes", 0], "not of the type u1"),
        (["pickle", "gASVBQ=="], "unknown kind"),
        ("list", "unknown kind"),
        (["csr", "csr_array", [1, 1], 1, 1, 1], "no array of one dimension"),
        (["list", [["int", 5]]], "is no value"),
        (["list", {"strings": [1, 2]}], "the lengths in array 2 do not fit the text"),
        (["array", 3], "booleans that are neither 0 nor 1"),
    ],
)
def test_entries_that_mean_nothing_are_refused(entry, message):
    arrays = [spec(), spec("|u1", [2], 64), spec("<u4", [1], 128), spec("|b1", [1], 192)]
    header = {"root": ["ref", 0], "table": [entry], "arrays": arrays}
    data = bytes(64) + b"ab".ljust(64) + b"\3\0\0\0".ljust(64) + b"\2"
    seal(header, data)
    with pytest.raises(ModelFileError, match=message):
        loads(assemble(header, data))


@pytest.mark.parametrize("text", [b"[" * 100_000, b"{}", b"[]", b'{"a":NaN}', b"\xff", b"1" * 5000])
def test_a_header_that_is_no_header_is_refused(text):
    with pytest.raises(ModelFileError, match="the header"):
        loads(assemble(None, b"", text=text))


@pytest.mark.parametrize(
    ("table", "root", "message"),
    [(None, None, "no table of objects"), ([], ["ref", 0], "the root of the table: .* no value")],
)
def test_a_file_without_an_object_is_refused(table, root, message):
    with pytest.raises(ModelFileError, match=message):
        loads(assemble({"table": table, "root": root, "arrays": []}, b""))


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path, monkeypatch):
    save(VALUE, tmp_path / "model")
    size = (tmp_path / "model").stat().st_size
    shorter = Container.array

    def cut(self, number):
        os.truncate(tmp_path / "model", size - 100)
        return shorter(self, number)

    monkeypatch.setattr(Container, "array", cut)
    with pytest.raises(ModelFileError, match="cut short while it was being read"):
        load(tmp_path / "model")


def test_tuples_may_not_be_nested_without_end():
    deep = [["tuple", []], *(["tuple", [["ref", n]]] for n in range(10_000))]
    with pytest.raises(ModelFileError, match="nested deeper than 64"):
        loads(table(*deep))


@pytest.mark.parametrize(
    "use", [["dict", [["ref", 60]], [1]], ["set", [["ref", 60]]], ["objects", [1], [["ref", 60]]]]
)
def test_keys_may_not_unfold_without_end(use):
    """Each tuple has the one before it twice: hashing the last one visits 2**60 parts."""
    wide = [["tuple", []], *(["tuple", [["ref", n], ["ref", n]]] for n in range(60))]
    with pytest.raises(ModelFileError, match="unfolds to more than its size"):
        loads(table(*wide, use))


def test_lists_may_not_unfold_without_end():
    header, data = take_apart(dumps([str(n) for n in range(10_000)]))
    header["table"] = header["table"] * 3000
    with pytest.raises(ModelFileError, match="unfolds to more than its size"):
        loads(assemble(header, data))


def test_memory_is_counted_before_it_is_taken():
    """Half a megabyte of file asked for 1,350 MiB, and more by copies of its arrays."""
    numbers = bytes(2**19)
    arrays = [spec("<i4", [2**17]), spec("|u1", [0], 2**19), spec("<i4", [2], 2**19)]
    many = [["list", {"numbers": 0}]] * 300
    copies = [["bytes", 0]] * 3000
    for entries, first in ((many, arrays[0]), (copies, spec("|u1", [2**19]))):
        header = {"root": None, "table": entries, "arrays": [first]}
        data = bytearray(numbers)
        seal(header, data)
        file = assemble(header, data)
        tracemalloc.start()
        with pytest.raises(ModelFileError, match="unfolds to more than its size"):
            loads(file)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200 * len(file) + 2**25


def test_sparse_matrices_of_the_same_arrays_are_counted():
    arrays = [spec("<i8", [2**16]), spec("<f8", [2**16], 2**19), spec("<i8", [2], 2**20)]
    data = bytearray(2**20 + 16)
    struct.pack_into("<qq", data, 2**20, 0, 2**16)
    parts = [["array", 0], ["array", 1], ["array", 2]]
    matrix = ["csr", "csr_array", [1, 1], ["ref", 1], ["ref", 0], ["ref", 2]]
    header = {"root": ["ref", 3], "table": [*parts, matrix], "arrays": arrays}
    seal(header, data)
    assert loads(assemble(header, data)).shape == (1, 1)
    header["table"] = [*parts, *[matrix] * 1000]
    with pytest.raises(ModelFileError, match="unfolds to more than its size"):
        loads(assemble(header, data))


@pytest.mark.parametrize("kind", ["dict", "set", "objects"])
def test_keys_of_one_hash_are_refused(kind):
    """Each would be compared with all before it."""
    numbers = [["int", hex(n * (2**61 - 1))] for n in range(3000)]
    entry = {"dict": ["dict", numbers, [0] * 3000], "set": ["set", numbers],
             "objects": ["objects", [3000], numbers]}[kind]  # fmt: skip
    with pytest.raises(ModelFileError, match="made to have the same hash"):
        loads(table(entry))


def test_equal_keys_and_labels_have_one_hash_without_harm():
    value = [np.array([1, 2.5] * 5000, object), {-1: 0, -2: 1}, {n * 2**40 for n in range(5000)}]
    again = loads(dumps(value))
    assert again[0].tolist() == value[0].tolist() and again[1:] == value[1:]


def test_many_equal_vocabularies_do_not_count_as_unfolding():
    names = [f"n{n}" for n in range(5000)]
    value = [list(names) for _ in range(500)]
    assert loads(dumps(value)) == value


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("indptr", [0, 2, 1, 3]), ("indptr", [1, 2, 3, 3]), ("indptr", [0, 1, 2, 4]),
        ("indptr", [0, 3]), ("indptr", []), ("indices", [0, 1, 4]), ("indices", [0, -1, 1]),
        ("indices", [0, 1]), ("data", [1.0]), ("shape", [3, -1]), ("shape", [3]), ("shape", 3),
        ("shape", [3.0, 4]), ("data", ["a", "b", "c"]), ("indices", [0.0, 1.0, 2.0]),
    ],
)  # fmt: skip
def test_a_sparse_matrix_that_points_outside_is_refused(part, value):
    parts = {"data": np.ones(3), "indices": np.array([0, 1, 3]), "indptr": np.array([0, 1, 2, 3])}
    parts["shape"] = [3, 4]
    check_csr(**parts)
    parts[part] = value if part == "shape" else np.array(value, type(value[0]) if value else int)
    with pytest.raises(ValueError):
        check_csr(**parts)


def model_with(name, value):
    data, y = models.packed_data()
    model = CRFClassifier(c2=0.3).fit(data, y)
    setattr(model, name, value)
    return model


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_features_in_", 23), ("n_features_in_", 22.0), ("classes_", np.array([1, 2], object)),
        ("classes_", np.array(["A"] * 5, object)), ("classes_", [1, 2, 3, 4, 5]),
        ("transitions_", np.zeros((5, 4))), ("transitions_", np.zeros((5, 5), np.float32)),
        ("transitions_", np.full((5, 5), np.nan)), ("transitions_", np.full((5, 5), np.inf)),
        ("start_weights_", np.zeros(4)), ("end_weights_", np.zeros((5, 1))),
        ("end_weights_", [0.0] * 5), ("coef_", np.zeros((22, 5))),
        ("coef_", sp.csr_array((21, 5))), ("coef_", sp.csr_matrix((22, 5))),
        ("coef_", sp.csr_array((22, 5), dtype=np.float32)),
        ("_feature_names", np.array(["a"], object)), ("vectorizer_", SequenceVectorizer()),
        ("vectorizer_", CRFClassifier()), ("transition_coef_", sp.csr_array((3, 24))),
        ("transition_coef_", 3.0),
    ],
)  # fmt: skip
def test_a_model_whose_parts_do_not_fit_is_refused(name, value):
    check_chain_model(model_with("verbose", 0))
    with pytest.raises(ValueError):
        check_chain_model(model_with(name, value))
    with pytest.raises(ModelFileError, match="CRFClassifier"):
        loads(dumps(model_with(name, value)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("first_coef_", sp.csr_array((22, 4))), ("first_coef_", sp.csr_array((21, 3))),
        ("last_coef_", None), ("last_coef_", np.zeros((22, 3))), ("single_coef_", None),
        ("length_scores_", None),
        ("length_scores_", np.zeros((0, 3))), ("length_scores_", np.zeros((3, 4))),
        ("length_scores_", np.full((3, 3), np.nan)), ("length_scores_", np.float64(1)),
        ("segment_coef_", sp.csr_array((3, 4))), ("segment_coef_", sp.csr_array((4, 3))),
        ("scheme_", "IOB3"), ("scheme_", None), ("scheme_", b"runs"),
    ],
)  # fmt: skip
def test_a_model_of_segments_whose_parts_do_not_fit_is_refused(name, value):
    model = copy.copy(models.of_segments()["model"])
    check_chain_model(model)
    setattr(model, name, value)
    with pytest.raises(ValueError):
        check_chain_model(model)
    with pytest.raises(ModelFileError, match="SemiMarkovCRF"):
        loads(dumps(model))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("coef_", sp.csr_array((22, 6))), ("coef_", np.zeros((22, 5))), ("coef_", None),
        ("coef_", sp.csr_array((22, 5), dtype=np.float32)), ("transitions_", np.zeros((6, 6))),
        ("transitions_", sp.csr_array((5, 5))), ("start_weights_", np.zeros(4)),
        ("end_weights_", np.zeros(5, np.float32)), ("end_weights_", [0.0] * 5),
        ("transition_coef_", sp.csr_array((3, 25))), ("others", 3), (None, None),
    ],
)  # fmt: skip
def test_what_partial_fit_remembers_must_fit_the_model(name, value):
    parts = {
        "coef_": sp.csr_array((22, 5)), "transitions_": np.full((5, 5), np.inf),
        "start_weights_": np.zeros(5), "end_weights_": np.zeros(5), "transition_coef_": None,
    }  # fmt: skip
    loads(dumps(model_with("_partial_state", {"arrays": {"last": parts}, "others": {"n": 1}})))
    states = (
        {"arrays": {"last": parts | {name: value}}, "others": {}},
        {"arrays": {}, name: value},
        3,
    )
    for state in states:
        with pytest.raises(ModelFileError, match="CRFClassifier"):
            loads(dumps(model_with("_partial_state", state)))


def test_forbidden_steps_are_no_damage():
    model = model_with("transitions_", np.where(np.eye(5) > 0, -np.inf, 0.0))
    data = models.packed_data()[0]
    assert loads(dumps(model)).predict(data) == model.predict(data)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("offsets", np.array([0, 5, 13])), ("offsets", np.array([0, 7, 5, 12])),
        ("offsets", np.array([0.0, 12.0])), ("offsets", np.zeros(0, np.int64)),
        ("indptr", np.arange(12)), ("indices", np.full(64, 20, np.int32)), ("n_sparse", 3),
        ("indptr", np.zeros(13)), ("indices", np.zeros(64)),
        ("n_sparse", -1), ("values", np.ones(3)), ("dense", np.ones((11, 2))),
        ("dense", np.float64(1.0) * np.ones(())), ("names", np.array(["a"], object)),
        ("transitions", PackedSequences.from_flat(np.ones((12, 1)), [12])), ("transitions", 1),
    ],
)  # fmt: skip
def test_packed_sequences_whose_parts_do_not_fit_are_refused(name, value):
    data = models.packed_data()[0]
    check_packed(data)
    setattr(data, name, value)
    with pytest.raises(ValueError):
        check_packed(data)
    with pytest.raises(ModelFileError, match="PackedSequences"):
        loads(dumps(data))


@pytest.mark.parametrize("columns", [[0, 2], [1, 0], [0, 0], [0, "1"], [0, -1], [0.0, 1.0]])
def test_a_vocabulary_whose_columns_do_not_fit_is_refused(columns):
    vectorizer = SequenceVectorizer().fit([[{"a": 1.0, "b": 1.0}]])
    check_vectorizer(vectorizer)
    vectorizer.vocabulary_ = dict(zip("ab", columns, strict=True))
    with pytest.raises(ValueError, match="columns of the vocabulary"):
        check_vectorizer(vectorizer)
    with pytest.raises(ModelFileError, match="columns of the vocabulary"):
        loads(dumps(vectorizer))


def test_a_vocabulary_of_anything_but_names_is_refused():
    vectorizer = SequenceVectorizer().fit([[{"a": 1.0}]])
    vectorizer.n_features_in_ = 2
    with pytest.raises(ValueError, match="another number of names"):
        check_vectorizer(vectorizer)
    vectorizer.vocabulary_ = {3: 0}
    with pytest.raises(ValueError, match="no dict of names"):
        check_vectorizer(vectorizer)


@pytest.mark.parametrize(
    "steps", [{"v": SequenceVectorizer()}, [["v", "passthrough"]], [(1, "passthrough")], None]
)
@pytest.mark.parametrize("kind", [Pipeline, FeatureUnion])
def test_steps_that_are_no_named_objects_are_refused(steps, kind):
    composed = kind([("v", "passthrough")])
    check_steps(composed)
    setattr(composed, "steps" if kind is Pipeline else "transformer_list", steps)
    with pytest.raises(ValueError, match="the steps are no pairs"):
        check_steps(composed)


@pytest.mark.parametrize("step", [3, ("a", "b"), np.zeros(2), "somehow", LBFGS(), CRFClassifier])
def test_steps_that_cannot_be_used_are_refused(step):
    vectorizer = SequenceVectorizer()
    union, joined = make_sequence_union(vectorizer), FeatureUnion([("v", vectorizer)])
    inner, tree = TransitionFeatures(vectorizer), TreeFeatures(vectorizer)
    for whole in (union, joined, Pipeline([("a", vectorizer)]), inner, tree):
        check_steps(whole)
    union.transformers_ = [("v", step)]
    joined.transformer_list, inner.transformer_ = [("v", step)], step
    tree.transformer_ = step
    pipeline = Pipeline([("v", step), ("crf", CRFClassifier())])
    for whole in (union, joined, pipeline, inner, tree):
        with pytest.raises(ValueError, match="is no step of a pipeline"):
            check_steps(whole)


@pytest.mark.parametrize(
    ("name", "value"),
    [("vectorizer_", np.zeros(3)), ("vectorizer_", "drop"), ("decoding", 3),
     ("decoding", b"viterbi"), ("n_jobs", "2"), ("structure_", ("tree",)),
     ("structure_", np.zeros(2))],
)  # fmt: skip
def test_what_prediction_needs_beside_weights_is_checked(name, value):
    kernel = MaxMarginCRF(kernel="rbf", max_iter=200).fit(*models.sentences(4, 4))
    for model in (kernel, model_with("verbose", 0)):
        loads(dumps(model))
        setattr(model, name, value)
        with pytest.raises(ModelFileError, match=name):
            loads(dumps(model))


def test_names_of_a_model_are_those_of_its_vectorizer():
    """Otherwise each prediction would fail."""
    model = CRFClassifier(max_iter=200).fit(*models.sentences(4, 4))
    loads(dumps(model))
    model.vectorizer_ = SequenceVectorizer.from_vocabulary(
        [f"{name}!" for name in model.feature_names_in_]
    )
    with pytest.raises(ModelFileError, match="vectorizer_ has not the features that the model has"):
        loads(dumps(model))


def test_what_a_drop_in_wraps_is_checked():
    model = sklearn_crfsuite.CRF().fit(*models.sentences(4, 4))
    model.model_ = SequenceVectorizer()
    with pytest.raises(ModelFileError, match="model_ is no CRFClassifier"):
        loads(dumps([model]))


def test_values_that_are_no_numbers_are_refused():
    data = copy.copy(models.packed_data()[0])
    data.values = np.where(np.arange(len(data.values)) > 2, data.values, np.inf)
    with pytest.raises(ModelFileError, match="values hold NaN or infinity"):
        loads(dumps(data))


def test_derived_attributes_of_a_file_are_not_believed():
    """A vectorizer makes its index from the vocabulary, whatever the file says."""
    vectorizer = SequenceVectorizer().fit([[{"a": 1.0}]])
    header, data = take_apart(dumps(vectorizer))
    state = header["table"][-1][2]
    state["_index"], state["n_features_in_"] = state["vocabulary_"], 10**6
    again = loads(assemble(header, data))
    assert again.n_features_in_ == 1 and again.transform([[{"a": 2.0}]]).n_features == 1


@pytest.mark.parametrize("name", ["_flat", "_tables", "_index", "_built"])
def test_tables_that_follow_from_others_are_not_taken_from_a_file(name):
    """Compiled code would read them unchecked, and could read beyond their ends."""
    header, data = take_apart(dumps(models.templates()))
    state = next(e[2] for e in header["table"] if e[:2] == ["object", "crfkit.TemplateVocabulary"])
    state[name] = state["columns"]
    with pytest.raises(ModelFileError, match=f"it holds .*{name}.*, which no file stores"):
        loads(assemble(header, data))


def test_the_fuzzer_finds_nothing():
    counts, _ = fuzz.run(0, 80)
    bad = {case: n for case, n in counts.items() if not case[1].startswith(fuzz.GOOD)}
    assert not bad
    assert sum(counts.values()) == 80
    assert sum(n for (_, result), n in counts.items() if result == fuzz.OTHER) > 2


def test_the_fuzzer_would_see_damage_that_is_not_noticed():
    file = dumps(models.pipeline())
    other = json.loads(json.dumps(take_apart(file)[0]).replace('"L0"', '"LX"'))
    changed = assemble(other, take_apart(file)[1])
    assert fuzz.outcome(fuzz.flip_bits, file, changed) == "undetected damage"
    assert fuzz.outcome(fuzz.edit_header, file, changed) == fuzz.OTHER
    assert fuzz.outcome(fuzz.flip_bits, file, file) == fuzz.SAME
