"""Stage calls beyond loops: prefetch, store predicates, scans in threads, groups of stages."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import te


def run(s, args, arrays, target="llvm"):
    given = [a.copy() for a in arrays]
    tir.build(s, args, target)(*given)
    return given


def refused(s, args):
    with pytest.raises(tir.ScheduleError) as caught:
        s.to_schedule(args)
    text = str(caught.value)
    assert __file__ in text, text
    return text


def rows(n=8, m=40):
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="B")
    return A, B, te.compute((n, m), lambda i, j: B[i, j] + 1.0, name="C")


# ---------------------------------------------------------------- prefetch


@pytest.mark.parametrize("place", ["own", "attached", "inlined", "copied"])
def test_prefetch_of_what_the_loop_reads(place):
    A, B, C = rows()
    s = te.create_schedule(C.op)
    i = C.op.axis[0]
    if place == "inlined":
        s[B].compute_inline()
    elif place != "own":
        s[B].compute_at(s[C], i)
    if place == "copied":
        s[s.cache_read(A, "global", [B])].compute_at(s[B], B.op.axis[0])
    s[C].prefetch(B if place == "own" else A, i, 3)
    read = "B" if place == "own" else "A"
    text = tir.lower(s, [A, C], simple_mode=True).script()
    assert f"T.prefetch(T.address_of({read}" in text and ("+ 120]" in text or "+ 3" in text), text
    a = np.arange(320, dtype="float32").reshape(8, 40)
    np.testing.assert_array_equal(run(s, [A, C], [a, np.zeros_like(a)])[1], a * 2 + 1)


def test_prefetch_of_a_symbolic_row_at_a_split_loop():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=32)
    s[B].vectorize(inner)
    s[B].prefetch(A, outer, 1)
    for size in (0, 1, 31, 65):
        a = np.arange(size, dtype="float32")
        np.testing.assert_array_equal(run(s, [A, B], [a, np.zeros_like(a)])[1], a + 1)


def test_prefetch_of_what_is_not_read_there_or_does_not_move():
    A, B, C = rows()
    s = te.create_schedule(C.op)
    s[C].prefetch(A, C.op.axis[0], 1)
    assert "`A` is not read in the loops of `C`" in refused(s, [A, C])
    bias = te.placeholder((40,), name="bias")
    D = te.compute((8, 40), lambda i, j: A[i, j] + bias[j], name="D")
    s = te.create_schedule(D.op)
    s[D].prefetch(bias, D.op.axis[0], 1)
    assert "each iteration of loop `i` accesses the same of bias" in refused(s, [A, bias, D])


# ---------------------------------------------------------------- store predicates


def summed(threads=8):
    A = te.placeholder((6, 32), name="A")
    k = te.reduce_axis((0, 32), "k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, ki = s[B].split(k, factor=threads)
    BF = s.rfactor(B, ki)
    tx, bx = te.thread_axis("threadIdx.x"), te.thread_axis("blockIdx.x")
    s[B].bind(s[B].op.reduce_axis[0], tx)
    s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
    xo, _ = s[B].split(B.op.axis[0], factor=4)
    s[B].bind(xo, bx)
    return A, B, s, tx, bx


@pytest.mark.parametrize(
    "predicate",
    [
        lambda tx, bx: tx.var.equal(0),
        lambda tx, bx: tx == 3,
        lambda tx, bx: te.all(tx == 0, bx < 2),
        lambda tx, bx: tx == bx,
        lambda tx, bx: True,
    ],
)
def test_a_predicate_that_leaves_out_repetitions(predicate):
    A, B, s, tx, bx = summed()
    s[B].set_store_predicate(predicate(tx, bx))
    a = np.arange(192, dtype="float32").reshape(6, 32)
    np.testing.assert_array_equal(run(s, [A, B], [a, np.zeros(6, "float32")], "cuda-sim")[1], a.sum(1))


@pytest.mark.parametrize(
    ("predicate", "witness"),
    [
        (lambda tx, bx: tx == 8, "no thread stores"),
        (lambda tx, bx: bx == 0, "at i_outer = 1, i_inner = "),
        (lambda tx, bx: tx == bx + 7, "at i_outer = 1, i_inner = "),
        (lambda tx, bx: False, "no thread stores"),
        (lambda tx, bx: te.all(tx == 0, te.thread_axis("threadIdx.y") == 0), "`threadIdx.y` is no axis of `B`"),
    ],
)
def test_a_predicate_that_leaves_an_element_without_a_store(predicate, witness):
    A, B, s, tx, bx = summed()
    s[B].set_store_predicate(predicate(tx, bx))
    text = refused(s, [A, B])
    assert witness in text and "te.if_then_else" in text, text


def test_a_predicate_of_an_axis_that_the_guard_of_a_tail_implies():
    A, B, s, tx, _ = summed()
    s[B].set_store_predicate(te.all(tx == 0, B.op.axis[0] < 6))
    s.to_schedule([A, B])
    s[B].set_store_predicate(B.op.axis[0] < 5)
    assert "i_outer = 1, i_inner = 1" in refused(s, [A, B])


@pytest.mark.parametrize(("scope", "allowed"), [("shared", True), ("local", False)])
def test_threads_that_no_axis_is_bound_to_repeat_stores_to_shared_memory(scope, allowed):
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((16,), lambda i: B[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    xo, xi = s[C].split(C.op.axis[0], factor=8)
    tx = te.thread_axis("threadIdx.x")
    s[C].bind(xo, te.thread_axis("blockIdx.x"))
    s[C].bind(xi, tx)
    s[B].compute_at(s[C], xo)
    s[B].set_scope(scope)
    s[B].set_store_predicate(tx == 5)
    if not allowed:
        assert "leaves out more than repetitions" in refused(s, [A, C])
        return
    a = np.arange(16, dtype="float32")
    np.testing.assert_array_equal(run(s, [A, C], [a, np.zeros_like(a)], "cuda-sim")[1], a * 2 + 1)


def test_a_predicate_on_data_is_not_decided():
    A, B, s, _, _ = summed()
    s[B].set_store_predicate(A[B.op.axis[0], 0] > 0.0)
    assert "not decided" in refused(s, [A, B])


# ---------------------------------------------------------------- scans in threads


def recurrence(m=5, n=24, reach=0):
    """Two states; the second reads the first one's row of the same time, ``reach`` columns away."""
    X = te.placeholder((m, n), name="X")
    s1, s2 = te.placeholder((m, n), name="s1"), te.placeholder((m, n), name="s2")
    i1 = te.compute((1, n), lambda _, i: X[0, i], name="i1")
    i2 = te.compute((1, n), lambda _, i: X[0, i] * 2.0, name="i2")
    u1 = te.compute((m, n), lambda t, i: s1[t - 1, i] + X[t, i], name="u1")
    u2 = te.compute((m, n), lambda t, i: s2[t - 1, i] + u1[t, te.max(i - reach, 0)], name="u2")
    out = te.scan([i1, i2], [u1, u2], [s1, s2], inputs=[X], name="S")
    s = te.create_schedule(out[0].op)
    threads = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
    for step in (i1, i2, u1, u2):
        for axis, thread in zip(s[step].split(step.op.axis[1], factor=8), threads):
            s[step].bind(axis, thread)
    return X, out, s, threads, (u1, u2)


