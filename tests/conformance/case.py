# SPDX-License-Identifier: Apache-2.0
"""What a row of the request tables is made of."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = None  # exactly; None: not looked at
    head: bool = False  # answers HEAD: no body follows
    interim: bool = False  # a 100 comes first
    fields: tuple = ()  # (name, value); value None: the field is not there


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    rfc: str  # the section that says so, or the page of ours
    messages: tuple  # bytes; one after the other they are what is sent
    answers: tuple  # one for each message
    stays: bool  # the connection goes on; else nothing behind the last message is answered
    on: str = "remote"  # whose port: "remote" or "app"
    early: bool = False  # the last message is answered before all of it came

    @property
    def data(self):
        return b"".join(self.messages)


def case(name, rfc, messages, answers, stays=True, **others):
    """A case; one message need not stand in a list, and a status alone is an answer."""
    messages = messages if isinstance(messages, list) else [messages]
    answers = answers if isinstance(answers, list) else [answers]
    assert len(messages) == len(answers), name
    answers = [Answer(one) if isinstance(one, int) else one for one in answers]
    return Case(name, rfc, tuple(messages), tuple(answers), stays, **others)


def refused(name, rfc, message, status=400, **others):
    """One message that ends the connection."""
    return case(name, rfc, message, status, stays=False, **others)


def hello(n="0", **others):
    """The answer of /remote/{n}."""
    return Answer(200, f"Hello, delayed by {n} seconds.".encode(), **others)


def lines(*parts):
    """A head of these lines, complete."""
    return "\r\n".join(parts).encode("latin-1") + b"\r\n\r\n"


def get(n="0", *fields, method="GET", version="1.1", body=b""):
    """A request for /remote/{n}, with more fields."""
    return lines(f"{method} /remote/{n} HTTP/{version}", "Host: h", *fields) + body
