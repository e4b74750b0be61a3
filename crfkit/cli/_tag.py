"""``crfkit tag``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from crfkit.cli._common import add_allow, add_format, add_jobs, check_target, source, user_errors
from crfkit.inference import DECODERS
from crfkit.io.streams import open_output
from crfkit.labels.schemes import RUNS

BATCH = 50_000  # tokens that are tagged at a time

HELP = "label sequences with a model"
DESCRIPTION = """\
Label sequences. Columns are printed with the label as a further column, CoNLL-U with the label in
its field; of --format crfsuite only the labels are printed.
"""
EPILOG = """\
examples:
  crfkit tag chunks.crfkit < raw.txt > tagged.txt
  crfkit tag chunks.crfkit test.txt.gz --marginals
  crfkit tag tagger.crfkit en-test.conllu --output tagged.conllu
  crfkit tag model.crfsuite attributes.txt --format crfsuite

A file may still have the column of the labels: it is not looked at, and printed before the new one.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("model", help="a model file of crfkit or CRFsuite")
    parser.add_argument("data", nargs="?", default="-", help="sequences (default: stdin)")
    parser.add_argument("--output", default="-", help="the file to write (default: stdout)")
    parser.add_argument(
        "--marginals",
        action="store_true",
        help="a further column: the probability of the label (CoNLL-U: Probability= in MISC)",
    )
    parser.add_argument(
        "--all-marginals",
        action="store_true",
        help="further columns: that, and LABEL:probability of each label (not for CoNLL-U)",
    )
    parser.add_argument(
        "--decoding",
        choices=DECODERS,
        help="the most probable sequence (viterbi), or the most probable label of each token "
        "(posterior) (default: as the model was trained)",
    )
    add_allow(parser)
    add_jobs(parser)
    add_format(parser)


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage; a file that cannot be written is told before the tagging."""
    if arguments.output != "-":
        check_target("--output", arguments.output)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from crfkit.cli import _models

    model = _models.open_model(arguments.model, arguments.allow)
    model.crf.set_params(n_jobs=arguments.jobs)
    with user_errors():
        _check_abilities(model.crf, arguments)
        if arguments.decoding is not None and "decoding" in model.crf.get_params():
            model.crf.set_params(decoding=arguments.decoding)
        data = model.data_format(arguments, arguments.data)
        if arguments.all_marginals and data.name == "conllu":
            raise ValueError("--all-marginals: CoNLL-U has no place for them; use --marginals.")
        stream = source(arguments.data)
        interactive = arguments.data == "-" and sys.stdin.isatty()
        batches = _batches(data.iterate(stream, model.width), 1 if interactive else BATCH)
        blocks = (_tagged(model, data, batch, arguments) for batch in batches)
        printed = arguments.output == "-"
        with open_output(sys.stdout if printed else arguments.output) as write:
            for block in blocks:
                write(block)
                if printed:
                    sys.stdout.flush()


def _check_abilities(crf: Any, arguments: argparse.Namespace) -> None:
    """Raise ValueError if a model cannot do what an option asks for."""
    wanted, name = arguments.marginals or arguments.all_marginals, type(crf).__name__
    if wanted and not hasattr(crf, "predict_proba"):
        raise ValueError(f"--marginals: the model is a {name}, which has no probabilities.")
    if arguments.decoding == "posterior" and "decoding" not in crf.get_params():
        raise ValueError(f"--decoding posterior: the model is a {name}, which cannot do that.")


def _batches(
    sequences: Iterable[tuple[list[Any], Any]], size: int
) -> Iterator[list[tuple[list[Any], Any]]]:
    """Group sequences into batches of at least that many tokens."""
    batch: list[tuple[list[Any], Any]] = []
    tokens = 0
    for sequence in sequences:
        batch.append(sequence)
        tokens += len(sequence[0])
        if tokens >= size:
            yield batch
            batch, tokens = [], 0
    if batch:
        yield batch


def _tagged(
    model: Any, data: Any, batch: list[tuple[list[Any], Any]], arguments: argparse.Namespace
) -> str:
    """Return the lines of a batch with their labels."""
    X = model.pack([tokens for tokens, _ in batch])
    labels = model.crf.predict(X)
    columns = [[[str(label) for label in sequence] for sequence in labels]]
    if arguments.marginals or arguments.all_marginals:
        columns += _marginal_columns(model, X, labels, arguments.all_marginals)
    lines: list[str] = []
    for place, (_, sequence) in enumerate(batch):
        lines += data.tagged(sequence, [column[place] for column in columns])
        lines.append("")
    return "\n".join(lines) + "\n"


def _marginal_columns(model: Any, X: Any, labels: Any, every: bool) -> list[list[list[str]]]:
    """Return the probabilities of the labels, or of their segments', or of `every` one."""
    names = model.crf.classes_.tolist()
    place = {label: column for column, label in enumerate(names)}
    columns: list[list[list[str]]] = [[] for _ in range(1 + every * len(names))]
    labels = _labels_of_tokens(model.crf, X, labels)
    for row, probabilities in zip(labels, model.crf.predict_proba(X), strict=True):
        own = [p[place[label]] for label, p in zip(row, probabilities, strict=True)]
        columns[0].append([f"{p:.6f}" for p in own])
        for column, name in enumerate(names if every else []):
            columns[1 + column].append([f"{name}:{p:.6f}" for p in probabilities[:, column]])
    return columns


def _labels_of_tokens(crf: Any, X: Any, tags: Any) -> Any:
    """Return which of the classes of a model each token was given."""
    if getattr(crf, "scheme_", RUNS) == RUNS:
        return tags
    labels = [["O"] * len(sequence) for sequence in tags]
    for row, segments in zip(labels, crf.predict_spans(X), strict=True):
        for start, stop, label in segments:
            row[start:stop] = [label] * (stop - start)
    return labels
