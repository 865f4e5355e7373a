from tir.script import tir as T


@T.prim_func
def one_block(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi]


@T.prim_func
def inferred(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]


@T.prim_func
def where(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i0, i1 in T.grid(3, 6):
        with T.block("B"):
            vi = T.axis.spatial(16, i0 * 6 + i1)
            T.where(i0 * 6 + i1 < 16)
            B[vi] = A[vi]


@T.prim_func
def attrs(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.block_attr({"a": 1, "b": 1.5, "c": "text", "d": [1, 2, 3], "e": {"f": True}, "g": None, "h": -0.0})
            B[vi] = A[vi]


@T.prim_func
def opaque_block(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    with T.block("whole"):
        T.reads(A[0:16])
        T.writes(B[0:16])
        for i in range(16):
            B[i] = A[i]


@T.prim_func
def nested_blocks(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for io in range(4):
        with T.block("outer"):
            vo = T.axis.spatial(4, io)
            T.reads(A[vo * 4 : vo * 4 + 4])
            T.writes(B[vo * 4 : vo * 4 + 4])
            for ii in range(4):
                with T.block("inner"):
                    vi = T.axis.spatial(4, ii)
                    B[vo * 4 + vi] = A[vo * 4 + vi]


@T.prim_func
def no_accesses(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    with T.block("nothing"):
        T.reads()
        T.writes()
        T.evaluate(0)


@T.prim_func
def empty_writes(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("probe"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes()
            T.evaluate(A[vi])


@T.prim_func
def domain_from(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(2, 10):
        with T.block("B"):
            vi = T.axis.spatial((2, 10), i)
            B[vi] = A[vi - 2]


@T.prim_func
def remapped_from(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(2, 10):
        for j in range(1, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi - vj + 2]


@T.prim_func
def all_axis_kinds(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i, j, k, l in T.grid(2, 2, 2, 2):
        with T.block("B"):
            vi = T.axis.spatial(2, i)
            vj = T.axis.reduce(2, j)
            vk = T.axis.scan(2, k)
            vl = T.axis.opaque(2, l)
            T.reads(A[vi * 8 + vj * 4 + vk * 2 + vl])
            T.writes(B[vi])
            B[vi] = A[vi * 8 + vj * 4 + vk * 2 + vl]


@T.prim_func
def constant_binding(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    with T.block("B"):
        vi = T.axis.spatial(1, 0)
        vj = T.axis.spatial(16, 5)
        B[vi + vj] = A[vj]


@T.prim_func
def two_blocks(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    C = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi] * 2.0
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = C[vi] + 1.0


@T.prim_func
def same_block_names(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]


@T.prim_func
def odd_block_name(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block('update "B" \\ step.1'):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]


@T.prim_func
def explicit_root(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    with T.block("root"):
        T.reads()
        T.writes()
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi]


@T.prim_func
def root_with_attr(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    with T.block("root"):
        T.reads()
        T.writes()
        T.block_attr({"meta": 1})
        C = T.alloc_buffer((16,), "float32")
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = A[vi]
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = C[vi]


@T.prim_func
def alloc_without_blocks(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    C = T.alloc_buffer((4,), "float32", scope="local")
    for i in range(16):
        C[i % 4] = A[i]
        B[i] = C[i % 4]


@T.prim_func
def inner_alloc(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for io in range(4):
        with T.block("tile"):
            vo = T.axis.spatial(4, io)
            C = T.alloc_buffer((4,), "float32", scope="local")
            for ii in range(4):
                with T.block("load"):
                    vi = T.axis.spatial(4, ii)
                    C[vi] = A[vo * 4 + vi]
            for ii in range(4):
                with T.block("store"):
                    vi = T.axis.spatial(4, ii)
                    B[vo * 4 + vi] = C[vi]


@T.prim_func
def match_region(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for io in range(4):
        with T.block("tile"):
            vo = T.axis.spatial(4, io)
            T.reads(A[vo * 4 : vo * 4 + 4])
            T.writes(B[vo * 4 : vo * 4 + 4])
            a = T.match_buffer(A[vo * 4 : vo * 4 + 4], (4,), "float32", offset_factor=4)
            b = T.match_buffer(B[vo * 4 : vo * 4 + 4], (4,), "float32")
            for ii in range(4):
                b[ii] = a[ii]


@T.prim_func
def init_with_loop(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for io in range(4):
        with T.block("tile"):
            vo = T.axis.reduce(4, io)
            T.reads(B[0:4], A[vo * 4 : vo * 4 + 4])
            T.writes(B[0:4])
            with T.init():
                for ii in range(4):
                    B[ii] = 0.0
            for ii in range(4):
                B[ii] = B[ii] + A[vo * 4 + ii]


@T.prim_func
def block_then_statement(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]
    B[0] = 1.0


@T.prim_func
def region_forms(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    with T.block("regions"):
        T.reads(A[0:16], A[3], A[4:5])
        T.writes(B)
        B[0] = A[3]


@T.prim_func
def let_in_block(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            x: T.float32 = A[vi]
            y: T.float32 = x * x
            B[vi] = y + x
