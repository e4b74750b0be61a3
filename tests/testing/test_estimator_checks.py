import contextlib

import pytest

from crfkit import CRFClassifier, MEMMClassifier, SemiMarkovCRF, TokenClassifier
from crfkit.testing import check_estimator, estimator_checks, parametrize_with_checks, yield_checks
from tests.estimators.checks import parametrize_variants
from tests.testing.broken import MUTANTS, VoteClassifier

VARIANTS = [
    CRFClassifier(),
    CRFClassifier(
        c1=0.05, c2=0.1, all_possible_states=True, all_possible_transitions=True, n_jobs=2
    ),
    CRFClassifier(boundary_weights=True, decoding="posterior"),
]


class Online(VoteClassifier):
    def __init__(self, *, smoothing=1.0, flag=False, random_state=None):
        super().__init__(smoothing=smoothing, flag=flag)
        self.random_state = random_state


@parametrize_variants(VARIANTS)
def test_crf_passes(estimator, check):
    check(estimator)


@parametrize_variants(
    [SemiMarkovCRF(), SemiMarkovCRF(max_length=3, outside="long", length="geometric", n_jobs=2)]
)
def test_a_model_of_segments_passes(estimator, check):
    check(estimator)


@parametrize_variants(
    [
        MEMMClassifier(boundary_weights=True, all_possible_transitions=True, n_jobs=2),
        TokenClassifier(c1=0.05, decoding="posterior"),
    ],
    reading=False,
)
def test_models_of_one_label_after_the_other_pass(estimator, check):
    check(estimator)


@parametrize_with_checks([VoteClassifier()])
def test_a_classifier_of_another_kind_passes(estimator, check):
    check(estimator)


def names(estimator):
    return [check.__name__ for check in estimator_checks(estimator)]


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        pytest.param(m, n, id=f"{m.__name__}-{n}")
        for m, found_by in MUTANTS.items()
        for n in found_by
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_broken_classifier_is_found(mutant, name):
    check = next(check for check in yield_checks(mutant()) if check.__name__ == name)
    with pytest.raises(Exception):  # noqa: B017 - a check may fail by any error of the mutant
        check(mutant())


def test_every_check_has_a_name_and_a_line_that_tells_the_property():
    checks = estimator_checks(CRFClassifier())
    assert len(set(names(CRFClassifier()))) == len(checks) >= 40
    for check in checks:
        assert check.__name__.startswith("check_")
        assert check.__doc__.endswith(".") and "\n" not in check.__doc__


def test_checks_of_what_an_estimator_does_not_offer_are_left_out():
    more, fewer = names(CRFClassifier()), names(VoteClassifier())
    assert set(more) - set(fewer) >= {"check_n_jobs", "check_warm_start"}
    assert not [name for name in fewer if "log_proba" in name]


def test_online_estimators_need_not_see_a_weight_as_repetition():
    assert "check_integer_weights_repeat_sequences" in names(VoteClassifier())
    assert "check_integer_weights_repeat_sequences" not in names(Online())
    assert "check_fit_twice_gives_the_same" in names(Online())


def test_checks_leave_the_estimator_alone():
    estimator = VoteClassifier()
    before = dict(vars(estimator))
    for check in yield_checks(estimator):
        with contextlib.suppress(Exception):  # what fails is told by the other tests
            check(estimator)
    assert vars(estimator) == before


def test_check_estimator_names_all_checks_that_fail(monkeypatch):
    def check_good(estimator):
        """It is good."""

    def check_bad(estimator):
        """It is bad."""
        raise ValueError("how bad")

    checks = (check_bad, check_good, check_bad)
    monkeypatch.setattr("crfkit.testing.yield_checks", lambda _: iter(checks))
    with pytest.raises(
        AssertionError, match="VoteClassifier.* fails check_bad, check_bad$"
    ) as info:
        check_estimator(VoteClassifier())
    assert str(info.value.__cause__) == "how bad"
    monkeypatch.setattr("crfkit.testing.yield_checks", lambda _: iter((check_good,)))
    check_estimator(VoteClassifier())


def test_ids_of_tests_name_the_estimator_and_the_check():
    mark = parametrize_with_checks([CRFClassifier(), CRFClassifier(c2=0.5)]).mark
    ids = [case.id for case in mark.args[1]]
    assert "CRFClassifier-check_fit_returns_self" in ids
    assert "CRFClassifier(c2=0.5)-check_fit_returns_self" in ids
    assert len(set(ids)) == len(ids)
