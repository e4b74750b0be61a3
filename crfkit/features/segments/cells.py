"""Cells of templates of segments, and the reader that evaluates them on runs of tokens."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray
from crfkit.data.packed import ranges
from crfkit.features.functions import (
    FLAG_ITEM,
    NUMBER_ITEM,
    Attributes,
    Calls,
    Functions,
    Items,
    as_items,
    attributes_of,
    evaluate,
)
from crfkit.features.lengths import value_of
from crfkit.features.segments.similarity import EDIT, Lexicon
from crfkit.features.segments.words import TokenRuns, Trie, Words, distinct_runs, number_runs
from crfkit.features.templates.columns import NOTHING, Reference, read_tokens
from crfkit.features.templates.tables import StringTable, distinct_tuples, number_tuples, take

_SET: Items = [(FLAG_ITEM, 1.0)]


class CodedRuns(NamedTuple):
    """Items of runs: a code for each run, shape (n,), -1 for none, and the items of each code."""

    codes: CodeArray
    items: list[Items]


class SegmentPlan(NamedTuple):
    """Compiled templates and what they need; `texts` has those of plain templates."""

    templates: list[SegmentTemplate]
    functions: Functions
    lexicons: dict[str, Lexicon]
    texts: dict[str, Trie]
    columns: list[str] | None
    by: str | None
    longest: int | None  # the longest runs that templates are for


class SegmentReader:
    """The columns of some sequences, as templates read them."""

    def __init__(self, plan: SegmentPlan, X: Iterable[Any]) -> None:
        self._tokens = read_tokens(X, plan.columns, plan.by)
        self.offsets = self._tokens.offsets
        self.functions = plan.functions
        self.lexicons = plan.lexicons
        self.longest = plan.longest
        self._columns: dict[Reference, tuple[list[str], CodeArray]] = {}
        self._words: dict[tuple[Reference, Calls], Words] = {}
        self._pieces: dict[tuple[str, Reference, Calls], IntArray] = {}

    def words(self, text: Text) -> Words:
        """Return the words of a text's column after the functions that work on each."""
        key = text.column, text.word_calls
        if key not in self._words:
            strings, codes = self._column(text.column)
            changed: dict[str, int] = {}
            numbers = [
                changed.setdefault(evaluate(text.word_calls, {}, string), len(changed))
                for string in strings
            ]
            ends = np.repeat(self.offsets[1:], np.diff(self.offsets))
            renumbered = np.array(numbers, np.int32)[codes]
            self._words[key] = Words(renumbered, list(changed), ends)
        return self._words[key]

    def has_known(self, lexicon: str, text: Text, runs: TokenRuns) -> BoolArray:
        """Return which runs have a word that entries of a lexicon have, shape (n,)."""
        key, words = (lexicon, text.column, text.word_calls), self.words(text)
        if key not in self._pieces:
            known = self.lexicons[lexicon].trie.codes(words) >= 0
            self._pieces[key] = np.concatenate([[0], np.cumsum(known)])
        counts = self._pieces[key]
        return counts[words.begin[runs.stop]] > counts[words.begin[runs.start]]

    def runs(self, begin: int, end: int) -> TokenRuns:
        """Return all runs of the tokens ``begin:end``, whole sequences, in order."""
        starts = np.arange(begin, end)
        bounds = self.offsets[np.searchsorted(self.offsets, starts, side="right")]
        assert self.longest is not None  # templates that look at all runs need it
        sizes = np.minimum(bounds - starts, self.longest)
        start = np.repeat(starts, sizes)
        return TokenRuns(start, start + ranges(np.ones(len(sizes), np.int64), sizes))

    def _column(self, reference: Reference) -> tuple[list[str], CodeArray]:
        if reference not in self._columns:
            remedy = "; segments are made of strings."
            table, codes = self._tokens.read(reference, partial(StringTable.learn, 0), remedy)
            self._columns[reference] = table.strings, codes
        return self._columns[reference]


class Text(NamedTuple):
    """The words of a column joined by blanks, and functions of that."""

    column: Reference
    word_calls: Calls = ()  # functions that change one word at a time, applied first
    calls: Calls = ()  # those that need the whole text

    def coded(self, reader: SegmentReader, runs: TokenRuns) -> CodedRuns:
        """Return what runs have."""
        words = reader.words(self)
        kinds, place = words.distinct(runs)
        return _coded([self._items(reader, text) for text in words.texts(kinds)], place)

    def numbers(self, reader: SegmentReader, runs: TokenRuns) -> CodeArray:
        """Return a number for each run, the same for those of one text, shape (n,)."""
        words = reader.words(self)
        return number_runs(words.piece_codes, words.begin, runs)

    def values(self, reader: SegmentReader, runs: TokenRuns) -> list[Any]:
        """Return what the functions give for the texts of runs."""
        texts = reader.words(self).texts(runs)
        return [evaluate(self.calls, reader.functions, text) for text in texts]

    def strings(self, reader: SegmentReader, runs: TokenRuns) -> list[str]:
        """Return the texts of runs, where they must be strings; None becomes an empty one."""
        values = ["" if value is None else value for value in self.values(reader, runs)]
        for value in values:
            if not isinstance(value, str):
                raise TypeError(
                    f"the function {self.calls[-1][0]}() gave {value!r} where a template needs a "
                    "string"
                )
        return values

    def _items(self, reader: SegmentReader, text: str) -> Items:
        if not self.calls:
            return [(text, 1.0)]
        name = f"the function {self.calls[-1][0]}(), for the segment {text!r},"
        return as_items(evaluate(self.calls, reader.functions, text), name)


