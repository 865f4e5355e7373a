"""wgmma of the PTX executor: types, layouts of shared memory by the tables of the ISA, fragments, and what is not waited for."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import ORDERS, run

from codegen.ptx.report import Row
from codegen.ptx.syntax import PTXError, PTXFault

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
TYPES = {"f16": np.float16, "bf16": BF16, "tf32": np.float32, "e4m3": E4M3, "e5m2": E5M2, "s8": np.int8, "u8": np.uint8}
KEY = {0: 0, 128: 1, 64: 2, 32: 3}


def place(row: int, k: int, item: int, rows: int, depth: int, swizzle: int, transposed: bool) -> int:
    """Where the first byte of an element is, in a matrix of ``rows`` by ``depth`` as the figures of the ISA draw it: 8 lines of
    ``swizzle`` bytes (16 without one) make an atom. K-major: a line is a row. MN-major: a line is a k. Atoms follow first along
    the axis of the lines, then along the other."""
    line = swizzle or 16
    along, across, length = (row, k, depth) if transposed else (k, row, rows)
    atom, byte = divmod(along * item, line)
    atoms = (length + 7) // 8
    at = (atom * atoms + across // 8) * 8 * line + across % 8 * line + byte
    turned = {0: 0, 32: at // 128 % 2, 64: at // 128 % 4, 128: at // 128 % 8}[swizzle]
    return at ^ turned * 16


def descriptor(rows: int, depth: int, item: int, swizzle: int, transposed: bool) -> int:
    """The upper bits: leading and stride byte offsets of that layout, and the swizzle."""
    line = swizzle or 16
    atom = 8 * line
    along = (depth if transposed else rows) // 8 * atom  # from one atom to the next across
    leading, stride = along, atom
    if not swizzle and transposed:
        leading, stride = atom, along
    return KEY[swizzle] << 62 | stride >> 4 << 32 | leading >> 4 << 16


def laid_out(matrix: np.ndarray, swizzle: int, transposed: bool) -> np.ndarray:
    rows, depth = matrix.shape
    item = matrix.itemsize
    data = np.ascontiguousarray(matrix).view(np.uint8).reshape(rows, depth, item)
    size = 1 + max(
        place(r, k, item, rows, depth, swizzle, transposed) + item - 1 for r in range(rows) for k in range(depth)
    )
    made = np.zeros(-(-size // 1024) * 1024, np.uint8)
    for r in range(rows):
        for k in range(depth):
            at = place(r, k, item, rows, depth, swizzle, transposed)
            made[at : at + item] = data[r, k]
    return made


def product(shape: str, kd: str, ka: str, kb: str, tail: str, a: str = "", count: int = 0) -> str:
    """A kernel that loads A and B as they lie in global memory, multiplies once, and stores its registers."""
    n = int(re.sub(r"m64n(\d+)k.*", r"\1", shape))
    count = n // 2 if kd != "f16" else n // 4
    kind, letter = ("float", "f") if kd == "f32" else ("u32", "r")
    outs = ", ".join(f'"+{letter}"(d[{k}])' for k in range(count))
    regs = ", ".join(f"%{k}" for k in range(count))
    first = "{%" + ", %".join(str(count + 2 + k) for k in range(4)) + "}" if a else f"%{count}"
    more = ', "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3])' if a else ""
    return f"""
