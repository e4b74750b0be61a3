"""Models of segments, and of scores without probabilities, on the command line."""

import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import crfkit
from crfkit import (
    CRFClassifierCV,
    MaxMarginCRF,
    SegmentFeatures,
    Segments,
    SemiMarkovCRF,
    StructuredPerceptron,
    TemplateFeatures,
    make_sequence_union,
)
from crfkit.metrics import (
    conlleval_report,
    convert_tags,
    entity_classification_report,
    segment_classification_report,
)
from tests.cli.running import run

TEMPLATES = ["w", "w[-1]", "w[1]"]
TAGGED = """\
12 B-NO
Main B-ROAD
Street I-ROAD
Leeds B-CITY
! O

Leeds B-CITY
Main B-ROAD
Street I-ROAD
7 B-NO

"""
RUNS = TAGGED.replace("B-", "").replace("I-", "")


def read(text):
    """Rows of words and labels of sequences."""
    sequences = [[line.split(" ") for line in part.split("\n")] for part in text.split("\n\n")[:-1]]
    return (
        [[tuple(cells[:1]) for cells in s] for s in sequences],
        [[cells[1] for cells in s] for s in sequences],
    )


def saved(folder, estimator, text, features=None):
    """Fit a model to a text and save it; returns it, its path and that of the text."""
    features = TemplateFeatures(TEMPLATES, columns=["w"]) if features is None else features
    model = make_pipeline(features, estimator).fit(*read(text))
    crfkit.save(model, folder / "m.crfkit")
    (folder / "x.txt").write_text(text)
    return model, folder / "m.crfkit", folder / "x.txt"


@pytest.mark.parametrize(
    "estimator",
    [
        SemiMarkovCRF(c2=0.1),
        StructuredPerceptron(structure=Segments()),
        StructuredPerceptron(),
        MaxMarginCRF(structure=Segments()),
        MaxMarginCRF(),
        MaxMarginCRF(kernel="poly"),
        CRFClassifierCV(c2s=[0.1, 1.0], cv=2),
    ],
    ids=str,
)
def test_every_estimator_tags_and_shows_itself(tmp_path, capsys, estimator):
    model, path, data = saved(tmp_path, estimator, TAGGED)
    code, out, _ = run(capsys, "tag", path, data, "--label", "-1")
    assert code == 0
    assert [line.split(" ")[-1] for line in out.split("\n") if line] == [
        tag for tags in model.predict(read(TAGGED)[0]) for tag in tags
    ]
    code, out, _ = run(capsys, "info", path)
    assert code == 0
    assert f"sizes        {model[-1].n_features_in_} attributes; weights not 0: " in out


@pytest.mark.parametrize("text", [TAGGED, RUNS])
def test_marginals_of_segments_are_those_of_their_labels(tmp_path, capsys, text):
    model, path, data = saved(tmp_path, SemiMarkovCRF(c2=0.1), text)
    _, out, _ = run(capsys, "tag", path, data, "--label", "-1", "--all-marginals")
    X, y = read(text)
    proba = np.concatenate(model.predict_proba(X))
    names = model[-1].classes_.tolist()
    lines = [line.split(" ") for line in out.split("\n") if line]
    for line, row, tag in zip(lines, proba, [tag for tags in y for tag in tags], strict=True):
        assert line[2] == tag
        assert line[3] == f"{row[names.index(tag.split('-')[-1])]:.6f}"
        assert line[4:] == [f"{n}:{p:.6f}" for n, p in zip(names, row, strict=True)]


def test_info_shows_what_is_said_of_segments(tmp_path, capsys):
    features = make_sequence_union(
        TemplateFeatures(TEMPLATES, columns=["w"]),
        SegmentFeatures(["seg.length|seg.shape"], columns=["w"], max_length=2, min_freq=0),
    )
    model, path, _ = saved(tmp_path, SemiMarkovCRF(c2=0.1, max_length=2), TAGGED, features)
    crf = model[-1]
    facts = json.loads(run(capsys, "info", path, "--json", "--top", 1)[1])
    assert facts["scheme"] == "IOB2"
    assert facts["longest"] == {"CITY": 2, "NO": 2, "O": 1, "ROAD": 2}
    assert facts["templates"] == [*TEMPLATES, "seg.length|seg.shape"]
    assert facts["counts"] == {
        "attributes": len(crf.state_features_),
        "transitions": len(crf.transition_features_),
        "attributes of transitions": 0,
        "attributes of first tokens": len(crf.first_features_),
        "attributes of last tokens": len(crf.last_features_),
        "attributes of single tokens": len(crf.single_features_),
        "attributes of segments": len(crf.segment_features_),
    }
    assert facts["counts"]["attributes of segments"] > 0
    _, out, _ = run(capsys, "info", path)
    assert "scheme       IOB2\n" in out
    assert "longest      CITY=2, NO=2, O=1, ROAD=2\n" in out
    assert "\nstrongest weights of attributes of segments\n" in out


