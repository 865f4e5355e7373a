"""Bulk copies and tensor maps of the PTX executor: boxes, swizzles, borders, reductions, and what is not waited for or fenced."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hopper_kernels import ORDERS, Map, run

import tir
from codegen.ptx.syntax import PTXFault

LOAD_2D = """
KERNEL k(const __grid_constant__ Map map, u32* out, const int* at) {
  __shared__ __align__(1024) u32 s[BYTES / 4];
  __shared__ u64 b;
  if (threadIdx.x == 0) { init(&b, 1); fence_init(); }
  __syncthreads();
  if (threadIdx.x == 0) { expect(&b, BYTES); load2(s, &map, &b, at[0], at[1]); }
  wait(&b, 0);
  for (int i = threadIdx.x; i < BYTES / 4; i += blockDim.x) out[i] = s[i];
}"""


def box_of(
    array: np.ndarray, at: tuple[int, ...], box: tuple[int, ...], steps: tuple[int, ...] | None = None
) -> np.ndarray:
    """The box by loops over its elements, zero outside of the array."""
    steps = steps or (1,) * len(box)
    made = np.zeros([-(-n // s) for n, s in zip(box, steps)], array.dtype)
    for index in np.ndindex(*made.shape):
        where = tuple(a + i * s for a, i, s in zip(at, index, steps))
        if all(0 <= w < n for w, n in zip(where, array.shape)):
            made[index] = array[where]
    return made


def swizzled_rows(box: np.ndarray, swizzle: int) -> np.ndarray:
    """The bytes of shared memory, by the figures of the manual: in a row of 128 bytes, the chunk c of 16 bytes stands where
    chunk c XOR (row % 8) would (128B); of 64B, pairs of rows of 64 bytes share a line, c XOR (line % 4); of 32B by line % 2."""
    data = np.ascontiguousarray(box).view(np.uint8).reshape(-1, 16)
    made = np.empty_like(data)
    per_row, lines = swizzle // 16, 8  # chunks in a row of the box; a line has 8 chunks
    for n in range(len(data)):
        row, c = divmod(n, per_row)
        line = row * swizzle // 128
        low = row * per_row % lines  # where the row begins in its line
        turned = c ^ (line % (swizzle // 16))
        made[line * 8 + low + turned] = data[n]
    return made.ravel()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("at", [(0, 0), (-3, 5), (30, 56), (100, 0), (-8, -8)])
def test_a_box_is_loaded_with_zeros_out_of_bounds(at: tuple[int, int], order: str):
    array = np.arange(40 * 64, dtype=np.float32).reshape(40, 64)
    out = np.zeros(8 * 16, np.uint32)
    where = np.array([at[1], at[0]], np.int32)
    found = run(LOAD_2D.replace("BYTES", "512"), [array, out, where], [Map(0, (8, 16)), 1, 2], 32, order=order)[1]
    assert (found.view(np.float32).reshape(8, 16) == box_of(array, at, (8, 16))).all()


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_swizzles(swizzle: int):
    array = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    box = (16, swizzle // 2)
    out, where = np.zeros(16 * swizzle // 4, np.uint32), np.array([0, 8], np.int32)
    source = LOAD_2D.replace("BYTES", str(16 * swizzle))
    found = run(source, [array, out, where], [Map(0, box, swizzle), 1, 2], 32)[1]
    assert (found.view(np.uint8) == swizzled_rows(box_of(array, (8, 0), box), swizzle)).all()


def test_element_strides_take_each_second_row():
    array = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
    out, where = np.zeros(4 * 8, np.uint32), np.array([4, 3], np.int32)
    given = [Map(0, (8, 8), steps=(2, 1)), 1, 2]
    found = run(LOAD_2D.replace("BYTES", "128"), [array, out, where], given, 32)[1]
    assert (found.view(np.float32).reshape(4, 8) == box_of(array, (3, 4), (8, 8), (2, 1))).all()


@pytest.mark.parametrize("rank", [1, 3, 4, 5])
def test_boxes_of_every_rank(rank: int):
    shape, box, at = (3, 4, 5, 6, 8)[5 - rank :], (2, 3, 2, 5, 4)[5 - rank :], (2, -1, 4, 3, 2)[5 - rank :]
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape) + 1
    count = int(np.prod(box))
    names = ", ".join(f"%{k + 2}" for k in range(rank))
    values = ", ".join(f'"r"({x})' for x in at[::-1])
    copy = (
        f'asm volatile("cp.async.bulk.tensor.{rank}d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {{{names}}}], '
        f'[%{rank + 2}];" :: "r"(sa(s)), "l"(&map), {values}, "r"(sa(&b)) : "memory");'
    )
    source = LOAD_2D.replace("load2(s, &map, &b, at[0], at[1]);", copy).replace("BYTES", str(4 * count))
    found = run(source, [array, np.zeros(count, np.int32), np.zeros(1, np.int32)], [Map(0, box), 1, 2], 32)[1]
    assert (found.reshape(box) == box_of(array, at, box)).all()


STORE_2D = """
KERNEL k(const __grid_constant__ Map map, const int* at) {
  __shared__ __align__(1024) float s[8 * 32];
  for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x) s[SWIZZLED] = i + 1;
  fence_proxy();
  __syncthreads();
  if (threadIdx.x == 0) { store2(s, &map, at[0], at[1]); commit(); was_read(); }
}"""
TURNED = "(i / 4 ^ i / 32) * 4 + i % 4"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("swizzle, index", [(0, "i"), (128, TURNED)])
def test_a_store_leaves_what_is_out_of_bounds(swizzle: int, index: str, order: str):
    array, at = np.zeros((12, 48), np.float32), (-2, 20)
    source = STORE_2D.replace("SWIZZLED", index)
    found = run(source, [array, np.array(at[::-1], np.int32)], [Map(0, (8, 32), swizzle), 1], 64, order=order)[0]
    want, box = array.copy(), np.arange(1, 257, dtype=np.float32).reshape(8, 32)
    want[0:6, 20:48] = box[2:8, 0:28]
    assert (found == want).all()


@pytest.mark.parametrize(
    "what, dtype, want", [("add.f32", np.float32, 7 + 3), ("max.s32", np.int32, 7), ("add.noftz.f16", np.float16, 10)]
)
def test_a_reduction_in_global_memory(what: str, dtype: type, want: float):
    kind = {"float32": "float", "int32": "int", "float16": "u16"}[np.dtype(dtype).name]
    three = int(np.array([3], dtype).view({2: np.uint16, 4: np.uint32}[np.dtype(dtype).itemsize])[0])
    source = f"""
