"""Probabilities of spans in linear chains: that labels of a kind begin, go on and end there.

Shapes as in :mod:`crfkit.kernels.chain.arrays`. Given the data, labels are a Markov chain: the next
label ``j`` follows ``i`` with the probability ``factor(i, j) message_t(j) / beta_{t-1}(i)``. A span
is a sum over its paths, with the labels left out that do not open it, go on with it, or close it:
all terms are probabilities, so that small ones keep their digits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import BoolArray, FloatArray, IntArray, ReadSpans
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.arrays import ChainExponentials, ChainScores, ChainWorkspace, Run
from crfkit.kernels.chain.sum import OK, _backward, forward


class SpanCodes(NamedTuple):
    """What labels say of spans. Read-only."""

    ptr: IntArray  # (Y + 1,) where the labels of each type of spans are listed, and the end
    label: IntArray  # these labels
    opens: BoolArray  # (K + 1, K) label (axis 1) after label (axis 0), the last row at the start
    continues: BoolArray  # (K, K) label (axis 1) goes on with the span of label (axis 0)
    closes: BoolArray  # (K, K + 1) the span of label (axis 0) ends before label (axis 1) or the end


class SpanSteps(NamedTuple):
    """What tells the probability of each label given the one before. Read-only.

    Of sequences that are summed by logarithms, `message` and `inverse` are logarithms, and steps
    those of the scores.
    """

    pair: FloatArray  # (M, K, K) scores
    factor: FloatArray  # (M, K, K) their exponentials, but for the shift of each table
    marginals: FloatArray  # (N, K)
    message: FloatArray  # (N, K) node times beta, what follows a label, and a scale
    inverse: FloatArray  # (N, K) one over beta
    in_logs: BoolArray  # (S,)


class FoundSpans(NamedTuple):
    """Room for spans that are found."""

    start: IntArray  # (n,)
    stop: IntArray
    type: IntArray
    probability: FloatArray


@kernel
def chain_messages(
    scores: ChainScores,
    exponentials: ChainExponentials,
    workspace: ChainWorkspace,  # of N rows: out
    marginals: FloatArray,  # (N, K) out
    status: IntArray,  # (S,) out: what others say of a sequence is only valid where it is OK
) -> None:
    """Forward and backward vectors of all tokens, in the linear domain."""
    offsets, index = scores.offsets, scores.transition_index
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        run = Run(begin, end, begin)
        status[s] = OK
        if begin < end:
            status[s] = forward(scores, exponentials, run, begin, end, workspace)
        if begin < end and status[s] == OK:
            _backward(exponentials, index, run, begin, end, 1.0, workspace, marginals)


@part
def _step(steps: SpanSteps, logs: bool, m: int, t: int, i: int, j: int) -> float:
    """Return ``P(y_t = j | y_{t-1} = i)``, where `i` has a probability."""
    if logs:
        shared = steps.pair[m, i, j] + steps.message[t, j]
        return math.exp(shared + steps.inverse[t - 1, i]) if shared > -math.inf else 0.0
    share: float = steps.factor[m, i, j]
    if share > 0.0:  # else the product of the others may be infinite
        share = share * steps.message[t, j] * steps.inverse[t - 1, i]
    return share


@part
def _begin(steps: SpanSteps, codes: SpanCodes, logs: bool, m: int, t: int, first: bool,
           label: int) -> float:  # fmt: skip
    """Return the probability that a label at a token begins a span.

    What does not begin one is taken from the whole, where that is the larger part.
    """
    size = steps.marginals.shape[1]
    whole: float = steps.marginals[t, label]
    if first or whole == 0.0:
        return whole if first and codes.opens[size, label] else 0.0
    rest, opens = 0.0, 0.0
    for i in range(size):
        if not codes.opens[i, label] and steps.marginals[t - 1, i] > 0.0:
            rest += steps.marginals[t - 1, i] * _step(steps, logs, m, t, i, label)
    if rest <= 0.5 * whole:
        return whole - rest
    for i in range(size):
        if codes.opens[i, label] and steps.marginals[t - 1, i] > 0.0:
            opens += steps.marginals[t - 1, i] * _step(steps, logs, m, t, i, label)
    return opens


@part
def _end(steps: SpanSteps, codes: SpanCodes, logs: bool, m: int, t: int, last: bool,
         label: int) -> float:  # fmt: skip
    """Return the probability, given the label before the token `t`, that a span ends with it."""
    size = steps.marginals.shape[1]
    if last:
        return 1.0 if codes.closes[label, size] else 0.0
    rest, closes = 0.0, 0.0
    for j in range(size):
        if not codes.closes[label, j]:
            rest += _step(steps, logs, m, t, label, j)
    if rest <= 0.5:
        return 1.0 - rest
    for j in range(size):
        if codes.closes[label, j]:
            closes += _step(steps, logs, m, t, label, j)
    return closes


@part
def _enter(steps: SpanSteps, codes: SpanCodes, logs: bool, m: int, t: int, first: bool, kind: int,
           reached: FloatArray) -> float:  # fmt: skip
    """Write the probabilities that a span of a type begins with each of its labels."""
    total = 0.0
    for n in range(codes.ptr[kind], codes.ptr[kind + 1]):
        reached[0, n] = _begin(steps, codes, logs, m, t, first, codes.label[n])
        total += reached[0, n]
    return total


@part
def _go_on(steps: SpanSteps, codes: SpanCodes, logs: bool, m: int, t: int, kind: int,
           reached: FloatArray) -> float:  # fmt: skip
    """Replace the probabilities that a span has each of its labels before `t` by those at it."""
    low, high, total = codes.ptr[kind], codes.ptr[kind + 1], 0.0
    for n in range(low, high):
        reached[1, n] = reached[0, n]
        reached[0, n] = 0.0
    for a in range(low, high):
        for b in range(low, high):
            i, j = codes.label[a], codes.label[b]
            if reached[1, a] > 0.0 and codes.continues[i, j]:
                reached[0, b] += reached[1, a] * _step(steps, logs, m, t, i, j)
    for n in range(low, high):
        total += reached[0, n]
    return total


@part
def _leave(steps: SpanSteps, codes: SpanCodes, logs: bool, m: int, t: int, last: bool, kind: int,
           reached: FloatArray) -> float:  # fmt: skip
    """Return the probability of the span that ends before the token `t`."""
    total = 0.0
    for n in range(codes.ptr[kind], codes.ptr[kind + 1]):
        if reached[0, n] > 0.0:
            share = _end(steps, codes, logs, m, t, last, codes.label[n])
            total += reached[0, n] * share
    return min(total, 1.0)


@kernel
def chain_spans(
    scores: ChainScores,
    steps: SpanSteps,
    codes: SpanCodes,
    sequence: IntArray,  # (n,) that a span is of
    asked: ReadSpans,  # (n,)
    reached: FloatArray,  # (2, K) workspace
    probability: FloatArray,  # (n,) out
) -> None:
    """``P(y_a, ..., y_{b-1} open, continue and close a span of this type, with y_b | x)``."""
    index, stride = scores.transition_index, min(scores.transition_index.shape[0] - 1, 1)
    for n in range(sequence.shape[0]):
        s, start, stop, kind = sequence[n], asked.start[n], asked.stop[n], asked.type[n]
        logs, begin, end = steps.in_logs[s], scores.offsets[s], scores.offsets[s + 1]
        m = index[start * stride]
        left = _enter(steps, codes, logs, m, start, start == begin, kind, reached)
        for t in range(start + 1, stop):
            if left > 0.0:
                left = _go_on(steps, codes, logs, index[t * stride], t, kind, reached)
        m = index[min(stop, end - 1) * stride]
        probability[n] = 0.0
        if left > 0.0:
            ends = _leave(steps, codes, logs, m, stop, stop == end, kind, reached)
            probability[n] = ends


@part
def _may_begin(steps: SpanSteps, codes: SpanCodes, t: int, kind: int, least: float) -> bool:
    """Whether the labels of a type are at least so probable at a token."""
    mass = 0.0
    for n in range(codes.ptr[kind], codes.ptr[kind + 1]):
        mass += steps.marginals[t, codes.label[n]]
    return mass >= least


@kernel
def chain_likely_spans(
    scores: ChainScores,
    steps: SpanSteps,
    codes: SpanCodes,
    least: float,
    found: FoundSpans,  # out
    reached: FloatArray,  # (2, K) workspace
) -> int:
    """Find the spans of at least some probability; returns how many there are.

    By their first tokens, then types, then lengths; more than there is room for are only counted.
    A span is given up where its beginning is less likely to go on.
    """
    index, stride = scores.transition_index, min(scores.transition_index.shape[0] - 1, 1)
    count = 0
    for s in range(scores.offsets.shape[0] - 1):
        logs, begin, end = steps.in_logs[s], scores.offsets[s], scores.offsets[s + 1]
        for start in range(begin, end):
            for kind in range(codes.ptr.shape[0] - 1):
                if not _may_begin(steps, codes, start, kind, least):
                    continue
                m, t = index[start * stride], start + 1
                left = _enter(steps, codes, logs, m, start, start == begin, kind, reached)
                while left >= least:
                    m = index[min(t, end - 1) * stride]
                    ends = _leave(steps, codes, logs, m, t, t == end, kind, reached)
                    if ends >= least:
                        if count < found.start.shape[0]:
                            found.start[count], found.stop[count] = start, t
                            found.type[count], found.probability[count] = kind, ends
                        count += 1
                    if t == end:
                        break
                    left = _go_on(steps, codes, logs, m, t, kind, reached)
                    t += 1
    return count
