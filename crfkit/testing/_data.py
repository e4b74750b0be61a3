"""Tiny training data in all accepted forms, and comparisons of fitted models."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from crfkit.data import PackedSequences
from crfkit.features import SequenceVectorizer

Check = Callable[[Any], None]
Body = Callable[..., None]  # the same, with the arguments that it names
Tokens = list[list[dict[str, Any]]]
Labels = list[list[Hashable]]

RAGGED = (
    "the/D dog/N sees/V a/D cat/N",
    "a/D dog/N runs/V",
    "the/D cat/N sleeps/V",
    "dog/N runs/V",
    "cat/N",
    "cat/N sees/V the/D dog/N",
)
EQUAL = (
    "the/D dog/N runs/V",
    "a/D cat/N sees/V",
    "the/D cat/N runs/V",
    "a/D dog/N sleeps/V",
    "sees/V the/D dog/N",
    "runs/V a/D cat/N",
)

ROUNDING = 1e-6  # of probabilities, where sums are made in another order
REPEATS = "weights that repeat"  # needed where a weight of 3 has to be as good as three sequences


def needs(*names: str) -> Callable[[Body], Body]:
    """Mark a check of estimators that have these methods and parameters, which others need not."""

    def mark(check: Body) -> Body:
        vars(check)["needs"] = names
        return check

    return mark


def make_data(*, equal: bool = False) -> tuple[Tokens, Labels]:
    """Return new sequences of dicts, maybe of equal lengths, and their labels "D", "N", "V"."""
    pairs = [[item.split("/") for item in line.split()] for line in (EQUAL if equal else RAGGED)]
    X = [[make_token(word) for word, _ in sequence] for sequence in pairs]
    y: Labels = [[label for _, label in sequence] for sequence in pairs]
    return X, y


def make_token(word: str) -> dict[str, Any]:
    """Return the features of a word; none is negative, which models of counts need."""
    return {"word": word, "suffix": word[-1], "short": len(word) < 4}


def as_strings(X: Tokens) -> list[list[list[str]]]:
    """Return the attributes of the dicts as lists of strings."""
    return [[_names(token) for token in sequence] for sequence in X]


def _names(token: dict[str, Any]) -> list[str]:
    named = [f"{key}:{value}" for key, value in token.items() if isinstance(value, str)]
    return named + [key for key, value in token.items() if value is True]


def as_packed(X: Tokens) -> PackedSequences:
    """Return the sequences packed, with names."""
    return SequenceVectorizer().fit_transform(X)


def as_sparse(X: Tokens) -> list[sp.csr_array]:
    """Return one sparse matrix a sequence."""
    return list(as_packed(X))


def as_arrays(X: Tokens) -> list[NDArray[np.float64]]:
    """Return one dense array a sequence."""
    return [matrix.toarray() for matrix in as_packed(X)]


def read_only(item: Any) -> Any:
    """Return a copy whose arrays cannot be written to, as those of a memory-mapped file."""
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(item, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(stream, buffers=[bytes(buffer.raw()) for buffer in buffers])


def relabel(y: Labels, names: dict[str, Hashable]) -> Labels:
    """Return the labels under other names."""
    return [[names[str(label)] for label in sequence] for sequence in y]


class AllForBoth:
    """A splitter with one split, which trains and tests on everything, be it one sequence."""

    def __repr__(self) -> str:
        return "AllForBoth()"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return 1."""
        return 1

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield all places twice."""
        yield np.arange(len(X)), np.arange(len(X))


def fresh(estimator: Any, **parameters: Any) -> Any:
    """Return an unfitted copy that repeats itself, and cross-validates one sequence, if at all."""
    steady = {"random_state": 0, "warm_start": False, "cv": AllForBoth()}
    known = {name: value for name, value in steady.items() if has_parameter(estimator, name)}
    return clone(estimator).set_params(**known | parameters)


def fitted(estimator: Any, X: Any = None, y: Any = None, **fit_parameters: Any) -> Any:
    """Return a fitted copy; on the ragged data if none are given."""
    if X is None:
        X, y = make_data()
    return fresh(estimator).fit(X, y, **fit_parameters)


def has_parameter(estimator: Any, name: str) -> bool:
    """Whether an estimator has a parameter."""
    return name in estimator.get_params(deep=False)


def assert_same_predictions(
    model: Any, other: Any, X: Any, other_X: Any = None, atol: float = 0.0
) -> None:
    """Raise AssertionError unless both predict the same, to the last bit, the other `other_X`."""
    other_X = X if other_X is None else other_X
    assert model.predict(X) == other.predict(other_X), "the predicted labels differ"
    if hasattr(model, "predict_proba"):
        pairs = zip(model.predict_proba(X), other.predict_proba(other_X), strict=True)
        for ours, theirs in pairs:
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)


@contextmanager
def raises(
    kinds: type[Exception] | tuple[type[Exception], ...], *parts: str, doing: str
) -> Iterator[None]:
    """Raise AssertionError unless the block raises an error that says all the parts."""
    try:
        yield
    except kinds as error:
        missing = [part for part in parts if part.lower() not in str(error).lower()]
        assert not missing, f"{doing}: the message does not say {missing}: {error}"
    else:
        raise AssertionError(f"{doing}: no error was raised")


def call_each(estimator: Any, X: Any, y: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name of each method that needs a fitted model, with a call of it."""
    for name in ("predict", "score", "predict_proba", "sequence_log_proba"):
        if hasattr(estimator, name):
            given = (X, y) if name in ("score", "sequence_log_proba") else (X,)
            yield name, partial(getattr(estimator, name), *given)
