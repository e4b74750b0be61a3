import pytest

from crfkit import CRFClassifier
from crfkit.datasets import fetch_conll2000, fetch_conll2002, fetch_ud
from crfkit.datasets.corpora import CONLL2000, CONLL2002
from crfkit.io import conllu_features_and_labels, read_conllu
from crfkit.metrics import spans_from_tags


def size(data):
    return len(data.tokens), sum(map(len, data.tokens)), len(data.target_names)


def skip_without(path):
    if not path.is_dir():
        pytest.skip(f"no {path.name} in {path.parent}")


def test_conll2000_has_the_known_counts(data_home):
    skip_without(data_home / "conll2000")
    data = fetch_conll2000("all", mirror=data_home)
    assert size(data.train) == (8936, 211_727, 22)
    assert size(data.test) == (2012, 47_377, 19)
    assert sum(len(spans_from_tags(tags, "IOB2")) for tags in data.test.tags) == 23_852
    assert data.train.tokens[0][:3] == ["Confidence", "in", "the"]
    assert data.train.pos[0][:3] == ["NN", "IN", "DT"]
    assert "8,936 sentences" in data.DESCR


def test_conll2002_has_the_known_counts(data_home):
    skip_without(data_home / "conll2002_es")
    data = fetch_conll2002("all", language="es", mirror=data_home)
    sizes = {part: size(data[part]) for part in ("train", "dev", "test")}
    assert sizes["train"] == (8323, 264_715, 9)
    assert sizes["dev"] == (1915, 52_923, 9)
    assert sizes["test"] == (1517, 51_533, 9)
    assert "no commercial use" in data.license


def test_dutch_is_read_where_a_mirror_has_it(monkeypatch, tmp_path):
    file = CONLL2002["nl"].files["test"]._replace(sha256=None)
    monkeypatch.setitem(CONLL2002, "nl", CONLL2002["nl"]._replace(files={"test": file}))
    (tmp_path / "ned.testb").write_text("-DOCSTART- -DOCSTART- O\nDe Art O\n\nGent N B-LOC\n")
    data = fetch_conll2002("test", language="nl", mirror=tmp_path)
    assert (data.tokens, data.tags) == ([["De"], ["Gent"]], [["O"], ["B-LOC"]])
    assert not data.verified


@pytest.mark.parametrize(
    ("folder", "treebank", "part", "expected"),
    [
        ("ud_english_ewt", "en_ewt", "dev", (2001, 25_147, 17)),
        ("ud_chinese_gsdsimp", "zh_gsdsimp", "test", (500, 12_012, 15)),
    ],
)
def test_treebanks_have_the_known_counts(data_home, folder, treebank, part, expected):
    skip_without(data_home / folder)
    data = fetch_ud(treebank, part, mirror=data_home)
    assert size(data) == expected
    assert data.verified
    assert conllu_features_and_labels(data.sentences)[1] == data.tags


def test_any_treebank_is_read_from_a_mirror(tmp_path):
    folder = tmp_path / "UD_Toy-Tiny"
    folder.mkdir()
    row = "1\tja\tja\tINTJ\t_\t_\t0\troot\t_\t_\n"
    (folder / "tt_tiny-ud-train.conllu").write_text(row)
    data = fetch_ud("tt_tiny", mirror=tmp_path)
    assert (data.tokens, data.tags, data.verified) == ([["ja"]], [["INTJ"]], False)
    assert data.sentences == read_conllu([row])
    X, y = conllu_features_and_labels(data.sentences)
    assert CRFClassifier().fit(X, y).predict(X) == y


def test_what_has_no_checksum_is_not_downloaded(tmp_path):
    with pytest.raises(OSError, match="tt_tiny-ud-dev.conllu has no known checksum"):
        fetch_ud("tt_tiny", "dev", data_home=tmp_path)
    with pytest.raises(OSError, match="has no zh_gsdsimp-ud-train.conllu .*copy it there$"):
        fetch_ud("zh_gsdsimp", mirror=tmp_path)


@pytest.mark.parametrize("treebank", ["../en_ewt", "UD_English-EWT", "", 3])
def test_only_codes_are_treebanks(treebank):
    with pytest.raises(ValueError, match="is no code such as 'en_ewt'"):
        fetch_ud(treebank)


def test_unknown_languages_are_refused():
    with pytest.raises(ValueError, match="language='de' is not known"):
        fetch_conll2002(language="de")


def test_every_file_that_is_downloaded_has_a_checksum():
    for collection in (CONLL2000, *CONLL2002.values()):
        for file in collection.files.values():
            assert len(file.sha256) == 64
            assert file.url.startswith("https://")
