"""Writes what of the client of the API is generated: ``generate_client.py FOLDER DOCUMENT``.

The OpenAPI document DOCUMENT becomes FOLDER/models.py, by datamodel-code-generator, and
FOLDER/_operations.py, a method for each route. Their examples are in client_examples.toml. The methods of
streams are written by hand. ``make python-client`` takes the document from a run. A test compares the files.
"""

from __future__ import annotations

import copy
import json
import keyword
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parent / "client_examples.toml"

# A schema that is an `int | bool | None` of Python.
REPLACED = {"ValueStatus": "fairgate.client._base.Value"}

HEAD = '''"""{title}

This file is written by python/generate_client.py from python/openapi.json. `make python-client` writes it
again.
"""

'''

# The exceptions of statuses. A status that is not here has a type that any request can have.
EXCEPTIONS = {"404": "NotFound", "412": "Stale", "422": "Refused", "503": "Silent"}

# The media type of an answer with a document in each line.
STREAM = "application/x-ndjson"

SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}

WIDTH = 106

Json = dict[str, Any]


class Document:
    """The OpenAPI document, and what of it is needed."""

    def __init__(self, document: Json) -> None:
        self.schemas: Json = document["components"]["schemas"]
        self.operations = [
            Operation(self, path, method, operation)
            for path, item in document["paths"].items()
            for method, operation in item.items()
        ]
        answers = [schema for each in self.operations for schema in each.answers()]
        self.answered = set(self.reached(*answers, {"$ref": "#/components/schemas/Problem"}))
        bodies = [schema for each in self.operations if (schema := each.body_schema()) is not None]
        # The members of a body that no answer has are arguments of the method.
        whole = [schema for body in bodies for schema in self.parts_of_body(body)]
        self.sent = set(self.reached(*whole))
        self.tagged = {each.answer_name() for each in self.operations if each.has_tag()} - {None}

    def parts_of_body(self, body: Json) -> Iterator[Json]:
        """Yield the body as a whole, or its members if they are arguments."""
        if self.is_flat(body):
            yield from self.schemas[name_of(body)].get("properties", {}).values()
        else:
            yield body

    def is_flat(self, body: Json) -> bool:
        """Return whether the members of a body are arguments."""
        name = name_of(body)
        if name is None or name in self.answered:
            return False
        # An object that may have no members at all has no arguments.
        schema = self.schemas[name]
        return "properties" in schema or schema.get("additionalProperties") is False

    def reached(self, *schemas: Any) -> Iterator[str]:
        """Yield the names of all schemas that these are made of."""
        waiting, seen = list(schemas), set()
        while waiting:
            part = waiting.pop()
            if isinstance(part, list):
                waiting += part
            elif isinstance(part, dict):
                name = name_of(part)
                if name is not None and name not in seen:
                    seen.add(name)
                    yield name
                    waiting.append(self.schemas[name])
                waiting += [value for value in part.values() if isinstance(value, dict | list)]

    def for_models(self) -> Json:
        """Return a document of the schemas of models."""
        schemas = copy.deepcopy({name: self.schemas[name] for name in sorted(self.answered | self.sent)})
        for schema in schemas.values():
            adapt(schema)
        schemas = self.without_words(schemas)
        # Nothing is made of what is replaced.
        schemas |= {name: {"type": "object"} for name in REPLACED if name in schemas}
        # A patch: any object.
        schemas = {
            name: schema for name, schema in schemas.items() if schema.keys() != {"type", "description"}
        }
        info = {"title": "Fairgate", "version": "1"}
        return {"openapi": "3.1.0", "info": info, "paths": {}, "components": {"schemas": schemas}}

    def without_words(self, schemas: Json) -> Json:
        """Return schemas in which text may have any words: a newer run may have more of them."""

        def opened(part: Any) -> Any:
            if isinstance(part, list):
                return [opened(each) for each in part]
            if not isinstance(part, dict):
                return part
            name = name_of(part)
            if name is not None and self.words_of(part):
                part = self.schemas[name] | {key: value for key, value in part.items() if key != "$ref"}
            # One word alone tells kinds of objects apart.
            is_open = len(self.words_of(part)) > 1
            return {key: opened(value) for key, value in part.items() if not (is_open and key == "enum")}

        named = {name: schema for name, schema in schemas.items() if not self.words_of(schema)}
        return {name: opened(schema) for name, schema in named.items()}

    def words_of(self, schema: Json) -> list[str]:
        """Return the words that a text must be one of."""
        name = name_of(schema)
        schema = schema if name is None else self.schemas[name]
        return list(schema["enum"]) if schema.get("type") == "string" and "enum" in schema else []

    def type_of(self, schema: Json) -> str:
        """Return the type of an argument."""
        choices = [each for each in schema.get("oneOf", [schema]) if each.get("type") != "null"]
        words = self.words_of(choices[0]) if len(choices) == 1 else []
        # Null may be one of the words.
        listed = ", ".join(f'"{word}"' for word in words if word is not None)
        return f"Literal[{listed}]" if listed else type_of(schema)

    def bases(self) -> dict[str, str]:
        """Return the base classes of models that have others than `Model`."""
        bases = dict.fromkeys(self.sent, "fairgate.client._base.Input")
        return bases | {name: "fairgate.client._base.Tagged" for name in self.tagged if name is not None}


