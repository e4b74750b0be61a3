"""CRFClassifierCV against GridSearchCV: the same scores, and how much faster.

    python benchmarks/regularization_path.py [sentences of CoNLL-2000] [words of OCR]

Both search the same penalties on the same packed data with the same folds and two threads a fit,
with and without the fit to all data. Writes ``results/regularization_path.json``.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import _conll
import _measure
import numpy as np
from sklearn.model_selection import GridSearchCV

from crfkit import CRFClassifier, CRFClassifierCV, PackedSequences, SequenceVectorizer

C2S = 10
FOLDS = 3
REPEATS = 2


def chunking(sentences: int) -> tuple[PackedSequences, Any]:
    """Return the first sentences of CoNLL-2000 and their labels."""
    X, y = _conll.load("train")
    return SequenceVectorizer().fit_transform(X[:sentences]), y[:sentences]


def letters(words: int) -> tuple[PackedSequences, Any]:
    """Return the first words of the OCR data, 128 pixels a letter and a constant, and letters."""
    data = np.load(_conll.data_home() / "ocr_letters" / "letters.npz", allow_pickle=False)
    lengths = data["lengths"][:words].astype(np.int64)
    pixels = np.unpackbits(data["pixels"][: lengths.sum()], axis=1).astype(float)
    X = PackedSequences.from_flat(np.column_stack([pixels, np.ones(len(pixels))]), lengths)
    return X, [part.tolist() for part in np.split(data["labels"][: lengths.sum()],
                                                  np.cumsum(lengths)[:-1])]  # fmt: skip


def compare(X: PackedSequences, y: Any, c1s: list[float], c2s: Any) -> dict[str, Any]:
    """Return scores and seconds of both searches."""
    path = CRFClassifierCV(c1s=c1s, c2s=c2s, cv=FOLDS, refit=False, n_jobs=2)
    path.fit(X, y)  # compiles what is to be compiled
    grid = {"c1": path.c1s_.tolist(), "c2": path.c2s_.tolist()}
    search = GridSearchCV(CRFClassifier(n_jobs=2), grid, cv=FOLDS, refit=False)
    seconds = _measure.medians(
        {"path": lambda: path.fit(X, y), "grid": lambda: search.fit(X, y)}, REPEATS
    )
    mean = search.cv_results_["mean_test_score"].reshape(path.scores_.shape[1:])
    ours = path.scores_.mean(axis=0)
    return {
        "sequences": len(X),
        "tokens": X.n_tokens,
        "attributes": X.n_features,
        "c1s": grid["c1"],
        "c2s": grid["c2"],
        "mean_scores_of_the_path": ours.round(6).tolist(),
        "mean_scores_of_the_grid": mean.round(6).tolist(),
        "largest_difference_of_mean_scores": float(np.abs(ours - mean).max()),
        "best_of_the_path": {"c1": path.c1_, "c2": path.c2_},
        "best_of_the_grid": search.best_params_,
        "iterations_of_the_path": path.n_iter_.sum(axis=0).tolist(),
        "seconds": seconds,
        "times_faster": seconds["grid"] / seconds["path"],
    }


def main(sentences: int = 500, words: int = 400) -> None:
    """Run the benchmark."""
    warnings.simplefilter("ignore")  # fits with the weakest penalties end at max_iter
    chunks, ocr = chunking(sentences), letters(words)
    _measure.write(
        "regularization_path",
        {
            "conll2000_c2": compare(*chunks, [0.0], C2S),
            "conll2000_c1_c2": compare(*chunks, [1.0, 0.1], [1.0, 0.1, 0.01]),
            "ocr_c2": compare(*ocr, [0.0], C2S),
        },
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
