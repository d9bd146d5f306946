# SPDX-License-Identifier: Apache-2.0
"""Configuration, the command line, and every way in which a start fails."""
import json
import os
import pathlib
import pwd
import re
import resource
import shutil
import socket
import subprocess
import tempfile

import pytest

from loadtools import at_once
from server import BINARY, SANITIZED, run
from wire import Connection

HERE = pathlib.Path(__file__).parent
FREE = ("--server.port=0", "--remote.port=0")
KEYS = """server.port server.address remote.port remote.url spring.threads.virtual.enabled server.tomcat.threads.max
server.tomcat.connection-timeout server.tomcat.keep-alive-timeout server.tomcat.max-connections remote.pool.max
server.max-http-request-header-size server.max-http-request-body-size server.shutdown
spring.lifecycle.timeout-per-shutdown-phase server.shutdown.delay logging.level.root logging.structured.format.console
server.tomcat.accesslog.enabled ringspun.carriers ringspun.stack-size ringspun.pinned-threshold ringspun.demo.pinned
loomylin.port.pool4 loomylin.port.pool32 loomylin.port.fibers echo.port.greeter echo.port.echo echo.threads""".split()


def carriers(server):
    """The number that the start line gives: a setting that is easy to see."""
    return int(re.search(r"(\d+) carriers?", server.log).group(1))


def one_line(done):
    """The one line on stderr of a start that failed."""
    lines = [line for line in done.stderr.strip().splitlines() if not (SANITIZED and line.startswith("=="))]
    assert len(lines) == 1, f"stdout:\n{done.stdout}\nstderr:\n{done.stderr}"
    return lines[0]


def refused(*args, code=78, **kwargs):
    done = run(*args, **kwargs)
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Started ringspun" not in done.stdout
    return one_line(done)


# Precedence

def test_later_sources_win(start, tmp_path):
    """Defaults < file < environment < SPRING_APPLICATION_JSON < command line; of one key given twice the last."""
    (tmp_path / "application.json").write_text('{"ringspun": {"carriers": 1}}')
    env = {"RINGSPUN_CARRIERS": "2"}
    env_json = {**env, "SPRING_APPLICATION_JSON": '{"ringspun.carriers": 3}'}
    assert carriers(start(cwd=tmp_path)) == 1
    assert carriers(start(cwd=tmp_path, env=env)) == 2
    assert carriers(start(cwd=tmp_path, env=env_json)) == 3
    assert carriers(start("--ringspun.carriers=4", cwd=tmp_path, env=env_json)) == 4
    assert carriers(start("--ringspun.carriers=4", "--ringspun.carriers=5", cwd=tmp_path, env=env_json)) == 5


def test_carriers_default_to_the_processors_that_are_allowed(start):
    """ringspun.carriers: what sched_getaffinity allows."""
    first = min(os.sched_getaffinity(0))
    assert carriers(start()) == len(os.sched_getaffinity(0))
    assert carriers(start(wrapper=("taskset", "-c", str(first)))) == 1


def test_config_directory_is_looked_at_first(start, tmp_path):
    """./config/application.json, then ./application.json."""
    (tmp_path / "application.json").write_text('{"ringspun.carriers": 3}')
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "application.json").write_text('{"ringspun.carriers": 1}')
    assert carriers(start(cwd=tmp_path)) == 1


def test_config_location_names_the_file(start, tmp_path):
    """--spring.config.location=FILE instead of the places."""
    (tmp_path / "application.json").write_text('{"ringspun.carriers": 3}')
    (tmp_path / "other.json").write_text('{"ringspun": {"carriers": 1, "stack-size": "128KB"}}')
    assert carriers(start(f"--spring.config.location={tmp_path / 'other.json'}", cwd=tmp_path)) == 1


@pytest.mark.parametrize("text", [
    '{"spring": {"threads": {"virtual": {"enabled": false}}}}',
    '{"spring.threads.virtual.enabled": false}',
    '{"spring.threads": {"virtual.enabled": "false"}}',
])
def test_json_keys_may_be_nested_or_dotted(start, text):
    """As Spring takes them."""
    assert start(env={"SPRING_APPLICATION_JSON": text}).get().text.startswith("Thread[#")


