# SPDX-License-Identifier: Apache-2.0
"""What a service manager sees of the server: notifications, the watchdog, sockets that were passed.

The manager is the test: a datagram socket for NOTIFY_SOCKET, and listening sockets as descriptors 3 and up.
"""
import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

import procfs
import server as server_module
import wire
from loadtools import ab
from server import BINARY, environment
from wire import request

# Sets LISTEN_PID to the pid that the program will have: exec keeps it.
WITH_PID = ["sh", "-c", 'LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$0" "$@"']


class Manager:
    """The receiving end of sd_notify."""

    def __init__(self, name):
        self.name = str(name)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.name.replace("@", "\0", 1))

    def next(self, timeout=5.0):
        """The fields of the next datagram."""
        self.sock.settimeout(timeout)
        return dict(line.split("=", 1) for line in self.sock.recv(4096).decode().splitlines())

    def until(self, field, timeout=5.0):
        """The first datagram that has the field; what came before it is skipped."""
        deadline = time.monotonic() + timeout
        while True:
            fields = self.next(max(deadline - time.monotonic(), 0.01))
            if field in fields:
                return fields

    def feeds(self, seconds):
        """How many WATCHDOG=1 come in that time."""
        count, deadline = 0, time.monotonic() + seconds
        with contextlib.suppress(TimeoutError):
            while True:
                count += "WATCHDOG" in self.next(max(deadline - time.monotonic(), 0.001))
        return count

    def close(self):
        self.sock.close()


@pytest.fixture(params=["path", "abstract"])
def any_manager(request, tmp_path):
    name = tmp_path / "notify" if request.param == "path" else f"@ringspun-test-{os.getpid()}"
    with contextlib.closing(Manager(name)) as one:
        yield one


@pytest.fixture
def manager(tmp_path):
    with contextlib.closing(Manager(tmp_path / "notify")) as one:
        yield one


def listening(port=0):
    sock = socket.create_server(("127.0.0.1", port), backlog=4096)
    return sock, sock.getsockname()[1]


def passing(*socks):
    """A preexec function that makes these sockets descriptors 3 and up; their order is kept."""
    high = [fcntl.fcntl(sock.fileno(), fcntl.F_DUPFD_CLOEXEC, 60) for sock in socks]  # whatever else is open

    def prepare():
        for index, number in enumerate(high):
            os.dup2(number, 3 + index)  # inheritable, as systemd passes them
    return prepare, high


