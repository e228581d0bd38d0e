"""The page of the C interface, from the header."""

import re
import textwrap
from pathlib import Path

HEADER = Path(__file__).parent.parent.parent / "crates/fairgate-ffi/include/fairgate.h"


def write(folder: Path) -> None:
    """Write the page."""
    text = HEADER.read_text()
    rules = textwrap.dedent("\n".join(line.removeprefix("//") for line in head(text)))
    # A list needs an empty line before it.
    rules = rules.replace(":\n", ":\n\n")
    parts = ["# The C interface", rules.strip(), "[How to use it](c.md)."]
    for comment, declaration in declarations(text):
        name = name_of(declaration)
        if name is not None:
            parts += [f"## {name}", comment, f"```c\n{declaration}\n```"]
    (folder / "c-interface.md").write_text("\n\n".join(parts) + "\n")


def head(text: str) -> list[str]:
    """Return the comment at the beginning."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line)
    return lines


def declarations(text: str) -> list[tuple[str, str]]:
    """Return each comment with the declaration below it."""
    found = re.findall(r"((?:^//[^\n]*\n)+)([^\n/].*?)(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return [
        (" ".join(line.removeprefix("//").strip() for line in comment.splitlines()), declaration)
        for comment, declaration in found
    ]


def name_of(declaration: str) -> str | None:
    """Return the name that a declaration declares."""
    for pattern in (
        r"^#define (\w+)",
        r"^enum (\w+)",
        r"^typedef .*\(\*(\w+)\)",
        r"^typedef .*?(\w+);\s*\Z",
        r"(\w+)\(",
    ):
        found = re.search(pattern, declaration, re.DOTALL)
        if found:
            return found.group(1)
    return None
