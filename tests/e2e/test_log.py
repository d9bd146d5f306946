# SPDX-License-Identifier: Apache-2.0
"""The access log and the JSON log."""
import json
import re
import signal
import subprocess
import time

import pytest

import server as server_module
from loadtools import curl
from server import BINARY, environment
from wire import request

COMBINED = re.compile(r'(\S+) - - \[(\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] '
                      r'"([^"\\]*(?:\\.[^"\\]*)*)" (\d{3}) (\d+|-) '
                      r'"((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"')


def access_lines(server, count):
    """The lines of the app in combined format, once there are count of them."""
    deadline = time.monotonic() + 3
    while True:
        lines = [match for match in map(COMBINED.fullmatch, server.log.splitlines())
                 if match and "/remote/" not in match.group(3)]
        if len(lines) >= count:
            return lines
        assert time.monotonic() < deadline, server.log
        time.sleep(0.01)


def test_access_log_is_combined_format(start):
    """Client, time, request line, status, bytes of the body, referer, agent."""
    server = start("--server.tomcat.accesslog.enabled=true")
    body = curl("-e", "http://a/b", "-A", "agent/1 (x)", server.url("/blocking/0?q=1"))
    curl("-A", "two", "-I", server.url("/currentThread"))
    server.get("/nope")
    first, second, third = access_lines(server, 3)[:3]
    assert first.group(1) in ("127.0.0.1", "::ffff:127.0.0.1")
    assert first.group(3, 4, 5, 6, 7) == (
        "GET /blocking/0?q=1 HTTP/1.1", "200", str(len(body)), "http://a/b", "agent/1 (x)")
    assert second.group(3) == "HEAD /currentThread HTTP/1.1"
    assert second.group(5) in ("-", "0")
    assert third.group(3, 4, 6, 7) == ("GET /nope HTTP/1.1", "404", "-", "-")


def test_access_log_cannot_be_forged(start):
    """Quotes and escapes of the client's are escaped: each request is one line that parses."""
    server = start("--server.tomcat.accesslog.enabled=true")
    server.get('/a"b', headers=['User-Agent: x" 200 "y\\', "Referer: \x80\xff\t\""])
    server.get("/second")
    first, second = access_lines(server, 2)[:2]
    assert first.group(4) == "404"
    assert second.group(3) == "GET /second HTTP/1.1"


def test_access_log_has_pipelined_and_refused_requests(start):
    """One line each, in order."""
    server = start("--server.tomcat.accesslog.enabled=true")
    with server.connect() as connection:
        connection.send(request() * 5 + request("/nope") + request(version="1.2"))
        for _ in range(7):
            connection.response()
    statuses = [line.group(4) for line in access_lines(server, 7)]
    assert statuses == ["200"] * 5 + ["404", "505"]


def test_access_log_is_off_by_default(start):
    """No line."""
    server = start()
    server.get()
    time.sleep(0.1)
    assert "currentThread" not in server.log


def test_json_log_is_one_object_a_line(start):
    """logging.structured.format.console=json."""
    server = start("--logging.structured.format.console=json")
    server.get("/blocking/0")
    server.stop()
    told = [json.loads(line) for line in server.log.splitlines()]
    assert any("Started ringspun in" in json.dumps(line) for line in told)
    for line in told:
        assert any("time" in key.lower() for key in line), line
        text = json.dumps(line)
        assert "INFO" in text or "WARN" in text, line
        assert str(server.pid) in text


@pytest.mark.parametrize("level, shown", [("WARN", False), ("INFO", True), ("DEBUG", True)])
def test_level_of_the_root_logger(tmp_path, level, shown):
    """WARN hides the start, DEBUG shows it."""
    process = subprocess.Popen([*server_module.confinement, BINARY, "--server.port=0", "--remote.port=0",
                                f"--logging.level.root={level}"],
                               cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=10)
    assert ("Started ringspun in" in out) == shown
    assert process.returncode == 0
