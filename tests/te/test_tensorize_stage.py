"""Stages tensorized by instructions that ``te.decl_tensor_intrin`` declares."""

from __future__ import annotations

import pytest
from te_oracle import judge
from test_declared_intrin import gemv, matmul

import tir
from tir import te


def tensorized(args, intrin, factor=0):
    """The matrix product with ``intrin`` in its four inner columns, and in ``factor`` steps at a time."""
    C = args[-1]
    s = te.create_schedule(C.op)
    x, y = C.op.axis
    (z,) = C.op.reduce_axis
    yo, yi = s[C].split(y, factor=4)
    if factor:
        zo, zi = s[C].split(z, factor=factor)
        s[C].reorder(x, yo, zo, yi, zi)
    else:
        s[C].reorder(x, yo, yi, z)
    s[C].tensorize(yi, intrin)
    return s.to_schedule(args).mod["main"]


def test_reduction_in_one_instruction():
    args = matmul()
    func = tensorized(args, gemv())
    assert "row" in func.script()
    judge(args, func)


def test_reduction_in_steps():
    args = matmul(l=12)
    func = tensorized(args, gemv(parts="three"), factor=6)
    text = func.script()
    assert "for row in range(4)" in text and "for row, step in T.grid(4, 6)" in text  # the reset and the update
    judge(args, func)


def test_steps_need_an_update():
    with pytest.raises(tir.TirError, match="has no statement for this part"):
        tensorized(matmul(l=12), gemv(), factor=6)


def test_elementwise_instruction():
    X = te.placeholder((12,), name="X")
    Y = te.compute((12,), lambda i: X[i] + 1.0, name="Y")
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="b")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 4, "lane", kind="vectorize") as lane:
            target[lane] = source[lane] + 1.0
        return ib.get()

    s = te.create_schedule(Y.op)
    outer, inner = s[Y].split(Y.op.axis[0], factor=4)
    s[Y].tensorize(inner, te.decl_tensor_intrin(b, body, name="inc"))
    func = s.to_schedule([X, Y]).mod["main"]
    assert "for lane in T.vectorized(4)" in func.script()
    judge([X, Y], func)


def test_one_index_into_a_buffer_with_strides():
    a = te.placeholder((4, 4), name="a")
    b = te.compute((4, 4), lambda i, j: a[i, j] + 1.0, name="b")
    wide = tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[te.var("s"), 1])

    def body(ins, outs):
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 4, "i") as i:
            target[i] = source[i * wide.strides[0]] + 1.0
        return ib.get()

    with pytest.raises(tir.TirError, match=r"`A` has the strides .*write A\[i0, i1\]"):
        te.decl_tensor_intrin(b.op, body, binds={a: wide})


@pytest.mark.parametrize("result", ["row", "element"])
def test_reduction_over_the_inner_steps_of_an_element(result):
    """The instruction has the loops of the reduction alone: its reset has none."""
    K = 16
    A, B = te.placeholder((8, K), "int8", name="A"), te.placeholder((8, K), "int8", name="B")
    k = te.reduce_axis((0, K), "k")
    product = lambda i, j: te.sum(A[i, k].astype("int32") * B[j, k].astype("int32"), axis=k)  # noqa: E731
    C = te.compute((8, 8) if result == "row" else (1, 1), product, name="C")
    a, b = te.placeholder((4,), "int8", name="a"), te.placeholder((4,), "int8", name="b")
    r = te.reduce_axis((0, 4), "r")
    c = te.compute((1,), lambda _: te.sum(a[r].astype("int32") * b[r].astype("int32"), axis=r), name="c")

    def dot(ins, outs):
        x, y, z = ins[0], ins[1], outs[0]
        products = [x.vload(n).astype("int32") * y.vload(n).astype("int32") for n in range(4)]
        return None, z.vstore(0, 0), z.vstore(0, sum(products, z.vload(0)))

    s = te.create_schedule(C.op)
    ko, ki = s[C].split(k, factor=4)
    s[C].tensorize(ki, te.decl_tensor_intrin(c.op, dot, name="dot"))
    assert "tensorize(k_inner, TensorIntrinDecl(dot))" in str(s[C].marks[ki][0].call)
    func = s.to_schedule([A, B, C]).mod["main"]
    assert "C_init_o" in func.script()
    judge([A, B, C], func)
