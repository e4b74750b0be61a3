"""Features of CoNLL-2000 from raw columns: compiled templates against Python functions.

    python benchmarks/templates_conll2000.py [--only extraction|objective|end_to_end]

Extraction: `TemplateFeatures` with the CRF++ template against a Python function that formats the
same attribute strings, followed by `SequenceVectorizer` or python-crfsuite's `ItemSequence`. End to
end: from raw columns to a saved model, and from raw columns to tags, against sklearn-crfsuite in
the same process run. Writes ``results/templates_conll2000.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import _conll
import _measure
import numpy as np
import pycrfsuite
import sklearn_crfsuite
from sklearn.pipeline import Pipeline

import crfkit
from crfkit import CRFClassifier, SequenceVectorizer, TemplateFeatures
from crfkit.metrics import entity_f1_score

REPEATS = 5
NAME = "templates_conll2000"


def raw(part: str) -> list[list[tuple[str, str]]]:
    """Return the sentences of a part as (word, tag) tuples."""
    return [[(row[0], row[1]) for row in sentence] for sentence in _conll.read_part(part)]


def by_function(sentences: list[list[tuple[str, str]]]) -> list[list[list[str]]]:
    """Return the attribute strings as a Python function formats them."""
    template = _conll.read_template()
    return [_conll.apply_template(sentence, template) for sentence in sentences]


def templates() -> TemplateFeatures:
    """Return the CRF++ template."""
    return TemplateFeatures.from_file(_conll.data_home() / "conll2000" / "template.crfpp")


def extraction() -> dict[str, Any]:
    """Measure from raw columns to features."""
    train, test = raw("train"), raw("test")
    compiled, vectorizer = templates(), SequenceVectorizer()
    packed = compiled.fit_transform(train)
    plain = vectorizer.fit_transform(by_function(train))
    new = compiled.transform(test)
    same = sorted(packed.feature_names) == sorted(plain.feature_names)
    order = np.argsort(np.argsort(compiled.get_feature_names_out()))
    rows = plain.to_csr()[:, order]
    ways = {
        "fit_transform, templates": lambda: templates().fit_transform(train),
        "fit_transform, function": lambda: SequenceVectorizer().fit_transform(by_function(train)),
        "transform, templates": lambda: compiled.transform(test),
        "transform, function": lambda: vectorizer.transform(by_function(test)),
        "transform, function + ItemSequence": lambda: [
            pycrfsuite.ItemSequence(sequence) for sequence in by_function(test)
        ],
    }
    medians = _measure.medians(ways, REPEATS)
    # As a process that tags meets it: without the millions of strings that the functions made.
    alone = _measure.in_child(f"{NAME}.py", "--transform-only")["seconds"]
    return {
        "attributes": packed.n_features,
        "attributes_of_function": plain.n_features,
        "same_names": same,
        "same_rows": (packed.to_csr() != rows).nnz == 0,
        "bytes_per_token": packed.nbytes / packed.n_tokens,
        "bytes_per_token_new": new.nbytes / new.n_tokens,
        "seconds": medians,
        "tokens_per_second_transform": new.n_tokens / alone,
        "tokens_per_second_item_sequence": new.n_tokens
        / medians["transform, function + ItemSequence"],
        "ratio_fit_transform": medians["fit_transform, function"]
        / medians["fit_transform, templates"],
        "ratio_transform": medians["transform, function"] / medians["transform, templates"],
        "ratio_transform_item_sequence": medians["transform, function + ItemSequence"]
        / medians["transform, templates"],
    }


def transform_only() -> None:
    """Print the median time of `transform` in a process that does nothing else."""
    compiled, test = templates().fit(raw("train")), raw("test")
    medians = _measure.medians({"": lambda: compiled.transform(test)}, 5 * REPEATS)
    print(json.dumps({"seconds": medians[""]}))


def objective() -> dict[str, Any]:
    """Fit on templates and on strings to the end."""
    train, y = raw("train"), _conll.labels("train")
    fits = {
        "templates": CRFClassifier(n_jobs=2).fit(templates().fit_transform(train), y),
        "strings": CRFClassifier(n_jobs=2).fit(
            SequenceVectorizer().fit_transform(by_function(train)), y
        ),
    }
    return {
        name: {"objective": crf.objective_, "parameters": crf.n_parameters_}
        for name, crf in fits.items()
    }


def end_to_end() -> dict[str, Any]:
    """Measure from raw columns to a saved model, and from raw columns to tags."""
    train, test = raw("train"), raw("test")
    y, yt = _conll.labels("train"), _conll.labels("test")
    folder = Path(tempfile.mkdtemp())
    ours, theirs = folder / "m.crfkit", folder / "m.crfsuite"

    def train_crfkit() -> None:
        pipeline = Pipeline([("features", templates()), ("crf", CRFClassifier(n_jobs=2))])
        crfkit.save(pipeline.fit(train, y), ours)

    def train_crfsuite() -> None:
        sklearn_crfsuite.CRF(c2=1.0, model_filename=str(theirs)).fit(by_function(train), y)

    seconds = {"train crfkit": _measure.seconds(train_crfkit)}
    seconds["train sklearn-crfsuite"] = _measure.seconds(train_crfsuite)
    started = time.perf_counter()
    model = crfkit.load(ours)
    seconds["load crfkit"] = time.perf_counter() - started
    peer = sklearn_crfsuite.CRF(model_filename=str(theirs))
    outputs = {"crfkit": model.predict(test), "sklearn-crfsuite": peer.predict(by_function(test))}
    # As processes that tag meet it, and no more: without the millions of strings of the training.
    for path in (ours, theirs):
        seconds |= _measure.in_child(f"{NAME}.py", "--tag-only", str(path))
    tokens = sum(map(len, test))
    return {
        "seconds": seconds,
        "tokens_per_second": {k: tokens / t for k, t in seconds.items() if k.startswith("tag")},
        "ratio_train": seconds["train sklearn-crfsuite"] / seconds["train crfkit"],
        "ratio_tag_2_threads": seconds["tag sklearn-crfsuite"] / seconds["tag crfkit, 2 threads"],
        "ratio_tag_1_thread": seconds["tag sklearn-crfsuite"] / seconds["tag crfkit, 1 thread"],
        "bytes": {"crfkit": os.path.getsize(ours), "crfsuite": os.path.getsize(theirs)},
        "chunk_f1": {k: 100 * entity_f1_score(yt, tags) for k, tags in outputs.items()},
    }


def tag_only(path: str) -> None:
    """Print the median times of tagging by a saved model in a process that does nothing else."""
    test = raw("test")
    if path.endswith(".crfsuite"):
        peer = sklearn_crfsuite.CRF(model_filename=path)
        ways = {"tag sklearn-crfsuite": lambda: peer.predict(by_function(test))}
    else:
        one, two = (crfkit.load(path).set_params(crf__n_jobs=n) for n in (1, 2))
        ways = {
            "tag crfkit, 2 threads": lambda: two.predict(test),
            "tag crfkit, 1 thread": lambda: one.predict(test),
        }
    for way in ways.values():
        way()  # loads kernels
    print(json.dumps(_measure.medians(ways, REPEATS)))


def main() -> None:
    """Run the parts that are asked for; the others keep their last results."""
    parts = {"extraction": extraction, "objective": objective, "end_to_end": end_to_end}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(parts), default=list(parts))
    parser.add_argument("--transform-only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--tag-only", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.tag_only:
        tag_only(arguments.tag_only)
        return
    if arguments.transform_only:
        transform_only()
        return
    results = _measure.read(NAME)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in arguments.only:
            results[name] = parts[name]()
    _measure.write(NAME, results)


if __name__ == "__main__":
    main()
