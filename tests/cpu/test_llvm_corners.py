"""Corners of compiled code that a change could lose in silence; each was found by a mutant that no test killed."""

from __future__ import annotations

import ctypes
import gc
import re
import weakref

import numpy as np
import pytest

import tir
from codegen.build import compile_lowered
from codegen.llvm.compile import Loaded, Machine, llvm, machine, object_code
from codegen.llvm.scalar_replacement import promote_accumulators
from codegen.runtime.packed_functions import register_func
from tir import BuildError
from tir.buffer import decl_buffer
from tir.expr import EQ, BufferLoad, Call, FloorDiv, FloorMod, IntImm, Let, Ramp, Var
from tir.function import IRModule, PrimFunc
from tir.node import frozendict
from tir.script import parse
from tir.stmt import BufferStore, For, IfThenElse, seq
from tir.testing import assert_same_result
from tir.visit import rewrite, substitute


def test_more_memory_than_any_machine_addresses_is_refused():
    text = """
@T.prim_func
def f(A: T.Buffer((4,), "float32"), n: T.int64):
    memory = T.allocate([EXTENT], "float32", "global")
    B = T.decl_buffer((EXTENT,), "float32", data=memory)
    for i in range(4):
        B[i * n] = A[i]
    A[1] = B[n + 5]
"""
    with pytest.raises(BuildError, match="`memory` takes 1152921504606846976 bytes, more than any machine can address"):
        tir.build(parse(text.replace("EXTENT", f"T.int64({1 << 58})")))


def test_a_vector_of_indices_into_vectors_is_refused():
    from codegen.build import compile_lowered

    A, B = decl_buffer((8,), "float32x4", name="A"), decl_buffer((8,), "float32x4", name="B")
    at = (Ramp(IntImm(0), IntImm(1), 2),)
    handles = [b.data for b in (A, B)]
    func = PrimFunc(tuple(handles), BufferStore(B, BufferLoad(A, at), at), buffer_map=frozendict())
    with pytest.raises(BuildError, match="vector index into `[AB]`, whose elements are float32x4"):
        compile_lowered(IRModule.of(func))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_bits_are_counted(dtype):
    func = parse(
        f"""
@T.prim_func
def f(A: T.Buffer((5,), "{dtype}"), B: T.Buffer((5,), "{dtype}")):
    for i in range(5):
        B[i] = T.popcount(A[i])
"""
    )
    a = np.array([0, 1, 7, 64, 127], dtype)
    b = np.full(5, 99, dtype)
    tir.build(func)(a, b)
    assert b.tolist() == [0, 1, 3, 1, 7]


@pytest.mark.parametrize("extent", [0, 1, 3])
def test_a_first_iteration_is_peeled_where_there_is_one(extent):
    """The init of a reduction runs in the first iteration only."""
    func = parse(
        f"""
@T.prim_func
def f(A: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32")):
    for k in range({extent}):
        with T.block("C"):
            vk = T.axis.reduce({extent}, k)
            with T.init():
                C[0] = T.float32(0)
            C[0] += A[vk]
"""
    )
    a, c = np.arange(1, 5, dtype="float32"), np.full(1, 50, "float32")
    tir.build(func)(a, c)
    assert c[0] == (a[:extent].sum() if extent else 50)


def test_a_function_is_registered_by_a_decorator():
    seen = []

    @register_func("corners.note")
    def note(*args):
        seen.append(args)
        return 0

    tir.build(parse('@T.prim_func\ndef f(n: T.int32):\n    T.evaluate(T.call_packed("corners.note", n))\n'))(3)
    assert seen == [(3,)] and callable(note)


REVERSED = """
@T.prim_func
def {name}(A: T.Buffer((100000,), "float32")):
    B = T.alloc_buffer((100000,), "float32")
    C = T.alloc_buffer((100000,), "float32")
    for i in range(100000):
        with T.block("B"):
            vi = T.axis.spatial(100000, i)
            B[vi] = A[vi] * 2.0
    for i in range(100000):
        with T.block("C"):
            vi = T.axis.spatial(100000, i)
            C[vi] = B[99999 - vi] + 1.0
    for i in range(100000):
        with T.block("A"):
            vi = T.axis.spatial(100000, i)
            A[vi] = C[vi] - B[vi]
"""


