# ruff: noqa: E501
"""Kernels as CUDA C, and NVRTC's verdict on them: no device is needed."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

import tir
from codegen.cuda import nvrtc
from codegen.cuda.generator import RULES
from codegen.cuda.kernel import emit_kernel, source_of
from codegen.cuda.prelude import _parts, part_names, prelude
from codegen.cuda.report import Report, check_limits
from codegen.cuda.types import int_constant
from tests.gpu_examples import NAMES, architectures, load
from tests.interp.test_gpu_faults import GOOD, parse
from tir import BuildError, expr, op, stmt
from tir.visit import rewrite

ARCHS = ("sm_80", "sm_90a")


def compiled(text: str, *archs: str) -> str:
    func = parse(text)
    source = source_of([emit_kernel(func, func.name)])
    for arch in archs or ("sm_80",):
        made = nvrtc.compile_cubin(source, arch)
        assert made.cubin[:4] == b"\x7fELF" and made.resources[0].registers > 0
    return source


def classes(module: Any, base: type) -> set[type]:
    return {c for c in vars(module).values() if isinstance(c, type) and issubclass(c, base) and c is not base}


def test_every_expression_has_a_rule():
    abstract = {expr.BinaryOp, expr.Arithmetic, expr.Comparison}
    gone = {expr.Reduce}  # by lowering
    missing = [c.__name__ for c in classes(expr, expr.Expr) - abstract - gone if c not in RULES.exprs]
    assert not missing


def test_every_lowered_statement_has_a_rule():
    gone = {stmt.Block, stmt.BlockRealize, stmt.BufferRealize}
    missing = [c.__name__ for c in classes(stmt, stmt.Stmt) - gone if c not in RULES.stmts]
    assert not missing


def test_an_empty_log_is_read_into_bytes_of_its_own():
    nvrtc.compile_ptx('extern "C" __global__ void empty_log() {}', "sm_80")  # the log is one NUL
    assert [ord(bytes([n])) for n in range(256)] == list(range(256))  # CPython has one object for each byte


@pytest.mark.parametrize("text", list(GOOD), ids=lambda t: t.split("(")[0].split()[-1])
def test_kernels_compile(text: str):
    compiled(text, *ARCHS)


@pytest.mark.parametrize("name", NAMES)
def test_examples_compile_without_spills(name: str, monkeypatch):
    """For each architecture the same text, since neither lowering nor the generator asks for it."""
    monkeypatch.setenv("TIR_CACHE", "0")
    func, sch = load(name).full()
    first, *others = architectures(sch, ARCHS)
    mod = tir.build(sch.mod, target=f"cuda -arch={first}")
    report = mod.report()
    assert all(row.spills == 0 and row.stack == 0 for row in report), str(report)
    for arch in others:
        made = nvrtc.compile_cubin(mod.code, arch)
        assert not any(r.spill_stores or r.spill_loads or r.stack for r in made.resources), made.resources


def test_the_text_of_kernels_is_the_same_for_each_architecture():
    _, sch = load("mma_gemm").small()
    assert len({tir.build(sch.mod, target=f"cuda -arch={arch}").code for arch in ARCHS}) == 1


def test_the_whole_prelude_compiles_for_old_and_new_chips():
    source = prelude(part_names()) + '\nextern "C" __global__ void k(float* x) { x[0] = 1.0f; }\n'
    for arch in ("sm_75", "sm_89", "sm_90a"):
        nvrtc.compile_cubin(source, arch)


FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float4_e2m1fn", "float8_e8m0fnu")


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_functions_compile(dtype: str):
    lines = []
    for name in [*op.FLOAT_UNARY, "fabs", "isnan", "isinf", "isfinite"]:
        call = f"T.{name}(A[tx])"
        lines.append(
            f"    B[tx] = T.if_then_else({call}, A[tx], B[tx])" if name.startswith("is") else f"    B[tx] = {call}"
        )
    lines += [
        f"    B[tx] = T.{name}(A[tx], B[tx])" for name in ("pow", "atan2", "fmod", "hypot", "copysign", "nextafter")
    ]
    lines += [
        "    B[tx] = T.fma(A[tx], B[tx], A[tx])",
        "    B[tx] = T.max(A[tx], B[tx]) + T.min(A[tx], B[tx])",
        "    B[tx] = A[tx] * B[tx] - A[tx] / B[tx]",
        "    B[tx] = T.Select(A[tx] < B[tx], A[tx], B[tx])",
        f"    B[tx] = T.{dtype}(1.5) + T.cast(T.cast(A[tx], 'int32'), '{dtype}')",
    ]
    body = "\n".join(lines)
    compiled(f"""
