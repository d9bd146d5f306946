# SPDX-License-Identifier: Apache-2.0
"""The image and docker-compose.yml on a real engine: started, confined, stopped, moved and replaced."""
import contextlib
import ipaddress
import json
import pathlib
import re
import subprocess
import threading
import time

import pytest

import wire
from burst import Burst
from engine import HARDENED, PROFILE, ROOT, docker, inspect, logs, published, wait_until
from loadtools import ab, timed

SERVICE_PORTS = [7000, 7001, 7002, 8080, 8085, 10000, 10007]
BASE = "debian:trixie-slim"


def status_of(name):
    """/proc/PID/status of the container's first process, as a dictionary."""
    pid = inspect(name)["State"]["Pid"]
    text = pathlib.Path(f"/proc/{pid}/status").read_text("ascii")
    return dict(re.findall(r"^(\w+):\s+(.*)$", text, re.M))


def host_of(port):
    response = wire.fetch(port, headers=["Accept: application/json"])
    assert response.status == 200, response
    return json.loads(response.body)["host"]


def exit_code(name):
    state = inspect(name)["State"]
    assert not state["Running"], state
    return state["ExitCode"]


# The image

def test_image_adds_less_than_2_mb_to_its_base(image):
    """Measured against the base image as the engine has it."""
    size, base = (inspect(name)["Size"] for name in (image, BASE))
    print(f"image {size / 1e6:.2f} MB, base {base / 1e6:.2f} MB, {(size - base) / 1e6:.2f} MB more")
    assert size - base < 2_000_000


def test_image_is_described_and_ends_by_sigterm(image):
    """Numeric user, exec form, stop signal, labels, health check, ports."""
    config = inspect(image)["Config"]
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["/usr/bin/ringspun"]
    assert not config.get("Cmd")
    assert config["StopSignal"] == "SIGTERM"
    assert config["Healthcheck"]["Test"] == ["CMD", "/usr/bin/ringspun", "healthcheck"]
    assert sorted(int(port.split("/")[0]) for port in config["ExposedPorts"]) == SERVICE_PORTS
    version = re.search(r"^VERSION := (\S+)$", (ROOT / "Makefile").read_text("utf-8"), re.M).group(1)
    for label, value in (("title", "ringspun"), ("version", version), ("licenses", "Apache-2.0")):
        assert config["Labels"][f"org.opencontainers.image.{label}"] == value


def test_image_has_no_compiler_and_no_curl(image):
    """Nor wget, nor headers; the program's libraries are there, and its symbols are not."""
    script = """
        for tool in cc gcc c99 cpp as ld make pkg-config curl wget python3 git; do command -v $tool; done
        ls -d /usr/include/*.h /usr/lib/gcc /src 2>/dev/null
        echo ---
        ldd /usr/bin/ringspun"""
    told = docker("run", "--rm", "--entrypoint", "sh", image, "-c", script).stdout
    found, libraries = told.split("---\n")
    assert found == ""
    assert {"liburing", "libllhttp", "libcjson"} <= set(re.findall(r"^\s*(\w+)\.so", libraries, re.M))
    assert "not found" not in libraries


def test_program_in_the_image_is_stripped(containers, image, tmp_path):
    """No symbol table."""
    name = containers.to_the_end(arguments=["--version"])
    assert name.stdout.startswith("ringspun ")
    docker("cp", f"{containers.names[0]}:/usr/bin/ringspun", tmp_path / "ringspun")
    sections = subprocess.run(["readelf", "-SW", tmp_path / "ringspun"], capture_output=True, text=True, check=True,
                              timeout=30).stdout
    assert ".text" in sections
    assert ".symtab" not in sections and ".debug" not in sections


# docker compose up

def test_compose_file_starts_one_service_and_asks_for_no_descriptors(project):
    """By default one; all others behind profiles. No ulimits, no init."""
    told = json.loads(docker("compose", "-f", ROOT / "docker-compose.yml", "config", "--format", "json").stdout)
    assert list(told["services"]) == ["ringspun"]
    service = told["services"]["ringspun"]
    assert sorted(int(port["published"]) for port in service["ports"]) == SERVICE_PORTS
    assert all(int(port["published"]) == port["target"] for port in service["ports"])
    assert "ulimits" not in service and "init" not in service and "privileged" not in service
    assert set(project("split").compose("config", "--services").split()) == {"ringspun", "app", "remote"}
    assert set(project("cluster").compose("config", "--services").split()) == {"ringspun", "balancer", "replica"}


