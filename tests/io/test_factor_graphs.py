"""Files of factor graphs: what was written is read, to the last bit; what is wrong is named."""

import io
import lzma
import math

import numpy as np
import pytest

from crfkit.graphs import Factor, RandomField
from crfkit.io import GraphFormatError, read_evidence, read_fg, read_uai, write_fg, write_uai

FORMATS = {"uai": (read_uai, write_uai), "fg": (read_fg, write_fg)}
SMALL = "MARKOV 3 2 3 2 2 2 0 1 1 1 6 1 2 3 4 5 6 3 .5 0 1e-2"


def of_scores(rng):
    """Scores of all sizes: next to 0, beyond what exponentials in double precision hold, -inf."""
    special = [0.0, -np.inf, 1e4, -1e4, 1e-20, -1e-300, 700.0, -720.0, 1e6, math.log(0.1)]
    table = np.concatenate([special, rng.normal(size=20), 1e-3 * rng.normal(size=18)])
    scopes = [(), (2, 0), (1,), (0, 2, 1)]
    tables = [rng.normal(), table.reshape(4, 12), [0.5, -0.5], rng.normal(size=(12, 4, 2))]
    return RandomField(zip(scopes, tables, strict=True), range(3))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_scores_come_back_to_the_last_bit(form, suffix, tmp_path):
    read, write = FORMATS[form]
    field, path = of_scores(np.random.default_rng(0)), tmp_path / f"field.{form}{suffix}"
    write(field, path)
    back = read(path)
    assert back.nodes == field.nodes and back.sizes == field.sizes
    for expected, found in zip(field.factors, back.factors, strict=True):
        assert found.nodes == expected.nodes
        np.testing.assert_array_equal(found.scores, expected.scores)
    stream = io.StringIO()
    write(back, stream)
    raw = path.read_bytes()
    assert stream.getvalue().encode() == (lzma.decompress(raw) if suffix else raw)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("score", [1e300, -1e16])
def test_scores_that_no_potential_stands_for_are_not_written(form, score):
    with pytest.raises(GraphFormatError, match="must be between -1e[+]15 and 1e[+]15"):
        FORMATS[form][1](RandomField([("a", [0.0, score])]), io.StringIO())


def test_the_last_variable_is_fastest_in_uai_and_the_first_in_fg():
    field = RandomField([Factor.of_potentials((0, 1), [[1, 2, 3], [4, 5, 6]])])
    uai, fg = io.StringIO(), io.StringIO()
    write_uai(field, uai)
    write_fg(field, fg)
    assert uai.getvalue().split()[-6:] == ["1.0", "2.0", "3.0", "4.0", "5.0", "6.0"]
    assert fg.getvalue().split()[-11::2] == ["1.0", "4.0", "2.0", "5.0", "3.0", "6.0"]


def test_variables_without_a_factor_and_other_names_are_numbered():
    field = read_uai(SMALL.split("\n"))
    assert field.sizes == (2, 3, 2)
    assert field.marginal(2) == pytest.approx([0.5, 0.5])
    stream = io.StringIO()
    write_fg(RandomField([("ba", [[1.0, 2.0], [3.0, 4.0]])]), stream)
    assert read_fg(io.StringIO(stream.getvalue())).nodes == (0, 1)
    gaps = read_fg(["1 2 7 3 2 2 1 2 5.0"])
    assert gaps.nodes == (3, 7) and gaps.argmax() == {7: 0, 3: 1}


def test_known_values_are_those_of_the_clamped_field():
    field = read_uai([SMALL])
    for evidence in ({0: 1}, ["1 0 1"], ["1", "1 0 1"]):
        known = read_uai([SMALL], evidence)
        assert known.nodes == (1, 2)
        assert known.log_partition == field.clamped({0: 1}).log_partition
    assert read_uai([SMALL], ["0"]).nodes == (0, 1, 2)
    assert read_evidence(["1 0"]) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HMM 1", "line 1: the file begins with 'HMM'"),
        ("MARKOV\n2\n2", "line 3: the file ends where the numbers of values should be: 1 of 2"),
        ("MARKOV\n1\n0", "line 3: the numbers of values: '0' is no whole number from 1"),
        ("MARKOV\n1\n2\n1\n1 1", "line 5: the variables of factor 0: '1' is no .* to 0"),
        ("MARKOV\n1\n2\n1\n2 0 0", "line 5: factor 0 has a variable twice"),
        ("MARKOV\n1\n2\n1\n1 0\n3", "line 6: the table of factor 0 has 3 entries; .* have 2 comb"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1\n-1", "line 8: the table of factor 0: '-1' is no potential"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1\nnan", "line 8: .*'nan' is no potential"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1\n1_0", "line 8: .*'1_0' is no potential"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 2\n\n3", "line 9: '3' stands after the end"),
    ],
)
def test_errors_of_uai_name_line_and_factor(text, message):
    with pytest.raises(GraphFormatError, match=message):
        read_uai(io.StringIO(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2\n1 0\n2\n1\n0 1", "line 5: the file ends where the number of variables of factor 1"),
        ("2\n1\n0\n2\n1\n0 1\n1\n0\n3", "line 9: variable 0 has 3 values in factor 1, 2 in"),
        ("1\n1\n0\n2\n1\n2 1", "line 6: the place of an entry of factor 0: '2' is no"),
        ("1\n1\n0\n2\n2\n1 1\n1 1", "line 7: factor 0 has the entry 1 twice"),
    ],
)
def test_errors_of_fg_name_line_and_factor(text, message):
    with pytest.raises(GraphFormatError, match=message):
        read_fg(io.StringIO(text))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["2", "1 0 1", "1 0 0"], "6 numbers follow the count 2"),
        (["2 0 1 0 0"], "twice"),
        (["1 0 x"], "'x' is no"),
    ],
)
def test_errors_of_evidence(lines, message):
    with pytest.raises(GraphFormatError, match=message):
        read_evidence(lines)


def test_evidence_of_values_that_there_are_not_is_an_error():
    with pytest.raises(ValueError, match="no variable 0 has the value 2"):
        read_uai([SMALL], {0: 2})
