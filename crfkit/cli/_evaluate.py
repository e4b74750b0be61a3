"""``crfkit evaluate``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from crfkit._warnings import warn_user
from crfkit.cli import _models
from crfkit.cli._common import source, user_errors
from crfkit.cli.formats import Words, chosen_format, chosen_scheme, format_name, read_unknown
from crfkit.cli.formats.jsonl import LABELS, PREDICTED, TAGS, TOKENS, check_labels
from crfkit.labels.schemes import RUNS
from crfkit.labels.sequences import names_of
from crfkit.metrics import (
    conlleval_report,
    detect_scheme,
    entity_classification_report,
    flat_classification_report,
    illegal_tags,
    segment_classification_report,
)
from crfkit.metrics.segments import are_tags, are_typed_tags

JUDGED = ("columns", "csv", "jsonl")  # what may hold true and predicted labels
USUAL = "IOB2"  # the scheme of entities where tags say no other one


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage."""
    if arguments.scheme is not None:
        if arguments.report not in ("entities", "segments"):
            raise ValueError("--scheme is for --report entities and --report segments.")
        others = (RUNS,) if arguments.report == "segments" else ()
        arguments.scheme = chosen_scheme(arguments.scheme, others)
    if arguments.model is None:
        _check_columns(arguments)


def _check_columns(arguments: argparse.Namespace) -> None:
    """Refuse options that need a model."""
    if arguments.format not in (None, *JUDGED):
        raise ValueError("--format needs --model: without, columns, csv or jsonl are read.")
    if arguments.label is not None and _form(arguments) == "columns":
        raise ValueError("--label needs --model, csv or jsonl: else the last two columns are read.")


def _form(arguments: argparse.Namespace) -> str:
    """Return how a file is read that has predicted labels."""
    name = arguments.format or format_name(arguments.data)
    return name if name in JUDGED else "columns"


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    if arguments.model is not None:
        judge(arguments.model, arguments.data, arguments)
        return
    with user_errors():
        truth, predicted = _judged(arguments)
        print_report(read_unknown(arguments, truth), predicted, arguments)


def _judged(arguments: argparse.Namespace) -> tuple[list[list[str]], list[list[str]]]:
    """Return the true and the predicted labels of a file, by names of columns or the last two."""
    options = {**vars(arguments), "format": _form(arguments), "label": None}
    data = chosen_format(argparse.Namespace(**options), arguments.data)
    truth: list[list[str]] = []
    predicted: list[list[str]] = []
    for rows, words in data.iterate(source(arguments.data), None):
        if isinstance(words, Words) and words.record is not None:
            pair = _labelings(words.record, arguments.label)
            truth.append(pair[0])
            predicted.append(pair[1])
            continue
        names = data.columns or [str(place) for place in range(len(rows[0]))]
        after = names.index(PREDICTED) if PREDICTED in names else len(names) - 1
        before = after - 1 if arguments.label is None else _place(arguments.label, names)
        if before < 0:
            raise ValueError("without --model the file needs two columns: true and predicted.")
        truth.append([row[before] for row in rows])
        predicted.append([row[after] for row in rows])
    return truth, predicted


def _labelings(record: Mapping[str, Any], label: str | None) -> tuple[list[str], list[str]]:
    """Return the true and the predicted labels of an object."""
    after = PREDICTED if PREDICTED in record else TAGS
    known = LABELS if label is None else (label,)
    before = next((name for name in known if name in record and name != after), None)
    if before is None or after not in record:
        raise ValueError(
            f"an object has {sorted(record)}: without --model objects need two labelings, "
            f'"{PREDICTED}" (or "{TAGS}"), and the true one, which --label names.'
        )
    for name in (before, after):
        check_labels(record[name], len(record[TOKENS]), name, "an object")
    return record[before], record[after]


def _place(label: str, names: list[str]) -> int:
    """Return the number of a column."""
    if label in names:
        return names.index(label)
    if label.removeprefix("-").isdecimal() and -len(names) <= int(label) < len(names):
        return int(label) % len(names)
    raise ValueError(f"--label {label}: there is no such column, only {names}.")


def judge(path: str, data_path: str, arguments: argparse.Namespace) -> None:
    """Print the report of a model on a file of labeled sequences."""
    model = _models.open_model(path, getattr(arguments, "allow", ()))
    model.crf.set_params(n_jobs=arguments.jobs)
    with user_errors():
        data = model.data_format(arguments, data_path)
        labeled = data.read(source(data_path), model.width_in(data))
        packed = model.pack(labeled.X, data)
        predicted = [[*map(str, labels)] for labels in model.crf.predict(packed)]
        print_report(
            read_unknown(arguments, labeled.y),
            predicted,
            arguments,
            getattr(model.crf, "scheme_", None),
        )


def print_report(
    truth: Any, predicted: Any, arguments: argparse.Namespace, learned: str | None = None
) -> None:
    """Print the report that is asked for, else the usual one of such labels and models."""
    if not truth:
        raise ValueError("the file has no sequences: there is nothing to judge.")
    labels = names_of(*truth, *predicted)
    asked = getattr(arguments, "report", None)
    scheme = (asked and arguments.scheme) or learned  # that of `train` may be "auto"
    usual = "conlleval" if are_tags(labels) else "tokens"  # conlleval knows only tags
    kind = asked or ("segments" if learned == RUNS else usual)
    if kind == "tokens":
        report = flat_classification_report(truth, predicted, digits=3)
    elif kind == "segments":
        scheme = scheme or ("conll" if are_typed_tags(labels) else RUNS)
        report = segment_classification_report(truth, predicted, scheme=scheme, digits=4)
    elif kind == "entities":
        scheme = _scheme_of(truth, None if scheme == RUNS else scheme)
        report = entity_classification_report(
            truth, predicted, mode="strict", scheme=scheme, digits=4
        )
    else:
        report = conlleval_report(truth, predicted)
    print(report)


def _scheme_of(truth: list[list[Any]], scheme: str | None) -> str:
    """Return the scheme by which strict entities are read; warn where tags are not as expected."""
    known = [row for row in truth if all(isinstance(label, str) for label in row)]
    try:
        legal = detect_scheme(known)
    except ValueError as error:
        legal = None
        if scheme is None:
            warn_user(f"{error}. They are read as {USUAL}; --scheme names another one.")
            return USUAL
    if scheme is None:
        if legal not in (None, USUAL):
            warn_user(
                f"the true tags are read as {legal}, as they are legal in it, but not in {USUAL}; "
                "--scheme names another one."
            )
        return legal or USUAL
    wrong = illegal_tags(known, scheme)
    if wrong:
        other = "" if legal is None else f" They are legal in {legal}: --scheme {legal}."
        warn_user(
            f"{len(wrong)} of the true tags are not legal in {scheme} and begin or end no entity "
            f"as they stand; the first: {wrong[0]}.{other}"
        )
    return scheme
