"""``tir.tune`` and TVM's MetaSchedule on the same programs: ``python -m benchmarks.tune [--tvm-python PYTHON]``.

Each program is text that both dialects read. Ours is tuned with ``--trials`` (default 51), theirs with ``--tvm-trials``
(default 512, its usual number for an operator) in a process of the other Python. The winners are timed at the end by turns, so
that load hits both. Writes tune.json: for each program the best time after every trial, the seconds of the search, and the
final times; with the name of the processor, as results of two machines cannot be compared.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import platform
import subprocess
import time
from dataclasses import dataclass
from typing import Any

import tir
from codegen.machine_peak import measure_fma_peak
from tir.testing.oracle import random_inputs

GEMM = """
@T.prim_func
def main(A: T.Buffer(({m}, {k}), "float32"), B: T.Buffer(({k}, {n}), "float32"), C: T.Buffer(({m}, {n}), "float32")):
    for i, j, k in T.grid({m}, {n}, {k}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
CONV = """
@T.prim_func
def main(X: T.Buffer((1, {p}, {p}, {c}), "float32"), W: T.Buffer(({r}, {r}, {c}, {f}), "float32"), Y: T.Buffer((1, {h}, {h}, {f}), "float32")):
    for n, y, x, f, r, s, c in T.grid(1, {h}, {h}, {f}, {r}, {r}, {c}):
        with T.block("Y"):
            vn, vy, vx, vf, vr, vs, vc = T.axis.remap("SSSSRRR", [n, y, x, f, r, s, c])
            with T.init():
                Y[vn, vy, vx, vf] = T.float32(0)
            Y[vn, vy, vx, vf] = Y[vn, vy, vx, vf] + X[vn, vy + vr, vx + vs, vc] * W[vr, vs, vc, vf]
"""
ROW_SUM = """
@T.prim_func
def main(A: T.Buffer(({m}, {n}), "float32"), B: T.Buffer(({m},), "float32")):
    for i, j in T.grid({m}, {n}):
        with T.block("B"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vj]
"""
BLUR = """
@T.prim_func
def main(A: T.Buffer(({p}, {p}), "float32"), B: T.Buffer(({n}, {n}), "float32")):
    for y, x in T.grid({n}, {n}):
        with T.block("B"):
            vy, vx = T.axis.remap("SS", [y, x])
            B[vy, vx] = (A[vy, vx] + A[vy, vx + 1] + A[vy, vx + 2] + A[vy + 1, vx] + A[vy + 1, vx + 1] + A[vy + 1, vx + 2] + A[vy + 2, vx] + A[vy + 2, vx + 1] + A[vy + 2, vx + 2]) * T.float32(0.11111111)
"""


@dataclass(frozen=True)
class Program:
    """A program as text, and its operations."""

    name: str
    text: str
    flops: float


def programs() -> list[Program]:
    """The programs, smallest first of each kind."""
    sizes = [
        (128, 128, 128),
        (512, 512, 512),
        (1024, 1024, 1024),
        (1023, 1023, 1023),
        (1021, 1021, 1021),
        (1000, 1000, 1000),
        (37, 511, 4096),
        (2048, 16, 2048),
    ]
    found = [Program(f"gemm {m}x{n}x{k}", GEMM.format(m=m, n=n, k=k), 2.0 * m * n * k) for m, n, k in sizes]
    for h, c, f, r in ((56, 64, 64, 3), (28, 128, 128, 3), (7, 512, 512, 3), (56, 64, 256, 1)):
        flops = 2.0 * h * h * c * f * r * r
        found.append(Program(f"conv {h}x{c}x{f}x{r}", CONV.format(h=h, c=c, f=f, r=r, p=h + r - 1), flops))
    found.append(Program("row_sum 1023x511", ROW_SUM.format(m=1023, n=511), 1023.0 * 511))
    found.append(Program("blur 2046", BLUR.format(n=2046, p=2048), 9.0 * 2046 * 2046))
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="names of programs begin with one of these, separated by commas")
    options.add_argument("--trials", type=int, default=51)
    options.add_argument("--seconds", type=float, default=120.0, help="for each program")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--tvm-python", help="a Python with apache-tvm")
    options.add_argument("--tvm-trials", type=int, default=512)
    options.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "out" / "tune.json")
    args = options.parse_args()
    wanted = tuple(name for name in args.only.split(",") if name)
    rows = [_row(one, args) for one in programs() if not wanted or one.name.startswith(wanted)]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    about = {"processor": _processor(), "peak_gflops_of_a_core": measure_fma_peak(), "threads": args.threads}
    args.out.write_text(json.dumps({**about, "rows": rows}, indent=1), encoding="utf-8")
    ratios = [row["ratio"] for row in rows if row.get("ratio")]
    if ratios:
        print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}")


def _row(one: Program, args: argparse.Namespace) -> dict[str, Any]:
    target = f"llvm -num-cores={args.threads}"
    func = tir.script.parse(one.text)
    start = time.perf_counter()
    result = tir.tune(func, target, trials=args.trials, seconds=args.seconds, seed=args.seed, verbose=False)
    row: dict[str, Any] = {
        "program": one.name,
        "search_seconds": time.perf_counter() - start,
        "trials": len(result.trials),
        "failed": sum(not t.result.ok for t in result.trials if t.result),
        "best_after": _best_after(result),
        "default": result.trials[0].seconds,
        "best": result.best_seconds,
    }
    said = f"{one.name}: {one.flops / row['best'] * 1e-9:.1f} GFLOP/s in {row['search_seconds']:.0f} s"
    if args.tvm_python:
        row |= _beside_tvm(one, result.module(), func, args)
        said += f"; {_versus(row)}"
    print(said, flush=True)
    return row


def _versus(row: dict[str, Any]) -> str:
    if "tvm_failed" in row:
        return f"MetaSchedule: {row['tvm_failed']}"
    return f"{row['ratio']:.2f} times as fast as MetaSchedule's ({row['tvm_search_seconds']:.0f} s)"


def _best_after(result: Any) -> list[float]:
    found, best = [], math.inf
    for trial in result.trials:
        best = min(best, trial.seconds)
        found.append(best)
    return found


def _beside_tvm(one: Program, ours: Any, func: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Tune in the other Python; then time both winners by turns, the least of each."""
    worker = pathlib.Path(__file__).with_name("tvm_tune.py")
    command = [args.tvm_python, str(worker), str(args.tvm_trials), str(args.threads), str(args.seed)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(json.dumps(one.text) + "\n")
        child.stdin.flush()
        answer = child.stdout.readline()
        found = json.loads(answer) if answer else {"tvm_failed": f"it ended with status {child.wait()}"}
        if "tvm_failed" in found:
            return found
        call = ours.entry.prepared(*random_inputs(func))
        mine = theirs = math.inf
        for _ in range(20):
            start = time.perf_counter()
            call()
            mine = min(mine, time.perf_counter() - start)
            child.stdin.write("time\n")
            child.stdin.flush()
            theirs = min(theirs, float(child.stdout.readline()))
        child.stdin.close()
    return {"final": mine, "tvm_final": theirs, "ratio": theirs / mine, **found}


def _processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


if __name__ == "__main__":
    main()
