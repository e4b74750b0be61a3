"""The shape of the package in numbers: sizes, hops, inheritance, probes, tuples.

Usage: python benchmarks/architecture.py [folder of a checkout] [--name after]

Counts the package in the given checkout (this one, if none is given) and writes the numbers under
the given name into benchmarks/results/architecture.json, beside those of other checkouts. Two
numbers rest on lists of names, which stand below: layouts of X and solver kernels.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))

from tests.architecture import Sources, parameters, room_of  # noqa: E402

RESULTS = HERE.parent / "results" / "architecture.json"
# Modules at the top of the package that are no room of their own: names, settings, commands.
SHELVES = {"demo", "warmup"}
# Classes that hold which attributes the tokens of (part of) the data have, each in arrays of its
# own: how many ways there are in which kernels read X.
LAYOUTS = {"PreparedRows", "PreparedColumns", "SharedEntries", "BatchPartition", "TokenEntries",
           "TokenDesign", "BatchDesign", "Design", "TouchedWeights", "ActiveWeights",
           "SegmentVisits"}  # fmt: skip
# Kernels of whole epochs of a solver, by their modules: before, and in rooms.
SOLVER_KERNELS = re.compile(
    r"kernels/((chain|segment)_(online|margin|segments|kernelized|dual|average)|solvers/[a-z]\w*)\.py"
)
NO_STRUCTURE = {"vector", "stochastic", "simplex"}  # of weights alone

# What is traced: what is called, and the kernels of which the first one ends the trip.
TRIPS = {
    "CRFClassifier.fit": ("CRFClassifier().fit(X, y)", "chain_sum lanes_sum"),
    "CRFClassifier.predict": ("crf.predict(X)", "chain_max chain_tag"),
    "SemiMarkovCRF.fit": ("SemiMarkovCRF().fit(X, y)", "semimarkov_sum"),
}
ESTIMATORS = ("CRFClassifier", "StructuredPerceptron", "MaxMarginCRF", "SemiMarkovCRF")
PROBE = """
import json, sys, warnings
import crfkit
from crfkit import CRFClassifier, SemiMarkovCRF
warnings.simplefilter("ignore")
root = crfkit.__path__[0]
X = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}]] * 3
y = [["A", "B"], ["B"]] * 3
crf = CRFClassifier(max_iter=2).fit(X, y)

class Arrived(Exception):
    pass

def trace(call, goal):
    files, stack, counts = set(), [], [0]
    def profile(frame, event, argument):
        code = frame.f_code
        if not code.co_filename.startswith(root) or event not in ("call", "return"):
            return
        if event == "call":
            if code.co_name in goal.split():
                live = frame
                while live is not None:
                    if live.f_code.co_filename.startswith(root):
                        stack.append(live.f_code.co_filename)
                    live = live.f_back
                sys.setprofile(None)
                raise Arrived
            counts[0] += 1
            files.add(code.co_filename)
    sys.setprofile(profile)
    try:
        exec(call, globals())
    except Arrived:
        return {"files entered": len(files), "calls": counts[0], "live stack": len(stack),
                "stack files": len(set(stack))}
    finally:
        sys.setprofile(None)

def shape(cls):
    own = [c for c in cls.__mro__ if c.__module__.startswith("crfkit")]
    methods = {n for c in own for n, v in vars(c).items()
               if callable(v) or isinstance(v, (property, classmethod, staticmethod))
               or hasattr(v, "__get__") and not n.startswith("__")}
    return {"own classes in the MRO": len(own), "methods": len(methods - {"__doc__"})}

print(json.dumps({
    "trips": {name: trace(*trip) for name, trip in json.loads(sys.argv[1]).items()},
    "estimators": {name: shape(getattr(crfkit, name)) for name in json.loads(sys.argv[2])},
}))
"""


def traced(checkout: Path) -> dict[str, Any]:
    """Return the hops of fitting and predicting, and the shape of estimators."""
    arguments = [sys.executable, "-c", PROBE, json.dumps(TRIPS), json.dumps(ESTIMATORS)]
    environment = os.environ | {"PYTHONPATH": str(checkout), "NUMBA_DISABLE_JIT": "1"}
    result = subprocess.run(
        arguments, env=environment, cwd=checkout, check=True, text=True, stdout=subprocess.PIPE
    )
    return dict(json.loads(result.stdout))


def counted(checkout: Path) -> dict[str, Any]:
    """Return what the sources of a checkout tell."""
    sources = Sources(checkout / "crfkit")
    sizes = [len(parameters(function)) for _, function in sources.functions]
    overrides = [text for text in sources.concrete_overrides() if "__" not in text]
    code = sources.code_lines()
    tests = sum(len(p.read_text("utf-8").splitlines()) for p in (checkout / "tests").rglob("*.py"))
    top = {room_of(path) for path in sources.trees if "/" not in path}
    domain = {name for name in top - SHELVES if name and not name.startswith("_") and name != "cli"}
    return {
        "lines": sources.lines(),
        "files": len(sources.trees),
        "code lines": code,
        "domain modules at the top": len(domain),
        "concrete overrides": len(overrides),
        "deepest own MRO": max(sources.inherited().values()),
        "parameters, most": max(sizes),
        "functions with more than 8 parameters": sum(size > 8 for size in sizes),
        "functions with more than 12 parameters": sum(size > 12 for size in sizes),
        "parameters of kernels typed Any": len(sources.untyped()),
        "positions read from anonymous tuples": len(sources.positions()),
        "probes and ladders per 1,000 code lines": round(1000 * sources.ladders() / code, 1),
        "layouts of X (classes of LAYOUTS)": len({c.name for c in sources.classes} & LAYOUTS),
        "solver-structure kernels": solver_kernels(sources),
        "test lines": tests,
        "test : code": round(tests / sources.lines(), 2),
    }


def solver_kernels(sources: Sources) -> int:
    """Count the modules whose kernels run a solver on a structure."""
    return sum(
        SOLVER_KERNELS.fullmatch(path) is not None
        and Path(path).stem not in NO_STRUCTURE
        and any(
            isinstance(node, ast.FunctionDef)
            and any(ast.unparse(d).startswith("kernel") for d in node.decorator_list)
            for node in tree.body
        )
        for path, tree in sources.trees.items()
    )


def table(results: dict[str, dict[str, Any]]) -> str:
    """Return the numbers of all checkouts, side by side."""
    rows: dict[str, dict[str, str]] = {}
    for name, result in results.items():
        for row, value in result["counts"].items():
            rows.setdefault(row, {})[name] = f"{value:,}"
        for trip, hops in result["traced"]["trips"].items():
            shown = "-" if hops is None else " / ".join(str(n) for n in hops.values())
            rows.setdefault(f"{trip}: files / calls / stack / its files", {})[name] = shown
        for estimator, shape in result["traced"]["estimators"].items():
            shown = " / ".join(str(n) for n in shape.values())
            rows.setdefault(f"{estimator}: own MRO / methods", {})[name] = shown
    lines = [f"{'':56}" + "".join(f"{name:>22}" for name in results)]
    for row, values in rows.items():
        lines.append(f"{row:56}" + "".join(f"{values.get(name, ''):>22}" for name in results))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=HERE.parents[1])
    parser.add_argument("--name", default="after", help="which column of the table it is")
    arguments = parser.parse_args()
    checkout = arguments.checkout.resolve()
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    results[arguments.name] = {"counts": counted(checkout), "traced": traced(checkout)}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(table(results))


if __name__ == "__main__":
    main()
