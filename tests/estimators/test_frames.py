"""Data frames as sequences: their columns have names, which are compared as in scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import pytest

from crfkit import CRFClassifier, PackedSequences
from crfkit.compat.sklearn_crfsuite import CRF

NAMES = ["height", "age", "weight"]


@pytest.fixture
def arrays(rng):
    return [rng.normal(size=(4, 3)) for _ in range(6)]


@pytest.fixture
def y(arrays):
    return [np.where(array[:, 0] > 0, "up", "down").tolist() for array in arrays]


def frames_of(arrays, names=NAMES):
    return [pd.DataFrame(array, columns=names) for array in arrays]


@pytest.fixture
def model(arrays, y):
    return CRFClassifier().fit(frames_of(arrays), y)


def test_a_column_of_labels_may_begin_with_a_set(arrays, y):
    labels = [{"up", "down"}, *y[0][1:], *y[1]]
    known = CRFClassifier().fit(arrays[:2], [labels[:4], labels[4:]])
    column = CRFClassifier().fit(arrays[:2], pd.Series(labels))
    np.testing.assert_array_equal(column.transitions_, known.transitions_)


def test_a_frame_is_the_array_of_its_values(model, arrays, y):
    plain = CRFClassifier().fit(arrays, y)
    assert model.predict(frames_of(arrays)) == plain.predict(arrays)
    np.testing.assert_array_equal(model.transitions_, plain.transitions_)
    assert model.feature_names_in_.tolist() == NAMES
    assert not hasattr(plain, "feature_names_in_")
    assert {name for name, _ in model.state_features_} == set(NAMES)


def test_columns_in_another_order_are_an_error_as_in_scikit_learn(model, arrays, y):
    turned = [frame[["age", "height", "weight"]] for frame in frames_of(arrays)]
    text = (
        "The feature names should match those that were passed during fit.\n"
        "Feature names must be in the same order as they were in fit.\n"
    )
    again = pickle.loads(pickle.dumps(model))
    for call in (model.predict, model.predict_proba, again.predict, lambda X: model.score(X, y)):
        with pytest.raises(ValueError, match=text):
            call(turned)


def test_columns_that_are_new_or_missing_are_named_as_in_scikit_learn(model, arrays):
    other = [frame.rename(columns={"age": "years"}) for frame in frames_of(arrays)]
    with pytest.raises(ValueError) as info:
        model.predict(other)
    assert str(info.value).startswith(
        "The feature names should match those that were passed during fit.\n"
        "Feature names unseen at fit time:\n- years\n"
        "Feature names seen at fit time, yet now missing:\n- age\n"
    )
    with pytest.raises(ValueError, match="yet now missing:\n- weight\n"):
        model.predict([frame[["height", "age"]] for frame in frames_of(arrays)])
    wide = [pd.DataFrame(np.ones((1, 12)), columns=[*NAMES, *"abcdefghi"])]
    with pytest.raises(ValueError, match="unseen at fit time:\n- a\n- b\n- c\n- d\n- e\n- ...\n"):
        model.predict(wide)


def test_names_on_one_side_only_are_a_warning_as_in_scikit_learn(model, arrays, y):
    plain = CRFClassifier().fit(arrays, y)
    expected = model.predict(frames_of(arrays))
    for _ in range(2):  # each time
        with pytest.warns(
            UserWarning,
            match="^X does not have valid feature names, but "
            "CRFClassifier was fitted with feature names$",
        ):
            assert model.predict(arrays) == expected
        with pytest.warns(
            UserWarning,
            match="^X has feature names, but CRFClassifier was fitted without feature names$",
        ):
            assert plain.predict(frames_of(arrays)) == expected


def test_only_strings_are_names(arrays, y):
    model = CRFClassifier().fit(frames_of(arrays, [7, 8, 9]), y)
    assert not hasattr(model, "feature_names_in_")
    assert model.predict(frames_of(arrays, [7, 8, 9])) == model.predict(arrays)


def test_sequences_without_tokens_stand_among_frames(model, arrays):
    frames = frames_of(arrays)
    found = model.predict([[], frames[0], frames[1].iloc[:0]])
    assert found == [[], *model.predict(frames[:1]), []]


def test_one_frame_of_all_tokens_keeps_its_names(model, arrays):
    frames = frames_of(arrays)
    lengths = [len(frame) for frame in frames]
    packed = PackedSequences.from_flat(pd.concat(frames), lengths)
    assert packed.feature_names.tolist() == NAMES
    assert packed == PackedSequences.from_matrices(frames)
    assert model.predict(packed) == model.predict(frames)
    other = PackedSequences.from_flat(pd.concat(frames), lengths, ["a", "b", "c"])
    assert other.feature_names.tolist() == ["a", "b", "c"]


def test_columns_of_nullable_numbers_and_flags_are_numbers(rng):
    frame = pd.DataFrame({
        "n": pd.array([1, 2], "Int64"), "x": pd.array([0.5, 1.5], "Float64"),
        "b": pd.array([True, False], "boolean"), "s": pd.arrays.SparseArray([0.0, 3.0]),
    })  # fmt: skip
    packed = PackedSequences.from_matrices([frame])
    np.testing.assert_array_equal(packed.dense, [[1, 0.5, 1, 0], [2, 1.5, 0, 3]])


def test_held_out_frames_need_the_columns_of_the_fit(arrays, y):
    turned = [frame[["age", "height", "weight"]] for frame in frames_of(arrays)]
    with pytest.raises(ValueError, match="in X_val or y_val: The feature names should match"):
        CRFClassifier(early_stopping=True).fit(frames_of(arrays), y, X_val=turned, y_val=y)
    with pytest.raises(ValueError, match="The feature names should match"):
        CRF().fit(frames_of(arrays), y, X_dev=turned, y_dev=y)


def test_a_further_batch_of_frames_needs_the_columns_of_the_first(arrays, y):
    model = CRFClassifier(solver="sgd").partial_fit(frames_of(arrays), y, classes=["down", "up"])
    turned = [frame[["age", "height", "weight"]] for frame in frames_of(arrays)]
    with pytest.raises(ValueError, match="The feature names should match"):
        model.partial_fit(turned, y)
