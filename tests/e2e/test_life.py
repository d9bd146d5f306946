# SPDX-License-Identifier: Apache-2.0
"""Signals, the drain, and what the log says about it."""
import os
import re
import signal
import socket
import threading
import time

import pytest

from burst import Burst
from loadtools import timed
from wire import Closed, Connection, request

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z +(TRACE|DEBUG|INFO|WARN|ERROR) (\d+) --- "
                  r"\[ *[\w-]+\] [\w.]+ *: .+")


def wait_until_refused(port, within):
    """Wait until nobody listens on the port."""
    deadline = time.monotonic() + within
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            pass
        assert time.monotonic() < deadline, "still listening"
        time.sleep(0.01)


# The log

def test_log_lines_have_spring_boots_shape(start):
    """Every line of a start, some requests and a stop; the lines that scripts look for."""
    server = start("--ringspun.carriers=2")
    server.get("/blocking/0")
    server.stop()
    lines = server.log.splitlines()
    for line in lines:
        match = LINE.fullmatch(line)
        assert match, line
        assert int(match.group(2)) == server.pid
    assert re.search(rf"http\.listener *: ringspun started on port {server.port} \(http\), fibers, 2 carriers$",
                     server.log, re.M)
    assert re.search(r": Started ringspun in \d+\.\d{3} seconds \(process running for \d+\.\d{3}\)$", server.log, re.M)
    commencing = server.log.index("Commencing graceful shutdown. Waiting for active requests to complete")
    assert server.log.index("Graceful shutdown complete") > commencing
    assert server.errors == ""


def test_requests_are_not_logged_by_default(start):
    """A hundred requests, not one line."""
    server = start()
    before = len(server.log.splitlines())
    for _ in range(100):
        server.get("/blocking/0")
    assert len(server.log.splitlines()) == before


def test_invocations_are_counted_at_debug(start):
    """logging.level.root=DEBUG shows invokeCount : N."""
    server = start("--logging.level.root=DEBUG")
    server.get_remote("/remote/0")
    server.get_remote("/remote/0")
    server.wait_log("invokeCount : 1")
    server.wait_log("invokeCount : 2")


# The drain

def test_sigterm_right_after_100_requests_on_new_connections(start):
    """100 answers with 200 though some connections are not yet accepted; 50 idle ones close; exit 0 after the last."""
    server = start()
    with Burst([server.port] * 50) as idle, Burst([server.port] * 100) as busy:
        assert all(answer.startswith(b"HTTP/1.1 200 ") for _, answer in idle.ask(request()))
        for sock in busy.socks:
            sock.send(request("/blocking/2"))
        server.signal(signal.SIGTERM)
        began = time.monotonic()
        for sock in idle.socks:
            assert sock.recv(1) == b""
        assert time.monotonic() - began < 1.0
        for sock in busy.socks:
            answer = sock.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 "), answer
            assert b"\r\nConnection: close\r\n" in answer, answer
            assert answer.endswith(b"Hello, delayed by 2 seconds.")
            assert sock.recv(1) == b""
        took, status = timed(lambda: server.wait(5))
    assert status == 0
    assert took < 0.5


def test_sigterm_between_connect_and_request(start):
    """Connections that were accepted and have not yet asked: answered or closed, never reset, and exit 0."""
    server = start()
    with Burst([server.port] * 20) as burst:
        server.signal(signal.SIGTERM)
        for sock in burst.socks:
            try:
                sock.send(request())
                answer = sock.recv(65536)
            except (BrokenPipeError, ConnectionResetError):
                answer = b""  # it had been closed before the request came
            assert answer == b"" or answer.startswith(b"HTTP/1.1 200 "), answer
    assert server.wait(5) == 0


def test_sigterm_without_clients_ends_at_once(start):
    """Exit 0 within half a second; SIGINT likewise."""
    for number in (signal.SIGTERM, signal.SIGINT):
        server = start()
        server.signal(number)
        took, status = timed(lambda: server.wait(5))
        assert status == 0
        assert took < 0.5


