"""A gemm for Hopper written by hand: a ring of stages filled by a producer warp, two consumer warpgroups, clusters with
multicast; right in every order, and each fault planted in it is found."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hopper_kernels import ORDERS, Map, run

from codegen.ptx.syntax import PTXFault

N = 64  # columns of a tile
COUNT = N // 2
OUTS = ", ".join(f'"+f"(d[{k}])' for k in range(COUNT))
NAMES = ", ".join(f"%{k}" for k in range(COUNT))
WGMMA = f"""
__device__ void multiply(float* d, u64 a, u64 b, int keeps) {{
  asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{COUNT + 2}, 0;\\n"
    "wgmma.mma_async.sync.aligned.m64n{N}k16.f32.f16.f16 {{{NAMES}}}, %{COUNT}, %{COUNT + 1}, p, 1, 1, 0, 0;\\n}}"
    : {OUTS} : "l"(a), "l"(b), "r"(keeps));
}}
__device__ void hold(float* d) {{
  for (int i = 0; i < {COUNT}; ++i) asm volatile("" : "+f"(d[i]) :: "memory");
}}
__device__ void finish(float* d) {{
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  hold(d);
}}
"""
GEMM = (
    WGMMA
    + r"""
#define STAGES 3
__device__ u64 matrix(const void* p) { return u64(1) << 62 | u64(1024 >> 4) << 32 | sa(p) >> 4; }
KERNEL k(const __grid_constant__ Map A, const __grid_constant__ Map B, const __grid_constant__ Map C, const int* depth) {
  extern __shared__ __align__(1024) char s[];
  __shared__ u64 full[STAGES], empty[STAGES];
  char* a = s; char* b = s + STAGES * 128 * 128;
  int steps = depth[0] / 64, row = blockIdx.x * 128, column = blockIdx.y * N;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) { init(&full[i], 1); init(&empty[i], 2 * CLUSTER); }
    fence_init();
  }
  cluster_sync();
  __syncthreads();
  if (threadIdx.x >= 256) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 256) {
      for (int k = 0; k < steps; ++k) {
        int i = k % STAGES;
        wait(&empty[i], k / STAGES % 2 ^ 1);
        expect(&full[i], 128 * 128 + N * 128);
        load2(a + i * 128 * 128, &A, &full[i], k * 64, row);
        LOAD_B
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    int half = threadIdx.x / 128;
    float d[N / 2];
    for (int i = 0; i < N / 2; ++i) d[i] = 0;
    for (int k = 0; k < steps; ++k) {
      int i = k % STAGES;
      wait(&full[i], k / STAGES % 2);
      hold(d);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      for (int j = 0; j < 4; ++j)
        multiply(d, matrix(a + i * 128 * 128 + half * 64 * 128 + 32 * j), matrix(b + i * N * 128 + 32 * j), 1);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      finish(d);
      if (threadIdx.x % 128 < CLUSTER) RELEASE
    }
    asm volatile("barrier.cluster.arrive.aligned;");
    asm volatile("barrier.cluster.wait.aligned;");
    float* out = (float*)s + half * 64 * N;
    int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
    for (int r = 0; r < N / 2; ++r) {
      int y = 16 * warp + lane / 4 + 8 * (r / 2 % 2), x = 8 * (r / 4) + 2 * (lane % 4) + r % 2;
      out[y * N + x] = d[r];
    }
    fence_proxy();
    asm volatile("bar.sync %0, 128;" :: "r"(1 + half) : "memory");
    if (threadIdx.x % 128 == 0) { store2(out, &C, column, row + 64 * half); commit(); was_read(); }
    return;
  }
  asm volatile("barrier.cluster.arrive;");
  asm volatile("barrier.cluster.wait;");
}"""
)
ALONE = GEMM.replace("CLUSTER", "1").replace("LOAD_B", "load2(b + i * N * 128, &B, &full[i], k * 64, column);")
ALONE = (
    ALONE.replace("RELEASE", "arrive(&empty[i]);")
    .replace("N /", f"{N} /")
    .replace("#define STAGES", f"#define N {N}\n#define STAGES")
)
# half of B is loaded by each block of a pair, for both
PAIR = (
    GEMM.replace("CLUSTER", "2")
    .replace(
        "LOAD_B",
        r"""asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
          " [%0], [%1, {%2, %3}], [%4], %5;" :: "r"(sa(b + i * N * 128 + cluster_rank() * N / 2 * 128)), "l"(&B), "r"(k * 64),
          "r"(column + cluster_rank() * N / 2), "r"(sa(&full[i])), "h"((u16)3) : "memory");""",
    )
    .replace(
        "RELEASE",
        r"""asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
          :: "r"(mapped(&empty[i], threadIdx.x % 128)) : "memory");""",
    )
    .replace("#define STAGES", f"#define N {N}\n#define STAGES")
)


def gemm(source: str, order: str, m: int = 256, depth: int = 256, pair: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, (n, depth)).astype(np.float16) for n in (m, N))
    c = np.zeros((m, N), np.float32)
    maps = [Map(0, (128, 64), 128), Map(1, (N // 2 if pair else N, 64), 128), Map(2, (64, N), 0)]
    shared = 3 * (128 + N) * 128
    cluster = (2, 1, 1) if pair else None
    given = [a, b, c, np.array([depth], np.int32)]
    found = run(source, given, [*maps, 3], 384, (m // 128, 1, 1), order, shared, cluster)[2]
    return found, a.astype(np.float32) @ b.astype(np.float32).T


@pytest.mark.parametrize("order", ORDERS)
def test_a_ring_of_stages(order: str):
    found, want = gemm(ALONE, order, 128)
    assert (found == want).all()


@pytest.mark.parametrize("order", ORDERS[:3])
def test_a_pair_of_blocks_loads_half_of_b_each_for_both(order: str):
    found, want = gemm(PAIR, order, pair=True)
    assert (found == want).all()


@pytest.mark.parametrize(
    "source, pattern, new, message",
    [
        ("alone", r"wait\(&full\[i\], k / STAGES % 2\);", "", "is used while a product begins: a copy .* writes it"),
        ("alone", r"wait\(&full\[i\], k / STAGES % 2\);", "wait(&full[i], 0);", "a copy .* writes it|waits for ever"),
        ("alone", r"wait\(&full\[i\], k / STAGES % 2\);", "wait(&full[i], k / STAGES % 2 ^ 1);", "writes it"),
        ("alone", r"wait\(&empty\[i\], k / STAGES % 2 \^ 1\);", "", "writes it|more threads arrive|used while|written while"),
        ("alone", r"wait\(&empty\[i\], k / STAGES % 2 \^ 1\);", "wait(&empty[i], k / STAGES % 2);", "waits for ever .*barrier"),
        ("alone", r"if \(threadIdx.x % 128 < 1\) arrive\(&empty\[i\]\);", "", "waits for ever .*with 2 of 2 arrivals"),
        ("alone", r"expect\(&full\[i\], 128 \* 128 \+ N \* 128\);", "expect(&full[i], 128 * 128);", "-8192 bytes|a copy .* writes it"),
        ("alone", r"fence_proxy\(\);", "", "without fence.proxy.async"),
        ("alone", r"was_read\(\);", "", "has read its shared memory"),
        ("alone", r"bar.sync %0, 128;", "// %0", "the result"),
        ("alone", r"finish\(d\);", "hold(d);", "is used|a copy begins: a product|which wgmma.wait_group has not waited for"),
        ("alone", r"finish\(d\);\s+(if .*)", r"\1 finish(d);", "is written while a copy begins: a product begun"),
        ("pair", r"  cluster_sync\(\);", "", "before a barrier of the cluster"),
        ("pair", r'"h"\(\(u16\)3\)', '"h"((u16)(1 << cluster_rank()))', "waits for ever|more threads|while"),
        ("pair", r"mapped\(&empty\[i\], threadIdx.x % 128\)", "mapped(&empty[i], 0)", "more threads arrive|waits for ever"),
        ("pair", r"mapped\(&empty\[i\], threadIdx.x % 128\)", "mapped(&empty[i], 2)", "no block 2 in a cluster of 2"),
    ],
)  # fmt: skip
def test_planted_faults(source: str, pattern: str, new: str, message: str):
    right = {"alone": ALONE, "pair": PAIR}[source]
    changed = re.sub(pattern, lambda m: m.expand(new), right)
    assert changed != right
    assert any(re.search(message, outcome(changed, order, source == "pair")) for order in ORDERS[:3])


def outcome(source: str, order: str, pair: bool) -> str:
    """What the executor says of a kernel."""
    try:
        found, want = gemm(source, order, 256 if pair else 128, 384, pair)
    except PTXFault as fault:
        return str(fault)
    return "" if (found == want).all() else "the result differs"
