#!/usr/bin/env python3
"""Write autorate.toml: lines of changing capacity, each with fixed rates and with autorate.

The capacities are synthetic, because recorded ones that may be copied were not at hand. With a folder of
recorded lines, the file is written there instead, with these lines:

    examples/autorate.py TRACES && fairgate-lab reproduce TRACES/autorate.toml

Each line has two files in the format of mahimahi, NAME.down and NAME.up, as in the folder `traces` of
https://github.com/ravinet/mahimahi.

What the synthetic capacities are made from:

lte        The model of Winstein, Sivaraman and Balakrishnan, "Stochastic forecasts achieve high throughput
           and low delay over cellular networks" (NSDI 2013), section 3.1: the rate is a Brownian motion
           with a noise power of 200 packets/s per root second, between 0 and 1000 packets of 1500 bytes a
           second. Here both are doubled, for a line of up to 24 Mbit/s, and the rate is reflected at
           1 Mbit/s, because a line without any capacity shows nothing but its outages.
starlink   A satellite is assigned anew every 15 s (Tanveer and others, "Making sense of constellations",
           CoNEXT 2023). Each assignment has a mean capacity of its own, from 6 to 24 Mbit/s, as uploads
           have. Within it the capacity of each second is log-normal around the mean with sigma 0.2, and a
           new assignment begins with 200 ms at a tenth. The range and both figures are ours.
steps      A new rate every second, from 5 to 20 Mbit/s, independent of the last one. Nothing is harder: what
           was learned is worth nothing after a second.
"""

import random
import sys
from pathlib import Path

SECONDS = 120


def lte() -> list[tuple[float, float]]:
    """Returns times in seconds and capacities in Mbit/s, every 250 ms."""
    draw = random.Random(3)
    step, least, most, power = 0.25, 1.0, 24.0, 4.8
    rate, points = 12.0, []
    for number in range(int(SECONDS / step)):
        points.append((number * step, rate))
        rate += draw.gauss(0, power * step**0.5)
        if rate < least:
            rate = 2 * least - rate
        if rate > most:
            rate = 2 * most - rate
        rate = min(max(rate, least), most)
    return points


def starlink() -> list[tuple[float, float]]:
    """Returns times in seconds and capacities in Mbit/s: every second, and at handovers."""
    draw = random.Random(5)
    points, mean = [], 0.0
    for second in range(SECONDS):
        if second % 15 == 0:
            mean = draw.uniform(6, 24)
            points.append((second, mean / 10))
        rate = mean * draw.lognormvariate(0, 0.2)
        points.append((second + 0.2 if second % 15 == 0 else second, rate))
    return points


def steps() -> list[tuple[float, float]]:
    """Returns times in seconds and capacities in Mbit/s, every second."""
    draw = random.Random(7)
    return [(second, draw.uniform(5, 20)) for second in range(SECONDS)]


