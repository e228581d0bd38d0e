"""Sweeps are complete, whatever happens to a worker, and nothing is in them twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import fairgate as fg

GRID = {"queue.wan.target": ["1ms", "5ms", "20ms"], "simulate.flow.call.udp.rate": ["64kbit", "1mbit"]}


def goodput(results: fg.Results) -> dict[str, float]:
    return {"goodput": results.goodput_bps, "jain": results.jain}


class Crashing(fg.Discipline):
    """Ends its process, once: it leaves a file that says so."""

    name = "py_crashing"

    def enqueue(self, packet: fg.Packet, now: int) -> None:
        mark = Path(os.environ["FAIRGATE_TEST_CRASHED"])
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        self.packet: fg.Packet | None = None
        self.drop(packet)

    def dequeue(self, now: int) -> fg.Packet | None:
        return None


def check(scenario: fg.Scenario, found: fg.Sweep, seeds: int = 2) -> None:
    """Compare all rows with runs done here."""
    rows = found.to_arrow().to_pylist()
    keys = [(*(row[path] for path in GRID), row["seed"], row["group"]) for row in rows]
    assert len(set(keys)) == len(keys) == 6 * seeds * 2
    for row in rows[::5]:
        own = scenario.with_values({path: row[path] for path in GRID}).run(row["seed"])
        (group,) = (each for each in own.groups.rows() if each["group"] == row["group"])
        assert {name: row[name] for name in group} == group


@pytest.fixture
def short(scenario: fg.Scenario) -> fg.Scenario:
    return scenario.replace(duration="300ms")


def test_threads(short: fg.Scenario, tmp_path: Path) -> None:
    shares: list[float] = []
    with ThreadPoolExecutor(2) as executor:
        found = fg.sweep(short, GRID, 2, executor, out=tmp_path, progress=shares.append)
    assert (found.done, found.skipped) == (12, 0)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    check(short, found)
    assert len(found.to_pandas()) == len(found.to_polars()) == 24


def test_processes_by_default_and_a_killed_one(short: fg.Scenario, tmp_path: Path) -> None:
    """The first worker that gets the discipline dies. Its runs are done by others."""
    os.environ["FAIRGATE_TEST_CRASHED"] = str(tmp_path / "crashed")
    grid = {"queue.wan": [fg.Tree("fq_codel"), Crashing.tree()]}
    found = fg.sweep(short, grid, 3, out=tmp_path / "out", measure=goodput)
    assert (tmp_path / "crashed").exists()
    rows = found.to_arrow().to_pylist()
    assert len({(row["queue.wan"], row["seed"]) for row in rows}) == len(rows) == found.done == 6


class Interrupted(ThreadPoolExecutor):
    """Fails at the eighth run."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.count = getattr(self, "count", 0) + 1
        if self.count == 8:
            raise KeyboardInterrupt
        return super().submit(fn, *args, **kwargs)


def test_it_goes_on_after_an_interruption(
    short: fg.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairgate.sweeps._WAITING", 2)
    with Interrupted(1) as executor, pytest.raises(KeyboardInterrupt):
        fg.sweep(short, GRID, 2, executor, out=tmp_path)
    with ThreadPoolExecutor(1) as executor:
        found = fg.sweep(short, GRID, 2, executor, out=tmp_path)
        assert found.skipped > 0
        assert found.done + found.skipped == 12
        check(short, found)
        again = fg.sweep(short, GRID, 2, executor, out=tmp_path)
        assert (again.done, again.skipped) == (0, 12)
        more = fg.sweep(short, GRID, 3, executor, out=tmp_path)
        assert (more.done, more.skipped) == (6, 12)
    check(short, more, seeds=3)


def test_a_worker_of_dask_is_killed_in_the_middle(short: fg.Scenario, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    killed: list[int] = []
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = list(client.run(os.getpid).values())

        def progress(share: float) -> None:
            if share > 0.2 and not killed:
                killed.append(workers[0])
                os.kill(workers[0], signal.SIGKILL)

        long = short.replace(duration="2s")
        found = fg.sweep(long, GRID, 2, client, out=tmp_path, progress=progress)
    assert killed
    assert (found.done, found.skipped) == (12, 0)
    check(long, found)


def test_what_can_be_wrong(short: fg.Scenario, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as executor:
        for grid, seeds, part in [
            ({"queue.lan.target": ["1ms"]}, 1, "`lan`"),
            ({"queue.wan.target": "1ms"}, 1, "must be a list"),
            ({"queue.wan.target": []}, 1, "at least one"),
            ({}, [-1], "seed is -1"),
        ]:
            with pytest.raises(fg.InputError, match=part):
                fg.sweep(short, grid, seeds, executor, out=tmp_path / "a")  # type: ignore[arg-type]
        with pytest.raises(fg.InputError, match="did you mean `target`") as caught:
            fg.sweep(short, {"queue.wan.targte": ["1ms"]}, 1, executor, out=tmp_path / "b")
        assert "targte" in caught.value.__notes__[0]
        with pytest.raises(fg.InputError, match="no table `colours`"):
            fg.sweep(short, {}, 1, executor, out=tmp_path / "c", measure="colours")
        fg.sweep(short, {}, 1, executor, out=tmp_path / "d")
        with pytest.raises(fg.InputError, match="has another sweep"):
            fg.sweep(short, GRID, 1, executor, out=tmp_path / "d")
        (part,) = (tmp_path / "d").glob("part-*.parquet")
        part.write_bytes(b"PAR1 broken")
        with pytest.raises(fg.SweepError, match=part.name):
            fg.sweep(short, {}, 1, executor, out=tmp_path / "d")
        part.unlink()
        assert fg.sweep(short, {}, 1, executor, out=tmp_path / "d").done == 1


def test_a_full_disk_is_named(short: fg.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(fg.SweepError, match=r"No space left on device.*make room"):
            fg.sweep(short, {}, 2, executor, out=tmp_path)
        monkeypatch.undo()
        assert fg.sweep(short, {}, 2, executor, out=tmp_path).done == 2


def test_an_executor_that_breaks(short: fg.Scenario, tmp_path: Path) -> None:
    os.environ["FAIRGATE_TEST_CRASHED"] = str(tmp_path / "crashed")
    grid = {"queue.wan": [Crashing.tree()]}
    with ProcessPoolExecutor(1) as executor, pytest.raises(fg.SweepError, match="the same call goes on"):
        fg.sweep(short, grid, 2, executor, out=tmp_path / "out")
    with ProcessPoolExecutor(1) as executor:
        assert fg.sweep(short, grid, 2, executor, out=tmp_path / "out").done == 2
