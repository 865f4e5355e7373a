from tir.script import tir as T


@T.prim_func
def allocate(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    p = T.allocate([16], "float32", "global")
    C = T.decl_buffer((16,), "float32", data=p)
    for i in range(16):
        C[i] = A[i]
    for i in range(16):
        B[i] = C[i]


@T.prim_func
def allocate_scoped(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    with T.allocate([16], "float32", "local") as p:
        C = T.decl_buffer((16,), "float32", data=p, scope="local")
        C[0] = A[0]
        B[0] = C[0]
    B[1] = 1.0


@T.prim_func
def allocate_view(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    p = T.allocate([16], "float32", "shared")
    C = T.Buffer((16,), "float32", data=p, scope="shared")
    D = T.Buffer((4, 4), "float32", data=p, scope="shared")
    C[0] = A[0]
    B[0] = D[0, 0]


@T.prim_func
def allocate_condition(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    p = T.allocate([16], "float32", "global", condition=A[0] > 0.0, annotations={"disable_lower": True})
    C = T.Buffer((16,), "float32", data=p)
    C[0] = A[0]
    B[0] = C[0]


@T.prim_func
def decl_alone(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    C = T.decl_buffer((16,), "float32")
    C[0] = A[0]
    B[0] = C[0]


@T.prim_func
def constant_table(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    p = T.allocate_const([0.5, 1.5, -2.0, 3.0], "float32", [4])
    C = T.decl_buffer((4,), "float32", data=p)
    for i in range(16):
        B[i] = A[i] * C[i % 4]


@T.prim_func
def constant_ints(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    p = T.allocate_const([3, 1, 2, 0], "int32", [2, 2])
    C = T.Buffer((2, 2), "int32", data=p)
    for i in range(4):
        B[i] = A[C[i // 2, i % 2]]


@T.prim_func
def attributes(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.attr("default", "device_id", 0)
    T.attr(A.data, "storage_alignment", 128)
    B[0] = A[0]


@T.prim_func
def attribute_scoped(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    with T.attr(0, "pragma_note", "text"):
        B[0] = A[0]
    B[1] = A[1]


@T.prim_func
def view_of_parameter(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    C = T.decl_buffer((4, 4), "float32", data=A.data)
    D = T.decl_buffer((16,), "int32", data=B.data)
    for i, j in T.grid(4, 4):
        D[i * 4 + j] = T.Cast("int32", C[i, j])


@T.prim_func
def strided_view(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    C = T.decl_buffer((4,), "float32", data=A.data, strides=[4], elem_offset=2)
    for i in range(4):
        B[i] = C[i]


@T.prim_func
def pointer_let(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    p: T.handle("float32") = T.address_of(A[4])
    C = T.decl_buffer((4,), "float32", data=p)
    B[0] = C[0]


@T.prim_func
def realize(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    C = T.Buffer((16,), "float32")
    with T.realize(C[0:16], "global"):
        C[0] = A[0]
        B[0] = C[0]


@T.prim_func
def launch(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    blockIdx_x = T.launch_thread("blockIdx.x", 4)
    threadIdx_x = T.launch_thread("threadIdx.x", 4)
    B[blockIdx_x * 4 + threadIdx_x] = A[blockIdx_x * 4 + threadIdx_x]


@T.prim_func
def launch_scoped(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    with T.launch_thread("blockIdx.x", 4) as bx:
        B[bx] = A[bx]
    with T.launch_thread("blockIdx.x", 8) as bx:
        B[bx] = A[bx] + 1.0


@T.prim_func
def env_threads(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    tx = T.env_thread("threadIdx.x")
    with T.launch_thread(tx, 16):
        B[tx] = A[tx]
    with T.launch_thread(tx, 16):
        B[tx] = B[tx] + 1.0


@T.prim_func
def return_code(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    if A[0] > 0.0:
        T.ret(1)
    T.ret(0)
