"""Query functions: what the labels of a sequence would tell.

A score for each sequence that has no labels yet, of shape (S,), the larger the more its labels
would tell (Settles and Craven 2008). `model` is a fitted estimator, a pipeline or a search of such;
its probabilities are as good as it has learned, or was calibrated, to make them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import entr

from crfkit._params import check_number, check_whole
from crfkit._types import FloatArray, IntArray
from crfkit.data import PackedSequences
from crfkit.data.validation import is_matrix
from crfkit.features import SequenceVectorizer
from crfkit.metrics.confidence import last_step


def least_confidence(model: Any, X: Any) -> FloatArray:
    """Return how probable it is that a label of what `predict` says is wrong: ``1 - P(y | x)``.

    Culotta and McCallum (2005). Parameters are those of :func:`sequence_entropy`.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.active_learning import least_confidence, query
    >>> X, y = [[["the"], ["dog"]], [["a"], ["dog"]]], [["D", "N"], ["D", "N"]]
    >>> crf = CRFClassifier().fit(X, y)
    >>> new = [[["the"], ["dog"]], [["some"], ["words"]]]
    >>> query(least_confidence(crf, new), n=1).tolist()
    [1]
    """
    last, X = last_step(model, X)
    found: FloatArray = 1.0 - last.confidence(X, of="sequences")
    return found


def margin(model: Any, X: Any) -> FloatArray:
    """Return how near the second best labeling is to the best one: ``1 - (P(y1) - P(y2))``.

    Scheffer, Decomain and Wrobel (2001). Parameters are those of :func:`sequence_entropy`.
    """
    pairs = _best_probabilities(model, X, 2)
    return 1.0 - (pairs[:, 0] - pairs[:, 1])


def n_best_entropy(model: Any, X: Any, n: int = 10, *, normalize: bool = True) -> FloatArray:
    """Return the entropy of the n best labelings, in nats.

    Kim, Song, Kim, Cha and Lee (2006). As `n` grows, it becomes :func:`sequence_entropy`, which
    takes no longer.

    Parameters
    ----------
    model, X
        As for :func:`sequence_entropy`.
    n : int, default=10
        How many labelings, at least 1.
    normalize : bool, default=True
        Divide their probabilities by their sum: the entropy of the labeling, given that it is one
        of these. Without, the sum of ``-P log P`` over these.
    """
    check_whole("n", n, 1)
    table = _best_probabilities(model, X, n)
    if normalize:
        total = table.sum(axis=1, keepdims=True)
        table = np.divide(table, total, out=np.zeros_like(table), where=total > 0.0)
    found: FloatArray = entr(table).sum(axis=1)
    return found


def sequence_entropy(model: Any, X: Any) -> FloatArray:
    """Return the entropy of the distribution over all labelings of each sequence, in nats.

    Settles and Craven (2008), section 3.1; exactly.

    Parameters
    ----------
    model : fitted estimator with probabilities
        That is asked.
    X : iterable of S sequences
        As for its `predict`.

    Returns
    -------
    ndarray of shape (S,)
    """
    last, X = last_step(model, X)
    found: FloatArray = last.entropy(X, of="sequences")
    return found


def token_entropy(model: Any, X: Any, *, mean: bool = False) -> FloatArray:
    """Return the entropies of the labels of single tokens, in nats, summed over each sequence.

    The total token entropy of Settles and Craven (2008), with `mean` divided by the number of
    tokens: long sequences are no longer worth more, each token of them is. Other parameters are
    those of :func:`sequence_entropy`.
    """
    last, X = last_step(model, X)
    rows = [entr(np.clip(proba, 0.0, 1.0)).sum(axis=1) for proba in last.predict_proba(X)]
    sums = np.array([each.sum() for each in rows], np.float64)
    if mean:
        sums /= np.array([max(len(each), 1) for each in rows], np.float64)
    return sums


def information_density(scores: Any, X: Any, *, beta: float = 1.0, model: Any = None) -> FloatArray:
    """Return scores, each multiplied by how similar its sequence is to all others on average.

    Sequences that no other is like may be hard to label and yet tell little (Settles and Craven
    2008, section 3.4). Similarity is the cosine of the sums of the attributes of all tokens. The
    mean over all S sequences is the product with the mean of the vectors of length 1, so that no
    pairs are listed: time and memory are those of a few copies of the attributes.

    Parameters
    ----------
    scores : array of shape (S,)
        What a query function returns; not negative.
    X : PackedSequences, or S sequences of dicts, of strings, or matrices
        All sequences that have no labels yet, those of the scores.
    beta : float, default=1.0
        The exponent of the mean similarity: 0 leaves the scores as they are.
    model : fitted estimator, optional
        What makes attributes of X; needed where X are words, or others that its `features` read.

    Returns
    -------
    ndarray of shape (S,)

    Examples
    --------
    >>> from crfkit.active_learning import information_density
    >>> X = [[["a"], ["b"]], [["b"], ["a"]], [["c"], ["d"]]]
    >>> information_density([0.5, 0.5, 0.6], X).round(3).tolist()
    [0.333, 0.333, 0.2]
    """
    check_number("beta", beta)
    values = _checked(scores)
    data = _packed(X) if model is None else _packed_by(model, X)
    if len(data) != len(values):
        raise ValueError(f"there are {len(values)} scores for {len(data)} sequences.")
    if np.any(values < 0.0):
        raise ValueError("scores must not be negative: a small similarity would make them larger.")
    size, tokens = len(data), data.n_tokens
    sums = sp.csr_array((np.ones(tokens), np.arange(tokens), data.offsets), (size, tokens))
    vectors = sp.csr_array(sums @ data.to_csr())
    norms = np.sqrt(vectors.multiply(vectors).sum(axis=1))
    scale = np.divide(1.0, norms, out=np.zeros(size), where=norms > 0.0)
    mean = (vectors.T @ scale) / max(size, 1)
    similarity = np.clip((vectors @ mean) * scale, 0.0, None)
    found: FloatArray = values * similarity**beta
    return found


def query(
    scores: Any, n: int | None = None, *, tokens: int | None = None, lengths: Any = None
) -> IntArray:
    """Return the sequences of the largest scores, the best first.

    Parameters
    ----------
    scores : array of shape (S,)
        What a query function returns. Of equal ones the first sequence is chosen.
    n : int, optional
        How many at most.
    tokens : int, optional
        How many tokens they have at most, all together: a sequence that is too long for what is
        left is passed over.
    lengths : array of shape (S,), optional
        The number of tokens of each sequence, which `tokens` needs.

    Returns
    -------
    ndarray of shape (m,)
        Their places in X.

    Examples
    --------
    >>> from crfkit.active_learning import query
    >>> query([0.1, 0.9, 0.5, 0.9], n=3).tolist()
    [1, 3, 2]
    >>> query([0.1, 0.9, 0.5, 0.9], tokens=10, lengths=[4, 6, 2, 5]).tolist()
    [1, 2]
    """
    values = _checked(scores)
    order = np.argsort(-values, kind="stable").astype(np.int64)
    most = len(order) if n is None else n
    check_whole("n", most)
    if tokens is not None:
        check_whole("tokens", tokens)
        if lengths is None or len(lengths) != len(values):
            raise ValueError("tokens= needs lengths=, the number of tokens of each sequence.")
        left, chosen = int(tokens), list[int]()
        for place in order.tolist():
            if lengths[place] <= left and len(chosen) < most:
                left -= int(lengths[place])
                chosen.append(place)
        order = np.array(chosen, np.int64)
    return order[:most]


def _checked(scores: Any) -> FloatArray:
    """Return scores as an array; ValueError if one is no number, or they are not flat."""
    values = np.asarray(scores, np.float64)
    if values.ndim != 1:
        raise ValueError(f"scores have the shape {values.shape}, not (S,).")
    if np.isnan(values).any():
        raise ValueError(f"the score of sequence {int(np.isnan(values).argmax())} is NaN.")
    return values


def _best_probabilities(model: Any, X: Any, n: int) -> FloatArray:
    """Return the probabilities of the best labelings, (S, n), 0 where there are fewer."""
    last, X = last_step(model, X)
    listed = last.predict_n_best(X, n)
    table = np.zeros((len(listed), n))
    for row, found in zip(table, listed, strict=True):
        row[: len(found)] = [each.probability for each in found]
    return table


def _packed(X: Any) -> PackedSequences:
    """Return the attributes of tokens, where they have some."""
    if isinstance(X, PackedSequences):
        return X
    sequences = list(X)
    first = next((each for each in sequences if is_matrix(each) or len(each)), None)
    if is_matrix(first):
        return PackedSequences.from_matrices(sequences)
    return SequenceVectorizer().fit_transform(sequences)


def _packed_by(model: Any, X: Any) -> PackedSequences:
    """Return the attributes that a fitted estimator reads."""
    last, X = last_step(model, X)
    packed: PackedSequences = last._pack(X)
    return packed
