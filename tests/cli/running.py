"""The command line within the process of the tests."""

from crfkit.cli import main


def run(capsys, *arguments):
    """The exit code of a command, and what it printed."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err