@pytest.mark.parametrize("args, env", [
    (("--Spring.Threads.VIRTUAL.Enabled=false", "--Server.TomCat.Threads.MAX=1"), {}),
    (("--spring.threads.virtual.en-abl_ed=FALSE",), {}),
    ((), {"SPRING_THREADS_VIRTUAL_ENABLED": "false"}),
], ids=["case", "dashes", "environment"])
def test_keys_bind_relaxed(start, args, env):
    """Case, dashes and underscores do not matter; an environment name is the key in upper case, dots to _."""
    assert start(*args, env=env).get().text.startswith("Thread[#")


@pytest.mark.parametrize("name", [
    "ringspun.stack-size", "ringspun.stackSize", "ringspun.stack_size", "RINGSPUN.STACKSIZE"])
def test_a_size_binds_relaxed(start, name):
    """--ringspun.stackSize=128KB is --ringspun.stack-size=128KB; the JSON figure shows it."""
    told = start(f"--{name}=128KB").get(headers=["Accept: application/json"]).text
    assert "131072" in told


def test_environment_name_drops_dashes(start):
    """RINGSPUN_STACKSIZE is ringspun.stack-size."""
    told = start(env={"RINGSPUN_STACKSIZE": "128KB"}).get(headers=["Accept: application/json"]).text
    assert "131072" in told


def test_foreign_environment_is_none_of_our_business(start):
    """Names that other programs use do not stop the start."""
    foreign = {"SERVER_NAME": "x", "SERVER_SOFTWARE": "y", "REMOTE_ADDR": "z", "SPRING_PROFILES_GROUP": "w"}
    start(env=foreign).assert_serves()


def test_threads_max_without_platform_threads_is_said_to_have_no_effect(start):
    """In the log, once."""
    assert "server.tomcat.threads.max" in start("--server.tomcat.threads.max=10").log


@pytest.mark.parametrize("address, other", [
    ("127.0.0.1", "127.0.0.2"), ("127.0.0.2", "127.0.0.1"), ("::1", "127.0.0.1"), ("0.0.0.0", "::1"), ("::", None)])
def test_server_address_is_where_it_listens(start, address, other):
    """There and nowhere else; /blocking finds its remote all the same."""
    server = start(f"--server.address={address}")
    there = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(address, address)
    with Connection(server.port, host=there) as connection:
        assert connection.ask("/blocking/0").status == 200
    if other:
        with pytest.raises(ConnectionRefusedError):
            Connection(server.port, host=other)


# Bad configuration: exit 78

@pytest.mark.parametrize("key, nearest", [
    ("server.prot", "server.port"), ("remote.prt", "remote.port"), ("ringspun.cariers", "ringspun.carriers"),
    ("spring.thread.virtual.enabled", "spring.threads.virtual.enabled"),
    ("server.tomcat.max-connection", "server.tomcat.max-connections"),
])
def test_unknown_key_names_the_nearest(key, nearest):
    """Key, value, source and what was meant."""
    line = refused(*FREE, f"--{key}=42")
    assert key in line and "42" in line and nearest in line
    assert "command line" in line or f"--{key}" in line


def test_unknown_key_in_a_file_names_file_and_position(tmp_path):
    """File, line and the nearest key."""
    file = tmp_path / "mine.json"
    file.write_text('{\n  "server": {\n    "prot": 8081\n  }\n}\n')
    line = refused(*FREE, f"--spring.config.location={file}")
    assert "server.prot" in line and "8081" in line and "server.port" in line
    assert str(file) in line and "3" in line.split(str(file))[1]


def test_unknown_key_in_spring_application_json_names_its_source():
    """The variable's name."""
    line = refused(*FREE, env={"SPRING_APPLICATION_JSON": '{"server.prot": 1}'})
    assert "SPRING_APPLICATION_JSON" in line and "server.prot" in line and "server.port" in line


