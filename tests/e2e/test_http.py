# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 on the wire: framing, pipelining, persistence, refusals, patience."""
import json
import re
import signal
import socket
import time

import pytest

from loadtools import at_once, curl, timed
from wire import Closed, Connection, request

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00")
REASONS = {400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
           413: None, 414: None, 431: "Request Header Fields Too Large", 501: "Not Implemented",
           503: "Service Unavailable", 505: "HTTP Version Not Supported"}
MILLION = "/" + "a" * 1_000_000


def assert_error(response, status, path=None):
    """Spring's error body, every member of it."""
    assert response.status == status, response
    assert response.get("content-type") == "application/json"
    told = json.loads(response.body)
    assert set(told) - {"message"} == {"timestamp", "status", "error", "path"}, told
    assert TIMESTAMP.fullmatch(told["timestamp"]), told
    assert told["status"] == status
    if REASONS[status]:
        assert told["error"] == REASONS[status]
    if path is not None:
        assert told["path"] == path
    assert told.get("message", "something") != ""


def field(line):
    return request(headers=[line])


MALFORMED = {
    "no request line": b"GARBAGE\r\n\r\n",
    "no version": b"GET /currentThread\r\n\r\n",
    "no version but fields": b"GET /currentThread\r\nHost: a\r\n\r\n",
    "version in lower case": b"GET / http/1.1\r\nHost: a\r\n\r\n",
    "version of two digits": b"GET / HTTP/11.1\r\nHost: a\r\n\r\n",
    "other protocol": b"GET / RTSP/1.0\r\nHost: a\r\n\r\n",
    "space in the target": b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    "target without slash": b"GET currentThread HTTP/1.1\r\nHost: a\r\n\r\n",
    "control character in the target": b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
    "NUL in the target": b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
    "TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "line feeds alone": b"GET /currentThread HTTP/1.1\nHost: a\n\n",
    "fragment in the target": request("/currentThread#x"),
    "no Host": request(host=None),
    "no Host beside an absolute target": request("http://localhost/currentThread", host=None),
    "two Hosts": field("Host: other"),
    "two equal Hosts": field("Host: localhost"),
    "Host with a space": request(host="a b"),
    "Host with a slash": request(host="a/b"),
    "Host with user": request(host="user@a"),
    "Host with a bad port": request(host="a:port"),
    "space before the colon": field("Name : value"),
    "field without a colon": field("Name"),
    "field without a name": field(": value"),
    "folded field": field("Name: value\r\n folded"),
    "space before the first field": b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
    "control character in a name": field("Na\x01me: value"),
    "NUL in a value": field("Name: va\x00lue"),
    "CR in a value": field("Name: va\rlue"),
    "negative length": field("Content-Length: -1"),
    "signed length": field("Content-Length: +1"),
    "hexadecimal length": field("Content-Length: 0x1"),
    "empty length": field("Content-Length: "),
    "length that overflows": field("Content-Length: 99999999999999999999999"),
    "two lengths": request(headers=["Content-Length: 1", "Content-Length: 2"]),
    "list of lengths": field("Content-Length: 1, 2"),
    "length and chunked": request(headers=["Content-Length: 1", "Transfer-Encoding: chunked"]),
    "chunked twice": field("Transfer-Encoding: chunked, chunked"),
    "chunked in two fields": request(headers=["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"]),
    "chunked by 1.0": request(version="1.0", headers=["Transfer-Encoding: chunked"]),
    "chunk size of no digits": request(headers=["Transfer-Encoding: chunked"], body=b"zz\r\n\r\n"),
    "negative chunk size": request(headers=["Transfer-Encoding: chunked"], body=b"-1\r\n\r\n"),
    "chunk size that overflows": request(headers=["Transfer-Encoding: chunked"], body=b"fffffffffffffffff\r\n"),
    "chunk longer than its size": request(headers=["Transfer-Encoding: chunked"], body=b"1\r\nab\r\n0\r\n\r\n"),
    "Content-Length as a trailer": request(headers=["Transfer-Encoding: chunked"],
                                           body=b"0\r\nContent-Length: 3\r\n\r\n"),
    "Transfer-Encoding as a trailer": request(headers=["Transfer-Encoding: chunked"],
                                              body=b"0\r\nTransfer-Encoding: chunked\r\n\r\n"),
}
# Which of two defects is seen first is nobody's business: these may be 505 as well.
ALSO_505 = {"other protocol", "HTTP/2 preface", "version of two digits", "no version", "no version but fields"}
# Chunked twice is malformed, and it is a coding that we do not know.
ALSO_501 = {"chunked twice", "chunked in two fields"}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_request_is_a_400_and_then_a_close(shared, name):
    """The answer can be read, the connection ends, the next connection is served."""
    with shared.connect() as connection:
        connection.send(MALFORMED[name])
        response = connection.response()
        allowed = {400} | ({505} if name in ALSO_505 else set()) | ({501} if name in ALSO_501 else set())
        assert response.status in allowed, response
        assert_error(response, response.status)
        assert response.closes, response
        connection.assert_closed()
    shared.assert_serves()


