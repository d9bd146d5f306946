# SPDX-License-Identifier: Apache-2.0
"""Too many connections, too few descriptors, clients that flood or do not read; what is left after a storm."""
import resource
import signal
import threading
import time

import pytest

import procfs
from burst import Burst
from loadtools import at_once, timed, wrk
from wire import Closed, Connection, request

JUST_A_FEW = 4  # descriptors that may stay: pooled calls


def try_ask(connection, path="/currentThread"):
    """The response, or None when the server closed instead."""
    try:
        return connection.ask(path)
    except (Closed, ConnectionResetError, BrokenPipeError):
        return None


# Connections

def test_connections_beyond_the_limit_get_503_with_retry_after(start):
    """max-connections=10: the app takes five, the sixth is refused and closed; when one goes, one may come."""
    server = start("--server.tomcat.max-connections=10")
    connections = [server.connect() for _ in range(5)]
    assert all(connection.ask().status == 200 for connection in connections)
    for _ in range(3):
        with server.connect() as refused:
            refused.send(request())
            response = refused.response()
            assert response.status == 503
            assert int(response.get("retry-after")) >= 1
            assert response.closes
            refused.assert_closed(3.0)
    assert all(connection.ask().status == 200 for connection in connections)
    connections[0].close()
    time.sleep(0.2)
    server.assert_serves()


def test_idle_clients_do_not_starve_the_calls(start):
    """With the app's half taken by idle clients, one of them still gets its /blocking."""
    server = start("--server.tomcat.max-connections=10")
    connections = [server.connect() for _ in range(5)]
    for connection in connections:
        assert connection.ask().status == 200
    for connection in connections:
        assert connection.ask("/blocking/0").status == 200


@pytest.mark.figures
def test_out_of_descriptors_answers_503_does_not_spin_and_recovers(start):
    """100 descriptors, 300 clients: each gets 200 or 503 or waits; little processor time; then all is served again."""
    server = start("--ringspun.carriers=2", "--server.tomcat.max-connections=1000",
                   limits={resource.RLIMIT_NOFILE: 100})
    server.assert_serves()
    fds = procfs.fd_count(server.pid)
    with Burst([server.port] * 150 + [server.remote_port] * 150) as burst:
        answers = burst.ask(request("/actuator/health"), timeout=3.0)
        got = [answer[:12] for _, answer in answers]
        assert set(got) <= {b"HTTP/1.1 200", b"HTTP/1.1 503", b""}, set(got)
        assert got.count(b"HTTP/1.1 200") >= 20
        assert got.count(b"HTTP/1.1 503") >= 20
        before = procfs.cpu_seconds(server.pid)
        time.sleep(1.5)
        assert procfs.cpu_seconds(server.pid) - before < 0.1
    server.settle(fds + JUST_A_FEW)
    assert server.get("/blocking/0").status == 200
    assert len(server.log.splitlines()) < 60, "a log line for each refusal"


def test_call_without_a_descriptor_is_a_503(start):
    """No descriptor for the call: 503 at once, not a hang."""
    remote = start()
    server = start("--remote.port=-1", f"--remote.url={remote.remote_url()}", "--ringspun.carriers=1",
                   "--server.tomcat.max-connections=1000", limits={resource.RLIMIT_NOFILE: 80})
    with Burst([server.port] * 70) as burst:
        answers = burst.ask(request("/blocking/0.5"), timeout=3.0)
    got = {answer[:12] for _, answer in answers}
    assert got <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}, got
    assert b"HTTP/1.1 200" in got and b"HTTP/1.1 503" in got
    time.sleep(0.2)
    assert server.get("/blocking/0").status == 200


# Idleness

@pytest.mark.slow
@pytest.mark.figures
def test_idle_server_uses_no_processor(start):
    """Under 0.2 % of a core over 5 s: alone, with 100 idle connections, and with 100 that sleep."""
    alone, idle, asleep = start(), start(), start()
    with Burst([idle.port] * 100) as burst, Burst([asleep.remote_port] * 100) as sleepers:
        burst.ask(request())
        for sock in sleepers.socks:
            sock.send(request("/remote/60"))
        time.sleep(2.5)  # pages of idle fibers are given back meanwhile
        before = [procfs.cpu_seconds(server.pid) for server in (alone, idle, asleep)]
        time.sleep(5.0)
        used = [procfs.cpu_seconds(server.pid) - was for server, was in zip((alone, idle, asleep), before)]
    for sock in sleepers.socks:
        sock.close()
    assert max(used) < 0.002 * 5, used
    asleep.signal(signal.SIGTERM)
    asleep.wait_log("Commencing graceful shutdown")
    asleep.signal(signal.SIGTERM)  # the second ends it at once
    asleep.wait()
    asleep.ended()


@pytest.mark.slow
@pytest.mark.figures
def test_memory_of_10000_idle_connections(start):
    """After a warm-up that touched every buffer: at most 5 KiB each; 10 s after they went within 1.5 times."""
    server = start("--server.tomcat.keep-alive-timeout=300s")
    wrk(server.url("/currentThread"), 1, 64)
    wrk(server.remote_url("/remote/0"), 1, 64)
    time.sleep(1.5)
    before = procfs.rss_kib(server.pid)
    fds = procfs.fd_count(server.pid)
    with Burst([server.port, server.remote_port] * 5000, spread=True) as burst:
        answers = burst.ask(request("/actuator/health"))
        assert all(answer.startswith(b"HTTP/1.1 200 ") for _, answer in answers)
        time.sleep(3.0)
        each = (procfs.rss_kib(server.pid) - before) / 10000
        answers = burst.ask(request("/actuator/health"))
        assert all(answer.startswith(b"HTTP/1.1 200 ") for _, answer in answers)
    assert each <= 5.0, f"{each:.2f} KiB each"
    deadline = time.monotonic() + 10.0
    while procfs.rss_kib(server.pid) > 1.5 * before:
        assert time.monotonic() < deadline, f"{procfs.rss_kib(server.pid)} KiB resident, {before} before"
        time.sleep(0.2)
    server.settle(fds + JUST_A_FEW)


