"""The verdicts on the papers' claims, in the pages of the experiments.

A page has a line `<!-- verdicts of ID -->` where the table of a run stands, or of both runs if the experiment
also runs with real traffic.
"""

import csv
import re
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
VERDICTS = ROOT / "docs/experiments/verdicts.csv"
PLACE = re.compile(r"<!-- verdicts of ([\w-]+(?: live)?) -->")

# A run: the row that names it, and those of its claims.
Rows = list[dict[str, str]]


def write(folder: Path) -> None:
    """Write the tables into the pages of `folder`."""
    runs: dict[str, Rows] = {}
    with VERDICTS.open(newline="") as file:
        for row in csv.DictReader(file):
            runs.setdefault(row["experiment"], []).append(row)
    texts = claims()
    shown: set[str] = set()

    def table_of(found: re.Match[str]) -> str:
        key = found[1]
        shown.add(key)
        if key not in runs:
            live = key.endswith(" live")
            command = "make verdicts-live" if live else "make verdicts"
            kind = "with real traffic" if live else "simulated"
            return f"*Not run {kind} since the experiment changed: `{command}` judges it again.*"
        return table(runs[key], texts[key.removesuffix(" live")])

    for page in sorted(folder.glob("*.md")):
        page.write_text(PLACE.sub(table_of, page.read_text()))
    if missing := runs.keys() - shown:
        raise RuntimeError(f"no page has a place for the verdicts of {', '.join(sorted(missing))}")


def claims() -> dict[str, dict[str, str]]:
    """Return the text of each claim, and of each statement of ours, by experiment and name."""
    found = {}
    for file in ROOT.glob("crates/*/experiments/*/*.toml"):
        experiment = tomllib.loads(file.read_text()).get("experiment", {})
        texts = {claim["id"]: with_remarks(claim) for claim in experiment.get("show", [])}
        ours = {statement["id"]: statement["text"] for statement in experiment.get("instead", [])}
        found[file.stem] = texts | {name: f"*Instead:* {text}" for name, text in ours.items()}
    return found


def with_remarks(claim: dict[str, str]) -> str:
    """Return the text of a claim, with what it depends on, the limits of ours, and what was tried."""
    open_parameters = {"open": ", ".join(claim["open"])} if "open" in claim else {}
    named = (("Open", "open"), ("Limit of ours", "ours"), ("Tried", "tried"))
    texts = claim | open_parameters
    remarks = (f"*{name}:* {texts[key].rstrip('.')}" for name, key in named if key in texts)
    return ". ".join((claim["text"], *remarks))


def table(rows: Rows, texts: dict[str, str]) -> str:
    """Return the verdicts of a run as Markdown."""
    run, *judged = rows
    kind = "With real traffic" if run["experiment"].endswith(" live") else "Simulated"
    title = f"**{kind}: {run['verdict']}** (`{run['found']}`)"
    lines = [title, "", "| verdict | claim | found |", "|---|---|---|"]
    for row in judged:
        verdict = row["verdict"]
        verdict = f"**{verdict}**" if verdict.startswith("not") else verdict
        cells = (verdict, texts[row["claim"]], row["found"])
        escaped = (cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells)
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n".join(lines)
