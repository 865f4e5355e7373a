"""``te.hybrid.script``: Python functions of loops as operations; what they are in Python is what they mean."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import te
from tir.errors import ParseError, TensorExpressionError
from tir.interp import run
from tir.stmt import For
from tir.visit import walk

RNG = np.random.default_rng(0)
F = "float32"


def check(function, *arrays):
    """Called with tensors and built, the function gives what it gives called with arrays; the operation's function."""
    values = [np.asarray(a) for a in arrays]
    tensors = [te.placeholder(v.shape, str(v.dtype), name=f"in{n}") for n, v in enumerate(values)]
    made = function(*tensors)
    outs = made if isinstance(made, list) else [made]
    expected = function(*(v.copy() for v in values))
    expected = expected if isinstance(expected, tuple) else (expected,)
    func = te.create_prim_func([*tensors, *outs])
    for call in (lambda *a: run(func, *a), tir.build(func, "llvm")):
        results = [np.zeros_like(e) for e in expected]
        call(*(v.copy() for v in values), *results)
        for got, wanted in zip(results, expected):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    return func


@te.hybrid.script
def outer_product(a, b):
    """Every product."""
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


def test_outer_product():
    check(outer_product, RNG.standard_normal(5).astype(F), RNG.standard_normal(3).astype(F))


def test_symbolic_sizes():
    n, m = te.var("n"), te.var("m")
    a, b = te.placeholder((n,), name="a"), te.placeholder((m,), name="b")
    func = te.create_prim_func([a, b, outer_product(a, b)])
    x, y, z = RNG.standard_normal(4).astype(F), RNG.standard_normal(6).astype(F), np.zeros((4, 6), F)
    tir.build(func, "llvm")(x, y, z)
    np.testing.assert_allclose(z, np.outer(x, y), rtol=1e-6)


def test_variables_that_change_and_locals_that_do_not():
    @te.hybrid.script
    def statistics(a):
        total = output_tensor((a.shape[0],), "float32")
        most = output_tensor((a.shape[0],), "float32")
        for i in range(a.shape[0]):
            s = 0.0
            m = a[i, 0]
            for j in range(a.shape[1]):
                x = a[i, j] * 2.0
                s += x
                m = max(m, x)
            total[i] = s
            most[i] = m
        return total, most

    check(statistics, RNG.standard_normal((4, 5)).astype(F))


def test_conditions_with_chains_and_assertions():
    @te.hybrid.script
    def banded(a):
        b = output_tensor(a.shape, "float32")
        n = a.shape[0]
        for i in range(n):
            for j in range(n):
                if 0 < i < n - 1 and (j == i or j == i + 1):
                    b[i, j] = a[i, j]
                elif j > i:
                    b[i, j] = 1.0
                else:
                    b[i, j] = 0.0
        return b

    check(banded, RNG.standard_normal((5, 5)).astype(F))


def test_kinds_of_loops():
    @te.hybrid.script
    def loops(a):
        b = output_tensor(a.shape, a.dtype)
        for i in parallel(a.shape[0]):
            for j in const_range(2):
                for k in vectorize(4):
                    b[i, j * 4 + k] = a[i, j * 4 + k] + 1.0
        return b

    func = check(loops, RNG.standard_normal((3, 8)).astype(F))
    text = func.script()
    assert "T.parallel(3)" in text and "T.unroll(2)" in text and "T.vectorized(4)" in text


def test_threads():
    @te.hybrid.script
    def doubled(a):
        b = output_tensor(a.shape, a.dtype)
        for i in bind("blockIdx.x", 4):
            for j in bind("threadIdx.x", 8):
                b[i, j] = a[i, j] * 2.0
        return b

    a = te.placeholder((4, 8), name="a")
    x, y = RNG.standard_normal((4, 8)).astype(F), np.zeros((4, 8), F)
    tir.build(te.create_prim_func([a, doubled(a)]), "cuda-sim")(x, y)
    np.testing.assert_array_equal(y, doubled(x))


