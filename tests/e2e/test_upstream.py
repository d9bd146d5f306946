# SPDX-License-Identifier: Apache-2.0
"""/blocking against a remote that stops, dies, comes back, lies or closes."""
import json
import signal
import socket
import threading
import time

import pytest

import procfs
from fakeremote import GOOD, FakeRemote
from loadtools import at_once, timed
from wire import Connection, request

POLICIES = pytest.mark.parametrize("policy", ["fibers", "platform"])


def app(start, url, *args, policy="fibers"):
    """A server that serves the app only, its remote being elsewhere."""
    platform = () if policy == "fibers" else ("--spring.threads.virtual.enabled=false",)
    return start("--remote.port=-1", f"--remote.url={url}", *platform, *args)


def assert_error(response, status, path):
    assert response.status == status, response
    told = json.loads(response.body)
    assert told["status"] == status and told["path"] == path, told


class Hammer:
    """Asks for /blocking/0 again and again in a thread; notes (when, seconds, status)."""

    def __init__(self, server):
        self.server = server
        self.answers = []
        self.failure = None
        self.stopping = False
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        try:
            with Connection(self.server.port) as connection:
                while not self.stopping:
                    began = time.monotonic()
                    response = connection.ask("/blocking/0")
                    self.answers.append((began, time.monotonic() - began, response.status))
                    time.sleep(0.002)
        except Exception as error:  # told by the test's thread
            self.failure = error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join()

    def next_statuses(self, seconds):
        """The statuses of requests that begin within the next so many seconds."""
        since = time.monotonic()
        time.sleep(seconds)
        return [status for began, _, status in list(self.answers) if began >= since]

    def slowest(self):
        return max(seconds for _, seconds, _ in self.answers)


# Stopped, killed, restarted

DELAYS = {"0": 0.0, "0.5": 0.5, "1500ms": 1.5}


@pytest.fixture(scope="module")
def deadlines(start_shared):
    """What is to be seen of calls that get no answer: all of it side by side, since it takes as long as it takes."""
    remote = start_shared()
    fibers = app(start_shared, remote.remote_url())
    platform = app(start_shared, remote.remote_url(), policy="platform")
    for server in (fibers, platform):
        assert server.get("/blocking/0").status == 200
    with FakeRemote(lambda call: None) as silent:
        one_connection = app(start_shared, silent.url, "--remote.pool.max=1")
        hundred = app(start_shared, silent.url)
        fds = procfs.fd_count(hundred.pid)

        def calls(server, paths):
            one_each = [lambda path=path: timed(lambda: server.get(path, timeout=20)) for path in paths]
            return timed(lambda: at_once(*one_each))

        remote.signal(signal.SIGSTOP)
        results = at_once(*[lambda server=server, paths=paths: calls(server, paths) for server, paths in (
            (fibers, [f"/blocking/{n}" for n in DELAYS]), (platform, [f"/blocking/{n}" for n in DELAYS]),
            (one_connection, ["/blocking/0"] * 2), (hundred, ["/blocking/0"] * 100))])
        hundred.settle(fds + 1)
        hundred.assert_serves()
        remote.signal(signal.SIGCONT)
        afterwards = [timed(lambda server=server: server.get("/blocking/0")) for server in (fibers, platform)]
    return {"fibers": results[0], "platform": results[1], "pool": results[2], "hundred": results[3],
            "afterwards": afterwards}


@pytest.mark.slow
@POLICIES
def test_stopped_remote_gives_504_at_the_deadline(deadlines, policy):
    """SIGSTOP: 504 after n + 5 s for each n."""
    for n, (took, response) in zip(DELAYS, deadlines[policy][1]):
        assert_error(response, 504, f"/blocking/{n}")
        assert DELAYS[n] + 5.0 <= took < DELAYS[n] + 5.3, took


@pytest.mark.slow
def test_remote_that_goes_on_gives_200_at_once(deadlines):
    """After SIGCONT, though all pooled connections were given up."""
    for took, response in deadlines["afterwards"]:
        assert response.status == 200
        assert took < 0.5


