"""Stage schedules: the classic calls, the program they become, and that their order does not matter."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tir
import tir as tvm
from tir import te


def matmul(n=8, m=8, k=8):
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), "k")
    return A, B, te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")


def scale_and_shift(*shape):
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: A(*i) * 2.0, name="B")
    return A, B, te.compute(shape, lambda *i: B(*i) + 1.0, name="C")


def integers(tensors, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(-4, 5, [int(e) for e in t.shape]).astype(str(t.dtype)) for t in tensors]


def assert_same_as_unscheduled(s, args, *engines):
    """The scheduled program against the reference executor on the program without a schedule."""
    arrays = integers(args)
    expected = [a.copy() for a in arrays]
    tir.build(te.create_prim_func(list(args)), "interpreter")(*expected)
    for engine in engines or ("interpreter", "llvm"):
        given = [a.copy() for a in arrays]
        tir.build(s, list(args), engine)(*given)
        for got, want in zip(given, expected):
            np.testing.assert_array_equal(got, want)


def loops(s, args):
    """Names of the loops around each block."""
    sch = s.to_schedule(args)
    return {b: [loop.name for loop in sch.get_loops(b)] for b in sch.state.index.blocks if b != "root"}


# ---------------------------------------------------------------- axes


def test_split_fuse_and_reorder_name_loops_as_the_classic_api_does():
    A, B, C = scale_and_shift(8, 12)
    s = te.create_schedule(C.op)
    s[B].compute_inline()
    outer, inner = s[C].split(C.op.axis[0], factor=4)
    s[C].reorder(inner, s[C].op.axis[1], outer)
    s[C].fuse(inner, C.op.axis[1])
    assert loops(s, [A, C]) == {"C": ["i0_inner_i1_fused", "i0_outer"]}
    assert_same_as_unscheduled(s, [A, C])


def test_op_axis_stays_what_it_was_after_a_split():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], nparts=2)
    assert s[C].op.axis[0] is C.op.axis[0] and s[C].op.reduce_axis[0] is C.op.reduce_axis[0]


def test_nested_splits_with_factors_that_do_not_divide():
    A, B, C = matmul(7, 13, 5)
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[1], factor=6)
    s[C].split(inner, factor=4)
    ko, ki = s[C].split(C.op.reduce_axis[0], factor=2)
    s[C].reorder(ko, outer, C.op.axis[0], ki)
    assert_same_as_unscheduled(s, [A, B, C])


def test_axes_that_only_the_order_makes_neighbours_are_fused():
    A, B, C = scale_and_shift(4, 6, 5)
    i, j, k = C.op.axis
    s = te.create_schedule(C.op)
    s[C].reorder(i, k, j)
    fused = s[C].fuse(i, k)
    s[C].split(fused, factor=8)
    assert_same_as_unscheduled(s, [A, C])


# ---------------------------------------------------------------- places


def test_compute_at_computes_what_is_needed_there():
    A, B, C = scale_and_shift(8, 8)
    s = te.create_schedule(C.op)
    outer, _ = s[C].split(C.op.axis[0], factor=2)
    s[B].compute_at(s[C], outer)
    text = tir.lower(s, [A, C], simple_mode=True).script()
    assert 'B = T.allocate([16], "float32", "global")' in text
    assert_same_as_unscheduled(s, [A, C])


def test_an_attachment_holds_when_its_axis_is_split_later():
    A, B, C = scale_and_shift(8, 8)
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[C].split(C.op.axis[0], factor=4)
    assert len(s.to_schedule([A, C]).get_loops("B")) == 4
    assert_same_as_unscheduled(s, [A, C])


def test_stages_move_with_all_their_outputs():
    A = te.placeholder((8, 6), name="A")
    X, Y = te.compute((8, 6), lambda i, j: (A[i, j] + 1.0, A[i, j] * 2.0), name="X")
    Z = te.compute((8, 6), lambda i, j: X[i, j] + Y[i, j], name="Z")
    s = te.create_schedule(Z.op)
    s[X].compute_at(s[Z], Z.op.axis[0])
    assert loops(s, [A, Z])["X_v0"] == loops(s, [A, Z])["X_v1"]
    assert_same_as_unscheduled(s, [A, Z])


@pytest.mark.parametrize(
    ("inline", "left"),
    [
        (te.schedule.AutoInlineInjective, {"C"}),
        (te.schedule.AutoInlineElemWise, {"T", "C"}),
        (te.schedule.AutoInlineBroadcast, {"T", "C"}),
    ],
)
def test_inlining_by_class(inline, left):
    A = te.placeholder((6, 4), name="A")
    E = te.compute((6, 4), lambda i, j: A[i, j] + 1.0, name="E")
    T = te.compute((4, 6), lambda i, j: E[j, i], name="T")
    C = te.compute((4, 6), lambda i, j: T[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    inline(s)
    assert set(loops(s, [A, C])) == left
    assert_same_as_unscheduled(s, [A, C])


# ---------------------------------------------------------------- the graph


def test_opt_gemm_with_packing_and_a_write_cache():
    n, bn = 16, 8
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    packedB = te.compute((n // bn, n, bn), lambda bigN, k, littleN: B[k, bigN * bn + littleN], name="packedB")
    C = te.compute(
        (n, n), lambda i, j: te.sum(A[i, k] * packedB[j // bn, k, tvm.tir.indexmod(j, bn)], axis=k), name="C"
    )
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
    s[CC].compute_at(s[C], no)
    mc, nc = s[CC].op.axis
    (kaxis,) = s[CC].op.reduce_axis
    ko, ki = s[CC].split(kaxis, factor=4)
    s[CC].reorder(ko, mc, ki, nc)
    s[CC].vectorize(nc)
    s[CC].unroll(ki)
    s[C].parallel(mo)
    bigN, _, littleN = s[packedB].op.axis
    s[packedB].vectorize(littleN)
    s[packedB].parallel(bigN)
    text = tvm.lower(s, [A, B, C], simple_mode=True).script()
    assert "for bigN in T.parallel(2)" in text and "T.vectorized(8)" in text and "T.unroll(4)" in text
    assert_same_as_unscheduled(s, [A, B, C])


def test_cache_read_gives_the_readers_a_copy():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    AA = s.cache_read(A, "local", [C])
    s[AA].compute_at(s[C], C.op.axis[0])
    assert s[C].op.input_tensors[0] is AA
    assert "A_local" in loops(s, [A, B, C])
    assert_same_as_unscheduled(s, [A, B, C])


def test_caches_of_several_outputs_of_one_operation():
    A = te.placeholder((8,), name="A")
    X, Y = te.compute((8,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="X")
    s = te.create_schedule(X.op)
    XC, YC = s.cache_write([X, Y], "local")
    s[XC].compute_at(s[X], s[X].op.axis[0])
    assert (XC.name, YC.name) == ("X_local_v0", "X_local_v1")
    assert_same_as_unscheduled(s, [A, X, Y])


def test_what_a_copy_alone_reads_of_an_output_that_nobody_reads_is_left_out():
    n = te.var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((4,), name="B")
    X, _ = Y = te.compute((4,), lambda i: (B[i] + 1.0, A[7 % n]), name="X")
    s = te.create_schedule(X.op)
    s.cache_write(list(Y), "global")
    made = tir.lower(s, [A, B, X])
    assert "A[" not in made.script()
    b, x = np.arange(4, dtype="float32"), np.empty(4, "float32")
    tir.build(made, target="interpreter")(np.empty(0, "float32"), b, x)
    np.testing.assert_array_equal(x, b + 1)


@pytest.mark.parametrize("factor", [4, 8])
@pytest.mark.parametrize("place", [0, 1, -1])
def test_rfactor(factor, place):
    A = te.placeholder((6, 20), name="A")
    k = te.reduce_axis((0, 20), "k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k, init=3.0), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(k, factor=factor)
    BF = s.rfactor(B, ki, place)
    assert [int(e) for e in BF.shape] == ([factor, 6] if place == 0 else [6, factor])
    s[BF].compute_at(s[B], s[B].op.axis[0])
    assert_same_as_unscheduled(s, [A, B])


@pytest.mark.parametrize("split", [False, True])
def test_rfactor_of_an_axis_with_a_start(split):
    A = te.placeholder((12,), name="A")
    k = te.reduce_axis((3, 11), "k")
    B = te.compute((1,), lambda i: te.sum(A[k], axis=k, where=k % 2 == 0), name="B")
    s = te.create_schedule(B.op)
    s.rfactor(B, s[B].split(k, factor=4)[1] if split else k)
    assert_same_as_unscheduled(s, [A, B])


def test_rfactor_of_a_fused_reduction_and_of_a_tuple():
    idx, val = te.placeholder((5, 3, 4), "int32", "idx"), te.placeholder((5, 3, 4), name="val")

    def better(x, y):
        return tuple(tvm.tir.Select(x[1] >= y[1], a, b) for a, b in zip(x, y))

    argmax = te.comm_reducer(better, lambda t, u: (te.const(-1, t), te.min_value(u)), name="argmax")
    k, r = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 4), "r")
    T0, T1 = te.compute((5,), lambda i: argmax((idx[i, k, r], val[i, k, r]), axis=[k, r]), name="T")
    s = te.create_schedule(T0.op)
    outer, inner = s[T0].split(s[T0].fuse(k, r), factor=5)
    P0, P1 = s.rfactor(T0, outer)
    assert P0.dtype == "int32" and P1.dtype == "float32"
    assert_same_as_unscheduled(s, [idx, val, T0, T1])


def test_reduction_across_threads():
    A = te.placeholder((32, 50), name="A")
    k = te.reduce_axis((0, 50), "k")
    B = te.compute((32,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=8)
    BF = s.rfactor(B, ki)
    xo, xi = s[B].split(s[B].op.axis[0], factor=4)
    s[B].bind(xo, te.thread_axis("blockIdx.x"))
    s[B].bind(xi, te.thread_axis("threadIdx.y"))
    tx = te.thread_axis("threadIdx.x")
    s[B].bind(s[B].op.reduce_axis[0], tx)
    s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
    s[B].set_store_predicate(tx.var.equal(0))
    assert_same_as_unscheduled(s, [A, B], "cuda-sim")


def test_opt_conv_cuda_on_the_simulator():
    batch, channels, filters, size, kernel = 8, 8, 16, 4, 3
    A = te.placeholder((size, size, channels, batch), name="A")
    W = te.placeholder((kernel, kernel, channels, filters), name="W")
    Apad = te.compute(
        (size + 2, size + 2, channels, batch),
        lambda yy, xx, cc, nn: tvm.tir.if_then_else(
            tvm.tir.all(yy >= 1, yy - 1 < size, xx >= 1, xx - 1 < size),
            A[yy - 1, xx - 1, cc, nn],
            tvm.tir.const(0.0, "float32"),
        ),
        name="Apad",
    )
    rc = te.reduce_axis((0, channels), name="rc")
    ry, rx = te.reduce_axis((0, kernel), name="ry"), te.reduce_axis((0, kernel), name="rx")
    B = te.compute(
        (size, size, filters, batch),
        lambda yy, xx, ff, nn: te.sum(Apad[yy + ry, xx + rx, rc, nn] * W[ry, rx, rc, ff], axis=[ry, rx, rc]),
        name="B",
    )
    s = te.create_schedule(B.op)
    s[Apad].compute_inline()
    AA, WW = s.cache_read(Apad, "shared", [B]), s.cache_read(W, "shared", [B])
    AL, WL = s.cache_read(AA, "local", [B]), s.cache_read(WW, "local", [B])
    BL = s.cache_write(B, "local")
    num_thread, step, vthread = 2, 4, 2
    block_x, block_y, block_z = (te.thread_axis(f"blockIdx.{d}") for d in "xyz")
    thread_x = te.thread_axis((0, num_thread), "threadIdx.x")
    thread_y = te.thread_axis((0, num_thread), "threadIdx.y")
    thread_xz = te.thread_axis((0, vthread), "vthread", name="vx")
    thread_yz = te.thread_axis((0, vthread), "vthread", name="vy")
    hi, wi, fi, ni = s[B].op.axis
    bz = s[B].fuse(hi, wi)
    by, fi = s[B].split(fi, factor=8)
    bx, ni = s[B].split(ni, factor=8)
    s[B].bind(bz, block_z)
    s[B].bind(by, block_y)
    s[B].bind(bx, block_x)
    tyz, fi = s[B].split(fi, nparts=vthread)
    txz, ni = s[B].split(ni, nparts=vthread)
    ty, fi = s[B].split(fi, nparts=num_thread)
    tx, ni = s[B].split(ni, nparts=num_thread)
    s[B].reorder(bz, by, bx, tyz, txz, ty, tx, fi, ni)
    s[B].bind(tyz, thread_yz)
    s[B].bind(txz, thread_xz)
    s[B].bind(ty, thread_y)
    s[B].bind(tx, thread_x)
    s[BL].compute_at(s[B], tx)
    yi, xi, fi, ni = s[BL].op.axis
    ry, rx, rc = s[BL].op.reduce_axis
    rco, rci = s[BL].split(rc, factor=step)
    s[BL].reorder(rco, ry, rx, rci, fi, ni)
    s[AA].compute_at(s[BL], rx)
    s[WW].compute_at(s[BL], rx)
    s[AL].compute_at(s[BL], rci)
    s[WL].compute_at(s[BL], rci)
    for cache in (AA, WW):
        yi, xi, ci, fi = s[cache].op.axis
        ty, ci = s[cache].split(ci, nparts=num_thread)
        tx, fi = s[cache].split(fi, nparts=num_thread)
        _, fi = s[cache].split(fi, factor=4)
        s[cache].reorder(ty, tx, yi, xi, ci, fi)
        s[cache].bind(ty, thread_y)
        s[cache].bind(tx, thread_x)
        s[cache].vectorize(fi)
    assert_same_as_unscheduled(s, [A, W, B], "cuda-sim")


# ---------------------------------------------------------------- memory and hints


def test_memory_is_inferred_from_the_threads_around():
    A, B, C = scale_and_shift(8, 8)
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    s[C].bind(i, te.thread_axis("blockIdx.x"))
    s[C].bind(j, te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], i)
    s[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))
    assert 'scope="shared"' in s.to_schedule([A, C]).mod.script()
    assert_same_as_unscheduled(s, [A, C], "cuda-sim")
    s[B].compute_at(s[C], j)
    s[B].marks.clear()
    assert 'scope="local"' in s.to_schedule([A, C]).mod.script()


def test_alignment_double_buffers_and_pragmas_are_told_to_the_blocks():
    A, B, C = scale_and_shift(8, 8)
    s = te.create_schedule(C.op)
    s[B].set_scope("local")
    s[B].storage_align(B.op.axis[0], 16, 4)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].double_buffer()
    s[C].pragma(C.op.axis[0], "auto_unroll_max_step", 16)
    text = s.to_schedule([A, C]).mod.script()
    assert "buffer_dim_align" in text and "double_buffer_scope" in text and "pragma_auto_unroll_max_step" in text
    assert_same_as_unscheduled(s, [A, C])


# ---------------------------------------------------------------- lowering after every step


def test_lowering_after_every_call_takes_only_the_new_steps():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    s[C].split(i, factor=4)
    first = s.to_schedule([A, B, C])
    s[C].vectorize(j)
    taken = s._replay._taken[0][1]
    second = s.to_schedule([A, B, C])
    assert s._replay._taken[0][1] is taken
    assert len(second.history) > len(first.history)


def test_the_trace_of_the_block_schedule_replays():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "local")
    s[CC].compute_at(s[C], C.op.axis[0])
    sch = s.to_schedule([A, B, C])
    again = tir.Schedule(te.create_prim_func(s.arguments([A, B, C])))
    sch.trace.apply_to_schedule(again)
    tir.assert_structural_equal(sch.mod, again.mod)


CALLS = {  # name of a call: the calls it needs, and what it does with what they returned
    "cache": ((), lambda s, C, got: s.cache_write(C, "local")),
    "split i": (("cache",), lambda s, C, got: s[C].split(C.op.axis[0], factor=4)),
    "split j": (("cache",), lambda s, C, got: s[C].split(C.op.axis[1], nparts=2)),
    "order": (
        ("split i", "split j"),
        lambda s, C, got: s[C].reorder(got["split i"][0], got["split j"][0], got["split i"][1], got["split j"][1]),
    ),
    "parallel": (("split i",), lambda s, C, got: s[C].parallel(got["split i"][0])),
    "vectorize": (("split j",), lambda s, C, got: s[C].vectorize(got["split j"][1])),
    "move": (("split j",), lambda s, C, got: s[got["cache"]].compute_at(s[C], got["split j"][0])),
    "split k": (("cache",), lambda s, C, got: s[got["cache"]].split(s[got["cache"]].op.reduce_axis[0], factor=3)),
    "order of the sum": (
        ("split k",),
        lambda s, C, got: s[got["cache"]].reorder(*got["split k"], *s[got["cache"]].op.axis),
    ),
    "unroll": (("split k",), lambda s, C, got: s[got["cache"]].unroll(got["split k"][1])),
    "read": (("cache",), lambda s, C, got: s.cache_read(s.stages[0].op.output(0), "global", [got["cache"]])),
    "unroll rows": (("split i",), lambda s, C, got: s[C].unroll(got["split i"][1])),
    "pragma": (("cache",), lambda s, C, got: s[got["cache"]].pragma(s[got["cache"]].op.axis[0], "unroll_explicit", 1)),
    "scope": (("cache",), lambda s, C, got: s[got["cache"]].set_scope("global")),
    "move the copy": (
        ("read", "split k"),
        lambda s, C, got: s[got["read"]].compute_at(s[got["cache"]], got["split k"][0]),
    ),
    "split the copy": (("read",), lambda s, C, got: s[got["read"]].split(s[got["read"]].op.axis[1], factor=2)),
    "vectorize the copy": (("split the copy",), lambda s, C, got: s[got["read"]].vectorize(got["split the copy"][1])),
    "align": (("read",), lambda s, C, got: s[got["read"]].storage_align(s[got["read"]].op.axis[0], 16, 4)),
    "double": (("read",), lambda s, C, got: s[got["read"]].double_buffer()),
    "read B": (
        ("cache",),
        lambda s, C, got: s.cache_read(s[got["cache"]].op.input_tensors[1], "global", [got["cache"]]),
    ),
}


def in_order(order):
    A, B, C = matmul(8, 8, 8)
    s = te.create_schedule(C.op)
    got: dict = {}
    for name in order:
        got[name] = CALLS[name][1](s, C, got)
    return s.to_schedule([A, B, C]).mod


@st.composite
def orders(draw):
    left, done = list(CALLS), []
    while left:
        ready = [name for name in left if all(need in done for need in CALLS[name][0])]
        done.append(draw(st.sampled_from(ready)))
        left.remove(done[-1])
    return done


BASE = in_order(CALLS)


@settings(max_examples=int(os.environ.get("ORDERS", "20")))
@given(orders())
def test_the_order_of_independent_calls_does_not_matter(order):
    """Twenty calls; ``ORDERS=1000`` in the environment tries so many orders."""
    tir.assert_structural_equal(in_order(order), BASE)


# ---------------------------------------------------------------- refusals


def refused(call):
    """The message of a call, which names its own line."""
    with pytest.raises(tir.TirError) as caught:
        call()
    assert __file__ in str(caught.value), str(caught.value)
    return str(caught.value)


def test_an_axis_that_was_split_is_named_with_what_it_became():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], factor=4)
    text = refused(lambda: s[C].vectorize(C.op.axis[0]))
    assert "`i` is `i_outer` and `i_inner` since s[C].split(i, factor=4) at line" in text
    assert "the loops are `i_outer`, `i_inner`, `j`, `k`" in text


def test_an_axis_of_another_stage_is_named_with_its_owner():
    A, B, C = scale_and_shift(8, 8)
    s = te.create_schedule(C.op)
    assert "`i0` is an axis of `B`, not of `C`" in refused(lambda: s[C].split(B.op.axis[0], factor=4))
    assert "the loops of `C` are" in refused(lambda: s[B].compute_at(s[C], B.op.axis[0]))


def test_one_thread_axis_has_one_extent():
    A, B, C = scale_and_shift(8, 4)
    s = te.create_schedule(C.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    s[B].set_scope("shared")
    i, j = C.op.axis
    s[C].bind(i, te.thread_axis("blockIdx.x"))
    s[C].bind(j, te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], i)
    text = refused(lambda: tir.lower(s, [A, C]))
    assert "threadIdx.x" in text and "4" in text


def test_a_reduction_axis_is_not_run_in_parallel():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].parallel(C.op.reduce_axis[0])
    text = refused(lambda: tir.lower(s, [A, B, C]))
    assert "s[C].parallel(k)" in text


def test_a_cache_comes_before_the_loops_it_copies():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], factor=4)
    assert "has been scheduled: s[C].split(i, factor=4)" in refused(lambda: s.cache_write(C, "local"))


def test_marks_are_set_once_and_last():
    A, B, C = scale_and_shift(8, 8)
    s = te.create_schedule(C.op)
    s[C].vectorize(C.op.axis[1])
    assert "marked already: s[C].vectorize(" in refused(lambda: s[C].parallel(C.op.axis[1]))
    assert "marked already: s[C].vectorize(" in refused(lambda: s[C].split(C.op.axis[1], factor=2))


def test_a_refused_step_leaves_the_record_and_the_next_lowering_goes_on():
    A, B, C = scale_and_shift(8, 8)
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[1])
    s[C].compute_root()
    tir.lower(s, [A, C])
    s[B].compute_inline()
    assert set(loops(s, [A, C])) == {"C"}


def test_a_computation_written_through_reduces_over_the_axes_that_the_user_made():
    """The tutorial on tensor cores splits its own reduction axis in the stage that cache_write makes."""
    n, k = te.var("n"), te.reduce_axis((0, 8), "k")
    A = te.placeholder((n, 8), name="A")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    BL = s.cache_write(B, "local")
    assert s[BL].op.reduce_axis[0] is k
    s[BL].split(k, factor=4)
    assert "for k_outer, k_inner" in tir.lower(s, [A, B], simple_mode=True).script()


def test_a_reduction_whose_domain_depends_on_a_dimension_has_an_axis_of_its_own_when_written_through():
    A = te.placeholder((6, 6), name="A")

    def rows(i):
        k = te.reduce_axis((0, i + 1), "k")
        return te.sum(A[i, k], axis=k)

    B = te.compute((6,), rows, name="B")
    s = te.create_schedule(B.op)
    s.cache_write(B, "global")
    out, a = np.zeros(6, "float32"), np.arange(36, dtype="float32").reshape(6, 6)
    tir.build(s, [A, B], "llvm")(a, out)
    np.testing.assert_array_equal(out, np.tril(a).sum(1))


def test_a_copy_of_the_row_that_steps_of_a_scan_read():
    T, n = 5, 8
    W, X = te.placeholder((n, n), name="W"), te.placeholder((T, n), name="X")
    state = te.placeholder((T, n), name="state")
    k = te.reduce_axis((0, n), "k")
    first = te.compute((1, n), lambda t, i: X[0, i], name="first")
    product = te.compute((T, n), lambda t, i: te.sum(state[t - 1, k] * W[i, k], axis=k), name="product")
    step = te.compute((T, n), lambda t, i: product[t, i] + state[t - 1, i] + X[t, i], name="step")
    result = te.scan(first, step, state, inputs=[W, X], name="result")
    s = te.create_schedule(result.op)
    row = s.cache_read(state, "local", [product, step])
    assert_same_as_unscheduled(s, [W, X, result])
    s = te.create_schedule(result.op)
    row = s.cache_read(state, "local", product)
    i = s[product].op.axis[1]
    outer, inner = s[product].split(i, factor=4)
    s[row].compute_at(s[product], outer)
    assert_same_as_unscheduled(s, [W, X, result])


def test_a_copy_of_the_state_of_a_scan_has_one_row_for_each_step():
    state = te.placeholder((9,), "int32", name="state")
    first = te.compute((2,), lambda t: te.const(1), name="first")
    step = te.compute((9,), lambda t: state[t - 1] + state[t - 2], name="step")
    s = te.create_schedule(te.scan(first, step, state, name="fibonacci").op)
    assert "several rows of the state `state`, 1, 2 before their own" in refused(
        lambda: s.cache_read(state, "local", [step])
    )


def test_what_steps_of_a_scan_read_besides_its_state_is_copied():
    X = te.placeholder((4, 3), name="X")
    state = te.placeholder((4, 3), name="state")
    first = te.compute((1, 3), lambda t, i: X[0, i], name="first")
    step = te.compute((4, 3), lambda t, i: state[t - 1, i] + X[t, i], name="step")
    S = te.scan(first, step, state, name="S")
    s = te.create_schedule(S.op)
    s.cache_read(X, "local", [step])
    assert_same_as_unscheduled(s, [X, S])


def test_partial_results_have_dimensions_that_do_not_vary():
    A = te.placeholder((4, 4), name="A")

    def triangle(i):
        k = te.reduce_axis((0, i + 1), "k")
        return te.sum(A[i, k], axis=k)

    C = te.compute((4,), triangle, name="C")
    s = te.create_schedule(C.op)
    axis = C.op.reduce_axis[0]
    assert "its extent, `i + 1`, varies" in refused(lambda: s.rfactor(C, axis))
    s.rfactor(C, s[C].split(axis, factor=2)[1])
    assert_same_as_unscheduled(s, [A, C])


def test_loops_of_a_reduction_that_may_be_empty_are_not_fused_with_others():
    n = te.var("n")
    A = te.placeholder((4, n), name="A")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    assert "`k` is empty where `n` is 0" in refused(lambda: s[C].fuse(C.op.axis[0], k))
    result = np.full(4, 7, "float32")
    tir.build(s, [A, C], "interpreter")(np.zeros((4, 0), "float32"), result)
    assert result.tolist() == [0] * 4


def test_a_step_of_a_scan_is_factored_behind_time():
    """The first dimension of partial results in a scan is time, whatever a user leaves out."""
    T, n = 5, 8
    W, state = te.placeholder((n, n), name="W"), te.placeholder((T, n), name="state")
    k = te.reduce_axis((0, n), "k")
    first = te.compute((1, n), lambda t, i: W[0, i], name="first")
    step = te.compute((T, n), lambda t, i: te.sum(state[t - 1, k] * W[i, k], axis=k), name="step")
    powers = te.scan(first, step, state, inputs=[W], name="powers")
    for where in ({}, {"factor_axis": 1}, {"factor_axis": -1}):
        s = te.create_schedule(powers.op)
        _, inner = s[step].split(k, factor=4)
        partial = s.rfactor(step, inner, **where)
        assert [int(e) for e in partial.shape] == ([5, 8, 4] if where == {"factor_axis": -1} else [5, 4, 8])
        assert_same_as_unscheduled(s, [W, powers])
    s = te.create_schedule(powers.op)
    with pytest.raises(tvm.ScheduleError, match=r"the first is time in a step of scan `powers`(\n.*)*legal: 1 to 2"):
        s.rfactor(step, k, factor_axis=0)


def test_threads_share_a_reduction_of_several_values_in_shared_memory():
    """Both values are in shared memory, and a thread combines them at once."""
    n, m = 3, 20
    X = te.placeholder((n, m), name="X")
    k = te.reduce_axis((0, m), "k")
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], te.max(x[1], y[1])), lambda a, b: (te.const(0, a), te.min_value(b))
    )
    total, largest = te.compute((n,), lambda i: both((X[i, k], X[i, k]), axis=k), name="both")
    Y = te.compute((n, m), lambda i, j: X[i, j] * largest[i] + total[i], name="Y")
    for in_parts in (False, True):
        s = te.create_schedule(Y.op)
        i, j = Y.op.axis
        block, thread = te.thread_axis("blockIdx.x"), te.thread_axis((0, 8), "threadIdx.x")
        _, inner = s[Y].split(j, factor=8)
        s[Y].bind(i, block)
        s[Y].bind(inner, thread)
        s[total].compute_at(s[Y], i)
        _, ki = s[total].split(k, factor=8)
        if in_parts:
            partial, _ = s.rfactor(total, ki)
            ki = s[total].op.reduce_axis[0]
            s[partial].compute_at(s[total], ki)
        s[total].bind(ki, thread)
        allocated = s.to_schedule([X, Y]).mod.script()
        assert allocated.count('both_v0 = T.alloc_buffer((3,), "float32", scope="shared")') == 1
        assert allocated.count('both_v1 = T.alloc_buffer((3,), "float32", scope="shared")') == 1
        assert_same_as_unscheduled(s, [X, Y], "cuda-sim")
