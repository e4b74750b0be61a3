"""Weights that are counted, not searched for: a generative start for solvers.

A hidden Markov model is fitted by counting (Rabiner 1989), and a conditional random field of the
same features may start there (Gross, Russakovsky, Do and Batzoglou 2006, section 4). With counts
``n``, each increased by 1, the probability of labels given what tokens are is::

    P(y | x) ~ prod_t P(y_t | x_t) prod_t P(y_t | y_{t-1}) / Q(y_t)

Of a token with one attribute that is the posterior of the hidden Markov model. Attributes overlap,
so ``P(y_t | x_t)`` is the geometric mean of their ``P(label | attribute)``: each of the `m`
attributes that a token has on average counts as an `m`-th of the evidence. ``Q`` is the mean of
``P(y_t | x_t)`` over the tokens, which for rare labels is more than their share. Pairs of an
attribute and a label that do not occur have no weight, or 0; so the weights are relative to these::

    w[a, k] = log(1 + n[a, k]) / m
    v[j, k] = log P(k | j) / Q(k) - c

and ``c``, which all transitions share, is the mean of ``log P(k | j) / Q(k)`` over those without a
weight. First and last labels are transitions from the start and to the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from crfkit._types import FloatArray, IntArray
from crfkit.data import PackedSequences
from crfkit.potentials.blocks import Pattern
from crfkit.potentials.chain_blocks import (
    EndBlock,
    StartBlock,
    StateBlock,
    TransitionBlock,
    boundary_rows,
)
from crfkit.potentials.linear import LinearModel

# Scores of labels that are looked at together.
CELLS = 1 << 22


class Evidence(NamedTuple):
    """What is known of the labels of N tokens."""

    shares: sp.csr_array  # (N, K) how much of each label a token has; a row of 0: it is not known
    weight: FloatArray  # (N,) of tokens
    before: IntArray  # (N,) the token that a transition comes from, -1 for none


def count_weights(model: LinearModel, data: PackedSequences, known: Evidence) -> FloatArray:
    """Return parameters, shape (P,), from counts of attributes, labels and transitions.

    Those of attributes that are negative somewhere, of attributes of transitions, and what only
    segments have, are 0.
    """
    weighted = sp.csr_array(known.shares * known.weight[:, None])
    shares = _log_shares(np.asarray(weighted.sum(axis=0)))
    pattern = next(block.pattern for block in model.blocks if block.name == StateBlock.name)
    state = _attribute_weights(pattern, data, weighted)
    told = np.log(_mean_posterior(pattern.matrix(state), data, known))
    first, last = (
        boundary_rows(data.offsets)
        if data.topology is None
        else (data.topology.first_tokens, data.topology.last_tokens)
    )
    found = []
    for block in model.blocks:
        if block.name == StateBlock.name:
            found.append(state)
        elif block.name == TransitionBlock.name:
            # As many transitions has each labeling of tokens, but not each segmentation.
            shifted = model.n_codes == model.n_labels
            found.append(_transition_weights(block.pattern, weighted, known, told, shifted))
        elif block.name == StartBlock.name:
            found.append(_log_shares(np.asarray(weighted[first].sum(axis=0))) - told)
        elif block.name == EndBlock.name:
            found.append(_log_shares(np.asarray(weighted[last].sum(axis=0))) - shares)
        else:
            found.append(np.zeros(block.n_parameters))
    return np.concatenate(found)


def _log_shares(counts: FloatArray) -> FloatArray:
    """Return the logarithms of the shares of counts, each increased by 1, along the last axis."""
    raised = counts + 1.0
    shares: FloatArray = np.log(raised) - np.log(raised.sum(axis=-1, keepdims=True))
    return shares


def _attribute_weights(pattern: Pattern, data: PackedSequences, labels: sp.csr_array) -> FloatArray:
    """Return ``log(1 + n[a, k]) / m`` at the places of a pattern."""
    values = data.to_csr()
    counted = np.ones(data.n_features, bool)
    counted[values.indices[values.data < 0.0]] = False
    counts = sp.csr_array(values.T @ labels)
    counts.data[~np.repeat(counted, np.diff(counts.indptr))] = 0.0
    counts.sort_indices()
    total, tokens = float(counts.data.sum()), float(labels.data.sum())
    weights = np.zeros(len(pattern.columns))
    if total:
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        numbers = rows * pattern.n_columns + counts.indices
        wanted = pattern.numbers
        places = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
        seen = numbers[places] == wanted
        weights[seen] = np.log1p(counts.data[places[seen]]) * tokens / total
    return weights


def _mean_posterior(weights: sp.csr_array, data: PackedSequences, known: Evidence) -> FloatArray:
    """Return the mean of what the attributes of known tokens tell of labels, shape (K,)."""
    size = known.shares.shape[1]
    tokens = np.flatnonzero(known.weight * known.shares.sum(axis=1) > 0.0)
    weights, total = sp.csr_array(weights[:, :size]), np.zeros(size)
    for part in np.array_split(tokens, 1 + len(tokens) * size // CELLS):
        scores = (data.take_tokens(part).to_csr() @ weights).toarray()
        total += known.weight[part] @ softmax(scores, axis=1)
    if not len(tokens):
        return np.full(size, 1.0 / size)
    mean: FloatArray = total / total.sum()
    return mean


def _transition_weights(
    pattern: Pattern, labels: sp.csr_array, known: Evidence, told: FloatArray, are_shifted: bool
) -> FloatArray:
    """Return ``log P(k | j) / Q(k) - c`` at the places of a pattern, c = 0 if not shifted."""
    after = np.flatnonzero(known.before >= 0)
    pairs = (known.shares[known.before[after]].T @ labels[after]).toarray()
    raised = pairs + 1.0
    odds = _log_shares(pairs) - told
    weighted = pattern.matrix(np.ones(len(pattern.columns))).toarray() > 0.0
    shift = 0.0
    if are_shifted and not weighted.all():
        often = np.outer(raised.sum(axis=1), raised.sum(axis=0))[~weighted]
        shift = float(np.average(odds[~weighted], weights=often))
    found: FloatArray = odds[pattern.rows, pattern.columns] - shift
    return found
