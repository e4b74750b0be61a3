"""Why a sequence has no labeling: a smallest part of the rules that nothing keeps to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crfkit._parallel import Chunk
from crfkit.constraints.base import Part, parts_of
from crfkit.constraints.compiled import Compiled
from crfkit.inference.base import FittedModel
from crfkit.structures import NoPathError


def why_infeasible(model: FittedModel, held: Compiled | None, error: NoPathError) -> str | None:
    """Return what to tell of a sequence that has no labeling; None if rules have no part in it.

    Named are rules that cannot hold together, of which each is needed (Junker 2004, QuickXplain);
    what is known of a sequence is taken apart into single labels, or spans.
    """
    if held is None:
        return None
    s, target = error.sequence, held.target
    alone = target.of_sequence(s)

    def fails(parts: list[Part]) -> bool:
        rules = Compiled([part.rule for part in parts], alone)
        whole = Chunk(0, alone.data.offsets)
        scores = model.model.scores(model.weights, alone.data, whole)
        try:
            structure, scores = rules.restrict(model.model.structure, scores)
            structure.argmax(scores)
        except NoPathError:
            return True
        return False

    if fails([]):
        return None
    parts = [part for rule in held.rules for part in parts_of(rule, s, target)]
    if not fails(parts):  # as of scores that are added up in another order
        return None
    needed = [part.shown for part in irreducible(parts, fails)]
    # Automata are read to the end, wherever it is that they cannot go on together.
    known = held.automata is None and error.position >= 0
    past = f": none gets past position {error.position}" if known else ""
    limits = ", by the limits of segments that the model was fitted with" * target.of_segments
    last = "Leave one of them out" if len(needed) > 1 else "Leave it out"
    return (
        f"sequence {s}: no labeling keeps to {' and '.join(needed)}{past}{limits}. {last}, or the "
        "sequence."
    )


def irreducible(parts: list[Part], fails: Callable[[list[Part]], bool]) -> list[Part]:
    """Return parts, in their order, that fail together, but not if one of them is left out.

    All of them fail, none does not; what fails also does with more.
    """

    def search(base: list[Part], more: bool, rest: list[Part]) -> list[Part]:
        if more and fails(base):
            return []
        if len(rest) == 1:
            return rest
        half = len(rest) // 2
        later = search(base + rest[:half], True, rest[half:])
        return search(base + later, bool(later), rest[:half]) + later

    return search([], False, parts)


def no_segmentation_message(model: Any, error: NoPathError, lengths: Any) -> str:
    """Return what to tell of a sequence that has no segmentation, whatever it is asked for."""
    length, allowed = int(lengths[error.sequence]), model.length_scores_ > -np.inf
    shortest = int(np.argmax(allowed.any(axis=1))) + 1
    if length < shortest:
        return (
            f"sequence {error.sequence}: it has {length} tokens, but by the min_length that "
            f"the model was fitted with, no segment has fewer than {shortest}. Leave the sequence "
            "out, or fit with a smaller min_length."
        )
    return (
        f"sequence {error.sequence}: no segmentation is allowed: none gets past position "
        f"{error.position}, by the min_length, max_length and forbidden steps that the model was "
        "fitted with. Fit with others, or leave the sequence out."
    )
