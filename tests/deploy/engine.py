# SPDX-License-Identifier: Apache-2.0
"""Docker and Compose by their command lines. Whatever a test makes carries the run's prefix and is removed after it."""
import json
import os
import pathlib
import shutil
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PREFIX = f"ringspun-test-{os.getpid()}"
PROFILE = ROOT / "docker" / "seccomp.json"
HARDENED = ("--security-opt", f"seccomp={PROFILE}", "--security-opt", "no-new-privileges", "--cap-drop", "ALL",
            "--read-only")

# What a test changes in docker-compose.yml: free ports on the loopback in place of the fixed ones. The build takes the
# host's network, which an engine without rights to masquerade needs to reach the package mirror.
OVERRIDE = """
services:
  ringspun:
    build: {network: host}
    ports: !override ["127.0.0.1::8080", "127.0.0.1::8085", "127.0.0.1::7000", "127.0.0.1::7001", "127.0.0.1::7002",
                      "127.0.0.1::10000", "127.0.0.1::10007"]
  app:
    build: {network: host}
    ports: !override ["127.0.0.1::8080"]
  remote:
    build: {network: host}
  replica:
    build: {network: host}
  balancer:
    build: {network: host}
    ports: !override ["127.0.0.1::8080"]
"""


def docker(*args, timeout=60, check=True):
    """Run `docker ...` to its end; its CompletedProcess."""
    done = subprocess.run(["docker", *map(str, args)], capture_output=True, text=True, timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL)
    assert not check or done.returncode == 0, f"docker {' '.join(map(str, args))}\n{done.stdout}\n{done.stderr}"
    return done


def missing():
    """Why nothing can be tested here, in a few words, or None."""
    if shutil.which("docker") is None:
        return "no docker command"
    try:
        for args in (("info",), ("compose", "version")):
            done = docker(*args, timeout=20, check=False)
            if done.returncode != 0:
                return f"docker {args[0]}: {(done.stderr or done.stdout).strip().splitlines()[-1]}"
    except subprocess.TimeoutExpired:
        return "the Docker engine does not answer"
    return None


def inspect(name):
    return json.loads(docker("inspect", name).stdout)[0]


def logs(name):
    done = docker("logs", name)
    return done.stdout + done.stderr


def wait_until(condition, what, within=30.0):
    """Ask until it is true, and give what it gave."""
    deadline = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {within} s: {what}"
        time.sleep(0.1)


def published(name, port):
    """The loopback port that stands for the container's."""
    return int(docker("port", name, f"{port}/tcp").stdout.splitlines()[0].rsplit(":", 1)[1])


class Containers:
    """Containers by `docker run`, without Compose."""

    def __init__(self, image):
        self.image = image
        self.names = []

    def start(self, *options, arguments=(), wait=True):
        """A server in the background; its name. With wait, once it has started."""
        name = f"{PREFIX}-run-{len(self.names)}"
        self.names.append(name)
        docker("run", "-d", "--name", name, *options, self.image, *arguments)
        if wait:
            wait_until(lambda: "Started ringspun in" in logs(name), f"{name} starts")
        return name

    def to_the_end(self, *options, arguments=(), timeout=60):
        """Run it and wait until it ends: its exit code and what it wrote are those of `docker run`."""
        name = f"{PREFIX}-run-{len(self.names)}"
        self.names.append(name)
        return docker("run", "--name", name, *options, self.image, *arguments, timeout=timeout, check=False)

    def remove(self):
        if self.names:
            docker("rm", "-f", *self.names, check=False)


class Project:
    """docker-compose.yml under a project name of its own."""

    count = 0

    def __init__(self, directory, image, *profiles):
        Project.count += 1
        self.name = f"{PREFIX}-{Project.count}"
        self.directory = pathlib.Path(directory)
        self.files = [ROOT / "docker-compose.yml"]
        self.override("ports", OVERRIDE)
        self.environment = {**os.environ, "RINGSPUN_IMAGE": image, "RINGSPUN_BALANCER_IMAGE": f"{image}-balancer"}
        self.profiles = [option for profile in profiles for option in ("--profile", profile)]

    def override(self, what, text):
        """Add a file to docker-compose.yml, or replace one of that name."""
        path = self.directory / f"{self.name}-{what}.yml"
        path.write_text(text, "ascii")
        if path not in self.files:
            self.files.append(path)

    def compose(self, *args, timeout=120):
        files = [option for path in self.files for option in ("-f", str(path))]
        command = ["docker", "compose", "--ansi", "never", "-p", self.name, *files, *self.profiles, *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, cwd=ROOT,
                              env=self.environment, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done.stdout

    def containers(self, service=None):
        """Names of those that are there, in the order of their numbers."""
        names = docker("ps", "-a", "--filter", f"label=com.docker.compose.project={self.name}", *(
            ["--filter", f"label=com.docker.compose.service={service}"] if service else []),
            "--format", "{{.Names}}").stdout.split()
        return sorted(names)

    def container(self, service):
        names = self.containers(service)
        assert len(names) == 1, names
        return names[0]

    def port(self, service, port):
        return published(self.container(service), port)

    def logs(self):
        return "\n".join(f"--- {name}\n{logs(name)[-4000:]}" for name in self.containers())

    def remove(self):
        names = self.containers()
        if names:
            docker("rm", "-f", *names, check=False)  # at once, without the drain
        docker("network", "rm", f"{self.name}_default", check=False)
