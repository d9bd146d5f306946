# SPDX-License-Identifier: Apache-2.0
"""Requests: header syntax, Connection, Expect, Upgrade."""
from case import Answer, case, get, hello, lines, refused

ANY_TOKEN = "!#$%&'*+-.^_`|~0123456789abcXYZ"
BODY = "Content-Length: 3"
EXPECT = "Expect: 100-continue"


def raw(text):
    """A request with these bytes between Host and the end of the head."""
    return b"GET /remote/0 HTTP/1.1\r\nHost: h\r\n" + text + b"\r\n"


SYNTAX = [
    case("no space after the colon", "9112 5", raw(b"Name:value\r\n"), hello()),
    case("white space around a value", "9112 5.1", raw(b"Name: \t value \t \r\n"), hello()),
    case("empty value", "9110 5.5", raw(b"Name:\r\n"), hello()),
    case("value of white space", "9110 5.5", raw(b"Name: \t \r\n"), hello()),
    case("tab within a value", "9110 5.5", raw(b"Name: a\tb\r\n"), hello()),
    case("high bytes in a value", "9110 5.5", raw(b"Name: \x80\xff\xc3\xa4\r\n"), hello()),
    case("colons in a value", "9110 5.5", raw(b"Name: a:b::c\r\n"), hello()),
    case("name of every kind of token character", "9110 5.6.2", raw(ANY_TOKEN.encode() + b": v\r\n"), hello()),
    case("field twice", "9110 5.3", raw(b"Name: a\r\nName: b\r\n"), hello()),
    case("quoted string that does not end", "9110 5.6.4", raw(b"Name: \"a\r\n"), hello()),
    case("underscores do not name our fields", "9110 5.1", raw(b"Content_Length: 5\r\nTransfer_Encoding: chunked\r\n"),
         hello()),
    case("fields of another hop", "9110 7.6.1", raw(b"Keep-Alive: timeout=5\r\nTE: trailers\r\nVia: 1.1 x\r\n"),
         hello()),
    case("fields of many kinds", "9110 5", raw(
        b"Accept: */*\r\nAccept-Encoding: gzip, br\r\nCookie: a=b; c=\"d\"\r\nRange: bytes=0-1,5-\r\n"
        b"If-Modified-Since: Mon, 30 Nov 2026 15:58:44 GMT\r\nUser-Agent: a/1 (b; c)\r\n"), hello()),
    refused("folded value", "9112 5.2", raw(b"Name: a\r\n b\r\n")),
    refused("value folded with a tab", "9112 5.2", raw(b"Name: a\r\n\tb\r\n")),
    refused("value that begins on the next line", "9112 5.2", raw(b"Name:\r\n a\r\n")),
    refused("folded Host", "9112 5.2", lines("GET /remote/0 HTTP/1.1", "Host:", " h")),
    refused("folded framing", "9112 5.2", raw(b"Transfer-Encoding:\r\n chunked\r\n")),
    refused("space before the first field", "9112 2.2", b"GET /remote/0 HTTP/1.1\r\n Host: h\r\n\r\n"),
    refused("tab before the first field", "9112 2.2", b"GET /remote/0 HTTP/1.1\r\n\tHost: h\r\n\r\n"),
    refused("line of a space", "9112 2.2", raw(b" \r\n")),
    refused("line of a space first", "9112 2.2", b"GET /remote/0 HTTP/1.1\r\n \r\nHost: h\r\n\r\n"),
    refused("space before the colon", "9112 5.1", raw(b"Name : v\r\n")),
    refused("tab before the colon", "9112 5.1", raw(b"Name\t: v\r\n")),
    refused("space before the colon of Host", "9112 5.1", lines("GET /remote/0 HTTP/1.1", "Host : h")),
    refused("space within a name", "9110 5.1", raw(b"Na me: v\r\n")),
    refused("no colon", "9112 5", raw(b"Name\r\n")),
    refused("no name", "9112 5", raw(b": v\r\n")),
    refused("colon alone", "9112 5", raw(b":\r\n")),
    refused("name in quotes", "9110 5.6.2", raw(b"\"Name\": v\r\n")),
    refused("name in brackets", "9110 5.6.2", raw(b"Na(me): v\r\n")),
    refused("name with a slash", "9110 5.6.2", raw(b"Na/me: v\r\n")),
    refused("name with an equals sign", "9110 5.6.2", raw(b"Na=me: v\r\n")),
    refused("name with a comma", "9110 5.6.2", raw(b"Na,me: v\r\n")),
    refused("name with a control character", "9110 5.6.2", raw(b"Na\x01me: v\r\n")),
    refused("name with NUL", "9110 5.6.2", raw(b"Na\0me: v\r\n")),
    refused("name with a high byte", "9110 5.6.2", raw(b"Na\xc3\xa4me: v\r\n")),
    refused("name with DEL", "9110 5.6.2", raw(b"Na\x7fme: v\r\n")),
    refused("CR within a name", "9112 2.2", raw(b"Na\rme: v\r\n")),
    refused("LF within a name", "9112 2.2", raw(b"Na\nme: v\r\n")),
    refused("NUL in a value", "9110 5.5", raw(b"Name: a\0b\r\n")),
    refused("CR in a value", "9110 5.5", raw(b"Name: a\rb\r\n")),
    refused("CR first in a value", "9110 5.5", raw(b"Name: \rb\r\n")),
    refused("CR that ends a line", "9112 2.2", raw(b"Name: a\rOther: b\r\n")),
    refused("CR CR LF", "9112 2.2", raw(b"Name: a\r\r\n")),
    refused("LF that ends a line", "9112 2.2", raw(b"Name: a\nOther: b\r\n")),
    refused("LF that ends an empty value", "9112 2.2", raw(b"Name:\nOther: b\r\n")),
    refused("LF CR", "9112 2.2", raw(b"Name: a\n\rOther: b\r\n")),
    refused("CR behind the last field", "9112 2.2", b"GET /remote/0 HTTP/1.1\r\nHost: h\r\n\r" + b"X"),
    refused("BEL in a value", "9110 5.5", raw(b"Name: a\x07b\r\n")),
    refused("vertical tab in a value", "9110 5.5", raw(b"Name: a\x0bb\r\n")),
    refused("form feed in a value", "9110 5.5", raw(b"Name: \x0ca\r\n")),
    refused("DEL in a value", "9110 5.5", raw(b"Name: a\x7f\r\n")),
    refused("HTTP/0.9 with fields", "9112 3", b"GET /remote/0\r\nHost: h\r\n\r\n"),
]

