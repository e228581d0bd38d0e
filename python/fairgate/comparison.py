"""Several disciplines on one link, side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _arguments
from ._answers import answer, option
from ._optional import optional
from .errors import InputError
from .scenario import Scenario
from .trees import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Comparison", "compare", "compare_trace"]

_FIGURES = ("throughput_bps", "loss", "marked")
_HEADER = ("discipline", "throughput", "lost", "delay: mean", "95 %", "99 %", "Jain's index", "queue: mean")


class Comparison:
    """What each discipline did. `docs/json.md`, ``fairgate.compare/1``, explains every figure."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @property
    def disciplines(self) -> list[str]:
        """The disciplines, in the order of the comparison."""
        return [entry["name"] for entry in self.document["disciplines"]]

    @property
    def groups(self) -> list[str]:
        """The groups of traffic."""
        return [group["name"] for group in self.document["groups"]]

    def __getitem__(self, discipline: str) -> dict[str, Any]:
        """Return the figures of a discipline, with the keys of the document."""
        for entry in self.document["disciplines"]:
            if entry["name"] == discipline:
                figures: dict[str, Any] = entry
                return figures
        raise KeyError(f"{discipline}; there are {', '.join(self.disciplines)}")

    def rows(self, group: str | None = None) -> list[dict[str, Any]]:
        """Return a row of figures for each discipline.

        Parameters
        ----------
        group : str, optional
            A group of traffic. All of it by default.
        """
        rows = []
        for entry in self.document["disciplines"]:
            figures = self._figures(entry, group)
            row = {"discipline": entry["name"], **{key: figures[key] for key in _FIGURES}}
            delay = figures["delay"] or {}
            row.update({f"delay_{key}": value for key, value in delay.items() if key != "distribution"})
            row.update(jain=entry["fairness"], queue_mean_bytes=entry["queue"]["mean_bytes"])
            rows.append(row)
        return rows

    def _figures(self, entry: dict[str, Any], group: str | None) -> dict[str, Any]:
        if group is not None and group not in self.groups:
            raise InputError(f"there is no group `{group}`; there are {', '.join(self.groups)}")
        whole: dict[str, Any] = entry["total"]
        return whole if group is None else dict(entry["groups"][self.groups.index(group)])

    def to_pandas(self, group: str | None = None) -> Any:
        """Return `rows` as a ``pandas.DataFrame``."""
        with optional("a data frame of pandas"):
            import pandas

        return pandas.DataFrame(self.rows(group))

    def delay_cdf(self, group: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw which share of packets had at most which delay, a curve for each discipline."""
        from .figures import _axes, _finished

        ax = _axes(ax)
        for entry in self.document["disciplines"]:
            figures = self._figures(entry, group)
            if figures["delay"]:
                points = figures["delay"]["distribution"]
                ax.plot([ns / 1e6 for ns, _ in points], [share for _, share in points], label=entry["name"])
        ax.set(xlabel="delay, ms", ylabel="share of packets", ylim=(0, 1), xscale="log")
        return _finished(ax)

    def __repr__(self) -> str:
        lines = [f"{row['discipline']}: {row['throughput_bps'] / 1e6:.3f} Mbit/s" for row in self.rows()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ._html import grid

        rows = []
        for row in self.rows():
            delays = [row.get(f"delay_{key}_ns") for key in ("mean", "p95", "p99")]
            rows.append(
                [
                    row["discipline"],
                    f"{row['throughput_bps'] / 1e6:.3f} Mbit/s",
                    f"{100 * row['loss']:.2f} %",
                    *("" if delay is None else f"{delay / 1e6:.1f} ms" for delay in delays),
                    "" if row["jain"] is None else f"{row['jain']:.3f}",
                    f"{row['queue_mean_bytes'] / 1e3:.1f} kB",
                ]
            )
        return grid(_HEADER, rows, "; ".join(self.document["remarks"]))


def _queues(queues: Iterable[str | Tree]) -> list[str]:
    rule = "a Tree, or its description in one line"
    lines = [
        queue.to_line() if isinstance(queue, Tree) else _arguments.text("a queue", queue, rule)
        for queue in _arguments.listed("`queues`", queues, "a list of disciplines")
    ]
    return [word for line in lines for word in option("queue", line)]


def compare(
    queues: Sequence[str | Tree] = (),
    scenario: Scenario | str | PathLike[str] | None = None,
    *,
    rate: str | None = None,
    duration: str | None = None,
    seed: int | None = None,
    replace: Sequence[str] = (),
    interface: str | None = None,
) -> Comparison:
    """Compare disciplines, as ``fairgate compare`` does.

    Parameters
    ----------
    queues : sequence of str or Tree
        The disciplines, such as ``["fifo", "fq_codel target=10ms"]``. Seven common ones by default. One
        written in Python may be among them.
    scenario : Scenario or path, optional
        Where they are compared: each replaces every queue that links name. By default an evening at home.
    rate : str, optional
        The rate of the home's line. 20 Mbit/s by default.
    duration : str, optional
        How long to simulate.
    seed : int, optional
        The seed of all random numbers.
    replace : sequence of str
        Replace only these queues of the scenario.
    interface : str, optional
        The interface of the scenario whose queue is shown. The one with the longest queue by default.

    Raises
    ------
    InputError
        If something is wrong.

    Examples
    --------
    >>> found = compare(["fifo", "fq_codel"], duration="5s")
    >>> delays = [row["delay_p95_ns"] for row in found.rows()]
    >>> delays[0] > delays[1]
    True
    """
    options = [
        *_queues(queues),
        *option("rate", rate),
        *option("duration", duration),
        *option("seed", seed),
        *option("interface", interface),
        *(word for name in _arguments.listed("`replace`", replace) for word in option("replace", name)),
    ]
    if scenario is None:
        return Comparison(answer(["compare", *options]))
    if not isinstance(scenario, Scenario):
        file = _arguments.path("the scenario", scenario)
        return Comparison(answer(["compare", *options, "--", file]))
    with tempfile.TemporaryDirectory(prefix="fairgate-") as folder:
        file = str(Path(folder, "scenario.toml"))
        scenario.save(file)
        return Comparison(answer(["compare", *options, "--", file], file, "python"))


def compare_trace(
    capture: str | PathLike[str],
    queues: Sequence[str | Tree] = (),
    *,
    rate: str = "20mbit",
    direction: str | None = None,
    closed_loop: bool = False,
    up: str | None = None,
    duration: str | None = None,
    seed: int | None = None,
    top: int | None = None,
    partial: bool = False,
) -> Comparison:
    """Compare disciplines on a capture of your traffic, as ``fairgate compare --trace`` does.

    Parameters
    ----------
    capture : path
        A pcap or pcapng, compressed or not.
    queues : sequence of str or Tree
        The disciplines. Seven common ones by default.
    rate : str
        The rate of the link.
    direction : str, optional
        ``auto``, ``down`` or ``up``: the direction whose queue is replayed.
    closed_loop : bool
        Whether to simulate the capture's TCP connections, with senders that react, instead of replaying its
        packets.
    up : str, optional
        The rate from the local side, with `closed_loop`.
    duration : str, optional
        The part of the capture from its beginning.
    seed, top : int, optional
        The seed; the number of flows that are shown one by one.
    partial : bool
        Whether a damaged capture is replayed up to the damage.

    Raises
    ------
    InputError
        If the capture or an argument is wrong.
    """
    flags = [*(["--closed-loop"] if closed_loop else []), *(["--partial"] if partial else [])]
    return Comparison(
        answer(
            [
                "compare",
                *option("trace", _arguments.path("the capture", capture)),
                *option("rate", rate),
                *option("direction", direction),
                *option("up", up),
                *option("duration", duration),
                *option("seed", seed),
                *option("top", top),
                *flags,
                *_queues(queues),
            ]
        )
    )
