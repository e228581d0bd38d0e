"""Comparisons, theory, bounds and experiments are those of the program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import fairgate as fg

ROOT = Path(__file__).parents[2]


class Slow(fg.Discipline):
    """Drops every packet but one, in Python."""

    name = "py_one_place"

    def __init__(self) -> None:
        self.packet: fg.Packet | None = None

    def enqueue(self, packet: fg.Packet, now: int) -> None:
        if self.packet is None:
            self.packet = packet
        else:
            self.drop(packet)

    def dequeue(self, now: int) -> fg.Packet | None:
        packet, self.packet = self.packet, None
        return packet


class Faulty(Slow):
    """Raises at the first packet."""

    name = "py_faulty"

    def enqueue(self, packet: fg.Packet, now: int) -> None:
        raise OverflowError("too much")


def test_a_comparison_is_that_of_the_program(program: str) -> None:
    found = fg.compare(["fifo", fg.Tree("fq_codel", target="10ms")], duration="2s", seed=3)
    words = ["compare", "--json", "--queue", "fifo", "--queue", "fq_codel target=10ms"]
    shown = subprocess.run(
        [program, *words, "--duration", "2s", "--seed", "3"], capture_output=True, check=True
    )
    assert found.document == json.loads(shown.stdout)
    assert found.disciplines == ["fifo", "fq_codel target=10ms"]
    assert len(found.to_pandas("Total" if "Total" in found.groups else None)) == 2
    assert "fq_codel target=10ms" in found._repr_html_()
    assert len(found.delay_cdf().get_lines()) == 2


def test_a_scenario_and_a_discipline_in_python(scenario: fg.Scenario) -> None:
    found = fg.compare(["fifo", "py_one_place"], scenario)
    fifo, one = found.rows()
    assert one["loss"] > fifo["loss"]
    assert one["delay_p95_ns"] < fifo["delay_p95_ns"]
    with pytest.raises(fg.DisciplineError, match="too much"):
        fg.compare(["py_faulty"], scenario)
    with pytest.raises(fg.InputError, match=r"python:\d+:\d+"):
        fg.compare(["fifo"], scenario.replace(links=[fg.Link("home", "server", rate="1x")]))


def test_a_capture() -> None:
    capture = ROOT / "examples" / "recorded.pcap.gz"
    found = fg.compare_trace(capture, ["fifo", "sfq"], rate="15mbit")
    assert found.document["input"]["kind"] == "capture"
    assert [row["discipline"] for row in found.rows()] == ["fifo", "sfq"]
    with pytest.raises(fg.InputError, match="nothing"):
        fg.compare_trace("nothing.pcap")


def test_questions() -> None:
    listed = fg.reproduce()
    assert {"sqf-fig3"} <= {entry["id"] for entry in listed["experiments"]}
    measured = fg.bounds("scfq", effort="quick")
    assert measured["schedulers"][0]["scheduler"] == "scfq"
    assert "b_wfi" in measured._repr_html_()
    for call, part in [
        (lambda: fg.theory("mm1", load=2), "load"),
        (lambda: fg.bounds("scfqq"), "scfqq"),
        (lambda: fg.reproduce("sqf-fig33"), "sqf-fig33"),
        (lambda: fg.compare(["fifo", "fifo"]), "given twice"),
        (lambda: fg.compare(["fifoo"]), "did you mean `fifo`"),
    ]:
        with pytest.raises(fg.InputError, match=part):
            call()
