"""Tables of questions, constraints, confidence and active learning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import calibration
import constraints
import corrections

Row = tuple[str, ...]
Cases = Callable[[str], dict[str, Any]]
Table = Callable[[Row, list[Row]], list[str]]


def blocks(cases: Cases, table: Table) -> dict[str, Callable[[], list[str]]]:
    """Return what writes the lines of each block."""
    return {
        "decoding_risk": lambda: table(*decoded(cases("decoders"))),
        "decoding_cost": lambda: table(*cost(cases("decoding"))),
        "decoding_programs": lambda: table(*programs(cases("decoding"))),
        "constraints_names": lambda: table(*names(cases("constraints"))),
        "constraints_records": lambda: table(*records(cases("constraints"))),
        "constraints_methods": lambda: table(*methods(cases("constraints"))),
        "corrections": lambda: table(*corrected(cases("corrections"))),
        "looked_at": lambda: table(*looked_at(cases("corrections"))),
        "calibration": lambda: table(*calibrated(cases("calibration"))),
        "confidence_ranking": lambda: table(*ranked(cases("calibration"))),
        "risk_coverage": lambda: table(*coverage(cases("calibration"))),
        "active_learning": lambda: table(*asked(cases("active_learning"))),
    }


def spread(found: dict[str, Any], digits: int = 1, sign: bool = False) -> str:
    """Return a mean and its deviation."""
    form = f"{'+' if sign else ''}.{digits}f"
    return f"{found['mean']:{form}} ± {found['deviation']:.{digits}f}"


def cost(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return what each question takes on each data set."""
    sets = {name: case for name, case in found.items() if "questions" in case}
    head = ("processor time of one thread", "of", *(
        f"{name}, {what}" for name in sets for what in ("ms", "times", "MiB")
    ))  # fmt: skip
    first = next(iter(sets.values()), {"questions": {}})["questions"]
    rows = [
        (f"`{name}`" if " " not in name else name, "itself" if row["of"] == name
         else f"`{row['of']}`", *(text for case in sets.values()
                                 for text in _costs(case["questions"][name])))
        for name, row in first.items()
    ]  # fmt: skip
    return head, rows


def _costs(row: dict[str, float]) -> Row:
    return f"{1e3 * row['seconds']:.0f}", f"{row['times']:.2f} x", f"{row['peak MiB']:.0f}"


