"""python-crfsuite, timed from encoded data on."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pycrfsuite
from _data import attributes

from crfkit.compat.crfsuite import save_crfsuite


class Iteration(NamedTuple):
    """A line of the log: seconds since the start of training, its own seconds, passes, loss.

    And the seconds of the processor since the start.
    """

    at: float
    seconds: float
    passes: int
    loss: float
    processor: float


class Trainer(pycrfsuite.Trainer):  # type: ignore[misc]
    """A trainer that notes when each iteration ended.

    What `train` does before the first one counts: it chooses the features, as crfkit does.
    """

    started = started_processor = 0.0

    def message(self, message: str) -> None:
        """Read a line of the log."""
        super().message(message)
        if message.startswith("Seconds required for this iteration"):
            now = time.perf_counter(), time.process_time()
            self.ends.append((now[0] - self.started, now[1] - self.started_processor))

    def run(self, path: str = "", **options: Any) -> list[Iteration]:
        """Train with some parameters and return the log; without a path no model is written."""
        self.set_params(options)
        self.ends: list[tuple[float, float]] = []
        self.started, self.started_processor = time.perf_counter(), time.process_time()
        self.train(path)
        log, passes = [], 1  # of the start
        for (end, processor), entry in zip(self.ends, self.logparser.iterations, strict=True):
            passes += entry.get("linesearch_trials", 1)
            log.append(Iteration(end, entry["time"], passes, entry["loss"], processor))
        return log


def trainer(X: Iterable[Any], y: Iterable[Any], algorithm: str = "lbfgs") -> Trainer:
    """Return a trainer that holds the data."""
    made = Trainer(algorithm=algorithm, verbose=False)
    for sequence, labels in zip(X, y, strict=True):
        made.append(sequence, labels)
    return made


def trainer_of(data: Any, algorithm: str = "lbfgs") -> Trainer:
    """Return a trainer that holds the sequences to learn from of a data set."""
    return trainer(attributes(data.X), data.y, algorithm)


def open_tagger(path: str) -> Any:
    """Return the tagger of a model."""
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    return tagger


def same_model(model: Any, folder: str) -> Any:
    """Return python-crfsuite's tagger with the weights of a crfkit model."""
    path = str(Path(folder) / "crfkit.crfsuite")
    save_crfsuite(model, path)
    return open_tagger(path)


def marginals_of(tagger: Any, item: Any) -> list[list[float]]:
    """Return all label probabilities of a sequence, as python-crfsuite offers them."""
    tagger.set(item)
    labels = tagger.labels()
    return [[tagger.marginal(label, t) for label in labels] for t in range(len(item))]
