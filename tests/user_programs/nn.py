# ruff: noqa: E501  (programs as their users write them)
"""Normalisations, reductions, indexing and quantised operators."""

from tests.user_programs import program, text_only

SOFTMAX = """
@T.prim_func
def softmax(A: T.Buffer((8, 32), "float32"), T_softmax_norm: T.Buffer((8, 32), "float32")):
    T_softmax_maxelem = T.alloc_buffer([8], dtype="float32")
    T_softmax_exp = T.alloc_buffer([8, 32], dtype="float32")
    T_softmax_expsum = T.alloc_buffer([8], dtype="float32")
    for i0, i1 in T.grid(8, 32):
        with T.block("T_softmax_maxelem"):
            i0_1, k = T.axis.remap("SR", [i0, i1])
            with T.init():
                T_softmax_maxelem[i0_1] = T.min_value("float32")
            T_softmax_maxelem[i0_1] = T.max(T_softmax_maxelem[i0_1], A[i0_1, k])
    for i0, i1 in T.grid(8, 32):
        with T.block("T_softmax_exp"):
            i0_2, i1_1 = T.axis.remap("SS", [i0, i1])
            T_softmax_exp[i0_2, i1_1] = T.exp(A[i0_2, i1_1] - T_softmax_maxelem[i0_2], dtype="float32")
    for i0_3, i1 in T.grid(8, 32):
        with T.block("T_softmax_expsum"):
            i0_4, k = T.axis.remap("SR", [i0_3, i1])
            with T.init():
                T_softmax_expsum[i0_4] = T.float32(0)
            T_softmax_expsum[i0_4] = T_softmax_expsum[i0_4] + T_softmax_exp[i0_4, k]
    for i0_5, i1 in T.grid(8, 32):
        with T.block("T_softmax_norm"):
            i0_6, i1_2 = T.axis.remap("SS", [i0_5, i1])
            T.block_attr({"axis": 1})
            T_softmax_norm[i0_6, i1_2] = T_softmax_exp[i0_6, i1_2] / T_softmax_expsum[i0_6]
"""


@program(SOFTMAX)
def softmax_one_nest(sch):
    exp = sch.get_block("T_softmax_exp")
    norm = sch.get_block("T_softmax_norm")
    sch.compute_inline(exp)
    i, _ = sch.get_loops(norm)
    sch.compute_at(sch.get_block("T_softmax_expsum"), i)
    sch.compute_at(sch.get_block("T_softmax_maxelem"), i)
    sch.parallel(i)


@program(SOFTMAX)
def softmax_threads(sch):
    norm, exp = sch.get_block("T_softmax_norm"), sch.get_block("T_softmax_exp")
    expsum, maxelem = sch.get_block("T_softmax_expsum"), sch.get_block("T_softmax_maxelem")
    i, j = sch.get_loops(norm)
    sch.bind(i, "blockIdx.x")
    sch.compute_at(expsum, i)
    sch.compute_at(exp, i)
    sch.compute_at(maxelem, i)
    for block in (maxelem, expsum, exp, norm):
        last = sch.get_loops(block)[-1]
        _, tx = sch.split(last, [None, 8])
        sch.bind(tx, "threadIdx.x")
    sch.set_scope(maxelem, 0, "shared")
    sch.set_scope(exp, buffer_index=0, storage_scope="shared")
    sch.set_scope(expsum, 0, "shared")