CONNECTION = [
    case("close", "9112 9.6", get("0", "Connection: close"), hello(fields=(("connection", "close"),)), stays=False),
    case("close in any case", "9110 7.6.1", get("0", "connection: CLOSE"), hello(), stays=False),
    case("close in a list", "9110 7.6.1", get("0", "Connection: foo, close"), hello(), stays=False),
    case("close in a list with empty places", "9110 5.6.1", get("0", "Connection: , ,close\t,"), hello(), stays=False),
    case("close in the second of two fields", "9110 5.3", get("0", "Connection: foo", "Connection: close"), hello(),
         stays=False),
    case("close beats keep-alive", "9112 9.3", get("0", "Connection: keep-alive, close"), hello(), stays=False),
    case("close after keep-alive of 1.0", "9112 9.3", get("0", "Connection: keep-alive, close", version="1.0"),
         hello(), stays=False),
    case("keep-alive of 1.1", "9112 9.3", get("0", "Connection: keep-alive"), hello()),
    case("keep-alive of 1.0 in any case", "9112 9.3", get("0", "Connection: Keep-ALIVE", version="1.0"), hello()),
    case("word that only begins like close", "9110 7.6.1", get("0", "Connection: closed"), hello()),
    case("empty Connection", "9110 7.6.1", get("0", "Connection:"), hello()),
    case("Proxy-Connection is not ours", "9110 7.6.1", get("0", "Proxy-Connection: close"), hello()),
    case("Connection that names framing", "9110 7.6.1",
         get("0", "Connection: Content-Length", BODY, body=b"abc"), hello()),
    case("close of a refused path", "9112 9.6", lines("GET /nope HTTP/1.1", "Host: h", "Connection: close"), 404,
         stays=False),
    case("close with a body", "9112 9.6", get("0", "Connection: close", BODY, body=b"abc"), hello(), stays=False),
    case("Upgrade is not taken", "9110 7.8", get("0", "Connection: Upgrade", "Upgrade: websocket"), hello()),
    case("Upgrade to HTTP/2", "9113 3.1",
         get("0", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"), hello()),
    case("Upgrade with a body", "9110 7.8", get("0", "Connection: Upgrade", "Upgrade: x", BODY, body=b"abc"), hello()),
]

CONTINUE = hello(interim=True)

EXPECTATIONS = [
    case("100-continue", "9110 10.1.1", get("0", EXPECT, BODY, body=b"abc"), CONTINUE),
    case("100-continue in any case", "9110 10.1.1", get("0", "expect: 100-CONTINUE", BODY, body=b"abc"), CONTINUE),
    case("100-continue and chunks", "9110 10.1.1",
         get("0", EXPECT, "Transfer-Encoding: chunked", body=b"3\r\nabc\r\n0\r\n\r\n"), CONTINUE),
    case("100-continue twice on a connection", "9110 10.1.1",
         [get("0", EXPECT, BODY, body=b"abc"), get("0.0", EXPECT, BODY, body=b"abc")],
         [CONTINUE, hello("0.0", interim=True)]),
    case("100-continue without a body", "9110 10.1.1", get("0", EXPECT), hello()),
    case("100-continue and a length of 0", "9110 10.1.1", get("0", EXPECT, "Content-Length: 0"), hello()),
    case("100-continue of 1.0", "9110 10.1.1", get("0", EXPECT, BODY, version="1.0", body=b"abc"), hello(),
         stays=False),
    case("100-continue of HEAD", "9110 10.1.1", get("0", EXPECT, BODY, method="HEAD", body=b"abc"),
         hello(head=True, interim=True)),
    case("100-continue of what is not there", "9110 10.1.1",
         lines("GET /nope HTTP/1.1", "Host: h", EXPECT, BODY), 404, stays=False),
    case("100-continue of a wrong method", "9110 10.1.1", get("0", EXPECT, BODY, method="POST"), 405, stays=False),
    case("100-continue of an unknown method", "9110 10.1.1", get("0", EXPECT, BODY, method="BREW"), 501, stays=False),
    case("100-continue of OPTIONS", "9110 10.1.1", get("0", EXPECT, BODY, method="OPTIONS"), Answer(200, body=b""),
         stays=False, early=True),
    case("100-continue of a bad number", "9110 10.1.1", get("x", EXPECT, BODY), 400, stays=False),
    refused("100-continue of too long a body", "9110 10.1.1", get("0", EXPECT, "Content-Length: 1048577"), 413),
    refused("100-continue of a bad head", "9110 10.1.1", get("0", EXPECT, BODY, "Host: h")),
    refused("other expectation", "9110 10.1.1", get("0", "Expect: the-worst"), 417),
    refused("other expectation beside it", "9110 10.1.1", get("0", "Expect: 100-continue, x", BODY), 417),
    case("other expectation of 1.0", "9110 10.1.1", get("0", "Expect: the-worst", version="1.0"), hello(),
         stays=False),
]

CASES = SYNTAX + CONNECTION + EXPECTATIONS
