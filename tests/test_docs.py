"""The examples of the pages in docs run, and print what they show."""

import ast
import contextlib
import doctest
import io
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_session import agrees
from tests.test_architecture import LEVELS

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if not page.parts[-2].startswith("_"))
MADE = ("reference/", "examples/")  # folders that the build of the site makes (docs/_hooks)
LEAST_EXAMPLES = {"metrics.md": 10, "datasets.md": 10, "formats.md": 30}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page, language):
    """The blocks of a page in a language, each with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S)
    return [(block[1], text[: block.start(1)].count("\n")) for block in found]


def name_of(page):
    return page.relative_to(DOCS).as_posix()


def pages(language):
    return [pytest.param(page, id=name_of(page)) for page in PAGES if blocks(page, language)]


def statements(block):
    """The statements of a block, each with the comment right below it."""
    lines = block.splitlines()
    for node in ast.parse(block).body:
        end = start = node.end_lineno
        while end < len(lines) and lines[end].startswith("#"):
            end += 1
        shown = "".join(line[1:].removeprefix(" ") + "\n" for line in lines[start:end])
        yield node, shown


def run_plain(block, first_line, name, namespace):
    """Run a block; what stands in comments right below a call of print must be printed."""
    for node, shown in statements(block):
        module = ast.increment_lineno(ast.Module([node], []), first_line)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(module, name, "exec"), namespace)
        if shown and output.getvalue():
            where = f"{name}, line {node.end_lineno}"
            same = doctest.OutputChecker().check_output(shown, output.getvalue(), FLAGS)
            assert same, f"{where} prints\n{output.getvalue()}"


def run_doctests(examples, page):
    text = "\n".join(block for block, _ in examples)
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    result = runner.summarize(verbose=False)
    assert result.attempted > LEAST_EXAMPLES[page.name]
    assert result.failed == 0


@pytest.mark.parametrize("page", pages("python"))
def test_python_blocks_run_in_order_and_print_what_they_show(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # for pages that write a module
    examples = blocks(page, "python")
    if examples[0][0].startswith(">>> "):
        return run_doctests(examples, page)
    namespace = {"__name__": page.stem}
    for block, first_line in examples:
        run_plain(block, first_line, page.name, namespace)


def test_a_block_that_prints_something_else_is_found():
    namespace = {}
    run_plain("x = [1, 2]\nprint(x)\n# [1, ...]\n", 0, "page", namespace)
    with pytest.raises(AssertionError, match=r"page, line 12 prints\s+\[1, 2\]"):
        run_plain("y = x\nprint(y)\n# [1, 3]\n", 10, "page", namespace)


@pytest.mark.parametrize("page", pages("console"))
def test_console_blocks_print_what_they_show(page, tmp_path, environment):
    for block, _ in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            result = subprocess.run(
                command, shell=True, cwd=tmp_path, env=environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            assert agrees(shown, result.stdout), f"$ {command}\n{result.stdout}"


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([\w./-]+\.(?:md|ipynb))", page.read_text("utf-8")):
            path = (page.parent / target).resolve()
            made = path.is_relative_to(DOCS) and name_of(path).startswith(MADE)
            assert made or path.exists(), f"{name_of(page)}: {target}"


def test_every_page_is_in_the_navigation():
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES:
        assert re.search(rf": {re.escape(name_of(page))}$", navigation, flags=re.M), name_of(page)


def test_every_how_to_page_is_listed():
    listed = (DOCS / "howto" / "index.md").read_text(encoding="utf-8")
    for page in (DOCS / "howto").glob("*.md"):
        assert page.name == "index.md" or f"]({page.name})" in listed, page.name


# What users of other packages call things, and ask the search of the site for.
SEARCHED = (
    "NER imbalanced hyperparameter overfit regulariz distillation crowdsourcing gazetteer Docker "
    "ONNX FastAPI BERT LSTM abstention uncertainty reproducible explainability visualize BILOU"
)


def test_words_that_people_search_for_are_on_some_page():
    texts = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [word for word in SEARCHED.split() if word not in texts] == []


def test_the_page_on_architecture_has_each_room_at_its_level():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    shown = {}
    for level, rooms in re.findall(r"^\| (\d) \| (.*) \|$", text, flags=re.M):
        found = [name.replace("crfkit/__init__.py", "") for name in re.findall(r"`([^`]+)`", rooms)]
        shown |= {name: int(level) for name in found if name in LEVELS}
    assert shown == LEVELS


def test_the_page_on_architecture_names_what_exists():
    root = DOCS.parent
    text = re.sub(r"```.*?```", "", (DOCS / "architecture.md").read_text("utf-8"), flags=re.S)
    folders = [root, *(path for path in (root / "crfkit").rglob("*") if path.is_dir())]
    files = (path for f in ("crfkit", "tests") for path in (root / f).rglob("*.py"))
    words = {word for path in files for word in re.findall(r"\w+", path.read_text("utf-8"))}
    for code in set(re.findall(r"`([^`]+)`", text)):
        if "/" in code or code.endswith(".py"):
            pattern = re.compile(r"\b_?x\b|<family>")  # stands for a new file
            known = pattern.search(code) or any((folder / code).exists() for folder in folders)
            assert known or (root / "crfkit" / code).exists(), code
        else:
            for name in re.findall(r"[A-Za-z_]\w{2,}", code):
                assert name in words, code
