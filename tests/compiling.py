"""Several processes that share the cache of kernels compile each of them once."""

import contextlib
from pathlib import Path


def compile_once():
    """Compile what no other process compiles at this time; wait for what one does."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    compile_kernel = Dispatcher.compile

    def compile_alone(dispatcher, signature):
        folder = dispatcher.stats.cache_path
        if folder is None:  # a helper, which is part of the kernels
            return compile_kernel(dispatcher, signature)
        function = dispatcher.py_func
        path = Path(folder) / f"{function.__module__}.{function.__qualname__}.lock"
        with global_compiler_lock, _locked(path):
            return compile_kernel(dispatcher, signature)

    Dispatcher.compile = compile_alone


@contextlib.contextmanager
def _locked(path):
    try:
        from fcntl import LOCK_EX, flock
    except ImportError:  # not on this platform: kernels may be compiled twice
        yield
        return
    with path.open("w") as file:
        flock(file, LOCK_EX)  # until the file is closed
        yield
