# SPDX-License-Identifier: Apache-2.0
"""A remote of which the test decides every byte, close and reset."""
import socket
import struct
import threading
import time

GOOD = (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain;charset=UTF-8\r\nContent-Length: 4\r\n"
        b"Date: Mon, 30 Nov 2026 15:58:44 GMT\r\n\r\ngood")


class Call:
    """One request that came: its head, its connection's number (from 0) and its own on that (from 0)."""

    def __init__(self, remote, sock, connection, nth, head):
        self.remote, self.sock, self.connection, self.nth, self.head = remote, sock, connection, nth, head

    def answer(self, data=GOOD):
        self.sock.sendall(data)

    def close(self):
        self.sock.close()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def await_end(self, seconds):
        """What the caller does next: "reset", "closed", "bytes", or "nothing" for so long."""
        self.sock.settimeout(seconds)
        try:
            return "bytes" if self.sock.recv(1) else "closed"
        except ConnectionResetError:
            return "reset"
        except socket.timeout:
            return "nothing"


class FakeRemote:
    """behave(call) is run for each request, in a thread of its connection."""

    def __init__(self, behave, backlog=128, port=0):
        self.behave = behave
        self.connections = 0
        self.calls = []
        self.running = 0       # behave() at this moment
        self.running_most = 0  # and at the busiest
        self.lock = threading.Lock()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(backlog)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        except OSError:
            pass
        self.listener.close()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            number, self.connections = self.connections, self.connections + 1
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock, number):
        nth = 0
        pending = b""
        try:
            while True:
                while b"\r\n\r\n" not in pending:
                    more = sock.recv(65536)
                    if not more:
                        sock.close()
                        return
                    pending += more
                head, pending = pending.split(b"\r\n\r\n", 1)
                call = Call(self, sock, number, nth, head)
                with self.lock:
                    self.calls.append(call)
                    self.running += 1
                    self.running_most = max(self.running_most, self.running)
                try:
                    self.behave(call)
                finally:
                    with self.lock:
                        self.running -= 1
                nth += 1
        except OSError:
            pass  # the test closed it, or the caller did

    def await_calls(self, count, within=5.0):
        deadline = time.monotonic() + within
        while len(self.calls) < count:
            assert time.monotonic() < deadline, f"{len(self.calls)} calls came, not {count}"
            time.sleep(0.005)
