"""Every decoder on every structure: which labels it chooses, and that they are legal."""

import numpy as np
import pytest

from crfkit.inference import DECODERS, marginals
from tests.contracts.test_losses import STRUCTURES, problem
from tests.extensions.cautious import CautiousDecoder

ALL_DECODERS = DECODERS | {"cautious (an extension)": CautiousDecoder}
PAIRS = [(decoder, structure) for decoder in sorted(ALL_DECODERS) for structure in STRUCTURES]


@pytest.fixture(params=PAIRS, ids=" on ".join)
def pair(request):
    return ALL_DECODERS[request.param[0]](), STRUCTURES[request.param[1]]


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_codes_of_tokens_and_those_of_each_sequence_alone(pair, seed):
    decoder, structure = pair
    scores, _ = problem(structure, seed, own_steps=bool(seed % 2))
    found = decoder.decode(structure, scores)
    assert found.shape == (len(scores.unary),)
    assert found.dtype == np.int32
    assert found.min() >= 0 and found.max() < scores.n_codes
    alone = [decoder.decode(structure, scores.take(np.array([s]))) for s in range(3)]
    assert found.tolist() == np.concatenate(alone).tolist()


def test_no_sequences_have_no_labels(pair):
    decoder, structure = pair
    scores, _ = problem(structure, 0)
    assert decoder.decode(structure, scores.take(np.array([], int))).shape == (0,)


def test_labels_of_all_probability_are_chosen(pair):
    decoder, structure = pair
    scores, labels = problem(structure, 1)
    scores = scores.plus_unary(1e3 * (labels[:, None] == np.arange(scores.n_codes)))
    found = decoder.decode(structure, scores)
    assert (found % scores.n_labels).tolist() == (labels % scores.n_labels).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_what_is_clamped_is_chosen(pair, seed):
    decoder, structure = pair
    scores, labels = problem(structure, seed)
    known = np.arange(len(labels)) % 2 == 0
    allowed = ~known[:, None] | (labels[:, None] == np.arange(scores.n_codes))
    found = decoder.decode(structure, scores.clamp(allowed))
    if decoder.takes_constraints:
        assert decoder.decode(structure, scores, allowed).tolist() == found.tolist()
    else:
        with pytest.raises(ValueError, match=f"{type(decoder).__name__} may choose labels"):
            decoder.decode(structure, scores, allowed)
    assert (found % scores.n_labels)[known].tolist() == (labels % scores.n_labels)[known].tolist()


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=list(STRUCTURES))
@pytest.mark.parametrize("seed", range(5))
def test_each_decoder_reaches_its_goal(structure, seed):
    """The best labeling is at least as good as any found; the most probable labels, likewise."""
    scores, labels = problem(structure, seed)
    proba, _ = marginals(structure, scores)
    best = structure.argmax(scores)[1]
    expected = {}
    for name, decoder in ALL_DECODERS.items():
        found = decoder().decode(structure, scores)
        expected[name] = proba[np.arange(len(labels)), found % scores.n_labels].sum()
        if name == "viterbi":
            np.testing.assert_allclose(structure.score(scores, found), best, rtol=1e-12)
    assert expected["posterior"] == pytest.approx(proba.max(axis=1).sum(), rel=1e-12)
    assert expected["posterior"] >= max(expected.values()) - 1e-12
