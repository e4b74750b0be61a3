"""What happens on bad input: the table is run by the tests, and printed by `main`."""

import re
import warnings
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from crfkit import (
    CRFClassifier,
    HMMClassifier,
    PackedSequences,
    SemiMarkovCRF,
    SequenceVectorizer,
    StructuredPerceptron,
)
from crfkit.losses import LogLoss
from crfkit.structures import Chain, ChainPotentials
from tests.oracles import evaluate

X = [[{"w": "a"}, {"w": "b"}], [{"w": "a"}], [{"w": "b"}, {"w": "b"}, {"w": "a"}]]
y = [["A", "B"], ["A"], ["B", "B", "A"]]
ARRAYS = [np.eye(2), np.ones((1, 2)), np.arange(6.0).reshape(3, 2)]


class Case(NamedTuple):
    """A bad input: its name, what triggers it, the error, and what the message has to say."""

    name: str
    call: object
    error: type
    says: tuple


def fit(X=X, y=y, weight=None, **parameters):
    return CRFClassifier(**parameters).fit(X, y, sample_weight=weight)


@cache
def model_of_dicts():
    return fit()


@cache
def model_of_arrays():
    return fit(ARRAYS)


def with_token(token):
    """Return X with another token at sequence 2, position 1."""
    return [*X[:2], [X[2][0], token, X[2][2]]]


def with_array(array):
    """Return the arrays with another one as sequence 2."""
    return [*ARRAYS[:2], array]


def with_label(label):
    """Return y with another label at sequence 2, position 1."""
    return [*y[:2], ["B", label, "A"]]


def with_value(value, convert=np.asarray):
    """Return the arrays with another value at sequence 2, position 1, feature 0."""
    array = ARRAYS[2].copy()
    array[1, 0] = value
    return [convert(item) for item in with_array(array)]


def packed(**arguments):
    return PackedSequences(dense=np.eye(3), **arguments)


def frame(**columns):
    return pd.DataFrame({"sentence": [0, 0, 1], **columns})


def scores(unary=0.0, pair=0.0):
    """Return the scores of two sequences of two labels; those of position 1 are given."""
    table = np.zeros((4, 2))
    table[3] = unary
    return ChainPotentials.of(table, np.full((1, 2, 2), pair), np.array([0, 2, 4]))


def loss(given, labels, weight):
    codes = np.array(labels, np.int32)
    return evaluate(LogLoss(), Chain(), given, codes, np.array(weight))


PLACE = ("sequence 2, position 1",)
LISTS = ("must be a list of sequences",)
FINITE = ("must be finite", "Impute")

