# SPDX-License-Identifier: Apache-2.0
"""Requests: at the limits, and one byte beyond each."""
from case import case, get, hello, lines, refused

HEAD_MAX = 8192
TARGET_MAX = 8000
FIELDS_MAX = 100
BODY_MAX = 1024 * 1024
CODED = "Transfer-Encoding: chunked"


def padded(size):
    """A request whose head has exactly so many bytes."""
    room = size - len(get("0", "Name: "))
    return get("0", "Name: " + "v" * room)


def target(length):
    """With a target of so many bytes; its path is one of ours."""
    path = "/remote/0?"
    return lines(f"GET {path}{'q' * (length - len(path))} HTTP/1.1", "Host: h")


def many(count, *fields, body=b""):
    """With so many fields in all."""
    return get("0", *fields, *["N: v"] * (count - 1 - len(fields)), body=body)


CASES = [
    case("target at the limit", "9110 15.5.15", target(TARGET_MAX), hello()),
    refused("target over the limit", "9110 15.5.15", target(TARGET_MAX + 1), 414),
    refused("target far over the limit", "9110 15.5.15", target(100_000), 414),
    refused("target over the limit, of HEAD and no end", "9110 15.5.15", b"PUT /" + b"a" * 20_000, 414),
    case("head at the limit", "6585 5", padded(HEAD_MAX), hello()),
    case("two heads at the limit", "6585 5", [padded(HEAD_MAX), padded(HEAD_MAX)], [hello(), hello()]),
    refused("head over the limit", "6585 5", padded(HEAD_MAX + 1), 431),
    refused("head far over the limit", "6585 5", padded(200_000), 431),
    refused("name over the limit", "6585 5", get("0", "N" * HEAD_MAX + ": v"), 431),
    case("fields at the limit", "6585 5", many(FIELDS_MAX), hello()),
    refused("fields over the limit", "6585 5", many(FIELDS_MAX + 1), 431),
    case("empty lines do not count", "9112 2.2", b"\r\n\r\n" + padded(HEAD_MAX), hello()),
    case("body at the limit", "9110 15.5.14", get("0", f"Content-Length: {BODY_MAX}", body=bytes(BODY_MAX)), hello()),
    case("chunk at the limit", "9110 15.5.14",
         get("0", CODED, body=b"%x\r\n" % BODY_MAX + bytes(BODY_MAX) + b"\r\n0\r\n\r\n"), hello()),
    case("two bodies at the limit", "9110 15.5.14",
         [get("0", f"Content-Length: {BODY_MAX}", body=bytes(BODY_MAX))] * 2, [hello(), hello()]),
    refused("body over the limit, all of it sent", "9110 15.5.14",
            get("0", f"Content-Length: {BODY_MAX + 1}", body=bytes(BODY_MAX + 1)), 413),
    refused("chunks over the limit, all of them sent", "9110 15.5.14",
            get("0", CODED, body=(b"8000\r\n" + bytes(0x8000) + b"\r\n") * 33 + b"0\r\n\r\n"), 413),
    case("thousand chunks of a byte", "9112 7.1", get("0", CODED, body=b"1\r\na\r\n" * 1000 + b"0\r\n\r\n"), hello()),
    case("thousand chunks with a short extension", "9112 7.1.1",
         get("0", CODED, body=b"1;a=b\r\na\r\n" * 1000 + b"0\r\n\r\n"), hello()),
    refused("extension over the limit", "9112 7.1.1",
            get("0", CODED, body=b"1;" + b"a" * (HEAD_MAX + 100) + b"\r\na\r\n0\r\n\r\n"), 431),
    refused("extensions over the limit together", "9112 7.1.1",
            get("0", CODED, body=(b"1;" + b"a" * 1000 + b"\r\na\r\n") * 10 + b"0\r\n\r\n"), 431),
    refused("zeros of a chunk size over the limit", "9112 7.1",
            get("0", CODED, body=b"0" * (HEAD_MAX + 100) + b"1\r\na\r\n0\r\n\r\n"), 431),
    case("trailers at the limit", "9110 6.5", many(2, CODED, body=b"0\r\n" + b"N: v\r\n" * 98 + b"\r\n"), hello()),
    refused("trailers over the limit", "9110 6.5", many(2, CODED, body=b"0\r\n" + b"N: v\r\n" * 99 + b"\r\n"), 431),
    refused("trailer over the limit", "9110 6.5",
            get("0", CODED, body=b"0\r\nName: " + b"v" * (HEAD_MAX + 100) + b"\r\n\r\n"), 431),
    case("four thousand requests", "9112 9.3.2", [get()] * 4000, [hello()] * 4000),
]
