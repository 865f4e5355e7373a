"""Whole models beside onnxruntime and OpenVINO: ``python -m benchmarks.models model.onnx …``, in a Python that has them.

Each model is compiled and called by turns with a session of each of the two (all optimizations, float32), on the same random
inputs. The table has the least processor time of the calling thread, the ratio of ours to the better of the two (below 1: ours is faster), the largest
difference over the largest value, kernels, the bytes of the workspace over the most that are in use at once, and the growth of a
process of its own over workspace and weights, when it compiles the model with an empty disk cache: its resident memory after calls, less that
before the model was read, when it has compiled a small ONNX model and called it twice already.
``--tune SECONDS`` tunes each model before it is called; ``--threads N`` gives all of them N threads, and wall time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tir
from tir.display import text_table

HEAD = ("model", "CPU s", "onnxruntime, ms", "OpenVINO, ms", "tir, ms", "ratio", "error", "kernels", "workspace", "over bound", "weights", "growth")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tune", type=float, default=0)
    parser.add_argument("--growth", action="store_true", help="print only by how many bytes the process grows")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # read when a kernel first runs
    if options.growth:
        print(_growth(options.models[0], f"llvm -num-cores={options.threads}"))
    else:
        print(text_table(HEAD, [_row(path, options) for path in options.models]))
    return 0


def _row(path: Path, options: argparse.Namespace) -> tuple[str, ...]:
    session = _session(path, options.threads)
    inputs = _inputs(session)
    expected = session.run(None, inputs)
    where = f"llvm -num-cores={options.threads}"
    start = sum(os.times()[:4])  # of the processes that it starts, too
    model = tir.tune(path, where, seconds=options.tune) if options.tune else tir.compile(path, where)
    compiling = sum(os.times()[:4]) - start
    results = model(**inputs)
    error = max(map(_error, expected, results if isinstance(results, tuple) else [results]))
    again = [sys.executable, "-m", "benchmarks.models", "--growth", f"--threads={options.threads}", str(path)]
    with tempfile.TemporaryDirectory() as folder:
        own = {**os.environ, "TIR_CACHE_DIR": folder}
        grown = int(subprocess.run(again, check=True, capture_output=True, text=True, env=own).stdout)
    calls = [lambda: session.run(None, inputs), _openvino(path, inputs, options.threads), lambda: model(**inputs)]
    clock = time.thread_time if options.threads == 1 else time.perf_counter
    *theirs, ours = _by_turns(calls, options.rounds, clock)
    return (
        path.stem,
        f"{compiling:.1f}",
        *(f"{seconds * 1e3:.2f}" for seconds in (*theirs, ours)),
        f"{ours / min(theirs):.2f}",
        f"{error:.0e}",
        str(len(model.kernels)),
        f"{model.workspace_bytes / 1e6:.2f} MB",
        f"{model.workspace_bytes / max(model.plan.bound, 1):.2f}",
        f"{model.weights_bytes / 1e6:.1f} MB",
        f"{grown / (model.workspace_bytes + model.weights_bytes):.2f}",
    )


def _growth(path: Path, target: str) -> int:
    """By how many bytes this process grows when it compiles a model and calls it ten times."""
    from onnx import helper, numpy_helper

    from tir.graph.model_calls import give_back

    x, y = (helper.make_tensor_value_info(name, 1, [64, 64]) for name in "xy")
    w = numpy_helper.from_array(np.ones((64, 64), "float32"), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Softmax", ["p"], ["y"])]
    small = tir.compile(helper.make_model(helper.make_graph(nodes, "small", [x], [y], [w])), target)
    for _ in range(2):  # the second call makes what checks the arrays of later ones, which is the same for all models
        small(np.ones((64, 64), "float32"))
    give_back()
    before = _memory()
    model = tir.compile(path, target)
    inputs = [np.zeros(p.shape, str(p.dtype)) for p in model.inputs]
    for _ in range(10):
        model(*inputs)
    return _memory() - before


def _memory() -> int:
    """The bytes of this process that are in memory."""
    lines = dict(line.split(":") for line in Path("/proc/self/smaps_rollup").read_text().splitlines() if ":" in line)
    return 1024 * int(lines["Rss"].split()[0])


def _openvino(path: Path, inputs: Mapping[str, np.ndarray], threads: int) -> Callable[[], Any]:
    """A call of OpenVINO's model."""
    import openvino  # type: ignore[import-not-found,import-untyped]

    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
    return lambda: request.infer(dict(inputs), share_inputs=True, share_outputs=True)


def _session(path: Path, threads: int) -> Any:
    import onnxruntime  # type: ignore[import-not-found,import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
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


def _by_turns(calls: list[Callable[[], Any]], rounds: int, clock: Callable[[], float]) -> list[float]:
    """The least seconds that each call takes, called in turn."""
    least = [float("inf")] * len(calls)
    for _ in range(rounds):
        for n, call in enumerate(calls):
            start = clock()
            call()
            least[n] = min(least[n], clock() - start)
    return least


if __name__ == "__main__":
    sys.exit(main())
