# SPDX-License-Identifier: Apache-2.0
"""Start, watch and stop a ringspun process."""
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time

import procfs
import wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("RINGSPUN_BINARY", ROOT / "build" / "ringspun")).resolve()
SANITIZED = bool(os.environ.get("RINGSPUN_SANITIZED"))  # figures of time and memory mean nothing then

# What stands before each server's command: the launcher that confines it to docker/seccomp.json, see conftest.py.
confinement = ()

# The caller's environment must not configure the server under test.
KEPT = re.compile(r"PATH|HOME|LANG|TZ|(ASAN|LSAN|UBSAN|TSAN)_OPTIONS")
STARTED = "Started ringspun in"
COMPLAINT = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|must\(|core dumped")


def environment(extra=None):
    env = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
    env.update(extra or {})
    return env


def assert_not_refused(status):
    """A call that the profile does not allow ends the process by SIGSYS."""
    assert status != -signal.SIGSYS, \
        "ended by SIGSYS: it made a system call that docker/seccomp.json does not allow. 'strace -f' shows which; " \
        "'make test-e2e SECCOMP=' goes without the profile"


def run(*args, env=None, cwd=None, wrapper=(), limits=None, timeout=10):
    """Run the program to its end (a start that must fail, --help); its CompletedProcess.

    It gets a directory of its own, so that no application.json of the caller's is found.
    """
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run([*wrapper, *confinement, str(BINARY), *args], env=environment(env), cwd=cwd or empty,
                              capture_output=True, text=True, timeout=timeout, check=False,
                              stdin=subprocess.DEVNULL, preexec_fn=lambda: set_limits(limits))
        assert_not_refused(done.returncode)
        return done


def set_limits(limits):
    for which, value in (limits or {}).items():
        resource.setrlimit(which, (value, value))


class StartFailed(Exception):
    pass


class Server:
    """A running server: app on .port, remote on .remote_port, both free ones that it chose."""

    def __init__(self, directory, *args, env=None, cwd=None, wrapper=(), limits=None, user=None,
                 binary=BINARY):
        directory = pathlib.Path(directory)
        self.stdout_path = directory / "stdout"
        self.stderr_path = directory / "stderr"
        self.stopped = False
        keys = {arg.split("=")[0] for arg in args}
        ports = [f"{key}=0" for key in ("--server.port", "--remote.port") if key not in keys]
        self.command = [*wrapper, *confinement, str(binary), *ports, *args]

        def prepare():
            set_limits(limits)
            if user is not None:
                os.setgroups([])
                os.setgid(user.pw_gid)
                os.setuid(user.pw_uid)

        with open(self.stdout_path, "wb") as out, open(self.stderr_path, "wb") as err:
            self.process = subprocess.Popen(self.command, env=environment(env), cwd=cwd or directory,
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            preexec_fn=prepare)
        self.pid = self.process.pid
        self._await_start()

    def _await_start(self):
        deadline = time.monotonic() + (30 if SANITIZED else 10)
        while STARTED not in self.log:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                assert_not_refused(self.process.returncode)
                raise StartFailed(f"{self.command} ended with {self.process.returncode}\n{self.report()}")
            time.sleep(0.005)
        self.port = self.port_of("http.listener")
        self.remote_port = self.port_of("remote.listener")

    def port_of(self, logger):
        """From the start line of that logger, in either form of the log."""
        match = re.search(rf"{re.escape(logger)}\b.*started on port (\d+)", self.log)
        return int(match.group(1)) if match else None

    @property
    def log(self):
        return self.stdout_path.read_text("utf-8", "replace")

    @property
    def errors(self):
        return self.stderr_path.read_text("utf-8", "replace")

    def report(self):
        return f"--- stdout\n{self.log[-6000:]}\n--- stderr\n{self.errors[-6000:]}"

    def url(self, path=""):
        return f"http://127.0.0.1:{self.port}{path}"

    def remote_url(self, path=""):
        return f"http://127.0.0.1:{self.remote_port}{path}"

    def connect(self, **kwargs):
        return wire.Connection(self.port, **kwargs)

    def connect_remote(self, **kwargs):
        return wire.Connection(self.remote_port, **kwargs)

    def get(self, path="/currentThread", **kwargs):
        return wire.fetch(self.port, path, **kwargs)

    def get_remote(self, path, **kwargs):
        return wire.fetch(self.remote_port, path, **kwargs)

    def assert_serves(self):
        """A new connection gets its answer."""
        response = self.get("/currentThread")
        assert response.status == 200, response

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=10):
        """The exit status, once it has ended by itself."""
        return self.process.wait(timeout)

    def wait_log(self, text, timeout=5.0):
        deadline = time.monotonic() + timeout
        while text not in self.log:
            assert time.monotonic() < deadline, f"{text!r} is not in the log\n{self.report()}"
            time.sleep(0.005)

    def fiber_dump(self):
        """What SIGQUIT prints, as a list of lines."""
        before = len(self.errors)
        self.signal(signal.SIGQUIT)
        deadline = time.monotonic() + 5
        size = 0
        while size == 0 or len(self.errors) - before > size:  # until it stops growing
            size = len(self.errors) - before
            assert time.monotonic() < deadline, "no dump on stderr"
            time.sleep(0.1)
        return self.errors[before:].splitlines()

    def connection_fibers(self):
        """How many connections are being served, the app's and the remote's."""
        return sum("-conn-" in line for line in self.fiber_dump())

    def settle_fibers(self, count, within=5.0):
        """Wait until no more than count connections are being served."""
        deadline = time.monotonic() + within
        while self.connection_fibers() > count:
            assert time.monotonic() < deadline, f"more than {count} fibers are left\n{self.report()}"

    def settle(self, fds, within=5.0):
        """Wait until no more than fds descriptors are open; the storm left nothing behind."""
        deadline = time.monotonic() + within
        while procfs.fd_count(self.pid) > fds:
            assert time.monotonic() < deadline, \
                f"{procfs.fd_count(self.pid)} descriptors, {fds} were open before\n{self.report()}"
            time.sleep(0.02)

    def stop(self, timeout=10):
        """SIGTERM, wait, and check that it ended as asked."""
        if self.process.poll() is not None:
            assert_not_refused(self.process.returncode)  # also where the test saw the end itself
        if self.stopped:
            return
        self.stopped = True
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"did not end within {timeout} s of SIGTERM\n{self.report()}") from None
            assert_not_refused(self.process.returncode)
            assert self.process.returncode == 0, f"exit {self.process.returncode}\n{self.report()}"
        assert not COMPLAINT.search(self.errors), self.errors[-6000:]

    def ended(self):
        """The test saw the end itself."""
        self.stopped = True

    def kill(self):
        self.stopped = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
