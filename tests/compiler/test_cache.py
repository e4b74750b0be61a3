"""Machine code on disk: it notices edited helpers, and bears whatever happens to a folder."""

import math
import os
import platform
import shutil
import sys
from pathlib import Path

import pytest

import crfkit
from tests.processes import run_in_new_process

NO_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"

PROBE = """
from crfkit.kernels.probe import doubled
print(doubled(1.0))
"""
# Prints how often machine code was found, and how often not.
COUNTED = (
    PROBE
    + """
from crfkit.compiler.jit import KERNELS
counts = [(len(k.stats.cache_hits), len(k.stats.cache_misses)) for k in KERNELS]
print(*map(sum, zip(*counts)))
"""
)


@pytest.fixture
def copy_of_package(tmp_path):
    source = Path(crfkit.__file__).parent
    target = tmp_path / "crfkit"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "data"))
    (target / "__init__.py").write_text("")
    kernels = target / "kernels"
    (kernels / "helper.py").write_text(
        "from crfkit.compiler.jit import kernel\n\n\n@kernel\ndef factor():\n    return 2.0\n"
    )
    (kernels / "probe.py").write_text(
        "from crfkit.compiler.jit import kernel\nfrom crfkit.kernels.helper import factor\n\n\n"
        "@kernel\ndef doubled(x):\n    return x * factor()\n"
    )
    return tmp_path


def run(folder, code=PROBE, **environment):
    chosen = {"NUMBA_CACHE_DIR": str(folder / "cache")} | environment
    return "".join(run_in_new_process(code, folder, **chosen)).strip()


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_an_edited_helper_is_not_served_from_a_stale_cache(copy_of_package):
    assert run(copy_of_package) == "2.0"
    assert list((copy_of_package / "cache").rglob("*.nbc"))
    helper = copy_of_package / "crfkit" / "kernels" / "helper.py"
    helper.write_text(helper.read_text().replace("2.0", "3.0"))
    assert run(copy_of_package) == "3.0"


CALLED = "import crfkit.compiler.jit as jit; jit.LARGE = -99" + COUNTED


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_machine_code_that_calls_other_machine_code_is_loaded_with_it(copy_of_package):
    """Helpers of any size are called, not compiled into what calls them."""
    assert run(copy_of_package, CALLED) == "2.0\n0 2"
    assert run(copy_of_package, CALLED) == run(copy_of_package, COUNTED) == "2.0\n2 0"
    [called] = (copy_of_package / "cache").rglob("helper.factor.*.nbc")
    old = called.read_bytes()
    called.unlink()  # what is compiled anew has another name
    other = "from crfkit.kernels.helper import factor; factor(); " + CALLED.replace("1.0", "3")
    assert run(copy_of_package, other).startswith("6.0")
    assert run(copy_of_package, CALLED) == "2.0\n1 1"
    assert run(copy_of_package, CALLED) == "2.0\n2 0"
    called.write_bytes(old)
    assert run(copy_of_package, CALLED) == "2.0\n1 1"
    helper = copy_of_package / "crfkit" / "kernels" / "helper.py"
    helper.write_text(helper.read_text().replace("2.0", "3.0"))
    assert run(copy_of_package, CALLED) == "3.0\n0 2"


# Of these kernels, `factor` alone is large.
ONE_CALLED = """
import crfkit.compiler.jit as jit

choose = jit._call_if_large

def chosen(compiled, kinds):
    jit.LARGE = -99 if compiled.__name__ == "factor" else 10**6
    choose(compiled, kinds)

jit._call_if_large = chosen
"""


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_a_copy_of_machine_code_from_the_disk_loads_what_that_calls(copy_of_package):
    (copy_of_package / "crfkit" / "kernels" / "outer.py").write_text(
        "from crfkit.compiler.jit import kernel\nfrom crfkit.kernels.probe import doubled\n\n\n"
        "@kernel\ndef outer(x):\n    return 1.0 + doubled(x)\n"
    )
    outer = COUNTED.replace("probe", "outer").replace("doubled", "outer")
    assert run(copy_of_package, ONE_CALLED + COUNTED) == "2.0\n0 2"
    assert run(copy_of_package, ONE_CALLED + outer) == "3.0\n2 1"
    assert run(copy_of_package, ONE_CALLED + outer) == "3.0\n2 0"


