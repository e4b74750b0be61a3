"""Which labels tokens with an attribute may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit._types import IntArray
from crfkit.constraints.base import Limits, LocalRule, Target


@dataclass(eq=False, repr=False)
class AllowedWith(LocalRule):
    """Tokens that have an attribute may only have some labels, such as words of a lexicon.

    Parameters
    ----------
    labels : dict of str to list of labels
        Names of attributes, as in `feature_names_in_` of the model, and the labels of which each
        token that has it (with a value that is not 0) has one. Where labels are tags, the type of
        spans (``"PER"``) stands for all its tags.

    Examples
    --------
    >>> from crfkit.constraints import AllowedWith
    >>> AllowedWith({"city_list": ["CITY", "O"]})
    AllowedWith(labels={'city_list': ['CITY', 'O']})
    """

    labels: Mapping[str, Any]

    def limit(self, target: Target, limits: Limits) -> None:
        """Leave out all other labels of the tokens."""
        if not isinstance(self.labels, Mapping):
            raise TypeError(f"AllowedWith: {self.labels!r:.60} is no dict {{attribute: labels}}.")
        found = target.tokens_with_each(list(self.labels), "AllowedWith")
        alike: dict[bytes, list[IntArray]] = {}  # words of one list are narrowed down together
        for tokens, names in zip(found, self.labels.values(), strict=True):
            codes = target.codes_named(names, "AllowedWith")
            alike.setdefault(codes.tobytes(), []).append(tokens)
        for mask, parts in alike.items():
            limits.allow(np.concatenate(parts), np.frombuffer(mask, bool))