@pytest.mark.slow
def test_waiting_for_the_pool_never_hangs(deadlines):
    """The only connection is taken by a call that is never answered: those behind it get a 504 or 503."""
    took, results = deadlines["pool"]
    assert {response.status for _, response in results} <= {504, 503}
    assert took < 10.5


@pytest.mark.slow
def test_hundred_calls_that_time_out_leave_nothing(deadlines):
    """All are 504 at the same time; the fixture saw every descriptor come back."""
    took, results = deadlines["hundred"]
    assert {response.status for _, response in results} == {504}
    assert took < 6.0


@POLICIES
def test_killed_remote_gives_502_at_once_and_200_when_it_is_back(start, policy):
    """While /blocking/0 is hammered: SIGKILL, then a new one on the port, twice."""
    remote = start()
    port = remote.remote_port
    server = app(start, remote.remote_url(), policy=policy)
    with Hammer(server) as hammer:
        assert set(hammer.next_statuses(0.3)) == {200}
        for _ in range(2):
            remote.kill()
            time.sleep(0.05)
            assert set(hammer.next_statuses(0.3)) == {502}
            remote = start(f"--remote.port={port}")
            assert set(hammer.next_statuses(0.3)) == {200}
    assert hammer.failure is None
    assert {status for _, _, status in hammer.answers} == {200, 502}
    assert hammer.slowest() < 0.5


def test_request_in_flight_when_the_remote_dies_is_a_502(start):
    """At once, not at the deadline."""
    remote = start()
    server = app(start, remote.remote_url())
    with server.connect() as connection:
        connection.send(request("/blocking/20"))
        time.sleep(0.2)
        remote.kill()
        took, response = timed(connection.response)
        assert_error(response, 502, "/blocking/20")
        assert took < 0.5


@POLICIES
def test_refused_connection_is_a_502(start, policy):
    """Nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = app(start, f"http://127.0.0.1:{port}", policy=policy)
    took, response = timed(lambda: server.get("/blocking/1"))
    assert_error(response, 502, "/blocking/1")
    assert took < 0.5


@POLICIES
def test_connect_that_is_not_answered_is_a_504_after_2_s(start, policy):
    """The remote's accept queue is full, so that its kernel drops the SYN."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        fillers = []
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
            fillers.append(filler)
        time.sleep(0.05)
        server = app(start, f"http://127.0.0.1:{deaf.getsockname()[1]}", policy=policy)
        took, response = timed(lambda: server.get("/blocking/0"))
        for filler in fillers:
            filler.close()
    assert_error(response, 504, "/blocking/0")
    assert 1.9 <= took < 2.5


@POLICIES
def test_remote_by_name(start, policy):
    """remote.url with a host name is resolved."""
    remote = start()
    server = app(start, f"http://localhost:{remote.remote_port}", policy=policy)
    assert server.get("/blocking/0").status == 200


def test_name_that_does_not_resolve_is_a_502(start):
    """At request time (or a clear refusal to start), and the server goes on."""
    server = app(start, "http://no-such-host.invalid:80")
    assert_error(server.get("/blocking/0", timeout=20), 502, "/blocking/0")
    server.assert_serves()


# The pool

@POLICIES
def test_upstream_connections_are_kept_and_used_again(start, policy):
    """Twenty calls one after the other use one connection (a carrier or thread may have its own)."""
    with FakeRemote(lambda call: call.answer()) as remote:
        server = app(start, remote.url, "--server.tomcat.threads.max=1", "--ringspun.carriers=1", policy=policy)
        for _ in range(20):
            assert server.get("/blocking/0").text == "good"
        assert remote.connections == 1
        head = remote.calls[-1].head.decode()
        assert head.startswith("GET /remote/0 HTTP/1.1\r\n")
        assert f"\r\nHost: 127.0.0.1:{remote.port}" in head


def test_pool_is_shared_by_carriers_fairly(start):
    """Sixty sequential calls never need more connections than there are carriers."""
    with FakeRemote(lambda call: call.answer()) as remote:
        server = app(start, remote.url, "--ringspun.carriers=2")
        for _ in range(60):
            assert server.get("/blocking/0").text == "good"
        assert remote.connections <= 2


