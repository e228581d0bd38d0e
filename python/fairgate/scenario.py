"""A network and its traffic: described, checked, run."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, ClassVar, Self

from . import _arguments, _native
from ._progress import Progress, shown
from ._toml import Table, clean, dumps
from .errors import InputError
from .network import Capture, Cell, Link, Node, Observe
from .results import Results
from .traffic import Flow
from .trees import Tree

__all__ = ["Scenario", "check"]

_LISTS: dict[str, tuple[str, Any]] = {
    "nodes": ("node", Node),
    "links": ("link", Link),
    "cells": ("cell", Cell),
    "flows": ("flow", Flow),
    "observations": ("observe", Observe),
    "captures": ("capture", Capture),
}


class Scenario:
    """A network, the traffic through it, and the queues of its interfaces.

    A scenario can't be changed; `replace` and `with_values` return changed copies. It is checked when it
    runs, or by `check`.

    Parameters
    ----------
    duration : str
        How long to simulate, such as ``"60s"``.
    queues : mapping of str to Tree, optional
        The trees, by the names that links use.
    links, flows, nodes, cells, observations, captures : iterable, optional
        The parts of the network and its traffic.
    measure : pair of str, optional
        Beginning and end of the measurement window. The whole duration by default.
    interval : str, optional
        The time between the points of time series. 100 ms by default.
    seed : int, optional
        The seed of all random numbers. 1 by default.
    queue : str, optional
        The queue of interfaces for which none is named. A fifo of 1000 packets by default.
    ecmp : bool, optional
        Whether flows are spread over paths of equal cost.

    Examples
    --------
    >>> evening = Scenario(
    ...     "10s",
    ...     queues={"wan": Tree("fq_codel")},
    ...     links=[Link("home", "server", rate="20mbit", delay="10ms", queue_b="wan")],
    ...     flows=[Flow("download", "server", "home", tcp={})],
    ... )
    >>> evening.run().goodput_bps > 15_000_000
    True
    """

    __slots__ = ("_document", "_name", "_text")
    _document: Table
    _name: str
    _text: str | None

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __init__(
        self,
        duration: str,
        *,
        queues: Mapping[str, Tree] | None = None,
        links: Iterable[Link] = (),
        flows: Iterable[Flow] = (),
        nodes: Iterable[Node] = (),
        cells: Iterable[Cell] = (),
        observations: Iterable[Observe] = (),
        captures: Iterable[Capture] = (),
        measure: tuple[str, str] | None = None,
        interval: str | None = None,
        seed: int | None = None,
        queue: str | None = None,
        ecmp: bool | None = None,
    ) -> None:
        lists = {
            "node": nodes, "link": links, "cell": cells,
            "flow": flows, "observe": observations, "capture": captures,
        }  # fmt: skip
        section: dict[str, Any] = {
            "duration": duration,
            "measure": measure,
            "interval": interval,
            "seed": _seed(seed),
            "queue": queue,
            "ecmp": ecmp,
        }
        for name, (key, _) in _LISTS.items():
            section[key] = _arguments.listed(f"`{name}`", lists[key]) or None
        document: dict[str, Any] = {"queue": _arguments.mapping("`queues`", queues)} if queues else {}
        document["simulate"] = section
        self._fill(clean("Scenario", document), "python", None)

    def _fill(self, document: Table, name: str, text: str | None) -> None:
        self._document, self._name, self._text = document, name, text

    @classmethod
    def _of(cls, document: Table, name: str, text: str | None = None) -> Self:
        scenario = cls.__new__(cls)
        scenario._fill(document, name, text)
        return scenario

    @classmethod
    def from_toml(cls, text: str, name: str = "python") -> Self:
        """Read the text of a configuration file.

        Parameters
        ----------
        text : str
            The text.
        name : str
            What messages call it. If it is a path, files that the text names are beside it.

        Raises
        ------
        InputError
            If the text has a mistake. All mistakes of the queues are reported, and the first one elsewhere.
        """
        text, name = _arguments.text("the configuration", text), _arguments.path("the name", name)
        _native.Scenario(text, name)
        return cls._of(tomllib.loads(text), name, text)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """Read a configuration file.

        Raises
        ------
        InputError
            If it has a mistake, or is not text.
        OSError
            If it can't be read.
        """
        name = _arguments.path("the file", path)
        return cls.from_toml(_text_of(name), name)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the scenario with these sections, as `to_dict` returns them."""
        return cls._of(clean("Scenario", document), "python")

    def to_dict(self) -> Table:
        """Return the sections of the configuration file, as a copy."""
        copy: Table = clean("Scenario", self._document)
        return copy

    def to_toml(self) -> str:
        """Return the text of the configuration file. `from_toml` reads an equal scenario from it."""
        return dumps(self._document)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the configuration file, for ``fairgate simulate``."""
        text = self.to_toml()
        with os.fdopen(_native.create(_arguments.path("the file", path)), "w", encoding="utf-8") as file:
            file.write(text)

    @property
    def queues(self) -> dict[str, Tree]:
        """The trees by name."""
        queues = self._document.get("queue", {})
        return {name: Tree._unchecked(table) for name, table in queues.items()}

    def __getattr__(self, name: str) -> Any:
        if name in _LISTS:
            key, kind = _LISTS[name]
            return tuple(kind.from_dict(table) for table in self._simulate.get(key, []))
        if name in ("duration", "measure", "interval", "queue", "ecmp"):
            return self._simulate.get(name)
        raise AttributeError(f"a Scenario has no `{name}`")

    @property
    def seed(self) -> int:
        """The seed of all random numbers."""
        return int(self._simulate.get("seed", 1))

    @property
    def _simulate(self) -> Table:
        section: Table = self._document.get("simulate", {})
        return section

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values for arguments of the constructor. `None` removes one.

        Examples
        --------
        >>> short = Scenario("60s").replace(duration="1s", links=[Link("a", "b", rate="1mbit")])
        >>> short.duration, len(short.links)
        ('1s', 1)
        """
        document = self.to_dict()
        section = document.setdefault("simulate", {})
        for name, value in changes.items():
            if name == "queues":
                document["queue"] = _arguments.mapping("`queues`", value or {})
            else:
                key = _LISTS[name][0] if name in _LISTS else name
                section[key] = _seed(value) if name == "seed" else _listed(value)
        return type(self)._of(clean("Scenario", document), self._name)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with other values at paths, as a sweep varies them.

        Parameters
        ----------
        values : mapping of str to value
            A path is the names of tables and a key, separated by points. A number is the position in a
            list, from 0 on; a name stands for the entry of a list with this name. A `Tree` may stand for a
            queue.

        Raises
        ------
        InputError
            If a path leads nowhere.

        Examples
        --------
        >>> two = Scenario("1s", links=[Link("a", "b", rate="1mbit")], flows=[Flow("x", "a", "b", tcp={})])
        >>> two.with_values({"simulate.flow.x.count": 2, "simulate.link.0.rate": "2mbit"}).flows
        (Flow('x', 'a', 'b', tcp={}, count=2),)
        """
        document = self.to_dict()
        for path, value in _arguments.mapping("`values`", values).items():
            _set_at(document, path, clean(path, value))
        return type(self)._of(document, self._name)

    def check(self) -> tuple[str, ...]:
        """Check the scenario for this machine.

        Returns
        -------
        tuple of str
            Warnings: what is valid, but probably not intended.

        Raises
        ------
        InputError
            If it has a mistake, with the location in its text.
        """
        return tuple(_native.check(self._for_native(), self._name))

    def _for_native(self) -> str:
        if "simulate" not in self._document:
            raise InputError(f"{self._name} has no section [simulate]; add one with a duration and flows")
        return self._text if self._text is not None else self.to_toml()

    def run(self, seed: int | None = None, *, progress: Progress = None) -> Results:
        """Simulate the scenario.

        The same scenario and seed give the same results, to the last digit. Other threads of Python go on
        meanwhile. Ctrl-C stops the run within a second.

        Parameters
        ----------
        seed : int, optional
            The seed, from 0 to 2^63 - 1. The scenario's by default.
        progress : bool or callable, optional
            True shows a bar. A callable gets the share that is done, from 0 to 1, about ten times a second.
            By default a bar is shown if the run takes longer than two seconds at a terminal or in a notebook.

        Raises
        ------
        InputError
            If the scenario has a mistake.
        SimulationError
            If it has no results, such as for lack of memory.
        DisciplineError
            If a discipline written in Python failed.
        """
        native = _native.Scenario(self._for_native(), self._name)
        with shown(progress, native.duration_ns) as report:
            return Results(native.run(_seed(seed), report, native.captures))

    def run_seeds(
        self, seeds: int | Sequence[int], *, jobs: int | None = None, progress: Progress = None
    ) -> list[Results]:
        """Simulate the scenario with several seeds, side by side.

        Parameters
        ----------
        seeds : int or sequence of int
            The seeds, or how many from the scenario's on.
        jobs : int, optional
            How many run at a time. All processors by default.
        progress : bool or callable, optional
            As for `run`.

        Returns
        -------
        list of Results
            In the order of the seeds. They do not depend on `jobs`.
        """
        checked = chosen_seeds(seeds, self.seed)
        jobs = None if jobs is None else _arguments.whole("`jobs`", jobs, 1, 1 << 16)
        native = _native.Scenario(self._for_native(), self._name)
        with shown(progress, native.duration_ns * max(len(checked), 1)) as report:
            found = native.run_seeds(checked, jobs, report)
        return [Results(one) for one in found]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self._document == other._document

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (type(self), self._document, self._name, self._text))

    def __repr__(self) -> str:
        section = dict(self._simulate)
        if set(self._document) - {"queue", "simulate"} or "duration" not in section:
            return f"Scenario.from_dict({self._document!r})"
        parts = [repr(section.pop("duration"))]
        if self.queues:
            parts.append(f"queues={self.queues!r}")
        for name, (key, _) in _LISTS.items():
            if section.pop(key, None):
                parts.append(f"{name}={list(getattr(self, name))!r}")
        if "measure" in section:
            section["measure"] = tuple(section["measure"])
        parts += [f"{key}={value!r}" for key, value in section.items()]
        return f"Scenario({', '.join(parts)})"

    def _repr_html_(self) -> str:
        from ._html import scenario

        return scenario(self)


def _restored(cls: type[Scenario], document: Table, name: str, text: str | None) -> Scenario:
    return cls._of(document, name, text)


def checked_seed(seed: object) -> int:
    """Return a seed."""
    return _arguments.whole("the seed", seed, 0, (1 << 63) - 1, "; 1 is the default")


def chosen_seeds(seeds: int | Sequence[int], first: int) -> list[int]:
    """Return a list of seeds, or so many from the first one on."""
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        if seeds < 1:
            raise InputError(f"`seeds` is {seeds}, but there must be at least one")
        seeds = range(first, first + seeds)
    return [checked_seed(seed) for seed in _arguments.listed("`seeds`", seeds, "a number of seeds or a list")]


def _seed(seed: object) -> int | None:
    return None if seed is None else checked_seed(seed)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | Mapping) else value


def _set_at(document: Table, path: str, value: Any) -> None:
    *way, last = _arguments.text("a path", path, "text, such as `simulate.flow.call.count`").split(".")
    at: Any = document
    for position, step in enumerate(way):
        at = _below(at, step, path, ".".join(way[:position]))
    if isinstance(at, list):
        at[_index(at, last, path)] = value
    elif isinstance(at, dict):
        at[last] = value
    else:
        raise InputError(f"`{path}` leads into a value, not into a table; shorten the path")


def _below(at: Any, step: str, path: str, before: str) -> Any:
    if isinstance(at, list):
        return at[_index(at, step, path)]
    if isinstance(at, dict) and step in at:
        return at[step]
    known = ", ".join(f"`{key}`" for key in at) if isinstance(at, dict) else "no keys"
    place = f"`{before}` has" if before else "the scenario has"
    raise InputError(f"`{path}` leads nowhere, because {place} {known or 'no keys'}; correct `{step}`")


def _index(items: list[Any], step: str, path: str) -> int:
    if step.isdecimal() and int(step) < len(items):
        return int(step)
    names = [item.get("name", item.get("id")) if isinstance(item, dict) else None for item in items]
    found = [number for number, name in enumerate(names) if name is not None and str(name) == step]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"`{name}`" for name in names if name is not None)
    raise InputError(
        f"`{path}` leads nowhere: `{step}` is not one of {len(items)} entries, counted from 0"
        + (f", and not one of the names {known}" if known else "")
    )


def _text_of(path: str | PathLike[str]) -> str:
    raw = Path(_arguments.path("the file", path)).read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{fspath(path)} is not text: the byte at offset {error.start} is not UTF-8; "
            "a configuration file is TOML, in UTF-8"
        ) from None


def check(source: str | PathLike[str] | Scenario) -> tuple[str, ...]:
    """Check a configuration file or a scenario, as ``fairgate check`` does.

    Parameters
    ----------
    source : path or Scenario
        What to check. ``[queue.NAME]`` and ``[simulate]`` are checked; ``[run]``, which is for live
        traffic, is checked by the program.

    Returns
    -------
    tuple of str
        Warnings: what is valid, but probably not intended.

    Raises
    ------
    InputError
        If there is a mistake.
    """
    if isinstance(source, Scenario):
        return source.check()
    return tuple(_native.check(_text_of(source), fspath(source)))
