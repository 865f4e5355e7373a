"""Clusters and barriers of transactions in the PTX executor: every form, phases, addresses of other blocks, and their faults."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hopper_kernels import ORDERS, run

import tir
from codegen.ptx.syntax import PTXError, PTXFault

SPECIAL = """
KERNEL __cluster_dims__(2, 2, 1) k(int* out) {
  int* mine = out + (blockIdx.x + gridDim.x * blockIdx.y) * 8;
  u32 v[8];
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(v[0]));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(v[1]));
  asm volatile("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(v[2]));
  asm volatile("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(v[3]));
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(v[4]));
  asm volatile("mov.u32 %0, %%clusterid.y;" : "=r"(v[5]));
  asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(v[6]));
  asm volatile("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(v[7]));
  if (threadIdx.x == 0) for (int i = 0; i < 8; ++i) mine[i] = v[i];
}"""


def test_special_registers_of_clusters():
    found = run(SPECIAL, [np.zeros(4 * 4 * 8, np.int32)], [0], 32, (4, 4, 1))[0].reshape(4, 4, 8)
    for y in range(4):
        for x in range(4):
            assert found[y, x].tolist() == [x % 2 + 2 * (y % 2), 4, x % 2, y % 2, x // 2, y // 2, 2, 2]


def test_a_grid_that_clusters_do_not_divide():
    with pytest.raises(tir.RunError, match="multiple of the cluster's"):
        run(SPECIAL, [np.zeros(1024, np.int32)], [0], 32, (3, 4, 1))
    with pytest.raises(tir.RunError, match="compiled for clusters"):
        run(SPECIAL, [np.zeros(1024, np.int32)], [0], 32, (4, 4, 1), cluster=(4, 1, 1))


NEIGHBOUR = """
KERNEL k(int* out) {
  __shared__ int s[32];
  __shared__ int sum;
  u32 rank = cluster_rank(), other;
  s[threadIdx.x] = 100 * rank + threadIdx.x;
  if (threadIdx.x == 0) sum = 0;
  cluster_sync();
  u32 there = mapped(s, rank ^ 1);
  int value;
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(there + 4 * threadIdx.x) : "memory");
  asm volatile("red.relaxed.cluster.shared::cluster.add.s32 [%0], 1;" :: "r"(mapped(&sum, 0)) : "memory");
  asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(other) : "r"(there));
  cluster_sync();
  u64 generic; int far;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(generic) : "l"(&sum), "r"(0));
  far = *(int*)generic;
  out[blockIdx.x * 32 + threadIdx.x] = value + 1000 * far + 100000 * other;
  LAST
}"""


@pytest.mark.parametrize("order", ORDERS)
def test_shared_memory_of_another_block(order: str):
    source = NEIGHBOUR.replace("LAST", "cluster_sync();")
    found = run(source, [np.zeros(128, np.int32)], [0], 32, (4, 1, 1), order, cluster=(2, 1, 1))[0].reshape(4, 32)
    for block in range(4):
        other = block % 2 ^ 1
        assert (found[block] == 100 * other + np.arange(32) + 64 * 1000 + 100000 * other).all()


@pytest.mark.parametrize(
    "pattern, new, message",
    [
        ("cluster_sync();\n  u32 there", "u32 there", "before a barrier of the cluster"),
        ("cluster_sync();\n  u64", "u64", "waits for ever|which has ended|atomic operation|the result"),
        ("rank ^ 1", "rank + 1", "there is no block 2 in a cluster of 2"),
        ("ld.shared::cluster", "ld.shared::cta", "outside of every allocation of shared memory"),
        ("LAST", "", "which has ended"),
        ("LAST", 'asm volatile("barrier.cluster.wait;");', "without an arrival"),
        ("LAST", 'asm volatile("barrier.cluster.arrive;\\nbarrier.cluster.arrive;");', "a second arrival"),
        (
            "LAST", "if (rank == 0) cluster_sync(); else wait(&never, 0);",
            "waits for ever .*(32 threads of its cluster have not arrived|with 1 of 1 arrivals)",
        ),
    ],
)  # fmt: skip
def test_planted_faults_of_clusters(pattern: str, new: str, message: str):
    source = NEIGHBOUR.replace(pattern, new).replace("LAST", "cluster_sync();")
    source = source.replace("u32 rank =", "__shared__ u64 never;\nif (threadIdx.x == 0) init(&never, 1);\nu32 rank =")
    texts = []
    for order in ORDERS:
        try:
            found = run(source, [np.zeros(64, np.int32)], [0], 32, (2, 1, 1), order, cluster=(2, 1, 1))[0]
            texts.append("the result" if not (found // 1000 % 100 == 64).all() else "")
        except PTXFault as fault:
            texts.append(str(fault))
    assert any(re.search(message, text) for text in texts), texts


FORMS = """
KERNEL k(int* out) {
  __shared__ u64 b;
  __shared__ int data;
  if (threadIdx.x == 0) { init(&b, COUNT); data = 7; }
  __syncthreads();
  BODY
}"""


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "count, body, want",
    [
        # states: who arrives gets the phase it arrived in, and waits for that
        (32, """u64 s; u32 p = 0;
          asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1];" : "=l"(s) : "r"(sa(&b)) : "memory");
          do asm volatile("{.reg .pred q;\\nmbarrier.try_wait.acquire.cta.shared::cta.b64 q, [%1], %2, 100;\\n"
            "selp.u32 %0, 1, 0, q;}" : "=r"(p) : "r"(sa(&b)), "l"(s) : "memory"); while (!p);
          out[threadIdx.x] = data;""", [7] * 32),
        # the pending count of the state before the arrival
        (40, """if (threadIdx.x == 0) { u64 s; u32 n;
          asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 3;" : "=l"(s) : "r"(sa(&b)) : "memory");
          asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(n) : "l"(s)); out[0] = n;
          asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(s) : "r"(sa(&b)) : "memory");
          asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(n) : "l"(s)); out[1] = n; }""", [40, 37]),
        # an arrival with a count, and one that drops out: the next phase needs one fewer
        (3, """if (threadIdx.x == 0) {
          asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 2;" :: "r"(sa(&b)) : "memory");
          asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0];" :: "r"(sa(&b)) : "memory");
          wait(&b, 0);
          asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 2;" :: "r"(sa(&b)) : "memory");
          wait(&b, 1); out[0] = 1; }""", [1]),
        # bytes are expected and counted by hand
        (1, """if (threadIdx.x == 0) {
          asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 64;" :: "r"(sa(&b)) : "memory");
          arrive(&b);
          asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 64;" :: "r"(sa(&b)) : "memory");
          wait(&b, 0); out[0] = 5;
          asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(sa(&b)) : "memory");
          init(&b, 2); arrive(&b); arrive(&b); wait(&b, 0); out[1] = 6; }""", [5, 6]),
        # a test that fails gives false, and does not wait
        (1, """if (threadIdx.x == 0) { u32 p;
          asm volatile("{.reg .pred q;\\nmbarrier.test_wait.parity.acquire.cta.shared::cta.b64 q, [%1], 0;\\n"
            "selp.u32 %0, 1, 0, q;}" : "=r"(p) : "r"(sa(&b)) : "memory");
          out[0] = 3 + p; arrive(&b); wait(&b, 0); }""", [3]),
    ],
)  # fmt: skip
def test_forms_of_barriers(count: int, body: str, want: list[int], order: str):
    source = FORMS.replace("COUNT", str(count)).replace("BODY", body)
    found = run(source, [np.zeros(32, np.int32)], [0], 32, order=order)[0]
    assert found[: len(want)].tolist() == want


@pytest.mark.parametrize(
    "count, body, message",
    [
        (0, "", "initialised for 0 arrivals"),
        (3, """asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 2;" :: "r"(sa(&b)) : "memory");""", "more threads arrive"),
        (1, "if (threadIdx.x == 0) init(&b, 1);", "initialised again without mbarrier.inval"),
        (2, "if (threadIdx.x == 0) { arrive(&b); wait(&b, 0); }", "waits for ever .*phase 0, with 1 of 2 arrivals and 0 bytes"),
        (1, "if (threadIdx.x == 0) expect(&b, 1 << 20);", "beyond 1048575"),
        (1, """if (threadIdx.x == 0) { u64 s;
          asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 1;" : "=l"(s) : "r"(sa(&b)) : "memory"); }""",
         "noComplete completes phase 0"),
        (1, """if (threadIdx.x == 0) { u64 s;
          asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(s) : "r"(sa(&b)) : "memory"); arrive(&b); arrive(&b);
          asm volatile("{.reg .pred q; mbarrier.test_wait.shared.b64 q, [%0], %1;}" :: "r"(sa(&b)), "l"(s) : "memory"); }""",
         "a state is of the current phase or of the one before"),
        (1, """if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" :: "r"(sa(&b)) : "memory");
          __syncwarp(); arrive(&b);""", "no barrier was initialised"),
    ],
)  # fmt: skip
def test_faults_of_barriers(count: int, body: str, message: str):
    with pytest.raises(PTXFault, match=message):
        run(FORMS.replace("COUNT", str(count)).replace("BODY", body), [np.zeros(32, np.int32)], [0], 32)


