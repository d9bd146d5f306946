# SPDX-License-Identifier: Apache-2.0
"""Write the seeds of the fuzz targets, corpus/TARGET/*, out of the conformance tables and a few lines below."""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "conformance"))

import fields  # noqa: E402
import framing  # noqa: E402
import line  # noqa: E402
import replies  # noqa: E402
import streams  # noqa: E402

SETUP = b"\0\1\0\7"  # default limits, the peer finishes, a seed
REQUESTS = line.CASES + fields.CASES + framing.CASES + streams.CASES
EVERY = 8  # of the table's rows
LONG = 300

CONFIG = [
    (0, b'{"server": {"port": 8080, "tomcat": {"threads": {"max": 10}}}}'),
    (0, b'\xef\xbb\xbf{"spring.threads.virtual.enabled": false, "logging": {"level": {"root": "DEBUG"}}}'),
    (0, b'{"a": [1, {"b": "\\u00e4\\n"}], "server.max-http-request-header-size": "16KB"}'),
    (0, b'[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]'),
    (1, b'{"remote": {"url": "http://[::1]:80/x", "pool": {"max": 2}}}'),
    (1, b'{"server.port": 1e3}'),
    (2, b"--server.port=0\0--ringspun.stack-size=128KB\0--spring.profiles.active=spring\0"),
    (2, b"--help\0"),
    (2, b"--server.tomcat.connection-timeout=250ms\0--serverport=-1\0"),
    (2, b"doctor\0--\0-x\0--remote.url=ftp://x\0"),
    (3, b"SPRING_THREADS_VIRTUAL_ENABLED=false\0SERVER_TOMCAT_THREADS_MAX=10\0"),
    (3, b"REMOTE_URL=http://a_b:1/\0RINGSPUN_CARRIERS=9999999999\0"),
]
ROUTE = [
    (0, 0, b"/currentThread"), (0, 0, b"/blocking/0.25"), (1, 0, b"/v2/a/x/b"), (2, 0, b"/blocking/1"),
    (5, 0, b"*"), (4, 0, b"/actuator/health"), (0, 0, b"/blocking/%32%2f"), (0, 0, b"/%zz"), (9, 0, b"/"),
    (0, 1, b"2"), (0, 1, b"0.25"), (0, 1, b"250ms"), (0, 1, b"24h"), (0, 1, b"1.999999999999999999m"), (0, 1, b"1e3"),
    (0, 2, b"http://h:80/x"), (0, 2, b"http://[::1]:65535"), (0, 2, b"HTTP://a.b/%20/"), (0, 2, b"http://u@h"),
]


def write(target, seeds):
    directory = HERE / "corpus" / target
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.iterdir():
        if not old.name.startswith("found-"):  # by the fuzzer, and kept
            old.unlink()
    for number, (name, data) in enumerate(seeds):
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        (directory / f"{number:02}-{slug}").write_bytes(data)


def table(rows):
    return [(row.name, SETUP + row.data) for row in rows if len(row.data) <= LONG][::EVERY]


write("request", table(REQUESTS))
write("reply", table(replies.REPLIES))
write("config", [(("file", "variable", "arguments", "environment")[kind], bytes([kind]) + data) for kind, data in CONFIG])
write("route", [(("path", "delay", "url")[what], bytes([method, what]) + data) for method, what, data in ROUTE])
