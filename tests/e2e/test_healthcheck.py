# SPDX-License-Identifier: Apache-2.0
"""ringspun healthcheck: what containers ask instead of curl."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from server import BINARY, SANITIZED, environment, run

HERE = pathlib.Path(__file__).parent
LATE = 2.0  # seconds, all in all
UP = b'{"status":"UP"}'


def check(*args, code=1, **kwargs):
    """The one line that it says: on stdout when all is well, else on stderr."""
    done = run("healthcheck", *args, **kwargs)
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    said, silent = (done.stdout, done.stderr) if code == 0 else (done.stderr, done.stdout)
    lines = [line for line in said.splitlines() if not (SANITIZED and line.startswith("=="))]
    assert len(lines) == 1 and silent == "", f"{done.stdout}\n{done.stderr}"
    return lines[0]


def answer(body=UP, status="200 OK", fields=()):
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


class Fake:
    """A server of one port that does with each connection what the test says."""

    def __init__(self, serve, family=socket.AF_INET, host="127.0.0.1"):
        self.socket = socket.socket(family)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((host, 0))
        self.socket.listen(16)
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.serve = serve
        self.heads = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            with client:
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = client.recv(4096)
                    if not piece:
                        break
                    head += piece
                self.heads.append(head)
                try:
                    self.serve(client)
                except OSError:
                    pass  # the client has gone

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(10)
        assert not self.thread.is_alive()


@pytest.fixture
def fake():
    made = []

    def make(serve, **kwargs):
        made.append(Fake(serve if callable(serve) else lambda client: client.sendall(serve), **kwargs))
        return made[-1]
    yield make
    for one in made:
        one.close()


def took_no_longer_than(limit, began):
    assert time.monotonic() - began < limit + (5 if SANITIZED else 1)


# Up

def test_server_that_is_up(shared):
    """By port, by address, by name, by URL with and without a path; a line that says so."""
    assert check(f"--server.port={shared.port}", code=0) == f"UP {shared.url('/actuator/health')}"
    check(f"--server.port={shared.port}", "--server.address=127.0.0.1", code=0)
    check(f"--server.port={shared.port}", "--server.address=0.0.0.0", code=0)
    check(f"--url=http://localhost:{shared.port}", code=0)
    check(f"--url={shared.url('/actuator/health/liveness')}", code=0)
    check(f"--url={shared.remote_url()}", code=0)


def test_it_asks_where_the_server_would_listen(shared, tmp_path):
    """The port comes from a file, the environment or an argument, as the server reads them."""
    env = {"SERVER_PORT": str(shared.port)}
    check(code=0, env=env)
    (tmp_path / "application.json").write_text(json.dumps({"server": {"port": shared.port}}))
    check(code=0, cwd=tmp_path)
    assert "port 1" in check("--server.port=1", env=env)


def test_it_needs_no_io_uring(shared, tmp_path):
    """Under a profile that refuses io_uring it still answers."""
    tool = tmp_path / "seccomp_deny"
    subprocess.run(["cc", "-o", tool, HERE / "seccomp_deny.c"], check=True)
    check(f"--server.port={shared.port}", code=0, wrapper=(str(tool),))


def test_ipv6(start):
    """A literal in brackets, and server.address."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    server = start("--server.address=::1")
    check(f"--url=http://[::1]:{server.port}", code=0)
    check(f"--server.port={server.port}", "--server.address=::1", code=0)
    assert "refused" in check(f"--server.port={server.port}")


def test_name_with_two_addresses_of_which_one_is_dead(fake):
    """localhost is ::1 and 127.0.0.1; a server on the second alone is found."""
    one = fake(answer())
    check(f"--url=http://localhost:{one.port}", code=0)


def test_the_request_is_one_plain_get(fake):
    """One connection, one request, Host as it was written."""
    one = fake(answer())
    check(f"--url={one.url}", code=0)
    check(f"--url={one.url}/a/b", code=0)
    assert len(one.heads) == 2
    lines = one.heads[0].decode().split("\r\n")
    assert lines[0] == "GET /actuator/health HTTP/1.1"
    assert f"Host: 127.0.0.1:{one.port}" in lines
    assert one.heads[1].startswith(b"GET /a/b HTTP/1.1\r\n")


@pytest.mark.parametrize("reply", [
    answer(b'{"components":{"db":{"status":"DOWN"}},"status":"UP"}'),
    answer(b'\n{ "status" : "UP" }\n'),
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"sta\r\na\r\ntus\":\"UP\"}\r\n0\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\n" + UP,
], ids=["nested", "spaces", "chunked", "until the end"])
def test_answers_of_other_servers_count_too(fake, reply):
    """Whatever the framing, and byte by byte."""
    check(f"--url={fake(reply).url}", code=0)

    def drip(client):
        for i in range(len(reply)):
            client.sendall(reply[i:i + 1])
    check(f"--url={fake(drip).url}", code=0)


