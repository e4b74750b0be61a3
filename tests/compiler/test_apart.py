"""Kernels that are called where their machine code is."""

import os
import subprocess
import sys

import numpy as np
import pytest

from crfkit.compiler.apart import address_of, apart
from crfkit.compiler.jit import frozen, kernel

NO_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"


@kernel
def add_to(x, factor, out):
    """Add multiples; returns the last one."""
    for i in range(x.shape[0]):
        out[i] += factor * x[i]
    return out[x.shape[0] - 1]


@kernel
def fill_with(number, out):
    """Return nothing."""
    for i in range(out.shape[0]):
        out[i] = number


add_apart, fill_apart = apart(add_to), apart(fill_with)


@kernel
def both(x, out, codes):
    """Call both by their addresses."""
    fill_apart(codes[1], 2.0, out)
    return add_apart(codes[0], x, 3.0, out)


def test_a_kernel_is_called_by_its_address_as_by_its_name():
    x, out = frozen(np.arange(5.0)), np.empty(5)
    codes = address_of(add_to, x, 3.0, out), address_of(fill_with, 2.0, out)
    assert both(x, out, codes) == 14.0
    np.testing.assert_array_equal(out, 2.0 + 3.0 * np.arange(5.0))


PROBE = """
import numpy as np
from crfkit import CRFClassifier
from crfkit.kernels.chain.sum import chain_sum
from crfkit.solvers import OEG
X = [[["a"], ["b", "c"], ["a", "c"]], [["c"]], [["b"], ["a"]]] * 20
y = [["A", "B", "A"], ["B"], ["B", "A"]] * 20
crf = CRFClassifier(solver=OEG(max_iter=2, tol=0.9)).fit(X, y)
found = sum(chain_sum.stats.cache_hits.values()), len(chain_sum.signatures)
print(crf.objective_, *found)
"""


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_it_is_found_again_when_the_callers_come_from_the_cache(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run(
            [sys.executable, "-c", PROBE], env=environment, text=True, capture_output=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    )  # fmt: skip
    assert first[1:] == ["0", "1"]
    assert second[1:] == ["1", "1"]
    assert first[0] == second[0]


@pytest.mark.skipif(NO_JIT, reason="nothing is compiled")
def test_other_types_of_arguments_are_refused():
    @kernel
    def first(x):
        """Return the first number."""
        return x[0]

    address_of(first, frozen(np.arange(2.0)))
    with pytest.raises(TypeError, match="the same types everywhere"):
        address_of(first, frozen(np.arange(2)))
