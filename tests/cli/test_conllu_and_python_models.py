"""CoNLL-U on the command line, and models that were saved from Python."""

import io

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import crfkit
from crfkit import CRFClassifier, SemiMarkovCRF, TemplateFeatures
from crfkit.compat import sklearn_crfsuite
from crfkit.features import preset
from crfkit.io import read_columns, read_conll, read_conllu, write_crfsuite_text
from tests.cli.running import run

TEXT = """\
# sent_id = 1
# text = dogs don't bark
1\tdogs\tdog\tNOUN\t_\tNumber=Plur\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tdo\tdo\tAUX\t_\t_\t4\taux\t_\tA=b
3\tn't\tnot\tPART\t_\t_\t4\tadvmod\t_\t_
3.1\t_\t_\t_\t_\t_\t_\t_\t0:x\t_
4\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_

"""
FORMS, TAGS = ["dogs", "do", "n't", "bark"], ["NOUN", "AUX", "PART", "VERB"]


@pytest.fixture
def tagger(tmp_path, capsys):
    """A model that knows the words of the text; raw.conllu has them without tags."""
    untagged = TEXT
    for tag in TAGS:
        untagged = untagged.replace(f"\t{tag}\t", "\t_\t")
    (tmp_path / "train.conllu").write_text(TEXT, "utf-8")
    (tmp_path / "raw.conllu").write_text(untagged, "utf-8")
    model = tmp_path / "t.crfkit"
    train = ["train", tmp_path / "train.conllu", "--model", model, "--quiet", "--c2", "0.1"]
    assert run(capsys, *train)[0] == 0
    return model


def test_tagged_conllu_is_conllu_with_all_of_its_lines(tmp_path, tagger, capsys):
    assert run(capsys, "tag", tagger, tmp_path / "raw.conllu") == (0, TEXT, "")


def test_the_probability_of_a_label_is_in_misc(tmp_path, tagger, capsys):
    _, out, _ = run(capsys, "tag", tagger, tmp_path / "raw.conllu", "--marginals")
    rows = [(form, "_", "_", "_", "_") for form in FORMS]
    proba = crfkit.load(tagger).predict_proba([rows])[0]
    (sentence,) = read_conllu(io.StringIO(out))
    found = [float(word.misc["Probability"]) for word in sentence.words]
    np.testing.assert_allclose(found, proba.max(axis=1), atol=1e-6)
    assert sentence.words[1].misc["A"] == "b"


def test_conllu_has_no_place_for_all_probabilities(tmp_path, tagger, capsys):
    code, out, err = run(capsys, "tag", tagger, tmp_path / "raw.conllu", "--all-marginals")
    assert (code, out) == (1, "")
    assert err.startswith("crfkit: --all-marginals: CoNLL-U")


def test_default_templates_of_conllu_look_at_forms_alone(tagger):
    names = set(crfkit.load(tagger)[-1].feature_names_in_)
    assert "col(0)=dogs" in names
    assert not any("Number=Plur" in name or "nsubj" in name for name in names)


def test_a_preset_stands_in_the_place_of_a_template_file(tmp_path, capsys):
    (tmp_path / "train.conllu").write_text(TEXT, "utf-8")
    model = tmp_path / "m"
    train = ["train", tmp_path / "train.conllu", "--template", "tags", "--model", model, "--quiet"]
    assert run(capsys, *train)[0] == 0
    assert crfkit.load(model)[0].templates == preset("tags")
    count = ["features", tmp_path / "train.conllu", "--count"]
    plain = run(capsys, *count)
    assert plain == run(capsys, *count, "--template", "words")
    assert plain != run(capsys, *count, "--template", "tags")


def test_the_default_penalty_is_that_of_the_estimators(tmp_path, capsys):
    (tmp_path / "train.conllu").write_text(TEXT, "utf-8")
    for options, kind in (([], CRFClassifier), (["--segments", "--scheme", "runs"], SemiMarkovCRF)):
        train = ["train", tmp_path / "train.conllu", "--model", tmp_path / "m", "--quiet", *options]
        assert run(capsys, *train)[0] == 0
        assert crfkit.load(tmp_path / "m")[-1].c2 == kind().c2 == 0.1
    assert sklearn_crfsuite.CRF().fit([[{"w": "a"}]], [["A"]]).model_.c2 == 1.0


