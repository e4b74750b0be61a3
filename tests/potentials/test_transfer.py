"""Weights of an older model in a newer one, matched by name."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from crfkit.data.labels import object_array
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.linear import chain_model
from crfkit.potentials.transfer import NamedWeights, extend, transfer_weights


def as_weights(dense, n_sparse):
    matrix = sp.csr_array(dense)
    return AttributeWeights(
        matrix.indptr, matrix.indices, n_columns=dense.shape[1], n_sparse=n_sparse
    )


def make_model(rng, n_features, n_labels, n_steps, *, boundaries=True, n_dense=0):
    """A model with a random choice of weights."""
    source, target = np.nonzero(rng.random((n_labels, n_labels)) < 0.7)
    transitions = None
    if n_steps is not None:
        transitions = as_weights(rng.random((n_steps, n_labels**2)) < 0.5, n_steps)
    state = as_weights(rng.random((n_features, n_labels)) < 0.6, n_features - n_dense)
    return chain_model(
        state, source, target, boundaries=boundaries, transition_attributes=transitions
    )


def make_weights(rng, labels, names, transition_names):
    """Named weights, some of which are 0 and not stored."""
    k = len(labels)
    table = rng.normal(size=(len(names), k)) * (rng.random((len(names), k)) < 0.6)
    transitions = None
    if transition_names is not None:
        transitions = sp.csr_array(rng.normal(size=(len(transition_names), k * k)))
    fitted = {
        "coef_": sp.csr_array(table), "transitions_": rng.normal(size=(k, k)),
        "start_weights_": rng.normal(size=k), "end_weights_": rng.normal(size=k),
        "transition_coef_": transitions,
    }  # fmt: skip
    return NamedWeights(object_array(labels), by_kind(names, transition_names), fitted)


def by_kind(names, transition_names):
    named = None if transition_names is None else object_array(transition_names)
    return {"tokens": None if names is None else object_array(names), "transitions": named}


def as_dict(named):
    """Every weight by names, read off one by one."""
    found = {}
    for i, before in enumerate(named.classes):
        found["start", before] = named.fitted["start_weights_"][i]
        found["end", before] = named.fitted["end_weights_"][i]
        for a, name in enumerate(named.names["tokens"]):
            found["state", name, before] = named.fitted["coef_"][a, i]
        for j, after in enumerate(named.classes):
            found["step", before, after] = named.fitted["transitions_"][i, j]
            triples, place = named.fitted["transition_coef_"], i * len(named.classes) + j
            for b, name in enumerate([] if triples is None else named.names["transitions"]):
                found["triple", name, before, after] = triples[b, place]
    return found


def expected(old, model, labels, names, transition_names):
    known = as_dict(old)
    keys = [("state", names[a], labels[k]) for a in range(len(names))
            for k in model.state.columns[model.state.ptr[a] : model.state.ptr[a + 1]]]  # fmt: skip
    keys += [("step", labels[i], labels[j])
             for i, j in zip(model.transition_from, model.transition_to, strict=True)]  # fmt: skip
    if model.boundaries:
        keys += [("start", label) for label in labels] + [("end", label) for label in labels]
    if model.transition_attributes is not None:
        ptr, columns = model.transition_attributes.ptr, model.transition_attributes.columns
        keys += [
            ("triple", transition_names[b], labels[c // len(labels)], labels[c % len(labels)])
            for b in range(len(transition_names))
            for c in columns[ptr[b] : ptr[b + 1]]
        ]
    return np.array([known.get(key, 0.0) for key in keys])


subsets = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1, max_size=6)


@given(
    labels=st.tuples(subsets, subsets), names=st.tuples(subsets, subsets),
    transitions=st.tuples(st.none() | subsets, st.none() | subsets),
    boundaries=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_each_weight_is_found_by_its_names(labels, names, transitions, boundaries, seed):
    rng = np.random.default_rng(seed)
    old = make_weights(rng, labels[0], names[0], transitions[0])
    n_steps = None if transitions[1] is None else len(transitions[1])
    model = make_model(rng, len(names[1]), len(labels[1]), n_steps, boundaries=boundaries)
    known = by_kind(names[1], transitions[1])
    carried = transfer_weights(old, model, object_array(labels[1]), known)
    np.testing.assert_array_equal(
        carried, expected(old, model, labels[1], names[1], transitions[1])
    )


def test_attributes_without_names_are_matched_by_number(rng):
    named = make_weights(rng, "ab", "pqr", None)
    old = named._replace(names={})
    model = make_model(rng, 3, 2, None, n_dense=2)
    carried = transfer_weights(old, model, object_array("ab"), {})
    np.testing.assert_array_equal(carried, expected(named, model, "ab", "pqr", None))
    with pytest.raises(ValueError, match="4 features without names, the model to start from 3"):
        transfer_weights(old, make_model(rng, 4, 2, None), object_array("ab"), {})


def test_weights_that_forbid_start_at_zero(rng):
    old = make_weights(rng, "ab", "p", None)
    fitted = old.fitted
    fitted["transitions_"][0, 1] = fitted["start_weights_"][0] = -np.inf
    fitted["end_weights_"][1] = -np.inf
    model = make_model(np.random.default_rng(5), 1, 2, None)
    carried = transfer_weights(old, model, object_array("ab"), by_kind("p", None))
    assert np.isfinite(carried).all()
    plain = expected(old, model, "ab", "p", None)
    np.testing.assert_array_equal(carried, np.where(np.isfinite(plain), plain, 0.0))


@pytest.mark.parametrize("n_steps", [None, 2])
def test_a_wider_model_has_the_weights_of_all(rng, n_steps):
    labels, names = "ab", "pqrs"
    transition_names = None if n_steps is None else "xy"
    model = make_model(rng, 4, 2, n_steps)
    others = [make_weights(rng, labels, names[:2], transition_names) for _ in range(2)]
    wide = extend(model, [other.fitted for other in others])

    def keys(scores):
        ones = np.arange(1, scores.n_parameters + 1)
        parts = scores.split(ones)
        pattern = scores.state
        rows = np.repeat(np.arange(4), np.diff(pattern.ptr))
        found = {("state", names[a], labels[c]) for a, c in zip(rows, pattern.columns, strict=True)}
        found |= {
            ("step", labels[i], labels[j])
            for i, j in zip(scores.transition_from, scores.transition_to, strict=True)
        }
        if n_steps:
            pattern = scores.transition_attributes
            rows = np.repeat(np.arange(2), np.diff(pattern.ptr))
            found |= {("triple", transition_names[b], labels[c // 2], labels[c % 2])
                      for b, c in zip(rows, pattern.columns, strict=True)}  # fmt: skip
        assert len(found) == sum(len(parts[n]) for n in parts if n not in ("start", "end"))
        return found

    nonzero = [{key for key, w in as_dict(o).items() if w and len(key) > 2} for o in others]
    assert keys(wide) == keys(model) | nonzero[0] | nonzero[1]
    assert wide.boundaries == model.boundaries
