"""A run from Python is the program's run, and does not keep Python from its other work."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import fairgate as fg

ENDLESS = """
import fairgate as fg
scenario = fg.Scenario(
    "80000s", interval="80000s",
    links=[fg.Link("a", "b", rate="1gbit")],
    flows=[fg.Flow("x", "a", "b", udp={"rate": "900mbit", "size": "100b"})],
)
"""


def test_the_figures_are_those_of_the_program(scenario: fg.Scenario, tmp_path: Path, program: str) -> None:
    file = tmp_path / "evening.toml"
    scenario.save(file)
    shown = subprocess.run(
        [program, "--json", "simulate", str(file), "--seed", "7"], capture_output=True, check=True
    )
    document = json.loads(shown.stdout)
    assert document.pop("schema") == "fairgate.simulate/1"
    results = fg.Scenario.read(file).run(7)
    assert results.document.items() <= document.items()
    assert results.seed == 7
    assert results.goodput_bps == document["goodput_bps"]
    assert results == scenario.run(7)
    assert results != scenario.run(8)


def test_results_are_kept(scenario: fg.Scenario) -> None:
    results = scenario.run()
    assert pickle.loads(pickle.dumps(results)) == results
    assert fg.Results.from_json(results.to_json()) == results
    assert results.duration == 2.0
    assert results.interval == 0.1
    assert results.measured == (0.0, 2.0)
    assert 0.5 < results.jain <= 1.0
    assert "downloads-1" in results._repr_html_()
    assert "home" in scenario._repr_html_()


def test_seeds_run_side_by_side(scenario: fg.Scenario) -> None:
    alone = [scenario.run(seed) for seed in (5, 6, 7)]
    shares: list[float] = []
    assert scenario.run_seeds([5, 6, 7], jobs=2, progress=shares.append) == alone
    assert shares[-1] == 1.0
    assert scenario.replace(seed=5).run_seeds(3) == alone
    assert scenario.run_seeds([]) == []
    with pytest.raises(fg.InputError, match="seed"):
        scenario.run_seeds([1, -1])


def test_other_threads_go_on(scenario: fg.Scenario) -> None:
    long = scenario.replace(duration="60s")
    counted = 0
    over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    long.run()
    over.set()
    thread.join()
    assert counted > 3


def test_progress_is_told() -> None:
    namespace: dict[str, fg.Scenario] = {}
    exec(ENDLESS, namespace)
    shares: list[float] = []

    def tell(share: float) -> None:
        shares.append(share)
        if len(shares) == 3:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        namespace["scenario"].run(progress=tell)
    assert 0 < shares[0] < shares[1] < shares[2] < 1


@pytest.mark.parametrize(
    "call",
    [
        "scenario.run()",
        "scenario.run_seeds(4)",
        "fg.compare(duration='10h')",
        "fg.bounds(effort='thorough')",
        "fg.reproduce('all')",
        "fg.theory('mm1', seeds=1000)",
    ],
)
def test_ctrl_c_stops_a_call(call: str) -> None:
    """The simulation takes hours, and its only interval, too. The others take minutes."""
    # The child ignores SIGINT if its parent does.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        + ENDLESS
        + textwrap.dedent(f"""
        import time
        print("running", flush=True)
        try:
            {call}
        except KeyboardInterrupt:
            print("stopped", time.clock_gettime(time.CLOCK_MONOTONIC), flush=True)
        """)
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "running\n"
    time.sleep(0.5)
    sent = time.clock_gettime(time.CLOCK_MONOTONIC)
    os.kill(child.pid, signal.SIGINT)
    word, at = child.stdout.readline().split()
    child.wait()
    child.stdout.close()
    assert word == "stopped"
    print(f"stopped after {float(at) - sent:.3f} s")


def test_captures_are_written(scenario: fg.Scenario, tmp_path: Path) -> None:
    file = tmp_path / "home.pcapng"
    scenario.replace(captures=[fg.Capture("server->home", str(file))]).run()
    assert file.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    with pytest.raises(fg.SimulationError, match="missing"):
        scenario.replace(captures=[fg.Capture("server->home", str(tmp_path / "missing" / "x.pcapng"))]).run()
