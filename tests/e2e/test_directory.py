# SPDX-License-Identifier: Apache-2.0
"""The directory: entries by key, an index of their attributes, and what happens where many write at the same time."""
import collections
import json
import random
import urllib.parse

import pytest

import procfs
from loadtools import at_once
from server import SANITIZED
from wire import request

PLATFORM = "--spring.threads.virtual.enabled=false"
POLICIES = [pytest.param((), id="fibers"), pytest.param((PLATFORM, "--server.tomcat.threads.max=40"), id="platform")]


def put(server, key, entry, **kwargs):
    body = (entry if isinstance(entry, bytes) else json.dumps(entry).encode())
    return server.get(f"/directory/{urllib.parse.quote(key, safe='')}", method="PUT",
                      headers=[f"Content-Length: {len(body)}"], body=body, **kwargs)


def find(server, **attribute):
    response = server.get("/directory?" + urllib.parse.urlencode(attribute))
    assert response.status == 200, response
    told = json.loads(response.body)
    assert set(told) == {"count", "keys"} and told["count"] >= len(told["keys"])
    return told


@pytest.mark.parametrize("policy", POLICIES)
def test_an_entry_is_made_found_replaced_and_deleted(start, policy):
    server = start(*policy)
    assert server.get("/directory/7").status == 404
    assert put(server, "7", {"team": "blue", "city": "Oslo", "size": 3, "more": {"team": "no"}}).status == 201
    response = server.get("/directory/7")
    assert (response.status, response.get("content-type")) == (200, "application/json")
    assert json.loads(response.body) == {"team": "blue", "city": "Oslo", "size": 3, "more": {"team": "no"}}
    assert find(server, team="blue") == {"count": 1, "keys": ["7"]}
    assert find(server, team="no") == find(server, size="3") == {"count": 0, "keys": []}
    assert put(server, "7", {"team": "red"}).status == 204
    assert find(server, team="blue")["count"] == find(server, city="Oslo")["count"] == 0
    assert find(server, team="red")["keys"] == ["7"]
    assert server.get("/directory/7", method="HEAD").get("content-length") == str(len('{"team": "red"}'))
    assert server.get("/directory/7", method="DELETE").status == 204
    assert server.get("/directory/7", method="DELETE").status == 404
    assert find(server, team="red") == {"count": 0, "keys": []}


@pytest.mark.parametrize("key", ["a b", "é", 'q"uote', "a/b", "%", "k" * 128, "\u2028"])
def test_keys_and_values_of_any_characters(shared, key):
    assert put(shared, key, {"na me": key[:60]}).status in (201, 204)
    assert json.loads(shared.get("/directory/" + urllib.parse.quote(key, safe="")).body) == {"na me": key[:60]}
    assert key in find(shared, **{"na me": key[:60]})["keys"]


def test_attributes_whose_name_held_a_dot_or_bracket_were_not_indexed(shared):
    """They stand on the top level; what is nested deeper and has the same path does not."""
    assert put(shared, "dots", {"a.b": "top", "c[0]": "top", "d": {"e": "deep"}, "f": ["deep"]}).status == 201
    assert find(shared, **{"a.b": "top"})["keys"] == find(shared, **{"c[0]": "top"})["keys"] == ["dots"]
    assert find(shared, **{"d.e": "deep"})["count"] == find(shared, **{"f[0]": "deep"})["count"] == 0


def test_an_entry_as_deep_as_is_allowed_is_read_on_a_fiber_s_stack(shared):
    """32 levels; one more is a 400."""
    assert put(shared, "deep", b'{"a":' * 31 + b'{"b":"c"}' + b"}" * 31).status == 201
    assert put(shared, "deep", b'{"a":' * 32 + b'{"b":"c"}' + b"}" * 32).status == 400


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"null", b'{"a":1,}', b'{"a":"\xff"}', b"{}{}",
                                  b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", b'{"a":"\\uZZZZblue"}', b'{"a\\u00g0":"b"}',
                                  b'{"a":' + b"1" * 64 + b"}",
                                  json.dumps({f"a{i}": "x" for i in range(9)}).encode(),
                                  json.dumps({"a": "x" * 65}).encode(), json.dumps({"a" * 65: "x"}).encode()])
def test_bad_entries_are_a_400_and_change_nothing(shared, body):
    put(shared, "good", {"state": "kept"})
    response = put(shared, "good", body)
    assert response.status == 400 and json.loads(response.body)["message"], response
    assert json.loads(shared.get("/directory/good").body) == {"state": "kept"}
    assert "good" in find(shared, state="kept")["keys"]


def test_bounds_and_methods(shared):
    assert put(shared, "large", {"a": "x", "b": ["y" * 4090]}).status == 413
    in_chunks = b"1001\r\n" + b" " * 4097 + b"\r\n0\r\n\r\n"
    assert shared.get("/directory/large", method="PUT", headers=["Transfer-Encoding: chunked"], body=in_chunks).status == 413
    assert shared.get("/directory/large").status == 404
    assert shared.get("/directory/" + "k" * 129).status == 400
    assert shared.get("/directory/%ff").status == shared.get("/directory/a%01").status == shared.get("/directory/%7f").status == 400
    for query in ("", "?", "?a=1&b=2", "?=1", "?a=%zz", "?a=" + "x" * 65):
        assert shared.get("/directory" + query).status == 400, query
    for path, allowed in (("/directory/x", "GET, HEAD, PUT, DELETE, OPTIONS"), ("/directory?a=1", "GET, HEAD, OPTIONS")):
        response = shared.get(path, method="POST")
        assert (response.status, response.get("allow")) == (405, allowed)


