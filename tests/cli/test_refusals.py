"""What the commands refuse, and how they end where they cannot go on."""

import os
import subprocess

import pytest

from crfkit import CRFClassifier
from crfkit.cli import main
from crfkit.compat.crfsuite import save_crfsuite
from tests.cli.running import run


def shell(command, folder, environment):
    """Exit code and errors of a command line."""
    result = subprocess.run(
        command, shell=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    return result.returncode, result.stderr


def test_evaluate_refuses_data_of_another_width(corpus, model, tmp_path, capsys):
    _, tagged, _ = run(capsys, "tag", model, corpus / "test.txt")
    (tmp_path / "tagged.txt").write_text(tagged, "utf-8")
    code, out, err = run(capsys, "evaluate", tmp_path / "tagged.txt", "--model", model)
    assert (code, out) == (1, "")
    assert "the file has 4 columns, but the model was trained on 2" in err


@pytest.mark.parametrize("report", ["conlleval", "tokens", "entities"])
def test_there_is_no_report_of_nothing(tmp_path, capsys, report):
    (tmp_path / "x.txt").write_text("\n")
    code, out, err = run(capsys, "evaluate", tmp_path / "x.txt", "--report", report)
    assert (code, out) == (1, "")
    assert "nothing to judge" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--label", "0"], "--label needs --model"),
        (["--scheme", "IBO2", "--report", "entities"], "Did you mean 'IOB2'?"),
        (["--format", "crfsuite"], "--format needs --model"),
        (["--scheme", "IOB2"], "--scheme is for"),
        (["--scheme", "X", "--report", "entities"], "unknown tag scheme"),
        (["--scheme", "runs", "--report", "entities"], "unknown tag scheme"),
        (["--scheme", "X", "--report", "segments"], "BMEWO, runs\n"),
    ],
)
def test_options_without_effect_are_wrong_usage(corpus, capsys, arguments, message):
    code, _, err = run(capsys, "evaluate", corpus / "test.txt", *arguments)
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--label", "first"], "--label first: the column must be a number"),
        (["--label", "first", "--format", "conllu"], "--label first: choose one of form"),
        (["--label", "0", "--format", "crfsuite"], "is always the first cell"),
    ],
)
def test_a_label_that_the_format_does_not_have_is_wrong_usage(
    corpus, tmp_path, capsys, arguments, message
):
    train = ["train", corpus / "train.txt.gz", "--model", tmp_path / "m"]
    code, _, err = run(capsys, *train, *arguments)
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("lowr(col(0))", "there is no function 'lowr': did you mean 'lower'?"),
        ("U00:%x[0,0]\nlower(col(0))", "mix notations: line 1, 'U00:%x[0,0]', is one of CRF++ or"),
        ("# x\nlower(col(0))\nU00:%x[0,0]", "line 3, 'U00:%x[0,0]', is one of CRF++ or Wapiti"),
        (None, "no such file, and none of words, names, tags, fields; did you mean words?"),
    ],
)
def test_templates_that_are_none_are_told_what_was_meant(
    corpus, tmp_path, monkeypatch, capsys, template, message
):
    monkeypatch.chdir(tmp_path)
    if template is not None:
        (tmp_path / "t").write_text(template)
    name = "word" if template is None else "t"
    code, _, err = run(capsys, "features", corpus / "test.txt", "--template", name)
    assert code == 1
    assert message in err


@pytest.mark.parametrize(
    ("tags", "options", "warning", "support"),
    [
        ("I-X O I-X I-X", [], "the true tags are read as IO", 2),
        ("B-X I-X O B-X", [], "", 2),
        ("I-X O I-X I-X", ["--scheme", "IOB2"], "2 of the true tags are not legal in IOB2", 0),
        ("B-X E-X O S-X", [], "the true tags are read as IOBES", 2),
    ],
)
def test_the_scheme_of_entities_is_found_and_told(
    tmp_path, capsys, tags, options, warning, support
):
    rows = "".join(f"w {tag} {tag}\n" for tag in tags.split())
    (tmp_path / "x.txt").write_text(rows)
    command = ["evaluate", tmp_path / "x.txt", "--report", "entities", *options]
    code, out, err = run(capsys, *command)
    assert code == 0
    assert warning in err and bool(warning) == bool(err)
    assert out.split()[-1] == str(support)


def test_an_output_does_not_replace_what_is_read(corpus, model, tmp_path, capsys):
    before = model.read_bytes()
    for data, target in ((corpus / "raw.txt", model), (tmp_path / "x", tmp_path / "x")):
        (tmp_path / "x").write_text("a\n")
        code, _, err = run(capsys, "tag", model, data, "--output", target)
        assert (code, "would replace a file that is read" in err) == (2, True)
    assert model.read_bytes() == before
    assert run(capsys, "tag", model, corpus / "raw.txt", "--output", "")[0] == 2