def weighted(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Returns how long each capacity holds, and the capacity, sorted by capacity."""
    ends = [time for time, _ in points[1:]] + [float(SECONDS)]
    return sorted((rate, end - start) for (start, rate), end in zip(points, ends))


def quantile(points: list[tuple[float, float]], share: float) -> float:
    """Returns the capacity below which the line is for this share of the time."""
    passed = 0.0
    for rate, length in weighted(points):
        passed += length
        if passed >= share * SECONDS:
            return rate
    return points[-1][1]


def mean(points: list[tuple[float, float]]) -> float:
    """Returns the mean capacity."""
    return sum(rate * length for rate, length in weighted(points)) / SECONDS


def kbit(rate: float) -> str:
    """Returns a rate as a configuration file has it, to the kbit/s."""
    return f'"{round(rate * 1000)}kbit"'


def schedule(points: list[tuple[float, float]]) -> str:
    """Returns the value of a link's rate."""
    entries = [f'["{time:g}s", {kbit(rate)}]' for time, rate in points]
    rows = [", ".join(entries[start : start + 4]) for start in range(0, len(entries), 4)]
    return "{ schedule = [\n    " + ",\n    ".join(rows) + f'\n], repeat = "{SECONDS}s" }}'


def line(name: str, points: list[tuple[float, float]]) -> str:
    """Returns a case of the experiment, with the line's figures in a comment."""
    figures = [quantile(points, 0.05), mean(points), quantile(points, 1)]
    low, middle, high = (f"{figure:.1f}" for figure in figures)
    return (
        f"# {low} Mbit/s or more for 95 % of the time, {middle} on average, {high} at most.\n"
        f'[[experiment.dimension.cases]]\nname = "{name}"\n\n'
        f'[experiment.dimension.cases.set]\n"simulate.link.line.rate" = {schedule(points)}'
    )


LINES = {"LTE": lte(), "Starlink": starlink(), "steps": steps()}

TEXT = """\
# Lines whose capacity changes, with a shaper of a fixed rate and with one that follows. Written by
# autorate.py, which says what the capacities are made from. `fairgate-lab reproduce examples/autorate.toml` runs
# all cases. `fairgate simulate examples/autorate.toml` runs the one below: a new rate every second.
#
#   home ---- router ---- modem ~~~~~ isp ---- server
#      shaper     shaper   the line
#
# The modem and the provider have a queue of 1000 packets each. Shapers of the router keep it empty, or not.

[experiment]
paper = "autorate"
place = "lines of changing capacity"
title = "Autorate beside fixed rates on lines of changing capacity"
about = \"\"\"Four TCP connections load one direction of a line whose capacity changes. A shaper over fq_codel \\
in each direction has a fixed rate, or follows. A call in the same direction has a delay of 20 ms \\
without load. Both directions of a line have the same capacity.\"\"\"
quick = "20s"

[[experiment.open]]
parameter = "capacity"
value = "synthetic: the model of NSDI 2013 for LTE, assignments of 15 s for Starlink, and steps of a second"
why = "Recorded capacities that may be copied were not at hand."

[[experiment.show]]
id = "better"
text = "on LTE, autorate has a quarter of the delay (p95) that a rate below the mean has, and uses more"
holds = [
    { value = ["delay p95 of call", "LTE, *, autorate"], of = [
        "delay p95 of call",
        "LTE, *, 8 Mbit/s",
    ], to = 0.25 },
    { value = ["goodput of load", "LTE, *, autorate"], of = [
        "goodput of load",
        "LTE, *, 8 Mbit/s",
    ], from = 1 },
]

[[experiment.dimension]]
name = "line"

LINES

[[experiment.dimension]]
name = "direction"

[[experiment.dimension.cases]]
name = "down"

[experiment.dimension.cases.set]
"simulate.flow.load.from" = "server"
"simulate.flow.load.to" = "home"
"simulate.flow.call.from" = "server"
"simulate.flow.call.to" = "home"

[[experiment.dimension.cases]]
name = "up"

[experiment.dimension.cases.set]
"simulate.flow.load.from" = "home"
"simulate.flow.load.to" = "server"
"simulate.flow.call.from" = "home"
"simulate.flow.call.to" = "server"

[[experiment.dimension]]
name = "rate"
cases = [
    { name = "4 Mbit/s", set = { "queue.wan.rate" = "4mbit", "simulate.autorate" = [] } },
    { name = "8 Mbit/s", set = { "queue.wan.rate" = "8mbit", "simulate.autorate" = [] } },
    { name = "12 Mbit/s", set = { "queue.wan.rate" = "12mbit", "simulate.autorate" = [] } },
    { name = "20 Mbit/s", set = { "queue.wan.rate" = "20mbit", "simulate.autorate" = [] } },
    { name = "autorate", set = {} },
]

[[experiment.measure]]
figure = "delay_p95"
of = ["call"]

[[experiment.measure]]
figure = "utilisation"
of = ["isp->modem", "modem->isp"]

[[experiment.measure]]
figure = "goodput"
of = ["load"]
unit = "Mbit/s"

[queue.wan]
discipline = "tbf"
rate = "8mbit"
burst = "30kb"
inner = { discipline = "fq_codel" }

[simulate]
duration = "120s"
measure = ["10s", "120s"]

[[simulate.link]]
a = "server"
b = "isp"
rate = "1gbit"
delay = "10ms"

[[simulate.link]]
name = "line"
a = "isp"
b = "modem"
rate = STEPS
delay = "10ms"

[[simulate.link]]
a = "modem"
b = "router"
rate = "1gbit"
queue_b = "wan"

[[simulate.link]]
a = "router"
b = "home"
rate = "1gbit"
queue_a = "wan"

[[simulate.autorate]]
interface = "router->home"
probe = "ping"
rate = { min = "1mbit", base = "8mbit", max = "24mbit" }

[[simulate.autorate]]
interface = "router->modem"
probe = "ping"
rate = { min = "1mbit", base = "8mbit", max = "24mbit" }

[[simulate.flow]]
name = "ping"
from = "home"
to = "server"
ping = { interval = "25ms" }

[[simulate.flow]]
name = "call"
from = "server"
to = "home"
udp = { rate = "64kbit", size = "160b" }

[[simulate.flow]]
name = "load"
from = "server"
to = "home"
count = 4
tcp = {}
"""


def synthetic() -> str:
    """Returns the experiment with the synthetic lines."""
    lines = "\n\n".join(line(name, points) for name, points in LINES.items())
    return TEXT.replace("LINES", lines).replace("STEPS", schedule(LINES["steps"]))


def recorded(names: list[str]) -> str:
    """Returns the experiment with recorded lines. They are slower, and their directions differ."""

    def rates(name: str, key: str) -> str:
        ends = {"a": "down", "b": "up"}
        return "\n".join(f'{key % end} = {{ trace = "{name}.{way}" }}' for end, way in ends.items())

    def case(name: str) -> str:
        head = f'[[experiment.dimension.cases]]\nname = "{name}"\n\n[experiment.dimension.cases.set]\n'
        return head + rates(name, '"simulate.link.line.rate_%s"')

    text = HEAD + TEXT[TEXT.index("#\n") :].replace("LINES", "\n\n".join(map(case, names)))
    text = text.replace("Both directions of a line have the same capacity.", "The lines are recorded.")
    text = text.replace("rate = STEPS", rates(names[0], "rate_%s"))
    begin, end = text.index("[[experiment.open]]"), text.index("[[experiment.dimension]]")
    text = text[:begin] + SHOWN.replace("LINE", names[0]) + text[end:]
    begin, end = text.index("cases = [\n"), text.index("[[experiment.measure]]")
    text = text[:begin] + RATES + text[end:]
    return text.replace(
        '{ min = "1mbit", base = "8mbit", max = "24mbit" }',
        '{ min = "500kbit", base = "4mbit", max = "60mbit" }',
    )


HEAD = """\
# Recorded lines, with a shaper of a fixed rate and with one that follows. Written by autorate.py, an example
# of Fairgate. `fairgate-lab reproduce` runs all cases of this file.
"""

SHOWN = """\
[[experiment.show]]
id = "shorter"
text = "on LINE, autorate has at most half of the delay (p95) that 4 Mbit/s have"
holds = [
    { value = ["delay p95 of call", "LINE, *, autorate"], of = [
        "delay p95 of call",
        "LINE, *, 4 Mbit/s",
    ], to = 0.5 },
]

"""

RATES = """\
cases = [
    { name = "1 Mbit/s", set = { "queue.wan.rate" = "1mbit", "simulate.autorate" = [] } },
    { name = "2 Mbit/s", set = { "queue.wan.rate" = "2mbit", "simulate.autorate" = [] } },
    { name = "4 Mbit/s", set = { "queue.wan.rate" = "4mbit", "simulate.autorate" = [] } },
    { name = "8 Mbit/s", set = { "queue.wan.rate" = "8mbit", "simulate.autorate" = [] } },
    { name = "16 Mbit/s", set = { "queue.wan.rate" = "16mbit", "simulate.autorate" = [] } },
    { name = "autorate", set = {} },
]

"""


def main() -> None:
    """Writes the file beside this one, or into the folder of recorded lines."""
    if len(sys.argv) == 1:
        Path(__file__).with_suffix(".toml").write_text(synthetic())
        return
    folder = Path(sys.argv[1])
    names = sorted(file.stem for file in folder.glob("*.down") if file.with_suffix(".up").exists())
    if not names:
        sys.exit(f"{folder} has no line: it needs files NAME.down and NAME.up in the format of mahimahi")
    (folder / "autorate.toml").write_text(recorded(names))


if __name__ == "__main__":
    main()
