"""What `crfkit tag` prints of each sequence."""

from __future__ import annotations

import argparse
import math
import os
from typing import Any, NamedTuple

from crfkit._params import meant
from crfkit._types import RankedLabels
from crfkit.cli._common import CommandError
from crfkit.cli.options.tag import WITHHELD
from crfkit.inference import Abstain
from crfkit.labels.schemes import SCHEMES


class Answer(NamedTuple):
    """A labeling of a sequence."""

    notes: dict[str, str]  # on the sequence, printed before it
    columns: list[list[str]]  # the labels of its tokens, and what follows them
    spans: list[tuple[Any, str | None]]  # and their probabilities


def check_answers(arguments: argparse.Namespace) -> None:
    """Refuse options that are out of range, or do not go together."""
    if arguments.nbest is not None:
        if arguments.nbest < 1:
            raise ValueError(f"--nbest {arguments.nbest}: must be at least 1.")
        for name in ("marginals", "all_marginals", "abstain"):
            _apart(arguments, name, "nbest")
        if arguments.decoding not in (None, "viterbi"):
            raise ValueError("--decoding does not go with --nbest, which lists the most probable.")
    for name in ("marginals", "all_marginals"):
        _apart(arguments, name, "spans", ": use --confidence")
    if arguments.abstain is not None:
        _threshold(arguments.abstain)


def _apart(arguments: argparse.Namespace, name: str, other: str, instead: str = "") -> None:
    """Raise ValueError if two options are given."""
    if getattr(arguments, name) and getattr(arguments, other):
        option = name.replace("_", "-")
        raise ValueError(f"--{option} does not go with --{other}{instead}.")


def _threshold(text: str) -> tuple[float, str]:
    """Return the probability and the label of --abstain; ValueError if there is none."""
    number, colon, label = text.partition(":")
    try:
        threshold = float(number)
    except ValueError:
        threshold = math.nan
    if not 0.0 <= threshold <= 1.0 or (colon and not label):
        raise ValueError(
            f"--abstain {text}: must be a probability from 0 to 1, or one and a label, such as "
            "0.9:O."
        )
    return threshold, label or WITHHELD


def check_abilities(crf: Any, arguments: argparse.Namespace) -> None:
    """Raise ValueError if a model cannot do what an option asks for."""
    name, parameters = type(crf).__name__, crf.get_params(deep=False)
    needed = {
        "marginals": "predict_proba", "all_marginals": "predict_proba", "confidence": "confidence",
        "abstain": "predict_proba",
    }  # fmt: skip
    for option, method in needed.items():
        wanted = getattr(arguments, option) and not (option == "confidence" and arguments.nbest)
        if wanted and not hasattr(crf, method):
            option = option.replace("all_", "")
            raise ValueError(f"--{option}: the model is a {name}, which has no probabilities.")
    for option, method in {"spans": "predict_spans", "nbest": "predict_n_best"}.items():
        if getattr(arguments, option) and not hasattr(crf, method):
            raise ValueError(f"--{option}: the model is a {name}, which cannot do that.")
    for option in ("decoding", "abstain", "constraints"):
        value, place = getattr(arguments, option), "constraints" if option[0] == "c" else "decoding"
        if value not in (None, "viterbi") and place not in parameters:
            raise ValueError(f"--{option} {value}: the model is a {name}, which cannot do that.")


def set_decoding(crf: Any, arguments: argparse.Namespace) -> None:
    """Tell a model how to choose labels."""
    if arguments.decoding is not None and "decoding" in crf.get_params(deep=False):
        crf.set_params(decoding=arguments.decoding)
    if arguments.abstain is not None:
        threshold, label = _threshold(arguments.abstain)
        of = "spans" if arguments.spans else "tokens"
        crf.set_params(decoding=Abstain(crf.decoding, threshold=threshold, label=label, of=of))


