# SPDX-License-Identifier: Apache-2.0
"""System calls that fail now and then: a launcher that fails every nth of the chosen calls, while it is told to."""
import errno
import pathlib
import platform
import subprocess

import seccomp_profile

SOURCE = pathlib.Path(__file__).with_name("fault_run.c")


def reason_against():
    """Why this machine cannot do it, or None."""
    release = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])
    return None if release >= (5, 5) else "needs Linux 5.5"


class Faults:
    """faults = Faults(directory, "accept4=EMFILE/3"); start(wrapper=faults.wrapper); with faults: now they happen."""

    def __init__(self, directory, *chosen):
        self.switch = pathlib.Path(directory) / "faults-are-on"
        program = pathlib.Path(directory) / "fault_run"
        subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-o", program, SOURCE], check=True, timeout=60)
        numbers = []
        for one in chosen:
            call, _, rest = one.partition("=")
            error, _, nth = rest.partition("/")
            numbers.append(f"{seccomp_profile.numbers()[call]}:{getattr(errno, error)}:{nth or 1}")
        self.wrapper = (str(program), str(self.switch), ",".join(numbers))

    def __enter__(self):
        self.switch.touch()
        return self

    def __exit__(self, *_):
        self.switch.unlink()
