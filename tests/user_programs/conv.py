# ruff: noqa: E501  (programs as their users write them)
"""Convolutions, pooling and resizing."""

from tests.user_programs import program

CONV = """
@T.prim_func
def main(A: T.Buffer((1, 4, 10, 10), "float32"), W: T.Buffer((8, 4, 3, 3), "float32"), B: T.Buffer((1, 8, 10, 10), "float32")):
    Apad = T.alloc_buffer([1, 4, 12, 12], dtype="float32")
    for n, c, h, w in T.grid(1, 4, 12, 12):
        with T.block("pad"):
            vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
            Apad[vn, vc, vh, vw] = T.if_then_else(vh >= 1 and vh < 11 and vw >= 1 and vw < 11, A[vn, vc, vh - 1, vw - 1], T.float32(0), dtype="float32")
    for n, f, y, x, rc, ry, rx in T.grid(1, 8, 10, 10, 4, 3, 3):
        with T.block("conv"):
            nn, ff, yy, xx, vrc, vry, vrx = T.axis.remap("SSSSRRR", [n, f, y, x, rc, ry, rx])
            with T.init():
                B[nn, ff, yy, xx] = T.float32(0)
            B[nn, ff, yy, xx] = B[nn, ff, yy, xx] + Apad[nn, vrc, yy + vry, xx + vrx] * W[ff, vrc, vry, vrx]
"""


@program(CONV)
def conv2d_pad_at(sch):
    pad, conv = sch.get_block("pad"), sch.get_block("conv")
    n, f, y, x, rc, ry, rx = sch.get_loops(conv)
    y0, y1 = sch.split(y, [5, 2])
    sch.reorder(n, y0, f, rc, ry, rx, y1, x)
    sch.compute_at(pad, y0)
    sch.parallel(y0)
    sch.vectorize(x)
    sch.unroll(rx)


@program(CONV)
def conv2d_pad_inlined(sch):
    conv = sch.get_block("conv")
    sch.compute_inline("pad")
    n, f, y, x, rc, ry, rx = sch.get_loops(conv)
    out = sch.cache_write(conv, 0, "local")
    bx = sch.fuse(n, f)
    t = sch.fuse(y, x)
    t0, t1 = sch.split(t, [None, 32])
    sch.bind(bx, "blockIdx.x")
    sch.bind(t1, "threadIdx.x")
    sch.reverse_compute_at(out, t1)
    weight = sch.cache_read(conv, "W", "shared")
    sch.compute_at(weight, bx)
    sch.unroll(ry)


@program("""
@T.prim_func
def main(placeholder: T.Buffer((1, 8, 8, 8), "float32"), placeholder_1: T.Buffer((3, 3, 8, 1), "float32"), DepthwiseConv2d: T.Buffer((1, 6, 6, 8), "float32")) -> None:
    T.func_attr({"from_legacy_te_schedule": True, "global_symbol": "main", "tir.noalias": True})
    for b, i, j, c, di, dj in T.grid(1, 6, 6, 8, 3, 3):
        with T.block("DepthwiseConv2d"):
            bb, ii, jj, cc, vdi, vdj = T.axis.remap("SSSSRR", [b, i, j, c, di, dj])
            T.reads(placeholder[bb, ii + vdi, jj + vdj, cc], placeholder_1[vdi, vdj, cc, 0])
            T.writes(DepthwiseConv2d[bb, ii, jj, cc])
            T.block_attr({"workload": ["depthwise_conv2d_nhwc.cuda", ["TENSOR", [1, 8, 8, 8], "float32"]]})
            with T.init():
                DepthwiseConv2d[bb, ii, jj, cc] = T.float32(0)
            DepthwiseConv2d[bb, ii, jj, cc] = DepthwiseConv2d[bb, ii, jj, cc] + placeholder[bb, ii + vdi, jj + vdj, cc] * placeholder_1[vdi, vdj, cc, T.floormod(cc, 1)]
""")
def depthwise_nhwc(sch):
    block = sch.get_block("DepthwiseConv2d")
    b, i, j, c, di, dj = sch.get_loops(block)
    sch.reorder(di, dj, c)
    sch.vectorize(c)
    sch.parallel(i)
    sch.decompose_reduction(block, di)


