r"""Reading and writing CRFsuite's text format.

A line is a token: its label, then its attributes, separated by tabs. An attribute is a name, or
``name:value``. A backslash escapes a colon or a backslash (``\:``, ``\\``) and stands for itself
before any other character. A blank line ends a sequence, and a line ``@weight:2.5`` gives the
sequence that it stands in a weight. See Okazaki (2007), "CRFsuite: a fast implementation of
conditional random fields", and its manual.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import FloatArray
from crfkit.features.attributes import expand
from crfkit.io.streams import (
    ColumnFormatError,
    Source,
    Target,
    iter_lines,
    source_name,
    write_blocks,
)

_PART = re.compile(r"(?:[^\\:]++|\\[\\:]?+)*+")  # up to a colon that is not escaped
_ESCAPED = re.compile(r"\\([\\:])")
_NEEDS_ESCAPE = re.compile(r"[\\:]")
_WEIGHT = "@weight"
_END = object()


class CRFsuiteSequence(NamedTuple):
    """A sequence of a CRFsuite text file: T dicts ``{name: value}``, T labels, and its weight.

    An attribute without a value has 1, and so has a sequence without a weight.
    """

    attributes: list[dict[str, float]]
    labels: list[str]
    weight: float


class CRFsuiteData(NamedTuple):
    """All sequences of a CRFsuite text file; `sample_weight` has the shape (S,)."""

    X: list[list[dict[str, float]]]
    y: list[list[str]]
    sample_weight: FloatArray


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def _number(name: str, text: str) -> float:
    try:
        # Python alone reads "1_0" and the digits of other scripts.
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"the value of {name!r} is {text!r}; it must be a finite number")
    return value


@lru_cache(maxsize=1 << 16)  # the same attributes come again and again
def _attribute(cell: str) -> tuple[str, float]:
    """Return name and value; ValueError tells what is wrong."""
    end = _PART.match(cell).end()  # type: ignore[union-attr]  # it matches the empty string too
    name, value = _unescape(cell[:end]), cell[end + 1 :]
    if not name:
        raise ValueError(f"the attribute {cell!r} has no name; remove it or write its name")
    if ":" in value:
        raise ValueError(f"{cell!r} has several colons; write those of the name as '\\:'")
    # CRFsuite takes "name:" without a number as the value 1.
    return name, _number(name, value) if value else 1.0


def _token(cells: Sequence[str]) -> dict[str, float]:
    attributes: dict[str, float] = {}
    for cell in cells:
        if cell:  # neighboring tabs separate once
            name, value = _attribute(cell)
            attributes[name] = attributes.get(name, 0.0) + value
    return attributes


def _label(cell: str) -> str:
    if _PART.fullmatch(cell) is None:
        raise ValueError(f"the label {cell!r} holds a colon; write it as '\\:'")
    if not cell:
        raise ValueError("the line begins with a tab; every token needs a label before it")
    return _unescape(cell)


def _declared_weight(cells: Sequence[str]) -> float:
    name, sign, value = cells[0].partition(":")
    if name != _WEIGHT or not sign or len(cells) > 1:
        raise ValueError(
            f"{cells[0]!r} is no declaration that is known; only '@weight:NUMBER' may stand in a "
            "line of its own, and no label may begin with '@'"
        )
    weight = _number(name, value)
    if weight < 0:
        raise ValueError(f"the weight is {weight}; it must be at least 0")
    return weight


def iter_crfsuite_text(source: Source, *, encoding: str = "utf-8") -> Iterator[CRFsuiteSequence]:
    r"""Iterate over the sequences of a CRFsuite text file, holding one in memory at a time.

    Parameters
    ----------
    source, encoding
        As for :func:`iter_columns`: packed files by suffix, open streams, lines.

    Yields
    ------
    CRFsuiteSequence
        An attribute that a token has twice gets the sum of its values, which has the same score.

    Raises
    ------
    ColumnFormatError
        Naming file and line, if a label is missing, a value is no finite number, a colon is not
        escaped, or a line that begins with ``@`` is not a weight.

    Examples
    --------
    >>> list(iter_crfsuite_text(["B\tw=a\\:b\tcaps:0.5", "O\tw=c"]))[0].attributes
    [{'w=a:b': 1.0, 'caps': 0.5}, {'w=c': 1.0}]
    """
    attributes: list[dict[str, float]] = []
    labels: list[str] = []
    weight: float | None = None
    for number, line in enumerate(chain(iter_lines(source, encoding), [""]), start=1):
        try:
            if line.startswith("@"):
                if weight is not None:
                    raise ValueError("the sequence has two weights; remove one")
                weight = _declared_weight(line.split("\t"))
            elif line:
                cells = line.split("\t")
                labels.append(_label(cells[0]))
                attributes.append(_token(cells[1:]))
            elif weight is not None and not labels:
                raise ValueError("a weight without tokens ends here; remove it")
        except ValueError as error:
            raise ColumnFormatError(f"{source_name(source)}, line {number}: {error}") from None
        if labels and not line:
            yield CRFsuiteSequence(attributes, labels, 1.0 if weight is None else weight)
            attributes, labels, weight = [], [], None


def read_crfsuite_text(source: Source, *, encoding: str = "utf-8") -> CRFsuiteData:
    """Read a CRFsuite text file into ``(X, y, sample_weight)``, which an estimator takes.

    Parameters and errors are those of :func:`iter_crfsuite_text`, which reads lazily.
    """
    sequences = list(iter_crfsuite_text(source, encoding=encoding))
    X, y = [each.attributes for each in sequences], [each.labels for each in sequences]
    return CRFsuiteData(X, y, np.array([each.weight for each in sequences], np.float64))


def _escape(text: object, kind: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"the {kind} {text!r} is not a str but {type(text).__name__}; convert it")
    found = set("\t\r\n").intersection(text)
    if not text or found:
        problem = f"holds {min(found)!r}" if found else "is empty"
        raise ColumnFormatError(
            f"the {kind} {text!r} {problem}, which the format cannot express; replace it"
        )
    return _NEEDS_ESCAPE.sub(r"\\\g<0>", text)


@lru_cache(maxsize=1 << 16)
def _written_attribute(name: str, value: float) -> str:
    text = _escape(name, "attribute")
    return text if value == 1.0 else f"{text}:{value!r}"


def _written_token(token: Mapping[str, Any] | Iterable[str], label: object) -> str:
    text = _escape(label, "label")
    if text.startswith("@"):
        raise ColumnFormatError(
            f"the label {label!r} begins with '@', which marks a declaration; rename it"
        )
    attributes = (_written_attribute(name, float(value)) for name, value in expand(token))
    return "\t".join((text, *attributes)) + "\n"


def _written_weight(weight: Any) -> str:
    if isinstance(weight, bool) or not math.isfinite(weight) or weight < 0:
        raise ValueError(f"the weight is {weight!r}; it must be a finite number of at least 0")
    return "" if weight == 1.0 else f"{_WEIGHT}:{float(weight)!r}\n"


def _same_length(where: str, *columns: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    for row in zip_longest(*columns, fillvalue=_END):
        if any(cell is _END for cell in row):
            raise ValueError(f"{where} differ in length; give one entry for each")
        yield row


def _block(index: int, tokens: Iterable[Any], labels: Iterable[Any], weight: Any) -> str:
    lines = [_written_weight(weight)]
    pairs = _same_length(f"sequence {index}: tokens and labels", tokens, labels)
    for position, (token, label) in enumerate(pairs):
        try:
            lines.append(_written_token(token, label))
        except (TypeError, ValueError) as error:
            raise type(error)(f"sequence {index}, position {position}: {error}") from None
    if len(lines) == 1:
        raise ColumnFormatError(f"sequence {index} is empty, which the format cannot express")
    return "".join(lines) + "\n"


def write_crfsuite_text(
    target: Target,
    X: Iterable[Iterable[Any]],
    y: Iterable[Iterable[str]],
    sample_weight: Iterable[float] | None = None,
) -> None:
    r"""Write sequences in CRFsuite's text format.

    Parameters
    ----------
    target : path or file object
        As of :func:`write_columns`: a path is replaced after all was written.
    X : iterable of iterable of dict or list of str
        The features of each token, named by the rules of :class:`crfkit.SequenceVectorizer`:
        ``{"w": "dog"}`` is written as ``w\:dog``. May be a generator.
    y : iterable of iterable of str
        The labels.
    sample_weight : iterable of float, optional
        The weight of each sequence; a weight of 1 is not written.

    Raises
    ------
    ColumnFormatError, TypeError, ValueError
        Naming sequence and position, if a label or name is empty or holds a tab or the end of a
        line, a label begins with ``@``, or a sequence is empty; X, y and the weights do not have
        the same lengths, a feature has no rule, or a weight is negative.

    Examples
    --------
    >>> import io
    >>> file = io.StringIO()
    >>> write_crfsuite_text(file, [[{"w": "dog", "size": 0.5}]], [["NN"]])
    >>> file.getvalue()
    'NN\tw\\:dog\tsize:0.5\n\n'
    """
    columns = (X, y) if sample_weight is None else (X, y, sample_weight)
    rows = _same_length("X, y and sample_weight", *columns)
    blocks = (
        _block(index, tokens, labels, *(weight or [1.0]))
        for index, (tokens, labels, *weight) in enumerate(rows)
    )
    write_blocks(target, blocks)
