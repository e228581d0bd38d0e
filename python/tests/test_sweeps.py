"""Sweeps are complete, whatever happens to a worker, and nothing is in them twice."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.compute as pc
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


def left() -> list[int]:
    """Return the workers that are left.

    A worker that the pool's own thread collects stays in the list of children for a moment, its process does
    not.
    """
    numbers = [child.pid for child in multiprocessing.active_children() if child.pid is not None]
    return [number for number in numbers if Path(f"/proc/{number}").exists()]


def test_an_interrupt_while_a_worker_starts(
    short: fg.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool does not know this worker yet."""
    start = SpawnProcess.start

    def interrupted(process: SpawnProcess) -> None:
        start(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(SpawnProcess, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fg.sweep(short.replace(duration="100000s"), {}, 2, out=tmp_path)
    assert not left()


def test_ctrl_c_does_not_wait_for_the_runs_under_way(short: fg.Scenario, tmp_path: Path) -> None:
    """Only this process gets the signal. The runs alone would take many minutes."""
    # A process that was started in the background ignores it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        fg.sweep(short.replace(duration="100000s"), {}, 2, out=tmp_path)
    timer.join()
    signal.signal(signal.SIGINT, before)
    assert not left()


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


SWEPT = """
[sweep]
seeds = 2
measure = "groups"
[sweep.grid]
queue.wan.target = ["1ms", "5ms", "20ms"]
"simulate.flow.call.udp.rate" = ["64kbit", "1mbit"]
"""


def test_the_program_and_this_package_go_on_with_each_other(
    short: fg.Scenario, tmp_path: Path, program: str
) -> None:
    file = tmp_path / "wan.toml"
    file.write_text(short.to_toml() + SWEPT)
    scenario = fg.Scenario.read(file)
    command = [program, "sweep", file, "--json"]

    def by_program(out: str) -> dict[str, Any]:
        printed = subprocess.run([*command, "--out", tmp_path / out], capture_output=True, check=True).stdout
        document: dict[str, Any] = json.loads(printed)
        return document

    with ThreadPoolExecutor(2) as executor:
        first = by_program("a")
        assert (first["done"], first["skipped"]) == (12, 0)
        after = fg.sweep(scenario, None, 3, executor, out=tmp_path / "a")
        assert (after.done, after.skipped) == (6, 12)
        check(short, after, seeds=3)
        found = fg.sweep(scenario, executor=executor, out=tmp_path / "b")
        assert (found.done, found.skipped) == (12, 0)
        second = by_program("b")
        assert (second["done"], second["skipped"]) == (0, 12)
    for part in (tmp_path / "b").glob("part-*.parquet"):
        part.unlink()
    assert by_program("b")["done"] == 12
    order = [("queue.wan.target", "ascending"), ("simulate.flow.call.udp.rate", "ascending"),
             ("seed", "ascending"), ("group", "ascending")]  # fmt: skip
    both = [fg.Sweep.read(tmp_path / name).to_arrow().sort_by(order) for name in "ab"]
    same = both[0].filter(pc.less(both[0]["seed"], 3))
    assert same.equals(both[1])
    # Any reader of data sets passes over the files that are no parts.
    assert pd.read_parquet(tmp_path / "b").shape == (24, both[1].num_columns)


def test_columns_have_the_same_types_as_the_program_s(
    short: fg.Scenario, tmp_path: Path, program: str
) -> None:
    file = tmp_path / "wan.toml"
    grid = (
        "[sweep.grid]\nqueue.wan.ecn = [true, false]\nqueue.wan.limit = [100, 200]\n"
        'queue.wan.flows = [16, 32]\nsimulate.flow.call.udp.pattern = ["constant"]\n'
        "simulate.link.0.loss = [0, 0.5]\n"
        'queue.lan = [{ limit = 5, discipline = "fifo" }, { discipline = "sfq" }]\n'
    )
    text = short.replace(queues={**short.queues, "lan": fg.Tree("fifo")}).to_toml()
    file.write_text(text + grid)
    subprocess.run([program, "sweep", file, "--out", tmp_path / "a"], capture_output=True, check=True)
    with ThreadPoolExecutor(2) as executor:
        own = fg.sweep(fg.Scenario.read(file), executor=executor, out=tmp_path / "b").to_arrow()
    other = fg.Sweep.read(tmp_path / "a").to_arrow()
    assert own.schema == other.schema
    order = [(name, "ascending") for name in own.column_names[:8]]
    assert own.sort_by(order).equals(other.sort_by(order))
    assert set(own["queue.lan"].to_pylist()) == {'{"discipline":"fifo","limit":5}', '{"discipline":"sfq"}'}


def test_the_files_are_the_same_however_the_runs_are_finished(short: fg.Scenario, tmp_path: Path) -> None:
    def files(workers: int) -> dict[str, bytes]:
        out = tmp_path / str(workers)
        grid = {**GRID, "simulate.duration": ["3s", "100ms"]}
        with ThreadPoolExecutor(workers) as executor:
            fg.sweep(short, grid, 2, executor, out=out)
        return {part.name: part.read_bytes() for part in out.glob("part-*.parquet")}

    one = files(1)
    assert len(one) > 16
    assert one == files(2) == files(5)


def test_no_trap_is_followed(short: fg.Scenario, tmp_path: Path) -> None:
    precious, folder = tmp_path / "precious", tmp_path / "everybody"
    precious.write_text("precious")
    folder.mkdir()
    folder.chmod(0o1777)
    trap = folder / "trap.pcapng"
    trap.hardlink_to(precious)
    captured = short.replace(captures=[{"interface": "home->server", "file": str(trap)}])
    with pytest.raises(OSError, match=r"trap\.pcapng is one of 2 names"):
        short.save(trap)
    with pytest.raises(fg.FairgateError, match=r"trap\.pcapng is one of 2 names"):
        captured.run()
    (folder / "_lock").symlink_to(precious)
    with ThreadPoolExecutor(1) as executor, pytest.raises(fg.SweepError, match="_lock is a symbolic link"):
        fg.sweep(short, {}, 1, executor, out=folder)
    assert precious.read_text() == "precious"


def test_only_one_sweep_writes_into_a_folder(short: fg.Scenario, tmp_path: Path) -> None:
    with (tmp_path / "_lock").open("w") as lock, ThreadPoolExecutor(1) as executor:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(fg.SweepError, match="another sweep is writing into"):
            fg.sweep(short, {}, 1, executor, out=tmp_path)
    (tmp_path / "_part-x.parquet.draft").write_bytes(b"PAR1")
    with ThreadPoolExecutor(1) as executor:
        fg.sweep(short, {}, 1, executor, out=tmp_path)
    assert not list(tmp_path.glob("*.draft"))


def test_a_data_set_that_is_broken_or_empty(tmp_path: Path) -> None:
    with pytest.raises(fg.SweepError, match="has no rows"):
        fg.Sweep.read(tmp_path).to_arrow()
    (tmp_path / "part-1.parquet").write_bytes(b"PAR1 broken")
    with pytest.raises(fg.SweepError, match=r"part-1.parquet is broken"):
        fg.Sweep.read(tmp_path)
    with pytest.raises(fg.SweepError, match=r"part-1.parquet is broken"):
        fg.Sweep(tmp_path, 0, 0).to_arrow()
