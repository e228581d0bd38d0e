"""A package that is imported only when it is used, and is not installed."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

import fairgate as fg


@pytest.fixture(scope="module")
def results() -> fg.Results:
    return fg.Scenario(
        "1s",
        links=[fg.Link("a", "b", rate="2mbit", delay="5ms")],
        flows=[fg.Flow("stream", "a", "b", udp={"rate": "1mbit"})],
    ).run()


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("pyarrow", lambda results: results.flows.to_arrow()),
        ("pyarrow", lambda results: results.flows.to_pandas()),
        ("pandas", lambda results: results.flows.to_pandas()),
        ("polars", lambda results: results.flows.to_polars()),
        ("matplotlib", lambda results: results.plot.delay_cdf()),
    ],
)
def test_a_missing_package_is_named_with_the_remedy(
    results: fg.Results,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    use: Callable[[fg.Results], object],
) -> None:
    monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setattr(sys, "meta_path", [_Without(package), *sys.meta_path])
    with pytest.raises(fg.MissingPackageError, match=f"`{package}`.*not installed") as missing:
        use(results)
    assert isinstance(missing.value, ImportError)
    assert missing.value.name == package
    assert f"pip install {package}" in str(missing.value)


class _Without:
    """Finds no module of one package."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
