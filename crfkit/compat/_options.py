"""CRFsuite's algorithms, their parameters, the solvers they stand for, its order of sequences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import numpy as np

from crfkit._params import check_option
from crfkit.solvers import LBFGS, OWLQN, SGD
from crfkit.solvers.online.passes import OnlineSolver
from crfkit.solvers.online.updates import AROW, PassiveAggressive, Perceptron

Value = float | int | bool | str

UNLIMITED = 2**31 - 1  # CRFsuite's default number of iterations of L-BFGS
LINE_SEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")
_FEATURES: dict[str, Value] = {
    "feature.minfreq": 0.0,
    "feature.possible_states": False,
    "feature.possible_transitions": False,
}
_PASSES: dict[str, Value] = {"max_iterations": 100, "epsilon": 0.0}
#: The parameters of each algorithm, by python-crfsuite's names, with their defaults.
PARAMETERS: dict[str, dict[str, Value]] = {
    "lbfgs": _FEATURES
    | {
        "c1": 0.0, "c2": 1.0, "max_iterations": UNLIMITED, "num_memories": 6, "epsilon": 1e-5,
        "period": 10, "delta": 1e-5, "linesearch": "MoreThuente", "max_linesearch": 20,
    },
    "l2sgd": _FEATURES
    | {
        "c2": 1.0, "max_iterations": 1000, "period": 10, "delta": 1e-6, "calibration.eta": 0.1,
        "calibration.rate": 2.0, "calibration.samples": 1000.0, "calibration.candidates": 10,
        "calibration.max_trials": 20,
    },
    "ap": _FEATURES | _PASSES,
    "pa": _FEATURES
    | {"type": 1, "c": 1.0, "error_sensitive": True, "averaging": True} | _PASSES,
    "arow": _FEATURES | {"variance": 1.0, "gamma": 1.0} | _PASSES,
}  # fmt: skip
#: Other names of algorithms.
NAMES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}
ONLINE = ("ap", "pa", "arow")
PA_TYPES = ("PA", "PA-I", "PA-II")
ALIASES = {"stop": "period"}
# Of all other numbers 0.
_LEAST = {"num_memories": 1, "max_linesearch": 1, "feature.minfreq": -math.inf}
_POSITIVE = ("c", "variance", "gamma")
# Of the generator of random numbers, which throws the first ones away.
DEGREE, LAG = 31, 3
WARM_UP = 10 * DEGREE


class Options:
    """An algorithm and its parameters; ValueError if there is no such algorithm."""

    def __init__(self, algorithm: str = "lbfgs") -> None:
        name = NAMES.get(str(algorithm).lower(), str(algorithm).lower())
        check_option("algorithm", name, PARAMETERS)
        self.algorithm = name
        self.values = dict(PARAMETERS[name])
        self._given: set[str] = set()

    def set(self, name: str, value: Any, shown: str | None = None) -> None:
        """Set a parameter, called `shown` in messages; ValueError if it cannot have the value."""
        name = ALIASES.get(name, name)
        shown = shown or name
        if name not in self.values:
            raise ValueError(
                f"algorithm={self.algorithm!r} has no parameter {shown!r}. It has "
                f"{', '.join(self.values)}."
            )
        chosen = _cast(shown, value, PARAMETERS[self.algorithm][name])
        if isinstance(chosen, str):
            check_option(shown, chosen, LINE_SEARCHES)
        elif name in _POSITIVE and chosen <= 0:
            raise ValueError(f"{shown}={value!r} must be above 0.")
        elif name == "type" and chosen not in range(len(PA_TYPES)):
            raise ValueError(f"{shown}={value!r} must be 0 (PA), 1 (PA-I) or 2 (PA-II).")
        elif chosen < (least := _LEAST.get(name, 0)):
            raise ValueError(f"{shown}={value!r} must be at least {least}.")
        self.values[name] = chosen
        self._given.add(name)

    @property
    def is_online(self) -> bool:
        """Whether the algorithm makes passes of updates, and minimizes nothing."""
        return self.algorithm in ONLINE

    def is_enough(self, loss: float) -> bool:
        """Return whether an online algorithm ends after a pass of this mean loss a sequence."""
        limit = float(self.values["epsilon"])
        return loss <= limit if self.algorithm == "arow" else loss < limit

    def solver(self) -> LBFGS | SGD | OnlineSolver:
        """Return the solver, with stopping rules as CRFsuite's; online, the rule is `is_enough`."""
        values = self.values
        if self.is_online:
            averaged = values.get("averaging", self.algorithm == "ap")
            # No loss is below tol=0, so that also passes without a mistake are made.
            return OnlineSolver(
                self._rule(), averaging="average" if averaged else None, tol=0.0,
                max_iter=int(values["max_iterations"]), random_state=CRFsuiteOrder(),
            )  # fmt: skip
        rules: dict[str, Any] = {
            "max_iter": int(values["max_iterations"]),
            "tol": float(values["delta"]),
            "period": int(values["period"]) or UNLIMITED,  # 0 turns this test off
        }
        if self.algorithm == "l2sgd":
            solver = SGD(**rules)
            solver.has_to_verify = False  # CRFsuite asks for no more than its rule
            return solver
        return (OWLQN if values["c1"] else LBFGS)(
            **rules,
            # As many as pay, where they are not asked for.
            memory=int(values["num_memories"]) if "num_memories" in self._given else None,
            gtol=float(values["epsilon"]),
            max_line_search=int(values["max_linesearch"]),
        )

    def _rule(self) -> Perceptron | PassiveAggressive | AROW:
        """Return the update rule of an online algorithm."""
        values = self.values
        if self.algorithm == "ap":
            return Perceptron()
        if self.algorithm == "arow":
            return AROW(variance=float(values["variance"]), gamma=float(values["gamma"]))
        return PassiveAggressive(
            variant=PA_TYPES[int(values["type"])],
            C=float(values["c"]),
            error_sensitive=bool(values["error_sensitive"]),
        )


