"""Write the tables of the README and of some pages of docs from the results of the benchmarks.

    python benchmarks/report.py

A page has a table between ``<!-- benchmarks:begin name -->`` and ``<!-- benchmarks:end -->``.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _collective_report
import _decoding_report
import _experiments_report
import _graph_learning_report
import _graphs_maximum_report
import _graphs_report
import _hmm_report
import _losses_report
import _ordinary_report
import _pos_report
import _round_trips_report
import _segment_report
import _soft_report
from _measure import read

HERE = Path(__file__).resolve().parent
BLOCK = re.compile(r"(<!-- benchmarks:begin ?(\S*) -->\n).*?(<!-- benchmarks:end -->)", re.DOTALL)
PEER = "python-crfsuite"
PAGES = [
    "README.md",
    *(f"docs/{page}.md" for page in ("performance", "margin", "segments", "losses")),
    *(f"docs/{page}.md" for page in ("soft_labels", "class_imbalance", "model_selection")),
    *(f"docs/{page}.md" for page in ("decoding", "constraints", "confidence", "active_learning")),
    "docs/collective.md",
    "docs/family.md",
    "docs/formats.md",
    "docs/graphs.md",
    "docs/graph_crf.md",
    "docs/experiments.md",
    "docs/hmm.md",
    "docs/pos_tagging.md",
    "docs/howto/index.md",
]
TARGETS = ("1 %", "0.1 %", "0.01 %")

Row = tuple[str, ...]


def cases(part: str) -> dict[str, Any]:
    """Return the results of a part of the suite."""
    found: dict[str, Any] = read(part).get("cases", {})
    return found


def table(head: Row, rows: list[Row]) -> list[str]:
    """Return the lines of a table; the first column is text."""
    if not rows:
        return ["Not measured."]
    marks = ("---", *("---:" for _ in head[1:]))
    return ["| " + " | ".join(row) + " |" for row in (head, marks, *rows)]


def times(value: float | None) -> str:
    """Return a ratio."""
    return "" if value is None else f"{value:.1f} x"


def short(seconds: float) -> str:
    """Return seconds, or milliseconds where they are few."""
    return f"{1e3 * seconds:.0f} ms" if seconds < 1.0 else f"{seconds:.1f} s"


def ordinary_lines() -> list[str]:
    """Return the ratios of all data sets and penalties."""
    found = cases("ordinary_settings")
    return [*_ordinary_report.summary(found), "", *table(*_ordinary_report.grid(found))]


def training_lines() -> list[str]:
    """Return a table for each problem: what it takes to come near the optimum."""
    lines: list[str] = []
    for name, case in cases("training").items():
        runs, ratios = case["runs"], case["times the seconds"]
        rows = [
            (f"{solver} ({run['runs']})", *(reached(run["targets"][t]) for t in TARGETS),
             times(ratios.get(solver, {}).get("0.1 %")))
            for solver, run in sorted(runs.items(), key=by_seconds)
        ]  # fmt: skip
        lines += [f"{name}: optimum {case['optimum']:,.4f}", ""]
        lines += [*table(("solver (runs)", *TARGETS, "ratio at 0.1 %"), rows), ""]
    return lines[:-1] or table((), [])


def by_seconds(item: tuple[str, Any]) -> float:
    """Sort runs by the seconds to 0.1 %."""
    point = item[1]["targets"]["0.1 %"]
    return float("inf") if point is None else float(point["seconds"])


def reached(point: dict[str, float] | None) -> str:
    """Return seconds and passes of a target."""
    return "-" if point is None else f"{short(point['seconds'])} ({point['passes']:.0f})"


def certified_lines() -> list[str]:
    """Return what a promise of nearness costs, and what came out."""
    rows = [
        (f"{name}: {solver}", target, f"{row['seconds']:.1f} s", str(row["passes"]),
         str(row["evaluations of the objective"]), f"{100 * row['above the optimum']:.4f} %")
        for name, case in cases("training").items()
        for solver, promises in case["certified"].items()
        for target, row in promises.items() if row["certified"]
    ]  # fmt: skip
    return table(("", "promised", "time", "passes", "evaluations", "true distance"), rows)


def pass_rows() -> list[Row]:
    """Return a row for each comparison of passes."""
    return [
        (name, short(case["crfkit seconds"]["1 threads"]),
         short(case["crfkit seconds"]["2 threads"]), short(case["crfsuite seconds"]),
         times(case["times the seconds"]["1 threads"]),
         times(case["times the seconds"]["2 threads"]))
        for name, case in cases("pass").items() if "crfkit seconds" in case
    ]  # fmt: skip


def pass_lines() -> list[str]:
    """Return the table of passes, and the iterations of other programs."""
    head = ("", "1 thread", "2 threads", PEER, "ratio, 1", "ratio, 2")
    others = cases("pass").get("other programs", {})
    said = [f"{name}: {row['seconds an iteration']:.2f} s an iteration with all state features, "
            "two threads." for name, row in others.items()]  # fmt: skip
    return [*table(head, pass_rows()), *([""] if said else []), *said]


def tagging_lines() -> list[str]:
    """Return the table of tagging and of marginals, in tokens a second."""
    rows: list[Row] = []
    for name, case in cases("tagging").items():
        for kind in ("tagging", "marginals"):
            if kind in case:
                speed, ratio = case[kind]["tokens a second"], case[kind].get("times the tokens", {})
                peer = next(iter(speed)) if ratio else ""
                rows.append((
                    f"{name}, {kind}", f"{speed['1 threads']:,.0f}", f"{speed['2 threads']:,.0f}",
                    f"{speed[peer]:,.0f} ({peer})" if peer else "-",
                    times(ratio.get("1 threads")), times(ratio.get("2 threads")),
                ))  # fmt: skip
    return table(("", "1 thread", "2 threads", "peer", "ratio, 1", "ratio, 2"), rows)


def memory_lines() -> list[str]:
    """Return the table of peak memory."""
    rows = [
        (f"{name}, {package}", *(f"{run[key]:,.0f}" for key in
                                 ("start", "encoded", "peak", "beyond the start")),
         f"{run['beyond the start'] / case['MiB'][PEER]['beyond the start']:.2f} x")
        for name, case in cases("memory").items()
        for package, run in case["MiB"].items()
    ]  # fmt: skip
    head = ("MiB", "start", "data encoded", "peak", "beyond the start", f"of {PEER}'s")
    return table(head, rows)


def scaling_lines() -> list[str]:
    """Return the table of sizes, with two threads."""
    rows = [
        (name, f"{case['weights']:,}", short(case["seconds a pass"]["2 threads"]),
         peer_of(case["seconds a pass"], short),
         f"{case['tokens a second']['2 threads']:,.0f}",
         peer_of(case["tokens a second"], "{:,.0f}".format))
        for name, case in cases("scaling").items()
    ]  # fmt: skip
    head = ("", "weights", "a pass", PEER, "tagging: tokens a second", PEER)
    return table(head, rows)


def peer_of(measured: dict[str, float], form: Callable[[float], str]) -> str:
    """Return the figure of python-crfsuite, if it took part."""
    return form(measured[PEER]) if PEER in measured else "-"


def agreement_lines() -> list[str]:
    """Return how well solvers agree, and whether a gap ever promised too much."""
    rows = [
        (f"{name}, c2 = {case['c2']:g}", f"{case['optimum']:,.4f}",
         f"{case['largest relative difference']:.0e}",
         f"{case['the optimum is certified to']:.0e}", str(case["passes with a gap"]),
         f"{case['least of (gap - distance to the optimum) / optimum']:.0e}")
        for name, case in cases("solvers_agree").items()
    ]  # fmt: skip
    return table(
        ("", "optimum", "largest difference", "certified to", "passes",
         "least of gap minus distance"), rows,
    )  # fmt: skip


def auto_lines() -> list[str]:
    """Return what `solver="auto"` takes against the batch solver."""
    rows = [
        (name, short(case["seconds"]["auto"]), f"{short(case['seconds']['batch'])} "
         f"({case['batch solver']})", times(case["times the seconds"]["auto"]),
         f"{100 * case['above the better']['auto']:.3f} %",
         f"{100 * case['above the better']['batch']:.3f} %")
        for name, case in cases("auto").items()
    ]  # fmt: skip
    head = ("", "auto", "batch solver", "ratio", "auto above the better", "batch above the better")
    return table(head, rows)


def many_labels_lines() -> list[str]:
    """Return the table of the Czech data."""
    rows = [
        (name, f"{run['sizes']['labels']:,}" if "sizes" in run else "",
         short(run["seconds a pass"]["2 threads"] if "seconds a pass" in run
               else run["seconds an iteration"]),
         *(f"{speed(run)[kind]:,.0f}" for kind in ("tagging", "marginals")),
         f"{run['peak MiB']:,.0f}")
        for name, run in read("large_labels").items()
        if isinstance(run, dict) and "tokens a second" in run
    ]  # fmt: skip
    head = ("", "labels", "a pass", "tagging: tokens a second", "marginals", "peak MiB")
    return table(head, rows)


def speed(run: dict[str, Any]) -> dict[str, float]:
    """Return tokens a second, with two threads where there is a choice."""
    found: dict[str, Any] = run["tokens a second"]
    return found.get("2 threads", found)


def long_sequence_lines() -> list[str]:
    """Return the table of one very long sequence."""
    rows = [
        (name, short(run["seconds"]["pass"]), short(run["seconds"]["decode"]),
         *(f"{run['MiB'][key]:,.0f}" for key in ("data made", "peak")))
        for name, run in read("long_sequence").get("runs", {}).items()
    ]  # fmt: skip
    return table(("", "a pass", "decoding", "MiB of the data", "peak MiB"), rows)


def losses_pass_lines() -> list[str]:
    """Return what passes of losses take, as multiples of the log loss."""
    rows = [
        (f"{case}: {name}", short(run["1 threads"]["seconds"][name]),
         *(f"{run[f'{n} threads']['times'][name]:.2f} x" for n in (1, 2)),
         f"{run['peak MiB'][name]:,.0f}", f"{run['times the memory'][name]:.2f} x")
        for case, run in read("losses_pass").get("runs", {}).items()
        for name in run["peak MiB"]
    ]  # fmt: skip
    head = (
        "",
        "a pass, one thread",
        "of the log loss",
        "two threads",
        "peak MiB",
        "of the log loss",
    )
    return table(head, rows)


def drop_in_rows() -> list[Row]:
    """Return the rows of the second table: what, crfkit, peer, ratio."""
    templates, tutorial = read("templates_conll2000"), read("conll2002_tutorial")
    extraction, whole = templates["extraction"]["seconds"], templates["end_to_end"]["seconds"]
    speed = templates["end_to_end"]["tokens_per_second"]
    new = templates["extraction"]
    address = read("usaddress_tagging")["best microseconds an address"]
    fits = tutorial["crfkit"]["fit"]
    alone, together = (
        min(each[threads]["seconds"] for each in fits) for threads in ("one thread", "all cores")
    )
    theirs = min(each["seconds"] for each in tutorial["sklearn-crfsuite"]["fit"])
    fit = "CoNLL-2002 tutorial with other import lines, fit, {}: seconds"
    return [
        compared("CoNLL-2000, raw columns to features of the training part: seconds",
                 extraction["fit_transform, templates"],
                 extraction["fit_transform, function"], "{:.2f} s"),
        compared("the same for new text, one thread: tokens a second",
                 new["tokens_per_second_transform"], new["tokens_per_second_item_sequence"],
                 "{:,.0f}"),
        compared("raw columns to a saved model: seconds", whole["train crfkit"],
                 whole["train sklearn-crfsuite"], "{:.0f} s"),
        compared("raw columns to tags, one thread: tokens a second",
                 speed["tag crfkit, 1 thread"], speed["tag sklearn-crfsuite"], "{:,.0f}"),
        compared("raw columns to tags, two threads: tokens a second",
                 speed["tag crfkit, 2 threads"], speed["tag sklearn-crfsuite"], "{:,.0f}"),
        compared(fit.format("one thread"), alone, theirs, "{:.1f} s"),
        compared(fit.format("two threads"), together, theirs, "{:.1f} s"),
        compared("usaddress, an address a call (`Tagger`)", address["crfkit tagger, all"],
                 address["crfsuite tagger, all"], "{:.0f} µs"),
        compared("usaddress, all at once (`predict`): an address",
                 address["crfkit predict, all"], address["crfsuite tagger, all"], "{:.0f} µs"),
    ]  # fmt: skip


def compared(what: str, ours: float, theirs: float, form: str) -> Row:
    """Return a row; where the unit is a rate, more is better."""
    ratio = ours / theirs if "a second" in what else theirs / ours
    return what, form.format(ours), form.format(theirs), f"{ratio:.1f} x"


def readme_rows() -> list[Row]:
    """Return the rows of the first table: what, crfkit, peer, ratio."""
    rows: list[Row] = []
    one = cases("pass").get("gradient, conll2000")
    if one:
        rows.append(compared("one pass (value and gradient) / one L-BFGS iteration: seconds",
                             one["crfkit seconds"]["2 threads"], one["crfsuite seconds"],
                             "{:.3f} s"))  # fmt: skip
    tagging = cases("tagging").get("conll2000", {})
    for kind in ("tagging", "marginals") if tagging else ():
        speeds = tagging[kind]["tokens a second"]
        rows += [compared(f"{kind}, {n} thread{'s' * (n > 1)}: tokens a second",
                          speeds[f"{n} threads"], speeds["crfsuite"], "{:,.0f}")
                 for n in (1, 2)]  # fmt: skip
    memory = cases("memory").get("conll2000", {}).get("MiB")
    if memory:
        rows += [compared(f"peak memory of a fit, 1 thread, {name}{without}",
                          memory[name][key], memory[PEER][key], "{:.0f} MiB")
                 for key, without in (("peak", ""), ("beyond the start", ", without imports"))
                 for name in ("auto, c2=1", "auto, c2=0.1")]  # fmt: skip
    return rows


def readme_lines() -> list[str]:
    """Return what the README says."""
    train = read("train_conll2000")
    return [
        *_ordinary_report.summary(cases("ordinary_settings")),
        "",
        "CoNLL-2000 chunking with the classic template (19 attributes a token, "
        f"{train['l2']['crfkit']['parameters']:,} weights, c2 = 1), crfkit with two threads unless "
        "noted, against python-crfsuite (which has one) in the same process run on a machine with "
        f"{train['machine']['cores']} cores:",
        "",
        *table(("", "crfkit", PEER, "ratio"), readme_rows()),
        "",
        f"Test chunk F1 {train['l2']['crfkit']['chunk_f1']:.2f} "
        f"(python-crfsuite {train['l2']['crfsuite']['chunk_f1']:.2f}), largest difference of any "
        f"of the {train['weights']['weights_compared']:,} weights at the optimum "
        f"{train['weights']['largest_difference']:.1e}.",
        "",
        "From raw columns, against a Python function that formats the attributes and "
        "python-crfsuite or sklearn-crfsuite, same process run:",
        "",
        *table(("", "crfkit", "CRFsuite's packages", "ratio"), drop_in_rows()),
    ]


def kernel_lines() -> list[str]:
    """Return where the time of a pass goes."""
    kernels = read("kernels")
    rows = [(name, f"{time:.0f}") for name, time in kernels["milliseconds"].items()]
    return [
        f"One pass over CoNLL-2000 ({kernels['tokens']:,} tokens, 22 labels, 19 attributes a "
        "token) on one thread:",
        "",
        *table(("step", "ms"), rows),
    ]


def step_lines() -> list[str]:
    """Return what attributes of steps cost."""
    rows = [
        (name, f"{row['weights']:,}", f"{1e3 * row['seconds']:.0f} ms")
        for name, row in read("step_attributes")["passes"].items()
    ]
    return table(("attributes of steps", "weights of them", "a pass"), rows)


def perceptron_lines() -> list[str]:
    """Return what epochs of online algorithms take and give."""
    rows = []
    for name, case in cases("perceptron").items():
        if "runs" in case:
            ours, theirs = (case["runs"][package] for package in ("crfkit", PEER))
            rows.append((
                name, short(ours["seconds an epoch"]), short(theirs["seconds an epoch"]),
                times(case["times the seconds"]["seconds an epoch"]),
                *(f"{run['f1']['mean']:.2f} ± {run['f1']['deviation']:.2f}"
                  for run in (ours, theirs)),
            ))  # fmt: skip
    head = ("", "an epoch", PEER, "ratio", "test F1", PEER)
    return table(head, rows)


def same_order_lines() -> list[str]:
    """Return how near the drop-in's weights are to CRFsuite's, and what training takes."""
    found = cases("perceptron")
    rows = [
        (name, f"{row['weights']:,}", f"{row['largest weight']:.3g}",
         f"{row['largest difference']:.0e}")
        for name, row in found.get("same order", {}).items()
    ]  # fmt: skip
    lines = table(("algorithm", "weights", "largest weight", "largest difference"), rows)
    if "memory" in found:
        peaks = {name: f"{row['peak']:.0f} MiB" for name, row in found["memory"].items()}
        lines += ["", "Peak memory of a process that makes ten epochs of the averaged perceptron: "
                  f"{peaks['crfkit']}, of python-crfsuite {peaks[PEER]}."]  # fmt: skip
    return lines


def margin_models_lines() -> list[str]:
    """Return the F1 of a margin beside those of other models."""
    case = cases("margin").get("models, conll2000")
    if not case:
        return table((), [])
    rows = [(name, f"{row['f1']:.2f}", f"{row['accuracy']:.2f}", short(row["seconds"]),
             str(row["iterations"])) for name, row in case["models"].items()]  # fmt: skip
    scores = ", ".join(f"{name} {score:.2f}" for name, score in case["F1 in the search"].items())
    return [
        *table(("", "test F1", "token accuracy", "seconds", "iterations"), rows), "",
        f"C = {case['C']:g} was chosen by three-fold cross-validation on the first "
        f"{case['sentences of the search']:,} sentences: {scores}.",
    ]  # fmt: skip


def margin_gap_lines() -> list[str]:
    """Return what the default solver takes to certify a distance from the optimum."""
    rows = [
        (name.removeprefix("gap, "), target, short(row["seconds"]), str(row["passes"]),
         f"{100 * row['gap']:.2f} %", f"{row['f1']:.2f}")
        for name, case in cases("margin").items() if name.startswith("gap, ")
        for target, row in case["gaps"].items()
    ]  # fmt: skip
    return table(("", "asked for", "time", "passes", "gap", "test F1"), rows)


def margin_curves_lines() -> list[str]:
    """Return where each solver of a margin ends."""
    lines: list[str] = []
    for name, case in cases("margin").items():
        if not name.startswith("curves, "):
            continue
        best = (case["optimum"]["at most"] + case["optimum"]["at least"]) / 2.0
        rows = [
            (solver, str(run["passes"]), short(run["seconds"]),
             f"{100 * (run['objective'] / best - 1.0):.2f} %",
             "-" if run["dual"] is None else f"{100 * (1.0 - run['dual'] / best):.2f} %")
            for solver, run in case["runs"].items()
        ]  # fmt: skip
        bounds = " to ".join(f"{case['optimum'][key]:,.2f}" for key in ("at least", "at most"))
        lines += [f"{name.removeprefix('curves, ')}, C = {case['C']:g}: optimum {bounds}", ""]
        head = ("solver", "passes", "time", "objective above it", "dual below it")
        lines += [*table(head, rows), ""]
    return lines[:-1] or table((), [])


def margin_claim_lines() -> list[str]:
    """Return whether exponentiated gradient overtakes SMO, as Gupta's report says."""
    lines = []
    for name, case in cases("margin").items():
        if not name.startswith("curves, "):
            continue
        best = (case["optimum"]["at most"] + case["optimum"]["at least"]) / 2.0
        found = case["EG against SMO"]
        far, rise = (
            [f"{100 * value:.2f} %" for value in values] for values in
            ((1.0 - found["duals then"][solver] / best for solver in ("eg", "smo")),
             (found["rise in the last fifth"][solver] for solver in ("eg", "smo")))
        )  # fmt: skip
        ahead = ", ".join(f"{a} to {b}" for a, b in found["EG is ahead in passes"]) or "none"
        data, passes = name.removeprefix("curves, "), found["passes of both"]
        lines.append(
            f"- {data}: EG is ahead in passes {ahead}; after {passes} its dual is {far[0]} below "
            f"the optimum, that of SMO {far[1]}; in the last fifth of these passes they rose by "
            f"{rise[0]} and {rise[1]}."
        )
    return lines or table((), [])