@program("""
@T.prim_func
def layer_norm(A: T.Buffer((4, 6, 10), "float32"), gamma: T.Buffer((6, 10), "float32"), beta: T.Buffer((6, 10), "float32"), out: T.Buffer((4, 6, 10), "float32")):
    s = T.alloc_buffer((4,))
    s2 = T.alloc_buffer((4,))
    for ax0, k1, k2 in T.grid(4, 6, 10):
        with T.block("A_red_temp"):
            v_ax0, v_k1, v_k2 = T.axis.remap("SRR", [ax0, k1, k2])
            T.reads(A[v_ax0, v_k1, v_k2])
            T.writes(s[v_ax0], s2[v_ax0])
            with T.init():
                s[v_ax0] = T.float32(0)
                s2[v_ax0] = T.float32(0)
            v_s: T.float32 = s[v_ax0] + A[v_ax0, v_k1, v_k2]
            v_s2: T.float32 = s2[v_ax0] + A[v_ax0, v_k1, v_k2] * A[v_ax0, v_k1, v_k2]
            s[v_ax0] = v_s
            s2[v_ax0] = v_s2
    for ax0, ax1, ax2 in T.grid(4, 6, 10):
        with T.block("T_layer_norm"):
            v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
            out[v0, v1, v2] = (A[v0, v1, v2] - s[v0] * T.float32(1 / 60)) * T.rsqrt(s2[v0] * T.float32(1 / 60) - s[v0] * T.float32(1 / 60) * (s[v0] * T.float32(1 / 60)) + T.float32(1e-5)) * gamma[v1, v2] + beta[v1, v2]
""")
def layer_norm(sch):
    red, norm = sch.get_block("A_red_temp"), sch.get_block("T_layer_norm")
    i, j, k = sch.get_loops(norm)
    sch.compute_at(red, i)
    sch.parallel(i)
    _, r1, r2 = sch.get_loops(red)
    r = sch.fuse(r1, r2)
    sch.split(r, [None, 8])
    sch.vectorize(k)


@program("""
@T.prim_func
def rms_norm(var_A: T.handle, weight: T.Buffer((16,), "float16"), var_out: T.handle):
    T.func_attr({"op_pattern": 4, "tir.noalias": T.bool(True)})
    n = T.int64()
    A = T.match_buffer(var_A, (T.int64(1), n, T.int64(16)), "float16")
    out = T.match_buffer(var_out, (T.int64(1), n, T.int64(16)), "float16")
    Ared = T.alloc_buffer((T.int64(1), n))
    for bsz, i, k in T.grid(T.int64(1), n, T.int64(16)):
        with T.block("Ared_temp"):
            v_bsz, v_i, v_k = T.axis.remap("SSR", [bsz, i, k])
            with T.init():
                Ared[v_bsz, v_i] = T.float32(0)
            Ared[v_bsz, v_i] = Ared[v_bsz, v_i] + T.Cast("float32", A[v_bsz, v_i, v_k]) * T.Cast("float32", A[v_bsz, v_i, v_k])
    for bsz, i, k in T.grid(T.int64(1), n, T.int64(16)):
        with T.block("rms_norm"):
            v_bsz, v_i, v_k = T.axis.remap("SSS", [bsz, i, k])
            out[v_bsz, v_i, v_k] = T.Cast("float16", T.Cast("float32", weight[v_k]) * (T.Cast("float32", A[v_bsz, v_i, v_k]) / T.sqrt(Ared[v_bsz, v_i] * T.float32(0.0625) + T.float32(1e-06))))
""")
def rms_norm_dynamic(sch):
    red, norm = sch.get_block("Ared_temp"), sch.get_block("rms_norm")
    b, i, k = sch.get_loops(norm)
    bx = sch.fuse(b, i)
    sch.bind(bx, "blockIdx.x")
    sch.compute_at(red, bx, preserve_unit_loops=True)
    sch.set_scope(red, 0, "shared")
    *_, r = sch.get_loops(red)
    r0, tx = sch.split(r, [None, 8])
    sch.bind(tx, "threadIdx.x")
    _, tx2 = sch.split(k, [None, 8])
    sch.bind(tx2, "threadIdx.x")


ARGMAX = """
@T.prim_func
def argmax(
    idx: T.Buffer((8, 16), "int32"), val: T.Buffer((8, 16), "float32"),
    argmax_v0: T.Buffer((8,), "int32"), argmax_v1: T.Buffer((8,), "float32"),
) -> None:
    for i, k in T.grid(8, 16):
        with T.block("argmax"):
            i_1 = T.axis.spatial(8, i)
            k_1 = T.axis.reduce(16, k)
            T.reads(val[i_1, k_1], idx[i_1, k_1])
            T.writes(argmax_v0[i_1], argmax_v1[i_1])
            with T.init():
                argmax_v0[i_1] = -1
                argmax_v1[i_1] = T.min_value("float32")
            v_argmax_v0: T.int32 = T.Select(argmax_v1[i_1] >= val[i_1, k_1], argmax_v0[i_1], idx[i_1, k_1])
            v_argmax_v1: T.float32 = T.Select(argmax_v1[i_1] >= val[i_1, k_1], argmax_v1[i_1], val[i_1, k_1])
            argmax_v0[i_1] = v_argmax_v0
            argmax_v1[i_1] = v_argmax_v1
"""


