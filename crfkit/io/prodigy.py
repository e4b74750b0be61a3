"""Texts of Prodigy: JSON lines with tokens, spans and answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from crfkit._warnings import warn_user
from crfkit.io.records import (
    Record,
    annotated,
    as_texts,
    iter_records,
    joined_records,
    kept_meta,
    labeled_spans,
    listed_records,
    rest_of,
    span_fields,
    taken,
    with_scores,
    write_json_lines,
)
from crfkit.io.streams import ColumnFormatError, Source, Target
from crfkit.text import AnnotatedText
from crfkit.text.annotated import ANSWER, TOKEN_FIELDS

ANSWERS = ("accept", "reject", "ignore")
_SCORE = "score"
SPANS = "spans"


def read_prodigy(
    source: Source, *, answers: Iterable[str] | None = ("accept",), encoding: str = "utf-8"
) -> list[AnnotatedText]:
    r"""Read texts that Prodigy has exported (``db-out``).

    Parameters
    ----------
    source : path, file object or iterable of dicts
        JSON lines with ``text``, ``spans`` and perhaps ``tokens``.
    answers : iterable of {"accept", "reject", "ignore"} or None, default=("accept",)
        Which answers to keep; None keeps all, with the answer in ``meta["answer"]``. Records
        without an answer, such as those to be annotated, are kept. A warning counts what was left
        out: spans of rejected texts are wrong.
    encoding : str, default="utf-8"
        The encoding of a path or binary stream.

    Returns
    -------
    list of AnnotatedText
        With the places of the tokens, if there are tokens. ``meta`` keeps all further fields.

    Raises
    ------
    ColumnFormatError
        Naming file and line, if a text is missing, spans or tokens are not within it, or tokens are
        not what stands there.

    Examples
    --------
    >>> import io
    >>> line = '{"text": "Ann", "spans": [{"start": 0, "end": 3, "label": "PER"}]}\n'
    >>> read_prodigy(io.StringIO(line))[0].spans
    [Segment(start=0, stop=3, label='PER')]
    """
    return list(iter_prodigy(source, answers=answers, encoding=encoding))


def iter_prodigy(
    source: Source, *, answers: Iterable[str] | None = ("accept",), encoding: str = "utf-8"
) -> Iterator[AnnotatedText]:
    """Iterate over what :func:`read_prodigy` reads, holding one text in memory at a time.

    Parameters, texts and errors are the same; what was left out is told at the end.
    """
    kept = None if answers is None else _checked_answers(answers)
    return _texts(iter_records(source, encoding), kept)


def _texts(records: Iterable[tuple[str, Record]], kept: set[str] | None) -> Iterator[AnnotatedText]:
    left = Counter[str]()
    for where, record in records:
        answer = record.get(ANSWER)
        if answer is not None and answer not in list(ANSWERS):
            raise ColumnFormatError(
                f"{where}: the answer is {answer!r:.60}, expected one of {list(ANSWERS)}"
            )
        if kept is None or answer is None or answer in kept:
            yield _read(where, record)
        else:
            left[answer] += 1
    if left:
        counts = ", ".join(f"{count} with {answer!r}" for answer, count in sorted(left.items()))
        warn_user(
            f"texts left out by their answer: {counts}; pass answers=None to read all of them."
        )


def _checked_answers(answers: Iterable[str]) -> set[str]:
    kept = {answers} if isinstance(answers, str) else set(answers)
    if unknown := kept.difference(ANSWERS):
        raise ValueError(f"answers={sorted(unknown)!r} are not known; choose of {list(ANSWERS)}.")
    return kept


def _read(where: str, record: Record) -> AnnotatedText:
    text = taken(record, "text", str, where)
    if SPANS not in record:
        _refuse_triples(where, record)
    spans, fields = [], []
    for number, rest in enumerate(listed_records(record.pop(SPANS, None), "span", where)):
        place = f"{where}, span {number}"
        start, stop = taken(rest, "start", int, place), taken(rest, "end", int, place)
        spans.append((start, stop, taken(rest, "label", str, place)))
        rest.pop("token_start", None), rest.pop("token_end", None)
        fields.append(rest)
    fields, scores = with_scores(fields, _SCORE)
    offsets, tokens = None, record.pop("tokens", None)
    if tokens is not None:
        offsets, extras = _tokens(where, text, tokens)
        if any(extras):
            record[TOKEN_FIELDS] = extras
    name = record.pop("id", None)
    meta = kept_meta(record, fields)
    return annotated(
        where, text, spans, id=name, meta=meta, span_probabilities=scores, offsets=offsets
    )


def _refuse_triples(where: str, record: Record) -> None:
    """Raise ColumnFormatError where spans are lists of start, end and label, as of doccano."""
    for name, value in record.items():
        first = value[0] if isinstance(value, list) and value else None
        if isinstance(first, list) and [*map(type, first)] == [int, int, str]:
            raise ColumnFormatError(
                f"{where}: there is no {SPANS!r}, but {name!r} lists spans as doccano writes them: "
                "read the file by read_doccano"
            )


def _tokens(where: str, text: str, tokens: Any) -> tuple[list[tuple[int, int]], list[Record]]:
    """Return the places of tokens, and what else is said of them."""
    offsets, extras = [], []
    for number, rest in enumerate(listed_records(tokens, "token", where)):
        place = f"{where}, token {number}"
        start, stop = taken(rest, "start", int, place), taken(rest, "end", int, place)
        form = rest.pop("text", text[start:stop])
        if form != text[start:stop]:
            raise ColumnFormatError(
                f"{place}: the token is {form!r:.60}, but at [{start}, {stop}) of the text stands "
                f"{text[start:stop]!r:.60}"
            )
        rest.pop("id", None), rest.pop("ws", None)
        offsets.append((start, stop))
        extras.append(rest)
    return offsets, extras


def write_prodigy(target: Target, texts: Iterable[AnnotatedText]) -> None:
    """Write texts with spans for Prodigy, one a line.

    Tokens are written where a text has some (``offsets``), and with them the first and the last
    token of each span that ends where tokens do. A probability is the ``score`` of its span.

    Parameters
    ----------
    target : path or file object
        As of :func:`write_columns`: a path is replaced after all was written.
    texts : iterable of AnnotatedText
        The texts; `meta` is written too.

    Raises
    ------
    ColumnFormatError, TypeError, ValueError
        Naming the text, if a span is `UNLABELED`, or JSON cannot hold `meta`.

    Examples
    --------
    >>> import sys
    >>> from crfkit.text import AnnotatedText
    >>> write_prodigy(sys.stdout, [AnnotatedText("Ann", [(0, 3, "PER")])])
    {"text": "Ann", "spans": [{"start": 0, "end": 3, "label": "PER"}]}
    """
    write_json_lines(target, _records(texts))


def _records(texts: Iterable[AnnotatedText]) -> Iterator[tuple[str, Record]]:
    for where, item in as_texts(texts):
        rest = rest_of(item)
        extras = rest.pop(TOKEN_FIELDS, None)
        record = {} if item.id is None else {"id": item.id}
        record["text"] = item.text
        if item.offsets is not None:
            if extras is None or len(extras) != len(item.offsets):
                extras = [{} for _ in item.offsets]
            record["tokens"] = [
                {
                    "text": item.text[a:b],
                    "start": a,
                    "end": b,
                    "id": number,
                    "ws": item.text[b : b + 1] == " ",
                    **extra,
                }
                for number, ((a, b), extra) in enumerate(zip(item.offsets, extras, strict=True))
            ]
        record["spans"] = _spans(where, item)
        if (answer := rest.get(ANSWER)) is not None and answer not in list(ANSWERS):
            raise ColumnFormatError(
                f"{where}: meta['answer'] is {answer!r:.60}, expected one of {list(ANSWERS)}"
            )
        yield where, joined_records(record, rest, where, () if "tokens" in record else ("tokens",))


def _spans(where: str, item: AnnotatedText) -> list[Record]:
    starts = {start: number for number, (start, _) in enumerate(item.offsets or ())}
    stops = {stop: number for number, (_, stop) in enumerate(item.offsets or ())}
    spans: list[Record] = []
    for (start, stop, label), extra in zip(
        labeled_spans(item, where), span_fields(item, where), strict=True
    ):
        span: Record = {"start": start, "end": stop, "label": label}
        if start in starts and stop in stops:
            span |= {"token_start": starts[start], "token_end": stops[stop]}
        spans.append(span | extra)
    for span, score in zip(spans, item.span_probabilities or (), strict=False):
        span[_SCORE] = score
    return spans
