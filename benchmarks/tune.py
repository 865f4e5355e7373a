"""``tir.tune`` and TVM's MetaSchedule on the same programs: ``python -m benchmarks.tune [--tvm-python PYTHON]``.

Each program is plain, and its text is read by both. Ours is tuned with ``--trials`` (default 51), theirs with ``--tvm-trials``
(default 512, its usual number for an operator) in a process of the other Python. The winners and our default are timed at the end
by turns, so that load hits all. ``--save`` keeps the rows in ``tune.json``, under the processor and the number of threads, as results of two
machines cannot be compared: for each program the best time after every trial, the seconds of the search, and the final times.
Rows of programs that this run does not choose stay. ``--table`` prints what is kept and runs nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import pathlib
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import tir
from codegen.machine_peak import measure_fma_peak
from tir.testing.oracle import random_inputs

from .arrays import placed
from .peers import clock
from .work import PLAIN

ROUNDS = 40  # turns of each at the end
KEPT = pathlib.Path(__file__).with_name("tune.json")

# the workloads of the comparison: a plain program of ``benchmarks.work``, and its sizes
PROGRAMS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("gemm", (512, 512, 512)),
    ("gemm", (1024, 1024, 1024)),
    ("gemm", (2048, 16, 2048)),
    ("gemm", (1023, 1023, 1023)),
    ("gemm", (1021, 1021, 1021)),
    ("gemm", (1000, 1000, 1000)),
    ("gemm", (37, 511, 4096)),
    ("batched_gemm", (32, 128, 128, 64)),
    ("conv2d_nhwc", (1, 56, 64, 64, 3, 1)),
    ("conv2d_nhwc", (1, 28, 128, 128, 3, 1)),
    ("conv2d_nhwc", (1, 7, 512, 512, 3, 1)),
    ("conv2d_nhwc", (1, 56, 64, 256, 1, 1)),
    ("conv2d_nchw", (1, 14, 256, 256, 3, 1)),
    ("conv2d_nchw", (1, 56, 256, 64, 1, 1)),
    ("depthwise_nhwc", (1, 56, 128, 128, 3, 1)),
    ("depthwise_nhwc", (1, 56, 128, 128, 3, 2)),
    ("depthwise_nhwc", (1, 28, 256, 256, 5, 1)),
    ("depthwise_nchw", (1, 56, 128, 128, 3, 1)),
    ("depthwise_nchw", (1, 56, 128, 128, 3, 2)),
    ("depthwise_nchw", (1, 28, 256, 256, 5, 1)),
    ("conv2d_nhwc", (1, 224, 3, 64, 7, 2)),
    ("conv2d_nhwc", (1, 56, 128, 128, 3, 2)),
    ("conv1d", (1, 256, 64, 128, 3, 2)),
    ("conv3d", (1, 16, 16, 32, 3, 1)),
    ("grouped", (1, 56, 64, 128, 3, 2)),
    ("dilated", (1, 56, 64, 64, 3, 1)),
    ("transposed", (1, 14, 128, 64, 4, 2)),
    ("batched_gemm", (12, 32, 32, 64)),
    ("max_pool", (1, 112, 64, 3, 2)),
    ("mean_pool_nhwc", (1, 56, 64, 3, 1)),
    ("softmax", (1023, 511)),
    ("softmax", (8192, 4096)),
    ("layer_norm", (8192, 4096)),
    ("row_sum", (1023, 511)),
    ("column_sum", (1023, 511)),
    ("attention", (1024, 1024, 64)),
    ("gemv", (4096, 4096)),
    ("gelu_chain", (1 << 20,)),
    ("blur", (2048, 2048)),
    ("transpose", (8192, 4096)),
    ("int8_gemm", (1024, 1024, 1024)),
)


@dataclass(frozen=True)
class Program:
    """A program of ``benchmarks.work``."""

    kind: str
    sizes: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.kind} {'x'.join(map(str, self.sizes))}"

    @cached_property
    def func(self) -> tir.PrimFunc:
        return PLAIN[self.kind](*self.sizes)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="names of programs begin with one of these, separated by commas")
    options.add_argument("--trials", type=int, default=51)
    options.add_argument("--seconds", type=float, default=120.0, help="for each program")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--tvm-python", help="a Python with apache-tvm")
    options.add_argument("--tvm-trials", type=int, default=512)
    options.add_argument("--save", action="store_true", help="keep the rows in tune.json")
    options.add_argument("--table", action="store_true", help="print the rows kept for this processor")
    args = options.parse_args()
    machine = f"{processor()}, threads: {args.threads}"
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    if args.table:
        for name, about in kept.items():
            print(f"{name}, {about['peak_gflops_of_a_core']:.0f} GFLOP/s a core")
            for row in about["rows"].values():
                _print_row(row)
            _summarize(list(about["rows"].values()))
        return
    wanted = tuple(name for name in args.only.split(",") if name)
    chosen = [one for one in (Program(*named) for named in PROGRAMS) if not wanted or one.name.startswith(wanted)]
    about = kept.setdefault(machine, {"rows": {}})
    about["peak_gflops_of_a_core"] = max(
        measure_fma_peak(), about.get("peak_gflops_of_a_core", 0.0)
    )  # others may run beside it
    rows: list[dict[str, Any]] = []
    for one in chosen:
        rows.append(_row(one, args))
        about["rows"][one.name] = rows[-1]
        if args.save:  # after each row: a run may be stopped
            KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    _summarize(rows)


def _summarize(rows: list[dict[str, Any]]) -> None:
    for said, over, under in (
        ("tuned over MetaSchedule", "tvm_final", "final"),
        ("default over MetaSchedule", "tvm_final", "default_final"),
        ("tuned over default", "default_final", "final"),
    ):
        ratios = [row[over] / row[under] for row in rows if over in row and under in row]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{said}: geometric mean {mean:.2f} of {len(ratios)}, least {min(ratios):.2f}")
    for trials, share in ((1, 1.1), (10, 1.1), (32, 1.05)):
        near = sum(
            row["best_after"][:trials][-1] <= share * min(row["best"], row.get("tvm_best", math.inf)) for row in rows
        )
        print(f"within {share - 1:.0%} of the best known after {trials} trials: {near} of {len(rows)}")


def _row(one: Program, args: argparse.Namespace) -> dict[str, Any]:
    target = f"llvm -num-cores={args.threads}"
    start = time.perf_counter()
    result = tir.tune(one.func, target, trials=args.trials, seconds=args.seconds, seed=args.seed, verbose=False)
    row: dict[str, Any] = {
        "program": one.name,
        "search_seconds": time.perf_counter() - start,
        "trials": len(result.trials),
        "failed": sum(not t.result.ok for t in result.trials if t.result),
        "best_after": _best_after(result),
        "default": result.trials[0].seconds,
        "best": result.best_seconds,
    }
    row |= _by_turns(one, result, args)
    _print_row(row)
    return row


def _print_row(row: dict[str, Any]) -> None:
    said = f"{row['program']}: {row['best'] * 1e6:.1f} us in {row['search_seconds']:.0f} s"
    if "default_final" in row:
        said += f", {row['default_final'] / row['final']:.2f} times as fast as the default"
    if "tvm_failed" in row:
        said += f"; MetaSchedule: {row['tvm_failed']}"
    if "ratio" in row:
        took = f"{row['tvm_trials']} trials, {row['tvm_search_seconds']:.0f} s"
        said += f"; {row['ratio']:.2f} times as fast as MetaSchedule's ({took})"
    if "ratio" in row and "default_final" in row:
        said += f", the default {row['tvm_final'] / row['default_final']:.2f} times"
    print(said, flush=True)


def _best_after(result: Any) -> list[float]:
    found, best = [], math.inf
    for trial in result.trials:
        best = min(best, trial.seconds)
        found.append(best)
    return found


def _by_turns(one: Program, result: Any, args: argparse.Namespace) -> dict[str, Any]:
    """The default and the winner, and TVM's, which its process tunes first: each the least of its times, taken by turns."""
    inputs = [placed(array) for array in random_inputs(one.func)]  # as arrays of TVM are
    target = f"llvm -num-cores={args.threads}"
    modules = {"default_final": tir.build(result.trials[0].schedule.mod, target), "final": result.module()}
    turns = {name: _timed(module, inputs, args.threads) for name, module in modules.items()}
    found: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        if args.tvm_python:
            theirs = stack.enter_context(_Tvm(one, inputs, args))
            found = theirs.found
            if "tvm_failed" not in found:
                turns["tvm_final"] = theirs.time
        for _ in range(ROUNDS):
            for name, turn in turns.items():
                found[name] = min(turn(), found.get(name, math.inf))
    if "tvm_final" in found:
        found["ratio"] = found["tvm_final"] / found["final"]
    return found


def _timed(module: Any, inputs: list[np.ndarray], threads: int) -> Callable[[], float]:
    call, now = module.entry.prepared(*inputs), getattr(time, clock(threads))

    def turn() -> float:
        call()
        start = now()
        call()
        return now() - start

    return turn


class _Tvm:
    """Its process: tunes the program, then takes the time of a call when it is asked."""

    def __init__(self, one: Program, inputs: list[np.ndarray], args: argparse.Namespace):
        worker = pathlib.Path(__file__).with_name("tvm_tune.py")
        numbers = map(str, (args.tvm_trials, args.threads, args.seed))
        command = [args.tvm_python, str(worker), *numbers, clock(args.threads)]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        arrays = [(a.shape, str(a.dtype)) for a in inputs]
        answer = self._ask(json.dumps({"name": one.func.name, "text": one.func.script(), "arrays": arrays}))
        self.found = json.loads(answer) if answer else {"tvm_failed": f"it ended with status {self._child.wait()}"}

    def time(self) -> float:
        return float(self._ask("time"))

    def _ask(self, line: str) -> str:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()
        return self._child.stdout.readline()

    def __enter__(self) -> _Tvm:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.communicate()


def processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


if __name__ == "__main__":
    main()