def test_up_starts_one_healthy_container_that_serves_all(single):
    """Each port answers as its server should."""
    name = single.container("ringspun")
    assert single.containers() == [name]
    assert inspect(name)["State"]["Health"]["Status"] == "healthy"
    assert wire.fetch(single.port("ringspun", 8085), "/remote/0").text == "Hello, delayed by 0 seconds."
    for port, runs_on in ((8080, "Fiber"), (7000, "Thread"), (7001, "Thread"), (7002, "Fiber")):
        assert wire.fetch(single.port("ringspun", port)).text.startswith(f"{runs_on}["), port
    with wire.Connection(single.port("ringspun", 10000)) as greeted:
        assert greeted.rest() == b"[echo] Hello World\n"
    with wire.Connection(single.port("ringspun", 10007)) as echoed:
        echoed.send(b"once\n")
        echoed.half_close()
        assert echoed.rest() == b"once\n"


def test_ab_against_the_container_needs_four_rounds(single):
    """60 requests, 20 at once, of 2 s each: 1 + 20 + 20 + 19."""
    report = ab(f"http://127.0.0.1:{single.port('ringspun', 8080)}/blocking/2", 60, 20)
    report.assert_all(60)
    assert 8.0 <= report.seconds < 10.0, report.text


def test_container_is_confined(single):
    """User 65532, no capability, no_new_privs, a seccomp filter, a read-only root: as the kernel tells."""
    name = single.container("ringspun")
    status = status_of(name)
    assert status["Uid"].split() == status["Gid"].split() == ["65532"] * 4
    for which in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[which], 16) == 0, which
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    mounts = pathlib.Path(f"/proc/{inspect(name)['State']['Pid']}/mountinfo").read_text("utf-8").splitlines()
    root = next(line.split() for line in mounts if line.split()[4] == "/")
    assert "ro" in root[5].split(",")


def test_program_is_pid_1_without_an_init(single):
    """It logs as process 1, it is process 1, and it has no child."""
    name = single.container("ringspun")
    assert re.search(r"INFO 1 --- .*Started ringspun in", logs(name))
    assert status_of(name)["NSpid"].split()[-1] == "1"
    assert inspect(name)["HostConfig"].get("Init") in (None, False)
    assert len(docker("top", name, "-o", "pid,args").stdout.splitlines()) == 2  # with the heading


def test_somaxconn_is_the_containers_own(single):
    """Read in its network namespace."""
    name = single.container("ringspun")
    image = inspect(name)["Config"]["Image"]
    told = docker("run", "--rm", "--network", f"container:{name}", "--entrypoint", "cat", image,
                  "/proc/sys/net/core/somaxconn").stdout
    assert told.strip() == "65535"


def test_health_check_says_no_where_nobody_listens(single):
    """In the container, by the program itself."""
    name = single.container("ringspun")
    assert docker("exec", name, "/usr/bin/ringspun", "healthcheck").returncode == 0
    done = docker("exec", name, "/usr/bin/ringspun", "healthcheck", "--url=http://127.0.0.1:1/", check=False)
    assert done.returncode == 1


def test_stop_answers_all_requests_in_flight(project):
    """docker compose stop with 20 requests of 3 s on the way: 20 answers, exit 0, and no kill."""
    one = project()
    one.compose("up", "-d", "ringspun")
    name = one.container("ringspun")
    wait_until(lambda: "Started ringspun in" in logs(name), "it starts")
    with Burst([one.port("ringspun", 8080)] * 20) as burst:
        for sock in burst.socks:
            sock.settimeout(20)
            sock.send(wire.request("/blocking/3"))
        time.sleep(0.5)
        took, _ = timed(lambda: one.compose("stop", "ringspun"))
        for sock in burst.socks:
            answer = sock.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"Hello, delayed by 3 seconds."), answer
    assert exit_code(name) == 0
    assert took < 30, took
    assert "Graceful shutdown complete" in logs(name)


# What a host may lack

def test_dockers_default_profile_ends_it_with_69_and_the_cure(containers):
    """Since Engine 25.0; the line names the profile that is shipped, and that file is there."""
    major = int(docker("version", "--format", "{{.Server.Version}}").stdout.split(".")[0])
    if major < 25:
        pytest.skip(f"Engine {major} still allows io_uring by default")
    done = containers.to_the_end()
    assert done.returncode == 69, done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "io_uring refused by seccomp" in done.stderr
    cure = re.search(r"--security-opt seccomp=([\w./-]+)", done.stderr).group(1)
    assert ROOT / cure == PROFILE and PROFILE.exists()


