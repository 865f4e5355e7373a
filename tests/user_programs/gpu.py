# ruff: noqa: E501  (programs as their users write them)
"""GPU kernels, lowered kernels and tensor intrinsics."""

from tests.user_programs import program, text_only

text_only(
    "lowered_vector_add",
    """
# from tvm.script import tir as T
@T.prim_func
def main(A_handle: T.handle, B_handle: T.handle, n: T.int32):
    T.func_attr({"calling_conv": 2, "global_symbol": "main", "tir.is_global_func": T.bool(True), "tir.noalias": True, "tir.kernel_launch_params": ["blockIdx.x", "threadIdx.x"]})
    A = T.match_buffer(A_handle, (n,), "float32")
    B = T.match_buffer(B_handle, (n,), "float32")
    blockIdx_x = T.env_thread("blockIdx.x")
    threadIdx_x = T.env_thread("threadIdx.x")
    T.launch_thread(blockIdx_x, T.ceildiv(n, 64))
    T.launch_thread(threadIdx_x, 64)
    if T.likely(blockIdx_x * 64 + threadIdx_x < n, dtype="bool"):
        B[blockIdx_x * 64 + threadIdx_x] = A[blockIdx_x * 64 + threadIdx_x] + T.float32(1)
""",
)

text_only(
    "lowered_shared_reduction",
    """
@T.prim_func
def main(A: T.Buffer((4, 128), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"target": T.target({"keys": ["cuda", "gpu"], "kind": "cuda", "max_num_threads": 1024, "tag": "", "thread_warp_size": 32})})
    A_1 = T.Buffer((512,), data=A.data)
    with T.launch_thread("blockIdx.x", 4) as bx:
        red_buf0 = T.allocate([1], "float32", "local")
        rf = T.allocate([1], "float32", scope="local")
        tx = T.launch_thread("threadIdx.x", 128)
        rf_1 = T.Buffer((1,), data=rf, scope="local")
        rf_1[0] = T.float32(0)
        rf_1[0] = rf_1[0] + A_1[bx * 128 + tx]
        red_1 = T.Buffer((1,), data=red_buf0, scope="local")
        with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
            T.tvm_thread_allreduce(T.uint32(1), rf_1[0], T.bool(True), red_1[0], tx)
        if tx == 0:
            B[bx] = red_1[0]
""",
)

text_only(
    "lowered_dynamic_shared",
    """
@T.prim_func
def main(A: T.Buffer((64,), "float16"), B: T.Buffer((64,), "float16")):
    buf_dyn_shmem = T.allocate([128], "uint8", "shared.dyn")
    with T.attr(T.iter_var(T.int32(), (0, 64), "ThreadIndex", "threadIdx.x"), "thread_extent", 64):
        T.attr(buf_dyn_shmem, "storage_alignment", 128)
        smem = T.decl_buffer((64,), "float16", data=buf_dyn_shmem, scope="shared.dyn")
        for k in T.unroll(1):
            smem[0] = A[0]
        T.tvm_storage_sync("shared.dyn")
        B[0] = smem[0]
""",
)

