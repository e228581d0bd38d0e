"""Runs the tutorials and writes them as notebooks with their outputs: ``make tutorials``."""

from __future__ import annotations

import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient


def write(tutorial: Path) -> None:
    notebook = jupytext.read(tutorial)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    resources = {"metadata": {"path": str(tutorial.parent)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    for number, cell in enumerate(notebook.cells):
        # What differs from run to run says nothing.
        cell["id"] = f"cell-{number}"
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    nbformat.write(notebook, tutorial.with_suffix(".ipynb"))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(Path(name))
