"""The items and the trainer of python-crfsuite."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np

from crfkit.compat._options import Options
from crfkit.compat._training import TrainingLog, fit_classifier
from crfkit.compat.crfsuite import save_crfsuite
from crfkit.data.labels import label_list, object_array
from crfkit.features.attributes import AttributeRows, expand
from crfkit.features.encoding import GrowingIndex, encode


class ItemSequence:
    """The attributes of the items of a sequence, with their values.

    Items have any form that :class:`crfkit.features.SequenceVectorizer` takes. TypeError or
    ValueError tells that one has a form or value that no rule covers.
    """

    def __init__(self, pyseq: Iterable[Any]) -> None:
        self._items = [_merged(item) for item in pyseq]

    def items(self) -> list[dict[str, float]]:
        """Return the items as ``{attribute: value}``; what occurs twice is added up."""
        return [dict(item) for item in self._items]

    def __iter__(self) -> Iterator[dict[str, float]]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


def _merged(item: Any) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, value in expand(item):
        values[name] = values.get(name, 0.0) + value
    return values


class Trainer:
    """Collects sequences and trains models of them.

    `algorithm` is one for :meth:`select`, `params` are those of :meth:`set_params`; where
    `verbose`, what `message` is told is printed.
    """

    def __init__(
        self,
        algorithm: str | None = None,
        params: dict[str, Any] | None = None,
        verbose: bool = True,
    ) -> None:
        self.verbose = verbose
        self.logparser: TrainingLog | None = None
        self._options = Options()
        self.clear()
        if algorithm is not None:
            self.select(algorithm)
        if params is not None:
            self.set_params(params)

    def append(self, xseq: Iterable[Any], yseq: Iterable[Any], group: int = 0) -> None:
        """Add T items, as for :class:`ItemSequence`, and their labels; nothing of them is kept.

        Attributes are encoded at once. `group` is a number, for held-out data. ValueError or
        TypeError tells that the lengths differ or an item cannot be read.
        """
        number = len(self._labels)
        labels = label_list(number, list(yseq))
        known = len(self._index)
        try:
            rows = encode([list(xseq)], self._index)
            if len(rows.indptr) - 1 != len(labels):
                raise ValueError(f"{len(rows.indptr) - 1} items, but {len(labels)} labels.")
        except (TypeError, ValueError) as error:
            self._index.truncate(known)
            raise type(error)(f"sequence number {number} to be appended: {error}") from error
        self._rows.append(rows)
        self._labels.append(labels)
        self._groups.append(int(group))

    def clear(self) -> None:
        """Forget all sequences."""
        self._index = GrowingIndex()
        self._index.keep_zeros()
        self._rows: list[AttributeRows] = []
        self._labels: list[list[Hashable]] = []
        self._groups: list[int] = []

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose the algorithm; its parameters get their defaults.

        Parameters
        ----------
        algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}
            As for :class:`crfkit.compat.sklearn_crfsuite.CRF`; also "averaged-perceptron" and
            "passive-aggressive". ValueError if it is another one.
        type : {"crf1d"}
            The graphical model.
        """
        if type != "crf1d":
            raise ValueError(f"type={type!r} is not known; the only one is 'crf1d'.")
        self._options = Options(algorithm)

    def params(self) -> list[str]:
        """Return the names of the parameters of the algorithm."""
        return list(self._options.values)

    def set_params(self, params: dict[str, Any]) -> None:
        """Set parameters, ``{name: value}``; raises ValueError as :meth:`set`."""
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> dict[str, Any]:
        """Return all parameters of the algorithm with their values."""
        return dict(self._options.values)

    def set(self, name: str, value: Any) -> None:
        """Set one of :meth:`params` ("stop" is another name of "period"); strings are converted.

        ValueError tells that there is no such parameter, or the value does not fit.
        """
        self._options.set(name, value)

    def get(self, name: str) -> Any:
        """Return the value of a parameter; raises ValueError if there is no such parameter."""
        if name not in self._options.values:
            raise ValueError(f"there is no parameter {name!r}; there are {self.params()}.")
        return self._options.values[name]

    def message(self, message: str) -> None:
        """Take a line of the log; override it to have it go elsewhere."""
        if self.verbose:
            print(message, end="")

    def train(self, model: str | os.PathLike[str], holdout: int = -1) -> None:
        """Train a model and write it; ValueError if there is nothing to train on.

        Parameters
        ----------
        model : str or path
            The file to write; none is written where it is "".
        holdout : int, default=-1
            The group that is left out of the training and scored after each iteration; -1 for none.
        """
        names = list(self._index)
        rows = AttributeRows.joined([encode([], self._index), *self._rows])
        data = rows.in_order().packed(object_array(names))  # by first appearance
        held = np.array(self._groups, np.int64) == holdout
        labels = object_array(self._labels)
        dev = (data[held], labels[held]) if held.any() else None
        zeros = rows.zeros().of_tokens(np.repeat(~held, data.lengths))
        classifier, log = fit_classifier(
            self._options, data[~held], labels[~held], dev, zeros=zeros
        )
        self.logparser = log
        self.message(f"Number of features: {log.featgen_num_features}\n")
        for entry in log.iterations:
            scored = f"  accuracy {entry['item_accuracy_float']:.4f}" if entry["scores"] else ""
            self.message(f"iteration {entry['num']:4d}  loss {entry['loss']:.6f}{scored}\n")
        if os.fspath(model):
            save_crfsuite(classifier, model)
