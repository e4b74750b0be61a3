"""Reading and writing CoNLL-U, the format of Universal Dependencies.

The format is described by Nivre et al. (2020), "Universal Dependencies v2", and on the pages of the
project: ten tab-separated fields a line, ``#`` comments before a sentence, a blank line after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from crfkit._params import check_option
from crfkit.io.streams import (
    ColumnFormatError,
    Source,
    Target,
    iter_lines,
    source_name,
    write_blocks,
)

_ID = re.compile(r"(?P<word>[1-9][0-9]*)|(?P<range>[1-9][0-9]*-[1-9][0-9]*)|[0-9]+\.[1-9][0-9]*")
_UNSPECIFIED = "_"
_NUMBER_OF_FIELDS = 10


class ConlluToken(NamedTuple):
    """A line of a CoNLL-U sentence: a word, a multiword token or an empty node.

    An unspecified text field is ``"_"``, as in the file (where a form may be a real underscore).

    Parameters
    ----------
    id : str
        ``"3"`` of a word, ``"3-4"`` of a multiword token, ``"5.1"`` of an empty node.
    form, lemma, upos, xpos : str
        The form, its lemma, the universal and the treebank's own part of speech.
    feats : dict of str to str
        Morphological features, empty if unspecified.
    head : int or None
        The word that this one depends on, 0 for the root, None if unspecified.
    deprel, deps : str
        The relation to the head, and the enhanced graph as ``head:relation`` joined by ``|``.
    misc : dict of str to (str or None)
        Anything else; an entry without ``=`` has the value None.
    """

    id: str
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: dict[str, str]
    head: int | None
    deprel: str
    deps: str
    misc: dict[str, str | None]

    def text(self, name: str) -> str:
        """Return a field as the file has it, such as ``"Case=Nom|Number=Sing"`` of ``"feats"``."""
        value = getattr(self, name)
        if isinstance(value, dict):
            value = "|".join(k if v is None else f"{k}={v}" for k, v in value.items())
        return _UNSPECIFIED if value in ("", None) else str(value)


CONLLU_FIELDS = ConlluToken._fields


@dataclass
class ConlluSentence:
    """A sentence of a CoNLL-U file with everything that the file says of it.

    Parameters
    ----------
    rows : list of ConlluToken
        All lines in the order of the file.
    comments : list of str
        The comment lines before them, without the ``#`` and the blank after it.
    """

    rows: list[ConlluToken]
    comments: list[str] = field(default_factory=list)

    @property
    def metadata(self) -> dict[str, str]:
        """The comments of the form ``key = value``, such as ``sent_id`` and ``text``."""
        pairs = (comment.partition("=") for comment in self.comments)
        return {key.strip(): value.strip() for key, sign, value in pairs if sign}

    @property
    def words(self) -> list[ConlluToken]:
        """The syntactic words: no multiword tokens, no empty nodes."""
        return [row for row in self.rows if row.id.isdigit()]

    @property
    def multiword_tokens(self) -> list[ConlluToken]:
        """The tokens that stand for several words, such as ``don't``."""
        return [row for row in self.rows if "-" in row.id]

    @property
    def empty_nodes(self) -> list[ConlluToken]:
        """The nodes of the enhanced graph that have no word."""
        return [row for row in self.rows if "." in row.id]

    @property
    def surface(self) -> list[tuple[ConlluToken, list[ConlluToken]]]:
        """The tokens as written, each with the words it stands for (itself, if it is a word)."""
        found: list[tuple[ConlluToken, list[ConlluToken]]] = []
        last = 0
        for row in self.rows:
            if "-" in row.id:
                last = int(row.id.split("-")[1])
                found.append((row, []))
            elif row.id.isdigit() and int(row.id) <= last:
                found[-1][1].append(row)
            elif row.id.isdigit():
                found.append((row, [row]))
        return found


@lru_cache(maxsize=1 << 14)  # a treebank has few different cells
def _pairs(cell: str, needs_values: bool) -> dict[str, str | None]:
    """Return the entries of a cell of FEATS or MISC."""
    pairs: dict[str, str | None] = {}
    for entry in cell.split("|") if cell != _UNSPECIFIED else ():
        name, sign, value = entry.partition("=")
        if not name or name in pairs:
            problem = "occurs twice" if name else "has no name"
            raise ValueError(f"the entry {entry!r} of {cell!r} {problem}; give each its name")
        if needs_values and not value:
            raise ValueError(f"the feature {name!r} of {cell!r} has no value; write Name=Value")
        pairs[name] = value if sign else None
    return pairs


