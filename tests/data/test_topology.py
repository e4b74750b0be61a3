"""The order of tokens goes with the sequences, and models read it."""

import copy
import pickle

import numpy as np
import pytest

from crfkit import CRFClassifier, SequenceVectorizer, make_sequence_union
from crfkit._parallel import Chunk
from crfkit.data.labels import LabelStream
from crfkit.data.topology import TokenOrder
from crfkit.potentials.linear import choose_features
from crfkit.structures import OF_TOPOLOGY, Chain


class Backwards(TokenOrder):
    """Each token stands after the one that follows it."""

    def __init__(self, lengths):
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])

    @property
    def before(self):
        found = np.arange(1, self.offsets[-1] + 1)
        found[self.offsets[1:][np.diff(self.offsets) > 0] - 1] = -1
        return found

    @property
    def arrays(self):
        return ()

    def with_arrays(self, arrays, offsets):
        return Backwards(np.diff(offsets))


X = [["a", "b", "a"], ["b"], [], ["b", "b", "a", "c"]]
Y = [["x", "y", "x"], ["y"], [], ["y", "y", "x", "x"]]


@pytest.fixture
def data():
    packed = SequenceVectorizer().fit_transform([[[w] for w in s] for s in X])
    return packed.with_topology(Backwards([3, 1, 0, 4]))


def test_it_is_taken_copied_and_compared_with_the_sequences(data):
    some = data[[3, 0]]
    assert some.topology == Backwards([4, 3]) and some.topology.before.tolist() == [
        1, 2, 3, -1, 5, 6, -1,
    ]  # fmt: skip
    assert pickle.loads(pickle.dumps(data)) == copy.deepcopy(data) == data
    assert data != data.with_topology(None) and data.nbytes > data.with_topology(None).nbytes
    with pytest.raises(TypeError, match=r"lose .*topology.*with_topology\(None\)"):
        data[0]
    with pytest.raises(ValueError, match="sequence 1: X has 1 tokens, but the backwards has 2"):
        data.with_topology(Backwards([3, 2, 0, 3]))
    assert data.with_transitions(None).topology is data.topology


class Ordered(SequenceVectorizer):
    """Gives sequences in this order."""

    def __init__(self, turned=True):
        super().__init__()
        self.turned = turned

    def fit_transform(self, X, y=None):
        packed = super().fit_transform(X)
        lengths = packed.lengths if self.turned else packed.lengths + 1
        return packed._from_arrays(**packed.__dict__ | {"topology": Backwards(lengths)})


def test_a_union_keeps_it_and_refuses_two():
    X = [[["a"], ["b"]]]
    union = make_sequence_union(Ordered(), SequenceVectorizer())
    assert union.fit_transform(X).topology == Backwards([2])
    with pytest.raises(ValueError, match="different orders"):
        make_sequence_union(Ordered(), Ordered(turned=False)).fit_transform(X)


def test_a_topology_that_no_structure_reads_is_refused(data):
    codes = np.zeros(data.n_tokens, np.int32)
    with pytest.raises(TypeError, match="no structure reads a Backwards; known are: "):
        choose_features(data, codes, 1)


def test_weights_are_those_of_transitions_in_its_order(data, monkeypatch):
    """Boundary weights and transitions of seen pairs follow it; potentials stay those of chains."""
    monkeypatch.setitem(OF_TOPOLOGY, Backwards, Chain())
    stream = LabelStream(Y)
    codes = stream.codes_for(stream.classes())
    model = choose_features(data, codes, 2, boundaries=True)
    pairs = set(zip(model.transition_from.tolist(), model.transition_to.tolist(), strict=True))
    seen = [(a, b) for s in Y for b, a in zip(s, s[1:], strict=False)]
    assert pairs == {(int(a == "y"), int(b == "y")) for a, b in seen}
    w = np.zeros(model.n_parameters)
    parts = model.split(w)
    parts["start"][:] = [1.0, 2.0]
    parts["end"][:] = [10.0, 20.0]
    unary = model.scores(model.bind(w), data, Chunk(0, data.offsets)).unary
    np.testing.assert_array_equal(unary[:, 0], [10, 0, 1, 11, 10, 0, 0, 1])


def test_a_plain_fit_has_none():
    assert CRFClassifier().fit([[["a"]]], [["x"]]).vectorizer_.transform([[["a"]]]).topology is None


def test_models_and_data_of_another_order_are_told_apart(data, monkeypatch):
    monkeypatch.setitem(OF_TOPOLOGY, Backwards, Chain())
    data, y = data[[0, 1, 3]], [Y[0], Y[1], Y[3]]
    plain = CRFClassifier().fit(data.with_topology(None), y)
    turned = CRFClassifier().fit(data, y)
    assert turned.predict(data) == y
    with pytest.raises(ValueError, match="X has a Backwards, but the model was fitted to chains"):
        plain.predict(data)
    with pytest.raises(ValueError, match="X does not say which token each transition comes from"):
        turned.predict(data.with_topology(None))