def test_runs_are_judged_as_segments_and_tags_as_conlleval_does(tmp_path, capsys):
    for text in (RUNS, TAGGED):
        model, path, data = saved(tmp_path, SemiMarkovCRF(c2=0.1), text)
        other = text.replace("Street ROAD", "Street CITY").replace("I-ROAD", "B-CITY")
        data.write_text(other)
        X, y = read(other)
        predicted = model.predict(X)
        assert predicted != y
        report = (
            segment_classification_report(y, predicted, scheme="runs", digits=4)
            if text is RUNS
            else conlleval_report(y, predicted)
        )
        assert run(capsys, "evaluate", data, "--model", path)[1] == f"{report}\n"
    _, tagged, _ = run(capsys, "tag", path, data, "--label", "-1")
    (tmp_path / "tagged.txt").write_text(tagged)
    _, out, _ = run(capsys, "evaluate", tmp_path / "tagged.txt", "--report", "segments")
    assert out == f"{segment_classification_report(y, predicted, scheme='conll', digits=4)}\n"


def judged(capsys, folder, rows, *options):
    """The report of columns of true and predicted labels."""
    (folder / "columns.txt").write_text("".join(f"x {a} {b}\n" for a, b in rows))
    return run(capsys, "evaluate", folder / "columns.txt", *options)[1]


@pytest.mark.parametrize(
    ("labels", "options", "scheme"),
    [
        (("B-C", "B-C", "O"), [], "conll"),
        (("B-C", "B-C", "O"), ["--scheme", "RUNS"], "runs"),
        (("B-C", "I-C", "I-S"), ["--scheme", "bio"], "IOB2"),
        (("E", "E", "I"), [], "runs"),
        (("E", "E", "I"), ["--scheme", "IOE2"], "IOE2"),
        (("B-1", "B-1", "A-1"), [], "runs"),
    ],
)
def test_segments_are_those_of_tags_where_labels_are_tags(
    tmp_path, capsys, labels, options, scheme
):
    out = judged(
        capsys, tmp_path, zip(labels, labels, strict=True), "--report", "segments", *options
    )
    y = [list(labels)]
    assert out == f"{segment_classification_report(y, y, scheme=scheme, digits=4)}\n"


@pytest.mark.parametrize("scheme", ["IOB2", "IOE2"])
def test_tags_are_judged_by_the_scheme_of_the_model(tmp_path, capsys, scheme):
    _, y = read(TAGGED)
    tags = [convert_tags(row, "IOB2", scheme) for row in y]
    words = [line.split(" ")[0] for line in TAGGED.split("\n")[:-1]]
    flat = iter([tag for row in tags for tag in row])
    text = "".join(f"{word} {next(flat)}\n" if word else "\n" for word in words)
    model, path, data = saved(tmp_path, SemiMarkovCRF(c2=0.1), text)
    assert model[-1].scheme_ == scheme
    predicted = model.predict(read(text)[0])
    options = ["evaluate", data, "--model", path, "--report"]
    assert run(capsys, *options, "segments") == (
        0, f"{segment_classification_report(tags, predicted, scheme=scheme, digits=4)}\n", ""
    )  # fmt: skip
    assert run(capsys, *options, "entities") == (
        0,
        entity_classification_report(tags, predicted, mode="strict", scheme=scheme, digits=4)
        + "\n",
        "",
    )


def test_errors_about_schemes_name_the_option(tmp_path, capsys):
    (tmp_path / "x.txt").write_text("a B-X\nb I-X\nc other\n")
    code, _, err = run(capsys, "train", tmp_path / "x.txt", "--model", tmp_path / "m", "--segments")
    assert code == 1
    assert "--scheme runs" in err


