"""The examples in docstrings give what they show; every public name is described."""

import doctest
import importlib
from pathlib import Path

import pytest

import crfkit

ROOT = Path(crfkit.__file__).parent
HOOKS = ROOT.parent / "docs" / "_hooks"
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


def test_the_reference_has_every_public_name_and_says_what_it_is(monkeypatch):
    monkeypatch.syspath_prepend(HOOKS)
    api = importlib.import_module("api")  # which reads the sources alone
    for room in [crfkit, *(importlib.import_module(f"crfkit.{name}") for name in crfkit._ROOMS)]:
        public = {name for name in getattr(room, "__all__", ()) if not name.startswith("_")}
        assert public == {name.name for name in api.rooms().get(room.__name__, ())} or not public
    for path, name in api.names().items():
        extra = name.room in api.EXTRA
        assert extra or hasattr(importlib.import_module(name.room), name.name), path
        assert name.summary, f"{path} has no docstring, or no comment above it"
