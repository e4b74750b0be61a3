import numpy as np
import pytest
from hypothesis import given, settings

from crfkit.inference import DECODERS, PosteriorDecoder, ViterbiDecoder, marginals
from crfkit.structures import Capability, Chain, MissingCapabilityError
from tests.contracts.structures import CASES
from tests.oracles import chain_paths, chain_scores, random_scores


@given(chain_scores(scales=(0.1, 1.0)))
@settings(max_examples=60)
def test_posterior_decoding_maximizes_expected_correct_labels(scores):
    labels = DECODERS["posterior"]().decode(Chain(), scores)
    proba, log_z = marginals(Chain(), scores)
    for s, (begin, end) in enumerate(zip(scores.offsets[:-1], scores.offsets[1:], strict=True)):
        paths = list(chain_paths(scores, s))
        p = np.exp([score - log_z[s] for _, score in paths])
        every = np.array([path for path, _ in paths]).reshape(len(paths), -1)
        expected = [(p * (every == guess).sum(axis=1)).sum() for guess in every]
        chosen = labels[begin:end]
        np.testing.assert_allclose(proba[np.arange(begin, end), chosen].sum(), max(expected))


@given(chain_scores(scales=(1.0, 30.0)))
@settings(max_examples=60)
def test_viterbi_finds_the_most_probable_path(scores):
    labels = DECODERS["viterbi"]().decode(Chain(), scores)
    _, log_z = marginals(Chain(), scores)
    found = np.exp(Chain().score(scores, labels) - log_z)
    for s, p in enumerate(found):
        best = max(np.exp(score - log_z[s]) for _, score in chain_paths(scores, s))
        np.testing.assert_allclose(p, best, rtol=1e-10)


@pytest.mark.parametrize("name", sorted(DECODERS))
def test_equal_choices_take_the_lowest_label(name):
    scores = random_scores(0, [3, 0, 1], 3, scale=0.0)
    assert DECODERS[name]().decode(Chain(), scores).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_what_is_decoded_is_allowed(case):
    scores = case.potentials(0, [3, 2], 0.0, False)
    allowed = np.ones((5, scores.n_codes), bool)
    best = case.structure.argmax(scores)[0]
    others = [one for one in case.labelings(scores, 0) if one[0][1] != best[1]]
    expected = max((one for one in others), key=lambda one: one[1])
    allowed[1, best[1]] = False
    labels = ViterbiDecoder().decode(case.structure, scores, allowed)
    assert tuple(labels[:3]) == expected[0]
    np.testing.assert_array_equal(labels[3:], best[3:])
    with pytest.raises(ValueError, match="use ViterbiDecoder"):
        PosteriorDecoder().decode(case.structure, scores, allowed)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_best_come_first(case):
    scores = case.potentials(1, [3], 0.0, False)
    if Capability.K_BEST not in case.structure.capabilities:
        with pytest.raises(MissingCapabilityError, match="no lists of the best labelings"):
            ViterbiDecoder().k_best(case.structure, scores, 4)
        return
    codes, value = ViterbiDecoder().k_best(case.structure, scores, 4)
    np.testing.assert_array_equal(codes[0], ViterbiDecoder().decode(case.structure, scores))
    assert (np.diff(value) <= 0.0).all()
    with pytest.raises(ValueError, match="PosteriorDecoder has no lists"):
        PosteriorDecoder().k_best(case.structure, scores, 4)
