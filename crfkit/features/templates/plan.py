"""Plans: the compiled form of templates of tokens, the same for all their syntaxes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

ColumnKey = tuple[Any, ...]

FARTHEST = 1000  # tokens that a cell may be away: marks are made for all of them


class Source(NamedTuple):
    """Strings of a column after some functions.

    Flags that are an attribute of their own, which is not followed by a string, have a `joint`:
    what stands before the marks of cells outside of the sequence.
    """

    column: int
    calls: Calls
    joint: str | None = None


class Cell(NamedTuple):
    """A source at another token: so many tokens away, or at a position of the sequence."""

    source: int
    offset: int
    absolute: bool = False


class Template(NamedTuple):
    """A template: ``lead + cell + seps[0] + cell + seps[1] ...``.

    Attributes
    ----------
    lead : str
        What stands before the first cell. A template of one cell whose source gives flags or
        numbers is named `lead` alone for those.
    joint : str
        What stands between such a lead and a string, if the source gives strings as well.
    cells : tuple of Cell
    seps : tuple of str
        What follows each cell.
    transition : bool
        Whether it describes the transition into the token.
    """

    lead: str
    joint: str
    cells: tuple[Cell, ...]
    seps: tuple[str, ...]
    transition: bool


class Plan(NamedTuple):
    """Everything that templates ask for.

    Attributes
    ----------
    columns : tuple of tuples
        Keys of the columns, those a lexicon reads before the lexicon.
    sources : tuple of Source
    templates : tuple of Template
    marks : tuple of str
        What cells outside of a sequence hold: 1, 2, ... before, then 1, 2, ... after it.
    policy : str
        What becomes of them.
    """

    columns: tuple[ColumnKey, ...]
    sources: tuple[Source, ...]
    templates: tuple[Template, ...]
    marks: tuple[str, ...]
    policy: str


class PlanBuilder:
    """Collects templates.

    Parameters
    ----------
    functions : mapping of str to callable
        Functions of the user.
    policy : str
        What becomes of cells outside of their sequence.
    prefix : str
        How marks begin.
    last : int or None
        The largest distance that marks tell.
    """

    def __init__(
        self, functions: Functions, policy: str = KEEP, prefix: str = "_B", last: int | None = None
    ) -> None:
        self.functions = functions
        self.policy = policy
        self.prefix = prefix
        self.last = last
        self.columns: list[ColumnKey] = []
        self.sources: list[Source] = []
        self.templates: list[Template] = []

    def column(self, *key: Any) -> int:
        """Return the number of a column."""
        return _number(self.columns, key)

    def cell(self, column: int, calls: Calls, offset: int, absolute: bool = False) -> Cell:
        """Return a cell of a conjunction; ValueError if it is too far away."""
        if abs(offset) > FARTHEST:
            raise ValueError(f"a cell can be {FARTHEST} tokens away, not {offset}")
        return Cell(_number(self.sources, Source(column, calls)), offset, absolute)

    def add(self, lead: str, cells: Sequence[Cell], seps: Sequence[str], transition: bool) -> None:
        """Add a template of any number of cells."""
        self.templates.append(Template(lead, "", tuple(cells), tuple(seps), transition))

    def add_named(
        self, name: str, joint: str, cells: Sequence[Cell], sep: str, transition: bool
    ) -> None:
        """Add a template whose attributes are ``name`` or ``name + joint + strings``."""
        seps = [sep] * (len(cells) - 1) + [""] if cells else []
        kind = self.kind(cells[0]) if len(cells) == 1 else ""
        if kind == FLAG:
            source = self.sources[cells[0].source]._replace(joint=joint)
            cells = [cells[0]._replace(source=_number(self.sources, source))]
        lead = name + joint if cells and kind not in (FLAG, ITEMS, ANY) else name
        self.templates.append(Template(lead, joint, tuple(cells), tuple(seps), transition))

    def kind(self, cell: Cell) -> str:
        """Return what the source of a cell gives."""
        return result_kind(self.sources[cell.source].calls, self.functions)

    def finish(self) -> Plan:
        """Return the plan."""
        cells = [cell for template in self.templates for cell in template.cells]
        # Position 0 of a sequence is 1 before its first token.
        pad = max((max(abs(cell.offset), cell.absolute) for cell in cells), default=0)
        ranks = [
            "#" if self.last is not None and k > self.last else str(k) for k in range(1, pad + 1)
        ]
        marks = [f"{self.prefix}{sign}{rank}" for sign in "-+" for rank in ranks]
        return Plan(
            tuple(self.columns),
            tuple(self.sources),
            tuple(self.templates),
            tuple(marks),
            self.policy,
        )


def _number(known: list[Any], item: Any) -> int:
    """Return the place of an item in a list, appending a new one."""
    if item not in known:
        known.append(item)
    return known.index(item)


def gives_items(source: Source, functions: Functions) -> bool:
    """Whether a source may give numbers or several strings."""
    return result_kind(source.calls, functions) in (ITEMS, ANY)


def has_items(template: Template, plan: Plan, functions: Functions) -> bool:
    """Whether a cell may give numbers or several strings."""
    return any(gives_items(plan.sources[cell.source], functions) for cell in template.cells)


def _forms(template: Template, plan: Plan, functions: Functions) -> list[tuple[str, bool]]:
    """Return how names of a template begin, and whether more follows."""
    if not template.cells:
        return [(template.lead, False)]
    kinds = [result_kind(plan.sources[cell.source].calls, functions) for cell in template.cells]
    if len(kinds) == 1 and kinds[0] in (FLAG, ITEMS, ANY):
        return [(template.lead, False), (template.lead + template.joint, True)]
    return [(template.lead, True)]


def colliding(
    templates: Iterable[Template], plan: Plan, functions: Functions, names: Sequence[str]
) -> set[Template]:
    """Return the templates that may share a name with another one, or have a given name."""
    forms: list[tuple[str, bool, Template | None]] = [(name, False, None) for name in names]
    forms += [(*form, f) for f in templates for form in _forms(f, plan, functions)]
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
