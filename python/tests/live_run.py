"""Runs in network namespaces. ``live_run.py PROGRAM FILE`` writes the OpenAPI document of a run.

A namespace has no name, and disappears with the last program in it.
"""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# From <sched.h>.
CLONE_NEWNET = 0x4000_0000
OWN = "/proc/thread-self/ns/net"

# How long to wait for one thing, s. It takes below a second, on a loaded machine below ten.
PATIENCE = 120

PLAIN = """
[run]
left = "eth0"
right = "eth1"
api = "unix:api.sock"
"""


# The interfaces of a run and their other ends.
PAIRS = (("eth0", "left"), ("eth1", "right"))


class Namespace:
    """A network namespace. Unless said otherwise, it has `eth0` and `eth1`, whose other ends are `left` and
    `right`."""

    def __init__(self, pairs: tuple[tuple[str, str], ...] = PAIRS, mtu: int = 1500) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        home = os.open(OWN, os.O_RDONLY)
        _succeed(libc.unshare(CLONE_NEWNET))
        try:
            self._place = os.open(OWN, os.O_RDONLY)
            for interface, peer in pairs:
                ends = (interface, "mtu", str(mtu), "type", "veth", "peer", "name", peer, "mtu", str(mtu))
                ip("link", "add", *ends)
            for interface in ("lo", *(end for pair in pairs for end in pair)):
                ip("link", "set", interface, "up")
        finally:
            _succeed(libc.setns(home, CLONE_NEWNET))
            os.close(home)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Enter it with this thread: connect, listen and start programs there."""
        libc = ctypes.CDLL(None, use_errno=True)
        home = os.open(OWN, os.O_RDONLY)
        _succeed(libc.setns(self._place, CLONE_NEWNET))
        try:
            yield
        finally:
            _succeed(libc.setns(home, CLONE_NEWNET))
            os.close(home)

    def take(self, interface: str, giver: Namespace, name: str) -> None:
        """Take an interface from another namespace, and call it `name`."""
        with giver.entered():
            ip("link", "set", interface, "netns", f"/proc/{os.getpid()}/fd/{self._place}", "name", name)

    def close(self) -> None:
        """Leave it to its programs."""
        os.close(self._place)


class Run:
    """A run in a namespace. It has ended after the `with` block."""

    def __init__(self, program: str, configuration: str, folder: Path, mtu: int = 1500) -> None:
        self.folder = folder
        self.socket = folder / "sock"
        (folder / "run.toml").write_text(configuration)
        self.namespace = Namespace(mtu=mtu)
        self._program = program
        self._said = (folder / "said").open("w+b")
        command = [program, "run", "--socket", str(self.socket), str(folder / "run.toml")]
        with self.namespace.entered():
            self._run = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._said
            )

    def __enter__(self) -> Run:
        try:
            self.until("the run forwards", self._forwards)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        code = self._stop()
        assert code == 0, f"it ended with {code}: {self.said()}"

    def send(self, interface: str, frame: bytes) -> None:
        """Send a frame from the other end of one of its interfaces."""
        with self.namespace.entered(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind((interface, 0))
            sender.send(frame)

    def said(self) -> str:
        """Return what it has written to standard error so far."""
        return (self.folder / "said").read_text()

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait for something that must happen while it runs."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self._run.poll() is None, f"the run ended: {self.said()}"
            assert time.monotonic() < deadline, f"waited in vain: {what}"
            time.sleep(0.02)

    def _forwards(self) -> bool:
        command = [self._program, "status", "--socket", str(self.socket)]
        return subprocess.run(command, capture_output=True).returncode == 0

    def _stop(self) -> int:
        if self._run.poll() is None:
            self._run.send_signal(signal.SIGINT)
        try:
            code = self._run.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._run.kill()
            code = self._run.wait()
        self._said.close()
        self.namespace.close()
        return code


def ip(*words: str) -> None:
    """Call `ip`."""
    subprocess.run(["ip", *words], check=True)


def _succeed(code: int) -> None:
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"network namespaces: {os.strerror(number)}")


def main(program: str, file: Path) -> None:
    """Write the OpenAPI document that a run of this program has."""
    with tempfile.TemporaryDirectory() as folder, Run(program, PLAIN, Path(folder)):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(f"{folder}/api.sock")
        connection.request("GET", "/v1/openapi.json")
        document = json.load(connection.getresponse())
        connection.close()
    file.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("this needs root to build network namespaces")
    main(str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]))
