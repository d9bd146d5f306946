# SPDX-License-Identifier: Apache-2.0
"""The kernel says no, now and then or always: what can be answered is answered right, nothing hangs or spins, and
when the kernel says yes again all is as before."""
import collections
import resource
import time

import pytest

import faults
import procfs
from faults import Faults
from loadtools import at_once
from server import SANITIZED, Server, StartFailed
from wire import Closed, request

pytestmark = pytest.mark.skipif(faults.reason_against() is not None, reason=str(faults.reason_against()))

PLATFORM = "--spring.threads.virtual.enabled=false"


def outcome(server, path, right):
    """What became of a request on a connection of its own: its status, "reset", "closed" or "refused"; never a hang."""
    try:
        with server.connect(timeout=8) as client:
            response = client.ask(path)
    except Closed as closed:
        assert closed.got == b"", closed
        return "closed"
    except ConnectionResetError:
        return "reset"
    except ConnectionRefusedError:
        return "refused"
    if response.status == 200:
        assert response.text == right, response
    return response.status


def round_of(server, clients, requests):
    """So many clients side by side, each with connections of its own; Counter of what became of the requests."""
    def one(number):
        found = []
        for nth in range(requests):
            n = f"0.00{number:03d}{nth:03d}"  # its text comes back: the token of this request
            found.append(outcome(server, f"/blocking/{n}", f"Hello, delayed by {n} seconds."))
        return found
    return collections.Counter(what for found in at_once(*(lambda i=i: one(i) for i in range(clients)))
                               for what in found)


def assert_rests(server):
    """It does not spin: hardly any processor time in half a second without a client."""
    if not SANITIZED:
        before = procfs.cpu_seconds(server.pid)
        time.sleep(0.5)
        assert procfs.cpu_seconds(server.pid) - before < 0.1


# What fails; what may become of a request besides its answer.
CALLS = [
    ("accept4=EMFILE/2", {503}), ("accept4=ENFILE/3", {503}), ("accept4=ENOBUFS/2", {503}), ("accept4=ENOMEM/2", {503}),
    ("accept4=ECONNABORTED/3", {503}), ("accept4=EPERM/3", {503}), ("accept4=EPROTO/2", {503}),
    ("accept4=EINTR/2", set()),
    ("socket=EMFILE/2", {503}), ("socket=ENOBUFS/2", {502, 503}), ("socket=ENOMEM/1", {502, 503}),
    ("socket=EACCES/3", {502, 503}),
    ("setsockopt=ENOBUFS/2", set()), ("setsockopt=EINVAL/1", set()),
    ("shutdown=ENOTCONN/2", {"reset"}), ("recvfrom=EINTR/2", set()), ("recvfrom=ENOMEM/3", {502, "reset", "closed"}),
    ("sendto=EINTR/2", set()), ("madvise=EINVAL/2", {503}), ("madvise=ENOMEM/1", {503}),
    ("process_madvise=EPERM/1", {503}), ("process_madvise=ENOMEM/2", {503}), ("mmap=ENOMEM/1", {503}),
    ("mmap=ENOMEM/2,mprotect=ENOMEM/2", {503}),
    ("io_uring_enter=EINTR/2", set()), ("io_uring_enter=EAGAIN/3", set()), ("io_uring_enter=EBUSY/3", set()), ("io_uring_enter=ENOMEM/2", set()),
    ("write=EIO/1", set()), ("writev=ENOSPC/1", set()), ("write=EINTR/2", set()),
]


def skip_if_a_sanitizers_own(calls):
    """Its runtime makes these calls for itself, and gives up when they fail."""
    if SANITIZED and ("mmap" in calls or "sched_getaffinity" in calls):
        pytest.skip("a sanitizer's runtime makes this call as well")


@pytest.mark.parametrize("calls, also", CALLS, ids=[calls for calls, _ in CALLS])
def test_calls_that_fail_now_and_then(start, tmp_path, calls, also):
    """Right answers, or what the table allows; afterwards right answers only, and nothing left."""
    skip_if_a_sanitizers_own(calls)
    failing = Faults(tmp_path, *calls.split(","))
    server = start("--logging.level.root=DEBUG", "--server.tomcat.accesslog.enabled=true", wrapper=failing.wrapper)
    round_of(server, 4, 2)
    before = procfs.fd_count(server.pid)
    with failing:
        seen = round_of(server, 10, 4)
        assert set(seen) <= {200} | also, seen
        assert_rests(server)
    assert round_of(server, 10, 4) == {200: 40}
    assert_rests(server)
    server.settle_fibers(server.connection_fibers())
    server.settle(before + 4 * 10)  # calls that are kept alive for the next


@pytest.mark.parametrize("calls", ["clone=EAGAIN/1,clone3=EAGAIN/1", "clone=EAGAIN/2,clone3=EAGAIN/2",
                                   "mmap=ENOMEM/2", "ppoll=EINTR/2", "ppoll=ENOMEM/3"])
def test_calls_of_platform_threads_that_fail_now_and_then(start, tmp_path, calls):
    """As above, on a pool of threads that can at times not be started."""
    skip_if_a_sanitizers_own(calls)
    failing = Faults(tmp_path, *calls.split(","))
    server = start(PLATFORM, "--server.tomcat.threads.max=20", wrapper=failing.wrapper)
    with failing:
        seen = round_of(server, 10, 4)
        assert set(seen) <= {200, 502, 503}, seen
        assert_rests(server)
    assert round_of(server, 10, 4) == {200: 40}


