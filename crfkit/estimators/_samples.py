"""Questions about the whole distribution: samples and entropies, for models with probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import entr, xlog1py
from sklearn.utils import check_random_state

from crfkit._params import check_option, check_whole
from crfkit._types import CodeArray, FloatArray, Potentials
from crfkit.data.sequence_list import SequenceList
from crfkit.estimators._labelings import labels_of_codes
from crfkit.inference.base import marginals
from crfkit.structures import Structure

# Counters of the random numbers of a sequence, of which each makes a few.
STREAM, NUMBERS = 1 << 64, 4


def sample(
    self: Any, X: Any, n: int = 1, *, random_state: Any = None, constraints: Any = None
) -> list[list[list[Any]]]:
    """Return labelings of each sequence, drawn by their probabilities.

    Parameters
    ----------
    X : iterable of sequences
        As for `predict`, also in what is raised.
    n : int, default=1
        How many labelings of each sequence, at least 1, independent of each other.
    random_state : int, RandomState instance or None, default=None
        What chooses the labelings. The same int gives the same ones, with any `n_jobs`, and the
        first ones of a larger `n`; a RandomState instance others in each call.
    constraints : Constraints, rule, list of rules, str or None, default=None
        As for `predict`: labelings are drawn from those that keep to them.

    Returns
    -------
    list of S lists of n lists of labels
        Labels are in the form that `predict` gives.

    Notes
    -----
    Forward filtering, backward sampling (Carter and Kohn 1994; Scott 2002): exact and independent
    draws, each in time that is linear in the length, whatever the probabilities. The random numbers
    of a sequence are those of a counter, its number in X (Philox: Salmon et al. 2011).

    References
    ----------
    C. K. Carter and R. Kohn (1994). On Gibbs sampling for state space models. Biometrika 81.

    S. L. Scott (2002). Bayesian methods for hidden Markov models. Journal of the American
    Statistical Association 97.
    """
    check_whole("n", n, 1)
    data = self._pack(X)
    seed = check_random_state(random_state).randint(np.iinfo(np.int64).max, dtype=np.int64)

    def draw(structure: Structure, potentials: Potentials) -> CodeArray:
        lengths = np.diff(potentials.offsets).tolist()
        return structure.sample(potentials, _uniforms(int(seed), potentials.first, lengths, n))

    none = np.empty((n, 0), np.int32)
    codes = np.concatenate([none, *self._ask(data, draw, constraints=constraints)], axis=1)
    drawn = [labels_of_codes(self, row, data.offsets) for row in codes]
    return SequenceList(list(labelings) for labelings in zip(*drawn, strict=True))


def entropy(
    self: Any, X: Any, *, of: str = "sequences", constraints: Any = None
) -> FloatArray | list[FloatArray]:
    """Return how uncertain the model is, in nats: 0 where it is sure.

    Parameters
    ----------
    X : iterable of sequences
        As for `predict`, also in what is raised.
    of : {"sequences", "tokens"}, default="sequences"
        The entropy of the labelings of whole sequences (of segmentations, in a model of segments),
        or of the labels of single tokens.
    constraints : Constraints, rule, list of rules, str or None, default=None
        As for `predict`: the entropy of what is left by them.

    Returns
    -------
    ndarray of shape (S,), or list of S ndarrays of shape (T,)
        ``- sum_y P(y | x) log P(y | x)``, and for tokens ``- sum_k P(y_t = k | x) log P(y_t = k |
        x)``. They are exact where they are tiny, too; 0 for an empty sequence.

    Notes
    -----
    The entropy of a sequence is that of its labels given those next to them, added up (Hernando,
    Crespi and Cybenko 2005; Mann and McCallum 2007), at the cost of `predict_proba`. It is at most
    the sum of those of its tokens. Long sequences have more of it: divide by their lengths to
    compare sequences.

    References
    ----------
    D. Hernando, V. Crespi and G. Cybenko (2005). Efficient computation of the hidden Markov model
    entropy for a given observation sequence. IEEE Transactions on Information Theory 51.

    G. S. Mann and A. McCallum (2007). Efficient computation of entropy gradient for semi-supervised
    conditional random fields. NAACL-HLT.
    """
    check_option("of", of, ("sequences", "tokens"))
    data = self._pack(X)
    ask = _of_sequences if of == "sequences" else _of_tokens
    whole = np.concatenate([np.zeros(0), *self._ask(data, ask, constraints=constraints)])
    if of == "sequences":
        return whole
    return SequenceList(np.split(whole, data.offsets[1:-1]) if len(data) else [])


def _of_sequences(structure: Structure, potentials: Potentials) -> FloatArray:
    return structure.entropy(potentials)


def _of_tokens(structure: Structure, potentials: Potentials) -> FloatArray:
    """Return the entropies of the labels of tokens, shape (N,).

    The probability of the likeliest label is taken as 1 less those of the others, which are exact.
    """
    shares = marginals(structure, potentials)[0]
    shares[np.arange(len(shares)), shares.argmax(axis=1)] = 0.0
    rest = shares.sum(axis=1)
    found: FloatArray = entr(shares).sum(axis=1) - xlog1py(1.0 - rest, -rest)
    return found


def _uniforms(seed: int, first: int, lengths: Iterable[int], n: int) -> FloatArray:
    """Return the numbers that choose labelings, (n, N), for sequences from the number `first` on.

    Those of a sequence depend on the seed and its number alone; the first ones, not on `n` either.
    """
    bits = np.random.Philox(key=seed, counter=first * STREAM)
    random, found = np.random.Generator(bits), [np.empty((n, 0))]
    for length in lengths:
        counters = -(-n * length // NUMBERS)
        numbers = random.random(counters * NUMBERS)  # all of them: what is left is kept by `bits`
        found.append(numbers[: n * length].reshape(n, length))
        bits.advance(STREAM - counters)
    return np.concatenate(found, axis=1)
