"""Packet scheduling and queue management: the same disciplines simulated, compared and driven by hand.

The package is the library and the simulator of ``fairgate``. What it describes is a configuration file of the
program, as Python objects or as TOML: each prints as the other.

Examples
--------
>>> import fairgate as fg
>>> scenario = fg.Scenario(
...     "10s",
...     queues={"wan": fg.Tree("fq_codel", target="5ms")},
...     links=[fg.Link("home", "server", rate="20mbit", delay="10ms", queue_b="wan")],
...     flows=[fg.Flow("download", "server", "home", tcp={})],
... )
>>> results = scenario.run()
>>> len(results.flows)
1
"""

from __future__ import annotations

from ._native import __version__
from .comparison import Comparison, compare, compare_trace
from .discipline import Discipline, Packet, Parameter
from .errors import (
    BugError,
    DisciplineError,
    FairgateError,
    InputError,
    MissingPackageError,
    Problem,
    SimulationError,
    SweepError,
)
from .listing import list
from .network import Capture, Cell, Link, Node, Observe
from .questions import Answer, bounds, reproduce, theory
from .queue import Queue
from .results import Results, Table
from .scenario import Scenario, check
from .sweeps import Sweep, sweep
from .traffic import Flow
from .trees import Class, Filter, Tree, from_dummynet, from_tc

__all__ = [
    "Answer",
    "BugError",
    "Capture",
    "Cell",
    "Class",
    "Comparison",
    "Discipline",
    "DisciplineError",
    "FairgateError",
    "Filter",
    "Flow",
    "InputError",
    "Link",
    "MissingPackageError",
    "Node",
    "Observe",
    "Packet",
    "Parameter",
    "Problem",
    "Queue",
    "Results",
    "Scenario",
    "SimulationError",
    "Sweep",
    "SweepError",
    "Table",
    "Tree",
    "__version__",
    "bounds",
    "check",
    "compare",
    "compare_trace",
    "from_dummynet",
    "from_tc",
    "list",
    "reproduce",
    "sweep",
    "theory",
]
