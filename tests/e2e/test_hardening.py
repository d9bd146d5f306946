# SPDX-License-Identifier: Apache-2.0
"""What the linker and the compiler made of the programs, read by readelf, and what is mapped while the server runs.

Each fault is also made once, in a small program that is built with it: a reader that sees none could not fail.
"""
import os
import pathlib
import re
import subprocess
import sys

import pytest

from server import BINARY, ROOT, SANITIZED

LOAD = pathlib.Path(os.environ.get("RINGLOAD_BINARY", ROOT / "build" / "ringload")).resolve()
PROGRAMS = [pytest.param(BINARY, id="ringspun"), pytest.param(LOAD, id="ringload")]

# As the Makefile builds.
COMPILE = ["-O2", "-fPIE", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]
LINK = ["-pie", "-Wl,-z,relro,-z,now,-z,noexecstack"]
SOURCE = """
#include <stdio.h>
#include <string.h>
#ifdef BOTH
__asm__(".pushsection .both, \\"awx\\", %progbits; .byte 0; .popsection");
#endif
int number;
int *const pointer = &number;
int main(int argc, char **argv)
{
    char text[64], copy[64];
    snprintf(text, (size_t)argc, "%s", argv[0]);
    strcpy(copy, argv[argc - 1]);
    return puts(text) + puts(copy) + *pointer;
}
"""


def readelf(path, *options):
    done = subprocess.run(["readelf", "-W", *options, str(path)], env={**os.environ, "LC_ALL": "C"},
                          capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def segments(path):
    """(type, flags) of each program header; "R E" is an executable one."""
    return re.findall(r"^  ([A-Z_]+) +0x\w+ 0x\w+ 0x\w+ 0x\w+ 0x\w+ ([R ][W ][E ])", readelf(path, "-l"), re.M)


def faults(path):
    """What is not as it should be, in words."""
    found = set()
    header = readelf(path, "-h")
    dynamic = dict(re.findall(r"^ 0x\w+ \((\w+)\) +(.*)$", readelf(path, "-d"), re.M))
    parts = segments(path)
    imports = re.findall(r" UND (\w+)", readelf(path, "--dyn-syms"))
    assert any(kind == "LOAD" and "E" in flags for kind, flags in parts), parts  # the reader reads

    if not re.search(r"Type: +DYN ", header) or "PIE" not in dynamic.get("FLAGS_1", ""):
        found.add("not position independent")
    if not any(kind == "GNU_RELRO" for kind, _ in parts):
        found.add("no relro")
    if "BIND_NOW" not in dynamic.get("FLAGS", "") and "NOW" not in dynamic.get("FLAGS_1", "").split():
        found.add("bound lazily")
    if not any(kind == "GNU_STACK" for kind, _ in parts) or \
            any(kind == "GNU_STACK" and "E" in flags for kind, flags in parts):
        found.add("executable stack")
    if any("W" in flags and "E" in flags for kind, flags in parts if kind == "LOAD"):
        found.add("segment to write and to execute")
    if "TEXTREL" in dynamic or "TEXTREL" in dynamic.get("FLAGS", ""):
        found.add("text relocations")
    if "RPATH" in dynamic or "RUNPATH" in dynamic:
        found.add("library path")
    if "__stack_chk_fail" not in imports:
        found.add("no stack protector")
    if not any(re.fullmatch(r"__\w+_chk", name) for name in imports):
        found.add("not fortified")
    return found


def flags_of_units(path):
    """What GCC noted of its command line, once for each C file that it compiled."""
    return re.findall(r"DW_AT_producer\b.*?(GNU C\d.*)", readelf(path, "--debug-dump=info"))


def forbidden_mappings(pid):
    """Lines of /proc/PID/maps that can be written and executed."""
    lines = pathlib.Path(f"/proc/{pid}/maps").read_text("utf-8", "replace").splitlines()
    assert any(line.split()[1] == "r-xp" for line in lines), lines
    return [line for line in lines if re.fullmatch(r".wx.", line.split()[1])]


@pytest.mark.parametrize("path", PROGRAMS)
def test_the_programs_have_none_of_the_faults(path):
    """A sanitizer replaces what is fortified."""
    assert faults(path) == ({"not fortified"} if SANITIZED else set())


@pytest.mark.parametrize("path", PROGRAMS)
def test_each_file_was_compiled_with_guards_on_the_stack(path):
    """One file without them would not show in the imports: each has its own note."""
    units = flags_of_units(path)
    if not units:
        pytest.skip("not built by gcc with -g, which notes its flags")
    assert len(units) > 20
    for flag in ("-fstack-protector-strong", "-fstack-clash-protection", "-fPIE"):
        assert [unit for unit in units if flag not in unit.split()] == [], flag


@pytest.mark.parametrize("args", [[], ["--spring.threads.virtual.enabled=false"]], ids=["fibers", "pool"])
def test_nothing_that_is_mapped_can_be_written_and_executed(start, args):
    """Stacks of fibers and threads, buffers and libraries, after they have been used."""
    server = start(*args)
    for path in ("/blocking/0", "/product/1", "/currentThread"):
        assert server.get(path, timeout=30).status == 200
    assert forbidden_mappings(server.pid) == []


# ---------------------------------------------------------------- that the readers see each fault

def build(directory, compile_flags=(), link_flags=()):
    source = directory / "small.c"
    source.write_text(SOURCE, "ascii")
    # with -g, as the first flags that are found; the last of two that differ counts
    subprocess.run(["cc", "-g", *COMPILE, *compile_flags, "-c", source, "-o", directory / "small.o"], check=True,
                   timeout=60, capture_output=True)
    subprocess.run(["cc", *LINK, *link_flags, directory / "small.o", "-o", directory / "small"], check=True,
                   timeout=60, capture_output=True)
    return directory / "small"


def test_a_program_built_as_ours_has_no_fault(tmp_path):
    assert faults(build(tmp_path)) == set()


@pytest.mark.parametrize("fault, compile_flags, link_flags", [
    ("not position independent", [], ["-no-pie"]),
    ("no relro", [], ["-Wl,-z,norelro"]),
    ("bound lazily", [], ["-Wl,-z,lazy"]),
    ("executable stack", [], ["-Wl,-z,execstack"]),
    ("segment to write and to execute", ["-DBOTH"], []),
    ("text relocations", ["-fno-pie", "-mcmodel=large"], ["-Wl,-z,notext"]),
    ("library path", [], ["-Wl,-rpath,/nowhere"]),
    ("no stack protector", ["-fno-stack-protector"], []),
    ("not fortified", ["-U_FORTIFY_SOURCE"], []),
])
def test_each_fault_is_seen_where_it_is_made(tmp_path, fault, compile_flags, link_flags):
    assert fault in faults(build(tmp_path, compile_flags, link_flags))


def test_a_file_without_guards_is_seen(tmp_path):
    units = flags_of_units(build(tmp_path))
    if not units:
        pytest.skip("cc is not gcc, which notes its flags")
    assert "-fstack-protector-strong" in units[0].split()
    assert "-fstack-clash-protection" not in units[0].split()


def test_a_mapping_to_write_and_to_execute_is_seen():
    text = "import mmap; m = mmap.mmap(-1, 4096, prot=7); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert len(forbidden_mappings(process.pid)) == 1
        process.communicate(b"\n", timeout=10)
