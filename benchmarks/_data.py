"""The data sets of the measurements: packed attributes and labels, the same for every package."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import _conll
import numpy as np
import scipy.sparse as sp
from _conll import Columns, data_home
from _words import FILES, Attributes, read_blocks, word_attributes

from crfkit import PackedSequences, SequenceVectorizer
from crfkit._types import CodeArray
from crfkit.data.labels import LabelStream


class Labeled(NamedTuple):
    """Sequences to learn from and sequences to tag.

    Attributes
    ----------
    name : str
        Of the data set.
    X, X_test : PackedSequences
        The attributes.
    y, y_test : list of list of str
        The labels.
    codes : ndarray of shape (N,)
        The labels of `X` as numbers.
    n_labels : int
        K.
    """

    name: str
    X: PackedSequences
    y: list[list[str]]
    X_test: PackedSequences
    y_test: list[list[str]]
    codes: CodeArray
    n_labels: int

    def sizes(self) -> dict[str, Any]:
        """Return what there is of everything."""
        return {
            "sequences": len(self.X), "tokens": self.X.n_tokens, "labels": self.n_labels,
            "attributes": self.X.n_features,
            "attributes a token": len(self.X.indices) / max(self.X.n_tokens, 1)
            + (0 if self.X.dense is None else self.X.dense.shape[1]),
        }  # fmt: skip


def labeled(name: str, X: PackedSequences, y: Any, X_test: PackedSequences, y_test: Any) -> Labeled:
    """Return data with their labels as numbers."""
    stream = LabelStream(y)
    classes = stream.classes()
    return Labeled(name, X, y, X_test, y_test, stream.codes_for(classes), len(classes))


def attributes(X: PackedSequences) -> Iterator[list[Any]]:
    """Yield each sequence as python-crfsuite wants it: names, with values where not all are 1."""
    found = X.feature_names
    names = np.arange(X.n_features).astype(str).astype(object) if found is None else found
    values = np.broadcast_to(1.0, len(X.indices)) if X.values is None else X.values
    plain = X.values is None and X.dense is None

    def token(row: int) -> Any:
        part = slice(X.indptr[row], X.indptr[row + 1])
        sparse = names[X.indices[part]].tolist()
        if plain:
            return sparse
        cells = [] if X.dense is None else np.flatnonzero(X.dense[row])
        dense = {names[X.n_sparse + cell]: float(X.dense[row, cell]) for cell in cells}
        return dict(zip(sparse, values[part].tolist(), strict=True)) | dense

    for first, last in itertools.pairwise(X.offsets.tolist()):
        yield [token(row) for row in range(first, last)]


def _every_tenth(rows: list[Columns]) -> tuple[list[Columns], list[Columns]]:
    """Return all sequences to learn from, and each tenth of them to tag."""
    return rows, rows[9::10]


def _read(name: str) -> tuple[list[Columns], list[Columns], Attributes]:
    """Return the sequences to learn from and to tag, and what makes attributes of them."""
    if name == "conll2000":
        template = _conll.read_template()
        return *map(_conll.read_part, ("train", "test")), lambda rows: _conll.apply_template(
            rows, template
        )  # type: ignore[return-value]
    if name == "conll2002_es":
        parts = (read_blocks(f"conll2002_es/{part}.gz", " ") for part in ("esp.train", "esp.testb"))
    elif name == "usaddress":
        parts = (read_blocks(f"usaddress/{part}.tsv.gz", "\t") for part in ("train", "test"))
    else:
        parts = iter(_every_tenth(read_blocks(*FILES[name])))
    return next(parts), next(parts), lambda rows: word_attributes([row[:-1] for row in rows])


def stream(name: str, limit: int | None = None) -> tuple[Iterator[Any], list[list[str]]]:
    """Return the attributes of a data set of words, sequence by sequence, and the labels."""
    train, _, make = _read(name)
    return map(make, train[:limit]), [[row[-1] for row in rows] for rows in train[:limit]]


@functools.cache
def load(name: str, limit: int | None = None) -> Labeled:
    """Return a data set, or its first sequences alone."""
    if name == "ocr_letters":
        return letters(limit)
    train, test, make = _read(name)
    train, test = train[:limit], test[:limit]
    vectorizer = SequenceVectorizer()
    X, X_test = vectorizer.fit_transform(map(make, train)), vectorizer.transform(map(make, test))
    return labeled(name, X, _labels(train), X_test, _labels(test))


def _labels(sequences: Iterable[Columns]) -> list[list[str]]:
    return [[row[-1] for row in rows] for rows in sequences]


def letters(limit: int | None = None) -> Labeled:
    """Return handwritten words: 128 pixels a letter and a constant; fold 0 is to be tagged."""
    path = data_home() / "ocr_letters" / "letters.npz"
    with np.load(path, allow_pickle=False) as stored:
        pixels = np.unpackbits(stored["pixels"], axis=1).astype(float)
        lengths, codes, folds = (stored[name] for name in ("lengths", "labels", "folds"))
    rows = np.column_stack([np.ones(len(pixels)), pixels])
    names = ["bias", *(f"p{i}" for i in range(pixels.shape[1]))]
    packed = PackedSequences.from_flat(rows, lengths.astype(int), names)
    ends = np.cumsum(lengths.astype(int))[:-1]
    y = [[chr(97 + code) for code in word] for word in np.split(codes, ends)]
    train, test = np.flatnonzero(folds != 0)[:limit], np.flatnonzero(folds == 0)[:limit]
    return labeled(
        "ocr_letters", packed[train], [y[i] for i in train], packed[test], [y[i] for i in test]
    )


def synthetic(
    tokens: int, labels: int, n_attributes: int, a_token: int = 8, length: int = 20
) -> Labeled:
    """Return sequences of a first-order source with sparse attributes, like those of text.

    Each label has five labels that may follow it. Half of the attributes of a token depend on its
    label, half do not; the more frequent ones have the smaller numbers within their half.
    """
    random = np.random.default_rng(0)
    sequences = max(tokens // length, 2)
    following = random.integers(0, labels, (labels, 5))
    states = np.empty((sequences, length), np.int64)
    states[:, 0] = random.integers(0, labels, sequences)
    for t in range(1, length):
        states[:, t] = following[states[:, t - 1], random.integers(0, 5, sequences)]
    flat = states.ravel()
    half = n_attributes // 2
    # Log-uniform ranks: the frequency of an attribute falls as one over its rank.
    ranks = np.exp(random.uniform(0.0, np.log(half), (len(flat), a_token))).astype(np.int64) - 1
    ranks[:, : a_token // 2] = (ranks[:, : a_token // 2] * labels + flat[:, None]) % half
    ranks[:, a_token // 2 :] += half
    entries = (np.ones(ranks.size), ranks.ravel(), np.arange(0, ranks.size + 1, a_token))
    matrix = sp.csr_array(entries, (len(flat), n_attributes))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    packed = PackedSequences.from_flat(matrix, np.full(sequences, length))
    names = [f"L{i}" for i in range(labels)]
    y = [[names[i] for i in row] for row in states.tolist()]
    test = slice(0, max(sequences // 10, 1))
    return labeled("synthetic", packed, y, packed[test], y[test])
