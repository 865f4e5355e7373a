"""The machine of the PTX executor: control flow, warps, memory and its faults, copies, the fragments of mma."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_ptx_instructions import launch, put, taken

from codegen.ptx.driver import PTXDriver
from codegen.ptx.syntax import PTXFault

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
REGISTERS = ".reg .b64 %a<5>; .reg .b32 %r<17>; .reg .b16 %h<5>; .reg .pred %p<5>; .reg .f32 %f<9>;"
START = "ld.param.u64 %a0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %a1, %r0, 4; add.u64 %a2, %a0, %a1;"


def run(body: str, threads: int = 64, declared: str = "", order: str = "together", words: int = 256) -> np.ndarray:
    """The memory at ``out``, of ``words`` numbers 0, 1 …, after a kernel with ``body`` ran."""
    text = f"{HEAD}.visible .entry k(.param .u64 out)\n{{\n{REGISTERS}\n{declared}\n{START}\n{body}\nret;\n}}\n"
    driver = PTXDriver("sm_90a")
    memory = np.arange(words, dtype=np.uint32)
    address = put(driver, memory)
    launch(driver, text, [address], threads, order)
    return taken(driver, address, memory)


SHARED = ".shared .align 16 .b8 S[256];"
AT = "mov.u32 %r1, S; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2;"


@pytest.mark.parametrize(
    "message, body",
    [
        ("outside of every allocation of global", "st.global.u32 [%a2+1024], %r0;"),
        ("outside of every allocation of global", "ld.global.u32 %r1, [%a0+-4];"),
        ("not aligned", "ld.global.u32 %r1, [%a2+2];"),
        ("not aligned", "ld.global.v2.u32 {%r1, %r2}, [%a2];"),
        ("outside of every allocation of shared", AT + "st.shared.u32 [%r3+256], %r0;"),
        ("to global memory goes of shared memory, read .*, which nothing has written",
         AT + "ld.shared.u32 %r4, [%r3]; add.u32 %r5, %r4, 1; st.global.u32 [%a2], %r5;"),
        ("local memory, .* nothing has written", "ld.local.u32 %r4, [L]; st.global.u32 [%a2], %r4;"),
        ("course of a kernel .* nothing has written",
         "ld.local.u32 %r4, [L]; setp.eq.u32 %p0, %r4, 0; @%p0 bra L1; st.global.u32 [%a2], 1; L1:"),
        ("the address is of local .* nothing has written",
         "ld.local.u64 %a3, [L]; add.u64 %a3, %a3, %a0; st.global.u32 [%a3], 1;"),
        ("nothing has written", AT + "ld.local.u32 %r4, [L]; st.shared.u32 [%r3], %r4; ld.shared.u32 %r5, [%r3];"
         "st.global.u32 [%a2], %r5;"),
        ("nothing has written", "ld.local.u32 %r4, [L]; shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1; st.global.u32 [%a2], %r5;"),
        ("atomic operation on shared memory that nothing", AT + "atom.shared.add.u32 %r4, [%r3], 1;"),
        ("bypasses the stores", "st.global.u32 [%a2], %r0; ld.global.nc.u32 %r4, [%a2];"),
        ("waits for ever .*bar.sync", "setp.lt.u32 %p0, %r0, 40; @%p0 bar.sync 0;"),
        ("waits for ever .*bar.sync", "setp.lt.u32 %p0, %r0, 32; @%p0 bra L1; bar.sync 0; L1:"),
        ("meet at different barriers", "setp.lt.u32 %p0, %r0, 32; @%p0 bra L1; bar.sync 0; bra L2; L1: bar.sync 0; L2:"),
        (
            "waits for ever .*shfl",
            "setp.lt.u32 %p0, %r0, 16; @%p0 bra L1; shfl.sync.idx.b32 %r4, %r0, 0, 31, -1; L1: bar.sync 0;",
        ),
        ("not in its own mask", "shfl.sync.idx.b32 %r4, %r0, 0, 31, 1;"),
        ("waits for ever .*mma", "setp.lt.u32 %p0, %r0, 8; @!%p0 exit; mma.sync.aligned.m16n8k8.row.col"
         ".f32.tf32.tf32.f32 {%f0,%f1,%f2,%f3}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f0,%f1,%f2,%f3};"),
        ("trap", "trap;"),
        ("no barrier was initialised", AT + "mbarrier.arrive.shared.b64 %a3, [S];"),
    ],
)  # fmt: skip
def test_fault(message: str, body: str):
    with pytest.raises(PTXFault, match=message):
        run(body, declared=SHARED + ".local .align 4 .b8 L[64];")


def test_a_fault_names_the_kernel_the_line_and_the_thread():
    with pytest.raises(PTXFault, match=r"(?s)^k: .*at 0x\w+ .*the nearest below is .*PTX line \d+, `st.global.u32"):
        run("st.global.u32 [%a2+1024], %r0;")
    with pytest.raises(PTXFault, match=r"by thread \(40, 0, 0\) of block \(0, 0, 0\)"):
        run("setp.eq.u32 %p0, %r0, 40; @%p0 trap;")


@pytest.mark.parametrize(
    "use",
    [
        "",
        "setp.lt.u32 %p0, %r0, 99; selp.b32 %r5, 7, %r4, %p0;",
        "setp.gt.u32 %p0, %r0, 99; selp.b32 %r5, %r4, 7, %p0;",
        "mov.u32 %r6, 0; and.b32 %r5, %r4, %r6; add.u32 %r5, %r5, 7;",
        "st.shared.u32 [%r3], %r4; st.shared.u32 [%r3], 7; ld.shared.u32 %r5, [%r3];",
        "add.u32 %r4, %r4, 1; mov.u32 %r4, 7; mov.u32 %r5, %r4;",
        "setp.lt.u32 %p0, %r0, 99; setp.eq.u32 %p1, %r4, 0; or.pred %p2, %p0, %p1; @%p2 bra L1; trap; L1:",
    ],
)
def test_a_load_before_the_first_write_is_no_fault_until_its_value_decides_something(use: str):
    body = f"mov.u32 %r5, 7; {AT} ld.local.u32 %r4, [L]; {use} st.global.u32 [%a2], %r5;"
    assert (run(body, declared=SHARED + ".local .align 4 .b8 L[64];")[:64] == 7).all()


# ---------------------------------------------------------------- control flow


def test_threads_meet_again_behind_a_branch():
    body = """
