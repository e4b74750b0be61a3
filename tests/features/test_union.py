"""Features of several transformers side by side, and attributes of transitions."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from crfkit import CRFClassifier
from crfkit.data import PackedSequences
from crfkit.features import (
    SequenceUnion,
    SequenceVectorizer,
    TransitionFeatures,
    WindowFeatures,
    make_sequence_union,
)

X = [[["a"], ["b", "c"]], [], [["c"]]]


class Lengths(TransformerMixin, BaseEstimator):
    """A dense block: the number of attributes of each token, and a one."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return [np.array([[len(token), 1.0] for token in s]) if s else [] for s in X]


def as_dicts(packed):
    """The tokens as dicts of named values."""
    rows = packed.to_csr().tolil()
    names = packed.feature_names
    return [
        {names[c]: v for c, v in zip(columns, values, strict=True)}
        for columns, values in zip(rows.rows, rows.data, strict=True)
    ]


def test_the_features_of_all_parts_stand_side_by_side():
    union = SequenceUnion([("n", Lengths()), ("w", SequenceVectorizer())])
    packed = union.fit_transform(X)
    assert as_dicts(packed) == [
        {"w__a": 1.0, "n__0": 1.0, "n__1": 1.0},
        {"w__b": 1.0, "w__c": 1.0, "n__0": 2.0, "n__1": 1.0},
        {"w__c": 1.0, "n__0": 1.0, "n__1": 1.0},
    ]
    assert packed.offsets.tolist() == [0, 2, 2, 3]
    assert union.get_feature_names_out().tolist() == packed.feature_names.tolist()


def test_new_data_have_the_same_columns_and_the_very_same_names():
    union = make_sequence_union(SequenceVectorizer(), Lengths())
    first = union.fit_transform(X)
    again = union.transform([[["zzz"], ["a"]]])
    assert again.names is first.names
    assert as_dicts(again)[0] == {"lengths__0": 1.0, "lengths__1": 1.0}


def test_parts_with_sparse_and_dense_features_and_matrices_keep_their_numbers():
    block = PackedSequences(sp.csr_array(np.eye(2)), np.ones((2, 1)), offsets=[0, 2])

    class Fixed(Lengths):
        def transform(self, X):
            return block

    packed = SequenceUnion([("a", Fixed()), ("b", Fixed())]).fit_transform([[1, 2]])
    assert packed.feature_names.tolist() == ["a__0", "a__1", "b__0", "b__1", "a__2", "b__2"]
    np.testing.assert_array_equal(
        packed.to_csr().toarray(), [[1, 0, 1, 0, 1, 1], [0, 1, 0, 1, 1, 1]]
    )


def test_step_features_are_no_ordinary_features():
    union = make_sequence_union(
        SequenceVectorizer(), TransitionFeatures(SequenceVectorizer(min_freq=2))
    )
    packed = union.fit_transform(X)
    assert packed.n_features == 3
    assert packed.transitions.feature_names.tolist() == ["transitionfeatures__c"]
    assert packed.transitions.offsets.tolist() == packed.offsets.tolist()
    assert union.transform(X) == packed


def test_only_step_features_make_a_model_of_steps():
    packed = make_sequence_union(TransitionFeatures(SequenceVectorizer())).fit_transform(X)
    assert packed.n_features == 0
    assert packed.transitions.n_features == 3


def test_passthrough_takes_packed_features_as_they_are():
    packed = SequenceVectorizer().fit_transform(X)
    union = SequenceUnion([("same", "passthrough")])
    assert union.fit_transform(packed) == packed
    assert union.transform(packed) == packed


def test_parameters_of_the_parts_can_be_searched():
    a, b = {"w": "a", "bias": 1}, {"w": "b", "bias": 1}
    X_dicts = [[a, b], [b, a]] * 10
    y = [["A", "B"], ["B", "A"]] * 10
    pipe = make_pipeline(make_sequence_union(SequenceVectorizer()), CRFClassifier())
    search = GridSearchCV(pipe, {"sequenceunion__sequencevectorizer__min_freq": [1, 11]}, cv=2)
    search.fit(X_dicts, y)
    assert search.best_params_ == {"sequenceunion__sequencevectorizer__min_freq": 1}
    assert search.best_score_ == 1.0


def test_a_part_is_replaced_by_its_name():
    union = SequenceUnion([("w", SequenceVectorizer())])
    union.set_params(w=SequenceVectorizer(min_freq=3), w__min_freq=2)
    assert union.get_params()["w__min_freq"] == 2
    assert clone(union).transformers[0][1].min_freq == 2
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        union.set_params(nothing=1)


def test_equal_classes_are_numbered():
    names = [n for n, _ in make_sequence_union(*[SequenceVectorizer()] * 2, Lengths()).transformers]
    assert names == ["sequencevectorizer-1", "sequencevectorizer-2", "lengths"]


def test_a_generator_is_read_once_for_all_parts():
    union = make_sequence_union(SequenceVectorizer(), Lengths())
    assert union.fit_transform(iter(X)) == union.transform(iter(X))


def test_a_fitted_union_survives_pickling():
    union = make_sequence_union(SequenceVectorizer(), TransitionFeatures(SequenceVectorizer()))
    packed = union.fit_transform(X)
    again = pickle.loads(pickle.dumps(union))
    assert again.transform(X) == packed
    assert again.get_feature_names_out().tolist() == packed.feature_names.tolist()


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="no transformers"):
        SequenceUnion([]).fit(X)
    with pytest.raises(ValueError, match="two transformers have the name 'a'"):
        SequenceUnion([("a", Lengths()), ("a", Lengths())]).fit(X)
    with pytest.raises(TypeError, match="transformer 'a' is a int without the method 'transform'"):
        SequenceUnion([("a", 3)]).fit(X)

    class Short(Lengths):
        def transform(self, X):
            return super().transform(X)[1:]

    with pytest.raises(ValueError, match="transformer 's' gives 2 sequences of 1 tokens, 'w' 3"):
        SequenceUnion([("w", SequenceVectorizer()), ("s", Short())]).fit(X)
    with pytest.raises(TypeError, match="TransitionFeatures: the transformer gives list"):
        TransitionFeatures(Lengths()).fit(X)
    with pytest.raises(TypeError, match="transformer 'p': sequence 0 of X is a list among"):
        SequenceUnion([("p", "passthrough")]).fit(X)


@pytest.mark.parametrize("name", ["a__b", "transformers"])
def test_names_that_look_like_parameters_are_refused(name):
    with pytest.raises(ValueError, match="mistaken for a parameter"):
        SequenceUnion([(name, WindowFeatures())]).fit([[("a", "b")]])


def test_transformers_without_names_are_refused():
    with pytest.raises(TypeError, match="pairs of a name and a transformer"):
        SequenceUnion([WindowFeatures()]).fit([[("a", "b")]])