@program("""
@T.prim_func
def winograd(X: T.Buffer((6, 6, 4), "float32"), BT: T.Buffer((4, 4), "float32"), V: T.Buffer((4, 4, 4, 4), "float32")):
    D = T.alloc_buffer((4, 4, 4, 4))
    for e, n, p, c in T.grid(4, 4, 4, 4):
        with T.block("input_tile"):
            eps, nu, vp, vc = T.axis.remap("SSSS", [e, n, p, c])
            T.block_attr({"schedule_rule": "None"})
            D[eps, nu, vp, vc] = X[T.floordiv(vp, 2) * 2 + eps, T.floormod(vp, 2) * 2 + nu, vc]
    for e, n, p, c, re, rn in T.grid(4, 4, 4, 4, 4, 4):
        with T.block("data_pack"):
            eps, nu, vp, vc, a, b = T.axis.remap("SSSSRR", [e, n, p, c, re, rn])
            with T.init():
                V[eps, nu, vp, vc] = T.float32(0)
            V[eps, nu, vp, vc] = V[eps, nu, vp, vc] + D[a, b, vp, vc] * BT[eps, a] * BT[nu, b]
""")
def winograd_input(sch):
    tile, pack = sch.get_block("input_tile"), sch.get_block("data_pack")
    e, n, p, c, a, b = sch.get_loops(pack)
    sch.reorder(p, c, e, n, a, b)
    for loop in (e, n, a, b):
        sch.unroll(loop)
    fused = sch.fuse(p, c)
    sch.parallel(fused)
    sch.compute_at(tile, fused)
    sch.set_scope(tile, 0, "local")


@program("""
@T.prim_func
def max_pool(X: T.Buffer((1, 4, 9, 9), "float32"), Y: T.Buffer((1, 4, 4, 4), "float32")):
    for n, c, h, w, kh, kw in T.grid(1, 4, 4, 4, 3, 3):
        with T.block("pool_max"):
            ax0, ax1, ax2, ax3, rv0, rv1 = T.axis.remap("SSSSRR", [n, c, h, w, kh, kw])
            with T.init():
                Y[ax0, ax1, ax2, ax3] = T.min_value("float32")
            Y[ax0, ax1, ax2, ax3] = T.max(Y[ax0, ax1, ax2, ax3], X[ax0, ax1, ax2 * 2 + rv0, ax3 * 2 + rv1])
""")
def max_pool(sch):
    block = sch.get_block("pool_max")
    n, c, h, w, kh, kw = sch.get_loops(block)
    sch.parallel(sch.fuse(n, c, h))
    sch.unroll(kh)
    sch.decompose_reduction(block, kh)


@program("""
@T.prim_func
def adaptive_avg_pool(X: T.Buffer((1, 8, 7, 7), "float32"), Y: T.Buffer((1, 8, 1, 1), "float32")):
    S = T.alloc_buffer((1, 8, 1, 1))
    for n, c, i, j, r0, r1 in T.grid(1, 8, 1, 1, 7, 7):
        with T.block("adaptive_pool_sum"):
            vn, vc, vi, vj, v0, v1 = T.axis.remap("SSSSRR", [n, c, i, j, r0, r1])
            with T.init():
                S[vn, vc, vi, vj] = T.float32(0)
            S[vn, vc, vi, vj] += X[vn, vc, vi * 7 + v0, vj * 7 + v1]
    for n, c, i, j in T.grid(1, 8, 1, 1):
        with T.block("adaptive_pool_avg"):
            vn, vc, vi, vj = T.axis.remap("SSSS", [n, c, i, j])
            T.block_attr({"schedule_rule": "meta_schedule.adaptive_pool_avg"})
            Y[vn, vc, vi, vj] = S[vn, vc, vi, vj] * T.float32(0.020408163265306121)
""")
def adaptive_pool(sch):
    total, avg = sch.get_block("adaptive_pool_sum"), sch.get_block("adaptive_pool_avg")
    n, c, i, j, r0, r1 = sch.get_loops(total)
    r = sch.fuse(r0, r1)
    sch.reverse_compute_at(avg, c)
    sch.bind(c, "blockIdx.x")
    t0, t1 = sch.split(r, [None, 7])
    sch.bind(t1, "threadIdx.x")
    del t0


