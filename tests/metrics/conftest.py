import random

import pytest

LETTERS = {
    "IO": "OI",
    "IOB1": "OBI",
    "IOB2": "OBI",
    "IOE1": "OIE",
    "IOE2": "OIE",
    "IOBES": "OBIES",
    "BILOU": "OBILU",
    "BMES": "OBMES",
    "BMEWO": "OBMEW",
}


@pytest.fixture
def letters():
    """The letters of every scheme that can be written."""
    return LETTERS


@pytest.fixture
def tag_set():
    """All tags with the given letters and types."""

    def make(letters, types, suffix=False):
        pairs = [(letter, type_) for letter in letters if letter != "O" for type_ in types]
        return ["O", *(f"{t}-{x}" if suffix else f"{x}-{t}" for x, t in pairs)]

    return make


@pytest.fixture
def random_pair():
    """Random truth and prediction over a tag set, illegal as often as not."""

    def make(seed, tags, n_sequences=4, max_length=7, agreement=0.6):
        rng = random.Random(seed)
        lengths = [rng.randint(1, max_length) for _ in range(n_sequences)]
        y_true = [[rng.choice([*tags, "O"]) for _ in range(length)] for length in lengths]
        y_pred = [
            [tag if rng.random() < agreement else rng.choice(tags) for tag in sequence]
            for sequence in y_true
        ]
        return y_true, y_pred

    return make
