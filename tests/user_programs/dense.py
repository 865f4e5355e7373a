# ruff: noqa: E501  (programs as their users write them)
"""Matrix multiplication in the forms that tutorials and compilers give it."""

from tests.user_programs import program

MATMUL = """
import tvm
from tvm.ir.module import IRModule
from tvm.script import tir as T
import numpy as np

@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def main(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(32, 32, 32):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


@program(MATMUL)
def cpu_tutorial(sch):
    block_c = sch.get_block("C", func_name="main")
    i, j, k = sch.get_loops(block=block_c)
    xo, xi = sch.split(i, factors=[None, 8])
    yo, yi = sch.split(loop=j, factors=[4, None])
    ko, ki = sch.split(k, factors=[None, 4])
    sch.reorder(xo, yo, ko, ki, xi, yi)
    sch.vectorize(yi)
    init = sch.decompose_reduction(block_c, ko)
    c_cache = sch.cache_write(block_c, 0, "local")
    sch.reverse_compute_at(c_cache, yo, preserve_unit_loops=True)
    sch.parallel(xo)
    sch.unroll(ki)
    assert sch.get(init).name == "C_init"
    assert [sch.get(x).loop_var.name for x in sch.get_loops(block_c)][:2] == ["i_0", "j_0"]


@program(MATMUL)
def fused_and_packed(sch):
    block = sch.get_block("C")
    b_pack = sch.cache_read(block, 1, "global")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, [None, 16])
    i0, i1 = sch.split(i, [None, 4])
    sch.reorder(i0, j0, k, i1, j1)
    outer = sch.fuse(i0, j0)
    sch.parallel(outer)
    sch.compute_at(b_pack, outer)
    sch.annotate(outer, ann_key="pragma_auto_unroll_max_step", ann_val=64)
    sch.annotate(block, "meta_schedule.tiling_structure", "SSRSRS")
    sch.unannotate(outer, "pragma_auto_unroll_max_step")


@program(MATMUL)
def gpu_shared_tiles(sch):
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    by, vy, ty, yi = sch.split(i, factors=[None, 1, 4, 4])
    bx, vx, tx, xi = sch.split(j, factors=[None, 1, 4, 4])
    ko, ki = sch.split(k, factors=[None, 8])
    sch.reorder(by, bx, vy, vx, ty, tx, ko, ki, yi, xi)
    sch.bind(by, "blockIdx.y")
    sch.bind(bx, "blockIdx.x")
    sch.bind(vy, "vthread.y")
    sch.bind(vx, "vthread.x")
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    local = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(local, tx, preserve_unit_loops=True)
    for index, name in enumerate("AB"):
        shared = sch.cache_read(block, index, "shared")
        sch.compute_at(shared, ko, preserve_unit_loops=True)
        fused = sch.fuse(*sch.get_loops(shared)[-2:])
        f0, f1, f2, f3 = sch.split(fused, factors=[None, 4, 4, 2])
        sch.vectorize(f3)
        sch.bind(f2, "threadIdx.x")
        sch.bind(f1, "threadIdx.y")
        sch.storage_align(shared, 0, axis=-2, factor=32, offset=4)
        assert sch.get(shared).name == f"{name}_shared"
    sch.decompose_reduction(block, ko)


@program(MATMUL)
def split_k(sch):
    block = sch.get_block("C")
    _, j, k = sch.get_loops(block)
    ko, _ = sch.split(k, factors=[4, None])
    partial = sch.rfactor(ko, factor_axis=2)
    sch.get_loops(partial)
    assert sch.get(partial).name == "C_rf"
    sch.compute_at(partial, sch.get_loops(block)[0])
    del j


@program(MATMUL)
def sampled(sch):
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    v0, v1, v2, v3 = sch.sample_perfect_tile(loop=i, n=4, max_innermost_factor=64, decision=[2, 2, 4, 2])
    i_0, i_1, i_2, i_3 = sch.split(loop=i, factors=[v0, v1, v2, v3])
    j_0, j_1, j_2, j_3 = sch.split(
        j, factors=sch.sample_perfect_tile(j, n=4, max_innermost_factor=64), preserve_unit_iters=True
    )
    k_0, k_1 = sch.split(k, sch.sample_perfect_tile(k, n=2))
    sch.reorder(i_0, j_0, i_1, j_1, k_0, i_2, j_2, k_1, i_3, j_3)
    unroll = sch.sample_categorical(candidates=[0, 16, 64, 512], probs=[0.25, 0.25, 0.25, 0.25], decision=2)
    sch.annotate(block_or_loop=i_0, ann_key="pragma_unroll_explicit", ann_val=unroll)
    cache = sch.cache_write(block=block, write_buffer_index=0, storage_scope="global")
    sch.reverse_compute_at(block=cache, loop=j_1, preserve_unit_loops=True, index=-1)
    sch.enter_postproc()
    sch.unannotate(i_0, "pragma_unroll_explicit")


@program(
    """
