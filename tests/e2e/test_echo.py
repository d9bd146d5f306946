# SPDX-License-Identifier: Apache-2.0
"""The echo profile: one port greets and closes, one sends every byte back; on fibers and on a thread each."""
import json
import os
import pwd
import random
import re
import resource
import signal
import socket
import threading
import time

import pytest

import procfs
from server import BINARY, SANITIZED
from wire import Connection, fetch

GREETING = b"[echo] Hello World\n"
PORTS = ("--echo.port.greeter=0", "--echo.port.echo=0")
KINDS = ("fibers", "platform")


class Echo:
    """A server with the profile, and where its two ports are."""

    def __init__(self, server):
        self.server = server
        self.greeter = server.port_of("greeter.listener")
        self.echo = server.port_of("echo.listener")

    def figures(self, name):
        told = json.loads(fetch(self.server.port, "/actuator/echo").body)
        return next(one for one in told["listeners"] if one["name"] == name)

    def settle(self, name, live=0, within=5.0):
        deadline = time.monotonic() + within
        while self.figures(name)["live"] > live:
            assert time.monotonic() < deadline, self.figures(name)
            time.sleep(0.01)

    def threads(self):
        return len(os.listdir(f"/proc/{self.server.pid}/task"))


def start_echo(start, *args, kind="fibers", **kwargs):
    return Echo(start("--spring.profiles.active=spring,echo", *PORTS, f"--echo.threads={kind}", *args, **kwargs))


@pytest.fixture(scope="module", params=KINDS)
def both(request, start_shared):
    """A server of each kind, that tests share."""
    return start_echo(start_shared, kind=request.param)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def greeted(port, say=b"", pause=0.0):
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        if say:
            sock.sendall(say)
        time.sleep(pause)
        got = b""
        while True:
            more = sock.recv(4096)
            if not more:
                return got
            got += more


def exchange(port, data, cuts, read_cuts=(65536,), half_close=True):
    """Send data in pieces from one thread, collect what comes back in another."""
    with Connection(port, timeout=20) as connection:
        def send():
            at = 0
            while at < len(data):
                size = random.choice(cuts)
                connection.sock.sendall(data[at:at + size])
                at += size
            if half_close:
                connection.half_close()
        sender = threading.Thread(target=send)
        sender.start()
        got = bytearray()
        while half_close or len(got) < len(data):
            more = connection.sock.recv(random.choice(read_cuts))
            if not more:
                break
            got += more
        sender.join()
        return bytes(got)


# The greeter

def test_every_client_is_greeted_and_closed(both):
    for _ in range(50):
        assert greeted(both.greeter) == GREETING


def test_greeting_and_fin_leave_in_one_segment(start):
    """A client that looks once has the line and the end: the reader's next recv does not wait."""
    echo = start_echo(start)
    whole = 0
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", echo.greeter), 10) as sock:
            assert sock.recv(100) == GREETING
            sock.setblocking(False)
            try:
                whole += sock.recv(100) == b""
            except BlockingIOError:
                pass
    assert whole == 20


@pytest.mark.parametrize("say", [b"x", b"GET / HTTP/1.1\r\n\r\n", b"y" * 200000])
def test_a_client_that_talks_first_is_greeted_not_reset(both, say):
    """Whether it comes before the greeting or after it, and however much."""
    for pause in (0, 0.02):
        assert greeted(both.greeter, say, pause) == GREETING
    both.settle("greeter")


def test_clients_that_reset_do_not_hurt_the_next(both):
    for _ in range(100):
        connection = Connection(both.greeter)
        connection.send(b"z")
        connection.reset()
    assert greeted(both.greeter) == GREETING
    both.settle("greeter")


@pytest.mark.slow
def test_thousands_one_after_the_other_leave_nothing_behind(start, kind):
    """5000 clients; descriptors, threads, fibers and memory are as before."""
    echo = start_echo(start, kind=kind)
    for _ in range(500):
        assert greeted(echo.greeter) == GREETING
    echo.settle("greeter")
    fds, rss = procfs.fd_count(echo.server.pid), procfs.rss_kib(echo.server.pid)
    for _ in range(4500):
        assert greeted(echo.greeter) == GREETING
    echo.settle("greeter")
    echo.server.settle(fds)
    time.sleep(0.1)
    assert echo.threads() < 20
    assert SANITIZED or procfs.rss_kib(echo.server.pid) < rss + 1000
    assert echo.figures("greeter")["connections"] == 5000