def test_half_sent_request_finishes_within_the_drain(start):
    """A request whose head is half there when SIGTERM comes is a request in flight."""
    server = start("--spring.lifecycle.timeout-per-shutdown-phase=3s")
    with server.connect() as connection:
        data = request("/blocking/0.2")
        connection.send(data[:30])
        time.sleep(0.1)
        server.signal(signal.SIGTERM)
        server.wait_log("Commencing graceful shutdown")
        time.sleep(0.1)
        connection.send(data[30:])
        response = connection.response()
        assert response.status == 200 and response.closes
    assert server.wait(5) == 0


def test_pipelined_requests_are_answered_in_the_drain(start):
    """What had been sent is answered; only the last answer says close."""
    server = start()
    with server.connect() as connection:
        connection.send(request("/blocking/0.3") * 3)
        time.sleep(0.1)
        server.signal(signal.SIGTERM)
        assert connection.response().status == 200
        rest = connection.rest()
        assert rest == b"" or rest.count(b"HTTP/1.1 200 ") == 2
    assert server.wait(5) == 0


def test_remote_outlives_the_app(start):
    """While an app request is in flight the remote takes new connections, the app none."""
    server = start()
    with server.connect() as connection:
        connection.send(request("/blocking/1"))
        time.sleep(0.1)
        server.signal(signal.SIGTERM)
        wait_until_refused(server.port, 0.5)
        assert server.get_remote("/remote/0").status == 200
        assert connection.response().status == 200
    assert server.wait(5) == 0


def test_a_second_signal_ends_at_once(start):
    """A request of 20 s is in flight."""
    server = start()
    with server.connect() as connection:
        connection.send(request("/blocking/20"))
        time.sleep(0.1)
        server.signal(signal.SIGTERM)
        server.wait_log("Commencing graceful shutdown")
        server.signal(signal.SIGTERM)
        took, _ = timed(lambda: server.wait(5))
        assert took < 0.5
    server.ended()


def test_drain_ends_after_the_phase_timeout(start):
    """timeout-per-shutdown-phase=500ms with requests of 30 s at both servers: two phases, then exit 0."""
    server = start("--spring.lifecycle.timeout-per-shutdown-phase=500ms")
    with server.connect() as app, server.connect_remote() as remote:
        app.send(request("/blocking/30"))
        remote.send(request("/remote/30"))
        time.sleep(0.1)
        server.signal(signal.SIGTERM)
        took, status = timed(lambda: server.wait(5))
        assert status == 0
        assert 0.4 <= took < 2.0


def test_immediate_shutdown_waits_for_nobody(start):
    """server.shutdown=immediate."""
    server = start("--server.shutdown=immediate")
    with server.connect() as connection:
        connection.send(request("/blocking/20"))
        time.sleep(0.1)
        server.signal(signal.SIGTERM)
        took, status = timed(lambda: server.wait(5))
        assert status == 0
        assert took < 0.5


def test_shutdown_delay_turns_readiness_away_while_all_is_served(start):
    """server.shutdown.delay=1s: readiness and health 503 OUT_OF_SERVICE, all else is served; then the drain."""
    server = start("--server.shutdown.delay=1s")
    with server.connect() as idle:
        assert idle.ask().status == 200
        server.signal(signal.SIGTERM)
        began = time.monotonic()
        time.sleep(0.2)
        for path in ("/actuator/health/readiness", "/actuator/health"):
            response = server.get(path)
            assert response.status == 503
            assert b'"OUT_OF_SERVICE"' in response.body
        assert server.get("/actuator/health/liveness").status == 200
        assert server.get("/currentThread").status == 200
        assert server.get("/blocking/0").status == 200
        assert idle.ask().status == 200
        idle.assert_closed(2.0)
        assert 0.9 <= time.monotonic() - began < 1.5
    assert server.wait(5) == 0