from tvm.script import tir as T

@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle) -> None:
    n = T.var("int32")
    m = T.int32()
    A = T.match_buffer(a, (n, 16))
    B = T.match_buffer(b, [m, 16])
    C = T.match_buffer(c, [n, m], dtype="float32")
    for i, j, k in T.grid(n, m, 16):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vj, vk])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] += A[vi, vk] * B[vj, vk]
""",
)
def dynamic_shape(sch):
    block = sch.get_block("matmul")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4])
    sch.reorder(i0, j0, k, i1, j1)
    fused = sch.fuse(i0, j0)
    sch.parallel(fused)
    sch.unroll(i1)
    sch.decompose_reduction(block, k)


@program("""
@T.prim_func
def main(var_A: T.handle, B: T.Buffer((T.int64(16), T.int64(24)), "float16"), var_C: T.handle):
    T.func_attr({"tir.noalias": T.bool(True), "op_pattern": 4})
    n = T.int64()
    A = T.match_buffer(var_A, (T.int64(1), n, T.int64(16)), "float16")
    C = T.match_buffer(var_C, (T.int64(1), n, T.int64(24)), "float16")
    # with T.block("root"):
    NT_matmul_intermediate = T.alloc_buffer((T.int64(1), n, T.int64(24)), "float16")
    for i0, i1, i2, k in T.grid(T.int64(1), n, T.int64(24), T.int64(16)):
        with T.block("NT_matmul"):
            v_i0, v_i1, v_i2, v_k = T.axis.remap("SSSR", [i0, i1, i2, k])
            T.reads(A[v_i0, v_i1, v_k], B[v_k, v_i2])
            T.writes(NT_matmul_intermediate[v_i0, v_i1, v_i2])
            with T.init():
                NT_matmul_intermediate[v_i0, v_i1, v_i2] = T.float16(0)
            NT_matmul_intermediate[v_i0, v_i1, v_i2] = NT_matmul_intermediate[v_i0, v_i1, v_i2] + A[v_i0, v_i1, v_k] * B[v_k, v_i2]
    for ax0, ax1, ax2 in T.grid(T.int64(1), n, T.int64(24)):
        with T.block("T_relu"):
            v_ax0, v_ax1, v_ax2 = T.axis.remap("SSS", [ax0, ax1, ax2])
            T.reads(NT_matmul_intermediate[v_ax0, v_ax1, v_ax2])
            T.writes(C[v_ax0, v_ax1, v_ax2])
            C[v_ax0, v_ax1, v_ax2] = T.max(NT_matmul_intermediate[v_ax0, v_ax1, v_ax2], T.float16(0.0))
""")
def llm_matmul_int64(sch):
    block = sch.get_block("NT_matmul")
    relu = sch.get_block("T_relu")
    assert [sch.get(b).name for b in sch.get_consumers(block)] == ["T_relu"]
    b, i, j, k = sch.get_loops(block)
    sch.fuse(b, i)
    _, _, x = sch.get_loops(relu)
    bx, tx = sch.split(x, [None, T64(8)])
    sch.compute_at(block, bx)
    sch.bind(bx, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")
    sch.set_scope(block, 0, "local")


def T64(value):
    from tir.script import tir as T

    return T.int64(value)


@program("""
@T.prim_func
def batch_matmul(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [4, 16, 16])
    B = T.match_buffer(b, [4, 16, 16])
    C = T.match_buffer(c, [4, 16, 16])

    for n, i, j in T.grid(4, 16, 16):
        with T.block("init"):
            vn, vi, vj = T.axis.remap("SSS", [n, i, j])
            C[vn, vi, vj] = T.float32(0)

    for n, i, j, k in T.grid(4, 16, 16, 16):
        with T.block("update"):
            vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
            C[vn, vi, vj] = C[vn, vi, vj] + A[vn, vi, vk] * B[vn, vj, vk]
