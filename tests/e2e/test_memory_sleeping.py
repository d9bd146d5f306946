# SPDX-License-Identifier: Apache-2.0
"""As many connections asleep in a handler as descriptors allow: what each costs, and how late it wakes."""
import pathlib
import resource
import subprocess
import time

import pytest

import procfs
from loadtools import wrk

HERE = pathlib.Path(__file__).parent
pytestmark = [pytest.mark.slow, pytest.mark.figures]

COUNT = 19_000
SPARE = 500  # descriptors of the server's own, and of the client's
ATTEMPTS = 3  # at being on time
OTHERS = 0.10  # of the processors: busier with other work, a machine is late whatever we do
WISH_MS = (10.0, 50.0)  # late at most: 99.9 % of the answers, and all
# Client and server share two processors here, and some virtual machines take 10 µs for what others do in one: there
# 13 to 33 ms were seen for 99.9 %. Waves, lost wake-ups and a page fault each (350 ms) are far beyond this.
LIMIT_MS = (80.0, 250.0)


@pytest.fixture(scope="module")
def sleepers(tmp_path_factory):
    program = tmp_path_factory.mktemp("sleepers") / "sleepers"
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-o", program, HERE / "sleepers.c"], check=True)
    return str(program)


class Asleep:
    """So many connections to the port ask for the path; they are asleep once this is made."""

    def __init__(self, program, port, count, seconds, path):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.count = count
        self.process = subprocess.Popen(
            [program, str(port), str(count), path, str(seconds * 1000)], stdout=subprocess.PIPE, text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        assert self.process.stdout.readline() == "asked\n", "the client ended"

    def lateness_ms(self):
        """Wait for all answers; median, 99 %, 99.9 %, the latest and the earliest."""
        out, _ = self.process.communicate(timeout=60)
        good, *late = out.split()
        assert int(good) == self.count, out
        assert self.process.returncode == 0
        return [int(one) / 1000 for one in late]


def most(wanted, each):
    """How many connections the limit allows to a server that needs so many descriptors for each."""
    return min(wanted, (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE) // each)


def warm(start, *args):
    """A server whose buffers have all been touched, and that has come to rest."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    server = start("--server.tomcat.keep-alive-timeout=300s", *args, limits={resource.RLIMIT_NOFILE: limit})
    wrk(server.url("/currentThread"), 1, 64)
    wrk(server.remote_url("/remote/0"), 1, 64)
    time.sleep(2.0)
    return server


def test_19000_asleep_in_remote_cost_a_page_each_and_wake_on_time_without_a_fault(start, sleepers):
    """Two pages each would be 8 KiB; a page to be got again at each wake would be 19 000 faults."""
    server = warm(start)
    count = most(COUNT, 1)
    measured = []
    quiet = fine = False
    for _ in range(ATTEMPTS):
        before = procfs.rss_kib(server.pid)
        asleep = Asleep(sleepers, server.remote_port, count, 8, "/remote/8")
        others = procfs.Others(server.pid, asleep.process.pid)
        time.sleep(4.0)  # long enough for stacks to be trimmed
        busy = others.share()
        quiet = quiet or busy < OTHERS
        each = (procfs.rss_kib(server.pid) - before) / count
        faults = procfs.minor_faults(server.pid)
        median, p99, p999, latest, earliest = asleep.lateness_ms()
        faults = procfs.minor_faults(server.pid) - faults
        measured.append(f"{count} asleep: {each:.2f} KiB each; late {median:.2f} ms median, {p99:.2f} 99 %, "
                        f"{p999:.2f} 99.9 %, {latest:.2f} at most; {faults} faults to wake them; "
                        f"{busy:.0%} of the processors at other work")
        print(measured[-1])
        assert each <= 5.0, measured
        assert earliest >= 0.0, measured
        assert faults < count / 20, measured
        if p999 <= WISH_MS[0] and latest <= WISH_MS[1]:
            return
        fine = fine or (p999 <= LIMIT_MS[0] and latest <= LIMIT_MS[1])
        time.sleep(3.0)  # until its pages have gone back
    if fine:
        return
    if not quiet:
        pytest.skip("memory is in order; too much other work to tell lateness: " + measured[-1])
    pytest.fail("\n".join(measured))


def test_callers_that_wait_for_the_remote_cost_little_more_than_a_page_each(start, sleepers):
    """GET /blocking/30, whose remote is another process: the waiting connection and its call."""
    remote = start(limits={resource.RLIMIT_NOFILE: most(20_000, 1)})
    server = warm(start, f"--remote.url={remote.remote_url()}")
    count = most(17_000, 2) - SPARE  # the app takes at most half of the descriptors
    fds = procfs.fd_count(remote.pid)
    before = procfs.rss_kib(server.pid)
    asleep = Asleep(sleepers, server.port, count, 30, "/blocking/30")
    time.sleep(4.0)
    each = (procfs.rss_kib(server.pid) - before) / count
    print(f"{count} waiting for the remote: {each:.2f} KiB each")
    asleep.process.kill()  # the resets end the calls, and those end the sleeps
    asleep.process.wait()
    remote.settle(fds + 20, within=25)
    assert each <= 6.0, f"{each:.2f} KiB each"
    assert server.get("/blocking/0").status == 200