class Operation:
    """A route: a method and a path."""

    def __init__(self, document: Document, path: str, method: str, operation: Json) -> None:
        self.document = document
        self.path = path
        self.method = method.upper()
        self.operation = operation
        self.id: str = operation["operationId"]
        self.name = re.sub(r"(?<!^)(?=[A-Z])", "_", self.id).lower()

    def successes(self) -> list[Json]:
        """Return the responses of success."""
        return [response for code, response in self.operation["responses"].items() if code.startswith("2")]

    def answers(self) -> list[Json]:
        """Return the schemas of answers that are JSON."""
        contents = [content for success in self.successes() for content in success.get("content", {}).items()]
        kinds = ("application/json", STREAM)
        return [content["schema"] for kind, content in contents if kind.startswith(kinds)]

    def is_stream(self) -> bool:
        """Return whether its answer is a document in each line, without an end."""
        return any(STREAM in success.get("content", {}) for success in self.successes())

    def answer_name(self) -> str | None:
        """Return the name of the document that is the answer."""
        answers = self.answers()
        return name_of(answers[0]) if answers else None

    def has_tag(self) -> bool:
        """Return whether its answer has an entity tag."""
        return any("ETag" in success.get("headers", {}) for success in self.successes())

    def answer(self) -> str:
        """Return the type of the answer."""
        kinds = {
            kind.partition(";")[0] for success in self.successes() for kind in success.get("content", {})
        }
        if kinds == {"application/json"}:
            types = {type_of(schema) for schema in self.answers()}
            if len(types) != 1:
                raise SystemExit(f"{self.id} has answers of several types: {', '.join(sorted(types))}")
            return types.pop()
        if not kinds:
            return "None"
        is_text = all(kind.startswith("text/") or kind == "application/openmetrics-text" for kind in kinds)
        return "str" if is_text else "bytes"

    def body_schema(self) -> Json | None:
        """Return the schema of the body."""
        body = self.operation.get("requestBody")
        return None if body is None else body["content"]["application/json"]["schema"]

    def parameters(self, where: str) -> list[Json]:
        """Return the parameters in a place: path, query or header."""
        return [each for each in self.operation.get("parameters", []) if each["in"] == where]

    def written(self, example: str | None) -> str:
        """Return the method in Python."""
        required: list[tuple[str, str, str]] = []
        optional: list[tuple[str, str, str, str]] = []
        passed: list[str] = []
        for each in self.parameters("path"):
            required.append((argument(each["name"]), "str", each["description"]))
        query = []
        for each in self.parameters("query"):
            name, text = argument(each["name"]), each.get("description", "")
            kind = self.document.type_of(each["schema"])
            if each["required"]:
                required.append((name, kind, text))
                query.append(f'"{each["name"]}": {name}')
            elif kind == "bool":
                optional.append((name, kind, "False", text))
                query.append(f'"{each["name"]}": {name} or None')
            else:
                optional.append((name, f"{kind} | None", "None", text))
                query.append(f'"{each["name"]}": {name}')
        if query:
            passed.append(f"query={{{', '.join(query)}}}")
        body = self.body_schema()
        if body is not None:
            passed.append(self.body(body, required, optional))
        fields = []
        knows = False
        for each in self.parameters("header"):
            name = argument(each["name"])
            knows = knows or each["name"] == "If-None-Match"
            optional.append((name, "str | None", "None", each["description"]))
            fields.append(f'"{each["name"]}": {name}')
        if fields:
            passed.append(f"headers={{{', '.join(fields)}}}")
        return self.lines(required, optional, passed, example, may_be_known=knows)

    def body(
        self, body: Json, required: list[tuple[str, str, str]], optional: list[tuple[str, str, str, str]]
    ) -> str:
        """Add the arguments of the body. Return how it is passed."""
        name = name_of(body)
        schema = self.document.schemas[name] if name is not None else body
        if not self.document.is_flat(body):
            is_model = "properties" in schema
            kind = type_of(body) if is_model else "Mapping[str, Any]"
            taken = {known for known, *_ in required}
            called = "document" if "document" not in taken else "body"
            required.append((called, kind, schema.get("description", "What is sent")))
            return f"body={called}" if is_model else f"body=dict({called})"
        members = []
        for key, member in schema.get("properties", {}).items():
            kind = self.document.type_of(member)
            kind = "Iterable[" + kind.removeprefix("list[") if kind.startswith("list[") else kind
            value = argument(key)
            text = member.get("description", "")
            if key in schema.get("required", []):
                required.append((value, kind, text))
                items = f'_arguments.listed("{value}", {value})' if kind.startswith("Iterable[") else value
                members.append(f'"{key}": {items}')
            else:
                optional.append((value, f"{kind} | None", "None", text))
                members.append(f'**_given("{key}", {value})')
        return f"body={{{', '.join(members)}}}"

    def lines(
        self,
        required: list[tuple[str, str, str]],
        optional: list[tuple[str, str, str, str]],
        passed: list[str],
        example: str | None,
        *,
        may_be_known: bool,
    ) -> str:
        """Return the lines of the method."""
        answer = self.answer()
        arguments = ["self", *(f"{name}: {kind}" for name, kind, _ in required)]
        if optional:
            arguments += ["*", *(f"{name}: {kind} = {default}" for name, kind, default, _ in optional)]
        overloads = ""
        returned = answer
        if may_be_known:
            returned = f"{answer} | None"
            for kind, result in (("None = None", answer), ("str", returned)):
                given = [re.sub(r"^(if_none_match): .*", rf"\1: {kind}", each) for each in arguments]
                overloads += f"    @overload\n    def {self.name}({', '.join(given)}) -> {result}: ...\n\n"
        document = self.docstring(required, optional, returned, example)
        parts = [argument(each["name"]) for each in self.parameters("path")]
        path = f'"{self.path}"'
        if parts:
            keys = ", ".join(f"{part}={part}" for part in parts)
            template = re.sub(r"{(.*?)}", lambda found: "{" + argument(found[1]) + "}", self.path)
            path = f'path_of("{template}", {keys})'
        kind = {"dict[str, Any]": "dict", "None": "bytes"}.get(answer, answer)
        asked = ", ".join([f'"{self.method}"', path, kind, *passed])
        function = "ask_unless_known" if may_be_known else "ask"
        return (
            f"{overloads}    def {self.name}({', '.join(arguments)}) -> {returned}:\n{document}\n"
            f"        {'' if answer == 'None' else 'return '}self._transport.{function}({asked})\n"
        )

    def about_answer(self) -> str:
        """Return what the answer is."""
        name = self.answer_name()
        schema = self.document.schemas[name] if name is not None else {}
        about: str = schema.get("description", self.successes()[0]["description"])
        if "304" in self.operation["responses"]:
            about = f"{sentence(about)} None: {self.operation['responses']['304']['description']}"
        return about

    def docstring(
        self,
        required: list[tuple[str, str, str]],
        optional: list[tuple[str, str, str, str]],
        returned: str,
        example: str | None,
    ) -> str:
        """Return the docstring, in numpydoc form."""
        indent = " " * 8
        text = [f'{indent}"""{sentence(self.operation["summary"])}']
        if "description" in self.operation:
            text += ["", wrapped(self.operation["description"], indent)]
        described = [(name, kind, about) for name, kind, about in required]
        described += [(name, f"{kind}, optional", about) for name, kind, _, about in optional]
        if described:
            text += ["", f"{indent}Parameters", f"{indent}----------"]
            for name, kind, about in described:
                text.append(f"{indent}{name} : {in_words(kind)}")
                text += [wrapped(about, indent + "    ")] if about else []
        if returned != "None":
            text += ["", f"{indent}Returns", f"{indent}-------", f"{indent}{in_words(returned)}"]
            text.append(wrapped(self.about_answer(), indent + "    "))
        codes = [code for code in self.operation["responses"] if code in EXCEPTIONS]
        if codes:
            text += ["", f"{indent}Raises", f"{indent}------"]
            for code in codes:
                about = self.operation["responses"][code]["description"]
                text += [f"{indent}{EXCEPTIONS[code]}", wrapped(about, indent + "    ")]
        if example is not None:
            text += ["", f"{indent}Examples", f"{indent}--------"]
            text.append(textwrap.indent(example.strip(), indent))
        return "\n".join([*text, f'{indent}"""'])


