"""Texts of doccano: JSON lines with spans of characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from crfkit._params import check_option
from crfkit.io.records import (
    Record,
    annotated,
    as_texts,
    character_places,
    checked,
    iter_records,
    joined_records,
    kept_meta,
    labeled_spans,
    listed_records,
    rest_of,
    span_fields,
    taken,
    unit_places,
    with_scores,
    write_json_lines,
)
from crfkit.io.streams import ColumnFormatError, Source, Target
from crfkit.text import AnnotatedText
from crfkit.text.annotated import RELATIONS, SPAN_FIELDS

_KEYS = ("label", "labels", "entities", "annotations")
_TEXTS = ("text", "data")
_SCORE = "probability"


def read_doccano(
    source: Source, *, offsets: str = "characters", encoding: str = "utf-8"
) -> list[AnnotatedText]:
    r"""Read texts that doccano has exported.

    Parameters
    ----------
    source : path, file object or iterable of dicts
        JSON lines, or one list of JSON; spans as ``"label"`` or ``"labels"``, lists of
        ``[start, stop, label]``, or as ``"entities"`` or ``"annotations"``, with ids and relations.
    offsets : {"characters", "utf16"}, default="characters"
        What positions count: characters, as doccano does since 2019, or UTF-16 code units.
    encoding : str, default="utf-8"
        The encoding of a path or binary stream.

    Returns
    -------
    list of AnnotatedText
        ``meta`` keeps all further fields, relations among them, and in ``meta["span_fields"]``
        what an entity has beside its ends and its label.

    Raises
    ------
    ColumnFormatError
        Naming file and line, if a text or its spans are missing, or a span is not within the text.

    Examples
    --------
    >>> import io
    >>> lines = '{"id": 7, "text": "Ann sleeps", "label": [[0, 3, "PER"]]}\n'
    >>> read_doccano(io.StringIO(lines))[0].spans
    [Segment(start=0, stop=3, label='PER')]
    """
    return list(iter_doccano(source, offsets=offsets, encoding=encoding))


def iter_doccano(
    source: Source, *, offsets: str = "characters", encoding: str = "utf-8"
) -> Iterator[AnnotatedText]:
    """Iterate over what :func:`read_doccano` reads, holding one text in memory at a time.

    Parameters, texts and errors are the same.
    """
    return (_read(where, record, offsets) for where, record in iter_records(source, encoding))


def _read(where: str, record: Record, offsets: str) -> AnnotatedText:
    text = taken(record, next((k for k in _TEXTS if k in record), _TEXTS[0]), str, where)
    key = next((k for k in _KEYS if k in record), None)
    if key is None:
        raise ColumnFormatError(
            f"{where}: there are no spans: expected one of {list(_KEYS)}, found only "
            f"{sorted(record)!r:.200}"
        )
    place, spans, fields = character_places(text, offsets), [], []
    for number, item in enumerate(taken(record, key, list, where)):
        start, stop, label, rest = _span(item, f"{where}, {key} {number}")
        spans.append((place(start), place(stop), label))
        fields.append(rest)
    fields, scores = with_scores(fields, _SCORE)
    if not record.get(RELATIONS, True):
        del record[RELATIONS]
    name = record.pop("id", None)
    meta = kept_meta(record, fields)
    return annotated(where, text, spans, id=name, meta=meta, span_probabilities=scores)


def _span(item: Any, where: str) -> tuple[int, int, Any, Record]:
    if isinstance(item, (list, tuple)) and len(item) == 3:
        ends = [checked(each, "a position", int, where) for each in item[:2]]
        return ends[0], ends[1], checked(item[2], "label", (str, int), where), {}
    if not isinstance(item, dict):
        raise ColumnFormatError(
            f"{where}: {item!r:.60} is no span [start, stop, label]; labels of whole texts are "
            "those of another kind of project"
        )
    rest = dict(item)
    start = taken(rest, "start_offset", int, where)
    stop = taken(rest, "end_offset", int, where)
    checked(rest.get("id", 0), "id", (int, str), where)
    return start, stop, taken(rest, "label", (str, int), where), rest


def write_doccano(
    target: Target,
    texts: Iterable[AnnotatedText],
    *,
    form: str | None = None,
    offsets: str = "characters",
) -> None:
    """Write texts with spans for doccano to import, one a line.

    Parameters
    ----------
    target : path or file object
        As of :func:`write_columns`: a path is replaced after all was written.
    texts : iterable of AnnotatedText
        The texts; `meta` is written too.
    form : {"label", "entities"}, optional
        How spans are written: as ``[start, stop, label]`` or as entities with ids, for projects
        with relations. By default as entities if any text has probabilities, relations or ids,
        which only entities can keep: then all texts are read before the first is written.
    offsets : {"characters", "utf16"}, default="characters"
        What positions count.

    Raises
    ------
    ColumnFormatError, TypeError, ValueError
        Naming the text, if a span is `UNLABELED`, a relation is one of entities that are not there,
        the form cannot hold what is known of spans, or JSON cannot hold `meta`.

    Examples
    --------
    >>> import sys
    >>> from crfkit.text import AnnotatedText
    >>> write_doccano(sys.stdout, [AnnotatedText("Ann sleeps", [(0, 3, "PER")], id=7)])
    {"id": 7, "text": "Ann sleeps", "label": [[0, 3, "PER"]]}
    """
    if form is not None:
        check_option("form", form, ("label", "entities"))
    named = as_texts(texts)
    if form is None:  # one for all: doccano looks for the entities of each line of a file
        listed = list(named)
        form = "label" if all(_is_plain(item) for _, item in listed) else "entities"
        named = iter(listed)
    write_json_lines(target, _records(named, form, offsets))


def _is_plain(item: AnnotatedText) -> bool:
    """Whether there is nothing but spans that only entities can keep."""
    kept = item.span_probabilities, item.meta.get(RELATIONS), item.meta.get(SPAN_FIELDS)
    return not any(kept)


def _records(
    texts: Iterable[tuple[str, AnnotatedText]], form: str, offsets: str
) -> Iterator[tuple[str, Record]]:
    for where, item in texts:
        record = {} if item.id is None else {"id": item.id}
        record["text"] = item.text
        fields, rest = span_fields(item, where), rest_of(item)
        place = unit_places(item.text, offsets)
        for each, score in zip(fields, item.span_probabilities or (), strict=False):
            each[_SCORE] = score
        if form == "label" and not _is_plain(item):
            raise ColumnFormatError(
                f"{where}: form='label' cannot hold ids, probabilities or relations; pass "
                "form='entities'"
            )
        spans = [(place(a), place(b), label) for a, b, label in labeled_spans(item, where)]
        if form == "label":
            record["label"] = [list(span) for span in spans]
        else:
            rest.setdefault(RELATIONS, [])  # doccano misses it otherwise
            _number(fields)
            _check_relations(where, rest[RELATIONS], fields)
            record["entities"] = [
                {**each, "label": label, "start_offset": start, "end_offset": stop}
                for each, (start, stop, label) in zip(fields, spans, strict=True)
            ]
        # The reader takes the first of the names that spans may have.
        shadowing = _KEYS[: next(n for n, key in enumerate(_KEYS) if key in record)]
        yield where, joined_records(record, rest, where, shadowing)


def _number(fields: list[Record]) -> None:
    """Give a number to each entity that has none."""
    used = {each["id"] for each in fields if "id" in each}
    free = (number for number in range(len(fields) + len(used)) if number not in used)
    for each in fields:
        if "id" not in each:
            each["id"] = next(free)


def _check_relations(where: str, relations: Any, fields: list[Record]) -> None:
    known = [each["id"] for each in fields]
    for relation in listed_records(relations, "relations", where):
        ends = [relation.get("from_id"), relation.get("to_id")]
        if not all(end in known for end in ends):
            raise ColumnFormatError(
                f"{where}: the relation {relation!r:.80} is one of entities that are not there; "
                "remove it from meta['relations']"
            )
