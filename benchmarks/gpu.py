"""GPU speed, as ratios taken in this run: to cuBLAS and torch where torch is installed, and to what the chip can do.

`make bench-gpu`, on a machine with a CUDA device. Inputs are random; times are medians by events on the device.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

import tir
from codegen.cuda.driver import has_device
from tests.gpu_examples import NAMES, load
from tir.interp.numbers import storage_dtype

OUT = pathlib.Path(__file__).parent / "out"


def main() -> None:
    if not has_device():
        raise SystemExit("bench-gpu needs a CUDA device, and there is none here: " + tir.doctor()["CUDA device"].text)
    print(tir.doctor()["CUDA device"].text)
    torch = _torch()
    copy = copy_bandwidth()
    rows: list[dict[str, Any]] = [{"kernel": "copy", "GB/s": copy}]
    rows += [bench(name, copy, torch) for name in NAMES]
    for row in rows:
        print("  ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{v:<20}" for k, v in row.items()))
    OUT.mkdir(exist_ok=True)
    (OUT / "gpu.json").write_text(json.dumps(rows, indent=1))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        print("torch is not installed: no ratio to cuBLAS")
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch if torch.cuda.is_available() else None


def copy_bandwidth() -> float:
    """GB/s, read plus written, of a kernel that only copies: the limit of everything that is bound by memory."""
    from tir.script import parse

    func = parse("""
@T.prim_func
def copy(A: T.Buffer((134217728,), "float32"), B: T.Buffer((134217728,), "float32")):
    for i in T.thread_binding(131072, thread="blockIdx.x"):
        for j in T.thread_binding(256, thread="threadIdx.x"):
            for v in T.vectorized(4):
                with T.block("B"):
                    vi = T.axis.spatial(134217728, i * 1024 + j * 4 + v)
                    B[vi] = A[vi]
""")
    mod = tir.build(func, target="cuda")
    source = mod.array(np.random.default_rng(0).random(1 << 27, np.float32))
    target = mod.array(np.zeros(1 << 27, np.float32))
    return 2 * source.nbytes / mod.time_evaluator(number=20, repeat=5)(source, target).median * 1e-9


def bench(name: str, copy: float, torch: Any) -> dict[str, Any]:
    module = load(name)
    func, sch = module.full()
    os.environ["TIR_CACHE"] = "0"
    mod = tir.build(sch.mod, target="cuda")
    rng = np.random.default_rng(0)
    host = []
    for b in func.buffers():
        shape, dtype = tuple(int(s) for s in b.shape), storage_dtype(b.dtype)  # type: ignore[call-overload]
        values = rng.standard_normal(shape, np.float32)
        host.append((values * 8).astype(dtype) if dtype.kind in "iu" else values.astype(dtype))
    arrays = [mod.array(x) for x in host]
    seconds = mod.time_evaluator(number=10, repeat=5)(*arrays).median
    row: dict[str, Any] = {"kernel": name, "ms": seconds * 1e3, "compile s": mod.binary.seconds}
    flops = _flops(name, host)
    if flops:
        row["TFLOP/s"] = flops / seconds * 1e-12
    else:
        row["of copy bandwidth"] = sum(x.nbytes for x in host) / seconds * 1e-9 / copy
    peer = _peer(name, host, torch)
    if peer is not None:
        row["of torch"] = torch_seconds(peer, torch) / seconds
    return row


def _flops(name: str, host: list[np.ndarray]) -> float:
    if name in ("sgemm", "tensor_core_gemm", "stream_k_gemm"):
        return 2.0 * host[0].shape[0] * host[0].shape[1] * host[-1].shape[-1]
    return 0.0


def _peer(name: str, host: list[np.ndarray], torch: Any) -> Callable[[], Any] | None:
    """The same by torch (for a matmul that is cuBLAS)."""
    if torch is None:
        return None
    x = [torch.from_numpy(a).cuda() for a in host]
    return {
        "sgemm": lambda: x[0] @ x[1],
        "tensor_core_gemm": lambda: x[0] @ x[1],
        "stream_k_gemm": lambda: x[0] @ x[1],
        "softmax": lambda: torch.softmax(x[0], 1),
        "layer_norm": lambda: torch.nn.functional.layer_norm(x[0], x[0].shape[1:], x[1], x[2]),
        "transpose": lambda: x[0].T.contiguous(),
        "reductions": lambda: x[0].sum(1),
        "vector_add": lambda: x[0] + x[1],
    }.get(name)


def torch_seconds(run: Callable[[], Any], torch: Any, number: int = 10, repeat: int = 5) -> float:
    run()
    results = []
    for _ in range(repeat):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(number):
            run()
        last.record()
        last.synchronize()
        results.append(first.elapsed_time(last) * 1e-3 / number)
    return statistics.median(results)


if __name__ == "__main__":
    main()