# Down

def test_server_that_drains_is_down(start):
    """503 OUT_OF_SERVICE, from SIGTERM on, named as such."""
    server = start("--server.shutdown.delay=30s")
    check(f"--server.port={server.port}", code=0)
    server.signal(signal.SIGTERM)
    server.wait_log("readiness says OUT_OF_SERVICE")
    assert "503 OUT_OF_SERVICE" in check(f"--server.port={server.port}")
    check(f"--url={server.url('/actuator/health/liveness')}", code=0)
    server.signal(signal.SIGTERM)
    server.wait()
    server.ended()


def test_nobody_listens():
    """Refused, said with the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        line = check(f"--server.port={port}")
    assert "refused" in line and str(port) in line


@pytest.mark.parametrize("reply,cause", [
    (answer(b'{"status":"DOWN"}'), "200 DOWN"),
    (answer(b'{"status":"DOWN"}', "503 Service Unavailable"), "503 DOWN"),
    (answer(UP, "500 Internal Server Error"), "500 UP"),
    (answer(UP, "302 Found", ["Location: /x"]), "302"),
    (answer(b"Hello"), "no status"),
    (answer(b'{"status":1}'), "no status"),
    (answer(b'["UP"]'), "no status"),
    (answer(b'{"status":"\\u001b[31m' + b"x" * 3000 + b'"}'), "\\u001b[31mxxx"),
    (answer(b"x" * 100000), "HTTP"),
    (b"SSH-2.0-OpenSSH_9.2p1\r\n", "not HTTP"),
    (b"", "without an answer"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "HTTP"),
    (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 5000 + b"\r\n", "HTTP"),
], ids=["DOWN", "503", "500", "302", "text", "number", "array", "terminal codes", "huge", "ssh", "nothing", "cut",
        "endless head"])
def test_answers_that_are_none(fake, reply, cause):
    """Exit 1 with the cause, and nothing of the answer that a terminal would obey."""
    line = check(f"--url={fake(reply).url}")
    assert cause in line
    assert "\x1b" not in line


def test_black_hole_is_given_two_seconds(fake):
    """Accepts and says nothing; drips without end; floods without end."""
    def drip(client):
        for _ in range(100):
            client.sendall(b"H")
            time.sleep(0.1)

    def flood(client):
        client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            client.sendall(b"1;" + b"x" * 10 + b"\r\nx\r\n")

    for serve in (lambda client: client.recv(1), lambda client: drip_head(client, drip)):
        began = time.monotonic()
        assert "timed out" in check(f"--url={fake(serve).url}")
        assert time.monotonic() - began >= LATE - 0.1
        took_no_longer_than(LATE, began)
    began = time.monotonic()
    check(f"--url={fake(flood).url}")
    took_no_longer_than(LATE, began)


def drip_head(client, drip):
    client.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    drip(client)


def test_full_accept_queue_is_a_timeout():
    """SYNs that nobody answers: two seconds, then exit 1."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        waiting = []
        for _ in range(4):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
            waiting.append(one)
        began = time.monotonic()
        assert "timed out" in check(f"--server.port={port}")
        took_no_longer_than(LATE, began)
        for one in waiting:
            one.close()


def test_names_that_do_not_resolve():
    """One line, with the name."""
    line = check("--url=http://no-such-host.invalid:8080")
    assert "no-such-host.invalid" in line and "resolve" in line


def test_resolver_that_does_not_answer_is_a_timeout(tmp_path):
    """getaddrinfo(3) would wait ten seconds: two are given."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare, to name another resolver")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.153", 53))
        (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.153\n")
        script = f'mount --bind {tmp_path}/resolv.conf /etc/resolv.conf && exec "$@"'
        began = time.monotonic()
        line = check("--url=http://a.example:8080", wrapper=("unshare", "-m", "sh", "-c", script, "sh"))
    assert "timed out" in line and "resolved" in line
    took_no_longer_than(LATE, began)


# Bad usage

@pytest.mark.parametrize("args", [
    ("--url",), ("--url=",), ("--url=nonsense",), ("--url=https://127.0.0.1",), ("--url=http://h:0",),
    ("--url=http://h/?q",), ("--json",), ("x",), ("http://127.0.0.1:8080",), ("--server.port=0",)], ids=" ".join)
def test_bad_usage_is_exit_2(args):
    """Nothing is asked."""
    check(*args, code=2)


def test_bad_configuration_is_exit_78_as_for_the_server():
    """What the server would refuse is no health either."""
    assert "server.prot" in check("--server.prot=1", code=78)


def test_output_that_nobody_reads_is_no_health(shared):
    """/dev/full: exit 1."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BINARY, "healthcheck", f"--server.port={shared.port}"], stdout=full, timeout=10,
                              env=environment(), cwd="/", check=False)
    assert done.returncode == 1
