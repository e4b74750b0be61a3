"""A structure: labels around a ring, where the first token follows the last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import logsumexp

from crfkit._types import BoolArray, CodeArray, Counts, FloatArray, IntArray
from crfkit.structures import ChainPotentials, NoPathError, Structure


class Ring(Structure[ChainPotentials]):
    """A chain whose first token follows its last; a single token has no transition."""

    potentials = ChainPotentials

    def log_partition(self, scores: ChainPotentials, weight: FloatArray, out: Counts) -> FloatArray:
        log_z = np.zeros(len(weight))
        for s, tokens, unary, index in _sequences(scores):
            tables = scores.pair[index]
            before, after = _before(unary, tables), _after(unary, tables, logsumexp)
            log_z[s] = logsumexp(before[-1] + after[-1])
            if np.isneginf(log_z[s]):
                raise NoPathError(scores.first + s, int(np.isfinite(before[:-1]).any((1, 2)).sum()))
            joint = weight[s] * np.exp(before + after - log_z[s])  # [t, first label, label]
            out.unary[tokens] = joint.sum(axis=1)
            for t in range(1, len(unary)):
                ahead = tables[t] + (unary[t] + after[t])[:, None] - log_z[s]
                out.pair[index[t]] += weight[s] * np.exp(before[t - 1][:, :, None] + ahead).sum(0)
            out.pair[index[0]] += joint[-1].T * (len(unary) > 1)
        return log_z

    def argmax(self, scores: ChainPotentials) -> tuple[CodeArray, FloatArray]:
        labels = np.zeros(len(scores.unary), np.int32)
        for _, tokens, unary, index in _sequences(scores):
            tables, path = scores.pair[index], labels[tokens]
            after = _after(unary, tables, np.max)
            path[0] = np.argmax(unary[0] + after[0].diagonal())
            for t in range(1, len(path)):  # the lowest of the best labels, given those before
                path[t] = np.argmax(unary[t] + tables[t][path[t - 1]] + after[t][path[0]])
        value = self.score(scores, labels)
        if np.isneginf(value).any():
            self.log_partition(scores, value, self.zeros(scores))  # raises
        return labels, value

    def score(self, scores: ChainPotentials, labels: CodeArray) -> FloatArray:
        value = np.zeros(len(scores.offsets) - 1)
        for s, tokens, unary, index in _sequences(scores):
            pairs = scores.pair[_around(index, labels[tokens])]
            value[s] = unary[np.arange(len(unary)), labels[tokens]].sum() + pairs.sum()
        return value

    def restricted(
        self, scores: ChainPotentials, steps: BoolArray, which: IntArray | None = None
    ) -> tuple[Structure, ChainPotentials]:
        steps = steps if which is None else steps[which]
        pair = np.where(steps, scores.pair[scores.transition_index], -np.inf)
        return self, ChainPotentials.of(scores.unary, pair, scores.offsets, scores.first)

    def add_counts(
        self, scores: ChainPotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        for s, tokens, unary, index in _sequences(scores):
            out.unary[tokens][np.arange(len(unary)), labels[tokens]] += weight[s]
            np.add.at(out.pair, _around(index, labels[tokens]), weight[s])


def _sequences(scores: ChainPotentials) -> Iterator[tuple[int, slice, FloatArray, Any]]:
    """Number, tokens, scores of labels and tables of each sequence that is not empty."""
    index = np.broadcast_to(scores.transition_index, len(scores.unary))
    for s, (start, end) in enumerate(zip(scores.offsets, scores.offsets[1:], strict=False)):
        if start < end:
            yield s, slice(start, end), scores.unary[start:end], index[start:end]


def _around(index: Any, path: CodeArray) -> tuple[Any, CodeArray, CodeArray]:
    """Where the transitions around a ring have their scores."""
    some = slice(len(path) * (len(path) > 1))
    return index[some], np.roll(path, 1)[some], path[some]


def _after(unary: FloatArray, tables: FloatArray, total: Any) -> FloatArray:
    """From label j of token t around to label k of the first: [t, k, j]."""
    after = np.zeros((*unary.shape, unary.shape[1]))
    after[-1] = tables[0].T if len(unary) > 1 else 0.0
    for t in range(len(unary) - 2, -1, -1):
        after[t] = total(tables[t + 1] + (unary[t + 1] + after[t + 1])[:, None], axis=2)
    return after


def _before(unary: FloatArray, tables: FloatArray) -> FloatArray:
    """From label k of the first token to label j of token t: [t, k, j]."""
    before = np.full((*unary.shape, unary.shape[1]), -np.inf)
    np.fill_diagonal(before[0], unary[0])
    for t in range(1, len(unary)):
        before[t] = logsumexp(before[t - 1][:, :, None] + tables[t], axis=1) + unary[t]
    return before
