"""The kernel decorator: caching that notices edited helpers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import crfkit

NO_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"

PROBE = """
import numpy as np
from crfkit.kernels.probe import doubled
print(doubled(1.0))
"""


@pytest.fixture
def copy_of_package(tmp_path):
    source = Path(crfkit.__file__).parent
    target = tmp_path / "crfkit"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "data"))
    (target / "__init__.py").write_text("")
    kernels = target / "kernels"
    (kernels / "helper.py").write_text(
        "from crfkit._jit import kernel\n\n\n@kernel\ndef factor():\n    return 2.0\n"
    )
    (kernels / "probe.py").write_text(
        "from crfkit._jit import kernel\nfrom crfkit.kernels.helper import factor\n\n\n"
        "@kernel\ndef doubled(x):\n    return x * factor()\n"
    )
    return tmp_path


def run(folder, **environment):
    result = subprocess.run(
        [sys.executable, "-B", "-c", PROBE], cwd=folder, text=True, capture_output=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")} | environment, check=True,
    )  # fmt: skip
    return result.stdout.strip()


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_an_edited_helper_is_not_served_from_a_stale_cache(copy_of_package):
    assert run(copy_of_package) == "2.0"
    assert list((copy_of_package / "cache").rglob("*.nbi"))
    helper = copy_of_package / "crfkit" / "kernels" / "helper.py"
    helper.write_text(helper.read_text().replace("2.0", "3.0"))
    assert run(copy_of_package) == "3.0"


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_a_cache_folder_that_cannot_be_written_is_no_error(copy_of_package):
    (copy_of_package / "cache").write_text("a file, not a folder")
    assert run(copy_of_package) == "2.0"


def test_kernels_run_without_the_compiler(copy_of_package):
    assert run(copy_of_package, NUMBA_DISABLE_JIT="1") == "2.0"
