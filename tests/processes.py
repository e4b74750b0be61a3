"""New processes that start at once: forks of one that has imported `tests.compiled`."""

import contextlib
import io
import multiprocessing
import os
import sys

_FORKS = "forkserver" in multiprocessing.get_all_start_methods()
CONTEXT = multiprocessing.get_context("forkserver" if _FORKS else "spawn")
CONTEXT.set_forkserver_preload(["tests.compiled"])


def run_in_new_process(code, folder, **environment):
    """Run code as ``python -B -c`` would in a folder, until it exits; returns output and errors."""
    with CONTEXT.Pool(1) as processes:
        return processes.apply(_run, (code, str(folder), environment))


def _run(code, folder, environment):
    import numba

    os.environ.update(environment)
    numba.core.config.reload_config()
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.argv, sys.dont_write_bytecode = ["-c"], True
    out, error = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
        contextlib.suppress(SystemExit),
    ):
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    return out.getvalue(), error.getvalue()