""")
def batch_matmul_two_blocks(sch):
    update = sch.get_block("update")
    n, i, j, k = sch.get_loops(update)
    sch.reorder(k, j)
    f = sch.fuse(n, i)
    sch.parallel(f)
    sch.vectorize(j)
    assert [sch.get(b).name for b in sch.get_producers(update)] == ["init"]


@program("""
@T.prim_func
def matmul_relu(A: T.Buffer((16, 16)), B: T.Buffer((16, 16)), bias: T.Buffer(16), D: T.Buffer((16, 16))):
    C = T.alloc_buffer((16, 16))
    E = T.alloc_buffer((16, 16))
    for i, j, k in T.grid(16, 16, 16):
        with T.block("matmul"):
            vi = T.axis.S(16, i)
            vj = T.axis.S(16, j)
            vk = T.axis.R(16, k)
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(16, 16):
        with T.block("bias"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = C[vi, vj] + bias[vj]
    for i, j in T.grid(16, 16):
        with T.block("relu"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(E[vi, vj], 0.0)
""")
def epilogue(sch):
    sch.compute_inline(sch.get_block("bias"))
    relu = sch.get_block("relu")
    matmul = sch.get_block("matmul")
    i, j, k = sch.get_loops(matmul)
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4])
    sch.reorder(i0, j0, k, i1, j1)
    sch.reverse_compute_at(relu, j0)
    sch.parallel(sch.fuse(i0, j0))
    sch.vectorize(sch.get_loops(relu)[-1])


@program("""
@T.prim_func
def gemv(A: T.Buffer((24, 64), "float32"), x: T.Buffer((64,), "float32"), y: T.Buffer((24,), "float32")):
    for i, k in T.grid(24, 64):
        with T.block("gemv"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] += A[vi, vk] * x[vk]
""")
def gemv_cross_thread(sch):
    block = sch.get_block("gemv")
    i, k = sch.get_loops(block)
    ko, ki = sch.split(k, [None, 8])
    rf = sch.rfactor(ki, 0)
    i, k1 = sch.get_loops(block)
    sch.bind(i, "blockIdx.x")
    sch.bind(k1, "threadIdx.x")
    sch.set_scope(rf, 0, "shared")
    sch.compute_at(rf, i)


@program("""
@T.prim_func
def dense_int8(X: T.Buffer((16, 16), "uint8"), W: T.Buffer((16, 16), "int8"), Y: T.Buffer((16, 16), "int32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("dense"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = 0
            Y[vi, vj] = Y[vi, vj] + T.cast(X[vi, vk], "int32") * T.cast(W[vj, vk], "int32")
""")
def dense_vnni(sch):
    block = sch.get_block("dense")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, [None, 16])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(i, j0, k0, j1, k1)
    sch.decompose_reduction(block, k0)
    inner = sch.blockize(j1)
    assert sch.get(inner).name == "dense_update_o"


@program("""
@T.prim_func
def outer_product(A: T.Buffer((15,), "float64"), B: T.Buffer((33,), "float64"), C: T.Buffer((15, 33), "float64")):
    for i in range(15):
        for j in range(33):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi] * B[vj]
""")
def tails(sch):
    i, j = sch.get_loops("C")
    i0, i1 = sch.split(i, [4, None])
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i0, j0, i1, j1)
    fused = sch.fuse(i0, j0)
    sch.parallel(fused)
    sch.vectorize(j1)
    unit = sch.add_unit_loop(fused)
    assert int(sch.get(unit).extent) == 1