def handwriting_lines() -> list[str]:
    """Return mean and deviation of the errors of letters, over folds."""
    errors: dict[str, dict[str, list[float]]] = {}
    for key, case in cases("handwriting").items():
        way, _, name = key.partition(": ")
        way = way.rpartition(" ")[0]
        if way in ("train on fold", "test on fold"):
            errors.setdefault(name, {}).setdefault(way, []).append(100 * case["letters"])
    rows = [
        (name, *(_spread(found.get(way, [])) for way in ("train on fold", "test on fold")))
        for name, found in errors.items()
    ]
    head = ("wrong letters, %", "one fold to learn from, nine to test on", "nine and one")
    return table(head, rows)


def task_lines() -> list[str]:
    """Return what tasks of every day take."""
    rows = [
        (f"[{case['what']}]({case['page']}.md)", case["given"], str(case["lines"]),
         f"{case['seconds']:.1f}", case["result"])
        for case in cases("tasks").values()
    ]  # fmt: skip
    head, _, *lines = table(("task", "given", "lines", "seconds", "result"), rows)
    return [head, "| --- | --- | ---: | ---: | --- |", *lines]


def _spread(values: list[float]) -> str:
    """Return mean, deviation and number of values."""
    if not values:
        return "-"
    deviation = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{deviation} ({len(values)} folds)"


