"""Texts through annotation tools themselves: what comes back is counted.

    python benchmarks/annotation_tools.py --doccano PYTHON --label-studio PYTHON [--limit N]

Each PYTHON is the interpreter of an environment where the tool is installed (``pip install doccano
"numpy<2" "marshmallow<4" model_mommy`` and ``pip install label-studio-sdk``). doccano imports the
file into a project and exports it; the converter of Label Studio makes its other formats of tasks.
Corpora and differences are those of ``round_trips.py``. Writes ``results/annotation_tools.json``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import _measure
from round_trips import FILES, awkward, corpus, differ

from crfkit.io import read_conll, read_doccano, read_label_studio, write_doccano, write_label_studio
from crfkit.text import AnnotatedText, from_tokens

HERE = Path(__file__).parent


def run(python: str, script: str, *arguments: Any) -> str:
    """Run a script where a tool is installed, and return what it prints."""
    command = [python, str(HERE / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def by_doccano(python: str, texts: list[AnnotatedText], form: str, folder: Path) -> int:
    """Return how many texts are not the same after doccano, or which it complains of."""
    source, target = folder / "in.jsonl", folder / "out.jsonl"
    plain = [AnnotatedText(one.text, one.spans, one.id) for one in texts]
    write_doccano(source, plain, form=form)
    told = run(python, "_in_doccano.py", int(form == "entities"), source, target)
    return differ(plain, read_doccano(target), tokens=False) + json.loads(told)["count"]


def by_label_studio(python: str, texts: list[AnnotatedText], folder: Path) -> dict[str, int]:
    """Return how many texts are not the same in what Label Studio exports of tasks."""
    source, small, columns = folder / "tasks.json", folder / "min.json", folder / "a.conll"
    plain = [  # annotations have ids in Label Studio
        AnnotatedText(one.text, one.spans, s, meta={"annotation": {"id": s}})
        for s, one in enumerate(texts)
    ]
    write_label_studio(source, plain)
    run(python, "_in_label_studio.py", "JSON_MIN", source, small)
    run(python, "_in_label_studio.py", "CONLL2003", source, columns)
    rows, tags = read_conll(columns, sep=" ", skip_docstart=True)
    tokens = [[row[0] for row in sequence] for sequence in rows]
    labels = [[span.label for span in one.spans] for one in from_tokens(tokens, tags)]
    filled = [[span.label for span in sorted(one.spans)] for one in plain if one.text.strip()]
    return {
        "JSON-MIN": differ(plain, read_label_studio(small), tokens=False),
        "CoNLL": sum(a != b for a, b in zip(labels, filled, strict=True)),
    }


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--doccano", required=True, metavar="PYTHON")
    parser.add_argument("--label-studio", required=True, metavar="PYTHON")
    parser.add_argument("--limit", type=int, default=500, help="sequences of each corpus")
    arguments = parser.parse_args()
    cases = {}
    for name in [*FILES, "awkward"]:
        size = arguments.limit
        texts = awkward(size) if name == "awkward" else corpus(name, size)
        with tempfile.TemporaryDirectory() as place:
            folder, found = Path(place), dict[str, int]()
            for form in ("label", "entities"):
                found[f"doccano, {form}"] = by_doccano(arguments.doccano, texts, form, folder)
            small = by_label_studio(arguments.label_studio, texts, folder)
            found |= {f"Label Studio, {form}": count for form, count in small.items()}
        cases[name] = {"sequences": len(texts), "differences": found}
        print(name, cases[name], flush=True)
    _measure.write("annotation_tools", {"cases": cases})


if __name__ == "__main__":
    main()
