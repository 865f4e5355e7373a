"""GPU speed, as ratios measured in one run: to cuBLAS and torch if torch is installed, and to the chip's limits.

`make bench-gpu`, on a machine with a CUDA device. Inputs are random; times are medians by events on the device, of calls
back to back. Prints a table, and writes benchmarks/out/gpu.json. Without a device it says so and ends.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import tir
from codegen.cuda.driver import driver, has_device
from codegen.diagnosis import doctor
from tests.gpu_examples import NAMES, architectures, load
from tir.display import text_table
from tir.dtype import DType
from tir.interp.numbers import encode, is_small_float, storage_dtype
from tir.script import parse

OUT = pathlib.Path(__file__).parent / "out"
PRODUCTS = {
    "sgemm": "float32",
    "tensor_core_gemm": "float16",
    "mma_gemm": "float16",
    "stream_k_gemm": "float16",
    "hopper_gemm": "float16",
    "split_k_gemm": "float16",
    "grouped_gemm": "float16",
    "conv2d": "float16",
    "flash_attention": "float16",
}
# operations per multiprocessor and cycle, a fused multiply-add counted as two: float32 on its cores, dense float16 on
# its tensor cores by mma.sync or wgmma (NVIDIA's white papers of each generation)
PER_CYCLE = {75: (128, 1024), 80: (128, 2048), 86: (256, 1024), 89: (256, 1024), 90: (256, 4096), 100: (256, 8192)}
COPY = """
@T.prim_func
def copy(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32")):
    for i in T.thread_binding(BLOCKS, thread="blockIdx.x"):
        for j in T.thread_binding(256, thread="threadIdx.x"):
            for v in T.vectorized(4):
                with T.block("B"):
                    vi = T.axis.spatial(N, i * 1024 + j * 4 + v)
                    B[vi] = A[vi]
"""


@dataclass(frozen=True)
class Row:
    """One kernel's numbers; None if one does not apply or its peer is not installed.

    ``of_copy``: the rate of bytes that must move, relative to that of a copy. ``of_torch``: torch's time (cuBLAS for
    products) over ours. ``of_peak``: operations per second, relative to the chip's peak for the type.
    """

    kernel: str
    ms: float
    tflops: float | None = None
    of_copy: float | None = None
    of_torch: float | None = None
    of_peak: float | None = None
    compile_s: float | None = None

    @staticmethod
    def of(
        kernel: str,
        seconds: float,
        *,
        bytes_moved: int,
        copy: float,
        flops: float = 0.0,
        peak: float | None = None,
        torch_seconds: float | None = None,
        compile_s: float | None = None,
    ) -> Row:
        """Ratios of a time in ``seconds``; ``copy`` and ``peak`` are bytes and operations per second."""
        rate = flops / seconds
        return Row(
            kernel,
            seconds * 1e3,
            rate * 1e-12 if flops else None,
            None if flops else bytes_moved / seconds / copy,
            None if torch_seconds is None else torch_seconds / seconds,
            rate / peak if flops and peak else None,
            compile_s,
        )


def table(rows: list[Row]) -> str:
    """The rows as text, with headings."""
    heads = ("kernel", "ms", "TFLOP/s", "of copy", "of torch", "of peak", "compile s")
    return text_table(heads, [[_shown(v) for v in asdict(row).values()] for row in rows])


def _shown(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.3g}"


def peak_rate(device: Any, dtype: str) -> float | None:
    """The chip's operations per second (multiprocessors x clock x operations per cycle); None for an unlisted chip."""
    number = int("".join(c for c in device.arch if c.isdigit()))
    found = PER_CYCLE.get(number)
    if found is None:
        return None
    cycles = device.attribute("MULTIPROCESSOR_COUNT") * device.attribute("CLOCK_RATE") * 1e3
    return found[dtype != "float32"] * cycles


def main() -> None:
    if not has_device():
        raise SystemExit("bench-gpu needs a CUDA device, and there is none here: " + doctor()["CUDA device"].text)
    os.environ["TIR_CACHE"] = "0"  # so that compile times are not those of the cache
    torch = _torch()
    about = {"device": doctor()["CUDA device"].text, "torch": getattr(torch, "__version__", None)}
    copy, overhead = copy_rate(), launch_overhead()
    print(
        about["device"], f"copy {copy * 1e-9:.0f} GB/s", f"a call takes {overhead * 1e6:.1f} µs of the host", sep="; "
    )
    rows: list[Row] = []
    for name in filter(runs_here, NAMES):
        for options in variants(name):
            rows.append(bench(name, copy, torch, options))
            print(table(rows[-1:]).splitlines()[1], flush=True)
    print("\n" + table(rows))
    OUT.mkdir(exist_ok=True)
    result = {**about, "copy GB/s": copy * 1e-9, "call µs": overhead * 1e6, "rows": [asdict(r) for r in rows]}
    (OUT / "gpu.json").write_text(json.dumps(result, indent=1))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        print("torch is not installed: no ratio to it and to cuBLAS")
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch if torch.cuda.is_available() else None


