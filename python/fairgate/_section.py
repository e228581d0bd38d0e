"""The base of all objects that describe something: a table of TOML that prints as Python, too."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from ._toml import Table, clean

__all__ = ["Section"]


class Section:
    """A table of a configuration file. It can't be changed; `replace` returns a changed copy.

    Two sections are equal if their tables are. `repr` is Python code that makes an equal one.
    """

    # Arguments by position, as (name of the argument, key of the table).
    _positional: ClassVar[tuple[tuple[str, str], ...]] = ()
    # Arguments by keyword whose key is a keyword of Python.
    _renamed: ClassVar[dict[str, str]] = {}
    __slots__ = ("_table",)
    _table: Table

    def _set(self, table: dict[str, Any]) -> None:
        given = {key: value for key, value in table.items() if value is not None}
        object.__setattr__(self, "_table", clean(type(self).__name__, given))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} can't be changed; use replace({name}=...)")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_table":
            raise AttributeError(name)
        keys = {**dict(self._positional), **self._renamed}
        try:
            return self._table[keys.get(name, name)]
        except KeyError:
            raise AttributeError(f"this {type(self).__name__} has no `{name}`") from None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Section) and self._table == other._table

    def __hash__(self) -> int:
        return hash(repr(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).from_dict, (self._table,))

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments that make an equal object."""
        rest = dict(self._table)
        first = [rest.pop(key) for _, key in self._positional]
        names = {key: name for name, key in self._renamed.items()}
        return first, {names.get(key, key): value for key, value in rest.items()}

    def __repr__(self) -> str:
        first, rest = self._arguments()
        is_plain = all(key.isidentifier() for key in rest)
        shown = [repr(value) for value in first]
        if is_plain:
            shown += [f"{key}={value!r}" for key, value in rest.items()]
        else:
            shown.append(f"**{rest!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def from_dict(cls, table: Table) -> Self:
        """Return the section with this table, as `to_dict` returns it."""
        section = cls.__new__(cls)
        section._set(table)
        return section

    def to_dict(self) -> Table:
        """Return the table, as a copy."""
        copy: Table = clean(type(self).__name__, self._table)
        return copy

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values. `None` removes a key."""
        return type(self).from_dict(self._changed(changes))

    def _changed(self, changes: dict[str, Any]) -> Table:
        keys = {**dict(self._positional), **self._renamed}
        return {**self._table, **{keys.get(name, name): value for name, value in changes.items()}}
