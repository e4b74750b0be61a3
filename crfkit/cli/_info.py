"""``crfkit info``."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from crfkit._params import check_whole


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
    parser.add_argument("--allow", action="append", default=[], metavar="MODULE:FUNCTION",
                        help="let the model use this function of yours")  # fmt: skip
    parser.set_defaults(check=check, run=run)


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage."""
    check_whole("--top", arguments.top)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from crfkit.cli import _models  # estimators are imported only by commands that need them

    facts = _facts(_models.open_model(arguments.model, arguments.allow), arguments)
    if arguments.json:
        print(json.dumps(facts, ensure_ascii=False, indent=2, default=str))
    else:
        _print_facts(facts)


def _facts(model: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    crf = model.crf
    views = {
        "attributes": crf.state_features_,
        "transitions": crf.transition_features_,
        "attributes of steps": crf.step_features_,
    }
    return {
        "file": arguments.model,
        "bytes": os.path.getsize(arguments.model),
        **{key: value for key, value in model.about.items() if key not in ("labels", "parameters")},
        "parameters": model.about.get("parameters", {}),
        "labels": [str(label) for label in crf.classes_],
        "templates": _templates(model.features),
        "counts": {"attributes": crf.n_features_in_} | {k: len(view) for k, view in views.items()},
        "weights": {
            kind: [[*map(str, name), weight] for name, weight in view.top(arguments.top)]
            for kind, view in views.items()
        },
    }


def _templates(features: Any) -> list[str]:
    """Return the templates of a pipeline, one a line."""
    steps = [] if features is None else [step for _, step in features.steps]
    found: list[str] = []
    for step in steps:
        templates = getattr(step, "templates", [])
        lines = templates.splitlines() if isinstance(templates, str) else _flat(templates)
        found += [str(line) for line in lines]
    return found


def _flat(items: Any) -> list[Any]:
    if not isinstance(items, (list, tuple)):
        return [items]
    return [leaf for item in items for leaf in _flat(item)]


def _print_facts(facts: dict[str, Any]) -> None:
    for name, value in facts.items():
        if name not in ("labels", "templates", "counts", "weights", "file", "bytes") and value:
            print(f"{name:<12} {_line(value)}")
    print(f"{'file':<12} {facts['file']}, {facts['bytes']:,} bytes")
    print(f"{'labels':<12} {len(facts['labels'])}: {' '.join(facts['labels'])}")
    sizes = facts["counts"]
    print(f"{'sizes':<12} {sizes['attributes']:,} weights of attributes not 0, "
          f"{sizes['transitions']:,} of transitions, "
          f"{sizes['attributes of steps']:,} of attributes of steps")  # fmt: skip
    if facts["templates"]:
        print("\ntemplates")
        print("\n".join(f"  {line}" for line in facts["templates"]))
    for kind, rows in facts["weights"].items():
        if rows:
            print(f"\nstrongest weights of {kind}")
        between = " -> " if kind == "transitions" else "  "
        for *names, weight in rows:
            print(f"{weight:10.4f}  {between.join(names)}")


def _line(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    return str(value)
