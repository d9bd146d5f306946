# SPDX-License-Identifier: Apache-2.0
"""systemd for real: install, start, stop, restart, watchdog and hardening on a freshly booted machine.

The machine is given by a program that is called as `vm-run --timeout SECONDS DIRECTORY SCRIPT`, boots a Debian with
systemd as PID 1, copies the directory into it, runs the script there as root and shows its output; RINGSPUN_VM_RUN names
it, or it stands on the PATH. One boot serves all tests: systemd_guest.sh goes through its steps, each test looks
at one of them.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("RINGSPUN_BINARY", ROOT / "build" / "ringspun"))
GUEST = ROOT / "tests" / "deploy" / "systemd_guest.sh"
SECONDS_MAX = 900  # of a machine that may be emulated, 20 times slower than this one

STEPS = re.search(r"^steps=\((.*?)\)", GUEST.read_text(), re.M | re.S).group(1).split()


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """What each step wrote, and whether it was fine: {step: (ok, text)}."""
    tool = os.environ.get("RINGSPUN_VM_RUN") or shutil.which("vm-run")
    if not tool or not os.access(tool, os.X_OK):
        pytest.skip("no machine with systemd: RINGSPUN_VM_RUN names no program that boots one, nor is there a vm-run")
    if not BINARY.exists():
        pytest.fail(f"{BINARY} is not there: make")
    there = tmp_path_factory.mktemp("machine")
    for name in ("src", "systemd", "docs"):
        shutil.copytree(ROOT / name, there / name)
    (there / "build").mkdir()
    (there / "tests" / "deploy").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", there)
    for program in (BINARY, BINARY.with_name("ringload")):
        shutil.copy(program, there / "build")
    shutil.copy(GUEST, there / "tests" / "deploy")
    done = subprocess.run([tool, "--timeout", str(SECONDS_MAX), str(there), "tests/deploy/systemd_guest.sh"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
                          timeout=SECONDS_MAX + 300, check=False)
    print(done.stdout, done.stderr)
    steps, at = {}, 0
    for end in re.finditer(r"^step (\w+) (ok|failed).*\n", done.stdout, re.M):
        steps[end.group(1)] = (end.group(2) == "ok", done.stdout[at:end.end()])
        at = end.end()
    assert steps, f"the machine ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    steps["the rest"] = (done.returncode == 0, done.stdout[at:] + done.stderr)
    return steps


@pytest.mark.parametrize("step", STEPS)
def test_in_the_machine(machine, step):
    """The step of that name in systemd_guest.sh."""
    assert step in machine, f"the machine did not get so far\n{machine['the rest'][1]}"
    ok, text = machine[step]
    print(text)
    assert ok, text