@pytest.mark.parametrize("call", ["io_uring_setup", "io_uring_enter", "io_uring_register"])
def test_profile_that_lacks_a_call_of_the_ring_is_a_clear_line(containers, tmp_path, call):
    """Somebody's own profile that allows one or two of the three: exit 69 and the same cure."""
    profile = json.loads(PROFILE.read_text("utf-8"))
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name != call]
    own = tmp_path / "own.json"
    own.write_text(json.dumps(profile), "utf-8")
    done = containers.to_the_end("--security-opt", f"seccomp={own}")
    assert done.returncode == 69, done
    assert len(done.stderr.splitlines()) == 1 and "io_uring refused by seccomp" in done.stderr, done.stderr


@pytest.mark.parametrize("content", [None, "{"])
def test_profile_that_is_missing_or_broken_is_a_clear_line(containers, tmp_path, content):
    """The engine's own words, and nothing is started."""
    path = tmp_path / "profile.json"
    if content is not None:
        path.write_text(content, "ascii")
    done = containers.to_the_end("--security-opt", f"seccomp={path}")
    assert done.returncode == 125
    assert "seccomp profile" in done.stderr.lower()


def test_soft_limit_of_descriptors_is_raised_and_logged(containers):
    """To the hard one that the engine gives, whatever that is."""
    name = containers.start(*HARDENED, "--ulimit", "nofile=1024:4096", "-p", "127.0.0.1::8080")
    assert "file descriptor limit raised from 1024 to 4096" in logs(name)
    pid = inspect(name)["State"]["Pid"]
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text("ascii")
    assert re.search(r"^Max open files\s+4096\s+4096\s", limits, re.M), limits
    assert wire.fetch(published(name, 8080)).status == 200


def test_no_ipv6_in_the_container(containers):
    """Switched off in its namespace: it listens on IPv4."""
    name = containers.start(*HARDENED, "--sysctl", "net.ipv6.conf.all.disable_ipv6=1", "-p", "127.0.0.1::8080")
    assert wire.fetch(published(name, 8080), "/blocking/0").status == 200


def test_taken_port_is_a_clear_line(containers):
    """Two servers in one network namespace: the second names the port and ends with 1."""
    first = containers.start(*HARDENED)
    done = containers.to_the_end(*HARDENED, "--network", f"container:{first}")
    assert done.returncode == 1, done
    assert "port 8080 is already in use" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


# The split profile: the remote moves

@contextlib.contextmanager
def split(project, prepare=lambda one: None):
    one = project("split")
    prepare(one)
    one.compose("up", "-d", "app")
    assert [name.split("-")[-2] for name in one.containers()] == ["app", "remote"]
    port = one.port("app", 8080)
    wait_until(lambda: calls_remote(port) == 200, "the app calls the remote", 30)
    yield one, port


def calls_remote(port):
    """The status of one /blocking/0; None when nobody answered."""
    try:
        return wire.fetch(port, "/blocking/0", timeout=15).status
    except (OSError, wire.Closed):
        return None


def address_of(one, name):
    return inspect(name)["NetworkSettings"]["Networks"][f"{one.name}_default"]["IPAddress"]


def fill_pool(port, count=10):
    """Leave some idle connections to the remote in the app's pool."""
    with Burst([port] * count) as burst:
        for sock in burst.socks:
            sock.send(wire.request("/blocking/0.5"))
        for sock in burst.socks:
            assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_remote_that_is_recreated_with_another_address_is_found(project):
    """docker compose up --force-recreate remote: answers again within 10 s of the new one's start, from then on all."""
    with split(project) as (one, port):
        fill_pool(port)
        before = address_of(one, one.container("remote"))
        docker("rm", "-f", one.container("remote"))
        docker("run", "-d", "--name", f"{one.name}-squatter", "--network", f"{one.name}_default",
               "--entrypoint", "sleep",
               inspect(one.container("app"))["Config"]["Image"], "300")  # may take the old address
        try:
            assert calls_remote(port) in (502, 504)
            one.compose("up", "-d", "remote")
            began = time.monotonic()
            assert address_of(one, one.container("remote")) != before
            wait_until(lambda: calls_remote(port) == 200, "the app finds the remote", 10)
            print(f"found after {time.monotonic() - began:.1f} s")
            assert all(calls_remote(port) == 200 for _ in range(20))
        finally:
            docker("rm", "-f", f"{one.name}-squatter", check=False)