BAD_VALUES = [
    ("server.port", "abc"), ("server.port", "65536"), ("server.port", "-2"), ("server.port", ""), ("remote.port", "-3"),
    ("remote.port", "70000"), ("remote.url", "ftp://a"), ("remote.url", "nonsense"),
    ("spring.threads.virtual.enabled", "maybe"), ("server.tomcat.threads.max", "0"),
    ("server.tomcat.threads.max", "-1"), ("server.tomcat.threads.max", "99999999999999999999"),
    ("server.tomcat.connection-timeout", "5parsecs"), ("server.tomcat.connection-timeout", "-1s"),
    ("server.tomcat.keep-alive-timeout", "1e3"), ("server.tomcat.max-connections", "many"),
    ("remote.pool.max", "-1"), ("server.max-http-request-header-size", "8XB"),
    ("server.max-http-request-body-size", "-1"),
    ("server.shutdown", "never"), ("logging.level.root", "LOUD"), ("logging.structured.format.console", "xml"),
    ("server.tomcat.accesslog.enabled", "2"), ("ringspun.carriers", "0"), ("ringspun.carriers", "x"),
    ("ringspun.stack-size", "1"), ("ringspun.stack-size", "huge"), ("server.address", "300.1.1.1"),
]


@pytest.mark.parametrize("key, value", BAD_VALUES, ids=[f"{key}={value[:12]}" for key, value in BAD_VALUES])
def test_bad_value_names_key_value_and_source(key, value):
    """Exit 78, one line."""
    line = refused(*[arg for arg in FREE if key not in arg], f"--{key}={value}")
    assert key in line and value in line


def test_bad_value_from_the_environment_names_the_variable():
    """SERVER_PORT=abc."""
    line = refused(env={"SERVER_PORT": "abc"})
    assert "SERVER_PORT" in line and "abc" in line


@pytest.mark.parametrize("text", [
    "{", "", "[]", '{"server": {"port": 1,}}', "nonsense", '{"a": ' * 2000, '{"server.port": null}',
    '{"server.port": [1]}', '{"server.port": 1} x', '{"server.port": 80.5}'],
    ids=lambda text: text[:12] or "empty")
def test_file_that_is_not_what_we_read_is_refused(tmp_path, text):
    """Broken or foreign JSON, also nested without end: exit 78 and the file's name."""
    file = tmp_path / "mine.json"
    file.write_text(text)
    assert str(file) in refused(*FREE[1:], f"--spring.config.location={file}")


def test_file_that_is_not_there_is_refused(tmp_path):
    """Only when it was asked for."""
    file = tmp_path / "missing.json"
    assert str(file) in refused(*FREE, f"--spring.config.location={file}")


# The command line

@pytest.mark.parametrize("args", [
    ("nonsense",), ("-x",), ("--",), ("--server.port",), ("doctor", "x", "y"), ("--server.port=1", "doctor")], ids=" ".join)
def test_bad_usage_is_exit_2(args):
    """One line, and the way to the help."""
    line = refused(*args, code=2)
    assert "--help" in line


def test_unknown_command_names_the_nearest():
    """A slip of the finger does not start a server."""
    assert "nearest is healthcheck" in refused("healtchek", code=2)
    assert "nearest is doctor" in refused("docter", "--server.port=0", code=2)


def test_help_lists_every_key_with_its_default():
    """Exit 0, on stdout."""
    done = run("--help")
    assert done.returncode == 0 and done.stderr == ""
    for key in KEYS:
        assert key in done.stdout, key
    for default in ("8080", "8085", "20s", "60s", "8KB", "1MB", "30s", "64KB", "20ms", "200", "graceful"):
        assert default in done.stdout, default


def test_version_names_what_it_was_built_of():
    """ringspun, liburing, llhttp, cJSON, kernel."""
    done = run("--version")
    assert done.returncode == 0 and done.stderr == ""
    for part in ("ringspun", "liburing", "llhttp", "cJSON", os.uname().release):
        assert part in done.stdout
    for part in ("liburing", "llhttp", "cJSON"):
        assert re.search(rf"{part}\W+(version )?\d+\.\d+", done.stdout), done.stdout


# A start that the machine refuses: exit 1 or 69

