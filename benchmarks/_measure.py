"""Measuring: medians, peak memory of a child process, results as JSON."""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
# A list of numbers, which is written on one line.
NUMBERS = re.compile(r"\[[^\[\]{}\"]+\]")


def seconds(function: Callable[[], Any]) -> float:
    """Return the wall time of one call."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def medians(functions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each function, called in turns so that noise hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            times[name].append(seconds(function))
    return {name: statistics.median(values) for name, values in times.items()}


def peak_mib() -> float:
    """Return the peak resident memory of this process so far, in MiB.

    Linux counts it for each program; what `resource` tells includes the parent of a child.
    """
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rss_mib() -> float:
    """Return the resident memory of this process, in MiB; its peak where that is all there is."""
    return _status("VmRSS") or peak_mib()


def _status(key: str) -> float:
    """Return a line of what Linux tells of this process, in MiB; 0 on other systems."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines[key].split()[0]) / 1024


def in_child(script: str, *arguments: str) -> dict[str, Any]:
    """Run a script of this folder with arguments; its last line is JSON."""
    result = subprocess.run(
        [sys.executable, str(Path(__file__).parent / script), *arguments],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(result.stdout.strip().splitlines()[-1])


def read(name: str, folder: Path = RESULTS) -> dict[str, Any]:
    """Return the results of an earlier run, empty if there are none."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(name: str, results: dict[str, Any], folder: Path = RESULTS, show: bool = True) -> None:
    """Write results with what they were measured on, and print them."""
    packages = ["crfkit", "numpy", "scipy", "scikit-learn", "numba", "python-crfsuite"]
    results["machine"] = {
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }
    folder.mkdir(parents=True, exist_ok=True)
    text = NUMBERS.sub(lambda row: " ".join(row[0].split()), json.dumps(results, indent=2))
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    if show:
        print(text)