@program(ARGMAX)
def argmax_rfactor(sch):
    block = sch.get_block("argmax")
    _, k = sch.get_loops(block)
    ko, ki = sch.split(k, [None, 4])
    rf = sch.rfactor(ki, 1)
    assert sch.get(rf).name == "argmax_rf"
    sch.parallel(sch.get_loops(rf)[0])


@program(ARGMAX)
def argmax_threads(sch):
    block = sch.get_block("argmax")
    i, k = sch.get_loops(block)
    _, ki = sch.split(k, [None, 8])
    sch.bind(i, "blockIdx.x")
    sch.bind(ki, "threadIdx.x")


@program("""
@T.prim_func
def square_sum(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [4, 16, 16])
    C = T.match_buffer(c, [4])
    for b0, i0, j0 in T.grid(4, 16, 16):
        with T.block("C"):
            b, i, j = T.axis.remap("SRR", [b0, i0, j0])
            with T.init():
                C[b] = 0.0
            C[b] = C[b] + A[b, i, j] * A[b, i, j]
""")
def square_sum_rfactor(sch):
    C = sch.get_block("C")
    _, _, j = sch.get_loops(C)
    _, ji = sch.split(j, factors=[None, 4])
    rf = sch.rfactor(ji, 0)
    assert sch.get(rf).name == "C_rf"
    b = sch.get_loops(rf)[-1]
    sch.unroll(b)


