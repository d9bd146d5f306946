#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ringspun beside its peers: processor time per request, memory per connection, switches, a million sleepers.

The peers are servers of a few lines each on packages of the distribution, in one
image (Dockerfile) and on the host's network; ringspun and bare_loop run as they
were built. Each has the first allowed core for itself and the load generators have
the second. All peers run in turns, A B C, C B A, A B C ..., and the figures are medians
of the rounds, so that a machine that slows down slows all. Processor time is that of
the server's whole process, ended threads included (its CPU clock), divided by the
requests that the load generator counted. /blocking/0 calls one remote, ringspun's,
which runs on the client's core.

usage: run.py [--rounds 5] [--seconds 3] [--warm 3] [--held 10000 19000] [--only NAME,...] [--quick] [--json FILE]
"""
import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
IMAGE = "ringspun-peers"
PEERS = ["nginx", "go-fasthttp", "go-nethttp", "tomcat-virtual", "tomcat-10", "threads"]
IP_BIND_ADDRESS_NO_PORT = 24  # linux/in.h
HELD = (10000, 19000)
SLEEP_S = 8
# The caller's settings for the server are none of this: an unknown RINGSPUN_ name would end its start.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("RINGSPUN_", "SERVER_", "SPRING_"))}
CORES = sorted(os.sched_getaffinity(0))[:2]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_answer(url, patience_s=30):
    deadline = time.monotonic() + patience_s
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return answer.read()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


class Server:
    """A server that runs now. pids: of its processes, the first one's children included."""

    def __init__(self, name, port):
        self.name = name
        self.port = port
        self.pids = []

    def find_pids(self, first):
        self.pids = [first]
        for pid in self.pids:
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
            self.pids += [int(child) for child in children]

    def cpu_ns(self):
        """clock_getcpuclockid(3) of each process: precise, and with the threads that have ended."""
        return sum(time.clock_gettime_ns((~pid << 3) | 2) for pid in self.pids)

    def resident_kib(self):
        total = 0
        for pid in self.pids:
            status = pathlib.Path(f"/proc/{pid}/status").read_text("ascii")
            total += int(re.search(r"VmRSS:\s+(\d+)", status).group(1))
        return total