def name_of(schema: Json) -> str | None:
    """Return the name of a schema that is elsewhere."""
    reference = schema.get("$ref")
    return None if reference is None else reference.rpartition("/")[2]


def type_of(schema: Json) -> str:
    """Return the type of a schema in Python. Whether it may be null is not part of it."""
    name = name_of(schema)
    if name is not None:
        return name
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            kinds = [type_of(each) for each in schema[choice] if each.get("type") != "null"]
            return " | ".join(dict.fromkeys(kinds))
    kind = schema.get("type", "object")
    kinds = [each for each in (kind if isinstance(kind, list) else [kind]) if each != "null"]
    if kinds == ["array"]:
        return f"list[{type_of(schema['items'])}]"
    if kinds == ["object"]:
        return "dict[str, Any]"
    return " | ".join(SIMPLE[each] for each in kinds)


def adapt(schema: Json) -> None:
    """Let a schema give a model that is pleasant to use, and that reads what a newer run answers."""
    if "properties" in schema:
        schema.pop("additionalProperties", None)
    for part in schema.get("allOf", []):
        adapt(part)
    required = schema.get("required", [])
    for name, member in schema.get("properties", {}).items():
        # Ranges are checked by the run, which names the remedy.
        for limited in (member, member.get("items", {}), member.get("additionalProperties", {})):
            if isinstance(limited, dict):
                limited.pop("minimum", None)
        # A list that is left out is an empty one.
        if name not in required and member.get("type") in ("array", "object"):
            member["default"] = [] if member["type"] == "array" else {}
        for choice in member.get("oneOf", []):
            if "description" in choice:
                member.setdefault("description", choice["description"])


