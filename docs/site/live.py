"""What the commands of live runs print: `live.py PROGRAM`, in a network namespace of its own.

The interfaces of the examples, `eth0` and `eth1`, are virtual ones. They disappear with the namespace.
"""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from program import Program

ROOT = Path(__file__).parent.parent.parent

# The run that is asked, and what it is asked. Its class for hosts makes the largest documents.
ASKED = "examples/isp.toml"
QUESTIONS: list[tuple[str, ...]] = [
    ("status",),
    ("show",),
    ("queue", "show"),
    ("class", "add", "--from", "eth0", "50", "parent=1", "rate=5mbit", "/", "fifo"),
    ("filter", "add", "--from", "eth0", "class=50", "protocol=tcp", "destination_port=80"),
]
# Runs that end. A run prints its last status. The second one has variables of all kinds, and drops packets.
OTHER_RUNS = ["examples/home.toml", "docs/site/run.toml"]
FOLLOW = ("status", "--follow")
# The machine may have something that is worth a warning.
DOCTOR = ("doctor", "--for", "300ms")
# By then the run has been changed.
DIFF = ("diff", ASKED)
# A run with subscribers, and its file with another list.
SUBSCRIBED = "examples/subscribers.toml"
SUBSCRIBERS_DIFF = ("subscribers", "diff", "docs/site/subscribers.toml")
# Without --yes: the example stays as it is.
SUBSCRIBERS_SET = ("subscribers", "set", "--plan", "home", "down=120mbit")
# The server and the line: the loopback interface.
SERVED = ("tune", "--serve", "127.0.0.1:4757")
TUNE = ("tune", "127.0.0.1", "--dry-run", "--load", "3s")
TESTBED = ("testbed", "--flows", "2", "--duration", "1s", "--queue", "fq_codel")

# Commands whose name has a second word.
NAMES = frozenset({("queue", "show"), ("subscribers", "set"), FOLLOW})
# Those of them that take a file.
NAMES_OF_FILES = frozenset({("subscribers", "diff")})

# How long to wait for a run to forward, s.
PATIENCE = 60
FRAMES = 100
IPV4 = 0x0800
UDP = 17

Answer = tuple[tuple[str, ...], Any]


def is_possible() -> bool:
    """Return whether there is root, which namespaces need."""
    return os.geteuid() == 0


def answers(program: Program) -> list[Answer]:
    """Return each command with its document."""
    command = ["unshare", "--net", sys.executable, __file__, str(program.path)]
    answered = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return [(tuple(words), document) for words, document in json.loads(answered.stdout)]


def ask(program: Program) -> Iterator[Answer]:
    """Make the interfaces, start the runs and ask them."""
    for interface, peer in (("eth0", "core"), ("eth1", "subscribers")):
        ip("link", "add", interface, "type", "veth", "peer", "name", peer)
        ip("link", "set", interface, "up")
        ip("link", "set", peer, "up")
    with running(program, ASKED) as (run, at):
        send("core", FRAMES)
        for words in QUESTIONS:
            yield words, program.document(*words, *at, folder=ROOT)
        yield DIFF, program.document(*DIFF, *at, folder=ROOT, codes=(1,))
        yield DOCTOR, program.document(*DOCTOR, *at, folder=ROOT, codes=(0, 1))
        yield FOLLOW, follow(program, *at)
        yield ("stop",), program.document("stop", *at)
        yield ("run",), json.loads(run.communicate()[0])
    for file in OTHER_RUNS:
        with running(program, file) as (run, at):
            send("core", FRAMES)
            yield ("show",), program.document("show", *at, folder=ROOT)
            yield ("run",), end(run)
    with running(program, SUBSCRIBED) as (run, at):
        send("core", FRAMES)
        yield ("status",), program.document("status", *at, folder=ROOT)
        yield SUBSCRIBERS_SET, program.document(*SUBSCRIBERS_SET, *at, folder=ROOT)
        yield SUBSCRIBERS_DIFF, program.document(*SUBSCRIBERS_DIFF, *at, folder=ROOT, codes=(1,))
        yield ("run",), end(run)
    yield from tuned(program)
    yield TESTBED, program.document(*TESTBED)


def ip(*arguments: str) -> None:
    """Call `ip`."""
    subprocess.run(["ip", *arguments], check=True)


@contextmanager
def running(program: Program, file: str) -> Iterator[tuple[subprocess.Popen[str], tuple[str, str]]]:
    """Start a run, and wait until it forwards. Give it, and the arguments that name its socket."""
    with tempfile.TemporaryDirectory() as folder:
        at = ("--socket", f"{folder}/sock")
        run = program.start("run", file, *at, "--json", folder=ROOT)
        try:
            deadline = time.monotonic() + PATIENCE
            # Codes: it answers, or there is no socket yet.
            while "errors" in program.document("status", *at, codes=(0, 3)):
                if run.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"fairgate run {file} does not forward")
                time.sleep(0.05)
            yield run, at
        finally:
            run.kill()
            run.wait()


def end(run: subprocess.Popen[str]) -> Any:
    """End a run as Ctrl-C does, and return its document."""
    run.send_signal(signal.SIGINT)
    text, _ = run.communicate()
    return json.loads(text)


def follow(program: Program, *at: str) -> Any:
    """Return the second document of `status --follow`: each line is one."""
    following = program.start(*FOLLOW, *at, "--json")
    if following.stdout is None:
        raise RuntimeError("its output is not read")
    lines = [following.stdout.readline() for _ in range(2)]
    # It would ignore SIGINT if this was started in the background.
    following.terminate()
    following.communicate()
    return json.loads(lines[1])


def tuned(program: Program) -> Iterator[Answer]:
    """Measure the loopback interface. Give the document of the client, and that of the server."""
    ip("link", "set", "lo", "up")
    server = program.start(*SERVED, "--json", folder=ROOT)
    try:
        deadline = time.monotonic() + PATIENCE
        # Codes: packets wait too long, or the server does not listen yet.
        while "errors" in (document := program.document(*TUNE, codes=(0, 1, 3))):
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"fairgate tune: {document}")
            time.sleep(0.05)
        yield TUNE, document
        yield SERVED, end(server)
    finally:
        server.kill()
        server.wait()


def send(interface: str, count: int) -> None:
    """Send datagrams to two subscribers, as Ethernet frames."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((interface, IPV4))
        for number in range(count):
            datagram = struct.pack("!HHHH", 40_000, 9, 108, 0) + bytes(100)
            destination = bytes([100, 64, 0, 1 + number % 2])
            fields = (0x45, 0, 20 + len(datagram), 0, 0, 64, UDP, 0, bytes([192, 0, 2, 1]), destination)
            ethernet = b"\xff" * 6 + b"\x02" + bytes(5) + struct.pack("!H", IPV4)
            sender.send(ethernet + struct.pack("!BBHHHBBH4s4s", *fields) + datagram)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: live.py PROGRAM")
    json.dump(list(ask(Program(Path(sys.argv[1])))), sys.stdout)