def copier(n: int) -> tuple[Any, Any, Any]:
    """A kernel that only copies ``n`` floats, and its arrays."""
    mod = tir.build(parse(COPY.replace("BLOCKS", str(n // 1024)).replace("N", str(n))), target="cuda")
    return mod, mod.array(np.random.default_rng(0).random(n, np.float32)), mod.array(np.zeros(n, np.float32))


def copy_rate(n: int = 1 << 27) -> float:
    """Bytes per second, read plus written, of a copy: the limit of every memory-bound kernel."""
    mod, source, target = copier(n)
    return 2 * source.nbytes / mod.time_evaluator(number=20, repeat=5)(source, target).median


def launch_overhead(calls: int = 1000) -> float:
    """Host seconds of a call of a kernel that does almost nothing."""
    mod, source, target = copier(1024)
    results = []
    for _ in range(5):
        mod.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            mod(source, target)
        results.append((time.perf_counter() - start) / calls)
    mod.synchronize()
    return statistics.median(results)


def variants(name: str) -> list[dict[str, Any]]:
    """Options of an example's ``full`` to measure: the tiles that it names, and one for the chip's multiprocessors."""
    module = load(name)
    if name != "stream_k_gemm":
        return list(getattr(module, "VARIANTS", ({},)))
    count = int(multiprocessors())
    return [{"blocks": count}, {"blocks": 2 * count}]


def multiprocessors() -> int:
    mod, *_ = copier(1024)
    return mod.device.attribute("MULTIPROCESSOR_COUNT")


def label(name: str, options: dict[str, Any]) -> str:
    """
    >>> label("mma_gemm", {"tile": (128, 256), "stages": 3})
    'mma_gemm tile=128x256 stages=3'
    """
    shown = {k: "x".join(map(str, v)) if isinstance(v, tuple) else str(v) for k, v in options.items()}
    return " ".join([name, *(f"{k}={v}" for k, v in shown.items())])


def runs_here(name: str) -> bool:
    """Whether an example is for the architecture of the device."""
    here = driver().arch
    return here in architectures(load(name).small()[1], (here,))


def bench(name: str, copy: float, torch: Any, options: dict[str, Any]) -> Row:
    func, sch = load(name).full(**options)
    mod = tir.build(sch.mod, target="cuda")
    given = getattr(load(name), "inputs", None)
    host = given(func, np.random.default_rng(0)) if given else [random_array(b) for b in func.buffers()]
    arrays = [mod.array(x) for x in host]
    seconds = mod.time_evaluator(number=10, repeat=7)(*arrays).median
    peer = _peer(name, host, torch)
    return Row.of(
        label(name, options),
        seconds,
        bytes_moved=sum(x.nbytes for x in host),
        copy=copy,
        flops=flops(name, host),
        peak=peak_rate(mod.device, PRODUCTS[name]) if name in PRODUCTS else None,
        torch_seconds=None if peer is None else torch_seconds(peer, torch),
        compile_s=mod.binary.seconds,
    )


def random_array(buffer: Any, seed: int = 0) -> np.ndarray:
    """Random values for a buffer: not zeros, on which chips run faster."""
    rng = np.random.default_rng(seed)
    dtype = DType(buffer.dtype)
    values = rng.standard_normal(tuple(int(s) for s in buffer.shape), np.float32)
    if is_small_float(dtype):
        return encode(values, dtype)
    stored = storage_dtype(dtype)
    return (values * 8).astype(stored) if stored.kind in "iu" else values.astype(stored)


def flops(name: str, host: list[np.ndarray]) -> float:
    """What the example says of itself, else operations of a matrix product (for a convolution: windows by weights); 0 for
    memory-bound kernels."""
    own = getattr(load(name), "operations", None)
    if own is not None:
        return own(*host)
    depth = host[1].shape[1 if name == "hopper_gemm" else 0]  # it takes its second matrix transposed
    return 2.0 * host[-1].size * depth if name in PRODUCTS else 0.0


def _peer(name: str, host: list[np.ndarray], torch: Any) -> Callable[[], Any] | None:
    """The same computation by torch (cuBLAS for a product, cuDNN for a convolution, flash attention)."""
    if torch is None or name in ("grouped_gemm", "paged_decode"):  # torch has none
        return None
    x = [torch.from_numpy(a).cuda() for a in host]
    if name == "conv2d":
        return convolution(x[0], x[1], torch)
    if name == "hopper_gemm":
        return lambda: x[0] @ x[1].T
    if name == "flash_attention":
        attention = torch.nn.functional.scaled_dot_product_attention
        return lambda: attention(x[0], x[1], x[2], is_causal=True, enable_gqa=True)
    if name in PRODUCTS:
        return lambda: x[0] @ x[1]
    return {
        "softmax": lambda: torch.softmax(x[0], 1),
        "layer_norm": lambda: torch.nn.functional.layer_norm(x[0], x[0].shape[1:], x[1], x[2]),
        "transpose": lambda: x[0].T.contiguous(),
        "transpose_swizzled": lambda: x[0].T.contiguous(),
        "reductions": lambda: x[0].sum(1),
        "vector_add": lambda: x[0] + x[1],
    }.get(name)


def convolution(image: Any, weights: Any, torch: Any) -> Callable[[], Any]:
    """Torch's convolution of an image (batch, side, side, channels) by weights (kernel * kernel * channels, out): both keep
    their memory layout, torch's channels_last."""
    channels = image.shape[3]
    kernel = round((weights.shape[0] / channels) ** 0.5)
    x = image.permute(0, 3, 1, 2)
    w = weights.reshape(kernel, kernel, channels, -1).permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    torch.backends.cudnn.benchmark = True
    return lambda: torch.nn.functional.conv2d(x, w)


def torch_seconds(run: Callable[[], Any], torch: Any, number: int = 10, repeat: int = 7) -> float:
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