def argument(name: str) -> str:
    """Return a name as that of an argument."""
    snake = re.sub(r"[^a-z0-9]", "_", name.lower())
    return snake + "_" if keyword.iskeyword(snake) else snake


def in_words(kind: str) -> str:
    """Return a type as docstrings of this package say it."""
    kind = re.sub(r" \| None(?=, optional)", "", kind).replace(" | ", " or ")
    kind = kind.replace("Mapping[str, Any]", "mapping").replace("dict[str, Any]", "dict")
    kind = re.sub(r"\b(Iterable|list)\[(\w+)\]", lambda found: f"{found[1].lower()} of {found[2]}", kind)
    return re.sub(r"Literal\[(.*?)\]", lambda found: "{" + found[1].replace('"', "'") + "}", kind)


def sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", ":")) else text + "."


def wrapped(text: str, indent: str) -> str:
    text = text.replace("`If-Match`", "`if_match`").replace("`If-None-Match`", "`if_none_match`")
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    paragraphs[-1] = sentence(paragraphs[-1])
    return "\n\n".join(
        textwrap.fill(each, WIDTH, initial_indent=indent, subsequent_indent=indent) for each in paragraphs
    )


def operations(document: Document, examples: dict[str, str]) -> str:
    """Return the module of the methods."""
    written = [each for each in document.operations if not each.is_stream()]
    methods = "\n".join(each.written(examples.get(each.id)) for each in written)
    known = document.answered | document.sent
    models = sorted(name for name in known if re.search(rf"\b{name}\b", methods))
    imports = "".join(f"    {name},\n" for name in models)
    return (
        HEAD.format(title="A method for each route of the API.")
        + f"""from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, overload

from .. import _arguments
from ._transport import Transport, path_of
from .models import (
{imports})

__all__ = ["Operations"]


def _given(name: str, value: Any) -> dict[str, Any]:
    return {{}} if value is None else {{name: value}}


class Operations:
    \"\"\"A method for each route of the API.\"\"\"

    _transport: Transport

{methods}"""
    )


