"""The kernel decorator: one machine code for all inputs."""

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.processes import run_in_new_process

ROOT = Path(__file__).parents[2]
NO_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"

SIGNATURES = """
import pickle, sys
from tests.compiling import compile_once
compile_once()
import numpy as np
import scipy.sparse as sp
from crfkit import CRFClassifier, PackedSequences, TemplateFeatures
from crfkit.warmup import report, warm_up

rng = np.random.default_rng(0)
x = [rng.normal(size=(4, 3)) for _ in range(24)]
y = [rng.integers(2, size=4).tolist() for _ in range(24)]
tokens = [[{"w": str(label)} for label in labels] for labels in y]
forms = [tokens, x, [sp.csr_array(m) for m in x], [(m > 0).astype(float) for m in x]]


def thawed(model):
    buffers = []
    data = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(b.raw()) for b in buffers])  # read-only arrays


for X in forms:
    weights = [None, rng.random(24), [rng.random(4) for _ in range(24)]]
    for weight in weights:
        crf = CRFClassifier(boundary_weights=True).fit(X, y, sample_weight=weight)
        for model in (crf, thawed(crf)):
            model.predict(X), model.predict_proba(X), model.sequence_log_proba(X, y)
frozen = thawed(PackedSequences.from_matrices(forms[2]))
CRFClassifier(c1=0.1, n_jobs=2).fit(frozen, y).predict(frozen)
words = [[(token["w"], token["w"]) for token in s] for s in tokens]
templates = ["w", "v[-1]|w|v", "ngrams(w, 1)", "transition(w)", "w|v"]
features = TemplateFeatures(templates, columns=["w", "v"], min_freq=2)
data = features.fit_transform(words)
crf = CRFClassifier().fit(data, y)
for transformer in (features, thawed(features)):
    thawed(crf).predict(transformer.transform([[("a", "1/2"), ("b", "0")], *words]))
warm_up()  # by every solver, many labels, long sequences
for module in list(sys.modules.values()):
    if module.__name__.startswith("crfkit.kernels.") and "._" not in module.__name__:
        for name, function in vars(module).items():
            own = getattr(function, "__module__", "") == module.__name__
            # Parts and helpers, which are compiled into the kernels that call them, do not count.
            kept = hasattr(function, "signatures") and function.stats.cache_path
            if own and kept and not name.startswith("_"):
                for signature in function.signatures:
                    records = [k.instance_class.__name__ for k in signature
                               if hasattr(k, "instance_class")]
                    print(module.__name__.partition(".kernels.")[2] + "." + name, *records)
print(sum(kernel.compiled for kernel in report()))
"""


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_every_kernel_is_compiled_once_whatever_the_input():
    """Those of solvers once for each class of problems, which chooses what they call.

    A run that finds all machine code on the disk counts what Python calls, and not what kernels
    had compiled into themselves.
    """
    for _ in range(2):
        *lines, compiled = run_in_new_process(SIGNATURES, ROOT)[0].splitlines()
        if compiled == "0":
            break
    counts = Counter(lines)
    called = {line.split()[0].rpartition(".")[2] for line in counts}
    assert {"chain_sum", "gather_tokens", "gather_dense", "vector_dot", "pairs_number"} <= called
    # The rows that they list are numbers of 16 bits where these are enough, else of 32.
    several = {line: n for line, n in counts.items() if n > 1}
    assert several == {"design.gather.gather_rows": 2}
