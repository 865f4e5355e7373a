"""Errors that cost users of the stage schedule hours: each is refused at the user's line, with the facts."""

from __future__ import annotations

import numpy as np
import pytest

import tir
import tir as tvm
from tir import te

N = 1024


def refused(call, *facts):
    with pytest.raises(tir.TirError) as caught:
        call()
    text = str(caught.value)
    for fact in facts:
        assert fact in text, text
    return text


def product(n=N):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    return A, B, te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")


def test_one_thread_axis_of_1024_and_of_4():
    """There: "domain already inferred, cannot prove their extents are the same 1024 vs 4"."""
    A, B, C = product()
    s = te.create_schedule(C.op)
    block_y = te.thread_axis("blockIdx.y")
    s[C].bind(C.op.axis[0], block_y)
    outer, _ = s[C].split(C.op.axis[1], nparts=4)
    s[C].bind(outer, block_y)
    refused(
        lambda: tvm.lower(s, [A, B, C]), "s[C].bind(j_outer, blockIdx.y)", __file__, "extent 1024 (loop `i`", "has 4"
    )


def test_one_reduction_axis_of_two_computes():
    """There: "(!out_dom_map->count(this->reduce_axis[i])) is false". It is allowed."""
    A = te.placeholder((6, 5), name="A")
    k = te.reduce_axis((0, 5), "k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((6,), lambda i: te.max(A[i, k], axis=k), name="C")
    a = np.arange(30, dtype="float32").reshape(6, 5)
    b, c = np.zeros(6, "float32"), np.zeros(6, "float32")
    tvm.build(te.create_schedule([B.op, C.op]), [A, B, C])(a, b, c)
    assert (b == a.sum(1)).all() and (c == a.max(1)).all()


def test_an_array_on_the_host_for_a_kernel():
    """There: "Assert fail: T.tvm_struct_get(A, 0, 10, 'int32') == 2"."""
    A, B, C = product(16)
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    s[C].bind(C.op.axis[1], te.thread_axis("threadIdx.x"))
    func = tvm.build(s, [A, B, C], target="cuda -arch=sm_80", name="mmult")
    a = np.zeros((16, 16), "float32")
    refused(lambda: func(a, a, a.copy()), "mmult", "argument 1 `A`", "on the cpu", "built for cuda:0", "mod.array(x)")


def test_a_loop_of_another_stage():
    """There: "Cannot find the axis [iter_var(ty, , threadIdx.y)] in parent's leaf_iter_vars"."""
    A, B, C = product(16)
    s = te.create_schedule(C.op)
    AA = s.cache_read(A, "shared", [C])
    CC = s.cache_write(C, "local")
    ty, _ = s[C].split(C.op.axis[0], factor=4)
    refused(
        lambda: s[AA].compute_at(s[CC], ty),
        "s[A_shared].compute_at(s[C_local], i_outer)",
        __file__,
        "`i_outer` is an axis of `C`, not of `C_local`",
        "`i_c`, `j_c`, `k`",
    )


def test_an_axis_that_was_split():
    """There: "Operate on iter var IterVar(i) that has already been split"."""
    A, B, C = product(16)
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], factor=4)
    refused(
        lambda: s[C].split(C.op.axis[0], factor=2),
        __file__,
        "`i` is `i_outer` and `i_inner` since s[C].split(i, factor=4) at line",
    )


def test_a_tile_that_an_instruction_does_not_fit():
    """There: "Operate on iter var IterVar(ty) that is not part of the schedule"."""
    a, b = te.placeholder((8,), name="a"), te.placeholder((8,), name="b")
    k = te.reduce_axis((0, 8), "k")
    dot = te.compute((1,), lambda i: te.sum(a[k] * b[k], axis=k), name="dot")
    intrin = te.decl_tensor_intrin(
        dot.op, lambda ins, outs: tvm.tir.call_extern("int32", "dot", *ins, *outs), name="dot8"
    )
    A, B, C = product(16)
    s = te.create_schedule(C.op)
    _, ki = s[C].split(s[C].op.reduce_axis[0], factor=4)
    s[C].tensorize(ki, intrin)
    refused(lambda: tvm.lower(s, [A, B, C]), "s[C].tensorize(k_inner", __file__, "dot8", "8", "4")