setp.lt.u32 %p0, %r0, 20; @%p0 bra L1; add.u32 %r1, %r0, 100; bra L2;
L1: add.u32 %r1, %r0, 200; L2: activemask.b32 %r2; add.u32 %r1, %r1, %r2; st.global.u32 [%a2], %r1;"""
    want = (np.arange(64) + np.where(np.arange(64) < 20, 200, 100) - 1) % 2**32
    for order in ("together", "forward", "reverse"):
        assert (run(body, order=order)[:64] == want).all()


def test_each_thread_leaves_a_loop_when_it_is_done():
    body = """
mov.u32 %r1, 0; mov.u32 %r2, 0;
L1: add.u32 %r1, %r1, %r2; add.u32 %r2, %r2, 1; setp.le.u32 %p0, %r2, %r0; @%p0 bra L1;
st.global.u32 [%a2], %r1;"""
    n = np.arange(64)
    assert (run(body)[:64] == n * (n + 1) // 2).all()


def test_a_barrier_orders_the_warps():
    body = (
        AT
        + """st.shared.u32 [%r3], %r0; bar.sync 0; xor.b32 %r4, %r2, 252; add.u32 %r4, %r1, %r4;
ld.shared.u32 %r5, [%r4]; st.global.u32 [%a2], %r5;"""
    )
    for order in ("together", "forward", "reverse"):
        assert (run(body, declared=SHARED, order=order)[:64] == 63 - np.arange(64)).all()


def test_a_missing_barrier_shows_when_warps_run_one_after_the_other():
    body = (
        AT
        + """st.shared.u32 [%r3], %r0; xor.b32 %r4, %r2, 252; add.u32 %r4, %r1, %r4;
