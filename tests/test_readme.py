"""The code blocks of the README run, in order, and print what they say."""

import re
from pathlib import Path

import joblib

README = Path(__file__).resolve().parents[1] / "README.md"


def blocks(language):
    text = README.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_python_blocks_run_in_order(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    with joblib.parallel_config(backend="threading"):  # processes would have to import it all
        for block in blocks("python"):
            exec(compile(block, "README.md", "exec"), namespace)
    shown = capsys.readouterr().out
    assert "[['DET', 'NOUN', 'VERB']]" in shown
    assert "micro avg" in shown
    assert "{'c2': " in shown and "'features__min_freq': " in shown
    for promised in re.findall(r"^# (.+)$", "\n".join(blocks("python")), flags=re.MULTILINE):
        assert promised in shown


def test_the_two_commands_of_a_newcomer_are_there():
    assert [block.strip() for block in blocks("sh")] == [
        "pip install . && crfkit demo",
        'pip install ".[test]" && pytest',
    ]
