"""CRFsuite's files against CRFsuite itself, and against damage."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from crfkit.io._cqdb import hash_keys
from crfkit.io.crfsuite_model import (
    CRFsuiteModel,
    ModelFormatError,
    read_crfsuite_model,
    write_crfsuite_model,
)
from tests.sampling import examples

pycrfsuite = pytest.importorskip("pycrfsuite")
AWKWARD = ["b\nx", "", "日本:語", "tab\there", "y" * 10_240, "a:b", " ", "\u2028", "é"]


def to_bytes(model):
    file = io.BytesIO()
    write_crfsuite_model(model, file)
    return file.getvalue()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.crfsuite"
    trainer = pycrfsuite.Trainer(verbose=False)
    rng = np.random.default_rng(0)
    for _ in range(40):
        length = rng.integers(1, 8)
        items = [list(rng.choice(AWKWARD, 3, replace=False)) for _ in range(length)]
        trainer.append(items, [str(label) for label in rng.choice(["X", "Y\n", "名"], length)])
    trainer.set_params({"c1": 0.02, "c2": 0.1})
    trainer.train(str(path))
    return path


def test_a_file_of_crfsuite_is_written_back_byte_for_byte(trained):
    data = trained.read_bytes()
    assert to_bytes(read_crfsuite_model(data)) == data


def test_paths_bytes_and_streams_give_the_same_model(trained):
    with open(trained, "rb") as stream:
        models = [read_crfsuite_model(s) for s in (trained, str(trained), stream)]
    expected = to_bytes(read_crfsuite_model(trained.read_bytes()))
    assert all(to_bytes(model) == expected for model in models)


def test_all_names_survive(trained):
    model = read_crfsuite_model(trained)
    assert set(model.attributes) == set(AWKWARD)
    assert set(model.labels) == {"X", "Y\n", "名"}


@st.composite
def models(draw):
    name = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
    labels = draw(st.lists(name, min_size=1, max_size=5, unique=True))
    attributes = draw(st.lists(name, max_size=60, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (len(attributes), len(labels))
    state = rng.normal(size=shape) * (rng.random(shape) < 0.4)
    mask = rng.random((shape[1], shape[1])) < 0.5
    steps = np.where(mask, rng.normal(size=mask.shape), 0.0)
    return CRFsuiteModel(labels, attributes, sp.csr_array(state), steps, mask)


@examples(12)
@given(models())
def test_what_is_written_is_read_by_both(model):
    data = to_bytes(model)
    again = read_crfsuite_model(data)
    assert (again.labels, again.attributes) == (model.labels, model.attributes)
    np.testing.assert_array_equal(again.state.toarray(), model.state.toarray())
    np.testing.assert_array_equal(again.transitions, model.transitions)
    np.testing.assert_array_equal(again.has_transition, model.has_transition)
    tagger = pycrfsuite.Tagger()
    tagger.open_inmemory(data)
    assert tagger.labels() == model.labels
    for a, attribute in enumerate(model.attributes[:10]):
        tagger.set([[attribute]])
        weights = np.exp(model.state[[a], :].toarray()[0])
        found = [tagger.marginal(label, 0) for label in model.labels]
        np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-9)


def test_bytes_that_are_no_utf8_survive():
    data = to_bytes(simple(attributes=["a\udcffb"]))
    assert b"a\xffb\0" in data
    assert read_crfsuite_model(data).attributes == ["a\udcffb"]


def simple(**changes):
    model = CRFsuiteModel(
        ["A", "B"], ["x"], sp.csr_array([[1.0, -1.0]]), np.ones((2, 2)), np.ones((2, 2), bool)
    )
    return model._replace(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attributes": ["a\0b"]}, "NUL"),
        ({"labels": ["A", "A"]}, "the label 'A' occurs twice"),
        ({"attributes": ["a\ud800"]}, "cannot be encoded"),
        ({"attributes": ["x", "y"]}, r"state has the shape \(1, 2\)"),
        ({"transitions": np.full((2, 2), np.nan)}, "NaN"),
        ({"has_transition": np.zeros((2, 2), bool)}, "not marked"),
        ({"state": sp.csr_array([[np.inf, 0.0]])}, "infinite"),
    ],
)
def test_what_the_format_cannot_hold_is_an_error(changes, message):
    with pytest.raises(ModelFormatError, match=message):
        to_bytes(simple(**changes))


def test_a_label_that_is_no_string_is_an_error():
    with pytest.raises(TypeError, match="the label 1 is not a string"):
        to_bytes(simple(labels=[1, 2]))


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.crfsuite"
    write_crfsuite_model(simple(), path)
    before = path.read_bytes()
    with pytest.raises(ModelFormatError):
        write_crfsuite_model(simple(labels=["A", "A"]), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.crfsuite"]


def test_every_truncation_is_an_error(trained):
    data = trained.read_bytes()
    step = len(data) // 200
    for length in [*range(100), *range(100, len(data), step), len(data) - 1]:
        with pytest.raises(ModelFormatError, match="<bytes>"):
            read_crfsuite_model(data[:length])


def test_damage_is_an_error_or_another_model_but_never_worse():
    data = to_bytes(simple(attributes=["x"]))
    # Most of the file are references to empty hash tables, which the reader does not look at.
    places = [i for i in range(len(data)) if data[i] or i % 16 == 0]
    for place in places:
        for value in (0, 1, 0x7F, 0xFF):
            damaged = data[:place] + bytes([value]) + data[place + 1 :]
            try:
                model = read_crfsuite_model(damaged)
            except ModelFormatError:
                continue
            assert model.state.shape == (len(model.attributes), len(model.labels))
            assert np.isfinite(model.state.data).all()


def test_strings_that_overlap_are_refused():
    """A small file must not unfold to a large list."""
    names = [f"n{i}" for i in range(50)]
    data = bytearray(to_bytes(simple(attributes=names, state=sp.csr_array((50, 2)))))
    at = data.index(b"n0\0") - 4
    data[at : at + 4] = (500).to_bytes(4, "little")
    with pytest.raises(ModelFormatError, match="attribute goes on behind its end"):
        read_crfsuite_model(bytes(data))


def test_more_labels_than_memory_holds_steps_of_are_refused():
    data = bytearray(to_bytes(simple()))
    data[20:24] = (100_000).to_bytes(4, "little")
    with pytest.raises(ModelFormatError, match="100000 labels are more than"):
        read_crfsuite_model(bytes(data))


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "no.crfsuite"
    path.write_bytes(b"something else")
    with pytest.raises(ModelFormatError, match=r"no\.crfsuite: not a CRFsuite model"):
        read_crfsuite_model(path)


def test_a_text_stream_is_an_error():
    with pytest.raises(TypeError, match="binary mode"):
        read_crfsuite_model(io.StringIO("lCRF"))


def test_the_published_value_of_the_hash():
    """The example that comes with lookup3: 30 characters, initial value 0."""
    assert hash_keys([b"Four score and seven years ago"])[0] == 0x17770551


@given(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=20))
def test_hashes_do_not_depend_on_the_other_keys(keys):
    together = hash_keys(keys)
    np.testing.assert_array_equal(together, [hash_keys([key])[0] for key in keys])
