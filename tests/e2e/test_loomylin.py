# SPDX-License-Identifier: Apache-2.0
"""The loomylin profile: the same app on 4 threads, on 32 and on fibers, side by side in one process."""
import re
import signal
import time

import pytest

import procfs
from burst import Burst
from loadtools import hey, timed
from server import StartFailed, run
from wire import Connection, fetch, request

ALL = ("--spring.profiles.active=all", "--loomylin.port.pool4=0", "--loomylin.port.pool32=0",
       "--loomylin.port.fibers=0", "--echo.port.greeter=0", "--echo.port.echo=0")
POLICIES = {"pool4": "at most 4 platform threads", "pool32": "at most 32 platform threads", "fibers": "fibers"}
ROUTES = ("/currentThread", "/computational", "/wait-blocking", "/wait-async", "/blocking/0", "/actuator/health",
          "/actuator/echo")


def ports_of(server):
    """The three ports, from the lines that announce them."""
    return {name: int(re.search(rf"loomylin started on port (\d+) \(http\), {policy}, ", server.log).group(1))
            for name, policy in POLICIES.items()}


@pytest.fixture(scope="module")
def process(start_shared):
    return start_shared(*ALL)


@pytest.fixture(scope="module")
def ports(process):
    return ports_of(process)


@pytest.mark.parametrize("name", POLICIES)
def test_every_app_port_serves_every_app_route(process, ports, name):
    """And the spring port has the new routes too."""
    for port in (ports[name], process.port):
        for path in ROUTES:
            response = fetch(port, path)
            assert response.status == 200, (path, response)
            if path in ("/computational", "/wait-blocking", "/wait-async"):
                assert response.text == "Hello, World"
                assert response.get("content-type") == "text/plain;charset=UTF-8"
    assert fetch(ports[name], "/remote/0").status == 404


def test_each_port_tells_what_runs_its_requests(ports):
    assert re.fullmatch(rf"Thread\[#\d+,http-{ports['pool4']}-exec-1,5,main\]", fetch(ports["pool4"]).text)
    assert re.fullmatch(rf"Thread\[#\d+,http-{ports['pool32']}-exec-\d+,5,main\]", fetch(ports["pool32"]).text)
    assert re.fullmatch(rf"Fiber\[#\d+,http-{ports['fibers']}-conn-\d+\]/runnable@carrier-\d", fetch(ports["fibers"]).text)


def best_of(tries, port, path, count):
    """Seconds of the fastest of some runs by 50 clients: the machine may have other things to do."""
    reports = [hey(f"http://127.0.0.1:{port}{path}", count, 50) for _ in range(tries)]
    assert all(report.statuses == {200: count} for report in reports), [report.text for report in reports]
    return min(report.seconds for report in reports)


@pytest.mark.slow
@pytest.mark.figures
@pytest.mark.parametrize("name, waves, slack", [("pool4", 50, 0.3), ("pool32", 7, 0.2), ("fibers", 4, 0.2)])
def test_waits_in_the_handler_pass_in_waves_of_the_pool(ports, name, waves, slack):
    """hey -n 200 -c 50 /wait-blocking: 50 waves of 4, 7 of 32 (6.25 rounded up), 4 of all 50, 100 ms each."""
    seconds = best_of(2 if name == "pool4" else 4, ports[name], "/wait-blocking", 200)
    assert waves * 0.1 <= seconds <= waves * 0.1 + slack


@pytest.mark.slow
@pytest.mark.figures
@pytest.mark.parametrize("name", POLICIES)
def test_a_wait_that_holds_no_thread_is_the_same_on_all_three(ports, name):
    """hey -n 200 -c 50 /wait-async: 4 waves of 50, on 4 threads too."""
    assert 0.4 <= best_of(4, ports[name], "/wait-async", 200) <= 0.65


@pytest.mark.figures
def test_the_pool_is_first_come_first_served(ports):
    """24 at once on 4 threads: answered in the order in which they were asked, four every 100 ms."""
    connections = [Connection(ports["pool4"]) for _ in range(24)]
    began = time.monotonic()
    for connection in connections:
        connection.send(request("/wait-blocking"))
        time.sleep(0.002)
    came = []
    for connection in connections:
        assert connection.response().status == 200
        came.append(time.monotonic() - began)
        connection.close()
    for index, seconds in enumerate(came):
        wave = index // 4 + 1
        assert wave * 0.1 - 0.001 <= seconds <= wave * 0.1 + 0.09, (index, came)


def test_a_wait_that_holds_no_thread_ends_when_its_client_resets(ports, process):
    fds = procfs.fd_count(process.pid)
    connections = [Connection(ports["pool4"]) for _ in range(20)]
    for connection in connections:
        connection.send(request("/wait-async"))
    time.sleep(0.03)
    for connection in connections:
        connection.reset()
    process.settle(fds, within=0.5)


