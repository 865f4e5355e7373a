"""The dialect: what each construct means."""

from __future__ import annotations

import linecache
import textwrap
from typing import Annotated

import pytest

import tir
from tir import Buffer, IRModule, ParseError, PrimFunc, TirError, Var, WellFormedError
from tir import expr as E
from tir import stmt as S
from tir.script import ir as I
from tir.script import parse
from tir.script import tir as T
from tir.visit import walk

SIZE = 16


def found(root, kind):
    return [n for n in walk(root) if isinstance(n, kind)]


def body_of(text: str, params: str = 'A: T.Buffer((16, 16), "float32"), n: T.int32', **extra):
    """The body of a prim_func holding ``text``."""
    lines = textwrap.indent(textwrap.dedent(text), "    ")
    return parse(f"@T.prim_func\ndef main({params}):\n{lines}", extra).body


def expr_of(text: str, params: str = 'A: T.Buffer((16, 16), "float32"), n: T.int32, x: T.float32, p: T.bool', **extra):
    """The expression ``text`` as the parser builds it."""
    return body_of(f"T.evaluate({text})", params, **extra).value


def test_matmul_in_a_file():
    @T.prim_func
    def matmul(
        A: T.Buffer((SIZE, SIZE), "float32"), B: T.Buffer((SIZE, SIZE), "float32"), C: T.Buffer((SIZE, SIZE), "float32")
    ):
        for i, j, k in T.grid(SIZE, SIZE, SIZE):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += A[vi, vk] * B[vk, vj]

    assert isinstance(matmul, PrimFunc) and matmul.name == "matmul"
    assert matmul.root is not None and matmul.root.name == "root"
    block = found(matmul, S.Block)[1]
    assert [v.iter_type for v in block.iter_vars] == ["spatial", "spatial", "reduce"]
    assert [r.buffer.name for r in block.reads] == ["A", "B"] and [r.buffer.name for r in block.writes] == ["C"]
    assert isinstance(block.init, S.BufferStore)
    store = found(block.body, S.BufferStore)[0]
    assert store.span.filename == __file__ and "C[vi, vj] +=" in linecache.getline(__file__, store.span.line)


def test_handles_match_buffer_and_symbolic_shapes():
    @T.prim_func
    def f(a: T.handle, b: T.handle, n: T.int32):
        T.func_attr({"global_symbol": "renamed", "tir.noalias": True})
        m = T.int64(is_size_var=True)
        A = T.match_buffer(a, (m, n), "float16", strides=[n, 1], elem_offset=0, align=128, offset_factor=1)
        B = T.match_buffer(b, (m,), axis_separators=[], scope="global")
        for i in range(m):
            B[i] = T.Cast("float32", A[i, 0])

    a, b, n = f.params
    A, B = f.buffer_map[a], f.buffer_map[b]
    assert f.name == "renamed" and A.shape[1] is n and A.shape[0] is B.shape[0] and A.shape[0].dtype == "int64"
    assert A.data_alignment == 128 and A.strides[0] is n and A.dtype == "float16" and A.name == "A"
    assert found(f, S.For)[0].loop_var.dtype == "int64"


def test_defaults_that_are_written_out_are_defaults():
    text = """
@T.prim_func
def f(a: T.handle):
    A = T.match_buffer(a, (8,), "float32"OPTIONS)
    B = T.alloc_buffer((8,), "float32"OPTIONS)
    B[0] = A[0]
"""
    plain, written = (
        parse(text.replace("OPTIONS", options)) for options in ("", ", elem_offset=0, align=64, offset_factor=1")
    )
    assert tir.structural_equal(plain, written)
    assert not tir.structural_equal(
        plain, parse(text.replace("OPTIONS", ", elem_offset=0, align=128, offset_factor=1"))
    )


