"""Small data with segments, and models of them by enumeration of all segmentations."""

import numpy as np
from scipy.special import logsumexp

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


def score(model, tokens, path):
    """Return the score of a segmentation (first, after the last, label), by the public weights."""
    columns = model.vectorizer_.vocabulary_
    rows = [[columns[name] for name in (f"w:{t['w']}",) if name in columns] for t in tokens]
    parts = model.coef_, model.first_coef_, model.last_coef_, model.single_coef_
    inside, first, last, single = (part.toarray() for part in parts)
    total, before = 0.0, None
    for start, stop, k in path:
        total += sum(inside[rows[t], k].sum() for t in range(start, stop))
        total += first[rows[start], k].sum() + last[rows[stop - 1], k].sum()
        total += single[rows[start], k].sum() if stop - start == 1 else 0.0
        total += model.length_scores_[stop - start - 1, k]
        total += 0.0 if before is None else model.transitions_[before, k]
        before = k
    return total


def enumerated(model, tokens):
    """Return all segmentations of a sequence, with labels, and their probabilities."""
    longest, size = model.length_scores_.shape
    paths = list(segmentations(len(tokens), size, longest))
    scores = np.array([score(model, tokens, path) for path in paths])
    shares = np.exp(scores - logsumexp(scores))
    labels = model.classes_.tolist()
    return [[(i, j, labels[k]) for i, j, k in path] for path in paths], shares
