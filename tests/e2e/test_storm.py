# SPDX-License-Identifier: Apache-2.0
"""Storms on the real kernel: deadlines against answers and bytes of the same moment, cancels, resets, descriptors used
again at once. Every answer is compared to what that very connection asked for, byte by byte; at the end nothing is left.

The simulation (tests/sim) tries more orders; here the kernel is the real one. Run under sanitizers by 'make asan-e2e'.
"""
import collections
import contextlib
import json
import random
import select
import socket
import struct
import time

import pytest

import procfs
from loadtools import at_once
from server import SANITIZED
from wire import Closed, Connection, Response, check_response, request

PLATFORM = "--spring.threads.virtual.enabled=false"
SHORT_RINGS = ("--ringspun.debug.ring-entries=8", "--ringspun.debug.completion-entries=64")
WORLDS = [pytest.param((), id="default"), pytest.param(SHORT_RINGS, id="short_rings"),
          pytest.param(("--ringspun.carriers=1",), id="one_carrier"),
          pytest.param((PLATFORM, "--server.tomcat.threads.max=60", *SHORT_RINGS), id="platform")]
RESET = struct.pack("ii", 1, 0)


@pytest.fixture(params=WORLDS)
def world(request, start):
    """A server, of which nothing is left after the storm: no session, no descriptor."""
    server = start("--spring.profiles.active=spring,echo", "--echo.port.greeter=-1", "--echo.port.echo=0", *request.param)
    server.echo_port = server.port_of("echo.listener")
    server.get("/blocking/0")  # the pool's first connection
    before = procfs.fd_count(server.pid)
    yield server
    # what stays is kept alive for the next call: two descriptors each, and a session of the remote's
    deadline = time.monotonic() + 8
    while any("-conn-" in line and "remote-" not in line for line in server.fiber_dump()):
        assert time.monotonic() < deadline, server.report()
    kept = sum("remote-" in line and "-conn-" in line for line in server.fiber_dump())
    server.settle(before + 2 * kept)
    assert server.get("/blocking/0").text == "Hello, delayed by 0 seconds."


def answers_of(asked, seconds=20.0):
    """Send each (port, bytes) on a connection of its own, at once; all that each got until it ended or for so long."""
    clients, got = {}, {}
    with contextlib.ExitStack() as stack:  # a failure must not leave hundreds open to the tests behind it
        poll = stack.enter_context(select.epoll())
        for port, data in asked:
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)  # what is asked for still comes, and then an end
            poll.register(sock, select.EPOLLIN)
            clients[sock.fileno()] = sock
            got[sock.fileno()] = b""
        waiting = set(clients)
        deadline = time.monotonic() + seconds
        while waiting:
            assert time.monotonic() < deadline, f"{len(waiting)} of {len(clients)} without an end"
            for fd, _ in poll.poll(0.5, 256):
                data = clients[fd].recv(65536)
                got[fd] += data
                if not data:
                    poll.unregister(fd)
                    waiting.discard(fd)
    return list(got.values())


def only_response(data):
    """The one response that data is; nothing behind it."""
    head, _, body = data.partition(b"\r\n\r\n")
    response = Response(head, body)
    check_response(response)
    assert len(body) == int(response.get("content-length")), data
    return response


def test_deadlines_against_answers_of_the_same_moment(world):
    """Reviews come after 2 s, a failure after 100 ms: at those very deadlines it is the one or the other, and whole."""
    seen = collections.Counter()
    for fail, base, count, rounds in (("", 2000, 250, 1), ("&fail=info", 100, 60, 5), ("&fail=reviews", 100, 60, 5)):
        for turn in range(rounds):
            names = [f"storm-{base}-{turn}-{number}" for number in range(count)]
            asked = [(world.port, request(f"/product/{name}?deadline={base - 1 + number % 12}ms{fail}"))
                     for number, name in enumerate(names)]
            for name, data in zip(names, answers_of(asked)):
                response = only_response(data)
                told = json.loads(response.body)
                seen[base, response.status] += 1
                if response.status == 200:
                    assert told["productId"] == told["productInfo"]["productId"] == name
                    assert told["reviews"] == {"noOfReviews": 200, "overallRating": 4.5}
                else:
                    assert response.status in ((504,) if not fail else (502, 504)), response
                    assert told["path"] == f"/product/{name}", told
    assert (seen[100, 502] or SANITIZED) and seen[100, 504] and seen[2000, 504], seen
    assert sum(seen.values()) == 250 + 600