# Machine code of which LLVM loads nothing, all, and what calls the rest.
LOADED = """
import crfkit.compiler.object_files as objects, crfkit.compiler.target as target
from crfkit.kernels.helper import factor
objects.MAGIC = {first}
factor()
objects.MAGIC = {then}
"""
MADE = COUNTED + "print(target.CONTEXT.is_made)"
ELF = (sys.platform, platform.machine()) == ("linux", "x86_64")


@pytest.mark.skipif(NO_JIT or not ELF, reason="needs the compiler, and its object files")
def test_machine_code_is_the_same_loaded_without_llvm_or_with_it(copy_of_package):
    helper = copy_of_package / "crfkit" / "kernels" / "helper.py"
    helper.write_text(
        "import math\n" + helper.read_text().replace("2.0", "math.exp(math.sin(1.0))")
    )
    value = str(math.exp(math.sin(1.0)))
    calling = "objects.MAGIC"
    assert run(copy_of_package, ONE_CALLED + COUNTED) == f"{value}\n0 2"
    for first, then, made in (
        (calling, calling, False), ("b'-'", "b'-'", True), (calling, "b'-'", True),
        ("b'-'", "b'\\x7fELF'", True),
    ):  # fmt: skip
        code = LOADED.format(first=first, then=then) + MADE
        assert run(copy_of_package, code) == f"{value}\n2 0\n{made}"


OF_USER = """
import numba
from crfkit.kernels.probe import doubled

print(doubled(1.0))

@numba.njit
def of_user(x):
    return 1.0 + doubled(x)

print(of_user(1.0))
"""


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_functions_of_users_call_kernels_from_the_disk(copy_of_package):
    assert run(copy_of_package, ONE_CALLED + PROBE) == "2.0"
    assert run(copy_of_package, OF_USER) == "2.0\n3.0"


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_machine_code_finds_what_llvm_would_find_for_it():
    from numba.core.codegen import ll

    from crfkit.compiler import stored

    stored.CONTEXT.make()
    assert len(stored.helpers()) > 80
    wrong = [
        name for name, found in stored.helpers().items() if ll.address_of_symbol(name) != found
    ]
    assert not wrong
    called = "memset", "memcpy", "PyErr_Format", "PyEval_SaveThread", "_Py_NoneStruct", "exp"
    assert not ELF or all(stored._find(name) == ll.address_of_symbol(name) for name in called)
    assert stored._find("no_such_function") == 0


TELLING = """
import gc
import crfkit.compiler.jit as jit
jit.tell_of_compiling()
import crfkit.kernels.probe as probe
compile, paused = probe.doubled._compiler.compile, []
def watched(*arguments):
    paused.append(gc.isenabled())
    return compile(*arguments)
probe.doubled._compiler.compile = watched
"""
PAUSED = "print(paused, gc.isenabled())"


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_other_options_of_kernels_make_other_machine_code(copy_of_package):
    told = "\ncompiling kernels, once for this machine ..."
    assert run(copy_of_package, TELLING + COUNTED + PAUSED) == f"2.0\n0 2\n[False] True{told}"
    assert run(copy_of_package, TELLING + COUNTED + PAUSED) == "2.0\n1 0\n[] True"
    options = copy_of_package / "crfkit" / "compiler" / "jit.py"
    options.write_text(options.read_text().replace('"nogil": True', '"nogil": False'))
    assert run(copy_of_package, COUNTED) == "2.0\n0 2"


