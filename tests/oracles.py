"""Slow and plainly right answers: enumeration of all paths, sums of logarithms, differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from hypothesis import strategies as st
from scipy.special import logsumexp

from crfkit._types import Counts, Potentials
from crfkit.data.targets import Targets, Weights
from crfkit.losses import Loss
from crfkit.structures import ChainPotentials, SegmentPotentials, SparseChain, Structure
from crfkit.structures.potentials import make_spans


def evaluate(
    loss: Loss, structure: Structure, scores: Potentials, labels: np.ndarray, weight: np.ndarray,
    allowed: np.ndarray | None = None, soft: np.ndarray | None = None,
) -> tuple[float, Counts]:  # fmt: skip
    """Return a loss and its gradient, given weights of tokens."""
    out, weights = structure.zeros(scores), Weights.of(weight, scores.offsets)
    targets = Targets(labels, allowed, soft)
    return loss.value_and_grad(structure, scores, targets, weights, out), out


def chain_paths(scores: Potentials, s: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield every labeling of sequence `s` with its score, lowest labels first."""
    begin, end = scores.offsets[s : s + 2]
    n_labels = scores.unary.shape[1]
    for path in product(range(n_labels), repeat=int(end - begin)):
        total = 0.0
        for t, label in zip(range(begin, end), path, strict=True):
            total += scores.unary[t, label]
            if t > begin:
                total += scores.pair[table_of(scores, t), path[t - begin - 1], label]
        yield path, total


def table_of(scores: Potentials, t: int) -> int:
    """Return which table of pair scores the step into token `t` has."""
    index = scores.transition_index
    return int(index[t if len(index) > 1 else 0])


def enumerated_sum(scores: Potentials, weight: np.ndarray) -> tuple[np.ndarray, Counts]:
    """Return log Z and the weighted expected counts by enumeration."""
    out = Counts(np.zeros_like(scores.unary), np.zeros_like(scores.pair))
    log_z = np.zeros(len(scores.offsets) - 1)
    for s in range(len(log_z)):
        paths = list(chain_paths(scores, s))
        log_z[s] = logsumexp([score for _, score in paths])
        for path, score in paths:
            add_path(scores, s, path, weight[s] * np.exp(score - log_z[s]), out)
    return log_z, out


def add_path(scores: Potentials, s: int, path: tuple, amount: float, out: Counts) -> None:
    """Add an amount to the parts of a path."""
    begin = scores.offsets[s]
    for i, label in enumerate(path):
        out.unary[begin + i, label] += amount
        if i:
            out.pair[table_of(scores, begin + i), path[i - 1], label] += amount


def enumerated_max(scores: Potentials, s: int) -> float:
    """Return the largest score of sequence `s`."""
    return max(score for _, score in chain_paths(scores, s))


def log_domain_sum(scores: Potentials, s: int) -> tuple[float, np.ndarray]:
    """Return log Z and the marginals of sequence `s` by sums of logarithms in long doubles."""
    begin, end = (int(i) for i in scores.offsets[s : s + 2])
    steps = np.stack([scores.pair[table_of(scores, t)] for t in range(begin, end)])
    log_z, marginals = log_domain_sums(scores.unary[begin:end], steps)
    return float(log_z), marginals


