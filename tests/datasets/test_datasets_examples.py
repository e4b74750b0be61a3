import doctest
import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "datasets.md"


def run(test):
    runner = doctest.DocTestRunner()
    runner.run(test)
    return runner.summarize(verbose=False)


def test_examples_of_the_page_give_what_they_show(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    result = run(test)
    assert result.attempted > 10
    assert result.failed == 0


@pytest.mark.parametrize("name", ["ingredients", "ingredient_features", "synthetic"])
def test_examples_of_docstrings_give_what_they_show(name):
    result = doctest.testmod(importlib.import_module(f"crfkit.datasets.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