def f(A: T.Buffer((64,), "{dtype}"), B: T.Buffer((64,), "{dtype}")):
    tx = T.launch_thread("threadIdx.x", 64)
{body}
""")


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integer_operations_compile(dtype: str):
    compiled(f"""
def f(A: T.Buffer((64,), "{dtype}"), B: T.Buffer((64,), "{dtype}"), n: T.{dtype}):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx] = A[tx] // T.{dtype}(3) + A[tx] % T.{dtype}(3) + A[tx] // T.{dtype}(4) + A[tx] % T.{dtype}(4)
    B[tx] = A[tx] // n + A[tx] % n + T.truncdiv(A[tx], n) + T.truncmod(A[tx], n)
    B[tx] = T.min(A[tx], B[tx]) + T.max(A[tx], B[tx]) + T.popcount(A[tx]) + T.Cast("{dtype}", T.clz(A[tx]))
    B[tx] = (A[tx] & B[tx]) | (A[tx] ^ B[tx]) + (A[tx] << T.{dtype}(2)) + (A[tx] >> T.{dtype}(1)) + ~A[tx]
""")


def test_vectors_are_accessed_sixteen_bytes_at_a_time():
    source = compiled("""
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx * 4:tx * 4 + 4] = T.max(T.exp(A[tx * 4:tx * 4 + 4]), T.Broadcast(T.float32(0), 4)) * T.Broadcast(T.float32(2), 4)
""")
    ptx = nvrtc.compile_ptx(source, "sm_80")
    assert "ld.global.nc.v4.f32" in ptx or "ld.global.v4.f32" in ptx
    assert "st.global.v4.f32" in ptx


def test_a_vector_that_may_be_misaligned_is_taken_apart():
    source = compiled("""
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx * 4:tx * 4 + 4] = A[tx * n:tx * n + 4]
    B[tx * 6:tx * 6 + 4] = A[tx * 4:tx * 4 + 4]
""")
    assert "load_lanes<4, 1>(&A[tx * n])" in source
    assert "store_lanes<2>" in source


@pytest.mark.parametrize(
    ("base", "size"),
    [("tx * 8 + 4", 4), ("tx * 6", 2), ("tx * 4 + 2", 2), ("tx * 8 + 6", 2), ("tx * 4 + 1", 1), ("tx * 5", 1)],
)
def test_vectors_are_loaded_in_parts_of_the_alignment_of_their_first_element(base, size):
    func = parse(f"""
def f(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx * 4:tx * 4 + 4] = A[T.Ramp({base}, 1, 4)]
""")
    source = source_of([emit_kernel(func, func.name)])
    assert (f"load_lanes<4, {size}>" in source) == (size < 4) and ("load_lanes" in source) == (size < 4)


@pytest.mark.parametrize(("dtype", "end"), [("float32", "f"), ("float16", "f"), ("float64", "")])
def test_functions_of_c_are_those_of_the_width(dtype, end):
    func = parse(f"""
