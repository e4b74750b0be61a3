"""Files of one format for models that were trained on another."""

import gzip
import io
import json
import sys

import pytest

import crfkit
from crfkit import CRFClassifier, TemplateFeatures
from crfkit.io import read_csv
from tests.cli.running import run

WORDS = [("The", "DET"), ("dog", "NOUN"), ("barks", "VERB"), (".", "PUNCT")]
CONLLU = "".join(
    f"{i}\t{form}\t{form.lower()}\t{upos}\tX\t_\t0\troot\t_\t_\n"
    for i, (form, upos) in enumerate(WORDS, start=1)
)
TAGGED = "Ann B-PER\nLee I-PER\nsleeps O\n. O\n\nA O\ndog O\n\n" * 3


@pytest.fixture
def tagger(tmp_path, capsys):
    """A model of CoNLL-U that looks at forms alone."""
    (tmp_path / "x.conllu").write_text(CONLLU + "\n")
    train = ["train", tmp_path / "x.conllu", "--model", tmp_path / "tagger", "--quiet"]
    assert run(capsys, *train) == (0, "", "")
    return tmp_path / "tagger"


@pytest.fixture
def finder(tmp_path, capsys):
    """A model of columns that finds persons, which names its tokenizer."""
    (tmp_path / "x.txt").write_text(TAGGED)
    train = ["train", tmp_path / "x.txt", "--model", tmp_path / "finder", "--quiet"]
    assert run(capsys, *train, "--tokenizer", r"\w+|\.") == (0, "", "")
    return tmp_path / "finder"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tokens", "The dog\tbarks  .\n\n"),
        ("text", "The dog barks.\n"),
        ("jsonl", '{"tokens": ["The", "dog", "barks", "."]}\n'),
        ("jsonl", '{"text": "The dog barks."}\n'),
        ("columns", "The x\ndog x\nbarks x\n. x\n"),
    ],
)
def test_a_model_of_conllu_tags_words_of_any_format(tagger, tmp_path, capsys, name, text):
    (tmp_path / "in").write_text(text)
    command = ["tag", tagger, tmp_path / "in", "--format", name, "--output-format", "conll"]
    code, out, err = run(capsys, *command)
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines() if line]
    assert [(row[0], row[-1]) for row in rows] == WORDS


def test_a_column_that_the_model_looks_at_is_missed_by_name(tmp_path, capsys):
    (tmp_path / "x.conllu").write_text(CONLLU + "\n")
    (tmp_path / "t").write_text("form\nsuffix(lemma, 1)\n")
    train = ["train", tmp_path / "x.conllu", "--template", tmp_path / "t", "--model"]
    assert run(capsys, *train, tmp_path / "m", "--quiet")[0] == 0
    (tmp_path / "in").write_text("The dog\n")
    code, out, err = run(capsys, "tag", tmp_path / "m", tmp_path / "in", "--format", "tokens")
    assert (code, out) == (1, "")
    assert "the model looks at the column 'lemma', which the data (--format tokens)" in err
    (tmp_path / "in.jsonl").write_text('{"tokens": ["The"], "lemma": ["the"], "more": ["?"]}\n')
    code, out, _ = run(capsys, "tag", tmp_path / "m", tmp_path / "in.jsonl")  # by its ending
    assert json.loads(out)["tags"] == ["DET"]


def test_objects_have_spans_and_confidence_and_all_that_they_had(finder, tmp_path, capsys):
    record = {"id": 7, "text": "A dog. Ann Lee sleeps.", "meta": {"source": "x"}}
    (tmp_path / "in.jsonl").write_text(json.dumps(record) + "\n")
    code, out, err = run(capsys, "tag", finder, tmp_path / "in.jsonl", "--marginals")
    assert (code, err) == (0, "")
    found = json.loads(out)
    model = crfkit.load(finder)
    rows = [(word,) for word in ("A", "dog", ".", "Ann", "Lee", "sleeps", ".")]
    packed = model[:-1].transform([rows])
    (confidence,), ((span,),) = (
        model[-1].confidence(packed, of=of) for of in ("sequences", "spans")
    )
    assert found.items() >= record.items()
    assert found["tokens"] == [row[0] for row in rows]
    assert found["tags"] == ["O", "O", "O", "B-PER", "I-PER", "O", "O"]
    assert found["probability"] == pytest.approx(confidence, rel=1e-4)
    (only,) = found["spans"]
    assert only.pop("probability") == pytest.approx(span, abs=1e-6)
    assert only == {"start": 7, "end": 14, "label": "PER", "text": "Ann Lee"}
    assert len(found["tag_probabilities"]) == 7
    _, out, _ = run(capsys, "tag", finder, tmp_path / "in.jsonl", "--n-best", 2)
    ranked = [json.loads(line) for line in out.splitlines()]
    assert [each["rank"] for each in ranked] == [0, 1]
    assert ranked[0]["spans"][0]["start"] == 7