@program("""
@T.prim_func
def resize(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (1, 3, 10, 10))
    B = T.match_buffer(b, (1, 3, 20, 20))
    for i0, i1, i2, i3 in T.grid(1, 3, 20, 20):
        with T.block("A"):
            n, c, vi, vj = T.axis.remap("SSSS", [i0, i1, i2, i3])
            B[n, c, vi, vj] = A[n, c, vi // 2, vj // 2]
""")
def resize_nearest(sch):
    block = sch.get_block("A")
    n, c, h, w = sch.get_loops(block)
    h0, h1 = sch.split(h, [None, 4])
    cached = sch.cache_read(block, 0, "shared")
    sch.compute_at(cached, h0)
    w0, w1 = sch.split(w, [None, 4])
    sch.vectorize(w1)


@program("""
@T.prim_func
def resize_bilinear(X: T.Buffer((4, 4), "float32"), Y: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("resize"):
            vi, vj = T.axis.remap("SS", [i, j])
            y: T.float32 = T.cast(vi, "float32") * T.float32(0.5)
            x: T.float32 = T.cast(vj, "float32") * T.float32(0.5)
            y0 = T.Cast("int32", T.floor(y))
            x0 = T.Cast("int32", T.floor(x))
            wy = y - T.Cast("float32", y0)
            wx = x - T.Cast("float32", x0)
            Y[vi, vj] = (X[T.max(T.min(y0, 3), 0), T.max(T.min(x0, 3), 0)] * (1.0 - wy) + X[T.max(T.min(y0 + 1, 3), 0), T.max(T.min(x0, 3), 0)] * wy) * (1.0 - wx) + X[T.clip(y0, 0, 3), T.clip(x0 + 1, 0, 3)] * wx
""")
def resize_bilinear(sch):
    i, j = sch.get_loops("resize")
    sch.parallel(sch.fuse(i, j))


@program("""
@T.prim_func
def conv1d_transpose(X: T.Buffer((1, 4, 8), "float32"), W: T.Buffer((4, 3, 4), "float32"), Y: T.Buffer((1, 3, 16), "float32")):
    P = T.alloc_buffer((1, 4, 20))
    for n, c, i in T.grid(1, 4, 20):
        with T.block("dilate_pad"):
            vn, vc, vi = T.axis.remap("SSS", [n, c, i])
            P[vn, vc, vi] = T.if_then_else(2 <= vi and vi < 18 and (vi - 2) % 2 == 0, X[vn, vc, (vi - 2) // 2], 0.0)
    for n, f, o, c, k in T.grid(1, 3, 16, 4, 4):
        with T.block("compute"):
            vn, vf, vo, vc, vk = T.axis.remap("SSSRR", [n, f, o, c, k])
            with T.init():
                Y[vn, vf, vo] = T.float32(0)
            Y[vn, vf, vo] += P[vn, vc, vo + vk] * W[vc, vf, 3 - vk]
""")
def conv1d_transpose(sch):
    sch.compute_inline("dilate_pad")
    n, f, o, c, k = sch.get_loops("compute")
    o0, o1 = sch.split(o, [None, 8])
    sch.reorder(o0, f, c, k, o1)
    sch.vectorize(o1)