@pytest.mark.parametrize("chunks", [b"1001\r\n", b"fff\r\n" + b" " * 4095 + b"\r\n2\r\n"])
def test_an_entry_in_chunks_was_kept_up_to_the_body_limit_of_a_megabyte(shared, chunks):
    """The size of a chunk that is too much is refused at once, before its bytes."""
    with shared.connect() as connection:
        connection.send(request("/directory/x", method="PUT", headers=["Transfer-Encoding: chunked"]) + chunks)
        assert connection.response().status == 413
        connection.assert_closed()


def test_an_entry_of_a_full_directory_could_not_be_put_again(start):
    """The room that its values have is asked for once, not twice; what is larger stays out."""
    server = start("--ringspun.directory.bytes-max=3300")
    entry = {f"{name}" * 60: f"{name}" * 64 for name in "abcdefgh"}
    assert put(server, "only", entry).status == 201
    assert put(server, "other", {"a": "x" * 60}).status == 507
    assert [put(server, "only", entry).status for _ in range(50)] == [204] * 50
    assert put(server, "only", dict(entry, pad=["x" * 2000])).status == 507
    assert put(server, "only", {"a": "x"}).status == 204
    assert find(server, a="x")["keys"] == ["only"] and find(server, **{"b" * 60: "b" * 64})["count"] == 0


def test_a_search_tells_at_most_32_kib_of_keys(start):
    """And the count of all; the oldest come first."""
    server = start()
    keys = [f"{number:03}" + '"' * 125 for number in range(300)]
    for key in keys:
        assert put(server, key, {"a": "x"}).status == 201
    assert find(server, a="x") == {"count": 300, "keys": keys[:32768 // 128]}


def test_a_full_directory_is_a_507_and_takes_a_replacement(start):
    server = start("--ringspun.directory.entries-max=10", "--ringspun.directory.bytes-max=10KB")
    for number in range(10):
        assert put(server, f"k{number}", {"a": "x"}).status == 201
    assert put(server, "k10", {"a": "x"}).status == 507
    assert put(server, "k0", {"a": "y"}).status == 204
    statuses = {put(server, f"k{number}", {"pad": ["x" * 3900]}).status for number in range(10)}
    assert statuses == {204, 507}
    assert server.get("/directory/k9", method="DELETE").status == 204
    assert put(server, "k10", {"a": "x"}).status == 201
    assert find(server, a="y")["count"] + find(server, a="x")["count"] >= 8


@pytest.mark.parametrize("policy", POLICIES)
def test_writers_of_the_same_few_values_leave_an_index_that_fits(start, policy):
    """40 clients write 60 keys with three attributes of four values each, some reset within their wait."""
    server = start(*policy)
    turns = 50 if SANITIZED else 250

    def write(seed):
        chance = random.Random(seed)
        with server.connect(timeout=30) as client:
            for _ in range(turns):
                key, kind = f"k{chance.randrange(60)}", chance.random()
                entry = {name: f"{name}{chance.randrange(4)}" for name in ("team", "city", "role")}
                if kind < 0.2:
                    assert client.ask(f"/directory/{key}", method="DELETE").status in (204, 404)
                elif kind < 0.25:
                    with server.connect() as lost:
                        body = json.dumps(entry).encode()
                        lost.send(f"PUT /directory/{key} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
                                  .encode() + body)
                        lost.reset()
                else:
                    body = json.dumps(entry).encode()
                    assert client.ask(f"/directory/{key}", method="PUT", headers=[f"Content-Length: {len(body)}"],
                                      body=body).status in (201, 204)

    at_once(*(lambda seed=seed: write(seed) for seed in range(40)))
    server.settle_fibers(0)
    entries = {}
    for number in range(60):
        response = server.get(f"/directory/k{number}")
        if response.status == 200:
            entries[f"k{number}"] = json.loads(response.body)
    for name in ("team", "city", "role"):
        for value in range(4):
            found = find(server, **{name: f"{name}{value}"})
            counted = collections.Counter(found["keys"])
            assert counted == {key: 1 for key, entry in entries.items() if entry[name] == f"{name}{value}"}
            assert found["count"] == len(counted)


@pytest.mark.figures
def test_10000_entries_that_come_and_go_leave_no_memory(start):
    """The memory after the third time is that after the first."""
    server = start("--ringspun.carriers=1")

    def come_and_go():
        with server.connect(timeout=30) as client:
            for verb, body, expected in (("PUT", json.dumps({"a": "x", "pad": ["y" * 500]}).encode(), 201),
                                         ("DELETE", b"", 204)):
                for first in range(0, 10_000, 50):
                    client.send(b"".join(f"{verb} /directory/k{number} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
                                         .encode() + body for number in range(first, first + 50)))
                    assert {client.response().status for _ in range(50)} == {expected}
        return procfs.rss_kib(server.pid)

    first = come_and_go()
    come_and_go()
    assert come_and_go() < first + 1000
