# SPDX-License-Identifier: Apache-2.0
"""Has the process at the other end of a loopback connection read what was sent to it?

The kernel is asked (sock_diag(7)) for the other end's socket: how many bytes came
in, and how many of them nobody has taken out. So a test that cuts a message in two
knows that the cut was seen, without waiting for a while and hoping.
"""
import socket
import struct
import time

SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
REQUEST = 1  # NLM_F_REQUEST
INFO = 2  # INET_DIAG_INFO: struct tcp_info
LISTEN = 10  # TCP_LISTEN: what is found in the place of a socket that is gone
HEADER = struct.Struct("=IHHII")
RECEIVED_AT = 128  # tcpi_bytes_received in struct tcp_info


class Asker:
    def __init__(self):
        self.netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG)

    def unread(self, here, there, sent):
        """Bytes of the sent ones that the owner of there has not read; 0 when it has closed."""
        ends = struct.pack(">HH4s12x4s12x", there[1], here[1], socket.inet_aton(there[0]),
                           socket.inet_aton(here[0]))
        question = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 1 << (INFO - 1), 0xffffffff) \
            + ends + struct.pack("=III", 0, 0xffffffff, 0xffffffff)
        self.netlink.send(HEADER.pack(HEADER.size + len(question), BY_FAMILY, REQUEST, 0, 0) + question)
        answer = self.netlink.recv(8192)
        if HEADER.unpack_from(answer)[1] != BY_FAMILY or answer[HEADER.size + 1] == LISTEN:
            return 0  # there is no such socket any more
        queued = struct.unpack_from("=I", answer, HEADER.size + 56)[0]
        at = HEADER.size + 72
        while at < len(answer):
            length, kind = struct.unpack_from("=HH", answer, at)
            if kind == INFO:
                received = struct.unpack_from("=Q", answer, at + 4 + RECEIVED_AT)[0]
                return sent - received + queued
            at += (length + 3) & ~3
        return 0  # it is closed and only its TIME_WAIT is left


def await_read(asker, ends, within=5.0):
    """ends: of each connection (own address, the peer's, bytes sent); until all of it has been read."""
    deadline = time.monotonic() + within
    waiting = ends
    while waiting:
        waiting = [end for end in waiting if asker.unread(*end) > 0]
        if waiting:
            time.sleep(0.0001)  # lets other threads run
        assert not waiting or time.monotonic() < deadline, f"not read: {waiting[:5]}"
