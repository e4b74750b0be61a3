"""``crfkit tag``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from crfkit.cli import _models
from crfkit.cli._answers import answers, check_abilities, check_answers, read_rules, set_decoding
from crfkit.cli._common import check_target, source, user_errors
from crfkit.cli._formats import note_line
from crfkit.io.streams import open_output

BATCH = 50_000  # tokens that are tagged at a time


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage; a file that cannot be written is told before the tagging."""
    check_answers(arguments)
    if arguments.output != "-":
        check_target("--output", arguments.output)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    model = _models.open_model(arguments.model, arguments.allow)
    model.crf.set_params(n_jobs=arguments.jobs)
    with user_errors():
        check_abilities(model.crf, arguments)
        set_decoding(model.crf, arguments)
        rules = read_rules(arguments.constraints)
        data = model.data_format(arguments, arguments.data)
        if arguments.all_marginals and data.name == "conllu":
            raise ValueError("--all-marginals: CoNLL-U has no place for them; use --marginals.")
        stream = source(arguments.data)
        interactive = arguments.data == "-" and sys.stdin.isatty()
        batches = _batches(data.iterate(stream, model.width), 1 if interactive else BATCH)
        blocks = (_tagged(model, data, batch, arguments, rules) for batch in batches)
        printed = arguments.output == "-"
        with open_output(sys.stdout if printed else arguments.output) as write:
            for block in blocks:
                write(block)
                if printed:
                    sys.stdout.flush()


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
    model: Any,
    data: Any,
    batch: list[tuple[list[Any], Any]],
    arguments: argparse.Namespace,
    rules: dict[str, Any],
) -> str:
    """Return the lines of a batch with their labels, or with their spans."""
    lines: list[str] = []
    X = model.pack([tokens for tokens, _ in batch])
    found = answers(model.crf, X, arguments, rules)
    for (tokens, sequence), listed in zip(batch, found, strict=True):
        for answer in listed:
            if arguments.spans:
                lines += note_line(answer.notes)
                lines += [_span_line(data, tokens, *span) for span in answer.spans]
            else:
                lines += data.tagged(sequence, answer.columns, answer.notes)
            lines.append("")
    return "\n".join(lines) + "\n"


def _span_line(data: Any, tokens: list[Any], span: Any, probability: str | None) -> str:
    """Return the line of a span: its first token, the one after its last, label, and text."""
    cells = [str(span.start), str(span.stop), str(span.label)]
    cells += [] if probability is None else [probability]
    text = data.text(tokens[span.start : span.stop])
    return "\t".join([*cells, text] if text else cells)
