#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time per request: ringspun against bare_loop, the least an io_uring server can do.

Keep-alive GET /currentThread by wrk with one thread and 64 connections. The
server has one carrier, pinned to the first allowed core, wrk is pinned to the
second. The two servers run in turns, A B, B A, A B ..., so that a machine that slows
down slows both, and the ratio is the median of the rounds' own ratios.
bare_loop is told to answer with as many bytes as ringspun does. Time is the
scheduler's (/proc/PID/task/*/schedstat, nanoseconds) of all threads of the server,
divided by the requests that wrk counted. Both servers take free ports, so no
port has to be set aside.

usage: compare.py [--rounds 5] [--seconds 3] [--connections 64] [--limit RATIO] [RINGSPUN [BARE_LOOP]]

Exit status 1 when --limit is given and the ratio is above it.
"""
import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATH = "/currentThread"


class Contestant:
    """A running server, pinned to a core, and the figures of its rounds."""

    def __init__(self, name, core, command, directory):
        self.name = name
        self.rounds = []
        self.log = pathlib.Path(directory) / (name + ".log")
        with open(self.log, "wb") as log:
            command[0] = str(pathlib.Path(command[0]).resolve())
            self.process = subprocess.Popen(["taskset", "-c", str(core), *command], cwd=directory,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.url = f"http://127.0.0.1:{self._port()}{PATH}"

    def _port(self):
        """The first port that the server says it has, once it serves."""
        deadline = time.monotonic() + 10
        while True:
            match = re.search(r"started on port (\d+)", self.log.read_text("utf-8", "replace"))
            if match:
                return int(match.group(1))
            if self.process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{self.name} did not start:\n{self.log.read_text('utf-8', 'replace')}")
            time.sleep(0.02)

    def answer_bytes(self):
        """How long a whole answer is, head and body, on a persistent connection."""
        with subprocess.Popen(["curl", "-s", "-i", self.url], stdout=subprocess.PIPE) as curl:
            return len(curl.stdout.read())

    def cpu_ns(self):
        total = 0
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/schedstat", encoding="ascii") as stat:
                total += int(stat.read().split()[0])
        return total

    def round(self, core, options):
        before = self.cpu_ns()
        done = subprocess.run(["taskset", "-c", str(core), "wrk", "-t1", f"-c{options.connections}",
                               f"-d{options.seconds}s", self.url],
                              check=True, capture_output=True, text=True).stdout
        used = self.cpu_ns() - before
        if "Non-2xx" in done or "Socket errors" in done:
            sys.exit(f"{self.name}: wrk met errors\n{done}")
        requests = int(re.search(r"(\d+) requests in", done).group(1))
        self.rounds.append((used / requests, requests / options.seconds))

    def median_ns(self):
        return statistics.median(ns for ns, _ in self.rounds)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ringspun", nargs="?", default=str(ROOT / "build" / "ringspun"))
    parser.add_argument("bare_loop", nargs="?", default=str(ROOT / "build" / "bench" / "bare_loop"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--limit", type=float)
    return parser.parse_args()


def main():
    options = parse_arguments()
    for tool in ("wrk", "curl", "taskset"):
        if not shutil.which(tool):
            print(f"compare.py needs {tool}: not measured")
            return 0
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("compare.py needs two cores, one for the server and one for wrk: not measured")
        return 0
    contestants = []
    with tempfile.TemporaryDirectory() as directory:
        try:
            ringspun = Contestant("ringspun", cores[0],
                                  [options.ringspun, "--server.port=0", "--remote.port=0", "--ringspun.carriers=1"],
                                  directory)
            contestants.append(ringspun)
            # wrk's 64 connections have numbers of one and two digits: take the length that most will have.
            for _ in range(10):
                urllib.request.urlopen(ringspun.url).read()
            length = ringspun.answer_bytes()
            bare = Contestant("bare_loop", cores[0], [options.bare_loop, "0", str(cores[0]), str(length)], directory)
            contestants.append(bare)
            print(f"keep-alive GET {PATH}, {length} bytes an answer, {options.connections} connections, "
                  f"server on core {cores[0]}, wrk on core {cores[1]}")
            for contestant in contestants:  # a round that does not count
                contestant.round(cores[1], argparse.Namespace(connections=options.connections, seconds=1))
                contestant.rounds.clear()
            for number in range(options.rounds):
                for contestant in contestants if number % 2 == 0 else reversed(contestants):
                    contestant.round(cores[1], options)
                print(f"  round {number + 1}:  " + "   ".join(
                    f"{c.name} {c.rounds[-1][0]:6.0f} ns {c.rounds[-1][1]:8.0f}/s" for c in contestants), flush=True)
        finally:
            for contestant in contestants:
                contestant.stop()
    ratios = sorted(a[0] / b[0] for a, b in zip(ringspun.rounds, bare.rounds))
    ratio = statistics.median(ratios)
    print(f"processor time per request, medians: ringspun {ringspun.median_ns():.0f} ns, "
          f"bare_loop {bare.median_ns():.0f} ns; ratio {ratio:.3f} (rounds: {ratios[0]:.3f} to {ratios[-1]:.3f})")
    if options.limit and ratio > options.limit:
        print(f"above the limit of {options.limit}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
