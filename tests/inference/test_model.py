"""A fitted model answers questions about chunks of sequences in their order, for any threads."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, PackedSequences, _parallel
from crfkit._parallel import ThreadMap
from crfkit.inference import ViterbiDecoder, marginals

RNG = np.random.default_rng(0)
LENGTHS = [3, 0, 40, 1, 7, 0, 25, 2]
DATA = PackedSequences(
    dense=RNG.normal(size=(sum(LENGTHS), 4)), offsets=np.concatenate([[0], np.cumsum(LENGTHS)])
)
Y = [RNG.choice(["A", "B", "C"], size=length).tolist() for length in LENGTHS]


@pytest.fixture(scope="module")
def model():
    learned = [s for s, length in enumerate(LENGTHS) if length]
    crf = CRFClassifier(max_iter=3, solver="lbfgs")
    with pytest.warns(ConvergenceWarning):
        return crf.fit(DATA[learned], [Y[s] for s in learned])._model_for(DATA)


@pytest.mark.parametrize("share", [None, 1, 5, 10_000])
@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("long", [10**9, 20])
def test_answers_come_in_order_and_are_the_same_for_any_chunks(
    model, share, n_jobs, long, monkeypatch
):
    with ThreadMap(1) as threads:
        (whole,) = model.ask(DATA, marginals, threads, 10_000)
    monkeypatch.setattr(_parallel, "LONG_TOKENS", long)
    with ThreadMap(n_jobs) as threads:
        answers = model.ask(DATA, marginals, threads, share)
        firsts = model.ask(DATA, lambda structure, potentials: potentials.first, threads, share)
    np.testing.assert_allclose(np.concatenate([a[0] for a in answers]), whole[0], atol=1e-12)
    np.testing.assert_allclose(np.concatenate([a[1] for a in answers]), whole[1], atol=1e-12)
    assert firsts == sorted(firsts) and firsts[0] == 0 and len(firsts) == len(answers)


def test_a_decoder_is_a_question(model):
    with ThreadMap(2) as threads:
        codes = np.concatenate(model.ask(DATA, ViterbiDecoder().decode, threads, 5))
    assert codes.shape == (DATA.n_tokens,) and set(codes) <= {0, 1, 2}


def test_no_sequences_have_no_answers(model):
    with ThreadMap(1) as threads:
        assert model.ask(DATA[:0], marginals, threads) == []
