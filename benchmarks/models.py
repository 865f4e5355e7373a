"""Whole models beside onnxruntime: ``python -m benchmarks.models model.onnx …``, in a Python that has onnxruntime.

Each model is compiled without tuning and called by turns with onnxruntime's session (all optimizations), one thread each, on the
same random inputs. The table has the least processor time of the calling thread, their ratio (below 1: ours is faster), the
largest difference over the largest value, kernels, the bytes of the workspace and of the weights, and the growth of the process
over both of these.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tir
from tir.display import text_table

HEAD = (
    "model",
    "compile, s",
    "onnxruntime, ms",
    "tir, ms",
    "ratio",
    "error",
    "kernels",
    "workspace",
    "weights",
    "growth",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # read when a kernel first runs
    print(text_table(HEAD, [_row(path, options.rounds) for path in options.models]))
    return 0


def _row(path: Path, rounds: int) -> tuple[str, ...]:
    session = _session(path)
    inputs = _inputs(session)
    expected = session.run(None, inputs)
    start, before = time.process_time(), _memory()
    model = tir.compile(path)
    compiling = time.process_time() - start
    results = model(**inputs)
    growth = (_memory() - before) / (model.workspace_bytes + model.weights_bytes)
    error = max(map(_error, expected, results if isinstance(results, tuple) else [results]))
    theirs, ours = _by_turns([lambda: session.run(None, inputs), lambda: model(**inputs)], rounds)
    return (
        path.stem,
        f"{compiling:.1f}",
        f"{theirs * 1e3:.2f}",
        f"{ours * 1e3:.2f}",
        f"{ours / theirs:.2f}",
        f"{error:.0e}",
        str(len(model.kernels)),
        f"{model.workspace_bytes / 1e6:.2f} MB",
        f"{model.weights_bytes / 1e6:.1f} MB",
        f"{growth:.2f}",
    )


def _memory() -> int:
    """The bytes of memory of this process that are in no file."""
    lines = dict(line.split(":") for line in Path("/proc/self/smaps_rollup").read_text().splitlines() if ":" in line)
    return 1024 * int(lines["Anonymous"].split()[0])


def _session(path: Path) -> Any:
    import onnxruntime  # type: ignore[import-not-found,import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _inputs(session: Any) -> Mapping[str, np.ndarray]:
    """Random inputs: words of a small vocabulary for integers, normal numbers otherwise; open sizes are 1."""
    rng = np.random.default_rng(0)
    made = {}
    for one in session.get_inputs():
        shape = [size if isinstance(size, int) else 1 for size in one.shape]
        is_integer = one.type in ("tensor(int64)", "tensor(int32)")
        drawn = rng.integers(0, 1000, shape) if is_integer else rng.standard_normal(shape)
        made[one.name] = drawn.astype(one.type[len("tensor(") : -1].replace("float", "float32"))
    return made


def _error(expected: np.ndarray, actual: np.ndarray) -> float:
    return float(np.abs(expected - actual).max() / max(np.abs(expected).max(), np.finfo("float32").tiny))


def _by_turns(calls: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The least seconds of this thread that each call takes, called in turn."""
    least = [float("inf")] * len(calls)
    for _ in range(rounds):
        for n, call in enumerate(calls):
            start = time.thread_time()
            call()
            least[n] = min(least[n], time.thread_time() - start)
    return least


if __name__ == "__main__":
    sys.exit(main())
