# SPDX-License-Identifier: Apache-2.0
"""docker/seccomp.json as a filter of our own, for a run without Docker in which a refused call cannot go unnoticed.

Docker answers a call that the profile does not allow with EPERM, which a program may well swallow. Here it ends the
process by SIGSYS. Rules with conditions and rules that answer with an errno of their own (clone3) are as in Docker.
"""
import functools
import json
import pathlib
import platform
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
PROFILE = HERE.parents[1] / "docker" / "seccomp.json"
ARCHITECTURES = {"x86_64": ("SCMP_ARCH_X86_64", 0xC000003E), "aarch64": ("SCMP_ARCH_AARCH64", 0xC00000B7)}

# linux/bpf_common.h, linux/filter.h, linux/seccomp.h
LOAD, AND, IF_EQUAL, RETURN = 0x20, 0x54, 0x15, 0x06
ALLOW, ERRNO, KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data


def reason_against():
    """Why this machine cannot run it, or None."""
    return None if platform.machine() in ARCHITECTURES else f"the profile knows no {platform.machine()}"


@functools.cache
def numbers():
    """Name -> number of each system call that the compiler's headers have."""
    text = subprocess.run(["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"], check=True,
                          capture_output=True, text=True, timeout=30).stdout
    macros = dict(re.findall(r"^#define (__NR\w+) (\w+)$", text, re.M))

    def value(text):
        while text in macros:
            text = macros[text]
        return int(text) if text.isdigit() else None
    found = {name.removeprefix("__NR_"): value(text) for name, text in macros.items() if name.startswith("__NR_")}
    return {name: number for name, number in found.items() if number is not None}


def half(argument, offset, mask, value):
    """Instructions that go on if these 32 bits are as they should be, and (by None) past the rule if not."""
    code = [(LOAD, 0, 0, ARGUMENTS + 8 * argument + offset)]
    if mask != 0xFFFFFFFF:
        code.append((AND, 0, 0, mask))
    return [*code, (IF_EQUAL, 0, None, value)]


def conditions(rule):
    code = []
    for one in rule.get("args", []):
        mask, value = {"SCMP_CMP_EQ": (2 ** 64 - 1, one["value"]),
                       "SCMP_CMP_MASKED_EQ": (one["value"], one["valueTwo"])}[one["op"]]
        for offset, shift in ((0, 0), (4, 32)):
            code += half(one["index"], offset, mask >> shift & 0xFFFFFFFF, value >> shift & 0xFFFFFFFF)
    return code


def filter_of(profile):
    """The profile's filter as a list of (code, jump if true, jump if false, constant)."""
    name, audit = ARCHITECTURES[platform.machine()]
    assert name in [one["architecture"] for one in profile["archMap"]]
    code = [(LOAD, 0, 0, ARCHITECTURE), (IF_EQUAL, 1, 0, audit), (RETURN, 0, 0, KILL_PROCESS), (LOAD, 0, 0, NUMBER)]
    for rule in profile["syscalls"]:
        action = {"SCMP_ACT_ALLOW": ALLOW, "SCMP_ACT_ERRNO": ERRNO | rule.get("errnoRet", 1)}[rule["action"]]
        body = [*conditions(rule), (RETURN, 0, 0, action)]
        if len(body) > 1:
            body.append((LOAD, 0, 0, NUMBER))  # where a condition did not hold
        body = [(what, true, len(body) - 2 - at if false is None else false, constant)
                for at, (what, true, false, constant) in enumerate(body)]
        for call in rule["names"]:
            if call in numbers():  # each processor lacks some
                code += [(IF_EQUAL, 0, len(body), numbers()[call]), *body]
    return [*code, (RETURN, 0, 0, KILL_PROCESS)]


def build(directory, profile=None):
    """Compile a launcher for the shipped profile (or another) into the directory; its path."""
    profile = profile or json.loads(PROFILE.read_text("utf-8"))
    rules = pathlib.Path(directory) / "filter.h"
    rules.write_text("".join(f"{{{', '.join(map(str, one))}u}},\n" for one in filter_of(profile)), "ascii")
    program = pathlib.Path(directory) / "seccomp_run"
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", f'-DFILTER_FILE="{rules}"', "-o", program,
                    HERE / "seccomp_run.c"], check=True, timeout=60)
    return str(program)
