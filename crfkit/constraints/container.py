"""Rules that hold together."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

from sklearn.base import BaseEstimator

from crfkit.constraints.base import Rule, Target
from crfkit.constraints.compiled import Compiled
from crfkit.constraints.plain import plain, read_plain
from crfkit.constraints.tag_scheme import TagScheme


@dataclass(eq=False, repr=False)
class Constraints(BaseEstimator):  # type: ignore[misc]
    """Rules about labelings, which hold together.

    As the parameter `constraints` of an estimator in all its answers, as that of a method in that
    one, too. In their place may stand a single rule, a list of rules, or the name of a tag scheme.

    Parameters
    ----------
    rules : list of Rule, default=()
        What is known of labelings.

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

    @classmethod
    def of(cls, *given: Any) -> list[Rule]:
        """Return the rules of what may be given as constraints; TypeError for anything else."""
        found: list[Rule] = []
        for item in given:
            if isinstance(item, Constraints):
                found += cls.of(*item.rules)
            elif isinstance(item, str):
                found.append(TagScheme(item))
            elif isinstance(item, Rule):
                found.append(item)
            elif isinstance(item, Iterable):
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
        return Compiled(rules, target()) if rules else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraints):
            return NotImplemented
        return list(self.rules) == list(other.rules)

    __hash__ = None  # type: ignore[assignment]

    def to_json(self) -> str:
        """Return the rules as JSON, a list of objects; TypeError if a label cannot be written.

        Each has the name of its class as ``"rule"``, and the parameters that are no defaults.
        Labels are strings or numbers; a set is ``{"any_of": [...]}``, `UNLABELED` is null.
        """
        items = [json.dumps(_written(rule), ensure_ascii=False) for rule in self.rules]
        return "[\n  " + ",\n  ".join(items) + "\n]\n" if items else "[]\n"

    @classmethod
    def from_json(cls, source: str | PathLike[str]) -> Self:
        """Return the rules of a JSON text, or of the file at a path; ValueError if it has none."""
        text = fspath(source)
        if not text.lstrip().startswith(("[", "{")):
            text = Path(text).read_text(encoding="utf-8")
        items = json.loads(text)
        items = items.get("rules") if isinstance(items, dict) else items
        if not isinstance(items, list):
            raise ValueError("constraints: the JSON must be a list of rules.")
        return cls([_read(item) for item in items])


def _written(rule: Rule) -> dict[str, Any]:
    """Return a rule as JSON holds it."""
    defaults = inspect.signature(type(rule)).parameters
    given = rule.get_params(deep=False).items()
    changed = {name: plain(value) for name, value in given if value is not defaults[name].default}
    return {"rule": type(rule).__name__} | changed


def _read(item: Any) -> Rule:
    """Return the rule that an object of JSON stands for."""
    from crfkit.constraints import RULES

    if not isinstance(item, dict) or item.get("rule") not in RULES:
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
    fields = {name: read_plain(value, kind.key) for name, value in item.items() if name != "rule"}
    found: Rule = kind(**fields)
    return found
