import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import crfkit.metrics

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
MODULES = [module.name for module in pkgutil.iter_modules(crfkit.metrics.__path__)]


def run(test):
    runner = doctest.DocTestRunner()
    runner.run(test)
    return runner.summarize(verbose=False)


def test_examples_of_the_page_give_what_they_show():
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    result = run(test)
    assert result.attempted > 10
    assert result.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_give_what_they_show(name):
    module = importlib.import_module(f"crfkit.metrics.{name}")
    assert doctest.testmod(module).failed == 0
