"""Figures of results, as publications want them. matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._html import quantity as in_units
from ._optional import optional
from .errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .results import Results

__all__ = ["Figures"]

# Divisors and names of units.
_UNITS = {"_ns": (1e6, "ms"), "_bps": (1e6, "Mbit/s"), "_bytes": (1e3, "kB")}
_TABLE = ("flow", "sent", "lost", "goodput_bps", "delay_mean_ns", "delay_p95_ns", "jitter_ns")


class Figures:
    """Figures of one result or of several ones side by side.

    Each function draws into `ax`, or into axes of a new figure, and returns the axes. `names` selects flows
    or groups of flows; all groups by default.

    Parameters
    ----------
    results : mapping of str to Results
        The results by the label that the legend shows. An empty label is left out.
    """

    def __init__(self, results: Mapping[str, Results]) -> None:
        self._results = dict(results)

    def delay_cdf(self, names: Iterable[str] | None = None, ax: Axes | None = None) -> Axes:
        """Draw which share of packets had at most which delay."""
        ax = _axes(ax)
        for label, entry in self._chosen(names):
            delays = [value / 1e6 for value in entry["delay"]["percentiles_ns"]]
            ax.plot(delays, [percent / 100 for percent in range(101)], label=label)
        ax.set(xlabel="delay, ms", ylabel="share of packets", ylim=(0, 1))
        return _finished(ax)

    def delay_violin(self, names: Iterable[str] | None = None, ax: Axes | None = None) -> Axes:
        """Draw the distributions of delays as violins, as the MSFC thesis does.

        A violin is made from the percentiles 0 to 100. The lines are the extremes and the median.
        """
        ax = _axes(ax)
        labels, samples = [], []
        for label, entry in self._chosen(names):
            labels.append(label)
            samples.append([value / 1e6 for value in entry["delay"]["percentiles_ns"]])
        positions = list(range(1, len(samples) + 1))
        ax.violinplot(samples, positions=positions, showmedians=True, widths=0.8)
        slanted = len(labels) > 4
        ax.set_xticks(positions, labels, rotation=20 * slanted, ha="right" if slanted else "center")
        ax.set(ylabel="delay, ms", ylim=(0, None))
        return ax

    def series(
        self, quantity: str = "throughput_bps", names: Iterable[str] | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw a quantity over time.

        Parameters
        ----------
        quantity : str
            One of the column `quantity` of `Results.series`: ``throughput_bps``, ``window_segments``,
            ``rtt_ns``, ``active_flows``, ``backlog_packets``, ``backlog_bytes``, ``sojourn_ns``.
        names : iterable of str, optional
            Flows, groups or interfaces. All by default.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Raises
        ------
        InputError
            If there is no such quantity or name.
        """
        ax = _axes(ax)
        divisor, unit = next((u for end, u in _UNITS.items() if quantity.endswith(end)), (1.0, ""))
        for label, results in self._results.items():
            points: dict[str, tuple[list[float], list[float]]] = {}
            table = results.series.to_dict()
            for time, subject, kind, value in zip(*table.values(), strict=True):
                if kind == quantity:
                    times, values = points.setdefault(subject, ([], []))
                    times.append(time / 1e9)
                    values.append(value / divisor)
            if not points:
                known = ", ".join(sorted(set(table["quantity"])))
                raise InputError(f"there is no series of `{quantity}`; there are {known}")
            for subject in _known(names, points):
                ax.plot(*points[subject], label=_joined(label, subject))
        words = next((quantity.removesuffix(end) for end in _UNITS if quantity.endswith(end)), quantity)
        ax.set(
            xlabel="time, s", ylabel=words.replace("_", " ") + (f", {unit}" if unit else ""), ylim=(0, None)
        )
        return _finished(ax)

    def fairness(self, names: Iterable[str] | None = None, ax: Axes | None = None) -> Axes:
        """Draw Jain's index of the flows' throughput over time. Flows that send nothing at a time count.

        `names` selects flows; all by default.
        """
        ax = _axes(ax)
        for label, results in self._results.items():
            flows = {flow["name"]: flow for flow in results.document["flows"]}
            rows = [flows[name]["throughput_series_bps"] for name in _known(names, flows)]
            if len(rows) < 2:
                raise InputError("fairness is between flows, but fewer than two have rows of their own")
            times = [results.interval * number for number in range(1, 1 + max(map(len, rows)))]
            indices = [_jain(rates) for rates in zip(*rows, strict=True)]
            ax.plot(times[: len(indices)], indices, label=label)
        ax.set(xlabel="time, s", ylabel="Jain's index", ylim=(0, 1.05))
        return _finished(ax)

    def flow_table(self, names: Iterable[str] | None = None, ax: Axes | None = None) -> Axes:
        """Draw a table of flows: packets, losses, goodput, delay, jitter."""
        ax = _axes(ax)
        ax.axis("off")
        cells: list[list[str]] = []
        for label, results in self._results.items():
            columns = [results.flows[name] for name in _TABLE]
            rows = {row[0]: row for row in zip(*columns, strict=True)}
            for name in _known(names, rows):
                shown = [in_units(key, value) for key, value in zip(_TABLE, rows[name], strict=True)]
                cells.append([_joined(label, shown[0]), *shown[1:]])
        header = [name.removesuffix("_ns").removesuffix("_bps").replace("_", " ") for name in _TABLE]
        table = ax.table(cells, colLabels=header, loc="center", edges="horizontal")
        table.auto_set_font_size(False)
        table.set_fontsize(8)
        return ax

    def _chosen(self, names: Iterable[str] | None) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield labels and entries of groups or flows that have received packets."""
        wanted = None if names is None else list(names)
        for label, results in self._results.items():
            document = results.document
            groups = {group["name"]: group for group in document["groups"]}
            flows = {flow["name"]: flow for flow in document["flows"]}
            entries = groups if wanted is None else {**flows, **groups}
            for name in _known(wanted, entries):
                if entries[name]["delay"]["count"] > 0:
                    yield _joined(label, name), entries[name]


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    with optional("a figure"):
        from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def _finished(ax: Axes) -> Axes:
    ax.grid(alpha=0.3)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False)
    return ax


def _joined(label: str, name: str) -> str:
    return f"{label}: {name}" if label else name


def _known(names: Iterable[str] | None, entries: Mapping[str, Any]) -> Sequence[str]:
    if names is None:
        return list(entries)
    chosen = [names] if isinstance(names, str) else list(names)
    for name in chosen:
        if name not in entries:
            raise InputError(f"there is no `{name}`; there are {', '.join(entries) or 'none'}")
    return chosen


def _jain(rates: Sequence[float]) -> float:
    squares = len(rates) * sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / squares if squares else 1.0
