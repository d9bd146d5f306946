# SPDX-License-Identifier: Apache-2.0
"""The tables of requests against the server: whole, cut at every byte, with pauses, and cut off at every byte."""
import signal
import socket
import time

import pytest

import fields
import framing
import limits
import line
import sockdiag
import streams
from case import Answer
from play import Play, play

CASES = line.CASES + fields.CASES + framing.CASES + streams.CASES + limits.CASES
PAUSE = 0.015  # longer than the server's own look for a FIN that was lost, which it has after 10 ms
SHORT = 600  # bytes: what is longer is not cut at every byte


def port_of(server, case):
    return server.remote_port if case.on == "remote" else server.port


def plays(server, case, pieces, where):
    route = "/remote" if case.on == "remote" else "/blocking"
    return Play(f"{case.name}, {where}", port_of(server, case), pieces, case.answers, case.stays, route)


def cut(data, *places):
    edges = [0, *places, len(data)]
    return [data[edges[i]:edges[i + 1]] for i in range(len(edges) - 1)]


def short(valid=None):
    """The cases that are not long; with valid, those whose every message is answered as it should be."""
    return [one for one in CASES if len(one.data) <= SHORT and (not valid or is_valid(one))]


def is_valid(case):
    return case.stays or all(answer.status < 400 for answer in case.answers)


def test_the_table_is_large_enough_and_its_names_are_unique():
    """230 cases are what was asked for."""
    assert len(CASES) >= 230
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.rfc for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_request(server, case):
    """In one piece: the answers, and then the connection goes on or ends; what follows a refusal is not answered."""
    play([plays(server, case, [case.data], "whole")])


def test_every_byte_alone(server):
    """Each case byte by byte, and the server has read one before the next goes out."""
    play([plays(server, case, [bytes([byte]) for byte in case.data], "byte by byte") for case in short()])


@pytest.mark.parametrize("pause, every", [(0.0, 1), (PAUSE, 3)], ids=["at once", "with pauses"])
def test_cut_at_every_byte(server, pause, every):
    """Each valid case in two pieces, cut at each place, and with a pause at each third."""
    play([plays(server, case, cut(case.data, at), f"cut at {at}")
          for number, case in enumerate(short(valid=True))
          for at in range(1 + number % every, len(case.data), every)], pause)


def test_three_pieces(server):
    """A line end cut in the middle of CRLF, and right before and after it, in all pairs of neighbours."""
    every = []
    for case in short(valid=True):
        ends = [at for at in range(2, len(case.data) - 1) if case.data[at - 1:at + 1] == b"\r\n"]
        every += [plays(server, case, cut(case.data, at - 1, at), f"cut at {at - 1}, {at}") for at in ends]
        every += [plays(server, case, cut(case.data, at, at + 1), f"cut at {at}, {at + 1}") for at in ends]
    play(every)


def answers_until(case, length):
    """What must be answered when the client finishes after so many bytes, and whether a torso was refused at last."""
    answers = []
    for message, answer in zip(case.messages, case.answers):
        if length < len(message):
            rest = message[:length]
            if rest.strip(b"\r\n"):
                interim = answer.interim and b"\r\n\r\n" in rest
                answers.append(Answer(400, head=rest.lstrip(b"\r\n").startswith(b"HEAD "), interim=interim))
            return answers, bool(rest.strip(b"\r\n"))
        answers.append(answer)
        length -= len(message)
    return answers, False


def half_closed(server, case, pieces):
    data = b"".join(pieces)
    answers, torso = answers_until(case, len(data))
    closes = torso or len(data) == len(case.data) and not case.stays
    return Play(f"{case.name}, finished at {len(data)}", port_of(server, case), pieces, answers, stays=not closes)


@pytest.mark.parametrize("apart", [False, True], ids=["with the last bytes", "after them"])
def test_half_close_at_every_byte(server, apart):
    """The client finishes within or behind each message: what is complete is answered, a torso is a 400, all ends."""
    every = []
    for case in short(valid=True):
        if case.early:
            continue
        for at in range(len(case.data) + 1):
            every.append(half_closed(server, case, [case.data[:at], b""] if apart else [case.data[:at]]))
    play(every)


def test_that_the_server_reads_the_pieces_apart_is_seen(server):
    """The proof of the cuts: bytes that a stopped server has not read are counted, and read ones are not."""
    asker = sockdiag.Asker()
    with socket.create_connection(("127.0.0.1", server.remote_port)) as sock:
        ends = sock.getsockname(), sock.getpeername()
        sock.sendall(b"GET ")
        sockdiag.await_read(asker, [(*ends, 4)])
        server.signal(signal.SIGSTOP)
        try:
            time.sleep(0.05)
            sock.sendall(b"/rem")
            time.sleep(0.05)
            assert asker.unread(*ends, 8) == 4
        finally:
            server.signal(signal.SIGCONT)
        sockdiag.await_read(asker, [(*ends, 8)])
