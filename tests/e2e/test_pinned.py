# SPDX-License-Identifier: Apache-2.0
"""Pinning made visible: ten counters under a lock that blocks the carrier, or only its fiber; and who held a carrier."""
import json
import re
import time

from loadtools import at_once, timed
from wire import request

DEMO = ("--ringspun.demo.pinned=true", "--ringspun.carriers=1")


def ask(server, path):
    response = server.get(path, timeout=30)
    assert response.status == 200, response
    assert response.get("content-type") == "application/json"
    return json.loads(response.body)


def await_no_counter(server, within):
    """Seconds until no child of a request is left."""
    began = time.monotonic()
    while any("pinned-" in line for line in server.fiber_dump()):
        assert time.monotonic() - began < within, server.report()
    return time.monotonic() - began


def test_it_is_not_there_unless_asked_for(shared):
    response = shared.get("/pinned?lock=fiber&ms=0")
    assert response.status == 404
    told = json.loads(response.body)
    assert (told["status"], told["error"], told["path"]) == (404, "Not Found", "/pinned")
    assert ask(shared, "/actuator/pinned")["thresholdMillis"] == 20


def test_bad_values_are_refused(start):
    server = start(*DEMO)
    for query in ("", "?lock", "?lock=", "?lock=both", "?lock=FIBER", "?ms=1", "?lock=fiber&ms=1001", "?lock=fiber&ms=-1",
                  "?lock=fiber&ms=", "?lock=fiber&ms=1.5", "?lock=carrier&ms=99999999999999999999"):
        response = server.get("/pinned" + query)
        assert response.status == 400, query
        told = json.loads(response.body)
        assert (told["error"], told["path"]) == ("Bad Request", "/pinned")
        assert told["message"] == "lock is carrier or fiber, ms is 0 to 1000"
    assert ask(server, "/pinned?lock=fiber&ms=0")["total"] == 10
    assert ask(server, "/pinned?lock=carrier&ms=0")["total"] == 10


def test_a_fibers_lock_holds_no_carrier(start):
    """Ten seconds of sleep in one, and others are served meanwhile."""
    server = start(*DEMO, "--ringspun.pinned-threshold=300ms")
    told, quick = at_once(lambda: ask(server, "/pinned?lock=fiber"),
                          lambda: [timed(server.get) for _ in range(20)])
    assert (told["lock"], told["ms"], told["total"], told["held"]) == ("fiber", 1000, 10, 0)
    assert 1.0 <= told["elapsed"] < 2.0
    assert sorted(took for took, _ in quick)[10] < 0.3
    assert "without parking" not in server.log