def test_arguments_of_python_are_told_as_options(tmp_path, capsys):
    (tmp_path / "x").write_bytes(b"caf\xe9 A\n")
    code, _, err = run(capsys, "train", tmp_path / "x", "--model", tmp_path / "m")
    assert code == 1 and "for example --encoding latin-1" in err
    (tmp_path / "x").write_bytes(b"a b A\nc\n")
    code, _, err = run(capsys, "train", tmp_path / "x", "--model", tmp_path / "m")
    assert code == 1 and r"check --sep (cells that hold blanks need --sep '\t')" in err


def test_a_model_does_not_replace_the_data(tmp_path, capsys):
    path = tmp_path / "x.txt"
    path.write_text("a B\n")
    (tmp_path / "link.txt").symlink_to(path)
    code, _, err = run(capsys, "train", path, "--model", tmp_path / "link.txt")
    assert code == 2
    assert "would replace a file that is read" in err
    assert path.read_text() == "a B\n"


def test_an_output_that_cannot_be_written_is_named(corpus, model, tmp_path, capsys):
    target = tmp_path / "no" / "x.txt"
    code, _, err = run(capsys, "tag", model, corpus / "raw.txt", "--output", target)
    assert (code, err) == (1, f"crfkit: --output {target}: no file can be written there.\n")


def test_an_unknown_encoding_is_wrong_usage(model, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["tag", str(model), "--encoding", "nonsense"])
    assert stop.value.code == 2
    assert "'nonsense' is no encoding of text" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["tag", str(model), "--encoding", "utf9"])
    assert "did you mean utf-8?" in capsys.readouterr().err


def test_a_template_that_is_no_text_is_named(corpus, tmp_path, capsys):
    (tmp_path / "t.txt").write_bytes(b"U00:\xff")
    train = ["train", corpus / "train.txt.gz", "--model", tmp_path / "m"]
    code, _, err = run(capsys, *train, "--template", tmp_path / "t.txt")
    assert code == 1
    assert err.startswith(f"crfkit: {tmp_path / 't.txt'}: ")
    assert "Traceback" not in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["tag m.crfkit raw.txt", "info m.crfkit", "demo --jobs 1"])
def test_a_full_disk_is_an_error_and_no_traceback(corpus, model, command, environment):
    code, err = shell(f"crfkit {command} > /dev/full", corpus, environment)
    assert (code, err) == (1, "crfkit: No space left on device\n")


@pytest.mark.skipif(os.name != "posix", reason="closes streams by the shell")
@pytest.mark.parametrize(
    ("command", "message"),
    [("tag m.crfkit <&-", "standard input is closed"), ("info m.crfkit >&-", "output is closed")],
)
def test_a_closed_stream_is_told(corpus, model, command, message, real_environment):
    code, err = shell(f"crfkit {command}", corpus, real_environment)
    assert code == 1
    assert message in err
    assert len(err.splitlines()) == 1


def test_info_shows_every_model_on_every_output(tmp_path, environment):
    crf = CRFClassifier().fit([[{"w": "caf\u00e9\udcff"}]], [["\u00e9"]])
    save_crfsuite(crf, tmp_path / "m.crfsuite")
    for command in ("info m.crfsuite", "info m.crfsuite --json"):
        for encoding in ("ascii", "utf-8"):
            environment["PYTHONIOENCODING"] = encoding
            assert shell(f"crfkit {command}", tmp_path, environment) == (0, "")


def test_a_character_that_the_output_cannot_hold_is_told(corpus, model, tmp_path, environment):
    (tmp_path / "x.txt").write_text("caf\u00e9 word\n", "utf-8")
    environment["PYTHONIOENCODING"] = "ascii"
    code, err = shell(f"crfkit tag {model} x.txt", tmp_path, environment)
    assert code == 1
    assert err.startswith("crfkit: standard output is ascii and cannot hold '\\xe9'")


def interrupted(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("crfkit.cli.formats.columns.iter_columns", "train"),
        ("crfkit.features.templates.vocabulary.block_ids", "train"),
        ("crfkit.objective.batch.Objective.value_and_grad", "train"),
        ("crfkit.io.atomic.replacing", "train"),
        ("crfkit.cli.formats.columns.iter_columns", "tag"),
        ("crfkit.cli._tag.answers", "tag"),
    ],
)
def test_control_c_leaves_old_files_as_they_are(
    corpus, model, tmp_path, monkeypatch, capsys, place, command
):
    target = tmp_path / "old"
    target.write_bytes(model.read_bytes())
    monkeypatch.setattr(place, interrupted)
    arguments = {
        "train": ["train", corpus / "train.txt.gz", "--model", target],
        "tag": ["tag", model, corpus / "raw.txt", "--output", target],
    }[command]
    code, out, err = run(capsys, *arguments)
    assert (code, out, err) == (130, "", "interrupted\n")
    assert os.listdir(tmp_path) == ["old"]
    assert target.read_bytes() == model.read_bytes()
