"""What is left of a product of choices has every two of them together."""

from itertools import combinations, product

from tests.sampling import covering


def pairs(rows):
    return {pair for row in rows for pair in combinations(enumerate(row), 2)}


def test_every_two_choices_meet_in_few_rows():
    for sizes, most in (((3, 2, 2), 6), ((9, 3, 2, 2), 30), ((2,) * 8, 10)):
        rows = list(product(*map(range, sizes)))
        kept = [rows[i] for i in covering(rows)]
        assert pairs(kept) == pairs(rows)
        assert len(kept) <= most
    rows = [(i, i, 0) for i in range(5)]  # given together
    assert covering(rows) == list(range(5))
