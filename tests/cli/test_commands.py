"""train, tag, evaluate, info and features, in this process."""

import io
import json
import os
import sys
import threading

import numpy as np
import pytest

import crfkit
from crfkit import CRFClassifier, TemplateFeatures
from crfkit.cli import main
from crfkit.compat.crfsuite import save_crfsuite
from crfkit.io import read_columns, read_conll, read_crfsuite_text, write_crfsuite_text
from crfkit.metrics import conlleval_report
from crfkit.training.fit import FitProgress
from tests.cli.running import run


def test_the_trained_model_is_that_of_the_estimator(corpus, model):
    X, y = read_conll(corpus / "train.txt.gz")
    features = TemplateFeatures.from_file(corpus / "template.txt")
    crf = CRFClassifier(c2=0.1).fit(features.fit_transform(X), y)
    saved = crfkit.load(model)
    np.testing.assert_array_equal(saved[-1].coef_.data, crf.coef_.data)
    assert len(saved[-1].transition_attributes_) == len(crf.transition_attributes_) > 0
    assert saved.predict(X) == crf.predict(features.transform(X))


@pytest.mark.filterwarnings("ignore:fit did not converge")
@pytest.mark.parametrize("loss", ["risk", "hinge"])  # with stages; with corners
def test_the_loss_and_the_decoding_are_those_of_the_estimator(corpus, tmp_path, capsys, loss):
    X, y = read_conll(corpus / "train.txt.gz")
    (tmp_path / "t").write_text("U01:%x[0,0]\nB\n")
    features = TemplateFeatures.from_file(tmp_path / "t")
    options = {"loss": loss, "decoding": "posterior", "max_iter": 4}
    crf = CRFClassifier(**options).fit(features.fit_transform(X), y)
    code, _, err = run(
        capsys, "train", corpus / "train.txt.gz", "--template", tmp_path / "t", "--quiet",
        "--model", tmp_path / "m", "--max-iter", 4, "--loss", loss, "--decoding", "posterior",
    )  # fmt: skip
    assert code == 0 and "max_iter=4" in err
    saved = crfkit.load(tmp_path / "m")[-1]
    assert saved.get_params() == crf.get_params()
    assert saved.n_iter_ == crf.n_iter_ == 4
    np.testing.assert_array_equal(saved.coef_.data, crf.coef_.data)


def test_train_says_what_it_made(corpus, tmp_path, capsys):
    target = tmp_path / "m.crfkit"
    code, out, err = run(
        capsys, "train", corpus / "train.txt.gz", "--model", target, "--max-iter", 3,
        "--test", corpus / "test.txt",
    )  # fmt: skip
    assert code == 0
    lines = out.splitlines()
    assert "weights" in lines[0] and "after 3 iterations of LBFGS: objective" in lines[0]
    assert lines[1].startswith(f"{target}: ")
    assert lines[2].startswith("processed ")
    assert err.startswith("crfkit: warning: fit did not converge: max_iter=3")
    assert len(err.splitlines()) == 1


def test_training_starts_where_it_is_told(corpus, model, tmp_path, capsys):
    values = []
    for start in ("zeros", "counts", model):
        _, out, _ = run(
            capsys, "train", corpus / "train.txt.gz", "--template", corpus / "template.txt",
            "--model", tmp_path / "m", "--max-iter", 1, "--init", start,
        )  # fmt: skip
        values.append(float(out.splitlines()[0].split()[-1].replace(",", "")))
        assert crfkit.load(tmp_path / "m")[-1].init == "zeros"
    assert values[2] < 0.5 * values[1] < 0.25 * values[0]
    train = ["train", corpus / "train.txt.gz", "--model-type", "perceptron", "--max-iter", 1]
    found = []
    for start in ([], ["--warm-start", tmp_path / "p"]):
        code, out, _ = run(capsys, *train, "--model", tmp_path / "p", *start)
        assert code == 0 and not crfkit.load(tmp_path / "p")[-1].warm_start
        found.append(float(out.splitlines()[0].split()[-1].replace(",", "")))
    assert found[1] < found[0]  # mistakes of a second pass
    code, _, err = run(capsys, *train, "--model", tmp_path / "p", "--warm-start", model)
    assert code == 1 and "of a perceptron alone" in err
    for option in ("--init", "--test"):  # told before the training
        train = ("train", corpus / "train.txt.gz", "--model", tmp_path / "no", option, "nowhere")
        code, out, err = run(capsys, *train)
        assert (code, out) == (1, "") and f"{option} nowhere: no " in err
    assert not (tmp_path / "no").exists()


