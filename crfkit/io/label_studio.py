"""Texts of Label Studio: tasks with annotations or predictions, JSON and JSON-MIN."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from crfkit._params import check_option
from crfkit._types import Segment
from crfkit._warnings import warn_user
from crfkit.io.records import (
    Record,
    annotated,
    as_texts,
    character_places,
    check_covered,
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
    write_json_list,
)
from crfkit.io.streams import ColumnFormatError, Source, Target
from crfkit.text import AnnotatedText
from crfkit.text.annotated import RESULTS

OF = ("annotations", "predictions")
SEVERAL = ("raise", "first", "last", "each")
_SCORE = "score"
# What older exports call them, which the reader prefers.
_OLD = {"annotations": ("completions",), "predictions": ()}
# What JSON-MIN tells of an annotation, and how JSON calls it.
_SMALL = {"annotator": "completed_by", "annotation_id": "id"}
_SMALL |= {name: name for name in ("created_at", "updated_at", "lead_time")}


def read_label_studio(
    source: Source,
    *,
    of: str = "annotations",
    several: str = "raise",
    text: str = "text",
    label: str | None = None,
    offsets: str = "characters",
    encoding: str = "utf-8",
) -> list[AnnotatedText]:
    """Read texts that Label Studio has exported, as JSON or JSON-MIN.

    Parameters
    ----------
    source : path, file object or iterable of dicts
        One list of tasks, or a task in each line.
    of : {"annotations", "predictions"}, default="annotations"
        Whose spans to read: those of annotators (``completions`` in older exports), or those of
        models.
    several : {"raise", "first", "last", "each"}, default="raise"
        What to do with a task that has several annotations: raise an error, take one, or make a
        text of each.
    text : str, default="text"
        The name of the text in the data of a task.
    label : str, optional
        The name of the control of the labels (``from_name``), where there are several.
    offsets : {"characters", "utf16"}, default="characters"
        What positions count: characters, or UTF-16 code units, as Label Studio did until 2021: an
        emoji counts as two of these. Where an export says what its spans cover, a mismatch is an
        error.
    encoding : str, default="utf-8"
        The encoding of a path or binary stream.

    Returns
    -------
    list of AnnotatedText
        ``meta`` keeps all further fields: of the task, of its ``annotation``, its other ``results``
        (relations, choices), and in ``meta["span_fields"]`` of its regions.

    Raises
    ------
    ColumnFormatError
        Naming file and task, if a text is missing, a span is not within it or covers something
        else, or there is a choice to be made.

    Warns
    -----
    UserWarning
        With the number of tasks that have no annotation (or that was cancelled) and are left out.

    Examples
    --------
    >>> region = {"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]}
    >>> result = [{"from_name": "label", "to_name": "text", "type": "labels", "value": region}]
    >>> task = {"id": 7, "data": {"text": "Ann sleeps"}, "annotations": [{"result": result}]}
    >>> read_label_studio([task])[0].spans
    [Segment(start=0, stop=3, label='PER')]
    """
    options = {"of": of, "several": several, "text": text, "label": label, "offsets": offsets}
    return list(iter_label_studio(source, encoding=encoding, **options))  # type: ignore[arg-type]


def iter_label_studio(
    source: Source,
    *,
    of: str = "annotations",
    several: str = "raise",
    text: str = "text",
    label: str | None = None,
    offsets: str = "characters",
    encoding: str = "utf-8",
) -> Iterator[AnnotatedText]:
    """Iterate over what :func:`read_label_studio` reads, holding one task in memory at a time.

    Parameters, texts and errors are the same; what was left out is told at the end.
    """
    check_option("of", of, OF)
    check_option("several", several, SEVERAL)
    options = _Options(of, several, text, label, offsets, set())
    return _texts(_tasks(iter_records(source, encoding), text), options)


class _Options(NamedTuple):
    """How tasks are read."""

    of: str
    several: str
    text: str
    label: str | None
    offsets: str
    controls: set[str]  # from which labels have come


def _tasks(
    records: Iterable[tuple[str, Record]], text: str
) -> Iterator[tuple[str, list[Record], bool]]:
    """Yield places, tasks, or the records of JSON-MIN of one task, and whether they are such."""

    def key(pair: tuple[str, Record]) -> tuple[bool, Any]:
        where, task = pair
        is_small = "data" not in task or (text == "data" and isinstance(task["data"], str))
        return is_small, task["id"] if is_small and task.get("id") is not None else where

    for (is_small, _), group in groupby(records, key):
        listed = list(group)
        yield listed[0][0], [task for _, task in listed], is_small


def _texts(
    tasks: Iterable[tuple[str, list[Record], bool]], options: _Options
) -> Iterator[AnnotatedText]:
    left: list[str] = []
    for where, records, is_small in tasks:
        found = (_of_small if is_small else _of_task)(where, records, options)
        if not found:
            left.append(where)
        yield from found
    if left:
        warn_user(f"{len(left)} tasks have no {options.of} and are left out, the first: {left[0]}.")


def _of_task(where: str, records: list[Record], options: _Options) -> list[AnnotatedText]:
    """Return the texts of a task."""
    (task,) = records
    of, data = options.of, dict(taken(task, "data", dict, where))
    whole = taken(data, options.text, str, where)
    key = "completions" if of == "annotations" and "completions" in task else of
    listed = listed_records(task.pop(key, None), key, where)
    done = [each for each in listed if not each.get("was_cancelled")]
    chosen = _chosen(where, task, done, options)
    meta = task | ({"data": data} if data else {})
    return [_read(where, whole, one, meta, options) for one in chosen]


def _of_small(where: str, records: list[Record], options: _Options) -> list[AnnotatedText]:
    """Return the texts of the records of a task in JSON-MIN, one for each annotation."""
    if options.of == "predictions":
        raise ColumnFormatError(f"{where}: JSON-MIN has no predictions; export JSON")
    done = [
        each
        for each in records
        if each.get("annotation_id", "") is not None or any(map(_holds_regions, each.values()))
    ]
    chosen = _chosen(where, records[0], done, options)
    return [_read_small(where, each, options) for each in chosen]


def _chosen(where: str, task: Record, done: list[Record], options: _Options) -> list[Record]:
    """Return the annotations of a task that are to be read."""
    several = options.several
    if len(done) > 1 and several == "raise":
        raise ColumnFormatError(
            f"{where} (id {task.get('id')!r}) has {len(done)} {options.of}: pass several='first', "
            "'last' or 'each'"
        )
    return done[:1] if several == "first" else done[-1:] if several == "last" else done


def _read(
    where: str, text: str, annotation: Record, task: Record, options: _Options
) -> AnnotatedText:
    of, label, controls = options.of, options.label, options.controls
    spans: list[Any] = []
    fields: list[Record] = []
    others: list[Record] = []
    for number, result in enumerate(
        listed_records(annotation.pop("result", None), "result", where)
    ):
        place = f"{where}, result {number}"
        named = label is None or result.get("from_name") == label
        value = checked(result.get("value") or {}, "value", dict, place)
        if not named or "labels" not in value:
            _check_other(place, result, named)
            others.append(result)
            continue
        controls.add(str(result.get("from_name")))
        if len(controls) > 1:
            raise ColumnFormatError(
                f"{place}: labels come from {sorted(controls)}; pass one of them as label="
            )
        rest = dict(result)
        for span, more in _regions(place, text, rest.pop("value"), options.offsets):
            spans.append(span)
            fields.append(rest | more)
    fields, scores = with_scores(fields, _SCORE)
    meta = {k: v for k, v in task.items() if k != "id"}
    if annotation:
        meta[of.removesuffix("s")] = annotation
    if others:
        meta[RESULTS] = others
    meta = kept_meta(meta, fields)
    name = task.get("id")
    return annotated(where, text, spans, id=name, meta=meta, span_probabilities=scores)


def _check_other(where: str, result: Record, named: bool) -> None:
    """Raise ColumnFormatError for labels of what is no plain text."""
    kind = str(result.get("type", ""))
    if named and kind in ("hypertextlabels", "paragraphlabels", "timeserieslabels"):
        raise ColumnFormatError(
            f"{where}: the labels are those of {kind!r}, whose positions are not those of a plain "
            "text; label texts as <Text>, or pass label= to read others"
        )


def _regions(where: str, text: str, value: Any, offsets: str) -> Iterator[tuple[Segment, Record]]:
    """Yield a span for each label of a region, and what else is said of it."""
    place, rest = character_places(text, offsets), dict(value)
    start, stop = (
        place(_position(taken(rest, key, (int, str), where), key, where))
        for key in ("start", "end")
    )
    covered, labels = rest.pop("text", None), taken(rest, "labels", list, where)
    more = {"value": rest} if rest else {}
    for each in labels:
        span = Segment(start, stop, checked(each, "a label", str, where))
        check_covered(where, text, span, covered)
        yield span, more


def _position(value: int | str, key: str, where: str) -> int:
    """Return a position, which some exports write as a string."""
    return int(value) if str(value).isdecimal() else int(checked(value, key, int, where))


def _read_small(where: str, record: Record, options: _Options) -> AnnotatedText:
    whole = taken(record, options.text, str, where)
    keys = [key for key, value in record.items() if _holds_regions(value)]
    if options.label is None and len(keys) > 1:
        raise ColumnFormatError(f"{where}: labels come from {keys}; pass one of them as label=")
    key = options.label or (keys or ["label"])[0]
    spans: list[Any] = []
    values: list[Record] = []
    regions: list[Record] = []  # which one a span is of, where it has several labels
    for number, value in enumerate(listed_records(record.pop(key, None), key, where)):
        found = list(_regions(f"{where}, {key} {number}", whole, value, options.offsets))
        spans += [span for span, _ in found]
        values += [more.get("value", {}) for _, more in found]
        regions += [{"id": f"region-{number}"} if len(found) > 1 else {} for _ in found]
    values, scores = with_scores(values, _SCORE)
    pairs = zip(regions, values, strict=True)
    fields = [region | ({"value": value} if value else {}) for region, value in pairs]
    name, meta = record.pop("id", None), kept_meta(record, fields)
    return annotated(where, whole, spans, id=name, meta=meta, span_probabilities=scores)


def _holds_regions(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(x, dict) and "labels" in x for x in value)


def write_label_studio(
    target: Target,
    texts: Iterable[AnnotatedText],
    *,
    form: str = "json",
    of: str | None = None,
    model_version: str | None = None,
    text: str = "text",
    label: str = "label",
    offsets: str = "characters",
) -> None:
    """Write tasks for Label Studio to import, for example with spans that a model has found.

    Parameters
    ----------
    target : path or file object
        As of :func:`write_columns`: a path is replaced after all was written.
    texts : iterable of AnnotatedText
        The texts; what their reader has kept in `meta` goes back to its place.
    form : {"json", "min"}, default="json"
        Tasks, which Label Studio imports, or the small form of its exports (JSON-MIN), for other
        programs: fields and regions of one annotation, without ids of regions and names of
        controls; a probability is the ``score`` of its region.
    of : {"annotations", "predictions"}, optional
        Whether spans are those of annotators, or of a model, which annotators then correct. By
        default they are predictions where there are probabilities or a `model_version`.
    model_version : str, optional
        The name of the model, for predictions.
    text : str, default="text"
        The name of the text in the data of a task, which is that of the object, too (``to_name``).
    label : str, default="label"
        The name of the control of the labels (``from_name``).
    offsets : {"characters", "utf16"}, default="characters"
        What positions count: see :func:`read_label_studio`.

    Raises
    ------
    ColumnFormatError, TypeError, ValueError
        Naming the text, if a span is `UNLABELED`, or JSON cannot hold `meta`, or JSON-MIN what else
        an annotation has (relations, choices).

    Notes
    -----
    The probability of a span is the ``score`` of its region, the least of them that of the task, by
    which Label Studio can sort.

    Examples
    --------
    >>> import io
    >>> from crfkit.text import AnnotatedText
    >>> file = io.StringIO()
    >>> one = AnnotatedText("Ann sleeps", [(0, 3, "PER")], span_probabilities=[0.9])
    >>> write_label_studio(file, [one], model_version="crf-1")
    >>> import json
    >>> json.loads(file.getvalue())[0]["predictions"][0]["score"]
    0.9
    """
    if of is not None:
        check_option("of", of, OF)
    check_option("form", form, ("json", "min"))
    if form == "min":
        if of == "predictions" or model_version is not None:
            raise ValueError("form='min' has no predictions; pass form='json'.")
        write_json_list(target, _small(texts, text, label, offsets))
    else:
        write_json_list(target, _written(texts, of, model_version, text, label, offsets))


def _small(
    texts: Iterable[AnnotatedText], name: str, label: str, offsets: str
) -> Iterator[tuple[str, Record]]:
    for where, item in as_texts(texts):
        meta = rest_of(item)
        if meta.pop(RESULTS, []):
            raise ColumnFormatError(
                f"{where}: JSON-MIN cannot hold meta[{RESULTS!r}], such as relations; remove them, "
                "or pass form='json'"
            )
        record: Record = {} if item.id is None else {"id": item.id}
        record = joined_records(record | {name: item.text}, meta.pop("data", {}), where)
        results = _results(where, item, name, label, offsets)
        if results:
            kept = [{_SCORE: each[_SCORE]} if _SCORE in each else {} for each in results]
            pairs = zip(results, kept, strict=True)
            record[label] = [each["value"] | score for each, score in pairs]
        annotation = meta.pop("annotation", {})
        known = {key: annotation[old] for key, old in _SMALL.items() if old in annotation}
        yield where, joined_records(record | known, meta, where)


def _written(
    texts: Iterable[AnnotatedText],
    of: str | None,
    version: str | None,
    name: str,
    label: str,
    offsets: str,
) -> Iterator[tuple[str, Record]]:
    for where, item in as_texts(texts):
        scores, meta = item.span_probabilities, rest_of(item)
        key = of or ("annotations" if scores is None and version is None else "predictions")
        others = meta.pop(RESULTS, [])
        annotation = dict(meta.pop(key.removesuffix("s"), {}))
        annotation["result"] = _results(where, item, name, label, offsets) + others
        if key == "predictions":
            annotation |= {} if version is None else {"model_version": version}
            annotation |= {_SCORE: min(scores)} if scores else {}
        task: Record = {} if item.id is None else {"id": item.id}
        task["data"] = joined_records({name: item.text}, meta.pop("data", {}), where)
        written = {key: [annotation, *meta.pop(key, [])]}
        yield where, joined_records(task | written, meta, where, _OLD[key])


def _results(where: str, item: AnnotatedText, name: str, label: str, offsets: str) -> list[Record]:
    """Return the regions of a text; labels of the same region are put together."""
    place, results = unit_places(item.text, offsets), list[Record]()
    pairs = zip(labeled_spans(item, where), span_fields(item, where), strict=True)
    scores = item.span_probabilities or [None] * len(item.spans)  # type: ignore[list-item]
    last: Any = None
    for number, (((start, stop, kind), fields), score) in enumerate(
        zip(pairs, scores, strict=True)
    ):
        region = fields.get("id")
        if region is not None and (region, start, stop, score) == last:
            results[-1]["value"]["labels"].append(kind)
            continue
        last = (region, start, stop, score)
        value = {
            "start": place(start),
            "end": place(stop),
            "text": item.text[start:stop],
            "labels": [kind],
            **fields.pop("value", {}),
        }
        result = {"id": f"span-{number}", "from_name": label, "to_name": name, "type": "labels"}
        result |= fields | ({} if score is None else {_SCORE: score})
        results.append(result | {"value": value})
    return results
