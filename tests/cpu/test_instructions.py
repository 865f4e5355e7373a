"""Instructions called by name, for processors that have them and for others: LLVM would end the process."""

from __future__ import annotations

import pytest
from prim_checks import schedule
from test_intrin import BF16, vnni

import tir
from codegen.llvm.compile import Machine
from tir.errors import BuildError
from tir.script import parse

pytestmark = pytest.mark.skipif("x86" not in Machine().triple, reason="instructions of x86")

ONE = """
@T.prim_func
def f(A: T.Buffer((4,), "int32")):
    A[0] = T.call_llvm_pure_intrin("int32", "{}", T.cast(A[2], "uint32"), A[1])
"""


def bf16(lanes: int) -> tir.IRModule:
    sch = schedule(BF16.replace("LANES", str(lanes)).replace("WIDTH", str(2 * lanes)))
    i, j, k = sch.get_loops("C")
    jo, ji = sch.split(j, [None, lanes])
    ko, ki = sch.split(k, [None, 2])
    sch.reorder(i, jo, ko, ji, ki)
    sch.decompose_reduction("C", ko)
    sch.tensorize(ji, f"dot_{lanes}x2_bf16")
    return sch.mod


CASES = {
    "512 bits of VNNI": (lambda: vnni(5, 16, "dot_16x4_vnni").mod, "haswell", "cascadelake", "avx512vnni"),
    "256 bits of VNNI": (
        lambda: vnni(5, 8, "dot_8x4_vnni").mod,
        "skylake-avx512",
        "cascadelake",
        "avx512vl or avxvnni",
    ),
    "VNNI without AVX-512": (lambda: vnni(5, 8, "dot_8x4_vnni").mod, "znver3", "alderlake", "avx512vl or avxvnni"),
    "512 bits of bfloat16": (lambda: bf16(16), "cascadelake", "cooperlake", "avx512bf16"),
    "256 bits of bfloat16": (lambda: bf16(8), "alderlake", "znver4", "avx512bf16 and avx512vl"),
    "a checksum": (lambda: parse(ONE.format("llvm.x86.sse42.crc32.32.32")), "x86-64", "nehalem", "crc32"),
    "deposited bits": (lambda: parse(ONE.format("llvm.x86.bmi.pdep.32")), "nehalem", "haswell", "bmi2"),
}


@pytest.mark.parametrize("case", CASES)
def test_an_instruction_is_refused_where_the_processor_lacks_it(case):
    make, without, _, feature = CASES[case]
    with pytest.raises(
        BuildError, match=rf"llvm.x86.* is an instruction of .*{feature}, which {without} lacks.*-mattr=\+"
    ):
        tir.build(make(), f"llvm -mcpu={without}")


@pytest.mark.parametrize("case", CASES)
def test_an_instruction_is_compiled_where_the_processor_has_it(case):
    make, _, having, _ = CASES[case]
    assert "ret" in tir.build(make(), f"llvm -mcpu={having}").source("asm")


def test_an_attribute_of_the_target_counts():
    func = parse(ONE.format("llvm.x86.bmi.pdep.32"))
    assert "pdep" in tir.build(func, "llvm -mcpu=x86-64 -mattr=+bmi2").source("asm")
    with pytest.raises(BuildError, match="instruction of bmi2, which haswell lacks"):
        tir.build(func, "llvm -mcpu=haswell -mattr=-bmi2")


def test_what_every_processor_has_needs_no_feature():
    text = '@T.prim_func\ndef f(A: T.Buffer((1,), "int64")):\n    A[0] = T.call_llvm_intrin("int64", "llvm.x86.rdtsc")'
    assert "rdtsc" in tir.build(parse(text), "llvm -mcpu=x86-64").source("asm")


@pytest.mark.parametrize("name", ["llvm.nothing", "llvm.x86.avx512.nothing", 'llvm.a"b', "llvm.@f"])
def test_an_intrinsic_that_llvm_does_not_know_is_refused(name):
    """Its call was built, and ended the process."""
    text = f"@T.prim_func\ndef f(A: T.Buffer((1,), 'int64')):\n    A[0] = T.call_llvm_intrin('int64', {name!r}, A[0])"
    with pytest.raises(BuildError, match="LLVM has no intrinsic"):
        tir.build(parse(text))
