"""Stages tensorized by instructions that ``te.decl_tensor_intrin`` declares."""

from __future__ import annotations

import pytest
from te_oracle import judge
from test_tensor_intrin import gemv, matmul

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
