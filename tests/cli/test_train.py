"""What ``crfkit train`` learns, how it is judged, and from where it starts."""

import numpy as np
import pytest

import crfkit
from crfkit import CRFClassifier, EarlyStopping, TemplateFeatures
from crfkit.cli import _estimators
from crfkit.cli.formats import FORMATS
from crfkit.cli.options import names
from crfkit.inference import DECODERS
from crfkit.io import read_conll
from crfkit.losses import LOSSES
from crfkit.solvers import SOLVERS
from crfkit.solvers.margin import MARGIN_SOLVERS
from tests.cli.running import run

TEXT = "the DET\ndog NOUN\nbarks VERB\n\na DET\ncat NOUN\n\n" * 6


@pytest.fixture
def data(tmp_path):
    (tmp_path / "x.txt").write_text(TEXT)
    return tmp_path / "x.txt"


def test_names_of_options_are_those_of_the_registries():
    assert names.LOSSES == tuple(LOSSES)
    assert names.DECODERS == tuple(DECODERS)
    assert names.SOLVERS == tuple(SOLVERS)
    assert names.MARGIN_SOLVERS == tuple(MARGIN_SOLVERS)
    assert set(names.MODEL_TYPES) == set(_estimators.CLASSES)
    assert names.FORMATS == tuple(FORMATS)


@pytest.mark.parametrize("kind", names.MODEL_TYPES)
def test_every_kind_of_model_is_trained_judged_and_tags(data, tmp_path, capsys, kind):
    model = tmp_path / "m"
    code, out, err = run(
        capsys, "train", data, "--model-type", kind, "--model", model, "--test", data
    )
    assert (code, err) == (0, "")
    assert out.split()[-1] == "30"  # tokens, of the report
    classifier = _estimators.CLASSES[kind]
    last = crfkit.load(model)
    assert type(last if kind == "hmm" else last[-1]) is classifier
    _, out, _ = run(capsys, "tag", model, data)
    assert [line.split()[1:] for line in out.splitlines() if line] == [
        [line.split()[1]] * 2 for line in TEXT.splitlines() if line
    ]


def test_a_dev_file_ends_the_training_as_it_does_in_python(corpus, tmp_path, capsys):
    X, y = read_conll(corpus / "train.txt.gz")
    X_val, y_val = read_conll(corpus / "test.txt")
    (tmp_path / "t").write_text("U01:%x[0,0]\nB\n")
    features = TemplateFeatures.from_file(tmp_path / "t")
    rules = EarlyStopping(scoring="entity_f1", patience=2)
    crf = CRFClassifier(early_stopping=rules).fit(
        features.fit_transform(X), y, X_val=features.transform(X_val), y_val=y_val
    )
    code, out, _ = run(
        capsys, "train", corpus / "train.txt.gz", "--template", tmp_path / "t", "--model",
        tmp_path / "m", "--dev", corpus / "test.txt", "--scoring", "entity_f1", "--patience", 2,
    )  # fmt: skip
    assert code == 0
    assert f"{crf.best_score_:.4f}, iteration {crf.best_iteration_}\n" in out
    np.testing.assert_array_equal(crfkit.load(tmp_path / "m")[-1].coef_.data, crf.coef_.data)


def test_folds_are_judged_on_what_their_models_have_not_seen(tmp_path, capsys):
    words = [f"w{i} {'AB'[i % 2]}\n\n" for i in range(8)]  # each word once: nothing to know it by
    (tmp_path / "x").write_text("".join(words))
    (tmp_path / "t").write_text("U01:%x[0,0]\n")
    command = ["train", tmp_path / "x", "--template", tmp_path / "t", "--cross-validate", 4]
    code, out, _ = run(capsys, *command)
    assert code == 0
    lines = out.splitlines()
    assert [line.split(":")[0] for line in lines[:4]] == [f"fold {i} of 4" for i in range(1, 5)]
    accuracy = float(lines[4].split()[2])
    assert accuracy < 0.9  # each model knows every other word alone
    assert f"accuracy                          {accuracy:.3f}         8" in out
    assert run(capsys, *command)[1] == out
    assert run(capsys, *command, "--model", tmp_path / "m")[0] == 0
    assert crfkit.load(tmp_path / "m").predict([[("w0",)]]) == [["A"]]


def test_a_penalty_may_be_zero(data, tmp_path, capsys):
    command = ["train", data, "--model", tmp_path / "m", "--max-iter", "2", "--c2", "0"]
    assert run(capsys, *command)[0] == 0


def test_a_penalty_is_looked_for(data, tmp_path, capsys):
    code, out, _ = run(capsys, "train", data, "--c2", "auto", "--model", tmp_path / "m")
    assert code == 0
    c2 = crfkit.load(tmp_path / "m")[-1].c2
    assert out.startswith(f"c2 {c2:.4g} of 10 values from 0.001 to 10: accuracy 1.0000 in 5 folds")


def test_a_solver_and_a_model_to_start_from_have_names(data, tmp_path, capsys):
    plain = ["train", data, "--model", tmp_path / "m", "--quiet"]
    assert run(capsys, *plain)[0] == 0
    assert crfkit.load(tmp_path / "m")[-1].solver == "auto"
    further = ["--solver", "sgd", "--max-iter", 2, "--warm-start", tmp_path / "m", "--seed", 3]
    assert run(capsys, *plain, *further)[0] == 0
    crf = crfkit.load(tmp_path / "m")[-1]
    assert (crf.solver, crf.init, crf.random_state, crf.n_iter_) == ("sgd", "zeros", 3, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--model FILE is missing"),
        (["--model", "m", "--model-type", "hmm", "--loss", "risk"], "--loss does not go with"),
        (["--model", "m", "--model-type", "hmm", "--template", "words"], "takes words alone"),
        (["--model", "m", "--model-type", "perceptron", "--c2", "1"], "which has no penalty"),
        (["--model", "m", "--model-type", "memm", "--segments"], "it labels tokens"),
        (["--model", "m", "--model-type", "margin", "--solver", "lbfgs"], "margin takes bcfw"),
        (["--model", "m", "--model-type", "margin", "--dev", "x.txt"], "is for crf, segments"),
        (["--model", "m", "--order", "2"], "it is for hmm"),
        (["--model", "m", "--patience", "2"], "--patience needs --dev"),
        (["--model", "m", "--scoring", "entity_f1"], "--scoring needs --dev or --c2 auto"),
        (["--model", "m", "--c2", "auto", "--scoring", "entity_f2"], "entity_f1"),
        (["--model", "m", "--c2", "auto", "--loss", "risk"], "--c2 auto is for"),
        (["--cross-validate", "1"], "must be at least 2"),
        (["--cross-validate", "2", "--dev", "x.txt"], "--dev needs --model"),
        (["--cross-validate", "2", "--test", "x.txt"], "--test needs --model"),
    ],
)
def test_options_that_do_not_go_together_are_told(data, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(data.parent)
    code, _, err = run(capsys, "train", "x.txt", *arguments)
    assert code == 2
    assert message in err