def test_tag_prints_each_line_with_its_label(corpus, model, capsys):
    code, out, _ = run(capsys, "tag", model, corpus / "raw.txt")
    assert code == 0
    X = read_columns(corpus / "raw.txt")
    labels = crfkit.load(model).predict(X)
    expected = [
        [(*row, label) for row, label in zip(s, tags, strict=True)]
        for s, tags in zip(X, labels, strict=True)
    ]
    assert read_columns(io.StringIO(out)) == expected


def test_a_column_of_true_labels_is_kept_and_not_looked_at(corpus, model, capsys):
    _, raw, _ = run(capsys, "tag", model, corpus / "raw.txt")
    _, labeled, _ = run(capsys, "tag", model, corpus / "test.txt", "--jobs", 2)
    assert [line.split()[:2] + line.split()[3:] for line in labeled.splitlines()] == [
        line.split() for line in raw.splitlines()
    ]


def test_marginals_are_those_of_the_estimator(corpus, model, capsys):
    _, out, _ = run(capsys, "tag", model, corpus / "raw.txt", "--all-marginals")
    pipeline = crfkit.load(model)
    proba = np.concatenate(pipeline.predict_proba(read_columns(corpus / "raw.txt")))
    names = pipeline[-1].classes_.tolist()
    lines = [line.split(" ") for line in out.splitlines() if line]
    for line, row in zip(lines, proba, strict=True):
        assert line[4:] == [f"{n}:{p:.6f}" for n, p in zip(names, row, strict=True)]
        assert line[3] == f"{row[names.index(line[2])]:.6f}"
    _, one, _ = run(capsys, "tag", model, corpus / "raw.txt", "--marginals")
    assert [line.split(" ") for line in one.splitlines() if line] == [line[:4] for line in lines]


def test_posterior_decoding_gives_the_most_probable_labels(corpus, model, capsys):
    _, out, _ = run(capsys, "tag", model, corpus / "raw.txt", "--decoding", "posterior",
                    "--all-marginals")  # fmt: skip
    for line in filter(None, out.splitlines()):
        _, _, label, own, *every = line.split(" ")
        best = max(every, key=lambda cell: float(cell.rsplit(":", 1)[1]))
        assert float(best.rsplit(":", 1)[1]) == float(own)
        assert label in best or float(own) == pytest.approx(0.5)


def test_output_goes_to_a_file(corpus, model, tmp_path, capsys):
    _, out, _ = run(capsys, "tag", model, corpus / "raw.txt")
    target = tmp_path / "tagged.txt.gz"
    assert run(capsys, "tag", model, corpus / "raw.txt", "--output", target)[:2] == (0, "")
    assert read_columns(target) == read_columns(io.StringIO(out))


def test_batches_are_tagged_one_by_one(corpus, model, capsys, monkeypatch):
    _, whole, _ = run(capsys, "tag", model, corpus / "raw.txt")
    monkeypatch.setattr("crfkit.cli._tag.BATCH", 7)
    assert run(capsys, "tag", model, corpus / "raw.txt")[1] == whole


def test_evaluate_reports_as_conlleval_does(corpus, model, capsys):
    X, y = read_conll(corpus / "test.txt")
    expected = conlleval_report(y, crfkit.load(model).predict(X))
    assert run(capsys, "evaluate", corpus / "test.txt", "--model", model)[1].rstrip() == expected