@pytest.mark.parametrize("choice", ["T.Select(n < 4, 1, 2)", "T.if_then_else(n < 4, 1, T.Select(n < 2, 2, 3))"])
def test_a_choice_of_literals_takes_the_type_of_the_buffer(choice):
    (store,) = found(body_of(f"A[0, 0] = {choice}"), S.BufferStore)
    assert store.value.dtype == "float32" and not any(isinstance(n, tir.Cast) for n in walk(store.value))


@pytest.mark.parametrize(
    ("dtype", "value", "stored"),
    [
        ("float32", "i", 'T.Cast("float32", i)'),
        ("float32", "T.Select(i < 2, i, 7)", 'T.Cast("float32", T.Select(i < 2, i, 7))'),
        ("float16", "B[i]", 'T.Cast("float16", B[i])'),
        ("float64", "h", 'T.Cast("float64", h)'),
        ("int64", "i * 2", 'T.Cast("int64", i * 2)'),
        ("int8", "i < 2", 'T.Cast("int8", i < 2)'),
        ("uint32", "i", 'T.Cast("uint32", i)'),
    ],
)
def test_a_store_converts_what_operators_convert(dtype, value, stored):
    """As ``A[i] + i`` is a sum of floats, ``A[i] = i`` stores one."""
    text = f"""
@T.prim_func
def f(A: T.Buffer((8,), "{dtype}"), B: T.Buffer((8,), "int8"), h: T.float16):
    for i in range(8):
        A[i] = {value}
"""
    (store,) = found(parse(text).body, S.BufferStore)
    assert repr(store.value) == stored
    lanes = text.replace("A[i] =", "A[0:8] =")
    (store,) = found(parse(lanes).body, S.BufferStore)
    assert store.value.dtype == f"{dtype}x8"


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int32", "x"), ("float16", "x"), ("int32", "T.Cast('int64', n)"), ("bool", "n"), ("int8", "n"), ("int32", "u")],
)
def test_a_store_that_would_lose_what_operators_keep_is_refused(dtype, value):
    with pytest.raises(ParseError, match=rf"holds {dtype}, but the value stored is .*\n(.*\n)*.*convert it: T.Cast"):
        parse(f"""
@T.prim_func
def f(A: T.Buffer((8,), "{dtype}"), x: T.float32, n: T.int32, u: T.uint32):
    A[0] = {value}
""")


def test_loop_kinds_bounds_and_annotations():
    body = body_of("""
        for i in T.serial(2, n + 2, annotations={"pragma": 1}):
            for j in T.parallel(4):
                for k in T.vectorized(8):
                    for u in T.unroll(2):
                        for t in T.thread_binding(0, 32, thread="threadIdx.x"):
                            A[j, k] = 0.0
    """)
    loops = found(body, S.For)
    assert [x.kind for x in loops] == ["serial", "parallel", "vectorized", "unrolled", "thread_binding"]
    assert loops[4].thread == "threadIdx.x" and loops[0].annotations == {"pragma": 1}
    assert loops[0].min.value == 2 and isinstance(loops[0].extent, Var)


def test_starred_and_single_loop_names():
    body = body_of("""
        for *outer, k in T.grid(2, 3, 4):
            A[outer[0], outer[1]] = T.Cast("float32", k)
        for ij in T.grid(2, 2):
            A[ij[0], ij[1]] = 1.0
    """)
    assert [x.loop_var.name for x in found(body, S.For)] == ["outer_0", "outer_1", "k", "ij_0", "ij_1"]


def test_axis_forms_where_and_attributes():
    body = body_of("""
        for i, j in T.grid(4, 5):
            with T.block("b"):
                vi = T.axis.spatial(16, i * 5 + j)
                vj = T.axis.reduce((2, 10), j + 2)
                vs = T.axis.scan(4, i)
                vo = T.axis.opaque(4, i)
                T.where(i * 5 + j < 16)
                T.reads(A[vi, 0:4], A[0, 0])
                T.writes([A[vi, vj]])
                T.block_attr({"k": [1, {"x": "y"}]})
                A[vi, vj] = A[vs, vo]
    """)
    realize = found(body, S.BlockRealize)[1]
    block = realize.block
    assert [v.iter_type for v in block.iter_vars] == ["spatial", "reduce", "scan", "opaque"]
    assert block.iter_vars[1].dom.min.value == 2 and block.iter_vars[1].dom.extent.value == 8
    assert isinstance(realize.predicate, E.LT) and block.annotations["k"] == (1, {"x": "y"})
    assert len(block.reads) == 2 and block.reads[0].region[1].extent.value == 4 and len(block.writes) == 1


