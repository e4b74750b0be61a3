"""Where expectation maximization starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._parallel import cut
from crfkit._types import BoolArray, FloatArray, Random
from crfkit.data import PackedSequences
from crfkit.data.targets import Targets
from crfkit.generative.base import HiddenCounts, HiddenTables, Smoothing, StepCounts, StepTables
from crfkit.generative.counting import count_transitions, estimate
from crfkit.generative.model import HiddenMarkovModel

# What tokens of unknown labels weigh together, as a share of those whose label is known.
VAGUE = 0.1
# Transitions of a start at random: large numbers are close to equal probabilities.
CONCENTRATION = 10.0
BATCH = 1 << 14
# The probability of the end at most, of a start at random.
MOST_STOP = 0.9


def start_from(
    model: HiddenMarkovModel,
    smoothing: Smoothing,
    data: PackedSequences,
    targets: Targets,
    weight: FloatArray,
    random: Random,
) -> HiddenTables:
    """Return probabilities that follow from what is known of labels.

    Tokens with a known label are counted. The others count a little for each label that they may
    have, so that no token has the probability 0; their shares are not quite equal, as EM would not
    tell labels apart of which all is equal.
    """
    weights = np.repeat(weight, data.lengths)
    single = targets.single if targets.soft is None else targets.soft.max(axis=1) >= 1.0
    known, vague = weights[single].sum(), weights[~single].sum()
    scale = min(1.0, VAGUE * known / vague) if known and vague else 1.0
    total: Any = None
    for tokens in cut(slice(0, data.n_tokens), BATCH):
        some = targets.take(tokens)
        shares = some.mask(model.n_labels) / 1.0 if some.soft is None else some.soft.copy()
        shares = _perturbed(shares, single[tokens], scale, random) * weights[tokens, None]
        found = model.emission.count(data, tokens, shares)
        total = found if total is None else tuple(a + b for a, b in zip(total, found, strict=True))
    steps = _known_steps(model, data, targets, single, weights)
    return estimate(model, smoothing, HiddenCounts(steps, total), data)


def _perturbed(shares: FloatArray, single: BoolArray, scale: float, random: Random) -> FloatArray:
    """Return shares of labels that add up to 1, or to `scale` where no single label is known."""
    noise = random.uniform(0.9, 1.1, shares.shape)
    shares = shares * np.where(single[:, None], 1.0, noise)
    shares /= shares.sum(axis=1, keepdims=True)
    return shares * np.where(single, 1.0, scale)[:, None]


def _known_steps(
    model: HiddenMarkovModel,
    data: PackedSequences,
    targets: Targets,
    single: BoolArray,
    weights: FloatArray,
) -> StepCounts:
    """Return the counts of known labels next to each other, and some more of all transitions."""
    size, before = model.n_labels, data.before
    is_first = before < 0
    one = is_first | single[before]
    both = single & one & (is_first | one[before])
    ends = count_transitions(targets.states, data.offsets, weights * single, model)
    if model.order < 2:
        both = single & one
    inner = count_transitions(targets.states, data.offsets, weights * both, model)
    counts = StepCounts(ends.start, inner.steps, ends.end, inner.triples)
    a_row = max(VAGUE * counts.steps.sum() / size, 1.0)
    stop = a_row * len(data) / max(data.n_tokens, 1)
    start = counts.start + max(VAGUE * counts.start.sum(), 1.0) / size
    more = a_row / size
    triples = None if counts.triples is None else counts.triples + more / (size + 1)
    if model.order == 0:
        return counts._replace(start=start)
    return StepCounts(start, counts.steps + more, counts.end + stop, triples)


def start_of_nothing(
    model: HiddenMarkovModel, data: PackedSequences, random: Random
) -> HiddenTables:
    """Return a random start, of as many labels as the model has, about which nothing is known."""
    size = model.n_labels
    emission = model.emission.initial(data, size, random)
    start = random.dirichlet(np.full(size, CONCENTRATION))
    if model.order == 0:
        return HiddenTables(StepTables(start, np.tile(start, (size, 1)), None), emission)
    stop = min(len(data) / max(data.n_tokens, 1), MOST_STOP) if model.stop else 0.0
    end = np.full(size, stop)
    going_on = (1.0 - end)[:, None]
    steps = random.dirichlet(np.full(size, CONCENTRATION), size) * going_on
    triples = None
    if model.order == 2:
        triples = random.dirichlet(np.full(size, CONCENTRATION), (size + 1, size)) * going_on
    return HiddenTables(StepTables(start, steps, end if model.stop else None, triples), emission)