def test_functions_of_a_module_share_the_memory_that_they_keep():
    functions = {
        n: parse(REVERSED.format(name=n, size=size, loop="serial")) for n, size in zip("fgh", (100000, 100000, 300000))
    }
    module = tir.build(tir.IRModule(functions))
    slots = re.findall(r"@(tir\.workspace\S*) = internal global ptr", module.source("llvm"))
    assert len(slots) == 2, "as many as a function holds at once"
    for name in "fghf":
        given = np.arange(100000, dtype="float32")
        array = given.copy()
        module[name](array)
        np.testing.assert_array_equal(array, given[::-1] * 2 + 1 - given * 2)


def test_a_parallel_body_shares_no_memory_with_the_function_round_it():
    text = """
@T.prim_func
def f(A: T.Buffer((4, 100000), "float32")):
    held = T.allocate((100000,), "float32", "global")
    B = T.decl_buffer((100000,), "float32", data=held)
    for i in range(100000):
        B[i] = T.Cast("float32", i)
    for p in T.parallel(4):
        own = T.allocate((100000,), "float32", "global")
        C = T.decl_buffer((100000,), "float32", data=own)
        for i in range(100000):
            C[i] = A[p, i] + B[i]
        for i in range(100000):
            A[p, i] = C[99999 - i]
"""
    module = tir.build(parse(text))
    assert len(re.findall(r"@tir\.workspace\S* = internal global ptr", module.source("llvm"))) == 2
    given = np.random.default_rng(0).standard_normal((4, 100000)).astype("float32")
    array = given.copy()
    module(array)
    np.testing.assert_array_equal(array, (given + np.arange(100000, dtype="float32"))[:, ::-1])


def test_a_loaded_file_frees_its_kept_memory(tmp_path, monkeypatch):
    freed = []
    monkeypatch.setattr(Loaded, "release_by", lambda self, name: freed.append((name, self.function(name))))
    text = """
@T.prim_func
def f(A: T.Buffer((100000,), "float32")):
    B = T.alloc_buffer((100000,), "float32")
    for i in range(100000):
        with T.block("B"):
            vi = T.axis.spatial(100000, i)
            B[vi] = A[vi] * 2.0
    for i in range(100000):
        with T.block("A"):
            vi = T.axis.spatial(100000, i)
            A[vi] = B[99999 - vi]
"""
    tir.build(parse(text)).save(tmp_path / "f.o")
    freed.clear()
    tir.load(tmp_path / "f.o")
    gc.collect()
    ((name, address),) = freed
    assert re.search("__tir_release$", name) and address


def test_linkers_are_there_as_long_as_code_that_they_linked():
    code = object_code("define i32 @more(i32 %x) {\n  %y = add i32 %x, 7\n  ret i32 %y\n}\n", machine())
    loaded = [Loaded(code) for _ in range(48)]
    linker = weakref.ref(loaded[16]._linker)  # neither of the first nor of the last, which other code may have
    functions = [ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(one.function("more")) for one in loaded]
    held = [one._holder for one in loaded[::5]]  # as finalizers hold it
    loaded.clear()
    assert linker() is None
    assert [f(3) for f in functions[::5]] == [10] * len(held)


def test_a_loop_that_never_runs_has_no_first_iteration():
    """As it comes from other passes than ours, which drop such a loop."""
    from codegen.build import compile_lowered

    B, k = decl_buffer((1,), "int32", name="B"), Var("k")
    for extent, expected in ((0, 7), (2, 1)):
        body = IfThenElse(EQ(k, IntImm(0)), BufferStore(B, IntImm(1), (IntImm(0),)), None)
        handle = Var("b", "handle")
        func = PrimFunc(
            (handle,), For(k, IntImm(0), IntImm(extent), "serial", body), buffer_map=frozendict({handle: B})
        )
        b = np.full(1, 7, "int32")
        compile_lowered(IRModule.of(func))(b)
        assert b[0] == expected


@pytest.mark.parametrize(
    ("cpu", "features", "bits"),
    [
        ("x86-64", None, 128),
        ("x86-64-v2", None, 128),
        ("haswell", None, 256),
        ("x86-64-v3", None, 256),
        ("znver3", None, 256),
        ("skylake", None, 256),
        ("skylake-avx512", None, 512),
        ("x86-64-v4", None, 512),
        ("znver4", None, 512),
        ("sapphirerapids", None, 512),
        ("x86-64", "+avx", 256),
        ("haswell", "+avx512f", 512),
        ("", "+avx", 256),
        ("", "+sse4.2", 128),
        ("host", "+avx,+avx512f", 512),
    ],
)
def test_the_widest_vectors_of_a_cpu(cpu, features, bits):
    if not llvm().get_process_triple().startswith("x86_64"):
        pytest.skip("names of x86 processors")
    assert Machine(cpu, features).width == bits


