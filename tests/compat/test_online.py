"""CRFsuite's online algorithms: the very weights and losses of python-crfsuite."""

import ctypes
import sys
from itertools import islice, product

import numpy as np
import pytest

from crfkit.compat import pycrfsuite as ours
from crfkit.compat import sklearn_crfsuite
from crfkit.compat._options import CRFsuiteOrder, c_random
from crfkit.compat.crfsuite import load_crfsuite

theirs = pytest.importorskip("pycrfsuite")

PA = [
    {"type": kind, "c": c, "error_sensitive": sensitive, "averaging": averaging}
    for kind, c in product((0, 1, 2), (1.0, 0.05))
    for sensitive, averaging in product((True, False), (True, False))
]  # fmt: skip
CASES = [
    ("ap", {}),
    *(("pa", params) for params in PA),
    *(("arow", {"variance": v, "gamma": g}) for v, g in product((1.0, 2.0), (0.3, 1.0, 10.0))),
]
ALGORITHMS = ("ap", "pa", "arow")


def new_process():
    """Have CRFsuite shuffle as in a new process."""
    if not sys.platform.startswith("linux"):
        pytest.skip("shuffles as CRFsuite does on Linux")
    ctypes.CDLL(None).srand(1)


def sequences(count, seed, numbers=True):
    """Sequences whose labels depend on nothing, so that there are mistakes in every pass."""
    rng = np.random.default_rng(seed)

    def token():
        names = [f"w{rng.integers(6)}", f"v{rng.integers(4)}", "b"]
        return {name: float(rng.normal()) for name in names} if numbers else names

    X = [[token() for _ in range(rng.integers(1, 7))] for _ in range(count)]
    return X, [[str(rng.choice(list("CABD"))) for _ in tokens] for tokens in X]


def trained(module, data, algorithm, params, path, **train):
    trainer = module.Trainer(algorithm, verbose=False)
    # All pairs that occur, also those whose values add up to less than 0.
    trainer.set_params({"feature.minfreq": -1e9} | params)
    for number, (tokens, labels) in enumerate(zip(*data, strict=True)):
        trainer.append(tokens, labels, number % 3)
    trainer.train(str(path), **train)
    return trainer.logparser


def weights(path):
    model = load_crfsuite(str(path))
    return dict(model.state_features_) | dict(model.transition_features_)


def assert_same(data, algorithm, params, folder, **train):
    """Compare weights, by CRFsuite's files of full precision, and logs, of six digits."""
    logs, models = [], []
    for module in (ours, theirs):
        new_process()
        logs.append(trained(module, data, algorithm, params, folder / "m.crfsuite", **train))
        models.append(weights(folder / "m.crfsuite"))
    for key in models[0].keys() | models[1].keys():
        found, expected = (model.get(key, 0.0) for model in models)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12), key
    entries = [log.iterations for log in logs]
    assert len(entries[0]) == len(entries[1])
    for mine, reference in zip(*entries, strict=True):
        assert set(mine) == set(reference)
        assert mine["loss"] == pytest.approx(reference["loss"], abs=1e-6)
        # With averages, that of "pa" is the norm of weights that are not the model's.
        if algorithm != "pa" or not params.get("averaging", True):
            assert mine["feature_norm"] == pytest.approx(reference["feature_norm"], abs=1e-6)
    return entries


@pytest.mark.parametrize(("algorithm", "params"), CASES)
def test_weights_and_losses_are_those_of_crfsuite(algorithm, params, tmp_path):
    # Of values that are all 1, equal scores would be decided by rounding.
    data = sequences(9, seed=len(str(params)))
    assert_same(data, algorithm, params | {"max_iterations": 4}, tmp_path)


@pytest.mark.parametrize("seed", range(5))
def test_equal_scores_are_decided_as_by_crfsuite(seed, tmp_path):
    # Weights of the perceptron are whole numbers, so that many scores are equal.
    assert_same(sequences(9, seed, numbers=False), "ap", {"max_iterations": 4}, tmp_path)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_default_parameters_give_the_weights_of_crfsuite(algorithm, tmp_path):
    assert_same(sequences(5, 3), algorithm, {}, tmp_path)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_sequence_gives_the_weights_of_crfsuite(algorithm, tmp_path):
    params = {"averaging": False} if algorithm == "pa" else {}
    for seed in range(5):
        assert_same(sequences(1, seed), algorithm, params, tmp_path)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("epsilon", [0.0, 0.499, 0.5, 1.0, 1.5])
def test_passes_end_by_the_rule_of_crfsuite(algorithm, epsilon, tmp_path):
    params = {"epsilon": epsilon, "max_iterations": 6}
    # One mistake of two labels, of the loss 0.5 or 1, then none.
    assert_same(([[["a"], ["b"]]], [["A", "B"]]), algorithm, params, tmp_path)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.filterwarnings("ignore:max_iter=0")