def log_domain_sums(unary: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Do that for sequences side by side, (T, ..., K) and (T or 1, ..., K, K)."""
    unary, steps = unary.astype(np.longdouble), steps.astype(np.longdouble)
    alpha, beta = unary.copy(), np.zeros_like(unary)
    log_z = np.zeros(unary.shape[1:-1], np.longdouble)
    for t in range(len(unary)):
        if t:
            step = steps[t if len(steps) > 1 else 0]
            alpha[t] += log_sum(alpha[t - 1][..., None] + step, axis=-2)
        norm = log_sum(alpha[t], axis=-1)
        alpha[t] -= norm[..., None]
        log_z = log_z + norm
    for t in range(len(unary) - 1, 0, -1):
        step = steps[t if len(steps) > 1 else 0]
        beta[t - 1] = log_sum(step + (unary[t] + beta[t])[..., None, :], axis=-1)
        beta[t - 1] -= beta[t - 1].max(axis=-1, keepdims=True)
    joint = alpha + beta
    return log_z.astype(float), np.exp(joint - log_sum(joint, axis=-1)[..., None]).astype(float)


def log_sum(values: np.ndarray, axis: int) -> np.ndarray:
    """Return the logarithm of a sum of exponentials."""
    top = values.max(axis=axis, keepdims=True)
    return np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis)


def finite_difference(
    function: Callable[[np.ndarray], float], at: np.ndarray, step: float = 1e-5
) -> np.ndarray:
    """Return the gradient by differences of fourth order."""
    gradient = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        values = []
        for factor in (-2, -1, 1, 2):
            moved = at.copy()
            moved[place] += factor * step
            values.append(function(moved))
        gradient[place] = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
    return gradient


def random_scores(
    seed: int,
    lengths: list[int],
    n_labels: int,
    *,
    own_steps: bool = False,
    shared_tables: bool = False,
    scale: float = 1.0,
    forbidden: float = 0.0,
) -> Potentials:
    """Return scores in which some labels and steps are forbidden, but not those of label 0.

    Each step has pair scores of its own, or one of three tables, or all have the same.
    """
    rng = np.random.default_rng(seed)
    n_tokens = sum(lengths)
    unary = scale * rng.normal(size=(n_tokens, n_labels))
    n_tables = 3 if shared_tables else n_tokens if own_steps else 1
    pair = scale * rng.normal(size=(n_tables, n_labels, n_labels))
    if forbidden:
        unary[:, 1:][rng.random(unary[:, 1:].shape) < forbidden] = -np.inf
        blocked = rng.random(pair.shape) < forbidden
        blocked[:, 0, 0] = False
        pair[blocked] = -np.inf
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    if not shared_tables:
        return ChainPotentials.of(unary, pair, offsets)
    return ChainPotentials(unary, pair, rng.integers(3, size=n_tokens).astype(np.uint32), offsets)


def thinned(scores: Potentials, structure: SparseChain) -> Potentials:
    """Return the scores of a chain as those of one that scores some steps of the first table."""
    pair = scores.pair[:1, structure.source, structure.target]
    return ChainPotentials.of(scores.unary, pair, scores.offsets, scores.first)


def filled_up(scores: Potentials, structure: SparseChain) -> Potentials:
    """Return the scores of a sparse chain as those of a dense one."""
    pair = np.zeros((1, structure.n_labels, structure.n_labels))
    pair[:, structure.source, structure.target] = scores.pair
    return scores._replace(pair=pair)


@st.composite
def sparse_chain_scores(
    draw: st.DrawFn, scales: tuple[float, ...] = (0.1, 1.0, 50.0)
) -> tuple[SparseChain, Potentials]:
    """Draw scores of up to three short sequences, a few of whose steps have a score."""
    scores = draw(chain_scores(scales))
    n_labels = scores.unary.shape[1]
    scored = np.array(draw(st.lists(st.booleans(), min_size=n_labels**2, max_size=n_labels**2)))
    structure = SparseChain(*np.nonzero(scored.reshape(n_labels, n_labels)), n_labels)
    thin = thinned(scores, structure)
    step_scale = draw(st.sampled_from((0.1, 1.0, 50.0)))
    return structure, thin._replace(pair=step_scale * thin.pair)


@st.composite
def chain_scores(draw: st.DrawFn, scales: tuple[float, ...] = (0.1, 1.0, 30.0)) -> Potentials:
    """Draw scores of up to three short sequences."""
    return random_scores(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.lists(st.integers(0, 4), min_size=1, max_size=3).filter(any)),
        draw(st.integers(1, 4)),
        **draw(st.sampled_from(({}, {"own_steps": True}, {"shared_tables": True}))),
        scale=draw(st.sampled_from(scales)),
        forbidden=draw(st.sampled_from((0.0, 0.4))),
    )


def segmentations(length: int, n_labels: int, longest: int) -> Iterator[list[tuple[int, int, int]]]:
    """Yield every list of segments (first, after the last, label) of a sequence."""
    if length == 0:
        yield []
        return
    for size in range(1, min(longest, length) + 1):
        for rest in segmentations(length - size, n_labels, longest):
            for label in range(n_labels):
                yield [*rest, (length - size, length, label)]


def segment_parts(scores: Potentials, s: int, path: list) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the places of the scores of a segmentation: those in `unary` and in `pair`."""
    size, begin = scores.n_labels, scores.offsets[s]
    spans = scores.spans
    before = None
    for first, last, label in path:
        for t in range(begin + first, begin + last):
            yield "unary", (t, label + (size if t == begin + first else 0))
        yield "unary", (begin + last - 1, 2 * size + label)
        if last - first == 1:
            yield "unary", (begin + first, 3 * size + label)
        yield "pair", (scores.n_transitions + last - first - 1, label)
        if before is not None:
            yield "pair", (table_of(scores, begin + first) * size + before, label)
        end = begin + last - 1
        for q in range(spans.end_ptr[end], spans.end_ptr[end + 1]):
            if spans.end_length[q] == last - first:
                yield "pair", (scores.n_transitions + scores.n_lengths + spans.end_row[q], label)
        before = label


def all_segmentations(scores: Potentials, s: int) -> list[tuple[list, float]]:
    """Return every segmentation of sequence `s` with its score."""
    length = int(scores.offsets[s + 1] - scores.offsets[s])
    longest, size = scores.n_lengths, scores.pair.shape[1]
    found = []
    for path in segmentations(length, size, longest):
        places = segment_parts(scores, s, path)
        found.append((path, sum(getattr(scores, kind)[place] for kind, place in places)))
    return found


def enumerated_segments(scores: Potentials, weight: np.ndarray) -> tuple[np.ndarray, Counts]:
    """Return log Z and the weighted expected counts by enumeration of segmentations."""
    out = Counts(np.zeros_like(scores.unary), np.zeros_like(scores.pair))
    log_z = np.zeros(len(scores.offsets) - 1)
    for s in range(len(log_z)):
        paths = all_segmentations(scores, s)
        log_z[s] = logsumexp([score for _, score in paths])
        for path, score in paths:
            for kind, place in segment_parts(scores, s, path):
                getattr(out, kind)[place] += weight[s] * np.exp(score - log_z[s])
    return log_z, out


def codes_of(path: list, n_labels: int) -> list[int]:
    """Return the codes of the tokens of a segmentation."""
    codes = []
    for first, last, label in path:
        codes += [label + n_labels] + [label] * (last - first - 1)
    return codes


def edit_similarity(text: str, entry: str) -> float:
    """Return 1 minus the edit distance of two strings over the length of the longer one."""
    row = list(range(len(entry) + 1))
    for i, x in enumerate(text, 1):
        before, row = row, [i]
        for j, y in enumerate(entry, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
    return 1 - row[-1] / max(len(text), len(entry))


def random_runs(
    rng: np.random.Generator, offsets: np.ndarray, longest: int, share: float
) -> np.ndarray:
    """Return a share of all runs of tokens up to a length: first tokens, those after the last."""
    runs = [
        (start, stop)
        for begin, end in zip(offsets[:-1], offsets[1:], strict=True)
        for start in range(begin, end)
        for stop in range(start + 1, min(start + longest, end) + 1)
        if rng.random() < share
    ]
    return np.array(runs, np.int64).reshape(-1, 2).T


def random_segment_codes(
    rng: np.random.Generator, offsets: np.ndarray, longest: np.ndarray, forbidden: np.ndarray
) -> np.ndarray:
    """Return codes of segmentations, given the longest segments of labels and forbidden steps."""
    codes, size = np.zeros(offsets[-1], np.int32), len(longest)
    for t, end in zip(offsets[:-1], offsets[1:], strict=True):
        allowed = np.arange(size)
        while t < end:
            label = rng.choice(allowed)
            stop = min(t + rng.integers(1, longest[label] + 1), end)
            codes[t:stop] = label
            codes[t] += size
            t, allowed = stop, np.flatnonzero(~forbidden[label])
    return codes


def random_segment_scores(
    seed: int,
    lengths: list[int],
    n_labels: int,
    longest: int,
    *,
    scale: float = 1.0,
    forbidden: float = 0.0,
    own_steps: bool = False,
) -> Potentials:
    """Return scores of segments, a third of which have one of three rows of their own.

    Some are forbidden, but not those of the segments of one token and of label 0.
    """
    rng = np.random.default_rng(seed)
    n_tokens = sum(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n_tables = 2 if own_steps else 1
    unary = scale * rng.normal(size=(n_tokens, 4 * n_labels))
    pair = scale * rng.normal(size=(n_tables * n_labels + longest + 3, n_labels))
    if forbidden:
        for block in (unary, pair):
            blocked = rng.random(block.shape) < forbidden
            blocked[:, ::n_labels] = False
            block[blocked] = -np.inf
    listed = [
        (stop, length)
        for b, e in zip(offsets[:-1], offsets[1:], strict=True)
        for stop in range(b + 1, e + 1)
        for length in range(1, min(longest, stop - b) + 1)
        if rng.random() < 1 / 3
    ]
    stops, sizes = np.array(listed, np.int64).reshape(-1, 2).T
    spans = make_spans(n_tokens, stops, sizes, rng.integers(3, size=len(listed)))
    table = rng.integers(n_tables, size=n_tokens if own_steps else 1).astype(np.uint32)
    return SegmentPotentials(unary, pair, table, offsets, 0, n_tables * n_labels, longest, spans)


@st.composite
def segment_scores(draw: st.DrawFn, scales: tuple[float, ...] = (0.1, 1.0, 50.0)) -> Potentials:
    """Draw scores of the segments of up to three short sequences."""
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    return random_segment_scores(
        draw(st.integers(0, 2**16)), lengths, draw(st.integers(1, 3)), draw(st.integers(1, 5)),
        scale=draw(st.sampled_from(scales)), forbidden=draw(st.sampled_from([0.0, 0.3])),
        own_steps=draw(st.booleans()),
    )  # fmt: skip
