"""Tables are read by other libraries without a copy."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairgate as fg


@pytest.fixture(scope="module")
def results() -> fg.Results:
    return fg.Scenario(
        "2s",
        links=[fg.Link("a", "b", rate="2mbit", delay="5ms")],
        flows=[
            fg.Flow("stream", "a", "b", udp={"rate": "1mbit"}),
            fg.Flow("download", "a", "b", tcp={}),
        ],
        observations=[fg.Observe("queue", "a->b", "backlog_packets")],
    ).run()


@pytest.mark.parametrize("name", ["flows", "groups", "interfaces", "series", "observations"])
def test_all_libraries_read_the_same(results: fg.Results, name: str) -> None:
    table: fg.Table = getattr(results, name)
    assert len(table) > 0
    arrow = pa.table(table)
    assert arrow.to_pydict() == table.to_dict()
    assert arrow.to_pylist() == table.rows()
    assert pl.DataFrame(table).to_dict(as_series=False) == table.to_dict()
    assert table.to_polars().shape == (len(table), len(table.column_names))
    frame = table.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == table.column_names
    assert pa.record_batch(table).equals(arrow.to_batches()[0])
    assert pa.schema(table) == arrow.schema
    header = table.column_names[1].removesuffix("_ns").replace("_", " ")
    assert f"<th>{header}</th>" in table._repr_html_()


def test_nothing_is_copied(results: fg.Results) -> None:
    """Two readers see the same memory."""
    one, other = pa.table(results.series), pa.table(results.series)
    addresses = [t["value"].chunk(0).buffers()[1].address for t in (one, other)]
    assert addresses[0] == addresses[1]
    polars = pl.DataFrame(results.series)["value"]
    assert polars.to_arrow().buffers()[1].address == addresses[0]


def test_missing_values_are_missing(results: fg.Results) -> None:
    flows = results.flows
    assert flows["retransmissions"][0] is None
    assert flows["retransmissions"][1] is not None
    assert pa.table(flows)["retransmissions"].null_count == 1
    with pytest.raises(KeyError):
        flows["colour"]


def test_a_table_outlives_its_results() -> None:
    def arrow() -> pa.Table:
        scenario = fg.Scenario(
            "1s",
            links=[fg.Link("a", "b", rate="1mbit")],
            flows=[fg.Flow("x", "a", "b", udp={"rate": "1mbit"})],
        )
        return pa.table(scenario.run().series)

    assert sum(arrow()["value"].to_pylist()) > 0
