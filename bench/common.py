# SPDX-License-Identifier: Apache-2.0
"""What the scripts of bench/ share: the server that they measure, and where results go."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
RESULTS = ROOT / "bench" / "results"
# The caller's settings for the server are none of this: an unknown RINGSPUN_ name would end its start.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("RINGSPUN_", "SERVER_", "SPRING_"))}
PORT_KEYS = ("server.port", "remote.port", "loomylin.port.pool4", "loomylin.port.pool32", "loomylin.port.fibers",
             "echo.port.greeter", "echo.port.echo")


class Server:
    """ringspun with all profiles on free ports: .app, .remote, .pool4, .pool32, .fibers, .greeter, .echo."""

    def __init__(self, *arguments):
        self.log = tempfile.NamedTemporaryFile()
        command = [BUILD / "ringspun", "--spring.profiles.active=all", *(f"--{key}=0" for key in PORT_KEYS), *arguments]
        self.process = subprocess.Popen(command, cwd="/", stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env=ENVIRONMENT)
        deadline = time.monotonic() + 10
        while "Started ringspun" not in self.text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"run: the server did not start:\n{self.text()}")
            time.sleep(0.02)
        self.app = self._port("ringspun")
        self.remote = self._port("remote")
        self.pool4 = self._port("loomylin", "at most 4 platform")
        self.pool32 = self._port("loomylin", "at most 32 platform")
        self.fibers = self._port("loomylin", "fibers")
        self.greeter = self._port("greeter")
        self.echo = self._port("echo")

    def text(self):
        return pathlib.Path(self.log.name).read_text("utf-8", "replace")

    def _port(self, announce, policy=""):
        return int(re.search(rf": {announce} started on port (\d+) \(\w+\), {policy}", self.text()).group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        died = self.process.poll() is not None  # what was measured then is nothing
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if died or self.process.returncode != 0:
            sys.exit(f"the server {'died' if died else 'ended'} with {self.process.returncode}:\n{self.text()[-20000:]}")


def url(port, path):
    return f"http://127.0.0.1:{port}{path}"


def output_of(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=3600, check=False,
                          stdin=subprocess.DEVNULL)
    return done.stdout, done.stderr
