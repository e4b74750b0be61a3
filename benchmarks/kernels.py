"""Where a pass over CoNLL-2000 spends its time, kernel by kernel, on one thread.

    python benchmarks/kernels.py

Writes ``results/kernels.json``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import _conll
import _measure
import numpy as np

from crfkit import SequenceVectorizer
from crfkit._parallel import ThreadMap
from crfkit._types import Scores
from crfkit.data.chunks import make_chunks
from crfkit.data.labels import LabelStream
from crfkit.kernels import chain, gather
from crfkit.scores.selection import choose_features
from crfkit.structures import Chain

REPEATS = 7


def main() -> None:
    """Run the benchmark."""
    X, y = _conll.load("train")
    packed, stream = SequenceVectorizer().fit_transform(X), LabelStream(y)
    codes, n_labels = stream.codes_for(stream.classes()), len(stream.index)
    model = choose_features(packed, codes, n_labels)
    w = 0.1 * np.random.default_rng(0).normal(size=model.n_parameters)
    bound, chunks = model.bind(w), make_chunks(packed.offsets, model.chunk_tokens)
    with ThreadMap(1) as threads:
        prepared = model.prepare(packed, chunks, threads)
    scores = [model.scores(bound, packed, chunk) for chunk in chunks]
    outs = [Chain().empty(part) for part in scores]
    state = np.zeros_like(bound.state.pairs)
    pattern = (model.state.ptr.view(np.uint64), model.state.columns.view(np.uint32))
    structure = Chain()

    def scatter() -> None:
        for part, out in zip(prepared.state.columns, outs, strict=True):
            gather.scatter_columns(
                part.columns, part.col_ptr, part.rows, part.values, 0, 0, len(part.columns),
                *pattern, out.unary, state,
            )  # fmt: skip

    functions: dict[str, Callable[[], Any]] = {
        "scores, attribute by attribute (training)": lambda: [
            model.prepared_scores(bound, prepared, i) for i in range(len(chunks))
        ],
        "scores, token by token (tagging)": lambda: [
            model.scores(bound, packed, chunk) for chunk in chunks
        ],
        "row maxima and exponentials": lambda: [shift_and_exp(part) for part in scores],
        "log Z and expected counts (with the exponentials)": lambda: [
            structure.sum(part, np.ones(len(part.offsets) - 1), out)
            for part, out in zip(scores, outs, strict=True)
        ],
        "gradient, attribute by attribute": scatter,
        "best paths": lambda: [structure.max(part) for part in scores],
    }
    for function in functions.values():
        function()
    times = _measure.medians(functions, REPEATS)
    _measure.write(
        "kernels",
        {"tokens": packed.n_tokens, "milliseconds": {k: 1e3 * t for k, t in times.items()}},
    )


def shift_and_exp(scores: Scores) -> None:
    """Run what precedes the recurrences."""
    node, shift = np.empty_like(scores.unary), np.empty(len(scores.unary))
    chain.chain_shift(scores.unary, node, shift)
    np.exp(node, out=node)


if __name__ == "__main__":
    main()
