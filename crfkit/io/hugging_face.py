"""Tokens and labels as Hugging Face data sets have them: integers, their names, -100."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from numbers import Integral
from typing import Any

from crfkit._params import check_option
from crfkit.data import UNLABELED
from crfkit.io.records import Record, iter_records, write_json_lines
from crfkit.io.streams import ColumnFormatError, Target

IGNORED = -100  # the label that losses of PyTorch leave out
BATCH = 1000  # rows that are taken out of a data set at a time

Names = Sequence[str] | Mapping[int, str]


def read_hugging_face(
    source: Any,
    *,
    names: Names | None = None,
    tokens: str = "tokens",
    tags: str = "ner_tags",
    ignored: str = "unlabeled",
    encoding: str = "utf-8",
) -> tuple[list[list[str]], list[list[Any]]]:
    """Read tokens and labels of a data set of Hugging Face.

    Parameters
    ----------
    source : datasets.Dataset, path, file object, dict of columns or iterable of dicts
        A data set, or its rows: JSON lines, ``[{"tokens": [...], "ner_tags": [...]}]`` or
        ``{"tokens": [[...]], "ner_tags": [[...]]}``.
    names : sequence of str or dict of int to str, optional
        What integers stand for, such as ``id2label`` of a model. Not needed where the features of a
        data set say it, or labels are strings.
    tokens, tags : str, default="tokens", "ner_tags"
        The names of the columns.
    ignored : {"unlabeled", "skip"}, default="unlabeled"
        What to do with tokens labeled -100: their labels are :data:`crfkit.UNLABELED`, or they are
        left out, as pieces of words that go on are.
    encoding : str, default="utf-8"
        The encoding of a path or binary stream.

    Returns
    -------
    tokens : list of S lists of str
    labels : list of S lists

    Raises
    ------
    ColumnFormatError, TypeError, ValueError
        Naming the row, if a column is missing, tokens and labels are not as many, a token is no
        string, an integer has no name, or there are no names.

    Examples
    --------
    >>> rows = [{"tokens": ["Ann", "sleeps"], "ner_tags": [1, 0]}]
    >>> read_hugging_face(rows, names=["O", "B-PER"])
    ([['Ann', 'sleeps']], [['B-PER', 'O']])
    """
    X: list[list[str]] = []
    y: list[list[Any]] = []
    for words, labels in iter_hugging_face(
        source, names=names, tokens=tokens, tags=tags, ignored=ignored, encoding=encoding
    ):
        X.append(words)
        y.append(labels)
    return X, y


def iter_hugging_face(
    source: Any,
    *,
    names: Names | None = None,
    tokens: str = "tokens",
    tags: str = "ner_tags",
    ignored: str = "unlabeled",
    encoding: str = "utf-8",
) -> Iterator[tuple[list[str], list[Any]]]:
    """Iterate over what :func:`read_hugging_face` reads: tokens and labels of one row at a time.

    Parameters and errors are the same. Streamed data sets, which are iterables of dicts, need
    `names`.
    """
    check_option("ignored", ignored, ("unlabeled", "skip"))
    known = _names_of(source, tags) if names is None else names
    rows = _rows(source, tokens, tags, encoding)
    return (
        _row(where, words, labels, (tokens, tags), known, ignored == "skip")
        for where, words, labels in rows
    )


def _row(
    where: str, words: Any, labels: Any, keys: tuple[str, str], known: Names | None, skips: bool
) -> tuple[list[str], list[Any]]:
    """Return the tokens and labels of a row."""
    words, labels = _listed(words, keys[0], where), _listed(labels, keys[1], where)
    if len(words) != len(labels):
        raise ColumnFormatError(f"{where}: {len(words)} tokens, but {len(labels)} labels")
    named = [_label(label, known, f"{where}, position {t}") for t, label in enumerate(labels)]
    for position, word in enumerate(words):
        if not isinstance(word, str):
            raise ColumnFormatError(
                f"{where}, position {position}: the token is {word!r:.60}, expected str"
            )
    if skips:
        kept = [t for t, label in enumerate(named) if label is not UNLABELED]
        words, named = [words[t] for t in kept], [named[t] for t in kept]
    return words, named


def _listed(row: Any, key: str, where: str) -> list[Any]:
    if isinstance(row, str) or not isinstance(row, Iterable):
        raise ColumnFormatError(f"{where}: {key!r} is {row!r:.60}, expected a list")
    return list(row)


def _rows(source: Any, tokens: str, tags: str, encoding: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield places, tokens and labels of the rows of any of the forms."""
    if hasattr(source, "column_names") and hasattr(source, "__getitem__"):
        _check_columns(source.column_names, tokens, tags)
        for begin in range(0, len(source), BATCH):
            part = source[begin : begin + BATCH]
            for row, pair in enumerate(zip(part[tokens], part[tags], strict=True), begin):
                yield f"row {row}", *pair
    elif isinstance(source, Mapping):
        _check_columns(source, tokens, tags)
        if len(source[tokens]) != len(source[tags]):
            raise ColumnFormatError(
                f"{tokens!r} has {len(source[tokens])} rows, but {tags!r} {len(source[tags])}"
            )
        for row, pair in enumerate(zip(source[tokens], source[tags], strict=True)):
            yield f"row {row}", *pair
    else:
        for where, record in iter_records(source, encoding):
            _check_columns(record, tokens, tags, f"{where}: ")
            yield where, record[tokens], record[tags]


def _check_columns(columns: Iterable[str], tokens: str, tags: str, where: str = "") -> None:
    names = list(columns)
    for name in (tokens, tags):
        if name not in names:
            raise ColumnFormatError(
                f"{where}there is no column {name!r}, only {names!r:.200}; pass tokens= and tags="
                + (", or one split, such as dataset['train']" if "train" in names else "")
            )