def test_a_tuple_whose_results_are_chosen_by_different_conditions():
    """There: "Check failed: ReduceEqual(reduce, reduce_)". Sums of two kinds in a tuple are allowed; this is no reduction."""
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    total, most = te.compute((4,), lambda i: (te.sum(A[i, k], axis=k), te.max(A[i, k], axis=k)), name="B")
    a = np.arange(32, dtype="float32").reshape(4, 8)
    out = [np.zeros(4, "float32") for _ in "ab"]
    tvm.build(te.create_schedule(total.op), [A, total, most])(a, *out)
    assert (out[0] == a.sum(1)).all() and (out[1] == a.max(1)).all()
    mixed = te.comm_reducer(
        lambda x, y: (tir.Select(x[1] > y[1], x[0], y[0]), tir.Select(x[1] < y[1], x[1], y[1])),
        lambda p, v: (te.const(-1, p), te.min_value(v)),
    )
    both = te.compute((4,), lambda i: mixed((k.var, A[i, k]), axis=k), name="C")
    s = te.create_schedule(both[0].op)
    ko, _ = s[both[0]].split(k, factor=4)
    refused(
        lambda: s.rfactor(both[0], ko),
        "s.rfactor(C_v0, k_outer",
        __file__,
        "what `C` is reduced by is no reduction",
        "it matters which two are combined first",
    )


def test_more_than_1024_threads_are_refused_where_they_are_bound():
    A = te.placeholder((4096,), name="A")
    B = te.compute((4096,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    bx, tx = s[B].split(B.op.axis[0], factor=2048)
    s[B].bind(bx, te.thread_axis("blockIdx.x"))
    s[B].bind(tx, te.thread_axis("threadIdx.x"))
    with pytest.raises(tir.ScheduleError, match=r"s\[B\].bind\(i_inner, threadIdx.x\)") as caught:
        tvm.lower(s, [A, B])
    assert "1024" in str(caught.value) and "2048" in str(caught.value)


def test_too_much_shared_memory_is_refused_with_the_buffers():
    A = te.placeholder((64, 256), name="A")
    B = te.compute((64, 256), lambda i, j: A[i, 255 - j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    AA = s.cache_read(A, "shared", [B])
    bx, _ = s[B].split(B.op.axis[0], nparts=1)
    s[B].bind(bx, te.thread_axis("blockIdx.x"))
    s[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))
    s[AA].compute_at(s[B], bx)
    s[AA].bind(s[AA].op.axis[1], te.thread_axis("threadIdx.x"))
    with pytest.raises((tir.BuildError, tir.ScheduleError), match="65536"):
        tvm.build(s, [A, B], "cuda")


def test_a_place_that_cannot_see_the_consumer_is_refused():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((8, 8), lambda i, j: B[i, j] + 1.0, name="C")
    D = te.compute((8, 8), lambda i, j: A[i, j] + C[i, j], name="D")
    s = te.create_schedule(D.op)
    s[B].compute_at(s[D], D.op.axis[0])
    with pytest.raises(tir.ScheduleError, match=r"s\[B\].compute_at\(s\[D\], i\)") as caught:
        tvm.lower(s, [A, D])
    assert "its consumers are C" in str(caught.value) and "C.i, C.j" in str(caught.value)


def test_a_constant_that_its_type_does_not_hold():
    refused(lambda: te.const(300, "int8"), "constant 300 does not fit int8 (-128 to 127)", __file__)
    A = te.placeholder((4,), "int8", name="A")
    refused(
        lambda: te.compute((4,), lambda i: A[i] + te.const(300, "int8")), "constant 300 does not fit int8", __file__
    )


def test_a_pragma_of_a_value_that_means_nothing():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].pragma(B.op.axis[0], "auto_unroll_max_step", "many")
    refused(
        lambda: tvm.lower(s, [A, B]), "s[B].pragma(i, 'auto_unroll_max_step', 'many')", __file__, "a number of steps"
    )


def test_threads_that_share_a_reduction_of_a_size_not_known():
    n = te.var("n")
    A, k = te.placeholder((4, n), name="A"), te.reduce_axis((0, n), "k")
    C = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    s[C].bind(k, te.thread_axis("threadIdx.x"))
    refused(
        lambda: tir.lower(s, [A, C]), "s[C].bind(k, threadIdx.x)", "`n` is no constant", "split the axis by a constant"
    )
    s = te.create_schedule(C.op)
    _, inner = s[C].split(k, factor=16)
    s[C].bind(inner, te.thread_axis("threadIdx.x"))
    tir.lower(s, [A, C])