def test_pipelined_waits_keep_their_order(ports):
    with Connection(ports["pool4"]) as connection:
        connection.send(request("/wait-async") + request("/currentThread") + request("/wait-blocking") +
                        request("/nope"))
        assert [connection.response().status for _ in range(4)] == [200, 200, 200, 404]


@pytest.mark.figures
def test_computing_is_done_for_real(ports, process):
    """200 requests, 25 000 numbers each, at a nanosecond a number at the very least."""
    for name in ("pool4", "fibers"):
        before = procfs.cpu_seconds(process.pid)
        report = hey(f"http://127.0.0.1:{ports[name]}/computational", 200, 10)
        assert report.statuses == {200: 200}
        assert procfs.cpu_seconds(process.pid) - before > 200 * 25000 * 1e-9


@pytest.mark.slow
@pytest.mark.figures
def test_fibers_compute_no_slower_than_the_pool(ports, process):
    """No more processor time than the pool of 4 takes, and the slowest request at most twice; the best of four runs."""
    used, slowest = {}, {}
    for name in ("pool4", "fibers") * 4:
        before = procfs.cpu_seconds(process.pid)
        report = hey(f"http://127.0.0.1:{ports[name]}/computational", 2000, 50)
        assert report.statuses == {200: 2000}, report.text
        used[name] = min(used.get(name, 1e9), procfs.cpu_seconds(process.pid) - before)
        slowest[name] = min(slowest.get(name, 1e9), report.slowest)
    assert used["fibers"] <= 1.02 * used["pool4"], used
    assert slowest["fibers"] <= 2 * slowest["pool4"], slowest


@pytest.mark.figures
def test_who_computes_lets_others_through(start):
    """One carrier, 40 clients that compute without end: a quick request is answered within some of their slices."""
    server = start(*ALL, "--ringspun.carriers=1")
    port = ports_of(server)["fibers"]
    with Burst([port] * 40) as burst, Connection(port) as quick:
        for sock in burst.socks:
            sock.send(request("/computational") * 20)
        times = [timed(lambda: quick.ask("/actuator/health"))[0] for _ in range(10)]
        times.sort()
        assert times[5] < 0.05, times


def test_sigterm_finishes_the_waits_on_every_port(start):
    server = start(*ALL)
    ports = ports_of(server)
    connections = [Connection(port) for port in ports.values() for _ in range(6)]
    for index, connection in enumerate(connections):
        connection.send(request("/wait-async" if index % 2 else "/wait-blocking"))
    time.sleep(0.03)
    server.signal(signal.SIGTERM)
    for connection in connections:
        response = connection.response()
        assert response.status == 200 and response.closes
        connection.assert_closed()
    assert server.wait() == 0
    assert "Graceful shutdown complete" in server.log
    server.stop()


def test_the_profile_alone_serves_its_three_ports_only(start):
    server = start("--spring.profiles.active=loomylin", *ALL[1:])
    assert len(re.findall(r"started on port", server.log)) == 3
    assert server.get("/wait-async").text == "Hello, World"


def test_a_port_of_minus_one_is_not_served(start):
    server = start(*[arg for arg in ALL if "pool32" not in arg], "--loomylin.port.pool32=-1")
    assert len(re.findall(r"loomylin started on port", server.log)) == 2


def test_a_taken_port_is_named_with_its_key(start):
    """One line that says which key mends it; nothing is left running."""
    server = start(*ALL)
    taken = ports_of(server)["pool32"]
    with pytest.raises(StartFailed) as failed:
        start("--spring.profiles.active=all", "--loomylin.port.pool4=0", f"--loomylin.port.pool32={taken}",
              "--loomylin.port.fibers=0", "--echo.port.greeter=0", "--echo.port.echo=0")
    assert f"port {taken} is already in use" in str(failed.value)
    assert "--loomylin.port.pool32=PORT" in str(failed.value)


def test_an_unknown_profile_is_refused():
    done = run("--spring.profiles.active=spring,loom")
    assert done.returncode == 78
    assert "expected a list of spring, loomylin and echo, or all" in done.stderr


def test_the_app_ports_share_half_of_the_connections(start):
    """max-connections=20: ten on all app and echo ports together, the eleventh is refused; the calls have the rest."""
    server = start(*ALL, "--server.tomcat.max-connections=20")
    ports = [server.port, *ports_of(server).values()]
    connections = [Connection(ports[index % 4]) for index in range(10)]
    for connection in connections:
        assert connection.ask("/blocking/0").status == 200
    with Connection(ports[1]) as refused:
        refused.send(request())
        assert refused.response().status == 503
    for connection in connections:
        connection.close()
    time.sleep(0.2)
    for port in ports:
        assert fetch(port).status == 200
