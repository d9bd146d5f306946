# SPDX-License-Identifier: Apache-2.0
"""The conformance tests borrow the end-to-end tests' server and wire."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import server as server_module  # noqa: E402

OWN_CONNECTIONS = 8


@pytest.fixture(scope="session")
def started(tmp_path_factory):
    """started("--key=value", ...) gives a running server, stopped and checked at the end."""
    servers = []

    def start(*args):
        servers.append(server_module.Server(tmp_path_factory.mktemp("server"), *args))
        return servers[-1]

    yield start
    for one in servers:
        one.stop()


@pytest.fixture(scope="session")
def server(started):
    """All the requests of the table go to it, and afterwards none but its own connections to itself is left."""
    one = started(f"--remote.pool.max={OWN_CONNECTIONS}")
    yield one
    one.settle_fibers(OWN_CONNECTIONS)
