# SPDX-License-Identifier: Apache-2.0
"""ab, hey, wrk and curl, and their reports as figures."""
import concurrent.futures
import re
import shutil
import subprocess
import time

import pytest


def _need(tool):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")


def _run(command, timeout):
    _need(command[0])
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class AbReport:
    def __init__(self, text):
        self.text = text
        self.seconds = float(self._figure(r"Time taken for tests:\s+([\d.]+)"))
        self.complete = int(self._figure(r"Complete requests:\s+(\d+)"))
        self.failed = int(self._figure(r"Failed requests:\s+(\d+)"))
        self.kept_alive = int(self._figure(r"Keep-Alive requests:\s+(\d+)", "0"))
        self.not_2xx = int(self._figure(r"Non-2xx responses:\s+(\d+)", "0"))

    def _figure(self, pattern, default=None):
        match = re.search(pattern, self.text)
        assert match or default is not None, self.text
        return match.group(1) if match else default

    def assert_all(self, count):
        assert (self.complete, self.failed, self.not_2xx) == (count, 0, 0), self.text


def ab(url, count, concurrency, *options, timeout=60):
    return AbReport(_run(["ab", "-q", *options, "-n", str(count), "-c", str(concurrency), url], timeout))


class HeyReport:
    def __init__(self, text):
        self.text = text
        self.seconds = float(re.search(r"Total:\s+([\d.]+)", text).group(1))
        self.slowest = float(re.search(r"Slowest:\s+([\d.]+)", text).group(1))
        self.statuses = {int(status): int(count)
                         for status, count in re.findall(r"\[(\d{3})\]\s+(\d+) responses", text)}


def hey(url, count, concurrency, *options, timeout=60):
    return HeyReport(_run(["hey", *options, "-n", str(count), "-c", str(concurrency), url], timeout))


def wrk(url, seconds, connections, threads=1, timeout=60):
    """Requests answered."""
    text = _run(["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", url], timeout)
    assert "Non-2xx" not in text and "Socket errors" not in text, text
    return int(re.search(r"(\d+) requests in", text).group(1))


def curl(*args, timeout=30):
    """curl's stdout, as bytes."""
    _need("curl")
    done = subprocess.run(["curl", "-sS", "--noproxy", "*", *args], capture_output=True, timeout=timeout,
                          check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def at_once(*calls):
    """Run the calls in threads of their own, side by side; their results in order."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def timed(call):
    """Seconds that the call took, and its result."""
    began = time.monotonic()
    result = call()
    return time.monotonic() - began, result
