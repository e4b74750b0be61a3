"""Attributes of segments as wholes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._params import check_whole
from crfkit._types import CodeArray, FloatArray, IntArray, ObjectArray
from crfkit._warnings import warn_user
from crfkit.data import PackedSegments, PackedSequences
from crfkit.data.labels import object_array
from crfkit.data.packed import ranges
from crfkit.features._lexicons import read_lexicons
from crfkit.features.attributes import AttributeRows
from crfkit.features.encoding import AttributeIndex, FrozenIndex, GrowingIndex
from crfkit.features.expressions import LEXICON, Templates
from crfkit.features.functions import Attributes, checked_functions
from crfkit.features.segments.cells import (
    FoundRuns,
    SegmentPlan,
    SegmentReader,
    SegmentTemplate,
    find_among,
    find_entries,
    find_texts,
)
from crfkit.features.segments.similarity import LEAST, Lexicon
from crfkit.features.segments.templates import WORDS, segment_templates
from crfkit.features.segments.words import TokenRuns, Trie, number_entries
from crfkit.features.templates.columns import checked_columns
from crfkit.features.templates.tables import PairTable, check_texts
from crfkit.features.vectorizer import SequenceTransformer

_MANY = 100_000  # texts of one template that are worth a warning
_RUNS = 1 << 18  # that are looked at at a time, where templates need all


@dataclass(kw_only=True, eq=False, repr=False)
class SegmentFeatures(SequenceTransformer):
    """Attributes that segments have as wholes, described by templates (Sarawagi and Cohen 2004).

    The words of a segment may be an entry of a lexicon or like one (Cohen and Sarawagi 2004), have
    a shape, or be an attribute themselves. Models of segments (:class:`~crfkit.SemiMarkovCRF`) have
    a weight for each (attribute, label) pair. Use it as a part of :func:`make_sequence_union`,
    beside features of tokens.

    Parameters
    ----------
    templates : str or list of str
        The text of the templates, one a line, or a list of them, which may hold lists.
    columns, by
        As for :class:`TemplateFeatures`; the first of the columns tells which one ``seg.text`` is.
    max_length : int, optional
        The longest segments that have attributes, in tokens. Needed by templates that every
        segment may have an attribute of: all but those with ``in``, which find entries of any
        length.
    min_freq : int, default=0
        Attributes that fewer runs of tokens have in the training data are left out. For
        ``seg.text`` and the like, 2 or more: of N tokens, nearly N `max_length` texts occur once.
    lexicons : dict, optional
        As for :class:`TemplateFeatures`. The tokens of an entry are parted by blanks, also where
        they are characters: ``" ".join("北京")``, or are a tuple: ``tuple("北京")``.
    functions : dict of str to callable, optional
        As for :class:`TemplateFeatures`, called with strings, or lists of words.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        The column of each attribute. Columns are in the order of the sorted names.
    lexicons_ : dict of str to list of str
        The entries of the lexicons.

    See Also
    --------
    TemplateFeatures : Features of tokens; ``first(...)``, ``last(...)`` and ``single(...)`` are of
        the first token of a segment, the last, and one that is all of it.

    Warns
    -----
    UserWarning
        By `fit`, if a template that compares texts with a lexicon gives no segment an attribute:
        the message names an entry and a text. If a template has very many attributes, as most texts
        of segments occur once.

    Notes
    -----
    Packed sequences have no features of tokens; their `segments` has the attributes of segments, or
    is None if `fit` has found none at all. Tokens are tuples or lists of strings, dicts of strings,
    or strings; a data frame has one a row.

    A template is an expression. ``seg.text`` is the words of the first column, joined by blanks;
    ``seg.pos``, ``seg["any name"]``, ``seg[1]`` are other columns; ``seg.shape`` is the short
    shapes of the words (``Xx d``). ``lower``, ``shape``, ``short_shape``, ``prefix``, ``suffix``,
    ``digits``, ``length`` (of characters), ``ngrams``, ``spelling`` and the flags ``is_title``
    ... of :class:`TemplateFeatures` work on these, and may be nested.

    ``seg.text in cities``, or ``lexicon(seg.text, "cities")``, is a flag: the whole segment is an
    entry of the lexicon ``cities``.
    ``jaccard(seg.text, cities)``, ``tfidf(seg.text, cities)`` and ``edit(seg.text, cities)`` are
    how similar it is to the nearest entry: by the Jaccard index of the sets of words, the cosine of
    their TF-IDF weights, and 1 less the edit distance over the length of the longer string. They
    are the values of attributes; what is not above 0 is none. ``edit`` counts from 0.5 on, or from
    a third argument, which all three may have. Compared, ``0.6 <= edit(seg.text, cities) < 1``,
    they are flags.

    ``f(seg.text)`` and ``f(words(seg.text), words(seg.pos))`` call a function of the user.

    ``a|b`` joins cells: ``seg.length|seg.shape``, ``(seg.text in cities)|seg.pos``. A comparison
    has to stand in parentheses there. A flag that is not set leaves out the whole attribute.
    ``3 <= seg.length <= 5`` is a flag for conjunctions.

    An attribute is named as its template is written: ``seg.text in cities``, ``seg.shape=Xx Xx``,
    ``(seg.text in cities)|seg.pos=True|NNP NNP``.

    Entries are found by one pass of a trie over numbers of words; so are ``seg.text``,
    ``seg.shape`` and others that need no more than the words, of which only frequent beginnings are
    learned, if `min_freq` is 2 or more. All other templates look at all N `max_length` runs, at
    each different text once. A least value makes similarities faster, threads share their work
    within ``joblib.parallel_config(n_jobs=...)``, and Ctrl-C ends it at once. What remains in
    memory is 16 bytes for each run that has attributes, 8 bytes a token, and a row for each
    different set of attributes.

    Examples
    --------
    >>> from crfkit.features import SegmentFeatures
    >>> X = [["I", "love", "New", "York"]]
    >>> features = SegmentFeatures("seg.text in cities", lexicons={"cities": ["New York", "Rome"]})
    >>> segments = features.fit_transform(X).segments
    >>> segments.rows.feature_names.tolist(), segments.stop.tolist(), segments.length.tolist()
    (['seg.text in cities'], [4], [2])
    """

    _derived = ("_learned", "_index", "_names")

    templates: Templates = field(kw_only=False)
    columns: Sequence[str] | None = None
    by: str | None = None
    max_length: int | None = None
    min_freq: int = 0
    lexicons: Mapping[str, Any] | None = None
    functions: Mapping[str, Callable[..., Any]] | None = None

    def _fit(self, X: Iterable[Any], y: Any) -> PackedSequences:
        check_whole("min_freq", self.min_freq)
        lexicons = read_lexicons(self.lexicons)
        learned = self._compiled(lexicons)
        reader = SegmentReader(learned, X)
        for template in learned.templates:
            if template.plain is not None:
                trie = reader.words(template.plain).frequent(self.max_length, self.min_freq)
                learned.texts[template.name] = trie
                if self.min_freq < 2 and len(trie.texts) > _MANY:
                    warn_user(
                        f"template {template.name!r} has {len(trie.texts):,} different attributes; "
                        "min_freq=2 leaves out those that only one segment has."
                    )
        index = GrowingIndex()
        found = _found(learned, reader, index)
        _warn_of_none(learned, reader, index)
        counts = frequencies(found, len(index))
        names, columns = index.sorted_columns(counts, max(self.min_freq, 1))
        self.vocabulary_ = {name: column for column, name in enumerate(names)}
        self.lexicons_ = lexicons
        self._parameters = self.get_params(deep=False)
        self._set_learned(learned)
        found = found._replace(rows=found.rows.in_order(columns))
        return self._packed(found, reader.offsets)

    def _transform(self, X: Any) -> PackedSequences:
        learned = self._restored()
        reader = SegmentReader(learned, X)
        return self._packed(_found(learned, reader, self._index), reader.offsets)

    def _token_names(self) -> ObjectArray:
        return np.empty(0, object)  # tokens have no features; those of segments are in vocabulary_

    def _compiled(self, lexicons: dict[str, list[str]]) -> SegmentPlan:
        """Return templates and what they need, but for the texts of plain ones."""
        functions = checked_functions(self.functions, (*LEAST, WORDS, LEXICON))
        columns = checked_columns(self.columns)
        templates = segment_templates(self.templates, functions, lexicons, columns)
        if self.max_length is not None:
            check_whole("max_length", self.max_length, 1)
        for template in templates:
            if self.max_length is None and not template.lookups:
                raise ValueError(
                    f"template {template.name!r}: every segment may have such an attribute; say "
                    "how long segments may be: max_length=..., best as that of the estimator."
                )
        found = {name: Lexicon(entries) for name, entries in lexicons.items()}
        return SegmentPlan(templates, functions, found, {}, columns, self.by, self.max_length)

    def _restored(self) -> SegmentPlan:
        """Return templates and what they need, anew after the object was stored."""
        if "_learned" not in self.__dict__:
            learned = self._as_fitted()._compiled(self.lexicons_)
            for lead in (f"{t.name}=" for t in learned.templates if t.plain is not None):
                names = [name for name in self.vocabulary_ if name.startswith(lead)]
                learned.texts[lead[:-1]] = Trie.of([name.removeprefix(lead) for name in names])
            self._set_learned(learned)
        return self._learned

    def _set_learned(self, learned: SegmentPlan) -> None:
        self._learned, self._index = learned, FrozenIndex(self.vocabulary_)
        self._names = object_array(self.vocabulary_)

    def _packed(self, found: RunRows, offsets: IntArray) -> PackedSequences:
        segments = packed_segments(found, offsets, self._names) if self.vocabulary_ else None
        empty = np.zeros((int(offsets[-1]), 0))
        return PackedSequences(dense=empty, offsets=offsets, feature_names=[], segments=segments)

    def _check_state(self) -> None:
        """Raise ValueError if what was stored does not fit together."""
        try:
            if self.__sklearn_is_fitted__():
                for texts in (list(self.vocabulary_), *self.lexicons_.values()):
                    check_texts(texts)
                if list(self.vocabulary_.values()) != list(range(len(self.vocabulary_))):
                    raise ValueError("the columns of the vocabulary are not in order.")
                self._restored()
        except (TypeError, AttributeError, LookupError) as error:
            raise ValueError(f"attributes of segments are damaged: {error}.") from error


def _found(learned: SegmentPlan, reader: SegmentReader, index: AttributeIndex) -> RunRows:
    """Return the runs that have attributes, and which."""
    once: list[FoundRuns] = []
    others: list[SegmentTemplate] = []
    for template in learned.templates:
        if template.plain is not None:
            trie = learned.texts[template.name]
            once.append(find_texts(template.name, template.plain, trie, reader))
        elif template.lookups:
            once.append(find_entries(template, reader))
        else:
            others.append(template)
    parts = []
    for begin, end in _blocks(reader) if others else [(0, int(reader.offsets[-1]))]:
        found = [part.within(begin, end) for part in once]
        if others:
            runs = reader.runs(begin, end)
            found += [find_among(template, runs, reader) for template in others]
        parts.append(run_rows(found, index))
    return joined(parts)


def _warn_of_none(learned: SegmentPlan, reader: SegmentReader, index: Iterable[str]) -> None:
    """Warn of templates that compare texts with entries and have found nothing at all."""
    for template in learned.templates if reader.offsets[-1] else ():
        lead = f"{template.name}="
        if not template.compared or any(f"{name}=".startswith(lead) for name in index):
            continue
        cell = template.compared[0]
        first = np.flatnonzero(np.diff(reader.offsets))[:1]  # a sequence that has tokens
        start, end = reader.offsets[first], reader.offsets[first + 1]
        [text] = cell.text.strings(reader, TokenRuns(start, np.minimum(end, start + 2)))
        entry = learned.lexicons[cell.lexicon].entries[0]
        warn_user(
            f"template {template.name!r}: no segment has such an attribute. Entries of the lexicon "
            f"{cell.lexicon!r} are like {entry!r}, texts like {text!r}: are they in the same case, "
            "and are the tokens of entries parted by single blanks, as those of texts are?"
        )


def _blocks(reader: SegmentReader) -> Iterator[tuple[int, int]]:
    """Yield the tokens of sequences whose runs are looked at together."""
    offsets = reader.offsets
    block = offsets[1:] * (reader.longest or 1) // _RUNS
    last = np.flatnonzero(np.diff(block, append=-1))
    edges = offsets[last + 1].tolist() or [0]
    yield from zip([0, *edges[:-1]], edges, strict=True)


class RunRows(NamedTuple):
    """Runs, the row of each, shape (n,), and the rows of attributes."""

    runs: TokenRuns
    row: IntArray
    rows: AttributeRows


def run_rows(found: Sequence[FoundRuns], index: AttributeIndex) -> RunRows:
    """Return the rows of the runs that templates have found; those of equal codes share one."""
    width = 1 + max(int((f.runs.stop - f.runs.start).max(initial=0)) for f in found)
    keys = [f.runs.start * width + f.runs.stop - f.runs.start for f in found]
    every, codes, place = _joined(keys, [f.codes for f in found])
    entries = [_entries(f.attributes, row, index) for f, row in zip(found, codes, strict=True)]
    rows, columns, values = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    start, offsets = every // width, np.array([0, codes.shape[1]])
    found_rows = AttributeRows.of_entries(rows, columns, values, offsets)
    return RunRows(TokenRuns(start, start + every % width), place, found_rows)


def _joined(
    keys: Sequence[IntArray], codes: Sequence[CodeArray | IntArray]
) -> tuple[IntArray, NDArray[np.int32], IntArray]:
    """Return all keys of several lists, rising, and which of them have the same codes in all.

    No key is in a list twice. Of m keys of n lists there are r different columns of codes, shape
    (n, r), -1 where a list lacks the key, and which column is that of each key, shape (m,).
    """
    every = np.unique(np.concatenate(keys))
    table = np.full((len(keys), len(every)), -1, np.int32)
    state = np.zeros(len(every), np.int32)
    for row, key, own in zip(table, keys, codes, strict=True):
        row[np.searchsorted(every, key)] = own
        state = PairTable().number(state, row + np.int32(1))
    _, first, place = np.unique(state, return_index=True, return_inverse=True)
    return every, table[:, first], place.astype(np.int64)


def _entries(
    attributes: list[Attributes], codes: CodeArray, index: AttributeIndex
) -> tuple[IntArray, CodeArray, FloatArray]:
    """Return rows, columns and values of the attributes of rows by their codes, -1 for none."""
    columns = np.array([index[name] for each in attributes for name, _ in each], np.int32)
    values = np.array([value for each in attributes for _, value in each], np.float64)
    sizes = np.array([len(each) for each in attributes], np.int64)
    rows = np.flatnonzero(codes >= 0)
    counts = sizes[codes[rows]]
    places = ranges((np.cumsum(sizes) - sizes)[codes[rows]], counts)
    return np.repeat(rows, counts), columns[places], values[places]


def joined(parts: Sequence[RunRows]) -> RunRows:
    """Return several lists of runs as one."""
    before = np.cumsum([0, *(len(part.rows.indptr) - 1 for part in parts)])
    runs = (np.concatenate(ends) for ends in zip(*(part.runs for part in parts), strict=True))
    row = np.concatenate([part.row + n for part, n in zip(parts, before, strict=False)])
    return RunRows(TokenRuns(*runs), row, AttributeRows.joined([part.rows for part in parts]))


def frequencies(found: RunRows, size: int) -> IntArray:
    """Return in how many runs each attribute has a value that is not 0, shape (D,)."""
    runs = np.bincount(found.row, minlength=len(found.rows.indptr) - 1)
    weights = np.repeat(runs, np.diff(found.rows.indptr))
    return np.bincount(found.rows.indices, weights, size).astype(np.int64)


def packed_segments(found: RunRows, offsets: IntArray, names: ObjectArray) -> PackedSegments:
    """Return runs as they are packed: equal rows are one, runs without attributes not listed."""
    rows = found.rows.in_order()
    some = np.diff(rows.indptr)[found.row] > 0
    equal = number_entries(rows.indices, rows.values, rows.indptr)
    _, first, place = np.unique(equal, return_index=True, return_inverse=True)
    used, row = np.unique(place[found.row[some]], return_inverse=True)
    runs, every = found.runs.take(some), rows.packed(names)
    return PackedSegments(every.take_tokens(first[used]), offsets, runs.start, runs.stop, row)


def aligned(
    segments: Sequence[PackedSegments],
) -> tuple[tuple[IntArray, IntArray, IntArray], list[PackedSequences]]:
    """Return the runs that any of several lists has, and each list's rows, empty where none is."""
    width = 1 + max(int(part.length.max(initial=0)) for part in segments)
    keys = [part.stop * width + part.length for part in segments]
    every, which, place = _joined(keys, [part.row for part in segments])
    counts = np.bincount(every // width - 1, minlength=segments[0].n_tokens)
    ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    pairs = zip(which.astype(np.int64), segments, strict=True)
    rows = [_and_none(part.rows).take_tokens(row) for row, part in pairs]
    return (ptr, every % width, place), rows


def _and_none(rows: PackedSequences) -> PackedSequences:
    """Return rows and an empty one, which is that of -1."""
    dense = rows.dense
    return PackedSequences._from_arrays(
        offsets=np.array([0, rows.n_tokens + 1]),
        indptr=np.append(rows.indptr, rows.indptr[-1]),
        indices=rows.indices,
        values=rows.values,
        n_sparse=rows.n_sparse,
        dense=None if dense is None else np.vstack([dense, np.zeros((1, dense.shape[1]))]),
        names=rows.names,
    )
