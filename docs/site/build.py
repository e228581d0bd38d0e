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
import experiments
import schemas
import search
from disciplines import Disciplines
from program import Program

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

# A link to a file, or code, in which nothing is a link.
LINK = re.compile(r"```.*?```|`[^`]*`|\[([^\]]+)\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)", re.DOTALL)


def linked(page: Path, text: str) -> str:
    """Return the text with links to other files of the repository than those of docs/ as plain text."""

    def keep(link: re.Match[str]) -> str:
        if link[2] is None:
            return link[0]
        target = (page.parent / link[2]).resolve()
        if not target.exists():
            raise RuntimeError(f"{page.relative_to(ROOT)}: there is no file {link[2]}")
        return link[0] if target.is_relative_to(ROOT / "docs") else link[1]

    return LINK.sub(keep, text)


def copy_pages(folder: Path) -> None:
    """Copy docs/ and the pages of the site, and check the links of these and of README.md."""
    docs = ROOT / "docs"
    for page in ROOT.glob("*.md"):
        linked(page, page.read_text())
    for page in [*sorted(docs.glob("*.md")), *sorted((docs / "experiments").glob("*.md"))]:
        text = page.read_text()
        copied = folder / page.relative_to(docs)
        copied.parent.mkdir(exist_ok=True)
        copied.write_text(linked(page, text))
    shutil.copytree(docs / "images", folder / "images")
    shutil.copy(docs / "experiments/verdicts.csv", folder / "experiments")
    shutil.copytree(HERE / "pages", folder, dirs_exist_ok=True)
    # The program in Rust of README.md, which a test compiles.
    program = re.search(r"```rust\n.*?```", (ROOT / "README.md").read_text(), re.DOTALL)
    if program is None:
        raise RuntimeError("README.md has no program in Rust")
    engineer = folder / "engineer.md"
    engineer.write_text(engineer.read_text().replace("@PROGRAM@", program[0]))


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
        ("experiments", lambda: experiments.write(folder / "experiments")),
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
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(settings)]
    # Not with --quiet: a warning that is not shown is no error. The variable leaves out an advertisement.
    subprocess.run(command, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    search.write(target / "site")
    print(f"Open {target / 'site' / 'index.html'}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: build.py PROGRAM FOLDER")
    main(Program(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve())
