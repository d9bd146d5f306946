# SPDX-License-Identifier: Apache-2.0
"""HTTP by hand: what is sent, and in which segments, is up to the test.

Every response that is read here is held against the rules that no answer may
break (see check_response), so each test checks them too.
"""
import re
import socket
import struct
import time

IMF_FIXDATE = re.compile(
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) "
    r"\d{4} \d\d:\d\d:\d\d GMT")


def request(path="/currentThread", method="GET", version="1.1", headers=(), body=b"", host="localhost"):
    """The bytes of a request; headers are lines. host=None leaves the field away."""
    lines = [f"{method} {path} HTTP/{version}"]
    if host is not None:
        lines.append(f"Host: {host}")
    lines += headers
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


class Closed(Exception):
    """The server finished before a whole response had come."""

    def __init__(self, got):
        super().__init__(f"closed after {len(got)} bytes of a response: {got[:200]!r}")
        self.got = got


class Response:
    def __init__(self, head, body=b""):
        lines = head.decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.([01]) (\d{3}) ?(.*)", lines[0])
        assert match, f"not a status line: {lines[0]!r}"
        self.head = head
        self.status = int(match.group(2))
        self.reason = match.group(3)
        self.fields = []
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            assert colon and re.fullmatch(r"[!#-'*+.0-9A-Z^-z|~-]+", name), f"not a field: {line!r}"
            self.fields.append((name.lower(), value.strip()))
        self.body = body

    def all(self, name):
        return [value for key, value in self.fields if key == name.lower()]

    def get(self, name, default=None):
        values = self.all(name)
        return values[0] if values else default

    @property
    def text(self):
        return self.body.decode("utf-8")

    @property
    def closes(self):
        return (self.get("connection") or "").lower() == "close"

    def __repr__(self):
        return f"<{self.status} {self.fields} {self.body[:200]!r}>"


def check_response(response):
    """Rules of every response: Date, one framing, no Server."""
    if response.status < 200:
        return
    assert len(response.all("date")) == 1, response
    assert IMF_FIXDATE.fullmatch(response.get("date")), response
    assert not response.all("server"), response
    framings = response.all("content-length") + response.all("transfer-encoding")
    if response.status == 204:
        assert not framings, f"RFC 9110 section 8.6: {response}"
        return
    assert len(framings) == 1, f"exactly one of Content-Length and Transfer-Encoding: {response}"


class Connection:
    """A client's socket that reads one response at a time."""

    def __init__(self, port, host="127.0.0.1", timeout=10.0, source=None):
        self.sock = socket.create_connection((host, port), timeout, (source, 0) if source else None)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Close with a RST instead of a FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def send(self, data, segment=None, pause=0.0):
        """Send all of data; with segment, that many bytes a segment, pause seconds apart."""
        if segment is None:
            self.sock.sendall(data)
            return
        for at in range(0, len(data), segment):
            self.sock.sendall(data[at:at + segment])
            if pause:
                time.sleep(pause)

    def _more(self):
        data = self.sock.recv(65536)
        if not data:
            raise Closed(self.buffer)
        self.buffer += data

    def _take(self, count):
        while len(self.buffer) < count:
            self._more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def _take_through(self, mark):
        while mark not in self.buffer:
            self._more()
        taken, self.buffer = self.buffer.split(mark, 1)
        return taken

    def _chunked(self):
        body = b""
        while True:
            size = int(self._take_through(b"\r\n").split(b";")[0], 16)
            if size == 0:
                while self._take_through(b"\r\n"):
                    pass  # trailers
                return body
            body += self._take(size)
            assert self._take(2) == b"\r\n"

    def response(self, method="GET"):
        """One response, by Content-Length or chunks; nothing beyond it is used up."""
        response = Response(self._take_through(b"\r\n\r\n"))
        check_response(response)
        if method != "HEAD" and response.status >= 200 and response.status not in (204, 304):
            if response.get("transfer-encoding") == "chunked":
                response.body = self._chunked()
            else:
                response.body = self._take(int(response.get("content-length")))
        return response

    def ask(self, path="/currentThread", method="GET", **kwargs):
        self.send(request(path, method, **kwargs))
        return self.response(method)

    def rest(self):
        """All bytes up to the server's FIN; a reset raises ConnectionResetError."""
        data, self.buffer = self.buffer, b""
        while True:
            more = self.sock.recv(65536)
            if not more:
                return data
            data += more

    def assert_closed(self, within=2.0):
        """The server finishes, without another byte."""
        self.sock.settimeout(within)
        assert self.rest() == b""

    def assert_quiet(self, seconds):
        """For so long nothing comes and the connection stays open."""
        assert self.buffer == b""
        self.sock.settimeout(seconds)
        try:
            got = self.sock.recv(1)
        except (socket.timeout, BlockingIOError):
            got = None
        self.sock.settimeout(10.0)
        assert got is None, f"came: {got!r}"


def fetch(port, path="/currentThread", method="GET", timeout=10.0, **kwargs):
    """One request on a connection of its own."""
    with Connection(port, timeout=timeout) as connection:
        return connection.ask(path, method, **kwargs)
