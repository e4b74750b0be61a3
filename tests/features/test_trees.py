"""Features of tokens that tell their parents."""

import pytest
from sklearn.base import clone

from crfkit.features import SequenceVectorizer, TemplateFeatures, TreeFeatures

X = [[{"w": "a", "head": 2}, {"w": "b", "head": 0}], [{"w": "b", "head": 0}]]


def test_parents_are_read_and_are_no_features():
    features = TreeFeatures(SequenceVectorizer(), parent="head", first=1)
    packed = features.fit_transform(X)
    assert packed.feature_names.tolist() == ["w:a", "w:b"]
    assert packed.topology.parent.tolist() == [1, -1, -1]
    again = features.transform([[{"w": "c", "head": "2"}, {"head": None}]])
    assert again.topology.parent.tolist() == [1, -1] and again.n_features == 2
    assert clone(features).get_params()["first"] == 1


def test_columns_are_read_by_their_number():
    features = TreeFeatures(TemplateFeatures(["w"], columns=["w", "head"]), parent=1)
    packed = features.fit_transform([[("a", -1), ("b", 0)]])
    assert packed.topology.parent.tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ({"w": "a"}, "sequence 1, position 0: the token tells no parent: it has no 'head'"),
        ({"head": "x"}, "sequence 1, position 0: the parent is 'x'"),
        ({"head": 1.0}, "sequence 1, position 0: the parent is 1.0"),
        ({"head": 1}, "sequence 1, position 0: the parent is itself"),
    ],
    ids=["none", "text", "float", "itself"],
)
def test_what_is_no_parent_is_refused(token, message):
    with pytest.raises(ValueError, match=message):
        TreeFeatures(SequenceVectorizer(), parent="head", first=1).fit([X[0], [token]])