def voluntary_switches(pid):
    """Of the carriers: how often each went to sleep."""
    counts = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as status:
            text = status.read()
        if text.startswith("Name:\tcarrier-"):
            counts.append(int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", text).group(1)))
    return counts


@pytest.mark.figures
def test_a_connection_wakes_one_carrier_and_they_take_turns(start):
    """Two carriers, 1000 clients one after the other: hardly more than 1000 wake-ups, and both work."""
    echo = start_echo(start, "--ringspun.carriers=2")
    before = voluntary_switches(echo.server.pid)
    for _ in range(1000):
        greeted(echo.greeter)
    woken = [now - then for now, then in zip(voluntary_switches(echo.server.pid), before)]
    assert sum(woken) <= 1300, woken
    assert min(woken) >= 200, woken


# The figures

def test_the_wait_to_accept_is_told_every_1000_connections(start):
    """maxTime now and avgTime now, and the same figures at /actuator/echo; from one hand-over to the next."""
    echo = start_echo(start)
    before = echo.figures("greeter")
    assert (before["connections"], before["averageMillis"], before["maxMillis"]) == (0, 0, 0)
    began = time.monotonic()
    for index in range(1000):
        assert greeted(echo.greeter) == GREETING
        if index == 500:
            time.sleep(0.3)
    took = (time.monotonic() - began) * 1000
    echo.server.wait_log("avgTime now:")
    longest = float(re.search(r"maxTime now: ([\d.]+) ms", echo.server.log).group(1))
    average = float(re.search(r"avgTime now: ([\d.]+) ms", echo.server.log).group(1))
    figures = echo.figures("greeter")
    assert figures["connections"] == 1000 and figures["threads"] == "fibers" and figures["port"] == echo.greeter
    assert abs(figures["averageMillis"] - average) < 0.001 and abs(figures["maxMillis"] - longest) < 0.001
    assert 300 <= longest <= took - 998 * 0.01
    assert 0.95 * took / 999 - 0.1 <= average <= took / 999
    assert len(re.findall("maxTime now", echo.server.log)) == 1
    for _ in range(1000):
        greeted(echo.greeter)
    assert len(re.findall("maxTime now", echo.server.log)) == 2


def test_figures_name_the_kind_and_the_live(both):
    kind = "platform" if "platform" in both.server.command[-1] else "fibers"
    with Connection(both.echo), Connection(both.echo):
        deadline = time.monotonic() + 5
        while both.figures("echo")["live"] < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert both.figures("echo")["threads"] == kind
        assert both.figures("greeter")["threads"] == kind


def test_without_the_profile_there_are_no_figures(shared):
    assert json.loads(shared.get("/actuator/echo").body) == {"listeners": []}


# The echo

@pytest.mark.parametrize("cuts", [(1, 2, 3, 1400, 2047, 2048, 2049), (65536,), (5, 100000)])
def test_every_byte_comes_back_in_order(both, cuts):
    """3 MB in random pieces, compared byte for byte; the half-close is answered with the rest and a FIN."""
    data = random.randbytes(3_000_000 if min(cuts) > 3 else 300_000)
    assert exchange(both.echo, data, cuts) == data


def test_many_at_once_do_not_get_each_others_bytes(both):
    datas = [random.randbytes(200_000) for _ in range(12)]
    results = [None] * len(datas)

    def one(index):
        results[index] = exchange(both.echo, datas[index], (100, 3000, 20000), (1000, 50000))
    threads = [threading.Thread(target=one, args=(index,)) for index in range(len(datas))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == datas


def test_a_half_close_alone_is_answered_with_a_fin(both):
    with Connection(both.echo) as connection:
        connection.half_close()
        connection.assert_closed()
    with Connection(both.echo) as connection:
        connection.send(b"\0last")
        connection.half_close()
        assert connection.rest() == b"\0last"


def test_idle_connections_stay_open(both):
    with Connection(both.echo) as connection:
        connection.send(b"a")
        assert connection.sock.recv(10) == b"a"
        connection.assert_quiet(1.5)
        connection.send(b"b")
        assert connection.sock.recv(10) == b"b"


def test_a_reset_ends_the_connection(both):
    fds = procfs.fd_count(both.server.pid)
    for _ in range(50):
        connection = Connection(both.echo)
        connection.send(b"q" * 3000)
        connection.reset()
    both.settle("echo")
    both.server.settle(fds)


def test_a_client_that_does_not_read_is_slowed_down_and_costs_no_memory(both):
    """Its sends stop when the sockets are full, and go on, byte-exact, when it reads; the server stays small."""
    data = random.randbytes(40_000_000)
    before = procfs.rss_kib(both.server.pid)
    with Connection(both.echo, timeout=20) as connection:
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.sock.settimeout(1.5)
        sent = 0
        with pytest.raises((socket.timeout, BlockingIOError)):
            while sent < len(data):
                sent += connection.sock.send(data[sent:sent + 65536])
        assert sent < len(data)
        assert SANITIZED or procfs.rss_kib(both.server.pid) < before + 500
        assert greeted(both.greeter) == GREETING
        connection.sock.settimeout(20)
        connection.half_close()
        assert connection.rest() == data[:sent]


def test_dead_peers_are_probed(both):
    """Keep-alive probes are on for each connection, inherited from the listener."""
    with Connection(both.echo) as connection:
        connection.send(b"a")
        assert connection.sock.recv(1) == b"a"
        port = connection.sock.getsockname()[1]
        with open("/proc/net/tcp6", encoding="ascii") as table:
            rows = [line.split() for line in table
                    if line.split()[1].endswith(f":{both.echo:04X}") and line.split()[2].endswith(f":{port:04X}")]
        assert len(rows) == 1
        assert rows[0][5].startswith("02:"), rows  # the timer that is armed: keep-alive


# Platform threads

def test_each_connection_has_a_thread_of_its_own_and_it_goes(start):
    echo = start_echo(start, kind="platform")
    before = echo.threads()
    connections = [Connection(echo.echo) for _ in range(100)]
    for connection in connections:
        connection.send(b"a")
        assert connection.sock.recv(1) == b"a"
    assert echo.threads() == before + 100
    names = set()
    for task in os.listdir(f"/proc/{echo.server.pid}/task"):
        with open(f"/proc/{echo.server.pid}/task/{task}/comm", encoding="ascii") as comm:
            names.add(comm.read().strip())
    assert any(name.startswith("echo-") for name in names)
    for connection in connections:
        connection.close()
    echo.settle("echo")
    deadline = time.monotonic() + 5
    while echo.threads() > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user that has no other threads")
def test_a_connection_that_gets_no_thread_is_closed_and_told_once(start, tmp_path):
    """RLIMIT_NPROC: clients beyond it get an end, those before it go on, and later ones are served again."""
    user = pwd.getpwnam("games")
    binary = tmp_path / "ringspun"
    binary.write_bytes(BINARY.read_bytes())
    binary.chmod(0o755)
    for directory in [tmp_path, *tmp_path.parents]:
        if directory.stat().st_uid == os.geteuid() and str(directory).startswith("/tmp/"):
            directory.chmod(0o755)
    echo = start_echo(start, kind="platform", user=user, binary=binary, cwd="/", limits={resource.RLIMIT_NPROC: 40})
    connections = [Connection(echo.echo) for _ in range(60)]
    alive, ended = [], 0
    for connection in connections:
        try:
            connection.send(b"a")
            got = connection.sock.recv(1)
        except (ConnectionResetError, BrokenPipeError):
            got = b""
        if got == b"a":
            alive.append(connection)
        else:
            ended += 1
    assert len(alive) >= 10 and ended >= 20
    assert echo.server.log.count("no thread for a connection on port") == 1
    for connection in connections:
        connection.close()
    echo.settle("echo")
    time.sleep(0.2)
    assert exchange(echo.echo, b"again", (5,)) == b"again"


# Limits and the end

def admitted(port, within=2.0):
    """A connection that is served, once the place of one that has just closed is free."""
    deadline = time.monotonic() + within
    while True:
        connection = Connection(port)
        connection.send(b"a")
        try:
            if connection.sock.recv(1) == b"a":
                return connection
        except ConnectionResetError:
            pass
        connection.close()
        assert time.monotonic() < deadline, "no place became free"
        time.sleep(0.02)


def test_clients_beyond_the_limit_are_closed_without_a_word(start):
    """max-connections=20: ten on app and echo ports together; the app is told 503, an echo client just the end."""
    echo = start_echo(start, "--server.tomcat.max-connections=20")
    connections = [Connection(echo.echo) for _ in range(9)]
    for connection in connections:
        connection.send(b"a")
        assert connection.sock.recv(1) == b"a"
    assert fetch(echo.server.port).status == 200
    connections.append(admitted(echo.echo))
    with Connection(echo.echo) as refused:
        refused.assert_closed()
    assert fetch(echo.server.port).status == 503
    for connection in connections:
        connection.close()
    time.sleep(0.2)
    assert fetch(echo.server.port).status == 200


def test_alone_the_echo_ports_may_have_all_connections(start):
    server = start("--spring.profiles.active=echo", *PORTS, "--server.tomcat.max-connections=20")
    port = server.port_of("echo.listener")
    connections = [Connection(port) for _ in range(20)]
    for connection in connections:
        connection.send(b"a")
        assert connection.sock.recv(1) == b"a"
    with Connection(port) as refused:
        refused.assert_closed()


def test_out_of_descriptors_closes_the_newest_and_recovers(start, kind):
    """100 descriptors, 200 clients: those that are in go on, the others get an end, and no processor time is spun away."""
    echo = start_echo(start, "--ringspun.carriers=2", "--server.tomcat.max-connections=1000", kind=kind,
                      limits={resource.RLIMIT_NOFILE: 100})
    connections = [Connection(echo.echo) for _ in range(200)]
    alive = 0
    for connection in connections:
        try:
            connection.send(b"a")
            alive += connection.sock.recv(1) == b"a"
        except (ConnectionResetError, BrokenPipeError):
            pass
    assert 10 <= alive < 100
    before = procfs.cpu_seconds(echo.server.pid)
    time.sleep(1)
    assert procfs.cpu_seconds(echo.server.pid) - before < 0.3
    for connection in connections:
        connection.close()
    time.sleep(0.3)
    assert exchange(echo.echo, b"again", (5,)) == b"again"
    assert greeted(echo.greeter) == GREETING


def test_sigterm_closes_idle_connections_at_once(start, kind):
    echo = start_echo(start, kind=kind)
    connections = [Connection(echo.echo) for _ in range(30)]
    for connection in connections:
        connection.send(b"a")
        assert connection.sock.recv(1) == b"a"
    echo.server.signal(signal.SIGTERM)
    for connection in connections:
        connection.assert_closed()
    assert echo.server.wait(3) == 0
    assert "Graceful shutdown complete" in echo.server.log
    echo.server.stop()


def test_sigterm_finishes_what_was_received(start, kind):
    """The server is stopped while 30 clients have sent; SIGTERM comes first, and every byte still comes back."""
    echo = start_echo(start, kind=kind)
    connections = [Connection(echo.echo) for _ in range(30)]
    for connection in connections:
        connection.send(b"a")
        assert connection.sock.recv(1) == b"a"
    echo.server.signal(signal.SIGSTOP)
    for connection in connections:
        connection.send(b"last words")
    echo.server.signal(signal.SIGTERM)
    echo.server.signal(signal.SIGCONT)
    for connection in connections:
        assert connection.rest() == b"last words"
    assert echo.server.wait(3) == 0
    echo.server.stop()


def test_a_client_that_does_not_read_holds_up_the_end_only_as_long_as_allowed(start, kind):
    echo = start_echo(start, "--spring.lifecycle.timeout-per-shutdown-phase=1s", kind=kind)
    with Connection(echo.echo) as connection:
        connection.sock.settimeout(1.5)  # a server that is only slow goes on within it
        with pytest.raises((socket.timeout, BlockingIOError)):
            while True:
                connection.sock.send(b"x" * 65536)
        began = time.monotonic()
        echo.server.signal(signal.SIGTERM)
        assert echo.server.wait(5) == 0
        assert time.monotonic() - began < 3
        # A thread that finds room for what the socket had received is done with it; a fiber waits for the client.
        assert kind == "platform" or time.monotonic() - began > 0.9
    assert kind == "platform" or "Graceful shutdown aborted" in echo.server.log
    echo.server.stop()