class Passed:
    """A server that was started with sockets; the sockets stay the test's."""

    def __init__(self, directory, socks, *args, names=None, env=None):
        prepare, high = passing(*socks)
        self.stdout_path = directory / f"stdout-{time.monotonic_ns()}"
        env = dict(env or {}, LISTEN_FDS=str(len(socks)))
        if names is not None:
            env["LISTEN_FDNAMES"] = names
        with open(self.stdout_path, "wb") as out:
            self.process = subprocess.Popen([*WITH_PID, str(BINARY), *args], env=environment(env), cwd=directory,
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                                            close_fds=False, preexec_fn=prepare)
        for number in high:
            os.close(number)

    @property
    def log(self):
        return self.stdout_path.read_text("utf-8", "replace")

    def wait_started(self, timeout=10):
        deadline = time.monotonic() + timeout
        while server_module.STARTED not in self.log:
            assert self.process.poll() is None and time.monotonic() < deadline, \
                (self.log, self.process.poll() is not None and self.process.stderr.read())
            time.sleep(0.005)
        return self

    def refused(self, timeout=10):
        """As end, of a start that must fail."""
        self.process.wait(timeout)
        return self.end()

    def end(self, timeout=10):
        """Its exit status and what it wrote to stderr, after SIGTERM if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=timeout)
        return self.process.returncode, errors.decode()


@pytest.fixture
def passed(tmp_path):
    """passed(socks, "--key=value", ...) starts a server with sockets; what is left of it is killed."""
    started = []

    def begin(socks, *args, **kwargs):
        started.append(Passed(tmp_path, socks, *args, **kwargs))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


# Notifications

def test_ready_status_and_stopping_are_told(start, any_manager):
    """READY=1 once both ports answer, with a status of one line and the pid; STOPPING=1 at SIGTERM, before the end."""
    server = start("--ringspun.carriers=2", env={"NOTIFY_SOCKET": any_manager.name})
    fields = any_manager.next()
    assert fields == {"READY": "1", "MAINPID": str(server.pid),
                      "STATUS": f"{server.port} http, {server.remote_port} remote; 2 carriers"}
    with server.connect() as busy:
        busy.send(request("/blocking/0.5"))
        time.sleep(0.1)
        server.signal(signal.SIGTERM)
        stopping = any_manager.next()
        assert stopping["STOPPING"] == "1"
        assert int(stopping["EXTEND_TIMEOUT_USEC"]) == 40_000_000  # the phase's 30 s and some
        assert "Draining" in any_manager.next()["STATUS"]
        assert server.process.poll() is None
        assert busy.response().status == 200
    assert server.wait(5) == 0


def test_ready_comes_when_the_ports_answer(start, manager):
    """Whoever has read READY=1 gets an answer from either port at once."""
    server = start(env={"NOTIFY_SOCKET": manager.name})
    manager.until("READY")
    assert server.get("/currentThread").status == 200
    assert server.get_remote("/remote/0").status == 200


def test_a_refused_start_says_no_ready(manager, tmp_path):
    """A taken port: exit 1, and nothing is told."""
    taken, port = listening()
    with taken:
        done = server_module.run(f"--server.port={port}", "--remote.port=-1",
                                 env={"NOTIFY_SOCKET": manager.name})
    assert done.returncode == 1
    with pytest.raises(TimeoutError):
        manager.next(0.1)


def test_a_shutdown_delay_extends_the_stop_timeout(start, manager):
    """The manager learns how long the stop may take, and what is going on."""
    server = start("--server.shutdown.delay=300ms", "--spring.lifecycle.timeout-per-shutdown-phase=2s",
                   env={"NOTIFY_SOCKET": manager.name})
    manager.until("READY")
    server.signal(signal.SIGTERM)
    assert int(manager.next()["EXTEND_TIMEOUT_USEC"]) == 12_300_000
    assert "load balancer" in manager.next()["STATUS"]
    assert "Draining" in manager.next()["STATUS"]
    assert server.wait(5) == 0


@pytest.mark.parametrize("nonsense", [
    {"NOTIFY_SOCKET": "nonsense"}, {"NOTIFY_SOCKET": "/" + "x" * 200}, {"NOTIFY_SOCKET": "/nobody/is/there"},
    {"NOTIFY_SOCKET": "@nobody-is-there", "WATCHDOG_USEC": "soon"}, {"LISTEN_PID": "self", "LISTEN_FDS": "1"},
    {"LISTEN_PID": "1", "LISTEN_FDS": "1"}])
def test_nonsense_from_a_manager_does_not_stop_the_start(start, nonsense):
    """It is served all the same; a line says what was ignored, unless it was for another process."""
    server = start(env=nonsense)
    server.assert_serves()
    assert ("app.systemd" in server.log) == (nonsense.get("LISTEN_PID") != "1")


# The watchdog

def test_the_watchdog_is_fed_twice_an_interval(start, manager):
    """WATCHDOG_USEC of 400 ms: a feed every 200 ms, the first at once."""
    start("--ringspun.carriers=2", env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "400000"})
    manager.until("READY")
    assert 4 <= manager.feeds(2.0) <= 11


def test_the_watchdog_is_fed_through_the_drain(start, manager):
    """A drain that takes longer than the interval is no hang."""
    server = start(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "400000"})
    with server.connect() as busy:
        busy.send(request("/blocking/1.5"))
        time.sleep(0.1)
        server.signal(signal.SIGTERM)
        manager.until("STOPPING")
        assert manager.feeds(1.0) >= 2
        assert busy.response().status == 200
    assert server.wait(5) == 0


def test_a_stuck_carrier_is_fed_no_more(start, manager):
    """One of two carriers spins: the feeding ends, and the log names the fiber."""
    server = start("--ringspun.carriers=2", "--ringspun.debug.stuck-carrier-after=1s",
                   env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "400000"})
    manager.until("READY")
    assert manager.feeds(0.6) >= 2
    server.wait_log("carrier-1 is held from now on")
    manager.feeds(0.5)  # what was on its way
    assert manager.feeds(1.5) == 0
    server.wait_log("stuck-on-purpose")
    server.kill()


def test_no_watchdog_no_feed_and_no_processor_time(start, manager):
    """Without WATCHDOG_USEC, or with another process's, nobody is woken."""
    server = start(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "10000", "WATCHDOG_PID": "1"})
    manager.until("READY")
    time.sleep(0.3)
    before = procfs.cpu_seconds(server.pid)
    assert manager.feeds(1.0) == 0
    assert procfs.cpu_seconds(server.pid) - before < 0.02


