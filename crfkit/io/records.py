"""What formats of annotated texts share: records of JSON, checked fields, spans, writing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, chain, islice
from typing import Any

from crfkit._params import check_option
from crfkit._types import Segment
from crfkit.data import UNLABELED
from crfkit.io.streams import (
    MOST_CHARACTERS,
    MOST_OF_A_FILE,
    ColumnFormatError,
    Source,
    Target,
    raw_lines,
    source_name,
    without_end,
    write_blocks,
)
from crfkit.text import AnnotatedText
from crfkit.text.annotated import SPAN_FIELDS

OFFSETS = ("characters", "utf16")

_DECODER = json.JSONDecoder()
_LONGEST_SIGN = len("-Infinity")  # of what may be cut where lines are

Record = dict[str, Any]


def iter_records(source: Any, encoding: str) -> Iterator[tuple[str, Record]]:
    """Yield the objects of a source and their places, for messages.

    A source is a file of JSON lines, or of one list of JSON, or an iterable of dicts; one object is
    in memory at a time.
    """
    name = source_name(source)
    if isinstance(source, Mapping):
        raise TypeError("expected a list of records, found a single one: put it into a list")
    if _is_file(source):
        yield from _file_records(source, name, encoding)
        return
    for number, item in enumerate(source):
        if isinstance(item, str):
            item = _parsed(item, f"record {number}")
        yield f"record {number}", _as_record(item, f"record {number}")


def _is_file(source: Any) -> bool:
    return isinstance(source, str) or hasattr(source, "read") or hasattr(source, "__fspath__")


def _file_records(source: Source, name: str, encoding: str) -> Iterator[tuple[str, Record]]:
    lines, skipped, first = raw_lines(source, encoding), 0, ""
    for first in lines:
        first = first.removeprefix("\ufeff") if skipped == 0 else first
        if first.strip():
            break
        skipped += 1
    if first.lstrip().startswith("["):
        listed = _JSONList(chain([first.lstrip()], lines), name)
        for number, item in enumerate(listed.items()):
            yield f"{name}, record {number}", _as_record(item, f"{name}, record {number}")
        return
    for number, line in enumerate(chain([first], lines), start=skipped + 1):
        if line.strip():
            where = f"{name}, line {number}"
            yield where, _as_record(_parsed(without_end(line, name, number), where), where)


class _JSONList:
    """A file with one list of JSON, of which one item is in memory at a time."""

    def __init__(self, lines: Iterator[str], name: str) -> None:
        self.lines, self.name, self.number = lines, name, 0
        self.text, self.at = "", 0  # what was read, and how far it was parsed

    def items(self) -> Iterator[Any]:
        """Yield the items."""
        self._take("[")
        if self._next() != "]":
            yield self._item()
            while self._next() != "]":
                self._take(",")
                self._next()
                yield self._item()
        self._take("]")
        if self._blank() or any(line.strip() for line in self.lines):
            raise self._error("something follows the list")

    def _blank(self) -> str:
        """Skip white space, and return the character after it, if that was read."""
        while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _next(self) -> str:
        """Return the next character that is no white space."""
        while not (found := self._blank()):
            self._more(1, "the file ends within the list")
        return found

    def _take(self, sign: str) -> None:
        if self._next() != sign:
            raise self._error(f"expected {sign!r}, found {self.text[self.at :][:20]!r}")
        self.at += 1

    def _more(self, count: int, missing: str) -> None:
        """Read some lines; ColumnFormatError if there are none."""
        lines = list(islice(self.lines, count))
        if not lines:
            raise self._error(missing)
        self.text, self.at = "".join([self.text[self.at :], *lines]), 0
        if len(self.text) > MOST_OF_A_FILE:
            raise self._error(f"it is longer than {MOST_OF_A_FILE:,} characters")

    def _item(self) -> Any:
        while True:
            try:
                item, self.at = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                rest = self.text[error.pos :]
                if len(rest.strip()) > _LONGEST_SIGN and "Unterminated" not in error.msg:
                    raise self._error(f"{error.msg}: {rest[:20]!r}") from None
                # It may end in lines to come; twice as many as there are make few trials.
                self._more(1 + self.text.count("\n", self.at), f"{error.msg}: the file ends")
            except RecursionError:
                raise self._error("it is nested too deeply") from None
            else:
                self.number += 1
                return item

    def _error(self, reason: str) -> ColumnFormatError:
        return _no_json(f"{self.name}, record {self.number}", reason)


def _no_json(where: str, reason: str) -> ColumnFormatError:
    return ColumnFormatError(
        f"{where}: no JSON: {reason}; files of JSON lines have an object in each line, others one "
        "list"
    )


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise _no_json(where, str(error)) from None
    except RecursionError:
        raise ColumnFormatError(f"{where}: the JSON is nested too deeply") from None


def _as_record(item: Any, where: str) -> Record:
    if not isinstance(item, Mapping):
        raise ColumnFormatError(f"{where}: expected an object, found {item!r:.60}")
    return dict(item)


def taken(record: Record, key: str, kind: type | tuple[type, ...], where: str) -> Any:
    """Remove a field of a record and return it; errors tell what is missing, or of another type."""
    if key not in record:
        raise ColumnFormatError(
            f"{where}: there is no {key!r}, only {sorted(map(str, record))!r:.200}"
        )
    return checked(record.pop(key), key, kind, where)


def checked(value: Any, key: str, kind: type | tuple[type, ...], where: str) -> Any:
    """Return a value of this type; ColumnFormatError names its place otherwise."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(each.__name__ for each in kinds)
        raise ColumnFormatError(f"{where}: {key!r} is {value!r:.60}, expected {names}")
    return value


