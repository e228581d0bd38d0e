"""Figures show the figures of the results."""

from __future__ import annotations

import matplotlib as mpl
import pytest

import fairgate as fg

mpl.use("Agg")


@pytest.fixture(scope="module")
def results() -> fg.Results:
    return fg.Scenario(
        "2s",
        links=[fg.Link("home", "server", rate="20mbit", delay="10ms")],
        flows=[
            fg.Flow("downloads", "server", "home", count=2, tcp={}),
            fg.Flow("call", "server", "home", udp={"rate": "64kbit", "size": "160b"}),
        ],
    ).run()


def test_the_curve_of_delays_is_that_of_the_percentiles(results: fg.Results) -> None:
    ax = results.plot.delay_cdf(["call"])
    (curve,) = ax.get_lines()
    entry = results.document["flows"][2]
    assert entry["name"] == "call"
    assert list(curve.get_xdata()) == [value / 1e6 for value in entry["delay"]["percentiles_ns"]]
    assert len(results.plot.delay_cdf().get_lines()) == 2


def test_series_and_fairness_over_time(results: fg.Results) -> None:
    ax = results.plot.series("throughput_bps", ["call"])
    (curve,) = ax.get_lines()
    assert list(curve.get_ydata()) == [v / 1e6 for v in results.document["flows"][2]["throughput_series_bps"]]
    (curve,) = results.plot.fairness(["downloads-1", "downloads-2"]).get_lines()
    one, two = (results.document["flows"][n]["throughput_series_bps"][-1] for n in (0, 1))
    assert curve.get_ydata()[-1] == pytest.approx((one + two) ** 2 / (2 * (one**2 + two**2)))
    for quantity in ("window_segments", "rtt_ns", "backlog_packets", "sojourn_ns"):
        assert results.plot.series(quantity).get_lines()


def test_violins_and_tables(results: fg.Results) -> None:
    ax = results.plot.delay_violin()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["downloads", "call"]
    table = results.plot.flow_table().tables[0]
    assert table[1, 0].get_text().get_text() == "downloads-1"
    mpl.pyplot.close("all")


def test_unknown_names(results: fg.Results) -> None:
    with pytest.raises(fg.InputError, match="there is no `video`"):
        results.plot.delay_cdf(["video"])
    with pytest.raises(fg.InputError, match="throughput_bps"):
        results.plot.series("colour")
    with pytest.raises(fg.InputError, match="fewer than two"):
        results.plot.fairness(["call"])