def test_labels_of_objects_stay_and_are_judged(finder, tmp_path, capsys):
    record = {"tokens": ["Ann", "Lee", "sleeps"], "tags": ["B-PER", "O", "O"]}
    (tmp_path / "in.jsonl").write_text(json.dumps(record) + "\n")
    code, out, _ = run(capsys, "tag", finder, tmp_path / "in.jsonl", "--output", "jsonl")
    found = json.loads(out)
    assert code == 0 and found.items() >= record.items()
    assert found["predicted"] == ["B-PER", "I-PER", "O"]
    (tmp_path / "out.jsonl").write_text(out)
    code, out, _ = run(capsys, "evaluate", tmp_path / "out.jsonl", "--report", "tokens")
    assert code == 0 and "0.667" in out
    code, _, err = run(capsys, "evaluate", tmp_path / "in.jsonl")
    assert code == 1 and "objects need two labelings" in err


def test_texts_without_tokens_are_not_left_out_of_objects(finder, tmp_path, capsys):
    objects = '{"text": ""}\n{"text": "Ann"}\n{"tokens": []}\n'
    for name, text in (("text", "\nAnn\n \n"), ("jsonl", objects)):
        (tmp_path / "in").write_text(text)
        _, out, err = run(capsys, "tag", finder, tmp_path / "in", "--format", name)
        assert [json.loads(line)["tags"] for line in out.splitlines()] == [[], ["B-PER"], []]
        assert err == ""


def test_the_tokenizer_of_the_model_splits_texts(finder, tmp_path, capsys):
    (tmp_path / "in").write_text("Ann Lee's\n")
    _, out, _ = run(capsys, "tag", finder, tmp_path / "in", "--format", "text")
    assert json.loads(out)["tokens"] == ["Ann", "Lee", "s"]
    _, out, _ = run(
        capsys, "tag", finder, tmp_path / "in", "--format", "text", "--tokenizer", "whitespace"
    )
    assert json.loads(out)["tokens"] == ["Ann", "Lee's"]
    code, _, err = run(capsys, "tag", finder, tmp_path / "in", "--format", "text", "--tokenizer",
                       "letters")  # fmt: skip
    assert code == 1 and "--tokenizer letters is not known" in err


def test_objects_of_tokens_and_of_texts_train(tmp_path, capsys):
    records = [
        {"tokens": ["Ann", "sleeps"], "tags": ["B-PER", "O"]},
        {"text": "Lee sleeps", "label": [[0, 3, "PER"]]},
        {"text": "A dog", "entities": []},
        {"text": "Ann, Lee", "spans": [{"start": 0, "end": 3, "label": "PER"},
                                       {"start": 5, "end": 8, "label": "PER"}]},
    ]  # fmt: skip
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    command = ["train", tmp_path / "x.jsonl", "--model", tmp_path / "m", "--test"]
    code, out, _ = run(capsys, *command, tmp_path / "x.jsonl")
    assert code == 0
    assert "PER: precision: 100.00%; recall: 100.00%; FB1: 100.00  4" in out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: no JSON"),
        ("[1]", 'line 2: expected an object'),
        ('{"tokens": ["a"]}', "none of ['tags', 'labels', 'ner_tags', 'pos_tags']: say with"),
        ('{"tokens": ["a"], "tags": []}', '"tags" has 0, but there are 1 tokens'),
        ('{"tokens": ["a"], "ner_tags": [3]}', "position 0: the label 3 of \"ner_tags\" is no"),
        ('{"text": "a", "label": [[0, 1]]}', "is no span [start, end, label]"),
        ('{"text": "ab", "label": [[0, 1.9, "X"]]}', "is no span [start, end, label]"),
        ('{"text": "ab", "spans": [{"start": 0, "end": 1, "label": null}]}', "is no span"),
        ('{"text": "a", "label": [[0, 5, "X"]]}', "is empty or not within"),
    ],
)  # fmt: skip
def test_objects_that_cannot_be_read_are_named(tmp_path, capsys, monkeypatch, line, message):
    text = f'{{"tokens": ["a"], "tags": ["X"]}}\n{line}\n'
    (tmp_path / "x.jsonl").write_text(text)
    code, _, err = run(capsys, "train", tmp_path / "x.jsonl", "--model", tmp_path / "m")
    assert code == 1
    assert message in err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    command = ["train", "-", "--format", "jsonl", "--model", tmp_path / "m"]
    assert run(capsys, *command)[2] == err.replace(str(tmp_path / "x.jsonl"), "<stream>")


