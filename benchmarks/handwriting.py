"""Handwritten words: test error per letter of models with and without steps, and of kernels.

The experiment of Taskar, Guestrin and Koller (2003, section 6): the words are in ten folds, and a
model is fitted to one of them and tested on the other nine, ten times; or the reverse. Penalties
were chosen by the error on a third of fold 0 of models fitted to the other two thirds.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from _conll import data_home
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from crfkit import CRFClassifier
from crfkit.data import LabelSequences, PackedSequences
from crfkit.estimators.max_margin import MaxMarginCRF
from crfkit.solvers.margin import BlockFrankWolfe, KernelFrankWolfe

N_FOLDS, QUICK_WORDS = 10, 60
LETTERS = np.array([chr(97 + code) for code in range(26)], object)
# The kernel is (1 + x . z / 28)^degree: a letter has about 28 black pixels.
GAMMA = 1.0 / 28.0
# Of one fold, and of nine with the features of the quadratic kernel.
TOL, LOOSE_TOL = 5e-3, 2e-2
# All models have weights for all pairs, as kernels do.
ALL = {"all_possible_states": True, "all_possible_transitions": True}
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
# Which of them are tried for pixels, and for kernels.
SMALL, LARGE = PENALTIES[:5], PENALTIES[2:6]
CHOSEN = {
    "logistic regression": 0.3,
    "CRF": 1.0,
    "SVM, linear": 0.1,
    "SVM, quadratic kernel": 1.0,
    "SVM, cubic kernel": 0.3,
    "M3N, linear": 0.3,
    "M3N, quadratic kernel": 3.0,
    "M3N, cubic kernel": 1.0,
}
REVERSED = 3


class Words(NamedTuple):
    """Handwritten words.

    Attributes
    ----------
    pixels : ndarray of shape (N, 128)
        The letters.
    lengths, folds : ndarray of shape (S,)
        Letters of each word, and the fold that it is in.
    codes : ndarray of shape (N,)
        The true letters.
    """

    pixels: np.ndarray
    lengths: np.ndarray
    folds: np.ndarray
    codes: np.ndarray

    def take(self, words: np.ndarray) -> Words:
        """Return some of the words, given by a mask."""
        letters = np.repeat(words, self.lengths)
        return Words(self.pixels[letters], self.lengths[words], self.folds[words],
                     self.codes[letters])  # fmt: skip

    @property
    def labels(self) -> LabelSequences:
        """The true letters, word by word."""
        offsets = np.concatenate([[0], np.cumsum(self.lengths)])
        return LabelSequences.from_codes(self.codes, LETTERS, offsets)

    @property
    def apart(self) -> Words:
        """The same letters as words of one letter."""
        return self._replace(lengths=np.ones(len(self.codes), int),
                             folds=np.repeat(self.folds, self.lengths))  # fmt: skip


@functools.cache
def read() -> Words:
    """Return all words."""
    path = data_home() / "ocr_letters" / "letters.npz"
    with np.load(path, allow_pickle=False) as stored:
        pixels = np.unpackbits(stored["pixels"], axis=1).astype(float)
        lengths, codes, folds = (stored[name] for name in ("lengths", "labels", "folds"))
    return Words(pixels, lengths.astype(int), folds.astype(int), codes.astype(np.int32))


def linear(pixels: np.ndarray) -> sp.csr_array:
    """Return a constant and the pixels."""
    return sp.csr_array(np.column_stack([np.ones(len(pixels)), pixels]))


def quadratic(pixels: np.ndarray) -> sp.csr_array:
    """Return features whose inner products are ``(1 + GAMMA x . z)^2``, as pixels are 0 or 1."""
    first, second = np.triu_indices(pixels.shape[1], 1)
    counts = pixels.sum(axis=1).astype(int)
    pairs = sp.csr_array(
        (
            np.full(int((counts * (counts - 1) // 2).sum()), np.sqrt(2.0) * GAMMA),
            np.concatenate([np.flatnonzero(on[first] & on[second]) for on in pixels > 0.0]),
            np.concatenate([[0], np.cumsum(counts * (counts - 1) // 2)]),
        ),
        shape=(len(pixels), len(first)),
    )
    single = np.sqrt(GAMMA * (GAMMA + 2.0)) * pixels
    return sp.csr_array(
        sp.hstack([sp.csr_array(np.column_stack([np.ones(len(pixels)), single])), pairs])
    )


def as_they_are(pixels: np.ndarray) -> np.ndarray:
    """Return the pixels, for a kernel."""
    return pixels


class Model(NamedTuple):
    """A model of words, or of letters.

    Attributes
    ----------
    make : callable
        From the penalty to an estimator.
    features : callable
        From pixels to features.
    apart : bool
        Whether letters are sequences of their own.
    penalties : tuple of float
        Among these one is chosen.
    """

    make: Callable[[float], Any]
    features: Callable[[np.ndarray], Any]
    apart: bool
    penalties: tuple[float, ...]


def primal(C: float, tol: float = TOL) -> MaxMarginCRF:
    """Return a margin model with weights of features."""
    return MaxMarginCRF(C=C, solver=BlockFrankWolfe(tol=tol), **ALL)


def polynomial(C: float, degree: int) -> MaxMarginCRF:
    """Return a margin model with a kernel."""
    params = {"degree": degree, "gamma": GAMMA, "coef0": 1.0}
    solver = KernelFrankWolfe(tol=TOL)
    return MaxMarginCRF(C=C, kernel="poly", kernel_params=params, solver=solver, **ALL)


square, cube = functools.partial(polynomial, degree=2), functools.partial(polynomial, degree=3)
MODELS = {
    "logistic regression": Model(
        lambda C: LogisticRegression(C=C, max_iter=1000), linear, True, SMALL
    ),
    "CRF": Model(lambda c2: CRFClassifier(c2=c2, **ALL), linear, False, PENALTIES[2:6]),
    "SVM, linear": Model(primal, linear, True, SMALL),
    "SVM, quadratic kernel": Model(square, as_they_are, True, LARGE),
    "SVM, cubic kernel": Model(cube, as_they_are, True, LARGE),
    "M3N, linear": Model(primal, linear, False, SMALL),
    "M3N, quadratic kernel": Model(square, as_they_are, False, LARGE),
    "M3N, cubic kernel": Model(cube, as_they_are, False, LARGE),
}
# Kernel values between all letters of nine folds take 17 GB: there the features of the quadratic
# kernel are listed, and the cubic one has too many.
LISTED = {
    name: MODELS[name]._replace(make=functools.partial(primal, tol=LOOSE_TOL), features=quadratic)
    for name in ("SVM, quadratic kernel", "M3N, quadratic kernel")
}
TOO_LARGE = {"SVM, cubic kernel", "M3N, cubic kernel"}


def predicted(
    model: Model, penalty: float, train: Words, test: Words
) -> tuple[np.ndarray, float, bool]:
    """Return the letters that a model finds, the seconds of its fit, and whether it converged."""
    estimator = model.make(penalty)
    if isinstance(estimator, LogisticRegression):
        started = time.perf_counter()
        estimator.fit(model.features(train.pixels), LETTERS[train.codes])
        seconds = time.perf_counter() - started
        return estimator.predict(model.features(test.pixels)), seconds, True
    train, test = (train.apart, test.apart) if model.apart else (train, test)
    X, X_test = (
        PackedSequences.from_flat(model.features(words.pixels), words.lengths)
        for words in (train, test)
    )
    started = time.perf_counter()
    with warnings.catch_warnings():  # those of too small a penalty only count in the choice
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(X, train.labels)
    seconds = time.perf_counter() - started
    found = [letter for word in estimator.predict(X_test) for letter in word]
    return np.array(found), seconds, bool(estimator.converged_)


def errors(model: Model, penalty: float, train: Words, test: Words) -> dict[str, float]:
    """Return the share of wrong letters, and of words with one."""
    found, seconds, converged = predicted(model, penalty, train, test)
    wrong = found != LETTERS[test.codes]
    starts = np.cumsum(test.lengths) - test.lengths
    return {
        "letters": float(wrong.mean()),
        "words": float(np.logical_or.reduceat(wrong, starts).mean()),
        "seconds": seconds,
        "converged": converged,
    }


def choose(name: str, limit: int | None) -> dict[str, Any]:
    """Return the errors on a third of fold 0 for each penalty."""
    words = read()
    words = words.take((words.folds == 0) & (np.cumsum(words.folds == 0) <= (limit or np.inf)))
    held = np.arange(len(words.lengths)) % 3 == 0
    found = {
        str(penalty): errors(MODELS[name], penalty, words.take(~held), words.take(held))
        for penalty in MODELS[name].penalties
    }
    return {"errors": found, "chosen": CHOSEN[name]}


def measure(name: str, fold: int, reverse: bool, limit: int | None) -> dict[str, float]:
    """Return the errors of a model fitted to one fold, or to the other nine."""
    words = read()
    inside = words.folds == fold
    few = np.cumsum(inside) <= (limit or np.inf)
    one, others = words.take(inside & few), words.take(~inside & few)
    if reverse:
        return errors(LISTED.get(name, MODELS[name]), CHOSEN[name], others, one)
    return errors(MODELS[name], CHOSEN[name], one, others)


def exact() -> dict[str, float]:
    """Return the optima of the quadratic kernel and of its features, on some words."""
    words = read()
    words = words.take((words.folds == 0) & (np.cumsum(words.folds == 0) <= QUICK_WORDS))
    kernel = square(1.0).fit(PackedSequences.from_flat(words.pixels, words.lengths), words.labels)
    features = primal(1.0).fit(
        PackedSequences.from_flat(quadratic(words.pixels), words.lengths), words.labels
    )
    return {
        "kernel": kernel.objective_, "features": features.objective_,
        "gap of the kernel": kernel.gap_, "gap of the features": features.gap_,
    }  # fmt: skip


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    limit = QUICK_WORDS if quick else None
    found: dict[str, Callable[[], dict[str, Any]]] = {"kernel and features": exact}
    for name in MODELS:
        found[f"penalty: {name}"] = functools.partial(choose, name, limit)
    for fold in range(1 if quick else N_FOLDS):
        for name in MODELS:
            found[f"train on fold {fold}: {name}"] = functools.partial(
                measure, name, fold, False, limit
            )
    for fold in range(0 if quick else REVERSED):
        for name in [name for name in MODELS if name not in TOO_LARGE]:
            found[f"test on fold {fold}: {name}"] = functools.partial(
                measure, name, fold, True, limit
            )
    return found


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw mean and deviation of the errors of letters."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    titles = {"train on fold": "one fold to learn from, nine to test on",
              "test on fold": "nine folds to learn from, one to test on"}  # fmt: skip
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 3.8), sharey=True, layout="constrained")
    for ax, (kind, title) in zip(axes, titles.items(), strict=True):
        for row, name in enumerate(MODELS):
            found = [
                100.0 * case["letters"]
                for key, case in results.items()
                if key.startswith(kind) and key.endswith(f": {name}")
            ]
            if found:
                color = "C0" if "SVM" in name else "C1" if "M3N" in name else "0.6"
                deviation = np.std(found, ddof=1) if len(found) > 1 else 0.0
                ax.barh(row, np.mean(found), xerr=deviation, color=color)
                ax.text(1.0, row, f"{np.mean(found):.1f} ± {deviation:.1f} ({len(found)})",
                        va="center", fontsize="small")  # fmt: skip
        ax.set(title=title, xlabel="wrong letters, %: mean and deviation (folds)")
        ax.set_yticks(range(len(MODELS)), list(MODELS))
        ax.invert_yaxis() if ax is axes[0] else None
    figure.savefig(folder / "handwriting.png", dpi=110)
    pyplot.close(figure)
