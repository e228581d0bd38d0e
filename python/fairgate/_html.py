"""How objects look in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .results import Results, Table
    from .scenario import Scenario

__all__ = ["grid", "results", "scenario", "table"]

# Rows that are shown at the beginning of a long table.
_MOST_ROWS = 20

_FLOWS = ("flow", "sent", "lost", "goodput_bps", "delay_mean_ns", "delay_p95_ns", "delay_p99_ns")
_INTERFACES = (
    "interface",
    "discipline",
    "utilisation",
    "transmitted",
    "dropped",
    "marked",
    "sojourn_mean_ns",
)


def quantity(name: str, value: Any) -> str:
    """Return a value of a column in the unit that the column's name ends in."""
    if value is None:
        return ""
    if name.endswith("_ns"):
        return f"{value / 1e6:.3f} ms"
    if name.endswith("_bps"):
        return f"{value / 1e6:.3f} Mbit/s"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def grid(header: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> str:
    """Return an HTML table. Its text is escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    below = f"<div>{escape(note)}</div>" if note else ""
    return f"<table class='fairgate'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def _chosen(of: Table, names: Sequence[str]) -> str:
    columns = [of[name][:_MOST_ROWS] for name in names]
    rows = (
        [quantity(name, value) for name, value in zip(names, row, strict=True)]
        for row in zip(*columns, strict=True)
    )
    more = len(of) - _MOST_ROWS
    header = [name.removesuffix("_ns").removesuffix("_bps").replace("_", " ") for name in names]
    return grid(header, rows, f"and {more} more rows" if more > 0 else "")


def table(of: Table) -> str:
    """Return the first rows of a table, with all columns."""
    return _chosen(of, of.column_names)


def results(of: Results) -> str:
    """Return the tables of flows and interfaces, with the most important columns."""
    parts = [f"<div>{escape(repr(of).strip('<>'))}</div>"]
    flows = of.flows if len(of.flows) else None
    parts.append(_chosen(flows, _FLOWS) if flows else _chosen(of.groups, ("group", *_FLOWS[1:])))
    parts.append(_chosen(of.interfaces, _INTERFACES))
    return "".join(parts)


def scenario(of: Scenario) -> str:
    """Return the queues, links and flows."""
    parts = [f"<div>Scenario of {escape(str(of.duration))}, seed {of.seed}</div>"]
    for name, tree in of.queues.items():
        parts.append(f"<div>queue {escape(name)}: {tree._repr_html_()}</div>")
    for kind in ("links", "cells", "flows"):
        for item in getattr(of, kind)[:_MOST_ROWS]:
            parts.append(f"<div><code>{escape(repr(item))}</code></div>")
    return "".join(parts)