text_only(
    "lowered_host",
    """
@T.prim_func
def main(args: T.handle, arg_type_ids: T.handle("int32"), num_args: T.int32, out_ret_value: T.handle("void"), out_ret_tcode: T.handle("int32")) -> T.int32:
    T.func_attr({"calling_conv": 1, "target": T.target({"keys": ["cpu"], "kind": "llvm", "tag": ""})})
    assert num_args == 2, "main: num_args should be 2"
    arg_type_ids_1 = T.decl_buffer((2,), "int32", data=arg_type_ids)
    A_code: T.int32 = arg_type_ids_1[0]
    A: T.handle = T.tvm_struct_get(args, 0, 12, "handle")
    A_data: T.handle("float32", "global") = T.tvm_struct_get(A, 0, 1, "handle")
    T.attr(A_data, "storage_alignment", 64)
    A_1 = T.decl_buffer((16,), data=A_data)
    assert A_code == 3 or A_code == 13 or A_code == 7 or A_code == 4, "main: Expect arg[0] to be pointer"
    assert T.Cast("int32", T.tvm_struct_get(A, 0, 5, "uint8")) == 2 and T.tvm_struct_get(A, 0, 7, "uint16") == T.uint16(1), "dtype"
    with T.attr(0, "compute_scope", "main_compute_"):
        for i in T.vectorized(16):
            A_1[i] = A_1[i] + T.float32(1)
        for i in T.parallel(4):
            A_1[T.Ramp(i * 4, 1, 4)] = A_1[i * 4:i * 4 + 4] * T.Broadcast(T.float32(2), 4)
    return 0
""",
)

text_only(
    "call_packed",
    """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.call_packed("my.func", T.tvm_stack_make_array(A.data, T.tvm_stack_make_shape(16), 0, 1, T.float32(0), 0))
    T.evaluate(T.call_extern("int32", "memcpy_", B.access_ptr("w"), A.access_ptr("r", offset=4, extent=8)))
    T.call_intrin("void", "tir.tvm_storage_sync", "shared")
    T.evaluate(T.tvm_access_ptr(T.type_annotation(dtype="float32"), B.data, 0, 16, 2, dtype="handle"))
""",
)

text_only(
    "pure_intrinsics",
    """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "int32")):
    for i in T.serial(16):
        B[i] = T.call_llvm_pure_intrin("float32", "llvm.sqrt", T.uint32(1), A[i])
        B[i] = T.call_pure_extern("float32", "sqrtf", A[i])
        C[i] = T.reinterpret("int32", A[i]) ^ (T.int32(1) << 3) | ~C[i]
        x = T.popcount(C[i])
        C[i] = x
    C[0:4] = T.vectorlow("int32x4", C[0:8])
    T.prefetch(A.data, 0, 3, 1)
""",
)

text_only(
    "while_and_let",
    """
@T.prim_func
def binary_search(A: T.Buffer((64,), "int32"), key: T.int32, R: T.Buffer((1,), "int32")):
    lo = T.alloc_buffer((1,), "int32", scope="local")
    hi = T.alloc_buffer((1,), "int32", scope="local")
    with T.block("search"):
        T.reads(A[0:64])
        T.writes(R[0])
        lo[0] = 0
        hi[0] = 64
        while lo[0] < hi[0]:
            with T.LetStmt(lo[0] + T.shift_right(hi[0] - lo[0], 1)) as mid:
                if A[mid] < key:
                    lo[0] = mid + 1
                else:
                    hi[0] = mid
        R[0] = lo[0]
""",
    run=True,
)


text_only(
    "stepped_loops",
    """
@T.prim_func
def main(A: T.Buffer((32,), "int32")):
    for i in range(0, 32, 4):
        A[i] = i
    for i in T.serial(2, 32, step=8):
        A[i + 1] = i
    for j in T.unroll(1, 30, step=5):
        A[j] = A[j] + 1
""",
    run=True,
)

text_only(
    "sblock_spelling",
    """
from tvm.script import tirx as T
from tvm.script import ir as I

@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.sblock_alloc_buffer((8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.sblock("B"):
            T.sblock_attr({"note": 1})
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 8):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
""",
    run=True,
)

text_only(
    "root_block_written",
    """
@T.prim_func
def main(a: T.handle, c: T.handle) -> None:
    T.func_attr({"tir.noalias": True})
    A = T.match_buffer(a, (16, 16), "float32")
    C = T.match_buffer(c, (16, 16), "float32")
    with T.block("root"):
        T.reads()
        T.writes()
        B = T.alloc_buffer([16, 16], dtype="float32")
        for i0 in T.serial(0, 16):
            with T.block():
                T.reads(A[i0, 0:16])
                T.writes(C[i0, 0:16])
                for j in T.serial(16):
                    with T.block("B"):
                        vi = T.axis.S(16, i0)
                        vj = T.axis.S(16, j)
                        B[vi, vj] = A[vi, vj] + T.float32(1)
                for j in T.serial(16):
                    with T.block("C"):
                        vi, vj = T.axis.remap("SS", [i0, j])
                        C[vi, vj] = B[vi, vj] * T.float32(2)
""",
    run=True,
)

