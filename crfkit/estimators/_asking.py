"""Questions to fitted models about chunks of data, and what the answers are held to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from crfkit._parallel import ThreadMap
from crfkit._types import Potentials
from crfkit._warnings import warn_user
from crfkit.data import PackedSequences
from crfkit.inference.base import Answer
from crfkit.structures import NoPathError, Structure

if TYPE_CHECKING:
    from crfkit.constraints.compiled import Compiled


def ask(
    self: Any,
    data: PackedSequences,
    question: Callable[[Structure, Potentials], Answer],
    *,
    share: int | None = None,
    constraints: Any = None,
) -> list[Answer]:
    """Return the answers to a question about each chunk; see :class:`FittedModel`.

    They keep to the parameter `constraints` of the estimator, and to those that are given; what
    `held` has returned may be given in place of both.
    """
    held, model = self._held(constraints, data), self._model_for(data)
    try:
        with ThreadMap(self.n_jobs) as threads:
            answers: list[Answer] = model.ask(data, question, threads, share, held)
    except NoPathError as error:
        from crfkit.inference.infeasible import no_segmentation_message, why_infeasible

        why = why_infeasible(model, held, error)
        if why is None and "length_scores_" in vars(self):
            why = no_segmentation_message(self, error, data.lengths)
        if why is None:
            raise
        raise ValueError(why) from error
    if held is not None:
        held.warn_of_gaps()
    _warn_of_gaps(model.model.structure)
    return answers


def _warn_of_gaps(structure: Structure) -> None:
    """Warn, once, if labelings that were found since the last time may not be the best ones."""
    if structure.gaps:
        warn_user(
            f"labels of {len(structure.gaps)} graphs are not proved to be the best ones: scores "
            f"may be better by {max(structure.gaps):.3g} at most. predict_with_bounds tells which; "
            "search='exact' or 'milp' may prove it, any search that is named does not warn."
        )
        structure.gaps.clear()


def held(self: Any, constraints: Any, data: PackedSequences) -> Compiled | None:
    """Return what answers about some data are held to; None where there is nothing."""
    if constraints is None and self.constraints is None:
        return None
    from crfkit.constraints import Constraints, Target  # rules take their time to import

    def target() -> Target:
        fitted = vars(self)
        names, places = fitted.get("_feature_names"), fitted.setdefault("_attribute_places", {})
        return Target(data, self, self._fitted_labels(), names, places)

    return Constraints.compiled(target, self.constraints, constraints)
