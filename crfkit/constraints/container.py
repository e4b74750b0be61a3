"""Rules that hold together."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

from sklearn.base import BaseEstimator

from crfkit._params import check_positive, check_whole
from crfkit.constraints.base import Rule, Target
from crfkit.constraints.compiled import Compiled
from crfkit.constraints.joint import USUAL, Budget
from crfkit.constraints.plain import plain, read_plain
from crfkit.constraints.tag_scheme import TagScheme
from crfkit.labels.schemes import get_scheme

# What can be iterated over, and yet is no list of rules that can be read again.
_NO_LISTS = (Iterator, Mapping, bytes)


@dataclass(eq=False, repr=False)
class Constraints(BaseEstimator):  # type: ignore[misc]
    """Rules about labelings, which hold together.

    As the parameter `constraints` of an estimator in all its answers, as that of a method in that
    one, too. In their place may stand a single rule, a list of rules, or the name of a tag scheme.

    Parameters
    ----------
    rules : list of Rule, default=()
        What is known of labelings.
    max_states : int, default=2000
        Of rules about whole sequences: up to so many pairs of a label and a state of automata,
        probabilities, samples and lists of labelings are computed, else refused. Up to so many (ten
        times as many, for labels of tokens) the best labels are found by automata, else by
        relaxation, or an integer program.
    time_limit : float, default=10.0
        Seconds that an integer program may take for a sequence, to which HiGHS keeps as well as it
        can: it looks at the clock between its steps. It may end with labels that are not
        proved to be the best ones: a warning tells, and `predict_with_bounds` tells which.

    Examples
    --------
    >>> from crfkit.constraints import AllowedAt, Constraints, TagScheme
    >>> known = Constraints([TagScheme("IOB2"), AllowedAt({0: ["O"]})])
    >>> known
    Constraints(rules=[TagScheme(scheme='IOB2'), AllowedAt(labels={0: ['O']})])
    >>> Constraints.from_json(known.to_json()) == known
    True
    """

    rules: Iterable[Rule] = ()
    max_states: int = USUAL.max_states
    time_limit: float = USUAL.time_limit

    @classmethod
    def of(cls, *given: Any) -> list[Rule]:
        """Return the rules of what may be given as constraints; TypeError for anything else."""
        found: list[Rule] = []
        for item in given:
            if isinstance(item, Constraints):
                found += cls.of(item.rules)
            elif isinstance(item, str):
                if item != "auto":
                    get_scheme(item)  # raises if there is none of the name
                found.append(TagScheme(item))
            elif isinstance(item, Rule):
                check_lasting(item)
                found.append(item)
            elif isinstance(item, Iterable) and not isinstance(item, _NO_LISTS):
                found += cls.of(*item)
            elif item is not None:
                raise TypeError(
                    f"constraints={item!r:.60} must be Constraints, a rule such as TagScheme(), a "
                    "list of rules, the name of a tag scheme, or None."
                )
        return found

    @classmethod
    def compiled(cls, target: Callable[[], Target], *given: Any) -> Compiled | None:
        """Return what is given for a model and data, None where there are no rules.

        What has been compiled before is returned as it is.
        """
        for item in given:
            if isinstance(item, Compiled):
                return item
        rules = cls.of(*given)
        return Compiled(rules, target(), _budget(given)) if rules else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraints):
            return NotImplemented
        ours, theirs = ((each.max_states, each.time_limit) for each in (self, other))
        return ours == theirs and self.of(self) == self.of(other)

    __hash__ = None  # type: ignore[assignment]

    def to_json(self) -> str:
        """Return the rules as JSON, a list of objects; TypeError if a label cannot be written.

        Each has the name of its class as ``"rule"``, and the parameters that are no defaults.
        Labels are strings or numbers; a set is ``{"any_of": [...]}``, `UNLABELED` is null. Where
        `max_states` or `time_limit` are no defaults, the list is `rules` of an object with these.
        """
        items = [json.dumps(_written(rule), ensure_ascii=False) for rule in self.of(self)]
        rules = "[\n  " + ",\n  ".join(items) + "\n]" if items else "[]"
        pairs = zip(Budget._fields, (self.max_states, self.time_limit), Budget(), strict=True)
        others = [
            f'"{name}": {json.dumps(value)}' for name, value, usual in pairs if value != usual
        ]
        if not others:
            return rules + "\n"
        return "{" + ", ".join([*others, f'"rules": {rules}']) + "}\n"

    @classmethod
    def from_json(cls, source: str | PathLike[str]) -> Self:
        """Return the rules of a JSON text, or of the file at a path; ValueError if it has none."""
        text = fspath(source)
        if not text.lstrip().startswith(("[", "{")):
            text = Path(text).read_text(encoding="utf-8")
        found = json.loads(text)
        found = {"rules": found} if isinstance(found, list) else found
        unknown = sorted(set(found) - {"rules", *Budget._fields}) if isinstance(found, dict) else []
        if not isinstance(found, dict) or not isinstance(found.get("rules"), list) or unknown:
            raise ValueError(
                "constraints: the JSON must be a list of rules, or an object with this list as "
                f"'rules', 'max_states' and 'time_limit'{', not ' * bool(unknown)}"
                f"{', '.join(map(repr, unknown))}."
            )
        return cls(**found | {"rules": [_read(item) for item in found["rules"]]})


def check_lasting(rule: Rule) -> None:
    """Raise TypeError if a parameter of a rule, or a part of it, can be read only once."""
    for name, value in rule.get_params(deep=False).items():
        rows = value.values() if isinstance(value, Mapping) else value
        rows = rows if isinstance(value, (list, tuple, Mapping)) else ()
        if any(isinstance(each, Iterator) for each in (value, *rows)):
            raise TypeError(
                f"{type(rule).__name__}: {name} has an iterator, which the next question would "
                "find used up: give a list."
            )


def _budget(given: Iterable[Any]) -> Budget:
    """Return the largest budget of what may be given as constraints."""
    found = [item for item in given if isinstance(item, Constraints)]
    for item in found:
        check_whole("max_states", item.max_states, 1)
        check_positive("time_limit", item.time_limit)
    if not found:
        return USUAL
    states, seconds = zip(*((item.max_states, item.time_limit) for item in found), strict=True)
    return Budget(int(max(states)), float(max(seconds)))


def _written(rule: Rule) -> dict[str, Any]:
    """Return a rule as JSON holds it."""
    defaults = inspect.signature(type(rule)).parameters
    given = rule.get_params(deep=False).items()
    changed = {name: plain(value) for name, value in given if value is not defaults[name].default}
    return {"rule": type(rule).__name__} | changed


def _read(item: Any) -> Rule:
    """Return the rule that an object of JSON stands for."""
    from crfkit.constraints import RULES

    name = item.get("rule") if isinstance(item, dict) else None
    if not isinstance(name, str) or name not in RULES:
        raise ValueError(
            f"constraints: {item!r:.80} is no rule; one is an object such as "
            f'{{"rule": "TagScheme"}}, and known are {sorted(RULES)}.'
        )
    kind = RULES[item["rule"]]
    known = set(inspect.signature(kind).parameters)
    unknown = sorted(set(item) - known - {"rule"})
    if unknown:
        raise ValueError(
            f"constraints: {item['rule']} has no {unknown[0]!r}; its parameters are "
            f"{sorted(known)}."
        )
    given = {name: value for name, value in item.items() if name != "rule"}
    try:
        found: Rule = kind(**{name: read_plain(value, kind.key) for name, value in given.items()})
    except (TypeError, ValueError) as error:
        raise ValueError(f"constraints: {item!r:.80} cannot be read: {error}") from error
    return found