def test_evaluate_reads_what_tag_prints(corpus, model, capsys, monkeypatch):
    _, expected, _ = run(capsys, "evaluate", corpus / "test.txt", "--model", model)
    _, tagged, _ = run(capsys, "tag", model, corpus / "test.txt")
    stream = io.TextIOWrapper(io.BytesIO(tagged.encode()), "utf-8")
    monkeypatch.setattr(sys, "stdin", stream)
    assert run(capsys, "evaluate")[1] == expected


@pytest.mark.parametrize(
    ("report", "part"), [("tokens", "B-QTY"), ("entities", "micro avg"), ("conlleval", "FB1")]
)
def test_evaluate_has_several_reports(corpus, model, capsys, report, part):
    code, out, _ = run(
        capsys, "evaluate", corpus / "test.txt", "--model", model, "--report", report
    )
    assert code == 0
    assert part in out


def test_info_shows_the_strongest_weights(corpus, model, capsys):
    crf = crfkit.load(model)[-1]
    _, out, _ = run(capsys, "info", model, "--top", 4)
    for (attribute, label), weight in crf.state_features_.top(4):
        assert f"{weight:10.4f}  {attribute}  {label}" in out
    assert "U03:%x[-1,0]/%x[0,0]" in out
    assert f"{len(crf.classes_)}: {' '.join(crf.classes_)}" in out


def test_info_as_json(model, capsys):
    facts = json.loads(run(capsys, "info", model, "--json", "--top", 2)[1])
    assert facts["bytes"] == os.path.getsize(model)
    assert len(facts["weights"]["attributes"]) == 2
    assert facts["class"] == "sklearn.Pipeline"


def test_features_shows_the_attributes_of_each_token(corpus, capsys):
    code, out, err = run(capsys, "features", corpus / "test.txt", "--template",
                         corpus / "template.txt")  # fmt: skip
    assert code == 0
    assert "attributes of transitions are left out" in err
    X, y, _ = read_crfsuite_text(io.StringIO(out))
    rows, labels = read_conll(corpus / "test.txt")
    assert y == labels
    assert X[0][0].keys() == {
        "U00:_B-1", f"U01:{rows[0][0][0]}", f"U02:{rows[0][1][0]}", f"U03:_B-1/{rows[0][0][0]}",
        f"U10:{rows[0][0][1]}",
    }  # fmt: skip
    _, count, _ = run(capsys, "features", corpus / "test.txt", "--template",
                      corpus / "template.txt", "--count")  # fmt: skip
    assert count.startswith(
        f"{len({a for s in X for t in s for a in t}):,} attributes, 2 of transitions"
    )


def test_crfsuite_text_trains_and_tags(corpus, tmp_path, capsys):
    rows, y = read_conll(corpus / "train.txt.gz")
    X = [[{f"w={r[0]}": 1.0, f"k={r[1]}": 0.5} for r in s] for s in rows]
    with open(tmp_path / "train.crfsuite.txt", "w", encoding="utf-8") as file:
        write_crfsuite_text(file, X, y)
    path, model = tmp_path / "train.crfsuite.txt", tmp_path / "m.crfkit"
    assert run(capsys, "train", path, "--format", "crfsuite", "--model", model, "--quiet")[0] == 0
    _, out, _ = run(capsys, "tag", model, path)
    predicted = CRFClassifier().fit(X, y).predict(X)
    assert out.split("\n\n")[:-1] == ["\n".join(labels) for labels in predicted]


def test_a_crfsuite_model_tags_too(corpus, tmp_path, capsys):
    rows, y = read_conll(corpus / "train.txt.gz")
    X = [[{f"w={r[0]}": 1.0} for r in s] for s in rows]
    crf = CRFClassifier().fit(X, y)
    save_crfsuite(crf, tmp_path / "m.crfsuite")
    with open(tmp_path / "x.txt", "w", encoding="utf-8") as file:
        write_crfsuite_text(file, X, y)
    _, out, _ = run(capsys, "tag", tmp_path / "m.crfsuite", tmp_path / "x.txt", "--format",
                    "crfsuite")  # fmt: skip
    assert out.split("\n\n")[:-1] == ["\n".join(labels) for labels in crf.predict(X)]
    assert "CRFsuite model" in run(capsys, "info", tmp_path / "m.crfsuite")[1]


