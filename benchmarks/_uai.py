"""The models of the UAI competition of 2014, as factor graphs, with what was published of them."""

from __future__ import annotations

import functools
import lzma
import math
from typing import NamedTuple

import numpy as np
from _conll import data_home

from crfkit._types import FloatArray
from crfkit.graphs.junction_tree import JunctionTree
from crfkit.graphs.tables import factor_tables
from crfkit.io import read_uai
from crfkit.kernels.graph.arrays import FactorTables

LARGE = 1 << 27


class Model(NamedTuple):
    """A factor graph, the known variables of which are left out, with its answers.

    Published ones have six digits; those of associative models are the exact ones of a junction
    tree.
    """

    graph: FactorTables
    log_partition: float  # in nats
    marginals: FloatArray  # of the states of all variables


def names() -> list[str]:
    """Return the models with published sums, and associative ones of two labels."""
    folder = data_home() / "uai"
    rows = [row.split("\t") for row in (folder / "associative/optima.tsv").read_text().splitlines()]
    of_two = [f"associative/{row[0][:-4]}" for row in rows if row[1] == "2"]
    return sorted(path.name[:-7] for path in folder.glob("*.uai.PR")) + of_two


@functools.lru_cache(maxsize=1)
def model(name: str) -> Model:
    """Return a model."""
    folder = data_home() / "uai"
    field = read_uai(folder / f"{name}.uai.xz", folder / f"{name}.uai.evid")
    number = {node: i for i, node in enumerate(field.nodes)}
    graph = factor_tables(
        field.sizes, [[number[node] for node in factor.nodes] for factor in field.factors],
        [factor.scores for factor in field.factors],
    )  # fmt: skip
    if name.startswith("associative"):
        sums = JunctionTree(budget=LARGE).sums(graph)
        return Model(graph, float(sums.log_partition[0]), sums.marginals)
    words = (folder / f"{name}.uai.PR").read_text().split()
    with lzma.open(folder / f"{name}.uai.MAR.xz", "rt") as file:
        told = [float(word) for word in file.read().split()[2:]]
    marginals, at = [], 0
    while at < len(told):
        size = int(told[at])
        marginals.append(told[at + 1 : at + 1 + size])
        at += size + 1
    known = [marginals[node] for node in field.nodes]
    return Model(graph, float(words[1]) * math.log(10.0), np.concatenate([np.empty(0), *known]))
