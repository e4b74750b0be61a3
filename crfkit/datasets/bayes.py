"""What is known of the labels of drawn sequences by the source itself, the best that there is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.utils import Bunch

from crfkit._types import FloatArray, IntArray


def bayes_posteriors(source: Bunch, X: Sequence[Sequence[Sequence[str]]]) -> list[FloatArray]:
    r"""Return the probabilities of labels given the symbols, by the tables of their source.

    No model has fewer wrong labels, in expectation, than the choice of the most probable label of
    each token here: the Bayes error. It is found by sums over pairs of labels, as a label of the
    second order depends on the two before it; of ``mixing="global"``, by those of both sources,
    weighted by their posterior probabilities.

    Parameters
    ----------
    source : Bunch
        What :func:`make_markov_sequences` returned.
    X : list of list of list of str
        Symbols of its sequences, or of others.

    Returns
    -------
    list of ndarray of shape (T, K)
        For each sequence; labels are in the order of ``source.states``.

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit.datasets import make_markov_sequences
    >>> data = make_markov_sequences(100, alpha=0.7, random_state=0)
    >>> best = [np.take(data.states, rows.argmax(1)) for rows in bayes_posteriors(data, data.X)]
    >>> bool(np.mean(np.concatenate(best) == np.concatenate(data.y)) > 0.9)
    True
    """
    numbers = {symbol: number for number, symbol in enumerate(source.symbols)}
    codes = [np.array([numbers[token[0]] for token in row], np.int64) for row in X]
    found: list[FloatArray] = [np.empty((0, len(source.states)))] * len(codes)
    lengths = np.array([len(row) for row in codes], np.int64)
    # Sequences of one length are walked through together.
    for length in np.unique(lengths[lengths > 0]):
        members = np.flatnonzero(lengths == length)
        rows = _posteriors(source, np.stack([codes[i] for i in members]))
        for i, row in zip(members, rows, strict=True):
            found[i] = row
    return found


def _posteriors(source: Bunch, symbols: IntArray) -> FloatArray:
    """Return the posteriors of sequences of one length, (S, T, K)."""
    if source.mixing == "local":
        return _sums(source, source.alpha, symbols)[1]
    likelihoods, posteriors = zip(*(_sums(source, alpha, symbols) for alpha in (0, 1)), strict=True)
    with np.errstate(divide="ignore"):
        logs = np.stack(likelihoods) + np.log([[1.0 - source.alpha], [source.alpha]])
    shares = np.exp(logs - logs.max(axis=0))
    mixed: FloatArray = np.einsum("ms,mstk->stk", shares / shares.sum(axis=0), np.stack(posteriors))
    return mixed


def _sums(source: Bunch, alpha: float, symbols: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return log P(x), (S,), and posteriors, (S, T, K), of steps with a weight of second order."""
    n_sequences, length = symbols.shape
    transition = alpha * source.transition2 + (1.0 - alpha) * source.transition1[None]
    emission = alpha * source.emission2 + (1.0 - alpha) * source.emission1[:, None]
    # Of the label before (any one stands for none) and the label of a token.
    n_labels = len(source.start)
    forward = np.zeros((length, n_sequences, n_labels, n_labels))
    forward[0, :, 0] = source.start * source.emission1[:, symbols[:, 0]].T
    shown = emission[:, symbols[:, :-1], symbols[:, 1:]].transpose(2, 1, 0)
    likelihood = np.zeros(n_sequences)
    for t in range(length):
        if t == 1:
            forward[t] = forward[0, :, 0, :, None] * source.transition1
        elif t > 1:
            forward[t] = np.einsum("sij,ijk->sjk", forward[t - 1], transition)
        if t > 0:
            forward[t] *= shown[t - 1][:, None]
        scale = forward[t].sum(axis=(1, 2))
        with np.errstate(divide="ignore"):
            likelihood += np.log(scale)
        forward[t] /= np.where(scale > 0.0, scale, 1.0)[:, None, None]
    posteriors = np.empty((n_sequences, length, n_labels))
    backward = np.ones((n_sequences, n_labels, n_labels))
    for t in range(length - 1, -1, -1):
        joint = (forward[t] * backward).sum(axis=1)
        sums = joint.sum(axis=1, keepdims=True)
        posteriors[:, t] = np.divide(joint, sums, out=np.zeros_like(joint), where=sums > 0.0)
        if t > 0:
            steps = transition if t > 1 else np.broadcast_to(source.transition1, transition.shape)
            backward = np.einsum("ijk,sk,sjk->sij", steps, shown[t - 1], backward)
            largest = backward.max(axis=(1, 2), keepdims=True)
            backward /= np.where(largest > 0.0, largest, 1.0)
    return likelihood, posteriors
