"""Sequences whose labels the words tell in part."""

import numpy as np


def sentences(count=60, seed=0, length=5):
    """Return words and tags: a name is one or two of some words, which may stand outside too."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        tags = []
        while len(tags) < length:
            kind = rng.choice(["PER", "LOC", "O"], p=[0.25, 0.2, 0.55])
            size = 1 if kind == "O" else int(rng.integers(1, 3))
            tags += ["O"] if kind == "O" else [f"B-{kind}", *[f"I-{kind}"] * (size - 1)]
        tags = tags[:length]
        words = [str(rng.choice(list(WORDS[tag[2:]]))) for tag in tags]
        X.append([{"word": word, "first": word[0]} for word in words])
        y.append(tags)
    return X, y


WORDS = {"PER": "abcdx", "LOC": "cdefx", "": "efghxyz"}
