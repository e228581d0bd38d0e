"""Hosts at both ends of a run, and traffic between them; and a port that leads to a unix socket."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from live_run import PATIENCE, Namespace, Run, ip

# Of a run with traffic all the time: the same rate in a sixth of the frames leaves processors to other tests.
LONG_FRAMES = 9000


class Hosts:
    """A `client` at the left of a run and a `server` at its right. They have ended after the `with` block."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.client, self.server = Namespace(()), Namespace(())
        self._programs: list[subprocess.Popen[bytes]] = []
        ends = ((self.client, "left", "10.0.0.1"), (self.server, "right", "10.0.0.2"))
        for host, interface, address in ends:
            host.take(interface, run.namespace, "eth0")
            with host.entered():
                ip("address", "add", f"{address}/16", "dev", "eth0")
                ip("link", "set", "eth0", "up")

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, *raised: object) -> None:
        for program in reversed(self._programs):
            program.terminate()
        for program in self._programs:
            program.wait(PATIENCE)
        self.client.close()
        self.server.close()

    def start(self, host: Namespace, *words: str) -> None:
        """Start a program that goes on until the hosts end."""
        with host.entered():
            null = subprocess.DEVNULL
            self._programs.append(subprocess.Popen(words, stdin=null, stdout=null, stderr=null))

    def serve(self, *ports: int) -> None:
        """Start servers of iperf3, and wait until they listen."""
        for port in ports:
            self.start(self.server, "iperf3", "--server", "--port", str(port))

        def listen() -> bool:
            with self.server.entered():
                listening = Path("/proc/thread-self/net/tcp6").read_text()
            return all(f":{port:04X} " in listening for port in ports)

        self.run.until(f"iperf3 listens at {ports}", listen)

    def send(self, port: int, *words: str, to: str = "10.0.0.2") -> None:
        """Send through TCP until the hosts end."""
        self.start(self.client, "iperf3", "--client", to, "--port", str(port), "--time", "3600", *words)


def at_socket(path: Path) -> Callable[[], socket.socket]:
    """Return a function that connects to a unix socket."""

    def connect() -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(path))
        except OSError:
            connection.close()
            raise
        return connection

    return connect


def at_port(namespace: Namespace, port: int) -> Callable[[], socket.socket]:
    """Return a function that connects to a port of the loopback interface of a namespace."""

    def connect() -> socket.socket:
        with namespace.entered():
            return socket.create_connection(("127.0.0.1", port))

    return connect


class Forwarder:
    """What `ssh -L PORT:SOCKET` does: connections to a port of a namespace go on to where `connect` leads,
    until the `with` block ends."""

    def __init__(self, namespace: Namespace, port: int, connect: Callable[[], socket.socket]) -> None:
        self._connect = connect
        self._open: list[socket.socket] = []
        with namespace.entered():
            self._listener = socket.create_server(("127.0.0.1", port))
        self._listening = threading.Thread(target=self._accept, daemon=True)
        self._listening.start()

    def __enter__(self) -> Forwarder:
        return self

    def __exit__(self, *raised: object) -> None:
        # The thread returns from accept().
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listening.join(PATIENCE)
        self._listener.close()
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = self._connect()
            except OSError:
                client.close()
                continue
            self._open += [client, server]
            threading.Thread(target=_forward, args=(client, server), daemon=True).start()


def _forward(client: socket.socket, server: socket.socket) -> None:
    back = threading.Thread(target=_pump, args=(server, client), daemon=True)
    back.start()
    _pump(client, server)
    back.join()
    client.close()
    server.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