def models(document: Document, folder: Path) -> str:
    """Return the module of the documents, by datamodel-code-generator."""
    source = folder / "schemas.json"
    source.write_text(json.dumps(document.for_models()), encoding="utf-8")
    written = folder / "models.py"
    command = [sys.executable, "-m", "datamodel_code_generator", "--input", str(source), "--input-file-type"]
    command += ["openapi", "--output", str(written), "--output-model-type", "pydantic_v2.BaseModel"]
    command += ["--target-python-version", "3.11", "--base-class", "fairgate.client._base.Model"]
    command += ["--base-class-map", json.dumps(document.bases()), "--type-overrides", json.dumps(REPLACED)]
    command += ["--use-schema-description", "--use-field-description", "--use-single-line-docstring"]
    command += ["--use-annotated", "--use-double-quotes", "--formatters", "builtin", "--disable-timestamp"]
    command += ["--enum-field-as-literal", "all"]
    command += ["--strict-refs", "--strict-nullable", "--use-object-type", "--use-default-kwarg"]
    head = HEAD.format(title="The documents of the API.").strip()
    subprocess.run([*command, "--custom-file-header", head], check=True)
    return written.read_text(encoding="utf-8")


def formatted(text: str, name: str) -> str:
    """Return a module as ruff formats it."""
    ruff = [sys.executable, "-m", "ruff"]
    for words in (
        ["check", "--fix", "--quiet", "--select", "F401,I", "--stdin-filename", name, "-"],
        ["format", "--quiet", "--stdin-filename", name, "-"],
    ):
        text = subprocess.run([*ruff, *words], input=text, capture_output=True, text=True, check=True).stdout
    return text


def generated(document: Json, folder: Path) -> dict[str, str]:
    """Return the generated files by their names. Others are written to the folder for that."""
    parsed = Document(document)
    examples = tomllib.loads(EXAMPLES.read_text(encoding="utf-8"))
    texts = {"models.py": models(parsed, folder), "_operations.py": operations(parsed, examples)}
    place = "python/fairgate/client/"
    return {name: formatted(text, place + name) for name, text in texts.items()}


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        source = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
        for file, text in generated(source, Path(scratch)).items():
            (Path(sys.argv[1]) / file).write_text(text, encoding="utf-8")
