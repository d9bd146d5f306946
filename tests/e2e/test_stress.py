# SPDX-License-Identifier: Apache-2.0
"""bench/stress, quickly: it fills its table, nothing fails, and leaves no server behind."""
import json
import pathlib
import subprocess

import pytest

import server as server_module
from server import ROOT

RESULTS = ROOT / "bench" / "results"


@pytest.mark.figures
def test_the_stress_test_fills_its_table():
    if server_module.BINARY != ROOT / "build" / "ringspun":
        pytest.skip("the script measures build/ringspun")
    made = [RESULTS / f"test-{kind}" for kind in ("stress.md", "stress.json")]
    try:
        done = subprocess.run([ROOT / "bench" / "stress", "--quick", "--only", "contention", "--name", "test-stress"],
                              capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout + done.stderr
        for row in ("throughput, recent", "response time, average", "response time, 99.999 %", "errors"):
            assert f"| {row} |" in done.stdout
        reports = json.loads((RESULTS / "test-stress.json").read_text("utf-8"))["extreme contention"]
        assert {policy: [run["complete"] for run in runs] for policy, runs in reports.items()} == \
            {"fibers": [20_000], "platform threads": [20_000]}
    finally:
        for one in map(pathlib.Path, made):
            one.unlink(missing_ok=True)