def test_tables_have_names_quotes_and_a_column_of_sequences(tmp_path, capsys):
    table = tmp_path / "x.csv"
    table.write_text('id,Word,POS,Tag\ns1,Ann,NN,B-PER\n,"said, no",VB,O\ns2,A,DT,O\n,dog,NN,O\n')
    (tmp_path / "t").write_text("Word\nPOS\n")
    train = ["train", table, "--by", "id", "--template", tmp_path / "t", "--model", tmp_path / "m"]
    assert run(capsys, *train, "--quiet") == (0, "", "")
    assert {"Word=said, no", "POS=VB"} <= set(crfkit.load(tmp_path / "m")[-1].feature_names_in_)
    _, out, _ = run(capsys, "tag", tmp_path / "m", table)
    assert out.splitlines() == [
        "Word,POS,Tag,predicted", "Ann,NN,B-PER,B-PER", '"said, no",VB,O,O', "",
        "A,DT,O,O", "dog,NN,O,O", "",
    ]  # fmt: skip
    (tmp_path / "tagged.csv").write_text(out)
    X, y = read_csv(tmp_path / "tagged.csv")
    assert (len(X), y) == (2, [["B-PER", "O"], ["O", "O"]])
    code, told, _ = run(capsys, "evaluate", tmp_path / "tagged.csv")
    assert code == 0 and "accuracy: 100.00%" in told.replace("accuracy:  ", "accuracy: ")
    assert run(capsys, "evaluate", tmp_path / "tagged.csv", "--label", "Tag")[1] == told
    assert run(capsys, "evaluate", tmp_path / "m", "--label", "Tag")[0] == 2
    (tmp_path / "in.tsv").write_text("POS\tid\tWord\nNN\t1\tAnn\n")  # by name, in any order
    by_name = ["tag", tmp_path / "m", tmp_path / "in.tsv", "--format", "csv"]
    assert run(capsys, *by_name)[1] == "POS\tWord\tpredicted\nNN\tAnn\tB-PER\n\n"
    (tmp_path / "bare.csv").write_text("Ann;B-PER\nsaid;O\n\n")
    bare = ["--sep", ";", "--no-header"]
    train_bare = ["train", tmp_path / "bare.csv", "--model", tmp_path / "b", "--quiet", *bare]
    assert run(capsys, *train_bare)[0] == 0
    _, out, _ = run(capsys, "tag", tmp_path / "b", tmp_path / "bare.csv")  # the model remembers
    assert out == "Ann;B-PER;B-PER\nsaid;O;O\n\n"
    (tmp_path / "again.csv").write_text(out)
    assert run(capsys, "evaluate", tmp_path / "again.csv", *bare)[0] == 0
    code, _, err = run(capsys, *train, "--label", "Tga")
    assert code == 1 and "no column is named 'Tga'" in err


def test_what_is_tagged_is_written_as_the_ending_says(finder, tmp_path, capsys):
    (tmp_path / "in").write_text("Ann sleeps\n")
    command = ["tag", finder, tmp_path / "in", "--format", "tokens", "--output"]
    assert run(capsys, *command, tmp_path / "o.csv", "--n-best", 1)[0] == 0
    rows = (tmp_path / "o.csv").read_text().splitlines()
    assert rows[0] == "token,predicted,rank,probability"
    assert rows[1].startswith("Ann,B-PER,0,0.")
    assert run(capsys, *command, tmp_path / "o.jsonl.gz")[0] == 0
    with gzip.open(tmp_path / "o.jsonl.gz", "rt") as file:
        assert json.loads(file.read())["tags"] == ["B-PER", "O"]
    assert run(capsys, *command, tmp_path / "o.txt", "--output-format", "csv", "--spans")[0] == 0
    assert (tmp_path / "o.txt").read_text() == "start,stop,label,text\n0,1,PER,Ann\n\n"


def test_what_has_no_labels_teaches_nothing(tmp_path, capsys):
    (tmp_path / "x").write_text("a b\n")
    train = ["train", tmp_path / "x", "--model", tmp_path / "m", "--format"]
    for name in ("tokens", "text"):
        code, _, err = run(capsys, *train, name)
        assert code == 2 and f"--format {name} has no labels to learn from" in err


def test_models_of_python_tag_words_too(tmp_path, capsys):
    X, y = [["a", "dog"], ["a"]], [["D", "N"], ["D"]]
    crf = CRFClassifier(features=TemplateFeatures(["lower(w)"], columns=["w"]))
    crf.fit([[(word,) for word in words] for words in X], y).save(tmp_path / "m")
    (tmp_path / "in").write_text("a dog\n")
    code, out, _ = run(capsys, "tag", tmp_path / "m", tmp_path / "in", "--format", "tokens")
    assert (code, out) == (0, "a D\ndog N\n\n")
    CRFClassifier().fit([[[word] for word in words] for words in X], y).save(tmp_path / "bare")
    code, _, err = run(capsys, "tag", tmp_path / "bare", tmp_path / "in", "--format", "tokens")
    assert code == 1 and "the model takes attributes of tokens" in err