def a_free_subnet(name):
    """One that the engine itself would choose."""
    docker("network", "create", name)
    try:
        told = json.loads(docker("network", "inspect", name).stdout)
        return ipaddress.ip_network(told[0]["IPAM"]["Config"][0]["Subnet"])
    finally:
        docker("network", "rm", name)


def test_remote_whose_old_address_is_silent_is_found(project):
    """Pulled out of the network with connections open, no FIN and no reset: found within 10 s."""
    subnet = None

    def place_remote(one, number):
        nonlocal subnet
        subnet = subnet or a_free_subnet(f"{one.name}-probe")
        one.override("address", f"""
networks: {{default: {{ipam: {{config: [{{subnet: "{subnet}"}}]}}}}}}
services: {{remote: {{networks: {{default: {{ipv4_address: "{subnet[number]}"}}}}}}}}
""")

    with split(project, lambda one: place_remote(one, 100)) as (one, port):
        fill_pool(port)
        old = one.container("remote")
        assert address_of(one, old) == str(subnet[100])
        docker("network", "disconnect", "-f", f"{one.name}_default", old)
        docker("rm", "-f", old)
        place_remote(one, 101)
        one.compose("up", "-d", "remote")
        assert address_of(one, one.container("remote")) == str(subnet[101])
        took, _ = timed(lambda: wait_until(lambda: calls_remote(port) == 200, "the app finds the remote", 10))
        print(f"found after {took:.1f} s")
        assert all(calls_remote(port) == 200 for _ in range(20))


# The cluster profile: replicas die and are replaced

@contextlib.contextmanager
def cluster(project, replicas):
    one = project("cluster")
    one.compose("build", "balancer", timeout=300)
    one.compose("up", "-d", "--scale", f"replica={replicas}", "balancer")
    assert len(one.containers("replica")) == replicas
    port = one.port("balancer", 8080)
    seen = set()

    def all_seen():
        with contextlib.suppress(OSError, wire.Closed, AssertionError):
            seen.add(host_of(port))
        return len(seen) == replicas
    wait_until(all_seen, f"all replicas answer; seen: {seen}", 40)
    assert seen == {inspect(name)["Config"]["Hostname"] for name in one.containers("replica")}
    yield one, port


class Load:
    """ab in the background while replicas come and go."""

    def __init__(self, port, count, concurrency, path):
        self.report = self.error = None
        self.count = count

        def run():
            try:
                self.report = ab(f"http://127.0.0.1:{port}{path}", count, concurrency, timeout=120)
            except BaseException as error:  # pylint: disable=broad-except  shown by the test's thread
                self.error = error
        self.thread = threading.Thread(target=run)
        self.thread.start()

    @property
    def running(self):
        return self.thread.is_alive()

    def assert_all(self):
        self.thread.join()
        if self.error is not None:
            raise self.error
        self.report.assert_all(self.count)


def test_replica_that_is_killed_under_load_takes_no_request_with_it(project):
    """SIGKILL to one of three while ab waits for 20 answers: HAProxy asks another."""
    with cluster(project, 3) as (one, port):
        load = Load(port, 400, 20, "/blocking/0.5")
        time.sleep(2)
        victim = one.containers("replica")[0]
        gone = inspect(victim)["Config"]["Hostname"]
        docker("update", "--restart", "no", victim)
        docker("kill", victim)
        assert load.running
        load.assert_all()
        assert gone not in {host_of(port) for _ in range(12)}


def test_rolling_restart_under_load_loses_no_request(project):
    """One replica after the other, as docker/README.md has it, while ab runs; both have answered again after it."""
    with cluster(project, 2) as (one, port):
        load = Load(port, 2000, 20, "/blocking/0.2")
        time.sleep(1)
        restarts = 0
        for name in one.containers("replica"):
            docker("restart", "--time", "40", name, timeout=90)
            restarts += load.running
            wait_until(lambda name=name: inspect(name)["State"]["Health"]["Status"] == "healthy",
                       f"{name} is healthy", 30)
        load.assert_all()
        assert restarts >= 1, "the load ended before the first restart"
        for name in one.containers("replica"):
            log = logs(name)
            assert log.count("Graceful shutdown complete") == 1 and "OUT_OF_SERVICE" in log
            assert log.count("Started ringspun in") == 2
