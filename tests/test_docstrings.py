"""The examples in docstrings give what they show."""

import doctest
import importlib
from pathlib import Path

import pytest

import crfkit

ROOT = Path(crfkit.__file__).parent
MODULES = sorted(
    ".".join(["crfkit", *path.relative_to(ROOT).with_suffix("").parts])
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


def test_modules_with_examples_are_found():
    assert {"crfkit.estimators.crf", "crfkit.io.conllu", "crfkit.metrics.entity"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_give_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
