"""Trees of disciplines, as Python objects or as TOML. `fairgate.disciplines` has a function for each one."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from html import escape
from typing import Any, ClassVar, Self

from . import _arguments, _native
from ._section import Section
from ._toml import Table, dumps
from .errors import InputError

__all__ = ["Class", "Filter", "Tree", "from_dummynet", "from_tc"]

_NAME = "tree"
_U32 = (1 << 32) - 1


class Filter(Section):
    """A filter: packets that fulfil all its conditions go to a class.

    Parameters
    ----------
    target : int
        The number of the class.
    **conditions
        The conditions of ``[[queue.NAME.filter]]`` in ``docs/configuration.md``, such as ``dscp="EF"``,
        ``protocol="udp"``, ``destination_port="5060"``.

    Examples
    --------
    >>> Filter(1, dscp="EF")
    Filter(1, dscp='EF')
    """

    _positional: ClassVar = (("target", "class"),)
    __slots__ = ()

    def __init__(self, target: int, **conditions: Any) -> None:
        self._set({"class": target, **conditions})


class Class(Section):
    """A class of a classful discipline.

    Parameters
    ----------
    id : int
        The number of the class.
    tree : Tree, optional
        What is in the class. None for a class that has classes below it.
    **settings
        The parameters of a class of this discipline, such as ``rate="5mbit"``, ``parent=1``.

    Examples
    --------
    >>> Class(1, Tree("fifo"), rate="5mbit")
    Class(1, Tree('fifo'), rate='5mbit')
    """

    _positional: ClassVar = (("id", "id"),)
    __slots__ = ()

    def __init__(self, id: int, tree: Tree | None = None, **settings: Any) -> None:
        self._set({"id": id, **settings, "inner": tree})

    @property
    def tree(self) -> Tree | None:
        """The tree in the class."""
        inner = self._table.get("inner")
        return None if inner is None else Tree._unchecked(inner)

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        first, rest = super()._arguments()
        if isinstance(rest.pop("inner", None), dict):
            first.append(self.tree)
        return first, rest


class Tree(Section):
    """A tree of disciplines. It is checked when it is made.

    Parameters
    ----------
    discipline : str
        The name of the root, as `fairgate.list` has it.
    inner : Tree, optional
        What a shaper holds.
    classes : iterable of Class, optional
        The classes of a classful discipline.
    filters : iterable of Filter, optional
        Which packets go to which class. The first filter that matches decides.
    **settings
        The parameters of the root. A quantity is text with its unit: ``rate="20mbit"``. `handle` and
        `default` classify packets.

    Raises
    ------
    InputError
        If a setting is wrong.

    Examples
    --------
    >>> tree = Tree("tbf", rate="20mbit", burst="5kb", inner=Tree("fq_codel", target="5ms"))
    >>> print(tree.to_toml("wan"), end="")
    [queue.wan]
    discipline = "tbf"
    rate = "20mbit"
    burst = "5kb"
    inner = { discipline = "fq_codel", target = "5ms" }
    """

    _positional: ClassVar = (("discipline", "discipline"),)
    _renamed: ClassVar = {"classes": "class", "filters": "filter"}
    __slots__ = ()

    def __init__(
        self,
        discipline: str,
        *,
        inner: Tree | None = None,
        classes: Iterable[Class] = (),
        filters: Iterable[Filter] = (),
        **settings: Any,
    ) -> None:
        table = {"discipline": discipline, **settings, "inner": inner}
        table["filter"] = _arguments.listed("`filters`", filters) or None
        table["class"] = _arguments.listed("`classes`", classes) or None
        self._set(table)
        self._check()

    def _check(self) -> None:
        _native.check(self.to_toml(), "python")

    @classmethod
    def _unchecked(cls, table: Table) -> Self:
        tree = cls.__new__(cls)
        tree._set(table)
        return tree

    @classmethod
    def from_dict(cls, table: Table) -> Self:
        """Return the tree with this table, as `to_dict` returns it."""
        tree = cls._unchecked(table)
        tree._check()
        return tree

    @classmethod
    def from_toml(cls, text: str, name: str | None = None) -> Self:
        """Read ``[queue.NAME]`` of a configuration file.

        Parameters
        ----------
        text : str
            The text of the file.
        name : str, optional
            The name of the queue. It may be left out if the file has only one.

        Raises
        ------
        InputError
            If the text has a mistake, or no such queue.
        """
        _native.check(_arguments.text("the configuration", text), "python")
        queues = tomllib.loads(text).get("queue", {})
        if name is None and len(queues) == 1:
            return cls._unchecked(next(iter(queues.values())))
        if name not in queues:
            known = ", ".join(f"`{other}`" for other in queues) or "none"
            asked = "it is not clear which queue is meant" if name is None else f"there is no queue `{name}`"
            raise InputError(f"{asked}; the text has {known}; give one of these names")
        return cls._unchecked(queues[name])

    @classmethod
    def parse(cls, line: str) -> Self:
        """Read a tree from one line, as on the command line.

        Examples
        --------
        >>> Tree.parse("tbf rate=20mbit burst=5kb / fq_codel target=5ms")
        Tree('tbf', rate='20mbit', burst='5kb', inner=Tree('fq_codel', target='5ms'))
        """
        line = _arguments.text("the tree", line, "its description in one line")
        return cls.from_toml(_native.from_line(line, _NAME))

    def to_toml(self, name: str = _NAME) -> str:
        """Return the tree as ``[queue.NAME]`` of a configuration file."""
        return dumps({"queue": {name: self._table}})

    def to_line(self) -> str:
        """Return the tree on one line, as `parse` reads it and the command line does.

        Raises
        ------
        InputError
            If it has filters, which a line can't have.

        Examples
        --------
        >>> Tree("tbf", rate="20mbit", burst="5kb", inner=Tree("fq_codel", ecn=False)).to_line()
        'tbf rate=20mbit burst=5kb / fq_codel ecn=false'
        """
        if self.filters:
            raise InputError(f"a line can't have filters, which `{self.discipline}` has; put it into a file")
        words = [self.discipline, *_words(self._arguments()[1])]
        if self.inner is not None:
            words += ["/", self.inner.to_line()]
        classes = []
        for each in self.classes:
            below = [] if each.tree is None else ["/", each.tree.to_line()]
            classes.append(" ".join([str(each.id), *_words(each._arguments()[1]), *below]))
        if classes:
            words.append("{ " + "; ".join(classes) + " }")
        return " ".join(words)

    @property
    def inner(self) -> Tree | None:
        """What the root holds, if it holds one discipline."""
        inner = self._table.get("inner")
        return None if inner is None else Tree._unchecked(inner)

    @property
    def classes(self) -> tuple[Class, ...]:
        """The classes of the root."""
        return tuple(Class.from_dict(table) for table in self._table.get("class", []))

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The filters of the root."""
        return tuple(Filter.from_dict(table) for table in self._table.get("filter", []))

    @property
    def parameters(self) -> dict[str, str]:
        """All parameters of the root, set or at their defaults, as text."""
        return _native.parameters(self.to_toml(), _NAME)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Settings that are valid, but probably not intended."""
        return tuple(_native.check(self.to_toml(), "python"))

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        first, rest = super()._arguments()
        for key, value in (("inner", self.inner), ("classes", self.classes), ("filters", self.filters)):
            if rest.pop(key, None) is not None:
                rest[key] = list(value) if isinstance(value, tuple) else value
        return first, rest

    def _repr_html_(self) -> str:
        return f"<div class='fairgate'>{_as_list(self)}</div>"


def _words(settings: dict[str, Any]) -> list[str]:
    shown = {key: value for key, value in settings.items() if key not in ("inner", "classes")}
    return [f"{key}={_word(value)}" for key, value in shown.items()]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).replace(" ", "")


def _as_list(tree: Tree, label: str = "") -> str:
    own = {key: value for key, value in tree._arguments()[1].items() if not isinstance(value, list | Tree)}
    settings = ", ".join(f"{escape(key)} = {escape(str(value))}" for key, value in own.items())
    text = f"{escape(label)}<b>{escape(tree.discipline)}</b> <span style='opacity:.7'>{settings}</span>"
    below = [_as_list(tree.inner)] if tree.inner is not None else []
    for each in tree.classes:
        name = f"class {each.id}: "
        below.append(_as_list(each.tree, name) if each.tree else f"{name}{escape(repr(each))}")
    for each_filter in tree.filters:
        below.append(escape(repr(each_filter)))
    items = "".join(f"<li>{item}</li>" for item in below)
    return text + (f"<ul style='margin:0'>{items}</ul>" if items else "")


def from_tc(script: str, *, mtu: int = 1500, txqueuelen: int = 1000) -> dict[str, Tree]:
    """Read a script of Linux's ``tc``.

    Parameters
    ----------
    script : str
        The commands, one a line. ``tc`` at the beginning of a line may be left out.
    mtu : int
        The MTU of the devices, in bytes. Some of tc's defaults depend on it.
    txqueuelen : int
        The default limit of the devices' fifos, in packets.

    Returns
    -------
    dict of str to Tree
        The tree of each device.

    Raises
    ------
    InputError
        If a line can't be translated. All mistakes are reported, with line and column.

    Examples
    --------
    >>> from_tc("qdisc add dev eth0 root fq_codel limit 1000 target 10ms")
    {'eth0': Tree('fq_codel', limit=1000, quantum='1514b', target='10ms')}
    """
    script = _arguments.text("the script", script, "commands of tc")
    mtu, limit = _checked_mtu(mtu), _arguments.whole("`txqueuelen`", txqueuelen, 0, _U32)
    trees = _native.from_tc(script, "tc", mtu, limit)
    return {device: Tree.from_toml(text) for device, text, _ in trees}


def from_dummynet(script: str, *, mtu: int = 1500) -> dict[str, Tree]:
    """Read a script of FreeBSD's ``ipfw`` with pipes, queues and schedulers.

    Parameters
    ----------
    script : str
        The commands, one a line.
    mtu : int
        The MTU of the interfaces, in bytes.

    Returns
    -------
    dict of str to Tree
        The tree of each interface and direction.

    Raises
    ------
    InputError
        If a line can't be translated.
    """
    script = _arguments.text("the script", script, "commands of ipfw")
    found = _native.from_dummynet(script, "ipfw", _checked_mtu(mtu))
    return {name: Tree.from_toml(text) for name, text in found}


def _checked_mtu(mtu: object) -> int:
    return _arguments.whole("`mtu`", mtu, 0, _U32, " bytes")
