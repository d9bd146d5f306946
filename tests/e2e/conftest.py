# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests: each server is started by the test that asks, and stopped and checked after it."""
import os
import shutil
import tempfile

import pytest

import seccomp_profile
import server as server_module
from server import Server


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than about five seconds")
    config.addinivalue_line("markers", "figures: asserts times or memory; left out under sanitizers")


def pytest_sessionstart(session):
    """Confine every server to docker/seccomp.json, if RINGSPUN_SECCOMP says so (make test-e2e does).

    Not in a sanitized build, which makes calls of its own. The launcher lies where an ordinary user finds it.
    """
    session.config.ringspun_confined = None
    if not os.environ.get("RINGSPUN_SECCOMP") or server_module.SANITIZED or session.config.option.collectonly or \
            seccomp_profile.reason_against():
        return
    session.config.ringspun_confined = tempfile.mkdtemp(prefix="ringspun-seccomp-")
    os.chmod(session.config.ringspun_confined, 0o755)
    server_module.confinement = (seccomp_profile.build(session.config.ringspun_confined),)


def pytest_sessionfinish(session):
    if getattr(session.config, "ringspun_confined", None):
        shutil.rmtree(session.config.ringspun_confined)


def pytest_report_header():
    return "every server under docker/seccomp.json" if os.environ.get("RINGSPUN_SECCOMP") else None


def pytest_collection_modifyitems(items):
    if not server_module.BINARY.exists():
        pytest.exit(f"{server_module.BINARY} is not there: make, or set RINGSPUN_BINARY", 2)
    if server_module.SANITIZED:
        skip = pytest.mark.skip(reason="figures mean nothing under sanitizers")
        for item in items:
            if "figures" in item.keywords:
                item.add_marker(skip)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for one in getattr(item, "ringspun_servers", []):
            report.sections.append((f"ringspun pid {one.pid}: {' '.join(one.command)}", one.report()))


class Starter:
    """start(*args) gives a running Server; stop() stops all of them and raises what was wrong."""

    def __init__(self, directory, note=lambda server: None):
        self.directory = directory
        self.note = note
        self.servers = []

    def __call__(self, *args, **kwargs):
        directory = self.directory / f"server-{len(self.servers)}"
        directory.mkdir()
        one = Server(directory, *args, **kwargs)
        self.servers.append(one)
        self.note(one)
        return one

    def stop(self):
        wrong = []
        for one in self.servers:
            try:
                one.stop()
            except AssertionError as error:
                wrong.append(error)
        if wrong:
            raise wrong[0]


@pytest.fixture
def start(request, tmp_path):
    """start("--key=value", ...) starts a server for this test."""
    request.node.ringspun_servers = []
    starter = Starter(tmp_path, request.node.ringspun_servers.append)
    yield starter
    starter.stop()


@pytest.fixture
def server(start):
    """A server with the defaults."""
    return start()


@pytest.fixture(scope="module")
def start_shared(tmp_path_factory):
    """As start, for servers that the tests of one file share."""
    starter = Starter(tmp_path_factory.mktemp("shared"))
    yield starter
    starter.stop()


@pytest.fixture(scope="module")
def shared_server_of_module(start_shared):
    return start_shared()


@pytest.fixture
def shared(request, shared_server_of_module):
    """A server with the defaults that the tests of one file share."""
    request.node.ringspun_servers = [shared_server_of_module]
    return shared_server_of_module