def damaged(data):
    """Yield what may become of a file."""
    yield b""
    yield data[:40]
    yield data[: len(data) // 2]
    yield data[:-1] + bytes([data[-1] ^ 1])
    yield b"\0" * len(data)


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_a_damaged_file_is_written_anew(copy_of_package):
    run(copy_of_package)
    [file] = (copy_of_package / "cache").rglob("probe.*.nbc")
    for data in damaged(file.read_bytes()):
        file.write_bytes(data)
        assert run(copy_of_package, COUNTED) == "2.0\n1 1"
        assert run(copy_of_package, COUNTED) == "2.0\n1 0"


FULL_DISK = """
import errno, pathlib, warnings

def write(*arguments):
    raise OSError(errno.ENOSPC, "No space left on device")

pathlib.Path.write_bytes = write
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    from crfkit.kernels.probe import doubled
    print(doubled(1.0), doubled(3))
print(len(found), "NUMBA_CACHE_DIR" in str(found[0].message), "No space" in str(found[0].message))
print(found[0].filename)
"""


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_a_full_disk_costs_one_warning_at_the_line_of_the_user(copy_of_package):
    assert run(copy_of_package, FULL_DISK) == "2.0 6.0\n1 True True\n<string>"
    assert not list((copy_of_package / "cache").rglob("*.nbc*"))


# Root may write anywhere: a file stands where a folder would be made.
NOWHERE = """
import pathlib, sys, tempfile
import crfkit.compiler.cache as cache

for folder in (pathlib.Path("crfkit/compiler"), pathlib.Path("crfkit/kernels")):
    (folder / "__pycache__").write_text("")
tempfile.tempdir = sys.argv[1] if len(sys.argv) > 1 else "temporary"
"""


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_a_user_without_a_home_has_a_private_folder_for_machine_code(copy_of_package):
    temporary = copy_of_package / "temporary"
    temporary.mkdir()
    nowhere = {"NUMBA_CACHE_DIR": "", "HOME": "home", "XDG_CACHE_HOME": ""}
    for expected in ("2.0\n0 2", "2.0\n1 0"):
        assert run(copy_of_package, NOWHERE + COUNTED, **nowhere) == expected
    [private] = temporary.iterdir()
    assert not private.stat().st_mode & 0o077
    assert not (copy_of_package / "home").exists()
    private.chmod(0o755)  # others might have put files there
    out = run(copy_of_package, NOWHERE + COUNTED, **nowhere)
    assert out.startswith("2.0\n0 2") and out.count("UserWarning") == 1
    assert "open to other users" in out and "Set NUMBA_CACHE_DIR" in out


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_machine_code_beside_the_sources_is_read_by_those_who_cannot_write_it(copy_of_package):
    run(copy_of_package, NUMBA_CACHE_DIR="")
    change = "import os; may = os.access; os.access = lambda p, m: 'pycache' not in str(p)\n"
    assert run(copy_of_package, change + COUNTED, NUMBA_CACHE_DIR="", XDG_CACHE_HOME=str(
        copy_of_package / "home")) == "2.0\n1 0"  # fmt: skip


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_a_chosen_folder_is_read_where_it_cannot_be_written(copy_of_package):
    """As in a container: what was compiled when it was built lies in a read-only folder."""
    run(copy_of_package)
    change = "import os; os.access = lambda p, m: '/cache' not in str(p)\n"
    home = {"XDG_CACHE_HOME": str(copy_of_package / "home")}
    assert run(copy_of_package, change + COUNTED, **home) == "2.0\n1 0"
    other = COUNTED.replace("1.0", "3")
    assert run(copy_of_package, change + other, **home) == "6.0\n1 1"
    assert run(copy_of_package, change + other, **home) == "6.0\n1 0"


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_a_cache_folder_that_cannot_be_written_is_no_error(copy_of_package):
    (copy_of_package / "cache").write_text("a file, not a folder")
    assert run(copy_of_package) == "2.0"


OTHER_NUMBA = """
from numba.core import compiler

def missing(*arguments, **named):
    raise TypeError("another version of numba")

{change}
from crfkit.kernels.probe import doubled
print(doubled(1.0), doubled(3))
"""


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
@pytest.mark.parametrize(
    "change",
    [
        "compiler.CompileResult._rebuild = missing",
        "compiler.CompileResult._reduce = missing",
        "del compiler.CompileResult._reduce",
        "import numba.misc.appdirs; del numba.misc.appdirs.AppDirs",
        "from numba.core import codegen; codegen.CPUCodegen.magic_tuple = missing",
        "from numba.core import codegen; codegen.CPUCodeLibrary._set_compiled_object = missing",
        "import numba; numba.__version__ = '99.0'",
    ],
)
def test_another_numba_costs_the_cache_at_most(copy_of_package, change):
    code = OTHER_NUMBA.format(change=change)
    for _ in range(2):
        assert run(copy_of_package, code).startswith("2.0 6.0")


def test_kernels_run_without_the_compiler(copy_of_package):
    assert run(copy_of_package, NUMBA_DISABLE_JIT="1") == "2.0"
