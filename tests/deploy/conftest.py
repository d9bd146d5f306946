# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the deployment tests. Where an engine is missing its tests are skipped, with the reason.

ab, curl and the HTTP client are those of the end-to-end tests.
"""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import engine  # noqa: E402  after the path


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for project in getattr(item, "ringspun_projects", []):
            report.sections.append((f"containers of {project.name}", project.logs()))


@pytest.fixture(scope="session")
def docker_engine():
    """An engine that answers, or the test is skipped."""
    reason = engine.missing()
    if reason is not None:
        pytest.skip(f"no Docker here ({reason})")


@pytest.fixture(scope="session")
def image(docker_engine, tmp_path_factory):
    """The image, built once by Compose as a user does; its name."""
    name = engine.PREFIX
    project = engine.Project(tmp_path_factory.mktemp("build"), name)
    project.compose("build", "ringspun", timeout=600)
    yield name
    engine.docker("image", "rm", "-f", name, f"{name}-balancer", check=False)


@pytest.fixture
def containers(image):
    """Containers by `docker run`."""
    some = engine.Containers(image)
    yield some
    some.remove()


@pytest.fixture
def project(request, image, tmp_path):
    """project("split") is docker-compose.yml with that profile, nothing started yet."""
    request.node.ringspun_projects = []

    def make(*profiles):
        one = engine.Project(tmp_path, image, *profiles)
        request.node.ringspun_projects.append(one)
        return one
    yield make
    for one in request.node.ringspun_projects:
        one.remove()


@pytest.fixture(scope="module")
def single_of_module(image, tmp_path_factory):
    one = engine.Project(tmp_path_factory.mktemp("single"), image)
    try:
        one.compose("up", "-d", "--wait", "--wait-timeout", 60)
        yield one
    finally:
        one.remove()


@pytest.fixture
def single(request, single_of_module):
    """`docker compose up`, started once for the tests that leave it as it is."""
    request.node.ringspun_projects = [single_of_module]
    return single_of_module
