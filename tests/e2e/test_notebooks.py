"""The notebooks run from the first cell to the last, and are stored without what they print."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
EXECUTE = """
import sys, nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

path, sockets, result = sys.argv[1:]
book = nbformat.read(path, as_version=4)
kernel = AsyncKernelManager(transport="ipc", ip=f"{sockets}/s", connection_file=f"{sockets}/kernel.json")
NotebookClient(book, km=kernel, timeout=500).execute()
nbformat.write(book, result)
"""


def code(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_clean(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code(book))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem == "federation" else [])
        for path in NOTEBOOKS
    ],
)
def test_it_runs(path, tmp_path):
    """In a process of its own, over sockets with short names, as theirs have a hundred letters at most."""
    places = {"IPYTHONDIR": str(tmp_path / "ipython"), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory(prefix="nb") as sockets:
        command = [sys.executable, "-c", EXECUTE, path, sockets, tmp_path / "run.ipynb"]
        ended = subprocess.run(command, cwd=tmp_path, env=os.environ | places, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    shown = [output for cell in code(nbformat.read(tmp_path / "run.ipynb", as_version=4)) for output in cell.outputs]
    assert not [output for output in shown if "error:" in output.get("text", "")]  # commands, which stop no notebook
    assert any("text/html" in output.get("data", {}) for output in shown)  # a model shows itself as a table


def test_there_are_two():
    assert len(NOTEBOOKS) == 2
