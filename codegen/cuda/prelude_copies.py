"""The part of the prelude about copies to shared memory, transaction barriers, and what is Hopper's alone."""

from __future__ import annotations


def copy_async(size: int) -> str:
    cache = "cg" if size == 16 else "ca"
    return f"""
// {size} bytes to shared memory, while the thread goes on
DEVICE void copy_async_{size}(void* to, const void* from) {{
  asm volatile("cp.async.{cache}.shared.global [%0], [%1], {size};" :: "r"(shared_address(to)), "l"(from) : "memory");
}}
// the same, or zeros where not `really`
DEVICE void copy_async_{size}(void* to, const void* from, bool really) {{
  asm volatile("cp.async.{cache}.shared.global [%0], [%1], {size}, %2;"
               :: "r"(shared_address(to)), "l"(from), "r"(really ? {size} : 0) : "memory");
}}
"""


COPIES_AND_BARRIERS = r"""
=== commit_copies
DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
=== wait_copies
// until at most N groups of copies are under way
template <int N> DEVICE void wait_copies() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }
=== barrier_init: shared_address
DEVICE void barrier_init(unsigned long long* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
=== barrier_arrive: shared_address
DEVICE void barrier_arrive(unsigned long long* barrier) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" :: "r"(shared_address(barrier)) : "memory");
}
=== barrier_expect: shared_address
DEVICE void barrier_expect(unsigned long long* barrier, unsigned bytes) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }"
               :: "r"(shared_address(barrier)), "r"(bytes) : "memory");
}
=== barrier_arrive_after_copies: shared_address
DEVICE void barrier_arrive_after_copies(unsigned long long* barrier) {
  asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" :: "r"(shared_address(barrier)) : "memory");
}
=== barrier_wait: shared_address
// until the phase of this parity is over
DEVICE void barrier_wait(unsigned long long* barrier, unsigned parity) {
#if __CUDA_ARCH__ >= 900
#define TIR_WAIT "try_wait"  // sleeps in between
#else
#define TIR_WAIT "test_wait"
#endif
  asm volatile("{ .reg .pred over; again_%=: mbarrier." TIR_WAIT ".parity.shared.b64 over, [%0], %1; @!over bra again_%=; }"
               :: "r"(shared_address(barrier)), "r"(parity) : "memory");
}
=== copy_bulk: shared_address
// a copy to shared memory by the copy engine, whose bytes the barrier counts; sizes and addresses are multiples of 16
DEVICE void copy_bulk(void* to, const void* from, unsigned bytes, unsigned long long* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :: "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier)) : "memory");
}
=== barrier_arrive_cluster: shared_address
// at the barrier at the same place in another block of the cluster
DEVICE void barrier_arrive_cluster(unsigned long long* barrier, unsigned rank) {
  asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
               "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }"
               :: "r"(shared_address(barrier)), "r"(rank) : "memory");
}
=== fence_barrier_init
DEVICE void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
=== fence_proxy_async
// what this thread stored to shared memory is visible to the copy engine and to the tensor cores
DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
=== tensor_map
// how the copy engine sees a tensor in global memory; the driver makes it
struct alignas(64) tensor_map { unsigned long long words[16]; };
=== bulk_commit
DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
=== bulk_wait
// until at most N groups of bulk stores of this thread are under way
template <int N> DEVICE void bulk_wait() { asm volatile("cp.async.bulk.wait_group %0;" :: "n"(N) : "memory"); }
=== bulk_wait_read
// until all but N groups of bulk stores of this thread have read shared memory
template <int N> DEVICE void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(N) : "memory"); }
=== cluster_arrive
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
=== cluster_wait
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
=== set_registers
// more registers for each thread of the warpgroup, or fewer
template <int N, bool More> DEVICE void set_registers() {
  if constexpr (More) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N));
  else asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N));
}
=== wgmma_matrix: shared_address
// A matrix in shared memory as products of warpgroups take it: bytes between its parts, and the swizzle.
DEVICE unsigned long long wgmma_matrix(const void* p, unsigned leading, unsigned stride, unsigned swizzle) {
  const unsigned long long kind = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return (unsigned long long)((shared_address(p) & 0x3ffff) >> 4) | (unsigned long long)((leading & 0x3ffff) >> 4) << 16 |
         (unsigned long long)((stride & 0x3ffff) >> 4) << 32 | kind << 62;
}
=== wgmma_fence
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
=== wgmma_commit
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
=== wgmma_wait
// until at most N groups of products are under way
template <int N> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }
=== hold
// N registers that are used before this point, or after it: the compiler moves nothing that reads them across
template <int N> DEVICE void hold(float* r) {
  _Pragma("unroll") for (int i = 0; i < N; ++i) asm volatile("" : "+f"(r[i]) :: "memory");
}
template <int N> DEVICE void hold(unsigned* r) {
  _Pragma("unroll") for (int i = 0; i < N; ++i) asm volatile("" : "+r"(r[i]) :: "memory");
}
"""


def tensor_copies(rank: int) -> str:
    """Copies of boxes of a tensor of ``rank`` axes; PTX has the index along the innermost axis first."""
    ints = ", ".join(f"int i{k}" for k in range(rank))
    load = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    store = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"

    def indices(first: int) -> str:
        return "{" + ", ".join(f"%{first + k}" for k in range(rank)) + "}"

    given = ", ".join(f'"r"(i{k})' for k in reversed(range(rank)))
    return f"""
// the box of a tensor of {rank} axes at an index, whose bytes the barrier counts
DEVICE void load_box(void* to, const tensor_map& map, unsigned long long* barrier, {ints}) {{
  asm volatile("{load} [%0], [%1, {indices(3)}], [%2];"
               :: "r"(shared_address(to)), "l"(&map), "r"(shared_address(barrier)), {given} : "memory");
}}
// the same, in each block of the cluster that has a bit in the mask
DEVICE void load_box_multicast(
    void* to, const tensor_map& map, unsigned long long* barrier, unsigned mask, {ints}) {{
  asm volatile("{load}.multicast::cluster [%0], [%1, {indices(4)}], [%2], %3;"
               :: "r"(shared_address(to)), "l"(&map), "r"(shared_address(barrier)), "h"((unsigned short)mask), {given}
               : "memory");
}}
DEVICE void store_box(const tensor_map& map, const void* from, {ints}) {{
  asm volatile("{store} [%0, {indices(2)}], [%1];"
               :: "l"(&map), "r"(shared_address(from)), {given} : "memory");
}}
"""
