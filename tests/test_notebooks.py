"""The notebooks run from top to bottom, and the results they hold are theirs."""

import json
import re
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient runs notebooks; pip install .[test]")
nbformat = pytest.importorskip("nbformat", reason="nbformat reads notebooks; pip install .[test]")
start_new_kernel = pytest.importorskip(
    "jupyter_client.manager", reason="nbclient brings it; pip install .[test]"
).start_new_kernel
pytest.importorskip("ipykernel", reason="ipykernel runs Python in notebooks; pip install .[test]")
pytest.importorskip("matplotlib", reason="the notebooks draw plots; pip install .[test]")

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = [pytest.param(path, id=path.name) for path in sorted(FOLDER.glob("*.ipynb"))]


def test_all_notebooks_are_there():
    names = [
        "01-quickstart.ipynb", "02-features.ipynb", "03-handwriting.ipynb", "04-segments.ipynb",
        "05-losses.ipynb", "06-confidence-and-constraints.ipynb", "07-family.ipynb",
        "08-graphs.ipynb",
    ]  # fmt: skip
    assert [p.values[0].name for p in NOTEBOOKS] == names


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


# Garbage is looked for in what a notebook leaves, not in what has been imported; the margins of a
# figure, for which it would be drawn twice, are no part of the test.
FRESH = """
%reset -f
import gc, os
gc.freeze()
os.chdir({!r})
%config InlineBackend.print_figure_kwargs = {{"bbox_inches": None}}
del gc, os
"""


@pytest.fixture(scope="module")
def kernel():
    """A kernel for all notebooks: most of its time goes into imports."""
    manager, client = start_new_kernel(kernel_name="python3")
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("path", NOTEBOOKS)
def test_a_notebook_runs_without_errors_and_warnings(path, tmp_path, kernel):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(FRESH.format(str(tmp_path))))
    client = nbclient.NotebookClient(notebook, timeout=300, km=kernel[0])
    client.kc = kernel[1]
    client.execute(cleanup_kc=False)
    for cell in code_cells(notebook):
        for output in cell.outputs:
            assert output.get("name") != "stderr", f"{cell.source}\n{output.get('text')}"


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_a_notebook_is_stored_with_results_and_nothing_of_a_machine(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.stat().st_size < 300_000
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert sum(bool(cell.outputs) for cell in cells) >= 8
    assert not any(cell.metadata for cell in notebook.cells)
    results = json.dumps([cell.outputs for cell in cells])
    assert not re.search(r"/(tmp|home|root|work|usr|Users)/|Warning|Traceback| at 0x", results)