ld.shared.u32 %r5, [%r4]; st.global.u32 [%a2], %r5;"""
    )
    assert (run(body, declared=SHARED)[:64] == 63 - np.arange(64)).all()
    for order in ("forward", "reverse"):
        with pytest.raises(PTXFault, match="nothing has written"):
            run(body, declared=SHARED, order=order)


def test_a_barrier_counts_predicates():
    body = "setp.lt.u32 %p0, %r0, 40; bar.red.popc.u32 %r1, 0, %p0; st.global.u32 [%a2], %r1;"
    assert (run(body)[:64] == 40).all()


def test_atomics_of_one_address_go_one_after_the_other():
    body = "atom.global.add.u32 %r1, [%a0+512], 3; st.global.u32 [%a2], %r1;"
    got = run(body)
    assert sorted(got[:64]) == [128 + 3 * k for k in range(64)] and got[128] == 128 + 3 * 64


@pytest.mark.parametrize(
    "op, operand, want",
    [("exch", 7, 7), ("min", 5, 5), ("max", 900, 900), ("inc", 200, 129), ("inc", 100, 0), ("dec", 200, 127), ("and", 15, 0),
     ("or", 1, 129), ("xor", 128, 0), ("add", 2, 130)],
)  # fmt: skip
def test_atomic(op: str, operand: int, want: int):
    kind = "b32" if op in ("exch", "and", "or", "xor") else "u32"
    assert run(f"atom.global.{op}.{kind} %r1, [%a0+512], {operand};", threads=1)[128] == want


def test_compare_and_swap():
    assert run("atom.global.cas.b32 %r1, [%a0+512], 128, 9; st.global.u32 [%a0], %r1;", threads=1)[
        [0, 128]
    ].tolist() == [128, 9]
    assert run("atom.global.cas.b32 %r1, [%a0+512], 127, 9; st.global.u32 [%a0], %r1;", threads=1)[
        [0, 128]
    ].tolist() == [128, 128]


@pytest.mark.parametrize(
    "first, second, want",
    [
        ("add.cc.u32 %r1, -1, 1", "addc.u32 %r2, 5, 0", 6 << 32),
        ("add.cc.u32 %r1, 7, 1", "addc.u32 %r2, 5, 0", 5 << 32 | 8),
        ("sub.cc.u32 %r1, 0, 1", "subc.u32 %r2, 5, 2", 2 << 32 | 0xFFFFFFFF),
        ("sub.cc.u32 %r1, 3, 1", "subc.u32 %r2, 5, 2", 3 << 32 | 2),
        ("mad.lo.cc.u32 %r1, -1, 3, 3", "madc.hi.u32 %r2, -1, 3, 1", 0xFFFFFFFF * 3 + 3 + (1 << 32)),
    ],
)
def test_a_carry_goes_on_to_the_next_word(first: str, second: str, want: int):
    got = run(f"{first}; {second}; st.global.u32 [%a0], %r1; st.global.u32 [%a0+4], %r2;", threads=1)
    assert int(got[0]) | int(got[1]) << 32 == want


# ---------------------------------------------------------------- warps

LANE = np.arange(64) % 32
WARP = np.arange(64) // 32 * 32


@pytest.mark.parametrize(
    "text, want",
    [
        ("shfl.sync.down.b32 %r1, %r0, 3, 31, -1", np.where(LANE + 3 < 32, LANE + 3, LANE) + WARP),
        ("shfl.sync.up.b32 %r1, %r0, 3, 0, -1", np.where(LANE >= 3, LANE - 3, LANE) + WARP),
        ("shfl.sync.bfly.b32 %r1, %r0, 5, 31, -1", (LANE ^ 5) + WARP),
        ("shfl.sync.idx.b32 %r1, %r0, 9, 31, -1", 9 + WARP),
        ("shfl.sync.idx.b32 %r1, %r0, 9, 0x181f, -1", 1 + LANE // 8 * 8 + WARP),  # segments of 8
        ("shfl.sync.down.b32 %r1, %r0, 4, 0x181f, -1", np.where(LANE % 8 < 4, LANE + 4, LANE) + WARP),
        ("setp.lt.u32 %p0, %r0, 35; vote.sync.ballot.b32 %r1, %p0, -1", np.where(WARP == 0, 2**32 - 1, 7)),
        ("setp.lt.u32 %p0, %r0, 35; vote.sync.any.pred %p1, %p0, -1; selp.b32 %r1, 1, 0, %p1", np.ones(64)),
        ("setp.lt.u32 %p0, %r0, 35; vote.sync.all.pred %p1, %p0, -1; selp.b32 %r1, 1, 0, %p1", WARP == 0),
        ("setp.lt.u32 %p0, %r0, 35; vote.sync.uni.pred %p1, %p0, -1; selp.b32 %r1, 1, 0, %p1", WARP == 0),
        ("and.b32 %r2, %r0, 1; match.any.sync.b32 %r1, %r2, -1", np.where(LANE % 2, 0xAAAAAAAA, 0x55555555)),
        ("match.all.sync.b32 %r1|%p1, %r0, -1", np.zeros(64)),
        ("redux.sync.add.s32 %r1, %r0, -1", np.where(WARP == 0, 496, 1520)),
        ("redux.sync.max.u32 %r1, %r0, -1", WARP + 31),
        ("elect.sync %r1|%p1, -1", np.zeros(64)),
        ("mov.u32 %r1, %laneid", LANE),
        ("mov.u32 %r1, %lanemask_lt", 2**LANE - 1),
    ],
    ids=lambda x: x.split(";")[-1].split()[0] if isinstance(x, str) else "",
)  # fmt: skip
def test_warp(text: str, want: np.ndarray):
    assert (run(f"{text}; st.global.u32 [%a2], %r1;")[:64] == want).all()


def test_the_flag_of_a_shuffle_says_whether_the_source_is_in_the_segment():
    text = "shfl.sync.down.b32 %r1|%p0, %r0, 3, 31, -1; selp.b32 %r1, 1, 0, %p0; st.global.u32 [%a2], %r1;"
    assert (run(text)[:64] == (LANE < 29)).all()


def test_a_warp_instruction_waits_for_the_threads_of_its_mask():
    body = """