@POLICIES
def test_pooled_connection_that_the_remote_closed_meanwhile_is_no_error(start, policy):
    """Each answer is followed by a FIN that was not announced: every call is a 200 all the same."""
    def behave(call):
        call.answer()
        time.sleep(0.02)
        call.close()

    with FakeRemote(behave) as remote:
        server = app(start, remote.url, policy=policy)
        for _ in range(5):
            assert server.get("/blocking/0").text == "good"
            time.sleep(0.05)


@POLICIES
@pytest.mark.parametrize("end", ["close", "reset"])
def test_call_on_a_pooled_connection_that_dies_is_tried_once_more(start, policy, end):
    """The remote ends a used connection when the next request comes: a fresh one serves it."""
    def behave(call):
        if call.nth == 0:
            call.answer()
        else:
            getattr(call, end)()

    with FakeRemote(behave) as remote:
        server = app(start, remote.url, "--ringspun.carriers=1", "--server.tomcat.threads.max=1", policy=policy)
        for _ in range(4):
            assert server.get("/blocking/0").text == "good"
        assert len(remote.calls) == 7  # each but the first was tried twice
        assert remote.connections == 4


def test_call_is_not_tried_a_third_time(start):
    """When the fresh connection dies too: 502 after two tries."""
    def behave(call):
        if call.connection == 0 and call.nth == 0:
            call.answer()
        else:
            call.close()

    with FakeRemote(behave) as remote:
        server = app(start, remote.url, "--ringspun.carriers=1")
        assert server.get("/blocking/0").status == 200
        assert_error(server.get("/blocking/0"), 502, "/blocking/0")
        assert len(remote.calls) == 3


def test_call_is_not_repeated_once_some_of_the_answer_came(start):
    """On a used connection too: 502, and no second call."""
    def behave(call):
        if call.nth == 0:
            call.answer()
        else:
            call.answer(GOOD[:30])
            call.close()

    with FakeRemote(behave) as remote:
        server = app(start, remote.url, "--ringspun.carriers=1")
        assert server.get("/blocking/0").status == 200
        assert_error(server.get("/blocking/0"), 502, "/blocking/0")
        assert len(remote.calls) == 2


@pytest.mark.figures
def test_pool_max_makes_calls_wait_in_turn(start):
    """remote.pool.max=2 and six calls of 0.3 s: three waves, never more than two calls, no carrier blocked."""
    for carriers in ("1", "2"):
        with FakeRemote(lambda call: (time.sleep(0.3), call.answer())) as remote:
            server = app(start, remote.url, "--remote.pool.max=2", f"--ringspun.carriers={carriers}")

            def quick_one():
                time.sleep(0.1)
                return timed(lambda: server.get("/currentThread"))

            took, results = timed(lambda: at_once(quick_one, *[lambda: server.get("/blocking/0.3")] * 6))
            assert [result.status for result in results[1:]] == [200] * 6
            assert 0.9 <= took < 1.2
            assert results[0][0] < 0.1
            assert remote.running_most == 2
            if carriers == "1":
                assert remote.connections == 2


# Nonsense

NONSENSE = {
    "no HTTP": b"blah blah\r\n\r\n",
    "bytes": bytes(range(256)),
    "nothing, then FIN": b"",
    "half a head": GOOD[:40],
    "half a body": GOOD[:-2],
    "status of no digits": GOOD.replace(b"200", b"2x0"),
    "version 2": GOOD.replace(b"HTTP/1.1", b"HTTP/2.0"),
    "two lengths": GOOD.replace(b"Content-Length: 4", b"Content-Length: 4\r\nContent-Length: 5"),
    "broken chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\ngood\r\n",
    "half the chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"Name: value\r\n" * 10000,
    "a body beyond all measure": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n" + bytes(100),
}


@POLICIES
@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_from_the_remote_is_a_502(start, policy, name):
    """At once, and the next call is served."""
    def behave(call):
        if b"/remote/0.1" in call.head:
            call.answer(NONSENSE[name])
            call.close()
        else:
            call.answer()

    with FakeRemote(behave) as remote:
        server = app(start, remote.url, policy=policy)
        took, response = timed(lambda: server.get("/blocking/0.1"))
        assert_error(response, 502, "/blocking/0.1")
        assert took < 1.0
        assert server.get("/blocking/0").text == "good"