@pytest.mark.parametrize("host", [
    "localhost", "localhost:8080", "127.0.0.1", "[::1]", "[::1]:8080", "a.b-c.example.", "a_b", ""])
def test_valid_hosts_are_served(shared, host):
    """An empty Host is valid too (RFC 9112 section 3.2), so is a name, an address, a port."""
    assert shared.get(host=host).status == 200


def test_an_absolute_target_names_the_host(shared):
    """GET http://name/path is served as GET /path (RFC 9112 section 3.2.2)."""
    assert shared.get(f"http://localhost:{shared.port}/currentThread").status == 200
    assert_error(shared.get(f"http://localhost:{shared.port}/nope"), 404)


def test_a_query_does_not_hide_the_route(shared):
    """/currentThread?x=1 is /currentThread."""
    assert shared.get("/currentThread?x=1&y").status == 200


@pytest.mark.parametrize("path", ["/", "/nope", "/currentThread/", "/currentThread/x", "/CurrentThread",
                                  "/blocking/1/2", "/nope\"\\<>%22", "/%C3%A4"])
def test_unknown_path_is_a_404_that_names_it(shared, path):
    """404 with the path as JSON text; the connection persists."""
    with shared.connect() as connection:
        assert_error(connection.ask(path), 404, path)
        assert connection.ask().status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_wrong_method_is_a_405_with_allow(shared, method):
    """Allow names what the route has."""
    with shared.connect() as connection:
        response = connection.ask(method=method, headers=["Content-Length: 0"])
        assert_error(response, 405, "/currentThread")
        allowed = {word.strip() for word in response.get("allow").split(",")}
        assert {"GET", "HEAD", "OPTIONS"} <= allowed
        assert connection.ask().status == 200


@pytest.mark.parametrize("method", ["BREW", "PROPFIND", "get", "M-SEARCH", "G", "X" * 100])
def test_unknown_method_is_a_501(shared, method):
    """A method we don't know; methods are case-sensitive."""
    assert_error(shared.get(method=method), 501)
    shared.assert_serves()


@pytest.mark.parametrize("coding", ["gzip", "gzip, chunked", "identity", "x"])
def test_unknown_transfer_coding_is_a_501(shared, coding):
    """And the connection ends: where the body ends is not known."""
    with shared.connect() as connection:
        response = connection.ask(headers=[f"Transfer-Encoding: {coding}"])
        assert_error(response, 501)
        assert response.closes
        connection.assert_closed()


@pytest.mark.parametrize("version", ["2.0", "1.2", "1.9", "0.9", "3.0", "0.0"])
def test_other_version_is_a_505(shared, version):
    """Any version but 1.0 and 1.1."""
    with shared.connect() as connection:
        response = connection.ask(version=version)
        assert_error(response, 505)
        connection.assert_closed()
    shared.assert_serves()


