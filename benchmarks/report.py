"""Write the tables of the README and of docs/performance.md from the results of the benchmarks.

python benchmarks/report.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BEGIN, END = "<!-- benchmarks:begin -->", "<!-- benchmarks:end -->"


def load(name: str) -> dict[str, Any]:
    """Return the results of a benchmark."""
    return json.loads((HERE / "results" / f"{name}.json").read_text(encoding="utf-8"))


def rows() -> list[tuple[str, str, str, str]]:
    """Return the rows of the table: what, crfkit, peer, ratio."""
    train, tag = load("train_conll2000"), load("tag_conll2000")
    one, l2, l1, speed = train["pass"], train["l2"], train["l1"], tag["tokens_per_second"]
    marginals = tag["marginals_tokens_per_second"]
    table = [
        (
            "one pass (value and gradient) / one L-BFGS iteration",
            f"{1e3 * one['crfkit_seconds_per_pass_2_threads']:.0f} ms",
            f"{1e3 * one['crfsuite_seconds_per_iteration']:.0f} ms",
            one["ratio_2_threads"],
        ),
        *(
            (
                f"training, {name}: seconds (objective)",
                f"{result['crfkit']['seconds']:.0f} s ({result['crfkit']['objective']:,.1f})",
                f"{result['crfsuite']['seconds']:.0f} s ({result['crfsuite']['objective']:,.1f})",
                result["ratio_seconds"],
            )
            for name, result in (("c2 = 1", l2), ("c1 = 1, c2 = 0", l1))
        ),
        (
            "tagging, packed / `ItemSequence`: tokens a second",
            f"{speed['crfkit packed, 2 threads']:,.0f}",
            f"{speed['crfsuite ItemSequence']:,.0f}",
            tag["ratio_packed_2_threads"],
        ),
        (
            "tagging from lists of strings (one thread): tokens a second",
            f"{speed['crfkit lists, 1 thread']:,.0f}",
            f"{speed['crfsuite lists']:,.0f}",
            tag["ratio_lists_1_thread"],
        ),
        (
            "all marginals (one thread): tokens a second",
            f"{marginals['crfkit, 1 thread']:,.0f}",
            f"{marginals['crfsuite']:,.0f}",
            tag["ratio_marginals_1_thread"],
        ),
        memory_row(train["memory_mib"]),
    ]
    return [(*row[:3], f"{row[3]:.1f} x") for row in table]


def drop_in_rows() -> list[tuple[str, str, str, str]]:
    """Return the rows of the second table: what, crfkit, peer, ratio."""
    templates, tutorial = load("templates_conll2000"), load("conll2002_tutorial")
    extraction, whole = templates["extraction"]["seconds"], templates["end_to_end"]["seconds"]
    speed = templates["end_to_end"]["tokens_per_second"]
    new = templates["extraction"]
    address = load("usaddress_tagging")["best microseconds an address"]
    fits = [tutorial[name]["fit seconds"] for name in ("crfkit", "sklearn-crfsuite")]
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
        compared("CoNLL-2002 tutorial with other import lines, fit: seconds", *fits, "{:.0f} s"),
        compared("usaddress, an address a call (`Tagger`)", address["crfkit tagger, all"],
                 address["crfsuite tagger, all"], "{:.0f} µs"),
        compared("usaddress, all at once (`predict`): an address",
                 address["crfkit predict, all"], address["crfsuite tagger, all"], "{:.0f} µs"),
    ]  # fmt: skip


def compared(what: str, ours: float, theirs: float, form: str) -> tuple[str, str, str, str]:
    """Return a row; where the unit is a rate, more is better."""
    ratio = ours / theirs if "a second" in what else theirs / ours
    return what, form.format(ours), form.format(theirs), f"{ratio:.1f} x"


def memory_row(memory: dict[str, Any]) -> tuple[str, str, str, float]:
    """Return the row of the peak memory of training."""
    ours, theirs = memory["crfkit"], memory["crfsuite"]
    return (
        "peak memory of a process that trains",
        f"{ours['peak']:.0f} MiB ({ours['bytes_per_token']:.0f} bytes a token encoded)",
        f"{theirs['peak']:.0f} MiB",
        theirs["peak"] / ours["peak"],
    )


def readme_lines() -> list[str]:
    """Return what the README says."""
    train = load("train_conll2000")
    return [
        "CoNLL-2000 chunking with the classic template (19 attributes a token, "
        f"{train['l2']['crfkit']['parameters']:,} weights), crfkit with two threads unless noted, "
        "against python-crfsuite (which has one) in the same process run on a machine with "
        f"{train['machine']['cores']} cores:",
        "",
        "| | crfkit | python-crfsuite | ratio |",
        "| --- | ---: | ---: | ---: |",
        *("| " + " | ".join(row) + " |" for row in rows()),
        "",
        f"Test chunk F1 {train['l2']['crfkit']['chunk_f1']:.2f} "
        f"(python-crfsuite {train['l2']['crfsuite']['chunk_f1']:.2f}), largest difference of any "
        f"of the {train['weights']['weights_compared']:,} weights at the optimum "
        f"{train['weights']['largest_difference']:.1e}.",
        "",
        "From raw columns, against a Python function that formats the attributes and "
        "python-crfsuite or sklearn-crfsuite, same process run:",
        "",
        "| | crfkit | CRFsuite's packages | ratio |",
        "| --- | ---: | ---: | ---: |",
        *("| " + " | ".join(row) + " |" for row in drop_in_rows()),
    ]


def performance_lines() -> list[str]:
    """Return what docs/performance.md says."""
    kernels = load("kernels")
    return [
        f"One pass over CoNLL-2000 ({kernels['tokens']:,} tokens, 22 labels, 19 attributes a "
        "token) on one thread, medians:",
        "",
        "| step | ms |",
        "| --- | ---: |",
        *(f"| {name} | {time:.0f} |" for name, time in kernels["milliseconds"].items()),
        "",
        "The same corpus with attributes of steps, two threads:",
        "",
        "| attributes of steps | weights of them | a pass |",
        "| --- | ---: | ---: |",
        *(
            f"| {name} | {row['weights']:,} | {1e3 * row['seconds']:.0f} ms |"
            for name, row in load("step_attributes")["passes"].items()
        ),
    ]


def rewrite(path: Path, lines: list[str]) -> None:
    """Replace what stands between the marks of a page."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    body = "\n".join([BEGIN, *lines, END])
    path.write_text(before + body + after, encoding="utf-8")


def main() -> None:
    """Rewrite the tables."""
    rewrite(HERE.parent / "README.md", readme_lines())
    rewrite(HERE.parent / "docs" / "performance.md", performance_lines())


if __name__ == "__main__":
    main()
