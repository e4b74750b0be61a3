"""Numbers that threads share."""

import os
import threading

import numpy as np
import pytest

from crfkit.compiler.atomic import claim, look, publish, take
from crfkit.compiler.jit import kernel

N_TIMES = 100 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 20_000


@kernel
def take_many(numbers, n):
    """Count a number up."""
    for _ in range(n):
        take(numbers, 0)


@kernel
def claim_many(numbers, n):
    """Count a number up by what is seen of it before."""
    for _ in range(n):
        while not claim(numbers, 1, look(numbers, 1)):
            pass


@kernel
def one_of_each(numbers):
    """Return what each function returns."""
    before = take(numbers, 0)
    refused = claim(numbers, 0, before)
    claimed = claim(numbers, 0, before + 1)
    publish(numbers, 1, 7)
    return before, refused, claimed, look(numbers, 0), look(numbers, 1)


def test_each_does_what_it_says():
    numbers = np.array([5, 0])
    assert one_of_each(numbers) == (5, False, True, 7, 7)
    np.testing.assert_array_equal(numbers, [7, 7])


@pytest.mark.parametrize(("work", "index"), [(take_many, 0), (claim_many, 1)])
def test_no_count_of_several_threads_is_lost(work, index):
    numbers = np.zeros(2, np.int64)
    work(numbers, 0)  # compiled by one thread
    threads = [threading.Thread(target=work, args=(numbers, N_TIMES)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers[index] == 4 * N_TIMES
