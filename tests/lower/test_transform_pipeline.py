"""The pipeline: stopping, inserting passes, dumping stages, knobs; refusals; what the lowered code looks like."""

from __future__ import annotations

import os

import numpy as np
import pytest

import tir
from tir import BuildError, config, transform
from tir.function import IRModule
from tir.script import parse
from tir.stmt import Allocate, BufferStore, For, IfThenElse
from tir.transform.pipeline import cpu_pipeline, name_of
from tir.visit import walk

SCALE = """
@T.prim_func
def scale(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
"""

TILED = """
@T.prim_func
def tiled(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    acc = T.alloc_buffer((64, 64), "float32")
    for i0, j0 in T.grid(16, 4):
        for k in range(64):
            for i1 in T.unroll(4):
                for j1 in T.vectorized(16):
                    with T.block("acc"):
                        vi = T.axis.spatial(64, i0 * 4 + i1)
                        vj = T.axis.spatial(64, j0 * 16 + j1)
                        vk = T.axis.reduce(64, k)
                        with T.init():
                            acc[vi, vj] = T.float32(0)
                        acc[vi, vj] = acc[vi, vj] + A[vi, vk] * B[vk, vj]
        for i1 in T.unroll(4):
            for j1 in T.vectorized(16):
                with T.block("C"):
                    vi = T.axis.spatial(64, i0 * 4 + i1)
                    vj = T.axis.spatial(64, j0 * 16 + j1)
                    C[vi, vj] = acc[vi, vj]
"""


def found(root, kind):
    return [n for n in walk(root) if isinstance(n, kind)]


def test_upto_and_own_passes():
    func = parse(SCALE)
    blocks = tir.lower(func, upto="lower_init_block")["main"]
    assert blocks.root is not None
    flat = tir.lower(func, upto="flatten_buffer")["main"]
    assert flat.root is None and all(len(s.indices) == 1 for s in found(flat.body, BufferStore))
    assert tir.lower(func, passes=[])["main"] is func
    with pytest.raises(ValueError, match="no pass 'flatten'"):
        tir.lower(func, upto="flatten")


def test_inserting_a_pass_by_name():
    seen = []

    def watch(mod):
        seen.append(mod)
        return mod

    func = parse(SCALE)
    tir.lower(func, insert={"after:flatten_buffer": watch, "before:lower_init_block": [watch]})
    assert seen[0]["main"].root is not None and seen[1]["main"].root is None
    with pytest.raises(ValueError, match="cannot insert at 'after:nothing'"):
        tir.lower(func, insert={"after:nothing": watch})
    with pytest.raises(TypeError, match="returned NoneType"):
        tir.lower(func, insert={"after:simplify": lambda mod: None})


def test_passes_are_callable_both_ways():
    func = parse(SCALE)
    mod = IRModule.of(func)
    tir.assert_structural_equal(transform.ConvertBlocksToOpaque()(mod), transform.convert_blocks_to_opaque(mod))
    chain = transform.Sequential([transform.convert_blocks_to_opaque, transform.lower_opaque_block])
    assert chain(func).root is None and chain(mod)["main"].root is None
    with pytest.raises(tir.BuildError, match="has iterators: run convert_blocks_to_opaque before lower_opaque_block"):
        transform.lower_opaque_block(func)
    assert transform.find("simplify") is transform.simplify
    with pytest.raises(KeyError, match="unroll_loop"):
        transform.find("unrol_loop")
    with pytest.raises(AttributeError):
        transform.NoSuchPass()


def test_a_pass_from_outside_is_registered():
    @transform.func_pass
    def mark(func, key="seen"):
        return func.with_attr(key, 1)

    try:
        assert transform.Mark(key="mine")(parse(SCALE)).attrs["mine"] == 1
    finally:
        transform.PASSES.pop("mark")


def test_dump_writes_every_stage(tmp_path):
    with config.override(dump=str(tmp_path), verify=True):
        tir.lower(parse(SCALE))
    files = sorted(os.listdir(tmp_path))
    assert len(files) == len(cpu_pipeline()) + 1
    assert files[0] == "00_input.py" and files[1] == f"01_{name_of(cpu_pipeline()[0])}.py"
    for name in files:
        assert isinstance(parse((tmp_path / name).read_text()), IRModule)
    assert config.current().dump == ""


def test_an_unknown_knob_is_refused():
    with pytest.raises(TypeError), config.override(dumps="x"):
        pass


def test_thread_axes_are_refused_for_a_cpu():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        A[i] = T.float32(0)
""")
    with pytest.raises(BuildError, match="loop `i` is bound to the thread axis 'threadIdx.x'"):
        tir.lower(func)


def test_a_matmul_becomes_register_tiles():
    mod = tir.lower(parse(TILED))
    body = mod["main"].body
    (alloc,) = found(body, Allocate)
    assert [int(e) for e in alloc.extents] == [64]  # 4 rows of 16 lanes, not 64 x 64
    stores = [s for s in found(body, BufferStore) if s.buffer.data is alloc.buffer_var]
    assert len(stores) == 8  # init and update of each row
    assert all(s.value.dtype.lanes == 16 and int(s.indices[0].base) % 16 == 0 for s in stores)
    assert {f.kind for f in found(body, For)} == {"serial"}
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((64, 64), dtype=np.float32) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    tir.build(parse(TILED))(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_a_split_with_a_tail_runs_without_guards():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i in range(100):
        with T.block("B"):
            vi = T.axis.spatial(100, i)
            B[vi] = A[vi] + T.float32(1)
""")
    sch = tir.Schedule(func)
    (i,) = sch.get_loops("B")
    _, lane = sch.split(i, [None, 16])
    sch.vectorize(lane)
    body = tir.lower(sch.mod)["main"].body
    assert not found(body, IfThenElse)
    assert sorted(s.value.dtype.lanes for s in found(body, BufferStore)) == [4, 16]


def test_a_match_buffer_that_contradicts_its_region_is_refused():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((8, 8), "float32")):
    with T.block("tile"):
        V = T.match_buffer(A[0:4, 0:8], (4, 8), "float32", strides=[9, 1])
        V[0, 0] = T.float32(1)
""")
    with pytest.raises(BuildError, match=r"strides\[0\]"):
        tir.lower(func)


def test_data_passed_on_through_a_view_keeps_the_buffer_outside_the_loop():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("w"):
            vi = T.axis.opaque(8, i)
            T.reads(A[vi, 0])
            T.writes(B[0])
            B[0] = A[vi, 0]
        with T.block("x"):
            vi = T.axis.opaque(8, i)
            T.reads(B[0:8])
            T.writes(B[0:8], C[vi, 0])
            V = T.match_buffer(B[0:8], (8,), "float32")
            V[1] = T.if_then_else(vi > 0, V[1] + V[0], V[0])
            C[vi, 0] = V[1]
""")
    body = tir.lower(func)["main"].body
    (loop,) = found(body, For)
    assert not found(loop, Allocate) and len(found(body, Allocate)) == 1
