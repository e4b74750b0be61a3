"""``crfkit info``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from crfkit._params import check_whole
from crfkit.cli._common import add_allow

_OWN_PLACE = {"file", "bytes", "labels", "templates", "n_attributes", "counts", "weights"}


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "info",
        help="show what a model file holds",
        description="Show versions, parameters, labels, sizes and the strongest weights.",
        epilog="examples:\n  crfkit info m.crfkit --top 20\n  crfkit info model.crfsuite --json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", help="a model file of crfkit or CRFsuite")
    parser.add_argument("--top", type=int, default=10, help="how many weights (default: 10)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_allow(parser)
    parser.set_defaults(check=check, run=run)


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage."""
    check_whole("--top", arguments.top)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from crfkit.cli import _models

    model = _models.open_model(arguments.model, arguments.allow)
    facts = _facts(model, _models.weight_views(model.crf), arguments)
    if _models.learns_segments(model.crf):
        facts |= _facts_of_segments(model.crf)
    if arguments.json:
        print(json.dumps(facts, indent=2, default=str))
    else:
        _print_facts(facts)


def _facts(model: Any, views: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    crf = model.crf
    return {
        "file": arguments.model,
        "bytes": os.path.getsize(arguments.model),
        **{key: value for key, value in model.about.items() if key not in ("labels", "parameters")},
        "parameters": model.about.get("parameters", {}),
        "labels": [str(label) for label in crf.classes_],
        "templates": _templates(model.features),
        "n_attributes": crf.n_features_in_,
        "counts": {kind: len(view) for kind, view in views.items()},
        "weights": {
            kind: [[*map(str, name), weight] for name, weight in view.top(arguments.top)]
            for kind, view in views.items()
        },
    }


def _facts_of_segments(crf: Any) -> dict[str, Any]:
    return {
        "scheme": crf.scheme_,
        "longest": {str(label): length for label, length in crf.max_lengths_.items()},
    }


def _templates(features: Any) -> list[str]:
    """Return the templates of a pipeline, one a line."""
    steps = [] if features is None else [step for _, step in features.steps]
    found: list[str] = []
    for step in _parts(steps):
        templates = getattr(step, "templates", [])
        lines = templates.splitlines() if isinstance(templates, str) else _flat(templates)
        found += [str(line) for line in lines]
    return found


def _parts(steps: list[Any]) -> list[Any]:
    """Return transformers, in place of a union those that it joins."""
    joined = [[part for _, part in getattr(step, "transformers", [("", step)])] for step in steps]
    return [part for parts in joined for part in parts]


def _flat(items: Any) -> list[Any]:
    if not isinstance(items, (list, tuple)):
        return [items]
    return [leaf for item in items for leaf in _flat(item)]


def _print_facts(facts: dict[str, Any]) -> None:
    """Print a report; what standard output cannot hold is shown by its number."""
    encoding = sys.stdout.encoding or "utf-8"
    for line in _report(facts):
        print(line.encode(encoding, "backslashreplace").decode(encoding))


def _report(facts: dict[str, Any]) -> Iterator[str]:
    for name, value in facts.items():
        if name not in _OWN_PLACE and value:
            yield f"{name:<12} {_line(value)}"
    yield f"{'file':<12} {facts['file']}, {facts['bytes']:,} bytes"
    yield f"{'labels':<12} {len(facts['labels'])}: {' '.join(facts['labels'])}"
    sizes = ", ".join(f"{count:,} of {kind}" for kind, count in facts["counts"].items())
    yield f"{'sizes':<12} {facts['n_attributes']:,} attributes; weights not 0: {sizes}"
    if facts["templates"]:
        yield "\ntemplates"
        yield from (f"  {line}" for line in facts["templates"])
    for kind, rows in facts["weights"].items():
        if rows:
            yield f"\nstrongest weights of {kind}"
        between = " -> " if kind == "transitions" else "  "
        for *names, weight in rows:
            yield f"{weight:10.4f}  {between.join(names)}"


def _line(value: Any) -> str:
    if isinstance(value, dict):
        value = ", ".join(f"{key}={item}" for key, item in value.items())
    return " ".join(str(value).split())