def _names_of(source: Any, tags: str) -> Names | None:
    """Return the names that the features of a data set say."""
    features = getattr(source, "features", None)
    if not features or tags not in features:
        return None
    feature = getattr(features[tags], "feature", features[tags])
    names: Names | None = getattr(feature, "names", None)
    return names


def _label(label: Any, names: Names | None, where: str) -> Any:
    if isinstance(label, str):
        return label
    if not isinstance(label, Integral) or isinstance(label, bool):
        raise ColumnFormatError(f"{where}: the label is {label!r:.60}, expected an integer")
    if label == IGNORED:
        return UNLABELED
    if names is None:
        raise ColumnFormatError(
            f"{where}: the label is the number {label}, of which nothing tells what it stands for: "
            "pass names=, such as features['ner_tags'].feature.names, or id2label of a model"
        )
    number = int(label)
    found = names.get(number) if isinstance(names, Mapping) else None
    if isinstance(names, Sequence) and 0 <= number < len(names):
        found = names[number]
    if found is None:
        raise ColumnFormatError(f"{where}: the label {number} has none of the {len(names)} names")
    return found


def label_names(y: Iterable[Iterable[Any]]) -> list[str]:
    """Return the names of labels in the order of data sets: "O", then by types, B before I."""
    labels = {label for row in y for label in row if label is not UNLABELED}
    for label in labels:
        if not isinstance(label, str):
            raise TypeError(f"the label {label!r:.60} is no string, but labels have names here")
    return sorted(labels, key=lambda tag: (tag != "O", tag.partition("-")[2], tag))


def hugging_face_columns(
    tokens: Iterable[Sequence[str]], y: Iterable[Sequence[Any]], names: Sequence[str] | None = None
) -> tuple[dict[str, list[Any]], list[str]]:
    """Return columns for ``datasets.Dataset.from_dict``, and the names of labels.

    Parameters
    ----------
    tokens : iterable of S sequences of str
        The tokens.
    y : iterable of S sequences of str or UNLABELED
        The labels; :data:`crfkit.UNLABELED` becomes -100.
    names : sequence of str, optional
        The names in the order of their integers; by default "O", then the others by their types.

    Returns
    -------
    columns : dict
        ``"tokens"`` and ``"ner_tags"``, lists of S lists.
    names : list of str
        For ``ClassLabel(names=names)``.

    Raises
    ------
    TypeError, ValueError
        Naming the sequence, if there are not as many labels as tokens, or a label has no name.

    Examples
    --------
    >>> hugging_face_columns([["Ann", "sleeps"]], [["B-PER", "O"]])
    ({'tokens': [['Ann', 'sleeps']], 'ner_tags': [[1, 0]]}, ['O', 'B-PER'])
    """
    labels = [list(row) for row in y]
    known = label_names(labels) if names is None else list(names)
    rows = list(_numbered(tokens, labels, known))
    return {"tokens": [row[0] for row in rows], "ner_tags": [row[1] for row in rows]}, known


def _numbered(
    tokens: Iterable[Sequence[str]], y: Iterable[Sequence[Any]], known: Sequence[str]
) -> Iterator[tuple[list[str], list[int]]]:
    """Yield the tokens of rows, and the numbers of their labels."""
    numbers: dict[Any, int] = {name: number for number, name in enumerate(known)}
    numbers[UNLABELED] = IGNORED
    for s, (row, own) in enumerate(zip_longest(tokens, y)):
        if row is None or own is None:
            more, fewer = ("labels", "tokens") if row is None else ("tokens", "labels")
            raise ValueError(f"there are more sequences of {more} than the {s} of {fewer}")
        words, labels = list(row), list(own)
        if len(words) != len(labels):
            raise ValueError(f"sequence {s}: {len(words)} tokens, but {len(labels)} labels")
        for position, (word, label) in enumerate(zip(words, labels, strict=True)):
            if not isinstance(word, str):
                raise TypeError(
                    f"sequence {s}, position {position}: the token is {word!r:.60}, not a str"
                )
            if isinstance(label, (set, frozenset)) or label not in numbers:
                raise ValueError(
                    f"sequence {s}, position {position}: the label {label!r:.60} has none of the "
                    f"names {known!r:.200}"
                )
        yield words, [numbers[label] for label in labels]


def write_hugging_face(
    target: Target,
    tokens: Iterable[Sequence[str]],
    y: Iterable[Sequence[Any]],
    names: Sequence[str] | None = None,
) -> list[str]:
    """Write tokens and labels as JSON lines, one sequence a line, labels as integers.

    Parameters
    ----------
    target : path or file object
        As of :func:`write_columns`: a path is replaced after all was written.
    tokens, y, names
        As for :func:`hugging_face_columns`, also in what is raised. With `names`, one sequence is
        in memory at a time.

    Returns
    -------
    list of str
        The names of the integers, which the lines do not tell: keep them, for ``ClassLabel`` or
        `read_hugging_face`.

    Examples
    --------
    >>> import sys
    >>> write_hugging_face(sys.stdout, [["Ann", "sleeps"]], [["B-PER", "O"]])
    {"id": "0", "tokens": ["Ann", "sleeps"], "ner_tags": [1, 0]}
    ['O', 'B-PER']
    """
    if names is None:  # all labels must be known before the first is written
        y = [list(row) for row in y]
    known = label_names(y) if names is None else list(names)

    def rows() -> Iterator[tuple[str, Record]]:
        for s, (words, tags) in enumerate(_numbered(tokens, y, known)):
            yield f"sequence {s}", {"id": str(s), "tokens": words, "ner_tags": tags}

    write_json_lines(target, rows())
    return known