class Local(Server):
    """One of our own programs. With core None it may run on the clients' core."""

    def __init__(self, name, command, core):
        super().__init__(name, 0)
        self.log = tempfile.NamedTemporaryFile()
        self.process = subprocess.Popen(["taskset", "-c", str(core), *command], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, cwd="/", env=ENVIRONMENT)
        self.ports = self._await_ports()
        self.port = self.ports[0]
        self.pids = [self.process.pid]

    def _await_ports(self):
        deadline = time.monotonic() + 10
        while True:
            text = pathlib.Path(self.log.name).read_text("utf-8", "replace")
            ports = [int(port) for port in re.findall(r"started on port (\d+)", text)]
            if ports and ("Started ringspun" in text or self.name == "bare_loop"):
                return ports
            if self.process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{self.name} did not start:\n{text}")
            time.sleep(0.02)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Contained(Server):
    """A peer in a container of its own."""

    def __init__(self, name, remote_port):
        super().__init__(name, free_port())
        self.container = f"ringspun-peer-{os.getpid()}-{name}"
        subprocess.run(["docker", "run", "--detach", "--rm", "--name", self.container, "--network", "host",
                        "--cpuset-cpus", str(CORES[0]), IMAGE, name, str(self.port), str(remote_port)],
                       check=True, capture_output=True, timeout=60)
        try:
            await_answer(f"http://127.0.0.1:{self.port}/currentThread")
        except OSError as error:
            logs = subprocess.run(["docker", "logs", "--tail", "20", self.container], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.stop()
            sys.exit(f"{name} does not answer: {error}\n{logs.stdout}{logs.stderr}")
        pid = subprocess.run(["docker", "inspect", "--format", "{{.State.Pid}}", self.container],
                             check=True, capture_output=True, text=True, timeout=60).stdout
        self.find_pids(int(pid))

    def stop(self):
        subprocess.run(["docker", "kill", self.container], capture_output=True, timeout=60, check=False)


def on_clients_core(*command):
    done = subprocess.run(["taskset", "-c", str(CORES[1]), *command], capture_output=True, text=True, timeout=300,
                          check=False)
    return done.stdout + done.stderr


def wrk(server, path, seconds):
    text = on_clients_core("wrk", "-t1", "-c64", f"-d{seconds}s", f"http://127.0.0.1:{server.port}{path}")
    if "Non-2xx" in text or not re.search(r"(\d+) requests in", text):
        raise RuntimeError(f"{server.name}: wrk met errors\n{text}")
    return int(re.search(r"(\d+) requests in", text).group(1))


def ab(server, path, count):
    text = on_clients_core("ab", "-q", "-l", "-c64", f"-n{count}", f"http://127.0.0.1:{server.port}{path}")
    failed = re.search(r"Failed requests:\s+(\d+)", text)
    complete = re.search(r"Complete requests:\s+(\d+)", text)
    if not complete or "Non-2xx" in text or not failed:
        raise RuntimeError(f"{server.name}: ab met errors\n{text}")
    return int(complete.group(1))


def measure_keep_alive(server, options):
    return wrk(server, "/currentThread", options.seconds)


def measure_new_connections(server, options):
    return ab(server, "/currentThread", 4000 * options.seconds)


def measure_blocking(server, options):
    return wrk(server, "/blocking/0", options.seconds)


LOADS = {"keep-alive": measure_keep_alive, "new connection": measure_new_connections, "/blocking/0": measure_blocking}


def loads_of(name):
    # bare_loop knows one answer, and does not close for HTTP/1.0
    return {load: measure for load, measure in LOADS.items() if name != "bare_loop" or load == "keep-alive"}


def processor_time(options, names, open_server):
    """{load: {name: median microseconds of processor time per request}}. All servers live through all rounds, warm."""
    rounds = {load: {name: [] for name in names} for load in LOADS}
    servers = {}
    try:
        for name in names:
            servers[name] = open_server(name)
            for measure in loads_of(name).values():
                measure(servers[name], argparse.Namespace(seconds=options.warm * (4 if name.startswith("tomcat") else 1)))
            print(f"  warm: {name}", flush=True)
        for number in range(options.rounds):
            for name in names if number % 2 == 0 else reversed(names):
                for load, measure in loads_of(name).items():
                    before = servers[name].cpu_ns()
                    count = measure(servers[name], options)
                    rounds[load][name].append((servers[name].cpu_ns() - before) / count / 1000)
                print(f"  round {number + 1} {name}: " + "  ".join(
                    f"{load} {rounds[load][name][-1]:.1f}" for load in LOADS if rounds[load][name]), flush=True)
    finally:
        for server in servers.values():
            server.stop()
    return {load: {name: statistics.median(values) for name, values in by_name.items() if values}
            for load, by_name in rounds.items()}


def hold(port, count, path):
    """count connections that have sent a request for path; the answers are not read."""
    held = []
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode("ascii")
    for number in range(count):
        one = socket.socket()
        one.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)  # the port is chosen for this target alone
        one.bind((f"127.0.0.{2 + number // 10000}", 0))
        one.connect(("127.0.0.1", port))
        one.sendall(request)
        held.append(one)
    return held


def memories(names, open_server, counts):
    table = {}
    for kind, path in (("idle", "/currentThread"), ("asleep", f"/remote/{SLEEP_S + 22}")):
        for count in counts:
            for name in names:
                if name == "bare_loop" and kind == "asleep" or name == "tomcat-10" and kind == "asleep":
                    continue
                server = open_server(name)
                try:
                    # ringspun's remote takes all connections, its app ports half of them.
                    port = server.ports[1] if name == "ringspun" else server.port
                    where = "/actuator/health" if name == "ringspun" and kind == "idle" else path
                    table.setdefault(f"{kind} {count}", {})[name] = memory_of(server, port, where, count, kind)
                except OSError as error:
                    print(f"  {kind} {count} {name}: {error}")
                finally:
                    server.stop()
            print(f"  {kind} {count}: " + "  ".join(
                f"{name} {value:.1f}" for name, value in table.get(f"{kind} {count}", {}).items()), flush=True)
    return table


def memory_of(server, port, path, count, kind):
    idle = kind == "idle"
    warm = hold(port, 64, path if idle else "/remote/0")
    for one in warm:
        one.recv(4096)
        one.close()
    time.sleep(2.5)
    before = server.resident_kib()
    connections = hold(port, count, path)
    if idle:
        for one in connections:
            one.recv(4096)
    time.sleep(3)
    after = server.resident_kib()
    for one in connections:
        one.close()
    return (after - before) / count


