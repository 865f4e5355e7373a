"""``te.decl_tensor_intrin``: instructions declared by a computation, as ``Schedule.tensorize`` takes them."""

from __future__ import annotations

import numpy as np
import pytest
from te_oracle import judge

import tir
from tir import te
from tir.errors import TensorExpressionError


def matmul(m=8, n=8, l=6):
    A, B = te.placeholder((m, l), name="A"), te.placeholder((n, l), name="B")
    k = te.reduce_axis((0, l), "k")
    return [A, B, te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")]


def gemv(m=4, l=6, parts="body"):
    """c[i] = sum of a[k] * b[i, k], by loops of its own over elements."""
    a, b = te.placeholder((l,), name="a"), te.placeholder((m, l), name="b")
    k = te.reduce_axis((0, l), "k")
    c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    Ab = tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1])
    Bb = tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s1"), 1])
    Cb = tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])

    def intrin_func(ins, outs):
        def body(start, add):
            ib = tir.ir_builder.create()
            x, y, z = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
            with ib.for_range(0, m, "row") as i:
                if start:
                    z[i] = 0.0
                if add:
                    with ib.for_range(0, l, "step") as j:
                        z[i] = z[i] + x[l - 1 - j] * y[i, l - 1 - j]
            return ib.get()

        whole = body(True, True)
        return whole if parts == "body" else (whole, body(True, False), body(False, True))

    return te.decl_tensor_intrin(c.op, intrin_func, name="gemv", binds={a: Ab, b: Bb, c: Cb})


def test_reduction_of_a_single_step():
    args = matmul()
    sch = tir.Schedule(te.create_prim_func(args))
    _, j, _ = sch.get_loops("C")
    _, inner = sch.split(j, [None, 4])
    sch.decompose_reduction("C", inner)
    sch.tensorize(sch.get_loops("C_update")[-2], gemv().single_step_intrin)
    assert "row" in sch.mod.script() and "step" in sch.mod.script()
    judge(args, sch.mod["main"])


def test_reset_and_update():
    args = matmul(l=12)
    sch = tir.Schedule(te.create_prim_func(args))
    intrin = gemv(parts="three")
    i, j, k = sch.get_loops("C")
    jo, ji = sch.split(j, [None, 4])
    ko, ki = sch.split(k, [None, 6])
    sch.reorder(i, jo, ko, ji, ki)
    init = sch.decompose_reduction("C", ko)
    sch.tensorize(sch.get_loops(init)[-1], intrin.reset_intrin)
    sch.tensorize(sch.get_loops("C_update")[-2], intrin.update_intrin)
    judge(args, sch.mod["main"])


def test_call_of_a_function():
    calls = []

    def inc(target, source):
        calls.append(len(source))
        target[:4] = source[:4] + 1

    tir.interp.register_extern("test_te_inc", inc)
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="b")
    call = lambda ins, outs: tir.call_extern("int32", "test_te_inc", outs[0].access_ptr("w"), ins[0].access_ptr("r"))  # noqa: E731
    intrin = te.decl_tensor_intrin(b, call)
    X = te.placeholder((12,), name="X")
    sch = tir.Schedule(te.create_prim_func([X, te.compute((12,), lambda i: X[i] + 1.0, name="Y")]))
    _, inner = sch.split("i", [None, 4])
    sch.tensorize(inner, intrin.whole_intrin)
    x, y = np.arange(12, dtype="float32"), np.zeros(12, "float32")
    tir.interp.run(sch.mod, x, y)
    np.testing.assert_array_equal(y, x + 1)
    assert len(calls) == 3


def test_what_does_not_match_is_refused():
    sch = tir.Schedule(te.create_prim_func(matmul(l=5)))
    _, j, _ = sch.get_loops("C")
    _, inner = sch.split(j, [None, 4])
    with pytest.raises(tir.ScheduleError):
        sch.tensorize(inner, gemv().whole_intrin)


a = te.placeholder((4,), name="a")
b = te.compute((4,), lambda i: a[i] + 1.0, name="b")
CASES = {
    "no computation": (lambda: te.decl_tensor_intrin(a.op, lambda i, o: None), "te.compute, not by PlaceholderOp(a)"),
    "no statement": (lambda: te.decl_tensor_intrin(b.op, lambda i, o: None), "gives no statement"),
    "a number": (lambda: te.decl_tensor_intrin(b.op, lambda i, o: 3), "gives a statement or an expression, not 3"),
    "two statements": (lambda: te.decl_tensor_intrin(b.op, lambda i, o: (None, None)), "gives 2 statements"),
    "a part that is missing": (lambda: gemv().reset_intrin, "has no statement for this part"),
    "no reduction": (
        lambda: te.decl_tensor_intrin(b.op, lambda i, o: (tir.const(0),) * 3).update_intrin,
        "`b` is no reduction",
    ),
    "another buffer": (
        lambda: te.decl_tensor_intrin(b.op, lambda i, o: tir.const(0), binds={a: tir.decl_buffer((4, 4))}),
        "bound to `a` is float32 of 2 dimensions",
        "float32 of 1",
    ),
    "a chain": (
        lambda: te.decl_tensor_intrin(te.compute((4,), lambda i: b[i], name="c"), lambda i, o: None),
        "`b`, which",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_declaration_is_an_error(name):
    call, *words = CASES[name]
    with pytest.raises(TensorExpressionError) as caught:
        call()
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.place.filename == __file__
