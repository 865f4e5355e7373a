"""Scripts in the style of users' notes of 2020, with only the import line changed: stage schedules of all kinds."""

from __future__ import annotations

import numpy as np
import pytest

import tir
import tir as tvm
from tir import te


def run(s, args, arrays, target="llvm", **options):
    func = tvm.build(s, args, target=target, **options)
    tensors = [tvm.nd.array(a) for a in arrays]
    func(*tensors)
    return [t.numpy() for t in tensors]


def test_a_def_with_intermediate_values_computes_a_block_of_a_matrix():
    n, block = 8, 4
    A = te.placeholder((n, n), name="A")

    def c1_compute(i, j):
        row = i * block
        column = j * block
        return A[row, column] + A[row + 1, column + 1]

    C = te.compute((n // block, n // block), c1_compute, name="c1")
    s = te.create_schedule(C.op)
    a = np.arange(64, dtype="float32").reshape(8, 8)
    _, c = run(s, [A, C], [a, np.zeros((2, 2), "float32")])
    np.testing.assert_array_equal(c, a[::4, ::4] + a[1::4, 1::4])


def test_lower_is_printed_after_every_step_and_differs():
    n = 16
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((n, n), lambda x, y: te.sum(A[x, k] * B[k, y], axis=k), name="C")
    s = te.create_schedule(C.op)
    progress = [str(tvm.lower(s, [A, B, C], simple_mode=True))]
    mo, mi = s[C].split(C.op.axis[0], factor=4)
    progress.append(str(tvm.lower(s, [A, B, C], simple_mode=True)))
    no, ni = s[C].split(C.op.axis[1], factor=4)
    ko, ki = s[C].split(s[C].op.reduce_axis[0], factor=4)
    progress.append(str(tvm.lower(s, [A, B, C], simple_mode=True)))
    s[C].reorder(mo, no, ko, mi, ki, ni)
    progress.append(str(tvm.lower(s, [A, B, C], simple_mode=True)))
    nio, nii = s[C].split(ni, factor=2)
    s[C].vectorize(nii)
    progress.append(str(tvm.lower(s, [A, B, C], simple_mode=True)))
    assert len(set(progress)) == len(progress)
    assert "for x_outer, y_outer" in progress[3] and "T.vectorized(2)" in progress[4]
    assert tuple(s[C].op.axis) == tuple(C.op.axis)


def test_one_reduction_axis_given_to_two_computes():
    A = te.placeholder((6, 5), name="A")
    k = te.reduce_axis((0, 5), "k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((6,), lambda i: te.max(A[i, k] + B[i], axis=k), name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    a = np.random.default_rng(0).integers(-4, 5, (6, 5)).astype("float32")
    _, c = run(s, [A, C], [a, np.zeros(6, "float32")])
    np.testing.assert_array_equal(c, (a + a.sum(1, keepdims=True)).max(1))


def test_a_reduction_axis_between_the_others_and_stages_in_each_other():
    """Axes align from the left: ``cm1`` has five axes of which the last is where the next stage runs."""
    A = te.placeholder((4, 3, 5), name="A")
    W = te.placeholder((2, 3), name="W")
    r = te.reduce_axis((0, 3), "r")
    cm1 = te.compute((4, 3, 5), lambda n, c, x: A[n, c, x] * 2.0, name="cm1")
    c11 = te.compute((4, 3, 5), lambda n, c, x: cm1[n, c, x] + 1.0, name="c11")
    c1 = te.compute((4, 2, 5), lambda n, o, x: te.sum(c11[n, r, x] * W[o, r], axis=r), name="c1")
    s = te.create_schedule(c1.op)
    s[c1].reorder(c1.op.axis[0], c1.op.axis[1], s[c1].op.reduce_axis[0], c1.op.axis[2])
    s[c11].compute_at(s[c1], c1.op.axis[1])
    s[cm1].compute_at(s[c11], c11.op.axis[2])
    rng = np.random.default_rng(0)
    a, w = rng.integers(-3, 4, (4, 3, 5)).astype("float32"), rng.integers(-3, 4, (2, 3)).astype("float32")
    *_, out = run(s, [A, W, c1], [a, w, np.zeros((4, 2, 5), "float32")])
    np.testing.assert_array_equal(out, np.einsum("nrx,or->nox", a * 2 + 1, w))


def test_int8_stays_int8():
    A = te.placeholder((4, 8), "int8", name="A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute(
        (4,), lambda i: te.sum(te.if_then_else(A[i, k] > te.const(0, "int8"), A[i, k], te.const(0, "int8")), axis=k)
    )
    assert B.dtype == "int8"
    s = te.create_schedule(B.op)
    assert "float32" not in tvm.lower(s, [A, B], simple_mode=True).script()


def test_threads_of_a_two_dimensional_grid():
    n, num_thread = 32, 8
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    block_x, block_y = te.thread_axis("blockIdx.x"), te.thread_axis("blockIdx.y")
    thread_x = te.thread_axis((0, num_thread), "threadIdx.x")
    thread_y = te.thread_axis((0, num_thread), "threadIdx.y")
    AA = s.cache_read(A, "shared", [C])
    BB = s.cache_read(B, "shared", [C])
    CL = s.cache_write(C, "local")
    by, yi = s[C].split(C.op.axis[0], factor=num_thread)
    bx, xi = s[C].split(C.op.axis[1], factor=num_thread)
    s[C].reorder(by, bx, yi, xi)
    s[C].bind(by, block_y)
    s[C].bind(bx, block_x)
    s[C].bind(yi, thread_y)
    s[C].bind(xi, thread_x)
    s[CL].compute_at(s[C], xi)
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], factor=8)
    s[CL].reorder(ko, ki, *s[CL].op.axis)
    for copy in (AA, BB):
        s[copy].compute_at(s[CL], ko)
        s[copy].bind(s[copy].op.axis[0], thread_y)
        s[copy].bind(s[copy].op.axis[1], thread_x)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (n, n)).astype("float32") for _ in "ab")
    *_, c = run(s, [A, B, C], [a, b, np.zeros((n, n), "float32")], "cuda-sim")
    np.testing.assert_array_equal(c, a @ b)
    source = tvm.build(s, [A, B, C], "cuda").get_source()
    assert "__shared__" in source and "__syncthreads" in source


