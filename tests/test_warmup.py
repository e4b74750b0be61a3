"""Compiling ahead of time, no more than is needed: one machine code for all inputs."""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

import crfkit
from crfkit import warmup
from crfkit.cli import main
from crfkit.warmup import KernelReport
from tests.processes import run_in_new_process

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="needs the compiler"
)

ROOT = Path(__file__).parents[1]
REPORT = (
    "\nfrom crfkit.warmup import report\nfor k in report(): print(k.name, k.loaded, k.compiled)"
)
SMALL = """
from crfkit import CRFClassifier
X, y = [[{"w": "a"}, {"w": "b"}]], [["A", "B"]]
crf = CRFClassifier().fit(X, y)
crf.predict(X), crf.predict_proba(X)
"""
LARGER = """
import numpy as np
from crfkit import CRFClassifier, TemplateFeatures
words = [[("the", "D"), ("dog", "N"), ("runs", "V")], [("a", "D"), ("cat", "N")]]
y = [[tag for _, tag in sentence] for sentence in words]
features = TemplateFeatures(["w", "w[-1]|w", "transition(w)"], columns=["w", "t"])
X = features.fit_transform(words)
for crf in (CRFClassifier(n_jobs=2), CRFClassifier(c1=0.1), CRFClassifier(boundary_weights=True)):
    crf.fit(X, y, sample_weight=[1.0, 2.0])
    crf.predict(X), crf.predict_proba(X), crf.sequence_log_proba(X, y)
many = [[f"L{k}", f"L{k + 1}"] for k in range(70)]
CRFClassifier().fit([[[label] for label in labels] for labels in many], many)
CRFClassifier().fit([np.eye(3)], [[0, 1, 2]]).predict([np.eye(3)])
"""
EVERY_FORM = """
import pickle, runpy, sys
from tests.compiling import compile_once
compile_once()
try:  # by every solver, many labels, long sequences
    runpy.run_module("crfkit.warmup", run_name="__main__")
except SystemExit as end:
    assert not end.code
from crfkit.warmup import report
if any(k.compiled for k in report()):
    sys.exit("compiled")
known = {k.name: k.loaded + k.compiled for k in report()}
import numpy as np
import scipy.sparse as sp
from crfkit import CRFClassifier, PackedSequences, TemplateFeatures

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
print("new:", *(k.name for k in report() if k.loaded + k.compiled > known[k.name]))
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
print(sum(k.compiled for k in report()))
"""


def run(code, folder=os.curdir, **environment):
    return run_in_new_process(code, folder, **environment)[0].splitlines()


def counts_of(script):
    lines = [line.split() for line in run(script + REPORT)]
    return {name: (int(loaded), int(compiled)) for name, loaded, compiled in lines}


def test_after_a_warm_up_nothing_is_compiled_and_each_kernel_once_whatever_the_input():
    """Those of solvers once for each class of problems, which chooses what they call.

    A run that finds all machine code on the disk counts what Python calls, and not what kernels
    had compiled into themselves.
    """
    lines = run(EVERY_FORM, ROOT)
    if "new:" not in lines:  # it has compiled what the next one finds
        lines = run(EVERY_FORM, ROOT)
    *lines, compiled = lines
    assert compiled == "0"
    new = lines.index("new:")  # nor is anything new called
    shown, counts = lines[:new], Counter(lines[new + 1 :])
    assert "machine code is kept in" in shown[-1]
    assert not [line for line in shown if line.endswith("not called")]
    called = {line.split()[0].rpartition(".")[2] for line in counts}
    assert {"chain_sum", "gather_tokens", "gather_dense", "vector_dot", "pairs_number"} <= called
    # The rows that they list are numbers of 16 bits where these are enough, else of 32.
    several = {line: n for line, n in counts.items() if n > 1}
    assert several == {"design.gather.gather_rows": 2}
    for script in (SMALL, LARGER):
        found = counts_of(script)
        assert sum(loaded for loaded, _ in found.values()) >= 5
        assert {name for name, (_, compiled) in found.items() if compiled} == set()


def test_some_families_are_compiled_alone():
    lines = run("from crfkit.cli import main; main(['warmup', '--only', 'chain'])")
    rooms = {line.split(".")[0] for line in lines if line.endswith(("compiled", "loaded"))}
    # Those of trees are sums of logarithms, those of text read tokens.
    sparse = {"sparse_chain", "sparse_chain_log"}
    assert rooms == {"chain", "design", "solvers", "text", "tree"} | sparse
    kept = counts_of(SMALL)
    assert {name for name, (_, compiled) in kept.items() if compiled} == set()


def test_an_unknown_family_is_refused_with_the_names_that_there_are(capsys):
    names = (
        "there are chain, solvers, online, margin, losses, segments, templates, trees, "
        "graphs, second_order, local, hidden_markov."
    )
    with pytest.raises(ValueError, match=f"no kernels are called chains, dance; {names}"):
        warmup.warm_up(["dance", "chain", "chains"])
    assert main(["warmup", "--only", "chains"]) == 2
    with pytest.raises(SystemExit):
        warmup.main(["--only", "chains"])
    assert capsys.readouterr().err.count(names) == 2


def test_a_small_fit_loads_only_what_it_uses():
    found = counts_of(SMALL)
    used = {name.rpartition(".")[0] for name, both in found.items() if any(both)}
    assert used <= {
        "chain.interleaved", "chain.max", "chain.sum", "chain.tagging", "design.gather",
        "solvers.vector", "text.tokens",
    }  # fmt: skip
    assert {name.rpartition(".")[0] for name in found} > used


def test_each_kernel_is_reported_once():
    names = [kernel.name for kernel in warmup.report()]
    assert len(set(names)) == len(names)
    assert {"chain.sum.chain_sum", "text.hashing.pairs_number"} <= set(names)


def test_a_cache_that_cannot_be_written_is_told(tmp_path):
    package = tmp_path / "crfkit"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(crfkit.__file__).parent, package, ignore=ignored)
    no_folder = package / "kernels" / "__pycache__"
    no_folder.write_text("a file, not a folder")
    script = (
        f"import tempfile; tempfile.tempdir = {str(no_folder)!r}\n"
        "from crfkit import warmup; warmup.warm_up = lambda only: warmup.report()\n"
        "warmup.main([])"
    )
    home = {"XDG_CACHE_HOME": str(no_folder), "HOME": str(no_folder)}
    lines = run(script, tmp_path, NUMBA_CACHE_DIR=str(no_folder / "here"), **home)
    assert lines[-1].startswith("machine code is not kept: no folder for it can be written.")
    assert "NUMBA_CACHE_DIR" in lines[-1]


def test_lines_tell_what_became_of_each_kernel(monkeypatch, capsys):
    kernels = [KernelReport("a.one", 0, 1, "/here"), KernelReport("a.two", 1, 0, "/here"),
               KernelReport("b.three", 0, 0, "/there")]  # fmt: skip
    monkeypatch.setattr(warmup, "warm_up", lambda only: kernels)
    assert warmup.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1:] for line in lines[:3]] == [["compiled"], ["loaded"], ["not", "called"]]
    assert lines[3].startswith("1 of 3 kernels compiled in ")
    assert lines[4:] == ["machine code is kept in /here", "machine code is kept in /there"]
    assert warmup.main(["--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_without_a_compiler_there_is_nothing_to_do():
    assert run("from crfkit.warmup import main; main([])", NUMBA_DISABLE_JIT="1") == [
        "compilation is switched off (NUMBA_DISABLE_JIT): nothing to do"
    ]