def test_conllu_has_names_for_its_columns(tmp_path, capsys):
    words = [("The", "DET"), ("dog", "NOUN"), ("barks", "VERB")]
    lines = [
        f"{i}\t{form}\t{form.lower()}\t{upos}\t_\t_\t0\troot\t_\t_"
        for i, (form, upos) in enumerate(words, start=1)
    ]
    path, template = tmp_path / "x.conllu", tmp_path / "t.txt"
    path.write_text("\n".join(lines) + "\n\n", "utf-8")
    template.write_text("lemma\nsuffix(form, 1)\n")
    model = tmp_path / "m.crfkit"
    arguments = ["train", path, "--template", template, "--model", model, "--quiet"]
    assert run(capsys, *arguments)[0] == 0
    _, out, _ = run(capsys, "tag", model, path)
    assert out == path.read_text("utf-8")
    names = set(crfkit.load(model)[-1].feature_names_in_)
    assert {"lemma=dog", "suffix(form, 1)=s"} <= names


def test_the_label_may_stand_in_another_column(tmp_path, capsys):
    path, model = tmp_path / "x.tsv", tmp_path / "m.crfkit"
    path.write_text("D\tthe\nN\tdog days\n\n")
    arguments = ["train", path, "--label", "0", "--model", model, "--quiet"]
    assert run(capsys, *arguments)[0] == 0  # of .tsv, cells may hold blanks
    assert run(capsys, "tag", model, path)[1] == "D\tthe\tD\nN\tdog days\tN\n\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a b\nc\n", "line 2: expected 2 columns"),
        ("a\nb\n", "one column, but tokens and labels are needed"),
        ("", "no sequences"),
    ],
)
def test_bad_data_exit_with_one_and_a_message(tmp_path, capsys, content, message):
    path = tmp_path / "x.txt"
    path.write_text(content)
    code, out, err = run(capsys, "train", path, "--model", tmp_path / "m.crfkit")
    assert (code, out) == (1, "")
    assert message in err
    assert err.startswith("crfkit: ")
    assert not (tmp_path / "m.crfkit").exists()


def test_files_that_are_not_there_are_named(tmp_path, model, capsys):
    missing = tmp_path / "nothing.txt"
    for arguments in (
        ["train", missing, "--model", tmp_path / "m.crfkit"],
        ["tag", missing],
        ["tag", model, missing],
        ["info", missing],
        ["evaluate", missing, "--model", model],
    ):
        code, _, err = run(capsys, *arguments)
        assert (code, err) == (1, f"crfkit: {missing}: No such file or directory\n")


def test_a_file_that_is_no_model_is_told_so(corpus, capsys):
    code, _, err = run(capsys, "tag", corpus / "template.txt", corpus / "raw.txt")
    assert code == 1
    assert "template.txt" in err
    assert "Traceback" not in err


def test_data_of_another_width_are_refused(corpus, model, tmp_path, capsys):
    path = tmp_path / "x.txt"
    path.write_text("a b c d\n")
    code, _, err = run(capsys, "tag", model, path)
    assert code == 1
    assert "the file has 4 columns, but the model was trained on 2" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--c1", "-1"], "c1=-1.0 must be"),
        (["--jobs", "0"], "--jobs 0 has no meaning"),
        (["--max-iter", "-2"], "max_iter"),
        (["--format", "crfsuite", "--template", "t"], "has attributes already"),
    ],
)
def test_wrong_values_are_wrong_usage(corpus, tmp_path, capsys, arguments, message):
    code, _, err = run(
        capsys, "train", corpus / "train.txt.gz", "--model", tmp_path / "m", *arguments
    )
    assert code == 2
    assert message in err


