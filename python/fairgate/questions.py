"""Theory, bounds, and the papers' experiments."""

from __future__ import annotations

import tempfile
from os import PathLike
from typing import Any

from . import _arguments
from ._answers import answer, option

__all__ = ["Answer", "bounds", "reproduce", "theory"]


class Answer(dict[str, Any]):
    """A document of ``docs/json.md``: a dict with a table for notebooks."""

    def __init__(self, document: dict[str, Any], header: list[str], rows: list[list[str]]) -> None:
        super().__init__(document)
        self._header, self._rows = header, rows

    def _repr_html_(self) -> str:
        from ._html import grid

        return grid(self._header, self._rows)


def theory(question: str, *, seeds: int | None = None, rate: str | None = None, **options: object) -> Answer:
    """Compute formulas for a queue, and measure the real code beside them, as ``fairgate-lab theory`` does.

    Parameters
    ----------
    question : str
        ``mm1``, ``md1``, ``pdrr`` or ``sqf``.
    seeds : int, optional
        How many runs are measured.
    rate : str, optional
        The rate of the link.
    **options
        The options of the question: ``load=0.9``, ``packet="1250b"``, ``greedy=5``; of sqf ``flows``,
        ``buffer``, ``packet``, ``time``.

    Returns
    -------
    Answer
        The document ``fairgate.theory/1``: `x` and `rows`, each with its `values`.

    Examples
    --------
    >>> answer = theory("mm1", load=0.5, seeds=2)
    >>> [value["name"] for value in answer["rows"][0]["values"]]
    ['M/M/1', 'measured']
    """
    given = [word for name, value in options.items() for word in option(name.replace("_", "-"), value)]
    question = _arguments.text("the question", question)
    document = answer(
        ["theory", question, *given, *option("seeds", seeds), *option("rate", rate)], is_lab=True
    )
    names = [value["name"] for value in document["rows"][0]["values"]] if document["rows"] else []
    rows = [
        [f"{row['x']:.4g}", *("" if v["value"] is None else f"{v['value']:.4g}" for v in row["values"])]
        for row in document["rows"]
    ]
    return Answer(document, [document["x"], *names], rows)


def bounds(*schedulers: str, effort: str = "usual", seed: int = 1) -> Answer:
    """Measure the worst-case fairness of schedulers beside published bounds, as ``fairgate-lab bounds``.

    Parameters
    ----------
    *schedulers : str
        Which ones. All by default.
    effort : str
        ``quick``, ``usual`` or ``thorough``.
    seed : int
        The seed of all traffic.

    Returns
    -------
    Answer
        The document ``fairgate.bounds/1``.
    """
    names = [_arguments.text("a scheduler", name) for name in schedulers]
    document = answer(["bounds", *option("effort", effort), *option("seed", seed), "--", *names], is_lab=True)
    rows = [
        [
            entry["scheduler"],
            row["measure"],
            row["formula"] or "",
            {None: "", True: "yes", False: "no"}[row["within"]],
        ]
        for entry in document["schedulers"]
        for row in entry["measures"]
    ]
    return Answer(document, ["scheduler", "measure", "bound", "within"], rows)


def reproduce(
    *experiments: str | PathLike[str],
    seeds: int | None = None,
    quick: bool = False,
    out: str | PathLike[str] | None = None,
) -> Answer:
    """Repeat the papers' experiments: measured beside published values, as ``fairgate-lab reproduce`` does.

    Instructions are not counted, because the program counts its own.

    Parameters
    ----------
    *experiments : str or path
        Which ones: names, or files of your own. Without any, they are listed.
    seeds : int, optional
        How many runs of a random experiment.
    quick : bool
        Whether to measure only enough to see that it works. Claims may fail for lack of data.
    out : path, optional
        A folder for result.json, CSV files, figures and pages. None by default.

    Returns
    -------
    Answer
        The document ``fairgate.reproduce/1``, or ``fairgate.experiments/1`` for the list.
    """
    if not experiments:
        listed = answer(["reproduce"], is_lab=True)
        rows = [[e["id"], e["paper"], e["place"], e["title"]] for e in listed["experiments"]]
        return Answer(listed, ["id", "paper", "where", "what"], rows)
    with tempfile.TemporaryDirectory(prefix="fairgate-") as folder:
        names = [_arguments.path("an experiment", experiment) for experiment in experiments]
        document = answer(
            [
                "reproduce",
                *option("seeds", seeds),
                *(["--quick"] if quick else []),
                *option("out", folder if out is None else _arguments.path("`out`", out)),
                "--",
                *names,
            ],
            is_lab=True,
        )
    rows = [
        [entry["id"], claim["text"], claim["verdict"]]
        for entry in document["experiments"]
        for claim in entry["claims"]
    ]
    return Answer(document, ["experiment", "claim", "verdict"], rows)