def f(A: T.Buffer((64,), "{dtype}"), B: T.Buffer((64,), "{dtype}"), N: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx] = T.sigmoid(A[tx]) + T.ldexp(A[tx], N[tx])
""")
    source = source_of([emit_kernel(func, func.name)])
    assert re.search(rf"\bexp{end}\(", source) and re.search(rf"\bldexp{end}\b", source)


@pytest.mark.parametrize(
    "target", ["W.data, tx * 2 + 64", "T.address_of(W[tx * 2 + 64]), 0", "T.address_of(W[tx * 2]), 64"]
)
def test_an_operator_fills_what_a_lane_has_of_warp_memory(target):
    func = parse(f"""
def f(B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    memory = T.allocate([128], "float32", "warp")
    W = T.decl_buffer((128,), "float32", data=memory, scope="warp")
    T.evaluate(T.mma_fill(2, {target}))
    B[tx * 2] = W[tx * 2 + 65]
""")
    source = source_of([emit_kernel(func, func.name)])
    assert "float memory[4];  // of the warp's 128" in source and "fill<2>(&memory[(tx >> 5) * 2 + 2]" in source


def test_the_prelude_is_taken_apart_by_its_headings():
    parts = _parts("\n=== first\none\n=== second: first third\ntwo\nthree\n=== third\n")
    assert parts == {"first": ((), "\none\n"), "second": (("first", "third"), "\ntwo\nthree\n"), "third": ((), "\n")}


def test_vector_shuffles_gathers_and_selects():
    compiled("""
def f(A: T.Buffer((1024,), "float16"), B: T.Buffer((1024,), "float16"), D: T.Buffer((1024,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    B[T.Ramp(tx, 64, 4)] = A[T.Ramp(tx * 4 + 3, -1, 4)]
    B[tx * 4:tx * 4 + 4] = T.Select(A[tx * 4:tx * 4 + 4] < B[tx * 4:tx * 4 + 4], A[tx * 4:tx * 4 + 4], B[tx * 4:tx * 4 + 4])
    D[tx * 4:tx * 4 + 4] = T.cast(A[tx * 4:tx * 4 + 4], "float32x4")
    B[tx * 2:tx * 2 + 2] = T.Shuffle([A[tx * 4:tx * 4 + 4]], [3, 1])
""")


def test_statements_read_as_they_were_written():
    source = compiled("""
def search(A: T.Buffer((64,), "int32"), R: T.Buffer((64,), "int32"), key: T.int32):
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 64)
    state_data = T.allocate([2], "int32", "local")
    state = T.decl_buffer((2,), "int32", data=state_data, scope="local")
    state[0] = 0
    state[1] = 64
    while state[0] < state[1]:
        mid: T.int32 = (state[0] + state[1]) // 2
        if A[mid] < key:
            state[0] = mid + 1
        else:
            state[1] = mid
    assert state[0] <= 64, "past the end"
    T.evaluate(T.print("found", state[0]))
    R[tx] = state[0]
""")
    for wanted in (
        "const int tx = threadIdx.x;  // < 64",
        "int state_data[2];",
        "while (state_data[0] < state_data[1]) {",
        "const int mid = ",
        "} else {",
        "__trap();",
        'printf("found %lld\\n"',
        "__launch_bounds__(64)",
    ):
        assert wanted in source, wanted


def test_memory_that_is_only_read_is_const():
    source = compiled(next(t for t in GOOD if "def copy" in t))
    assert re.search(r"copy_kernel\(const half\* __restrict__ A, half\* B\)", source)


def test_the_head_of_a_kernel_is_one_line_where_it_fits():
    for length in range(40, 60):
        name = "A" * length
        func = parse(f"""
def k({name}: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx] = {name}[tx]
""")
        head, _, _ = emit_kernel(func, "k").text.partition("{")
        in_one = " ".join(head.split()).replace("( ", "(") + " {"
        assert head.count("\n") == (0 if len(in_one) <= 120 else 2)
    assert head.count("\n") == 2  # the last one did not


def test_atomics_of_every_type():
    for dtype in ("int32", "uint32", "int64", "uint64", "float32", "float64", "float16", "bfloat16"):
        compiled(
            f"""
def f(A: T.Buffer((64,), "{dtype}"), B: T.Buffer((1,), "{dtype}")):
    tx = T.launch_thread("threadIdx.x", 64)
    T.evaluate(T.atomic_add(T.address_of(B[0]), A[tx], dtype="{dtype}"))
""",
            "sm_75",
            "sm_90a",
        )


def test_a_value_has_no_address_in_a_kernel():
    func = parse("""
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    T.evaluate(T.atomic_add(T.address_of(B[0]), A[tx], dtype="float32"))
""")

    def of_a_value(node: Any) -> Any:
        found = isinstance(node, expr.Call) and node.op == "address_of"
        return node.replace(args=(node.args[0] + 1,)) if found else None

    with pytest.raises(BuildError, match="address_of takes an element of a buffer"):
        emit_kernel(func.with_body(rewrite(func.body, of_a_value)), "k")


def test_a_guarded_load_is_of_an_address_or_a_value():
    source = compiled("""
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    memory = T.allocate([2], "float32", "local")
    T.evaluate(T.ptx_ldg32(memory, tx < 7, T.address_of(A[tx]), 0))
    T.evaluate(T.ptx_ldg32(memory, tx < 7, A[tx + 1], 1))
    R = T.decl_buffer((2,), "float32", data=memory, scope="local")
    B[tx] = R[0] + R[1]
""")
    assert "__ldg(&A[tx])" in source and source.count("__ldg(") == 1


def test_what_a_kernel_cannot_say_is_refused_by_name():
    with pytest.raises(BuildError, match="operator `call_packed` cannot be compiled: it runs on the host"):
        compiled("""
def f(A: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    T.call_packed("f", A.data)
""")
    with pytest.raises(BuildError, match="thread axis 'vthread.x' is left after lowering"):
        compiled("""
def f(A: T.Buffer((64,), "float32")):
    tx = T.launch_thread("vthread.x", 64)
    A[tx] = T.float32(1)
""")


@pytest.mark.parametrize("count", ["popcount", "clz"])
def test_bits_are_counted_of_scalars(count):
    text = f"""
def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 1)
    B[T.Ramp(tx, 1, 4)] = T.{count}(A[T.Ramp(tx, 1, 4)])
"""
    with pytest.raises(BuildError, match="bits are counted of scalars"):
        compiled(text)
    assert f"__{count.removesuffix('count').replace('pop', 'popc')}" in compiled(text.replace("T.Ramp(tx, 1, 4)", "tx"))


BARRIERS = """
def k(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    memory = T.allocate([1024], "float32", "shared")
    S = T.decl_buffer((1024,), "float32", data=memory, scope="shared")
    T.create_barriers(2)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 1)
        T.ptx_init_barrier_thread_count(1, 32)
    T.tvm_storage_sync("shared")
    BODY
    T.ptx_arrive_barrier(1)
    T.ptx_wait_barrier(1)
    for i in range(32):
        B[i * 32 + tx] = S[i * 32 + tx]
"""
BULK = BARRIERS.replace(
    "BODY",
    """if tx == 0:
        T.ptx_arrive_barrier_expect_tx(0, 4096)
        T.ptx_cp_async_bulk(S.data, 0, A.data, 0, 4096, 0, dtype="float32")
    T.ptx_wait_barrier(0)""",
)
COPIES = BARRIERS.replace(
    "BODY",
    """T.ptx_cp_async(S.data, tx * 4, A.data, tx * 4, 16, dtype="float32")
    T.ptx_cp_async_barrier(0)""",
)


def test_barriers_that_count_arrivals_compile_from_sm_80_on():
    source = compiled(COPIES, *ARCHS)
    for wanted in (
        "barrier_init(&barriers[1], 32);",
        "barrier_arrive_after_copies(&barriers[0]);",
        "barrier_wait(&barriers[1], 0);",
    ):
        assert wanted in source, wanted


def test_bulk_copies_compile_from_sm_90_on_and_are_refused_before():
    source = compiled(BULK, "sm_90", "sm_90a")
    assert "copy_bulk(memory, A, 4096, &barriers[0]);" in source
    ptx = nvrtc.compile_ptx(source, "sm_90a")
    assert "mbarrier.try_wait.parity" in ptx and "cp.async.bulk.shared::cluster.global" in ptx
    func = parse(BULK)
    with pytest.raises(
        BuildError, match=r"k: bulk copies, barriers that count bytes, and clusters .* need sm_90 or later, not sm_80"
    ):
        check_limits(Built(emit_kernel(func, "k"), func, "sm_80"))
    check_limits(Built(emit_kernel(func, "k"), func, "sm_90a"))


class Built:
    """What a module is to the check of limits."""

    def __init__(self, text: Any, func: tir.PrimFunc, arch: str):
        self.texts, self.kernels, self.arch = {"k": text}, {"k": func}, arch
        self.target = tir.Target("cuda")


def test_unknown_architecture():
    with pytest.raises(BuildError, match=r"no architecture 'sm_12': NVRTC 13\.\d compiles for sm_75"):
        nvrtc.compile_cubin("", "sm_12")


def test_compiler_messages_come_with_the_line():
    with pytest.raises(
        BuildError, match=r'(?s)NVRTC does not accept the code of k for sm_80:.*"y" is undefined.*1 \| extern'
    ):
        nvrtc.compile_cubin('extern "C" __global__ void k(float* x) { x[0] = y; }', "sm_80", "k")


def test_the_cache_gives_the_same_binary(tmp_path, monkeypatch):
    monkeypatch.setenv("TIR_CACHE_DIR", str(tmp_path))
    source = 'extern "C" __global__ void k(float* x) { x[0] = 3.0f; }'
    first = nvrtc.compile_cubin(source, "sm_80")
    second = nvrtc.compile_cubin(source, "sm_80")
    assert first.seconds > 0 and second.seconds == 0
    assert first.cubin == second.cubin and first.resources == second.resources
    path = next(tmp_path.rglob("*.cubin"))
    whole = path.read_bytes()
    for damaged in (whole[:-1], b"null" + whole[4:], whole.replace(b"resources", b"resourceS", 1), b"", b"{}\n"):
        path.write_bytes(damaged)
        with pytest.warns(RuntimeWarning, match="damaged"):
            assert nvrtc.compile_cubin(source, "sm_80").cubin == first.cubin
        assert path.read_bytes() == whole  # made again
    assert nvrtc.compile_cubin(source, "sm_80").cubin == first.cubin


def test_spills_are_seen():
    body = "".join(f"float v{k} = x[{k} * 37 + threadIdx.x];" for k in range(120))
    uses = "".join(f"y[threadIdx.x * 120 + {k}] = v{119 - k};" for k in range(120))
    source = f'extern "C" __global__ void __launch_bounds__(1024) k(volatile float* x, volatile float* y) {{ {body} {uses} }}'
    used = nvrtc.compile_cubin(source, "sm_80").resources[0]
    assert used.registers == 64 and used.spill_stores > 0 and used.spill_loads > 0 and used.stack > 0


def test_a_parallel_loop_inside_a_kernel_is_a_loop():
    source = tir.build(
        tir.script.parse(
            """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i in T.thread_binding(4, thread="threadIdx.x"):
        for j in T.parallel(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
"""
        ),
        target="cuda",
    ).source("cuda")
    assert re.search(r"for \(int j = 0; j < 8; \+\+j\)", source)


def test_users_programs_for_gpus_compile():
    from tests.cuda.test_cuda_device import GPU_PROGRAMS
    from tir.script import parse as program

    assert len(GPU_PROGRAMS) >= 8
    for case in GPU_PROGRAMS:
        sch = tir.Schedule(program(case.text), seed=1)
        case.steps(sch)
        assert tir.build(sch.mod, target="cuda -arch=sm_90a").cubin()[:4] == b"\x7fELF"


COPIED = """
@T.prim_func
def f(A: T.Buffer((96,), "float32"), B: T.Buffer((96,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    for i in T.unroll(3):
        x: T.int32 = tx * 3 + i
        local = T.allocate([2], "float32", "local")
        L = T.decl_buffer((2,), "float32", data=local)
        L[x % 2] = A[x]
        for k in range(2):
            V = T.decl_buffer((1,), "float32", data=local, elem_offset=k)
            B[x] = B[x] + V[0]
"""


def test_copies_of_an_unrolled_body_declare_their_own():
    """The same variables again, side by side: memory, a value that has a name, and a view."""
    unrolled = tir.transform.unroll_loop(parse(COPIED))
    text = source_of([emit_kernel(unrolled, unrolled.name)])
    assert text.count("float local[2];") == text.count("const int x = ") == 3
    assert text.count("float* const V") == text.count(" = local") == 3
    assert nvrtc.compile_cubin(text, "sm_80").resources[0].registers > 0


@pytest.mark.parametrize("static", [0, 32768, 65536])
def test_static_and_dynamic_shared_memory_limit_the_blocks_together(static):
    """64 KiB and a KiB of the system's for each block, of 164 KiB."""
    text = SimpleNamespace(name="k", threads=128, dynamic=65536 - static)
    used = SimpleNamespace(name="k", registers=32, spill_stores=0, spill_loads=0, stack=0, shared=static)
    binary = SimpleNamespace(arch="sm_80", seconds=0.0, resources=[used])
    (row,) = Report.of(SimpleNamespace(binary=binary, texts={"k": text}))
    assert (row.blocks, row.limited, row.occupancy) == (2, "shared memory", 2 * 128 / 2048)


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        ("int32", 5, "5"),
        ("int32", -5, "(-5)"),
        ("int32", 2**31 - 1, "2147483647"),
        ("int32", -(2**31), "(-2147483647 - 1)"),
        ("int64", 0, "0ll"),
        ("int64", -(2**31), "(-2147483648ll)"),
        ("int64", 2**63 - 1, "9223372036854775807ll"),
        ("int64", 1 - 2**63, "(-9223372036854775807ll)"),
        ("int64", -(2**63), "(-9223372036854775807ll - 1)"),
        ("uint64", 2**64 - 1, "18446744073709551615ull"),
        ("uint32", 2**31 - 1, "2147483647u"),
        ("uint32", 2**31, "0x80000000u"),
        ("uint8", 200, "(unsigned char)200"),
        ("int8", 0, "(signed char)0"),
        ("int8", -100, "(signed char)(-100)"),
        ("bool", 1, "true"),
        ("bool", 0, "false"),
    ],
)
def test_constants_of_integers_are_in_range_of_their_type(dtype, value, text):
    assert int_constant(value, tir.DType(dtype)) == text


@pytest.mark.parametrize(("dtype", "text"), [("int64", "magnitude(A["), ("int8", "magnitude(A["), ("uint32", "= A[")])
def test_absolute_values_of_integers(dtype, text):
    func = """
def f(A: T.Buffer((64,), "{0}"), B: T.Buffer((64,), "{0}")):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx] = T.{1}(A[tx])
"""
    made = parse(func.format(dtype, "abs"))
    source = source_of([emit_kernel(made, made.name)])
    assert text in source


def test_a_function_of_floats_is_refused_integers():
    func = parse("""
def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx] = A[tx]
""")
    at = (func.body.node.var,)
    load = expr.BufferLoad(func.buffer_map[func.params[0]], at)
    store = stmt.BufferStore(func.buffer_map[func.params[1]], expr.Call("exp", (load,), load.dtype), at)
    with pytest.raises(BuildError, match="exp takes floats, not int32"):
        emit_kernel(func.with_body(func.body.replace(body=store)), "f")


def test_a_negated_vector_has_its_operator():
    func = parse("""
def f(A: T.Buffer((256,), "bool"), B: T.Buffer((256,), "bool")):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx * 4:tx * 4 + 4] = T.Not(A[tx * 4:tx * 4 + 4])
""")
    assert "operator!(" in source_of([emit_kernel(func, func.name)])


WARP = """
def f(B: T.Buffer((4096,), "float32"), n: T.int32):
    tx = T.launch_thread("threadIdx.x", {threads})
    memory = T.allocate([{size}], "float32", "warp")
    W = T.decl_buffer(({size},), "float32", data=memory, scope="warp")
    for i in range({loop}):
        W[{write}] = B[tx]
        B[tx + i * 64] = W[{read}]
"""


@pytest.mark.parametrize(
    ("write", "read", "each", "options"),
    [
        ("tx", "tx", 1, {}),
        ("tx * 2", "tx * 2 + 1", 2, {"size": 64}),
        ("tx * 2", "tx * 2 + 64", 2, {"size": 128}),
        ("tx * 2 + 1", "tx * 2 + 2", 0, {"size": 96}),  # of the next lane
        ("tx * 2", "tx * 2", 0, {"size": 96}),  # not as many for each lane
        ("tx * 2", "tx", 0, {"size": 64}),
        ("tx", "tx * 2", 0, {"size": 64}),
        ("tx", "31 - tx", 0, {}),
        ("31 - tx", "tx", 0, {}),
        ("tx", "(tx + 1) % 32", 0, {}),
        ("0", "0", 0, {}),
        ("tx", "n", 0, {}),
        ("tx + n", "tx", 0, {"size": 64}),
        ("tx + n * 32", "tx", 1, {"size": 64}),
        ("i * 32 + tx", "i * 32 + tx", 1, {"size": 128, "loop": 4}),
        ("tx * 4 + i", "tx * 4", 4, {"size": 128, "loop": 4}),
        ("tx * 4", "tx * 4 + i", 0, {"size": 160, "loop": 5}),
        ("tx % 32", "tx % 32", 1, {"threads": 64}),
        ("tx % 32 * 2", "tx % 32 * 2 + 1", 2, {"threads": 64, "size": 64}),
        ("tx % 16", "tx % 16", 0, {"threads": 64}),
        ("tx", "tx", 0, {"threads": 64, "size": 64}),
    ],
)
def test_warp_memory_is_in_registers_where_each_lane_has_its_own(write, read, each, options):
    parts = {"threads": 32, "size": 32, "loop": 1} | options
    func = parse(WARP.format(write=write, read=read, **parts))
    source = source_of([emit_kernel(func, func.name)])
    told = f"float memory[{each and parts['size'] // 32}];  // of the warp's {parts['size']}"
    assert (told in source) == (each > 0) and ("of the warp's" in source) == (each > 0), source


def test_names_that_are_not_ascii_compile():
    func = parse("""
@T.prim_func
def main(ä: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    for é in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B"):
            vé = T.axis.spatial(64, é)
            B[vé] = ä[vé] + 1
""")
    tir.build(func, target="cuda -arch=sm_80")


@pytest.mark.parametrize("target", ["cuda", "cuda-sim"])
def test_registers_of_no_constant_size_are_refused_for_the_simulator_too(target):
    func = parse("""
@T.prim_func
def f(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (8, n), "float32")
    for t in T.thread_binding(8, thread="threadIdx.x"):
        L = T.alloc_buffer((n,), "float32", scope="local")
        for i in range(n):
            L[i] = A[t, i]
        for i in range(n):
            A[t, i] = L[n - 1 - i]
""")
    with pytest.raises(BuildError, match="the size of memory in a kernel has to be a constant"):
        tir.build(func, target)