def test_connect_and_upgrade_do_not_stall(shared):
    """CONNECT is refused; Upgrade is ignored, and the next request on the connection is read."""
    with shared.connect() as connection:
        connection.send(b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n")
        assert connection.response().status in (400, 404, 405, 501)
    with shared.connect() as connection:
        for _ in range(2):
            response = connection.ask(headers=["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c",
                                               "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"])
            assert response.status == 200


@pytest.mark.parametrize("path, allow", [("/currentThread", True), ("*", True), ("/blocking/1", True)])
def test_options(shared, path, allow):
    """200 with Allow and Content-Length: 0, for * too."""
    with shared.connect() as connection:
        response = connection.ask(path, method="OPTIONS")
        assert response.status == 200
        assert "GET" in response.get("allow")
        assert response.get("content-length") == "0" and response.body == b""
        assert connection.ask().status == 200


def test_star_is_for_options_only(shared):
    """GET * is refused."""
    assert_error(shared.get("*"), 400)


@pytest.mark.parametrize("path", ["/currentThread", "/blocking/0", "/nope", "/actuator/health"])
def test_head_is_get_without_a_body(shared, path):
    """The same status and length, no body: the next answer follows directly."""
    with shared.connect() as connection:
        got = connection.ask(path)
        head = connection.ask(path, method="HEAD")
        assert head.status == got.status
        assert head.get("content-type") == got.get("content-type")
        if path != "/nope":  # a timestamp is of the same length too, but leave that open
            assert head.get("content-length") == got.get("content-length")
        assert connection.ask().status == 200


# Limits

def test_target_over_8000_bytes_is_a_414(shared):
    """8000 are served (as a 404), 8001 are not."""
    assert_error(shared.get("/" + "a" * 7999), 404)
    assert_error(shared.get("/" + "a" * 8000), 414)
    shared.assert_serves()


def test_a_million_character_target_is_a_414(shared):
    """Answered before all of it came, readable though all of it is sent, nothing leaked."""
    for _ in range(20):
        with shared.connect() as connection:
            connection.send(request(MILLION))
            assert_error(connection.response(), 414)
            connection.assert_closed(3.0)
    shared.assert_serves()


def test_header_block_over_the_limit_is_a_431(shared):
    """Request line and fields together over 8 KB; 7 KB are served."""
    assert shared.get(headers=["Name: " + "v" * 7000]).status == 200
    assert_error(shared.get(headers=["Name: " + "v" * 8192]), 431)
    assert_error(shared.get(headers=["N" * 8192 + ": v"]), 431)
    assert_error(shared.get(headers=[f"Name-{i}: {'v' * 100}" for i in range(90)]), 431)


def test_header_limit_is_configurable(start):
    """server.max-http-request-header-size=16KB."""
    server = start("--server.max-http-request-header-size=16KB")
    assert server.get(headers=["Name: " + "v" * 15000]).status == 200
    assert_error(server.get(headers=["Name: " + "v" * 16384]), 431)


def test_more_than_100_fields_are_a_431(shared):
    """Host and 99 others are served, Host and 100 others are not."""
    assert shared.get(headers=[f"N{i}: v" for i in range(99)]).status == 200
    assert_error(shared.get(headers=[f"N{i}: v" for i in range(100)]), 431)


def test_body_over_the_limit_is_a_413(shared):
    """1 MB is dropped and the next request read; one byte more is refused, by length at once."""
    megabyte = 1024 * 1024
    with shared.connect() as connection:
        connection.send(request(headers=[f"Content-Length: {megabyte}"], body=bytes(megabyte)))
        assert connection.response().status == 200
        assert connection.ask().status == 200
    with shared.connect() as connection:
        connection.send(request(headers=[f"Content-Length: {megabyte + 1}"]))
        assert_error(connection.response(), 413)
        connection.assert_closed(3.0)
    with shared.connect() as connection:
        connection.send(request(headers=["Content-Length: 18446744073709551615"]))
        response = connection.response()
        assert response.status in (400, 413), response


def test_chunked_body_over_the_limit_is_a_413(start):
    """Whatever the size of the chunks; the limit is configurable."""
    server = start("--server.max-http-request-body-size=8KB")
    chunk = b"400\r\n" + bytes(1024) + b"\r\n"
    with server.connect() as connection:
        connection.send(request(headers=["Transfer-Encoding: chunked"], body=chunk * 8 + b"0\r\n\r\n"))
        assert connection.response().status == 200
        connection.send(request(headers=["Transfer-Encoding: chunked"], body=chunk * 9 + b"0\r\n\r\n"))
        assert_error(connection.response(), 413)


CHUNKED = request(headers=["Transfer-Encoding: chunked"])
FLOODS = {
    "chunk extension": (CHUNKED + b"1;", b"a" * 8192, {400, 413, 431}),
    "trailers": (CHUNKED + b"0\r\n", b"Name: " + b"v" * 8000 + b"\r\n", {400, 413, 431}),
    "zeros of a chunk size": (CHUNKED, b"0" * 8192, {400, 413, 431}),
    "empty lines before a request": (b"", b"\r\n" * 4096, {400, 431}),
    "header fields": (b"GET / HTTP/1.1\r\n", b"Name: value\r\n" * 600, {431}),
    "one header name": (b"GET / HTTP/1.1\r\n", b"N" * 8192, {431}),
    "method": (b"", b"G" * 8192, {400, 414, 431, 501}),
}


@pytest.mark.parametrize("what", FLOODS)
def test_nothing_of_a_request_is_without_bound(shared, what):
    """What the limits do not name is bounded all the same: refused long before 1.5 MB have come, and readable."""
    begin, more, statuses = FLOODS[what]
    with shared.connect() as connection:
        connection.send(begin + more * (1_500_000 // len(more)))
        response = connection.response()
        assert_error(response, response.status)
        assert response.status in statuses
        connection.assert_closed(3.0)
    shared.assert_serves()


def test_refusal_is_readable_while_the_client_still_sends(shared):
    """A client that sends 1.9 MiB although it was refused meets no reset: it sends all and reads the answer."""
    size = 1900 * 1024
    with shared.connect() as connection:
        connection.send(request(headers=[f"Content-Length: {size}"]))
        for _ in range(19):
            connection.send(bytes(size // 19))
            time.sleep(0.01)
        assert_error(connection.response(), 413)
        connection.assert_closed(3.0)


def test_lingering_after_a_refusal_ends(shared):
    """A client that never stops sending is cut after 2 s or 2 MiB."""
    with shared.connect() as connection:
        connection.send(request(version="1.2"))
        connection.response()
        began = time.monotonic()
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while time.monotonic() < began + 5:
                connection.send(b"x")
                time.sleep(0.02)
        assert time.monotonic() - began < 3.0


# Persistence

def test_1_1_persists_by_default(shared):
    """No Connection field is needed, either way."""
    with shared.connect() as connection:
        for _ in range(3):
            response = connection.ask()
            assert response.status == 200 and not response.closes


def test_1_1_closes_when_asked(shared):
    """Connection: close, in any case and in a list, is answered likewise, then FIN."""
    for value in ("close", "Close", "foo, close"):
        with shared.connect() as connection:
            assert connection.ask(headers=[f"Connection: {value}"]).closes
            connection.assert_closed()


def test_1_0_closes_unless_asked(shared):
    """Without keep-alive the connection ends; with it, it persists and says so."""
    with shared.connect() as connection:
        assert connection.ask(version="1.0").get("connection", "close").lower() == "close"
        connection.assert_closed()
    with shared.connect() as connection:
        for _ in range(2):
            response = connection.ask(version="1.0", headers=["Connection: Keep-Alive"])
            assert response.status == 200
            assert response.get("connection").lower() == "keep-alive"
    with shared.connect() as connection:
        assert connection.ask(version="1.0", host=None).status == 200


def test_half_closed_client_gets_its_answers(shared):
    """FIN after the requests: all answers, then the server's FIN."""
    with shared.connect() as connection:
        connection.send(request() * 3)
        connection.half_close()
        for _ in range(3):
            assert connection.response().status == 200
        connection.assert_closed()
    with shared.connect() as connection:
        connection.send(request("/blocking/0.3"))
        connection.half_close()
        assert connection.response().text == "Hello, delayed by 0.3 seconds."
        connection.assert_closed()


def test_answer_was_lost_when_request_and_fin_came_together(start):
    """The server is stopped meanwhile, so that it finds both at once: new and used connections, quick and slow."""
    server = start()
    for port, path in ((server.port, "/currentThread"), (server.remote_port, "/remote/0.1"),
                       (server.port, "/blocking/0.1")):
        connections = [Connection(port) for _ in range(10)]
        for connection in connections[:5]:
            connection.ask("/actuator/health")
        server.signal(signal.SIGSTOP)
        for connection in connections:
            connection.send(request(path) * 3)
            connection.half_close()
        server.signal(signal.SIGCONT)
        for connection in connections:
            assert [connection.response().status for _ in range(3)] == [200] * 3
            connection.assert_closed()
            connection.close()


def test_half_close_within_a_request_is_answered_or_closed(shared):
    """A head that can never become whole: 400 or a close, at once, no wait for the time-out."""
    with shared.connect() as connection:
        connection.send(b"GET /currentThread HT")
        connection.half_close()
        connection.sock.settimeout(2)
        try:
            assert connection.response().status == 400
        except Closed as closed:
            assert closed.got == b""
    shared.assert_serves()


# Pipelining

def numbered(paths):
    return b"".join(request(path) for path in paths)


def test_pipelined_requests_are_answered_in_order(shared):
    """A slow one holds back the quick ones behind it."""
    delays = ["0.3", "0", "0.1", "0.002", "0"]
    with shared.connect_remote() as connection:
        connection.send(numbered(f"/remote/{n}" for n in delays))
        for n in delays:
            assert connection.response().text == f"Hello, delayed by {n} seconds."


def test_pipelined_refusals_keep_their_place(shared):
    """200, 404, 405, 200 in order on one connection; after a malformed one nothing more."""
    with shared.connect() as connection:
        connection.send(request() + request("/nope") + request(method="DELETE") + request()
                        + b"\x00\r\n\r\n" + request())
        assert [connection.response().status for _ in range(5)] == [200, 404, 405, 200, 400]
        connection.assert_closed()


STREAM = (request("/remote/0") + b"\r\n"
          + request("/remote/0.0", headers=["Content-Length: 7"], body=b"GET / H")
          + request("/remote/0.00", method="HEAD")
          + request("/remote/0.000", headers=["Transfer-Encoding: chunked"],
                    body=b"5;ext=1\r\nGET /\r\n0\r\nTrailer: x\r\n\r\n")
          + request("/remote/0.0000", headers=["Connection: close"]))


def read_stream(connection):
    for n, method in (("0", "GET"), ("0.0", "GET"), ("0.00", "HEAD"), ("0.000", "GET"), ("0.0000", "GET")):
        response = connection.response(method)
        assert response.status == 200
        assert response.text == ("" if method == "HEAD" else f"Hello, delayed by {n} seconds.")
    connection.assert_closed()


def test_pipelining_split_at_every_byte(shared):
    """Five requests, with bodies and an empty line between, cut in two at each position."""
    def split(position):
        with shared.connect_remote() as connection:
            connection.send(STREAM[:position])
            time.sleep(0.003)
            connection.send(STREAM[position:])
            read_stream(connection)

    def some(first):
        for position in range(first, len(STREAM), 8):
            split(position)

    at_once(*[lambda first=first: some(first) for first in range(8)])


@pytest.mark.parametrize("segment", [1, 2, 3, 7, 50])
def test_pipelining_in_small_segments(shared, segment):
    """The same in segments of a few bytes."""
    with shared.connect_remote() as connection:
        connection.send(STREAM, segment, 0.0005)
        read_stream(connection)


# Bodies

@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_unused_body_is_dropped_and_the_next_request_read(shared, method, framing):
    """Also with a refused method, unless that answer ends the connection; the body is never taken for a request."""
    body = request("/nope")
    if framing == "length":
        data = request(method=method, headers=[f"Content-Length: {len(body)}"], body=body)
    else:
        data = request(method=method, headers=["Transfer-Encoding: chunked"],
                       body=f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n")
    with shared.connect() as connection:
        connection.send(data + request())
        first = connection.response()
        assert first.status == (200 if method == "GET" else 405)
        if first.closes:
            connection.assert_closed()
        else:
            assert connection.response().status == 200


def test_expect_100_continue_comes_before_the_body(shared):
    """The 100 comes while the body is not sent yet, then the answer; the connection goes on."""
    with shared.connect() as connection:
        connection.send(request(headers=["Expect: 100-continue", "Content-Length: 5"]))
        assert connection.response().status == 100
        connection.send(b"hello" + request())
        assert connection.response().status == 200
        assert connection.response().status == 200


@pytest.mark.parametrize("data, status", [
    (request("/nope", headers=["Expect: 100-continue", "Content-Length: 5"]), 404),
    (request(method="POST", headers=["Expect: 100-continue", "Content-Length: 5"]), 405),
    (request(method="BREW", headers=["Expect: 100-continue", "Content-Length: 5"]), 501),
    (request(headers=["Expect: 100-continue", "Content-Length: 9999999"]), 413),
    (request(headers=["Expect: 100-continue", "Content-Length: 5", "Host: twice"]), 400),
    (request("/blocking/abc", headers=["Expect: 100-continue", "Content-Length: 5"]), 400),
    (request("/directory/large", method="PUT", headers=["Expect: 100-continue", "Content-Length: 4097"]), 413),
], ids=lambda value: str(value) if isinstance(value, int) else "")
def test_expect_100_continue_of_a_refused_request_gets_no_100(shared, data, status):
    """The first thing that comes is the refusal."""
    with shared.connect() as connection:
        connection.send(data)
        assert connection.response().status == status


def test_expect_100_continue_is_ignored_for_1_0(shared):
    """HTTP/1.0 never gets a 100."""
    with shared.connect() as connection:
        connection.send(request(version="1.0", headers=["Expect: 100-continue", "Content-Length: 5"]))
        connection.assert_quiet(0.2)
        connection.send(b"hello")
        assert connection.response().status == 200


def test_curl_sends_a_body_and_gets_its_answer(shared):
    """curl -d with Expect, refused as 405, without the second that curl waits for a 100."""
    took, status = timed(lambda: curl("-o", "/dev/null", "-w", "%{http_code}", "-H", "Expect: 100-continue",
                                      "-d", "x" * 2000, shared.url("/currentThread")))
    assert status == b"405"
    assert took < 0.9


# Patience

@pytest.fixture(scope="module")
def impatient(start_shared):
    return start_shared("--server.tomcat.connection-timeout=400ms", "--server.tomcat.keep-alive-timeout=300ms")


def seconds_until_closed(connection):
    began = time.monotonic()
    connection.sock.settimeout(5)
    rest = connection.rest()
    return time.monotonic() - began, rest


def test_partial_head_is_a_408(impatient):
    """After connection-timeout, and then a close."""
    with impatient.connect() as connection:
        connection.send(b"GET /currentThread HTTP/1.1\r\nHost: a\r\n")
        took, response = timed(connection.response)
        assert_error(response, 408)
        assert 0.35 <= took < 1.5
        connection.assert_closed()


def test_body_that_does_not_come_is_a_408(impatient):
    """The head is whole, the body is not."""
    with impatient.connect() as connection:
        connection.send(request(headers=["Content-Length: 10"], body=b"abc"))
        took, response = timed(connection.response)
        assert_error(response, 408)
        assert 0.35 <= took < 1.5
        connection.assert_closed()


def test_slowloris_cannot_renew_the_deadline(impatient):
    """A byte each 50 ms does not help: 408 at the absolute deadline."""
    with impatient.connect() as connection:
        began = time.monotonic()
        connection.sock.settimeout(0.05)
        answer = b""
        for byte in request(headers=["Name: " + "v" * 200]):
            connection.sock.send(bytes([byte]))
            try:
                answer = connection.sock.recv(65536)
                break
            except socket.timeout:
                pass
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert 0.35 <= time.monotonic() - began < 0.8


def test_silent_new_connection_is_closed_in_silence(impatient):
    """No byte came: no 408."""
    with impatient.connect() as connection:
        took, rest = seconds_until_closed(connection)
        assert rest == b""
        assert 0.25 <= took < 1.0


def test_idle_connection_is_closed_in_silence(impatient):
    """After keep-alive-timeout since the last answer."""
    with impatient.connect() as connection:
        assert connection.ask().status == 200
        took, rest = seconds_until_closed(connection)
        assert rest == b""
        assert 0.28 <= took < 0.8


def test_idle_time_counts_from_the_last_answer(impatient):
    """Requests each 200 ms keep a connection for longer than the time-out."""
    with impatient.connect() as connection:
        for _ in range(4):
            assert connection.ask().status == 200
            time.sleep(0.2)


def test_second_request_has_a_deadline_of_its_own(impatient):
    """A partial head on a persistent connection: 408, counted from its first byte."""
    with impatient.connect() as connection:
        assert connection.ask().status == 200
        time.sleep(0.2)
        connection.send(b"GET /")
        took, response = timed(connection.response)
        assert_error(response, 408)
        assert 0.35 <= took < 1.5


def test_slow_request_is_not_cut_by_the_timeouts(impatient):
    """They are of reading: a handler may take longer than both."""
    assert impatient.get("/blocking/1").status == 200


def test_client_reset_at_any_point_harms_nobody(shared):
    """RST before, within and after a request, and with answers unread."""
    for data in (b"", b"GET /cur", request(), request() * 100, request("/blocking/1"),
                 request(headers=["Content-Length: 100"], body=b"x")):
        connection = Connection(shared.port)
        connection.send(data)
        time.sleep(0.005)
        connection.reset()
    shared.assert_serves()
