"""Builds the documentation site: `build.py PROGRAM FOLDER`. README.md says how."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import c_interface
import commands
import schemas
import search
from disciplines import Disciplines
from program import Program

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

# Links to files of the repository that are no pages of the site. They become plain text.
OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./(?!docs/)[^)]*\)")


def copy_pages(folder: Path) -> None:
    """Copy docs/ and the pages of the site."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        (folder / page.name).write_text(OUTSIDE.sub(r"\1", page.read_text()))
    shutil.copytree(ROOT / "docs/images", folder / "images")
    shutil.copytree(HERE / "pages", folder, dirs_exist_ok=True)


def main(program: Program, target: Path) -> None:
    """Write the sources of the site to `target/site-source`, and the site to `target/site`."""
    folder = target / "site-source"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    copy_pages(folder)
    steps: list[tuple[str, Callable[[], object]]] = [
        ("commands", lambda: commands.write(program, folder)),
        ("the C interface", lambda: c_interface.write(folder)),
        ("disciplines", lambda: Disciplines(program, folder).write()),
        ("JSON Schemas", lambda: schemas.write(program, folder)),
    ]
    for number, (name, step) in enumerate(steps, 1):
        print(f"{number} of {len(steps) + 1}: {name}", flush=True)
        step()
    print(f"{len(steps) + 1} of {len(steps) + 1}: the site", flush=True)
    settings = target / "mkdocs.yml"
    text = (HERE / "mkdocs.yml").read_text()
    places = {
        "@SOURCE@": folder,
        "@SITE@": target / "site",
        "@PYTHON@": ROOT / "python",
        "@THEME@": HERE / "theme",
    }
    for word, place in places.items():
        text = text.replace(word, str(place))
    settings.write_text(text)
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", str(settings)]
    # The variable leaves out an advertisement of the theme.
    subprocess.run(command, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    search.write(target / "site")
    print(f"Open {target / 'site' / 'index.html'}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: build.py PROGRAM FOLDER")
    main(Program(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve())
