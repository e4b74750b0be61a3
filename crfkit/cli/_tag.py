"""``crfkit tag``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from crfkit.cli._common import add_format, add_jobs, check_jobs, source, user_errors

BATCH = 50_000  # tokens that are tagged at a time

_EPILOG = """\
examples:
  crfkit tag chunks.crfkit < raw.txt > tagged.txt
  crfkit tag chunks.crfkit test.txt.gz --marginals
  crfkit tag model.crfsuite attributes.txt --format crfsuite

A file may still have the column of the labels: it is not looked at, and printed before the new one.
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "tag",
        help="label sequences with a model",
        description="Label sequences: each line is printed with its label as a further column.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", help="a model file of crfkit or CRFsuite")
    parser.add_argument("data", nargs="?", default="-", help="sequences (default: stdin)")
    parser.add_argument("--output", default="-", help="the file to write (default: stdout)")
    parser.add_argument(
        "--marginals", action="store_true", help="a further column: the probability of the label"
    )
    parser.add_argument(
        "--all-marginals", action="store_true", help="further columns: LABEL:probability of each"
    )
    parser.add_argument(
        "--decoding",
        choices=("viterbi", "posterior"),
        default="viterbi",
        help="the most probable sequence, or the most probable labels (default: %(default)s)",
    )
    parser.add_argument(
        "--allow", action="append", default=[], metavar="MODULE:FUNCTION",
        help="let the model use this function of yours",
    )  # fmt: skip
    add_jobs(parser)
    add_format(parser)
    parser.set_defaults(check=check_jobs, run=run)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from crfkit.cli import _models  # estimators are imported only by commands that need them

    model = _models.open_model(arguments.model, arguments.allow)
    model.crf.set_params(n_jobs=arguments.jobs, decoding=arguments.decoding)
    interactive = arguments.data == "-" and sys.stdin.isatty()
    batches = _batches(_sequences(model, arguments), 1 if interactive else BATCH)
    blocks = (_tagged(model, batch, arguments) for batch in batches)
    with user_errors():
        if arguments.output == "-":
            _print_to(sys.stdout.write, blocks)
        else:
            from crfkit.io.streams import open_output

            with open_output(arguments.output) as write:
                _print_to(write, blocks)


def _print_to(write: Callable[[str], Any], blocks: Iterable[str]) -> None:
    for block in blocks:
        write(block)
        if write == sys.stdout.write:
            sys.stdout.flush()


def _sequences(model: Any, arguments: argparse.Namespace) -> Iterator[tuple[list[Any], list[str]]]:
    data = model.data_format(arguments, arguments.data)
    return iter(data.iterate(source(arguments.data), model.width))


def _batches(
    sequences: Iterable[tuple[list[Any], list[str]]], size: int
) -> Iterator[list[tuple[list[Any], list[str]]]]:
    """Group sequences into batches of at least that many tokens."""
    batch: list[tuple[list[Any], list[str]]] = []
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
    model: Any, batch: list[tuple[list[Any], list[str]]], arguments: argparse.Namespace
) -> str:
    """Return the lines of a batch with their labels."""
    X = model.pack([tokens for tokens, _ in batch])
    labels = model.crf.predict(X)
    columns = [labels]
    if arguments.marginals or arguments.all_marginals:
        columns += _marginal_columns(model, X, labels, arguments.all_marginals)
    parts: list[str] = []
    for place, (_, lines) in enumerate(batch):
        rows = zip(lines, *(column[place] for column in columns), strict=True)
        parts.extend(f"{line}{between(line).join(cells)}\n" for line, *cells in rows)
        parts.append("\n")
    return "".join(parts)


def between(line: str) -> str:
    """Return what stands between the columns of a line."""
    return line[-1:] or "\t"


def _marginal_columns(model: Any, X: Any, labels: Any, every: bool) -> list[list[list[str]]]:
    """Return the probability of each label, and with `every` those of all labels."""
    names = model.crf.classes_.tolist()
    place = {label: column for column, label in enumerate(names)}
    columns: list[list[list[str]]] = [[] for _ in range(1 + every * len(names))]
    for row, probabilities in zip(labels, model.crf.predict_proba(X), strict=True):
        own = [p[place[label]] for label, p in zip(row, probabilities, strict=True)]
        columns[0].append([f"{p:.6f}" for p in own])
        for column, name in enumerate(names if every else []):
            columns[1 + column].append([f"{name}:{p:.6f}" for p in probabilities[:, column]])
    return columns
