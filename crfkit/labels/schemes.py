"""Tag schemes: what ``B-PER``, ``I-PER`` and ``O`` mean, and which tags may follow which.

Every scheme is three relations between a tag and the tag before it, with an ``O`` before and after
each sequence: the tag *continues* the span of the tag before it, the tag may *open* a span, the
tag before it may *close* one there. Spans, legality and transition masks are all read from these
three tables and from nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from crfkit._params import meant
from crfkit.labels.sequences import BoolArray, IntArray

#: What a token is to its span. The spellings of a scheme map onto these five roles.
OUTSIDE, BEGIN, INSIDE, END, SINGLE = range(5)
N_ROLES = 5
#: The type of a tag without one, such as the ``B`` and ``I`` of a word segmenter.
UNTYPED = "_"
# Not a scheme of tags: a run of equal labels is a segment.
RUNS = "runs"
# The label of tokens outside of all segments.
OUTSIDE_LABEL = "O"

_Rules = tuple[BoolArray, BoolArray, BoolArray]
_RuleMaker = Callable[[IntArray, IntArray, BoolArray], _Rules]


class Scheme(NamedTuple):
    """A tag scheme: its tables, by ``pair_index``, and the roles that its tags are written with."""

    name: str
    roles: Mapping[str, int]  # spelling -> role
    continues: BoolArray  # (2 * N_ROLES ** 2,)
    opens: BoolArray
    closes: BoolArray
    first: int = INSIDE
    last: int = INSIDE
    single: int = INSIDE
    marks: str = "always"  # or where a span touches one of its type on its "left" or "right"
    suffix: bool = False  # PER-B rather than B-PER
    delimiter: str = "-"

    @property
    def legal(self) -> BoolArray:
        """Whether the second tag of each pair may follow the first."""
        previous, current, _ = _role_pairs()
        stops = _has(previous, "O") | self.closes
        starts = _has(current, "O") | self.opens
        return self.continues | (stops & starts)

    def split(self, tag: str) -> tuple[str, str]:
        """Return the letter and the type of a tag."""
        if self.suffix:
            label, _, letter = tag.rpartition(self.delimiter)
        else:
            letter, _, label = tag.partition(self.delimiter)
        return letter, label


class TagTable(NamedTuple):
    """Roles and types of the distinct tags, with a final row for the ``O`` between sequences."""

    roles: IntArray  # (K + 1,)
    types: IntArray  # (K + 1,), index into names
    names: list[str]


def pair_index(previous: IntArray, current: IntArray, same_type: BoolArray) -> IntArray:
    """Return the row of a scheme's tables for pairs of neighboring tags."""
    return (previous * N_ROLES + current) * 2 + same_type


def get_scheme(name: str, suffix: bool = False, delimiter: str = "-") -> Scheme:
    """Look a scheme up by name or alias, without regard to case; ValueError if there is none."""
    scheme = SCHEMES.get(name.upper()) if isinstance(name, str) else None
    if scheme is None:
        raise ValueError(
            f"unknown tag scheme {name!r}.{meant(name, SCHEMES)} These are the known schemes: "
            f"{', '.join(SCHEMES)}"
        )
    return scheme._replace(suffix=suffix, delimiter=delimiter)


def parse_tag(tag: object, scheme: Scheme) -> tuple[int, str]:
    """Split a tag into its role and its type; TypeError or ValueError if it is no tag of these."""
    if not isinstance(tag, str):
        raise TypeError(f"tags are strings such as 'B-PER'; found {tag!r} ({type(tag).__name__})")
    letter, label = scheme.split(tag)
    role = scheme.roles.get(letter)
    if role is None or (role == OUTSIDE and label):
        raise ValueError(_malformed(tag, scheme))
    return role, label or UNTYPED


def is_tag(label: object, scheme: Scheme) -> bool:
    """Whether a label is a tag of a scheme."""
    try:
        parse_tag(label, scheme)
    except (TypeError, ValueError):
        return False
    return True


def looks_like_tag(label: object) -> bool:
    """Whether a label is written as a tag with a type: a bare letter may as well be a label."""
    return isinstance(label, str) and len(label) > 2 and label[1] == "-" and label[0] in LETTERS


def write_tag(role: int, label: str, scheme: Scheme) -> str:
    """Write a tag; a span of type ``"_"`` is written as the bare letter."""
    letter = next(letter for letter, value in scheme.roles.items() if value == role)
    if role == OUTSIDE or label == UNTYPED:
        return letter
    return scheme.delimiter.join((label, letter) if scheme.suffix else (letter, label))


def tag_table(parsed: Sequence[tuple[int, str]]) -> TagTable:
    """Give numbers to the types of parsed tags, in sorted order."""
    names = sorted({label for role, label in parsed if role != OUTSIDE})
    index = {name: i for i, name in enumerate(names)}
    roles = [role for role, _ in parsed] + [OUTSIDE]
    types = [index.get(label, -1) for _, label in parsed] + [-1]
    return TagTable(np.array(roles, np.intp), np.array(types, np.intp), names)


