"""Running the programs `fairgate` and `fairgate-lab`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

# The program prints no colours, and lines of this width.
SURROUNDINGS = {"NO_COLOR": "1", "COLUMNS": "110"}


class Program:
    """The program of this build."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lab(self) -> Program:
        """Return the program of the experiments, which is built beside this one."""
        return Program(self.path.with_name("fairgate-lab"))

    def text(self, *arguments: str, folder: Path | None = None, codes: tuple[int, ...] = (0,)) -> str:
        """Return what the program prints. It must end with one of these exit codes."""
        ended = subprocess.run(
            [self.path, *arguments],
            cwd=folder,
            env={**os.environ, **SURROUNDINGS},
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode not in codes:
            command = " ".join([self.path.name, *arguments])
            raise RuntimeError(f"{command}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
        return ended.stdout or ended.stderr

    def document(self, *arguments: str, folder: Path | None = None, codes: tuple[int, ...] = (0,)) -> Any:
        """Return the JSON document of a command."""
        return json.loads(self.text(*arguments, "--json", folder=folder, codes=codes))

    def start(self, *arguments: str, folder: Path | None = None) -> subprocess.Popen[str]:
        """Start a command that does not end by itself. What it prints can be read."""
        environment = {**os.environ, **SURROUNDINGS}
        return subprocess.Popen(
            [self.path, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
        )
