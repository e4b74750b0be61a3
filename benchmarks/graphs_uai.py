"""Exact inference on the models of the UAI competition of 2014, against their published answers.

All models whose junction tree has no table of more than 2^22 entries; of the others, how large it
would be, and those up to 2^25 with a budget that allows them. Published are log10 Z and marginals
in 6 digits, `answers.tsv` has the largest scores that were computed otherwise. Seconds are those of
one call each: planning, log Z with all marginals, the largest score.
"""

from __future__ import annotations

import functools
import lzma
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _measure
import numpy as np
from _conll import data_home

from crfkit.graphs import RandomField
from crfkit.graphs.elimination import eliminate
from crfkit.graphs.junction_tree import JunctionTree
from crfkit.io import read_uai

LARGEST = 25.0  # log2 of the entries of a table
QUICK = ("Promedus_29", "Promedus_33", "Segmentation_11")


def marginals(path: Path) -> dict[int, np.ndarray]:
    """Return the published marginals of a model."""
    with lzma.open(path, "rt") as file:
        numbers = iter(file.read().split("MAR")[-1].split())
    return {
        v: np.array([float(next(numbers)) for _ in range(int(next(numbers)))])
        for v in range(int(next(numbers)))
    }


def largest_score(folder: Path, name: str) -> float:
    """Return the largest score that was computed otherwise; nan where none was."""
    for line in (folder / "answers.tsv").read_text(encoding="utf-8").splitlines():
        first, *_, last = line.split("\t")
        if first == f"{name}.uai" and "." in last:
            return float(last) if len(line.split("\t")) > 3 else math.nan
    return math.nan


def small(digits: float, published: float) -> bool:
    """Whether a number is the published one in all of its 6 digits."""
    return f"{digits:.6g}" == f"{published:.6g}"


def model(name: str) -> dict[str, Any]:
    """Compare one model with its answers."""
    folder = data_home() / "uai"
    field = read_uai(folder / f"{name}.uai.xz", folder / f"{name}.uai.evid")
    graph = field.tables
    started = time.perf_counter()
    order = eliminate(field.sizes, [graph.scope[i:j].tolist() for i, j in bounds(field)], 22.0)
    found = {
        "variables": len(field.nodes),
        "factors": len(field.factors),
        "log2 of the largest table": order.bits,
        "log2 of all tables": math.log2(order.entries),
        "seconds to eliminate": time.perf_counter() - started,
    }
    if order.bits > LARGEST:
        return found
    method = JunctionTree(budget=2 ** max(22, math.ceil(order.bits)))
    started = time.perf_counter()
    method.plans(graph)
    found["seconds to plan"] = time.perf_counter() - started
    for kind, ask in {"sums": field.infer, "maximum": field.map}.items():
        ask(method)  # compiles
        started = time.perf_counter()
        ask(method)
        found[f"seconds of {kind}"] = time.perf_counter() - started
    return found | compared(folder, name, field, method)


def bounds(field: RandomField) -> list[tuple[int, int]]:
    """Return where the variables of each factor start and end."""
    ptr = field.tables.scope_ptr.tolist()
    return list(zip(ptr[:-1], ptr[1:], strict=True))


def compared(folder: Path, name: str, field: RandomField, method: JunctionTree) -> dict[str, Any]:
    """Return the answers beside those that are known."""
    sums, best = field.infer(method), field.map(method)
    published = float((folder / f"{name}.uai.PR").read_text().split()[-1])
    log10_z = sums.log_partition / math.log(10.0)
    known, largest = marginals(folder / f"{name}.uai.MAR.xz"), largest_score(folder, name)
    return {
        "log10 Z": log10_z,
        "published log10 Z": published,
        "the same in 6 digits": small(log10_z, published),
        "largest difference of marginals": max(
            float(abs(shares - known[v]).max()) for v, shares in sums.marginals.items()
        ),
        "largest score": best.score,
        "computed otherwise": None if math.isnan(largest) else largest,
    }


def names() -> list[str]:
    """Return the names of all models."""
    return [path.name.removesuffix(".uai.xz") for path in (data_home() / "uai").glob("*.uai.xz")]


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    return {name: functools.partial(model, name) for name in (QUICK if quick else sorted(names()))}


def plot(results: dict[str, Any], folder: Path) -> None:
    """Print a line for each model."""
    for name, found in results.items():
        print(name, {key: value for key, value in found.items() if not key.startswith("pub")})


if __name__ == "__main__":
    _measure.write("graphs_uai", {"cases": {name: ask() for name, ask in cases(False).items()}})
