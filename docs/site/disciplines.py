"""A page for each discipline.

It has an example, pictures of its behaviour, its verdict in `compare`, its parameters and its cost.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from program import Program

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

# The groups of traffic of `fairgate compare`, and the figure that tells how well each one is served.
VERDICT = "99 % of the packets arrive within"


# A row of the table in docs/disciplines.md: name, advice, source.
ROW = re.compile(r"^\| (\w+) \| (.*?) \| ?(.*?) ?\|$", re.MULTILINE)


def sources() -> dict[str, str]:
    """Return the source of each discipline, from the table in docs/disciplines.md."""
    rows = ROW.findall((ROOT / "docs/disciplines.md").read_text())
    return {name: source for name, _, source in rows}


def costs() -> dict[str, str]:
    """Return the row of docs/performance.md for each discipline: a table with its head."""
    text = (ROOT / "docs/performance.md").read_text()
    named = {}
    for block in ("pairs", "trees"):
        found = re.search(rf"<!-- figures: {block} -->\n\n(.*?)\n\n", text, re.DOTALL)
        if found is None:
            raise RuntimeError(f"docs/performance.md has no table {block}")
        head, rule, *rows = found.group(1).split("\n")
        named.update({row.split("|")[1].strip(): "\n".join([head, rule, row]) for row in rows})
    return named


class Disciplines:
    """The disciplines of the program."""

    def __init__(self, program: Program, folder: Path) -> None:
        """`folder` is the folder of the site's sources."""
        self.program = program
        self.folder = folder / "disciplines"
        self.folder.mkdir(parents=True)
        self.examples = tomllib.loads((HERE / "examples.toml").read_text())
        self.sources = sources()
        self.costs = costs()
        self.fifo: dict[str, Any] | None = None
        self.entries: dict[str, list[dict[str, Any]]] = {}
        for entry in program.document("list")["disciplines"]:
            self.entries.setdefault(entry["name"], []).append(entry)

    def write(self) -> list[str]:
        """Write all pages, and links to them into the overview. Returns the names of the disciplines."""
        missing = [name for name in self.entries if name not in self.sources]
        if missing:
            raise RuntimeError(f"the table in docs/disciplines.md misses {', '.join(missing)}")
        verdicts = self.verdicts()
        for name in self.entries:
            (self.folder / f"{name}.md").write_text(self.page(name, verdicts))
        overview = self.folder.parent / "disciplines.md"
        overview.write_text(ROW.sub(r"| [\1](disciplines/\1.md) | \2 | \3 |", overview.read_text()))
        return list(self.entries)

    def page(self, name: str, verdicts: dict[str, str]) -> str:
        """Return the page of one discipline."""
        entries = self.entries[name]
        example = self.example(name)
        parts = [f"# {name}", entries[0]["summary"] + "."]
        parts += [f"**When**: {entries[0]['when']}", f"**Source**: {self.sources[name]}."]
        parts += ["## Example", f"```toml\n[queue.line]\n{example.strip()}\n```"]
        parts += self.behaviour(name, example)
        if name in verdicts:
            parts += ["## In `fairgate compare`", verdicts[name]]
        parts.append("## Parameters")
        for entry in entries:
            if len(entries) > 1:
                parts.append(f"### {'With classes' if entry['holds'] == 'classes' else 'For flows'}")
            parts.append(parameters(entry["parameters"]))
            if entry["class_parameters"]:
                parts += ["#### Of each class", parameters(entry["class_parameters"])]
        parts += ["## Cost", self.cost(name)]
        return "\n\n".join(parts) + "\n"

    def cost(self, name: str) -> str:
        """Return what an enqueue and a dequeue cost."""
        how = "One enqueue and one dequeue; [Performance](../performance.md) says how it is measured."
        if name in self.costs:
            return f"{how}\n\n{self.costs[name]}"
        return (
            f"{how} It was added since the last measurement: `cargo bench -p fairgate --bench pairs {name}`."
        )

    def example(self, name: str) -> str:
        """Return the queue of the example."""
        if name in self.examples:
            return str(self.examples[name]["text"])
        return f'discipline = "{name}"\n'

    def behaviour(self, name: str, example: str) -> list[str]:
        """Simulate the example and draw what the flows get, and how long their packets take."""
        scenario = self.folder / f"{name}.toml"
        flow = "[[simulate.flow]]\n"
        of_flows = self.examples.get(name, {}).get("of_flows", "")
        network = (HERE / "behaviour.toml").read_text().replace(flow, f"{flow}{of_flows}\n")
        scenario.write_text(f"[queue.line]\n{example}\n{network}")
        results = self.folder / f"{name}.json"
        self.program.text("simulate", str(scenario), "--out", str(results))
        parts = [
            "## Behaviour",
            "A home's line of 10 Mbit/s with a call, two downloads, and from 5 s to 25 s a stream of 4 "
            f"Mbit/s that does not give way. [The scenario]({name}.toml).",
        ]
        for quantity, caption in [("throughput", "What each flow gets"), ("delay", "How long packets take")]:
            picture = f"{name}-{quantity}.svg"
            self.program.text("plot", str(results), "--of", quantity, "--out", str(self.folder / picture))
            parts.append(f"![{caption} under {name}]({picture})")
        if name in self.examples:
            # It needs parameters, so it has no place in the table of `verdicts`.
            parts += ["## Compared", self.beside_fifo(name, json.loads(results.read_text()))]
        results.unlink()
        return parts

    def beside_fifo(self, name: str, results: dict[str, Any]) -> str:
        """Return what each group gets in the network of the pictures, and what it gets of a fifo."""
        if self.fifo is None:
            scenario = self.folder.parent / "fifo.toml"
            scenario.write_text(f'[queue.line]\ndiscipline = "fifo"\n{(HERE / "behaviour.toml").read_text()}')
            self.fifo = self.program.document("simulate", str(scenario))
            scenario.unlink()
        groups = [group["name"] for group in results["groups"]]
        rows = []
        for queue, found in ((name, results), ("fifo", self.fifo)):
            rate = [f"{group['throughput_bps'] / 1e6:.2f}" for group in found["groups"]]
            late = [delay(group["delay"]) for group in found["groups"]]
            loss = [f"{100 * group['loss_ratio']:.1f}" for group in found["groups"]]
            rows += [
                f"| {queue}: Mbit/s | {' | '.join(rate)} |",
                f"| {VERDICT}, ms | {' | '.join(late)} |",
                f"| lost, % | {' | '.join(loss)} |",
            ]
        words = "The example in the network of the pictures, and a fifo of 1000 packets in its place."
        return "\n".join([words, "", f"| | {' | '.join(groups)} |", "|---|" + "--:|" * len(groups), *rows])

    def verdicts(self) -> dict[str, str]:
        """Compare all disciplines that need no parameters, and return a table for each."""
        plain = [
            name
            for name, entries in self.entries.items()
            if name not in self.examples and any(entry["holds"] == "none" for entry in entries)
        ]
        arguments = [word for name in plain for word in ("--queue", name)]
        compared = self.program.document("compare", "--duration", "20s", *arguments)
        groups = [group["name"] for group in compared["groups"]]
        tables = {}
        for discipline in compared["disciplines"]:
            head = f"| | {' | '.join(groups)} |"
            rule = "|---|" + "--:|" * len(groups)
            rate = [f"{group['throughput_bps'] / 1e6:.2f}" for group in discipline["groups"]]
            late = [delay(group["delay"]) for group in discipline["groups"]]
            loss = [f"{100 * group['loss']:.1f}" for group in discipline["groups"]]
            rows = [
                f"| Mbit/s | {' | '.join(rate)} |",
                f"| {VERDICT}, ms | {' | '.join(late)} |",
                f"| lost, % | {' | '.join(loss)} |",
            ]
            words = (
                f"An evening at home on {compared['rate_bps'] // 1_000_000} Mbit/s, the first 20 s of it. "
            )
            words += f"The link is used to {100 * discipline['utilisation']:.0f} %; Jain's index of the "
            words += f"greedy flows is {discipline['fairness']:.2f}."
            tables[discipline["name"]] = "\n".join([words, "", head, rule, *rows])
        return tables


def delay(figures: dict[str, Any] | None) -> str:
    """Return the 99th percentile in milliseconds."""
    return "" if figures is None else f"{figures['p99_ns'] / 1e6:.1f}"


def parameters(all_of_them: list[dict[str, Any]]) -> str:
    """Return a table of parameters."""
    if not all_of_them:
        return "None."
    lines = ["| parameter | default | allowed | meaning |", "|---|---|---|---|"]
    for parameter in all_of_them:
        default = "required" if parameter["required"] else f"`{parameter['default']}`"
        allowed = parameter["allowed"].replace("|", "\\|")
        meaning = parameter["meaning"].replace("|", "\\|")
        lines.append(f"| `{parameter['name']}` | {default} | {allowed} | {meaning} |")
    return "\n".join(lines)
