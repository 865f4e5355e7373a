"""Code for another machine: saved here, refused here, and run there (by an emulator, where one is installed)."""

from __future__ import annotations

import pickle
import platform
import shutil
import subprocess

import numpy as np
import pytest

import tir
from tir.errors import BuildError, RunError
from tir.script import parse

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="these cases are of an x86-64 machine")
ARM = "llvm -mtriple=aarch64-linux-gnu"
AARCH64, X86_64 = 183, 62  # e_machine in an ELF header
LINKER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"

KERNEL = """
@T.prim_func
def kernel(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float16"), C: T.Buffer((64,), "int8"), n: T.int8):
    T.func_attr({"global_symbol": "kernel"})
    W = T.alloc_buffer((64, 40), "float32")
    for i, j in T.grid(64, 40):
        with T.block("W"):
            vi, vj = T.axis.remap("SS", [i, j])
            W[vi, vj] = T.exp(A[vi]) * T.float32(0.025)
    for i in T.parallel(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = T.float16(0)
            for j in range(40):
                B[vi] = B[vi] + T.Cast("float16", W[vi, j])
            C[vi] = (T.Cast("int8", vi) - T.int8(32)) // n
"""


def elf_machine(path) -> int:
    head = path.read_bytes()[:20]
    assert head[:4] == b"\x7fELF" and head[5] == 1
    return int.from_bytes(head[18:20], "little")


def arguments():
    return np.linspace(-1, 1, 64, dtype="float32"), np.zeros(64, "float16"), np.zeros(64, "int8")


def test_an_object_for_another_architecture_is_saved_and_neither_run_nor_loaded_here(tmp_path):
    mod = tir.build(parse(KERNEL), target=ARM)
    mod.save(tmp_path / "k.o", header=tmp_path / "k.h")
    assert elf_machine(tmp_path / "k.o") == AARCH64
    assert "kernel(const float *A" in (tmp_path / "k.h").read_text()
    with pytest.raises(RunError, match=r"kernel: compiled for aarch64-linux-gnu; this machine is x86_64.*save it"):
        mod(*arguments(), 3)
    with pytest.raises(RunError, match=r"k\.o: compiled for aarch64-linux-gnu; this machine is x86_64"):
        tir.load(tmp_path / "k.o")
    assert "aarch64" in mod.source("llvm") and "ret" in mod.source("asm")
    with pytest.raises(RunError, match="compiled for aarch64"):
        pickle.loads(pickle.dumps(mod))(*arguments(), 3)


def test_a_triple_of_this_architecture_means_any_cpu_of_it_and_runs(tmp_path):
    mod = tir.build(parse(KERNEL), target="llvm -mtriple=x86_64-linux-gnu")
    mod.save(tmp_path / "k.o")
    assert elf_machine(tmp_path / "k.o") == X86_64
    assert "zmm" not in mod.source("asm") and "ymm" not in mod.source("asm")
    a, b, c = arguments()
    tir.load(tmp_path / "k.o")(a, b, c, -5)
    np.testing.assert_array_equal(c, (np.arange(64) - 32) // -5)
    expected = arguments()
    tir.build(parse(KERNEL), target="interpreter")(*expected, -5)
    np.testing.assert_allclose(b, expected[1], rtol=2e-3)


def test_two_targets_in_one_process_do_not_share_objects(tmp_path):
    func = parse(KERNEL)
    for k, (target, machine) in enumerate([(ARM, AARCH64), ("llvm", X86_64), (ARM, AARCH64)]):
        tir.build(func, target=target).save(tmp_path / f"{k}.o")
        assert elf_machine(tmp_path / f"{k}.o") == machine


@pytest.mark.parametrize(
    "target,message",
    [
        ("-mtriple=riscv64-linux-gnu", "no code is generated for riscv64.*Linux on x86-64 or aarch64"),
        ("-mtriple=armv7-linux-gnueabihf", "no code is generated for armv7"),
        ("-mtriple=arm64-apple-darwin", "no code is generated for arm64-apple-darwin"),
        ("-mtriple=x86_64-linux-gnux32", "no code is generated for x86_64-linux-gnux32"),
        ("-mtriple=nonsense", "LLVM knows no target triple 'nonsense'"),
        ("-mtriple=aarch64-linux-gnu -mcpu=native", "-mcpu=native is this machine's CPU"),
        ("-mtriple=aarch64-linux-gnu -mcpu=cortex-a77x", "LLVM knows no processor.*cortex-a77"),
        ("-mtriple=aarch64-linux-gnu -mattr=+avx2", "LLVM knows no feature of a processor 'avx2'"),
    ],
)
def test_what_cannot_be_compiled_for_is_refused(target, message):
    with pytest.raises(BuildError, match=message):
        tir.build(parse(KERNEL), target=f"llvm {target}")


def test_an_instruction_of_another_architecture_is_an_error_and_does_not_end_the_process():
    text = """
@T.prim_func
def f(A: T.Buffer((4,), "int32")):
    A[0] = T.call_llvm_pure_intrin("int32", "{0}", T.uint32(1), A[1])
"""
    with pytest.raises(
        BuildError, match="llvm.x86.sse42.crc32.32.32 is an instruction of x86, and the code is for aarch"
    ):
        tir.build(parse(text.format("llvm.x86.sse42.crc32.32.32")), target=ARM)
    with pytest.raises(
        BuildError, match="llvm.aarch64.crc32w is an instruction of aarch64, and the code is for x86_64"
    ):
        tir.build(parse(text.format("llvm.aarch64.crc32w")), target="llvm -mtriple=x86_64-linux-gnu")


def test_a_shared_library_for_another_architecture_needs_no_cross_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    tir.build(parse(KERNEL), target=ARM).save(tmp_path / "k.so")
    assert elf_machine(tmp_path / "k.so") == AARCH64
    with pytest.raises(RunError, match=r"k\.so: compiled for aarch64-linux-gnu; this machine is x86_64"):
        tir.load(tmp_path / "k.so")


MAIN = """
#include <stdio.h>
#include "k.h"
int main(void) {
  static float A[64]; static uint16_t B[64]; static int8_t C[64];
  for (int i = 0; i < 64; ++i) A[i] = -1 + i * (2.0f / 63);
  int code = kernel(A, B, C, 7);
  for (int i = 0; i < 64; ++i) printf("%d %d\\n", B[i], C[i]);
  code |= kernel(A, B, C, 0) << 8;
  printf("%s\\n", k_error(code >> 8));
  return code & 255;
}
"""


@pytest.mark.skipif(not (shutil.which(LINKER) and shutil.which(EMULATOR)), reason=f"no {LINKER} and {EMULATOR}")
def test_the_object_computes_the_same_on_the_other_architecture(tmp_path):
    func = parse(KERNEL)
    tir.build(func, target=ARM).save(tmp_path / "k.o", header=tmp_path / "k.h")
    (tmp_path / "main.c").write_text(MAIN)
    command = [LINKER, "-static", "main.c", "k.o", "-lm", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    out = subprocess.run([EMULATOR, "program"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    *rows, error = out.splitlines()
    bits, c = np.array([row.split() for row in rows], "int64").T
    a, b, expected = arguments()
    tir.build(func, target="interpreter")(a, b, expected, 7)
    np.testing.assert_array_equal(c, expected)
    np.testing.assert_allclose(bits.astype("uint16").view("float16"), b, rtol=2e-3)
    assert "zero" in error
