# SPDX-License-Identifier: Apache-2.0
"""Many connections of one client process, cheap enough not to be the bottleneck.

All are connected first; then each sends its request, and one epoll loop notes
when each answer came. A time counts from just before the send.
"""
import select
import socket
import time


def source_address(index):
    """Spread clients over 127.0.1.x: each address has ephemeral ports of its own."""
    return f"127.0.1.{1 + index % 200}"


class Burst:
    def __init__(self, ports, spread=False, receive_buffer=None):
        """One connection to each of the ports (a port may come many times); receive_buffer keeps its window small."""
        self.socks = []
        for index, port in enumerate(ports):
            sock = socket.socket()
            sock.settimeout(10)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if receive_buffer:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            if spread:
                sock.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
                sock.bind((source_address(index), 0))
            sock.connect(("127.0.0.1", port))
            self.socks.append(sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for sock in self.socks:
            sock.close()

    def ask(self, request_bytes, timeout=20.0):
        """Send on all; the (seconds, first bytes of the answer) of each. An answer is one that fits one recv."""
        poll = select.epoll()
        sent, came, answers = {}, {}, {}
        for sock in self.socks:
            poll.register(sock, select.EPOLLIN)
        by_fd = {sock.fileno(): sock for sock in self.socks}
        for fd, sock in by_fd.items():
            sent[fd] = time.monotonic()
            sock.send(request_bytes)
        deadline = time.monotonic() + timeout
        while len(came) < len(by_fd) and time.monotonic() < deadline:
            ready = poll.poll(0.5, 256)
            now = time.monotonic()
            for fd, _ in ready:
                came[fd] = now
                try:
                    answers[fd] = by_fd[fd].recv(65536)
                except ConnectionResetError:
                    answers[fd] = b"reset"
                poll.unregister(fd)
        poll.close()
        return [(came[fd] - sent[fd] if fd in came else None, answers.get(fd, b"")) for fd in by_fd]
