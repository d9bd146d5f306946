# SPDX-License-Identifier: Apache-2.0
"""What a stranger with a raw socket can cost the server, each with its figure.

Shown elsewhere: a flooder that pipelines and does not read, 200 flooders of busy connections, refusals at
max-connections and without descriptors (test_limits.py); 19 000 asleep and their page each
(test_memory_sleeping.py); an echo client that does not read, echo ports without descriptors (test_echo.py); a full
upstream pool (test_upstream.py); endless and dripping health answers (test_healthcheck.py); nonsense from a service
manager (test_systemd.py); odd product ids (test_product.py).
"""
import collections
import json
import os
import resource
import shutil
import socket
import struct
import subprocess
import threading
import time

import pytest

import procfs
from burst import Burst
from loadtools import at_once, timed
from server import ROOT, SANITIZED
from wire import Connection, fetch, request

MANY = 500
P99 = 0.050
DAY = "24h"
HEAD = b"POST /currentThread HTTP/1.1\r\nHost: a\r\n"


def p99_beside(server, count=300):
    """The 99th percentile of a normal client's requests on one connection: the best of three rounds."""
    best = 1.0
    with server.connect() as client:
        for _ in range(3):
            times = sorted(timed(client.ask)[0] for _ in range(count))
            best = min(best, times[count * 99 // 100])
    return best


class Drip:
    """A byte to each socket, or from it, again and again, until the block ends."""

    def __init__(self, socks, step):
        self.socks, self.step = socks, step
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.done.is_set():
            for sock in self.socks:
                try:
                    self.step(sock)
                except OSError:
                    pass  # nothing there yet, no room, or the server has had enough
                if self.done.wait(0.0005):
                    return

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


SLOW = {
    "heads": (HEAD + b"X-A: ", lambda sock: sock.send(b"a")),
    "bodies": (HEAD + b"Content-Length: 1000000\r\n\r\n", lambda sock: sock.send(b"a")),
    "kept bodies": (b"PUT /directory/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n" + b" " * 3000,
                    lambda sock: sock.send(b" ")),
    "readers": (request("/" + "a" * 7000) * 600, lambda sock: sock.recv(1)),
}


@pytest.mark.figures
@pytest.mark.parametrize("kind", SLOW)
def test_500_slow_clients_cost_a_normal_one_nothing(start, kind):
    """500 slow heads, bodies or readers: p99 below 50 ms, few KiB each, and none outlives its time.

    A desk of 8 KiB and what of the request has come make up the memory; a reader has two received buffers as well.
    What it does not take lies in the kernel until the socket is full: it takes megabytes of answers to stop the
    server's send, from which the time counts.
    """
    server = start("--server.tomcat.connection-timeout=2s")
    server.assert_serves()
    before, fds = procfs.rss_kib(server.pid), procfs.fd_count(server.pid)
    first, step = SLOW[kind]
    with Burst([server.port] * MANY, receive_buffer=4096) as burst:
        for sock in burst.socks:
            sock.setblocking(False)
            sock.send(first)
        with Drip(burst.socks, step):
            slowest = p99_beside(server)
            each = (procfs.rss_kib(server.pid) - before) / MANY
            server.settle(fds + 4, within=8.0)  # the deadline is of the whole, not renewed by a byte
    assert slowest < P99, f"{slowest * 1000:.1f} ms"
    assert each < (80 if kind == "readers" else 24), f"{each:.1f} KiB each"


@pytest.mark.figures
@pytest.mark.parametrize("limits", [["--server.tomcat.max-connections=200"], []],
                         ids=["max-connections", "descriptors"])
def test_a_connection_flood_loses_no_established_connection(start, limits):
    """50 clients talk on while 2000 connect: no lost answer, no spinning, recovery at once."""
    server = start(*limits, limits={resource.RLIMIT_NOFILE: 1000 if limits else 200})
    with Burst([server.port] * 50) as established:
        assert all(answer.startswith(b"HTTP/1.1 200") for _, answer in established.ask(request()))
        with Burst([server.port] * 2000):
            for _ in range(3):
                answers = established.ask(request(), timeout=10)
                assert all(answer.startswith(b"HTTP/1.1 200") for _, answer in answers)
            time.sleep(0.7)  # the refused ones are drained meanwhile
            before = procfs.cpu_seconds(server.pid)
            time.sleep(1.0)
            assert procfs.cpu_seconds(server.pid) - before < 0.1
        deadline = time.monotonic() + 5
        while fetch(server.port).status != 200:
            assert time.monotonic() < deadline, "no recovery"
            time.sleep(0.01)
        assert all(answer.startswith(b"HTTP/1.1 200") for _, answer in established.ask(request()))
    assert len(server.log.splitlines()) < 30, "a log line for each refusal"


@pytest.mark.figures
def test_100000_requests_on_one_connection_leave_memory_flat(start):
    server = start("--ringspun.carriers=1")
    with server.connect(timeout=20) as client:
        def thousand():
            client.send(request("/actuator/health") * 1000)
            for _ in range(1000):
                client.buffer = client.buffer or client.sock.recv(262144)
                client._take_through(b'{"status":"UP"}')
        thousand()
        before = procfs.rss_kib(server.pid)
        for _ in range(99):
            thousand()
        assert procfs.rss_kib(server.pid) - before < 200
        assert client.buffer == b""
        assert client.ask().status == 200


@pytest.mark.slow
@pytest.mark.figures
def test_bursts_of_19000_connections_give_their_memory_back(start):
    """Three times 19 000 that ask once and go: the memory after the third is that of the first, and small."""
    ringload = ROOT / "build" / "ringload"
    if not ringload.exists():
        pytest.skip("build/ringload is not there: make")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 19500:
        pytest.skip("fewer than 19 500 descriptors")
    server = start(limits={resource.RLIMIT_NOFILE: resource.getrlimit(resource.RLIMIT_NOFILE)[1]})
    server.assert_serves()
    fds, left = procfs.fd_count(server.pid), []
    for _ in range(3):
        done = subprocess.run([ringload, "--users", "19k", "--json", server.remote_url("/remote/0")],
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        server.settle(fds + 4)
        time.sleep(2.5)
        left.append(procfs.rss_kib(server.pid))
    assert left[2] < 1.2 * left[0] and left[2] < 60_000, left


# Fan-outs

def test_small_requests_took_every_descriptor_by_fanning_out(start):
    """200 requests for 1000 calls each: 503 at once beyond the bound; a normal client is served all the while."""
    server = start()
    server.assert_serves()
    before, most = procfs.rss_kib(server.pid), 0
    with Burst([server.port] * 200) as burst:
        for sock in burst.socks:
            sock.send(request("/fanout/1000/1"))
        for _ in range(10):
            took, response = timed(server.get)
            assert response.status == 200
            assert took < 2.0
            most = max(most, procfs.rss_kib(server.pid) - before)
            time.sleep(0.05)
        answers = collections.Counter(sock.recv(4096)[:12] for sock in burst.socks)
    allowed = min((resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 64) // 8, 10_000) // 1000
    assert answers[b"HTTP/1.1 503"] >= 200 - 4 * max(allowed, 1), answers
    assert SANITIZED or most < 200_000, f"{most} KiB"


def test_fan_outs_on_a_pool_of_4_made_threads_by_the_thousand(start):
    """A platform server's fan-outs are bounded in threads as well."""
    server = start("--spring.threads.virtual.enabled=false", "--server.tomcat.threads.max=4",
                   limits={resource.RLIMIT_NOFILE: 1000})
    with Burst([server.port] * 20) as burst:
        for sock in burst.socks:
            sock.send(request("/fanout/100/0.5"))
        most = 0
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            most = max(most, len(os.listdir(f"/proc/{server.pid}/task")))
            time.sleep(0.01)
        assert 100 < most < 150, f"{most} threads"  # an eighth of 936 are 117 calls
        answers = [sock.recv(4096) for sock in burst.socks]
    assert {answer[:12] for answer in answers} == {b"HTTP/1.1 200", b"HTTP/1.1 503"}
    assert any(b"at most 117 of all fan-outs together" in answer for answer in answers)
    told = json.loads(server.get("/fanout/117/0").body)  # and they are given back
    assert told["succeeded"] == 117


# What those who have gone leave behind

@pytest.mark.parametrize("limit", ["threads", "upstream pool"])
def test_clients_that_reset_in_a_queue_kept_their_places_for_as_long_as_it_was_long(start, limit):
    """All threads (or pooled connections) are taken for a day; 300 clients queue and reset: nothing of them is left."""
    server = start(*(["--spring.threads.virtual.enabled=false", "--server.tomcat.threads.max=4"]
                     if limit == "threads" else ["--remote.pool.max=4"]))
    with Burst([server.port] * 4) as holders:
        for sock in holders.socks:
            sock.send(request(f"/blocking/{DAY}"))
        time.sleep(0.3)
        fds = procfs.fd_count(server.pid)
        for _ in range(300):
            connection = server.connect()
            connection.send(request("/blocking/0"))
            connection.reset()
        server.settle(fds + 4)
        for sock in holders.socks:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # the close is a reset
    assert server.get("/blocking/0").status == 200


def test_pooled_calls_of_a_burst_that_is_over_kept_clients_out_for_30_s(start):
    """300 descriptors, 54 products, 220 descriptors idle in the pool after them: they go before a client is refused."""
    server = start(limits={resource.RLIMIT_NOFILE: 300})
    with Burst([server.port] * 54) as burst:
        assert all(answer.startswith(b"HTTP/1.1 200") for _, answer in burst.ask(request("/product/a")))
    time.sleep(0.3)
    with Burst([server.port] * 115) as burst:
        answers = collections.Counter(answer[:12] for _, answer in burst.ask(request()))
    assert answers == {b"HTTP/1.1 200": 115}


@pytest.mark.figures
def test_storms_of_aborted_fan_outs_leave_nothing(start):
    """100 times a thousand calls, reset at once."""
    server = start()
    server.assert_serves()
    fds = procfs.fd_count(server.pid)
    for _ in range(20):
        connections = [server.connect() for _ in range(5)]
        for connection in connections:
            connection.send(request("/fanout/400/60"))
        for connection in connections:
            connection.reset()
    server.settle(fds + 4, within=10)
    server.settle_fibers(2)
    assert json.loads(server.get("/fanout/1000/0").body)["count"] == 1000


# Requests that are large, odd or endless

@pytest.mark.parametrize("path", ["/product/" + "%22" * 2600, "/product/" + '"' * 7900, "/" + "\\" * 7990,
                                  "/product/x?" + "&" * 7900, "/fanout/" + "1" * 7900 + "/1"])
def test_no_answer_is_more_than_a_few_times_its_request(shared, path):
    """The longest targets that are read, of what grows most in JSON."""
    with shared.connect() as client:
        client.send(request(path))
        if client.sock.recv(100).startswith(b"HTTP/1.1 200"):
            return  # odd, but asked for in the right way
        client.half_close()
        assert len(client.rest()) < 3 * len(path)


ENDLESS = {
    "chunk extension": b"Transfer-Encoding: chunked\r\n\r\n1;" + b"a" * 3_000_000,
    "extensions": b"Transfer-Encoding: chunked\r\n\r\n" + (b"1;" + b"a" * 6000 + b"\r\na\r\n") * 500,
    "chunk size": b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 3_000_000,
    "trailers": b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 500_000,
    "fields": b"a: b\r\n" * 500_000,
    "field": b"a: " + b"b" * 3_000_000,
}


@pytest.mark.figures
@pytest.mark.parametrize("part", ENDLESS)
def test_a_part_without_end_is_refused_and_costs_nothing(shared, part):
    before, cpu = procfs.rss_kib(shared.pid), procfs.cpu_seconds(shared.pid)
    with shared.connect() as client:
        try:
            client.send(HEAD + ENDLESS[part])
        except OSError:
            pass  # it is read to 2 MiB beyond the refusal
        assert client.response().status in (400, 431)
    assert procfs.cpu_seconds(shared.pid) - cpu < 0.2
    assert procfs.rss_kib(shared.pid) - before < 500


@pytest.mark.figures
def test_clients_that_make_it_compute_leave_others_their_turn(start):
    """20 clients pipeline 400 /computational each on one carrier."""
    server = start("--ringspun.carriers=1")
    with Burst([server.port] * 20) as burst:
        for sock in burst.socks:
            sock.send(request("/computational") * 400)
        assert p99_beside(server, 100) < P99


# Echo

@pytest.mark.figures
def test_echo_flooders_do_not_delay_a_greeting(start):
    """100 flood the echo port and do not read, 20 send the greeter a megabyte: p99 of a greeting below 50 ms."""
    server = start("--spring.profiles.active=spring,echo", "--echo.port.greeter=0", "--echo.port.echo=0")
    greeter, echo = server.port_of("greeter.listener"), server.port_of("echo.listener")
    before = procfs.rss_kib(server.pid)

    def talk():
        with Connection(greeter) as client:
            try:
                client.send(b"x" * 1_000_000)
            except OSError:
                pass  # it drains 64 KiB at most, or so
            try:
                client.sock.recv(100)
            except ConnectionResetError:
                pass

    def greeted():
        with Connection(greeter) as client:
            return client.rest()

    with Burst([echo] * 100) as burst:
        for sock in burst.socks:
            sock.setblocking(False)
        with Drip(burst.socks, lambda sock: sock.send(b"e" * 65536)):
            at_once(*[talk] * 20)
            rounds = []
            for _ in range(3):
                times = []
                for _ in range(100):
                    took, text = timed(greeted)
                    assert text == b"[echo] Hello World\n"
                    times.append(took)
                rounds.append(sorted(times)[98])
        assert min(rounds) < P99, rounds
        assert procfs.rss_kib(server.pid) - before < 2000


# slowhttptest

MODES = {"slow headers": ["-H"], "slow bodies": ["-B", "-s", "8192"], "ranges": ["-R", "-a", "10", "-b", "3000"],
         "slow reads": ["-X", "-w", "512", "-y", "1024", "-n", "1", "-z", "32", "-k", "3"]}


@pytest.mark.slow
def test_slowhttptest_in_its_four_modes(start, tmp_path):
    """400 connections of each kind side by side, 200 more a second: it always finds the service available."""
    if shutil.which("slowhttptest") is None:
        pytest.skip("slowhttptest is not installed")
    server = start()

    def attack(mode):
        done = subprocess.run(["slowhttptest", *MODES[mode], "-c", "400", "-r", "200", "-l", "6", "-i", "1", "-p", "3",
                               "-g", "-o", str(tmp_path / mode.replace(" ", "-")), "-u", server.url("/currentThread")],
                              capture_output=True, text=True, timeout=40, check=False, cwd=tmp_path)
        table = (tmp_path / f"{mode.replace(' ', '-')}.csv").read_text().splitlines()
        assert len(table) > 2, done.stdout[-2000:]  # it ends early when every connection has been closed
        return [line.split(",") for line in table[1:]]

    for mode, rows in zip(MODES, at_once(*[lambda mode=mode: attack(mode) for mode in MODES])):
        assert all(row[-1].strip() != "0" for row in rows), (mode, rows)
    server.assert_serves()
