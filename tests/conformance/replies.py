# SPDX-License-Identifier: Apache-2.0
"""What a remote may answer, and what our client makes of it.

TOKEN stands for eight digits of which each call has its own, so that an answer
that gets to another call is seen.
"""
import dataclasses

TOKEN = b"@@@@@@@@"
BODY = b"body" + TOKEN
EVIL = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nevil" + TOKEN


@dataclasses.dataclass(frozen=True)
class Reply:
    name: str
    rfc: str
    data: bytes
    status: int = 200  # what our client is told
    body: bytes = None  # and its body; None: Spring's error body
    end: str = "open"  # what the remote does then: "open" nothing, "fin", "reset", "late" sends EVIL after a while
    reused: bool = False  # the connection serves the next call
    surplus: int = 0  # bytes behind the answer, which come with its last one: later ones none can tell from the next


def head(*fields, status="200 OK", version="1.1"):
    return "\r\n".join([f"HTTP/{version} {status}", *fields]).encode("latin-1") + b"\r\n\r\n"


def good(name, rfc, data, body=BODY, **others):
    return Reply(name, rfc, data, 200, body, **others)


def bad(name, rfc, data, **others):
    return Reply(name, rfc, data, 502, **others)


LENGTH = f"Content-Length: {len(BODY)}"
CODED = "Transfer-Encoding: chunked"
SIMPLE = head(LENGTH) + BODY
CHUNK = b"c\r\n" + BODY + b"\r\n"
LAST = b"0\r\n\r\n"
CONTINUE = head(status="100 Continue")

GOOD = [
    good("length", "9112 6.3", SIMPLE, reused=True),
    good("length of 0", "9112 6.3", head("Content-Length: 0"), b"", reused=True),
    good("length with zeros in front", "9110 8.6", head("Content-Length: 0012") + BODY, reused=True),
    good("length with spaces around", "9112 5.1", head("Content-Length:   12  ") + BODY, reused=True),
    good("no reason", "9112 4", head(LENGTH, status="200") + BODY, reused=True),
    good("empty reason", "9112 4", head(LENGTH, status="200 ") + BODY, reused=True),
    good("reason of several words", "9112 4", head(LENGTH, status="200 All is \t well") + BODY, reused=True),
    good("reason with high bytes", "9112 4", head(LENGTH, status="200 \xe4\xff") + BODY, reused=True),
    good("fields of many kinds", "9110 5", head(
        "Server: x/1", "Date: Mon, 30 Nov 2026 15:58:44 GMT", "Set-Cookie: a=b", "Set-Cookie: c=d", "Empty:",
        "High: \x80\xff", LENGTH) + BODY, reused=True),
    good("hundred fields", "6585 5", head(*["N: v"] * 99, LENGTH) + BODY, reused=True),
    good("Upgrade that is only offered", "9110 7.8", head("Connection: upgrade", "Upgrade: h2c", LENGTH) + BODY,
         reused=True),
    good("chunks", "9112 7.1", head(CODED) + CHUNK + LAST, reused=True),
    good("two chunks", "9112 7.1", head(CODED) + b"4\r\nbody\r\n08\r\n" + TOKEN + b"\r\n" + LAST, reused=True),
    good("no chunk but the last", "9112 7.1", head(CODED) + LAST, b"", reused=True),
    good("chunk with an extension", "9112 7.1.1", head(CODED) + b"c;a=\"b;c\"\r\n" + BODY + b"\r\n0;d\r\n\r\n",
         reused=True),
    good("trailers", "9112 7.1.2", head(CODED) + CHUNK + b"0\r\nName: v\r\nOther:\r\n\r\n", reused=True),
    good("close as a trailer", "9110 6.5.1", head(CODED) + CHUNK + b"0\r\nConnection: close\r\n\r\n"),
    good("until the end", "9112 6.3", head() + BODY, end="fin"),
    good("until the end, empty", "9112 6.3", head(), b"", end="fin"),
    good("until the end, with close", "9112 6.3", head("Connection: close") + BODY, end="fin"),
    good("until the end of 1.0", "9112 6.3", head(version="1.0") + BODY, end="fin"),
    good("close with a length, and the end", "9112 9.6", head("Connection: close", LENGTH) + BODY, end="fin"),
    good("close with a length, and no end", "9112 9.6", head("Connection: close", LENGTH) + BODY),
    good("close with chunks, and no end", "9112 9.6", head("Connection: close", CODED) + CHUNK + LAST),
    good("1.0 with a length", "9112 9.3", head(LENGTH, version="1.0") + BODY),
    good("1.0 that persists", "9112 9.3", head("Connection: keep-alive", LENGTH, version="1.0") + BODY, reused=True),
    good("length, and an end that was not announced", "9112 9.5", SIMPLE, end="fin"),
    good("100 first", "9110 15.2", CONTINUE + SIMPLE, reused=True),
    good("100 three times", "9110 15.2", CONTINUE * 3 + SIMPLE, reused=True),
    good("103 with fields", "8297 2", head("Link: </a>", "Link: </b>", status="103 Early Hints") + SIMPLE, reused=True),
    good("1xx that nobody knows", "9110 15.2", head(status="199 X") + SIMPLE, reused=True),
    good("100 with a length", "9110 8.6", head("Content-Length: 5", status="100 X") + SIMPLE, reused=True),
    good("100 with a coding", "9112 6.1", head(CODED, status="100 X") + SIMPLE, reused=True),
    good("100, then chunks", "9110 15.2", CONTINUE + head(CODED) + CHUNK + LAST, reused=True),
    good("100, then until the end", "9110 15.2", CONTINUE + head() + BODY, end="fin"),
    good("two answers at once", "9112 9.2", SIMPLE + EVIL, surplus=len(EVIL)),
    good("answer and the start of another", "9112 9.2", SIMPLE + EVIL[:20], surplus=20),
    good("answer and one byte", "9112 9.2", SIMPLE + b"x", surplus=1),
    good("answer and a line end", "9112 9.2", SIMPLE + b"\r\n", surplus=2),
    good("chunks and another answer", "9112 9.2", head(CODED) + CHUNK + LAST + EVIL, surplus=len(EVIL)),
    good("body longer than its length", "9112 6.3", SIMPLE + b"evil", surplus=4),
    good("answer, and another one later", "9112 9.2", SIMPLE, end="late"),
]