@pytest.mark.parametrize(("returns", "value"), [("float32", 2.75), ("int32", -3), ("float64", 0.1), ("int8", 100)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_the_result_of_a_call_in_another_type(returns, value, dtype):
    text = f"""
@I.ir_module
class Module:
    @T.prim_func
    def caller(B: T.Buffer((1,), "{dtype}")):
        B[0] = T.call_global("callee", dtype="{dtype}")

    @T.prim_func
    def callee() -> T.{returns}:
        T.ret(T.{returns}({value}))
"""
    b = np.zeros(1, dtype)
    tir.build(parse(text))["caller"](b)
    assert b[0] == np.array(value, returns).astype(dtype)


SUM = """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):
    B[0] = T.float32(0)
    for i in range(64):
        B[0] = B[0] + A[i]
    if A[1] != A[1]:
        B[0] = T.float32(7)
"""


def test_sums_keep_their_order_and_nan_its_meaning_unless_fast_math_is_asked():
    a, b = np.full(64, 1, "float32"), np.zeros(1, "float32")
    a[0] = 2.0**24  # to which each 1 is lost
    strict = tir.build(parse(SUM))
    strict(a, b)
    assert b[0] == 2.0**24
    a[1] = np.nan
    strict(a, b)
    assert b[0] == 7
    fast = tir.build(parse(SUM), tir.Target("llvm", fast_math=True))
    flags = [set(re.findall(r"\bf(?:add|cmp)\b \w+", m.get_source("ll"))) for m in (strict, fast)]
    assert not any("fast" in f for f in flags[0]) and "fadd fast" in flags[1]


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
def test_only_signed_arithmetic_of_indices_may_not_wrap(dtype):
    """The place n + n * 3 is computed as one that does not overflow; the value and an unsigned place wrap."""
    module = tir.build(
        parse(f"""
@T.prim_func
def f(A: T.Buffer((64,), "{dtype}"), n: T.{dtype}):
    A[n + n * n] = n + n * n
""")
    )
    sums = re.findall(r"= (?:add|mul) ((?:nsw )?)i(\d+) ", module.get_source("ll"))
    places = [nsw for nsw, bits in sums if bits == dtype[-2:] and nsw]
    assert len(places) == (0 if dtype == "uint32" else 2)
    assert ("", dtype[-2:]) in sums
    a = np.zeros(64, dtype)
    module(a, 3)
    assert a[12] == 12 and a.sum() == 12


def test_constants_of_bool():
    module = tir.build(
        parse("""
@T.prim_func
def f(A: T.Buffer((4,), "bool"), B: T.Buffer((4,), "bool")):
    A[0] = T.bool(True)
    A[1] = T.bool(False)
    for i in T.vectorized(2):
        A[i + 2] = T.bool(True)
    for i in range(4):
        B[i] = T.Select(A[i], T.bool(False), T.bool(True))
""")
    )
    a, b = np.array([False, True, False, False]), np.ones(4, bool)
    module(a, b)
    assert a.tolist() == [True, False, True, True] and b.tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("index", "kept"),
    [("0", True), ("n", True), ("n + 1", True), ("T.min(n, 3)", True), ("P[0]", False), ("k % 8", False)],
)
def test_which_accumulators_a_loop_keeps_in_registers(index, kept):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((64,), "float32"), P: T.Buffer((4,), "int32"), C: T.Buffer((8,), "float32"), n: T.int32):
    for k in range(64):
        C[{index}] = C[{index}] + A[k]