def listed_records(value: Any, key: str, where: str) -> list[Record]:
    """Return copies of the objects of a list, None being an empty one; errors name their places."""
    items = checked([] if value is None else value, key, list, where)
    return [
        dict(checked(item, key, dict, f"{where}, {key} {number}"))
        for number, item in enumerate(items)
    ]


def annotated(where: str, text: str, spans: list[Any], **fields: Any) -> AnnotatedText:
    """Return a text with spans; errors name the place in the file."""
    try:
        return AnnotatedText(text, spans, **fields)
    except (TypeError, ValueError) as error:
        raise ColumnFormatError(f"{where}: {error}") from None


def character_places(text: str, offsets: str) -> Callable[[int], int]:
    """Return the function from the positions of a file to those of characters.

    JavaScript counts UTF-16 code units, of which emoji, for example, have two.
    """
    check_option("offsets", offsets, OFFSETS)
    if offsets == "characters" or all(ord(sign) < 0x10000 for sign in text):
        return lambda place: place
    units = accumulate((1 + (ord(sign) > 0xFFFF) for sign in text), initial=0)
    places = {unit: place for place, unit in enumerate(units)}
    # A position within a character, or behind the text, is none: the text refuses it.
    return lambda unit: places.get(unit, len(text) + 1)


def unit_places(text: str, offsets: str) -> Callable[[int], int]:
    """Return the function from positions of characters to those of a file."""
    check_option("offsets", offsets, OFFSETS)
    if offsets == "characters":
        return lambda place: place
    units = list(accumulate((1 + (ord(sign) > 0xFFFF) for sign in text), initial=0))
    return lambda place: units[place]


def check_covered(where: str, text: str, span: Segment, covered: Any) -> None:
    """Raise ColumnFormatError if a file says that a span covers something else."""
    found = text[span.start : span.stop] if 0 <= span.start < span.stop <= len(text) else ""
    if isinstance(covered, str) and _plain(found) != _plain(covered):
        raise ColumnFormatError(
            f"{where}: the span [{span.start}, {span.stop}) labeled {span.label!r} covers "
            f"{found!r:.60}, but the file says {covered!r:.60}; was the text changed, or are "
            "positions counted otherwise (offsets='utf16', which some tools of JavaScript use)?"
        )


def _plain(text: str) -> str:
    """Return a text without white space, also where its line ends are written out."""
    return "".join(text.replace("\\n", " ").split())


