from tir.script import ir as I
from tir.script import tir as T


@T.prim_func
def matmul(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    for i, j, k in T.grid(32, 32, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def matmul_tiled(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (32, 32))
    B = T.match_buffer(b, (32, 32))
    C = T.match_buffer(c, (32, 32))
    for i0, j0, k0, i1, j1, k1 in T.grid(4, 2, 8, 8, 16, 4):
        with T.block("C"):
            vi = T.axis.spatial(32, i0 * 8 + i1)
            vj = T.axis.spatial(32, j0 * 16 + j1)
            vk = T.axis.reduce(32, k0 * 4 + k1)
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def matmul_relu(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
    C = T.alloc_buffer((16, 16), "float32")
    for i, j, k in T.grid(16, 16, 16):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]
    for i, j in T.grid(16, 16):
        with T.block("relu"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))


@T.prim_func
def matmul_transposed_fp16(
    A: T.Buffer((16, 32), "float16"), B: T.Buffer((16, 32), "float16"), C: T.Buffer((16, 16), "float32")
):
    for i, j, k in T.grid(16, 16, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vj, vk])


@T.prim_func
def matmul_int8(A: T.Buffer((32, 64), "int8"), B: T.Buffer((64, 32), "uint8"), C: T.Buffer((32, 32), "int32")):
    for i, j, k in T.grid(32, 32, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vk, vj])