def test_the_last_byte_of_a_head_at_its_very_deadline(start):
    """200 or 408, never both, never half of one; 300 clients, five times."""
    server = start("--server.tomcat.connection-timeout=150ms", *SHORT_RINGS)
    seen = collections.Counter()
    for turn in range(5):
        clients = []
        for number in range(300):
            began = time.monotonic()
            sock = socket.create_connection(("127.0.0.1", server.port))
            data = request(f"/nope-{turn}-{number}")
            sock.sendall(data[:-1])
            clients.append((began + 0.148 + 0.004 * random.random(), sock, data))
        for due, sock, data in sorted(clients, key=lambda one: one[0]):
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                sock.send(data[-1:])
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has its answer already
        for number, (_, sock, _) in enumerate(clients):
            sock.settimeout(5)
            got = b""
            while more := sock.recv(65536):
                got += more
            sock.close()
            response = only_response(got)
            assert response.status == 408 or json.loads(response.body)["path"] == f"/nope-{turn}-{number}", response
            seen[response.status] += 1
    assert set(seen) <= {404, 408} and sum(seen.values()) == 1500, seen
    assert seen[404] and seen[408] or SANITIZED, seen


def test_requests_at_the_very_end_of_keep_alive(start):
    """The whole answer, or a connection that ended without a byte of one."""
    server = start("--server.tomcat.keep-alive-timeout=100ms")
    seen = collections.Counter()
    for turn in range(4):
        clients = []
        for number in range(200):
            client = server.connect()
            assert client.ask("/currentThread").status == 200
            clients.append((time.monotonic() + 0.098 + 0.004 * random.random(), client, f"/nope-{turn}-{number}"))
        for due, client, path in sorted(clients, key=lambda one: one[0]):
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                client.send(request(path))
            except OSError:
                pass
        for _, client, path in clients:
            try:
                response = client.response()
                assert json.loads(response.body)["path"] == path
                seen["answered"] += 1
            except Closed as closed:
                assert closed.got == b""
                seen["ended"] += 1
            except (ConnectionResetError, BrokenPipeError):
                assert client.buffer == b""
                seen["ended"] += 1
            client.close()
    assert sum(seen.values()) == 800, seen


def stormer(server, seed, turns):
    """One client of the next test: connect, ask, and stay or leave at any moment; at once connect anew."""
    chance = random.Random(seed)
    seen = collections.Counter()
    for turn in range(turns):
        n = f"0.0{chance.randrange(20):02d}{seed:03d}{turn:03d}"  # its text comes back: this request's token
        kind = chance.choice(("remote", "blocking", "blocking", "echo"))
        port = {"remote": server.remote_port, "blocking": server.port, "echo": server.echo_port}[kind]
        data = chance.randbytes(1 + chance.randrange(3000)) if kind == "echo" else request(f"/{kind}/{n}")
        sock = socket.create_connection(("127.0.0.1", port))
        sock.settimeout(10)
        cut = chance.randrange(len(data) + 1) if chance.random() < 0.5 else len(data)
        sock.sendall(data[:cut])
        if chance.random() < 0.4:  # leave by a reset: now, in the sleep, at the answer's moment
            time.sleep(chance.choice((0, 0.0005, float(n) if kind != "echo" else 0.001)))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            sock.close()
            seen["reset"] += 1
            continue
        sock.sendall(data[cut:])
        if chance.random() < 0.3:
            sock.shutdown(socket.SHUT_WR)
        if kind == "echo":
            got = b""
            while len(got) < len(data):
                more = sock.recv(65536)
                assert more, (got, data)
                got += more
            assert got == data
        else:
            client = Connection.__new__(Connection)
            client.sock, client.buffer = sock, b""
            response = client.response()
            assert (response.status, response.text) == (200, f"Hello, delayed by {n} seconds."), (n, response)
        sock.close()
        seen[kind] += 1
    return seen


def test_resets_and_descriptors_used_again_at_once(world):
    """40 clients of which half leave at any moment: who stays gets its own bytes and no other's."""
    turns = 25 if SANITIZED else 50
    seen = sum(at_once(*(lambda seed=seed: stormer(world, seed, turns) for seed in range(40))), collections.Counter())
    assert sum(seen.values()) == 40 * turns
    assert min(seen[kind] for kind in ("remote", "blocking", "echo", "reset")) > 100, seen


def test_hundreds_of_connections_on_rings_of_8(start):
    """CQ of 64 for 600 connections that all ask at once, again and again: nothing is lost, and it rests afterwards."""
    server = start(*SHORT_RINGS)
    told = json.loads(server.get(headers=["Accept: application/json"]).body)["ring"]
    assert (told["sqEntries"], told["cqEntries"]) == (8, 64)
    for turn in range(4):
        tokens = [f"0.05{turn}{number:03d}" for number in range(600)]
        asked = [(server.port if number % 2 else server.remote_port,
                  request(f"/{'blocking' if number % 2 else 'remote'}/{token}"))
                 for number, token in enumerate(tokens)]
        for token, data in zip(tokens, answers_of(asked)):
            assert only_response(data).text == f"Hello, delayed by {token} seconds."
    if not SANITIZED:
        before = procfs.cpu_seconds(server.pid)
        time.sleep(0.5)
        assert procfs.cpu_seconds(server.pid) - before < 0.1
