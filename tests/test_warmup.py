"""Compiling ahead of time, and compiling no more than is needed."""

import os
import shutil
import subprocess
import sys
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


def run(code, folder=os.curdir, **environment):
    return run_in_new_process(code, folder, **environment)[0].splitlines()


def counts(script):
    lines = [line.split() for line in run(script + REPORT)]
    return {name: (int(loaded), int(compiled)) for name, loaded, compiled in lines}


def test_after_a_warm_up_nothing_is_compiled():
    command = [sys.executable, "-m", "crfkit.warmup"]
    shown = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    lines = shown.splitlines()
    assert "machine code is kept in" in lines[-1]
    assert not [line for line in lines if line.endswith("not called")]
    for script in (SMALL, LARGER):
        found = counts(script)
        assert sum(loaded for loaded, _ in found.values()) >= 5
        assert {name for name, (_, compiled) in found.items() if compiled} == set()


def test_some_families_are_compiled_alone():
    lines = run("from crfkit.cli import main; main(['warmup', '--only', 'chain'])")
    rooms = {line.split(".")[0] for line in lines if line.endswith(("compiled", "loaded"))}
    assert rooms == {"chain", "design", "solvers", "sparse_chain", "tree"}  # sums of logarithms
    kept = counts(SMALL)
    assert {name for name, (_, compiled) in kept.items() if compiled} == set()


def test_an_unknown_family_is_refused_with_the_names_that_there_are(capsys):
    names = (
        "there are chain, solvers, online, margin, losses, segments, templates, trees, "
        "second_order, local, hidden_markov."
    )
    with pytest.raises(ValueError, match=f"no kernels are called chains, dance; {names}"):
        warmup.warm_up(["dance", "chain", "chains"])
    assert main(["warmup", "--only", "chains"]) == 2
    with pytest.raises(SystemExit):
        warmup.main(["--only", "chains"])
    assert capsys.readouterr().err.count(names) == 2


def test_a_small_fit_loads_only_what_it_uses():
    found = counts(SMALL)
    used = {name.rpartition(".")[0] for name, both in found.items() if any(both)}
    assert used <= {
        "chain.interleaved", "chain.max", "chain.sum", "chain.tagging", "design.gather",
        "solvers.vector",
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