def test_functions_and_types():
    @te.hybrid.script
    def functions(a, n):
        b = output_tensor(a.shape, "float32")
        c = output_tensor(a.shape, "int32")
        for i in range(a.shape[0]):
            b[i] = exp(a[i]) + tanh(a[i]) * sigmoid(a[i]) - sqrt(power(a[i], float32(2)))
            c[i] = popcount(n[i]) + int32(a[i] > 0.0)
        return b, c

    check(functions, RNG.standard_normal(6).astype(F), np.arange(6, dtype="int32"))


def test_memory_of_its_own():
    @te.hybrid.script
    def reversed_rows(a):
        b = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            row = allocate((a.shape[1],), a.dtype, "local")
            for j in range(a.shape[1]):
                row[j] = a[i, a.shape[1] - 1 - j]
            for j in range(a.shape[1]):
                b[i, j] = row[j] * 2.0
        return b

    check(reversed_rows, RNG.standard_normal((3, 4)).astype(F))


def test_numbers_and_scalars_as_arguments():
    @te.hybrid.script
    def scaled(a, by, shift):
        b = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            b[i] = a[i] * by + float32(shift)
        return b

    a, shift = te.placeholder((4,), name="a"), te.var("shift")
    func = te.create_prim_func([shift, a, scaled(a, 3.0, shift)])
    x, y = RNG.standard_normal(4).astype(F), np.zeros(4, F)
    tir.build(func, "llvm")(2, x, y)
    np.testing.assert_allclose(y, x * 3 + 2, rtol=1e-6)


