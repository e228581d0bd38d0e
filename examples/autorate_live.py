#!/usr/bin/env python3
"""Measure autorate beside fixed rates on a real line whose rate changes every second.

    sudo examples/autorate_live.py target/release/fairgate [LTE|steps [SECONDS]]

Three network namespaces: a host, the line and a server. The line is a `fairgate run` with a shaper over a fifo
of 1000 packets and 10 ms each way; its rate follows a file that this program writes every second, with the
capacities of autorate.py at each full second. On the host, another run shapes what it sends: at a fixed rate, or by
pings to the server. Four TCP connections (CUBIC, whatever the machine's default is: BBR sends on when packets
are dropped) upload, and a ping measures the round trip. Needs ip, iperf3, ping.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import autorate

PROGRAM = Path(sys.argv[1]).resolve()
NAME = sys.argv[2] if len(sys.argv) > 2 else "LTE"
SECONDS = int(sys.argv[3]) if len(sys.argv) > 3 else 60
CAPACITIES = [rate for time, rate in autorate.LINES[NAME] if time == int(time)]
PREFIX = f"fgar{os.getpid()}"
HOST, LINE, SERVER = (f"{PREFIX}{end}" for end in ("h", "l", "s"))
ADDRESS = {HOST: "10.99.0.1", SERVER: "10.99.0.2"}

LINE_FILE = """
[queue.line]
discipline = "tbf"
rate = "10mbit"
burst = "30kb"
inner = { discipline = "fifo", limit = 1000 }

[run]
left = "left"
right = "right"
left_to_right = "line"
delay = "10ms"

[run.autorate]
file = "rates"
left_to_right = { min = "1mbit", base = "10mbit", max = "100mbit" }
tuning = { interval = "20ms" }
"""

HOST_FILE = """
[queue.up]
discipline = "tbf"
rate = "RATE"
burst = "30kb"
inner = { discipline = "fq_codel" }

[run]
device = "eth0"
egress = "up"
"""

FOLLOWS = f"""
[run.autorate]
reflectors = ["{ADDRESS[SERVER]}"]
egress = {{ min = "1mbit", base = "8mbit", max = "24mbit" }}
"""


def call(*words: str) -> None:
    """Run a command, which must succeed."""
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def build() -> None:
    """Make the namespaces and the links between them."""
    for name in (HOST, LINE, SERVER):
        call("ip", "netns", "add", name)
        call("ip", "-n", name, "link", "set", "lo", "up")
    for end, port in ((HOST, "left"), (SERVER, "right")):
        pair = ("link", "add", port, "netns", LINE, "type", "veth", "peer", "name", "eth0", "netns", end)
        call("ip", *pair)
        call("ip", "-n", LINE, "link", "set", port, "up")
        call("ip", "-n", end, "address", "add", f"{ADDRESS[end]}/24", "dev", "eth0")
        call("ip", "-n", end, "link", "set", "eth0", "up")


def start(namespace: str, *words: str) -> subprocess.Popen:
    """Start a program in a namespace."""
    command = ["ip", "netns", "exec", namespace, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def run(namespace: str, folder: Path, text: str) -> subprocess.Popen:
    """Start a run and wait until it forwards."""
    file, socket = folder / "run.toml", folder / "sock"
    file.write_text(text)
    program = start(namespace, str(PROGRAM), "run", "--json", "--socket", str(socket), str(file))
    while not socket.exists():
        time.sleep(0.05)
    return program


def end(program: subprocess.Popen) -> str:
    """End a run, and return what it has printed."""
    program.terminate()
    return program.communicate()[0]


def measure(title: str, text: str) -> None:
    """Measure a case and print its figures."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        rates = Path(one) / "rates"
        rates.write_text("10mbit\n")
        line = run(LINE, Path(one), LINE_FILE)
        host = run(HOST, Path(other), text)
        server = start(SERVER, "iperf3", "--server", "--one-off")
        time.sleep(1)
        lasts = ("-t", str(SECONDS), "-O", "2")
        load = start(HOST, "iperf3", "-c", ADDRESS[SERVER], "-C", "cubic", "-P", "4", *lasts, "-J")
        ping = start(HOST, "ping", "-n", "-i", "0.05", "-w", str(SECONDS + 2), ADDRESS[SERVER])
        capacities, begin = [], time.monotonic()
        for second in range(SECONDS + 2):
            rate = CAPACITIES[second % len(CAPACITIES)]
            new = rates.with_suffix(".new")
            new.write_text(f"{round(rate * 1000)}kbit\n")
            new.rename(rates)
            capacities.append(rate)
            time.sleep(max(0, begin + second + 1 - time.monotonic()))
        report = json.loads(load.communicate()[0])
        answers = [text for text in ping.communicate()[0].splitlines() if "time=" in text]
        times = [float(text.split("time=")[1].split()[0]) for text in answers]
        status = json.loads(end(host))
        end(line)
        server.terminate()
        goodput = report["end"]["sum_received"]["bits_per_second"] / 1e6
        capacity = statistics.mean(capacities[2:])
        times.sort()
        # Of 1514 bytes as the line counts them, 1448 are payload.
        used = 100 * goodput * 1514 / 1448 / capacity
        changes = status.get("autorate", {}).get("changes", 0)
        print(
            f"{title:12} p50 {times[len(times) // 2]:7.1f} ms  p95 {times[int(len(times) * 0.95)]:7.1f} ms  "
            f"utilisation {used:5.1f} %  rate changes {changes}",
            flush=True,
        )


def main() -> None:
    """Measure fixed rates and autorate, and remove everything."""
    try:
        build()
        for rate in ("4mbit", "8mbit", "12mbit", "20mbit"):
            measure(f"fixed {rate}", HOST_FILE.replace("RATE", rate))
        measure("autorate", HOST_FILE.replace("RATE", "8mbit") + FOLLOWS)
    finally:
        for name in (HOST, LINE, SERVER):
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