class WordList(NamedTuple):
    """The list of the words of a segment, for functions of the user."""

    text: Text

    def numbers(self, reader: SegmentReader, runs: TokenRuns) -> CodeArray:
        """Return a number for each run, the same for those of the same words, shape (n,)."""
        words = reader.words(self.text)
        return number_runs(words.codes, words.tokens, runs)

    def values(self, reader: SegmentReader, runs: TokenRuns) -> list[Any]:
        """Return the words of runs."""
        return list(reader.words(self.text).lists(runs))


class Own(NamedTuple):
    """A function of the user of lists of words, or of several texts."""

    name: str
    arguments: tuple[Text | WordList, ...]

    def coded(self, reader: SegmentReader, runs: TokenRuns) -> CodedRuns:
        """Return what runs have; the function is called once for equal arguments."""
        columns = [part.numbers(reader, runs) for part in self.arguments]
        numbers = number_tuples(np.zeros(len(runs.start), np.int32), columns)
        kinds, place = distinct_runs(runs, numbers)
        rows = zip(*(part.values(reader, kinds) for part in self.arguments), strict=True)
        return _coded([self._items(reader, row) for row in rows], place)

    def _items(self, reader: SegmentReader, arguments: tuple[Any, ...]) -> Items:
        try:
            result = reader.functions[self.name](*arguments)
        except Exception as error:
            error.add_note(f"in the function {self.name}() of a template, for {arguments!r:.300}")
            raise
        return as_items(result, f"the function {self.name}(), for {arguments!r:.300},")


class Length(NamedTuple):
    """The number of tokens of a segment, or a condition on it."""

    condition: str | None = None

    def coded(self, reader: SegmentReader, runs: TokenRuns) -> CodedRuns:
        """Return what runs have."""
        lengths = runs.stop - runs.start
        if self.condition is None:
            listed = np.arange(1, int(lengths.max(initial=0)) + 1).tolist()
            return CodedRuns((lengths - 1).astype(np.int32), [[(str(d), 1.0)] for d in listed])
        return _flags(_holds(self.condition, "seg.length", lengths))


class Membership(NamedTuple):
    """Whether a text is an entry of a lexicon."""

    text: Text
    lexicon: str

    def find(self, reader: SegmentReader) -> TokenRuns:
        """Return all runs that are entries, of any length."""
        trie = reader.lexicons[self.lexicon].trie
        return trie.find(reader.words(self.text), None)[0]

    def coded(self, reader: SegmentReader, runs: TokenRuns) -> CodedRuns:
        """Return what runs have."""
        words, known = reader.words(self.text), reader.lexicons[self.lexicon].known
        kinds, place = words.distinct(runs)
        found = [string in known for string in self.text.strings(reader, kinds)]
        return _flags(np.array(found, bool)[place])


class Similarity(NamedTuple):
    """The similarity of a text to the nearest entry of a lexicon, or a condition on that."""

    kind: str  # jaccard, tfidf or edit
    text: Text
    lexicon: str
    least: float  # smaller similarities are none
    condition: str | None = None
    written: str = ""  # how the similarity is written in the condition

    def coded(self, reader: SegmentReader, runs: TokenRuns) -> CodedRuns:
        """Return what runs have; different texts are scored once."""
        words, lexicon = reader.words(self.text), reader.lexicons[self.lexicon]
        chosen = self._candidates(reader, runs)
        kinds, place = words.distinct(runs.take(chosen))
        texts = self.text.strings(reader, kinds)
        values = lexicon.similarities(self.kind, texts, self.least)
        codes = np.full(len(runs.start), NOTHING, np.int32)
        if self.condition is not None:
            found = _flags(_holds(self.condition, self.written, values) & (values > 0))
            codes[chosen] = found.codes[place]
            return CodedRuns(codes, found.items)
        some = np.flatnonzero(values > 0)
        different, which = np.unique(values[some], return_inverse=True)
        of_kinds = np.full(len(values), NOTHING, np.int32)
        of_kinds[some] = which
        codes[chosen] = of_kinds[place]
        return CodedRuns(codes, [[(NUMBER_ITEM, value)] for value in different.tolist()])

    def _candidates(self, reader: SegmentReader, runs: TokenRuns) -> IntArray:
        """Return the runs that may be similar to an entry."""
        if self.text.calls:
            return np.arange(len(runs.start))
        if self.kind == EDIT:
            ends = reader.words(self.text).letters
            sizes = ends[runs.stop] - ends[runs.start] - 1
            letters = reader.lexicons[self.lexicon].letters
            return np.flatnonzero(letters.candidates(sizes, self.least))
        return np.flatnonzero(reader.has_known(self.lexicon, self.text, runs))


