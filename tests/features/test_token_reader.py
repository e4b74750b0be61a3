import numpy as np
import pytest

from crfkit.compiler.objects import can_read_objects
from crfkit.features import token_reader
from crfkit.features.attributes import expand
from crfkit.features.encoding import FrozenIndex, GrowingIndex, as_lists, encode
from crfkit.features.token_reader import TokenReader
from crfkit.kernels.text.tokens import DEPTH, SKIP, VALUED, ZERO

needs_machine_code = pytest.mark.skipif(not can_read_objects(), reason="kernels run as Python")

TOKENS = [
    {"w": "a", "caps": True, "digit": False, "size": 2.5, "n": 3, "one": 1.0, "none": 0},
    ["b", "w:a"], ("b", "c", "b"), {"l": ["x", "y"], "t": ("x",)}, {}, [], (),
    {"": "", "w": "\0é\U0001f600\ud800", "é": {"": "a", "é": {"é": -0.5, "q": []}}, "w:": "w"},
    {"d": {"d": {"d": "d"}}, "e": np.float64(0.25), "big": 2**62 + 1, "neg": -(2**63)},
    {"d": {"x": True, "y": False}, "d:x": "y", "z": "last"},
]  # fmt: skip
RARE = [
    {"w": np.float32(2)}, {"w": {"s", "t"}}, {"u"}, {"w": 2**70}, {np.str_("w"): "a"},
    {"w": np.True_}, {"w": [np.str_("a")]}, {"w": {"x": frozenset(("y",))}},
]  # fmt: skip


def nested(depth):
    token = {"x": "y"}
    for _ in range(depth):
        token = {"n": token}
    return token


def names_of(index, found):
    """Return the attributes of tokens as their entries tell them."""
    names, values, rows = list(index), iter(found.values.tolist()), []
    for begin, end in zip(found.indptr[:-1], found.indptr[1:], strict=True):
        row = []
        for entry in found.entries[begin:end].tolist():
            if entry >= 0:
                row.append((names[entry], 1.0))
            elif entry <= ZERO:
                row.append((names[ZERO - entry], 0.0))
            elif entry != SKIP:
                row.append((names[VALUED - entry], next(values)))
        rows.append(row)
    assert next(values, None) is None
    return rows


@needs_machine_code
def test_tokens_of_all_usual_forms_are_read_at_once_in_the_order_of_their_items():
    index = GrowingIndex()
    index.keep_zeros()
    tokens = [*TOKENS, nested(DEPTH - 1)]
    expected = [[(name, float(value)) for name, value in expand(token)] for token in tokens]
    assert names_of(index, index.reader.read(tokens)) == expected
    assert list(index) == list(dict.fromkeys(name for token in expected for name, _ in token))
    assert names_of(index, index.reader.read(tokens)) == expected
    assert names_of(index, index.reader.read(tokens, 7)) == expected[7:]


@needs_machine_code
@pytest.mark.parametrize("rare", [*RARE, nested(DEPTH), None, "w", {"w": None}])
def test_reading_ends_before_a_token_of_a_rarer_form(rare):
    index = GrowingIndex()
    assert len(index.reader.read([*TOKENS, rare, {"w": "a"}]).indptr) == len(TOKENS) + 1
    assert len(index.reader.read([rare]).entries) == 0


@pytest.mark.parametrize("reads", [True, False])
def test_rows_are_those_of_the_rules_with_and_without_machine_code(reads, monkeypatch):
    if not reads:
        monkeypatch.setattr(token_reader, "can_read_objects", lambda: False)
    tokens = [*TOKENS, *RARE, nested(DEPTH + 3)]
    index = GrowingIndex()
    rows = encode([tokens[:5], [], tokens[5:]], index)
    expected = [[(name, float(value)) for name, value in expand(t) if value] for t in tokens]
    names = list(index)
    found = [
        [(names[c], v) for c, v in zip(rows.indices[b:e], rows.value_array()[b:e], strict=True)
         if c != SKIP]
        for b, e in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    ]  # fmt: skip
    assert [sorted(row) for row in found] == [sorted(row) for row in expected]
    assert names == list(dict.fromkeys(n for t in tokens for n, _ in expand(as_lists(t))))
    known = {"w:a": 0, "n": 1, "size": 2, "n:x:y": 3}
    kept = encode([tokens], FrozenIndex(known))
    assert sorted(kept.value_array()[kept.indices != SKIP]) == sorted(
        value for token in tokens for name, value in expand(token) if name in known
    )


@needs_machine_code
@pytest.mark.parametrize("most", [256, 1 << 12])
def test_a_table_grows_and_forgets_and_finds_the_same(most):
    rng = np.random.default_rng(0)
    index = GrowingIndex()
    reader = index.reader = TokenReader(index.numbers, most)
    tokens = [
        {f"k{n}": str(v), "x": float(v), "l": [str(n)] * 3}
        for n, v in rng.integers(0, [700, 900], (3000, 2)).tolist()
    ]
    tokens.insert(1000, [str(n) for n in range(3 * most)])  # more in a token than are kept
    done, rows = 0, []
    while done < len(tokens):
        rows += names_of(index, reader.read(tokens, done))
        done = len(rows)
    assert rows == [list(filter(lambda item: item[1], expand(token))) for token in tokens]


@needs_machine_code
def test_a_reader_that_is_called_again_or_fails_meanwhile_reads_on():
    index, calls = GrowingIndex(), []

    def look_up(names):
        if "w:again" in names and not calls:
            calls.append(len(reader.read([{"v": "b"}]).indptr))
        if "w:error" in names and len(calls) < 2:
            calls.append("w:error")
            raise KeyboardInterrupt
        return index.numbers(names)

    reader = TokenReader(look_up)
    assert names_of(index, reader.read([{"w": "a"}, {"w": "again"}])) == [
        [("w:a", 1.0)], [("w:again", 1.0)]
    ]  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        reader.read([{"w": "new"}, {"w": "error"}, {"w": "newer"}])
    assert calls == [1, "w:error"]
    again = names_of(index, reader.read([{"w": "newer"}, {"w": "error"}, {"w": "a"}]))
    assert again == [[("w:newer", 1.0)], [("w:error", 1.0)], [("w:a", 1.0)]]
