"""AMX tile registers: the intrinsics, what they do in the executor and on a CPU, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.amx_permission import tiles_available
from tir.errors import BuildError, RunError
from tir.intrin import TensorIntrin
from tir.intrin.amx import amx_intrinsics
from tir.script import parse
from tir.script import tir as T

DTYPES = {"bf16": ("bfloat16", "bfloat16", "float32", 2), "us": ("uint8", "int8", "int32", 4)}
DTYPES |= {
    "ss": ("int8", "int8", "int32", 4),
    "su": ("int8", "uint8", "int32", 4),
    "uu": ("uint8", "uint8", "int32", 4),
}


def one_tile(kind: str) -> tir.Schedule:
    """One product of tiles, C starting from what is in memory."""
    left, right, out, group = DTYPES[kind]

    @T.prim_func
    def main(A: T.Buffer((16, 16, group), left), B: T.Buffer((16, 16, group), right), C: T.Buffer((16, 16), out)):
        for i, j, k, q in T.grid(16, 16, 16, group):
            with T.block("C"):
                vi, vj, vk, vq = T.axis.remap("SSRR", [i, j, k, q])
                with T.init():
                    C[vi, vj] = T.cast(0, out)
                C[vi, vj] += T.cast(A[vi, vk, vq], out) * T.cast(B[vk, vj, vq], out)

    sch = tir.Schedule(main)
    names = amx_intrinsics(kind)
    sums = sch.cache_write("C", 0, "amx.tile")
    loads = [sch.cache_read("C", k, "amx.tile") for k in (0, 1)]
    init = sch.decompose_reduction("C", sch.get_loops("C")[0])
    for block, name in ((init, "zero"), (sums, "store"), (loads[0], "load_a"), (loads[1], "load_b"), ("C", "dot")):
        sch.tensorize(sch.get_loops(block)[0], names[name])
    return sch


def operands(kind: str) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    left, right, out, group = DTYPES[kind]
    if kind == "bf16":
        values = [rng.integers(-16, 16, (16, 16, 2)).astype(np.float32) for _ in range(2)]
        arrays = [(v.view(np.uint32) >> 16).astype(np.uint16) for v in values]
    else:
        arrays = [rng.integers(np.iinfo(d).min, np.iinfo(d).max, (16, 16, 4), d, True) for d in (left, right)]
        values = [a.astype(np.int64) for a in arrays]
    return arrays, np.einsum("ikq,kjq->ij", *values)


@pytest.mark.parametrize("kind", DTYPES)
def test_one_product(kind: str):
    sch = one_tile(kind)
    tir.assert_structural_equal(parse(sch.script())["main"], sch.mod["main"])
    arrays, want = operands(kind)
    modules = [tir.build(sch.mod, target="interpreter"), tir.build(tir.lower(sch.mod), target="interpreter")]
    if tiles_available("bfloat16" if kind == "bf16" else "int8"):
        modules.append(tir.build(sch.mod))
    for module in modules:
        c = np.full((16, 16), -1, DTYPES[kind][2])
        module(*arrays, c)
        np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("kind", DTYPES)
def test_names_and_round_trip(kind: str):
    for name in amx_intrinsics(kind).values():
        intrinsic = TensorIntrin.get(name)
        assert intrinsic is not None and name in TensorIntrin.list()
        for func in (intrinsic.desc, intrinsic.impl):
            tir.assert_structural_equal(parse(func.script()), func)


WITH_TILES = "sapphirerapids"


def tiles_of(count: int, number: object = 0) -> tir.PrimFunc:
    @T.prim_func
    def main(C: T.Buffer((16, 16), "float32")):
        tiles = T.alloc_buffer((count, 16, 16), "float32", scope="amx.tile")
        for i in range(2):
            T.evaluate(T.amx_tile_zero(tiles.data, i if number is None else number, dtype="void"))
            T.evaluate(T.amx_tile_store(tiles.data, 0, C.access_ptr("w"), 64, dtype="void"))

    return main


def for_cpu(func: tir.PrimFunc, cpu: str, features: str = "") -> str:
    """The assembly for a CPU that need not be this one."""
    from codegen.llvm.compile import Machine, assembly
    from codegen.llvm.function import emit_module
    from codegen.llvm.text import ModuleText

    on = Machine(cpu, features)
    text = ModuleText(on.cpu, on.features, on.triple, on.width)
    emit_module(tir.lower(func), text)
    return assembly(text.render(), on)


AMX = "+amx-tile,+amx-bf16,+amx-int8"


def test_registers_are_set_up_and_given_back():
    text = for_cpu(tiles_of(1), WITH_TILES, AMX)
    assert text.count("ldtilecfg") == 1 and "tilezero\t%tmm0" in text and "tilerelease" in text


def after_a_parallel_loop() -> tir.PrimFunc:
    """Tiles in a parallel loop, and behind it."""

    @T.prim_func
    def main(C: T.Buffer((3, 16, 16), "float32")):
        for p in T.parallel(2):
            with T.block("in"):
                v = T.axis.spatial(2, p)
                T.writes(C[v, 0:16, 0:16])
                tiles = T.alloc_buffer((1, 16, 16), "float32", scope="amx.tile")
                T.evaluate(T.amx_tile_zero(tiles.data, 0, dtype="void"))
                T.evaluate(T.amx_tile_store(tiles.data, 0, C.access_ptr("w", offset=v * 256), 64, dtype="void"))
        with T.block("behind"):
            T.writes(C[2, 0:16, 0:16])
            tiles = T.alloc_buffer((1, 16, 16), "float32", scope="amx.tile")
            T.evaluate(T.amx_tile_zero(tiles.data, 0, dtype="void"))
            T.evaluate(T.amx_tile_store(tiles.data, 0, C.access_ptr("w", offset=512), 64, dtype="void"))

    return main


def test_registers_are_set_up_again_behind_a_parallel_loop():
    from codegen.llvm.compile import Machine
    from codegen.llvm.function import emit_module
    from codegen.llvm.text import ModuleText

    on = Machine(WITH_TILES, AMX)
    text = ModuleText(on.cpu, on.features, on.triple, on.width)
    emit_module(tir.lower(after_a_parallel_loop()), text)
    assert text.render().count("call void @llvm.x86.ldtilecfg") == 3  # the function twice, the loop's body once


@pytest.mark.skipif(not tiles_available("bfloat16"), reason="needs a CPU with AMX")
def test_tiles_are_used_behind_a_parallel_loop():
    result = np.ones((3, 16, 16), np.float32)
    tir.build(after_a_parallel_loop(), "llvm -num-cores=2")(result)
    assert not result.any()


def test_there_are_eight_registers():
    with pytest.raises(BuildError, match="takes 9 tile registers of 1024 bytes; 8 of 8 are free"):
        for_cpu(tiles_of(9), WITH_TILES, AMX)


def test_registers_are_named_by_constants():
    with pytest.raises(BuildError, match="depends on `i`.*unroll the loops over tiles"):
        for_cpu(tiles_of(2, None), WITH_TILES, AMX)


def test_a_cpu_without_tiles():
    with pytest.raises(BuildError, match="uses AMX tile registers, which the target CPU lacks"):
        tir.build(tiles_of(1), target="llvm -mcpu=haswell")


def test_a_tile_beyond_its_buffer():
    with pytest.raises(RunError, match="tile 3 of a buffer of 2 tiles"):
        tir.build(tiles_of(2, 3), target="interpreter")(np.zeros((16, 16), np.float32))


def test_saved_code_asks_for_the_registers_again(tmp_path):
    if not tiles_available("bfloat16"):
        return  # such code is not made here
    arrays, want = operands("bf16")
    tir.build(one_tile("bf16").mod).save(tmp_path / "one.o")
    c = np.zeros((16, 16), np.float32)
    from codegen.module import load

    load(tmp_path / "one.o")(*arrays, c)
    np.testing.assert_array_equal(c, want)
