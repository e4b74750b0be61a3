import subprocess
import sys

import pytest

from crfkit import __version__
from crfkit.cli import main
from crfkit.compiler.jit import COMPILING


def test_demo_trains_judges_tags_and_explains(capsys):
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    for part in ("objective", "stopped after", "QTY", "micro avg", "confidence", "strongest",
                 "What next?"):  # fmt: skip
        assert part in shown


def test_python_dash_m_is_the_command():
    shown = subprocess.run(
        [sys.executable, "-m", "crfkit", "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == f"crfkit {__version__}"


@pytest.mark.parametrize(
    "arguments",
    [[], ["dance"], ["demo", "--jobs", "many"], ["train", "x", "--model", "m", "--loss", "fun"]],
)
def test_wrong_usage_exits_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: crfkit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "command 'trian' is not known; did you mean train?"),
        (["train", "--modle", "m", "x"], "unknown option --modle; did you mean --model?"),
        (["tag", "m", "--nbst=3"], "unknown option --nbst; did you mean --nbest?"),
        (["tag", "m", "--decoding", "viterb"], "did you mean viterbi?"),
        (["train", "x", "--model-type", "tree"], "'tree' is not known; choose one of crf, seg"),
        (["tag", "m", "x", "y"], "unexpected 'y'; crfkit tag --help lists what there is"),
        (["info", "m", "--quux"], "unknown option --quux; crfkit info --help lists all"),
    ],
)
def test_what_was_probably_meant_is_named(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_help_loads_nothing():
    """Of what takes long to import."""
    code = "import sys\nfrom crfkit.cli import main\n"
    code += "try: main([*sys.argv[1:], '--help'])\n"
    code += "except SystemExit: print(sorted({'numpy', 'sklearn', 'numba'} & set(sys.modules)))"
    for command in ([], ["train"], ["tag"]):
        shown = subprocess.run(
            [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True
        )
        assert shown.stdout.endswith("\n[]\n")


def test_control_c_exits_with_130(monkeypatch, capsys):
    def interrupt(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr("crfkit.demo.run_demo", interrupt)
    assert main(["demo"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_a_bad_value_is_wrong_usage_and_not_a_traceback(capsys):
    assert main(["demo", "--c2", "-1"]) == 2
    assert "crfkit: c2=-1.0 must be" in capsys.readouterr().err


def test_zero_threads_are_wrong_usage(capsys):
    assert main(["demo", "--jobs", "0"]) == 2
    assert "--jobs 0 has no meaning" in capsys.readouterr().err


def test_a_defect_is_not_called_wrong_usage(monkeypatch):
    def broken(**_):
        raise ValueError("a defect")

    monkeypatch.setattr("crfkit.demo.run_demo", broken)
    with pytest.raises(ValueError, match="a defect"):
        main(["demo"])


def test_a_reader_that_leaves_early_is_no_error():
    command = subprocess.Popen(
        [sys.executable, "-m", "crfkit", "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    command.stdout.readline()
    command.stdout.close()
    errors = command.stderr.read()
    command.stderr.close()
    assert (command.wait(), errors.replace(COMPILING.encode(), b"").strip()) == (0, b"")