def _cast(name: str, value: Any, default: Value) -> Value:
    """Return a value, which may be a string, as the type of the default."""
    kind = type(default)
    try:
        if kind is str:
            return str(value)
        number = float(value)
        if kind is float and math.isfinite(number):
            return number
        if kind is not float and number == int(number) and (kind is int or number in (0, 1)):
            return kind(number)
    except (TypeError, OverflowError, ValueError):
        pass  # told below, as any other value that does not fit
    wanted = {float: "a finite number", int: "a whole number", bool: "True, False, 1 or 0"}[kind]
    raise ValueError(f"{name}={value!r} must be {wanted}.")


def c_random(seed: int = 1) -> Iterator[int]:
    """Yield the numbers of the C library's ``rand`` on Linux, below 2**31.

    The additive feedback generator ``r[i] = r[i - 3] + r[i - 31] mod 2**32`` of Knuth (The Art of
    Computer Programming, volume 2, section 3.2.2), with the lowest bit left out. Seed 1 is that of
    a program that sets none, as CRFsuite.
    """
    state = [seed]
    while len(state) < DEGREE:
        state.append(16807 * state[-1] % (2**31 - 1))
    return islice(_feedback(state), WARM_UP, None)


def _feedback(state: list[int]) -> Iterator[int]:
    """Yield the numbers that follow; each replaces the one of 31 steps ago."""
    for step in count(LAG):
        at = step % DEGREE
        state[at] = (state[at] + state[at - LAG]) & 0xFFFFFFFF
        yield state[at] >> 1


class CRFsuiteOrder(np.random.RandomState):
    """A random state that shuffles as CRFsuite does: the same way from its making on."""

    def __init__(self) -> None:
        super().__init__(0)
        self._numbers = c_random()

    def shuffle(self, x: Any) -> None:
        """Exchange each entry, one after the other, with one chosen from all of them, in place."""
        order, size = x.tolist(), len(x)
        for here, number in enumerate(islice(self._numbers, size)):
            there = number % size
            order[here], order[there] = order[there], order[here]
        x[:] = order
