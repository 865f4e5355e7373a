"""Shared libraries linked without a linker: they load, run, hold what a C compiler's hold, and no page is written and run."""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import tir
from codegen.elf.library import shared_library
from codegen.elf.relocations import ARCHITECTURES
from codegen.llvm.compile import machine, object_code
from tir.errors import BuildError
from tir.script import parse

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
compiles = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries of ELF are those of Linux")

MATMUL = """
@T.prim_func
def {0}(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i in T.parallel(64):
        for j in range(64):
            C[i, j] = T.float32(0)
            for k in range(64):
                C[i, j] = C[i, j] + A[i, k] * B[k, j]
"""
MIXED = """
@T.prim_func
def mixed(A: T.Buffer((64,), "float64"), H: T.Buffer((64,), "float16"), n: T.int32) -> T.int32:
    W = T.alloc_buffer((20000,), "float64")
    for i in T.parallel(64):
        W[i] = T.pow(A[i], T.float64(1.5)) + T.call_extern("float64", "hypot", A[i], T.float64(3))
    for i in range(64):
        A[i] = W[i] + T.float64(12 // n)
        H[i] = T.Cast("float16", W[i]) + H[i]
    return 7 // n
"""
CALLER = r"""
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
static float a[64 * 64], b[64 * 64], c[64 * 64];
typedef int32_t (*function)(float *, float *, float *);
int main(int count, char **paths) {
    for (int i = 0; i < 64; ++i) for (int j = 0; j < 64; ++j) a[64 * i + j] = i + j, b[64 * i + j] = 2 * (i == j);
    for (int k = 1; k < count; ++k) {
        void *library = dlopen(paths[k], RTLD_NOW | RTLD_GLOBAL);
        if (!library) return puts(dlerror()), 1;
        c[64 * 63 + 62] = 0;
        int32_t code = ((function)dlsym(library, "matmul"))(a, b, c);
        DIR *tasks = opendir("/proc/self/task");
        int threads = -2;
        while (readdir(tasks)) ++threads;
        printf("%d %g on %d; ", code, c[64 * 63 + 62], threads);
    }
}
"""


@compiles
def test_matmuls_saved_with_an_empty_path_run_in_one_program_on_the_threads_that_they_ask_for(tmp_path, monkeypatch):
    """The second has the same names as the first, and twice its products."""
    probe = [COMPILER, "-fopenmp", "-x", "c", "-", "-o", "/dev/null"]
    if subprocess.run(probe, input=b"int main(){}", capture_output=True).returncode:
        pytest.skip("there is no OpenMP")
    (tmp_path / "program.c").write_text(CALLER)
    command = [COMPILER, "-Wall", "-Werror", "program.c", "-ldl", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    for folder, threads, text in [("1", "serial", MATMUL), ("2", "openmp", MATMUL.replace("A[i, k]", "2 * A[i, k]"))]:
        (tmp_path / folder).mkdir()
        tir.build(parse(text.format("matmul"))).save(tmp_path / folder / "kernels.so", threads=threads)
    paths = [tmp_path / folder / "kernels.so" for folder in ("1", "2", "1")]
    done = subprocess.run([tmp_path / "program", *paths], capture_output=True, text=True)
    assert done.stdout == "0 250 on 1; 0 500 on 3; 0 250 on 3; ", done.stderr


TARGETS = ["llvm", "llvm -mtriple=x86_64-linux-gnu", "llvm -mtriple=aarch64-linux-gnu"]
THREADS = ["linked", "openmp", "serial", "pool"]


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("threads", THREADS)
def test_tools_read_a_library_and_no_page_of_it_is_both_written_and_run(tmp_path, target, threads):
    path = tmp_path / "mixed.so"
    tir.build(parse(MIXED), target=target).save(path, threads=threads)
    done = subprocess.run(["readelf", "-aW", path], capture_output=True, text=True, check=True)
    assert done.stderr == "" and "arning" not in done.stdout
    loaded = re.findall(r"^  LOAD .*0x\w+ +(.*) 0x\w+$", done.stdout, re.M)
    assert loaded == ["R  ", "R E", "RW ", "RW "]
    assert re.search(r"^  GNU_STACK .* RW +0x", done.stdout, re.M) and "GNU_RELRO" in done.stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout))
    optional = needed - {"libc.so.6", "libm.so.6"}
    assert optional <= {"libgomp.so.1", "libgcc_s.so.1"} and ("libgomp.so.1" in optional) == (threads == "openmp")
    assert ("libgcc_s.so.1" in optional) <= (target == TARGETS[1])


@compiles
@pytest.mark.parametrize("threads", THREADS)
def test_a_library_exports_what_one_linked_by_a_compiler_does(tmp_path, threads):
    if shutil.which("nm") is None:
        pytest.skip("no nm")
    module = tir.build(parse(MIXED))
    module.save(tmp_path / "mixed.o", threads=threads)
    module.save(tmp_path / "mixed.so", threads=threads)
    subprocess.run([COMPILER, "-shared", "mixed.o", "-lm", "-fopenmp", "-o", "cc.so"], cwd=tmp_path, check=True)

    def exported(name: str) -> set[str]:
        command = ["nm", "-D", "--defined-only", name]
        lines = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
        return {" ".join(line.split()[1:]) for line in lines}

    assert exported("mixed.so") == exported("cc.so") != set()


