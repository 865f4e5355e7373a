"""Kernels for Hopper written by hand in CUDA C with inline PTX, compiled by NVRTC, run on the PTX executor."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from codegen.cuda import nvrtc
from codegen.ptx.driver import PTXDriver

ORDERS = ("together", "forward", "reverse", "threads")
PRELUDE = r"""
typedef unsigned u32; typedef unsigned long long u64; typedef unsigned short u16; typedef unsigned char u8;
struct alignas(64) Map { u64 opaque[16]; };
__device__ u32 sa(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ void init(u64* b, u32 n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(sa(b)), "r"(n) : "memory"); }
__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ void fence_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void arrive(u64* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(sa(b)) : "memory"); }
__device__ void expect(u64* b, u32 n) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(sa(b)), "r"(n) : "memory");
}
__device__ void wait(u64* b, u32 parity) {
  asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra DONE;\n"
    "bra LAB_WAIT;\nDONE:\n}" :: "r"(sa(b)), "r"(parity) : "memory");
}
__device__ void load1(void* to, const Map* m, u64* b, int x) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
    :: "r"(sa(to)), "l"(m), "r"(x), "r"(sa(b)) : "memory");
}
__device__ void load2(void* to, const Map* m, u64* b, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
    :: "r"(sa(to)), "l"(m), "r"(x), "r"(y), "r"(sa(b)) : "memory");
}
__device__ void load3(void* to, const Map* m, u64* b, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
    :: "r"(sa(to)), "l"(m), "r"(x), "r"(y), "r"(z), "r"(sa(b)) : "memory");
}
__device__ void store2(const void* from, const Map* m, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
    :: "l"(m), "r"(x), "r"(y), "r"(sa(from)) : "memory");
}
__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ void stored() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ void was_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ u32 cluster_rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ u32 mapped(const void* p, u32 rank) {
  u32 r; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(sa(p)), "r"(rank)); return r;
}
#define KERNEL extern "C" __global__ void
"""


@functools.cache
def ptx(source: str) -> str:
    return nvrtc.compile_ptx(PRELUDE + source, "sm_90a")


class Map:
    """A tensor map over an array: ``box`` outermost first."""

    def __init__(
        self, array: int, box: Sequence[int], swizzle: int = 0, steps: Sequence[int] | None = None, shape: Any = None
    ):
        self.array, self.box, self.swizzle, self.steps, self.shape = array, tuple(box), swizzle, steps, shape


def encoded(driver: PTXDriver, given: Map, array: np.ndarray, address: int) -> bytes:
    strides = tuple(s // array.itemsize for s in array.strides)
    shape = given.shape or array.shape
    spec = SimpleNamespace(
        dtype=array.dtype.name,
        shape=shape,
        strides=strides,
        box=given.box,
        swizzle=given.swizzle,
        element_strides=given.steps,
    )
    return driver.encode_tensor_map(spec, address)


def run(
    source: str,
    arrays: Sequence[np.ndarray],
    arguments: Sequence[Any],
    threads: int = 128,
    grid: tuple[int, int, int] = (1, 1, 1),
    order: str = "together",
    shared: int = 0,
    cluster: tuple[int, int, int] | None = None,
    changed: Any = lambda text: text,
) -> list[np.ndarray]:
    """What the arrays are after kernel ``k`` of ``source`` (its PTX ``changed``) ran. Arguments: the number of an array, for
    its address, or a :class:`Map`."""
    driver = PTXDriver("sm_90a", order)
    addresses = [driver.allocate(a.nbytes) for a in arrays]
    for address, array in zip(addresses, arrays):
        driver.copy_in(address, np.ascontiguousarray(array).ctypes.data, array.nbytes)
    packed: list[Any] = []
    for given in arguments:
        if isinstance(given, Map):
            data = encoded(driver, given, arrays[given.array], addresses[given.array])
            packed.append(ctypes.create_string_buffer(data, 128))
        else:
            packed.append(ctypes.c_uint64(addresses[given]))
    slots = (ctypes.c_void_p * len(packed))(*(ctypes.addressof(x) for x in packed))
    function = driver.function(driver.load(changed(ptx(source)).encode()), "k", shared)
    driver.launch(function, grid, (threads, 1, 1), shared, 0, ctypes.addressof(slots), cluster)
    made = [np.empty_like(np.ascontiguousarray(a)) for a in arrays]
    for address, array in zip(addresses, made):
        driver.copy_out(array.ctypes.data, address, array.nbytes)
    return made