text_only(
    "sub_region",
    """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            T.writes(B[vi * 4:(vi + 1) * 4, vj * 4:(vj + 1) * 4])
            sA = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), "float32", strides=[T.int32(), 1], offset_factor=1)
            s0 = T.int32()
            s1 = T.int32()
            sB = T.match_buffer(B[vi * 4:(vi + 1) * 4, vj * 4:(vj + 1) * 4], [4, 4], dtype="float32", strides=[s0, s1], offset_factor=1)
            for a, b in T.grid(4, 4):
                sB[a, b] = sA[a, b] + T.float32(1)
""",
    run=True,
)

MMA = """
@T.prim_func
def wmma_sync_desc(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_a")
    B = T.match_buffer(b, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_b")
    C = T.match_buffer(c, (16, 16), "float32", align=64, offset_factor=16, scope="wmma.accumulator")
    with T.block("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j, k in T.grid(16, 16, 16):
            with T.block("update"):
                vii, vjj, vkk = T.axis.remap("SSR", [i, j, k])
                C[vii, vjj] = C[vii, vjj] + T.cast(A[vii, vkk], "float32") * T.cast(B[vkk, vjj], "float32")
"""
text_only("wmma_desc", MMA)

text_only(
    "wmma_impl",
    """
@T.prim_func
def wmma_sync_impl(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (16, 16), "float16", align=128, offset_factor=16, scope="wmma.matrix_a")
    B = T.match_buffer(b, (16, 16), "float16", align=128, offset_factor=16, scope="wmma.matrix_b")
    C = T.match_buffer(c, (16, 16), "float32", align=128, offset_factor=16, scope="wmma.accumulator")
    with T.block("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.evaluate(
            T.tvm_mma_sync(
                C.data, C.elem_offset // 256 + T.floordiv(T.floormod(C.elem_offset, 256), 16),
                A.data, A.elem_offset // 256 + T.floordiv(T.floormod(A.elem_offset, 256), 16),
                B.data, B.elem_offset // 256 + T.floordiv(T.floormod(B.elem_offset, 256), 16),
                C.data, C.elem_offset // 256 + T.floordiv(T.floormod(C.elem_offset, 256), 16),
                dtype="handle",
            )
        )
""",
)

text_only(
    "wmma_load_store",
    """
@T.prim_func
def wmma_load_impl(a: T.handle, c: T.handle) -> None:
    s1 = T.var("int32")
    s0 = T.var("int32")
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="shared", strides=[s1, s0])
    C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_a")
    with T.block("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.evaluate(T.tvm_load_matrix_sync(C.data, 16, 16, 16, C.elem_offset // 256, A.access_ptr("r"), s1, "row_major", dtype="handle"))
        T.tvm_store_matrix_sync(C.data, 16, 16, 16, 0, A.access_ptr(access_mask="w"), A.strides[0], "row_major")
        T.tvm_fill_fragment(C.data, 16, 16, 16, 0, T.float32(0), dtype="handle")
""",
)

