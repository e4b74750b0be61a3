"""One sequence of millions of bases: seconds of a pass and of decoding, and peak memory.

    python benchmarks/long_sequence.py

The bases are those of the fruit fly in the benchmark data, repeated until there are enough. The
labels are 0 between genes, 1 in exons and 2 in introns; the attribute of a base is the trimer
around it. Each size and number of threads is measured in a process of its own; seconds of a pass
and of decoding with one thread are those of the processor, as other programs may run. Writes
``results/long_sequence.json``.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import _measure
import numpy as np
import scipy.sparse as sp
from _conll import data_home
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, PackedSequences
from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray
from crfkit.data.labels import LabelStream
from crfkit.losses import LogLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials import LinearChainModel
from crfkit.potentials.linear import choose_features

SIZES = (2_800_000, 28_000_000)
THREADS = (1, 2)
REPEATS = 3
BASES = 5  # A, C, G, T and any other


def genome() -> tuple[CodeArray, CodeArray]:
    """Return the bases of all chromosomes as numbers, and their labels."""
    folder = data_home() / "genes_dmel"
    chromosomes: dict[str, bytes] = {}
    with gzip.open(folder / "dmel.fa.gz", "rb") as file:
        for record in file.read().split(b">")[1:]:
            head, _, text = record.partition(b"\n")
            chromosomes[head.split()[0].decode()] = text.replace(b"\n", b"")
    labels = {name: np.zeros(len(text), np.int32) for name, text in chromosomes.items()}
    with gzip.open(folder / "dmel.genes.tsv.gz", "rt", encoding="utf-8") as file:
        for gene in csv.DictReader(file, delimiter="\t"):
            row = labels[gene["#seq"]]
            row[int(gene["start"]) - 1 : int(gene["end"])] = 2
            for exon in gene["exons"].split(";"):
                first, last = exon.split("-")
                row[int(first) - 1 : int(last)] = 1
    table = np.full(256, BASES - 1, np.int32)
    table[np.frombuffer(b"ACGT", np.uint8)] = range(4)
    bases = table[np.frombuffer(b"".join(chromosomes.values()), np.uint8)]
    return bases, np.concatenate([labels[name] for name in chromosomes])


def make(size: int) -> tuple[PackedSequences, CodeArray]:
    """Return one sequence of trimers and its labels."""
    bases, labels = (np.resize(part, size) for part in genome())
    padded = np.pad(bases, 1, constant_values=BASES - 1)
    trimers = (padded[:-2] * BASES + bases) * BASES + padded[2:]
    entries = (np.ones(size), trimers, np.arange(size + 1))
    return PackedSequences.from_flat(sp.csr_array(entries, (size, BASES**3)), [size]), labels


def best(function: Callable[[], Any], n_jobs: int) -> float:
    """Return the seconds of the fastest of a few calls: other programs only add to them."""
    clock = time.process_time if n_jobs == 1 else time.perf_counter
    times = []
    for _ in range(REPEATS):
        started = clock()
        function()
        times.append(clock() - started)
    return min(times)


def passes(
    model: LinearChainModel, data: PackedSequences, codes: CodeArray, n_jobs: int
) -> dict[str, float]:
    """Return the seconds of the first pass, which prepares the data, and of a later one."""
    with ThreadMap(n_jobs) as threads:
        objective = Objective(
            model, model.structure, LogLoss(), ElasticNet(0.0, 1.0), data, codes,
            np.ones(len(codes)), threads,
        )  # fmt: skip
        w = np.zeros(model.n_parameters)
        first = _measure.seconds(lambda: objective.value_and_grad(w))
        return {"first pass": first, "pass": best(lambda: objective.value_and_grad(w), n_jobs)}


def measure(size: int, n_jobs: int) -> None:
    """Print the measurements of one size and number of threads as JSON."""
    data, labels = make(size)
    made = _measure.peak_mib()
    started = time.perf_counter()
    stream = LabelStream([labels])
    codes = stream.codes_for(stream.classes())
    model = choose_features(data, codes, len(stream.classes()))
    results = {"labels and pairs": time.perf_counter() - started}
    results |= passes(model, data, codes, n_jobs)
    del codes, stream
    crf = CRFClassifier(max_iter=2, n_jobs=n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        results["fit of 2 iterations"] = _measure.seconds(lambda: crf.fit(data, [labels]))
    results["decode"] = best(lambda: crf.predict(data), n_jobs)
    memory = {"data made": made, "peak": _measure.peak_mib()}
    print(json.dumps({"seconds": results, "MiB": memory, "objective": crf.objective_}))


def main() -> None:
    """Run the benchmark."""
    if len(sys.argv) > 1:
        measure(int(sys.argv[1]), int(sys.argv[2]))
        return
    _measure.in_child("long_sequence.py", "300000", "2")  # compiles
    runs = {
        f"{size:,} bases, {n_jobs} threads": _measure.in_child(
            "long_sequence.py", str(size), str(n_jobs)
        )
        for size in SIZES
        for n_jobs in THREADS
    }
    _measure.write("long_sequence", {"labels": 3, "attributes": BASES**3, "runs": runs})


if __name__ == "__main__":
    main()
