"""Plans: the compiled form of templates of tokens, the same for all their syntaxes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crfkit.features.functions import ANY, FLAG, ITEMS, Calls, Functions, result_kind

# What becomes of a cell outside of its sequence.
KEEP = "keep"  # its mark, which functions leave as it is
APPLY = "apply"  # what the functions make of its mark
ABSENT = "absent"  # nothing, so the attribute is left out

# Columns of the input and columns that are computed from the position or from lexicons.
INPUT = "input"
POSITION = "position"
BOS = "bos"
EOS = "eos"
PHRASE = "phrase"

ColumnKey = tuple[Any, ...]

FARTHEST = 1000  # tokens that a cell may be away: marks are made for all of them


class Source(NamedTuple):
    """Strings of a column after some functions; `kind` is what these give.

    Flags that are an attribute of their own, which is not followed by a string, have a `joint`:
    what stands before the marks of cells outside of the sequence.
    """

    column: int
    calls: Calls
    kind: str
    joint: str | None = None

    @property
    def gives_items(self) -> bool:
        """Whether it may give numbers or several strings."""
        return self.kind in (ITEMS, ANY)


class Cell(NamedTuple):
    """A source at another token: so many tokens away, or at a position of the sequence."""

    source: int
    offset: int
    absolute: bool = False


class Template(NamedTuple):
    """A template: ``lead + cell + seps[0] + cell + seps[1] ...``.

    One cell whose source gives flags or numbers is named `lead` alone for those; `joint` stands
    between this and a string, if the source gives strings as well. A template of a transition
    describes the one into the token.
    """

    lead: str
    joint: str
    cells: tuple[Cell, ...]
    seps: tuple[str, ...]
    transition: bool


class Plan(NamedTuple):
    """Everything that templates ask for."""

    columns: Sequence[ColumnKey]  # keys; those a lexicon reads come before the lexicon
    sources: Sequence[Source]
    templates: Sequence[Template]
    marks: Sequence[str]  # of cells outside of a sequence: 1, 2, ... before, 1, 2, ... after it
    policy: str  # what becomes of these

    def sources_of(self, template: Template) -> list[Source]:
        """Return the sources of the cells of a template."""
        return [self.sources[cell.source] for cell in template.cells]


@dataclass
class PlanBuilder:
    """Collects templates with functions of the user.

    `policy` says what becomes of cells outside of their sequence, `prefix` how their marks begin,
    and `last` is the largest distance that marks tell.
    """

    functions: Functions
    policy: str = KEEP
    prefix: str = "_B"
    last: int | None = None
    columns: list[ColumnKey] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    templates: list[Template] = field(default_factory=list)

    def column(self, *key: Any) -> int:
        """Return the number of a column."""
        return _number(self.columns, key)

    def cell(self, column: int, calls: Calls, offset: int, absolute: bool = False) -> Cell:
        """Return a cell of a conjunction; ValueError if it is too far away."""
        if abs(offset) > FARTHEST:
            raise ValueError(f"a cell can be {FARTHEST} tokens away, not {offset}")
        source = Source(column, calls, result_kind(calls, self.functions))
        return Cell(_number(self.sources, source), offset, absolute)

    def add(self, lead: str, cells: Sequence[Cell], seps: Sequence[str], transition: bool) -> None:
        """Add a template of any number of cells."""
        self.templates.append(Template(lead, "", tuple(cells), tuple(seps), transition))

    def add_named(
        self, name: str, joint: str, cells: Sequence[Cell], sep: str, transition: bool
    ) -> None:
        """Add a template whose attributes are ``name`` or ``name + joint + strings``."""
        source = self.sources[cells[0].source]
        alone = len(cells) == 1 and source.kind in (FLAG, ITEMS, ANY)
        if alone and source.kind == FLAG:
            number = _number(self.sources, source._replace(joint=joint))
            cells = [cells[0]._replace(source=number)]
        seps = (*[sep] * (len(cells) - 1), "")
        lead = name if alone else name + joint
        self.templates.append(Template(lead, joint, tuple(cells), seps, transition))

    def finish(self) -> Plan:
        """Return the plan."""
        cells = [cell for template in self.templates for cell in template.cells]
        # Position 0 of a sequence is 1 before its first token.
        beside = any(key[0] == PHRASE for key in self.columns)
        pad = max((max(abs(cell.offset), cell.absolute) for cell in cells), default=0) or beside
        ranks = [
            "#" if self.last is not None and k > self.last else str(k) for k in range(1, pad + 1)
        ]
        marks = [f"{self.prefix}{sign}{rank}" for sign in "-+" for rank in ranks]
        return Plan(self.columns, self.sources, self.templates, marks, self.policy)


def _number(known: list[Any], item: Any) -> int:
    """Return the place of an item in a list, appending a new one."""
    if item not in known:
        known.append(item)
    return known.index(item)


def _forms(template: Template, plan: Plan) -> list[tuple[str, bool]]:
    """Return how names of a template begin, and whether more follows."""
    if not template.cells:
        return [(template.lead, False)]
    kinds = [source.kind for source in plan.sources_of(template)]
    if len(kinds) == 1 and kinds[0] in (FLAG, ITEMS, ANY):
        return [(template.lead, False), (template.lead + template.joint, True)]
    return [(template.lead, True)]


def colliding(templates: Iterable[Template], plan: Plan, names: Sequence[str]) -> set[Template]:
    """Return the templates that may share a name with another one, or have a given name."""
    forms: list[tuple[str, bool, Template | None]] = [(name, False, None) for name in names]
    forms += [(*form, template) for template in templates for form in _forms(template, plan)]
    met: set[Template | None] = set()
    begun: list[tuple[str, bool, Template | None]] = []  # each one's text begins the next one's
    for text, more, template in sorted(forms, key=lambda form: form[0]):
        while begun and not text.startswith(begun[-1][0]):
            begun.pop()
        for before, goes_on, other in begun:
            if other is not template and (goes_on or before == text):
                met |= {template, other}
        begun.append((text, more, template))
    return {template for template in met if template is not None}
