"""Texts of brat: a text and a file of annotations beside it (standoff)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from crfkit._params import check_option
from crfkit._warnings import warn_user
from crfkit.io.atomic import open_for_writing
from crfkit.io.records import Record, annotated, as_texts, check_covered, labeled_spans, span_fields
from crfkit.io.streams import ColumnFormatError, iter_lines, read_text
from crfkit.text import AnnotatedText, Segment
from crfkit.text.annotated import LINES, SPAN_FIELDS

DISCONTINUOUS = ("report", "cover", "raise")
_ENTITY = re.compile(r"T(\S+)")
_PROBABILITY = re.compile(r"#\d+\tAnnotatorNotes (T\S+)\tprobability (\d(?:\.\d+)?(?:e-\d+)?)")
_FRAGMENTS = "fragments"


class _Entity(NamedTuple):
    name: str  # such as T1
    label: str
    fragments: list[tuple[int, int]]
    text: str
    line: str


def read_brat(
    path: str | os.PathLike[str], *, discontinuous: str = "report", encoding: str = "utf-8"
) -> list[AnnotatedText]:
    r"""Read texts with annotations of brat.

    Parameters
    ----------
    path : path
        A folder of ``.txt`` files with ``.ann`` files beside them, or one of these files.
    discontinuous : {"report", "cover", "raise"}, default="report"
        What to do with spans of several parts: leave them out, with a warning that counts them
        (their lines stay in ``meta["annotation_lines"]``), take all from the first to the last
        character, or raise an error. Parts between which there is but white space are one span: so
        brat writes spans of several lines.
    encoding : str, default="utf-8"
        The encoding of the files.

    Returns
    -------
    list of AnnotatedText
        By the names of the files, which are the ids. Texts are as in the file, ends of lines and a
        byte order mark included, since positions count them. ``meta["annotation_lines"]`` keeps the
        lines of relations, events, attributes, notes and the like, and ``meta["span_fields"]`` the
        ids of spans.

    Raises
    ------
    ColumnFormatError
        Naming file and line, if a span is not within the text or covers something else, a line is
        none of the format, or one of the two files is missing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = Path(folder.name, "a.txt").write_text("Ann sleeps\n")
    >>> _ = Path(folder.name, "a.ann").write_text("T1\tPER 0 3\tAnn\n")
    >>> read_brat(folder.name)[0].spans
    [Segment(start=0, stop=3, label='PER')]
    >>> folder.cleanup()
    """
    check_option("discontinuous", discontinuous, DISCONTINUOUS)
    left: list[str] = []
    found = [
        _read(text, notes, discontinuous, encoding, left) for text, notes in _pairs(Path(path))
    ]
    if left:
        warn_user(
            f"{len(left)} spans have several parts and are left out, the first: {left[0]}. Pass "
            "discontinuous='cover' to take all between them."
        )
    return found


def _pairs(path: Path) -> Iterator[tuple[Path, Path]]:
    """Yield texts and their annotations."""
    if not path.is_dir():
        texts = [path.with_suffix(".txt")]
    else:
        texts = sorted({file.with_suffix(".txt") for file in path.glob("*.ann")})
        lonely = sorted(set(path.glob("*.txt")) - set(texts))
        if lonely:
            raise ColumnFormatError(
                f"{lonely[0]} has no file {lonely[0].with_suffix('.ann').name} beside it: make an "
                "empty one if the text has no annotations"
            )
        if not texts:
            raise ColumnFormatError(f"{path}: there are no .ann files in this folder")
    for text in texts:
        notes = text.with_suffix(".ann")
        for file in (text, notes):
            if not file.exists():
                raise ColumnFormatError(f"{file} is missing: brat has a .txt and a .ann file")
        yield text, notes


def _read(
    file: Path, notes: Path, discontinuous: str, encoding: str, left: list[str]
) -> AnnotatedText:
    text = read_text(file, encoding)
    spans: list[Segment] = []
    fields: list[Record] = []
    lines: list[str] = []
    scores: dict[str, float] = {}
    for number, line in enumerate(iter_lines(notes, encoding), start=1):
        where = f"{notes}, line {number}"
        if score := _PROBABILITY.fullmatch(line):
            scores[score[1]] = float(score[2])
        elif not line.startswith("T"):
            lines += [line] if line.strip() else []
        else:
            entity = _entity(line, where)
            span = _span(entity, text, where, discontinuous)
            if span is None:
                left.append(where)
                lines.append(line)
                continue
            spans.append(span)
            several = len(entity.fragments) > 1
            more = {_FRAGMENTS: [list(each) for each in entity.fragments]} if several else {}
            fields.append({"id": entity.name, **more})
    known = [scores.get(each["id"]) for each in fields]
    meta: Record = {SPAN_FIELDS: fields} if fields else {}
    if lines:
        meta[LINES] = lines
    probable = known if known and None not in known else None
    return annotated(str(notes), text, spans, id=file.stem, meta=meta, span_probabilities=probable)


def _entity(line: str, where: str) -> _Entity:
    cells = line.split("\t")
    label, _, places = cells[1].partition(" ") if len(cells) == 3 else ("", "", "")
    numbers = [part.split(" ") for part in places.split(";")]
    plain = all(len(pair) == 2 and all(x.isdecimal() for x in pair) for pair in numbers)
    if not (_ENTITY.fullmatch(cells[0]) and label and plain):
        raise ColumnFormatError(
            f"{where}: {line!r:.80} is no span; expected an id, a label with the first position "
            "and that after the last, and the text, parted by tabs"
        )
    fragments = [(int(a), int(b)) for a, b in numbers]
    return _Entity(cells[0], label, fragments, cells[2], line)


def _span(entity: _Entity, text: str, where: str, discontinuous: str) -> Segment | None:
    """Return an entity as one span, None if it is to be left out."""
    ends = sorted(entity.fragments)
    span = Segment(ends[0][0], ends[-1][1], entity.label)
    whole = " ".join(text[a:b] for a, b in entity.fragments)
    if not all(0 <= a < b <= len(text) for a, b in ends):
        raise ColumnFormatError(f"{where}: {span} is empty or not within the text")
    check_covered(where, whole, Segment(0, len(whole), entity.label), entity.text)
    gaps = [text[a:b] for (_, a), (b, _) in zip(ends, ends[1:], strict=False)]
    if any(gap.strip() for gap in gaps) and discontinuous != "cover":
        if discontinuous == "raise":
            raise ColumnFormatError(
                f"{where}: {entity.text!r:.60} has several parts; pass discontinuous='cover' or "
                "'report'"
            )
        return None
    return span


def write_brat(
    folder: str | os.PathLike[str], texts: Iterable[AnnotatedText], *, encoding: str = "utf-8"
) -> None:
    r"""Write texts for brat: a ``.txt`` and a ``.ann`` file for each.

    Files are named by the ids of the texts, or by their numbers. Lines that `read_brat` has kept
    are written back; a probability is a note of its span.

    Parameters
    ----------
    folder : path
        Where to write; it is made if there is none. Each file is replaced as a whole.
    texts : iterable of AnnotatedText
        The texts.
    encoding : str, default="utf-8"
        The encoding; brat reads UTF-8.

    Raises
    ------
    ColumnFormatError
        Naming the text, if its id is no name of a file or comes twice, a label holds white space, a
        span is `UNLABELED`, or a character cannot be encoded.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crfkit.text import AnnotatedText
    >>> folder = tempfile.TemporaryDirectory()
    >>> write_brat(folder.name, [AnnotatedText("Ann sleeps", [(0, 3, "PER")], id="a")])
    >>> Path(folder.name, "a.ann").read_text()
    'T1\tPER 0 3\tAnn\n'
    >>> folder.cleanup()
    """
    Path(folder).mkdir(exist_ok=True)
    seen: set[str] = set()
    for number, (where, item) in enumerate(as_texts(texts)):
        name = f"{number:05d}" if item.id is None else str(item.id)
        if not name or name in seen or Path(name).name != name:
            raise ColumnFormatError(
                f"{where}: the id {name!r} is no name of a file, or comes twice; give another one"
            )
        seen.add(name)
        lines = "".join(line + "\n" for line in _lines(where, item))
        for suffix, content in ((".txt", item.text), (".ann", lines)):
            _write(Path(folder, name + suffix), content, encoding, where)


def _write(path: Path, content: str, encoding: str, where: str) -> None:
    try:
        data = content.encode(encoding)
    except UnicodeEncodeError as error:
        raise ColumnFormatError(f"{where}: {error}") from None
    with open_for_writing(str(path)) as file:
        file.write(data)


def _lines(where: str, item: AnnotatedText) -> Iterator[str]:
    fields, kept = span_fields(item, where), item.meta.get(LINES, [])
    used = {each["id"] for each in fields if "id" in each}
    used |= {line.split("\t")[0] for line in kept}
    free = (f"T{number}" for number in range(1, 10**9) if f"T{number}" not in used)
    names = [str(each["id"]) if "id" in each else next(free) for each in fields]
    for name, span, each in zip(names, labeled_spans(item, where), fields, strict=True):
        label = str(span.label)
        if label.split() != [label] or not _ENTITY.fullmatch(name):
            raise ColumnFormatError(
                f"{where}: brat cannot hold the label {label!r} or the id {name!r}: labels have no "
                "white space, ids are such as T1"
            )
        fragments = [(a, b) for a, b in each.get(_FRAGMENTS, _by_lines(item.text, span))]
        if _FRAGMENTS not in each:
            _check_ends(where, span, fragments)
        elif (min(fragments)[0], max(fragments)[1]) != span[:2]:
            raise ColumnFormatError(
                f"{where}: {span} is not what its parts {fragments}, in meta[{SPAN_FIELDS!r}], "
                "cover; remove these"
            )
        places = ";".join(f"{a} {b}" for a, b in fragments)
        covered = " ".join(item.text[a:b] for a, b in fragments)
        yield f"{name}\t{label} {places}\t{covered.replace(chr(9), ' ')}"
    yield from kept
    notes = (f"#{number}" for number in range(1, 10**9) if f"#{number}" not in used)
    for name, score in zip(names, item.span_probabilities or (), strict=False):
        yield f"{next(notes)}\tAnnotatorNotes {name}\tprobability {score!r}"


def _by_lines(text: str, span: Segment) -> list[tuple[int, int]]:
    """Return the parts of a span in single lines."""
    covered = text[span.start : span.stop]
    parts = [match.span() for match in re.finditer(r"[^\r\n]+", covered)]
    return [(span.start + a, span.start + b) for a, b in parts]


def _check_ends(where: str, span: Segment, fragments: list[tuple[int, int]]) -> None:
    """Raise ColumnFormatError if a span begins or ends with the end of a line."""
    if not fragments or fragments[0][0] != span.start or fragments[-1][1] != span.stop:
        raise ColumnFormatError(
            f"{where}: {span} begins or ends with the end of a line, but brat has spans within "
            "lines: strip it"
        )
