"""Lines of users' notes and of the old tutorial that call ``topi``, with only the import changed."""

from __future__ import annotations

import numpy as np
import pytest

import tir
import tir as tvm
from tir import te, topi


def run(func, *arrays):
    tensors = [tvm.nd.array(a) for a in arrays]
    func(*tensors)
    return tensors[-1].numpy()


def draw(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype("float32")


def convolution(data, weight, padding):
    """The convolution of (N, C, H, W) by (O, C, H, W), at stride 1."""
    x = np.pad(data, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, weight)


def test_sum_of_rows_of_symbolic_size():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = topi.sum(A, axis=1)
    ts = te.create_schedule(B.op)
    assert "for k" in str(tvm.lower(ts, [A, B], simple_mode=True))
    a = draw(5, 7)
    np.testing.assert_allclose(run(tvm.build(ts, [A, B], "llvm"), a, np.zeros(5, "float32")), a.sum(1), rtol=1e-5)


@pytest.mark.parametrize("spelled", ["operators", "names"])
def test_broadcasting_then_a_reduction(spelled):
    x, y = 6, 5
    a = te.placeholder((x, y, y), name="a")
    b = te.placeholder((y, y), name="b")
    c = a + b if spelled == "operators" else topi.broadcast_add(a, b)
    d = a * b if spelled == "operators" else topi.broadcast_mul(a, b)
    e = topi.elemwise_sum([c, d])
    f = e / 2.0
    g = topi.sum(f)
    sg = te.create_schedule(g.op)
    te.schedule.AutoInlineInjective(sg)
    assert str(tvm.lower(sg, [a, b, g], simple_mode=True)).count("T.allocate") == 0
    func = tvm.build(sg, [a, b, g], "llvm", name="total")
    a_np, b_np = draw(x, y, y), draw(y, y)
    g_np = np.sum(np.add(a_np + b_np, a_np * b_np) / 2.0)
    np.testing.assert_allclose(run(func, a_np, b_np, np.zeros((), "float32")), g_np, rtol=1e-4)


def test_operators_of_python_on_tensors():
    a, b = te.placeholder((3, 4), name="a"), te.placeholder((4,), name="b")
    made = {"add": a + b, "subtract": 1 - a, "negative": -a, "pow": a**2, "floor_divide": a // 2.0, "abs": abs(a)}
    assert {name: t.name for name, t in made.items()} == {name: name for name in made}
    with pytest.raises(tir.errors.TensorExpressionError, match="used as a scalar"):
        te.compute((3,), lambda i: a[i, 0] + a)


def test_softmax_under_a_stage_schedule():
    tarray = te.placeholder((16, 32), name="tarray")
    softmax_topi = topi.nn.softmax(tarray)
    s = te.create_schedule(softmax_topi.op)
    powers, total = softmax_topi.op.input_tensors
    row = s[softmax_topi].op.axis[0]
    s[powers].compute_at(s[softmax_topi], row)
    s[total].compute_at(s[softmax_topi], row)
    s[softmax_topi].parallel(row)
    x = draw(16, 32)
    expected = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(run(tvm.build(s, [tarray, softmax_topi], "llvm"), x, x * 0), expected, rtol=1e-4)


def test_conv2d_fused_with_relu_under_a_stage_schedule():
    data = te.placeholder((1, 3, 8, 16), name="data")
    kernel = te.placeholder((4, 3, 3, 3), name="kernel")
    conv = topi.nn.conv2d(data, kernel, 1, 1, 1)
    out = topi.nn.relu(conv)
    s = te.create_schedule(out.op)
    pad_temp = conv.op.input_tensors[0]
    n, c, h, w = s[out].op.axis
    s[pad_temp].compute_inline()
    s[conv].compute_at(s[out], h)
    rc, rh, rw = s[conv].op.reduce_axis
    s[conv].reorder(s[conv].op.axis[2], rc, rh, rw, s[conv].op.axis[3])
    s[conv].vectorize(s[conv].op.axis[3])
    s[out].vectorize(w)
    s[out].parallel(c)
    text = str(tvm.lower(s, [data, kernel, out], simple_mode=True))
    assert text.count("T.vectorized(16)") >= 2 and "pad_temp" not in text
    x, k = draw(1, 3, 8, 16), draw(4, 3, 3, 3)
    result = run(tvm.build(s, [data, kernel, out], "llvm"), x, k, np.zeros((1, 4, 8, 16), "float32"))
    np.testing.assert_allclose(result, np.maximum(convolution(x, k, 1), 0), rtol=1e-4, atol=1e-4)


def test_conv2d_and_relu_on_threads():
    data = te.placeholder((1, 2, 6, 8), name="data")
    kernel = te.placeholder((4, 2, 5, 5), name="kernel")
    conv = topi.nn.conv2d_nchw(data, kernel, 1, 2, 1)
    out = topi.nn.relu(conv)
    s = te.create_schedule([out.op])
    s[conv.op.input_tensors[0]].compute_inline()
    n, c, h, w = s[out].op.axis
    s[out].bind(c, te.thread_axis("blockIdx.x"))
    s[out].bind(h, te.thread_axis("threadIdx.y"))
    s[out].bind(w, te.thread_axis("threadIdx.x"))
    s[conv].set_scope("local")
    s[conv].compute_at(s[out], w)
    x, k = draw(1, 2, 6, 8), draw(4, 2, 5, 5)
    func = tvm.build(s, [data, kernel, out], "cuda-sim", name="conv2d")
    result = run(func, x, k, np.zeros((1, 4, 6, 8), "float32"))
    np.testing.assert_allclose(result, np.maximum(convolution(x, k, 2), 0), rtol=1e-4, atol=1e-4)


def test_dense_with_a_bias_and_a_batch_of_matrices():
    x, w, b = (te.placeholder(shape, name=n) for shape, n in (((4, 6), "x"), ((5, 6), "w"), ((5,), "b")))
    y = topi.nn.relu(topi.nn.dense(x, w, b))
    s = te.create_schedule(y.op)
    te.schedule.AutoInlineInjective(s)
    arrays = draw(4, 6), draw(5, 6), draw(5)
    expected = np.maximum(arrays[0] @ arrays[1].T + arrays[2], 0)
    result = run(tvm.build(s, [x, w, b, y], "llvm"), *arrays, np.zeros((4, 5), "float32"))
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    p, q = te.placeholder((2, 3, 4), name="p"), te.placeholder((2, 5, 4), name="q")
    z = topi.nn.batch_matmul(p, q)
    func = tvm.build(te.create_schedule(z.op), [p, q, z], "llvm")
    p_np, q_np = draw(2, 3, 4), draw(2, 5, 4) + 1
    result = run(func, p_np, q_np, np.zeros((2, 3, 5), "float32"))
    np.testing.assert_allclose(result, np.einsum("bmk,bnk->bmn", p_np, q_np), rtol=1e-5, atol=1e-5)


def test_an_array_among_operands_is_shown_by_its_shape():
    with pytest.raises(tir.TirError) as refused:
        topi.add(te.placeholder((8, 16), name="x"), np.zeros((8, 16), "float32"))
    assert "add(x=(8, 16) float32, y=ndarray (8, 16) float32)" in str(refused.value)
    assert "not ndarray (8, 16) float32" in str(refused.value) and "0." not in str(refused.value)