class _Parser:
    """Parser of lines to sentences, which checks them as they come; `name` is that of the file."""

    def __init__(self, name: str) -> None:
        self.name, self.number = name, 0
        self.clear()

    def clear(self) -> None:
        self.comments: list[str] = []
        self.rows: list[ConlluToken] = []
        self.lines: list[int] = []
        self.n_words = self.range_end = self.n_empty = 0

    def error(self, message: str, line: int | None = None) -> ColumnFormatError:
        return ColumnFormatError(f"{self.name}, line {line or self.number}: {message}")

    def feed(self, line: str) -> Iterator[ConlluSentence]:
        """Take a line, and yield the sentence that it ends, if there is one."""
        self.number += 1
        if line.startswith("#"):
            if self.rows:
                raise self.error(
                    "a comment inside of a sentence; move it before the first word, or put a blank "
                    "line before it"
                )
            self.comments.append(line.removeprefix("#").removeprefix(" "))
        elif line.strip(" "):
            self._add_row(line)
        else:
            yield from self.finish()

    def _add_row(self, line: str) -> None:
        cells = line.split("\t")
        if len(cells) != _NUMBER_OF_FIELDS:
            raise self.error(
                f"expected {_NUMBER_OF_FIELDS} fields separated by tabs, found {len(cells)}; files "
                "with other columns are read by read_columns(source, sep='\\t', comment='#')"
            )
        if "" in cells:
            name = CONLLU_FIELDS[cells.index("")].upper()
            raise self.error(f"the field {name} is empty; an unspecified one is written '_'")
        self._check_id(cells[0])
        name, form, lemma, upos, xpos, feats, head, deprel, deps, misc = cells
        if head != _UNSPECIFIED and not (head.isascii() and head.isdigit()):
            raise self.error(f"HEAD is {head!r}; it must be a whole number or '_'")
        try:
            row = ConlluToken(
                name, form, lemma, upos, xpos,
                dict(_pairs(feats, True)),  # type: ignore[arg-type]
                None if head == _UNSPECIFIED else int(head),
                deprel, deps, dict(_pairs(misc, False)),
            )  # fmt: skip
        except ValueError as error:
            raise self.error(str(error)) from None
        self.rows.append(row)
        self.lines.append(self.number)

    def _check_id(self, name: str) -> None:
        match = _ID.fullmatch(name)
        if match is None:
            raise self.error(f"the ID {name!r} is neither 3 nor 3-4 nor 5.1")
        expected = str(self.n_words + 1)
        if match["word"]:
            self._expect(name, expected)
            self.n_words, self.n_empty = self.n_words + 1, 0
        elif match["range"]:
            start, end = (int(part) for part in name.split("-"))
            if start <= self.range_end or end < start:
                raise self.error(
                    f"the multiword token {name} overlaps the one before it or is empty; IDs of "
                    "its words are first-last"
                )
            self._expect(str(start), expected)
            self.range_end = end
        else:
            self.n_empty += 1
            self._expect(name, f"{self.n_words}.{self.n_empty}")

    def _expect(self, name: str, expected: str) -> None:
        if name != expected:
            raise self.error(
                f"expected the ID {expected}, found {name}; words count from 1 without gaps, and a "
                "blank line ends a sentence"
            )

    def finish(self) -> Iterator[ConlluSentence]:
        """Yield the sentence that ends here, if there is one."""
        if self.rows or self.comments:
            self._check_end()
            yield ConlluSentence(self.rows, self.comments)
        self.clear()

    def _check_end(self) -> None:
        if not self.n_words:
            raise self.error("the sentence that ends here has no word; remove its lines")
        if self.range_end > self.n_words:
            raise self.error(
                f"the sentence that ends here has {self.n_words} words, but a multiword token that "
                f"reaches to {self.range_end}"
            )
        for row, line in zip(self.rows, self.lines, strict=True):
            if (row.head or 0) > self.n_words:
                message = f"HEAD is {row.head} in a sentence of {self.n_words} words"
                raise self.error(message, line)


