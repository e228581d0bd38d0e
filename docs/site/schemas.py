"""JSON Schemas of what the commands print with `--json`, made from what they really print.

Each schema is inferred from documents of several runs, and each of these documents is checked against it. A
key is required if all of them have it and the description does not say when it is missing. A value can be
null if one of them is, or if the description says so. New keys may be added in later versions, so none is
forbidden. Each key of each document must be in the description, except for what `show` takes over from tc.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema

import live
from program import Program
from shapes import Section, Shapes

ROOT = Path(__file__).parent.parent.parent

# `{out}` is a folder of the build.
COMMANDS: list[tuple[str, ...]] = [
    ("list",),
    ("list", "htb"),
    ("check", "examples/home.toml"),
    ("check", "examples/isp.toml"),
    ("check", "examples/office.toml"),
    ("tc", "examples/office.tc"),
    ("tc", "qdisc add dev eth0 root fq_codel"),
    ("tc", "qdisc add dev eth0 root cake bandwidth 20mbit nat"),
    ("tc", "qdisc add dev eth0 root fq_codel\nqdisc add dev eth1 root fq_codel"),
    ("dummynet", "examples/office.ipfw"),
    ("compare", "--duration", "5s", "--queue", "fifo", "--queue", "fq_codel"),
    ("compare", "--duration", "2s", "--trace", "examples/recorded.pcap.gz", "--rate", "15mbit"),
    ("compare", "--trace", "examples/home.pcap.gz", "--closed-loop", "--queue", "fq_codel"),
    ("simulate", "examples/dumbbell.toml", "--duration", "8s", "--out", "{out}/results.json"),
    ("simulate", "examples/home.toml", "--duration", "8s"),
    ("simulate", "examples/dumbbell.toml", "--duration", "8s", "--seeds", "2"),
    ("plot", "{out}/results.json", "--out", "{out}/throughput.svg"),
    ("sweep", "examples/sweep.toml", "--out", "{out}/sweep"),
    ("man",),
    ("man", "--out", "{out}/man"),
    ("completions", "bash"),
]

# Commands of `fairgate-lab`.
LAB: list[tuple[str, ...]] = [
    ("theory", "mm1", "--seeds", "2"),
    ("bounds", "drr", "scfq"),
    ("reproduce",),
    ("reproduce", "msfc-bufferbloat", "--quick", "--seeds", "2", "--out", "{out}/reproduced"),
    ("replay", "tests/data/kernel-traces"),
    ("validate", "kernel-tcp", "--runs", "1", "tests/data/kernel-tcp/codel-cubic-rtt20-n1-udp0.json"),
    ("bench", "schedulers", "--algorithms", "drr", "--flows", "8", "--runs", "1"),
]

# What a command refuses, for `fairgate.error/1`.
MISTAKES: list[tuple[str, ...]] = [
    ("simulate", "no-such-file.toml"),
    ("tc", "qdisc add dev eth0 root fq_codel limt 9"),
]

# Its keys are those of tc, which differ from kind to kind. The description doesn't list them.
OF_TC = "show-1"

SKIPPED = "SKIPPED: the schemas of live commands need root, which makes the network of their runs"


class Kind:
    """The documents of one kind, as `fairgate.NAME/VERSION`."""

    def __init__(self) -> None:
        self.documents: list[Any] = []
        self.made_by: set[str] = set()

    def add(self, words: tuple[str, ...], document: Any) -> None:
        """Add what a command printed. Its name is the first word, or the words before the file."""
        self.documents.append(document)
        program = "fairgate-lab" if words in LAB else "fairgate"
        length = 2 if words[:2] in live.NAMES_OF_FILES else 1
        command = " ".join(words if words in live.NAMES else words[:length])
        self.made_by.add(f"`{program} {command}`")


def write(program: Program, folder: Path) -> None:
    """Write a schema for each kind of document, and the page that leads to them."""
    pages = folder / "schemas"
    pages.mkdir(parents=True)
    kinds: dict[str, Kind] = {}
    for words, document in answers(program, folder.parent / "site-unused"):
        name = document["schema"].removeprefix("fairgate.").replace("/", "-")
        kinds.setdefault(name, Kind()).add(words, document)
    described = (ROOT / "docs/json.md").read_text()
    rows = []
    for name, kind in sorted(kinds.items()):
        schema = infer(name, kind.documents, described)
        (pages / f"{name}.schema.json").write_text(json.dumps(schema, indent=2) + "\n")
        by = ", ".join(sorted(kind.made_by))
        rows.append(f"| [{name}]({name}.schema.json) | {'every command' if name == 'error-1' else by} |")
    text = f"# JSON Schemas\n\n{__doc__}\n[JSON output](../json.md) says what each key means.\n\n"
    missing = "" if live.is_possible() else f"\n{SKIPPED}.\n"
    (pages / "index.md").write_text(text + "\n".join(["| | |", "|---|---|", *rows]) + "\n" + missing)


def answers(program: Program, out: Path) -> Iterator[live.Answer]:
    """Give each command with its document."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    of_each = ((program, COMMANDS, (0, 1)), (program.lab(), LAB, (0, 1)), (program, MISTAKES, (2,)))
    for asked, commands, codes in of_each:
        for words in commands:
            arguments = [word.replace("{out}", str(out)) for word in words]
            yield words, asked.document(*arguments, folder=ROOT, codes=codes)
    if live.is_possible():
        yield from live.answers(program)
    else:
        print(SKIPPED, file=sys.stderr)


def infer(name: str, documents: list[Any], described: str) -> dict[str, Any]:
    """Return the schema of these documents, which all of them match."""
    kind, version = name.rsplit("-", 1)
    title = f"fairgate.{kind}/{version}"
    found = Shapes(documents, Section(title, described))
    unknown = sorted(key for key in found.keys if not re.search(rf"\b{key}\b", described))
    if unknown and name != OF_TC:
        raise RuntimeError(f"docs/json.md does not describe {', '.join(unknown)} of {title}")
    found.schema["properties"]["schema"] = {"const": title}
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **found.schema}
    validator = jsonschema.Draft202012Validator(schema)
    for document in documents:
        validator.validate(document)
    return schema
