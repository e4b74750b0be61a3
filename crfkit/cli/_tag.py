"""``crfkit tag``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from crfkit._progress import working
from crfkit.cli import _models
from crfkit.cli._answers import (
    Answer,
    answers,
    check_abilities,
    check_answers,
    read_rules,
    set_decoding,
)
from crfkit.cli._common import check_target, is_file, source, user_errors
from crfkit.cli._printing import Printer, chosen_printer
from crfkit.cli.formats import format_name
from crfkit.cli.options.names import OUTPUTS
from crfkit.io.streams import open_output
from crfkit.progress import ProgressBar

BATCH = 50_000  # tokens that are tagged at a time
NOTHING = Answer({}, [[]], [])  # the labeling of a text without tokens


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage; a file that cannot be written is told before the tagging."""
    check_answers(arguments)
    if arguments.output in OUTPUTS:  # a format in place of a file
        if arguments.output_format not in (None, arguments.output):
            raise ValueError(
                f"--output {arguments.output} is a format, and --output-format another one; a file "
                f"of that name is ./{arguments.output}."
            )
        arguments.output, arguments.output_format = "-", arguments.output
    if arguments.output != "-":
        read = (arguments.model, arguments.data, arguments.constraints)
        check_target("--output", arguments.output, read)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    model = _models.open_model(arguments.model, arguments.allow)
    model.crf.set_params(n_jobs=arguments.jobs)
    with user_errors():
        check_abilities(model.crf, arguments)
        set_decoding(model.crf, arguments)
        rules = read_rules(arguments.constraints)
        data = model.data_format(arguments, arguments.data)
        printer = chosen_printer(data, arguments, format_name(arguments.output))
        if arguments.all_marginals and data.name == "conllu" and not printer.is_rich:
            raise ValueError("--all-marginals: CoNLL-U has no place for them; use --marginals.")
        stream = source(arguments.data)
        typed = arguments.data == "-" and sys.stdin.isatty()
        printed = arguments.output == "-"
        with _bar(printed, typed), working("tagging") as task:
            sequences = data.iterate(stream, model.width_in(data))
            with open_output(sys.stdout if printed else arguments.output) as write:
                for batch in _batches(sequences, 1 if typed else BATCH):
                    write(_tagged(model, printer, batch, arguments, rules))
                    task.tell(sequences=task.facts.get("sequences", 0) + len(batch))
                    if printed:
                        sys.stdout.flush()


def _bar(printed: bool, typed: bool) -> ProgressBar:
    """Return a bar, which is shown where nothing else may be printed on the terminal.

    The program that reads a pipe may print there, too.
    """
    to_file = printed and is_file(sys.stdout)
    seen = sys.stderr is not None and sys.stderr.isatty()
    return ProgressBar(shown=seen and not typed and (to_file or not printed))


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
    printer: Printer,
    batch: list[tuple[list[Any], Any]],
    arguments: argparse.Namespace,
    rules: dict[str, Any],
) -> str:
    """Return the lines of a batch with their labels, or with their spans."""
    filled = [tokens for tokens, _ in batch if tokens]
    found: Iterator[list[Answer]] = iter(())
    if filled:
        X = model.pack(filled, printer.data)
        found = iter(answers(model.crf, X, arguments, rules, rich=printer.is_rich))
    return "".join(
        f"{line}\n"
        for tokens, sequence in batch
        for answer in (next(found) if tokens else [NOTHING])
        for line in printer.lines(tokens, sequence, answer)
    )
