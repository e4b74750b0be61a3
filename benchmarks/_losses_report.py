"""The tables of the page on losses, as heads and rows, and whether what was claimed is found."""

from __future__ import annotations

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


def rules(cases: Cases) -> list[str]:
    """Return what the paper found, and whether it is found here."""
    lines = []
    for name in _gene_data.NAMES:
        found = {
            model: cases[key]
            for model in losses_genes.MODELS
            if (key := f"{name}, {_gene_data.TRIMERS}: {model}") in cases
        }
        if set(losses_genes.MODELS) <= set(found):
            lines += [_order(name, found), _fall(name, found[losses_genes.LOG])]
    for name in (*losses_genes.SOURCES, _gene_data.SYNTHETIC):
        lines += _gap(name, cases)
    return lines or ["Not measured."]


def _met(is_met: bool) -> str:
    return "met" if is_met else "**not met**"


def _order(name: str, found: Cases) -> str:
    """Tell whether labelwise training labels more of the training bases right than others."""
    train = {model: case["scores"]["train"]["accuracy"] for model, case in found.items()}
    best, counts, log = (
        train[model] for model in (losses_genes.LABELWISE, losses_genes.COUNTS, losses_genes.LOG)
    )
    return (
        f"- {name}, training accuracy of labelwise above that of counts and of the log loss: "
        f"{best:.2f} against {counts:.2f} and {log:.2f}: {_met(best > max(counts, log))}."
    )


def _fall(name: str, case: Any) -> str:
    """Tell whether accuracy falls while the likelihood rises."""
    told, all_met = [], True
    for half in case["halves"]:
        curve = half["curve"]
        best = max(range(len(curve["train"])), key=lambda i: curve["train"][i])
        deepest = _deepest_fall(curve["train"])
        before, after = (curve["iteration"][i] for i in deepest)
        values = [curve["train"][i] for i in deepest]
        risen = curve["objective"][deepest[0]] - curve["objective"][deepest[1]]
        all_met &= values[0] - values[1] > 0.5 and risen > 0.0
        told.append(
            f"from {values[0]:.1f} in iteration {before} to {values[1]:.1f} in {after}, while the "
            f"objective a base falls by {risen:.4f}; in the last one {curve['train'][-1]:.1f}, at "
            f"most {curve['train'][best]:.1f}"
        )
    return (
        f"- {name}, training accuracy falls by more than 0.5 while the likelihood rises: "
        f"{_met(all_met)} (halves: {'. Other half: '.join(told)})."
    )


def _deepest_fall(values: list[float]) -> tuple[int, int]:
    """Return the places between which values fall most."""
    pairs = [(i, j) for j in range(len(values)) for i in range(j + 1)]
    return max(pairs, key=lambda pair: values[pair[0]] - values[pair[1]])


def _gap(name: str, cases: Cases) -> list[str]:
    """Tell whether what labelwise training gains grows with wrong labels."""
    keys = [f"noise, {name}: {100 * rate:g} %" for rate in losses_genes.RATES]
    if not set(keys) <= set(cases):
        return []
    gaps = [cases[key]["labelwise - log"]["mean"] for key in keys]
    grows = gaps[-1] > gaps[0] and all(b >= a for a, b in zip(gaps, gaps[1:], strict=False))
    listed = ", ".join(f"{gap:+.2f}" for gap in gaps)
    end = "at each step" if grows else f"from first to last: {_met(gaps[-1] > gaps[0])}; each step"
    return [
        f"- {name}, test accuracy of labelwise minus that of the log loss grows with wrong labels "
        f"({', '.join(key.split(': ')[1] for key in keys)}): {listed}: {end}: {_met(grows)}."
    ]


def noise(cases: Cases) -> Table:
    """Return accuracies by the share of wrong labels."""
    rows = []
    for name in (*losses_genes.SOURCES, _gene_data.SYNTHETIC):
        for rate in losses_genes.RATES:
            case = cases.get(f"noise, {name}: {100 * rate:g} %")
            if case is not None:
                rows.append((
                    f"{name}: {100 * rate:g} %", *map(_spread, case["accuracy"].values()),
                    _spread(case["labelwise - log"], "+.2f"),
                ))  # fmt: skip
    return ("wrong labels", *losses_genes.NOISY, "labelwise - log"), rows


def _spread(case: Any, form: str = ".2f") -> str:
    return f"{case['mean']:{form}} ± {case['deviation']:.2f}"


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


def differences(cases: Cases) -> Table:
    """Return what each loss gains over the log loss on the same splits, and on how many."""
    head: Row = ("minus the log loss",)
    rows: dict[str, Row] = {}
    for kind in KINDS:
        names, found = _compared(cases, kind)
        log = found.pop(losses_compare.LOG, {})
        head += tuple(f"{name}, {kind}" for name in names)
        for title, row in found.items():
            cells = (_paired(row.get(name), log.get(name)) for name in names)
            rows[title] = (*rows.get(title, (title,)), *cells)
    return head, list(rows.values())


def _paired(one: Any, other: Any) -> str:
    if one is None or other is None:
        return "-"
    gains = [a - b for a, b in zip(one["all"], other["all"], strict=True)]
    return f"{statistics.mean(gains):+.2f}; {sum(gain > 0.0 for gain in gains)} of {len(gains)}"


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
        "losses_choose": lambda: tables(differences(read("losses_compare"))),
        "losses_compare": of_losses,
        "losses_genes": of_genes,
        "losses_genes_rules": lambda: rules(read("losses_genes")),
        "losses_noise": lambda: tables(noise(read("losses_genes"))),
        "partial_labels": lambda: tables(partial(read("partial_labels"))),
    }