# Sockets that were passed

def test_passed_sockets_are_served_by_name(passed):
    """LISTEN_FDNAMES decides, whatever the configured ports are."""
    (first, remote), (second, http) = listening(), listening()
    with first, second:
        server = passed([first, second], names="remote:http").wait_started()
        assert wire.fetch(http, "/currentThread").status == 200
        assert wire.fetch(remote, "/remote/0").body == b"Hello, delayed by 0 seconds."
        assert wire.fetch(http, "/blocking/0").status == 200  # calls the passed remote
        assert len(re.findall("on a socket passed by the service manager$", server.log, re.M)) == 2
        assert server.end() == (0, "")


def test_passed_sockets_are_served_by_port(passed):
    """Without a name that means something, as systemd names them after the unit."""
    (first, http), (second, remote) = listening(), listening()
    with first, second:
        server = passed([first, second], f"--server.port={http}", f"--remote.port={remote}",
                        names="ringspun.socket:ringspun.socket").wait_started()
        assert wire.fetch(http, "/blocking/0").status == 200
        assert server.end() == (0, "")


def test_what_is_not_passed_is_bound(passed):
    """One socket for the app; the remote binds a port of its own."""
    sock, port = listening()
    with sock:
        server = passed([sock], "--remote.port=0", names="http").wait_started()
        assert wire.fetch(port, "/blocking/0").status == 200
        assert server.end() == (0, "")


def test_nothing_of_the_manager_reaches_the_environment_twice(passed):
    """The passed descriptor is closed on exec, and non-blocking as the listeners need it."""
    sock, _ = listening()
    with sock:
        server = passed([sock], "--remote.port=-1", names="http").wait_started()
        with open(f"/proc/{server.process.pid}/fdinfo/3", encoding="ascii") as info:
            flags = int(re.search(r"flags:\s+(\d+)", info.read()).group(1), 8)
        assert flags & os.O_CLOEXEC and flags & os.O_NONBLOCK
        assert server.end() == (0, "")


def test_a_socket_that_fits_no_server_refuses_the_start(passed):
    """Exit 78 and one line: a client of it would wait for ever."""
    (first, port), (second, other) = listening(), listening()
    with first, second:
        server = passed([first, second], f"--server.port={port}", "--remote.port=-1")
        status, errors = server.refused()
    assert status == 78
    assert len(errors.splitlines()) == 1
    assert f"descriptor 4 (name '', port {other}) fits no server" in errors, errors


def test_two_sockets_for_one_server_refuse_the_start(passed):
    """The second is one that nobody would accept from."""
    (first, _), (second, _) = listening(), listening()
    with first, second:
        status, errors = passed([first, second], "--remote.port=-1", names="http:http").refused()
    assert status == 78
    assert "descriptor 4 (name 'http'" in errors


