"""Wrong input is an exception of ours, with the location, the rule and the remedy of the program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairgate as fg

WRONG = [
    ('[queue.wan]\ndiscipline = "tbf"\nrate = "0mbit"\nburst = "5kb"\n', 3, 9, "a rate must be above 0"),
    ('[queue.wan]\ndiscipline = "fq_codel"\ntagret = "5ms"\n', 3, 1, "`fq_codel` has no parameter `tagret`"),
    ('[queue.wan]\ndiscipline = "fifo\n', 2, None, ""),
    ('[simulate]\nduration = "1 parsec"\n', 2, 14, ""),
    ('[simulat]\nduration = "1s"\n', 1, 2, "there is no section `simulat`"),
    ("[simulate]\nduration = 7\n", 2, 12, ""),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), WRONG)
def test_mistakes_have_the_location_of_the_program(
    text: str, line: int, column: int | None, message: str, tmp_path: Path, program: str
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(fg.InputError) as caught:
        fg.check(file)
    assert isinstance(caught.value, ValueError)
    problem = caught.value.problems[0]
    assert problem.line == line
    assert column is None or problem.column == column
    assert message in problem.message
    shown = subprocess.run(
        [program, "--json", "check", str(file)], capture_output=True, text=True, check=False
    )
    error = json.loads(shown.stdout)["errors"][0]
    expected = (error["message"], error["help"], error["file"], error["line"], error["column"])
    assert (problem.message, problem.help, problem.file, problem.line, problem.column) == expected
    assert problem.help.split()[0] in str(caught.value)
    assert f"wrong.toml:{line}:" in str(caught.value)


def test_all_mistakes_of_the_queues_are_reported() -> None:
    text = '[queue.a]\ndiscipline = "fifo"\nlimit = 0\n[queue.b]\ndiscipline = "fifoo"\n'
    with pytest.raises(fg.InputError) as caught:
        fg.Tree.from_toml(text, "a")
    assert [problem.line for problem in caught.value.problems] == [3, 5]
    assert "did you mean `fifo`" in caught.value.problems[1].help


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: fg.Tree("fifo", limit=float("nan")), "finite"),
        (lambda: fg.Tree("fifo", limit=-1), "at least 1"),
        (lambda: fg.Tree("fifo", limit=object()), "type object"),
        (lambda: fg.Tree("fifo", limit=2**70), "2^63"),
        (lambda: fg.Tree("fif"), "did you mean"),
        (lambda: fg.Tree("tbf", rate=20), "rate"),
        (lambda: fg.Tree("tbf", rate="20mbits", burst="5kb"), "20mbits"),
        (lambda: fg.Tree("fq_codel", tagret="5ms"), "tagret"),
        (lambda: fg.Tree("fifo", inner=fg.Tree("fifo")), "fifo"),
        (lambda: fg.Tree.parse("fifo limit"), "name=value"),
        (lambda: fg.Tree.from_toml("[queue.a]\ndiscipline='fifo'\n", "b"), "no queue `b`"),
        (lambda: fg.Scenario("1s", seed=-1), "seed is -1"),
        (lambda: fg.Scenario("1s", seed=1.5), "seed is 1.5"),  # type: ignore[arg-type]
        (lambda: fg.Scenario("1s", links=[fg.Link("a", "b", delay="1x")]).check(), "1x"),
        (lambda: fg.Scenario("1s", links=[fg.Link("a", "b", dely="1s")]).check(), "dely"),  # type: ignore[call-arg]
        (lambda: fg.Scenario("1s", links=[fg.Link("a", "b", loss=float("inf"))]), "finite"),
        (lambda: fg.Scenario.from_toml(""), "simulate"),
        (lambda: fg.Scenario.from_dict({}).run(), "[simulate]"),
        (lambda: fg.list("fq_codle"), "did you mean `fq_codel`"),
        (lambda: fg.from_tc("qdisc add dev eth0 root fq_codel limt 5"), "limt"),
        (lambda: fg.Results.from_json("{}"), "no results"),
        (lambda: fg.Results.from_json(5), "results is 5"),  # type: ignore[arg-type]
        (lambda: fg.Scenario("1s", links=7), "`links` is 7"),  # type: ignore[arg-type]
        (lambda: fg.Scenario("1s", queues=[1]), "`queues` is [1]"),  # type: ignore[arg-type]
        (lambda: fg.Scenario("1s", links=[7]).check(), "link"),  # type: ignore[list-item]
        (lambda: fg.Scenario(7).check(), "duration"),  # type: ignore[arg-type]
        (lambda: fg.Scenario.from_toml(7), "configuration is 7"),  # type: ignore[arg-type]
        (lambda: fg.Scenario.read(7), "file is 7"),  # type: ignore[arg-type]
        (lambda: fg.check(7), "file is 7"),  # type: ignore[arg-type]
        (lambda: fg.list(7), "name is 7"),  # type: ignore[arg-type]
        (lambda: fg.from_tc(7), "script is 7"),  # type: ignore[arg-type]
        (lambda: fg.from_tc("", mtu=-1), "`mtu` is -1"),
        (lambda: fg.from_dummynet("", mtu=1.5), "`mtu` is 1.5"),  # type: ignore[arg-type]
        (lambda: fg.Tree.parse(7), "tree is 7"),  # type: ignore[arg-type]
        (lambda: fg.Tree("prio", classes=5), "`classes` is 5"),  # type: ignore[arg-type]
        (lambda: fg.compare("fifo"), "`queues` is 'fifo'"),
        (lambda: fg.compare([7]), "queue is 7"),  # type: ignore[list-item]
        (lambda: fg.compare(["fifo"], seed=-1), "-1"),
        (lambda: fg.compare(["fifo"], duration=float("nan")), "nan"),  # type: ignore[arg-type]
        (lambda: fg.compare(["fifo"], rate="--help"), "--help"),
        (lambda: fg.compare(["fifo"], 7), "scenario is 7"),  # type: ignore[arg-type]
        (lambda: fg.compare(["fifo"], duration="1s").rows("cals"), "no group `cals`"),
        (lambda: fg.compare_trace(7), "capture is 7"),  # type: ignore[arg-type]
        (lambda: fg.compare_trace("missing.pcap"), "missing.pcap"),
        (lambda: fg.bounds("drrr"), "drrr"),
        (lambda: fg.bounds("--help"), "--help"),
        (lambda: fg.bounds(7), "scheduler is 7"),  # type: ignore[arg-type]
        (lambda: fg.bounds("drr", seed=-1), "-1"),
        (lambda: fg.reproduce("qfq"), "qfq"),
        (lambda: fg.reproduce(7), "experiment is 7"),  # type: ignore[arg-type]
        (lambda: fg.theory("mm2"), "mm2"),
        (lambda: fg.theory("mm1", load=float("nan")), "NaN"),
        (lambda: fg.theory("mm1", load=1.5), "1.5"),
        (lambda: fg.theory("mm1", lod=0.5), "lod"),
    ],
)
def test_wrong_arguments(make: Any, part: str) -> None:
    with pytest.raises(fg.InputError) as caught:
        make()
    assert part in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_wrong_seed_of_a_run(scenario: fg.Scenario) -> None:
    for seed in (-1, 2**63, 0.5, "1", True):
        with pytest.raises(fg.InputError, match="the seed is"):
            scenario.run(seed)  # type: ignore[arg-type]
    for seeds in (0, -1, True, "12", [1, -1], {1: 2}):
        with pytest.raises(fg.InputError, match="seed"):
            scenario.run_seeds(seeds)  # type: ignore[arg-type]
    for jobs in (0, -1, 1.5, True):
        with pytest.raises(fg.InputError, match="`jobs` is"):
            scenario.run_seeds(2, jobs=jobs)  # type: ignore[arg-type]
    assert scenario.run(np.int64(3)).seed == 3


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "binary.toml"
    file.write_bytes(b"a = \xff")
    with pytest.raises(fg.InputError, match="offset 4"):
        fg.check(file)
    with pytest.raises(FileNotFoundError):
        fg.check(tmp_path / "missing.toml")


def test_paths_of_a_sweep(scenario: fg.Scenario) -> None:
    changed = scenario.with_values({"queue.wan.target": "1ms", "simulate.flow.call.udp.rate": "1mbit"})
    assert changed.queues["wan"].target == "1ms"
    assert changed.flows[1].udp["rate"] == "1mbit"
    assert scenario.with_values({"queue.wan": fg.Tree("fifo")}).queues["wan"] == fg.Tree("fifo")
    for path in ("queue.lan.target", "simulate.flow.7.count", "simulate.flow.video.count", "simulate.seed.a"):
        with pytest.raises(fg.InputError, match="lead"):
            scenario.with_values({path: 1})


def test_sections_do_not_change(scenario: fg.Scenario) -> None:
    link = scenario.links[0]
    with pytest.raises(AttributeError, match="replace"):
        link.rate = "1mbit"
    assert link.replace(rate="1mbit").rate == "1mbit"
    assert link.replace(rate=None).to_dict() == {"a": "home", "b": "server", "delay": "10ms", "queue": "wan"}
    with pytest.raises(AttributeError):
        link.colour  # noqa: B018