@program("""
@T.prim_func
def embedding(ids: T.Buffer((6,), "int64"), weight: T.Buffer((40, 16), "float16"), out: T.Buffer((6, 16), "float16")):
    for i, d in T.grid(6, 16):
        with T.block("take"):
            vi, vd = T.axis.remap("SS", [i, d])
            T.reads(weight[ids[vi], vd], ids[vi])
            T.writes(out[vi, vd])
            out[vi, vd] = weight[ids[vi], vd]
""")
def embedding(sch):
    i, d = sch.get_loops("take")
    f = sch.fuse(i, d)
    bx, tx = sch.split(f, [None, 32])
    sch.bind(bx, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")


@program("""
@T.prim_func
def cumsum(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    with T.block("cumsum"):
        T.reads(A[0:32])
        T.writes(B[0:32])
        for i in T.serial(32):
            B[i] = T.if_then_else(i == 0, A[i], B[T.max(i - 1, 0)] + A[i])
""")
def cumsum_opaque(sch):
    assert sch.get(sch.get_block("cumsum")).name == "cumsum"


@program("""
@T.prim_func
def scatter(data: T.Buffer((20,), "float32"), index: T.Buffer((8,), "int32"), src: T.Buffer((8,), "float32"), out: T.Buffer((20,), "float32")):
    for i in range(20):
        with T.block("copy"):
            vi = T.axis.spatial(20, i)
            out[vi] = data[vi]
    for i in range(8):
        with T.block("scatter"):
            vi = T.axis.opaque(8, i)
            T.reads(index[vi], src[vi], out[0:20])
            T.writes(out[0:20])
            out[index[vi]] = out[index[vi]] + src[vi]
""")
def scatter_add(sch):
    (i,) = sch.get_loops("copy")
    sch.vectorize(sch.split(i, [None, 4])[1])


@program("""
@T.prim_func
def quantize(X: T.Buffer((2, 33), "float32"), scale: T.Buffer((), "float32"), Q: T.Buffer((2, 33), "int8"), D: T.Buffer((2, 33), "float32")):
    for i, j in T.grid(2, 33):
        with T.block("quantize"):
            vi, vj = T.axis.remap("SS", [i, j])
            Q[vi, vj] = T.Cast("int8", T.max(T.min(T.round(X[vi, vj] / scale[()]), T.float32(127)), T.float32(-128)))
    for i, j in T.grid(2, 33):
        with T.block("dequantize"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.Cast("float32", Q[vi, vj]) * scale[()]
""")
def quantize_dequantize(sch):
    i, j = sch.get_loops("dequantize")
    sch.compute_at("quantize", i)
    sch.parallel(i)
    j0, j1 = sch.split(j, [None, 16])
    sch.vectorize(j1)


@program("""
@T.prim_func
def requantize(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int8")):
    for i, j in T.grid(4, 8):
        with T.block("requantize"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.cast(T.max(T.min(T.q_multiply_shift(A[vi, vj], 1436506112, 31, -2, dtype="int32"), 127), -128), "int8")
""")
def requantize(sch):
    i, j = sch.get_loops("requantize")
    sch.parallel(sch.fuse(i, j))


@program("""
@T.prim_func
def decode(W: T.Buffer((8, 4), "uint32"), S: T.Buffer((8, 2), "float16"), out: T.Buffer((8, 32), "float16")):
    for i, j in T.grid(8, 32):
        with T.block("decode"):
            vi, vj = T.axis.remap("SS", [i, j])
            out[vi, vj] = (T.Cast("float16", T.bitwise_and(T.shift_right(W[vi, vj // 8], T.Cast("uint32", vj % 8 * 4)), T.uint32(15))) - T.float16(7)) * S[vi, vj // 16]
""")
def int4_decode(sch):
    i, j = sch.get_loops("decode")
    j0, j1 = sch.split(j, [None, 8])
    sch.unroll(j1)
    sch.parallel(i)


@program("""
@T.prim_func
def attention(Q: T.Buffer((2, 8, 4), "float32"), K: T.Buffer((2, 8, 4), "float32"), V: T.Buffer((2, 8, 4), "float32"), O: T.Buffer((2, 8, 4), "float32")):
    S = T.alloc_buffer((2, 8, 8))
    M = T.alloc_buffer((2, 8))
    E = T.alloc_buffer((2, 8, 8))
    L = T.alloc_buffer((2, 8))
    for h, i, j, d in T.grid(2, 8, 8, 4):
        with T.block("scores"):
            vh, vi, vj, vd = T.axis.remap("SSSR", [h, i, j, d])
            with T.init():
                S[vh, vi, vj] = 0.0
            S[vh, vi, vj] += Q[vh, vi, vd] * K[vh, vj, vd] * T.rsqrt(T.float32(4))
    for h, i, j in T.grid(2, 8, 8):
        with T.block("row_max"):
            vh, vi, vj = T.axis.remap("SSR", [h, i, j])
            with T.init():
                M[vh, vi] = -T.infinity("float32")
            M[vh, vi] = T.max(M[vh, vi], T.if_then_else(vj <= vi, S[vh, vi, vj], T.float32(-1e9)))
    for h, i, j in T.grid(2, 8, 8):
        with T.block("exp"):
            vh, vi, vj = T.axis.remap("SSS", [h, i, j])
            E[vh, vi, vj] = T.if_then_else(vj <= vi, T.exp(S[vh, vi, vj] - M[vh, vi]), T.float32(0))
    for h, i, j in T.grid(2, 8, 8):
        with T.block("row_sum"):
            vh, vi, vj = T.axis.remap("SSR", [h, i, j])
            with T.init():
                L[vh, vi] = T.float32(0)
            L[vh, vi] += E[vh, vi, vj]
    for h, i, d, j in T.grid(2, 8, 4, 8):
        with T.block("out"):
            vh, vi, vd, vj = T.axis.remap("SSSR", [h, i, d, j])
            with T.init():
                O[vh, vi, vd] = T.float32(0)
            O[vh, vi, vd] += E[vh, vi, vj] / L[vh, vi] * V[vh, vj, vd]
""")
def attention_fused_rows(sch):
    h, i, d, j = sch.get_loops("out")
    for name in ("row_sum", "exp", "row_max", "scores"):
        sch.compute_at(name, i)
    sch.parallel(sch.fuse(h, i))


@program("""
@T.prim_func
def elementwise(a: T.handle, c: T.handle, b: T.Buffer((16, 16), "bfloat16")) -> None:
    A = T.match_buffer(a, (16, 16), "bfloat16")
    B = T.alloc_buffer((16, 16), "bfloat16")
    C = T.match_buffer(c, (16, 16), "float32", elem_offset=0, align=64, offset_factor=1)
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.bfloat16(2.0) + b[vi, vj]
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.cast(B[vi, vj], "float32") + 1.0
""")
def elementwise_bf16(sch):
    b, c = sch.get_block("B"), sch.get_block("C")
    i, j = sch.get_loops(c)
    sch.reverse_compute_inline(c)
    i, j = sch.get_loops(b)
    sch.parallel(i)
    sch.vectorize(j)


@program("""
@T.prim_func
def concat(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 16), "float32"), D: T.Buffer((16, 4), "float32")):
    for i, j in T.grid(4, 16):
        with T.block("T_concat"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.if_then_else(8 <= vj, B[vi, vj - 8], A[vi, vj])
    for i, j in T.grid(16, 4):
        with T.block("T_transpose"):
            ax0, ax1 = T.axis.remap("SS", [i, j])
            D[ax0, ax1] = C[ax1, ax0]
""")
def concat_transpose(sch):
    i, j = sch.get_loops("T_transpose")
    i0, i1 = sch.split(i, [None, 4])
    sch.reorder(i0, j, i1)
    sch.compute_at("T_concat", i0)
    sch.vectorize(i1)


@program("""
@T.prim_func
def two_inputs(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32"), C: T.Buffer((128,), "bool")):
    for i in T.serial(0, 128, annotations={"pragma_loop_partition_hint": 1}):
        with T.block("C"):
            vi = T.axis.S((0, 128), i)
            C[vi] = T.likely(A[vi] < B[vi]) and (not (A[vi] == T.int32(3)) or B[vi] % 2 != 0)
""")
def booleans(sch):
    (i,) = sch.get_loops("C")
    sch.unannotate(i, "pragma_loop_partition_hint")
    i0, i1, i2 = sch.split(i, factors=[2, None, 8])
    sch.reorder(i1, i0)
    sch.unroll(i2)


@program("""
@T.prim_func
def predicated(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i_0, i_1 in T.grid(7, 16):
        with T.block("B"):
            vi = T.axis.spatial(100, i_0 * 16 + i_1)
            T.where(i_0 * 16 + i_1 < 100)
            B[vi] = T.tanh(A[vi]) * T.sigmoid(A[vi]) + T.erf(A[vi])
""")
def predicated(sch):
    i0, i1 = sch.get_loops("B")
    f = sch.fuse(i0, i1)
    bx, tx = sch.split(f, [None, 32])
    sch.bind(bx, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")


@program("""
@I.ir_module
class Module:
    @T.prim_func
    def add(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] + T.float32(1)

    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] * T.float32(2)
""")
def several_functions(sch):
    sch.work_on("add")
    sch.vectorize(sch.get_loops(sch.get_block("B"))[0])
    block = sch.get_block("B", func_name="main")
    sch.unroll(sch.get_loops(block)[0])
    assert sch.mod["add"].name == "add"


@program("""
@T.prim_func
def padded_norm(X: T.Buffer((5, 7), "float32"), Y: T.Buffer((), "float32")):
    for i, j in T.grid(5, 7):
        with T.block("norm"):
            vi, vj = T.axis.remap("RR", [i, j])
            with T.init():
                Y[()] = T.float32(0)
            Y[()] = Y[()] + T.fabs(X[vi, vj])
""")
def full_reduction(sch):
    block = sch.get_block("norm")
    i, j = sch.get_loops(block)
    f = sch.fuse(i, j)
    o, r = sch.split(f, [None, 8])
    rf = sch.rfactor(r, 0)
    assert sch.get(rf).name == "norm_rf"


text_only(
    "macros",
    """
from tvm.script import tir as T

@T.macro
def assign(dst, src, i):
    dst[i] = src[i] + T.float32(1)

@T.macro(hygienic=False)
def twice(i):
    B[i] = B[i] * T.float32(2)

N = 16

@T.prim_func
def f(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32")):
    for i in range(N):
        assign(B, A, i)
        twice(i)
""",
    run=True,
)
