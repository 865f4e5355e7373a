"""The GPU simulator: what kernels compute, what it counts, how it is looked into."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulated_kernels import parse, run

import tir
from tir.dtype import DType
from tir.interp.gpu import ORDERS, Breakpoint, SimulationError, simulate
from tir.interp.numbers import array_dtype
from tir.script import tir as T


def elementwise(dtype: str, value: str, out: str | None = None) -> tir.PrimFunc:
    return parse(f"""
def f(A: T.Buffer((96,), "{dtype}"), B: T.Buffer((96,), "{dtype}"), C: T.Buffer((96,), "{out or dtype}")):
    for tx in T.thread_binding(96, thread="threadIdx.x"):
        with T.block("C"):
            vi = T.axis.spatial(96, tx)
            C[vi] = {value}
""")


VALUES = [
    ("float32", "A[vi] * B[vi] + A[95 - vi] / B[vi]", None),
    ("float32", "T.exp(A[vi]) + T.sqrt(T.abs(B[vi])) - T.max(A[vi], B[vi])", None),
    ("float32", "T.floor(A[vi]) % B[vi]", None),
    ("float32", "T.Cast('int32', A[vi])", "int32"),
    ("float32", "T.reinterpret('int32', A[vi])", "int32"),
    ("float32", "T.Cast('bfloat16', A[vi] * T.float32(1.01))", "bfloat16"),
    ("float16", "A[vi] * B[vi] + A[vi]", None),
    ("bfloat16", "A[vi] * B[vi] + A[vi]", None),
    ("float8_e4m3fn", "A[vi] + B[vi]", None),
    ("int32", "A[vi] // B[vi] + A[vi] % B[vi]", None),
    ("int32", "T.truncdiv(A[vi], B[vi]) * 3 + T.truncmod(A[vi], B[vi])", None),
    ("int32", "A[vi] * 1103515245 + vi * 12345 << 3", None),
    ("int32", "(A[vi] ^ B[vi]) & ~A[vi] | A[vi] >> 2", None),
    ("int32", "T.min(A[vi], 3) // 4 + A[vi] % 8", None),
    ("int32", "T.if_then_else(A[vi] > 0, B[A[vi]], -1)", None),
    ("int32", "T.Select(A[vi] > 0 and B[vi] < 0, vi, A[vi])", None),
    ("int8", "T.Select(A[vi] > 0, T.int8(100), T.int8(90)) * T.int8(2) // T.int8(3)", None),
    ("int8", "T.Select(A[vi] > 0, A[vi], T.int8(90)) * T.int8(2) // T.int8(3)", None),
    ("uint16", "T.Select(A[vi] > B[vi], T.uint16(40000), B[vi]) * T.uint16(2) // T.uint16(3)", None),
    ("float16", "T.Select(A[vi] > B[vi], T.float16(1), T.float16(3)) / T.float16(7)", None),
    ("float32", "T.Select(A[vi] > B[vi], T.float32(1), A[vi]) / T.float32(7)", None),
    ("int32", "T.if_then_else(vi > 0 and A[vi - 1] > 0 or vi == 5, 1, 2)", None),
    ("int32", "T.popcount(A[vi]) + T.clz(A[vi])", None),
    ("int32", "T.Cast('float16', A[vi])", "float16"),
    ("uint8", "A[vi] - B[vi]", None),
    ("int8", "A[vi] * B[vi]", None),
    ("int64", "A[vi] * T.int64(4611686018427387904) + B[vi]", None),
    ("bool", "not A[vi] or B[vi]", None),
]


@pytest.mark.parametrize(("dtype", "value", "out"), VALUES, ids=lambda v: v if isinstance(v, str) else "")
def test_values_are_the_reference_executors(dtype: str, value: str, out: str | None):
    f = elementwise(dtype, value, out)
    inputs = tir.testing.random_inputs(f, seed=5)
    if "//" in value or "truncdiv" in value or dtype == "float32":
        inputs[1][inputs[1] == 0] = 1
    want = [x.copy() for x in inputs]
    tir.interp.run(f, *want)
    mod = tir.build(f, target="cuda-sim")
    mod(*inputs)
    np.testing.assert_array_equal(inputs[2].view(np.uint8), want[2].view(np.uint8))


# ---------------------------------------------------------------- tensor cores


# ---------------------------------------------------------------- asynchronous copies, warps, atomics


# ---------------------------------------------------------------- counts

COPY = """
def f(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32")):
    S_data = T.allocate([4096], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((4096,), "float32", data=S_data, scope="shared")
    S[{shared}] = A[{source}]
"""


@pytest.mark.parametrize(
    ("source", "sectors", "efficiency"),
    [
        ("tx", 4, 1.0),
        ("tx + 1", 5, 0.8),
        ("tx * 2", 8, 0.5),
        ("tx * 32", 32, 0.125),
        ("0 * tx", 1, 0.125),
        ("31 - tx", 4, 1.0),
        ("tx // 8 * 1024", 4, 0.125),
    ],
)
def test_sectors_of_global_memory(source: str, sectors: int, efficiency: float):
    zeros = np.zeros(4096, "float32")
    report = run(COPY.format(shared="tx", source=source), zeros, zeros)
    read = next(t for t in report.accesses if t.site.buffer == "A")
    assert (read.requests, read.sectors, read.efficiency) == (1, sectors, pytest.approx(efficiency))


@pytest.mark.parametrize(
    ("shared", "passes"),
    [
        ("tx", 1),
        ("tx * 2", 2),
        ("tx * 32", 32),
        ("tx * 33", 1),
        ("tx * 16", 16),
        ("tx // 2 * 32 + tx % 2", 16),
        ("(tx * 32) + T.bitwise_xor(tx, 5)", 1),
    ],
)
def test_bank_conflicts(shared: str, passes: int):
    zeros = np.zeros(4096, "float32")
    report = run(COPY.format(shared=shared, source="tx"), zeros, zeros)
    write = next(t for t in report.accesses if t.site.buffer == "S")
    assert (write.passes, write.conflicts) == (passes, passes - 1)
    assert report.conflicts == passes - 1


def test_vectors_are_served_a_quarter_of_a_warp_at_a_time():
    text = """
def f(A: T.Buffer((4096,), "float32")):
    S_data = T.allocate([4096], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((4096,), "float32", data=S_data, scope="shared")
    S[PLACE:PLACE + 4] = A[tx * 4:tx * 4 + 4]
"""
    zeros = np.zeros(4096, "float32")
    for place, passes in (("tx * 4", 4), ("tx * 32", 32), ("tx * 36", 4)):
        report = run(text.replace("PLACE", place), zeros)
        read, write = sorted(report.accesses, key=lambda t: t.scope)
        assert (read.sectors, read.efficiency, read.width) == (16, 1.0, 16)
        assert (write.passes, write.ideal) == (passes, 4)


def test_requests_of_partial_warps_and_idle_lanes():
    zeros = np.zeros(64, "float32")
    report = run(
        """
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 40)
    if tx % 8 == 0:
        B[tx] = A[tx]
""",
        zeros,
        zeros.copy(),
    )
    for t in report.accesses:
        assert (t.requests, t.sectors, t.useful) == (2, 5, 20)


@pytest.mark.parametrize("order", ORDERS)
def test_counts_do_not_depend_on_the_order(order: str):
    a, b, c = (np.ones(4096, "float32") for _ in range(3))
    report = run(TILED, a, b, c, order=order)
    found = {(t.site.line, t.site.buffer): (t.requests, t.sectors, t.passes) for t in report.accesses}
    base = run(TILED, a, b, c)
    assert found == {(t.site.line, t.site.buffer): (t.requests, t.sectors, t.passes) for t in base.accesses}
    assert report.barriers == base.barriers == 16 * 8 and report.shared_bytes == 2048


TILED = """
def mm(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32"), C: T.Buffer((4096,), "float32")):
    bx = T.launch_thread("blockIdx.x", 16)
    As_data = T.allocate([256], "float32", "shared")
    Bs_data = T.allocate([256], "float32", "shared")
    acc_data = T.allocate([1], "float32", "local")
    tx = T.launch_thread("threadIdx.x", 16)
    ty = T.launch_thread("threadIdx.y", 16)
    As = T.decl_buffer((256,), "float32", data=As_data, scope="shared")
    Bs = T.decl_buffer((256,), "float32", data=Bs_data, scope="shared")
    acc = T.decl_buffer((1,), "float32", data=acc_data, scope="local")
    acc[0] = T.float32(0)
    for ko in range(4):
        As[ty * 16 + tx] = A[(bx // 4 * 16 + ty) * 64 + ko * 16 + tx]
        Bs[ty * 16 + tx] = B[(ko * 16 + ty) * 64 + bx % 4 * 16 + tx]
        T.tvm_storage_sync("shared")
        for k in range(16):
            acc[0] = acc[0] + As[ty * 16 + k] * Bs[k * 16 + tx]
        T.tvm_storage_sync("shared")
    C[(bx // 4 * 16 + ty) * 64 + bx % 4 * 16 + tx] = acc[0]
"""


@pytest.mark.parametrize("order", ORDERS)
def test_a_tiled_product(order: str):
    r = np.random.default_rng(0)
    a, b = (r.integers(-3, 4, (64, 64)).astype("float32") for _ in range(2))
    c = np.zeros((64, 64), "float32")
    report = run(TILED, a.ravel(), b.ravel(), c.reshape(-1), order=order, seed=7)
    np.testing.assert_array_equal(c, a @ b)
    assert report.ok and report.conflicts == 0


# ---------------------------------------------------------------- looking in


@T.prim_func
def scale(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i0 in T.thread_binding(2, thread="blockIdx.x"):
        for i1 in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(64, i0 * 32 + i1)
                B[vi] = A[vi] * T.float32(2)


def test_a_module_reports_its_launches():
    mod = tir.build(scale, target="cuda-sim")
    a, b = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    mod(a, b)
    np.testing.assert_array_equal(b, a * 2)
    (report,) = mod.report()
    assert report.ok and report.sectors == 16 and report.grid == (2, 1, 1) and report.block == (32, 1, 1)
    assert "read A" in str(mod.last_report) and "<table>" in mod.last_report._repr_html_()
    assert "main_kernel" in mod.source("lowered") and " 1 |" in mod.kernel_source()


def test_the_target_can_say_the_order():
    mod = tir.build(scale, target="cuda-sim -order=random -seed=3")
    mod(np.ones(64, "float32"), np.zeros(64, "float32"))
    assert mod.last_report[0].order == "random" and mod.seed == 3


def test_breakpoints_and_traces():
    mod = tir.build(scale, target="cuda-sim")
    line = next(n for n, text in enumerate(mod.kernel_source().splitlines(), 1) if "* 2.0" in text)
    stops: list[Any] = []
    mod.breakpoint(line, thread=3, block=1, action=stops.append)
    seen: list[int] = []
    mod.trace = lambda stop: seen.append(stop.line)
    a = np.arange(64, dtype="float32")
    mod(a, np.zeros(64, "float32"))
    (stop,) = stops
    assert stop.threads == [((1, 0, 0), (3, 0, 0))] and stop.line == line
    assert stop["i1"].tolist() == [3] and stop["i0"].tolist() == [1]
    name = next(n for n in stop._views if n.startswith("A"))
    assert stop.read(name, 35).tolist() == [35.0]
    assert seen == [line] and "i1=3" in str(stop)
    with pytest.raises(KeyError, match="no variable 'q'"):
        stop["q"]


def test_a_breakpoint_prints_by_default(capsys: pytest.CaptureFixture[str]):
    kernel = parse("""
def f(C: T.Buffer((4,), "int32")):
    tx = T.launch_thread("threadIdx.x", 4)
    C[tx] = tx * 2
""")
    line = next(n for n, text in enumerate(kernel.script().splitlines(), 1) if "C[tx]" in text)
    simulate(kernel, [np.zeros(4, "int32")], breakpoints=[Breakpoint(line, thread=2)])
    assert capsys.readouterr().out.splitlines()[1] == "  block (0, 0, 0) thread (2, 0, 0): tx=2"


def test_threads_print():
    report = run(
        """
def f(C: T.Buffer((4,), "int32")):
    tx = T.launch_thread("threadIdx.x", 4)
    C[tx] = tx * 2
    if tx > 1:
        T.evaluate(T.call_extern("int32", "print", "value", C[tx]))
""",
        np.zeros(4, "int32"),
    )
    assert report.prints == ["block (0, 0, 0) thread (2, 0, 0): value 4", "block (0, 0, 0) thread (3, 0, 0): value 6"]


def test_a_finding_names_the_users_own_line():
    @T.prim_func
    def shifted(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi + 1]

    with pytest.raises(SimulationError) as raised:
        tir.build(shifted, target="cuda-sim")(np.zeros(64, "float32"), np.zeros(64, "float32"))
    text = str(raised.value)
    assert "read of A[64] is out of bounds: it has 64 elements" in text and "thread (63, 0, 0)" in text
    assert "test_gpu_sim.py" in text and "B[vi] = A[vi + 1]" in text


def test_strict_off_gives_the_report_and_keeps_going():
    mod = tir.build(scale, target="cuda-sim")
    mod.strict = False
    mod(np.ones(64, "float32"), np.zeros(64, "float32"))
    assert mod.last_report.ok
    out = np.zeros(32, "float32")
    report = run(
        """
def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    B[tx] = A[tx * 2]
""",
        np.ones(32, "float32"),
        out,
        strict=False,
    )
    (finding,) = report.findings
    assert finding.kind == "bounds" and finding.count == 16 and out[:16].all() and not out[16:32].any()
    with pytest.raises(SimulationError):
        report.require()


def test_runs_are_deterministic():
    for order in ORDERS:
        text = [str(run(TILED, *(np.ones(4096, "float32") for _ in range(3)), order=order, seed=3)) for _ in range(2)]
        assert text[0] == text[1]


# ---------------------------------------------------------------- what cannot run


def test_what_a_launch_must_fit():
    kernel = parse("""
def f(C: T.Buffer((4,), "int32")):
    tx = T.launch_thread("threadIdx.x", 4)
    C[tx] = tx
""")
    out = np.zeros(4, "int32")
    with pytest.raises(tir.RunError, match="threadIdx.x is launched with extent 8; the kernel is made for 4"):
        simulate(kernel, [out], 1, 8)
    with pytest.raises(tir.RunError, match="no thread order 'sideways'"):
        simulate(kernel, [out], order="sideways")
    with pytest.raises(tir.RunError, match="positive extents"):
        simulate(kernel, [out], 0, 4)
    with pytest.raises(tir.RunError, match="expected dtype int32"):
        simulate(kernel, [np.zeros(4, "float32")])
    with pytest.raises(tir.RunError, match="the simulator takes kernels after lowering"):
        simulate(scale, [np.zeros(64, "float32"), np.zeros(64, "float32")])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            'T.ptx_cp_async(T.address_of(S[tx]), 0, T.address_of(C[tx]), 0, 12, dtype="float32")',
            "4, 8 or 16 bytes, not 12",
        ),
        (
            'T.ptx_mma("m8n8k4", "row", "row", "fp16", "fp16", "fp32", S_data, 0, S_data, 0, S_data, 0, False, dtype="float32")',
            "rows and B in columns",
        ),
        ("T.ptx_init_barrier_thread_count(0, 32)", "create_barriers makes them"),
        (
            'T.evaluate(T.call_extern("int32", "my_function", 3))',
            "'my_function', which the simulator does not implement; legal: operators of T, as T.atomic_add",
        ),
    ],
)
def test_what_has_no_meaning_is_told(call: str, message: str):
    with pytest.raises(tir.RunError, match=message):
        run(
            f"""
def f(C: T.Buffer((32,), "float32")):
    S_data = T.allocate([64], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((64,), "float32", data=S_data, scope="shared")
    {call}
""",
            np.zeros(32, "float32"),
        )


def test_dynamic_shared_memory_must_be_launched_with_enough():
    text = """
def f(C: T.Buffer((32,), "float32")):
    buf = T.allocate([256], "uint8", "shared.dyn")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((32,), "float32", data=buf, scope="shared.dyn")
    H = T.decl_buffer((32,), "float16", data=buf, scope="shared.dyn", elem_offset=64)
    S[tx] = C[tx]
    H[tx] = T.float16(1)
    C[tx] = S[tx] + T.Cast("float32", H[tx])
"""
    out = np.ones(32, "float32")
    assert simulate(parse(text), [out], 1, 32, 256).shared_bytes == 256 and (out == 2).all()
    with pytest.raises(tir.RunError, match="launched with 128 bytes of dynamic shared memory, uses 256"):
        simulate(parse(text), [out], 1, 32, 128)


def test_a_loop_that_does_not_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tir.interp.gpu.compiler._MAX_ROUNDS", 1000)
    with pytest.raises(tir.RunError, match="waits for another block"):
        run(
            """
def f(flag: T.Buffer((1,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    while flag[0] == 0:
        T.evaluate(0)
""",
            np.zeros(1, "int32"),
        )


def test_memory_between_launches_starts_undefined():
    a = np.zeros(64, "float32")
    written = np.zeros(64, bool)
    first = (
        "def f(A: T.Buffer((64,), 'float32')):\n    tx = T.launch_thread('threadIdx.x', 32)\n    A[tx] = T.float32(1)"
    )
    second = first.replace("A[tx] = T.float32(1)", "A[tx] = A[tx + 1]").replace("32)\n", "31)\n", 1)
    simulate(parse(first), [a], fresh={a.ctypes.data: written})
    assert written[:32].all() and not written[32:].any()
    with pytest.raises(SimulationError, match="race"):
        simulate(parse(second), [a], fresh={a.ctypes.data: written})
    third = first.replace("A[tx] = T.float32(1)", "A[tx] = A[tx + 32]")
    with pytest.raises(SimulationError, match="global memory starts undefined"):
        simulate(parse(third), [a], fresh={a.ctypes.data: written})


@pytest.mark.parametrize("shared", [True, False])
def test_races_are_found_exactly_where_two_accesses_are_unordered(shared: bool):
    """Random accesses of two blocks of three threads, against every pair of them."""
    from types import SimpleNamespace

    from tir.interp.gpu.access_records import Races
    from tir.interp.gpu.lanes import EPOCHS
    from tir.interp.gpu.report import Site

    threads, slots, outcomes = 3, 4, set()
    r = np.random.default_rng(0)
    for _ in range(600):
        races = Races(2, shared, SimpleNamespace(threads=threads, slots=slots, warp_barriers=False))
        blocks = 1 if shared else 2
        epoch = [0] * blocks
        seen: list[tuple[int, int, int, int, bool]] = []
        found = wanted = False
        for step in range(r.integers(2, 9)):
            block = int(r.integers(blocks))
            if r.random() < 0.3:
                epoch[block] += 1
                continue
            count = int(r.integers(1, threads + 1))
            thread = r.permutation(threads)[:count]
            at, write = r.integers(0, 2, count), bool(r.random() < 0.4)
            low = (block * EPOCHS + epoch[block]) * slots
            full = np.full(count, 1)
            who: Any = SimpleNamespace(stamp=low + thread, low=low * full, block_low=block * EPOCHS * slots * full)
            site = Site(step, 1, "")
            found = bool(races.write(at, who, site) if write else races.read(at, who, site)) or found
            now = [(block, epoch[block], int(t), int(a), write) for t, a in zip(thread, at)]
            seen += now
        for i, (b1, e1, t1, a1, w1) in enumerate(seen):
            for b2, e2, t2, a2, w2 in seen[:i]:
                unordered = b1 != b2 or (e1 == e2 and t1 != t2)
                wanted = wanted or (a1 == a2 and (w1 or w2) and unordered)
        assert found == wanted, seen
        outcomes.add(found)
    assert outcomes == {True, False}


@T.prim_func
def gathered(A: T.Buffer((66,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    B[T.Ramp(tx * 2, 1, 2)] = A[T.Ramp(tx * 2, 1, 2) // T.Broadcast(64, 2) + T.Ramp(tx * 2 + 1, 1, 2)]


def test_vectors_of_one_lane_are_numbers():
    @T.prim_func
    def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        tx = T.launch_thread("threadIdx.x", 32)
        C = T.alloc_buffer((4,), "float32", scope="local")
        S = T.alloc_buffer((32,), "float32", scope="shared")
        C[T.Ramp(0, 1, 1)] = T.Broadcast(A[tx], 1)
        C[T.Ramp(tx % 4, 1, 1)] = C[T.Ramp(0, 1, 1)] + T.Broadcast(T.float32(1), 1)
        S[T.Ramp(tx, 1, 1)] = C[tx % 4]
        B[T.Ramp(tx, 1, 1)] = S[T.Ramp(tx, 1, 1)]

    a, b = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    tir.build(f, "cuda-sim")(a, b)
    assert np.array_equal(b, a + 1)


def test_lanes_that_are_gathered_are_no_vector():
    """Their places are computed one by one, so they are moved one by one: no alignment is asked of them."""
    a, b = np.arange(66, dtype="float32"), np.zeros(64, "float32")
    report = simulate(gathered, [a, b])
    assert report.ok, str(report)
    assert (b == a[1:65]).all()
    read = next(t for t in report.accesses if t.site.what == "read")
    assert (read.width, read.requests) == (4, 2)


@pytest.mark.parametrize("dtype", ["int4", "int2"])
def test_integers_of_fewer_than_eight_bits_have_a_sign(dtype: str):
    func = tir.script.parse(f"""
@T.prim_func
def f(A: T.Buffer((4,), "{dtype}"), O: T.Buffer((4,), "int32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        O[t] = T.Cast("int32", A[t])
""")
    out = np.zeros(4, "int32")
    tir.build(func, "cuda-sim")(np.array([-2, -1, 0, 1], "int8").astype(array_dtype(DType(dtype))), out)
    assert out.tolist() == [-2, -1, 0, 1]


def test_an_argument_whose_rows_have_gaps():
    func = tir.script.parse("""
@T.prim_func
def f(a: T.handle, O: T.Buffer((2, 3), "int32")):
    s = T.int32()
    A = T.match_buffer(a, (2, 3), "int32", strides=[s, 1])
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for j in T.thread_binding(3, thread="threadIdx.x"):
            O[i, j] = A[i, j] * s
""")
    wide, out = np.arange(10, dtype="int32").reshape(2, 5), np.zeros((2, 3), "int32")
    tir.build(func, "cuda-sim")(wide[:, 1:4], out)
    assert out.tolist() == (wide[:, 1:4] * 5).tolist()