def test_idle_connection_at_the_remote_does_not_hold_the_end(start):
    """Keep-alive connections of both listeners close at SIGTERM; the pool's own as well."""
    server = start()
    server.get("/blocking/0")
    with server.connect_remote() as remote, server.connect() as app:
        remote.ask("/remote/0")
        app.ask()
        server.signal(signal.SIGTERM)
        took, status = timed(lambda: server.wait(5))
        assert status == 0
        assert took < 0.7
        app.assert_closed()
        remote.assert_closed()


def test_sigterm_under_load_truncates_no_answer(start):
    """Eight clients in full flight on persistent connections: each answer that begins is whole, the last says close."""
    server = start()
    torn, closes = [], []

    def client():
        with server.connect() as connection:
            try:
                while True:
                    if connection.ask("/blocking/0.001").closes:
                        closes.append(True)
                        return
            except Closed as closed:
                torn.extend([closed.got] if closed.got else [])
            except (ConnectionResetError, BrokenPipeError):
                pass  # it asked when the server had closed

    clients = [threading.Thread(target=client) for _ in range(8)]
    for thread in clients:
        thread.start()
    time.sleep(0.3)
    server.signal(signal.SIGTERM)
    for thread in clients:
        thread.join()
    assert torn == []
    assert closes
    assert server.wait(5) == 0


@pytest.mark.parametrize("policy", ["true", "false"])
def test_sigterm_with_requests_on_either_policy(start, policy):
    """Requests in the platform pool, and those that wait for one of its threads, finish."""
    server = start(f"--spring.threads.virtual.enabled={policy}", "--server.tomcat.threads.max=2")
    with Burst([server.port] * 6) as burst:
        for sock in burst.socks:
            sock.send(request("/blocking/0.3"))
        time.sleep(0.05)
        server.signal(signal.SIGTERM)
        for sock in burst.socks:
            assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert server.wait(5) == 0


# Other signals

def test_sigquit_dumps_all_fibers_and_goes_on(start):
    """Names, states and what they wait for, on stderr; the request is answered."""
    server = start()
    with server.connect() as busy, server.connect() as idle:
        idle.ask()
        busy.send(request("/blocking/1"))
        time.sleep(0.2)
        dump = "\n".join(server.fiber_dump())
        assert len(re.findall(rf"Fiber\[#\d+,http-{server.port}-conn-\d+\]", dump)) == 2, dump
        assert re.search(rf"{server.remote_port}-conn-\d+\]/parked\(sleep\)", dump), dump
        assert "parked(recv)" in dump
        assert busy.response().status == 200
    server.assert_serves()


def test_sigquit_under_load_harms_nothing(start):
    """A dump of 1000 sleeping requests while others come."""
    server = start()
    with Burst([server.remote_port] * 1000) as burst:
        for sock in burst.socks:
            sock.send(request("/remote/2"))
        time.sleep(0.3)
        until = time.monotonic() + 1.5
        while server.connection_fibers() < 1000:
            assert time.monotonic() < until, server.report()
        server.assert_serves()
        for sock in burst.socks:
            assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_sigpipe_and_sighup_of_a_closed_reader_do_no_harm(start):
    """SIGPIPE is ignored."""
    server = start()
    for _ in range(3):
        server.signal(signal.SIGPIPE)
    server.assert_serves()


def test_client_that_goes_before_its_answer_raises_no_sigpipe(start):
    """A full close after a pipelined request: the answer goes into a socket that resets."""
    server = start()
    for _ in range(20):
        with Connection(server.port) as connection:
            connection.send(request("/blocking/0.05") * 2)
    time.sleep(0.3)
    server.assert_serves()


def test_nothing_is_left_of_the_process(start):
    """After the end both ports are free and the pid is gone."""
    server = start()
    server.assert_serves()
    server.stop()
    assert not os.path.exists(f"/proc/{server.pid}")
    for port in (server.port, server.remote_port):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
