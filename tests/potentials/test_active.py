"""The weights that a chunk depends on agree with the model on all of them."""

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit._parallel import ThreadMap, make_chunks
from crfkit._types import Counts
from crfkit.data import PackedSequences
from crfkit.potentials.linear import choose_features

LENGTHS = (3, 0, 1, 5, 2, 4)


def make_packed(rng, blocks, steps):
    n_tokens = sum(LENGTHS)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])

    def sparse(values):
        x = (rng.random((n_tokens, 7)) < 0.4).astype(float)
        return sp.csr_array(x * rng.normal(size=x.shape) if values else x)

    data = PackedSequences(
        sparse=sparse("values" in blocks) if "sparse" in blocks else None,
        dense=rng.normal(size=(n_tokens, 2)) if "dense" in blocks else None,
        offsets=offsets,
    )
    if steps:
        data = data.with_transitions(PackedSequences(sparse=sparse(False), offsets=offsets))
    return data, rng.integers(3, size=n_tokens).astype(np.int32)


def assert_chunks_agree_with_the_whole(rng, model, data):
    """Chunk by chunk, the weights that it depends on give its scores, and get the gradient."""
    chunks = make_chunks(data.offsets, 5)
    assert len(chunks) > 2
    bound = model.bind(rng.normal(size=model.n_parameters))
    with ThreadMap(1) as threads:
        for chunk in chunks:
            prepared = model.prepare_active(data, chunk)
            scores = model.prepared_scores(bound, prepared, 0)
            expected = model.scores(bound, data, chunk)
            np.testing.assert_allclose(scores.unary, expected.unary, atol=1e-13)
            np.testing.assert_allclose(scores.pair, expected.pair, atol=1e-13)
            residual = Counts(
                rng.normal(size=scores.unary.shape), rng.normal(size=scores.pair.shape)
            )
            alone = model.prepare(data, [chunk], threads)
            whole = np.zeros(model.n_parameters)
            model.pullback(residual.unary.copy(), [residual.pair], alone, [0], threads, whole)
            places = model.active(prepared)
            assert len(np.unique(places)) == len(places)
            found = np.zeros(model.n_parameters)
            found[places] = model.active_gradient(residual, prepared)
            np.testing.assert_allclose(found, whole, atol=1e-12)


@pytest.mark.parametrize("blocks", ["sparse", "dense", "sparse values dense"])
@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("boundaries", [False, True])
def test_scores_and_gradient_agree_with_the_whole(rng, blocks, steps, boundaries):
    data, codes = make_packed(rng, blocks, steps)
    model = choose_features(data, codes, 3, boundaries=boundaries)
    assert_chunks_agree_with_the_whole(rng, model, data)
