"""One file for several processors: the best code that runs is chosen, by what the processor says of itself."""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
import subprocess

import numpy as np
import pytest

import tir
from codegen.aot import processors as levels_module
from codegen.aot.processors import detection
from codegen.llvm.compile import Loaded, Machine, _names, machine, object_code
from codegen.llvm.cpu_features import Needs, _host
from tir.errors import BuildError, RunError
from tir.script import parse

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="levels are processors of x86-64")
LEVELS = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
KERNEL = """
@T.prim_func
def kernel(A: T.Buffer((640,), "float32"), B: T.Buffer((640,), "float32"), n: T.int32):
    W = T.alloc_buffer((640, 40), "float32")
    for i, j in T.grid(640, 40):
        W[i, j] = A[i] * T.float32(0.5) + T.Cast("float32", j)
    for i in T.parallel(640):
        B[i] = T.float32(84 // n)
        for j in range(40):
            B[i] = B[i] + W[i, j] * W[i, j]
"""


def features(cpu: str) -> set[str]:
    return set(Needs.of(Machine(cpu, triple="x86_64-linux-gnu")).features)


def best_here(levels: list[str]) -> str:
    return [cpu for cpu in levels if Needs.of(machine(cpu)).refusal() is None][-1]


def test_the_processors_that_llvm_knows_are_found_though_it_has_printed_them_before():
    found = [_names.__wrapped__("x86-64") for _ in range(2)]
    assert found[0] == found[1] and found[0][0] >= {*LEVELS}


@pytest.mark.parametrize("suffix", [".o", ".so"])
@pytest.mark.parametrize("threads", ["linked", "pool"])
def test_each_function_runs_the_best_code_that_this_processor_has(tmp_path, suffix, threads):
    module = tir.build(parse(KERNEL))
    module.save(tmp_path / f"k{suffix}", tmp_path / "k.h", threads, LEVELS)
    loaded = tir.load(tmp_path / f"k{suffix}")
    a, b, expected = np.linspace(-1, 1, 640, dtype="float32"), np.zeros(640, "float32"), np.zeros(640, "float32")
    loaded(a, b, 4)
    tir.build(parse(KERNEL), "interpreter")(a, expected, 4)
    np.testing.assert_allclose(b, expected, rtol=1e-4)
    with pytest.raises(RunError, match="division by zero"):
        loaded(a, b, 0)
    if suffix == ".so":
        library = ctypes.CDLL(str(tmp_path / "k.so"))
        library.k_cpu.restype = ctypes.c_char_p
        assert library.k_cpu().decode() == best_here(LEVELS)
    assert "const char *k_cpu(void);" in (tmp_path / "k.h").read_text()


@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump")
def test_the_code_of_each_level_and_no_other_uses_what_that_level_has(tmp_path):
    levels = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
    tir.build(parse(KERNEL), "llvm -mcpu=x86-64-v4").save(tmp_path / "k.o", levels=levels)
    done = subprocess.run(["objdump", "-d", tmp_path / "k.o"], capture_output=True, text=True, check=True)
    code = dict(re.findall(r"^\w+ <(.*)>:\n((?:.+\n)+)", done.stdout, re.M))
    for cpu in levels:
        body = "".join(text for name, text in code.items() if name.startswith(f"k.{cpu}."))
        assert [register in body for register in ("%xmm", "%ymm", "%zmm")] == [True, cpu != levels[0], cpu == levels[2]]
    others = "".join(text for name, text in code.items() if not name.startswith("k.x86-64-v"))
    assert "cpuid" in others and "%ymm" not in others


def chosen(levels: list[set[str]], cpuid, xgetbv) -> int:
    """The level that is found on a processor that answers as the functions do: ``cpuid(leaf, subleaf)`` four registers."""

    def answer(leaf: int, sub: int, out) -> None:
        for k, value in enumerate(cpuid(leaf & 0xFFFFFFFF, sub)):
            out[k] = value

    call = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32))(answer)
    keeps = ctypes.CFUNCTYPE(ctypes.c_uint32)(xgetbv)
    address, kept = (ctypes.cast(f, ctypes.c_void_p).value for f in (call, keeps))
    text = f"""{detection(levels, "best_level")}
define {{ i32, i32, i32, i32 }} @cpuid(i32 %leaf, i32 %sub) {{
  %out = alloca {{ i32, i32, i32, i32 }}
  call void inttoptr (i64 {address} to ptr)(i32 %leaf, i32 %sub, ptr %out)
  %all = load {{ i32, i32, i32, i32 }}, ptr %out
  ret {{ i32, i32, i32, i32 }} %all
}}
define i32 @xgetbv() {{
  %v = call i32 inttoptr (i64 {kept} to ptr)()
  ret i32 %v
}}
define i32 @asked() {{
  %level = call i32 @best_level()
  ret i32 %level
}}
"""
    code = Loaded(object_code(text, machine()))
    return ctypes.CFUNCTYPE(ctypes.c_int32)(code.function("asked"))()


