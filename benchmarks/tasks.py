"""Tasks of every day: how many lines they take, how many seconds, and what comes out.

    python benchmarks/tasks.py [--only ner stream] [--quick]

The code of a task are the blocks of its how-to page below ``<!-- task -->``, as they stand there.
What such a page begins with, a few recipes, is left out: the data are real ones, which `GIVEN` puts
where the page has its own. Each task runs in a process of its own, after the whole page has run
once, so that kernels are compiled. Lines are those that are neither empty nor comments; seconds are
those of the blocks, with packages imported: of the fastest run, where there are runs of the same
code with the same result. ``--quick`` takes few sequences. Writes ``results/tasks.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import _measure
from _task_data import GIVEN, RESULT

NAME = "tasks"
PAGES = Path(__file__).resolve().parents[1] / "docs" / "howto"
BLOCK = re.compile(r"^(<!-- task -->\n)?```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Task(NamedTuple):
    """A task, and the page that solves it."""

    name: str
    what: str
    given: str
    page: str


TASKS = [
    Task("ner", "Names in Spanish news, to an F1 of 0.80", "two CoNLL files", "ner"),
    Task("embeddings", "Dense vectors", "a matrix for each sequence", "embeddings"),
    Task("frames", "From a data frame to a column of predictions", "a data frame", "data_frames"),
    Task("csv", "From a CSV file to a tagged CSV file", "two CSV files", "csv"),
    Task("formats", "Label Studio, spaCy and Hugging Face, and back", "an export, new texts",
         "annotation_tools"),
    Task("penalties", "Search over c1 and c2", "tokens and tags", "penalties"),
    Task("uncertain", "Confidence of each entity, the 20 least certain sentences",
         "tokens and tags", "uncertain"),
    Task("legal", "No `I-` after `O`, and known tags", "tokens, tags, corrections", "legal_tags"),
    Task("partial", "Half of the labels are missing", "tokens and tags", "partly_labeled"),
    Task("rare", "Rare entities", "tokens and tags", "rare_entities"),
    Task("n_best", "The five best labelings", "tokens and tags", "n_best"),
    Task("explain", "Why this label", "tokens and tags", "explain"),
    Task("weights", "Weights to a table", "a fitted model", "weights_table"),
    Task("threads", "Serving from 8 threads", "a model file", "threads"),
    Task("million", "A million tokens", "tokens and tags", "million_tokens"),
    Task("stream", "A stream of sequences", "batches", "streams"),
]  # fmt: skip


def code_of(page: str) -> tuple[str, str]:
    """Return all Python of a page, and that of its task."""
    found = BLOCK.findall((PAGES / f"{page}.md").read_text(encoding="utf-8"))
    return "\n".join(code for _, code in found), "\n".join(code for mark, code in found if mark)


def lines_of(code: str) -> int:
    """Return how many lines are neither empty nor comments."""
    rows = (row.strip() for row in code.splitlines())
    return sum(bool(row) and not row.startswith("#") for row in rows)


def run(name: str, quick: bool) -> None:
    """Run a task in this process, and print what came out as JSON."""
    _, code = code_of(next(task.page for task in TASKS if task.name == name))
    scope = GIVEN[name](quick)
    started = time.perf_counter()
    exec(compile(code, name, "exec"), scope)
    seconds = time.perf_counter() - started
    print(json.dumps({"lines": lines_of(code), "seconds": seconds, "result": RESULT[name](scope)}))


def measured(task: Task, quick: bool) -> dict[str, Any]:
    """Return what a task takes in a process of its own."""
    here = Path(__file__).resolve()
    paths = [str(here.parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def child(*command: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, *command], cwd=folder, env=environment,
                                  capture_output=True, text=True)  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{task.name}:\n{done.stderr}")
        return done.stdout

    child("-c", code_of(task.page)[0])
    flags = ["--quick"] if quick else []
    found = child(str(here), "--run", task.name, *flags).strip().splitlines()[-1]
    return task._asdict() | json.loads(found)


def fastest(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return what a task took, in the fewest seconds of this run and of equal ones before."""
    if any(before.get(key) != now[key] for key in ("lines", "result")):
        return now | {"runs": 1}
    seconds = min(before["seconds"], now["seconds"])
    return now | {"seconds": seconds, "runs": before.get("runs", 1) + 1}


def main() -> None:
    """Run the tasks and write what they took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=[task.name for task in TASKS])
    parser.add_argument("--run", choices=[task.name for task in TASKS], help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.run:
        return run(options.run, options.quick)
    folder = Path(tempfile.mkdtemp()) if options.quick else _measure.RESULTS
    found = _measure.read(NAME, folder).get("cases", {})
    for task in TASKS:
        if not options.only or task.name in options.only:
            found[task.name] = fastest(found.get(task.name, {}), measured(task, options.quick))
            print(task.name, found[task.name], flush=True)
            order = {one.name: found[one.name] for one in TASKS if one.name in found}
            _measure.write(NAME, {"cases": order}, folder, show=False)


if __name__ == "__main__":
    main()