def test_labels_that_are_no_chunk_tags_are_reported_one_by_one(tmp_path, tagger, capsys):
    evaluate = ["evaluate", tmp_path / "train.conllu", "--model", tagger]
    code, out, _ = run(capsys, *evaluate)
    assert code == 0
    assert "NOUN" in out
    assert out == run(capsys, *evaluate, "--report", "tokens")[1]


@pytest.mark.parametrize("as_parameter", [False, True], ids=["pipeline", "features="])
def test_a_model_saved_from_python_tags_with_its_templates(corpus, tmp_path, capsys, as_parameter):
    X, y = read_conll(corpus / "train.txt.gz")
    codes = {label: code for code, label in enumerate(sorted({t for tags in y for t in tags}))}
    numbers = [[codes[label] for label in tags] for tags in y]
    features = TemplateFeatures.from_file(corpus / "template.txt")
    model = make_pipeline(features, CRFClassifier())
    model = CRFClassifier(features=features) if as_parameter else model
    path = tmp_path / "m.crfkit"
    crfkit.save(model.fit(X, numbers), path)
    expected = [str(k) for s in model.predict(read_columns(corpus / "raw.txt")) for k in s]
    for arguments in ([corpus / "raw.txt"], [corpus / "test.txt", "--label", "-1"]):
        _, out, _ = run(capsys, "tag", path, *arguments)
        assert [line.split(" ")[-1] for line in out.splitlines() if line] == expected


@pytest.mark.parametrize("crf", [CRFClassifier(), sklearn_crfsuite.CRF()])
def test_a_model_of_attributes_asks_for_the_format(corpus, tmp_path, capsys, crf):
    rows, y = read_conll(corpus / "train.txt.gz")
    X = [[{f"w={r[0]}": 1.0} for r in s] for s in rows]
    path = tmp_path / "m.crfkit"
    crfkit.save(crf.fit(X, y), path)
    code, out, err = run(capsys, "tag", path, corpus / "raw.txt")
    assert (code, out) == (1, "")
    assert "say --format crfsuite" in err
    write_crfsuite_text(tmp_path / "x.txt", X, y)
    _, out, _ = run(capsys, "tag", path, tmp_path / "x.txt", "--format", "crfsuite")
    assert out.split("\n\n")[:-1] == ["\n".join(labels) for labels in crf.predict(X)]
    assert run(capsys, "info", path)[0] == 0


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        (CRFClassifier(), "that is not fitted"),
        (sklearn_crfsuite.CRF(), "that is not fitted"),
        (TemplateFeatures("col(0)").fit([[("a",)]]), "no sequence classifier"),
    ],
)
def test_what_is_no_fitted_model_is_told_so(tmp_path, capsys, saved, message):
    path = tmp_path / "m.crfkit"
    crfkit.save(saved, path)
    code, _, err = run(capsys, "info", path)
    assert code == 1
    assert message in err


def test_the_label_column_is_remembered_where_the_format_is_named(tmp_path, capsys):
    path, model = tmp_path / "x.txt", tmp_path / "m.crfkit"
    path.write_text("D the\nN dog\n\n")
    train = ["train", path, "--label", "0", "--model", model, "--quiet", "--c2", "0.1"]
    assert run(capsys, *train)[0] == 0
    _, out, _ = run(capsys, "tag", model, path, "--format", "columns")
    assert out == "D the D\nN dog N\n\n"


def test_the_decoder_of_the_model_is_kept(corpus, model, tmp_path, capsys):
    pipeline = crfkit.load(model)
    pipeline[-1].set_params(decoding="posterior", c2=0.1)
    crfkit.save(
        pipeline, tmp_path / "p.crfkit", metadata=crfkit.persistence.describe(model)["metadata"]
    )
    _, own, _ = run(capsys, "tag", tmp_path / "p.crfkit", corpus / "raw.txt")
    _, posterior, _ = run(capsys, "tag", model, corpus / "raw.txt", "--decoding", "posterior")
    _, viterbi, _ = run(capsys, "tag", model, corpus / "raw.txt")
    assert own == posterior
    assert own != viterbi