def processor(has: set[str], last: dict[int, int], system: bool = True):
    """CPUID of a processor with the features ``has`` and the given last leaves; what lies behind them is noise."""

    def cpuid(leaf: int, sub: int) -> list[int]:
        registers = [0, 0, 0, 0]
        for name in has:
            (of, under, register), bit = levels_module._BITS[name]
            if (of, under) == (leaf, sub):
                registers[register] |= bit
        if leaf in (0, 0x80000000):
            registers[0] = last[leaf]
        elif leaf > last[leaf & 0x80000000] or sub > last[7]:
            return [0xFFFFFFFF] * 4
        if leaf == 7 and sub == 0:
            registers[0] = last[7]
        if leaf == 1 and system:
            registers[2] |= 1 << 27
        return registers

    return cpuid


MODERN = {0: 0x20, 0x80000000: 0x80000008, 7: 1}
V = [features(cpu) for cpu in LEVELS]


@pytest.mark.parametrize(
    ("has", "last", "system", "kept", "level"),
    [
        (V[3], MODERN, True, 0xE7, 3),
        (V[3], MODERN, True, 0x07, 2),  # a system that does not keep the registers of AVX-512
        (V[3], MODERN, True, 0x03, 1),
        (V[3], MODERN, False, None, 1),  # one that cannot be asked
        (V[2] - {"fma"}, MODERN, True, 0xE7, 1),
        (V[2], {**MODERN, 0x80000000: 0x80000000}, True, 0xE7, 1),  # lzcnt is said behind the last leaf
        (V[2], {**MODERN, 0: 4}, True, 0xE7, 1),
        (V[0], MODERN, False, None, 0),
        (set(), MODERN, True, 0xE7, 4),
    ],
)
def test_the_last_level_is_chosen_of_which_all_is_there(has, last, system, kept, level):
    def xgetbv() -> int:
        assert kept is not None, "it is an illegal instruction there"
        return kept

    assert chosen(V, processor(has, last, system), xgetbv) == level


def test_each_feature_is_found_where_llvm_finds_it():
    """On this machine, by its own instructions."""
    there = _host()
    text = levels_module._INSTRUCTIONS
    for k, name in enumerate(levels_module._BITS):
        text += (
            detection([{name}], f"level{k}") + f"define i32 @asked{k}() {{ %v = call i32 @level{k}() ret i32 %v }}\n"
        )
    code = Loaded(object_code(text, machine()))
    found = {
        name: ctypes.CFUNCTYPE(ctypes.c_int32)(code.function(f"asked{k}"))() == 0
        for k, name in enumerate(levels_module._BITS)
    }
    assert found == {name: there[name] for name in found}


@pytest.mark.parametrize(
    ("levels", "target", "message"),
    [
        (
            ["x86-64-v4", "x86-64-v2"],
            "llvm",
            "from the least processor to the best, and x86-64-v2 lacks avx.* before it",
        ),
        (["x86-64", "sapphirerapids"], "llvm", "sapphirerapids uses amx-bf16.* levels are x86-64, x86-64-v2"),
        (["x86-64-v2", "generic"], "llvm", "generic names no features"),
        (["x86-64-v5"], "llvm", "LLVM knows no processor 'x86-64-v5'"),
        (
            ["cortex-a72"],
            "llvm -mtriple=aarch64-linux-gnu",
            "levels are processors of x86-64, and this code is for aarch64",
        ),
    ],
)
def test_levels_that_cannot_be_told_apart_are_refused(tmp_path, levels, target, message):
    with pytest.raises(BuildError, match=message):
        tir.build(parse(KERNEL), target).save(tmp_path / "k.so", levels=levels)


def test_an_instruction_that_a_level_lacks_is_refused(tmp_path):
    text = """
@T.prim_func
def f(A: T.Buffer((4,), "int32")):
    A[0] = T.call_llvm_pure_intrin("int32", "llvm.x86.sse42.crc32.32.32", T.uint32(1), A[1])
"""
    module = tir.build(parse(text), "llvm -mcpu=x86-64-v2")
    module.save(tmp_path / "f.so", levels=["x86-64-v2", "x86-64-v3"])
    with pytest.raises(BuildError, match=r"llvm\.x86\.sse42\.crc32.*x86-64"):
        module.save(tmp_path / "f.so", levels=["x86-64", "x86-64-v3"])
