"""``crfkit info``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from crfkit._params import check_whole
from crfkit.cli import _models

_OWN_PLACE = {"file", "bytes", "labels", "templates", "n_attributes", "counts", "weights"}


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage."""
    check_whole("--top", arguments.top)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    model = _models.open_model(arguments.model, arguments.allow)
    crf, views = model.crf, _models.weight_views(model.crf)
    facts: dict[str, Any] = {
        "file": arguments.model,
        "bytes": model.size,
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
    if hasattr(crf, "scheme_"):  # of segments
        facts["scheme"] = crf.scheme_
        facts["longest"] = {str(label): length for label, length in crf.max_lengths_.items()}
    if arguments.json:
        print(json.dumps(facts, indent=2, default=str))
        return
    encoding = sys.stdout.encoding or "utf-8"
    for line in _report(facts):  # what standard output cannot hold is shown by its number
        print(line.encode(encoding, "backslashreplace").decode(encoding))


def _templates(features: Any) -> list[str]:
    """Return the templates of a pipeline, and of the parts of its unions, one a line."""
    steps = [] if features is None else [step for _, step in features.steps]
    parts = [part for step in steps for _, part in getattr(step, "transformers", [("", step)])]
    found: list[str] = []
    for part in parts:
        templates = getattr(part, "templates", [])
        lines = templates.splitlines() if isinstance(templates, str) else _flat(templates)
        found += [str(line) for line in lines]
    return found


def _flat(items: Any) -> list[Any]:
    if not isinstance(items, (list, tuple)):
        return [items]
    return [leaf for item in items for leaf in _flat(item)]


def _report(facts: dict[str, Any]) -> Iterator[str]:
    for name, value in facts.items():
        if name not in _OWN_PLACE and value:
            if isinstance(value, dict):
                value = ", ".join(f"{key}={item}" for key, item in value.items())
            yield f"{name:<12} {' '.join(str(value).split())}"
    yield f"{'file':<12} {facts['file']}, {facts['bytes']:,} bytes"
    yield f"{'labels':<12} {len(facts['labels'])}: {' '.join(facts['labels'])}"
    sizes = ", ".join(f"{count:,} of {kind}" for kind, count in facts["counts"].items())
    sizes = f"; weights not 0: {sizes}" if sizes else ""
    yield f"{'sizes':<12} {facts['n_attributes']:,} attributes{sizes}"
    if facts["templates"]:
        yield "\ntemplates"
        yield from (f"  {line}" for line in facts["templates"])
    for kind, rows in facts["weights"].items():
        if rows:
            yield f"\nstrongest weights of {kind}"
        between = " -> " if kind == "transitions" else "  "
        for *names, weight in rows:
            yield f"{weight:10.4f}  {between.join(names)}"
