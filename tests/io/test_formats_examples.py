import doctest
import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"


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
    assert result.attempted > 30
    assert result.failed == 0


@pytest.mark.parametrize("name", ["io.conllu", "io.crfsuite_text", "io.offsets", "data.frames"])
def test_examples_of_docstrings_give_what_they_show(name):
    result = doctest.testmod(importlib.import_module(f"crfkit.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