def allowed_transitions(
    labels: Sequence[Hashable], scheme: str, *, suffix: bool = False, delimiter: str = "-"
) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Return which tags may follow which, and which may start or end a sequence.

    Parameters
    ----------
    labels : sequence of K str
        The tags, e.g. the ``classes_`` of an estimator.
    scheme : str
        Name of the tag scheme. Under ``"conll"`` everything is allowed.
    suffix, delimiter
        As in :func:`crfkit.metrics.spans_from_tags`.

    Returns
    -------
    allowed : ndarray of shape (K, K), dtype bool
        ``allowed[i, j]`` if ``labels[j]`` may follow ``labels[i]``.
    allowed_start, allowed_end : ndarray of shape (K,), dtype bool
        Whether a label may be the first, the last of a sequence.

    Raises
    ------
    ValueError
        If a label is not a tag of the scheme.

    Examples
    --------
    >>> from crfkit.metrics import allowed_transitions
    >>> allowed, start, end = allowed_transitions(["B-PER", "I-PER", "O"], "IOB2")
    >>> allowed.astype(int)
    array([[1, 1, 1],
           [1, 1, 1],
           [1, 0, 1]])
    >>> start
    array([ True, False,  True])
    """
    rules = get_scheme(scheme, suffix, delimiter)
    table = tag_table([parse_tag(label, rules) for label in labels])
    same = table.types[:, None] == table.types[None, :]
    legal = rules.legal[pair_index(table.roles[:, None], table.roles[None, :], same)]
    return legal[:-1, :-1].copy(), legal[-1, :-1].copy(), legal[:-1, -1].copy()


def _malformed(tag: str, scheme: Scheme) -> str:
    other_letter, _ = scheme._replace(suffix=not scheme.suffix).split(tag)
    hint = f"; did you mean suffix={not scheme.suffix}?" if other_letter in scheme.roles else ""
    form = scheme.delimiter.join(("TYPE", "X") if scheme.suffix else ("X", "TYPE"))
    letters = ", ".join(letter for letter, role in scheme.roles.items() if role != OUTSIDE)
    return (
        f"{tag!r} is not a tag of {scheme.name}: neither 'O' nor {form} with X in {letters}{hint}"
    )


def _role_pairs() -> tuple[IntArray, IntArray, BoolArray]:
    previous, current, same = np.indices((N_ROLES, N_ROLES, 2)).reshape(3, -1)
    return previous, current, same.astype(bool)


def _has(role: IntArray, letters: str) -> BoolArray:
    return np.isin(role, [_ROLE_OF_LETTER[letter] for letter in letters])


def _plain(before: str, after: str, opens: str, closes: str) -> _RuleMaker:
    """Return the rules where tags `after` continue a span of their type `before` them."""

    def rules(prev: IntArray, cur: IntArray, same: BoolArray) -> _Rules:
        continues = _has(prev, before) & _has(cur, after) & same
        return continues, _has(cur, opens) & ~continues, _has(prev, closes) & ~continues

    return rules


def _iob1(prev: IntArray, cur: IntArray, same: BoolArray) -> _Rules:
    continues, _, closes = _plain("BI", "I", "", "BI")(prev, cur, same)
    # A B may be there only to part two spans of one type, so it opens none after O or another
    # type; the I that follows such a stray B is then the opening of the span.
    opens = _has(cur, "I") & ~(_has(prev, "I") & same)
    opens |= _has(prev, "BI") & _has(cur, "B") & same
    return continues, opens, closes & ~(_has(prev, "B") & _has(cur, "B") & ~same)


def _ioe1(prev: IntArray, cur: IntArray, same: BoolArray) -> _Rules:
    continues, opens, closes = _plain("I", "IE", "IE", "I")(prev, cur, same)
    return continues, opens, closes | (_has(prev, "E") & _has(cur, "IE") & same)


def _make(name: str, letters: str, rules: _RuleMaker, **writing: Any) -> Scheme:
    roles = {letter: _ROLE_OF_LETTER[letter] for letter in letters}
    return Scheme(name, roles, *rules(*_role_pairs()), **writing)


_ROLE_OF_LETTER = {
    **{"O": OUTSIDE, "B": BEGIN, "I": INSIDE, "E": END, "S": SINGLE},
    **{"M": INSIDE, "L": END, "U": SINGLE, "W": SINGLE},
}
_CHUNK = {"first": BEGIN, "last": END, "single": SINGLE}
_OPENED = {"first": BEGIN, "single": BEGIN}
_CLOSED = {"last": END, "single": END}

IO = _make("IO", "OI", _plain("I", "I", "I", "I"))
IOB1 = _make("IOB1", "OBI", _iob1, marks="left", **_OPENED)
IOB2 = _make("IOB2", "OBI", _plain("BI", "I", "B", "BI"), **_OPENED)
IOE1 = _make("IOE1", "OIE", _ioe1, marks="right", **_CLOSED)
IOE2 = _make("IOE2", "OIE", _plain("I", "IE", "IE", "E"), **_CLOSED)
_IOBES = _plain("BI", "IE", "BS", "ES")
IOBES = _make("IOBES", "OBIES", _IOBES, **_CHUNK)
BILOU = _make("BILOU", "OBILU", _IOBES, **_CHUNK)
BMES = _make("BMES", "OBMES", _IOBES, **_CHUNK)
BMEWO = _make("BMEWO", "OBMEW", _IOBES, **_CHUNK)
#: The reading of the conlleval script: any tag sequence is legal; it is never written.
CONLL = _make("conll", "OBIESMLUW", _plain("BI", "IE", "BIES", "BIES"))
# Those of the tags of all schemes but that of tokens outside.
LETTERS = frozenset(CONLL.roles) - {"O"}

SCHEMES: dict[str, Scheme] = {
    **{"CONLL": CONLL, "IO": IO, "IOB1": IOB1, "IOB2": IOB2, "BIO": IOB2, "BIO2": IOB2},
    **{"IOE1": IOE1, "IOE2": IOE2, "IOBES": IOBES, "BIOES": IOBES, "BILOU": BILOU},
    **{"BIOLU": BILOU, "BMES": BMES, "BMESO": BMES, "BMEOS": BMES, "BMEWO": BMEWO},
}
#: Schemes in the order in which ``detect_scheme`` tries them.
DETECTABLE = (IOB2, IOBES, BILOU, BMES, BMEWO, IOE2, IO, IOB1, IOE1)