mov.u32 %r1, 5; setp.lt.u32 %p0, %r0, 16; @%p0 bra L1; mov.u32 %r1, 6; mov.u32 %r3, 0;
L0: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 10; @%p1 bra L0;
L1: shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1; st.global.u32 [%a2], %r2;"""
    for order in ("together", "forward", "reverse"):
        assert (run(body, threads=32, order=order)[:32] == np.where(np.arange(32) < 16, 6, 5)).all()


# ---------------------------------------------------------------- asynchronous copies, barriers of transactions

COPY = AT + "cp.async.ca.shared.global [%r3], [%a2], 4; cp.async.commit_group;"


def test_a_copy_lands_when_it_is_waited_for():
    read = "ld.shared.u32 %r4, [%r3]; add.u32 %r4, %r4, 1; st.global.u32 [%a2+512], %r4;"
    assert (run(COPY + "cp.async.wait_group 0;" + read, declared=SHARED)[128:192] == np.arange(64) + 1).all()
    for wait in ("", "cp.async.wait_group 1;"):
        with pytest.raises(PTXFault, match="nothing has written"):
            run(COPY + wait + read, declared=SHARED)


def test_a_copy_of_less_leaves_zeros():
    body = (
        AT
        + "cp.async.ca.shared.global [%r3], [%a2], 4, 2; cp.async.wait_all; ld.shared.u32 %r4, [%r3]; st.global.u32 [%a2], %r4;"
    )
    assert (run(body, declared=SHARED, words=1 << 17, threads=32)[:32] == np.arange(32)).all()
    none = body.replace("4, 2;", "4, 0;").replace("[%a2], 4", "[%a2+2000000], 4")
    assert (run(none, declared=SHARED, threads=32)[:32] == 0).all()


INIT = """setp.ne.u32 %p0, %r0, 0; @!%p0 mbarrier.init.shared.b64 [B], 64;
@!%p0 fence.mbarrier_init.release.cluster; bar.sync 0;"""
BARRIERS = SHARED + ".shared .align 8 .b8 B[8];"


def test_threads_sleep_at_a_barrier_of_transactions_until_its_phase_is_over():
    body = (
        AT
        + INIT
        + """st.shared.u32 [%r3], %r0; mbarrier.arrive.shared.b64 %a3, [B];