def test_empty_regions_and_root_block():
    body = body_of("""
        with T.block("root"):
            B = T.alloc_buffer((4,), "float32", scope="local")
            with T.block("x"):
                T.reads()
                T.writes([])
                T.evaluate(0)
            B[0] = 1.0
    """)
    assert body.block.name == "root" and body.block.reads == () and body.block.writes == ()
    assert body.block.alloc_buffers[0].scope == "local"
    assert found(body, S.Block)[1].reads == ()


def test_root_allocations_and_unique_names():
    body = body_of("""
        B = T.alloc_buffer((16,), "float32")
        for i in range(16):
            with T.block("x"):
                vi = T.axis.S(16, i)
                B[vi] = A[vi, 0]
        for i in range(16):
            with T.block("x"):
                vi = T.axis.S(16, i)
                A[vi, 0] = B[vi]
    """)
    assert [b.name for b in found(body, S.Block)] == ["root", "x", "x_1"]
    assert [b.name for b in body.block.alloc_buffers] == ["B"]


def test_sub_region_match_buffer():
    body = body_of("""
        for i in range(4):
            with T.block("x"):
                vi = T.axis.S(4, i)
                s0 = T.int32()
                P = T.match_buffer(A[vi * 4 : vi * 4 + 4, 0:4], (4, 4), "float32", strides=[s0, 1], offset_factor=1)
                P[0, 0] = 1.0
    """)
    match = found(body, S.Block)[1].match_buffers[0]
    assert match.source.region[0].extent.value == 4 and match.buffer.strides[0].name == "s0"


def test_lets_and_python_values():
    body = body_of("""
        y: T.int32 = n + 1
        z = y * 2
        k = 4
        data = A.data
        m = T.meta_var(n + 7)
        A[z, k] = T.Cast("float32", m)
        with T.LetStmt(n * 3) as w:
            A[w, 0] = 0.0
        v = T.int32()
        with T.let(v, n):
            T.evaluate(v)
    """)
    assert [x.var.name for x in found(body, S.LetStmt)] == ["y", "z", "w", "v"]
    assert found(body, S.BufferStore)[0].indices[1].value == 4


def test_vector_stores_and_loads():
    body = body_of("""
        A[0, 0:4] = T.broadcast(T.float32(1), 4)
        A[0, n : n + 4] = A[1, n : n + 4] * 2.0
        A[0, T.ramp(0, 2, 4)] = T.Broadcast(T.float32(0), 4)
        A[0, 0:8:2] = 1.0
        A[1, 0:4] = A[0, 0]
    """)
    stores = found(body, S.BufferStore)
    assert all(isinstance(s.indices[1], E.Ramp) and s.value.dtype == "float32x4" for s in stores)
    assert stores[3].indices[1].stride.value == 2