KERNEL k({kind}* out) {{
  __shared__ __align__(128) {kind} s[32];
  s[threadIdx.x] = {"3" if kind != "u16" else three};
  fence_proxy();
  __syncwarp();
  if (threadIdx.x == 0) {{
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.{what} [%0], [%1], %2;"
      :: "l"(out), "r"(sa(s)), "r"((u32)sizeof(s)) : "memory");
    commit(); stored();
  }}
}}"""
    assert (run(source, [np.full(32, 7, dtype)], [0], 32)[0] == want).all()


def test_bytes_go_both_ways_without_a_map():
    source = """
KERNEL k(const int* in, int* out) {
  __shared__ __align__(128) int s[64];
  __shared__ u64 b;
  if (threadIdx.x == 0) { init(&b, 1); fence_proxy(); }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(&b, 256);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
      :: "r"(sa(s)), "l"(in), "r"(sa(&b)) : "memory");
  }
  wait(&b, 0);
  s[threadIdx.x] += 5;
  fence_proxy();
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(out), "r"(sa(s)) : "memory");
    commit(); was_read();
  }
}"""
    given = np.arange(64, dtype=np.int32)
    for order in ORDERS:
        assert (run(source, [given, np.zeros_like(given)], [0, 1], 64, order=order)[1] == given + 5).all()


@pytest.mark.parametrize("fence", ["before", "behind"])
def test_a_proxy_fence_before_or_behind_the_barrier_is_enough(fence: str):
    source = STORE_2D.replace("SWIZZLED", "i")
    if fence == "behind":
        source = source.replace("fence_proxy();", "").replace("{ store2", "{ fence_proxy(); store2")
    given = [np.zeros((8, 32), np.float32), np.zeros(2, np.int32)]
    for order in ORDERS:
        assert run(source, given, [Map(0, (8, 32)), 1], 64, order=order)[0][7, 31] == 256


@pytest.mark.parametrize("dtype, kind", [(np.float32, "float"), (np.int32, "int"), (np.float16, "__half")])
@pytest.mark.parametrize("what, want", [("add", 7 + 3), ("min", 3), ("max", 7)])
def test_a_reduction_of_a_box_has_the_type_of_its_map(dtype: type, kind: str, what: str, want: int):
    three = int(np.array([3], dtype).view(f"uint{8 * np.dtype(dtype).itemsize}")[0])
    source = f"""
