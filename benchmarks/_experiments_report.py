"""Tables of the experiments with hidden Markov models, their relatives and sources."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

Row = tuple[str, ...]
Cases = Callable[[str], dict[str, Any]]
Table = Callable[[Row, list[Row]], list[str]]


def blocks(cases: Cases, table: Table) -> dict[str, Callable[[], list[str]]]:
    """Return what writes the lines of each block."""
    return {
        "square": lambda: table(*square(cases("square"))),
        "label_bias": lambda: table(*label_bias(cases("label_bias"))),
        "mixed_orders": lambda: table(*growth(cases("mixed_orders"))),
        "mixed_orders_wins": lambda: table(*wins(cases("mixed_orders"))),
        "solver_history": lambda: solver_lines(cases("solver_history"), table),
        "learning_curves": lambda: learning_lines(cases("learning_curves"), table),
    }


def percent(values: list[float], digits: int = 1) -> str:
    """Return mean and deviation of shares."""
    means = f"{100 * statistics.mean(values):.{digits}f}"
    return f"{means} ± {100 * statistics.stdev(values):.{digits}f}" if len(values) > 1 else means


def square(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return errors and log losses of each model, by words and by attributes that overlap."""
    head = ("", "words: wrong, %", "-log P(y given x) a token", "overlapping: wrong, %",
            "-log P(y given x) a token")  # fmt: skip
    kinds = [found[kind] for kind in ("words", "overlapping") if kind in found]
    rows = []
    for name in kinds[0] if len(kinds) == 2 else ():
        cells = []
        for kind in kinds:
            cells += [percent(kind[name]["wrong"]), f"{statistics.mean(kind[name]['loss']):.2f}"]
        rows.append((name, *cells))
    return head, rows


def label_bias(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the errors of each model, and the least ones."""
    head = ("wrong, %", "labels", "words")
    if "errors" not in found:
        return head, []
    case = found["errors"]
    rows = [(name, percent(row["labels"]), percent(row["words"]))
            for name, row in sorted(case["errors"].items())]  # fmt: skip
    known = {"bayes": "the least possible", "biased": "the least without the second letter"}
    rows += [(said, *(f"{100 * case[f'{name}_{kind}_error']:.2f}" for kind in ("label", "word")))
             for name, said in known.items()]  # fmt: skip
    return head, rows


def _with_both(errors: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return errors with those of the better one of HMM and MEMM on each source."""
    return errors | {"both": list(map(min, errors["HMM"], errors["MEMM"]))}


def _by_alpha(found: dict[str, Any]) -> dict[float, dict[str, Any]]:
    """Return the cases of each weight, by how orders are mixed."""
    by_alpha: dict[float, dict[str, Any]] = {}
    for case in found.values():
        by_alpha.setdefault(case["alpha"], {})[case["mixing"]] = _with_both(case["errors"])
    return dict(sorted(by_alpha.items()))


MODELS = ("HMM", "MEMM", "CRF", "source")
MIXINGS = {"local": "steps", "global": "sequences"}


def growth(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the mean errors by the weight of the second order."""
    head = tuple(f"{name}, {said}" for said in MIXINGS.values() for name in MODELS)
    rows = [
        (f"{alpha:g}", *(f"{100 * statistics.mean(errors[mixing][name]):.1f}"
                         if mixing in errors else "-" for mixing in MIXINGS for name in MODELS))
        for alpha, errors in _by_alpha(found).items()
    ]  # fmt: skip
    return ("weight", *head), rows


def wins(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return in how many models one errs less than another, and by how much on average."""
    rows = []
    for better, worse in (("CRF", "MEMM"), ("CRF", "HMM"), ("CRF", "both"), ("HMM", "MEMM")):
        for mixing, said in MIXINGS.items():
            pairs = {
                high: [
                    pair for alpha, errors in _by_alpha(found).items()
                    if mixing in errors and (alpha >= 0.5) == high
                    for pair in zip(errors[mixing][better], errors[mixing][worse], strict=True)
                ]
                for high in (True, False)
            }  # fmt: skip
            cells = [cell for high in (True, False) for cell in _compared(pairs[high])]
            rows.append((f"{better} below {worse}, mixed {said}", *cells))
    head = ("", "weight 0.5 and more", "errors fewer by", "weight below 0.5", "errors fewer by")
    return head, rows


def _compared(pairs: list[tuple[float, float]]) -> Row:
    """Return the share of pairs whose first is less, and by how much the sums differ."""
    if not pairs:
        return "-", "-"
    less = sum(first < second for first, second in pairs)
    first, second = (sum(values) for values in zip(*pairs, strict=True))
    share = f"{100 * less / len(pairs):.0f} % of {len(pairs)}"
    return share, f"{100 * (1.0 - first / second):.1f} %"


def solver_lines(found: dict[str, Any], table: Table) -> list[str]:
    """Return a table for each objective."""
    lines: list[str] = []
    for name, case in found.items():
        lines += [f"{name[0].upper()}{name[1:]} ({case['sizes']['tokens']:,} tokens, "
                  f"{case['weights']} weights):", "", *table(*_solvers(case)), ""]  # fmt: skip
    return lines[:-1] or table(("",), [])


def _solvers(case: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return what each solver takes for each target, the fastest first."""
    last = {name: run["curve"][-1] for name, run in case["runs"].items()}
    fastest = sorted(
        case["runs"], key=lambda name: (case["runs"][name]["targets"]["1e-6"] is None, last[name])
    )
    base = case["runs"]["lbfgs"]["targets"]["1e-3"]["seconds"]
    rows = []
    for name in fastest:
        cells: list[str] = []
        for target, point in case["runs"][name]["targets"].items():
            if point is None:
                seconds, passes, value = last[name]
                left = f"{value / case['optimum'] - 1.0:.0e}"
                cells += [f"({left} after {passes:,})", f"({seconds:.0f} s)"]
            else:
                cells += [f"{point['iterations']:,} ({point['passes']:,})",
                          f"{point['seconds']:.3g} s"]  # fmt: skip
            if target == "1e-3":
                cells.append("-" if point is None else f"{point['seconds'] / base:.1f} x")
        rows.append((name, *cells))
    return (
        "solver", "iterations (passes) to 1e-3", "seconds", "of lbfgs",
        "iterations (passes) to 1e-6", "seconds",
    ), rows  # fmt: skip


def learning_lines(found: dict[str, Any], table: Table) -> list[str]:
    """Return a table for each source."""
    lines: list[str] = []
    for name, case in found.items():
        draws = len(next(iter(case["errors"].values()))[0])
        said = f"{name[0].upper()}{name[1:]}, means of {draws} draws:"
        lines += [said, "", *table(*_learning(case)), ""]
    return lines[:-1] or table(("",), [])


def _learning(case: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return errors by the number of sequences, and differences with their standard errors."""
    errors, rows = case["errors"], []
    for place, n in enumerate(case["sequences"]):
        cells = [f"{100 * statistics.mean(row[place]):.1f}" for row in errors.values()]
        for better, other in (("HMM", "CRF"), ("naive Bayes", "logistic regression")):
            pairs = zip(errors[better][place], errors[other][place], strict=True)
            gaps = [100 * (a - b) for a, b in pairs]
            spread = statistics.stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else 0.0
            cells.append(f"{statistics.mean(gaps):+.2f} ± {spread:.2f}")
        rows.append((f"{n:,}", *cells))
    head = ("sequences", *errors, "HMM - CRF", "naive Bayes - logistic regression")
    return head, rows