@pytest.mark.parametrize("answer, text", [
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\ngo\r\n2\r\nod\r\n0\r\n\r\n", "good"),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD, "good"),
    (GOOD.replace(b"HTTP/1.1", b"HTTP/1.0"), "good"),
    (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ngood", "good"),
    (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", ""),
], ids=["chunked", "100 first", "1.0", "until close", "empty"])
def test_every_framing_of_an_answer_is_read(start, answer, text):
    """By length, chunks or close, in one piece or byte by byte."""
    def behave(call):
        if b"/remote/0.1" in call.head:
            for byte in answer:
                call.answer(bytes([byte]))
        else:
            call.answer(answer)
        if b"close" in answer or b"1.0" in answer:
            call.close()

    with FakeRemote(behave) as remote:
        server = app(start, remote.url)
        for path in ("/blocking/0", "/blocking/0.1", "/blocking/0"):
            response = server.get(path)
            assert response.status == 200 and response.text == text


def test_rest_of_an_answer_never_becomes_the_next_one(start):
    """Two answers to one request: the second is not given to the next caller."""
    def behave(call):
        call.answer(GOOD + GOOD.replace(b"good", b"evil") if call.nth == 0 else GOOD)

    with FakeRemote(behave) as remote:
        server = app(start, remote.url, "--ringspun.carriers=1")
        for _ in range(4):
            assert server.get("/blocking/0").text == "good"
            time.sleep(0.02)


# The client goes

def test_client_reset_aborts_the_call(start):
    """The remote sees a reset within a second: it can stop working for nobody."""
    ends = []
    with FakeRemote(lambda call: ends.append(call.await_end(5))) as remote:
        server = app(start, remote.url)
        connection = server.connect()
        connection.send(request("/blocking/5"))
        remote.await_calls(1)
        time.sleep(0.05)
        began = time.monotonic()
        connection.reset()
        while not ends:
            assert time.monotonic() - began < 1.0, "the call goes on"
            time.sleep(0.005)
        assert ends == ["reset"]


def test_client_half_close_does_not_abort_the_call(start):
    """FIN alone is not the end of interest."""
    with FakeRemote(lambda call: (time.sleep(0.3), call.answer())) as remote:
        server = app(start, remote.url)
        with server.connect() as connection:
            connection.send(request("/blocking/0.3"))
            connection.half_close()
            assert connection.response().text == "good"
            connection.assert_closed()


def test_client_reset_ends_the_sleep_at_once(start):
    """/remote/30: the connection's fiber and descriptor are gone within a second."""
    server = start()
    server.get_remote("/remote/0")
    fds = procfs.fd_count(server.pid)
    connections = [server.connect_remote() for _ in range(50)]
    for connection in connections:
        connection.send(request("/remote/30"))
    time.sleep(0.3)
    assert server.connection_fibers() >= 50
    for connection in connections:
        connection.reset()
    server.settle(fds, within=1.0)
    assert server.connection_fibers() == 0


def test_client_reset_of_blocking_ends_the_sleep_at_the_remote(start):
    """Through both servers of the one process."""
    server = start()
    server.get("/currentThread")
    fds = procfs.fd_count(server.pid)
    connections = [server.connect() for _ in range(50)]
    for connection in connections:
        connection.send(request("/blocking/30"))
    time.sleep(0.5)
    assert server.connection_fibers() >= 100
    for connection in connections:
        connection.reset()
    server.settle(fds, within=2.0)
    assert server.connection_fibers() == 0


def test_half_close_of_a_sleeping_request_still_gets_its_answer(start):
    """At the remote itself."""
    server = start()
    with server.connect_remote() as connection:
        began = time.monotonic()
        connection.send(request("/remote/0.4"))
        connection.half_close()
        response = connection.response()
        assert response.status == 200
        assert time.monotonic() - began >= 0.4