def test_a_scan_whose_stages_are_scheduled():
    m, n = te.var("m"), te.var("n")
    X = te.placeholder((m, n), name="X")
    s_state = te.placeholder((m, n))
    s_init = te.compute((1, n), lambda _, i: X[0, i])
    s_update = te.compute((m, n), lambda t, i: s_state[t - 1, i] + X[t, i])
    s_scan = te.scan(s_init, s_update, s_state, inputs=[X])
    s = te.create_schedule(s_scan.op)
    xo, xi = s[s_init].split(s_init.op.axis[1], factor=4)
    xo, xi = s[s_update].split(s_update.op.axis[1], factor=4)
    s[s_update].vectorize(xi)
    a = np.random.default_rng(0).integers(-3, 4, (7, 9)).astype("float32")
    _, out = run(s, [X, s_scan], [a, np.zeros((7, 9), "float32")])
    np.testing.assert_array_equal(out, np.cumsum(a, 0))
    assert [t.name for t in s.arguments()] == ["X", "scan"]


def test_time_is_not_run_in_parallel():
    X = te.placeholder((4, 8), name="X")
    state = te.placeholder((4, 8))
    init = te.compute((1, 8), lambda _, i: X[0, i])
    update = te.compute((4, 8), lambda t, i: state[t - 1, i] + X[t, i])
    s = te.create_schedule(te.scan(init, update, state).op)
    s[update].parallel(update.op.axis[0])
    with pytest.raises(tir.ScheduleError, match="parallel"):
        s.to_schedule()


def test_a_variable_is_an_argument():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute(A.shape, lambda *i: A(*i) + 1.0, name="B")
    s = te.create_schedule(B.op)
    bx, tx = s[B].split(B.op.axis[0], factor=64)
    s[B].bind(bx, te.thread_axis("blockIdx.x"))
    s[B].bind(tx, te.thread_axis("threadIdx.x"))
    a = np.arange(100, dtype="float32")
    _, b = run(s, [A, B], [a, np.zeros(100, "float32")], "cuda-sim", name="fadd")
    np.testing.assert_array_equal(b, a + 1)