def test_lowered_scopes():
    body = body_of("""
        buf = T.allocate([64], "float32", "shared")
        B = T.decl_buffer((8, 8), "float32", data=buf, scope="shared")
        c = T.allocate_const([1, 2, 3], "int32", [3])
        tx = T.env_thread("threadIdx.x")
        T.launch_thread(tx, 32)
        with T.launch_thread("blockIdx.x", n) as bx:
            with T.attr(bx, "pragma_scope", "s"):
                B[tx // 8, tx % 8] = A[bx, 0]
        T.attr(0, "key", 1)
        with T.allocate((4,), "float32") as q:
            q[tx] = 0.0
        with T.decl_buffer((4,), "int32") as W:
            W[0] = 1
        T.tvm_storage_sync("shared")
    """)
    attrs = found(body, S.AttrStmt)
    assert [a.attr_key for a in attrs] == ["thread_extent", "thread_extent", "pragma_scope", "key"]
    assert attrs[0].node.thread_tag == "threadIdx.x" and attrs[0].node.var.name == "tx"
    assert found(body, S.Allocate)[0].buffer_var.scope == "shared" and len(found(body, S.Allocate)) == 3
    assert found(body, S.AllocateConst)[0].data.tolist() == [1, 2, 3]
    assert found(body, S.Evaluate)[0].value.op == "tvm_storage_sync"


def test_realize_assert_while_assume_return():
    body = body_of("""
        B = T.Buffer((16,), "float32")
        with T.realize(B[0:8]):
            B[0] = 1.0
        assert n > 0, "positive"
        with T.Assert(n < 9, "small"):
            T.evaluate(n)
        while n > 0 and A[0, 0] < 1.0:
            A[0, 0] += 1.0
        T.assume(n > 2)
        pass
        return n
    """)
    kinds = [type(s).__name__ for s in body.stmts]
    assert kinds == ["BufferRealize", "AssertStmt", "AssertStmt", "Evaluate", "While", "Evaluate", "Evaluate"]
    assert body.stmts[1].message.value == "positive" and body.stmts[-1].value.op == "ret"


def test_if_elif_else_and_python_conditions():
    body = body_of(
        """
        if n > 1:
            A[0, 0] = 1.0
        elif n > 0:
            A[0, 0] = 2.0
        else:
            A[0, 0] = 3.0
        if FLAG:
            A[1, 1] = 4.0
        else:
            A[1, 1] = 5.0
    """,
        FLAG=False,
    )
    assert len(found(body, S.IfThenElse)) == 2
    assert body.stmts[1].value.value == 5.0


