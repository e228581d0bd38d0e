"""A page for each command: its help."""

import re
from pathlib import Path

from program import Program


def write(program: Program, folder: Path) -> list[str]:
    """Write all pages. Returns the names of the commands."""
    pages = folder / "commands"
    pages.mkdir(parents=True)
    overview = program.text("--help")
    commands = re.search(r"^Commands:\n(.*?)\n\n", overview, re.MULTILINE | re.DOTALL)
    if commands is None:
        raise RuntimeError("the help of the program lists no commands")
    lines = re.findall(r"^  (\S+) +(.*)$", commands.group(1), re.MULTILINE)
    names = [(name, summary) for name, summary in lines if name != "help"]
    rows = "\n".join(f"| [{name}]({name}.md) | {summary} |" for name, summary in names)
    index = f"# The commands\n\n| | |\n|---|---|\n{rows}\n\n```text\n{overview.strip()}\n```\n"
    (pages / "index.md").write_text(index)
    for name, summary in names:
        text = f"# fairgate {name}\n\n{summary}.\n\n```text\n{program.text(name, '--help').strip()}\n```\n"
        (pages / f"{name}.md").write_text(text)
    return [name for name, _ in names]
