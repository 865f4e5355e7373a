"""``te.extern`` and ``tir.ir_builder``: statements by hand, and functions of the host."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import te
from tir.errors import TensorExpressionError
from tir.interp import run
from tir.interp.host_functions import PACKED


@pytest.fixture(autouse=True)
def functions():
    """What a test registers is gone after it."""
    before = dict(PACKED)
    yield
    PACKED.clear()
    PACKED.update(before)


def check(args, reference, *arrays):
    """The executor and LLVM give what ``reference`` makes of the inputs."""
    func = te.create_prim_func(args)
    tir.assert_structural_equal(tir.script.parse(func.script()), func)
    expected = reference(*arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for call in (lambda *a: run(func, *a), tir.build(func, "llvm")):
        outs = [np.zeros_like(e) for e in expected]
        call(*(a.copy() for a in arrays), *outs)
        for out, e in zip(outs, expected):
            np.testing.assert_allclose(out, e, rtol=1e-6)
    return func


X = np.random.default_rng(0).standard_normal((4, 6)).astype("float32")
A = te.placeholder((4, 6), name="A")


def test_packed_function_gets_arrays():
    def sort_rows(source, target):
        assert source.shape == (4, 6) and source.dtype == np.float32
        target[...] = np.sort(source, axis=1)

    tir.register_func("test.sort_rows", sort_rows)
    B = te.extern((4, 6), [A], lambda ins, outs: tir.call_packed("test.sort_rows", ins[0], outs[0]), name="B")
    func = check([A, B], lambda x: np.sort(x, axis=1), X)
    assert "T.reads(A[0:4, 0:6])" in func.script() and "T.writes(B[0:4, 0:6])" in func.script()


def test_packed_function_between_computations():
    tir.register_func("test.cumsum", lambda s, t, scale: np.multiply(np.cumsum(s, axis=0), scale, out=t))
    D = te.compute((4, 6), lambda i, j: A[i, j] * 2.0, name="D")
    E = te.extern(D.shape, [D], lambda ins, outs: tir.call_packed("test.cumsum", *ins, *outs, 3.0), name="E")
    F = te.compute((4, 6), lambda i, j: E[i, j] + 1.0, name="F")
    check([A, F], lambda x: np.cumsum(x * 2, axis=0) * 3 + 1, X)


def test_packed_function_of_symbolic_shape():
    n = te.var("n")
    P = te.placeholder((n, 6), name="P")
    tir.register_func("test.negate", lambda s, t: np.negative(s, out=t))
    check(
        [P, te.extern((n, 6), [P], lambda ins, outs: tir.call_packed("test.negate", ins[0], outs[0]))], np.negative, X
    )


def test_several_outputs_of_several_types():
    def both(source, values, places):
        places[...] = source.argmax(axis=1)
        values[...] = source.max(axis=1)

    tir.register_func("test.argmax", both)
    call = lambda ins, outs: tir.call_packed("test.argmax", ins[0], outs[0], outs[1])  # noqa: E731
    V, P = te.extern([(4,), (4,)], [A], call, name="M", dtype=["float32", "int64"])
    assert V.op is P.op and P.dtype == "int64"
    check([A, V, P], lambda x: (x.max(axis=1), x.argmax(axis=1)), X)


@pytest.mark.parametrize("wrap", [list, tuple])
@pytest.mark.parametrize("each", [list, tuple])
def test_shapes_of_outputs_are_lists_or_tuples(wrap, each):
    call = lambda ins, outs: tir.call_packed("test.sizes", *ins, *outs)  # noqa: E731
    made = te.extern(wrap([each((4,)), each((2, 3))]), [A], call, name="M", dtype=["float32", "int64"])
    assert [t.shape for t in made] == [(4,), (2, 3)]
    assert te.extern((4, 2), [A], call, name="M").shape == (4, 2)


def test_body_of_an_ir_builder():
    def add_ten(ins, outs):
        ib = tir.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 4, name="i") as i, ib.for_range(0, 6, name="j", kind="vectorize") as j:
            b[i, j] = a[i, j] + 10
        return ib.get()

    check([A, te.extern((4, 6), [A], add_ten, name="B")], lambda x: x + 10, X)


def test_builder_has_conditions_and_memory():
    def running(ins, outs):
        ib = tir.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        total = ib.allocate("float32", 1, name="total", scope="local")
        total[0] = 0.0
        with ib.for_range(0, 24, name="i") as i:
            with ib.if_scope(ib.likely(a[i] > 0.0)):
                total[0] = total[0] + a[i]
            with ib.else_scope():
                total[0] = total[0] - a[i]
            b[i] = total[0]
        return ib.get()

    check([A, te.extern((4, 6), [A], running, name="B")], lambda x: np.abs(x).cumsum(dtype="float32").reshape(4, 6), X)


def test_builder_has_loops_with_conditions_and_lets():
    def powers(ins, outs):
        ib = tir.ir_builder.create()
        n, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.new_scope():
            step = ib.allocate("int32", (1,), "step")
            step[0] = 1
            limit = ib.let("limit", n[0] * 2)
            with ib.while_loop(step[0] < limit):
                step[0] = step[0] * 2
            b[0] = step[0]
        return ib.get()

    N = te.placeholder((1,), "int32", name="N")
    check([N, te.extern((1,), [N], powers, name="B")], lambda n: np.array([64], "int32"), np.array([20], "int32"))


def test_builder_launches_threads():
    def body(ins, outs):
        ib = tir.ir_builder.create()
        tx = te.thread_axis("threadIdx.x")
        ib.scope_attr(tx, "thread_extent", 8)
        ib.buffer_ptr(outs[0])[tx] = ib.buffer_ptr(ins[0])[tx] + 1.0
        return ib.get()

    P = te.placeholder((8,), name="P")
    func = te.create_prim_func([P, te.extern((8,), [P], body, name="E")])
    tir.assert_structural_equal(tir.script.parse(func.script()), func)
    x, y = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tir.build(func, "cuda-sim")(x, y)
    np.testing.assert_array_equal(y, x + 1)


def test_builder_refuses_what_is_out_of_place():
    ib = tir.ir_builder.create()
    with pytest.raises(ValueError, match="follows an ib.if_scope"), ib.else_scope():
        pass
    with pytest.raises(ValueError, match="inside of a scope"), ib.for_range(0, 4):
        ib.get()
    with pytest.raises(ValueError, match="no loop of kind 'fast'"), ib.for_range(0, 4, kind="fast"):
        pass
    with pytest.raises(TypeError, match="2 dimensions, but is indexed with 3"):
        ib.buffer_ptr(tir.decl_buffer((4, 6)))[0, 0, 0]
    with pytest.raises(TypeError, match="statements and expressions"):
        ib.emit(3)


def test_buffers_that_the_user_declares():
    given = tir.decl_buffer((4, 6), "float32", "given", strides=[te.var("s0"), te.var("s1")], elem_offset=te.var("at"))

    def body(ins, outs):
        assert ins[0] is given
        ib = tir.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 4) as i:
            b[i] = a[i, 5] * tir.cast("float32", ins[0].strides[0])
        return ib.get()

    B = te.extern((4,), [A], body, in_buffers=[given], name="B")
    func = check([A, B], lambda x: x[:, 5] * 6, X)
    assert "T.match_buffer(A[0:4, 0:6]" in func.script()


def test_scalars_of_a_body_are_arguments():
    n = te.var("n")
    tir.register_func("test.scale", lambda s, t, by: np.multiply(s, by, out=t))
    B = te.extern((4, 6), [A], lambda ins, outs: tir.call_packed("test.scale", ins[0], outs[0], n), name="B")
    out = np.zeros_like(X)
    tir.build(te.create_prim_func([n, A, B]), "llvm")(3, X.copy(), out)
    np.testing.assert_allclose(out, X * 3)
    with pytest.raises(TensorExpressionError, match="variable `n`"):
        te.create_prim_func([A, B])


def test_one_tensor_given_twice():
    tir.register_func("test.add", lambda a, b, c: np.add(a, b, out=c))
    B = te.extern((4, 6), [A, A], lambda ins, outs: tir.call_packed("test.add", *ins, *outs), name="B")
    check([A, B], lambda x: x + x, X)


CASES = {
    "no statement": (lambda: te.extern((4,), [A], lambda i, o: None), "gives a statement or an expression, not None"),
    "no tensor": (lambda: te.extern((4,), [3], lambda i, o: None), "an input of `extern` is a tensor, not 3"),
    "no type": (lambda: te.extern((4,), [], lambda i, o: tir.const(0)), "cannot be that of its inputs (none)"),
    "too many types": (
        lambda: te.extern((4,), [A], lambda i, o: tir.const(0), dtype=["int8", "int8"]),
        "1 outputs, and 2",
    ),
    "other buffers": (
        lambda: te.extern((4,), [A], lambda i, o: tir.const(0), in_buffers=[]),
        "1 inputs, and buffers for 0",
    ),
    "another rank": (
        lambda: te.extern((4,), [A], lambda i, o: tir.const(0), in_buffers=[tir.decl_buffer((24,))]),
        "float32 of 1 dimensions",
        "of 2",
    ),
    "no buffer": (lambda: te.extern((4,), [A], lambda i, o: tir.const(0), in_buffers=[A]), "is a buffer, not Tensor"),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_extern_is_an_error(name):
    call, *words = CASES[name]
    with pytest.raises(TensorExpressionError) as caught:
        call()
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert caught.value.place.filename == __file__


def test_errors_of_packed_functions_reach_the_caller():
    def fail(source, target):
        raise KeyError("mine")

    tir.register_func("test.fail", fail)
    B = te.extern((4, 6), [A], lambda ins, outs: tir.call_packed("test.fail", ins[0], outs[0]), name="B")
    with pytest.raises(KeyError, match="mine"):
        tir.build(te.create_prim_func([A, B]), "llvm")(X.copy(), np.zeros_like(X))


def test_threads_of_an_extern_operation_are_lowered_for_a_gpu():
    n = te.var("n")
    A = te.placeholder((n,), name="A")

    def doubled(ins, outs):
        ib = tir.ir_builder.create()
        bx, tx = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
        ib.scope_attr(bx, "thread_extent", (n + 31) // 32)
        ib.scope_attr(tx, "thread_extent", 32)
        source, target, at = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]), bx.var * 32 + tx.var
        with ib.if_scope(ib.likely(at < n)):
            target[at] = source[at] * 2.0
        return ib.get()

    B = te.extern(A.shape, [A], doubled, name="B", dtype="float32")
    s = te.create_schedule(B.op)
    assert "threadIdx.x" in str(tir.lower(s, [A, B], simple_mode=True))
    a, b = np.arange(70, dtype="float32"), np.zeros(70, "float32")
    tir.build(s, [A, B], "cuda-sim")(a, b)
    np.testing.assert_array_equal(b, 2 * a)
