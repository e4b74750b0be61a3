"""The session of the README, through a shell: in a pipe and on a terminal."""

import contextlib
import doctest
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from pathlib import Path

import numpy as np
import pytest

import crfkit
from crfkit.compiler.jit import COMPILING

README = Path(__file__).resolve().parents[2] / "README.md"


def session():
    """The commands of the README's console block, each with the output it shows."""
    if not README.is_file():
        pytest.skip("the README is not beside the tests")
    (block,) = re.findall(r"^```console\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)
    pairs = [part.split("\n", 1) for part in re.split(r"^\$ ", block, flags=re.M)[1:]]
    return [(command, shown) for command, shown in pairs]


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def agrees(shown, got):
    """Whether an output is what the README shows; ``...`` stands for anything.

    Another processor may round otherwise, and stop the fit at another iteration: numbers may
    differ by a few per cent, the text may not.
    """
    lines, got_lines = shown.splitlines(), got.splitlines()
    if len(lines) != len(got_lines):
        return False
    for line, found in zip(lines, got_lines, strict=True):
        words, found_words = (re.sub(r" +", " ", NUMBER.sub("#", text)) for text in (line, found))
        if not doctest.OutputChecker().check_output(words, found_words, doctest.ELLIPSIS):
            return False
        pair = [[float(n.replace(",", "")) for n in NUMBER.findall(x)] for x in (line, found)]
        if "..." not in line and not np.allclose(*pair, rtol=0.05, atol=1.0):
            return False
    return True


def test_the_session_of_the_readme_in_a_pipe(tmp_path, environment, real_environment):
    """The first command as it is installed, the others without the time that it takes to start."""
    commands = session()
    assert len(commands) >= 5
    for number, (command, shown) in enumerate(commands):
        result = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment if number else real_environment,
            capture_output=True, text=True,
        )  # fmt: skip
        errors = result.stderr.replace(COMPILING, "").strip()
        assert (result.returncode, errors) == (0, ""), command
        assert agrees(shown, result.stdout), f"{command}\n{result.stdout}"


def on_terminal(command, folder, environment):
    """Exit code and output of a command whose standard streams are a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, shell=True, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    output = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        output += chunk
    os.close(ours)
    return process.wait(), output.decode().replace("\r\n", "\n")


def test_the_session_of_the_readme_on_a_terminal(tmp_path, environment):
    for command, shown in session():
        code, output = on_terminal(command, tmp_path, environment)
        assert code == 0, output
        rest = output
        if " train " in command:
            lines = [line.rpartition("\r")[2] for line in output.split("\n")]
            assert [line.split()[0] for line in lines[:3]] == ["reading", "features", "fitting"]
            assert re.fullmatch(r"fitting +\d+ iterations, objective [\d,.]+, [\d.]+ s *", lines[2])
            rest = "\n".join(lines[3:])
        assert "\r" not in rest
        assert agrees(shown, rest), f"{command}\n{output}"


def test_a_terminal_shows_the_iterations_of_all_stages_as_one_search(tmp_path, environment):
    train = "crfkit train recipes/train.txt --model m.crfkit --max-iter 4 --loss risk"  # two stages
    command = f"crfkit demo --write recipes && {train}"
    code, output = on_terminal(command, tmp_path, environment)
    assert code == 0
    assert re.search(r"fitting +4/4 iterations, objective [\d,.]+, [\d.]+ s *\n", output)


def listen_to_the_terminal():
    """Make standard input the terminal of a process, whose Ctrl-C interrupts it.

    Where the tests run in the background, a shell makes them ignore interrupts.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_control_c_on_a_narrow_terminal_keeps_the_model(tmp_path, environment, real_environment):
    subprocess.run("crfkit demo --write r", shell=True, cwd=tmp_path, env=environment, check=True)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    environment = real_environment | {"NO_COLOR": "1", "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    train = "crfkit train r/train.txt --model m --solver sgd --c2 1e-12 --max-iter 1000000"
    process = subprocess.Popen(
        train.split(), cwd=tmp_path, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True, preexec_fn=listen_to_the_terminal,
    )  # fmt: skip
    os.close(theirs)
    output = b""
    while not re.search(rb"fitting[^\r\n]*(iterations|left)", output):
        output += os.read(ours, 65536)
    os.write(ours, b"\x03")
    with contextlib.suppress(OSError):  # the other side is closed
        while chunk := os.read(ours, 65536):
            output += chunk
    os.close(ours)
    assert process.wait() == 130
    states = re.split(r"[\r\n]+", output.decode().replace("^C", ""))  # the terminal's echo
    shown = [state for state in states if re.match("reading|features|fitting", state)]
    assert max(map(len, shown)) < 40
    assert shown[-1].rstrip().startswith("fitting  interrupted")
    assert crfkit.load(tmp_path / "m")[-1].n_iter_ > 0


def test_typing_sequences_on_a_terminal_answers_each_at_once(tmp_path, environment):
    train = (
        "crfkit demo --write r && crfkit train r/train.txt --model m.crfkit --max-iter 30 --quiet"
    )
    subprocess.run(train, shell=True, cwd=tmp_path, env=environment, capture_output=True)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["crfkit", "tag", "m.crfkit"], cwd=tmp_path, env=environment, stdin=theirs,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    os.write(ours, b"2\ncups\n\n")
    answer = [process.stdout.readline().decode() for _ in range(3)]
    assert [line.split()[0] for line in answer[:2]] == ["2", "cups"]
    assert answer[0].split()[1] == "B-QTY"
    os.write(ours, b"\x04")  # end of input
    process.stdout.read()
    process.stdout.close()
    os.close(ours)
    os.close(theirs)
    assert process.wait() == 0
