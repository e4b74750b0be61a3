"""The page on extensions shows the files of this folder, which pass the tests as they stand."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "extending.md"
FILES = [path for path in sorted(FOLDER.glob("[!_]*.py")) if not path.name.startswith("test_")]


def shown():
    """The files of the page, in order, each with the block that shows it."""
    pattern = r"^`tests/extensions/(\w+\.py)`:\n\n```py\n(.*?)^```$"
    return dict(re.findall(pattern, PAGE.read_text("utf-8"), re.M | re.S))


def test_each_extension_is_on_the_page():
    assert sorted(shown()) == [path.name for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_page_shows_what_the_file_says(path):
    assert shown()[path.name] == path.read_text("utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_extension_is_small_and_imports_nothing_private(path):
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 100
    rooms = re.findall(r"^from crfkit\.([\w.]+)", text, re.M)
    private = [name for name in rooms if re.search(r"(^|\.)_", name)]
    assert set(private) <= {"_types", "_parallel"}  # of annotations, and of threads
