# SPDX-License-Identifier: Apache-2.0
"""ringspun doctor: the real binary on this host, and on hosts that are made poorer for it."""
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import subprocess

import pytest

from server import BINARY, SANITIZED, environment, run

HERE = pathlib.Path(__file__).parent
FILES = {resource.RLIMIT_NOFILE: 5000}


def doctor(*args, codes=(0, 1), **kwargs):
    done = run("doctor", *args, **kwargs)
    assert done.returncode in codes, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert SANITIZED or done.stderr == ""
    return done


def report(*args, **kwargs):
    """The JSON; its exitCode is the one that it ended with."""
    done = doctor("--json", *args, **kwargs)
    assert done.stdout.count("\n") == 1
    facts = json.loads(done.stdout)
    assert facts["exitCode"] == done.returncode
    facts["by_id"] = {row["id"]: row for row in facts["limits"]}
    assert len(facts["by_id"]) == len(facts["limits"])
    return facts


def joined(text):
    """Without the line ends that the table's width asks for."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def seccomp_deny(tmp_path_factory):
    tool = tmp_path_factory.mktemp("tool") / "seccomp_deny"
    subprocess.run(["cc", "-o", tool, HERE / "seccomp_deny.c"], check=True)
    return str(tool)


# The first wall

def test_descriptors_are_the_first_wall():
    """With 5000 of them: named in the last line with the connections that fit and the command; a warning."""
    done = doctor(codes=(1,), limits=FILES)
    assert re.fullmatch(r"first wall: file descriptors, hard limit 5000: 4936 connections \(2468 on server\.port\); "
                        r"lift with: ulimit -Hn \d+", done.stdout.splitlines()[-1])
    assert "warning: file descriptors: fewer than 10000 connections fit" in done.stdout


def test_this_host_names_its_own_descriptor_limit():
    """Where nothing is made poorer: the hard limit is read, not the soft one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    row = report()["by_id"]["descriptors"]
    assert (row["facts"]["soft"], row["facts"]["hard"]) == (soft, hard)
    assert row["allows"] == min(hard - 64, 1000000)


@pytest.mark.parametrize("descriptors", [64, 100, 129, 5000])
def test_the_server_serves_as_many_as_the_doctor_says(start, descriptors):
    """What it logs when more is asked for is the doctor's figure."""
    limits = {resource.RLIMIT_NOFILE: descriptors}
    allowed = report("--ringspun.carriers=2", limits=limits)["by_id"]["descriptors"]["allows"]
    server = start("--ringspun.carriers=2", "--server.tomcat.max-connections=1000000", limits=limits)
    assert int(re.search(r"descriptor limit allows: (\d+) are served", server.log).group(1)) == allowed


def test_too_few_descriptors_to_start_are_a_failure():
    """21 for two carriers: the server says so too."""
    facts = report("--ringspun.carriers=2", limits={resource.RLIMIT_NOFILE: 21}, codes=(1,))
    assert facts["by_id"]["descriptors"]["grade"] == "failure"
    assert facts["firstWall"] == {"id": "descriptors", "connections": 0, "limit": "hard limit 21",
                                  "lift": facts["by_id"]["descriptors"]["lift"]}
    assert run("--ringspun.carriers=2", limits={resource.RLIMIT_NOFILE: 21}).returncode == 1


def test_limits_of_the_process_are_found():
    """Address space, locked memory and processors, each made scarce."""
    if SANITIZED:
        pytest.skip("a sanitizer maps more than any limit")
    limits = {resource.RLIMIT_AS: 256 << 20}
    row = report(limits=limits, codes=(1,))["by_id"]["address_space"]
    assert row["facts"]["soft"] == 256 << 20
    assert 3000 < row["allows"] < 4096 and row["grade"] == "warning"
    row = report("--ringspun.stack-size=1MB", limits=limits, codes=(1,))["by_id"]["address_space"]
    assert 190 < row["allows"] < 256
    facts = report("--ringspun.carriers=64", codes=(1,))["by_id"]["processors"]
    assert facts["facts"]["carriers"] == 64 and facts["allows"] <= len(os.sched_getaffinity(0))
    assert facts["grade"] == ("warning" if facts["allows"] < 64 else "ok")


def test_the_configuration_is_read_as_the_server_reads_it():
    """max-connections of the environment is the first wall; a bad key is exit 78."""
    facts = report(env={"SERVER_TOMCAT_MAX_CONNECTIONS": "7"})
    assert facts["firstWall"]["id"] == "max_connections" and facts["firstWall"]["connections"] == 7
    assert "server.tomcat.max-connections" in facts["firstWall"]["lift"]
    assert run("doctor", "--server.prot=1").returncode == 78


# The form

