"""The checks of estimators, of several instances of one class."""

import pytest

from crfkit.testing import parametrize_with_checks
from tests.sampling import WHOLE

# What features and labels are read from: their forms, and what is refused of them.
READING = (
    "labels_", "_layouts", "bad_values", "formats", "label_containers", "weight_containers",
    "arrays", "matrices", "strings", "two_dim", "read_only_input",
)  # fmt: skip


def is_of_reading(check):
    """Whether a check is about how features and labels are read, which no parameter changes."""
    return any(part in check.__name__ for part in READING)


def parametrize_variants(estimators, reading=True):
    """Deal the checks out among instances of a class: each is run on one of them.

    All of them are, on all instances, where ``CRFKIT_PROBLEMS`` asks for more than usual. Those of
    reading are left out if the class reads as another one does, which is checked.
    """
    cases = parametrize_with_checks(estimators).mark.args[1]
    names = list(dict.fromkeys(case.values[1].__name__ for case in cases))
    if not WHOLE:
        turns = {name: i % len(estimators) for i, name in enumerate(names)}
        offered = {(id(case.values[0]), case.values[1].__name__) for case in cases}
        cases = [case for case in cases if _is_dealt(case, estimators, turns, offered)]
    if not reading:
        cases = [case for case in cases if not is_of_reading(case.values[1])]
    return pytest.mark.parametrize(("estimator", "check"), cases)


def _is_dealt(case, estimators, turns, offered):
    """Whether it is this instance's turn, or that of one to which the check does not apply."""
    estimator, check = case.values
    turn = turns[check.__name__]
    order = [*estimators[turn:], *estimators[:turn]]
    takes = [one for one in order if (id(one), check.__name__) in offered]
    return takes[0] is estimator
