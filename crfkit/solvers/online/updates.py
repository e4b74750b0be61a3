"""How far the weights move after a mistake: update rules of online learning."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from sklearn.base import BaseEstimator

from crfkit._params import check_flag, check_method, check_option, check_positive, check_whole
from crfkit.kernels.solvers.online import ONE, ROOT, WHOLE, UpdateCoefficients

VARIANTS = ("PA", "PA-I", "PA-II")


class UpdateRule(Protocol):
    """The length of the step after a mistake."""

    def coefficients(self) -> UpdateCoefficients:
        """Return the coefficients; ValueError or TypeError if a parameter is wrong."""


@dataclass(kw_only=True, eq=False, repr=False)
class Perceptron(BaseEstimator):  # type: ignore[misc]
    """All steps are of one length (Collins 2002).

    After a mistake, ``w += learning_rate delta``, where ``delta`` is the features of the true minus
    those of the predicted labels. Without a cost, and from weights of 0, the rate changes no
    prediction, but for rounding.

    Parameters
    ----------
    learning_rate : float, default=1.0
        Above 0.

    Examples
    --------
    >>> from crfkit import StructuredPerceptron
    >>> from crfkit.solvers import Perceptron
    >>> StructuredPerceptron(update=Perceptron(learning_rate=0.1))
    StructuredPerceptron(update=Perceptron(learning_rate=0.1))
    """

    learning_rate: float = 1.0

    def coefficients(self) -> UpdateCoefficients:
        """Return the coefficients of the rule."""
        check_positive("learning_rate", self.learning_rate)
        return UpdateCoefficients(rate=float(self.learning_rate))


@dataclass(kw_only=True, eq=False, repr=False)
class PassiveAggressive(BaseEstimator):  # type: ignore[misc]
    """The shortest step after which the true labels win by a margin (Crammer et al. 2006).

    The loss of a mistake is by how much the predicted labels score above the true ones, plus a
    cost. ``w += length delta``, with a length of ``loss / |delta|**2`` (PA), at most `C` of it
    (PA-I), or ``loss / (|delta|**2 + 1 / (2 C))`` (PA-II).

    Parameters
    ----------
    variant : {"PA", "PA-I", "PA-II"}, default="PA-I"
        Which length; "PA" follows every outlier.
    C : float, default=1.0
        Aggressiveness, above 0; not read by "PA".
    error_sensitive : bool, default=True
        Whether the cost is the square root of the number of wrong labels, as in CRFsuite, or 1.
    """

    variant: str = "PA-I"
    C: float = 1.0
    error_sensitive: bool = True

    def coefficients(self) -> UpdateCoefficients:
        """Return the coefficients of the rule."""
        check_option("variant", self.variant, VARIANTS)
        check_flag("error_sensitive", self.error_sensitive)
        check_positive("C", self.C)
        pays = ROOT if self.error_sensitive else ONE
        cap = float(self.C) if self.variant == "PA-I" else math.inf
        extra = 0.5 / float(self.C) if self.variant == "PA-II" else 0.0
        return UpdateCoefficients(cap=cap, extra=extra, pays=pays)


@dataclass(kw_only=True, eq=False, repr=False)
class AROW(BaseEstimator):  # type: ignore[misc]
    """Adaptive regularization of weights (Crammer, Kulesza and Dredze 2009).

    Each weight has a variance, which is the smaller the more often it was moved: it then moves
    less. With the loss that :class:`PassiveAggressive` has, but the number of wrong labels as its
    cost, ``w += length variance delta``, ``length = loss / (gamma + sum variance delta**2)``, and
    ``1 / variance += delta**2 / gamma``.

    Parameters
    ----------
    variance : float, default=1.0
        That of all weights at the start, above 0.
    gamma : float, default=1.0
        Above 0; a larger one makes steps shorter, and variances fall more slowly.
    """

    variance: float = 1.0
    gamma: float = 1.0

    def coefficients(self) -> UpdateCoefficients:
        """Return the coefficients of the rule."""
        check_positive("variance", self.variance)
        check_positive("gamma", self.gamma)
        extra, variance = float(self.gamma), float(self.variance)
        return UpdateCoefficients(extra=extra, variance=variance, pays=WHOLE)


@dataclass(kw_only=True, eq=False, repr=False)
class MIRA(BaseEstimator):  # type: ignore[misc]
    """The margin infused relaxed algorithm (Crammer and Singer 2003; McDonald et al. 2005).

    The shortest step after which the true labels score above each of the `n_best` best labelings
    by the number of labels in which they differ, with multipliers of at most `C`. One labeling has
    a closed form, that of CRF++; several are fitted by the method of Hildreth (1957).

    Parameters
    ----------
    C : float, default=1.0
        The largest multiplier, above 0.
    n_best : int, default=1
        Labelings; more than one needs a chain, and is not compiled as a whole.
    """

    C: float = 1.0
    n_best: int = 1

    def coefficients(self) -> UpdateCoefficients:
        """Return the coefficients of the rule."""
        check_positive("C", self.C)
        check_whole("n_best", self.n_best, 1)
        return UpdateCoefficients(cap=float(self.C), pays=WHOLE, n_best=int(self.n_best))


UPDATES: dict[str, Any] = {
    "perceptron": Perceptron(),
    "pa": PassiveAggressive(variant="PA"),
    "pa1": PassiveAggressive(),
    "pa2": PassiveAggressive(variant="PA-II"),
    "arow": AROW(),
    "mira": MIRA(),
}


def find_coefficients(update: Any) -> UpdateCoefficients:
    """Return the coefficients of an update rule, given by its name or as an object."""
    if isinstance(update, str):
        check_option("update", update, UPDATES)
        update = UPDATES[update]
    check_method("update", update, "coefficients", f"one of {sorted(UPDATES)}")
    found = update.coefficients()
    try:
        *numbers, pays, n_best = found
        rate, cap, extra, variance = map(float, numbers)
        return UpdateCoefficients(rate, cap, extra, variance, int(pays), int(n_best))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{type(update).__name__}.coefficients() returned {found!r:.60}; it must return a "
            "crfkit.solvers.online.UpdateCoefficients."
        ) from error