@pytest.mark.parametrize(
    "text, kind, dtype",
    [
        ("n // 2", E.FloorDiv, "int32"),
        ("n % 2", E.FloorMod, "int32"),
        ("x / 2.0", E.Div, "float32"),
        ("0 <= n < 4", E.And, "bool"),
        ("n > 1 and not p", E.And, "bool"),
        ("p or n == 1", E.Or, "bool"),
        ("not p", E.Not, "bool"),
        ("x if n > 0 else 0.0", E.Call, "float32"),
        ("T.Select(p, n, 0)", E.Select, "int32"),
        ("T.if_then_else(p, x, 1)", E.Call, "float32"),
        ("T.truncdiv(n, 3)", E.Div, "int32"),
        ("T.floormod(n, 3)", E.FloorMod, "int32"),
        ("T.Add(T.int32(1), 0)", E.Add, "int32"),
        ("T.Div(n, 2)", E.Div, "int32"),
        ("T.min(n, 3)", E.Min, "int32"),
        ("max(n, 3)", E.Max, "int32"),
        ("T.Cast('float16', x)", E.Cast, "float16"),
        ("T.cast(x, 'int8')", E.Cast, "int8"),
        ("T.int64(n)", E.Cast, "int64"),
        ("T.float32('inf')", E.FloatImm, "float32"),
        ("T.float64('nan')", E.FloatImm, "float64"),
        ("T.int64(4)", E.IntImm, "int64"),
        ("T.bool(True)", E.IntImm, "bool"),
        ("T.float32x4(1.0)", E.Broadcast, "float32x4"),
        ("T.infinity('float16')", E.FloatImm, "float16"),
        ("T.min_value('int8')", E.IntImm, "int8"),
        ("T.exp(x)", E.Call, "float32"),
        ("T.Ramp(n, 1, 4)", E.Ramp, "int32x4"),
        ("T.Shuffle([T.Ramp(n, 1, 4)], [0, 1])", E.Shuffle, "int32x2"),
        ("T.Let(v + 1, where={v: n})", E.Let, "int32"),
        ("T.reinterpret('int32', x)", E.Call, "int32"),
        ("T.call_extern('int32', 'f', n, A.data)", E.Call, "int32"),
        ("T.call_extern('f', n, dtype='float32')", E.Call, "float32"),
        ("T.call_packed('f', n)", E.Call, "int32"),
        ("T.call_intrin('float32', 'tir.exp', x)", E.Call, "float32"),
        ("T.call_llvm_pure_intrin('float32', 'llvm.fabs.f32', x)", E.Call, "float32"),
        ("T.address_of(A[1, 2])", E.Call, "handle"),
        ("A.access_ptr('rw', offset=4)", E.Call, "handle"),
        ("T.tvm_access_ptr(T.type_annotation('float32'), A.data, 0, 16, 1)", E.Call, "handle"),
        ("A.vload([0, 0], 'float32x4')", E.BufferLoad, "float32x4"),
        ("A.shape[0] + n", E.Add, "int32"),
        ("n << 2", E.Call, "int32"),
        ("n & 1", E.Call, "int32"),
        ("~n", E.Call, "int32"),
        ("T.shift_right(n, 1)", E.Call, "int32"),
        ("T.popcount(n)", E.Call, "int32"),
        ("T.tvm_storage_sync('float32', 'm8n8k4', n)", E.Call, "float32"),
        ("T.ceildiv(n, 4)", E.FloorDiv, "int32"),
        ("sum([n, 1, 2])", E.Add, "int32"),
        ("[n + i for i in range(3)][2]", E.Add, "int32"),
        ("(lambda a, b: a if a > b else b)(n, 1)", E.Call, "int32"),
        ("-x", E.Mul, "float32"),
        ("abs(x)", E.Call, "float32"),
        ("round(x)", E.Cast, "int32"),
        ("round(n)", E.Var, "int32"),
        ("divmod(n, 3)[1]", E.FloorMod, "int32"),
    ],
)
def test_expressions(text, kind, dtype):
    e = expr_of(text, v=Var("v", "int32"))
    assert type(e) is kind and e.dtype == dtype


def test_numbered_intrinsics_of_older_scripts():
    old = "T.call_llvm_pure_intrin(T.llvm_lookup_intrinsic_id('llvm.fabs'), T.uint32(1), x, dtype='float32')"
    assert [repr(a) for a in expr_of(old).args] == [repr(E.StringImm("llvm.fabs")), "x"]


def test_constants_keep_their_type():
    assert E.const(0, "int8").dtype == expr_of("T.int8(0)").dtype == "int8"
    assert str(expr_of("T.float32(-0.0)").value) == "-0.0"


def test_reducer():
    body = body_of("""
        reducer = T.comm_reducer(lambda a, b: a + b, [T.float32(0)])
        with T.attr(reducer, "reduce_scope", T.reinterpret("handle", T.uint64(0))):
            T.evaluate(0)
    """)
    reducer = body.node
    assert [v.name for v in reducer.lhs + reducer.rhs] == ["a", "b"] and isinstance(reducer.result[0], E.Add)


def test_several_styles_of_parameters():
    @T.prim_func(private=True, check_well_formed=False)
    def f(A: T.Buffer[(8,), "float32"], p: T.handle("int8", "shared"), s: T.float16, B: T.Buffer((n, 4))) -> T.int32:  # noqa: F821, UP037, E501
        T.evaluate(s)

    g = parse("""
        @T.prim_func
        def g(A: T.Buffer((n, "m"), "int8"), B: T.Buffer(("m",), "int8"), n: T.int64):
            T.evaluate(0)
    """)
    A, B = g.buffers()
    assert A.shape[0] is g.params[2] and A.shape[1] is B.shape[0]
    assert [p.name for p in f.params] == ["A_handle", "p", "s", "B_handle"]
    assert f.params[1].scope == "shared" and f.ret_type == "int32" and "global_symbol" not in f.attrs


