"""JSON Schemas of real documents.

Documents cannot tell everything. `OF_NAMES` are the objects whose keys are names, so each value has the same
schema. Trees contain trees, so their schema refers to itself. docs/json.md says what else can be null or
missing.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

# Keys of objects whose keys are names: of queues, parameters, reasons, variables, tc's words.
OF_NAMES = frozenset(
    {
        "drops",
        "dropped_by_reason",
        "lost_by_reason",
        "options",
        "parameters",
        "queues",
        "variables",
    }
)

Schema = dict[str, Any]


class Section:
    """What docs/json.md says about one document, and about those that it refers to."""

    def __init__(self, title: str, description: str) -> None:
        text = "".join(section_and_others(title, description, set()))
        rows = [row.split("|") for row in re.findall(r"^\| [^|]*`.*$", text, re.MULTILINE)]
        self.texts: set[str] = set()
        self.nullable: set[str] = set(re.findall(r"`\.?(\w+)` (?:or null|\(null)", text))
        self.optional: set[str] = set()
        for _, keys, *cells in rows:
            named = [re.split(r"[.\]\[]+", key.rstrip("[]"))[-1] for key in re.findall(r"`([^`]+)`", keys)]
            if "null" in cells[0] and len(cells) > 2:
                self.nullable.update(named)
            if cells[0].strip() == "list of text":
                self.texts.update(named)
            if re.match(r" (only|missing)\b|.*\bmissing if\b", cells[-2]):
                self.optional.update(named)


def section_and_others(title: str, description: str, seen: set[str]) -> Iterator[str]:
    """Give the section of a document, and those of the documents that it names."""
    seen.add(title)
    found = re.search(rf"^## {title}$.*?(?=^## |\Z)", description, re.MULTILINE | re.DOTALL)
    text = found.group() if found else ""
    yield text
    for other in re.findall(r"`(fairgate\.[\w-]+/\d+)`", text):
        if other not in seen:
            yield from section_and_others(other, description, seen)


class Shapes:
    """The schema of documents of one kind."""

    def __init__(self, documents: list[Any], section: Section) -> None:
        self.section = section
        # The keys of all objects, except names.
        self.keys: set[str] = set()
        self.trees: list[Any] = []
        for document in documents:
            self.trees += trees(document, "")
        self.schema = self.of_object(documents)
        if self.trees:
            self.schema["$defs"] = {"tree": self.of_object(self.trees)}

    def of(self, key: str, values: list[Any]) -> Schema:
        """Return the schema of the values that a key has."""
        kinds: dict[str, list[Any]] = {}
        for value in values:
            kinds.setdefault(kind(value), []).append(value)
        if "number" in kinds:
            kinds.pop("integer", None)
        nullable = kinds.pop("null", []) or key in self.section.nullable
        schemas = [self.of_kind(name, key, found) for name, found in sorted(kinds.items())]
        if nullable and schemas:
            schemas.append({"type": "null"})
        if all(schema.keys() == {"type"} for schema in schemas) and schemas:
            types = [schema["type"] for schema in schemas]
            return {"type": types if len(types) > 1 else types[0]}
        # A key that was always null can have any value.
        return {"anyOf": schemas} if len(schemas) > 1 else (schemas or [{}])[0]

    def of_kind(self, name: str, key: str, values: list[Any]) -> Schema:
        """Return the schema of values of one JSON type."""
        if name == "array":
            items = [item for value in values for item in value]
            of_text = {"type": "string"} if key in self.section.texts else {}
            return {"type": "array", "items": self.of(key, items) if items else of_text}
        if name != "object":
            return {"type": name}
        if any(is_tree(key, value) for value in values):
            return {"$ref": "#/$defs/tree"}
        if key in OF_NAMES:
            inner = [member for value in values for member in value.values()]
            return {"type": "object", "additionalProperties": self.of(of_name(key), inner)}
        return self.of_object(values)

    def of_object(self, values: list[Any]) -> Schema:
        """Return the schema of objects that have the same keys."""
        found: dict[str, list[Any]] = {}
        for value in values:
            for key, member in value.items():
                found.setdefault(key, []).append(member)
        self.keys.update(found)
        required = [
            key
            for key, members in found.items()
            if len(members) == len(values) and key not in self.section.optional
        ]
        properties = {key: self.of(key, members) for key, members in found.items()}
        return {"type": "object", "properties": properties, "required": required}


def kind(value: Any) -> str:
    """Return the JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def of_name(key: str) -> str:
    """Return the key by which a member of an object of names is known."""
    return "tree" if key == "queues" else ""


def is_tree(key: str, value: Any) -> bool:
    """Return whether it is a tree: what a queue has, or a class of a tree that has classes itself."""
    return isinstance(value, dict) and "classes" in value and key in ("tree", "classes")


def trees(value: Any, key: str) -> Iterable[Any]:
    """Return all trees within a value, in all depths."""
    if isinstance(value, list):
        for item in value:
            yield from trees(item, key)
    elif isinstance(value, dict):
        if is_tree(key, value):
            yield value
        for name, member in value.items():
            yield from trees(member, of_name(key) if key in OF_NAMES else name)