""")
    assert (promote_accumulators(func) is not func) == kept


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [("5", "5", True), ("n", "n", True), ("k", "k", False), ("5", "6", False), ("5", "n", False)],
)
def test_which_vectors_under_masks_a_loop_keeps_in_registers(first, second, kept):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((7,), "float32"), C: T.Buffer((6,), "float32"), n: T.int32):
    for k in range(7):
        if T.Ramp(0, 1, 8) < T.Broadcast({first}, 8):
            C[0:8] = C[0:8] + T.Broadcast(A[k], 8)
        if T.Ramp(0, 1, 8) < T.Broadcast({second}, 8):
            C[0:8] = C[0:8] * T.Broadcast(A[k], 8)
""")
    made = promote_accumulators(func)
    assert (made is not func) == kept
    a, c = np.arange(1, 8, dtype="float32"), np.ones(6, "float32")
    expected = c.copy()
    for k in range(7):
        count = {"n": 4, "k": k, "5": 5, "6": 6}
        expected[: count[first]] += a[k]
        expected[: count[second]] *= a[k]
    tir.build(func)(a, c, 4)
    np.testing.assert_allclose(c, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("first", "kept"),
    [
        ("C[n] = 0.0", True),
        ("B[n] = C[n]", True),
        ("C[0] = 0.0", False),
        ("if n < 3:\n        C[n] = 0.0", False),
    ],
)
def test_a_loop_keeps_what_a_condition_guards_if_it_was_accessed_before(first, kept):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
    {first}
    for k in range(64):
        if A[k] > 0.5:
            C[n] = C[n] + A[k]
""")
    assert (promote_accumulators(func) is not func) == kept
    assert_same_result(func, func)


def test_a_name_that_is_bound_again_is_another_place():
    """Copies of a statement may share the variables that they bind."""
    func = parse("""
@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((8,), "float32"), P: T.Buffer((2,), "int32")):
    x: T.int32 = P[0]
    C[x] = 0.0
    y: T.int32 = P[1]
    for k in range(64):
        if A[k] > 0.5:
            C[y] = C[y] + A[k]
""")
    x, rest = func.body, func.body.body
    first, y = rest.stmts
    shared = seq([x.replace(body=first), y.replace(var=x.var, body=substitute(y.body, {y.var: x.var}))])
    func = func.with_body(shared)
    assert promote_accumulators(func) is func


def test_a_vector_under_a_mask_that_is_stored_alone_is_not_held():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((7,), "float32"), C: T.Buffer((6,), "float32"), n: T.int32):
    for k in range(7):
        if T.Ramp(0, 1, 8) < T.Broadcast(n, 8):
            C[0:8] = T.Broadcast(A[k], 8)
""")
    assert promote_accumulators(func) is func


@pytest.mark.parametrize(("index", "held"), [("0", False), ("T.min(n, 3)", True)])
def test_a_local_array_is_held_only_where_llvm_does_not_split_it(index, held):
    func = tir.lower(
        parse(f"""
@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((1,), "float32"), n: T.int32):
    H = T.alloc_buffer((4,), "float32", scope="local")
    for i in T.unroll(4):
        H[i] = 0.0
    for k in range(64):
        H[{index}] = H[{index}] + A[k]
    C[0] = H[{index}]
""")
    )["main"]
    assert (promote_accumulators(func) is not func) == held


@pytest.mark.parametrize("kind", ["range", "T.vectorized"])
@pytest.mark.parametrize("factor", ["1395864320", "Y[i]"])
def test_fixed_point_products_of_vectors(kind, factor):
    func = parse(f"""
@T.prim_func
def f(X: T.Buffer((8,), "int32"), Y: T.Buffer((8,), "int32"), Z: T.Buffer((8,), "int32")):
    for i in {kind}(8):
        Z[i] = T.q_multiply_shift(X[i], {factor}, 31, -3, dtype="int32")
""")
    x = np.array([0, 1, -1, 1000, -1000, 123456789, -123456789, 2**31 - 1], "int32")
    y = np.arange(8, dtype="int32") * 123456789
    z = np.zeros(8, "int32")
    tir.build(func)(x, y, z)
    factors = y if factor == "Y[i]" else [1395864320] * 8
    assert z.tolist() == [(int(a) * int(b) + (1 << 33)) >> 34 for a, b in zip(x, factors)]