def test_a_lock_of_the_c_library_holds_it_and_is_reported(start):
    server = start(*DEMO)
    began = time.monotonic()
    told, (waited, _) = at_once(lambda: ask(server, "/pinned?lock=carrier&ms=200"),
                                lambda: (time.sleep(0.1), timed(server.get))[1])
    assert (told["lock"], told["ms"], told["total"], told["held"]) == ("carrier", 200, 10, 10)
    assert 2.0 <= told["elapsed"] <= time.monotonic() - began
    assert waited > 0.1, "the others on the carrier wait too"
    # the monitor saw it while it lasted: who, and where
    assert re.search(r"Fiber\[#\d+,pinned-\d+\]/runnable@carrier-0 has held carrier-0 for \d+ ms without parking", server.log)
    assert re.search(r"ring\.monitor : +at .*nanosleep", server.log)
    assert server.log.count("without parking") <= 5
    # and the totals
    held = ask(server, "/actuator/pinned")
    assert held["count"] >= 10 and held["holding"] == 0
    assert held["longestMillis"] >= 200 and held["totalMillis"] >= 2000
    assert held["totalMillis"] >= held["longestMillis"]
    names = [one["fiber"] for one in held["last"] if one["fiber"].startswith("pinned-")]
    assert len(held["last"]) == 8 and "pinned-10" in names and names.index("pinned-10") == 0
    for one in held["last"]:
        assert one["carrier"] == "carrier-0" and one["millis"] >= held["thresholdMillis"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", one["ended"])


def test_below_the_threshold_it_is_not_held(start):
    server = start(*DEMO, "--ringspun.pinned-threshold=10s")
    told = ask(server, "/pinned?lock=carrier&ms=20")
    assert (told["total"], told["held"]) == (10, 0) and told["elapsed"] >= 0.2
    assert ask(server, "/actuator/pinned")["count"] == 0


def test_a_carrier_that_is_held_now_shows(start):
    """Asked on another carrier, which goes on meanwhile."""
    server = start("--ringspun.demo.pinned=true", "--ringspun.carriers=2")
    by_carrier = {}
    connections = []
    while len(by_carrier) < 2:
        assert len(connections) < 200, "all connections came to one carrier"
        connections += at_once(*[server.connect] * 4)
        for connection in connections[-4:]:
            told = json.loads(connection.ask(headers=["Accept: application/json"]).body)
            by_carrier[told["carrier"]] = connection
    one, asker = by_carrier.values()
    one.send(request("/pinned?lock=carrier&ms=200"))
    time.sleep(0.15)
    assert json.loads(asker.ask("/actuator/pinned").body)["holding"] == 1
    assert one.response().status == 200
    for connection in connections:
        connection.close()


def test_one_pins_at_a_time(start):
    """The other is refused, and when the first has ended the next may."""
    server = start(*DEMO)
    with server.connect(timeout=30) as first, server.connect(timeout=30) as second:
        first.send(request("/pinned?lock=carrier&ms=100"))
        time.sleep(0.05)
        refused = second.ask("/pinned?lock=carrier&ms=100")
        assert refused.status == 503
        assert json.loads(refused.body)["message"] == "a carrier is pinned already: one at a time"
        assert first.response().status == 200
        assert second.ask("/pinned?lock=carrier&ms=0").status == 200


def test_a_hundred_at_a_time(start):
    server = start(*DEMO)
    connections = [server.connect(timeout=30) for _ in range(110)]
    for connection in connections:
        connection.send(request("/pinned?lock=fiber"))
    statuses = [connection.response().status for connection in connections]
    assert statuses.count(503) == 10 and statuses.count(200) == 100
    assert connections[0].ask("/pinned?lock=fiber&ms=1").status == 200
    for connection in connections:
        connection.close()


def test_a_reset_ends_the_fibers_at_once(start):
    server = start(*DEMO)
    client = server.connect()
    client.send(request("/pinned?lock=fiber"))
    time.sleep(0.2)
    assert sum("pinned-" in line for line in server.fiber_dump()) == 10
    client.reset()
    assert await_no_counter(server, 1.5) < 0.6


def test_a_reset_ends_the_pinning_at_the_next_child(start):
    """The child that holds the carrier cannot be stopped; none begins after it."""
    server = start(*DEMO, "--ringspun.pinned-threshold=500ms")
    client = server.connect()
    client.send(request("/pinned?lock=carrier"))
    time.sleep(0.3)
    client.reset()
    time.sleep(1.5)
    assert ask(server, "/actuator/pinned")["count"] == 1
    await_no_counter(server, 1)
    assert ask(server, "/pinned?lock=carrier&ms=0")["total"] == 10, "its place is free again"


def test_platform_threads_pin_nothing(start):
    server = start("--ringspun.demo.pinned=true", "--spring.threads.virtual.enabled=false")
    for lock in ("carrier", "fiber"):
        told = ask(server, f"/pinned?lock={lock}&ms=500")
        assert (told["lock"], told["total"], told["held"]) == (lock, 10, 0)
        assert 0.5 <= told["elapsed"] < 2.0
    assert not any(one["fiber"].startswith("pinned-") for one in ask(server, "/actuator/pinned")["last"])
