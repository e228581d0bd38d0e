"""Writes python/fairgate/disciplines.py: a function for each discipline, from the registry.

Run it after a change of a discipline's parameters: ``make python-disciplines``. A test compares the file.
"""

from __future__ import annotations

import keyword
import sys
import textwrap
from pathlib import Path
from typing import Any

TYPES = {"true/false": "bool", "word": "str", "list": "Sequence[int] | str"}
QUANTITIES = {"bytes", "time", "rate"}

HEAD = '''"""A function for each discipline: ``fq_codel(target="5ms")`` is ``Tree("fq_codel", target="5ms")``.

This file is written by python/generate_disciplines.py from the registry of the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .trees import Class, Filter, Tree

__all__ = [
'''


def type_of(parameter: dict[str, Any]) -> str:
    unit = parameter["unit"]
    return TYPES.get(unit, "str" if unit in QUANTITIES else "float | str")


def wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, 106, initial_indent=indent, subsequent_indent=indent)


def sentence(text: str) -> str:
    return text if text.endswith(".") else text + "."


def described(name: str, kind: str, text: str) -> list[str]:
    return [f"    {name} : {kind}", wrapped(text, "        ")]


def function(entries: list[dict[str, Any]]) -> str:
    """Return the function of a discipline, which has two entries if it exists with and without classes."""
    name = entries[0]["name"]
    parameters = {p["name"]: p for entry in entries for p in entry["parameters"]}
    of_classes = {p["name"]: p for entry in entries for p in entry["class_parameters"]}
    holds = {entry["holds"] for entry in entries}
    ordered = sorted(parameters.values(), key=lambda p: not p["required"])
    arguments: list[str] = []
    document: list[str] = [
        f'    """{sentence(entries[0]["summary"])}',
        "",
        wrapped("Use it: " + entries[0]["when"], "    "),
    ]
    for other in entries[1:]:
        document += ["", wrapped(f"With classes: {sentence(other['summary'])}", "    ")]
    document += ["", "    Parameters", "    ----------"]
    for p in ordered:
        argument = p["name"] + ("_" if keyword.iskeyword(p["name"]) else "")
        kind = type_of(p)
        default = "" if p["required"] else " | None = None"
        arguments.append(f"{argument}: {kind}{default}")
        unit = "" if p["unit"] in ("true/false", "word", "list") else f" In {p['unit']}."
        if p["unit"] in QUANTITIES:
            unit = ""
        allowed = f" Allowed: {p['allowed']}." if p["allowed"] else ""
        standard = "" if p["required"] else f" Default: {p['default']}."
        document += described(
            argument,
            kind + ("" if p["required"] else ", optional"),
            sentence(p["meaning"]) + unit + allowed + standard,
        )
    passed = [f"{p['name']}={p['name']}" for p in ordered]
    if "inner" in holds:
        arguments.append("inner: Tree | None = None")
        document += described("inner", "Tree, optional", "What it holds.")
        passed.append("inner=inner")
    if "classes" in holds:
        arguments.append("classes: Iterable[Class] = ()")
        text = "Its classes."
        if of_classes:
            text += (
                " Parameters of a class: "
                + "; ".join(
                    f"`{p['name']}` ({p['allowed']}{'' if p['required'] else ', default ' + str(p['default'])}): "
                    + p["meaning"].rstrip(".")
                    for p in of_classes.values()
                )
                + "."
            )
        document += described("classes", "iterable of Class", text)
        passed.append("classes=classes")
    if any(entry["takes_filters"] for entry in entries):
        arguments += [
            "filters: Iterable[Filter] = ()",
            "handle: str | None = None",
            "default: int | None = None",
        ]
        document += described("filters", "iterable of Filter", "Which packets go to which class or flow.")
        document += described(
            "handle", "str, optional", "The number by which packets name its classes, hexadecimal."
        )
        document += described("default", "int, optional", "The class of packets that no filter matches.")
        passed += ["filters=filters", "handle=handle", "default=default"]
    if not arguments:
        document = document[:-3]
    document.append('    """')
    if not arguments:
        return "\n".join([f"def {name}() -> Tree:", *document, f'    return Tree("{name}")'])
    lines = [
        f"def {name}(",
        "    *,",
        *(f"    {argument}," for argument in arguments),
        ") -> Tree:",
        *document,
    ]
    lines += ["    return Tree(", f'        "{name}",', *(f"        {each}," for each in passed), "    )"]
    return "\n".join(lines)


def generated(disciplines: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(entry["name"] for entry in disciplines))
    text = HEAD + "".join(f'    "{name}",\n' for name in sorted(names)) + "]\n"
    for name in names:
        text += "\n\n" + function([entry for entry in disciplines if entry["name"] == name]) + "\n"
    return text


if __name__ == "__main__":
    from fairgate import _native

    Path(sys.argv[1]).write_text(generated(_native.disciplines()), encoding="utf-8")