def programs(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return tokens a second of each program, from columns of text on."""
    kinds = ("best", "ten best", "marginals")
    rows = []
    for name, case in found.items():
        for program, answers in case.get("programs", {}).items():
            rows.append((f"{name.removesuffix(', programs')}, {program}", *(
                f"{answers[kind]['tokens a second']:,.0f} ({answers[kind]['of best']:.1f} x)"
                if kind in answers else "-" for kind in kinds
            )))  # fmt: skip
    return ("tokens a second (and times the time of the best)", *kinds), rows


def names(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return F1 with and without a tag scheme."""
    head = ("names", "decoding", "illegal tags in 1,000 spans of the text", "F1 without",
            "F1 with", "gain", "tokens, gain")  # fmt: skip
    rows = []
    for name, case in found.items():
        for way in constraints.DECODINGS:
            if way in case:
                free, legal = (case[way][rule] for rule in (constraints.FREE, constraints.LEGAL))
                gains = legal["gains"]
                rows.append((
                    name, way, f"{1e3 * free['illegal tags']['mean'] / case['spans']:.1f}",
                    f"{free['F1']['mean']:.2f}", f"{legal['F1']['mean']:.2f}",
                    spread(gains["F1"], 2, True), spread(gains["tokens"], 3, True),
                ))  # fmt: skip
    return head, rows


def records(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return scores of records under rules, and what was proved."""
    keys = ("tokens", "F1", "whole")
    head = ("records", "rules", "tokens", "gain", "F1 of fields", "gain", "whole records", "gain",
            "proved optimal", "of it by Viterbi alone")  # fmt: skip
    rows = []
    for name, case in found.items():
        for way, row in case.get("ways", {}).items():
            gains = ["-" if way == constraints.FREE else spread(row["gains"][key], 1, True)
                     for key in keys]  # fmt: skip
            scores = [text for key, gain in zip(keys, gains, strict=True)
                      for text in (f"{row[key]['mean']:.1f}", gain)]  # fmt: skip
            shares = (f"{row[key]['mean']:.1f} %" for key in ("optimal", "by viterbi"))
            rows.append((name, way, *scores, *shares))
    return head, rows


def methods(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return how labels were found under rules, by what products may take."""
    ways = ("viterbi", "product", "relaxation", "integer program")
    rows = [
        (f"{name.removeprefix('methods, ')}, {case['rules']} rules, {budget}",
         *(f"{row.get(f'by {way}', 0.0):.1f}" for way in ways), f"{row['optimal']:.1f}",
         f"{row['best']:.1f}", f"{1e3 * row['seconds'] / case['records']:.1f}")
        for name, case in found.items() if "budgets" in case
        for budget, row in case["budgets"].items()
    ]  # fmt: skip
    head = ("`max_states`", *(f"by {way}, %" for way in ways), "proved, %", "best, %",
            "ms a record")  # fmt: skip
    return head, rows


def corrected(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return what one corrected field changes beyond itself."""
    head = ("records with an error", "field corrected", "fewer wrong tokens beyond it, %",
            "fewer wrong fields, %", "corrections by hand", "with labels found anew")  # fmt: skip
    rows = []
    for name, case in found.items():
        for way in (corrections.AT_RANDOM, corrections.LEAST_CONFIDENT):
            row = case[way]
            rows.append((
                f"{name} learned from, {row['records']['mean']:.0f} wrong of them", way,
                spread(row["fewer wrong tokens, %"]), spread(row["fewer wrong fields, %"]),
                f"{row['corrections by hand']['mean']:.2f}", spread(row["corrections"], 2),
            ))  # fmt: skip
    return head, rows


def looked_at(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return how many fields are shown until one is wrong."""
    orders = ("as they stand", corrections.AT_RANDOM, corrections.LEAST_CONFIDENT)
    head = ("fields shown until one is wrong (and how often the first one is, %)", *orders)
    rows = [
        (name, *(
            f"{case['looked at'][f'{order}: fields until one is wrong']['mean']:.1f} "
            f"({case['looked at'][f'{order}: first is wrong, %']['mean']:.0f})"
            for order in orders
        ))
        for name, case in found.items()
    ]  # fmt: skip
    return head, rows


def calibrated(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return calibration errors before and after."""
    keys = ("ECE, %", "Brier", "log loss")
    head = ("", "right, %", *(f"{key}, {way}" for key in keys for way in calibration.WAYS))
    rows = []
    for name, case in found.items():
        for level, ways in case.get("levels", {}).items():
            rows.append((
                f"{name}: {level}", f"{ways[calibration.AS_IT_IS]['right, %']['mean']:.1f}",
                *(spread(ways[way][key]) if "%" in key else f"{ways[way][key]['mean']:.3f}"
                  for key in keys for way in calibration.WAYS),
            ))  # fmt: skip
    return head, rows


def decoded(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the scores of decoders."""
    keys = ("tokens", "precision", "recall", "F1")
    rows = [
        (
            f"{name}, `{kind}`",
            *(f"{row[key]['mean']:.2f}" for key in keys[:3]),
            spread(row["F1"], 2),
        )
        for name, case in found.items()
        for kind, row in case.items()
        if isinstance(row, dict)
    ]  # fmt: skip
    return ("", "tokens that are right, %", *(f"{key} of spans" for key in keys[1:])), rows


def ranked(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the average precision of what ranks fields and records."""
    rows = []
    for name, case in found.items():
        for of in ("fields", "records") if name.startswith("ranking") else ():
            rows.append((
                f"{name.removeprefix('ranking, ')}, {of}", f"{case[f'{of} right, %']['mean']:.1f}",
                *(spread(row) for key, row in case.items() if key.startswith(f"{of}, ")
                  and "mean of" not in key),
            ))  # fmt: skip
    return ("average precision, %", "right, %", "probability", "product of tokens",
            "least token, or field"), rows  # fmt: skip


def coverage(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the share of errors among the surest."""
    ranking = {key: case for key, case in found.items() if key.startswith("ranking")}
    shares = [key.rpartition(" of the ")[2] for key in next(iter(ranking.values()), {})
              if key.startswith("fields wrong")]  # fmt: skip
    rows = [
        (f"{name.removeprefix('ranking, ')}, {of}",
         *(f"{case[f'{of} wrong of the {share}']['mean']:.1f}" for share in shares))
        for name, case in ranking.items() for of in ("fields", "records")
    ]  # fmt: skip
    return ("wrong, %, of", *(f"the {share}" for share in shares)), rows


def asked(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return how many labels each query function takes to the target."""
    head = ("", "labeled tokens to 95 % of the full F1", "of those at random", "of all",
            "seconds of queries")  # fmt: skip
    rows = []
    for name, case in found.items():
        tokens = case["tokens to the target"]
        base = found[f"{name.partition(': ')[0]}: random"]["tokens to the target"]
        rows.append((
            name, "not reached" if tokens is None
            else f"{tokens['mean']:,.0f} ± {tokens['deviation']:,.0f}",
            "-" if tokens is None or base is None
            else f"{100 * tokens['mean'] / base['mean']:.0f} %",
            "-" if tokens is None else f"{100 * tokens['mean'] / case['pool tokens']:.0f} %",
            f"{case['processor seconds of queries']:.1f}",
        ))  # fmt: skip
    return head, rows