@pytest.mark.parametrize("key", ["server.port", "remote.port"])
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::"])
def test_taken_port_is_exit_1(key, address):
    """The port is named, whoever has it, on IPv4 or IPv6."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as taken:
        taken.bind((address, 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        line = refused(*[arg for arg in FREE if key not in arg], f"--{key}={port}", code=1)
        assert port in line and "use" in line and key in line


def test_a_second_server_on_the_port_is_exit_1(start):
    """Although another of ours holds it: no SO_REUSEPORT sharing; the first one goes on."""
    server = start()
    line = refused(f"--server.port={server.port}", "--remote.port=0", code=1)
    assert str(server.port) in line
    line = refused("--server.port=0", f"--remote.port={server.remote_port}", code=1)
    assert str(server.remote_port) in line
    server.assert_serves()


def test_port_of_a_server_that_just_ended_is_free(start):
    """Connections in TIME_WAIT do not stop a restart."""
    first = start()
    with first.connect() as connection:
        connection.ask(headers=["Connection: close"])
        connection.assert_closed()
    first.stop()
    start(f"--server.port={first.port}", f"--remote.port={first.remote_port}").assert_serves()


def test_64_descriptors_are_enough_with_two_carriers(start):
    """It starts, calls its remote, and serves."""
    server = start("--ringspun.carriers=2", limits={resource.RLIMIT_NOFILE: 64})
    assert server.get("/blocking/0").status == 200


@pytest.mark.parametrize("count", [4, 8, 12, 16, 20])
def test_too_few_descriptors_are_named(count):
    """Exit 1 (or 69 when the ring itself found none), and how to get more."""
    done = run(*FREE, "--ringspun.carriers=2", limits={resource.RLIMIT_NOFILE: count})
    assert done.returncode == 1, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    line = one_line(done)
    assert "descriptors" in line and "ulimit -n" in line


@pytest.fixture(scope="module")
def seccomp_deny(tmp_path_factory):
    program = tmp_path_factory.mktemp("seccomp") / "seccomp_deny"
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-o", program, HERE / "seccomp_deny.c"], check=True)
    return str(program)


def test_io_uring_refused_by_seccomp_is_exit_69(seccomp_deny):
    """As under Docker's default profile: the cause and the cure, in one line."""
    line = refused(*FREE, code=69, wrapper=(seccomp_deny,))
    assert "io_uring" in line and "seccomp" in line
    assert "profile" in line or "--security-opt" in line


@pytest.mark.parametrize("args", [("--help",), ("--version",)])
def test_help_needs_no_io_uring(seccomp_deny, args):
    """--help and --version answer where the ring is refused."""
    assert run(*args, wrapper=(seccomp_deny,)).returncode == 0


def test_an_ordinary_user_with_8_mib_of_locked_memory_starts_eight_carriers(start):
    """Rings are made smaller, not refused; it serves from all carriers."""
    limits = {resource.RLIMIT_MEMLOCK: 8 * 1024 * 1024}
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        binary = shutil.copy(BINARY, directory)
        user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        server = start("--ringspun.carriers=8", limits=limits, user=user, binary=binary, cwd=directory)
        assert carriers(server) == 8
        answers = at_once(*[lambda: server.get("/blocking/0.1") for _ in range(40)])
        assert all(answer.status == 200 for answer in answers)
        assert os.stat(f"/proc/{server.pid}").st_uid == (user.pw_uid if user else os.geteuid()) or SANITIZED


def test_failing_start_leaves_no_port_bound(start):
    """When remote.port is taken, server.port is free again afterwards."""
    server = start()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    refused(f"--server.port={port}", f"--remote.port={server.remote_port}", code=1)
    start(f"--server.port={port}").assert_serves()


def test_ring_figures_are_real(start):
    """The JSON of /currentThread names a ring whose descriptor is one of the process."""
    server = start()
    ring = json.loads(server.get(headers=["Accept: application/json"]).body)["ring"]
    assert os.readlink(f"/proc/{server.pid}/fd/{ring['fd']}") == "anon_inode:[io_uring]"
