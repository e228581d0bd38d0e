"""JSON Schemas of what the commands print with `--json`, made from what they really print.

Each schema is inferred from documents of several runs (genson), and each of these documents is checked
against it. A key is required if all of them have it. New keys may be added in later versions, so none is
forbidden.
"""

import json
from pathlib import Path
from typing import Any

import genson
import jsonschema

from program import Program

ROOT = Path(__file__).parent.parent.parent

# Live commands need root and interfaces. docs/json.md describes what they print.
COMMANDS: list[tuple[str, ...]] = [
    ("list",),
    ("list", "htb"),
    ("check", "examples/home.toml"),
    ("check", "examples/isp.toml"),
    ("check", "examples/office.toml"),
    ("tc", "examples/office.tc"),
    ("tc", "qdisc add dev eth0 root fq_codel"),
    ("tc", "qdisc add dev eth0 root fq_codel\nqdisc add dev eth1 root fq_codel"),
    ("dummynet", "examples/office.ipfw"),
    ("compare", "--duration", "5s", "--queue", "fifo", "--queue", "fq_codel"),
    ("compare", "--duration", "2s", "--trace", "examples/recorded.pcap.gz", "--rate", "15mbit"),
    ("simulate", "examples/dumbbell.toml", "--duration", "8s"),
    ("simulate", "examples/home.toml", "--duration", "8s"),
    ("simulate", "examples/dumbbell.toml", "--duration", "8s", "--seeds", "2"),
    ("sweep", "examples/sweep.toml"),
    ("theory", "mm1", "--seeds", "2"),
    ("reproduce",),
    ("reproduce", "msfc-bufferbloat", "--seeds", "2"),
    ("replay", "tests/data/kernel-traces"),
]

# What a command refuses, for `fairgate.error/1`.
MISTAKES: list[tuple[str, ...]] = [
    ("simulate", "no-such-file.toml"),
    ("tc", "qdisc add dev eth0 root fq_codel limt 9"),
]


def write(program: Program, folder: Path) -> None:
    """Write a schema for each kind of document, and the page that leads to them."""
    pages = folder / "schemas"
    pages.mkdir(parents=True)
    documents: dict[str, list[Any]] = {}
    made_by: dict[str, set[str]] = {}
    for commands, codes in ((COMMANDS, (0, 1)), (MISTAKES, (2,))):
        for command in commands:
            writes = command[0] == "sweep" or (command[0] == "reproduce" and len(command) > 1)
            out = ("--out", str(folder.parent / "site-unused" / command[0])) if writes else ()
            document = program.document(*command, *out, folder=ROOT, codes=codes)
            name = document["schema"].removeprefix("fairgate.").replace("/", "-")
            documents.setdefault(name, []).append(document)
            made_by.setdefault(name, set()).add(command[0])
    rows = []
    for name, examples in sorted(documents.items()):
        schema = infer(name, examples)
        (pages / f"{name}.schema.json").write_text(json.dumps(schema, indent=2) + "\n")
        by = ", ".join(f"`fairgate {command}`" for command in sorted(made_by[name]))
        rows.append(
            f"| [{name}]({name}.schema.json) | {by if not name.startswith('error') else 'every command'} |"
        )
    text = f"# JSON Schemas\n\n{__doc__}\n[JSON output](../json.md) says what each key means.\n\n"
    (pages / "index.md").write_text(text + "\n".join(["| | |", "|---|---|", *rows]) + "\n")


def infer(name: str, documents: list[Any]) -> dict[str, Any]:
    """Return the schema of these documents, which all of them match."""
    builder = genson.SchemaBuilder(schema_uri="https://json-schema.org/draft/2020-12/schema")
    for document in documents:
        builder.add_object(document)
    schema: dict[str, Any] = builder.to_schema()
    kind, version = name.rsplit("-", 1)
    schema["title"] = f"fairgate.{kind}/{version}"
    schema["properties"]["schema"] = {"const": schema["title"]}
    validator = jsonschema.Draft202012Validator(schema)
    for document in documents:
        validator.validate(document)
    return schema
