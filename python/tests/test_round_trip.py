"""Python objects print as TOML, and TOML as Python objects."""

from __future__ import annotations

import importlib.util
import itertools
import math
import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairgate as fg
from fairgate import _native, disciplines

TREES = [
    'Tree("fifo")',
    'Tree("fifo", limit=100, drop="head")',
    'Tree("tbf", rate="20mbit", burst="5kb", inner=Tree("fq_codel", target="5ms", ecn=False))',
    'Tree("drr", handle="1", classes=[Class(1, Tree("fifo")), Class(2, Tree("codel"))], '
    'filters=[Filter(1, dscp="EF")], default=2)',
    'Tree("htb", classes=[Class(1, rate="9mbit"), Class(10, Tree("fifo"), rate="6mbit", parent=1)])',
]


@pytest.mark.parametrize("source", TREES)
def test_a_tree_prints_as_python_and_as_toml(source: str) -> None:
    tree = eval(source, vars(fg))
    assert eval(repr(tree), vars(fg)) == tree
    assert fg.Tree.from_toml(tree.to_toml("wan")) == tree
    assert fg.Tree.from_toml(tree.to_toml("wan"), "wan") == tree
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert tree.discipline in tree._repr_html_()


def test_a_line_and_the_functions_describe_the_same() -> None:
    tree = fg.Tree.parse("tbf rate=20mbit burst=5kb / fq_codel target=5ms")
    inner = disciplines.fq_codel(target="5ms")
    assert tree == disciplines.tbf(rate="20mbit", burst="5kb", inner=inner)
    assert tree.inner == inner
    assert tree.parameters["rate"] == "20mbit"
    assert inner.parameters["interval"] == "100ms"


def test_the_functions_are_those_of_the_registry(request: pytest.FixtureRequest) -> None:
    """If this fails, run make python-disciplines."""
    root = request.config.rootpath
    name = root / "python" / "generate_disciplines.py"
    spec = importlib.util.spec_from_file_location("generate_disciplines", name)
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    own = [entry for entry in _native.disciplines() if entry["family"] != "external"]
    written = generator.generated(own)
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "python/fairgate/disciplines.py", "-"]
    formatted = subprocess.run(
        ruff, cwd=root, input=written, capture_output=True, text=True, check=True
    ).stdout
    assert (root / "python" / "fairgate" / "disciplines.py").read_text() == formatted
    assert len(disciplines.__all__) >= 40


NAMES = st.text("abcdefghijklmnopqrstuvwxyz-_ äß0123456789.\"\\'", min_size=1, max_size=12).filter(
    lambda name: name.strip() == name and "->" not in name
)
MILLIS = st.integers(0, 2000).map(lambda millis: f"{millis}ms")
RATES = st.integers(1, 10**6).map(lambda rate: f"{rate}kbit")
DRAWN = st.one_of(
    MILLIS,
    st.builds(lambda mean: {"exponential": f"{mean}ms"}, st.integers(1, 2000)),
    st.builds(
        lambda mean, shape: {"pareto": f"{mean}ms", "shape": shape}, st.integers(1, 2000), st.floats(1.01, 5)
    ),
)


def trees() -> st.SearchStrategy[fg.Tree]:
    leaf = st.one_of(
        st.builds(lambda limit: fg.Tree("fifo", limit=limit), st.integers(1, 10_000)),
        st.builds(lambda ecn: fg.Tree("fq_codel", ecn=ecn), st.booleans()),
        st.just(fg.Tree("sfq")),
    )

    def classful(inner: st.SearchStrategy[fg.Tree]) -> st.SearchStrategy[fg.Tree]:
        shaped = st.builds(lambda r, i: fg.Tree("tbf", rate=r, burst="3kb", inner=i), RATES, inner)
        drr = st.builds(
            lambda below: fg.Tree("drr", classes=[fg.Class(n, tree) for n, tree in enumerate(below, 1)]),
            st.lists(inner, min_size=1, max_size=3),
        )
        return st.one_of(shaped, drr)

    return st.recursive(leaf, classful, max_leaves=4)


@st.composite
def scenarios(draw: Any) -> fg.Scenario:
    queues = draw(st.dictionaries(NAMES, trees(), min_size=1, max_size=2))
    nodes = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    links = [
        fg.Link(
            a,
            b,
            rate=draw(RATES),
            delay_a=draw(MILLIS),
            jitter_b=draw(DRAWN),
            loss=draw(st.one_of(st.floats(0, 1), st.just(0.25))),
            queue_b=draw(st.sampled_from(sorted(queues))),
        )
        for a, b in itertools.pairwise(nodes)
    ]
    flows = [
        fg.Flow("there", nodes[0], nodes[-1], count=draw(st.integers(1, 5)), tcp={}, start=draw(DRAWN)),
        fg.Flow("back", nodes[-1], nodes[0], dscp=draw(st.integers(0, 63)), udp={"rate": draw(RATES)}),
    ]
    return fg.Scenario(
        "2s",
        queues=queues,
        links=links,
        flows=flows,
        seed=draw(st.one_of(st.none(), st.integers(0, 2**63 - 1))),
        ecmp=draw(st.one_of(st.none(), st.booleans())),
    )


@settings(max_examples=25, deadline=None)
@given(scenarios())
def test_a_scenario_goes_to_toml_and_back(scenario: fg.Scenario) -> None:
    text = scenario.to_toml()
    again = fg.Scenario.from_toml(text)
    assert again == scenario
    assert again.to_toml() == text
    assert eval(repr(scenario), vars(fg)) == scenario
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    for name, tree in scenario.queues.items():
        assert again.queues[name] == tree
    assert again.links == scenario.links
    assert again.flows == scenario.flows


VALUES = st.recursive(
    st.one_of(
        st.text(st.characters(exclude_categories=("Cs",))),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
    ),
    lambda below: st.one_of(
        st.lists(below, max_size=3),
        st.dictionaries(st.text(st.characters(exclude_categories=("Cs",)), max_size=5), below, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), VALUES, max_size=4))
def test_all_of_toml_is_written_as_the_standard_library_reads_it(table: dict[str, Any]) -> None:
    import tomllib

    from fairgate import _toml

    assert tomllib.loads(_toml.dumps(table)) == table


def test_files_of_the_repository_are_read_and_written(request: pytest.FixtureRequest) -> None:
    examples = request.config.rootpath / "examples"
    files = sorted(examples.glob("*.toml"))
    assert len(files) >= 3
    for file in files:
        fg.check(file)
    scenario = fg.Scenario.read(examples / "dumbbell.toml")
    assert fg.Scenario.from_toml(scenario.to_toml()) == scenario
    assert math.isclose(scenario.run().goodput_bps, scenario.replace(seed=1).run().goodput_bps)
