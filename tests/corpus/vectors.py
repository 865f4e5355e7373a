from tir.script import tir as T


@T.prim_func
def vector_copy(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        B[i * 4 : i * 4 + 4] = A[i * 4 : i * 4 + 4]


@T.prim_func
def ramp(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[T.Ramp(0, 1, 4)] = A[T.Ramp(0, 2, 4)]
    B[0:16:4] = A[1:5]


@T.prim_func
def broadcast(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0:4] = T.Broadcast(A[0], 4) + A[4:8]
    B[4:8] = T.Broadcast(T.float32(0), 4)


@T.prim_func
def shuffle(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0] = T.Shuffle([A[0:4]], [2])
    B[0:4] = T.Shuffle([A[0:2], A[2:4]], [3, 2, 1, 0])


@T.prim_func
def vector_select(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0:4] = T.Select(A[0:4] < T.Broadcast(T.float32(0), 4), T.Broadcast(T.float32(0), 4), A[0:4])


@T.prim_func
def vector_math(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0:8] = T.exp(A[0:8]) * T.max(A[0:8], A[8:16])
    B[8:16] = T.Cast("float32x8", T.Cast("int32x8", A[0:8]))


@T.prim_func
def vector_let(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    v: T.float32x4 = A[0:4] * A[4:8]
    B[0:4] = v + v


@T.prim_func
def vector_gather(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0:4] = A[T.Ramp(0, 4, 4) + T.Broadcast(1, 4)]