n = 12  # used in an annotation above


def test_closures_and_meta_programming():
    def make(size, op, dtype):
        rows = size * 2

        @T.prim_func
        def f(A: T.Buffer((rows, size), dtype)):
            for i, j in T.grid(rows, size):
                A[i, j] = op(A[i, j], T.Cast(dtype, 2))

        return f

    f = make(4, lambda a, b: a * b, "float16")
    A = f.buffers()[0]
    assert [s.value for s in A.shape] == [8, 4] and A.dtype == "float16"
    assert isinstance(found(f, S.BufferStore)[0].value, E.Mul)


def test_macros():
    scale = 3.0

    @T.macro
    def put(buffer, i, value):
        t = value * scale
        buffer[i] = t

    @T.macro(hygienic=False)
    def put_here(i):
        A[i] = z  # noqa: F821

    @T.macro
    def twice(x):
        return x * 2

    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), x: T.float32):
        for i in range(8):
            z = x + 1.0
            put(A, i, x)
            put_here(i)
            A[twice(i)] = x

    stores = found(f, S.BufferStore)
    assert len(stores) == 3 and [v.var.name for v in found(f, S.LetStmt)] == ["z", "t"]
    with pytest.raises(TirError, match="only inside a function decorated with @T.prim_func"):
        put(1, 2, 3)


def test_modules():
    @I.ir_module
    class Module:
        I.module_attrs({"version": 1})

        @T.prim_func
        def main(A: T.Buffer((SIZE,), "float32")):
            T.evaluate(Module.helper(A.data, 1))

        @T.prim_func(private=True)
        def helper(a: T.handle, k: T.int32) -> T.int32:
            return k + 1

    assert isinstance(Module, IRModule) and list(Module) == ["main", "helper"] and Module.attrs == {"version": 1}
    call = found(Module["main"], E.Call)[0]
    assert call.op == "call_global" and call.args[0].value == "helper" and call.dtype == "int32"


def test_prim_funcs_in_a_plain_class():
    class Holder:
        width = 4

        @T.prim_func
        def f(A: T.Buffer((width,), "float32")):
            A[0] = 1.0

    assert isinstance(Holder.f, PrimFunc)


def test_text_with_imports_constants_helpers_and_module():
    mod = parse("""
        # from tvm.script import ir as I
        from tvm.script import ir as I
        from tvm.script import tir as T
        import tvm
        N = 4

        def double(x):
            return x * 2

        @T.macro
        def put(A, i):
            A[i] = double(A[i])

        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((N,), "float32")):
                for i in range(N):
                    put(A, i)
    """)
    assert isinstance(mod, IRModule) and len(found(mod["main"], S.BufferStore)) == 1


def test_sibling_scopes_reuse_names():
    body = body_of("""
        for i in range(4):
            t = n + i
            A[t, 0] = 0.0
        for i in range(4):
            t = n - i
            A[t, 0] = 0.0
    """)
    assert len({x.loop_var for x in found(body, S.For)}) == 2 and len({x.var for x in found(body, S.LetStmt)}) == 2


def test_executed_text_that_is_nowhere_to_be_found_needs_registered_source():
    text = ['@T.prim_func\ndef f(A: T.Buffer((four,), "float32")):\n    A[0] = 1.0\n'.replace("four", "4")]
    with pytest.raises(ParseError, match=r"tir\.script\.parse\(text\)"):
        exec(compile(text[0], "<nowhere>", "exec"), {"T": T})
    linecache.cache["<cell 1>"] = (len(text[0]), None, text[0].splitlines(True), "<cell 1>")
    names = {"T": T}
    exec(compile(text[0], "<cell 1>", "exec"), names)
    assert names["f"].name == "f"


