# SPDX-License-Identifier: Apache-2.0
"""/remote/{n} sleeps n: exactly, in every form of n, for thousands at the same time."""
import json
import time

import pytest

from burst import Burst
from loadtools import at_once, timed
from wire import request


@pytest.mark.figures
def test_2000_concurrent_delays_of_1_s_are_not_served_in_waves(start):
    """Each of 2000 /remote/1 at the same time takes 1.000 to 1.020 s; best of four, as the machine may be busy."""
    server = start()
    seen = []
    with Burst([server.remote_port] * 2000) as burst:
        for _ in range(4):
            time.sleep(0.2)  # all are accepted, and the machine has gone back to rest
            answers = burst.ask(request("/remote/1"))
            assert all(answer.startswith(b"HTTP/1.1 200 ") for _, answer in answers)
            times = sorted(seconds for seconds, _ in answers)
            assert times[0] >= 1.0
            seen.append(f"median {times[1000]:.4f} p99 {times[1980]:.4f} max {times[-1]:.4f}")
            if times[-1] <= 1.020:
                return
    raise AssertionError("\n".join(seen))


@pytest.mark.parametrize("n, seconds", [
    ("0", 0), ("2", 2), ("0.25", 0.25), ("250ms", 0.25), ("0.5s", 0.5), ("1s", 1), ("0.005m", 0.3), ("0.0001h", 0.36),
    ("0.000000001", 0), ("1.5ms", 0.0015), ("00.100", 0.1), ("0ms", 0), ("0.7", 0.7), ("1001ms", 1.001),
])
def test_n_is_slept_and_echoed_as_it_was_asked(shared, n, seconds):
    """Never early, little late, and the text of n in the body unchanged."""
    took, responses = timed(lambda: at_once(lambda: shared.get_remote(f"/remote/{n}"),
                                            lambda: shared.get(f"/blocking/{n}")))
    for response in responses:
        assert response.status == 200
        assert response.text == f"Hello, delayed by {n} seconds."
    assert seconds <= took < seconds + 0.2


REFUSED = ["-1", "abc", "1e999", "+1", "1e3", "25h", "24.001h", "86401", "1441m", "9" * 400, "0." + "9" * 400 + "x",
           "1.2.3", "1,5", ".", "ms", "0x10", "inf", "nan", "1d", "1%20s", "%2B1", "1_000", "--1", "1ss", "%00", "1%00"]


@pytest.mark.parametrize("n", REFUSED, ids=lambda n: n[:12])
def test_n_that_is_no_duration_is_refused(shared, n):
    """400 by the remote and by /blocking, with Spring's body; the connection and the server go on."""
    with shared.connect() as app, shared.connect_remote() as remote:
        for connection, path in ((app, f"/blocking/{n}"), (remote, f"/remote/{n}")):
            response = connection.ask(path)
            assert response.status == 400, response
            assert response.get("content-type") == "application/json"
            told = json.loads(response.body)
            assert (told["status"], told["error"], told["path"]) == (400, "Bad Request", path)
        if not response.closes:
            assert remote.ask("/remote/0").status == 200


@pytest.mark.parametrize("path", ["/remote/", "/remote"])
def test_n_that_is_missing_is_refused(shared, path):
    """Nothing where n should be: 400 or, there being no such route, 404."""
    assert shared.get_remote(path).status in (400, 404)


@pytest.mark.parametrize("n", ["24h", "86400", "1440m", "86400000ms"])
def test_the_longest_delay_is_a_day(shared, n):
    """24 h is accepted: the answer does not come at once."""
    with shared.connect_remote() as remote:
        remote.send(request(f"/remote/{n}"))
        remote.assert_quiet(0.2)
        remote.reset()


def test_delays_end_in_the_order_of_their_length(shared):
    """Sleeps that began in the opposite order end by length: 0.5 s does not wait behind 0.9 s."""
    delays = ["0.9", "0.7", "0.5", "0.3", "0.1"]
    results = at_once(*[lambda n=n: timed(lambda: shared.get_remote(f"/remote/{n}")) for n in delays])
    for n, (took, response) in zip(delays, results):
        assert response.status == 200
        assert float(n) <= took < float(n) + 0.15
