"""The entries of tokens are their rows of the matrix of features, for any number of threads."""

import numpy as np
import pytest

from crfkit._parallel import ThreadMap
from crfkit.oracles.design import make_design
from crfkit.oracles.weights import chain_weights
from tests.kernels.test_chain_oracle import FORMS, make_case


def table_of(entries, weights, n_tokens, n_labels):
    """For each token, the place of each weight it reads, with its label and its value."""
    row_ptr, rows, factor, cell_ptr, columns, places, values, step, dense, first, _ = entries
    assert first == weights.n_rows - n_labels - dense.shape[1]
    read = []
    for t in range(n_tokens):
        own = {}
        pairs = [(rows[n], factor[n * step]) for n in range(row_ptr[t], row_ptr[t + 1])]
        pairs += [(first + f, dense[t, f]) for f in np.flatnonzero(dense[t])]
        for h, value in pairs:
            own |= {int(h) * weights.width + k: (k, float(value)) for k in range(n_labels)}
        for n in range(cell_ptr[t], cell_ptr[t + 1]):
            own[int(places[n])] = int(columns[n]), float(values[n * step])
        read.append(own)
    return read


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_labels", [1, 9])
def test_each_weight_of_a_token_is_listed_once(rng, form, n_labels):
    data, x, model, mask = make_case(rng, n_labels, form)
    weights = chain_weights(model)
    with ThreadMap(1) as threads:
        entries = make_design(weights, data, threads)
    read = table_of(entries, weights, data.n_tokens, n_labels)
    attributes, labels = np.nonzero(mask)
    spots = weights.positions[: len(labels)].tolist()
    for t, own in enumerate(read):
        expected = {
            spot: (label, x[t, a])
            for spot, a, label in zip(spots, attributes.tolist(), labels.tolist(), strict=True)
            if x[t, a] != 0.0
        }
        assert {spot: own[spot] for spot in expected} == expected
        assert set(own) & set(spots) == set(expected)


@pytest.mark.parametrize("form", FORMS)
def test_lists_are_the_same_for_any_number_of_threads(rng, form):
    data, _, model, _ = make_case(rng, 9, form)
    weights, made = chain_weights(model), []
    for n_jobs in (1, 4):
        with ThreadMap(n_jobs) as threads:
            made.append(make_design(weights, data, threads))
    for ours, theirs in zip(*(design[:-1] for design in made), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert isinstance(ours, int) or not ours.flags.writeable