@pytest.mark.parametrize(
    ("text", "options", "scheme"),
    [
        (TAGGED, [], "IOB2"),
        (RUNS, ["--scheme", "runs"], "runs"),
        (RUNS, ["--scheme", "RUNS"], "runs"),
        (TAGGED, ["--scheme", "Auto"], "IOB2"),
        (TAGGED, ["--scheme", "bio"], "IOB2"),
        (TAGGED, ["--c1", "0.1", "--loss", "pointwise"], "IOB2"),
    ],
)
def test_train_learns_segments(tmp_path, capsys, text, options, scheme):
    (tmp_path / "x.txt").write_text(text)
    code, out, err = run(
        capsys, "train", tmp_path / "x.txt", "--model", tmp_path / "m", "--segments",
        "--max-length", 3, "--c2", "0.1", "--test", tmp_path / "x.txt", *options,
    )  # fmt: skip
    assert (code, err) == (0, "")
    pipeline = crfkit.load(tmp_path / "m")
    crf = pipeline[-1]
    assert (crf.max_length, crf.scheme_, crf.c2) == (3, scheme, 0.1)
    assert crf.loss == (options[-1] if "--loss" in options else "log")
    used = sum(
        len(view)
        for view in (crf.state_features_, crf.first_features_, crf.last_features_,
                     crf.single_features_, crf.transition_features_)
    )  # fmt: skip
    assert out.startswith(
        f"{crf.n_parameters_} weights, {used} of attributes and transitions not 0, after "
    )
    X, y = read(text)
    assert pipeline.predict(X) == y
    _, out, _ = run(capsys, "tag", tmp_path / "m", tmp_path / "x.txt")
    assert out == "".join(line + f" {line.split(' ')[-1]}" * bool(line) + "\n"
                          for line in text.split("\n")[:-1])  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--max-length", 3], "--max-length needs --segments"),
        (["--scheme", "IOB2"], "--scheme needs --segments"),
        (["--segments", "--max-length", 0], "--max-length=0 must be"),
        (["--segments", "--scheme", "IOB9"], "unknown tag scheme 'IOB9'"),
        (["--segments", "--scheme", "IOB9"], "BMEWO, auto, runs\n"),
        (["--segments", "--all-states"], "--all-states does not go with --segments"),
        (["--segments", "--all-transitions"], "--all-transitions does not go with"),
        (["--segments", "--boundaries"], "--boundaries does not go with"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(tmp_path, capsys, arguments, message):
    (tmp_path / "x.txt").write_text(TAGGED)
    code, _, err = run(capsys, "train", tmp_path / "x.txt", "--model", tmp_path / "m", *arguments)
    assert code == 2
    assert message in err


def test_a_segment_that_is_too_long_is_named(tmp_path, capsys):
    (tmp_path / "x.txt").write_text(TAGGED)
    code, _, err = run(
        capsys, "train", tmp_path / "x.txt", "--model", tmp_path / "m", "--segments",
        "--max-length", 1,
    )  # fmt: skip
    assert code == 1
    assert "sequence 0, position 1: the segment of label 'ROAD' has 2 tokens" in err


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (StructuredPerceptron(), ["--marginals"], "a StructuredPerceptron, which has no prob"),
        (MaxMarginCRF(), ["--decoding", "posterior"], "a MaxMarginCRF, which cannot do that"),
    ],
)
def test_what_a_model_cannot_do_is_told(tmp_path, capsys, estimator, options, message):
    _, path, data = saved(tmp_path, estimator, TAGGED)
    code, out, err = run(capsys, "tag", path, data, "--label", "-1", *options)
    assert (code, out) == (1, "")
    assert message in err
    assert "Traceback" not in err


def test_the_decoder_of_segments_may_be_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, path, data = saved(tmp_path, SemiMarkovCRF(), TAGGED)
    plain = run(capsys, "tag", path, data, "--label", "-1")
    assert run(capsys, "tag", path, data, "--label", "-1", "--decoding", "viterbi") == plain
    options = "--label", "-1", "--segments", "--quiet", "--decoding", "posterior", "--model", "m"
    assert run(capsys, "train", data, *options)[0] == 0
    assert crfkit.load("m")[-1].decoding == "posterior"
