# SPDX-License-Identifier: Apache-2.0
"""docker/seccomp.json itself. That the server needs nothing else shows in all the other tests, which run under it."""
import copy
import json
import pathlib
import re
import signal
import subprocess

import pytest

import seccomp_profile
import server as server_module
from server import BINARY, SANITIZED, environment

README = seccomp_profile.PROFILE.parent / "README.md"
PROFILE = json.loads(seccomp_profile.PROFILE.read_text("utf-8"))
CALLS = sorted({name for rule in PROFILE["syscalls"] for name in rule["names"]})

REASON = seccomp_profile.reason_against()

pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


def launched(directory, profile, *command):
    launcher = seccomp_profile.build(directory, profile)
    return subprocess.run([launcher, *command], env=environment(), capture_output=True, text=True, timeout=10,
                          check=False, cwd=directory, stdin=subprocess.DEVNULL)


def without(*names, **changes):
    """The profile with some calls left out."""
    profile = copy.deepcopy(PROFILE)
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name not in names]
    return {**profile, **changes}


def test_all_is_refused_but_what_is_listed():
    """An errno is the default; both processors; no call in two groups without a condition; not much."""
    assert PROFILE["defaultAction"] == "SCMP_ACT_ERRNO"
    assert [one["architecture"] for one in PROFILE["archMap"]] == ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"]
    assert all(one["subArchitectures"] == [] for one in PROFILE["archMap"])
    plain = [name for rule in PROFILE["syscalls"] if "args" not in rule for name in rule["names"]]
    assert len(plain) == len(set(plain))
    for rule in PROFILE["syscalls"]:
        assert rule["action"] == "SCMP_ACT_ALLOW" or rule["errnoRet"] == 38, rule
        assert rule["comment"]
    assert len(CALLS) < 95


@pytest.mark.parametrize("name", ["ptrace", "mount", "unshare", "setns", "bpf", "keyctl", "perf_event_open",
                                  "kexec_load", "init_module", "chmod", "unlink", "unlinkat", "mkdir", "mkdirat",
                                  "rename", "kill", "fork", "vfork", "process_vm_readv", "userfaultfd",
                                  "open_by_handle_at", "chroot"])
def test_what_an_intruder_would_like_is_not_listed(name):
    """Nor anything else that neither the server nor runc needs."""
    assert name not in CALLS


def test_every_call_has_its_reason_in_the_readme():
    """docker/README.md names each call, and none that is not in the profile."""
    told = set(re.findall(r"`(\w+)`", README.read_text("utf-8").split("## The seccomp profile")[1].split("\n## ")[0]))
    assert set(CALLS) - told == set()
    assert {name for name in told if name in seccomp_profile.numbers()} - set(CALLS) == set()


def test_a_call_that_is_not_listed_ends_the_process(tmp_path):
    """The launcher of these tests lets no refusal pass."""
    assert launched(tmp_path, PROFILE, "/bin/mkdir", "new").returncode == -signal.SIGSYS
    assert not (tmp_path / "new").exists()


def test_threads_are_allowed_and_namespaces_are_not(tmp_path):
    """The conditions on clone and socket hold; clone3 is told ENOSYS."""
    program = tmp_path / "conditions"
    source = pathlib.Path(__file__).with_name("seccomp_conditions.c")
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-pthread", "-o", program, source], check=True, timeout=60)
    allowed = ("thread", "socket-inet", "socket-inet6", "socket-unix", "clone3")
    for what in allowed:
        done = launched(tmp_path, PROFILE, str(program), what)
        assert (done.returncode, done.stdout) == (0, f"{what}: as it should be\n"), (what, done)
    for what in ("socket-packet", "socket-vsock", "socketpair-inet", "clone-user", "clone-net", "ioctl"):
        assert launched(tmp_path, PROFILE, str(program), what).returncode == -signal.SIGSYS, what


@pytest.mark.parametrize("name", ["io_uring_setup", "io_uring_enter", "io_uring_register", "madvise", "signalfd4",
                                  "accept4"])
def test_a_profile_that_lacks_a_call_is_noticed(tmp_path, name):
    """Each of these the server makes at every start."""
    if SANITIZED:
        pytest.skip("sanitizers make calls of their own")
    launcher = seccomp_profile.build(tmp_path, without(name))
    process = subprocess.Popen([launcher, str(BINARY), "--server.port=0", "--remote.port=0"], env=environment(),
                               cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        assert process.wait(10) == -signal.SIGSYS
    finally:
        process.kill()
        process.wait()


def test_the_servers_of_this_run_are_confined(server):
    """Seccomp mode 2 and no_new_privs, as /proc tells; skipped where the run goes without."""
    if not server_module.confinement:
        pytest.skip("RINGSPUN_SECCOMP is not set, or this build makes calls of its own")
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text("ascii")
    assert re.search(r"^Seccomp:\s+2$", status, re.M), status
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.M), status
