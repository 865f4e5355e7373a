"""Programs as TVM users write them: parsed in a file, printed, parsed again."""

import pytest

import tir
from tir.script import parse
from tir.script import tir as T


@T.prim_func
def softmax(a: T.handle, c: T.handle) -> None:
    n = T.int64()
    A = T.match_buffer(a, (n, T.int64(128)), "float32")
    C = T.match_buffer(c, (n, T.int64(128)), "float32")
    M = T.alloc_buffer((n,), "float32")
    S = T.alloc_buffer((n,), "float32")
    for i, k in T.grid(n, T.int64(128)):
        with T.block("max"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.min_value("float32")
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, k in T.grid(n, 128):
        with T.block("sum"):
            vi = T.axis.spatial(n, i)
            vk = T.axis.reduce(128, k)
            with T.init():
                S[vi] = 0.0
            S[vi] = S[vi] + T.exp(A[vi, vk] - M[vi], dtype="float32")
    for i, j in T.grid(n, 128):
        with T.block("div"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.exp(A[vi, vj] - M[vi]) / S[vi]


@T.prim_func
def conv(
    X: T.Buffer((1, 3, 34, 34), "float32"), W: T.Buffer((8, 3, 3, 3), "float32"), Y: T.Buffer((1, 8, 32, 32), "float32")
):
    P = T.alloc_buffer([1, 3, 36, 36])
    for n, c, h, w in T.grid(1, 3, 36, 36):
        with T.block("pad"):
            vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
            P[vn, vc, vh, vw] = T.if_then_else(
                vh >= 1 and vh < 35 and 1 <= vw < 35, X[vn, vc, vh - 1, vw - 1], T.float32(0), dtype="float32"
            )
    for n, f, h, w, c, r, s in T.grid(1, 8, 32, 32, 3, 3, 3):
        with T.block("conv"):
            vn, vf, vh, vw, vc, vr, vs = T.axis.remap("SSSSRRR", [n, f, h, w, c, r, s])
            with T.init():
                Y[vn, vf, vh, vw] = T.float32(0)
            Y[vn, vf, vh, vw] += P[vn, vc, vh + vr, vw + vs] * W[vf, vc, vr, vs]


@T.prim_func
def gpu(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
    for bx in T.thread_binding(0, 32, thread="blockIdx.x"):
        for tx in T.thread_binding(0, 32, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.S(1024, bx * 32 + tx)
                B[v] = A[v] + T.float32(1)


@T.prim_func
def lowered(A: T.handle("float32"), n: T.int32):
    T.func_attr({"global_symbol": "lowered", "tir.noalias": T.bool(True)})
    A_1 = T.Buffer((n,), data=A)
    for i in T.parallel(n // 4):
        cse_var_1: T.int32 = i * 4
        s = T.allocate([4], "float32", "local")
        s_1 = T.Buffer((4,), data=s, scope="local")
        for j in T.vectorized(4):
            s_1[j] = A_1[cse_var_1 + j]
        A_1[cse_var_1 : cse_var_1 + 4] = T.Broadcast(T.float32(2), 4) * s_1[0:4]


@pytest.mark.parametrize("func", [softmax, conv, gpu, lowered], ids=lambda f: f.name)
def test_round_trip(func):
    tir.assert_structural_equal(parse(func.script()), func)


def test_expressions_are_built_outside_of_a_program_under_the_same_names():
    x = tir.Var("x", "float32")
    built = tir.if_then_else(tir.all(x > 0.0, x < 1.0), tir.exp(x), tir.max(x, tir.min_value("float32")))
    assert repr(built) == "T.if_then_else(x > 0.0 and x < 1.0, T.exp(x), T.max(x, -3.4028234663852886e+38))"
    with pytest.raises(AttributeError, match="has no attribute 'expp'"):
        tir.expp(x)
