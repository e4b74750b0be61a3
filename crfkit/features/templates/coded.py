"""Reader of the cells of templates of tokens, as codes."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import CodeArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.features._lexicons import EntryIndex, find_phrases, find_runs
from crfkit.features.expressions import LEXICON
from crfkit.features.functions import FLAG, Functions, Items, as_items, evaluate
from crfkit.features.templates.columns import NOTHING, Reference, TokenTable
from crfkit.features.templates.plan import (
    ABSENT,
    APPLY,
    BOS,
    EOS,
    INPUT,
    PHRASE,
    Cell,
    ColumnKey,
    Plan,
    Source,
)
from crfkit.features.templates.tables import ItemTable, StringTable, TextTable, take
from crfkit.kernels.text.hashing import codes_shift

FALSE = "\0false"  # the text of a flag that is not set, which never becomes a name

SourceTable = TextTable | ItemTable
_REMEDY = ". Convert it, or name the column in `numeric` to use its number."


class LearnedTables(NamedTuple):
    """What templates need: what `fit` has learned of columns and sources, too."""

    plan: Plan
    functions: Functions
    entries: dict[str, EntryIndex]  # of the lexicons
    strings: list[StringTable]  # of the columns
    sources: dict[int, SourceTable]

    def text(self, source: Source, string: str) -> str | None:
        """Return the text that a source makes of a string."""
        result = evaluate(source.calls, self.functions, string)
        if result is None:
            return None
        if source.kind != FLAG:
            return str(result)
        if source.joint is None:
            return str(bool(result))
        return "" if result else FALSE

    def items(self, source: Source, string: str) -> Items:
        """Return the items that a source makes of a string."""
        name = "the function " + "(".join(name for name, _ in reversed(source.calls))
        return as_items(evaluate(source.calls, self.functions, string), f"{name}({string!r})")

    def learn_column(self, number: int, strings: StringTable) -> None:
        """Take the strings of a column and run the functions of all sources that read it."""
        self.strings.append(strings)
        for i, source in enumerate(self.plan.sources):
            if source.column == number and source.gives_items:
                absent, marks = self.plan.policy == ABSENT, self.plan.marks
                items: list[Items] = [[] if absent else [(mark, 1.0)] for mark in marks]
                items += [self.items(source, string) for string in strings.strings]
                self.sources[i] = ItemTable(items)
            elif source.column == number:
                texts = [self._mark_text(source, mark) for mark in self.plan.marks]
                texts += [self.text(source, string) for string in strings.strings]
                self.sources[i] = TextTable(texts)

    def _mark_text(self, source: Source, mark: str) -> str | None:
        """Return the text of a source outside of the sequence."""
        if self.plan.policy == ABSENT:
            return None
        return self.text(source, mark) if self.plan.policy == APPLY else (source.joint or "") + mark


class TokenReader:
    """Reader of the cells of some tokens; `fit` fills the tables while it reads the columns."""

    def __init__(self, learned: LearnedTables, tokens: TokenTable, learning: bool = False) -> None:
        self.learned = learned
        self.plan = learned.plan
        self.tokens = tokens
        self.n_tokens = tokens.n_tokens
        self.offsets: IntArray = frozen(tokens.offsets)
        self.base: list[CodeArray] = []
        self.new: list[list[str]] = []
        self._codes: dict[int, CodeArray] = {}
        self._texts: dict[int, list[str]] = {}
        self._cells: dict[Cell, CodeArray] = {}
        self._new_items: dict[int, list[Items]] = {}
        self._found = {} if learning else self._look_up()
        for number, key in enumerate(self.plan.columns):
            codes, new = self._read(number, key, learning)
            self.base.append(codes)
            self.new.append(new)

    def _read(self, number: int, key: ColumnKey, learning: bool) -> tuple[CodeArray, list[str]]:
        """Return the codes of a column, shape (N,), and strings that were not learned."""
        first, learned = len(self.plan.marks), self.learned
        if key[0] == INPUT and not learning:
            codes, size = self._found[key[1]], len(learned.strings[number])
            places = np.flatnonzero(codes == NOTHING)
            learn = partial(StringTable.learn, size)
            more, codes[places] = self.tokens.read(key[1], learn, _REMEDY, places.tolist())
            return codes, more.strings
        new: list[str] = []
        if key[0] == INPUT:
            table, codes = self.tokens.read(key[1], partial(StringTable.learn, first), _REMEDY)
        elif key[0] == PHRASE:
            phrases, marks = self.tokens.read(key[1], partial(self._phrases, key[2]), _REMEDY)
            if learning:
                table, codes = StringTable.learn(first, phrases)
            else:
                codes, new = learned.strings[number].find(phrases)
            codes = np.where(marks < NOTHING, codes, marks)
        else:
            strings, ranks = self._computed(key)
            table = StringTable(first, strings)
            codes = np.where(ranks < 0, ranks, ranks + first).astype(np.int32)
        if learning:
            learned.learn_column(number, table)
        return codes, new

    def _phrases(self, side: int, words: list[str]) -> tuple[list[str], CodeArray]:
        """Return the phrase of each token, or the word beside it; a mark, -1 for none, else -2."""
        starts, ends = find_phrases(words, self.offsets)
        marks = np.where(starts < 0, -1, -2).astype(np.int32)
        if side == 0:
            pairs = list(zip(starts.tolist(), ends.tolist(), strict=True))
            texts = {(begin, end): " ".join(words[begin:end]) for begin, end in set(pairs)}
            return [texts[pair] for pair in pairs], marks
        lengths = np.diff(self.offsets)
        edges = np.repeat(self.offsets[:-1] if side < 0 else self.offsets[1:], lengths)
        inside = starts >= 0
        marks[inside & ((starts if side < 0 else ends) == edges)] = (
            0 if side < 0 else len(self.plan.marks) // 2
        )
        beside = np.where(marks == -2, starts - 1 if side < 0 else ends, 0)
        return [words[token] for token in beside.tolist()], marks

    def _look_up(self) -> dict[Reference, CodeArray]:
        """Return the codes of the strings of columns, -1 for those that were not learned."""
        columns = zip(self.plan.columns, self.learned.strings, strict=True)
        indexes = {key[1]: table.index for key, table in columns if key[0] == INPUT}
        return self.tokens.codes(indexes, _REMEDY)

    def _computed(self, key: ColumnKey) -> tuple[list[str], IntArray | CodeArray]:
        """Return the strings of a column that is computed, and that of each token, -1 for none."""
        if key[0] == LEXICON:
            return ["B", "I"], self._runs(self.learned.entries[key[2]], key[1])
        offsets = self.tokens.offsets
        lengths = np.diff(offsets)
        place = np.arange(self.n_tokens) - np.repeat(offsets[:-1], lengths)
        size = np.repeat(lengths, lengths)
        if key[0] in (BOS, EOS):
            edge = place == (0 if key[0] == BOS else size - 1)
            return ["False", "True"], edge.astype(np.int64)
        return [str(i) for i in range(key[1])], place * key[1] // size

    def _runs(self, entries: EntryIndex, source: int) -> CodeArray:
        """Return which tokens begin a run of an entry (0) or lie in one (1), else -1."""
        codes, table = self.source_codes(source), self.learned.sources[source]
        assert isinstance(table, TextTable)
        firsts = [table.code(first) for first in entries]  # what is in no table begins no run
        firsts += [
            len(table.texts) + i for i, text in enumerate(self._texts[source]) if text in entries
        ]
        starts = np.flatnonzero(np.isin(codes, [code for code in firsts if code >= 0]))

        def spell(token: int) -> str | None:
            return self.text(source, codes[token]) if codes[token] >= 0 else None

        return find_runs(entries, starts, spell, self.offsets)

    def source_codes(self, number: int) -> CodeArray:
        """Return the codes of the texts of a source, shape (N,), -1 where there is none."""
        if number not in self._codes:
            source, table = self.plan.sources[number], self.learned.sources[number]
            assert isinstance(table, TextTable)
            results: list[Any] = self.new[source.column]
            if source.calls:
                results = [self.learned.text(source, string) for string in results]
            codes, texts = table.extend(results)
            self._codes[number] = take(codes, self.base[source.column])
            self._texts[number] = texts
        return self._codes[number]

    def text(self, number: int, code: int) -> str:
        """Return the text of a code of a source whose codes were asked for."""
        table = self.learned.sources[number]
        new = code - len(table.texts)
        return table.texts[code] if new < 0 else self._texts[number][new]

    def holding(self, cell: Cell, character: str) -> IntArray:
        """Return the tokens at which the text of a cell holds a character."""
        codes, table = self.cell(cell), self.learned.sources[cell.source]
        assert isinstance(table, TextTable)
        flags, size = table.holding(character), len(table.texts)
        new = [size + i for i, text in enumerate(self._texts[cell.source]) if character in text]
        found = np.zeros(0, np.int64)
        if flags.any():  # the last, which is False, serves -1 and new texts
            found = np.flatnonzero(flags[np.minimum(codes, size)])
        return np.union1d(found, np.flatnonzero(np.isin(codes, new))) if new else found

    def cell(self, cell: Cell) -> CodeArray:
        """Return the codes of a cell, (N,), of its source or column; those of marks outside."""
        if cell not in self._cells:
            table = self.learned.sources[cell.source]
            size = len(self.plan.marks)
            if isinstance(table, TextTable):
                codes, marks = self.source_codes(cell.source), table.codes[:size]
            else:
                codes = self.base[self.plan.sources[cell.source].column]
                marks = np.arange(size, dtype=np.int32)
            if cell.offset or cell.absolute:
                moved = np.empty(self.n_tokens, np.int32)
                place = cell.offset, bool(cell.absolute)
                codes_shift(frozen(codes), self.offsets, *place, frozen(marks), moved)
                codes = moved
            self._cells[cell] = codes
        return self._cells[cell]

    def items(self, cell: Cell, code: int) -> Items:
        """Return the items of a code of a cell."""
        table = self.learned.sources[cell.source]
        if isinstance(table, TextTable):
            return [(self.text(cell.source, code), 1.0)]
        if code < table.size():
            return table.items(code)
        if cell.source not in self._new_items:
            source = self.plan.sources[cell.source]
            strings = self.new[source.column]
            found = [self.learned.items(source, string) for string in strings]
            self._new_items[cell.source] = found
        return self._new_items[cell.source][code - table.size()]