OTHER_STATUS = [
    bad("201", "9110 15.3.2", head(LENGTH, status="201 Created") + BODY, reused=True),
    bad("204", "9112 6.3", head(status="204 No Content"), reused=True),
    bad("204 with a length", "9112 6.3", head("Content-Length: 5", status="204 No Content"), reused=True),
    bad("204 with a coding", "9112 6.3", head(CODED, status="204 No Content"), reused=True),
    bad("205", "9110 15.3.6", head("Content-Length: 0", status="205 Reset"), reused=True),
    bad("206", "9110 15.3.7", head(LENGTH, status="206 Partial") + BODY, reused=True),
    bad("301", "9110 15.4.2", head("Location: /x", "Content-Length: 0", status="301 Moved"), reused=True),
    bad("304", "9112 6.3", head(status="304 Not Modified"), reused=True),
    bad("304 with a length", "9112 6.3", head("Content-Length: 5", status="304 Not Modified"), reused=True),
    bad("404", "9110 15.5.5", head(LENGTH, status="404 Not Found") + BODY, reused=True),
    bad("500 and close", "9110 15.6.1", head("Connection: close", LENGTH, status="500 Oh") + BODY),
    bad("status that nobody knows", "9110 15", head(LENGTH, status="599 X") + BODY, reused=True),
    bad("status above all classes", "9110 15", head(LENGTH, status="999 X") + BODY, reused=True),
    bad("204 and a body all the same", "9112 6.3", head(status="204 No Content") + EVIL, surplus=len(EVIL)),
    bad("304 and a body all the same", "9112 6.3", head(LENGTH, status="304 Not Modified") + BODY,
        surplus=len(BODY)),
    Reply("503", "spec 5", head("Retry-After: 1", LENGTH, status="503 No") + BODY, 503, reused=True),
]


def line(text):
    """A reply whose status line is this."""
    return text + b"\r\n" + LENGTH.encode() + b"\r\n\r\n" + BODY


def raw(text):
    """A reply with these bytes behind the status line, and then a length and a body."""
    return b"HTTP/1.1 200 OK\r\n" + text + LENGTH.encode() + b"\r\n\r\n" + BODY