SegmentCell = Text | Own | Length | Membership | Similarity


class SegmentTemplate(NamedTuple):
    """A template: how it is written, and its cells."""

    name: str
    cells: tuple[SegmentCell, ...]

    @property
    def plain(self) -> Text | None:
        """The text that is itself the attribute, if it is one."""
        only = self.cells[0]
        return only if len(self.cells) == 1 and isinstance(only, Text) and not only.calls else None

    def attributes(self, items: list[Items]) -> Attributes:
        """Return the attributes that the items of its cells are."""
        if len(items) == 1:
            return attributes_of(self.name, "=", [""], items)
        return attributes_of(f"{self.name}=", "", ["|"] * (len(items) - 1) + [""], items)

    @property
    def lookups(self) -> list[Membership]:
        """The cells that find their runs by themselves."""
        return [c for c in self.cells if isinstance(c, Membership) and not c.text.calls]

    @property
    def compared(self) -> list[Membership | Similarity]:
        """The cells that compare texts with entries."""
        return [c for c in self.cells if isinstance(c, (Membership, Similarity))]


class FoundRuns(NamedTuple):
    """Runs that have attributes of a template, in order, a code each, and those of each code."""

    runs: TokenRuns
    codes: CodeArray
    attributes: list[Attributes]

    def within(self, begin: int, end: int) -> FoundRuns:
        """Return the runs of some tokens."""
        low, high = np.searchsorted(self.runs.start, [begin, end])
        return FoundRuns(
            self.runs.take(np.arange(low, high)), self.codes[low:high], self.attributes
        )


def find_texts(name: str, text: Text, trie: Trie, reader: SegmentReader) -> FoundRuns:
    """Return the runs whose text is one of those of a trie."""
    runs, texts = trie.find(reader.words(text), reader.longest)
    known, codes = np.unique(texts, return_inverse=True)
    names = [f"{name}={trie.texts[number]}" for number in known.tolist()]
    return FoundRuns(runs, codes.astype(np.int32), [[(name, 1.0)] for name in names])


def find_entries(template: SegmentTemplate, reader: SegmentReader) -> FoundRuns:
    """Return the runs that are entries of lexicons, as a template asks for."""
    runs, *others = [cell.find(reader) for cell in template.lookups]
    width = int(reader.offsets[-1]) + 1
    for other in others:
        keys = runs.start * width + runs.stop
        runs = runs.take(np.isin(keys, other.start * width + other.stop))
    return find_among(template, runs, reader)


def find_among(template: SegmentTemplate, runs: TokenRuns, reader: SegmentReader) -> FoundRuns:
    """Return those of some runs that have attributes of a template."""
    every = np.zeros(len(runs.start), np.int32)
    cells = []
    for cell in template.cells:
        try:
            looked_up = cell in template.lookups
            cells.append(CodedRuns(every, [_SET]) if looked_up else cell.coded(reader, runs))
        except Exception as error:
            error.add_note(f"in the template {template.name!r}")
            raise
    if len(cells) == 1:  # its codes say it all, and each of them occurs, if one does
        codes, items = cells[0]
        places = np.flatnonzero(codes >= 0)
        rows = [[each] for each in items] if len(places) else []
        return FoundRuns(runs.take(places), codes[places], list(map(template.attributes, rows)))
    places, which, tuples = distinct_tuples(every, [cell.codes for cell in cells])
    rows = [[cell.items[code] for cell, code in zip(cells, row, strict=True)] for row in tuples]
    return FoundRuns(runs.take(places), which, list(map(template.attributes, rows)))


def _coded(results: Iterable[Items], place: CodeArray) -> CodedRuns:
    """Return codes of runs from the items of different ones; what has the value 0 is left out."""
    index: dict[tuple[tuple[str | int, float], ...], int] = {}
    codes = []
    for items in results:
        kept = tuple(item for item in items if item[1] != 0.0)
        codes.append(index.setdefault(kept, len(index)) if kept else NOTHING)
    table = np.array(codes, np.int32)
    return CodedRuns(take(table, place), [list(items) for items in index])


def _flags(holds: BoolArray) -> CodedRuns:
    return CodedRuns(np.where(holds, 0, NOTHING).astype(np.int32), [_SET])


def _holds(condition: str, variable: str, values: FloatArray | IntArray) -> BoolArray:
    tree = ast.parse(condition, mode="eval").body
    return np.broadcast_to(np.asarray(value_of(tree, variable, values), bool), values.shape)
