"""Lists of words and of runs of words that tokens may lie in."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crfkit._types import CodeArray, IntArray

BLANK = " "
EntryIndex = dict[str, list[tuple[str, ...]]]  # what follows a first word, the longest first


def read_lexicons(lexicons: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Return the entries of lexicons, sorted; those given as a path are read, an entry a line.

    The words of an entry are parted by blanks alone: any other character may be part of a token.
    TypeError if a lexicon is neither a path nor a collection of strings, or of lists of strings;
    ValueError if it has no entries, or its file is not in UTF-8.
    """
    return {name: _read(name, given) for name, given in (lexicons or {}).items()}


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file; ValueError naming file and line if it is not in UTF-8."""
    content = Path(path).read_bytes()
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}: line {line} is not UTF-8; convert the file.") from error


def _read(name: str, given: Any) -> list[str]:
    if isinstance(given, (str, os.PathLike)):
        given = read_text(given).split("\n")
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise TypeError(f"lexicon {name!r} must be a path or a set of strings, not {given!r}.")
    cleaned = sorted({_entry(name, entry) for entry in given} - {""})
    if not cleaned:
        raise ValueError(f"lexicon {name!r} has no entries.")
    return cleaned


def _entry(name: str, given: Any) -> str:
    if isinstance(given, (tuple, list)) and all(isinstance(word, str) for word in given):
        return BLANK.join(given)
    if not isinstance(given, str):
        raise TypeError(
            f"lexicon {name!r}: the entry {given!r} is not a string, nor a tuple or list of the "
            "strings of its tokens."
        )
    return BLANK.join(word for word in given.strip("\r\n").split(BLANK) if word)


def index_entries(entries: Iterable[str]) -> EntryIndex:
    """Return entries by their first word."""
    index: EntryIndex = {}
    for entry in entries:
        first, *rest = entry.split(BLANK)
        index.setdefault(first, []).append(tuple(rest))
    for rests in index.values():
        rests.sort(key=len, reverse=True)
    return index


def find_runs(
    entries: EntryIndex, starts: IntArray, spell: Callable[[int], str | None], offsets: IntArray
) -> CodeArray:
    """Return 0 for tokens that begin a run of an entry, 1 for those within one, else -1.

    From the left, the longest entry at a token is taken and no token lies in two. `starts` are the
    tokens that are first words, rising; `spell` returns the word of a token, None if it has none.
    """
    out = np.full(int(offsets[-1]), -1, np.int32)
    ends = offsets[np.searchsorted(offsets, starts, side="right")]
    done = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if start < done:
            continue
        for rest in entries[str(spell(start))]:
            done = start + 1 + len(rest)
            if done <= end and rest == tuple(map(spell, range(start + 1, done))):
                out[start], out[start + 1 : done] = 0, 1
                break
        else:
            done = start + 1
    return out


def find_phrases(words: list[str], offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return where the phrase of each token begins and ends, (N,); both -1 where it lies in none.

    A phrase is a run of words with a capital first; one or two short words in small letters, such
    as "de la", may stand within it.
    """
    starts, ends = np.full((2, len(words)), -1)
    for first, last in itertools.pairwise(offsets.tolist()):
        begin = end = -1  # of the phrase so far
        for token in range(first, last):
            if not words[token][:1].isupper():
                continue
            between = words[end:token] if end >= 0 else []
            if end < 0 or len(between) > 2 or not all(map(_may_join, between)):
                begin = token
            end = token + 1
            starts[begin:end], ends[begin:end] = begin, end
    return starts, ends


def _may_join(word: str) -> bool:
    return len(word) <= 3 and word.isalpha() and word.islower()
