"""The checks of estimators, of several instances of one class."""

import pytest

from crfkit.testing import parametrize_with_checks

# What features and labels are read from: their forms, and what is refused of them.
READING = (
    "labels_", "_layouts", "bad_values", "formats", "label_containers", "weight_containers",
    "arrays", "matrices", "strings", "two_dim", "read_only_input",
)  # fmt: skip


def is_of_reading(check):
    """Whether a check is about how features and labels are read, which no parameter changes."""
    return any(part in check.__name__ for part in READING)


def parametrize_variants(estimators):
    """Run all checks on the first of some instances of a class, those of reading on it alone."""
    mark = parametrize_with_checks(estimators).mark
    cases = [
        case
        for case in mark.args[1]
        if case.values[0] is estimators[0] or not is_of_reading(case.values[1])
    ]
    return pytest.mark.parametrize(mark.args[0], cases)
