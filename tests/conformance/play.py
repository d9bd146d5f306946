# SPDX-License-Identifier: Apache-2.0
"""Play many connections at once from one thread, each cut into pieces that the server reads one by one."""
import itertools
import json
import select
import socket
import struct
import time

import sockdiag
import wire

AT_ONCE = 400
SOURCES = itertools.cycle(range(2, 100))  # whose ports rest in TIME_WAIT while others are used
PROBED = b"Hello, delayed by 0.00000000 seconds."


class Transcript(wire.Connection):
    """Responses out of bytes that have been received."""

    def __init__(self, data):  # pylint: disable=super-init-not-called
        self.buffer = data

    def _more(self):
        raise wire.Closed(self.buffer)


class Play:
    """One connection: pieces go out one after the other, and then answers must have come.

    route  a delay that is asked of this one follows at the end: stays, and it is answered; else it must not be.
           None: the client finishes sending right behind the last piece
    """

    def __init__(self, name, port, pieces, answers, stays=True, route=None):
        self.name, self.port, self.pieces, self.answers = name, port, list(pieces), list(answers)
        self.stays, self.fin = stays, route is None
        if route is not None:
            self.pieces[-1] += wire.request(f"{route}/{'0.00000000' if stays else '0.666'}")
        self.received = b""
        self.sent = 0
        self.ended = None  # "fin", "reset"
        self.finished = False

    def open(self, source):
        self.sock = socket.create_connection(("127.0.0.1", self.port), 10, (source, 0))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ends = self.sock.getsockname(), self.sock.getpeername()

    def send(self, piece):
        try:
            self.sock.sendall(piece)
            self.sent += len(piece)
        except (BrokenPipeError, ConnectionResetError):
            self.ended = "reset"

    def finish(self):
        if not self.finished:
            self.finished = True
            try:
                self.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    def close(self):
        """With a reset, so that a server that has not finished leaves no TIME_WAIT."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def receive(self):
        """Some bytes; the probe's answer makes the client finish."""
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            self.ended = "reset"
            return
        if not data:
            self.ended = "fin"
        self.received += data
        if self.stays and not self.fin and not self.finished and self.received.endswith(PROBED):
            self.finish()

    def wrong(self):
        """What is wrong with what came, or None."""
        try:
            self._check()
        except wire.Closed as closed:
            return f"an answer is missing or incomplete: {closed}; all that came: {self.received!r}"
        except AssertionError as error:
            return f"{error}; all that came: {self.received!r}"
        return None

    def _check(self):
        assert self.ended != "reset", "the connection was reset"
        transcript = Transcript(self.received)
        response = None
        for answer in self.answers:
            if answer.interim:
                interim = transcript.response()
                assert interim.status == 100, f"no 100 but {interim}"
            response = transcript.response("HEAD" if answer.head else "GET")
            check_answer(response, answer)
        if response is not None and not self.stays:
            assert response.closes or response.status == 200 and not response.get("connection"), response
        if self.stays and not self.fin:
            assert response is None or not response.closes, response
            assert transcript.response().body == PROBED, "the probe got another answer"
        assert transcript.buffer == b"", f"more came: {transcript.buffer!r}"
        assert self.ended == "fin", "the connection did not end"


def check_answer(response, answer):
    assert response.status == answer.status, f"{answer.status} was due, not {response}"
    if answer.body is not None:
        assert response.body == (b"" if answer.head else answer.body), response
    for name, value in answer.fields:
        assert response.get(name) == value, f"{name} is not {value!r}: {response}"
    if response.status >= 400 and not answer.head:
        assert json.loads(response.body)["status"] == response.status, response


class Ears:
    """Receives what comes on any of the connections."""

    def __init__(self, plays):
        self.poll = select.poll()
        self.open = {one.sock.fileno(): one for one in plays}
        for fd in self.open:
            self.poll.register(fd, select.POLLIN)

    def hear(self, milliseconds):
        for fd, _ in self.poll.poll(milliseconds):
            self.open[fd].receive()
            if self.open[fd].ended is not None:
                self.poll.unregister(fd)
                del self.open[fd]


def play_batch(plays, asker, pause):
    source = f"127.0.0.{next(SOURCES)}"
    for one in plays:
        one.open(source)
    ears = Ears(plays)
    for step in range(max(len(one.pieces) for one in plays)):
        live = [one for one in plays if step < len(one.pieces) and one.ended is None]
        for one in live:
            one.send(one.pieces[step])
        going_on = [(*one.ends, one.sent) for one in live if step + 1 < len(one.pieces)]
        sockdiag.await_read(asker, going_on)
        if going_on and pause:
            time.sleep(pause)
        ears.hear(0)
    for one in plays:
        if one.fin:
            one.finish()
    deadline = time.monotonic() + 10
    while ears.open and time.monotonic() < deadline:
        ears.hear(100)
    for one in plays:
        one.close()


def play(plays, pause=0.0):
    """All of them; fails with what was wrong with some."""
    asker = sockdiag.Asker()
    assert plays
    for at in range(0, len(plays), AT_ONCE):
        play_batch(plays[at:at + AT_ONCE], asker, pause)
    wrong = [(one, one.wrong()) for one in plays]
    wrong = [f"{one.name}: {text}" for one, text in wrong if text is not None]
    assert not wrong, f"{len(wrong)} of {len(plays)} connections:\n" + "\n".join(wrong[:12])