def test_a_scan_in_threads_is_one_kernel_with_time_inside():
    X, out, s, threads, _ = recurrence()
    assert [loop.name for loop in s.to_schedule().get_loops("u2")] == ["t", "i_outer", "i_inner"]
    s[out[0]].env_threads(threads)
    sch = s.to_schedule()
    assert [loop.name for loop in sch.get_loops("u1")] == [loop.name for loop in sch.get_loops("u2")]
    assert sch.get_loops("u2")[2].name == "t"
    x = np.random.default_rng(0).integers(-3, 4, (5, 24)).astype("float32")
    _, first, second = run(s, [X, *out], [x, np.zeros_like(x), np.zeros_like(x)], "cuda-sim")
    np.testing.assert_array_equal(first, np.cumsum(x, 0))
    np.testing.assert_array_equal(second, np.cumsum(np.cumsum(x, 0), 0) + x[:1])


def test_a_step_that_reads_what_another_thread_makes_stays_outside():
    X, out, s, threads, _ = recurrence(reach=1)
    s.to_schedule()
    s[out[0]].env_threads(threads)
    assert "s[S].env_threads([blockIdx.x, threadIdx.x])" in refused(s, [X, *out])


def test_a_step_that_is_bound_to_no_such_thread_is_named():
    X, out, s, threads, (u1, _) = recurrence()
    s[out[0]].env_threads([*threads, te.thread_axis("threadIdx.y")])
    assert "`u1`, a step of the scan, has no axis bound to threadIdx.y" in refused(s, [X, *out])
    with pytest.raises(tir.ScheduleError, match="`u1` is no scan"):
        s[u1].env_threads(threads)


# ---------------------------------------------------------------- groups


def test_a_group_is_placed_together():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((8, 8), lambda i, j: B[i, j] + 1.0, name="C")
    D = te.compute((8, 8), lambda i, j: C[i, j] * C[i, j], name="D")
    s = te.create_schedule(D.op)
    group = s.create_group(outputs=[C], inputs=[A])
    group.compute_at(s[D], D.op.axis[0])
    sch = s.to_schedule([A, D])
    for name in "BC":
        assert sch.get_loops(name)[0].name == sch.get_loops("D")[0].name and len(sch.get_loops(name)) == 3
    a = np.arange(64, dtype="float32").reshape(8, 8)
    np.testing.assert_array_equal(run(s, [A, D], [a, np.zeros_like(a)])[1], (a * 2 + 1) ** 2)
    assert [x.name for x in s.create_group(C, B).stages] == ["C"]
    assert [x.name for x in s.create_group(C, B, include_inputs=True).stages] == ["C", "B"]
    group.compute_root()
    assert len(s.to_schedule([A, D]).get_loops("B")) == 2
    with pytest.raises(tir.ScheduleError, match="no operation is between"):
        s.create_group(B, B)