def test_among_other_operations():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = outer_product(B, A)
    D = te.compute((4, 4), lambda i, j: C[i, j] - C[j, i], name="D")
    E = outer_product(A, A)
    x, d, e = RNG.standard_normal(4).astype(F), np.zeros((4, 4), F), np.zeros((4, 4), F)
    run(te.create_prim_func([A, D, E]), x, d, e)
    c = np.outer(x + 1, x)
    np.testing.assert_allclose(d, c - c.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(e, np.outer(x, x), rtol=1e-6)


def test_its_loops_can_be_scheduled():
    a, b = te.placeholder((8,), name="a"), te.placeholder((8,), name="b")
    sch = tir.Schedule(te.create_prim_func([a, b, outer_product(a, b)]))
    outer, inner = sch.split("j", [None, 4])
    sch.reorder(outer, "i")
    sch.vectorize(inner)
    x, y, z = RNG.standard_normal(8).astype(F), RNG.standard_normal(8).astype(F), np.zeros((8, 8), F)
    tir.build(sch.mod, "llvm")(x, y, z)
    np.testing.assert_allclose(z, np.outer(x, y), rtol=1e-6)


def scheduled_product():
    """The product of two vectors, and what reads it, with the schedule of both."""
    a, b = te.placeholder((16,), name="a"), te.placeholder((12,), name="b")
    c = outer_product(a, b)
    d = te.compute(c.shape, lambda i, j: c[i, j] + 1.0, name="d")
    return te.create_schedule(d.op), (a, b, c, d)


def test_its_loops_are_axes_of_its_stage():
    s, (a, b, c, d) = scheduled_product()
    i, j = s[c].op.axis
    outer, inner = s[c].split(i, factor=4)
    s[c].reorder(outer, j, inner)
    s[c].parallel(outer)
    s[c].vectorize(inner)
    copied = s.cache_read(a, "global", [c])
    sch = s.to_schedule([a, b, d])
    kinds = [(loop.loop_var.name, loop.kind) for loop in walk(sch.func) if isinstance(loop, For)]
    assert kinds[-5:-2] == [("i_outer", "parallel"), ("j", "serial"), ("i_inner", "vectorized")]
    assert f"{copied.name}[" in sch.func.script()
    left, right = RNG.random(16).astype(F), RNG.random(12).astype(F)
    for target in ("interpreter", "llvm"):
        out = np.zeros((16, 12), F)
        tir.build(sch.mod, target)(left, right, out)
        np.testing.assert_allclose(out, np.outer(left.astype("float64"), right) + 1, rtol=1e-6)


def test_loops_beside_each_other_are_axes_in_order():
    @te.hybrid.script
    def twice(a):
        c = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                c[i, j] = a[i, j] * 2.0
            for k in range(a.shape[1]):
                c[i, k] = c[i, k] + 1.0
        return c

    a = te.placeholder((8, 8), name="a")
    c = twice(a)
    s = te.create_schedule(c.op)
    i, _, k = s[c].op.axis
    s[c].vectorize(k)
    assert "for k in T.vectorized(8)" in s.to_schedule([a, c]).func.script()
    s[c].reorder(k, i)
    with pytest.raises(tir.ScheduleError, match=r"s\[twice\].reorder\(k, i\)"):
        s.to_schedule([a, c])


MOVES = {
    "inlined": lambda s, a, c, d: s[c].compute_inline(),
    "moved": lambda s, a, c, d: s[c].compute_at(s[d], s[d].op.axis[0]),
    "kept elsewhere": lambda s, a, c, d: s[c].set_scope("local"),
    "doubled": lambda s, a, c, d: s[c].double_buffer(),
    "padded": lambda s, a, c, d: s[c].storage_align(s[c].op.axis[0], 8, 0),
    "guarded": lambda s, a, c, d: s[c].set_store_predicate(s[c].op.axis[0].var < 3),
    "read in its loops": lambda s, a, c, d: s[s.cache_read(a, "local", [c])].compute_at(s[c], s[c].op.axis[0]),
}


@pytest.mark.parametrize("what", MOVES)
def test_steps_that_need_a_block_are_refused(what):
    s, (a, _, c, d) = scheduled_product()
    with pytest.raises(tir.ScheduleError, match="`outer_product` is loops and stores"):
        MOVES[what](s, a, c, d)


def test_other_inputs():
    a, b, c = (te.placeholder((4,), name=n) for n in "abc")
    P = outer_product(a, b)
    Q = P.op.with_inputs({b: c}).output(0)
    assert Q.op.input_tensors == (a, c) and Q.op.name == "outer_product"
    x, y, z = RNG.standard_normal(4).astype(F), RNG.standard_normal(4).astype(F), np.zeros((4, 4), F)
    run(te.create_prim_func([a, c, Q]), x, y, z)
    np.testing.assert_allclose(z, np.outer(x, y), rtol=1e-6)


A = te.placeholder((4,), name="A")


def test_wrong_uses_are_errors():
    @te.hybrid.script
    def no_return(a):
        b = output_tensor(a.shape, a.dtype)
        for i in range(4):
            b[i] = a[i]

    @te.hybrid.script
    def returns_an_input(a):
        return a

    for call, words in (
        (lambda: no_return(A), "ends with `return`"),
        (lambda: returns_an_input(A), "which no output_tensor made"),
        (lambda: outer_product(A), "takes 2 arguments (a, b), not 1"),
        (lambda: outer_product(A, "x"), "argument `b` of `outer_product` is a tensor, a scalar or a number"),
        (lambda: te.hybrid.script(3), "decorates a function"),
    ):
        with pytest.raises(TensorExpressionError) as caught:
            call()
        assert words in str(caught.value) and caught.value.place.filename == __file__


def test_errors_in_the_body_name_the_line():
    @te.hybrid.script
    def wrong(a):
        b = output_tensor(a.shape, a.dtype)
        for i in range(4):
            b[i] = a[i, i]
        return b

    @te.hybrid.script
    def unknown(a):
        b = output_tensor(a.shape, a.dtype)
        for i in range(4):
            b[i] = undefined(a[i])
        return b

    for function, line in ((wrong, "b[i] = a[i, i]"), (unknown, "b[i] = undefined(a[i])")):
        with pytest.raises(ParseError) as caught:
            function(A)
        assert line in str(caught.value) and __file__ in str(caught.value)