BLOCKS: dict[str, Callable[[], list[str]]] = {
    "": readme_lines,
    "ordinary": ordinary_lines,
    "ordinary_sizes": lambda: table(*_ordinary_report.sizes(cases("ordinary_settings"))),
    "batch_sizes": lambda: table(*_ordinary_report.batch_sizes(cases("batch_size"))),
    "ordinary_details": lambda: table(*_ordinary_report.details(cases("ordinary_settings"))),
    "training": training_lines,
    "certified": certified_lines,
    "pass": pass_lines,
    "kernels": kernel_lines,
    "steps": step_lines,
    "tagging": tagging_lines,
    "memory": memory_lines,
    "scaling": scaling_lines,
    "solvers_agree": agreement_lines,
    "auto": auto_lines,
    "large_labels": many_labels_lines,
    "long_sequence": long_sequence_lines,
    "losses_pass": losses_pass_lines,
    "perceptron": perceptron_lines,
    "same_order": same_order_lines,
    "margin_models": margin_models_lines,
    "margin_gap": margin_gap_lines,
    "margin_curves": margin_curves_lines,
    "margin_claim": margin_claim_lines,
    "handwriting": handwriting_lines,
    "segments_f1": lambda: table(*_segment_report.f1(cases("segments"))),
    "segments_differences": lambda: table(*_segment_report.differences(cases("segments"))),
    "segments_tasks": lambda: table(*_segment_report.tasks(cases("segments"))),
    "segments_penalties": lambda: table(*_segment_report.penalties(cases("segments"))),
    "segments_variants": lambda: table(*_segment_report.variants(cases("segments"))),
    "segments_cost": lambda: table(*_segment_report.cost(cases("segments"))),
    "segments_passes": lambda: table(*_segment_report.passes(cases("segments"))),
    "tasks": task_lines,
    **_collective_report.blocks(cases, table),
    **_losses_report.blocks(cases, table),
    **_soft_report.blocks(cases, table),
    **_graphs_report.blocks(cases, table),
    **_decoding_report.blocks(cases, table),
    **_experiments_report.blocks(cases, table),
    **_graph_learning_report.blocks(cases, table),
    **_hmm_report.blocks(cases, table),
    **_graphs_maximum_report.blocks(cases, table),
    **_pos_report.blocks(cases, table),
    **_round_trips_report.blocks(cases, table),
}


def rewrite(text: str) -> str:
    """Return a page with what stands between its marks written anew."""
    return BLOCK.sub(lambda match: match[1] + "\n".join([*BLOCKS[match[2]](), match[3]]), text)


def main() -> None:
    """Rewrite the tables."""
    for name in PAGES:
        path = HERE.parent / name
        path.write_text(rewrite(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
