# SPDX-License-Identifier: Apache-2.0
"""make install and uninstall, the units, the manual and the completion. Nothing is built or fetched here."""
import configparser
import os
import re
import shlex
import shutil
import subprocess

import pytest

import server
from server import BINARY, ROOT

# -o all: what is there is installed, whatever is newer.
MAKE = ["make", "-C", str(ROOT), "-s", "-o", "all", f"B={BINARY.parent}"]


def make(target, destination, *variables):
    done = subprocess.run([*MAKE, target, f"DESTDIR={destination}", *variables], capture_output=True, text=True,
                          env=server.environment(), timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def installed(destination):
    return {str(path.relative_to(destination)) for path in destination.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("prefix, units, sysctl", [
    ("/usr/local", "usr/local/lib/systemd/system", "usr/local/lib/sysctl.d"),
    ("/usr", "usr/lib/systemd/system", "usr/lib/sysctl.d"),
    ("/opt/ringspun", "etc/systemd/system", "etc/sysctl.d")])
def test_install_and_uninstall_leave_nothing(tmp_path, prefix, units, sysctl):
    """Every file where systemd, sysctl, man and bash look for it; all of them and their directories go again."""
    make("install", tmp_path, f"PREFIX={prefix}")
    below = prefix.lstrip("/")
    assert installed(tmp_path) == {
        f"{below}/bin/ringspun", f"{below}/bin/ringload", f"{below}/share/man/man1/ringload.1", f"{units}/ringspun.service", f"{units}/ringspun@.service",
        f"{units}/ringspun.socket", f"{sysctl}/90-ringspun.conf", f"{below}/share/man/man8/ringspun.8",
        f"{below}/share/bash-completion/completions/ringspun"}
    program = tmp_path / below / "bin/ringspun"
    assert program.read_bytes() == BINARY.read_bytes()
    assert program.stat().st_mode & 0o777 == 0o755
    for name in ("ringspun.service", "ringspun@.service"):
        unit = (tmp_path / units / name).read_text()
        assert re.search(rf"^ExecStart={prefix}/bin/ringspun\b", unit, re.M)
        assert "@bindir@" not in unit
        assert (tmp_path / units / name).stat().st_mode & 0o777 == 0o644
    make("uninstall", tmp_path, f"PREFIX={prefix}")
    assert list(tmp_path.iterdir()) == []


def test_uninstall_leaves_what_is_others(tmp_path):
    """A neighbour's unit and its directory stay."""
    make("install", tmp_path)
    other = tmp_path / "usr/local/lib/systemd/system/other.service"
    other.write_text("[Unit]\n")
    make("uninstall", tmp_path)
    assert installed(tmp_path) == {"usr/local/lib/systemd/system/other.service"}


def service(name):
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters="=")
    parser.optionxform = str
    parser.read(ROOT / "systemd" / name)
    return parser


def test_the_instance_unit_is_as_hardened_as_the_service():
    """All of [Service] is the same but for the command."""
    def lines(name):
        text = (ROOT / "systemd" / name).read_text().split("[Service]")[1]
        return [line for line in text.splitlines() if line and not line.startswith(("#", "ExecStart="))]
    assert lines("ringspun.service") == lines("ringspun@.service")


def test_systemd_waits_longer_than_the_drain():
    """TimeoutStopSec against the default of the shutdown phase."""
    phase = re.search(r"timeout-per-shutdown-phase = (\d+)s", server.run("--help").stdout).group(1)
    assert int(service("ringspun.service")["Service"]["TimeoutStopSec"].rstrip("s")) > int(phase) + 10


def test_the_socket_unit_has_the_default_ports():
    """8080 and 8085, as --help says."""
    ports = re.findall(r"^ListenStream=(\d+)$", (ROOT / "systemd/ringspun.socket").read_text(), re.M)
    defaults = re.findall(r"^  (?:server|remote)\.port = (\d+)$", server.run("--help").stdout, re.M)
    assert ports == defaults


def keys_of_help():
    keys = re.findall(r"^  ([a-z][a-z0-9-]*\.[a-z0-9.-]+) [=(]", server.run("--help").stdout, re.M)
    assert len(keys) > 20
    return keys


def test_every_key_stands_in_the_manual():
    """And every command and exit status."""
    manual = (ROOT / "docs/ringspun.8").read_text().replace("\\-", "-")
    missing = [key for key in keys_of_help() if not re.search(rf"(?<![\w.-]){re.escape(key)}(?![\w.-])", manual)]
    assert missing == []
    commands = re.findall(r"^  ringspun ([a-z]+)", server.run("--help").stdout, re.M)
    assert [command for command in commands if f".B {command}\n" not in manual] == []
    for status in (0, 1, 2, 69, 78):
        assert f".TP\n.B {status}\n" in manual


def test_the_manual_is_well_formed():
    """groff has nothing to say."""
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", str(ROOT / "docs/ringspun.8")], capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "RINGSPUN(8)" in done.stdout


def complete(line):
    """What bash offers at the end of the line."""
    words = line.split(" ")
    script = f"""
        source {shlex.quote(str(ROOT / 'docs/ringspun.bash-completion'))}
        COMP_WORDS=({' '.join(shlex.quote(word) for word in words)})
        COMP_CWORD={len(words) - 1} COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}
        _ringspun
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    env = server.environment({"PATH": f"{BINARY.parent}:{os.environ['PATH']}"})
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=env, check=False)
    assert done.stderr == "", done.stderr
    return done.stdout.split()


def test_completion_offers_what_help_tells():
    """Every key, the options, values where there is a choice, and every command."""
    offered = complete("ringspun --")
    assert {f"--{key}=" for key in keys_of_help()} <= set(offered)
    assert {"--help", "--version"} <= set(offered)
    assert complete("ringspun --server.p") == ["--server.port="]
    assert complete("ringspun --server.shutdown=") == ["graceful", "immediate"]
    assert complete("ringspun --logging.level.root=W") == ["WARN"]
    assert complete("ringspun --spring.threads.virtual.enabled=") == ["true", "false"]
    assert complete("ringspun --server.port=") == []
    assert complete("ringspun ") == re.findall(r"^  ringspun ([a-z]+)", server.run("--help").stdout, re.M)
