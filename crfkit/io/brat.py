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
_PIECES = re.compile("[^\t\n\r]+")  # brat has no spans over ends of lines and tabs
_PROBABILITY = re.compile(r"#\d+\tAnnotatorNotes (T\S+)\tprobability (\d(?:\.\d+)?(?:e-\d+)?)")
_FRAGMENTS, _TAIL = "fragments", "tail"  # what is kept of a span


class _Entity(NamedTuple):
    name: str  # such as T1
    label: str
    fragments: list[tuple[int, int]]
    text: str | None  # what it covers, and perhaps more


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
    return list(iter_brat(path, discontinuous=discontinuous, encoding=encoding))


def iter_brat(
    path: str | os.PathLike[str], *, discontinuous: str = "report", encoding: str = "utf-8"
) -> Iterator[AnnotatedText]:
    """Iterate over what :func:`read_brat` reads, holding one text in memory at a time.

    Parameters, texts and errors are the same; what was left out is told at the end.
    """
    check_option("discontinuous", discontinuous, DISCONTINUOUS)
    return _texts(Path(path), discontinuous, encoding)


def _texts(path: Path, discontinuous: str, encoding: str) -> Iterator[AnnotatedText]:
    left: list[str] = []
    for text, notes in _pairs(path):
        yield _read(text, notes, discontinuous, encoding, left)
    if left:
        warn_user(
            f"{len(left)} spans have several parts and are left out, the first: {left[0]}. Pass "
            "discontinuous='cover' to take all between them."
        )


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
            more: Record = (
                {_FRAGMENTS: [list(each) for each in entity.fragments]} if several else {}
            )
            said, whole = entity.text or "", _covered(text, entity.fragments)
            if said.startswith(whole) and said != whole:
                more[_TAIL] = said.removeprefix(whole)
            fields.append({"id": entity.name, **more})
    known = [scores.get(each["id"]) for each in fields]
    meta: Record = {SPAN_FIELDS: fields} if fields else {}
    if lines:
        meta[LINES] = lines
    probable = known if known and None not in known else None
    return annotated(str(notes), text, spans, id=file.stem, meta=meta, span_probabilities=probable)


def _entity(line: str, where: str) -> _Entity:
    name, _, rest = line.partition("\t")
    place, *covered = rest.split("\t", 1)
    label, _, places = place.partition(" ")
    numbers = [part.split(" ") for part in places.split(";")]
    plain = all(len(pair) == 2 and all(x.isdecimal() for x in pair) for pair in numbers)
    if not (_ENTITY.fullmatch(name) and label and plain):
        raise ColumnFormatError(
            f"{where}: {line!r:.80} is no span; expected an id, a label with the first position "
            "and that after the last, and the text, parted by tabs"
        )
    fragments = [(int(a), int(b)) for a, b in numbers]
    return _Entity(name, label, fragments, covered[0] if covered else None)


def _covered(text: str, fragments: list[tuple[int, int]]) -> str:
    """Return what brat writes of the text of a span."""
    return " ".join(text[a:b] for a, b in fragments)


def _span(entity: _Entity, text: str, where: str, discontinuous: str) -> Segment | None:
    """Return an entity as one span, None if it is to be left out."""
    ends = sorted(entity.fragments)
    span = Segment(ends[0][0], ends[-1][1], entity.label)
    whole, said = _covered(text, entity.fragments), entity.text
    if not all(0 <= a < b <= len(text) for a, b in ends):
        raise ColumnFormatError(f"{where}: {span} is empty or not within the text")
    # As in brat, more may follow after white space.
    if said is not None and not (said.startswith(whole) and said[len(whole) :][:1] in " \t"):
        check_covered(where, whole, Segment(0, len(whole), entity.label), said)
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
    are written back; a probability is a note of its span. Spans of brat are within lines, and hold
    no tabs: as brat itself does, a span of several lines is written in a part for each.

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
        span is `UNLABELED` or holds nothing but ends of lines, or a character cannot be encoded.

    Warns
    -----
    UserWarning
        With the number of spans that begin or end with the end of a line or a tab, and are written
        without it.

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
    cut: list[str] = []
    for number, (where, item) in enumerate(as_texts(texts)):
        name = f"{number:05d}" if item.id is None else str(item.id)
        if not name or name in seen or Path(name).name != name:
            raise ColumnFormatError(
                f"{where}: the id {name!r} is no name of a file, or comes twice; give another one"
            )
        seen.add(name)
        lines = "".join(line + "\n" for line in _lines(where, item, cut))
        for suffix, content in ((".txt", item.text), (".ann", lines)):
            _write(Path(folder, name + suffix), content, encoding, where)
    if cut:
        warn_user(
            f"{len(cut)} spans begin or end with the end of a line or a tab, where brat has no "
            f"spans, and are written without it, the first: {cut[0]}."
        )


def _write(path: Path, content: str, encoding: str, where: str) -> None:
    try:
        data = content.encode(encoding)
    except UnicodeEncodeError as error:
        raise ColumnFormatError(f"{where}: {error}") from None
    with open_for_writing(str(path)) as file:
        file.write(data)


def _lines(where: str, item: AnnotatedText, cut: list[str]) -> Iterator[str]:
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
        kept_parts = [(a, b) for a, b in each.get(_FRAGMENTS, [])]
        fragments = kept_parts or _pieces(item.text, span)
        if not fragments:
            raise ColumnFormatError(f"{where}: {span} holds nothing but ends of lines: remove it")
        if (min(fragments)[0], max(b for _, b in fragments)) != span[:2]:
            if kept_parts:
                raise ColumnFormatError(
                    f"{where}: {span} is not what its parts {fragments}, in meta[{SPAN_FIELDS!r}], "
                    "cover; remove these"
                )
            cut.append(f"{where}, {span}")
        places = ";".join(f"{a} {b}" for a, b in fragments)
        tail = each.get(_TAIL, "")
        yield f"{name}\t{label} {places}\t{_covered(item.text, fragments)}{tail}"
    yield from kept
    notes = (f"#{number}" for number in range(1, 10**9) if f"#{number}" not in used)
    for name, score in zip(names, item.span_probabilities or (), strict=False):
        yield f"{next(notes)}\tAnnotatorNotes {name}\tprobability {score!r}"


def _pieces(text: str, span: Segment) -> list[tuple[int, int]]:
    """Return the parts of a span in single lines, without the blanks around ends of lines."""
    found = []
    for match in _PIECES.finditer(text, span.start, span.stop):
        start, stop = match.span()
        if start > span.start:
            start += len(match[0]) - len(match[0].lstrip(" "))
        if stop < span.stop:
            stop -= len(match[0]) - len(match[0].rstrip(" "))
        if start < stop:
            found.append((start, stop))
    return found