def test_no_pass_gives_no_weights(algorithm, tmp_path):
    assert assert_same(sequences(2, 9), algorithm, {"max_iterations": 0}, tmp_path) == [[], []]
    assert weights(tmp_path / "m.crfsuite") == {}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_passes_without_a_mistake_are_made_too(algorithm, tmp_path):
    params = {"averaging": False} if algorithm == "pa" else {}
    easy = ([[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]])
    entries = assert_same(easy, algorithm, params | {"max_iterations": 30}, tmp_path)[0]
    assert entries[-1]["loss"] == 0.0
    assert (len(entries) == 30) == (algorithm != "arow")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_without_weights_nothing_is_learned(algorithm, tmp_path):
    params = {"feature.minfreq": 100.0, "max_iterations": 2}
    entries = assert_same(sequences(3, 2), algorithm, params, tmp_path)
    assert entries[0][-1]["feature_norm"] == 0.0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_transitions_can_have_weights(algorithm, tmp_path):
    params = {"feature.possible_transitions": True, "max_iterations": 3}
    assert_same(sequences(6, 4), algorithm, params, tmp_path)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_held_out_sequences_are_scored_after_each_pass(algorithm, tmp_path):
    data = sequences(20, 5)
    for mine, reference in zip(
        *assert_same(data, algorithm, {"max_iterations": 5}, tmp_path, holdout=1), strict=True
    ):
        for name in ("item_accuracy", "instance_accuracy"):
            assert mine[name] == reference[name]
        assert mine["avg_f1"] == pytest.approx(reference["avg_f1"], abs=1e-6)


@pytest.mark.parametrize(
    ("alias", "name"), [("averaged-perceptron", "ap"), ("Passive-Aggressive", "pa")]
)
def test_algorithms_have_other_names(alias, name):
    assert ours.Trainer(alias).get_params() == ours.Trainer(name).get_params()


@pytest.mark.parametrize(
    "params",
    [
        {"algorithm": "ap"},
        {"algorithm": "pa", "pa_type": 2, "c": 0.3, "error_sensitive": False, "averaging": False},
        {"algorithm": "arow", "variance": 2.0, "gamma": 0.5, "epsilon": 0.01},
    ],
)
def test_the_estimator_fits_and_predicts_as_sklearn_crfsuite(params):
    reference = pytest.importorskip("sklearn_crfsuite")
    X, y = sequences(15, 6)
    models = []
    for module in (sklearn_crfsuite, reference):
        new_process()
        models.append(module.CRF(min_freq=-1e9, max_iterations=20, **params).fit(X, y))
    mine, theirs_ = models
    assert mine.classes_ == theirs_.classes_
    assert list(mine.predict(X)) == theirs_.predict(X).tolist()
    for found, expected in zip(
        mine.predict_marginals(X), theirs_.predict_marginals(X), strict=True
    ):
        for row, other in zip(found, expected, strict=True):
            assert row == pytest.approx(other, abs=1e-6)
    assert len(mine.training_log_.iterations) == len(theirs_.training_log_.iterations)


def test_the_same_data_give_the_same_weights():
    X, y = sequences(15, 7)
    first, second = (sklearn_crfsuite.CRF("ap", max_iterations=5).fit(X, y) for _ in range(2))
    assert dict(first.state_features_) == dict(second.state_features_)
    for jobs in (1, 2):
        again = sklearn_crfsuite.CRF("ap", max_iterations=5, n_jobs=jobs).fit(X, y)
        assert dict(again.state_features_) == dict(first.state_features_)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"algorithm": "pa", "pa_type": 3}, "pa_type=3 must be 0"),
        ({"algorithm": "pa", "c": 0.0}, "c=0.0 must be above 0"),
        ({"algorithm": "arow", "gamma": 0}, "gamma=0 must be above 0"),
        ({"algorithm": "arow", "variance": -1.0}, "variance=-1.0 must be above 0"),
        ({"algorithm": "ap", "epsilon": -0.1}, "epsilon=-0.1 must be at least 0"),
        ({"algorithm": "ap", "c2": 1.0}, "has no parameter 'c2'"),
        ({"algorithm": "ap", "averaging": True}, "has no parameter 'averaging'"),
        ({"algorithm": "pa", "error_sensitive": 2}, "error_sensitive=2 must be True, False"),
    ],
)
def test_wrong_parameters_are_errors_of_fit(params, message):
    with pytest.raises(ValueError, match=message):
        sklearn_crfsuite.CRF(**params).fit(*sequences(2, 8))


def test_random_numbers_are_those_of_the_c_library():
    assert list(islice(c_random(), 3)) == [1804289383, 846930886, 1681692777]
    if sys.platform.startswith("linux"):
        library = ctypes.CDLL(None)
        for seed in (1, 5, 2**31 - 2):
            library.srand(seed)
            assert list(islice(c_random(seed), 500)) == [library.rand() for _ in range(500)]


def test_an_order_is_shuffled_on_from_pass_to_pass():
    order, again = np.arange(50), np.arange(50)
    random, other = CRFsuiteOrder(), CRFsuiteOrder()
    random.shuffle(order)
    other.shuffle(again)
    np.testing.assert_array_equal(order, again)
    assert sorted(order) == list(range(50))
    first = order.copy()
    random.shuffle(order)
    assert list(order) != list(first)