@pytest.mark.parametrize("target", TARGETS[:2])
def test_a_library_computes_what_the_module_does(tmp_path, target):
    if platform.machine() != "x86_64" and "x86" in target:
        pytest.skip("another architecture")
    module = tir.build(parse(MIXED), target=target)
    module.save(tmp_path / "mixed.so")
    results = []
    for run in (module, tir.load(tmp_path / "mixed.so")):
        a, h = np.linspace(0, 4, 64), np.ones(64, "float16")
        assert run(a, h, 3) == 2
        results.append((a, h))
        with pytest.raises(tir.RunError, match="division by zero"):
            run(a.copy(), h.copy(), 0)
    np.testing.assert_array_equal(results[0], results[1])


USES = """
declare i32 @abs(i32)
declare extern_weak i32 @nobody_has_this(i32)
@own = constant ptr @abs
@table = global [2 x ptr] [ptr @value, ptr getelementptr (i8, ptr @value, i64 4)]
@value = hidden global [2 x i32] [i32 7, i32 8]
@big = global [70000 x i32] zeroinitializer, align 4096
define i32 @f(i32 %k) nounwind {
  %missing = icmp eq ptr @nobody_has_this, null
  %there = load ptr, ptr @own
  %a = call i32 %there(i32 %k)
  %b = call i32 @abs(i32 %k)
  %second = getelementptr ptr, ptr @table, i64 1
  %p = load volatile ptr, ptr %second
  %c = load i32, ptr %p
  %last = getelementptr i32, ptr @big, i64 69999
  store volatile i32 %k, ptr %last
  %d = load volatile i32, ptr %last
  %m = zext i1 %missing to i32
  %ab = mul i32 %a, %b
  %abc = add i32 %ab, %c
  %abcd = add i32 %abc, %d
  %all = add i32 %abcd, %m
  ret i32 %all
}
"""


def test_addresses_in_data_and_functions_of_other_libraries_are_found_when_it_is_loaded(tmp_path):
    path = tmp_path / "uses.so"
    path.write_bytes(shared_library(object_code(USES, machine())))
    library = ctypes.CDLL(str(path))
    assert library.f(-5) == 25 + 8 - 5 + 1
    assert not hasattr(library, "value") and hasattr(library, "table")


def test_what_is_not_linked_is_refused():
    with pytest.raises(BuildError, match="not a relocatable object"):
        shared_library(bytes(64))
    local = "@t = thread_local global i32 1\ndefine i32 @f() { %v = load i32, ptr @t ret i32 %v }"
    with pytest.raises(BuildError, match=r"thread-local variables are not linked here; save to a \.o"):
        shared_library(object_code(local, machine()))


@pytest.mark.parametrize(
    ("type_", "word", "value", "place", "result"),
    [
        (275, 0x90000000, 0x12345678, 0x1000, 0x90091A20),  # adrp x0: 0x12344 pages on
        (275, 0x90000001, 0x0, 0x3FFC, 0xB0FFFFE1),  # adrp x1: 3 pages back
        (277, 0x91000000, 0x12345678, 0, 0x9119E000),  # add x0, x0, #0x678
        (286, 0xF9400000, 0x12345678, 0, 0xF9433C00),  # ldr x0, [x0, #0x678]
        (299, 0x3DC00000, 0x12345670, 0, 0x3DC19C00),  # ldr q0, [x0, #0x670]
        (278, 0x39400000, 0x12345678, 0, 0x3959E000),  # ldrb w0, [x0, #0x678]
        (283, 0x94000000, 0x2000, 0x1000, 0x94000400),  # bl 0x1000 bytes on
        (282, 0x14000000, 0x1000, 0x2000, 0x17FFFC00),  # b 0x1000 bytes back
        (312, 0xF9400000, 0x12345678, 0, 0xF9433C00),
        (261, 0, 0x1000, 0x2000, 0xFFFFF000),
    ],
)
def test_addresses_in_instructions_of_aarch64(type_, word, value, place, result):
    data = bytearray(word.to_bytes(4, "little"))
    ARCHITECTURES[183].write(type_, data, 0, value, place)
    assert f"{int.from_bytes(data, 'little'):#x}" == f"{result:#x}"


def test_distances_that_do_not_fit_and_unknown_relocations_are_refused():
    with pytest.raises(BuildError, match="distance of 134217728 bytes exceeds 28 bits"):
        ARCHITECTURES[183].write(283, bytearray(4), 0, 1 << 27, 0)
    for number, on in ARCHITECTURES.items():
        with pytest.raises(BuildError, match="relocations of type 10 are not linked"):
            on.write(10, bytearray(8), 0, 1, 0)
        assert len(on.stub(0x1000, 0x2000)) % 8 == 0, number


def test_a_stub_of_aarch64_jumps_to_what_its_entry_holds():
    words = np.frombuffer(ARCHITECTURES[183].stub(0x1010, 0x20018), "<u4")
    assert [f"{w:08x}" for w in words] == ["f00000f0", "f9400e11", "d61f0220", "d503201f"]


@pytest.mark.parametrize("stem", ["k", "fifteen_letters", "a_name_of_more_letters"])
def test_an_archive_is_that_of_ar(tmp_path, stem, monkeypatch):
    """Its members, and its index of symbols; the same for the same program."""
    module = tir.build(parse(MIXED))
    module.save(tmp_path / f"{stem}.o")
    expected = tmp_path / "expected.a"
    if shutil.which("ar") is None:
        pytest.skip("no ar")
    subprocess.run(["ar", "rcsD", expected, tmp_path / f"{stem}.o"], check=True)
    monkeypatch.setenv("PATH", "")
    module.save(tmp_path / f"{stem}.a")
    assert (tmp_path / f"{stem}.a").read_bytes() == expected.read_bytes()
