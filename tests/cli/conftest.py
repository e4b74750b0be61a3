"""A small corpus as files, and a model of it."""

import gzip

import pytest

from crfkit.cli import main
from crfkit.datasets import load_ingredients

TEMPLATE = """\
# words and their neighbors
U00:%x[-1,0]
U01:%x[0,0]
U02:%x[1,0]
U03:%x[-1,0]/%x[0,0]
U10:%x[0,1]
B10:%x[0,1]
B
"""


def rows(words, tags):
    """Lines of a column file: word, kind of word, tag."""
    kinds = ["number" if word[0].isdigit() else "word" for word in words]
    columns = [words, kinds] if tags is None else [words, kinds, tags]
    return "".join(" ".join(cells) + "\n" for cells in zip(*columns, strict=True)) + "\n"


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A folder with train.txt.gz, test.txt, raw.txt (no tags) and template.txt."""
    folder = tmp_path_factory.mktemp("corpus")
    data = load_ingredients()
    pairs = list(zip(data.tokens, data.tags, strict=True))
    with gzip.open(folder / "train.txt.gz", "wt", encoding="utf-8") as file:
        file.writelines(rows(*pair) for pair in pairs[:150])
    (folder / "test.txt").write_text("".join(rows(*p) for p in pairs[150:180]), "utf-8")
    (folder / "raw.txt").write_text("".join(rows(p[0], None) for p in pairs[150:180]), "utf-8")
    (folder / "template.txt").write_text(TEMPLATE)
    return folder


@pytest.fixture(scope="session")
def model(corpus):
    """The path of a trained model."""
    path = corpus / "m.crfkit"
    arguments = ["train", str(corpus / "train.txt.gz"), "--template", str(corpus / "template.txt"),
                 "--model", str(path), "--c2", "0.1", "--quiet"]  # fmt: skip
    assert main(arguments) == 0
    return path