def test_a_model_that_cannot_be_written_is_told_before_training(corpus, tmp_path, capsys):
    code, _, err = run(capsys, "train", corpus / "train.txt.gz", "--model", tmp_path / "no" / "m")
    assert code == 1
    assert "no file can be written there" in err


def test_control_c_saves_the_model_reached_so_far(corpus, tmp_path, capsys, monkeypatch):
    target = tmp_path / "m.crfkit"
    told = FitProgress.__call__

    def interrupt(self, record, parameters):
        if record.iteration == 2:
            raise KeyboardInterrupt
        return told(self, record, parameters)

    monkeypatch.setattr(FitProgress, "__call__", interrupt)
    code, _, err = run(
        capsys, "train", corpus / "train.txt.gz", "--model", target, "--loss", "risk"
    )  # in the first of its stages
    assert code == 130
    assert "keeps the weights reached so far" in err
    assert crfkit.load(target)[-1].n_iter_ == 2


def test_help_has_examples(capsys):
    for command in ("train", "tag", "evaluate", "info", "features"):
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        assert stop.value.code == 0
        assert "examples:" in capsys.readouterr().out


def test_rare_attributes_are_left_out(corpus, tmp_path, capsys):
    target = tmp_path / "m.crfkit"
    code, *_ = run(capsys, "train", corpus / "train.txt.gz", "--template", corpus / "template.txt",
                   "--model", target, "--min-count", 3, "--quiet")  # fmt: skip
    assert code == 0
    X, _ = read_conll(corpus / "train.txt.gz")
    features = TemplateFeatures.from_file(corpus / "template.txt", min_freq=3)
    expected = features.fit_transform(X).feature_names.tolist()
    assert crfkit.load(target)[-1].feature_names_in_.tolist() == expected


def write(pipe, content):
    with open(pipe, "wb") as file:
        file.write(content)


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="pipes have no path here")
@pytest.mark.parametrize("kind", ["crfkit", "crfsuite"])
def test_a_model_may_come_through_a_pipe(corpus, model, tmp_path, capsys, kind):
    path, options = model, []
    data = corpus / "raw.txt"
    if kind == "crfsuite":
        path, data = tmp_path / "m.crfsuite", tmp_path / "data.txt"
        save_crfsuite(CRFClassifier(c2=0.1).fit([[["a"], ["b"]]], [["A", "B"]]), path)
        data.write_text("A\ta\nB\tb\n\n")
        options = ["--format", "crfsuite"]
    for command in (["tag", path, data, *options], ["info", path, "--json"]):
        expected = run(capsys, *command)
        reader, writer = os.pipe()
        thread = threading.Thread(target=write, args=(writer, path.read_bytes()))
        thread.start()
        piped = [f"/dev/fd/{reader}" if part == path else part for part in command]
        code, out, err = run(capsys, *piped)
        thread.join()
        os.close(reader)
        assert (code, out.replace(piped[1], str(path)), err) == expected
        assert code == 0


def test_marks_tell_which_labels_are_not_known(tmp_path, capsys):
    for name, rows in (("train", "a A;b _;;a A;b B|C;c C;;b B;a A;c C"), ("test", "a A;b _;c B|C")):
        (tmp_path / name).write_text(rows.replace(";", "\n") + "\n")
    target, marks = tmp_path / "m.crfkit", ["--unlabeled", "_", "--alternatives", "|"]
    code, out, _ = run(capsys, "train", tmp_path / "train", "--model", target, *marks)
    assert code == 0 and crfkit.load(target)[-1].classes_.tolist() == ["A", "B", "C"]
    code, out, _ = run(capsys, "evaluate", tmp_path / "test", "--model", target, *marks)
    assert code == 0 and out.split()[-1] == "2"  # tokens whose label is known
    (tmp_path / "tagged").write_text("a A A\nb _ B\nc B|C A\n")
    code, out, _ = run(capsys, "evaluate", tmp_path / "tagged", *marks)
    assert code == 0 and "accuracy                          0.500         2" in out
