"""Where a pass over CoNLL-2000 spends its time, step by step, on one thread.

    python benchmarks/kernels.py

The time of a step is the sum over the chunks of the corpus of the best of several runs: what else
runs on the machine then adds as little as it can. `labels` has the sums and best paths of random
scores of the same sequences for other numbers of labels. Writes ``results/kernels.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import _conll
import _measure
import numpy as np

from crfkit import SequenceVectorizer
from crfkit._parallel import ThreadMap, chunk_tokens, make_chunks
from crfkit._types import IntArray
from crfkit.data.labels import LabelStream
from crfkit.potentials.linear import choose_features
from crfkit.structures import Chain, ChainPotentials
from crfkit.structures.potentials import exp_unary

REPEATS = 7
LABELS = (3, 9, 22, 45, 100)
# With many labels a part of the corpus is enough.
MAX_CELLS = 20_000_000


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
        parts = [model.scores(bound, packed, chunk) for chunk in chunks]
        outs = [Chain().zeros(part) for part in parts]
        residuals, state = [out.unary for out in outs], np.zeros_like(bound["state"].pairs)
        numbers = range(len(chunks))
        milliseconds = {
            "scores, attribute by attribute (training)": best(
                lambda i: model.prepared_scores(bound, prepared, i), numbers
            ),
            "scores, token by token (tagging)": best(
                lambda chunk: model.scores(bound, packed, chunk), chunks
            ),
            "row maxima and exponentials": best(exp_unary, parts),
            "log Z and expected counts (with the exponentials)": best(
                lambda i: Chain().log_partition(
                    parts[i], np.ones(len(parts[i].offsets) - 1), outs[i]
                ),
                numbers,
            ),
            "gradient, attribute by attribute": best(
                lambda _: prepared.blocks["state"].rows.pullback(residuals, 0, threads, state), [0]
            ),
            "best paths": best(Chain().argmax, parts),
        }
    labels = {str(count): by_labels(packed.offsets, count) for count in LABELS}
    _measure.write(
        "kernels", {"tokens": packed.n_tokens, "milliseconds": milliseconds, "labels": labels}
    )


def best(function: Callable[[Any], Any], items: Sequence[Any]) -> float:
    """Return the sum over items of the least milliseconds of a call."""
    least = np.full(len(items), np.inf)
    for _ in range(REPEATS + 1):
        for i, item in enumerate(items):
            least[i] = min(least[i], 1e3 * _measure.seconds(lambda item=item: function(item)))
    return float(least.sum())


def by_labels(offsets: IntArray, n_labels: int) -> dict[str, float]:
    """Return nanoseconds a token of sums and best paths of random scores."""
    rng, batches, tokens = np.random.default_rng(0), [], 0
    pair = rng.normal(size=(1, n_labels, n_labels))
    for chunk in make_chunks(offsets, chunk_tokens(n_labels, own_transitions=False)):
        size = chunk.tokens.stop - chunk.tokens.start
        unary = 2.0 * rng.normal(size=(size, n_labels))
        batches.append(ChainPotentials.of(unary, pair, chunk.offsets - chunk.offsets[0]))
        tokens += size
        if tokens * n_labels**2 > MAX_CELLS:
            break
    chain, outs = Chain(), [Chain().zeros(batch) for batch in batches]

    def expected(i: int) -> None:
        chain.log_partition(batches[i], np.ones(len(batches[i].offsets) - 1), outs[i])

    return {
        "sum": 1e6 * best(expected, range(len(batches))) / tokens,
        "max": 1e6 * best(chain.argmax, batches) / tokens,
    }


if __name__ == "__main__":
    main()
