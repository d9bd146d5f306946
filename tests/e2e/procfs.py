# SPDX-License-Identifier: Apache-2.0
"""What /proc tells about a process: descriptors, memory, processor time."""
import os
import re
import time


def fd_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1))


def minor_faults(pid):
    """Page faults of all its threads that read nothing from a disk."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return int(stat.read().rpartition(")")[2].split()[7])


def cpu_seconds(pid):
    """Time on a processor of all live threads, from the scheduler (nanoseconds, not ticks)."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as stat:
                total += int(stat.read().split()[0])
        except FileNotFoundError:
            pass  # the thread ended meanwhile
    return total / 1e9


class Others:
    """What the processors did for anybody but these processes, as a share of all their time since this was made."""

    def __init__(self, *pids):
        self.pids = pids
        self.since = time.monotonic()
        self.before = self._busy()

    def _busy(self):
        with open("/proc/stat", encoding="ascii") as stat:
            user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
        total = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
        return total - sum(cpu_seconds(pid) for pid in self.pids)

    def share(self):
        passed = time.monotonic() - self.since
        return (self._busy() - self.before) / (passed * os.cpu_count())