def test_constructs_outside_a_prim_func():
    with pytest.raises(TirError, match=r"T\.grid is part of the kernel dialect"):
        for _ in T.grid(4):
            pass
    with pytest.raises(TirError, match=r"T\.block is part of the kernel dialect"), T.block("x"):
        pass


def test_long_sums_do_not_exhaust_the_stack():
    def text(terms: int) -> str:
        long = "A[0] = " + " + ".join(["A[0]"] * terms)
        return f'@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n    {long}'

    func = parse(text(1000))
    assert tir.structural_equal(parse(func.script()), func)
    try:
        parse(text(50_000))  # Python 3.10 takes it
    except ParseError as error:
        assert "nested too deeply" in str(error)


def test_many_lets_one_in_the_other():
    lets = "\n".join(
        f"    x{i}: T.let[T.float32] = {'A[0]' if i == 0 else f'x{i - 1} + A[{i % 4}]'}" for i in range(600)
    )
    func = parse(f'@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n{lets}\n    A[0] = x599')
    assert tir.structural_equal(parse(func.script()), func)


def test_ill_formed_programs_are_refused_unless_asked():
    text = '@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n    A[free] = 1.0'
    with pytest.raises(WellFormedError):
        parse(text, {"free": Var("free", "int32")})
    assert parse(text.replace("func", "func(check_well_formed=False)", 1), {"free": Var("free", "int32")})


def test_buffer_attributes():
    assert expr_of("A.strides[0]").value == 16 and expr_of("A.elem_offset").value == 0
    assert isinstance(body_of("assert A.dtype == 'float32' and A.scope() == 'global'"), S.AssertStmt)
    assert isinstance(body_of("A.vstore([0, 0], T.Broadcast(T.float32(1), 4))").indices[1], E.Ramp)
    assert isinstance(body_of("B = T.Buffer((4,), data=A.data)\nB[0] = 1.0").buffer, Buffer)


@pytest.mark.parametrize("declared", [(), ("reads",), ("writes",), ("reads", "writes")])
@pytest.mark.parametrize("inner", ["", "T.where(i < 15)\n"])
def test_declared_regions_are_kept_and_the_others_inferred(declared, inner):
    lines = "".join(f"T.{side}(A[0:16, vi])\n" for side in declared)
    text = f"for i in range(16):\n    with T.block('b'):\n        vi = T.axis.spatial(16, i)\n{textwrap.indent(lines + inner, ' ' * 8)}"
    (block,) = [b for b in found(body_of(f"{text}        A[vi, 0] = A[vi, 1] + 1.0\n"), S.Block) if b.name == "b"]
    for side, inferred in (("reads", "A[vi, 1]"), ("writes", "A[vi, 0]")):
        assert [str(region) for region in getattr(block, side)] == ["A[0:16, vi]" if side in declared else inferred]


@pytest.mark.parametrize("names, kinds, loops", [("a, b", "S", "i, j"), ("a, b", "SSR", "i, j"), ("a, b", "SS", "i"), ("a", "SS", "i, j"), ("a, b, c", "SS", "i, j")])  # fmt: skip
def test_names_kinds_and_loops_of_a_remap_agree(names, kinds, loops):
    text = f'for i, j in T.grid(4, 4):\n    with T.block("b"):\n        {names} = T.axis.remap("{kinds}", [{loops}])\n        A[0, 0] = 1.0\n'
    with pytest.raises(
        ParseError, match=rf"has {len(kinds)} kinds .* and {len(loops.split(','))} loops .*the three must agree"
    ):
        body_of(text)


def test_an_annotated_type_is_the_call_that_it_says():
    @T.prim_func
    def said(A: Annotated[T.Buffer, ("n", 4), "float16"], n: T.int32) -> None:
        A[0, 0] = T.float16(1)

    @T.prim_func
    def called(A: T.Buffer(("n", 4), "float16"), n: T.int32) -> None:
        A[0, 0] = T.float16(1)

    tir.assert_structural_equal(said.with_attr("global_symbol", "f"), called.with_attr("global_symbol", "f"))