KERNEL k(const __grid_constant__ Map map) {{
  __shared__ __align__(128) {"u16" if kind == "__half" else "u32"} s[4 * 16];
  for (int i = threadIdx.x; i < 64; i += 32) s[i] = {three};
  fence_proxy();
  __syncwarp();
  if (threadIdx.x == 0) {{
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.{what}.tile.bulk_group [%0, {{%1, %2}}], [%3];"
      :: "l"(&map), "r"(8), "r"(-1), "r"(sa(s)) : "memory");
    commit(); stored();
  }}
}}"""
    array = np.full((8, 32), 7, dtype)
    found, expected = run(source, [array], [Map(0, (4, 16))], 32)[0], array.copy()
    expected[0:3, 8:24] = want
    assert (found == expected).all()


BETWEEN = """
KERNEL __cluster_dims__(2, 1, 1) k(const int* in, int* out) {
  __shared__ __align__(128) int s[64], t[64];
  __shared__ u64 b[2];
  u32 rank = cluster_rank();
  s[threadIdx.x] = 10 * threadIdx.x + rank; t[threadIdx.x] = 5;
  if (threadIdx.x == 0) { init(&b[0], 1); init(&b[1], 1); fence_init(); expect(&b[0], 256); expect(&b[1], 256); }
  fence_proxy();
  cluster_sync();
  if (threadIdx.x == 0) {
    asm volatile("COPY.shared::cluster.shared::cta.mbarrier::complete_tx::bytesREDUCED [%0], [%1], 256, [%2];"
      :: "r"(mapped(t, rank ^ 1)), "r"(sa(s)), "r"(mapped(&b[0], rank ^ 1)) : "memory");
  }
  wait(&b[0], 0);
  int first = t[threadIdx.x];
  cluster_sync();
  if (threadIdx.x == 0 && rank == 0) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;"
      :: "r"(sa(t)), "l"(in), "r"(sa(&b[1])), "h"((u16)3) : "memory");
  }
  wait(&b[1], 0);
  out[blockIdx.x * 64 + threadIdx.x] = first + t[threadIdx.x];
  cluster_sync();
}"""


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("copy, reduced, base", [("cp.async.bulk", "", 0), ("cp.reduce.async.bulk", ".add.s32", 5)])
def test_bytes_between_blocks_and_to_all_of_a_cluster(copy: str, reduced: str, base: int, order: str):
    source = BETWEEN.replace("COPY", copy).replace("REDUCED", reduced)
    given = 1000 * np.arange(64, dtype=np.int32)
    found = run(source, [given, np.zeros(128, np.int32)], [0, 1], 64, (2, 1, 1), order)[1].reshape(2, 64)
    for rank in range(2):
        assert (found[rank] == given + 10 * np.arange(64) + (1 - rank) + base).all()


def test_what_a_thread_has_written_needs_a_fence_before_a_copy_writes_it_again():
    source = LOAD_2D.replace("BYTES", "512").replace(
        "if (threadIdx.x == 0) { init", "s[threadIdx.x] = 0;\nif (threadIdx.x == 0) { init"
    )
    array, out, where = np.ones((40, 64), np.float32), np.zeros(128, np.uint32), np.zeros(2, np.int32)
    for order in ORDERS:
        with pytest.raises(PTXFault, match="without fence.proxy.async"):
            run(source, [array, out, where], [Map(0, (8, 16)), 1, 2], 32, order=order)
        run(
            source.replace("__sync", "fence_proxy(); __sync"),
            [array, out, where],
            [Map(0, (8, 16)), 1, 2],
            32,
            order=order,
        )


# ---------------------------------------------------------------- planted faults

WAIT = r"wait\(&b, 0\);"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "pattern, new, message",
    [
        (WAIT, "", "is read while a copy begun at PTX line .* which nothing has waited for, writes it"),
        (
            r"expect\(&b, 512\);",
            "expect(&b, 528);",
            r"waits for ever .*the barrier at .*phase 0, with 0 of 1 arrivals and 16 bytes",
        ),
        (r"expect\(&b, 512\);", "", r"waits for ever .*phase 0, with 1 of 1 arrivals and -512 bytes"),
        (WAIT, "wait(&b, 1);", "which nothing has waited for, writes it"),
        (WAIT, "wait(&b, 0); wait(&b, 1);", "waits for ever .*in phase 1, with 1 of 1 arrivals and 0 bytes"),
        (r"wait\(&b, 0\);", "wait(&b, 2);", "a parity is 0 or 1"),
        (r"fence_init\(\);", "", "initialised without fence.mbarrier_init"),
        (r"init\(&b, 1\)", "init(&b, 2)", "with 1 of 2 arrivals and 0 bytes"),
        (r"load2\(s,", "load2(s + 4,", "no multiple of 128"),
    ],
)
def test_planted_faults_of_loads(pattern: str, new: str, message: str, order: str):
    source = re.sub(pattern, new, LOAD_2D.replace("BYTES", "512"))
    array, out, where = np.zeros((40, 64), np.float32), np.zeros(128, np.uint32), np.zeros(2, np.int32)
    with pytest.raises(PTXFault, match=message):
        run(source, [array, out, where], [Map(0, (8, 16)), 1, 2], 32, order=order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "pattern, new, message",
    [
        (r"fence_proxy\(\);", "", "which a thread has written, without fence.proxy.async between"),
        (r"was_read\(\);", "", "has read its shared memory, as cp.async.bulk.wait_group.read would show"),
        (r"commit\(\);", "", "has read its shared memory"),
        (r"commit\(\); was_read\(\);", "commit(); s[5] = 0; was_read();", "is written while a bulk store"),
        (r"i < 8 \* 32;", "i < 7 * 32;", "which nothing has written"),
        (r"__syncthreads\(\);", "", "without fence.proxy.async|nothing has written|is written while"),
    ],
)
def test_planted_faults_of_stores(pattern: str, new: str, message: str, order: str):
    source = re.sub(pattern, new, STORE_2D.replace("SWIZZLED", "i"))
    if pattern.startswith("__sync") and order in ("together", "reverse"):
        return  # the thread that stores comes last
    with pytest.raises(PTXFault, match=message):
        run(source, [np.zeros((8, 32), np.float32), np.zeros(2, np.int32)], [Map(0, (8, 32)), 1], 64, order=order)


@pytest.mark.parametrize(
    "shape, box, swizzle, message",
    [
        ((8, 30), (8, 8), 0, "a stride is a multiple of 16 bytes"),
        ((8, 32), (8, 3), 0, "no multiple of 16"),
        ((8, 32), (8, 16), 128, "the swizzle 128"),
        ((8, 32), (257, 32), 0, "1 to 256"),
        ((8, 32), (8,), 0, "a number for each axis"),
        ((8, 32), (8, 32), 48, "0, 32, 64 or 128"),
    ],
)
def test_a_map_that_the_driver_refuses(shape: tuple[int, ...], box: tuple[int, ...], swizzle: int, message: str):
    with pytest.raises(tir.RunError, match=message):
        run(
            STORE_2D.replace("SWIZZLED", "i"),
            [np.zeros(shape, np.float32), np.zeros(2, np.int32)],
            [Map(0, box, swizzle), 1],
        )
