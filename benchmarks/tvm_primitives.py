"""The latency of the same primitives in TVM; run by a Python that has TVM, prints JSON rows."""

import json
import runpy
import statistics
import tempfile
import time

import sgemm_schedule

try:
    from tvm.tir import Schedule

    dialect, block, get_block = "tir", "block", "get_block"
except ImportError:  # the newer spelling
    from tvm.s_tir import Schedule

    dialect, block, get_block = "tirx", "sblock", "get_sblock"

SOURCE = """
from tvm.script import {m} as T
@T.prim_func{flag}
def matmul(A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((1024, 1024), "float32"), C: T.Buffer((1024, 1024), "float32")):
    for i, j, k in T.grid(1024, 1024, 1024):
        with T.{block}("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
text = SOURCE.format(m=dialect, block=block, flag="" if dialect == "tir" else "(s_tir=True)")
with tempfile.NamedTemporaryFile("w", suffix=".py") as file:  # TVM's parser needs the source on disk
    file.write(text)
    file.flush()
    func = runpy.run_path(file.name)["matmul"]


def fresh():
    return Schedule(func)


def loops(s):
    return s.get_loops(getattr(s, get_block)("C"))


STEPS = {
    "split": lambda s: s.split(loops(s)[0], [None, 8]),
    "fuse": lambda s: s.fuse(*loops(s)[:2]),
    "reorder": lambda s: s.reorder(*reversed(loops(s))),
    "vectorize": lambda s: s.vectorize(loops(s)[1]),
    "unroll": lambda s: s.unroll(loops(s)[1]),
    "parallel": lambda s: s.parallel(loops(s)[0]),
    "script": lambda s: s.mod.script(),
}

rows = []
for name, call in STEPS.items():
    samples = []
    for _ in range(30):
        s = fresh()
        start = time.perf_counter()
        call(s)
        samples.append(time.perf_counter() - start)
    rows.append({"what": f"TVM: {name} on a matmul", "value": statistics.median(samples) * 1e6, "unit": "us"})
for row in sgemm_schedule.measure(lambda: (s := fresh(), getattr(s, get_block)("C"))):
    rows.append({**row, "what": f"TVM: {row['what'].strip()}"})
print(json.dumps(rows))
