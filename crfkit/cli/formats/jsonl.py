"""Objects of JSON, one a line: tokens and their labels, or texts and their spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crfkit.cli.formats.base import Labeled, Words, WordsFormat
from crfkit.cli.formats.plain import tokenized
from crfkit.io.records import iter_records
from crfkit.text import AnnotatedText, as_tokenizer, to_tokens

TOKENS, TEXT, WORD = "tokens", "text", "token"
TAGS, PREDICTED = "tags", "predicted"  # what is written; beside tags that are there already
LABELS = (TAGS, "labels", "ner_tags", "pos_tags")  # of tokens
SPANS = ("spans", "entities", "label", "labels")  # of texts
# How doccano, Prodigy, Label Studio and spaCy name the ends of a span, and its label.
_STARTS, _STOPS = ("start", "start_offset"), ("end", "end_offset", "stop")


class JSONLFormat(WordsFormat):
    """Objects with tokens and labels, or with a text and spans of its characters."""

    name = "jsonl"
    output = "jsonl"
    has_fixed_columns = False

    def _check_label(self) -> None:
        self.places = as_tokenizer(self.given.tokenizer or "words")

    def _records(self, source: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the objects, and where they stand."""
        for where, record in iter_records(source, self.encoding):
            if not {TOKENS, TEXT} & set(record):
                raise ValueError(f'{where}: expected an object with "{TOKENS}" or "{TEXT}".')
            yield where, record

    def read(self, source: Any, width: int | None = None) -> Labeled:
        """Return the columns of tokens as tuples, and their labels."""
        labeled, texts = Labeled([], []), []
        for where, record in self._records(source):
            if TOKENS in record:
                name = self._named(record, LABELS, where)
                rows, _ = self._rows(record, where)
                labels = record[name]
                check_labels(labels, len(rows), name, where)
                labeled.X.append(rows)
                labeled.y.append(labels)
            else:
                name = self._named(record, SPANS, where)
                spans: list[Any] = [_span(item, where) for item in record[name] or ()]
                texts.append(AnnotatedText(record[TEXT], spans, id=where))
        found = to_tokens(texts, self.places)
        for tokens, tags in zip(found.tokens, found.tags, strict=True):
            if tokens:
                labeled.X.append([(token,) for token in tokens])
                labeled.y.append(tags)
        return labeled

    def _named(self, record: Mapping[str, Any], names: Sequence[str], where: str) -> str:
        """Return which entry holds the labels."""
        known = (self.label,) if self.label is not None else names
        for name in known:
            if name in record:
                return name
        raise ValueError(
            f"{where}: the object has {sorted(record)}, but none of {list(known)}: say with "
            "--label which entry has the labels."
        )

    def _rows(self, record: Mapping[str, Any], where: str) -> tuple[list[Any], list[str]]:
        """Return the tokens with further columns: entries that are lists of as many strings."""
        words = record[TOKENS]
        if not _are_strings(words):
            raise ValueError(f'{where}: "{TOKENS}" must be a list of strings.')
        if self.columns is None:
            labels = {*LABELS} if self.label is None else {self.label}
            others = set(record) - labels - {TOKENS, PREDICTED}
            further = [name for name in record if name in others]
            self.columns = [WORD, *(n for n in further if _are_cells(record[n], len(words)))]
        cells: list[Any] = []
        for name in self.columns[1:]:
            value = record.get(name)
            if not _are_cells(value, len(words)):
                raise ValueError(
                    f'{where}: "{name}" must be a list of {len(words)} strings, one for each '
                    "token, as in the objects before."
                )
            cells.append(value)
        return list(zip(words, *cells, strict=True)), words

    def iterate(self, source: Any, width: int | None) -> Iterator[tuple[list[Any], Words]]:
        """Yield tokens and the objects, those of texts by the tokenizer."""
        for where, record in self._records(source):
            if TOKENS in record:
                rows, words = self._rows(record, where)
                yield rows, Words(words, rows, record=record)
            elif isinstance(record[TEXT], str):
                yield tokenized(record[TEXT], self.places, record)
            else:
                raise ValueError(f'{where}: "{TEXT}" must be a string.')


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _are_cells(value: Any, size: int) -> bool:
    return _are_strings(value) and len(value) == size


def check_labels(labels: Any, size: int, name: str, where: str) -> None:
    """Raise ValueError unless labels are so many strings."""
    if not isinstance(labels, list) or len(labels) != size:
        found = f"{len(labels)}" if isinstance(labels, list) else "no list"
        raise ValueError(f'{where}: "{name}" has {found}, but there are {size} tokens.')
    for position, label in enumerate(labels):
        if not isinstance(label, str):
            raise ValueError(
                f'{where}, position {position}: the label {label!r} of "{name}" is no string. '
                "Labels that are numbers need their names: crfkit.io.read_hugging_face has them."
            )


def _span(item: Any, where: str) -> tuple[int, int, str]:
    """Return a span: a list [start, end, label], or an object with these."""
    found = item
    if isinstance(item, dict):
        ends = [next((item[n] for n in names if n in item), None) for names in (_STARTS, _STOPS)]
        found = [*ends, item.get("label")]
    if not isinstance(found, list) or list(map(type, found)) != [int, int, str]:
        raise ValueError(
            f"{where}: {item!r:.80} is no span [start, end, label] of two whole numbers and a "
            "string."
        )
    return found[0], found[1], found[2]
