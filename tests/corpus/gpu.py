from tir.script import tir as T


@T.prim_func
def shared_tile(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    S = T.alloc_buffer((16,), "float32", scope="shared")
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("S"):
                vi = T.axis.spatial(16, tx)
                S[vi] = A[vi]
        for tx in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(16, tx)
                B[vi] = S[15 - vi]


@T.prim_func
def sync(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    bx = T.launch_thread("blockIdx.x", 1)
    S = T.allocate([16], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 16)
    s = T.decl_buffer((16,), "float32", data=S, scope="shared")
    s[tx] = A[tx]
    T.tvm_storage_sync("shared")
    B[tx] = s[15 - tx]


@T.prim_func
def warp_shuffle(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    tx = T.launch_thread("threadIdx.x", 16)
    x: T.float32 = A[tx]
    mask: T.uint32 = T.tvm_warp_activemask(dtype="uint32")
    B[tx] = x + T.tvm_warp_shuffle_down(mask, x, 8, 32, 32, dtype="float32")


@T.prim_func
def allreduce(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    r = T.allocate([1], "float32", "local")
    R = T.Buffer((1,), "float32", data=r, scope="local")
    tx = T.launch_thread("threadIdx.x", 16)
    with T.attr(
        T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))
    ):
        T.tvm_thread_allreduce(T.uint32(1), A[tx], True, R[0], tx)
    B[0] = R[0]


@T.prim_func
def access_ptr(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.call_extern(
        "int32",
        "copy",
        T.tvm_access_ptr(T.type_annotation("float32"), B.data, 0, 16, 2),
        T.tvm_access_ptr(T.type_annotation("float32"), A.data, 0, 16, 1),
    )


@T.prim_func
def async_copy(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    S = T.allocate([16], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 4)
    T.ptx_cp_async(S, tx * 4, A.data, tx * 4, 16, dtype="float32")
    T.ptx_commit_group()
    T.ptx_wait_group(0)
    s = T.decl_buffer((16,), "float32", data=S, scope="shared")
    B[tx] = s[tx]


@T.prim_func
def virtual_threads(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for vy in T.thread_binding(2, thread="vthread.y"):
        for ty in T.thread_binding(8, thread="threadIdx.y"):
            with T.block("B"):
                vi = T.axis.spatial(16, vy * 8 + ty)
                B[vi] = A[vi]


@T.prim_func
def wmma_fragments(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    F = T.alloc_buffer((16, 16), "float16", scope="wmma.matrix_a")
    with T.block("load"):
        T.reads(A[0:16])
        T.writes(F[0:16, 0:16])
        T.tvm_load_matrix_sync(F.data, 16, 16, 16, 0, A.data, 16, "row_major")


@T.prim_func
def copied_by_the_engine(a: T.handle, D: T.Buffer((64, 8), "float32")):
    T.func_attr({"tir.cluster": [2, 1, 1]})
    m = T.int32()
    A = T.match_buffer(a, (m, 64), "float16")
    S = T.allocate([4608], "float16", "shared.dyn")
    R = T.allocate([4], "float32", "local")
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 128)
    T.create_barriers(1)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 1)
        T.ptx_fence_barrier_init()
    T.ptx_cluster_arrive()
    T.ptx_cluster_wait()
    if tx == 0:
        T.ptx_arrive_barrier_expect_tx(0, 9216)
        T.ptx_cp_async_bulk_tensor(S, 0, T.tensor_map(A.data, "float16", 128, m, 64, 64, 1, 64, 64), 0, bx * 64, 0)
    T.ptx_wait_barrier(0, 1 - 1)
    T.ptx_wgmma(
        "m64n8k16", "fp16", "fp16", "fp32", R, 0, S, 0, 0, 1024, 128, 0, S, 4096, 0, 1024, 128, 0, bx > 0, dtype="void"
    )
    T.ptx_wgmma_commit_group()
    T.ptx_wgmma_wait_group(0)
    T.ptx_setmaxnreg(40, 0)
