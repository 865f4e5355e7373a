from tir.script import tir as T


@T.prim_func
def plain_range(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = A[i]


@T.prim_func
def range_from(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(2, 14):
        B[i] = A[i - 2]


@T.prim_func
def serial_from(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.serial(3, 9):
        B[i] = A[i]


@T.prim_func
def grid(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i, j, k in T.grid(2, 2, 4):
        B[i * 8 + j * 4 + k] = A[i * 8 + j * 4 + k]


@T.prim_func
def imperfect(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        B[i] = 0.0
        for j, k in T.grid(2, 2):
            B[i] = B[i] + A[i * 4 + j * 2 + k]
        B[i + 4] = B[i]


@T.prim_func
def parallel(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.parallel(16):
        B[i] = A[i]


@T.prim_func
def vectorized(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        for j in T.vectorized(4):
            B[i * 4 + j] = A[i * 4 + j]


@T.prim_func
def unrolled(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.unroll(4):
        for j in T.unroll(1, 3):
            B[i * 4 + j] = A[i * 4 + j]


@T.prim_func
def annotated(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.serial(16, annotations={"pragma_auto_unroll_max_step": 16, "pragma_unroll_explicit": True}):
        B[i] = A[i]


@T.prim_func
def annotated_parallel(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.parallel(4, annotations={"grain": 2, "note": 'by "rows"\n'}):
        for j in T.vectorized(4, annotations={"width": [4, 8], "shape": {"a": 1.5, "b": None}}):
            B[i * 4 + j] = A[i * 4 + j]


@T.prim_func
def triangular(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        for j in range(i, 4):
            for k in range(i + j, 8):
                B[k] = A[j]


@T.prim_func
def dependent_extent(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        for j in range(i + 1):
            for k in range(j * 2 + 1):
                B[k] = A[i]


@T.prim_func
def sibling_names(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = A[i]
    for i in range(16):
        B[i] = B[i] + A[i]
    for i, j in T.grid(4, 4):
        B[i] = A[j]


@T.prim_func
def shadowing(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        for i in range(4):
            B[i] = A[i]


@T.prim_func
def one_iteration(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(1):
        for j in range(0):
            B[j] = A[i]


@T.prim_func
def thread_loops(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for vx in T.thread_binding(2, thread="vthread.x"):
            for tx in T.thread_binding(4, thread="threadIdx.x"):
                B[bx * 8 + vx * 4 + tx] = A[bx * 8 + vx * 4 + tx]


@T.prim_func
def thread_from(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for tx in T.thread_binding(1, 5, thread="threadIdx.y", annotations={"k": 1}):
        B[tx] = A[tx]


@T.prim_func
def int64_loop(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(T.int64(16)):
        B[i] = A[i]
    for i in range(T.int64(2), T.int64(8)):
        B[i] = A[i]
    for i, j in T.grid(T.int64(4), T.int64(4)):
        B[i * 4 + j] = A[i * T.int64(4) + j + T.int64(0)]


@T.prim_func
def mixed_grid(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.parallel(2):
        for j, k in T.grid(2, 2):
            for l in T.vectorized(2):
                B[i * 8 + j * 4 + k * 2 + l] = A[i * 8 + j * 4 + k * 2 + l]


@T.prim_func
def min_extent(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for io in range(5):
        for ii in range(T.min(4, 16 - io * 4)):
            B[io * 4 + ii] = A[io * 4 + ii]
