"""Programs as the tutorials of stage schedules teach them, with only the import line changed."""

from __future__ import annotations

import numpy as np
import pytest

import tir as tvm
from tir import te, topi


def run(s, args, *arrays, target="llvm"):
    """The last array after a call."""
    tensors = [tvm.nd.array(np.ascontiguousarray(a)) for a in arrays]
    tvm.build(s, args, target)(*tensors)
    return tensors[-1].numpy()


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("float32")


def test_inputs_and_outputs_that_are_tuples():
    n, m = te.var("n"), te.var("m")
    a, b = te.placeholder((m, n), name="a"), te.placeholder((m, n), name="b")
    plus, times = te.compute((m, n), lambda i, j: (a[i, j] + 2, b[i, j] * 3), name="both")
    total = te.compute((m, n), lambda i, j: plus[i, j] + times[i, j], name="total")
    s = te.create_schedule(total.op)
    s[plus].compute_at(s[total], total.op.axis[0])
    x, y = numbers(3, 5), numbers(3, 5, seed=1)
    np.testing.assert_array_equal(run(s, [a, b, total], x, y, np.zeros_like(x)), x + 2 + y * 3)


def test_a_reducer_of_pairs_finds_the_place_of_the_largest():
    def combine(left, right):
        return (
            tvm.tir.Select(left[1] >= right[1], left[0], right[0]),
            tvm.tir.Select(left[1] >= right[1], left[1], right[1]),
        )

    def start(place, value):
        return tvm.tir.const(-1, place), te.min_value(value)

    argmax = te.comm_reducer(combine, start, name="argmax")
    m, n = te.var("m"), te.var("n")
    at, of = te.placeholder((m, n), "int32", name="at"), te.placeholder((m, n), name="of")
    k = te.reduce_axis((0, n), "k")
    place, largest = te.compute((m,), lambda i: argmax((at[i, k], of[i, k]), axis=k), name="most")
    s = te.create_schedule(place.op)
    x = np.random.default_rng(0).permutation(15).reshape(3, 5).astype("float32")
    where = np.tile(np.arange(5, dtype="int32"), (3, 1))
    found = np.zeros(3, "int32")
    top = run(s, [at, of, place, largest], where, x, found, np.zeros(3, "float32"))
    np.testing.assert_array_equal(top, x.max(axis=1))


@pytest.mark.parametrize("packed", [False, True])
def test_a_product_of_matrices_step_by_step(packed):
    """Blocks, vectors, another order of loops, a packed operand of a size that is divided, a cache for the block, threads."""
    M, K, N, bn = 32, 24, 64, 16
    k = te.reduce_axis((0, K), "k")
    A, B = te.placeholder((M, K), name="A"), te.placeholder((K, N), name="B")
    panels = te.compute((N / bn, K, bn), lambda x, y, z: B[y, x * bn + z], name="panels")
    C = te.compute(
        (M, N),
        (lambda x, y: te.sum(A[x, k] * panels[y // bn, k, tvm.tir.indexmod(y, bn)], axis=k))
        if packed
        else (lambda x, y: te.sum(A[x, k] * B[k, y], axis=k)),
        name="C",
    )
    s = te.create_schedule(C.op)
    cached = s.cache_write(C, "global")
    outer_m, outer_n, inner_m, inner_n = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
    s[cached].compute_at(s[C], outer_n)
    row, column = s[cached].op.axis
    (summed,) = s[cached].op.reduce_axis
    k_outer, k_inner = s[cached].split(summed, factor=4)
    s[cached].reorder(k_outer, row, k_inner, column)
    s[cached].unroll(k_inner)
    s[cached].vectorize(column)
    s[C].parallel(outer_m)
    if packed:
        x, _, z = s[panels].op.axis
        s[panels].vectorize(z)
        s[panels].parallel(x)
    a, b = numbers(M, K), numbers(K, N, seed=1)
    np.testing.assert_array_equal(run(s, [A, B, C], a, b, np.zeros((M, N), "float32")), a @ b)
    assert "T.parallel" in str(tvm.lower(s, [A, B, C], simple_mode=True))


def test_reductions_in_parts_and_over_threads():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    parts = s.rfactor(B, ki)
    xo, xi = s[B].split(s[B].op.axis[0], factor=32)
    s[B].bind(xo, te.thread_axis("blockIdx.x"))
    s[B].bind(xi, te.thread_axis("threadIdx.y"))
    lane = te.thread_axis("threadIdx.x")
    s[B].bind(s[B].op.reduce_axis[0], lane)
    s[parts].compute_at(s[B], s[B].op.reduce_axis[0])
    s[B].set_store_predicate(lane.var.equal(0))
    x = numbers(40, 37)
    np.testing.assert_array_equal(run(s, [A, B], x, np.zeros(40, "float32"), target="cuda-sim"), x.sum(axis=1))


def test_a_convolution_is_a_reduction_over_two_axes():
    n = te.var("n")
    image, kernel = te.placeholder((n, n), name="image"), te.placeholder((3, 3), name="kernel")
    di, dj = te.reduce_axis((0, 3), "di"), te.reduce_axis((0, 3), "dj")
    out = te.compute(
        (n - 2, n - 2), lambda i, j: te.sum(image[i + di, j + dj] * kernel[di, dj], axis=[di, dj]), name="out"
    )
    x, w = numbers(7, 7), numbers(3, 3, seed=1)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3))
    made = run(te.create_schedule(out.op), [image, kernel, out], x, w, np.zeros((5, 5), "float32"))
    np.testing.assert_array_equal(made, np.einsum("ijab,ab->ij", windows, w))


def test_a_recurrence_with_a_stage_of_its_own_on_threads():
    m, n = te.var("m"), te.var("n")
    x, state = te.placeholder((m, n), name="x"), te.placeholder((m, n), name="state")
    first = te.compute((1, n), lambda _, i: x[0, i])
    doubled = te.compute((m, n), lambda t, i: state[t - 1, i] * 2, name="doubled")
    update = te.compute((m, n), lambda t, i: doubled[t, i] + x[t, i], name="update")
    made = te.scan(first, update, state, inputs=[x])
    s = te.create_schedule(made.op)
    for tensor in (first, update):
        outer, inner = s[tensor].split(tensor.op.axis[1], factor=8)
        s[tensor].bind(outer, te.thread_axis("blockIdx.x"))
        s[tensor].bind(inner, te.thread_axis("threadIdx.x"))
    s[doubled].compute_at(s[update], inner)
    given = numbers(5, 19)
    expected = given.copy()
    for t in range(1, 5):
        expected[t] += 2 * expected[t - 1]
    np.testing.assert_array_equal(run(s, [x, made], given, np.zeros((5, 19), "float32"), target="cuda-sim"), expected)


def test_the_steps_of_a_schedule_one_after_another():
    m, n = te.var("m"), te.var("n")
    A = te.placeholder((m, n), name="A")
    B = te.compute((m, n), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((m, n), lambda i, j: B[i, j] * 2, name="C")
    x, expected = numbers(9, 7), (numbers(9, 7) + 1) * 2

    def judged(s):
        np.testing.assert_array_equal(run(s, [A, C], x, np.zeros_like(x)), expected)

    s = te.create_schedule(C.op)
    xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], x_factor=4, y_factor=3)
    fused = s[C].fuse(xi, yi)
    s[C].reorder(fused, xo, yo)
    s[B].compute_at(s[C], fused)
    judged(s)
    s[B].compute_root()
    judged(s)
    s[B].compute_inline()
    judged(s)
    s = te.create_schedule([B.op, C.op])
    outer, inner = s[C].split(C.op.axis[0], nparts=2)
    s[C].parallel(outer)
    judged(s)


