from tir.script import tir as T


@T.prim_func
def plain_types(A: T.Buffer((4,), "int8"), B: T.Buffer(4, "uint16"), C: T.Buffer((), "bool")):
    C[()] = T.Cast("int32", A[0]) < T.Cast("int32", B[0])


@T.prim_func
def strided(a: T.handle):
    s = T.int32()
    A = T.match_buffer(a, (8, 8), "float32", strides=[s, 1])
    A[0, 0] = 1.0


@T.prim_func
def offset(a: T.handle):
    o = T.int32()
    A = T.match_buffer(a, (8,), "float32", elem_offset=o, offset_factor=4, align=64)
    A[0] = 1.0


@T.prim_func
def scoped_parameters(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (8,), "float32", scope="shared")
    B = T.match_buffer(b, (8,), "float32", scope="global.texture")
    A[0] = B[0]


@T.prim_func
def separators(a: T.handle):
    A = T.match_buffer(a, (8, 8, 4), "float32", axis_separators=[1, 2])
    A[0, 0, 0] = 1.0


@T.prim_func
def auto_broadcast(a: T.handle):
    A = T.match_buffer(a, (8, 8), "float32", strides=[8, 1], buffer_type="auto")
    A[0, 0] = 1.0


@T.prim_func
def shared_pointer(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (8,), "float32")
    B = T.match_buffer(b, (2, 4), "float32", data=A.data)
    A[0] = B[0, 1]


@T.prim_func
def typed_pointer(p: T.handle("float32"), q: T.handle("int8", "shared"), r: T.handle):
    A = T.Buffer((4,), "float32", data=p)
    A[0] = 1.0


@T.prim_func
def mixed_order(x: T.float32, A: T.Buffer((4,), "float32"), n: T.int64, b: T.handle, flag: T.bool):
    B = T.match_buffer(b, (4,), "float32")
    if flag:
        A[n] = B[n] * x


@T.prim_func
def vector_elements(A: T.Buffer((4,), "float32x4"), B: T.Buffer((4,), "float32x4")):
    for i in range(4):
        A[i] = B[i] + T.Broadcast(T.float32(1), 4)


@T.prim_func
def alloc_options(A: T.Buffer((16,), "float32")):
    C = T.alloc_buffer((4, 4), "float32", strides=[8, 1], scope="local", align=32)
    D = T.alloc_buffer((4, 4), "int64", axis_separators=[1])
    for i, j in T.grid(4, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi * 4 + vj]
            D[vi, vj] = T.int64(0)


@T.prim_func
def rank_zero(A: T.Buffer((), "float32"), B: T.Buffer((), "float32")):
    with T.block("B"):
        T.reads(A[()])
        T.writes(B[()])
        B[()] = A[()] + 1.0


@T.prim_func
def same_names(A: T.Buffer((16,), "float32")):
    for i in range(4):
        with T.block("x"):
            vi = T.axis.spatial(4, i)
            tmp = T.alloc_buffer((4,), "float32")
            tmp[vi] = A[vi]
    for i in range(4):
        with T.block("y"):
            vi = T.axis.spatial(4, i)
            tmp = T.alloc_buffer((8,), "float32")
            tmp[vi] = A[vi]


@T.prim_func
def func_attrs(A: T.Buffer((16,), "float32")):
    T.func_attr(
        {
            "tir.noalias": True,
            "global_symbol": "other.name",
            "list": [1, 2.5, "x"],
            "weight": T.int64(3),
            "flag": T.bool(True),
        }
    )
    A[0] = 1.0


@T.prim_func
def symbolic_1d(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi]


@T.prim_func
def symbolic_tiled(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    for io, ii in T.grid((n + 31) // 32, 32):
        with T.block("A"):
            vi = T.axis.spatial(n, io * 32 + ii)
            T.where(io * 32 + ii < n)
            A[vi] = 1.0


@T.prim_func
def symbolic_expressions(a: T.handle, n: T.int32):
    m = T.int64()
    A = T.match_buffer(a, (n * 2, n + 1, m), "float32", strides=[n * 8, 4, 1])
    A[0, 0, 0] = T.Cast("float32", n)


@T.prim_func
def symbolic_int64(a: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, T.int64(4)), "float32")
    for i, j in T.grid(n, T.int64(4)):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = 0.0


@T.prim_func
def symbolic_region(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n, n), "float32")
    for i in range(n):
        with T.block("row"):
            vi = T.axis.spatial(n, i)
            T.reads()
            T.writes(A[vi, 0:n])
            for j in range(n):
                A[vi, j] = 0.0


@T.prim_func
def symbolic_alloc(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    C = T.alloc_buffer((n + 2,), "float32")
    for i in range(n + 2):
        with T.block("C"):
            vi = T.axis.spatial(n + 2, i)
            C[vi] = T.if_then_else(vi >= 1 and vi <= n, A[vi - 1], T.float32(0))


@T.prim_func
def symbolic_from(a: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    for i in range(m, n):
        A[i] = 1.0
    for i in range(m, m + 4):
        A[i] = 2.0
    for i in range(4, n + 4):
        with T.block("A"):
            vi = T.axis.spatial((4, n + 4), i)
            A[vi - 4] = 3.0
