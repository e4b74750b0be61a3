"""The kernel decorator: caching that notices edited helpers."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import crfkit

ROOT = Path(__file__).parents[2]
NO_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"

PROBE = """
import numpy as np
from crfkit.kernels.probe import doubled
print(doubled(1.0))
"""


@pytest.fixture
def copy_of_package(tmp_path):
    source = Path(crfkit.__file__).parent
    target = tmp_path / "crfkit"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "data"))
    (target / "__init__.py").write_text("")
    kernels = target / "kernels"
    (kernels / "helper.py").write_text(
        "from crfkit.compiler.jit import kernel\n\n\n@kernel\ndef factor():\n    return 2.0\n"
    )
    (kernels / "probe.py").write_text(
        "from crfkit.compiler.jit import kernel\nfrom crfkit.kernels.helper import factor\n\n\n"
        "@kernel\ndef doubled(x):\n    return x * factor()\n"
    )
    return tmp_path


def run(folder, **environment):
    result = subprocess.run(
        [sys.executable, "-B", "-c", PROBE], cwd=folder, text=True, capture_output=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")} | environment, check=True,
    )  # fmt: skip
    return result.stdout.strip()


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_an_edited_helper_is_not_served_from_a_stale_cache(copy_of_package):
    assert run(copy_of_package) == "2.0"
    assert list((copy_of_package / "cache").rglob("*.nbi"))
    helper = copy_of_package / "crfkit" / "kernels" / "helper.py"
    helper.write_text(helper.read_text().replace("2.0", "3.0"))
    assert run(copy_of_package) == "3.0"


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_a_cache_folder_that_cannot_be_written_is_no_error(copy_of_package):
    (copy_of_package / "cache").write_text("a file, not a folder")
    assert run(copy_of_package) == "2.0"


OTHER_NUMBA = """
from numba.core import caching, dispatcher

def missing(*arguments, **named):
    raise TypeError("another version of numba")

{change}
from crfkit.kernels.probe import doubled
print(doubled(1.0), doubled(3))
"""


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
@pytest.mark.parametrize(
    "change",
    [
        "del caching.IndexDataCacheFile",
        "caching.FunctionCache.__init__ = missing",
        "caching.FunctionCache._load_overload = missing",
        "caching.FunctionCache._save_overload = missing",
        "caching.FunctionCache._index_key = caching.FunctionCache.load_overload = missing",
        "caching.FunctionCache = dispatcher.FunctionCache = missing",
    ],
)
def test_another_numba_costs_the_cache_at_most(copy_of_package, change):
    code = OTHER_NUMBA.format(change=change)
    result = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=copy_of_package, text=True, capture_output=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(copy_of_package / "cache")}, check=True,
    )  # fmt: skip
    assert result.stdout.strip() == "2.0 6.0"


def test_kernels_run_without_the_compiler(copy_of_package):
    assert run(copy_of_package, NUMBA_DISABLE_JIT="1") == "2.0"


SIGNATURES = """
import pickle, sys
from tests.compiling import compile_once
compile_once()
import numpy as np
import scipy.sparse as sp
from crfkit import CRFClassifier, PackedSequences, TemplateFeatures
from crfkit.warmup import warm_up

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
"""


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_every_kernel_is_compiled_once_whatever_the_input():
    """Those of solvers once for each class of problems, which chooses what they call.

    The second run finds all machine code on the disk: it counts what Python calls, and not what
    kernels had compiled into themselves.
    """
    for _ in range(2):
        result = subprocess.run(
            [sys.executable, "-c", SIGNATURES], cwd=ROOT, text=True, capture_output=True, check=True
        )
    counts = Counter(result.stdout.splitlines())
    called = {line.split()[0].rpartition(".")[2] for line in counts}
    assert {"chain_sum", "gather_tokens", "gather_dense", "vector_dot", "pairs_number"} <= called
    assert {line: n for line, n in counts.items() if n > 1} == {}
