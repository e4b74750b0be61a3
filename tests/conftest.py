import gc
import os
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import settings

from tests.commands import command_server
from tests.compiling import compile_once
from tests.sampling import examples, thin_out

# Processes that tests start (notebooks, commands) run the package under test, as the tests do: that
# which is installed has machine code of its own, so each kernel would be compiled once more.
ROOT = Path(__file__).resolve().parents[1]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.getenv("PYTHONPATH")])])
# All of them read one bytecode of it: without, they take longer to import than for what they do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
settings.register_profile("crfkit", examples(20), derandomize=True)
settings.load_profile("crfkit")


def pytest_xdist_auto_num_workers(config):
    """Run the whole suite on all cores, single folders and files in this process.

    On all cores, threads of a BLAS would only wait for one another.
    """
    chosen = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    if Path(__file__).resolve().parent not in chosen:
        return 0
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    return os.cpu_count() or 1


def pytest_configure(config):
    """Let parallel workers compile each kernel once: the others wait and load its machine code."""
    if hasattr(config, "workerinput") and os.environ.get("NUMBA_DISABLE_JIT") != "1":
        compile_once()


def pytest_collection():
    """Look for garbage, not often, when tests have been collected, and not among them."""
    gc.disable()


def pytest_collection_modifyitems(config, items):
    """Of products of many choices, run so much that every two of them meet.

    The test of a whole warm-up comes when most is compiled, but not at the end, where other
    processes would wait for it.
    """
    items[:], left = thin_out(items)
    items.sort(key=_part)
    if left:
        config.hook.pytest_deselected(items=left)


def _part(item):
    """The part of a run that a test is in: before the warm-up, that, or after it."""
    return 1 if item.path.name == "test_warmup.py" else 2 * (item.path.parent.name > "structures")


def pytest_collection_finish():
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _lasting_processes():
    """Keep joblib's processes: where they end while work comes in, joblib may wait forever."""
    lasting = {"idle_worker_timeout": 3600} if joblib.__version__ >= "1.5" else {}
    with joblib.parallel_config(backend="loky", **lasting):
        yield


@pytest.fixture
def real_environment():
    """An environment in which ``crfkit`` is the installed command."""
    folder = os.path.dirname(sys.executable)
    return os.environ | {"PATH": folder + os.pathsep + os.environ["PATH"], "COLUMNS": "80"}


@pytest.fixture(scope="session")
def _commands():
    if not hasattr(os, "fork"):
        yield None
        return
    with command_server() as folder:
        yield folder


@pytest.fixture
def environment(real_environment, _commands):
    """An environment in which ``crfkit`` is the package under test, and starts at once."""
    path = [str(_commands)] if _commands else []
    return real_environment | {"PATH": os.pathsep.join([*path, real_environment["PATH"]])}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data_home():
    """The folder of real data, which are no part of the package."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    home = Path(os.environ.get("CRFKIT_DATA", default))
    if not home.is_dir():
        pytest.skip(f"no real data: {home} does not exist (set CRFKIT_DATA to their folder)")
    return home


@pytest.fixture(scope="session")
def data_folder(data_home):
    """What returns a folder of real data; tests skip where it is missing."""

    def find(name):
        folder = data_home / name
        if not folder.is_dir():
            pytest.skip(f"no {name} in {data_home}")
        return folder

    return find