def in_image(*arguments, cores):
    text = subprocess.run(["docker", "run", "--rm", "--network", "host", "--cpuset-cpus", cores, IMAGE, *arguments],
                          check=True, capture_output=True, text=True, timeout=300).stdout
    return json.loads(text.strip().splitlines()[-1])


def median_of(program, name):
    """From the table that bench/micro's programs print."""
    text = subprocess.run(["taskset", "-c", str(CORES[0]), str(ROOT / "build" / "bench" / program)], check=True,
                          capture_output=True, text=True, timeout=120).stdout
    return float(re.search(rf"^{name}.*?([\d.]+) ns", text, re.M).group(1))


def table_of(title, rows, columns, form="{:.1f}"):
    lines = [f"| {title} | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for label, values in rows.items():
        lines.append(f"| {label} | " + " | ".join(
            form.format(values[column]) if column in values else "–" for column in columns) + " |")
    return "\n".join(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--warm", type=int, default=3, help="seconds of each load before any counts; Tomcat four times that")
    parser.add_argument("--held", type=int, nargs="*", default=HELD, help="connections whose memory is measured")
    parser.add_argument("--only", default="", help="names of servers, with commas between them")
    parser.add_argument("--quick", action="store_true", help="one round of one second, memory at the smaller count")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds, options.warm = 1, 1, 1
    return options


def main():
    options = parse_arguments()
    lacking = [tool for tool in ("docker", "wrk", "ab", "taskset") if not shutil.which(tool)]
    if lacking or len(CORES) < 2:
        print("bench-peers: not measured: " + (f"{', '.join(lacking)} not here" if lacking else "one core only"))
        return 0
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode != 0:
        print("bench-peers: not measured: no Docker engine answers ('docker info')")
        return 0
    print("building the peers' image", flush=True)
    subprocess.run(["docker", "build", "--quiet", "--network", "host", "--tag", IMAGE, str(HERE)], check=True,
                   stdout=subprocess.DEVNULL)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = options.held[:1] if options.quick else options.held
    counts = [count for count in held if count + 200 < hard]

    ours = str(ROOT / "build" / "ringspun")
    remote = Local("remote", [ours, "--server.port=0", "--remote.port=0", "--ringspun.carriers=1"], CORES[1])

    def open_server(name):
        if name == "ringspun":
            return Local(name, [ours, "--server.port=0", "--remote.port=0", "--ringspun.carriers=1",
                                f"--remote.url=http://127.0.0.1:{remote.ports[1]}",
                                "--server.tomcat.keep-alive-timeout=10m"], CORES[0])
        if name == "bare_loop":
            return Local(name, [str(ROOT / "build" / "bench" / "bare_loop"), "0", str(CORES[0]), "159"], CORES[0])
        return Contained(name, remote.ports[1])

    names = ["ringspun", "bare_loop", *PEERS]
    if options.only:
        names = [name for name in names if name in options.only.split(",")]
    report = {"date": time.strftime("%Y-%m-%d"), "kernel": os.uname().release, "rounds": options.rounds}
    try:
        print("processor time per request, microseconds", flush=True)
        report["processor_us"] = processor_time(options, names, open_server)
        print("resident memory per connection, KiB", flush=True)
        report["resident_kib"] = memories(names, open_server, counts)
    finally:
        remote.stop()
    print("switches and sleepers", flush=True)
    report["switch"] = {peer: in_image(f"{peer}-switches", cores=str(CORES[0])) for peer in ("go", "java")}
    report["switch"]["ringspun"] = {"switch_ns": median_of("switch", "ours"), "spawn_ns": median_of("spawn", "spawn, run and end, one")}
    if not options.quick:
        both = ",".join(str(core) for core in CORES)
        report["sleepers"] = {peer: in_image(f"{peer}-sleepers", "1000000", "5", cores=both) for peer in ("go", "java")}
        ours = subprocess.run([str(ROOT / "build" / "ringload"), "--json", "--fibers", "1m", "--sleep", "5s"], check=True,
                              capture_output=True, text=True, timeout=300).stdout
        report["sleepers"]["ringspun"] = json.loads(ours)
    print()
    print(table_of("µs of processor time per request", report["processor_us"], names))
    print()
    print(table_of("KiB resident per connection", report["resident_kib"], names))
    print()
    for what in ("switch", "sleepers"):
        for peer, figures in report.get(what, {}).items():
            print(f"{what} {peer}: " + "  ".join(f"{key} {value}" for key, value in figures.items()))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
