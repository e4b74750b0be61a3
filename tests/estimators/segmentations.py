"""Small data with segments, and models of them by enumeration of all segmentations."""

import copy

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from crfkit import PackedSequences, SequenceVectorizer, TransitionFeatures, make_sequence_union
from crfkit.data import PackedSegments
from tests.oracles import segmentations

X = [
    [{"w": w} for w in sentence.split()]
    for sentence in (
        "mr john smith lives in new york city",
        "ann lee saw paris",
        "the dog barks",
        "john lee and ann saw york",
        "smith smith lee",
    )
]
TAGS = [
    ["O", "B-PER", "I-PER", "O", "O", "B-LOC", "I-LOC", "I-LOC"],
    ["B-PER", "I-PER", "O", "B-LOC"],
    ["O", "O", "O"],
    ["B-PER", "I-PER", "O", "B-PER", "O", "B-LOC"],
    ["B-PER", "B-PER", "I-PER"],
]
SPANS = [
    [(1, 3, "PER"), (5, 8, "LOC")],
    [(0, 2, "PER"), (3, 4, "LOC")],
    [],
    [(0, 2, "PER"), (3, 4, "PER"), (5, 6, "LOC")],
    [(0, 1, "PER"), (1, 3, "PER")],
]


def packed():
    return SequenceVectorizer().fit_transform(X)


def with_transitions():
    union = make_sequence_union(SequenceVectorizer(), TransitionFeatures(SequenceVectorizer()))
    return union.fit_transform(X)


def with_segments(data):
    """Return data in which each pair of tokens of a sequence is marked by its first word."""
    starts = np.concatenate(
        [np.arange(b, e - 1) for b, e in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    )
    rows = SequenceVectorizer().fit_transform([[{"pair": i % 3} for i in range(3)]])
    segments = PackedSegments(rows, data.offsets, starts, starts + 2, starts % 3)
    return data.with_segments(segments)


WEIGHTS = (
    "coef_", "first_coef_", "last_coef_", "single_coef_", "transition_coef_", "segment_coef_",
    "transitions_", "length_scores_", "start_weights_", "end_weights_",
)  # fmt: skip
PARTS = ("first_", "last_", "single_")


def with_random_weights(model, seed, scale=1.0):
    """Return a fitted model all of whose weights were drawn; what is forbidden stays so."""
    rng, changed = np.random.default_rng(seed), copy.copy(model)
    for name in WEIGHTS:
        fitted = getattr(model, name)
        drawn = scale * rng.normal(size=fitted.shape)
        if sp.issparse(fitted):
            setattr(changed, name, sp.csr_array(drawn))
        else:
            setattr(changed, name, np.where(np.isneginf(fitted), -np.inf, drawn))
    return changed


def scores(model, one, paths):
    """Return the scores of segmentations (first, after the last, label), by the public weights."""
    size, own = len(model.classes_), {}
    columns = [products(one, getattr(model, f"{part}coef_")) for part in ("", *PARTS)]
    inside, first, last, single = columns
    steps = np.zeros((one.n_tokens, size**2))
    if model.transition_coef_ is not None:
        steps = products(one.transitions, model.transition_coef_)
    if model.segment_coef_ is not None:
        runs = one.segments
        rows = products(runs.rows, model.segment_coef_)[runs.row]
        own = dict(zip(zip(runs.stop - runs.length, runs.stop, strict=True), rows, strict=True))
    found = []
    for path in paths:
        total, before = 0.0, None
        for start, stop, k in path:
            total += inside[start:stop, k].sum() + first[start, k] + last[stop - 1, k]
            total += single[start, k] if stop - start == 1 else 0.0
            total += model.length_scores_[stop - start - 1, k]
            total += own[start, stop][k] if (start, stop) in own else 0.0
            if before is not None:
                total += model.transitions_[before, k] + steps[start, before * size + k]
            before = k
        if path:
            total += model.start_weights_[path[0][2]] + model.end_weights_[before]
        found.append(total)
    return np.array(found)


def products(data, weights):
    return (data.to_csr() @ weights).toarray()


def enumerated(model, tokens):
    """Return all segmentations of a sequence, with labels, and their probabilities."""
    one = tokens if isinstance(tokens, PackedSequences) else model.vectorizer_.transform([tokens])
    longest, size = model.length_scores_.shape
    paths = list(segmentations(one.n_tokens, size, longest))
    found = scores(model, one, paths)
    shares = np.exp(found - logsumexp(found))
    labels = model.classes_.tolist()
    return [[(i, j, labels[k]) for i, j, k in path] for path in paths], shares
