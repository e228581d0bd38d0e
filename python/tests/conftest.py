"""What all tests share."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live_run import Namespace

import fairgate as fg

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]


@pytest.fixture
def scenario() -> fg.Scenario:
    """Two downloads and a call over a home's link, for two seconds."""
    return fg.Scenario(
        "2s",
        queues={"wan": fg.Tree("fq_codel", target="5ms")},
        links=[fg.Link("home", "server", rate="20mbit", delay="10ms", queue="wan")],
        flows=[
            fg.Flow("downloads", "server", "home", count=2, tcp={"congestion_control": "cubic"}),
            fg.Flow("call", "home", "server", udp={"rate": "64kbit", "size": "160b"}),
        ],
    )


@pytest.fixture(scope="session")
def program() -> str:
    """The path of the program `fairgate`, which `make python` has built."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = target / "debug" / "fairgate"
    assert path.exists(), f"{path} is missing; run make python-build"
    return str(path)


def skip(request: pytest.FixtureRequest, why: str) -> None:
    """Skip a test. A test that did not run has not passed: say so past pytest, too."""
    reason = f"{request.node.name} {why}"
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\nSKIPPED: {reason}", file=sys.stderr)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def live(request: pytest.FixtureRequest) -> None:
    """Skip what needs root, if this process is not root. Its modules are marked: nothing runs beside them."""
    assert request.node.get_closest_marker("live"), "write pytestmark = pytest.mark.live in this module"
    if os.geteuid() != 0:
        skip(request, "needs root to build network namespaces, and this process is not root")


@pytest.fixture(scope="module")
def desk(live: None, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """Where the browser runs: a namespace from which nothing else can be reached than what is forwarded."""
    missing = [tool for tool in ("chromium-headless-shell", "iperf3", "ping") if shutil.which(tool) is None]
    if missing:
        skip(request, f"needs {', '.join(missing)}; `make tools` installs them")
    namespace = Namespace(())
    yield namespace
    namespace.close()


@pytest.fixture(scope="module")
def browser(desk: Namespace) -> Iterator[Browser]:
    """Start a browser."""
    # Here, because other tests do not need what it needs.
    from dashboard import chromium

    with chromium(desk) as started:
        yield started
