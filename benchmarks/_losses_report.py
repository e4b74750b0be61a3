"""The tables of the page on losses, as heads and rows, and whether what was claimed is found."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from typing import Any

import _gene_data
import losses_compare
import losses_genes
import partial_labels

Row = tuple[str, ...]
Table = tuple[Row, list[Row]]
Cases = dict[str, Any]
LEAST_FALL = 0.5  # points of accuracy
KINDS = (losses_compare.ACCURACY, "sequence accuracy", "F1")


def genes(cases: Cases, features: str) -> Table:
    """Return the scores of each model on each genome."""
    rows = []
    for name in _gene_data.NAMES:
        for model in losses_genes.MODELS:
            case = cases.get(f"{name}, {features}: {model}")
            if case is None:
                continue
            train, test = (case["scores"][part] for part in ("train", "test"))
            likelihood = statistics.mean(one["log-likelihood a base"] for one in case["halves"])
            test = dict(test)
            accuracy = test.pop("accuracy")
            rows.append((
                f"{name}: {model}", f"{train['accuracy']:.1f}", f"{accuracy:.1f}",
                *(f"{test[kind]:.1f}" for kind in test), f"{1000 * likelihood:.1f}",
            ))  # fmt: skip
    kinds = [f"{unit} {kind}" for unit in ("transcript", "exon", "nucleotide")
             for kind in ("Sn", "Sp")]  # fmt: skip
    head = (features, "train accuracy", "test accuracy", *kinds, "log P of 1,000 bases, train")
    return head, rows


def rules(cases: Cases) -> Table:
    """Return what the papers found, and whether it is found here."""
    rows: list[Row] = []
    for name in _gene_data.NAMES:
        found = {
            model: cases[key]
            for model in losses_genes.MODELS
            if (key := f"{name}, {_gene_data.TRIMERS}: {model}") in cases
        }
        if set(losses_genes.MODELS) <= set(found):
            rows += [*_orders(name, found), _fall(name, found[losses_genes.LOG])]
    for name in (*losses_genes.SOURCES, _gene_data.SYNTHETIC):
        rows += _gaps(name, cases)
    return ("claim", "data", "found", ""), rows


def _met(is_met: bool) -> str:
    return "met" if is_met else "**not met**"


def _orders(name: str, found: Cases) -> list[Row]:
    """Tell whether labelwise training gets more of the training bases right than others."""
    train = {model: case["scores"]["train"]["accuracy"] for model, case in found.items()}
    counts, log = train[losses_genes.COUNTS], train[losses_genes.LOG]
    starts = {losses_genes.LABELWISE: "counts", losses_genes.FROM_LOG: "the log loss"}
    return [
        (
            f"labelwise, from {start}, gets more training bases right than counts and log", name,
            f"{train[model]:.1f} against {counts:.1f} and {log:.1f} %",
            _met(train[model] > max(counts, log)),
        )
        for model, start in starts.items()
    ]  # fmt: skip


def _fall(name: str, case: Any) -> Row:
    """Tell whether accuracy falls while the likelihood rises."""
    falls = {part: [_deepest_fall(half["curve"][part]) for half in case["halves"]]
             for part in ("train", "test")}  # fmt: skip
    train, test = (" and ".join(f"{fall:.1f}" for fall in values) for values in falls.values())
    return (
        f"log: accuracy falls by more than {LEAST_FALL} points while the likelihood rises, on the "
        "training part of both halves", name, f"by {train} (test: {test}) points",
        _met(min(falls["train"]) > LEAST_FALL),
    )  # fmt: skip


def _deepest_fall(values: list[float]) -> float:
    """Return by how much values fall at most, from one to any later one."""
    return max(max(values[: j + 1]) - value for j, value in enumerate(values))


def _gaps(name: str, cases: Cases) -> list[Row]:
    """Tell whether what labelwise training gains grows with wrong labels."""
    keys = [f"noise, {name}: {100 * rate:g} %" for rate in losses_genes.RATES]
    if not set(keys) <= set(cases):
        return []
    rows: list[Row] = []
    for model in (losses_genes.FROM_LOG, losses_genes.FROM_POINTWISE):
        gaps = [cases[key]["minus log"][model]["mean"] for key in keys]
        each = all(after > before for before, after in itertools.pairwise(gaps))
        rows.append((
            f"{model}: what it gains over log grows with 0, 10, 20, 30, 40 % of wrong labels", name,
            ", ".join(f"{gap:+.1f}" for gap in gaps),
            "met" if each else f"from 0 to 40 %: {_met(gaps[-1] > gaps[0])}; at each step: "
            "**not met**",
        ))  # fmt: skip
    return rows


def noise(cases: Cases) -> Table:
    """Return accuracies by the share of wrong labels."""
    rows = []
    for name in (*losses_genes.SOURCES, _gene_data.SYNTHETIC):
        for rate in losses_genes.RATES:
            case = cases.get(f"noise, {name}: {100 * rate:g} %")
            if case is not None:
                rows.append((
                    f"{name}: {100 * rate:g} %",
                    *(_spread(case["accuracy"][model], ".1f") for model in losses_genes.NOISY),
                ))  # fmt: skip
    return ("test accuracy, % of wrong labels", *losses_genes.NOISY), rows


def _spread(case: Any, form: str = ".2f") -> str:
    return f"{case['mean']:{form}} ± {case['deviation']:{form}}"


def _compared(cases: Cases, kind: str) -> tuple[list[str], dict[str, Cases]]:
    """Return the data sets that have a score, and the scores of each loss and decoding there."""
    found: dict[str, Cases] = {}
    names = [name for name in losses_compare.TASKS if kind != "F1" or losses_compare.TASKS[name].f1]
    for loss in losses_compare.LOSSES:
        own = losses_compare.own(loss)
        both = losses_compare.DECODINGS if loss == losses_compare.LOG else (own,)
        for decoding in both:
            title = f"{loss}, posterior decoding" if decoding != own else loss
            found[title] = {
                name: cases[f"{name}: {loss}"]["scores"][decoding][kind]
                for name in names
                if f"{name}: {loss}" in cases
            }
    return names, {title: row for title, row in found.items() if row}


def compare(cases: Cases, kind: str) -> Table:
    """Return mean and deviation of a score, of each loss on each data set."""
    names, found = _compared(cases, kind)
    rows = [
        (title, *(_spread(row[name]) if name in row else "-" for name in names))
        for title, row in found.items()
    ]
    return (f"{kind}, %", *names), rows


def choose(cases: Cases) -> Table:
    """Return the errors of each loss against those of the log loss on the same splits."""
    cells: dict[str, list[str]] = {}
    for kind in KINDS:
        _, found = _compared(cases, kind)
        log = found.pop(losses_compare.LOG, {})
        for title, row in found.items():
            cells.setdefault(title, []).append(_against(row, log))
    rows: list[Row] = [(title, *row) for title, row in cells.items()]
    return ("against the log loss", "wrong tokens", "wrong sequences", "100 - F1"), rows


def _against(row: Cases, log: Cases) -> str:
    """Return the geometric mean of ratios of errors, and in how many splits there are fewer."""
    ratios, fewer, splits = [], 0, 0
    for name in row.keys() & log.keys():
        pairs = list(zip(row[name]["all"], log[name]["all"], strict=True))
        ratios.append((100.0 - row[name]["mean"]) / (100.0 - log[name]["mean"]))
        fewer += sum(one > other for one, other in pairs)
        splits += len(pairs)
    change = 100.0 * (statistics.geometric_mean(ratios) - 1.0)
    return f"{change:+.1f} % (fewer in {fewer} of {splits} splits)"


def costs(cases: Cases) -> Table:
    """Return the penalty that was chosen, and what a fit with it takes."""
    rows = []
    for loss in losses_compare.LOSSES:
        found = [cases.get(f"{name}: {loss}") for name in losses_compare.TASKS]
        if any(found):
            rows.append((loss, *(
                "-" if case is None else f"{case['c2']:g}, {case['processor seconds of a fit']:.1f}"
                f" s ({case['iterations']:.0f})" for case in found
            )))  # fmt: skip
    return ("c2, a fit (iterations)", *losses_compare.TASKS), rows


def partial(cases: Cases) -> Table:
    """Return the F1 of each way with labels that are known in part."""
    settings: dict[str, Cases] = {}
    for key, case in cases.items():
        setting, _, way = key.partition(": ")
        settings.setdefault(setting, {})[way] = case
    rows = [
        (setting, *(_of_way(found, way) for way in partial_labels.WAYS))
        for setting, found in settings.items()
    ]
    return ("test F1 (sentences)", *partial_labels.WAYS), rows


def _of_way(found: Cases, way: str) -> str:
    case = found.get(way) or found.get(partial_labels.NOTHING)
    if case is None:
        return "-"
    return f"{case['F1']['mean']:.1f} ± {case['F1']['deviation']:.1f} ({case['sentences']:,.0f})"


Write = Callable[[Row, list[Row]], list[str]]


def blocks(read: Callable[[str], Cases], write: Write) -> dict[str, Callable[[], list[str]]]:
    """Return what writes the lines of each block, given what reads results and writes tables."""

    def tables(*made: Table) -> list[str]:
        return [line for one in made for line in (*write(*one), "")][:-1]

    def of_genes() -> list[str]:
        found = read("losses_genes")
        return tables(*(genes(found, features) for features in _gene_data.FEATURES))

    def of_losses() -> list[str]:
        found = read("losses_compare")
        return tables(*(compare(found, kind) for kind in KINDS), costs(found))

    return {
        "losses_choose": lambda: tables(choose(read("losses_compare"))),
        "losses_compare": of_losses,
        "losses_genes": of_genes,
        "losses_genes_rules": lambda: tables(rules(read("losses_genes"))),
        "losses_noise": lambda: tables(noise(read("losses_genes"))),
        "partial_labels": lambda: tables(partial(read("partial_labels"))),
    }