@pytest.mark.parametrize("kind, problem", [
    ("udp", "is no TCP socket"), ("unix", "is no TCP socket"), ("connected", "does not listen"),
    ("file", "is no TCP socket"), ("missing", "is not open")])
def test_what_is_no_listening_tcp_socket_refuses_the_start(passed, kind, problem, tmp_path):
    """Exit 78 and one line that names the descriptor."""
    with contextlib.ExitStack() as stack:
        if kind == "udp":
            socks = [stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))]
        elif kind == "unix":
            socks = [stack.enter_context(socket.socket(socket.AF_UNIX))]
            socks[0].bind(str(tmp_path / "local"))
            socks[0].listen()
        elif kind == "connected":
            listener, port = listening()
            stack.enter_context(listener)
            socks = [stack.enter_context(socket.create_connection(("127.0.0.1", port)))]
        else:
            socks = [stack.enter_context(open(os.devnull, "rb"))]
        if kind == "missing":
            done = subprocess.run([*WITH_PID, str(BINARY)], env=environment({"LISTEN_FDS": "1"}), cwd=tmp_path,
                                  capture_output=True, text=True, timeout=10, check=False, close_fds=True)
            status, errors = done.returncode, done.stderr
        else:
            status, errors = passed(socks, names="http").refused()
    assert status == 78
    assert len(errors.splitlines()) == 1
    assert "descriptor 3 (" in errors and problem in errors, errors


def test_who_waits_in_the_queue_of_a_passed_socket_is_kept_for_the_successor(passed):
    """The old server is gone, nobody listens, a client connects all the same and the next one serves it."""
    sock, port = listening()
    with sock:
        assert passed([sock], "--remote.port=-1", names="http").wait_started().end() == (0, "")
        with wire.Connection(port) as waiting:
            waiting.send(request())
            time.sleep(0.2)
            second = passed([sock], "--remote.port=-1", names="http").wait_started()
            assert waiting.response().status == 200
        assert second.end() == (0, "")


def test_a_client_that_comes_during_the_drain_waits_for_the_successor(passed):
    """A passed socket is left open: no refusal while the old server finishes its last request."""
    sock, port = listening()
    with sock:
        old = passed([sock], "--remote.port=0", names="http").wait_started()
        with wire.Connection(port) as busy:
            busy.send(request("/blocking/1"))
            time.sleep(0.1)
            old.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            with wire.Connection(port) as late:
                late.send(request())
                assert busy.response().status == 200
                assert old.end() == (0, "")
                new = passed([sock], "--remote.port=0", names="http").wait_started()
                assert late.response().status == 200
                assert new.end() == (0, "")


def test_a_slow_client_accepted_in_the_moment_of_the_drain_lost_its_request(passed):
    """It connected before SIGTERM and asks half a second after: answered, by the old server."""
    sock, port = listening()
    with sock:
        server = passed([sock], "--remote.port=-1", names="http").wait_started()
        with wire.Connection(port) as slow:
            time.sleep(0.1)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            slow.send(request())
            response = slow.response()
            assert response.status == 200 and response.closes
        assert server.end() == (0, "")


def test_restarts_with_passed_sockets_under_load_lose_nothing(passed):
    """ab with 20 clients that call on to the remote, over three restarts: no refused connection, no failed request."""
    (first, http), (second, _) = listening(), listening()
    with first, second:
        server = passed([first, second], names="http:remote").wait_started()
        reports = []
        load = threading.Thread(target=lambda: reports.append(
            ab(f"http://127.0.0.1:{http}/blocking/1ms", 6000, 20)))
        load.start()
        restarts = 0
        while restarts < 3 and load.is_alive():
            time.sleep(0.15)
            assert server.end() == (0, "")
            server = passed([first, second], names="http:remote").wait_started()
            restarts += 1
        load.join()
        assert server.end() == (0, "")
    assert restarts == 3
    assert reports, "ab gave up"
    reports[0].assert_all(6000)