L0: mbarrier.test_wait.parity.shared.b64 %p1, [B], 0; @!%p1 bra L0;
xor.b32 %r4, %r2, 252; add.u32 %r4, %r1, %r4; ld.shared.u32 %r5, [%r4]; st.global.u32 [%a2], %r5;"""
    )
    for order in ("together", "forward", "reverse"):
        assert (run(body, declared=BARRIERS, order=order)[:64] == 63 - np.arange(64)).all()
    with pytest.raises(PTXFault, match="does not end|waits for ever"):
        run(body.replace("B], 64", "B], 65"), declared=BARRIERS)
    for order in ("forward", "reverse"):
        with pytest.raises(PTXFault, match="nothing has written"):
            run(body.replace("[B], 0;", "[B], 1;"), declared=BARRIERS, order=order)


BULK = """
@%p0 bra L0; mbarrier.arrive.expect_tx.shared.b64 %a3, [B], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [S], [%a0], 256, [B];
L0: mbarrier.try_wait.parity.shared.b64 %p1, [B], 0; @!%p1 bra L0;
ld.shared.u32 %r5, [%r3]; add.u32 %r5, %r5, 7; st.global.u32 [%a2], %r5;"""


def test_a_bulk_copy_lands_when_its_barrier_is_waited_for():
    body = AT + INIT.replace("64;", "1;", 1) + BULK
    assert (run(body, declared=BARRIERS)[:64] == np.arange(64) + 7).all()
    with pytest.raises(PTXFault, match="does not end|waits for ever"):
        run(body.replace("[B], 256;", "[B], 272;"), declared=BARRIERS)
    with pytest.raises(PTXFault, match="nothing has waited for"):
        run(re.sub(r"L0: mb.*bra L0;", "L0:", body), declared=BARRIERS)


# ---------------------------------------------------------------- the fragments of mma, as the manual writes them


def a_index(kind: str, lane: int, i: int) -> tuple[int, int]:
    """Row and column of a_i: m16n8k16 of halves, m16n8k8 of tf32, m16n8k32 of bytes."""
    group, t = lane >> 2, lane % 4
    if kind == "f16":
        return group if i < 2 or 4 <= i < 6 else group + 8, t * 2 + (i & 1) if i < 4 else t * 2 + (i & 1) + 8
    if kind == "tf32":
        return group if i in (0, 2) else group + 8, t if i in (0, 1) else t + 4
    return group if i < 4 or 8 <= i < 12 else group + 8, t * 4 + (i & 3) if i < 8 else t * 4 + (i & 3) + 16


def b_index(kind: str, lane: int, i: int) -> tuple[int, int]:
    group, t = lane >> 2, lane % 4
    if kind == "f16":
        return t * 2 + (i & 1) if i < 2 else t * 2 + (i & 1) + 8, group
    if kind == "tf32":
        return t if i == 0 else t + 4, group
    return t * 4 + (i & 3) if i < 4 else t * 4 + (i & 3) + 16, group


def c_index(lane: int, i: int) -> tuple[int, int]:
    return (lane >> 2) if i < 2 else (lane >> 2) + 8, (lane % 4) * 2 + (i & 1)


def filled(matrix: np.ndarray, index, count: int) -> np.ndarray:
    """The registers of each lane: its elements, one after the other."""
    rows = [[matrix[index(lane, i)] for i in range(count)] for lane in range(32)]
    return np.ascontiguousarray(np.array(rows, matrix.dtype)).view(np.uint32).reshape(32, -1)


@pytest.mark.parametrize(
    "kind, opcode, k, store",
    [
        ("f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16, np.float16),
        ("tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 8, np.float32),
        ("s8", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 32, np.int8),
        ("s8", "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32", 32, np.int8),
    ],
)
def test_fragments_of_mma(kind: str, opcode: str, k: int, store: type):
    rng = np.random.default_rng(1)
    a, b = rng.integers(-9, 10, (16, k)).astype(store), rng.integers(-9, 10, (k, 8)).astype(store)
    if ".u8." in opcode:
        a = np.abs(a)
    c = rng.integers(-9, 10, (16, 8)).astype(np.int32 if kind == "s8" else np.float32)
    per = 4 // a.itemsize
    ra = filled(a, lambda lane, i: a_index(kind, lane, i), 4 * per)
    rb = filled(b, lambda lane, i: b_index(kind, lane, i), 2 * per)
    rc = filled(c, c_index, 4)
    memory = np.concatenate([ra, rb, rc, np.zeros((32, 6), np.uint32)], 1)
    loads = "".join(f"ld.global.u32 %r{1 + n}, [%a2+{4 * n}];" for n in range(10))
    d = "{%r7,%r8,%r9,%r10}"
    stores = "".join(f"st.global.u32 [%a2+{4 * n}], %r{7 + n};" for n in range(4))
    body = f"mul.wide.u32 %a1, %r0, 64; add.u64 %a2, %a0, %a1; {loads} {opcode} {d}, {{%r1,%r2,%r3,%r4}}, {{%r5,%r6}}, {d}; {stores}"
    text = f"{HEAD}.visible .entry k(.param .u64 out)\n{{\n{REGISTERS}\n{START}\n{body}\nret;\n}}\n"
    driver = PTXDriver("sm_90a")
    address = put(driver, memory)
    launch(driver, text, [address], 32)
    got = taken(driver, address, memory)[:, :4].view(c.dtype)
    want = a.astype(np.int64) @ b.astype(np.int64) + c.astype(np.int64)
    assert all(got[lane, i] == want[c_index(lane, i)] for lane in range(32) for i in range(4))


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_ldmatrix_and_stmatrix(trans: str):
    """Lane l has of matrix i the elements 2 (l % 4) and the next of row l / 4; transposed, of column l / 4."""
    fill = "mov.u32 %r1, S; shl.b32 %r2, %r0, 4; add.u32 %r3, %r1, %r2; shl.b32 %r4, %r0, 16; "
    fill += "".join(f"or.b32 %r{5 + n}, %r4, {n}; " for n in range(4)) + "st.shared.v4.u32 [%r3], {%r5,%r6,%r7,%r8};"
    load = f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%r9,%r10,%r11,%r12}}, [%r3];"
    out = "mul.wide.u32 %a1, %r0, 16; add.u64 %a2, %a0, %a1; st.global.v4.u32 [%a2], {%r9,%r10,%r11,%r12};"
    declared = ".shared .align 16 .b8 S[512];"
    got = run(fill + "bar.sync 0;" + load + out, 32, declared)[:128].reshape(32, 4)
    halves = np.array([[[n, row] for n in range(4)] for row in range(32)], np.uint16).reshape(4, 8, 8)
    for lane in range(32):
        for i in range(4):
            x, y = 2 * (lane % 4), lane // 4
            pair = (halves[i, x, y], halves[i, x + 1, y]) if trans else (halves[i, y, x], halves[i, y, x + 1])
            assert got[lane, i] == int(pair[0]) | int(pair[1]) << 16
    back = f"stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%r3], {{%r9,%r10,%r11,%r12}}; bar.sync 0; ld.shared.v4.u32 {{%r9,%r10,%r11,%r12}}, [%r3];"
    same = run(fill + "bar.sync 0;" + load + back + out, 32, declared)[:128].reshape(32, 4)
    assert (same == np.array([[row << 16 | n for n in range(4)] for row in range(32)])).all()


@pytest.mark.parametrize("order", ["together", "forward", "reverse", "threads"])
def test_a_loop_ends_however_many_threads_run_it_one_by_one(order: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("codegen.ptx.multiprocessor._MOST_JUMPS", 50)
    loop = "mov.u32 %r4, 0; L1: add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, 10; @%p0 bra L1; st.global.u32 [%a2], %r4;"
    assert (run(loop, 64, "", order)[:64] == 10).all()
    with pytest.raises(PTXFault, match="a loop does not end"):
        run(loop.replace("4, 10;", "4, 100;"), 64, "", order)
