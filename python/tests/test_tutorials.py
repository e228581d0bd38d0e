"""The tutorials run from beginning to end. `make tutorials` writes them as notebooks with their outputs."""

from __future__ import annotations

from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.py"))


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial(tutorial: Path) -> None:
    notebook = jupytext.read(tutorial)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tutorial.parent)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(cells) >= 3
    assert sum(bool(cell.outputs) for cell in cells) >= 2


def test_all_are_found() -> None:
    assert len(TUTORIALS) == 5