VALUES = [
    Case("NaN in a dict", lambda: fit(with_token({"w": np.nan})), ValueError,
         (*PLACE, "feature 'w'", "nan", *FINITE)),
    Case("inf in a dict", lambda: fit(with_token({"w": np.inf})), ValueError,
         (*PLACE, "feature 'w'", "inf", *FINITE)),
    Case("NaN in a dict, predict", lambda: model_of_dicts().predict(with_token({"w": np.nan})),
         ValueError, (*PLACE, "feature 'w'", "nan", *FINITE)),
    Case("an integer too large for a float", lambda: fit(with_token({"w": 10**400})), ValueError,
         (*PLACE, "feature 'w'", "finite")),
    Case("NaN in an array", lambda: fit(with_value(np.nan)), ValueError,
         (*PLACE, "feature 0", "nan", *FINITE)),
    Case("-inf in a sparse matrix", lambda: fit(with_value(-np.inf, sp.csr_array)), ValueError,
         (*PLACE, "feature 0", "-inf", *FINITE)),
    Case("NaN in packed sequences",
         lambda: PackedSequences(dense=[[0.0], [np.nan]], offsets=[0, 1, 2]), ValueError,
         ("sequence 1, position 0", "feature 0", "nan", *FINITE)),
    Case("None as a value", lambda: fit(with_token({"w": None})), TypeError,
         (*PLACE, "feature 'w'", "None", "Leave the feature out")),
    Case("an object as a value", lambda: fit(with_token({"w": object()})), TypeError,
         (*PLACE, "feature 'w'", "type object", "must be a string, a boolean, a number")),
    Case("an array as a value", lambda: fit(with_token({"w": np.ones(2)})), TypeError,
         (*PLACE, "feature 'w'", "type ndarray", "must be a string, a boolean, a number")),
    Case("a key that is no string", lambda: fit(with_token({1: "a"})), TypeError,
         (*PLACE, "attribute 1", "not a string but int")),
    Case("numbers as attributes", lambda: fit(with_token([1.5, 2.5])), TypeError,
         (*PLACE, "attribute 1.5", "not a string but float", "array")),
    Case("a complex array", lambda: fit(with_array(np.ones((3, 2), complex))), TypeError,
         ("sequence 2 of X", "numbers", "complex")),
    Case("a complex sparse matrix", lambda: fit(with_array(sp.csr_array(np.ones((3, 2)) * 1j))),
         TypeError, ("sequence 2 of X", "numbers", "complex")),
    Case("an array of words", lambda: fit(with_array(np.full((3, 2), "a"))), TypeError,
         ("sequence 2 of X", "numbers")),
    Case("an array of digits as text", lambda: fit(with_array(np.full((3, 2), "1"))), TypeError,
         ("sequence 2 of X", "numbers")),
    Case("digits as text in an array of objects",
         lambda: fit(with_array(np.array([[1, 2], [3, "4"], [5, 6]], object))), TypeError,
         ("sequence 2 of X", "numbers", "'4' is of type str")),
    Case("an array of dates", lambda: fit(with_array(np.zeros((3, 2), "datetime64[D]"))),
         TypeError, ("sequence 2 of X", "numbers", "datetime64[D]")),
    Case("an array of periods", lambda: fit(with_array(np.zeros((3, 2), "timedelta64[s]"))),
         TypeError, ("sequence 2 of X", "numbers", "timedelta64[s]")),
    Case("an array with a mask", lambda: fit(with_array(np.ma.masked_equal(ARRAYS[2], 3.0))),
         ValueError, ("sequence 2 of X", "masked values", "values.filled", "leave the features")),
    Case("an array with a mask, predict",
         lambda: model_of_arrays().predict(with_array(np.ma.masked_equal(ARRAYS[2], 3.0))),
         ValueError, ("sequence 2 of X", "masked values")),
    Case("an array with a mask, packed",
         lambda: PackedSequences.from_flat(np.ma.masked_equal(ARRAYS[2], 3.0), [3]),
         ValueError, ("the dense block has masked values",)),
]  # fmt: skip
SHAPES = [
    Case("fewer label sequences", lambda: fit(y=y[:2]), ValueError,
         ("X has 3 sequences", "y has 2", "give one sequence of y for each")),
    Case("more label sequences", lambda: fit(y=y + y), ValueError,
         ("X has 3 sequences", "y has 6")),
    Case("fewer labels", lambda: fit(y=[*y[:2], ["B"]]), ValueError,
         ("sequence 2", "X has 3 tokens", "y has 1 items", "Every token needs exactly one")),
    Case("fewer labels, score", lambda: model_of_dicts().score(X, [*y[:2], ["B"]]), ValueError,
         ("sequence 2", "3", "1")),
    Case("fewer labels, sequence_log_proba",
         lambda: model_of_dicts().sequence_log_proba(X, [*y[:2], ["B"]]), ValueError,
         ("sequence 2", "X has 3 tokens", "y has 1 items")),
    Case("an empty sequence", lambda: fit([X[0], []], [y[0], []]), ValueError,
         ("sequence 1 has no tokens", "Leave empty sequences out")),
    Case("no sequences", lambda: fit([], []), ValueError,
         ("X has no sequences", "nothing to learn from")),
    Case("no features at all", lambda: fit([[{}, {}]], [["A", "B"]]), ValueError,
         ("no token of X has any feature",)),
    Case("one sequence of dicts", lambda: fit(X[0], y[0]), TypeError,
         ("sequence 0 of X is a single dict", *LISTS)),
    Case("one sequence of labels", lambda: fit(X, ["A", "B", "A"]), TypeError,
         ("sequence 0 of y is the string 'A'", "list with one item a token")),
    Case("one sequence of integer labels", lambda: fit(X, [1, 2, 3]), TypeError,
         ("sequence 0 of y is a single int", *LISTS)),
    Case("one array", lambda: fit(ARRAYS[0], y), ValueError,
         ("sequence 0 of X", "2 dimensions (tokens, features), not 1")),
    Case("a string", lambda: fit("the dog", y), TypeError, ("X", *LISTS, "not str")),
    Case("strings as sequences", lambda: fit(["the dog"], y), TypeError,
         ("sequence 0 of X is the string 'the dog'", "split it first")),
    Case("strings as tokens", lambda: fit([["the", "dog"]], [["A", "B"]]), TypeError,
         ("sequence 0, position 0", "the string 'the'", "Give each token a dict")),
    Case("bytes as a sequence", lambda: fit([b"the"], y), TypeError,
         ("sequence 0 of X", "b'the'", "split it first")),
    Case("a number as a token", lambda: fit(with_token(3)), TypeError,
         (*PLACE, "the token is a int", "must be a dict of features")),
    Case("a 1-D array as a sequence", lambda: fit(with_array(np.ones(3))), ValueError,
         ("sequence 2 of X", "2 dimensions (tokens, features), not 1")),
    Case("a 3-D array as a sequence", lambda: fit(with_array(np.ones((3, 2, 1)))), ValueError,
         ("sequence 2 of X", "2 dimensions (tokens, features), not 3")),
    Case("a ragged array", lambda: fit(with_array(np.array([[1, 2], [1], [2]], dtype=object))),
         (TypeError, ValueError), ("sequence 2 of X",)),
    Case("another number of columns, fit", lambda: fit(with_array(np.ones((3, 5)))), ValueError,
         ("sequence 2 has 5 features", "2 are expected", "same columns")),
    Case("an array among dicts", lambda: fit([*X[:2], ARRAYS[2]]), TypeError,
         ("sequence 2, position 0", "the token is a ndarray", "must be a dict of features")),
    Case("dicts among arrays", lambda: fit([*ARRAYS[:2], X[2]]), TypeError,
         ("sequence 2 of X is a list among matrices", "the same form")),
    Case("a data frame as X", lambda: fit(pd.DataFrame({"w": ["a", "b"]}), y), TypeError,
         ("X is a data frame", "does not tell its sequences apart", "from_frame")),
    Case("data frames of text as sequences",
         lambda: fit([pd.DataFrame({"w": ["a", "b"]})], [["A", "B"]]), TypeError,
         ("sequence 0 of X", "numbers")),
    Case("data frames of categories as sequences",
         lambda: fit([pd.DataFrame({"n": [1, 2], "w": pd.Categorical([1, 2])})], [["A", "B"]]),
         TypeError, ("sequence 0 of X: column 'w' is not numeric (category)", "to_dict(")),
    Case("data frames of dates as sequences",
         lambda: fit([pd.DataFrame({"day": pd.to_datetime(["2020-01-01"] * 2)})], [["A", "B"]]),
         TypeError, ("sequence 0 of X: column 'day' is not numeric (datetime64",)),
    Case("a missing value in a frame of nullable numbers",
         lambda: fit([pd.DataFrame({"n": pd.array([1, None], "Int64")})], [["A", "B"]]),
         ValueError, ("sequence 0, position 1", "feature 'n'", "nan", *FINITE)),
    Case("a frame with other columns than those before",
         lambda: fit([pd.DataFrame({"a": [1.0], "b": [2.0]}), pd.DataFrame({"b": [1], "a": [2]})],
                     [["A"], ["B"]]), ValueError,
         ("sequence 1 of X has the columns ['b', 'a']", "the first frame has ['a', 'b']")),
    Case("an array among data frames", lambda: fit([pd.DataFrame({"a": [1.0]}), np.ones((1, 1))],
                                                   [["A"], ["B"]]), ValueError,
         ("sequence 1 of X is a ndarray among data frames", "all sequences as frames")),
    Case("names of columns that are partly strings",
         lambda: fit([pd.DataFrame({"a": [1.0], 0: [2.0]})], [["A"]]), TypeError,
         ("Feature names are only supported if all input features have string names",
          "['int', 'str']")),
    Case("a dict as X", lambda: fit({"w": X}, y), TypeError, ("X", *LISTS, "not dict")),
    Case("X=None", lambda: fit(None, y), TypeError, ("X", *LISTS, "not NoneType")),
    Case("y=None", lambda: fit(X, None), TypeError, ("y", *LISTS, "not NoneType")),
]  # fmt: skip
LABELS = [
    Case("a label that cannot be hashed", lambda: fit(y=with_label(["B"])), TypeError,
         (*PLACE, "label ['B'] is not hashable", "strings, numbers, tuples")),
    Case("None as a label", lambda: fit(y=with_label(None)), ValueError,
         (*PLACE, "the label is None", "Every token needs a label")),
    Case("NaN as a label", lambda: fit(y=with_label(float("nan"))), ValueError,
         (*PLACE, "the label is nan", "Every token needs a label")),
    Case("pandas' NA as a label", lambda: fit(y=with_label(pd.NA)), ValueError,
         (*PLACE, "the label is <NA>", "Every token needs a label")),
    Case("a 2-D array of labels as a sequence", lambda: fit(X[:1], [np.array([["A", "B"]])]),
         TypeError, ("sequence 0 of y", "2 dimensions", "a label a token")),
]  # fmt: skip
MODELS = [
    Case("predict before fit", lambda: CRFClassifier().predict(X), NotFittedError,
         ("CRFClassifier", "Call 'fit'")),
    Case("transform before fit", lambda: SequenceVectorizer().transform(X), NotFittedError,
         ("SequenceVectorizer", "Call 'fit'")),
    Case("another number of columns, predict",
         lambda: model_of_arrays().predict([np.ones((1, 2)), np.ones((1, 3))]), ValueError,
         ("sequence 1 has 3 features", "2 are expected")),
    Case("packed sequences of another number of features",
         lambda: model_of_arrays().predict(PackedSequences.from_flat(np.ones((2, 3)), [2])),
         ValueError, ("X has 3 features", "fitted with 2")),
    Case("packed sequences with other names of features",
         lambda: model_of_dicts().predict(
             PackedSequences.from_flat(np.ones((2, 2)), [2], ["w:b", "w:a"])),
         ValueError, ("name", "w:a", "w:b")),
    Case("dicts to a model of arrays", lambda: model_of_arrays().predict(X), TypeError,
         ("fitted on matrices", "no vocabulary", "matrices or PackedSequences")),
    Case("generators of dicts to a model of arrays",
         lambda: model_of_arrays().predict((token for token in s) for s in X), TypeError,
         ("fitted on matrices", "no vocabulary", "matrices or PackedSequences")),
    Case("warm start with another number of unnamed features",
         lambda: fit(ARRAYS, warm_start=True).fit([np.ones((2, 3))], [["A", "B"]]), ValueError,
         ("warm_start", "3 features", "2", "warm_start=False")),
]  # fmt: skip
PARAMETERS = [
    *(Case(f"{name}={value!r}", lambda n=name, v=value: fit(**{n: v}), error, (name, says))
      for name in ("c1", "c2")
      for value, error, says in (
          (-1.0, ValueError, "at least 0"), (np.nan, ValueError, "finite"),
          (np.inf, ValueError, "finite"), ("1", TypeError, "a number, not str"),
          (True, TypeError, "a number, not bool"), (None, TypeError, "a number, not NoneType"),
      )),
    Case("an unknown solver", lambda: fit(solver="newtown"), ValueError,
         ("solver='newtown'", "choose one of", "'lbfgs'", "'owlqn'", "Did you mean 'newton'?")),
    Case("a solver that is none", lambda: fit(solver=5), (TypeError, ValueError),
         ("solver=5", "solve")),
    Case("L-BFGS with an L1 penalty", lambda: fit(solver="lbfgs", c1=1.0), ValueError,
         ("LBFGS", "c1=1", "solver='owlqn'")),
    Case("an unknown decoder", lambda: fit(decoding="best"), ValueError,
         ("decoding='best'", "choose one of", "'posterior'", "'viterbi'")),
    Case("a decoder that is none", lambda: fit(decoding=5), (TypeError, ValueError),
         ("decoding=5", "decode")),
    Case("max_iter=-1", lambda: fit(max_iter=-1), ValueError, ("max_iter=-1", "at least 0")),
    Case("max_iter=1.5", lambda: fit(max_iter=1.5), TypeError,
         ("max_iter=1.5", "a whole number, not float")),
    Case("min_freq=0.5", lambda: fit(min_freq=0.5), TypeError,
         ("min_freq=0.5", "a whole number, not float")),
    Case("min_freq=0.5 of the vectorizer", lambda: SequenceVectorizer(min_freq=0.5).fit(X),
         (TypeError, ValueError), ("min_freq=0.5", "a whole number")),
    Case("min_freq=True of the vectorizer", lambda: SequenceVectorizer(min_freq=True).fit(X),
         (TypeError, ValueError), ("min_freq=True", "a whole number")),
    Case("a flag that is a string", lambda: fit(boundary_weights="yes"), TypeError,
         ("boundary_weights='yes'", "True or False")),
    Case("verbose that is a string", lambda: fit(verbose="yes"), TypeError,
         ("verbose='yes'", "a whole number")),
    Case("n_jobs=0", lambda: fit(n_jobs=0), ValueError, ("n_jobs=0", "-1 for all")),
    Case("n_jobs that is a string", lambda: fit(n_jobs="2"), TypeError, ("n_jobs='2'", "whole")),
]  # fmt: skip
WEIGHTS = [
    Case("fewer weights", lambda: fit(weight=[1.0, 1.0]), ValueError,
         ("sample_weight has 2 numbers for 3 sequences", "Give one for each sequence")),
    Case("fewer weights of tokens", lambda: fit(weight=[[1, 1], [1], [1, 1]]), ValueError,
         ("sequence 2", "X has 3 tokens", "sample_weight has 2 items")),
    Case("weights of sequences and of tokens", lambda: fit(weight=[[1, 1], [1], 1]), ValueError,
         ("sequence 2", "X has 3 tokens", "sample_weight has 1 items")),
    Case("a negative weight", lambda: fit(weight=[1, 1, -1]), ValueError,
         ("sequence 2, position 0", "-1", "finite and not negative")),
    Case("a NaN weight of a token", lambda: fit(weight=[[1, 1], [1], [1, np.nan, 1]]), ValueError,
         (*PLACE, "nan", "finite and not negative")),
    Case("weights that are all 0", lambda: fit(weight=[0, 0, 0]), ValueError,
         ("all sample weights are 0", "no sequence counts")),
    Case("weights that are words", lambda: fit(weight=["a", "b", "c"]), TypeError,
         ("sample_weight must be numbers",)),
    Case("weights that are digits as text", lambda: fit(weight=["1", "2", "3"]), TypeError,
         ("sample_weight must be numbers",)),
    Case("one number as sample_weight", lambda: fit(weight=2.0), TypeError,
         ("sample_weight", "for each sequence")),
    Case("a dict as sample_weight", lambda: fit(weight={0: 1, 1: 1, 2: 1}), TypeError,
         ("sample_weight", "for each sequence")),
]  # fmt: skip
CONTAINERS = [
    Case("offsets that fall", lambda: packed(offsets=[0, 2, 1, 3]), ValueError,
         ("offsets", "starts with 0 and never falls")),
    Case("offsets that do not start with 0", lambda: packed(offsets=[1, 3]), ValueError,
         ("offsets", "starts with 0 and never falls")),
    Case("offsets that end too early", lambda: packed(offsets=[0, 2]), ValueError,
         ("dense block has 3 rows", "offsets end at token 2")),
    Case("offsets that are not whole", lambda: packed(offsets=[0, 1.5, 3]), (TypeError, ValueError),
         ("offsets", "positions")),
    Case("offsets that are words", lambda: packed(offsets=["a", "b"]), (TypeError, ValueError),
         ("offsets", "positions")),
    Case("neither a sparse nor a dense block", lambda: PackedSequences(offsets=[0]), ValueError,
         ("needs a sparse block, a dense block, or both",)),
    Case("names of another number", lambda: packed(offsets=[0, 3], feature_names=["a"]),
         ValueError, ("1 feature names for 3 features",)),
    Case("lengths that do not add up", lambda: PackedSequences.from_flat(np.eye(3), [1, 1]),
         ValueError, ("lengths add up to 2", "3 rows")),
    Case("a negative length", lambda: PackedSequences.from_flat(np.eye(3), [4, -1]), ValueError,
         ("lengths[1] is negative",)),
    Case("a group that comes back", lambda: PackedSequences.from_groups(np.eye(3), [7, 8, 7]),
         ValueError, ("row 2", "group", "7", "comes back", "Sort the rows by group")),
    Case("groups of another number", lambda: PackedSequences.from_groups(np.eye(3), [7, 7]),
         ValueError, ("2", "3 rows")),
    Case("a frame without the column", lambda: PackedSequences.from_frame(frame(v=1.0), "doc"),
         ValueError, ("no column 'doc'", "it has ['sentence', 'v']")),
    Case("a frame with a column of text",
         lambda: PackedSequences.from_frame(frame(v="a"), "sentence"), TypeError,
         ("column 'v' is not numeric", "sequences_from_frame")),
    Case("NaN in a frame",
         lambda: PackedSequences.from_frame(frame(height=[1.0, np.nan, 1.0]), "sentence"),
         ValueError, ("sequence 0, position 1", "feature 'height'", "nan", *FINITE)),
]  # fmt: skip
PATHS = [
    Case("no allowed label, best path", lambda: Chain().argmax(scores(unary=-np.inf)), ValueError,
         ("sequence 1", "no path is left at position 1", "Allow at least one label")),
    Case("no allowed step, best path", lambda: Chain().argmax(scores(pair=-np.inf)), ValueError,
         ("sequence 0", "no path is left at position 1", "Allow at least one label")),
    Case("no allowed label, sum",
         lambda: Chain().log_partition(scores(unary=-np.inf), np.ones(2),
                             Chain().zeros(scores(unary=-np.inf))),
         ValueError, ("sequence 1", "no path is left at position 1", "Allow at least one label")),
    Case("a forbidden label in the training data",
         lambda: loss(scores(unary=[0, -np.inf]), [0, 1, 0, 1], [1.0] * 4), ValueError,
         ("sequence 1", "-inf", "forbidden label or step", "Allow it, or correct the labels")),
    Case("a forbidden label among weighted tokens",
         lambda: loss(scores(unary=[0, -np.inf]), [0, 1, 0, 1], [1.0, 2.0, 1.0, 2.0]), ValueError,
         ("sequence 1", "-inf", "forbidden label or step", "Allow it, or correct the labels")),
]  # fmt: skip
CASES = VALUES + SHAPES + LABELS + MODELS + PARAMETERS + WEIGHTS + CONTAINERS + PATHS


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_message_says_where_and_what_to_do(case):
    with pytest.raises(case.error) as info:
        case.call()
    for part in case.says:
        assert part in str(info.value)


def test_table_has_a_line_for_each_case(capsys):
    main()
    assert len(capsys.readouterr().out.splitlines()) == 2 + len({case.name for case in CASES})


def outcome(case):
    """Return the error and message of a case as they come."""
    try:
        case.call()
    except Exception as error:
        return type(error).__name__, str(error)
    return "none", ""


def main():
    """Print the table as Markdown."""
    print("| case | exception | message |\n|---|---|---|")
    with warnings.catch_warnings(action="ignore"):
        for case in CASES:
            error, message = outcome(case)
            text = re.sub(r"\s+", " ", message).replace("|", "\\|")
            print(f"| {case.name} | {error} | {text} |")


@pytest.mark.parametrize(
    "kind", [CRFClassifier, HMMClassifier, SemiMarkovCRF, StructuredPerceptron]
)
def test_more_labels_than_tables_have_room_for_are_named(kind):
    X = [[{"w": str(i)}] for i in range(20_001)]
    with pytest.raises(ValueError, match="y has 20,001 different labels, such as '0' and '1'; a"):
        kind().fit(X, [[str(i)] for i in range(20_001)])


if __name__ == "__main__":
    main()