def test_table_and_json_tell_the_same():
    """Each row is in both, with its figure and its command; nothing is wider than 120 columns."""
    table = doctor(limits=FILES).stdout
    facts = report(limits=FILES)
    assert all(len(line) <= 120 for line in table.splitlines())
    assert "\x1b" not in table
    starts = [line for line in table.splitlines() if re.match(r"(ok|\?|warn|FAIL) +\S", line)]
    assert len(starts) == len(facts["limits"])
    grades = {"ok": "ok", "?": "unknown", "warn": "warning", "FAIL": "failure"}
    for line, row in zip(starts, facts["limits"]):
        assert grades[line.split()[0]] == row["grade"]
        assert line[5:].startswith(row["name"][:16].strip())
        if isinstance(row["allows"], int) and row["id"] not in ("host_files", "memory", "conntrack", "threads"):
            assert f" {row['allows']} " in line
        if row["lift"]:
            assert row["lift"] in joined(table)
    assert joined(facts["summary"]) == joined(table[table.index("first wall"):])
    for feature in facts["features"]:
        shown = "present:" if feature["present"] else "absent:"
        assert feature["name"] in table[table.index(shown):]


def test_features_are_those_of_the_server(start):
    """What /currentThread shows as on is present."""
    server = start()
    on = json.loads(server.get(headers=["Accept: application/json"]).body)["ring"]["features"]
    present = {feature["name"] for feature in report()["features"] if feature["present"]}
    assert set(on) <= present, set(on) - present


def test_rings_take_eight_operations():
    """Where the kernel keeps such a list, which every one from 5.10 on does."""
    facts = report()
    present = {feature["name"] for feature in facts["features"] if feature["present"]}
    assert "RESTRICTIONS" in present
    row = next(row for row in facts["limits"] if row["id"] == "io_uring")
    assert row["facts"]["operations allowed"] == 8


def test_a_terminal_gets_colour():
    """Around the grade only."""
    leader, follower = pty.openpty()
    try:
        subprocess.run([BINARY, "doctor"], stdout=follower, env=environment(), cwd="/", timeout=10, check=False)
        os.close(follower)
        follower = -1
        text = b""
        while True:
            try:
                piece = os.read(leader, 4096)
            except OSError:
                break
            text += piece
    finally:
        os.close(leader)
        if follower >= 0:
            os.close(follower)
    assert b"\x1b[3" in text and text.count(b"\x1b[0m") == text.count(b"\x1b[3")
    assert b"first wall" in text.splitlines()[-1]


# Hosts that refuse and hide

def test_refused_io_uring_is_exit_69(seccomp_deny):
    """The cause and the cure are those that the server gives, and the rest of the table is there."""
    told = run("--server.port=0", "--remote.port=0", wrapper=(seccomp_deny,))
    assert told.returncode == 69
    cause = told.stderr.strip().removeprefix("ringspun: ")
    done = doctor(codes=(69,), wrapper=(seccomp_deny,))
    assert joined(done.stdout).endswith(f"cannot run: {cause}")
    assert "file descriptors" in done.stdout
    facts = report(codes=(69,), wrapper=(seccomp_deny,))
    assert facts["summary"] == f"cannot run: {cause}"
    assert facts["by_id"]["io_uring"]["why"] == cause
    assert facts["by_id"]["io_uring"]["facts"]["seccomp"] == "filter"
    assert facts["by_id"]["io_uring"]["lift"].startswith("docker run --security-opt")
    assert facts["firstWall"]["id"] == "descriptors"


@pytest.mark.parametrize("hidden", ["/proc/sys", "/sys/fs/cgroup", "/proc"])
def test_hidden_files_are_unknown(hidden):
    """A container that masks /proc/sys, /sys/fs/cgroup or all of /proc: a report, no crash, and no false number."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare, to hide them")
    if SANITIZED and hidden == "/proc":
        pytest.skip("a leak checker needs /proc")
    script = f'mount -t tmpfs none {hidden} && exec "$@"'
    wrapper = ("unshare", "-m", "sh", "-c", script, "sh")
    facts = report(wrapper=wrapper)
    if hidden.startswith("/proc"):
        assert facts["by_id"]["somaxconn"]["allows"] is None
        assert facts["by_id"]["somaxconn"]["grade"] == "unknown"
        assert facts["by_id"]["conntrack"]["allows"] is None
    if hidden in ("/proc", "/sys/fs/cgroup"):
        assert facts["by_id"]["cgroup_memory"]["allows"] is None
    assert facts["firstWall"] is not None
    assert "first wall" in doctor(wrapper=wrapper).stdout


def test_output_that_nobody_reads_is_exit_1():
    """/dev/full."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BINARY, "doctor"], stdout=full, env=environment(), cwd="/", timeout=10, check=False)
    assert done.returncode == 1