def test_functions_of_numbers_and_those_of_the_c_library():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    x = np.linspace(0.5, 2, 10).astype("float32")
    for element, meaning in (
        (lambda i: te.exp(A[i]), np.exp),
        (lambda i: tvm.tir.call_pure_extern("float32", "expf", A[i]), np.exp),
        (lambda i: te.log(A[i]) + te.sqrt(A[i]), lambda v: np.log(v) + np.sqrt(v)),
    ):
        B = te.compute(A.shape, element, name="B")
        made = run(te.create_schedule(B.op), [A, B], x, np.zeros_like(x))
        np.testing.assert_allclose(made, meaning(x), rtol=1e-5)


def test_an_instruction_for_a_product_with_a_vector():
    rows, length = 8, 12

    def instruction():
        a, b = te.placeholder((length,), name="a"), te.placeholder((rows, length), name="b")
        k = te.reduce_axis((0, length), "k")
        c = te.compute((rows,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
        ab = tvm.tir.decl_buffer(a.shape, a.dtype, name="ab", offset_factor=1, strides=[1])
        bb = tvm.tir.decl_buffer(b.shape, b.dtype, name="bb", offset_factor=1, strides=[te.var("s1"), 1])
        cb = tvm.tir.decl_buffer(c.shape, c.dtype, name="cb", offset_factor=1, strides=[1])

        def emit(ins, outs):
            ib = tvm.tir.ir_builder.create()
            aa, bbuf = ins
            vector, matrix, out = (ib.buffer_ptr(x) for x in (aa, bbuf, outs[0]))
            with ib.for_range(0, rows, "i") as i:
                out[i] = tvm.tir.const(0, "float32")
                with ib.for_range(0, length, "k") as j:
                    out[i] = out[i] + vector[j] * matrix[i, j]
            return ib.get()

        return te.decl_tensor_intrin(c.op, emit, binds={a: ab, b: bb, c: cb})

    N, M = 16, 24
    A, B = te.placeholder((N, length), name="A"), te.placeholder((M, length), name="B")
    k = te.reduce_axis((0, length), "k")
    C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    x, y = C.op.axis
    outer, inner = s[C].split(y, factor=rows)
    s[C].reorder(x, outer, inner, k)
    s[C].tensorize(inner, instruction())
    a, b = numbers(N, length), numbers(M, length, seed=1)
    np.testing.assert_array_equal(run(s, [A, B, C], a, b, np.zeros((N, M), "float32")), a @ b.T)


def test_operators_by_topi_are_stages_too():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    total = topi.sum(topi.nn.relu(A) * 2.0 + topi.exp(A * 0.0), axis=1)
    x = numbers(4, 6)
    made = run(te.create_schedule(total.op), [A, total], x, np.zeros(4, "float32"))
    np.testing.assert_allclose(made, (np.maximum(x, 0) * 2 + 1).sum(axis=1), rtol=1e-5)