def test_a_fixed_point_product_of_a_vector_and_scalars():
    x, y = (decl_buffer((8,), "int32", name=n) for n in ("x", "y"))
    lanes = Ramp(IntImm(0), IntImm(1), 8)
    loaded = BufferLoad(x, (lanes,))
    product = Call("q_multiply_shift", (loaded, IntImm(1395864320), IntImm(31), IntImm(-3)), loaded.dtype)
    handles = [b.data for b in (x, y)]
    func = PrimFunc(tuple(handles), BufferStore(y, product, (lanes,)), buffer_map=frozendict(zip(handles, (x, y))))
    data, found = np.arange(-4, 4, dtype="int32") * 98765432, np.zeros(8, "int32")
    compile_lowered(IRModule.of(func))(data, found)
    assert found.tolist() == [(int(a) * 1395864320 + (1 << 33)) >> 34 for a in data]


@pytest.mark.parametrize("offset", [0, 8, 4, 1])  # of the array in elements: to 64, 32, 16 and 4 bytes
@pytest.mark.parametrize("pragma", ["pragma_nontemporal", "pragma_nontemporal_lines"])
@pytest.mark.parametrize("lanes", [2, 3, 4, 8, 16, 32])
def test_stores_around_the_cache_are_as_wide_as_the_vector_or_of_16_bytes(lanes, pragma, offset):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((96,), "int32"), B: T.Buffer((96,), "int32"), C: T.Buffer((96,), "int32")):
    with T.attr(0, "{pragma}", "B"):
        for i in range({96 // lanes}):
            B[i * {lanes}:i * {lanes} + {lanes}] = A[i * {lanes}:i * {lanes} + {lanes}]
    C[0:4] = A[0:4]
""")
    module = tir.build(func)
    size = lanes * 4
    text = module.source("llvm")
    widths = {size, 16} if pragma == "pragma_nontemporal" else {size} & {64}
    stores = re.findall(r"store <(\d+) x (i32|i64)> .*!nontemporal", text)
    found = [int(n) * (4 if kind == "i32" else 8) for n, kind in stores]
    assert list(dict.fromkeys(found)) == (sorted(widths, reverse=True) if size in (16, 32, 64) else [])
    ends = re.findall(r"!nontemporal.*\n(?!.* = getelementptr|.* = shufflevector)(.*)\n", text)
    assert len(ends) == len(set(found)) and all("br label %stored" in end for end in ends)
    assert text.index("fence seq_cst") < text.rindex("store <4 x i32>")
    memory = np.full(96 + 64, -1, "int32")
    start = -(memory.ctypes.data // 4) % 16 + offset
    a, b, c = np.arange(96, dtype="int32"), memory[start : start + 96], np.zeros(96, "int32")
    module(a, b, c)
    np.testing.assert_array_equal(b, a)
    assert (memory[:start] == -1).all() and (memory[start + 96 :] == -1).all()


@pytest.mark.parametrize(("value", "by"), [("A[i] - 8", 3), ("T.max(A[i], 0)", 3), ("A[i] - 8", -3)])
def test_what_an_expression_names_may_be_negative(value, by):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    for i in range(16):
        B[i] = {value}
        C[i] = {value}
""")

    def named(store):
        x = Var("x", "int32")
        divided = (FloorDiv if store.buffer.name == "B" else FloorMod)(x, IntImm(by))
        return store.replace(value=Let(x, store.value, divided))

    func = func.with_body(rewrite(func.body, lambda n: named(n) if isinstance(n, BufferStore) else None))
    a, quotients, rests = (np.arange(16, dtype="int32") for _ in range(3))
    tir.build(func)(a, quotients, rests)
    values = a - 8 if "-" in value else np.maximum(a, 0)
    assert ("udiv" in tir.build(func).source("llvm")) == ("max" in value)
    np.testing.assert_array_equal(quotients, values // by)
    np.testing.assert_array_equal(rests, values % by)


def test_names_that_are_not_ascii_compile():
    func = parse("""
@T.prim_func
def main(ä: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    for é in range(64):
        with T.block("B"):
            vé = T.axis.spatial(64, é)
            B[vé] = ä[vé] + 1
""")
    assert_same_result(func, func)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float32x4"])
@pytest.mark.parametrize("offset", ["0", "3", "n"])
def test_an_access_pointer_is_that_of_its_element(dtype, offset):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((8,), "{dtype}"), B: T.Buffer((8,), "{dtype}"), n: T.int32):
    T.evaluate(T.call_extern("handle", "memcpy", B.access_ptr("w", offset={offset}), A.access_ptr("r", offset={offset}), T.int64(1)))
""")
    shape = (8, 4) if "x" in dtype else (8,)
    a, b = np.full(shape, 77, dtype.partition("x")[0]), np.zeros(shape, dtype.partition("x")[0])
    a.view("uint8")[...] = 255
    tir.build(func)(a, b, 5)
    (at,) = np.flatnonzero(b.view("uint8").ravel())
    assert at == {"0": 0, "3": 3, "n": 5}[offset] * b.nbytes // 8


@pytest.mark.parametrize("rows", [4, 1 << 21])
def test_a_function_that_is_called_once_is_compiled_briefly(rows):
    sch = tir.Schedule(tir.library.rows.row_sum(rows, 1))
    sch.parallel(sch.get_loops(sch.get_child_blocks(sch.get_block("root"))[0])[0])
    for once in (False, True):
        module = tir.build(sch.func.with_attr("tir.once", True) if once else sch.func)
        text = module.get_source("ll")
        begun = [line for line in text.splitlines() if line.startswith("define") and "@tir." in line]
        assert len(begun) == 4  # of the loop, too
        assert all((" optsize " in line) == once for line in begun)
        assert text.startswith("; not optimized") == (once and rows == 4)
        a, b = np.arange(rows, dtype="float32").reshape(rows, 1), np.zeros(rows, "float32")
        module(a, b)
        np.testing.assert_array_equal(b, a[:, 0])


def test_long_loops_are_not_unrolled_by_llvm():
    for vectors in (4, 64):
        sch = tir.Schedule(tir.library.elementwise.scale_add(512 * vectors))
        (loop,) = sch.get_loops(sch.get_child_blocks(sch.get_block("root"))[0])
        _, several, lanes = sch.split(loop, [None, vectors, 8])
        sch.vectorize(lanes)
        sch.unroll(several)
        assert ("llvm.loop.unroll.disable" in tir.build(sch.func).get_source("ll")) == (vectors == 64)


def test_the_index_of_an_element_is_computed_again_where_its_let_has_another_value():
    a, b, c = (
        decl_buffer((size,), dtype, name)
        for size, dtype, name in ((1, "int32", "A"), (8, "float32", "B"), (2, "float32", "C"))
    )
    at = Var("at", "int32")
    picked = Let(at, BufferLoad(a, (IntImm(0),)), BufferLoad(b, (at * 2 + 1,)))  # one node, in two statements
    body = seq(
        [
            BufferStore(c, picked, (IntImm(0),)),
            BufferStore(a, IntImm(3), (IntImm(0),)),
            BufferStore(c, picked, (IntImm(1),)),
        ]
    )
    func = PrimFunc((a.data, b.data, c.data), body, buffer_map={x.data: x for x in (a, b, c)})
    made = np.zeros(2, "float32")
    compile_lowered(tir.IRModule.of(func))(np.zeros(1, "int32"), np.arange(8, dtype="float32"), made)
    assert made.tolist() == [1, 7]


def test_scalar_replacement_leaves_nothing_to_the_collector():
    func = tir.lower(tir.library.rows.row_sum(8, 8))["main"]
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        assert promote_accumulators(func) is not func
        gc.collect()
        left = [one for one in gc.garbage if type(one).__module__ == promote_accumulators.__module__]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        if enabled:
            gc.enable()
    assert not left


def test_a_call_without_the_sizes_that_an_array_has_names_them():
    module = parse("""
@I.ir_module
class Module:
    @T.prim_func
    def twice(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            A[i] = A[i] * T.float32(2)

    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        Module.twice(A.data)
""")
    with pytest.raises(
        BuildError, match="`twice` takes 2 arguments here, got 1: n would be read off an array, .* make it a parameter"
    ):
        tir.build(module, "llvm")


@pytest.mark.parametrize(
    ("args", "error"),
    [("7, 3", r"gives `7` as `A\w*`, which is a pointer"), ("A.data, A.data", "as `n`, which is a number")],
)
@pytest.mark.parametrize("target", ["llvm", "cuda-sim"])
def test_a_number_given_for_a_pointer_is_refused_before_it_is_followed(args, error, target):
    module = parse(f"""
@I.ir_module
class Module:
    @T.prim_func
    def set(A: T.Buffer((4,), "int32"), n: T.int32):
        A[0] = n

    @T.prim_func
    def main(A: T.Buffer((4,), "int32")):
        Module.set({args})
""")
    with pytest.raises(BuildError, match=error):
        tir.build(module, target)
