# ruff: noqa: E501
"""Whole lowerings for a GPU: results, barriers and findings on the simulator, refusals, and programs at random."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tir
from tests.gpu_passes import ORDERS, run_everywhere
from tir import BuildError, config, transform
from tir.expr import Call
from tir.interp import run
from tir.script import parse
from tir.stmt import BufferStore, Evaluate, IfThenElse
from tir.testing import assert_roundtrip, random_inputs, random_program, random_schedule
from tir.transform.pipeline import gpu_pipeline, name_of
from tir.visit import walk

MATMUL = """
@T.prim_func(check_well_formed=False)
def mm(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    A_shared = T.alloc_buffer((32, 32), "float32", scope="SCOPE")
    B_shared = T.alloc_buffer((32, 32), "float32", scope="SCOPE")
    C_local = T.alloc_buffer((32, 32), "float32", scope="local")
    for by in T.thread_binding(2, thread="blockIdx.y"):
        for bx in T.thread_binding(2, thread="blockIdx.x"):
            for vy in T.thread_binding(2, thread="vthread.y"):
                for ty in T.thread_binding(4, thread="threadIdx.y"):
                    for tx in T.thread_binding(4, thread="threadIdx.x"):
                        for ko in LOOP:
                            for ax in range(8):
                                for t1 in T.thread_binding(4, thread="threadIdx.y"):
                                    for t0 in T.thread_binding(4, thread="threadIdx.x"):
                                        with T.block("A_shared"):
                                            v0 = T.axis.spatial(32, by * 16 + ax * 2 + t1 // 2)
                                            v1 = T.axis.spatial(32, ko * 8 + t1 % 2 * 4 + t0)
                                            A_shared[v0, v1] = A[v0, v1]
                            for ax in range(2):
                                for t1 in T.thread_binding(4, thread="threadIdx.y"):
                                    for t0 in T.thread_binding(4, thread="threadIdx.x"):
                                        for v in T.vectorized(4):
                                            with T.block("B_shared"):
                                                v0 = T.axis.spatial(32, ko * 8 + ax * 4 + t1)
                                                v1 = T.axis.spatial(32, bx * 16 + t0 * 4 + v)
                                                T.block_attr(NOTE)
                                                B_shared[v0, v1] = B[v0, v1]
                            for ki in range(8):
                                for i, j in T.grid(2, 4):
                                    with T.block("C"):
                                        vi = T.axis.spatial(32, by * 16 + vy * 8 + ty * 2 + i)
                                        vj = T.axis.spatial(32, bx * 16 + tx * 4 + j)
                                        vk = T.axis.reduce(32, ko * 8 + ki)
                                        with T.init():
                                            C_local[vi, vj] = T.float32(0)
                                        C_local[vi, vj] += A_shared[vi, vk] * B_shared[vk, vj]
                        for i, j in T.grid(2, 4):
                            with T.block("store"):
                                vi = T.axis.spatial(32, by * 16 + vy * 8 + ty * 2 + i)
                                vj = T.axis.spatial(32, bx * 16 + tx * 4 + j)
                                C[vi, vj] = C_local[vi, vj]
"""


def matmul(stages=None, orders=None, asynchronous=None, scope="shared", note="{}"):
    notes = {"software_pipeline_stage": stages, "software_pipeline_order": orders}
    if asynchronous is not None:
        notes["software_pipeline_async_stages"] = asynchronous
    loop = "range(4)" if stages is None else f"T.serial(4, annotations={notes})"
    return parse(MATMUL.replace("LOOP", loop).replace("SCOPE", scope).replace("NOTE", note))


def barriers(mod):
    calls = (n.value for f in mod.functions.values() for n in walk(f.body) if isinstance(n, Evaluate))
    return sum(getattr(c, "op", "") == "tvm_storage_sync" for c in calls)


@pytest.mark.parametrize(
    "options, count",
    [
        ({}, 2),
        ({"scope": "shared.dyn"}, 2),
        ({"stages": [0, 0, 1], "orders": [0, 1, 2]}, 2),
        ({"stages": [0, 0, 1], "orders": [0, 1, 2], "asynchronous": [0]}, 2),
        ({"stages": [0, 0, 2], "orders": [0, 1, 2], "asynchronous": [0], "scope": "shared.dyn"}, 3),
        ({"stages": [0, 1, 2], "orders": [0, 1, 2], "asynchronous": [0, 1]}, 3),
        ({"stages": [0, 0, 1], "orders": [1, 2, 0], "asynchronous": [0]}, 3),
        ({"stages": [0, 0, 4], "orders": [0, 1, 2], "asynchronous": [0]}, 4),
        ({"note": '{"double_buffer_scope": 0}'}, 4),
    ],
    ids=lambda v: "-".join(f"{k}{x}" for k, x in v.items()) or "plain" if isinstance(v, dict) else "",
)
def test_matmul(options, count):
    """Cooperative fetching, virtual threads and pipelines; no more barriers in the text than are needed."""
    a, b = np.random.default_rng(0).integers(-3, 4, (2, 32, 32)).astype("float32")
    c = np.zeros((32, 32), "float32")
    mod = run_everywhere(matmul(**options), [a, b, c])
    np.testing.assert_array_equal(c, a @ b)
    assert barriers(mod.lowered) == count


def test_every_stage_prints_and_parses():
    func = matmul([0, 0, 1], [0, 1, 2], [0], "shared.dyn")
    names = [name_of(p) for p in gpu_pipeline()]
    for name in dict.fromkeys(names):
        assert_roundtrip(tir.lower(func, target="cuda", upto=name))
    with config.override(verify=True):
        tir.lower(matmul([0, 0, 1], [0, 1, 2], [0]), target="cuda", passes=gpu_pipeline())


def test_the_plan_prints():
    plan = transform.shared_memory_plan(matmul([0, 0, 1], [0, 1, 2], scope="shared.dyn"))
    assert [(b.name, b.bytes, b.offset) for b in plan] == [("A_shared", 1024, 0), ("B_shared", 1024, 1024)]
    assert plan.total() == 2048 and plan.total(scope="shared") == 0
    lines = repr(plan).splitlines()
    assert lines[0].split() == ["kernel", "buffer", "scope", "bytes", "lifetime", "offset"]
    assert lines[1].split()[:4] == ["0", "A_shared", "shared.dyn", "1024"]
    assert repr(transform.shared_memory_plan(parse(SUM.format(n=8, thread="threadIdx.x")))) == "no shared memory"


SUM = """
@T.prim_func
def total(A: T.Buffer((4, 300), "float32"), B: T.Buffer((4,), "float32")):
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for k0 in range((299 + {n}) // {n}):
            for k1 in T.thread_binding({n}, thread="{thread}"):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    vk = T.axis.reduce(300, k0 * {n} + k1)
                    T.where(k0 * {n} + k1 < 300)
                    with T.init():
                        B[vi] = T.float32(7)
                    B[vi] += A[vi, vk]
"""


@pytest.mark.parametrize("thread", ["threadIdx.x", "threadIdx.y"])
@pytest.mark.parametrize("n", [1, 2, 20, 32, 33, 64, 100, 256, 300, 1024])
def test_sum_across_threads(n, thread):
    a = np.random.default_rng(n).integers(-9, 10, (4, 300)).astype("float32")
    b = np.zeros(4, "float32")
    run_everywhere(parse(SUM.format(n=n, thread=thread)), [a, b], ORDERS[:2])
    np.testing.assert_array_equal(b, 7 + a.sum(1))


ROWS = """
@T.prim_func
def rows(A: T.Buffer((12, 64), "float32"), B: T.Buffer((12,), "float32")):
    for io in T.thread_binding(3, thread="blockIdx.x"):
        for ii in T.thread_binding(4, thread="threadIdx.{across}"):
            for k0 in range(64 // {n}):
                for k1 in T.thread_binding({n}, thread="threadIdx.{along}"):
                    with T.block("B"):
                        vi = T.axis.spatial(12, io * 4 + ii)
                        vk = T.axis.reduce(64, k0 * {n} + k1)
                        with T.init():
                            B[vi] = {init}
                        B[vi] = {update}
"""


@pytest.mark.parametrize("along, across", ["xy", "yx"])
@pytest.mark.parametrize("n", [4, 16, 64])
@pytest.mark.parametrize(
    "init, update, numpy",
    [
        ('T.min_value("float32")', "T.max(B[vi], A[vi, vk])", lambda a: a.max(1)),
        ("T.float32(1)", "B[vi] * A[vi, vk]", lambda a: a.prod(1)),
        ("T.float32(9)", "B[vi] - A[vi, vk]", lambda a: 9 - a.sum(1)),
        ('T.float32("inf")', "T.min(A[vi, vk], B[vi])", lambda a: a.min(1)),
    ],
    ids=["max", "product", "minus", "min"],
)
def test_several_groups_and_reducers(along, across, n, init, update, numpy):
    a = np.random.default_rng(1).choice([-1.0, 1.0, 2.0], (12, 64), p=[0.25, 0.65, 0.1]).astype("float32")
    b = np.zeros(12, "float32")
    run_everywhere(parse(ROWS.format(along=along, across=across, n=n, init=init, update=update)), [a, b], ORDERS[::3])
    np.testing.assert_array_equal(b, numpy(a))


ARGMAX = """
@T.prim_func
def argmax(idx: T.Buffer((8, 96), "int32"), val: T.Buffer((8, 96), "float32"), a0: T.Buffer((8,), "int32"), a1: T.Buffer((8,), "float32")):
    for io in T.thread_binding(2, thread="blockIdx.x"):
        for ii in T.thread_binding(4, thread="threadIdx.{across}"):
            for k in T.thread_binding(96, thread="threadIdx.{along}"):
                with T.block("argmax"):
                    vi = T.axis.spatial(8, io * 4 + ii)
                    vk = T.axis.reduce(96, k)
                    with T.init():
                        a0[vi] = -1
                        a1[vi] = T.min_value("float32")
                    v0: T.int32 = T.Select(a1[vi] >= val[vi, vk], a0[vi], idx[vi, vk])
                    v1: T.float32 = T.Select(a1[vi] >= val[vi, vk], a1[vi], val[vi, vk])
                    a0[vi] = v0
                    a1[vi] = v1
"""


@pytest.mark.parametrize("along, across", ["xy", "yx"])
def test_argmax_across_threads(along, across):
    rng = np.random.default_rng(2)
    idx, val = (
        rng.permutation(8 * 96).reshape(8, 96).astype("int32"),
        rng.permutation(8 * 96).reshape(8, 96).astype("float32"),
    )
    a0, a1 = np.zeros(8, "int32"), np.zeros(8, "float32")
    run_everywhere(parse(ARGMAX.format(along=along, across=across)), [idx, val, a0, a1])
    np.testing.assert_array_equal(a1, val.max(1))
    np.testing.assert_array_equal(a0, idx[np.arange(8), val.argmax(1)])


SOFTMAX = """
@T.prim_func
def softmax(A: T.Buffer((6, 128), "float32"), B: T.Buffer((6, 128), "float32")):
    top = T.alloc_buffer((6,), "float32", scope="{scope}")
    total = T.alloc_buffer((6,), "float32", scope="{scope}")
    for i in T.thread_binding(6, thread="blockIdx.x"):
        for k0 in range(2):
            for k1 in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("top"):
                    vi = T.axis.spatial(6, i)
                    vk = T.axis.reduce(128, k0 * 64 + k1)
                    with T.init():
                        top[vi] = T.min_value("float32")
                    top[vi] = T.max(top[vi], A[vi, vk])
        for k0 in range(2):
            for k1 in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("total"):
                    vi = T.axis.spatial(6, i)
                    vk = T.axis.reduce(128, k0 * 64 + k1)
                    with T.init():
                        total[vi] = T.float32(0)
                    total[vi] = total[vi] + T.exp(A[vi, vk] - top[vi])
        for k0 in range(2):
            for k1 in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(6, i)
                    vk = T.axis.spatial(128, k0 * 64 + k1)
                    B[vi, vk] = T.exp(A[vi, vk] - top[vi]) / total[vi]
"""


@pytest.mark.parametrize("scope, count", [("local", 2), ("shared", 4)])
def test_softmax(scope, count):
    a = np.random.default_rng(3).standard_normal((6, 128)).astype("float32")
    b = np.zeros_like(a)
    mod = run_everywhere(parse(SOFTMAX.format(scope=scope)), [a, b])
    e = np.exp(a.astype("float64") - a.max(1, keepdims=True))
    np.testing.assert_allclose(b, e / e.sum(1, keepdims=True), rtol=1e-5)
    assert barriers(mod.lowered) == count


def test_symbolic_sizes_and_empty_launches():
    text = """
@T.prim_func
def scale(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    W = T.alloc_buffer((n,), "float32")
    for bx in T.thread_binding((n + 31) // 32, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("W"):
                vi = T.axis.spatial(n, bx * 32 + tx)
                T.where(bx * 32 + tx < n)
                W[vi] = A[vi] * T.float32(2)
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = W[n - 1 - vi]
"""
    for n in (1, 40, 300):
        a, b = np.arange(n).astype("float32"), np.zeros(n, "float32")
        run_everywhere(parse(text), [a, b], ORDERS[:1])
        np.testing.assert_array_equal(b, 2 * a[::-1])
    host = tir.lower(parse(text), target="cuda")["main"].script()
    assert "if (n + 31) // 32 > 0:" in host


def test_vector_accesses_are_as_wide_as_they_may_be():
    text = """
@T.prim_func
def copy(A: T.Buffer((64, 32), "float32"), B: T.Buffer((64, 32), "float32")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        for j in T.vectorized(32):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
"""
    mod = tir.lower(parse(text), target="cuda")
    stores = [n for n in walk(mod["main_kernel"].body) if isinstance(n, BufferStore)]
    assert [s.value.dtype for s in stores] == ["float32x4"]


# ---------------------------------------------------------------- refusals


def refused(text, target="cuda"):
    with pytest.raises(BuildError) as error:
        tir.lower(parse(text) if isinstance(text, str) else text, target=target)
    return str(error.value)


def test_extents_of_one_axis_differ():
    said = refused("""
@T.prim_func
def f(A: T.Buffer((64,), "float32")):
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            A[bx * 32 + tx] = T.float32(0)
        for u in T.thread_binding(16, thread="threadIdx.x"):
            A[bx * 32 + u] = T.float32(1)
""")
    assert "threadIdx.x has extent 32 in loop `tx` and 16 in loop `u`" in said and "split" in said


def test_an_extent_from_inside_the_kernel():
    said = refused("""
@T.prim_func
def f(A: T.Buffer((64,), "float32")):
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for k in range(4):
            for tx in T.thread_binding(k + 1, thread="threadIdx.x"):
                A[bx * 32 + tx] = T.float32(0)
""")
    assert "`k + 1` of threadIdx.x (loop `tx`) depends on `k`" in said


def test_shared_memory_that_two_kernels_use():
    said = refused("""
@T.prim_func
def f(A: T.Buffer((64,), "float32")):
    S = T.alloc_buffer((64,), "float32", scope="shared")
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("S"):
            v = T.axis.spatial(64, tx)
            S[v] = A[v]
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("A"):
            v = T.axis.spatial(64, tx)
            A[v] = S[v]
""")
    assert "buffer `S` in shared memory is used by two kernels" in said


def test_too_much_shared_memory():
    text = """
@T.prim_func
def f(A: T.Buffer((128, 128), "float32")):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(128, thread="threadIdx.x"):
            with T.block("tile"):
                T.reads(A[0:128, 0:128])
                T.writes(A[0:128, 0:128])
                S = T.alloc_buffer((128, 128), "float32", scope="SCOPE")
                for i in range(128):
                    S[i, tx] = A[i, tx]
                for i in range(128):
                    A[i, tx] = S[tx, i]
"""
    said = refused(text.replace("SCOPE", "shared"))
    assert "shared memory of a block would be 65536 B > 49152 B (`shared`): S 64 KB" in said and "shared.dyn" in said
    tir.lower(parse(text.replace("SCOPE", "shared.dyn")), target="cuda -arch=sm_80")
    said = refused(text.replace("SCOPE", "shared.dyn").replace("128)", "256)"), "cuda -arch=sm_86")
    assert "> 101376 B (`shared.dyn`)" in said


def test_a_barrier_that_not_all_threads_reach():
    said = refused("""
@T.prim_func
def f(A: T.Buffer((64,), "float32"), n: T.Buffer((64,), "int32")):
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("tile"):
            T.reads(A[0:64], n[tx])
            T.writes(A[0:64])
            S = T.alloc_buffer((64,), "float32", scope="shared")
            for k in range(n[tx]):
                S[tx] = A[tx]
                A[tx] = S[63 - tx]
""")
    assert "threads need a barrier between" in said and "not all threads of the block get there" in said


def test_a_condition_on_memory_written_under_it_is_not_asked_after_a_let_again():
    said = refused("""
@T.prim_func
def f(A: T.Buffer((64,), "float32")):
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("tile"):
            T.reads(A[0:64])
            T.writes(A[0:64])
            S = T.alloc_buffer((64,), "float32", scope="shared")
            S[tx] = A[tx]
            if S[tx] > T.float32(0):
                x: T.float32 = T.cast(tx, "float32")
                S[tx] = x
                A[tx] = S[63 - tx] + x
""")
    assert "threads need a barrier between" in said and "not all threads of the block get there" in said


def test_a_barrier_in_a_loop_that_may_be_empty_is_moved_out_of_a_divergent_condition():
    """The loop has a barrier though not every run of it has one."""
    text = """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), times: T.int32):
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("tile"):
            T.reads(A[0:64])
            T.writes(A[0:64])
            S = T.alloc_buffer((64,), "float32", scope="shared")
            R = T.alloc_buffer((1,), "float32", scope="local")
            S[tx] = A[tx]
            if tx < 60:
                for k in range(times):
                    R[0] = S[63 - tx] + T.float32(1)
                    S[tx] = R[0]
            A[tx] = S[tx]
"""
    (kernel,) = [
        f for f in tir.lower(parse(text), target="cuda-sim").functions.values() if f.attrs["calling_conv"] != "host"
    ]
    for item in walk(kernel.body):
        if isinstance(item, IfThenElse):
            assert not any(isinstance(n, Call) and n.op == "tvm_storage_sync" for n in walk(item))


def test_a_condition_on_what_a_thread_loaded_is_parted():
    text = """
@T.prim_func
def f(A: T.Buffer((64,), "float32")):
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("tile"):
            T.reads(A[0:64])
            T.writes(A[0:64])
            S = T.alloc_buffer((64,), "float32", scope="shared")
            with T.LetStmt(A[tx]) as x:
                S[tx] = x
                if x > T.float32(0):
                    A[tx] = S[63 - tx]
                    S[tx] = x + T.float32(1)
                    A[tx] = A[tx] + T.Select(S[63 - tx] > x, T.float32(1), T.float32(0))
"""
    a = np.where(np.arange(64) % 3 == 0, -1.0, np.arange(64)).astype("float32")
    after = np.where(a > 0, a + 1, a)
    want = np.where(a > 0, a[::-1] + (after[::-1] > a), a)
    mod = run_everywhere(parse(text), [a])
    np.testing.assert_array_equal(a, want)
    assert barriers(mod.lowered) == 3


def test_halves_in_turn_need_a_barrier_every_iteration():
    text = """
@T.prim_func
def f(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("tile"):
            T.reads(A[0:8, 0:64])
            T.writes(B[0:8, 0:64])
            S = T.alloc_buffer((3, 64), "float32", scope="shared")
            S[2, tx] = T.float32(0)
            for k in range(8):
                S[k % 3, tx] = A[k, tx]
                B[k, tx] = S[(k + 2) % 3, 63 - tx]
"""
    a, b = np.random.default_rng(0).integers(-9, 9, (2, 8, 64)).astype("float32")
    run_everywhere(parse(text), [a, b])
    np.testing.assert_array_equal(b, np.concatenate([np.zeros((1, 64)), a[:-1, ::-1]]))


def test_what_a_let_reads_after_a_barrier_is_read_before_the_next_iteration_writes():
    text = """
@T.prim_func
def f(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("tile"):
            T.reads(A[0:8, 0:64])
            T.writes(B[0:8, 0:64])
            S = T.alloc_buffer((64,), "float32", scope="shared")
            for k in range(8):
                S[tx] = A[k, tx]
                x: T.float32 = S[63 - tx]
                B[k, tx] = x * x
"""
    a, b = np.random.default_rng(0).integers(-9, 9, (2, 8, 64)).astype("float32")
    mod = run_everywhere(parse(text), [a, b])
    np.testing.assert_array_equal(b, a[:, ::-1] ** 2)
    assert barriers(mod.lowered) == 2


def test_pipeline_with_the_wrong_number_of_stages():
    said = refused(matmul([0, 1], [0, 1]))
    assert "holds 3 statements, but its software pipeline has stages [0, 1]" in said


def test_pipeline_that_runs_a_reader_before_its_writer():
    said = refused(matmul([0, 1, 0], [0, 1, 2]))
    assert "`C` (stage 0, order 2) of the same iteration would run before `B_shared` (stage 1, order 1)" in said


def test_a_reduction_that_threads_cannot_share():
    said = refused("""
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.reduce(64, tx)
            with T.init():
                B[0] = T.float32(0)
            B[0] = B[0] * T.float32(2) + A[v]
""")
    assert "block `B`" in said and "bind another loop" in said


def test_too_many_threads_and_blocks():
    text = """
@T.prim_func
def f(A: T.Buffer((2097152,), "float32")):
    for b in T.thread_binding(2097152 // {n}, thread="{axis}"):
        for t in T.thread_binding({n}, thread="threadIdx.x"):
            A[b * {n} + t] = T.float32(0)
"""
    assert "2048 threads in a block, 2048 (threadIdx.x), exceed the limit of 1024" in refused(
        text.format(n=2048, axis="blockIdx.x")
    )
    assert "blockIdx.y is launched with 131072, the limit is 65535" in refused(text.format(n=16, axis="blockIdx.y"))


def test_global_memory_of_several_threads_inside_a_kernel():
    said = refused("""
@T.prim_func
def f(A: T.Buffer((64,), "float32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        with T.block("tile"):
            T.reads(A[0:64])
            T.writes(A[0:64])
            W = T.alloc_buffer((64,), "float32")
            for tx in T.thread_binding(64, thread="threadIdx.x"):
                W[tx] = A[tx]
            for tx in T.thread_binding(64, thread="threadIdx.x"):
                A[tx] = W[63 - tx]
""")
    assert "global memory `W` is allocated inside a kernel" in said


def test_memory_that_a_block_of_one_thread_allocates_is_the_threads():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((64,), "float32")):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("pair"):
            T.reads(A[tx * 2 : tx * 2 + 2])
            T.writes(A[tx * 2 : tx * 2 + 2])
            W = T.alloc_buffer((2,), "float32")
            for k in range(2):
                W[k] = A[tx * 2 + k]
            if W[0] > 0.0:
                W[0] = W[0] + W[1]
            for k in range(2):
                A[tx * 2 + k] = W[1 - k]
""")
    values = np.arange(-32, 32, dtype="float32")
    got, want = values.copy(), values.copy()
    run(func, want)
    tir.build(func, "cuda-sim")(got)
    np.testing.assert_array_equal(got, want)


# ---------------------------------------------------------------- at random


@pytest.mark.parametrize("seed", range(0, 120, 2))
def test_random_programs_with_random_bindings(seed):
    """Lowered for a GPU, scheduled or not, a program computes what the reference executor says, without a finding."""
    func = random_program(seed)
    scheduled = random_schedule(func, seed, 6)[0].mod["main"] if seed % 4 else func
    inputs = random_inputs(func, seed)
    want = [a.copy() for a in inputs]
    run(func, *want)
    run_everywhere(scheduled, inputs, ORDERS[seed // 2 % 4 :][:1])
    for got, expected in zip(inputs, want):
        np.testing.assert_array_equal(got, expected)


def test_what_an_asynchronous_stage_copies_may_be_read_within_the_stage():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    S = T.alloc_buffer((16,), "float32", scope="shared")
    R = T.alloc_buffer((1,), "float32", scope="local")
    for t in T.thread_binding(16, thread="threadIdx.x"):
        for i in T.serial(8, annotations={"software_pipeline_stage": [0, 0, 1], "software_pipeline_order": [0, 1, 2], "software_pipeline_async_stages": [0]}):
            with T.block("copy"):
                vi, vt = T.axis.remap("SS", [i, t])
                S[vt] = A[vi, vt]
            with T.block("turn"):
                vi, vt = T.axis.remap("SS", [i, t])
                R[0] = S[15 - vt]
            with T.block("use"):
                vi, vt = T.axis.remap("SS", [i, t])
                B[vi, vt] = R[0] * T.float32(2)
""")
    a, b = random_inputs(func, 0)
    tir.build(func, "cuda-sim")(a, b)
    np.testing.assert_array_equal(b, a[:, ::-1] * 2)


def test_what_an_asynchronous_statement_copies_may_be_read_within_it():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
    S = T.alloc_buffer((4, 16), "float32", scope="shared")
    R = T.alloc_buffer((4, 16), "float32", scope="shared")
    for t in T.thread_binding(16, thread="threadIdx.x"):
        for i in T.serial(4, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1], "software_pipeline_async_stages": [0]}):
            for u in range(1):
                with T.block("copy"):
                    vi, vt = T.axis.remap("SS", [i, t])
                    S[vi, vt] = A[vi, vt]
                with T.block("turn"):
                    vi, vt = T.axis.remap("SS", [i, t])
                    R[vi, vt] = S[vi, 15 - vt]
            with T.block("use"):
                vi, vt = T.axis.remap("SS", [i, t])
                B[vi, vt] = R[vi, vt] * T.float32(2)
""")
    a, b = random_inputs(func, 0)
    tir.build(func, "cuda-sim")(a, b)
    np.testing.assert_array_equal(b, a[:, ::-1] * 2)


@pytest.mark.parametrize("stages", [[0, 2], [0, 1], [1, 0], [0, 0]])
def test_what_an_asynchronous_stage_copies_may_be_read_after_the_loop(stages):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32"), C: T.Buffer((4, 16), "float32")):
    S = T.alloc_buffer((4, 16), "float32", scope="shared")
    for t in T.thread_binding(16, thread="threadIdx.x"):
        for i in T.serial(4, annotations={{"software_pipeline_stage": {stages}, "software_pipeline_order": [0, 1], "software_pipeline_async_stages": [0]}}):
            with T.block("copy"):
                vi, vt = T.axis.remap("SS", [i, t])
                S[vi, vt] = A[vi, vt]
            with T.block("other"):
                vi, vt = T.axis.remap("SS", [i, t])
                C[vi, vt] = A[vi, vt] + T.float32(1)
        for i in range(4):
            with T.block("use"):
                vi, vt = T.axis.remap("SS", [i, t])
                B[vi, vt] = S[vi, 15 - vt]
""")
    a, b, c = random_inputs(func, 0)
    tir.build(func, "cuda-sim")(a, b, c)
    np.testing.assert_array_equal(b, a[:, ::-1])


ASYNC = """
@T.prim_func
def f(A: T.Buffer(({n}, 16), "float32"), B: T.Buffer(({n}, 16), "float32")):
    P = T.alloc_buffer((16,), "float32", scope="shared")
    Q = T.alloc_buffer((16,), "float32", scope="shared")
    S = T.alloc_buffer((16,), "float32", scope="shared")
    for t in T.thread_binding(16, thread="threadIdx.x"):
        for i in T.serial({n}, annotations={{"software_pipeline_stage": {stages}, "software_pipeline_order": {orders}, "software_pipeline_async_stages": [0, 1]}}):
            with T.block("p"):
                vi, vt = T.axis.remap("SS", [i, t])
                P[vt] = A[vi, vt]
            with T.block("q"):
                vi, vt = T.axis.remap("SS", [i, t])
                Q[vt] = A[vi, vt]
            with T.block("s"):
                vi, vt = T.axis.remap("SS", [i, t])
                S[vt] = A[vi, vt]
            with T.block("use"):
                vi, vt = T.axis.remap("SS", [i, t])
                B[vi, vt] = {used}[vt]
"""


@pytest.mark.parametrize("used", ["P", "Q", "S"])
@pytest.mark.parametrize("stages", [[0, 1, 0, 2], [0, 0, 1, 3]])
@pytest.mark.parametrize("orders", [[0, 1, 2, 3], [2, 1, 0, 3]])
@pytest.mark.parametrize("n", [1, 2])
def test_copies_have_arrived_where_they_are_used(used, stages, orders, n):
    """Of fewer iterations than stages, the groups are counted line by line."""
    func = parse(ASYNC.format(n=n, stages=stages, orders=orders, used=used))
    committed, arrived, groups, uses = 0, 0, {}, 0
    for line in transform.inject_software_pipeline(func).script().splitlines():
        if found := re.search(rf"^ *{used}\[(.*)\] = ", line):
            groups[found[1]] = committed
        elif "ptx_commit_group" in line:
            committed += 1
        elif found := re.search(r"ptx_wait_group\((\d+)\)", line):
            arrived = max(arrived, committed - int(found[1]))
        elif found := re.search(rf"B\[.*\] = {used}\[(.*)\]", line):
            assert groups[found[1]] < arrived, line
            uses += 1
    assert uses == n


LAUNCHES = """
@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    S = T.alloc_buffer((4, 8), "float32", scope="{scope}")
    for i in range(4):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("S"):
                vi, vt = T.axis.remap("SS", [i, t])
                S[vi, vt] = A[vi, vt] + T.if_then_else(vi > 0, S[{row}, vt], T.float32(0))
            with T.block("B"):
                vi, vt = T.axis.remap("SS", [i, t])
                B[vi, vt] = S[vi, vt]
"""


@pytest.mark.parametrize("scope", ["shared", "warp", "local"])
def test_memory_of_threads_ends_with_each_launch_of_a_kernel(scope):
    reason = {
        "shared": "ends with the kernel, which loop i launches in each iteration",
        "warp": "ends with the kernel, which loop i launches in each iteration",
        "local": "would be read by another thread than the one that wrote it",
    }
    with pytest.raises(BuildError, match=f"`S` .{scope} memory. {reason[scope]}") as refused:
        tir.build(parse(LAUNCHES.format(row="vi - 1", scope=scope)), "cuda-sim")
    assert 'bind("i"' not in str(refused.value)  # the iterations depend on each other
    func = parse(LAUNCHES.replace("S[{row}, vt]", "A[vi - 1, vt]").format(scope=scope))
    a, b = random_inputs(func, 0)
    tir.build(func, "cuda-sim")(a, b)
    np.testing.assert_array_equal(b, a + np.vstack([np.zeros((1, 8), "float32"), a[:-1]]))


def test_a_sum_over_launches():
    """One thread sums over four launches, each of which has registers of its own."""
    func = parse("""
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "float32")):
    S = T.alloc_buffer((1,), "float32", scope="local")
    for k in range(4):
        for t in T.thread_binding(1, thread="threadIdx.x"):
            with T.block("S"):
                vk = T.axis.reduce(4, k + t)
                with T.init():
                    S[0] = T.float32(0)
                S[0] = S[0] + A[vk]
                if vk == 3:
                    B[0] = S[0]
""")
    with pytest.raises(BuildError, match="`S` .local memory. would be read by another thread"):
        tir.build(func, "cuda-sim")


STAGED_SUM = """
@T.prim_func
def f(A: T.Buffer((64, 8), "int32"), C: T.Buffer((64,), "int32")):
    L = T.alloc_buffer((1,), "int32", scope="local")
    OUTSIDE
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        L[0] = 0
        for k in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
            with T.block("step"):
                T.reads(A[tx, k], L[0])
                T.writes(L[0])
                INSIDE
                S[tx] = A[tx, k]
                L[0] = L[0] + S[63 - tx]
        C[tx] = L[0]
"""


def test_shared_memory_of_a_pipeline_in_one_thread_loop():
    memory = 'S = T.alloc_buffer((64,), "int32", scope="shared")'
    assert "allocate it in a block" in refused(STAGED_SUM.replace("OUTSIDE", memory).replace("INSIDE", "pass"))
    a, c = np.arange(512, dtype="int32").reshape(64, 8), np.zeros(64, "int32")
    run_everywhere(parse(STAGED_SUM.replace("OUTSIDE", "pass").replace("INSIDE", memory)), [a, c])
    np.testing.assert_array_equal(c, a[::-1].sum(axis=1))


KEPT_INDEX = """
@T.prim_func
def f(A: T.Buffer((6,), "int32"), O: T.Buffer((6, 4), "int32")):
    for tx in T.thread_binding(6, thread="threadIdx.x"):
        with T.block("O"):
            j = T.alloc_buffer((1,), "int32", scope="local")
            j[0] = 0
            while j[0] < 4:
                O[tx, AT_ROW] = A[tx] + j[0]
                j[0] = j[0] + 1
"""


@pytest.mark.parametrize("at", ["j[0] % 4", "T.min(T.max(j[0], 0), 3)"])
def test_rows_of_threads_are_apart_where_what_is_loaded_has_a_bound(at):
    a, o = np.arange(6, dtype="int32"), np.zeros((6, 4), "int32")
    run_everywhere(parse(KEPT_INDEX.replace("AT_ROW", at)), [a, o])
    np.testing.assert_array_equal(o, np.add.outer(a, np.arange(4)))


def test_what_is_loaded_without_a_bound_is_named_where_threads_may_meet():
    assert "or bound `j[0]` in the index (`% n`, `T.min` and `T.max`)" in refused(KEPT_INDEX.replace("AT_ROW", "j[0]"))