def read_rules(source: str | None) -> dict[str, Any]:
    """Return the rules of a file, or a scheme of tags, as a keyword; CommandError for neither."""
    if source is None:
        return {}
    if not os.path.exists(source) and source.upper() in SCHEMES:
        return {"constraints": source}
    if not os.path.isfile(source):
        raise CommandError(
            f"--constraints {source}: no such file, and no tag scheme.{meant(source, SCHEMES)}"
        )
    from crfkit.constraints import Constraints  # takes its time to import

    try:
        return {"constraints": Constraints.from_json(os.path.realpath(source))}
    except (TypeError, ValueError) as error:
        raise ValueError(f"--constraints {source}: {error}") from error


def answers(
    crf: Any, X: Any, arguments: argparse.Namespace, rules: dict[str, Any], *, rich: bool = False
) -> list[list[Answer]]:
    """Return the labelings of each sequence that are to be printed; `rich` ones with all."""
    if rich:
        return _rich(crf, X, arguments, rules)
    if arguments.nbest:
        return _best(crf.predict_n_best(X, arguments.nbest, as_spans=arguments.spans, **rules))
    notes: list[dict[str, str]] = [{}] * len(X)
    if arguments.confidence:
        notes = [{"probability": f"{p:.6g}"} for p in crf.confidence(X, **rules).tolist()]
    found = (_spans if arguments.spans else _columns)(crf, X, arguments, rules)
    return [[one._replace(notes=note)] for note, one in zip(notes, found, strict=True)]


def _rich(
    crf: Any, X: Any, arguments: argparse.Namespace, rules: dict[str, Any]
) -> list[list[Answer]]:
    """Return labels and spans, with their probabilities where the model has such."""
    if arguments.nbest:
        best = _best(crf.predict_n_best(X, arguments.nbest, **rules))
        spans = _best(crf.predict_n_best(X, arguments.nbest, as_spans=True, **rules))
        return [
            [one._replace(spans=other.spans) for one, other in zip(*each, strict=True)]
            for each in zip(best, spans, strict=True)
        ]
    sure = {"confidence": hasattr(crf, "confidence"), "spans": False}
    told = argparse.Namespace(**{**vars(arguments), **sure})
    found = answers(crf, X, told, rules)
    if not hasattr(crf, "predict_spans"):
        return found
    spanned = _spans(crf, X, told, rules)
    return [[one._replace(spans=other.spans)] for (one,), other in zip(found, spanned, strict=True)]


def _spans(crf: Any, X: Any, arguments: argparse.Namespace, rules: dict[str, Any]) -> list[Answer]:
    """Return the predicted spans of each sequence."""
    spans = crf.predict_spans(X, **rules)
    proba: list[Any] = [[None] * len(listed) for listed in spans]
    if arguments.confidence:
        proba = [[f"{p:.6f}" for p in row] for row in crf.confidence(X, of="spans", **rules)]
    pairs = (list(zip(*both, strict=True)) for both in zip(spans, proba, strict=True))
    return [Answer({}, [], own) for own in pairs]


def _columns(
    crf: Any, X: Any, arguments: argparse.Namespace, rules: dict[str, Any]
) -> list[Answer]:
    """Return the predicted labels of each sequence, and probabilities."""
    found = [[list(map(str, labels))] for labels in crf.predict(X, **rules)]
    if arguments.marginals or arguments.all_marginals:
        for own, row in zip(found, crf.confidence(X, of="tokens", **rules), strict=True):
            own.append([f"{p:.6f}" for p in row])
    if arguments.all_marginals:
        names = crf.classes_.tolist()
        for own, rows in zip(found, crf.predict_proba(X, **rules), strict=True):
            own += [[f"{name}:{p:.6f}" for p in rows[:, k]] for k, name in enumerate(names)]
    return [Answer({}, own, []) for own in found]


def _best(listed: list[list[RankedLabels]]) -> list[list[Answer]]:
    """Return the best labelings of each sequence, with their probabilities, or else scores."""
    found: list[list[Answer]] = [[] for _ in listed]
    for own, ranked in zip(found, listed, strict=True):
        for rank, (labels, score, probability) in enumerate(ranked):
            kind = "score" if math.isnan(probability) else "probability"
            value = score if kind == "score" else probability
            notes = {"rank": str(rank), kind: f"{value:.6g}"}
            spans: list[tuple[Any, str | None]] = [(item, None) for item in labels]
            own.append(Answer(notes, [list(map(str, labels))], spans))
    return found
