# SPDX-License-Identifier: Apache-2.0
"""The table of replies against the server's own client, /blocking: whole, cut at every byte, and byte by byte."""
import re
import threading
import time

import pytest

import sockdiag
import wire
from case import Answer
from fakeremote import FakeRemote
from play import Play, play
from replies import EVIL, NONSENSE, REPLIES, TOKEN

# The delay that is asked for names a row of the table and where its reply is cut; it is less than a nanosecond.
CALL = re.compile(rb"GET /remote/0\.0{9}(\d{4})(\d{4}) ")
WHOLE, BYTES = 9998, 9999
ASIDE = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer"  # to whatever else is asked
SHORT = 400
LATE = 0.1


class Remote(FakeRemote):
    """Answers by the table, each piece only when the one before has been read; notes what went wrong."""

    def __init__(self):
        super().__init__(self.reply)
        self.local = threading.local()
        self.kept = []  # refused replies after which the caller did not hang up

    def send(self, call, data):
        """One piece, and wait until it has been read."""
        local = self.local
        if not hasattr(local, "asker"):  # a thread serves one connection
            local.asker, local.sent = sockdiag.Asker(), 0
        call.answer(data)
        local.sent += len(data)
        sockdiag.await_read(local.asker, [(call.sock.getsockname(), call.sock.getpeername(), local.sent)])

    def reply(self, call):
        match = CALL.match(call.head)
        if match is None:
            self.send(call, ASIDE)
            return
        row, cut = REPLIES[int(match.group(1))], int(match.group(2))
        data = row.data.replace(TOKEN, match.group(1) + match.group(2))
        if cut == BYTES:
            last = last_of(row)
            for at in range(last):
                self.send(call, data[at:at + 1])
            self.send(call, data[last:])
        else:
            cut = 0 if cut == WHOLE else cut
            self.send(call, data[:cut])
            self.send(call, data[cut:])
        if row.end == "fin":
            call.close()
        elif row.end == "reset":
            call.reset()
        elif row.end == "late":
            time.sleep(LATE / 2)
            call.answer(EVIL)
        elif not row.reused and call.await_end(5) not in ("reset", "closed"):
            self.kept.append(row.name)


def last_of(row):
    """Where the last byte of the answer stands; what is behind it comes with it."""
    return max(0, len(row.data) - row.surplus - 1)


def short():
    """What is cut at every byte; what comes later than an answer might meet the next call, whoever made it."""
    return [row for row in REPLIES if len(row.data) <= SHORT and row.end != "late"]


@pytest.fixture(scope="module")
def remote():
    with Remote() as one:
        yield one
    assert not one.kept


@pytest.fixture(scope="module")
def caller(started, remote):
    """Calls the table's remote, with few connections, so that each is used by many calls."""
    return started("--remote.port=-1", f"--remote.url={remote.url}", "--remote.pool.max=32")


def path(row, cut):
    return f"/blocking/0.{'0' * 9}{REPLIES.index(row):04}{cut:04}"


def answer(row, cut):
    body = row.body
    if body is not None:
        body = body.replace(TOKEN, path(row, cut)[-8:].encode())
    return Answer(row.status, body)


def plays(caller, row, cut):
    return Play(f"{row.name}, cut at {cut}", caller.port, [wire.request(path(row, cut))], [answer(row, cut)])


def test_the_table_is_large_enough_and_its_names_are_unique():
    """As many as belong to it."""
    assert len(REPLIES) >= 150
    assert len({row.name for row in REPLIES}) == len(REPLIES)


@pytest.fixture(scope="module")
def lone(started):
    """A remote and a caller that has one connection to it at a time."""
    with Remote() as one:
        yield started("--remote.port=-1", f"--remote.url={one.url}", "--remote.pool.max=1"), one
    assert not one.kept


@pytest.mark.parametrize("row", REPLIES, ids=lambda row: row.name)
def test_reply(lone, row):
    """In one piece: what our client gets at once, the next call's answer is its own, on the connection only if it may."""
    caller, remote = lone
    before = len(remote.calls)
    with caller.connect(timeout=4) as client:
        began = time.monotonic()
        got = client.ask(path(row, WHOLE))
        due = answer(row, WHOLE)
        assert got.status == due.status, got
        assert due.body is None or got.body == due.body
        assert time.monotonic() - began < 2
        if row.end == "late":
            time.sleep(LATE)
        assert client.ask("/blocking/0").body == b"answer"
    first, *more = remote.calls[before:]
    assert len(more) == 1 or row.data == b"" and row.end != "open", "the call was made twice"
    assert (more[-1].connection == first.connection) == row.reused


def test_reply_byte_by_byte(caller):
    """Each byte alone."""
    play([plays(caller, row, BYTES) for row in short()])


def test_reply_cut_at_every_byte(caller):
    """In two pieces, cut at each place; of nonsense, byte by byte says as much."""
    play([plays(caller, row, at) for row in short() if row not in NONSENSE for at in range(1, last_of(row) + 1)])


@pytest.mark.slow
def test_reply_that_stops_is_a_504(started):
    """A torso and then nothing, the connection being open: five seconds, and the connection is given up."""
    torsos = [b"", b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", b"HTTP/1.1 100 Continue\r\n\r\n",
              b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", b"HTTP/1.1 200 OK\r\n\r\nhell"]
    ends = []

    def reply(call):
        call.answer(torsos[call.connection])
        ends.append(call.await_end(9))

    with FakeRemote(reply) as remote:
        caller = started("--remote.port=-1", f"--remote.url={remote.url}")
        began = time.monotonic()
        play([Play("torso", caller.port, [wire.request("/blocking/0")], [Answer(504)]) for _ in torsos])
        assert 5 <= time.monotonic() - began < 7
        time.sleep(0.1)
    assert ends == ["reset"] * len(torsos)