@pytest.mark.parametrize("error", ["EINTR", "ECONNABORTED", "EPROTO"])
def test_an_accept_that_always_failed_held_its_carrier(start, tmp_path, error):
    """One carrier: who is connected is served meanwhile, it does not spin, and who waited is served afterwards."""
    failing = Faults(tmp_path, f"accept4={error}/1")
    server = start("--ringspun.carriers=1", wrapper=failing.wrapper)
    with server.connect() as client:
        assert client.ask().status == 200
        with failing:
            waiting = server.connect()
            waiting.send(request())
            for _ in range(20):
                assert client.ask().status == 200
            assert_rests(server)
        assert waiting.response().status == 200
        waiting.close()


@pytest.mark.parametrize("requests", [1, 3])
def test_a_request_without_memory_to_work_on_it_was_closed_unanswered(start, tmp_path, requests):
    """The connection is there, and no memory: 503 with Retry-After and a close, though the client pipelines."""
    skip_if_a_sanitizers_own("mmap")
    failing = Faults(tmp_path, "mmap=ENOMEM/1")
    server = start("--ringspun.carriers=1", wrapper=failing.wrapper)
    with server.connect() as client:
        client.assert_quiet(0.2)
        with failing:
            client.send(request() * requests)
            response = client.response()
            assert (response.status, response.get("retry-after"), response.closes) == (503, "1", True)
            client.assert_closed()
    assert round_of(server, 2, 2) == {200: 4}


STARTS = ("io_uring_setup=ENOMEM/1", "io_uring_setup=EMFILE/2", "io_uring_register=ENOMEM/1",
          "io_uring_register=EINVAL/2", "io_uring_enter=EPERM/1", "eventfd2=EMFILE/1", "eventfd2=EMFILE/2",
          "signalfd4=EMFILE/1", "bind=EADDRINUSE/1", "listen=EADDRINUSE/2", "socket=EMFILE/1",
          "socket=EAFNOSUPPORT/2", "prlimit64=EPERM/1", "sched_getaffinity=EPERM/1", "clone3=EAGAIN/1,clone=EAGAIN/1",
          "clone3=EAGAIN/2,clone=EAGAIN/2", "madvise=ENOMEM/1", "process_madvise=EPERM/1")


def test_a_start_whose_calls_fail_is_one_line_and_no_hang(tmp_path):
    """Whatever fails at the start, and however: it serves, or one line says why it does not."""
    ended = collections.Counter()
    for calls in STARTS:
        if SANITIZED and "sched_getaffinity" in calls:
            continue  # of the sanitizer's runtime as well
        failing = Faults(tmp_path, *calls.split(","))
        directory = tmp_path / calls.replace("/", "-")
        directory.mkdir()
        with failing:
            try:
                server = Server(directory, wrapper=failing.wrapper)
                assert server.get().status == 200, calls
                server.stop()
                ended["served"] += 1
            except StartFailed as failed:
                status = int(str(failed).split("ended with ")[1].split("\n")[0])
                lines = [line for line in str(failed).split("--- stderr\n")[1].splitlines() if line]
                assert status in (1, 69), (calls, failed)
                assert len(lines) == 1, (calls, failed)
                ended[status] += 1
    assert ended["served"] and ended[1] and ended[69], ended


def limit(server, which, value):
    """Set the soft limit of the running server. Returns what it was."""
    soft, hard = resource.prlimit(server.pid, which)
    resource.prlimit(server.pid, which, (value if value is not None else hard, hard))
    return soft


def keep_asking(clients, server):
    for number, client in enumerate(clients):
        client.send(request(f"/wait-blocking?{number}"))
    for client in clients:
        assert client.response().text == "Hello, World"


def test_descriptors_are_taken_away_while_it_runs(start):
    """Those who are connected are served on; new ones get a 503 or wait; when descriptors are back, so is all."""
    server = start()
    clients = [server.connect() for _ in range(20)]
    keep_asking(clients, server)
    before = limit(server, resource.RLIMIT_NOFILE, procfs.fd_count(server.pid) + 3)
    late = [server.connect() for _ in range(30)]
    for client in late:
        client.send(request("/currentThread"))
    keep_asking(clients, server)
    seen = collections.Counter(status_of(client) for client in late[:3])
    assert seen[200] == 3, seen
    assert_rests(server)
    limit(server, resource.RLIMIT_NOFILE, before)
    seen.update(status_of(client) for client in late[3:])
    assert set(seen) <= {200, 503, "closed"} and sum(seen.values()) == 30, seen
    keep_asking(clients, server)
    assert round_of(server, 5, 4) == {200: 20}
    for client in clients + late:
        client.close()


def status_of(client):
    try:
        return client.response().status
    except (Closed, ConnectionResetError):
        return "closed"


@pytest.mark.skipif(SANITIZED, reason="a sanitizer maps terabytes of its own")
def test_address_space_is_taken_away_while_it_runs(start):
    """No new stack can be mapped: those who are connected are served on, others wait or are refused; then as before."""
    server = start("--ringspun.stack-size=8MB")  # soon more than what is kept ready
    clients = [server.connect() for _ in range(20)]
    keep_asking(clients, server)
    with open(f"/proc/{server.pid}/statm", encoding="ascii") as statm:
        size = int(statm.read().split()[0]) * resource.getpagesize()
    limit(server, resource.RLIMIT_AS, size)
    late = []
    for _ in range(200):
        late.append(server.connect())
        late[-1].send(request("/currentThread"))
    seen = collections.Counter(status_of(client) for client in late)
    assert set(seen) <= {200, 503, "closed"} and (seen[503] or seen["closed"]), seen
    keep_asking(clients, server)
    assert_rests(server)
    limit(server, resource.RLIMIT_AS, None)
    assert round_of(server, 10, 4) == {200: 40}
    keep_asking(clients, server)
    for client in clients + late:
        client.close()