def span_fields(item: AnnotatedText, where: str) -> list[Record]:
    """Return what else is known of each span, as its reader has kept it."""
    kept = item.meta.get(SPAN_FIELDS)
    if kept is None:
        return [{} for _ in item.spans]
    if len(kept) != len(item.spans):
        raise ColumnFormatError(
            f"{where}: there are {len(item.spans)} spans, but {len(kept)} entries in "
            f"meta[{SPAN_FIELDS!r}]; remove that entry, or give it one dict a span"
        )
    return [dict(each) for each in kept]


def labeled_spans(item: AnnotatedText, where: str) -> list[Segment]:
    """Return the spans of a text, whose labels must be strings."""
    for span in item.spans:
        if span.label is UNLABELED:
            raise ColumnFormatError(
                f"{where}: the part [{span.start}, {span.stop}) is UNLABELED, for which the format "
                "has no place; remove the span, or write a DocBin"
            )
        if not isinstance(span.label, str) or not span.label:
            raise ColumnFormatError(f"{where}: the label {span.label!r} is no string, or empty")
    return item.spans


def with_scores(fields: list[Record], key: str) -> tuple[list[Record], list[float] | None]:
    """Take the probabilities out of the fields of spans, if all have one."""
    scores = [each.get(key) for each in fields]
    if not scores or not all(isinstance(x, (int, float)) for x in scores):
        return fields, None
    return [{k: v for k, v in each.items() if k != key} for each in fields], [
        float(x) for x in scores if x is not None
    ]


def kept_meta(record: Record, fields: list[Record]) -> Record:
    """Return what a text keeps of a record: what is left of it, and of its spans."""
    return {**record, SPAN_FIELDS: fields} if any(fields) else record


def rest_of(item: AnnotatedText) -> Record:
    """Return what else is known of a text, without that of its spans."""
    return {key: value for key, value in item.meta.items() if key != SPAN_FIELDS}


def joined_records(
    record: Record, rest: Record, where: str, shadowing: Iterable[str] = ()
) -> Record:
    """Return a record and what else is known of a text.

    ColumnFormatError for a field that would take the place of one that the format has, or would be
    read in its place.
    """
    for key in rest:
        if key in record or key in shadowing:
            raise ColumnFormatError(
                f"{where}: meta[{key!r}] would take the place of a field of the format; remove it, "
                "or give it another name"
            )
    return record | rest


def name_of(item: AnnotatedText, number: int) -> str:
    """Return what a text is called in messages of writers."""
    return f"text {number}" + ("" if item.id is None else f" (id {item.id!r})")


def as_texts(texts: Iterable[AnnotatedText]) -> Iterator[tuple[str, AnnotatedText]]:
    """Yield texts with their names; TypeError for what is none."""
    if isinstance(texts, AnnotatedText):
        raise TypeError("expected a list of texts, found a single one: put it into a list")
    for number, item in enumerate(texts):
        if not isinstance(item, AnnotatedText):
            raise TypeError(f"text {number} is a {type(item).__name__}, not an AnnotatedText")
        yield name_of(item, number), item


def as_json(record: Any, where: str, indent: int | None = None) -> str:
    """Return a record as JSON; errors name the text."""
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False, indent=indent)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: JSON cannot hold it: {error}") from None


def write_json_lines(target: Target, records: Iterable[tuple[str, Record]]) -> None:
    """Write records, one a line."""
    write_blocks(target, (_line(where, record) for where, record in records))


def _line(where: str, record: Record) -> str:
    text = as_json(record, where)
    if len(text) >= MOST_CHARACTERS - 1:
        raise ColumnFormatError(
            f"{where}: its line would be longer than {MOST_CHARACTERS:,} characters, which the "
            "reader refuses; split the text"
        )
    return text + "\n"


def write_json_list(target: Target, records: Iterable[tuple[str, Record]]) -> None:
    """Write records as one list, one a line."""

    def blocks() -> Iterator[str]:
        before = "[\n"
        for where, record in records:
            yield before + as_json(record, where)
            before = ",\n"
        yield "[]\n" if before == "[\n" else "\n]\n"

    write_blocks(target, blocks())
