from tir.script import tir as T


@T.prim_func
def if_only(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        if i < 8:
            B[i] = A[i]


@T.prim_func
def if_else(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        if i < 8:
            B[i] = A[i]
        else:
            B[i] = 0.0


@T.prim_func
def elif_chain(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        if i < 4:
            B[i] = 1.0
        elif i < 8:
            B[i] = 2.0
        elif i < 12:
            B[i] = 3.0
        else:
            B[i] = 4.0


@T.prim_func
def else_with_if_and_more(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        if i < 4:
            B[i] = 1.0
        else:
            if i < 8:
                B[i] = 2.0
            B[i] = B[i] + 1.0


@T.prim_func
def constant_condition(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    if T.bool(True):
        B[0] = 1.0
    if T.bool(False):
        B[0] = 2.0
    else:
        B[0] = 3.0


@T.prim_func
def while_loop(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    n = T.alloc_buffer((1,), "int32", scope="local")
    n[0] = 0
    while n[0] < 16:
        B[n[0]] = A[n[0]]
        n[0] = n[0] + 1


@T.prim_func
def asserts(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    assert A[0] < 1.0, 'A is "too" large\n'
    B[0] = A[0]
    assert A[0] == A[1] or A[2] > 0.0, "second"


@T.prim_func
def lets_in_sequence(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0] = 1.0
    x: T.float32 = A[0]
    B[1] = x
    y: T.float32 = x + A[1]
    B[2] = y


@T.prim_func
def scoped_let(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    with T.LetStmt(A[0] + 1.0) as x:
        B[0] = x
    B[1] = 2.0
    with T.LetStmt(T.float32(3)) as x:
        B[2] = x
    B[3] = 4.0


@T.prim_func
def let_types(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    i: T.int32 = 3
    j: T.int64 = T.int64(4)
    b: T.bool = A[0] < 1.0
    h: T.float16 = T.float16(1)
    if b:
        B[i] = T.Cast("float32", h) + T.Cast("float32", j)


@T.prim_func
def nothing(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.evaluate(0)


@T.prim_func
def evaluate(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.evaluate(A[0] + 1.0)
    T.evaluate(3)
    T.call_extern("int32", "work", A.data, B.data)
    T.call_packed("log.it", 1, "two", A.data)


@T.prim_func
def assume(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.assume(A[0] > 0.0)
    B[0] = T.log(A[0])


@T.prim_func
def early_scopes(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        if i % 2 == 0:
            for j in range(4):
                if A[j] > 0.0:
                    while B[j] < A[j]:
                        B[j] = B[j] + 1.0