text_only(
    "ldmatrix_impl",
    """
@T.prim_func
def ldmatrix_impl(warp_handle: T.handle, shared_handle: T.handle) -> None:
    shared = T.match_buffer(shared_handle, (16, 16), "float16", align=64, offset_factor=16, scope="shared", strides=[T.var("int32"), T.int32()])
    warp = T.match_buffer(warp_handle, (32, 8), "float16", align=64, offset_factor=16, scope="warp")
    with T.block("root"):
        T.reads(shared[0:16, 0:16])
        T.writes(warp[0:32, 0:8])
        tx = T.env_thread("threadIdx.x")
        T.launch_thread(tx, 32)
        T.evaluate(T.ptx_ldmatrix(0, 4, ".b16", warp.data, warp.elem_offset + 8 * tx, shared.access_ptr("r"), shared.strides[0] * (tx % 16) + 8 * (tx // 16), dtype="float16"))
""",
)

text_only(
    "mma_m16n8k16",
    """
@T.prim_func
def mma_sync_impl(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (32, 8), "float16", align=64, offset_factor=16, scope="warp")
    B = T.match_buffer(b, (32, 8), "float16", align=64, offset_factor=16, scope="warp")
    C = T.match_buffer(c, (32, 8), "float32", align=64, offset_factor=16, scope="warp")
    with T.block("root"):
        T.reads(C[0:32, 0:8], A[0:32, 0:8], B[0:32, 0:8])
        T.writes(C[0:32, 0:8])
        for tx in T.thread_binding(0, 32, "threadIdx.x"):
            T.evaluate(T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", A.data, A.elem_offset + tx * T.int32(8), B.data, B.elem_offset + tx * 8, C.data, C.elem_offset + tx * 8, False, dtype="float32"))
            T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", A.data, A.elem_offset + tx * 8, B.data, B.elem_offset + tx * 8 + T.floordiv(8, 2), C.data, C.elem_offset + tx * 8 + 4, False, dtype="float32")
""",
)

text_only(
    "vnni_impl",
    """
@T.prim_func
def dot_product_16x4_u8i8i32_vnni(
    A: T.Buffer((4,), "uint8", offset_factor=1),
    B: T.Buffer((16, 4), "int8", offset_factor=1),
    C: T.Buffer((16,), "int32", offset_factor=1),
) -> None:
    with T.block("root"):
        T.reads(C[0:16], A[0:4], B[0:16, 0:4])
        T.writes(C[0:16])
        A_u8x4 = A.vload([0], "uint8x4")
        A_i32 = T.reinterpret(A_u8x4, dtype="int32")
        A_brdcst = T.broadcast(A_i32, 16)
        A_u8x64 = T.reinterpret(A_brdcst, dtype="uint8x64")
        B_i8x64 = B.vload([0, 0], dtype="int8x64")
        C_i32x16 = C.vload([0], dtype="int32x16")
        C[T.ramp(T.int32(0), 1, 16)] = T.call_llvm_pure_intrin(
            T.llvm_lookup_intrinsic_id("llvm.x86.avx512.vpdpbusd.512"), C_i32x16, A_u8x64, B_i8x64, dtype="int32x16"
        )
""",
)

text_only(
    "sdot_impl",
    """
@T.prim_func
def sdot(A: T.Buffer((4,), "int8", offset_factor=1), B: T.Buffer((4, 4), "int8", offset_factor=1), C: T.Buffer((4,), "int32", offset_factor=1)):
    with T.block("root"):
        T.reads(C[0:4], A[0:4], B[0:4, 0:4])
        T.writes(C[0:4])
        A_int8x4 = A.vload([0], "int8x4")
        A_int32 = T.reinterpret("int32", A_int8x4)
        vec_ai32 = T.broadcast(A_int32, 4)
        vec_a = T.reinterpret("int8x16", vec_ai32)
        vec_b = B.vload([0, 0], dtype="int8x16")
        vec_c = C.vload([0], dtype="int32x4")
        C[T.ramp(T.int32(0), 1, 4)] = T.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.sdot", T.uint32(3), vec_c, vec_a, vec_b)
""",
)