def iter_conllu(source: Source, *, encoding: str = "utf-8") -> Iterator[ConlluSentence]:
    r"""Iterate over the sentences of a CoNLL-U file, holding one in memory at a time.

    Parameters
    ----------
    source, encoding
        As for :func:`iter_columns`: packed files by suffix, open streams, lines.

    Raises
    ------
    ColumnFormatError
        Naming file and line, if a line has not ten fields, a field is empty, IDs do not count up,
        a multiword token overlaps another or ends after the last word, HEAD is no word of the
        sentence, features repeat a name, or a comment stands inside of a sentence.

    Examples
    --------
    >>> lines = [
    ...     "# text = dogs bark",
    ...     "1\tdogs\tdog\tNOUN\tNNS\tNumber=Plur\t2\tnsubj\t_\t_",
    ...     "2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_",
    ... ]
    >>> (sentence,) = iter_conllu(lines)
    >>> sentence.metadata, sentence.words[0].feats
    ({'text': 'dogs bark'}, {'Number': 'Plur'})
    """
    parser = _Parser(source_name(source))
    for line in iter_lines(source, encoding):
        yield from parser.feed(line)
    yield from parser.finish()


def read_conllu(source: Source, *, encoding: str = "utf-8") -> list[ConlluSentence]:
    """Read all sentences of a CoNLL-U file: what :func:`iter_conllu` yields, as a list."""
    return list(iter_conllu(source, encoding=encoding))


def _value(row: ConlluToken, words: list[ConlluToken], name: str) -> str:
    """Return a field of a token as text: of one that stands for words, their fields."""
    if name == "form" or words == [row]:
        return row.text(name)
    return "+".join(word.text(name) for word in words)


def _feature(row: ConlluToken, words: list[ConlluToken], name: str) -> Any:
    value = getattr(row, name)
    return value if isinstance(value, dict) and words == [row] else _value(row, words, name)


def conllu_features_and_labels(
    sentences: Iterable[ConlluSentence],
    *,
    fields: Sequence[str] = ("form",),
    label: str = "upos",
    tokens: str = "words",
) -> tuple[list[list[dict[str, Any]]], list[list[str]]]:
    """Return some fields of each token as a dict, and one field as its label.

    Parameters
    ----------
    sentences : iterable of ConlluSentence
        As from :func:`read_conllu`.
    fields : sequence of str, default=("form",)
        Lower-case names of :class:`ConlluToken`. ``feats`` and ``misc`` are dicts themselves, which
        :class:`crfkit.CRFClassifier` reads as nested features.
    label : str, default="upos"
        The field to predict, as the file has it.
    tokens : {"words", "surface"}, default="words"
        Whether the tokens are the syntactic words or what is written, with ``don't`` as one
        token. The label (and any field but the form) of such a token is that of its words joined
        by ``+``, for example ``AUX+PART``.

    Returns
    -------
    X, y : list of list of dict, list of list of str, length S
        ``{field: value}`` and the label of each token.

    Raises
    ------
    ValueError
        If a field is not known or the label is among `fields`.
    """
    check_option("tokens", tokens, ("words", "surface"))
    for name in (*fields, label):
        check_option("field", name, CONLLU_FIELDS)
    if label in fields:
        raise ValueError(f"the label {label!r} is among the fields {tuple(fields)}; leave it out")
    X, y = [], []
    for sentence in sentences:
        words = [(word, [word]) for word in sentence.words]
        pairs = words if tokens == "words" else sentence.surface
        X.append([{name: _feature(*pair, name) for name in fields} for pair in pairs])
        y.append([_value(*pair, label) for pair in pairs])
    return X, y


def sentence_lines(sentence: ConlluSentence) -> list[str]:
    """Return the lines of a sentence, without the blank one after it."""
    comments = [f"# {comment}" if comment else "#" for comment in sentence.comments]
    rows = ["\t".join(row.text(name) for name in CONLLU_FIELDS) for row in sentence.rows]
    return comments + rows


def _block(sentence: ConlluSentence, index: int) -> str:
    lines = sentence_lines(sentence)
    try:
        back = read_conllu(lines)
    except ColumnFormatError as error:
        raise ColumnFormatError(f"sequence {index}: its lines cannot be read: {error}") from error
    if back != [sentence]:
        raise ColumnFormatError(
            f"sequence {index}: it would not read back the same; check for blanks at the ends of "
            "comments, empty values, and newlines or '|' inside of values"
        )
    return "\n".join(lines) + "\n\n"


def write_conllu(target: Target, sentences: Iterable[ConlluSentence]) -> None:
    """Write sentences, which may come from a generator, to a CoNLL-U file.

    What was written reads back equal: each sentence is parsed again before it is written, and
    ColumnFormatError names one that would not. `target` is as of :func:`write_columns`. Predicted
    tags are put in with ``row._replace(upos=tag)``.
    """
    write_blocks(target, (_block(sentence, index) for index, sentence in enumerate(sentences)))