def test_names_of_2019_without_te():
    n, m = 16, tvm.var("m")
    A = tvm.placeholder((n, m), name="A")
    k = tvm.reduce_axis((0, m), "k")
    B = tvm.compute((n,), lambda i: tvm.sum(A[tvm.div(i, 1), k], axis=k), name="B")
    s = tvm.create_schedule(B.op)
    xo, xi = s[B].split(B.op.axis[0], factor=4)
    s[B].parallel(xo)
    s[B].vectorize(xi)
    s[B].reorder(xo, k, xi)
    a = np.arange(n * n, dtype="float32").reshape(n, n)
    _, b = run(s, [A, B], [a, np.zeros(n, "float32")])
    np.testing.assert_array_equal(b, a.sum(1))
    assert tvm.autotvm.template and tvm.topi.nn.softmax and tvm.hybrid.script and tvm.decl_tensor_intrin
    assert tvm.context("llvm", 0) == tvm.cpu(0) and tvm.gpu(1) == tvm.cuda(1)


def test_a_padded_convolution_and_its_activation_with_injective_stages_inlined():
    data, kernel = tvm.te.placeholder((1, 3, 8, 8), name="data"), tvm.te.placeholder((4, 3, 3, 3), name="kernel")
    conv = tvm.topi.nn.conv2d(data, kernel, 1, 1, 1)
    relu = tvm.topi.nn.relu(conv)
    sch = te.create_schedule(relu.op)
    te.schedule.AutoInlineInjective(sch)
    lowered = tvm.lower(sch, [data, kernel, relu], simple_mode=True).script()
    assert "pad" not in lowered
    rng = np.random.default_rng(0)
    x, w = rng.integers(-3, 4, (1, 3, 8, 8)).astype("float32"), rng.integers(-3, 4, (4, 3, 3, 3)).astype("float32")
    *_, out = run(sch, [data, kernel, relu], [x, w, np.zeros((1, 4, 8, 8), "float32")])
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x[0], ((0, 0), (1, 1), (1, 1))), (3, 3), axis=(1, 2))
    np.testing.assert_array_equal(out[0], np.maximum(np.einsum("cyxij,ocij->oyx", windows, w), 0))


def test_a_kernel_is_timed_and_shows_the_source_of_its_device():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: te.exp(A[i]), name="B")
    s = te.create_schedule(B.op)
    func = tvm.build(s, [A, B], "llvm", name="fadd")
    dev = tvm.cpu(0)
    a, b = (tvm.nd.array(np.zeros(8, "float32"), dev) for _ in "ab")
    assert func.time_evaluator(func.entry_name, dev, number=1)(a, b).mean > 0
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    dev_module = tvm.build(s, [A, B], "cuda", name="fadd").imported_modules[0]
    assert "expf" in dev_module.get_source()


def test_a_function_is_lowered_in_simple_mode_as_its_schedule_is():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    by_stages = tvm.lower(te.create_schedule(B.op), [A, B], simple_mode=True)
    tvm.ir.assert_structural_equal(tvm.lower(te.create_prim_func([A, B]), simple_mode=True), by_stages)
    assert "T.block" not in by_stages.script()


@pytest.mark.parametrize("in_args", [False, True])
def test_an_argument_in_a_buffer_with_strides(in_args):
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1.0, name="B")
    strided = tvm.tir.decl_buffer(A.shape, A.dtype, name="wide", strides=[te.var("stride"), 1])
    s = te.create_schedule(B.op)
    s[B].parallel(B.op.axis[0])
    args = [strided if in_args else A, B]
    assert "wide" in tvm.lower(s, args, simple_mode=True, binds={A: strided}).script()
    wide, b = np.arange(24, dtype="float32").reshape(4, 6), np.zeros((4, 3), "float32")
    tvm.build(s, args, "llvm", binds={A: strided}, name="add")(wide[:, 1:4], b)
    np.testing.assert_array_equal(b, wide[:, 1:4] + 1)


def test_a_buffer_that_is_not_as_its_tensor():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    for shape, dtype, what in (
        ((8,), "int32", "int32 of 1 dim"),
        ((4,), "float32", "shape"),
        ((8, 1), "float32", "of 2"),
    ):
        with pytest.raises(tvm.TVMError, match=f"bound to `A`.*{what}"):
            tvm.lower(s, [A, B], binds={A: tvm.tir.decl_buffer(shape, dtype)})