KERNEL k(const uint4* a, const uint4* b, {kind}* out, const u64* descriptors, const u32* registers) {{
  __shared__ __align__(1024) uint4 sa_[SIZE_A / 16];
  __shared__ __align__(1024) uint4 sb_[SIZE_B / 16];
  for (int i = threadIdx.x; i < SIZE_A / 16; i += 128) sa_[i] = a[i];
  for (int i = threadIdx.x; i < SIZE_B / 16; i += 128) sb_[i] = b[i];
  {kind} d[{count}]; u32 ra[4];
  for (int i = 0; i < {count}; ++i) d[i] = out[threadIdx.x * {count} + i];
  for (int i = 0; i < 4; ++i) ra[i] = registers[threadIdx.x * 4 + i];
  u64 da = descriptors[0] | sa(sa_) >> 4, db = descriptors[1] | sa(sb_) >> 4;
  fence_proxy();
  __syncthreads();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, SCALE, 0;\\n"
    "wgmma.mma_async.sync.aligned.{shape}.{kd}.{ka}.{kb} {{{regs}}}, {first}, %{count + 1}, p{tail};\\n}}"
    : {outs} : "l"(da), "l"(db){more});
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < {count}; ++i) asm volatile("" : "+{letter}"(d[i]) :: "memory");
  for (int i = 0; i < {count}; ++i) out[threadIdx.x * {count} + i] = d[i];
}}"""


def d_place(kd: str, t: int, r: int) -> tuple[int, int]:
    """Row and column of element r of thread t, by the figure of D."""
    group, inside = t % 32 // 4, t % 4
    if kd == "f16":  # r counts halves
        return 16 * (t // 32) + group + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * inside + r % 2
    return 16 * (t // 32) + group + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * inside + r % 2


def a_place(item: int, t: int, i: int) -> tuple[int, int]:
    """Row and column of element i of A in registers, by the figures: registers 0 and 2 have row g, 1 and 3 row g + 8."""
    e = 4 // item
    register, j = divmod(i, e)
    return 16 * (t // 32) + t % 32 // 4 + 8 * (register % 2), (register // 2) * 4 * e + t % 4 * e + j


def values(rng: np.random.Generator, shape: tuple[int, int], kind: str) -> np.ndarray:
    low = 0 if kind == "u8" else -8
    return rng.integers(low, 9, shape).astype(np.float32).astype(TYPES[kind])


def outcome(
    n: int, kd: str, ka: str, kb: str, swizzles: tuple[int, int] = (128, 128), turned: tuple[bool, bool] = (False, False),
    scales: tuple[int, int] = (1, 1), keeps: bool = True, registers: bool = False, order: str = "together", changed=lambda s: s,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """What the kernel gives, and A B + D by NumPy."""
    rng = np.random.default_rng(n)
    depth = 32 // np.dtype(TYPES[ka]).itemsize
    a, b = values(rng, (64, depth), ka), values(rng, (n, depth), kb)
    store = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[kd]
    d = rng.integers(-9, 10, (64, n)).astype(store)
    each = n // 2
    owners = [[d_place(kd, t, r) for r in range(each)] for t in range(128)]
    held = np.array([[d[p] for p in row] for row in owners], store)
    ra = np.array([[a[a_place(a.itemsize, t, i)] for i in range(16 // a.itemsize)] for t in range(128)], a.dtype)
    tail = "" if kd == "s32" else f", {scales[0]}, {scales[1]}"
    if ka in ("f16", "bf16"):
        tail += f", {int(turned[1])}" if registers else f", {int(turned[0])}, {int(turned[1])}"
    # a matrix of one instruction is as deep as 32 bytes: with a longer line the rest of it is another instruction's
    wide = [max(s, 32) // 32 if not t else 1 for s, t in zip(swizzles, turned)]
    padded = [np.concatenate([x, *[values(rng, x.shape, k)] * (w - 1)], 1) for x, w, k in zip((a, b), wide, (ka, kb))]
    lines = [laid_out(x, s, t) for x, s, t in zip(padded, swizzles, turned)]
    bits = [descriptor(*x.shape, x.itemsize, s, t) for x, s, t in zip(padded, swizzles, turned)]
    source = product(f"m64n{n}k{depth}", kd, ka, kb, tail, "registers" if registers else "")
    source = source.replace("SIZE_A", str(len(lines[0]))).replace("SIZE_B", str(len(lines[1])))
    source = changed(source.replace("SCALE", str(int(keeps))))
    arrays = [*lines, held.view(np.uint32), np.array(bits, np.uint64), np.ascontiguousarray(ra).view(np.uint32)]
    found = run(source, arrays, list(range(5)), 128, order=order)[2].view(store)
    full = scales[0] * scales[1] * (a.astype(np.float64) @ b.astype(np.float64).T) + keeps * d
    want = np.array([[full[p] for p in row] for row in owners]).astype(store)
    return found.reshape(128, each), want


@pytest.mark.parametrize(
    "kd, ka, kb, n",
    [
        ("f32", "f16", "f16", 64), ("f16", "f16", "f16", 8), ("f32", "bf16", "bf16", 24), ("f32", "tf32", "tf32", 16),
        ("f32", "e4m3", "e5m2", 32), ("f16", "e5m2", "e4m3", 16), ("s32", "s8", "s8", 32), ("s32", "u8", "s8", 48),
    ],
)  # fmt: skip
def test_types(kd: str, ka: str, kb: str, n: int):
    found, want = outcome(n, kd, ka, kb)
    assert (found == want).all()
    in_registers, want = outcome(n, kd, ka, kb, registers=True)
    assert (in_registers == want).all()


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_layouts_of_shared_memory(swizzle: int, turned: tuple[bool, bool]):
    found, want = outcome(64, "f32", "f16", "f16", (swizzle, swizzle), turned)
    assert (found == want).all()


@pytest.mark.parametrize("ka, n", [("tf32", 24), ("e4m3", 24), ("s8", 24)])
def test_layouts_of_other_sizes(ka: str, n: int):
    for swizzle in (0, 32, 64):
        found, want = outcome(n, "s32" if ka == "s8" else "f32", ka, ka, (swizzle, 128))
        assert (found == want).all()


def test_the_widest_product():
    found, want = outcome(256, "f32", "bf16", "bf16", (128, 128), (False, True))
    assert (found == want).all()


@pytest.mark.parametrize("scales", [(-1, 1), (1, -1), (-1, -1)])
def test_signs_of_a_and_b(scales: tuple[int, int]):
    found, want = outcome(8, "f32", "f16", "f16", scales=scales)
    assert (found == want).all()


def test_without_scale_d_the_accumulators_are_not_read():
    found, want = outcome(8, "f32", "f16", "f16", keeps=False)
    assert (found == want).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "pattern, new, message",
    [
        (
            r"wgmma.wait_group.sync.aligned 0;",
            "",
            "an accumulator is used .* which wgmma.wait_group has not waited for",
        ),
        (r"wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;", "an accumulator is used"),
        (r"wgmma.commit_group.sync.aligned;", "", "an accumulator is used"),
        (r"wgmma.fence.sync.aligned;", "", "without wgmma.fence"),
        (r"fence_proxy\(\);", "", "which a thread has written, without fence.proxy.async"),
        (
            r"i < \d+ / 16; i \+= 128\) sb_",
            "i < 16; i += 128) sb_",
            "to global memory goes of shared memory, read .*wgmma",
        ),
        (
            r'asm volatile\("wgmma.commit',
            'sb_[threadIdx.x] = b[0]; asm volatile("wgmma.commit',
            "is written while a product",
        ),
        (r"\| sa\(sb_\) >> 4", "| (sa(sb_) + 128) >> 4", "begin in the first line of their pattern"),
    ],
)
def test_planted_faults(pattern: str, new: str, message: str, order: str):
    def changed(source: str) -> str:
        made = re.sub(pattern, lambda m: new, source)
        assert made != source
        return made

    with pytest.raises(PTXFault, match=message):
        outcome(64, "f32", "f16", "f16", order=order, changed=changed)


def test_a_register_of_a_is_not_written_before_the_wait():
    changed = 'for (int i = 0; i < 4; ++i) asm volatile("mov.u32 %0, 0;" : "+r"(ra[i]));'
    right = 'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");'
    with pytest.raises(PTXFault, match="a register of A is written .* while it belongs to the product begun"):
        outcome(8, "f32", "f16", "f16", registers=True, changed=lambda s: s.replace(right, changed + right))
    found, want = outcome(8, "f32", "f16", "f16", registers=True, changed=lambda s: s.replace(right, right + changed))
    assert (found == want).all()


def test_a_descriptor_that_nothing_has_written():
    with pytest.raises(PTXFault, match="a product is decided by a value of shared memory"):
        outcome(8, "f32", "f16", "f16", changed=lambda s: s.replace(
            "fence_proxy();", "__shared__ volatile u64 none; if (a == b) none = 1; db = none; fence_proxy();"))  # fmt: skip


def test_a_warpgroup_that_is_not_whole_waits_for_ever():
    with pytest.raises(PTXFault, match="waits for ever .*wgmma.mma_async"):
        outcome(
            8,
            "f32",
            "f16",
            "f16",
            changed=lambda s: s.replace("__syncthreads();", "__syncthreads(); if (threadIdx.x >= 96) return;"),
        )


def test_products_are_counted_as_those_of_tensor_cores():
    row = Row("k", (1, 1, 1), (128, 1, 1), 0, {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16": 128, "mov.u32": 3})
    assert row.kinds()["tensor cores"] == 128 and row.kinds()["others"] == 3


def test_forms_that_the_isa_does_not_have():
    for form in ("m64n12k16.f32.f16.f16", "m64n8k32.f32.f16.f16", "m64n8k16.f16.bf16.bf16", "m64n8k16.f32.f16.bf16",
                 "m128n8k16.f32.f16.f16", "m64n16k16.f32.f16.f16"):  # fmt: skip
        with pytest.raises(PTXError, match="wgmma.mma_async"):
            outcome(8, "f32", "f16", "f16", changed=lambda s: s.replace("m64n8k16.f32.f16.f16", form))
