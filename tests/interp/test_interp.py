"""The reference executor against NumPy, and its number formats against exact arithmetic."""

import numpy as np
import pytest

import tir
from tir.dtype import DType
from tir.interp import numbers, register_extern, run
from tir.script import parse


def kernel(text):
    return parse("@T.prim_func\n" + text)


RNG = np.random.default_rng(0)


def test_matmul():
    f = kernel("""
def mm(A: T.Buffer((5, 7), "float32"), B: T.Buffer((7, 6), "float32"), C: T.Buffer((5, 6), "float32")):
    for i, j, k in T.grid(5, 6, 7):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")
    a, b = RNG.random((5, 7), "f4"), RNG.random((7, 6), "f4")
    for check in (True, False):
        c = np.full((5, 6), np.nan, "f4")
        run(f, a, b, c, check=check)
        np.testing.assert_allclose(c, a.astype("f8") @ b.astype("f8"), rtol=1e-5)


def test_softmax_in_blocks():
    f = kernel("""
def softmax(A: T.Buffer((4, 9), "float32"), S: T.Buffer((4, 9), "float32")):
    peak = T.alloc_buffer((4,))
    total = T.alloc_buffer((4,))
    for i, k in T.grid(4, 9):
        with T.block("peak"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                peak[vi] = T.min_value("float32")
            peak[vi] = T.max(peak[vi], A[vi, vk])
    for i, k in T.grid(4, 9):
        with T.block("total"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + T.exp(A[vi, vk] - peak[vi])
    for i, k in T.grid(4, 9):
        with T.block("S"):
            vi, vk = T.axis.remap("SS", [i, k])
            S[vi, vk] = T.exp(A[vi, vk] - peak[vi]) / total[vi]
""")
    a = RNG.standard_normal((4, 9)).astype("f4")
    s = np.empty_like(a)
    run(f, a, s)
    e = np.exp(a.astype("f8") - a.max(1, keepdims=True))
    np.testing.assert_allclose(s, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_symbolic_sizes_and_guard():
    f = kernel("""
def add(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i0, i1 in T.grid((n + 3) // 4, 4):
        with T.block("B"):
            v = T.axis.spatial(n, i0 * 4 + i1)
            T.where(i0 * 4 + i1 < n)
            B[v] = A[v] + T.float32(1)
""")
    for n in (1, 4, 7):
        a, b = np.arange(n, dtype="f4"), np.zeros(n, "f4")
        run(f, a, b, n)
        assert (b == a + 1).all()
    with pytest.raises(tir.RunError, match="size 0 is 7, but `n` is 6"):
        run(f, a, b, 6)


def test_zero_extent_runs_no_times():
    f = kernel("""
def f(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n):
        A[i] = T.float32(1)
""")
    run(f, np.zeros(0, "f4"), 0)


def test_lowered_form():
    f = kernel("""
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    data = T.allocate([8], "float32", "local")
    tmp = T.decl_buffer((8,), data=data, scope="local")
    for i in range(2):
        tmp[0:8] = A[i * 8 : i * 8 + 8] * T.Broadcast(T.float32(2), 8)
        for j in T.vectorized(8):
            B[i * 8 + j] = tmp[7 - j]
""")
    a, b = np.arange(16, dtype="f4"), np.zeros(16, "f4")
    run(f, a, b)
    assert (b == 2 * a.reshape(2, 8)[:, ::-1].ravel()).all()


def test_threads_run_in_order():
    f = kernel("""
def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 8)
    B[bx, tx] = A[bx, 7 - tx]
""")
    a, b = RNG.random((4, 8), "f4"), np.zeros((4, 8), "f4")
    run(f, a, b)
    assert (b == a[:, ::-1]).all()


@pytest.mark.parametrize("depth", [15, 30])
def test_deep_nests(depth):
    loops = ", ".join(f"i{k}" for k in range(depth))
    sizes = ", ".join("2" if k < 4 else "1" for k in range(depth))
    f = kernel(f"""
def f(A: T.Buffer((16,), "int32")):
    for {loops} in T.grid({sizes}):
        A[i0 * 8 + i1 * 4 + i2 * 2 + i3] = i0 * 8 + i1 * 4 + i2 * 2 + i3
""")
    a = np.zeros(16, "i4")
    run(f, a)
    assert (a == np.arange(16)).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_wrap_like_the_machine(dtype):
    f = kernel(f"""
def f(A: T.Buffer((32,), "{dtype}"), B: T.Buffer((32,), "{dtype}"), O: T.Buffer((5, 32), "{dtype}")):
    for i in range(32):
        O[0, i] = A[i] + B[i]
        O[1, i] = A[i] * B[i] - A[i]
        O[2, i] = T.min(A[i] * A[i], B[i])
        O[3, i] = (A[i] + B[i]) // T.{dtype}(3)
        O[4, i] = T.shift_right(A[i] * T.{dtype}(5), T.{dtype}(2))
""")
    info = np.iinfo(dtype)
    a, b = (RNG.integers(info.min, info.max, 32, dtype=dtype, endpoint=True) for _ in range(2))
    a[0] = b[0] = info.max
    o = np.zeros((5, 32), dtype)
    run(f, a, b, o)
    with np.errstate(all="ignore"):
        three, five, two = (np.array(v, dtype) for v in (3, 5, 2))
        want = np.stack([a + b, a * b - a, np.minimum(a * a, b), (a + b) // three, (a * five) >> two])
    assert (o == want).all()


def test_every_division():
    f = kernel("""
def f(A: T.Buffer((9,), "int32"), b: T.int32, O: T.Buffer((4, 9), "int32")):
    for i in range(9):
        O[0, i] = A[i] // b
        O[1, i] = A[i] % b
        O[2, i] = T.truncdiv(A[i], b)
        O[3, i] = T.truncmod(A[i], b)
""")
    a = np.arange(-4, 5, dtype="i4")
    for b in (3, -3):
        o = np.zeros((4, 9), "i4")
        run(f, a, b, o)
        quotient = np.trunc(a / b).astype("i4")
        assert (o == np.stack([a // b, a % b, quotient, a - b * quotient])).all()


def test_float16_rounds_at_each_operation():
    f = kernel("""
def f(A: T.Buffer((64,), "float16"), O: T.Buffer((64,), "float16")):
    for i in range(64):
        O[i] = A[i] * A[i] + A[i]
""")
    a, o = RNG.standard_normal(64).astype("f2"), np.zeros(64, "f2")
    run(f, a, o)
    assert (o == a * a + a).all()


def test_bfloat16_is_rounded_to_nearest_even():
    bf = DType("bfloat16")
    x = RNG.standard_normal(1000).astype("f4")
    got = numbers.round_small(x, bf)
    table = np.sort(numbers.decode_table(bf)[np.isfinite(numbers.decode_table(bf))])
    nearest = np.abs(table[None, :] - x[:50, None]).min(1)
    assert (np.abs(got[:50] - x[:50]) == nearest).all()
    assert numbers.round_small(np.float32(1 + 2**-8), bf) == 1  # a tie goes to the even pattern
    assert numbers.round_small(np.float32(1 + 3 * 2**-8), bf) == np.float32(1 + 2**-6)


def test_bfloat16_program():
    f = kernel("""
def f(A: T.Buffer((8,), "bfloat16"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = T.Cast("float32", A[i] * A[i])
""")
    bf = DType("bfloat16")
    a = numbers.encode(np.arange(8, dtype="f4") + np.float32(0.25), bf)
    b = np.zeros(8, "f4")
    run(f, a, b)
    exact = numbers.decode_table(bf)[a]
    assert (b == numbers.round_small(exact * exact, bf)).all()


def test_extern_calls():
    f = kernel("""
def f(A: T.Buffer((4,), "float32")):
    T.evaluate(T.call_extern("int32", "tir_test_fill", T.address_of(A[1]), 3))
""")
    with pytest.raises(tir.RunError, match="register_extern"):
        run(f, np.zeros(4, "f4"))
    register_extern("tir_test_fill", lambda p, n: p[:n].fill(n))
    a = np.zeros(4, "f4")
    run(f, a)
    assert a.tolist() == [0, 3, 3, 3]


def test_match_buffer_region():
    f = kernel("""
def f(A: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(2, 2):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
            s0, s1 = T.int32(), T.int32()
            tile = T.match_buffer(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), strides=[s0, s1])
            for x, y in T.grid(4, 4):
                tile[x, y] = T.Cast("float32", vi * 2 + vj + s0)
""")
    a = np.zeros((8, 8), "f4")
    run(f, a, regions=True)
    assert (a == np.kron(np.array([[8, 9], [10, 11]]), np.ones((4, 4)))).all()


def test_calls_between_functions_and_return():
    mod = parse("""
@I.ir_module
class Module:
    @T.prim_func
    def inner(A: T.Buffer((4,), "float32"), k: T.int32):
        for i in range(4):
            A[i] = A[i] + T.Cast("float32", k)

    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        for i in range(3):
            Module.inner(A.data, i)
""")
    a = np.zeros(4, "f4")
    run(mod, a)
    assert (a == 3).all()
    with pytest.raises(tir.RunError, match="no function 'other'"):
        run(mod, a, func="other")


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_sizes_of_what_a_pointer_leads_to_are_told_by_other_arguments(target):
    mod = parse("""
@I.ir_module
class Module:
    @T.prim_func
    def turn(a: T.handle, c: T.handle, n: T.int32, m: T.int32):
        A = T.match_buffer(a, (m, n), "float32")
        C = T.match_buffer(c, (m * n,), "float32")
        for i, j in T.grid(m, n):
            C[i * n + j] = A[i, n - 1 - j]

    @T.prim_func
    def main(A: T.Buffer((8, 6), "float32"), C: T.Buffer((8, 6), "float32")):
        for i in range(4):
            Module.turn(T.address_of(A[i * 2, 0]), T.address_of(C[i * 2, 0]), 6, 2)
""")
    a, c = np.arange(48, dtype="f4").reshape(8, 6), np.zeros((8, 6), "f4")
    tir.build(mod, target)["main"](a, c)
    assert (c == a[:, ::-1]).all()


def test_interrupt_passes_through():
    def stop():
        raise KeyboardInterrupt

    register_extern("tir_test_stop", stop)
    f = kernel("""
def f(A: T.Buffer((4,), "float32")):
    for i in range(4):
        T.evaluate(T.call_extern("int32", "tir_test_stop"))
""")
    with pytest.raises(KeyboardInterrupt):
        run(f, np.zeros(4, "f4"))


def test_every_node_has_a_meaning():
    from tir import expr, stmt
    from tir.interp import compiler, expressions
    from tir.node import Node

    def concrete(module, base):
        kinds = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, base) and v is not base]
        return [k for k in kinds if "__dataclass_fields__" in vars(k) and issubclass(k, Node)]

    statements = {k.__name__ for k in concrete(stmt, stmt.Stmt)}
    assert statements == {k.__name__ for k in compiler._STATEMENTS}
    values = {k.__name__ for k in concrete(expr, expr.Expr)}
    assert values == {k.__name__ for k in expressions._TABLE}


def test_a_binding_is_evaluated_only_where_the_predicate_holds():
    """Where the predicate keeps a division by zero out, it must not fault: compiled code evaluates the bindings inside."""
    f = parse("""
        @T.prim_func
        def main(a: T.handle, n: T.int32):
            A = T.match_buffer(a, (8,), "float32")
            for i in range(8):
                with T.block("A"):
                    v = T.axis.spatial(8, i // n)
                    T.where(n > 0)
                    A[v] = 1.0
    """)
    for n, written in ((0, 0), (2, 4)):
        for call in (lambda *args: run(f, *args), tir.build(f)):
            result = np.zeros(8, "float32")
            call(result, n)
            assert result.sum() == written, n


def test_a_loop_of_the_same_threads_inside_is_the_same_thread():
    f = kernel("""
def once(C: T.Buffer((4,), "float32")):
    for i in T.thread_binding(4, thread="threadIdx.x"):
        for j in T.thread_binding(4, thread="threadIdx.x"):
            C[j] = C[j] + T.float32(1)
""")
    c = np.zeros(4, "float32")
    run(f, c)
    np.testing.assert_array_equal(c, np.ones(4))