ELECTED = """
KERNEL k(int* out) {
  u32 leader, p;
  asm volatile("{.reg .pred q;\\nelect.sync %0|q, -1;\\nselp.u32 %1, 1, 0, q;}" : "=r"(leader), "=r"(p));
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
  asm volatile("fence.acq_rel.cluster;\\nfence.proxy.alias;\\nfence.proxy.async.global;\\nnanosleep.u32 20;" ::: "memory");
  out[threadIdx.x] = 10 * leader + p;
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("bar.arrive 1, 128;" ::: "memory");
}"""


def test_one_thread_of_a_warp_is_elected():
    source = ELECTED.replace('asm volatile("bar.arrive 1, 128;" ::: "memory");', "")
    for order in ORDERS:
        found = run(source, [np.zeros(128, np.int32)], [0], 128, order=order)[0]
        assert (found == (np.arange(128) % 32 == 0)).all()


def test_setmaxnreg_is_by_whole_warpgroups_and_has_legal_counts():
    with pytest.raises(PTXFault, match="waits for ever .*setmaxnreg"):
        run(ELECTED.replace("u32 24;", "u32 32;"), [np.zeros(128, np.int32)], [0], 96)
    with pytest.raises(PTXError, match="setmaxnreg"):
        run(ELECTED.replace("u32 24;", "u32 257;"), [np.zeros(128, np.int32)], [0])


NAMED = """
KERNEL k(int* out) {
  __shared__ int s[64];
  if (threadIdx.x < 64) {
    s[threadIdx.x] = threadIdx.x + 1;
    asm volatile("bar.arrive 1, 128;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 128;" ::: "memory");
    out[threadIdx.x - 64] = s[127 - threadIdx.x];
  }
}"""


@pytest.mark.parametrize("order", ORDERS)
def test_who_arrives_at_a_named_barrier_does_not_wait(order: str):
    assert (run(NAMED, [np.zeros(64, np.int32)], [0], 128, order=order)[0] == 64 - np.arange(64)).all()
    with pytest.raises(PTXFault, match="waits for ever .*bar.sync"):
        run(NAMED.replace("bar.arrive 1, 128", "bar.arrive 2, 128"), [np.zeros(64, np.int32)], [0], 128, order=order)