text_only(
    "async_pipeline",
    """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for tx in T.thread_binding(0, 16, thread="threadIdx.x"):
        for i in T.serial(0, 16, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1], "software_pipeline_async_stages": [0]}):
            with T.block("compute"):
                T.reads(A[tx, i])
                T.writes(C[tx, i])
                B = T.alloc_buffer((16, 1), dtype="float32", scope="shared")
                with T.block("load"):
                    T.reads(A[tx, i])
                    T.writes(B[tx, 0])
                    B[tx, 0] = A[tx, i] * T.float32(2)
                with T.block("store"):
                    T.reads(B[tx, 0])
                    T.writes(C[tx, i])
                    C[tx, i] = B[tx, 0] + T.float32(1)
""",
    run=True,
)

text_only(
    "warp_reduce",
    """
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((1,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    red = T.allocate([1], "float32", "local")
    r = T.Buffer((1,), "float32", data=red, scope="local")
    mask = T.allocate([1], "uint32", "local")
    m = T.Buffer((1,), "uint32", data=mask, scope="local")
    t0 = T.allocate([1], "float32", "local")
    t = T.Buffer((1,), data=t0, scope="local")
    r[0] = A[tx]
    m[0] = T.tvm_warp_activemask()
    t[0] = T.tvm_warp_shuffle_down(m[0], r[0], 16, 32, 32)
    r[0] = r[0] + t[0]
    t[0] = T.tvm_warp_shuffle_xor(m[0], r[0], 8, 32, 32)
    r[0] = T.tvm_warp_shuffle(m[0], r[0] + t[0], 0, 32, 32)
    if tx == 0:
        B[0] = r[0]
""",
)

text_only(
    "dtype_zoo",
    """
@T.prim_func
def main(a: T.Buffer((4,), "float8_e4m3fn"), b: T.Buffer((4,), "float8_e5m2"), c: T.Buffer((4,), "bfloat16"), d: T.Buffer((4,), "int4"), e: T.Buffer((4,), "bool"), f: T.Buffer((4,), "float64"), g: T.Buffer((4,), "uint64"), s: T.float16, t: T.uint8):
    for i in range(4):
        f[i] = T.Cast("float64", c[i]) + T.float64(1e-300) * T.Cast("float64", s)
        g[i] = T.Cast("uint64", t) + T.uint64(18446744073709551615)
        e[i] = T.Cast("bool", d[i])
        c[i] = T.Select(e[i], T.bfloat16(1), T.Cast("bfloat16", a[i])) + T.Cast("bfloat16", b[i])
        f[i] = T.if_then_else(T.isnan(f[i]), T.float64("inf"), f[i] - T.max_value("float64"))
""",
)


@program("""
@T.prim_func
def main(A: T.Buffer((32, 32), "float16"), B: T.Buffer((32, 32), "float16"), C: T.Buffer((32, 32), "float32")):
    for i, j, k in T.grid(32, 32, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "float32") * T.cast(B[vk, vj], "float32")
""")
def tensor_core_tiles(sch):
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i, i_tc = sch.split(i, factors=[None, 16])
    j, j_tc = sch.split(j, factors=[None, 16])
    k0, k_tc = sch.split(k, factors=[None, 16])
    sch.reorder(i, j, k0, i_tc, j_tc, k_tc)
    inner = sch.blockize(i_tc)
    outer = sch.get_block("C_o")
    accum = sch.cache_write(outer, 0, "wmma.accumulator")
    sch.reverse_compute_at(accum, j)
    frag_a = sch.cache_read(outer, 0, "wmma.matrix_a")
    frag_b = sch.cache_read(outer, 1, "wmma.matrix_b")
    sch.compute_at(frag_a, k0)
    sch.compute_at(frag_b, k0)
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.y")
    sch.decompose_reduction(outer, k0)
    del inner


text_only(
    "assert_frame",
    """
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    with T.Assert(n >= 1, "n must be positive"):
        A[0] = T.float32(1)
    for i in range(n):
        A[i] = A[i] + 1.0
""",
    run=True,
)
