"""The results of a run, as objects, as Arrow tables, and as figures."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import _arguments, _native
from ._optional import optional

if TYPE_CHECKING:
    from .figures import Figures

__all__ = ["Results", "Table"]


class Table:
    """A table with one value of each column in each row.

    Libraries that know Arrow's PyCapsule interface read it without a copy: ``pyarrow.table(t)``,
    ``polars.DataFrame(t)``, ``pandas.DataFrame.from_arrow(t)``. Columns that end in ``_ns`` are whole
    nanoseconds, those in ``_bps`` whole bits per second.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return self._native.column_names

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self._native.num_rows

    def __len__(self) -> int:
        return self._native.num_rows

    def __getitem__(self, column: str) -> list[Any]:
        """Return a column as a list. `None` stands for a missing value."""
        return self._native.column(column)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return all columns as lists."""
        return {name: self[name] for name in self.column_names}

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows as dicts."""
        columns = self.to_dict()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``, without a copy."""
        with optional("a table of Arrow"):
            import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``."""
        with optional("a data frame of pandas"):
            return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame``, without a copy."""
        with optional("a data frame of polars"):
            import polars

        return polars.DataFrame(self)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._native.__arrow_c_array__(requested_schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.column_names)}>"

    def _repr_html_(self) -> str:
        from ._html import table

        return table(self)


class Results:
    """The results of a run. `docs/json.md`, ``fairgate.simulate/1``, explains every figure."""

    def __init__(self, native: _native.Results) -> None:
        self._native = native

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self._native.seed

    @property
    def duration(self) -> float:
        """The simulated time, in seconds."""
        return self._native.duration_ns / 1e9

    @property
    def interval(self) -> float:
        """The time between the points of series, in seconds."""
        return self._native.interval_ns / 1e9

    @property
    def measured(self) -> tuple[float, float]:
        """Beginning and end of the measurement window, in seconds."""
        begin, end = self._native.measured_ns
        return begin / 1e9, end / 1e9

    @property
    def events(self) -> int:
        """The number of events handled."""
        return self._native.events

    @property
    def packet_hops(self) -> int:
        """The number of packets that all interfaces transmitted."""
        return self._native.packet_hops

    @property
    def goodput_bps(self) -> int:
        """The sum of all flows' goodput in the window, in bit/s."""
        return self._native.goodput_bps

    @property
    def jain(self) -> float:
        """Jain's fairness index of the flows' goodput."""
        return self._native.jain

    @cached_property
    def flows(self) -> Table:
        """One row per flow: packets, loss, rates, delays."""
        return Table(self._native.table("flows"))

    @cached_property
    def groups(self) -> Table:
        """One row per group of flows."""
        return Table(self._native.table("groups"))

    @cached_property
    def interfaces(self) -> Table:
        """One row per interface: what its queue did."""
        return Table(self._native.table("interfaces"))

    @cached_property
    def series(self) -> Table:
        """One row per point of all time series. `time_ns` is the end of the interval."""
        return Table(self._native.table("series"))

    @cached_property
    def observations(self) -> Table:
        """One row per value of an observed variable."""
        return Table(self._native.table("observations"))

    @cached_property
    def document(self) -> dict[str, Any]:
        """All figures, percentiles included, as ``fairgate simulate --json`` prints them."""
        document: dict[str, Any] = json.loads(self._native.json())
        return document

    @property
    def plot(self) -> Figures:
        """Figures of these results, drawn by matplotlib: ``results.plot.delay_cdf()``."""
        from .figures import Figures

        return Figures({"": self})

    def to_json(self) -> str:
        """Return all figures as JSON. `from_json` reads it."""
        return self._native.json()

    @classmethod
    def from_json(cls, text: str) -> Results:
        """Read what `to_json` returned.

        Raises
        ------
        InputError
            If these are no results.
        """
        return cls(_native.Results.from_json(_arguments.text("the results", text, "text of `to_json`")))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Results.from_json, (self.to_json(),))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Results) and self._native.equals(other._native)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<Results of {self.duration:g} s with seed {self.seed}: {len(self.flows)} flows, "
            f"{self.goodput_bps / 1e6:.3f} Mbit/s, Jain's index {self.jain:.3f}>"
        )

    def _repr_html_(self) -> str:
        from ._html import results

        return results(self)
