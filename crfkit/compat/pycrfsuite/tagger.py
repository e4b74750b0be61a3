"""The tagger of python-crfsuite."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import IO, Any, NamedTuple, Self

import numpy as np

from crfkit._parallel import Chunk
from crfkit._types import FloatArray, Potentials
from crfkit.compat.crfsuite import classifier_from_model
from crfkit.estimators import CRFClassifier
from crfkit.features import SequenceVectorizer
from crfkit.features.encoding import FrozenIndex, encode, encode_sequence
from crfkit.inference import marginals
from crfkit.inference.tagging import ChainTagger
from crfkit.io.crfsuite_model import read_crfsuite_model


class ModelInfo(NamedTuple):
    """The content of a model, as dicts.

    Attributes
    ----------
    header : dict
        Fields of the file header, as strings; empty where there is no file.
    labels, attributes : dict
        ``{name: number}``, the numbers as strings, as python-crfsuite has them.
    transitions, state_features : dict
        ``{(label, next label): weight}`` and ``{(attribute, label): weight}``.
    """

    header: dict[str, str]
    labels: dict[Hashable, str]
    attributes: dict[str, str]
    transitions: dict[tuple[Hashable, Hashable], float]
    state_features: dict[tuple[Hashable, Hashable], float]


class _Opened:
    """A model in the form that tagging one sequence is fastest with; never changed."""

    def __init__(self, classifier: CRFClassifier, header: dict[str, str]) -> None:
        vectorizer: SequenceVectorizer = classifier.vectorizer_
        self.classifier, self.header = classifier, header
        self.labels: list[Hashable] = classifier.classes_.tolist()
        self.codes = {label: code for code, label in enumerate(self.labels)}
        self.index = FrozenIndex(vectorizer.vocabulary_)
        self.names = vectorizer.get_feature_names_out()
        none = encode([[]], self.index)
        self.model, self.weights = classifier._model_for(none.packed(None, len(self.names)))
        self.structure = self.model.structure
        self.tagger = ChainTagger.of(self.model, self.weights)

    def code(self, label: Hashable) -> int:
        """Return the number of a label."""
        if label not in self.codes:
            raise ValueError(f"the model does not know the label {label!r}; it has {self.labels}.")
        return self.codes[label]


class _Sequence:
    """A sequence and the model it is to be labeled with."""

    def __init__(self, opened: _Opened, xseq: Iterable[Any]) -> None:
        self.opened = opened
        self.rows = encode_sequence(list(xseq), opened.index)

    def __len__(self) -> int:
        return len(self.rows.indptr) - 1

    @cached_property
    def scores(self) -> Potentials:
        """The potentials."""
        opened = self.opened
        data = self.rows.in_order().packed(None, len(opened.names))
        found: Potentials = opened.model.scores(opened.weights, data, Chunk(0, data.offsets))
        return found

    @cached_property
    def sums(self) -> tuple[FloatArray, float]:
        """The marginals, shape (T, K), and log Z."""
        proba, log_z = marginals(self.opened.structure, self.scores)
        return proba, float(log_z[0])

    def best(self) -> list[Hashable]:
        """Return the most probable labels."""
        opened = self.opened
        codes = None if opened.tagger is None else opened.tagger.codes(self.rows)
        if codes is None:
            codes, _ = opened.structure.argmax(self.scores)
        return list(map(opened.labels.__getitem__, codes.tolist()))


class Tagger:
    """Labels sequences, one at a time.

    ``tag(xseq)`` keeps nothing, so that threads may share a tagger. What `set` sets belongs to the
    thread that calls it. All methods raise ValueError if no model is open.
    """

    def __init__(self) -> None:
        self._opened: _Opened | None = None
        self._current = threading.local()

    @classmethod
    def from_classifier(cls, classifier: CRFClassifier) -> Self:
        """Return a tagger with a fitted model of dicts or lists of strings.

        ValueError tells that it was fitted on others, and has no vocabulary.
        """
        if not isinstance(getattr(classifier, "vectorizer_", None), SequenceVectorizer):
            raise ValueError("the model was not fitted on dicts or strings: it has no vocabulary.")
        tagger = cls()
        tagger._opened = _Opened(classifier, {})
        return tagger

    def open(self, name: str | os.PathLike[str]) -> Any:
        """Open a ``.crfsuite`` model; return a context manager that closes it.

        The file is read as a whole and not needed any more afterwards. OSError tells that it cannot
        be read, ModelFormatError (a ValueError) that it is not a model, or damaged.
        """
        return self._open(name)

    def open_inmemory(self, value: bytes) -> Any:
        """Open the content of a ``.crfsuite`` model, as :meth:`open`."""
        return self._open(value)

    def _open(self, source: Any) -> Any:
        model = read_crfsuite_model(source)
        classifier = classifier_from_model(model, CRFClassifier())
        self._opened = _Opened(classifier, model.header or {})
        self._current = threading.local()
        return contextlib.closing(self)

    def close(self) -> None:
        """Close the model."""
        self._opened = None
        self._current = threading.local()

    def _get(self) -> _Opened:
        opened = self._opened
        if opened is None:
            raise ValueError("the tagger has no model: call open or open_inmemory.")
        return opened

    def labels(self) -> list[Hashable]:
        """Return the labels of the model."""
        return list(self._get().labels)

    def set(self, xseq: Iterable[Any]) -> None:
        """Set the sequence, as for :class:`ItemSequence`, that the other methods are about.

        Attributes that the model does not know are left out. TypeError or ValueError tells that an
        item cannot be read.
        """
        self._current.sequence = _Sequence(self._get(), xseq)

    def tag(self, xseq: Iterable[Any] | None = None) -> list[Hashable]:
        """Return the most probable labels of a sequence, which becomes the current one.

        That is the one that was :meth:`set`, whose errors are raised too, if none is given.
        """
        if xseq is None:
            return self._sequence().best()
        sequence = self._current.sequence = _Sequence(self._get(), xseq)
        return sequence.best()

    def _sequence(self) -> _Sequence:
        self._get()
        sequence: _Sequence | None = getattr(self._current, "sequence", None)
        if sequence is None:
            raise ValueError("no sequence is set in this thread: call set or tag first.")
        return sequence

    def probability(self, yseq: Sequence[Hashable]) -> float:
        """Return the probability of T labels of the current sequence.

        ValueError tells that the length is not T or a label is unknown.
        """
        sequence = self._sequence()
        count = len(sequence)
        if len(yseq) != count:
            raise ValueError(f"there are {len(yseq)} labels, but the sequence has {count} items.")
        codes = np.array([sequence.opened.code(label) for label in yseq], np.int32)
        score = sequence.opened.structure.score(sequence.scores, codes)[0]
        return float(np.exp(score - sequence.sums[1]))

    def marginal(self, y: Hashable, pos: int) -> float:
        """Return the probability of a label at a position, from 0, of the current sequence.

        ValueError tells that the label is unknown or the position is none of the sequence.
        """
        sequence = self._sequence()
        code, count = sequence.opened.code(y), len(sequence)
        if not 0 <= pos < count:
            raise ValueError(f"position {pos} is none of the {count} of the sequence.")
        return float(sequence.sums[0][pos, code])

    def info(self) -> ModelInfo:
        """Return the weights and names of the model; no text is parsed."""
        opened = self._get()
        classifier = opened.classifier
        numbers = enumerate(opened.names)
        return ModelInfo(
            header=dict(opened.header),
            labels={label: str(number) for number, label in enumerate(opened.labels)},
            attributes={name: str(number) for number, name in numbers},
            transitions=dict(classifier.transition_features_.items()),
            state_features=dict(classifier.state_features_.items()),
        )

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write the model as text, to a file in UTF-8 or to the standard output."""
        if filename is None:
            _dump(self.info(), sys.stdout)
        else:
            with open(filename, "w", encoding="utf-8", errors="surrogateescape") as file:
                _dump(self.info(), file)


def _dump(info: ModelInfo, file: IO[str]) -> None:
    """Write a model in the layout of CRFsuite's dump."""
    blocks: dict[str, Iterable[str]] = {
        "FILEHEADER": (f"  {name}: {value}" for name, value in info.header.items()),
        "LABELS": (f"  {number:>5}: {name}" for name, number in info.labels.items()),
        "ATTRIBUTES": (f"  {number:>5}: {name}" for name, number in info.attributes.items()),
        "TRANSITIONS": (f"  (1) {a} --> {b}: {w:f}" for (a, b), w in info.transitions.items()),
        "STATE_FEATURES": (
            f"  (0) {a} --> {b}: {w:f}" for (a, b), w in info.state_features.items()
        ),
    }
    for name, lines in blocks.items():
        file.write("\n".join([f"{name} = {{", *lines, "}", "", ""]))