NONSENSE = [
    bad("other protocol", "9112 4", b"SSH-2.0-OpenSSH_9.2\r\n"),
    bad("a request", "9112 4", b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
    bad("a page alone", "9112 4", b"<html>good</html>\r\n\r\n"),
    bad("TLS alert", "9112 4", b"\x15\x03\x01\x00\x02\x02\x46"),
    bad("every byte", "9112 4", bytes(range(256))),
    bad("empty line first", "9112 4", b"\r\n" + SIMPLE),
    bad("LF first", "9112 4", b"\n" + SIMPLE),
    bad("space first", "9112 4", b" " + SIMPLE),
    bad("byte first", "9112 4", b"x" + SIMPLE),
    bad("protocol in lower case", "9112 2.3", line(b"http/1.1 200 OK")),
    bad("other protocol that is alike", "9112 2.3", line(b"RTSP/1.0 200 OK")),
    bad("protocol without a version", "9112 2.3", line(b"HTTP 200 OK")),
    bad("shoutcast", "9112 2.3", line(b"ICY 200 OK")),
    bad("version 0.9", "9112 2.3", line(b"HTTP/0.9 200 OK")),
    bad("version 1.2", "9112 2.3", line(b"HTTP/1.2 200 OK")),
    bad("version 2.0", "9112 2.3", line(b"HTTP/2.0 200 OK")),
    bad("version of one digit", "9112 2.3", line(b"HTTP/2 200 OK")),
    bad("version of two digits", "9112 2.3", line(b"HTTP/1.10 200 OK")),
    bad("two spaces before the status", "9112 4", line(b"HTTP/1.1  200 OK")),
    bad("tab before the status", "9112 4", line(b"HTTP/1.1\t200 OK")),
    bad("no status", "9112 4", line(b"HTTP/1.1 OK")),
    bad("status of two digits", "9112 4", line(b"HTTP/1.1 20 OK")),
    bad("status of four digits", "9112 4", line(b"HTTP/1.1 2000 OK")),
    bad("status of a letter", "9112 4", line(b"HTTP/1.1 2x0 OK")),
    bad("negative status", "9112 4", line(b"HTTP/1.1 -200 OK")),
    bad("status below 100", "9110 15", line(b"HTTP/1.1 099 OK")),
    bad("status 000", "9110 15", line(b"HTTP/1.1 000 OK")),
    bad("switched protocols", "9110 15.2.2", head("Connection: upgrade", "Upgrade: x", status="101 X") + SIMPLE),
    bad("LF ends the status line", "9112 2.2", b"HTTP/1.1 200 OK\n" + LENGTH.encode() + b"\r\n\r\n" + BODY),
    bad("CR ends the status line", "9112 2.2", b"HTTP/1.1 200 OK\r" + LENGTH.encode() + b"\r\n\r\n" + BODY),
    bad("CR CR ends the status line", "9112 2.2", b"HTTP/1.1 200 OK\r\r" + LENGTH.encode() + b"\r\n\r\n" + BODY),
    bad("NUL in the reason", "9112 4", line(b"HTTP/1.1 200 O\0K")),
    bad("LF ends every line", "9112 2.2", SIMPLE.replace(b"\r\n", b"\n")),
    bad("folded value", "9112 5.2", raw(b"Name: a\r\n b\r\n")),
    bad("folded length", "9112 5.2", b"HTTP/1.1 200 OK\r\nContent-Length:\r\n 12\r\n\r\n" + BODY),
    bad("space before the colon", "9112 5.1", raw(b"Name : v\r\n")),
    bad("space before the first field", "9112 2.2", raw(b" Name: v\r\n")),
    bad("no colon", "9112 5", raw(b"Name\r\n")),
    bad("no name", "9112 5", raw(b": v\r\n")),
    bad("name with a high byte", "9110 5.6.2", raw(b"N\xe4: v\r\n")),
    bad("NUL in a value", "9110 5.5", raw(b"Name: a\0b\r\n")),
    bad("CR in a value", "9110 5.5", raw(b"Name: a\rb\r\n")),
    bad("LF in a value", "9112 2.2", raw(b"Name: a\nb: c\r\n")),
    bad("empty length", "9110 8.6", head("Content-Length:") + BODY),
    bad("negative length", "9110 8.6", head("Content-Length: -1") + BODY),
    bad("signed length", "9110 8.6", head("Content-Length: +12") + BODY),
    bad("hexadecimal length", "9110 8.6", head("Content-Length: 0xc") + BODY),
    bad("length of letters", "9110 8.6", head("Content-Length: twelve") + BODY),
    bad("length with a space within", "9110 8.6", head("Content-Length: 1 2") + BODY),
    bad("length that overflows", "9112 6.3", head("Content-Length: 18446744073709551628") + BODY),
    bad("length of 64 bits", "9112 6.3", head("Content-Length: 18446744073709551615") + BODY),
    bad("two lengths", "9112 6.3", head(LENGTH, "Content-Length: 13") + BODY),
    bad("two equal lengths", "nginx: as in a request", head(LENGTH, LENGTH) + BODY),
    bad("list of lengths", "9112 6.3", head("Content-Length: 12, 12") + BODY),
    bad("length and chunked", "9112 6.3", head(LENGTH, CODED) + CHUNK + LAST),
    bad("chunked and length", "9112 6.3", head(CODED, LENGTH) + CHUNK + LAST),
    bad("gzip", "9112 6.1", head("Transfer-Encoding: gzip") + BODY),
    bad("gzip, chunked", "9112 6.1", head("Transfer-Encoding: gzip, chunked") + CHUNK + LAST),
    bad("chunked, gzip", "9112 6.1", head("Transfer-Encoding: chunked, gzip") + CHUNK + LAST),
    bad("chunked twice", "9112 7.1", head(CODED, CODED) + CHUNK + LAST),
    bad("identity", "9112 6.1", head("Transfer-Encoding: identity") + BODY),
    bad("chunked of 1.0", "9112 6.1", head(CODED, version="1.0") + CHUNK + LAST),
    bad("no chunk size", "9112 7.1", head(CODED) + b"\r\n" + BODY),
    bad("chunk size of letters", "9112 7.1", head(CODED) + b"xyz\r\n" + BODY),
    bad("negative chunk size", "9112 7.1", head(CODED) + b"-c\r\n" + BODY),
    bad("chunk size with 0x", "9112 7.1", head(CODED) + b"0xc\r\n" + BODY + b"\r\n" + LAST),
    bad("chunk size that overflows", "9112 7.1", head(CODED) + b"1000000000000000c\r\n" + BODY + b"\r\n" + LAST),
    bad("chunk size of 64 bits", "9112 7.1", head(CODED) + b"ffffffffffffffff\r\n" + BODY),
    bad("chunk longer than its size", "9112 7.1", head(CODED) + b"4\r\n" + BODY + b"\r\n" + LAST),
    bad("LF after a chunk size", "9112 7.1", head(CODED) + b"c\n" + BODY + b"\r\n" + LAST),
    bad("LF after a chunk", "9112 7.1", head(CODED) + b"c\r\n" + BODY + b"\n" + LAST),
    bad("LF in an extension", "9112 7.1.1", head(CODED) + b"c;a\n" + BODY + b"\r\n" + LAST),
    bad("length as a trailer", "9110 6.5.1", head(CODED) + CHUNK + b"0\r\nContent-Length: 12\r\n\r\n"),
    bad("coding as a trailer", "9110 6.5.1", head(CODED) + CHUNK + b"0\r\nTransfer-Encoding: x\r\n\r\n"),
    bad("folded trailer", "9112 5.2", head(CODED) + CHUNK + b"0\r\nName: a\r\n b\r\n\r\n"),
    bad("good 100, then nonsense", "9110 15.2", CONTINUE + b"x" + SIMPLE),
    bad("100 for ever", "9110 15.2", CONTINUE * 17 + SIMPLE),
    bad("101 fields", "6585 5", head(*["N: v"] * 100, LENGTH) + BODY),
    bad("head of 20 KB", "6585 5", head("Name: " + "v" * 20_000, LENGTH) + BODY),
    bad("head without end", "6585 5", b"HTTP/1.1 200 OK\r\n" + b"Name: value\r\n" * 2000),
    bad("status line without end", "6585 5", b"HTTP/1.1 200 " + b"x" * 20_000),
    bad("length over a megabyte", "spec 5", head("Content-Length: 1048577") + BODY),
    bad("length far over it", "spec 5", head("Content-Length: 99999999999999") + BODY),
    bad("chunk over a megabyte", "spec 5", head(CODED) + b"100001\r\n"),
    bad("body over a megabyte until the end", "spec 5", head() + bytes(1048577)),
    bad("extensions over the head's limit", "9112 7.1.1", head(CODED) + b"1;" + b"a" * 17_000 + b"\r\n"),
]

TORSOS = [
    bad("nothing", "9112 8", b"", end="fin"),
    bad("nothing but a reset", "9112 8", b"", end="reset"),
    bad("half a status line", "9112 8", b"HTTP/1.1 20", end="fin"),
    bad("status line alone", "9112 8", b"HTTP/1.1 200 OK\r\n", end="fin"),
    bad("head without its last line end", "9112 8", head(LENGTH)[:-1], end="fin"),
    bad("head alone", "9112 8", head(LENGTH), end="fin"),
    bad("half a body", "9112 8", SIMPLE[:-1], end="fin"),
    bad("half a body and a reset", "9112 8", SIMPLE[:-1], end="reset"),
    bad("half a body until the end and a reset", "9112 8", head() + BODY, end="reset"),
    bad("half a chunk size", "9112 8", head(CODED) + b"c", end="fin"),
    bad("half a chunk", "9112 8", head(CODED) + CHUNK[:-4], end="fin"),
    bad("no last chunk", "9112 8", head(CODED) + CHUNK, end="fin"),
    bad("last chunk without its line end", "9112 8", head(CODED) + CHUNK + b"0\r\n", end="fin"),
    bad("half a trailer", "9112 8", head(CODED) + CHUNK + b"0\r\nName: v", end="fin"),
    bad("100 alone", "9112 8", CONTINUE, end="fin"),
    bad("100 and half a head", "9112 8", CONTINUE + head(LENGTH)[:20], end="fin"),
]

REPLIES = GOOD + OTHER_STATUS + NONSENSE + TORSOS