# Clients that flood, or do not read

def test_flooder_that_does_not_read_delays_nobody(start):
    """One client pipelines 10 000 requests and reads nothing; others are served promptly; then it reads all 10 000."""
    server = start("--ringspun.carriers=1")
    flooder = Connection(server.port, timeout=20)
    sender = threading.Thread(target=lambda: flooder.send(request() * 10000))
    sender.start()
    slowest = 0.0
    for _ in range(50):
        took, response = timed(server.get)
        assert response.status == 200
        slowest = max(slowest, took)
    assert slowest < 0.2
    for _ in range(10000):
        assert flooder.response().status == 200
    sender.join()
    flooder.close()


def test_flooders_do_not_use_up_the_buffers(start):
    """200 clients pipeline 60 KB each behind a request that sleeps: others on the carrier are served all the while."""
    server = start("--ringspun.carriers=1")
    with Burst([server.remote_port] * 200) as burst:
        for sock in burst.socks:
            sock.setblocking(False)
            sock.send(request("/remote/1") + request("/remote/0") * 900)
        for _ in range(30):
            took, response = timed(server.get)
            assert response.status == 200
            assert took < 0.3
            time.sleep(0.01)
    server.assert_serves()


def test_unread_answers_hold_back_only_their_client(start):
    """A client with a tiny window that never reads stalls its own connection; SIGTERM still ends the server in time."""
    server = start("--spring.lifecycle.timeout-per-shutdown-phase=500ms", "--ringspun.carriers=1")
    stalled = Connection(server.port)
    stalled.sock.setblocking(False)
    try:
        while True:
            stalled.sock.send(request() * 100)
            time.sleep(0.001)
    except BlockingIOError:
        pass
    before = procfs.cpu_seconds(server.pid)
    time.sleep(0.5)
    assert procfs.cpu_seconds(server.pid) - before < 0.1
    server.assert_serves()
    server.stop(5)
    stalled.close()


def test_byte_by_byte_clients_do_not_stall_others(start):
    """500 clients in the middle of a head."""
    server = start()
    with Burst([server.port] * 500) as burst:
        for sock in burst.socks:
            sock.send(b"GET /currentThread HTTP/1.1\r\nHo")
        took, response = timed(server.get)
        assert response.status == 200 and took < 0.3
        for sock in burst.socks:
            sock.send(b"st: a\r\n\r\n")
        for sock in burst.socks:
            assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_burst_of_connections_is_spread_over_the_carriers(start):
    """400 connections and two carriers: neither has less than a third."""
    server = start("--ringspun.carriers=2")
    with Burst([server.port] * 400) as burst:
        answers = burst.ask(request())
    shares = [sum(answer.endswith(carrier) for _, answer in answers) for carrier in (b"@carrier-0", b"@carrier-1")]
    assert sum(shares) == 400
    assert min(shares) >= 133, shares


# Leaks

STORMS = {
    "short connections": lambda server: at_once(*[lambda: [server.get() for _ in range(100)]] * 4),
    "500 persistent connections": lambda server: wrk(server.url("/currentThread"), 1, 500, threads=2),
    "refusals": lambda server: [server.get("/nope"), *[server.get(version="1.2") for _ in range(200)]],
    "resets within a request": lambda server: [abort(server, b"GET /cur") for _ in range(200)],
    "resets within a sleep": lambda server: [abort(server, request("/blocking/2")) for _ in range(200)],
    "aborts with answers unread": lambda server: [abort(server, request() * 50) for _ in range(100)],
    "calls": lambda server: at_once(*[lambda: [server.get("/blocking/0") for _ in range(50)]] * 8),
    "long targets": lambda server: [server.get("/" + "a" * 100_000) for _ in range(50)],
}


def abort(server, data):
    connection = server.connect()
    connection.send(data)
    connection.reset()


@pytest.mark.parametrize("end", ["reset", "half_close"])
def test_end_right_behind_data_was_lost_by_the_multishot_recv(start, end):
    """Data and RST or FIN that wake the kernel's poll together: the connection ends all the same, not at its timeout."""
    for _ in range(8):
        server = start("--ringspun.carriers=2")
        for _ in range(150):
            connection = server.connect()
            connection.send(b"GET /cur")
            getattr(connection, end)()
        deadline = time.monotonic() + 3
        while server.connection_fibers() > 0 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert server.connection_fibers() == 0


@pytest.mark.parametrize("policy", ["true", "false"])
@pytest.mark.parametrize("storm", STORMS)
def test_storm_leaves_nothing(start, storm, policy):
    """No descriptor, no fiber, and little memory."""
    server = start(f"--spring.threads.virtual.enabled={policy}")
    server.assert_serves()
    fds = procfs.fd_count(server.pid)
    STORMS[storm](server)
    pooled = 20 if storm == "calls" else JUST_A_FEW
    if storm == "resets within a sleep" and policy == "false":
        pooled = 200  # a blocked thread finishes its call, whose connection then goes into the pool
    server.settle_fibers(pooled)
    server.settle(fds + 2 * pooled)
    server.assert_serves()
