"""A page for each command: its help."""

import re
import textwrap
from pathlib import Path

from program import Program

# As in the other pages: see build.py.
COLUMNS = 100


def write(program: Program, folder: Path) -> None:
    """Write a page for each command of both programs, and the page that leads to them."""
    pages = folder / "commands"
    pages.mkdir(parents=True)
    parts = ["# The commands"]
    for asked, called, prefix in ((program, "fairgate", ""), (program.lab(), "fairgate-lab", "lab-")):
        overview = asked.text("--help")
        commands = re.search(r"^Commands:\n(.*?)\n\n", overview, re.MULTILINE | re.DOTALL)
        if commands is None:
            raise RuntimeError(f"the help of {called} lists no commands")
        lines = re.findall(r"^  (\S+) +(.*)$", commands.group(1), re.MULTILINE)
        names = [(name, summary) for name, summary in lines if name != "help"]
        rows = "\n".join(f"| [{name}]({prefix}{name}.md) | {summary} |" for name, summary in names)
        parts += [f"## {called}", f"| | |\n|---|---|\n{rows}", f"```text\n{folded(overview)}\n```"]
        for name, summary in names:
            text = folded(asked.text(name, "--help"))
            page = f"# {called} {name}\n\n{summary}.\n\n```text\n{text}\n```\n"
            (pages / f"{prefix}{name}.md").write_text(page)
    (pages / "index.md").write_text("\n\n".join(parts) + "\n")


def folded(text: str) -> str:
    """Return help with its long lines folded, each below where its explanation begins."""
    lines = []
    for line in text.strip().splitlines():
        begin = re.match(r" *(?:\S+(?: \S+)*(?: {2,}|$))?", line)
        indent = len(begin[0]) if begin and len(begin[0]) < COLUMNS // 2 else len(line) - len(line.lstrip())
        # A line that fits stays as it is, with its gaps.
        lines += [line] if len(line) <= COLUMNS else fold(line, indent)
    return "\n".join(lines)


def fold(line: str, indent: int) -> list[str]:
    """Return the parts of a line: the first one as it is, the others indented."""
    wrapped = textwrap.wrap(line[indent:], COLUMNS - indent, break_long_words=False, break_on_hyphens=False)
    return [line[:indent] + wrapped[0], *(" " * indent + part for part in wrapped[1:])]