@T.prim_func
def matmul_symbolic(a: T.handle, b: T.handle, c: T.handle):
    m, n, k = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (m, k), "float32")
    B = T.match_buffer(b, (k, n), "float32")
    C = T.match_buffer(c, (m, n), "float32")
    for i, j, kk in T.grid(m, n, k):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, kk])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def matmul_int64(
    A: T.Buffer((T.int64(16), T.int64(16)), "float32"),
    B: T.Buffer((T.int64(16), T.int64(16)), "float32"),
    C: T.Buffer((T.int64(16), T.int64(16)), "float32"),
):
    for i, j, k in T.grid(T.int64(16), T.int64(16), T.int64(16)):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def batch_matmul(
    A: T.Buffer((4, 32, 16), "float32"), B: T.Buffer((4, 16, 32), "float32"), C: T.Buffer((4, 32, 32), "float32")
):
    for b, i, j, k in T.grid(4, 32, 32, 16):
        with T.block("bmm"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                C[vb, vi, vj] = T.float32(0)
            C[vb, vi, vj] = C[vb, vi, vj] + A[vb, vi, vk] * B[vb, vk, vj]


@T.prim_func
def matvec(A: T.Buffer((64, 128), "float32"), x: T.Buffer((128,), "float32"), y: T.Buffer((64,), "float32")):
    for i, k in T.grid(64, 128):
        with T.block("y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] = y[vi] + A[vi, vk] * x[vk]


@T.prim_func
def outer(x: T.Buffer((16,), "float32"), y: T.Buffer((8,), "float32"), C: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        with T.block("outer"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = x[vi] * y[vj]


@T.prim_func
def dot(x: T.Buffer((256,), "float32"), y: T.Buffer((256,), "float32"), r: T.Buffer((), "float32")):
    for k in range(256):
        with T.block("dot"):
            vk = T.axis.reduce(256, k)
            with T.init():
                r[()] = T.float32(0)
            r[()] = r[()] + x[vk] * y[vk]


@T.prim_func
def conv2d_nchw(
    X: T.Buffer((1, 4, 18, 18), "float32"),
    W: T.Buffer((6, 4, 3, 3), "float32"),
    Y: T.Buffer((1, 6, 16, 16), "float32"),
):
    for n, f, y, x, c, dy, dx in T.grid(1, 6, 16, 16, 4, 3, 3):
        with T.block("conv"):
            vn, vf, vy, vx, vc, vdy, vdx = T.axis.remap("SSSSRRR", [n, f, y, x, c, dy, dx])
            with T.init():
                Y[vn, vf, vy, vx] = T.float32(0)
            Y[vn, vf, vy, vx] = Y[vn, vf, vy, vx] + X[vn, vc, vy + vdy, vx + vdx] * W[vf, vc, vdy, vdx]


@T.prim_func
def conv2d_nhwc_strided_padded(
    X: T.Buffer((1, 16, 16, 4), "float32"), W: T.Buffer((3, 3, 4, 8), "float32"), Y: T.Buffer((1, 8, 8, 8), "float32")
):
    P = T.alloc_buffer((1, 18, 18, 4), "float32")
    for n, h, w, c in T.grid(1, 18, 18, 4):
        with T.block("pad"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            P[vn, vh, vw, vc] = T.if_then_else(
                1 <= vh and vh < 17 and 1 <= vw and vw < 17, X[vn, vh - 1, vw - 1, vc], T.float32(0)
            )
    for n, h, w, f, dh, dw, c in T.grid(1, 8, 8, 8, 3, 3, 4):
        with T.block("conv"):
            vn, vh, vw, vf, vdh, vdw, vc = T.axis.remap("SSSSRRR", [n, h, w, f, dh, dw, c])
            with T.init():
                Y[vn, vh, vw, vf] = T.float32(0)
            Y[vn, vh, vw, vf] = Y[vn, vh, vw, vf] + P[vn, vh * 2 + vdh, vw * 2 + vdw, vc] * W[vdh, vdw, vc, vf]


@T.prim_func
def conv2d_dilated(X: T.Buffer((20, 20), "float32"), W: T.Buffer((3, 3), "float32"), Y: T.Buffer((16, 16), "float32")):
    for y, x, i, j in T.grid(16, 16, 3, 3):
        with T.block("conv"):
            vy, vx, vi, vj = T.axis.remap("SSRR", [y, x, i, j])
            with T.init():
                Y[vy, vx] = T.float32(0)
            Y[vy, vx] = Y[vy, vx] + X[vy + vi * 2, vx + vj * 2] * W[vi, vj]


@T.prim_func
def depthwise(
    X: T.Buffer((1, 18, 18, 8), "float32"), W: T.Buffer((3, 3, 8), "float32"), Y: T.Buffer((1, 16, 16, 8), "float32")
):
    for n, h, w, c, i, j in T.grid(1, 16, 16, 8, 3, 3):
        with T.block("dw"):
            vn, vh, vw, vc, vi, vj = T.axis.remap("SSSSRR", [n, h, w, c, i, j])
            with T.init():
                Y[vn, vh, vw, vc] = T.float32(0)
            Y[vn, vh, vw, vc] = Y[vn, vh, vw, vc] + X[vn, vh + vi, vw + vj, vc] * W[vi, vj, vc]


@T.prim_func
def grouped_conv1d(
    X: T.Buffer((8, 34), "float32"), W: T.Buffer((16, 2, 3), "float32"), Y: T.Buffer((16, 32), "float32")
):
    for f, x, c, dx in T.grid(16, 32, 2, 3):
        with T.block("conv"):
            vf, vx, vc, vd = T.axis.remap("SSRR", [f, x, c, dx])
            with T.init():
                Y[vf, vx] = T.float32(0)
            Y[vf, vx] = Y[vf, vx] + X[vf // 4 * 2 + vc, vx + vd] * W[vf, vc, vd]


@T.prim_func
def conv_transpose(X: T.Buffer((8,), "float32"), W: T.Buffer((4,), "float32"), Y: T.Buffer((18,), "float32")):
    for y, k in T.grid(18, 4):
        with T.block("Y"):
            vy, vk = T.axis.remap("SR", [y, k])
            with T.init():
                Y[vy] = T.float32(0)
            Y[vy] = Y[vy] + T.if_then_else(
                (vy - vk) % 2 == 0 and vy - vk >= 0 and (vy - vk) // 2 < 8, X[(vy - vk) // 2] * W[vk], T.float32(0)
            )


@T.prim_func
def winograd_input(
    X: T.Buffer((3, 18, 18), "float32"), B: T.Buffer((4, 4), "float32"), V: T.Buffer((4, 4, 3, 64), "float32")
):
    D = T.alloc_buffer((3, 64, 4, 4), "float32")
    for c, p, i, j in T.grid(3, 64, 4, 4):
        with T.block("tile"):
            vc, vp, vi, vj = T.axis.remap("SSSS", [c, p, i, j])
            D[vc, vp, vi, vj] = X[vc, vp // 8 * 2 + vi, vp % 8 * 2 + vj]
    for eps, nu, c, p, r1, r2 in T.grid(4, 4, 3, 64, 4, 4):
        with T.block("transform"):
            ve, vn, vc, vp, va, vb = T.axis.remap("SSSSRR", [eps, nu, c, p, r1, r2])
            with T.init():
                V[ve, vn, vc, vp] = T.float32(0)
            V[ve, vn, vc, vp] = V[ve, vn, vc, vp] + D[vc, vp, va, vb] * B[va, ve] * B[vb, vn]


@T.prim_func
def max_pool(X: T.Buffer((8, 16, 16), "float32"), Y: T.Buffer((8, 8, 8), "float32")):
    for c, y, x, i, j in T.grid(8, 8, 8, 2, 2):
        with T.block("pool"):
            vc, vy, vx, vi, vj = T.axis.remap("SSSRR", [c, y, x, i, j])
            with T.init():
                Y[vc, vy, vx] = T.float32("-inf")
            Y[vc, vy, vx] = T.max(Y[vc, vy, vx], X[vc, vy * 2 + vi, vx * 2 + vj])


@T.prim_func
def avg_pool_global(X: T.Buffer((8, 7, 7), "float32"), Y: T.Buffer((8,), "float32")):
    S = T.alloc_buffer((8,), "float32")
    for c, i, j in T.grid(8, 7, 7):
        with T.block("sum"):
            vc, vi, vj = T.axis.remap("SRR", [c, i, j])
            with T.init():
                S[vc] = T.float32(0)
            S[vc] = S[vc] + X[vc, vi, vj]
    for c in range(8):
        with T.block("avg"):
            vc = T.axis.spatial(8, c)
            Y[vc] = S[vc] / T.float32(49)


@T.prim_func
def softmax(X: T.Buffer((32, 64), "float32"), Y: T.Buffer((32, 64), "float32")):
    M = T.alloc_buffer((32,), "float32")
    E = T.alloc_buffer((32, 64), "float32")
    S = T.alloc_buffer((32,), "float32")
    for i, k in T.grid(32, 64):
        with T.block("max"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.min_value("float32")
            M[vi] = T.max(M[vi], X[vi, vk])
    for i, k in T.grid(32, 64):
        with T.block("exp"):
            vi, vk = T.axis.remap("SS", [i, k])
            E[vi, vk] = T.exp(X[vi, vk] - M[vi])
    for i, k in T.grid(32, 64):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vk]
    for i, k in T.grid(32, 64):
        with T.block("norm"):
            vi, vk = T.axis.remap("SS", [i, k])
            T.block_attr({"axis": 1})
            Y[vi, vk] = E[vi, vk] / S[vi]


@T.prim_func
def layernorm(
    X: T.Buffer((16, 64), "float32"),
    G: T.Buffer((64,), "float32"),
    B: T.Buffer((64,), "float32"),
    Y: T.Buffer((16, 64), "float32"),
):
    S = T.alloc_buffer((16,), "float32")
    Q = T.alloc_buffer((16,), "float32")
    for i, k in T.grid(16, 64):
        with T.block("moments"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
                Q[vi] = T.float32(0)
            s: T.float32 = S[vi] + X[vi, vk]
            q: T.float32 = Q[vi] + X[vi, vk] * X[vi, vk]
            S[vi] = s
            Q[vi] = q
    for i, k in T.grid(16, 64):
        with T.block("norm"):
            vi, vk = T.axis.remap("SS", [i, k])
            Y[vi, vk] = (X[vi, vk] - S[vi] * T.float32(0.015625)) * T.rsqrt(
                Q[vi] * T.float32(0.015625)
                - S[vi] * T.float32(0.015625) * (S[vi] * T.float32(0.015625))
                + T.float32(1e-5)
            ) * G[vk] + B[vk]


@T.prim_func
def rms_norm(X: T.Buffer((64,), "float16"), Y: T.Buffer((64,), "float16")):
    S = T.alloc_buffer((1,), "float32", scope="local")
    for k in range(64):
        with T.block("sq"):
            vk = T.axis.reduce(64, k)
            with T.init():
                S[0] = T.float32(0)
            S[0] = S[0] + T.Cast("float32", X[vk]) * T.Cast("float32", X[vk])
    for k in range(64):
        with T.block("out"):
            vk = T.axis.spatial(64, k)
            Y[vk] = T.Cast("float16", T.Cast("float32", X[vk]) / T.sqrt(S[0] / 64.0 + 0.000001))


@T.prim_func
def argmax(V: T.Buffer((128, 128), "float32"), I0: T.Buffer((128,), "int32"), M: T.Buffer((128,), "float32")):
    for i, k in T.grid(128, 128):
        with T.block("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                I0[vi] = -1
                M[vi] = T.min_value("float32")
            v_idx: T.int32 = T.Select(M[vi] >= V[vi, vk], I0[vi], vk)
            v_val: T.float32 = T.Select(M[vi] >= V[vi, vk], M[vi], V[vi, vk])
            I0[vi] = v_idx
            M[vi] = v_val


@T.prim_func
def gather(X: T.Buffer((100, 8), "float32"), idx: T.Buffer((16,), "int32"), Y: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        with T.block("gather"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(X[idx[vi], vj], idx[vi])
            T.writes(Y[vi, vj])
            Y[vi, vj] = X[idx[vi], vj]


@T.prim_func
def scatter_add(U: T.Buffer((16,), "float32"), idx: T.Buffer((16,), "int64"), Y: T.Buffer((100,), "float32")):
    for i in range(16):
        with T.block("scatter"):
            vi = T.axis.opaque(16, i)
            T.reads(Y[0:100], U[vi], idx[vi])
            T.writes(Y[0:100])
            Y[idx[vi]] = Y[idx[vi]] + U[vi]


@T.prim_func
def embedding_sum(
    table: T.Buffer((1000, 16), "float32"), ids: T.Buffer((8, 4), "int32"), Y: T.Buffer((8, 16), "float32")
):
    for b, d, t in T.grid(8, 16, 4):
        with T.block("sum"):
            vb, vd, vt = T.axis.remap("SSR", [b, d, t])
            T.reads(table[0:1000, vd], ids[vb, vt])
            T.writes(Y[vb, vd])
            with T.init():
                Y[vb, vd] = T.float32(0)
            Y[vb, vd] = Y[vb, vd] + table[ids[vb, vt], vd]


@T.prim_func
def cumsum(X: T.Buffer((64,), "float32"), Y: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("scan"):
            vi = T.axis.scan(64, i)
            T.reads(Y[vi - 1], X[vi])
            T.writes(Y[vi])
            Y[vi] = T.if_then_else(vi > 0, Y[vi - 1], T.float32(0)) + X[vi]


@T.prim_func
def stencil_1d(A: T.Buffer((66,), "float32"), B: T.Buffer((64,), "float32")):
    for i in T.serial(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = (A[vi] + A[vi + 1] + A[vi + 2]) / 3.0


@T.prim_func
def jacobi_2d(A: T.Buffer((34, 34), "float64"), B: T.Buffer((34, 34), "float64")):
    for t in range(4):
        for i, j in T.grid(32, 32):
            with T.block("step"):
                vi = T.axis.spatial((1, 33), i + 1)
                vj = T.axis.spatial((1, 33), j + 1)
                B[vi, vj] = (A[vi - 1, vj] + A[vi + 1, vj] + A[vi, vj - 1] + A[vi, vj + 1]) * T.float64(0.25)
        for i, j in T.grid(32, 32):
            with T.block("copy"):
                vi = T.axis.spatial((1, 33), i + 1)
                vj = T.axis.spatial((1, 33), j + 1)
                A[vi, vj] = B[vi, vj]


@T.prim_func
def heat_3d(A: T.Buffer((10, 10, 10), "float32"), B: T.Buffer((10, 10, 10), "float32")):
    for i in range(1, 9):
        for j in range(1, 9):
            for k in range(1, 9):
                B[i, j, k] = A[i, j, k] + T.float32(0.125) * (A[i + 1, j, k] - 2.0 * A[i, j, k] + A[i - 1, j, k])


@T.prim_func
def transpose(A: T.Buffer((32, 64), "float32"), B: T.Buffer((64, 32), "float32")):
    for i, j in T.grid(64, 32):
        with T.block("T"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]


@T.prim_func
def reshape_copy(A: T.Buffer((8, 16), "float32"), B: T.Buffer((128,), "float32")):
    for i in range(128):
        with T.block("reshape"):
            vi = T.axis.spatial(128, i)
            B[vi] = A[vi // 16, vi % 16]


@T.prim_func
def pack_nchwc(A: T.Buffer((16, 8, 8), "float32"), B: T.Buffer((4, 8, 8, 4), "float32")):
    for co, h, w, ci in T.grid(4, 8, 8, 4):
        with T.block("pack"):
            vo, vh, vw, vi = T.axis.remap("SSSS", [co, h, w, ci])
            B[vo, vh, vw, vi] = A[vo * 4 + vi, vh, vw]


@T.prim_func
def bubble_sort(A: T.Buffer((32,), "int32")):
    for i in range(31):
        for j in range(31 - i):
            if A[j] > A[j + 1]:
                t: T.int32 = A[j]
                A[j] = A[j + 1]
                A[j + 1] = t


@T.prim_func
def insertion_sort(A: T.Buffer((32,), "float32")):
    p = T.alloc_buffer((1,), "int32", scope="local")
    key = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(1, 32):
        key[0] = A[i]
        p[0] = i
        while p[0] > 0 and A[T.max(p[0] - 1, 0)] > key[0]:
            A[p[0]] = A[p[0] - 1]
            p[0] = p[0] - 1
        A[p[0]] = key[0]


@T.prim_func
def attention_scores(
    Q: T.Buffer((4, 16, 8), "float32"), K: T.Buffer((4, 16, 8), "float32"), S: T.Buffer((4, 16, 16), "float32")
):
    for h, i, j, d in T.grid(4, 16, 16, 8):
        with T.block("scores"):
            vh, vi, vj, vd = T.axis.remap("SSSR", [h, i, j, d])
            with T.init():
                S[vh, vi, vj] = T.Select(vj <= vi, T.float32(0), T.float32("-inf"))
            S[vh, vi, vj] = S[vh, vi, vj] + Q[vh, vi, vd] * K[vh, vj, vd] * T.float32(0.35355338)


@T.prim_func
def gelu(X: T.Buffer((256,), "float32"), Y: T.Buffer((256,), "float32")):
    for i in T.parallel(256):
        with T.block("gelu"):
            vi = T.axis.spatial(256, i)
            Y[vi] = 0.5 * X[vi] * (1.0 + T.erf(X[vi] * T.float32(0.7071067811865476)))


@T.prim_func
def sigmoid_chain(X: T.Buffer((16,), "float32"), Y: T.Buffer((16,), "float32")):
    for i in range(16):
        Y[i] = T.sigmoid(T.tanh(T.log(T.fabs(X[i]) + 1.0)))


@T.prim_func
def quantize(X: T.Buffer((64,), "float32"), Y: T.Buffer((64,), "int8")):
    for i in range(64):
        with T.block("q"):
            vi = T.axis.spatial(64, i)
            Y[vi] = T.Cast("int8", T.max(T.min(T.round(X[vi] / T.float32(0.05)) + 3.0, 127.0), -128.0))


@T.prim_func
def requantize(X: T.Buffer((64,), "int32"), Y: T.Buffer((64,), "uint8")):
    for i in range(64):
        with T.block("rq"):
            vi = T.axis.spatial(64, i)
            Y[vi] = T.Cast(
                "uint8", T.min(T.max(T.q_multiply_shift(X[vi], 1395864320, 31, -7, dtype="int32") + 128, 0), 255)
            )


@T.prim_func
def histogram(X: T.Buffer((256,), "uint8"), H: T.Buffer((256,), "int32")):
    for i in range(256):
        H[i] = 0
    for i in range(256):
        H[T.Cast("int32", X[i])] = H[T.Cast("int32", X[i])] + 1


@T.prim_func
def rfactor(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128,), "float32")):
    R = T.alloc_buffer((128, 8), "float32")
    for i, ko, ki in T.grid(128, 16, 8):
        with T.block("B_rf"):
            vi, vki = T.axis.remap("SS", [i, ki])
            vko = T.axis.reduce(16, ko)
            with T.init():
                R[vi, vki] = T.float32(0)
            R[vi, vki] = R[vi, vki] + A[vi, vko * 8 + vki]
    for i, ki in T.grid(128, 8):
        with T.block("B"):
            vi, vki = T.axis.remap("SR", [i, ki])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + R[vi, vki]


@I.ir_module
class two_kernels:
    @T.prim_func
    def add(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in range(16):
            B[i] = A[i] + 1.0

    @T.prim_func
    def mul(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = A[i] * 2.0


@I.ir_module
class module_with_calls:
    I.module_attrs({"device": "cpu", "level": 3})

    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), n: T.int32):
        T.func_attr({"tir.is_host_func": 1})
        T.call_global("step", A.data, n)
        T.evaluate(T.call_global("count", n, dtype="int32"))

    @T.prim_func(private=True)
    def step(p: T.handle("float32"), n: T.int32):
        A = T.Buffer((16,), "float32", data=p)
        for i in range(n):
            A[i] = 0.0

    @T.prim_func
    def count(n: T.int32) -> T.int32:
        T.ret(n + 1)
