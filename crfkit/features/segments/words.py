"""Words of segments as numbers: runs of equal text, and runs that are one of many texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray
from crfkit.data.packed import ranges
from crfkit.features._lexicons import BLANK
from crfkit.features.templates.tables import PairTable

Follow = Callable[[CodeArray, CodeArray], CodeArray]
Keep = Callable[[CodeArray], BoolArray]


class TokenRuns(NamedTuple):
    """Runs of tokens, numbered through all sequences: the first, and the one after the last."""

    start: IntArray
    stop: IntArray

    def take(self, chosen: BoolArray | IntArray) -> TokenRuns:
        """Return the chosen runs."""
        return TokenRuns(self.start[chosen], self.stop[chosen])


class Level(NamedTuple):
    """Nodes of a trie at one depth: which rows have come so far, and the node of each."""

    depth: int
    rows: IntArray
    nodes: CodeArray


def walk(
    follow: Follow, codes: CodeArray, begin: IntArray, size: IntArray, keep: Keep | None = None
) -> Iterator[Level]:
    """Follow rows of codes through a trie, all at once.

    Node 0 is the root, and node ``i + 1`` is reached by the pair (node, code) of number ``i``, so
    that two rows are at the same node if and only if they are equal so far. The rows begin at
    `begin` in `codes`, shape (U,), of which -1 leads nowhere; `follow` is `PairTable.number`, by
    which the trie grows, or `PairTable.find`; `keep` tells which rows go on, from their nodes.
    """
    rows = np.flatnonzero(size > 0)
    nodes = np.zeros(len(rows), np.int32)
    depth = 0
    while len(rows):
        nodes = follow(nodes, codes[begin[rows] + depth])
        depth += 1
        found = nodes >= 0
        rows, nodes = rows[found], nodes[found] + np.int32(1)
        yield Level(depth, rows, nodes)
        more = size[rows] > depth
        if keep is not None:
            more &= keep(nodes)
        rows, nodes = rows[more], nodes[more]


def number_entries(indices: Any, values: FloatArray | None, indptr: Any) -> CodeArray:
    """Return a number for each row of a sparse matrix, the same for equal ones; 0 for empty."""
    codes = np.asarray(indices, np.int32)
    if values is not None:
        kinds = np.unique(values, return_inverse=True)[1].astype(np.int32)
        codes = PairTable().number(codes, kinds)
    numbers = np.zeros(len(indptr) - 1, np.int32)
    begin = np.asarray(indptr[:-1], np.int64)
    for level in walk(PairTable().number, codes, begin, np.diff(indptr)):
        numbers[level.rows] = level.nodes
    return numbers


def number_runs(codes: CodeArray, begin: IntArray, runs: TokenRuns) -> CodeArray:
    """Return a number for each run of tokens, shape (n,), the same for those of equal codes.

    A token consists of one or more codes, (U,) in all; those of each begin at `begin`, (N + 1,).
    Runs that begin at the same token are followed once.
    """
    size = begin[runs.stop] - begin[runs.start]
    first, place = np.unique(runs.start, return_inverse=True)
    longest = np.zeros(len(first), np.int64)
    np.maximum.at(longest, place, size)
    by_size = np.argsort(size, kind="stable")
    ends = np.searchsorted(size[by_size], np.arange(int(longest.max(initial=0)) + 2))
    numbers = np.zeros(len(size), np.int32)
    current = np.zeros(len(first), np.int32)
    for level in walk(PairTable().number, codes, begin[first], longest):
        current[level.rows] = level.nodes
        whole = by_size[ends[level.depth] : ends[level.depth + 1]]
        numbers[whole] = current[place[whole]]
    return numbers


class Words:
    """One word for each token, and the pieces that blanks part it into: most are one piece.

    Equal texts are equal rows of pieces, also where words hold blanks. The pieces of each token
    begin at `begin`, shape (N + 1,), in the numbers `piece_codes`, shape (U,).
    """

    def __init__(self, codes: CodeArray, words: list[str], ends: IntArray) -> None:
        self.codes = codes  # (N,) the number of the word of each token
        self.ends = ends  # (N,) the end of the sequence of each token
        self.each = [words[code] for code in codes.tolist()]
        index: dict[str, int] = {}
        parts = [
            [index.setdefault(piece, len(index)) for piece in word.split(BLANK)] for word in words
        ]
        self.pieces = list(index)
        flat = np.array([code for codes in parts for code in codes], np.int32)
        sizes = np.array([len(codes) for codes in parts], np.int64)
        starts, of_tokens = np.cumsum(sizes) - sizes, sizes[codes]
        self.begin: IntArray = np.concatenate([[0], np.cumsum(of_tokens)]).astype(np.int64)
        self.piece_codes: CodeArray = flat[ranges(starts[codes], of_tokens)]

    @property
    def tokens(self) -> IntArray:
        """Beginnings of the codes of tokens, not of their pieces, shape (N + 1,)."""
        return np.arange(len(self.codes) + 1)

    def lists(self, runs: TokenRuns) -> Iterator[list[str]]:
        """Yield the words of runs."""
        pairs = zip(runs.start.tolist(), runs.stop.tolist(), strict=True)
        return (self.each[start:stop] for start, stop in pairs)

    def texts(self, runs: TokenRuns) -> list[str]:
        """Return the texts of runs."""
        return list(map(BLANK.join, self.lists(runs)))

    def distinct(self, runs: TokenRuns) -> tuple[TokenRuns, CodeArray]:
        """Return one run of each text, and which of these each run is like, shape (n,)."""
        return distinct_runs(runs, number_runs(self.piece_codes, self.begin, runs))

    @cached_property
    def letters(self) -> IntArray:
        """Number of characters before each token, a blank after each counted, shape (N + 1,)."""
        sizes = np.fromiter(map(len, self.each), np.int64, len(self.each))
        return np.concatenate([[0], np.cumsum(sizes + 1)]).astype(np.int64)

    def at_ends(self) -> IntArray:
        """Return the token that begins at each piece, shape (U + 1,), -1 within one."""
        tokens = np.full(int(self.begin[-1]) + 1, -1, np.int64)
        tokens[self.begin] = np.arange(len(self.begin))
        return tokens

    def reach(self, longest: int | None) -> IntArray:
        """Return how many pieces runs from each token may have, shape (N,)."""
        starts = np.arange(len(self.ends))
        stops = self.ends if longest is None else np.minimum(self.ends, starts + longest)
        return self.begin[stops] - self.begin[:-1]

    def frequent(self, longest: int | None, least: int) -> Trie:
        """Return a trie of the texts that at least `least` runs of up to `longest` tokens have.

        A run goes on only while enough others are like it so far (Agrawal and Srikant 1994).
        """

        def often(nodes: CodeArray) -> BoolArray:
            _, which, counts = np.unique(nodes, return_inverse=True, return_counts=True)
            return counts[which] >= least

        at_ends, table = self.at_ends(), PairTable()
        texts, nodes = list[str](), [np.zeros(0, np.int32)]
        levels = walk(
            table.number, self.piece_codes, self.begin[:-1], self.reach(longest),
            None if least <= 1 else often,
        )  # fmt: skip
        for level in levels:
            stops = at_ends[self.begin[level.rows] + level.depth]
            whole = stops >= 0
            found, first, counts = np.unique(
                level.nodes[whole], return_index=True, return_counts=True
            )
            often_enough = counts >= least
            kept = first[often_enough]
            texts += self.texts(TokenRuns(level.rows[whole][kept], stops[whole][kept]))
            nodes.append(found[often_enough])
        index = {piece: code for code, piece in enumerate(self.pieces)}
        return Trie(texts, index, table, np.concatenate(nodes))


def distinct_runs(runs: TokenRuns, numbers: CodeArray) -> tuple[TokenRuns, CodeArray]:
    """Return one run of each number, and its place among these for each run, shape (n,)."""
    _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
    return runs.take(first), place.astype(np.int32)


class Trie:
    """Texts that runs of tokens are looked for in, by their pieces (Fredkin 1960).

    `index` has the numbers of the pieces, `table` the pairs (node, piece) of a walk of the texts,
    and maybe of others, and `last` the node at which each text ends, shape (n,).
    """

    def __init__(
        self, texts: Sequence[str], index: dict[str, int], table: PairTable, last: CodeArray
    ) -> None:
        self.texts = texts
        self.index = index
        self._table = table
        self._texts = np.full(len(table) + 1, -1, np.int32)
        self._texts[last] = np.arange(len(texts), dtype=np.int32)

    @classmethod
    def of(cls, texts: Sequence[str]) -> Trie:
        """Return a trie of different texts."""
        index: dict[str, int] = {}
        rows = [text.split(BLANK) for text in texts]
        listed = [index.setdefault(piece, len(index)) for row in rows for piece in row]
        codes, sizes = np.array(listed, np.int32), np.array(list(map(len, rows)), np.int64)
        table, last = PairTable(), np.zeros(len(rows), np.int32)
        for level in walk(table.number, codes, np.cumsum(sizes) - sizes, sizes):
            last[level.rows] = level.nodes
        return cls(texts, index, table, last)

    def codes(self, words: Words) -> CodeArray:
        """Return the pieces of tokens by their numbers here, shape (U,), -1 for unknown ones."""
        known = np.array([self.index.get(piece, -1) for piece in words.pieces], np.int32)
        return known[words.piece_codes]

    def find(self, words: Words, longest: int | None) -> tuple[TokenRuns, CodeArray]:
        """Return the runs of up to `longest` tokens that are one of the texts, and which."""
        at_ends, reach = words.at_ends(), words.reach(longest)
        starts, stops = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        texts = [np.zeros(0, np.int32)]
        for level in walk(self._table.find, self.codes(words), words.begin[:-1], reach):
            stop, text = at_ends[words.begin[level.rows] + level.depth], self._texts[level.nodes]
            whole = (stop >= 0) & (text >= 0)
            starts.append(level.rows[whole])
            stops.append(stop[whole])
            texts.append(text[whole])
        runs = TokenRuns(np.concatenate(starts), np.concatenate(stops))
        order = np.lexsort((runs.stop, runs.start))
        return runs.take(order), np.concatenate(texts)[order]
