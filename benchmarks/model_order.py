"""How well the tuner's model orders candidates: ``python -m benchmarks.model_order [--only gemm] [--count 48]``.

Of each program, candidates with values at random (each as likely as any other, of every sketch) are built and timed by turns
on one thread, the least of each; Spearman's correlation of their times with the model's. Writes model_order.json: sketches as
traces, decisions, times and the model's terms, so that another model can be judged by the same times (``--again benchmarks/model_order.json``: of a Sapphire Rapids Xeon that had
other work to do, 32 candidates each).
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import random
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import tir
from tir.function import IRModule
from tir.schedule import Trace
from tir.testing.oracle import random_inputs
from tir.tune.drawing import Replays, RuleSource
from tir.tune.model import predict
from tir.tune.ranking import samplings
from tir.tune.space import Env, space_of

from .plain import timed
from .work import PLAIN

TARGET = "llvm -num-cores=1"
# a name with a star was not used when constants of the model were chosen
PROGRAMS: dict[str, tuple[str, tuple[int, ...]]] = {
    "gemm 384": ("gemm", (384, 384, 384)),
    "gemm 250x700x900": ("gemm", (250, 700, 900)),
    "conv2d_nhwc 28x64x64x3": ("conv2d_nhwc", (1, 28, 64, 64, 3, 1)),
    "conv2d_nchw 28x64x64x3": ("conv2d_nchw", (1, 28, 64, 64, 3, 1)),
    "thin 8x1024x2048": ("gemm", (8, 1024, 2048)),
    "gemm 512*": ("gemm", (512, 512, 512)),
    "gemm 1000x120x333*": ("gemm", (1000, 120, 333)),
    "batched 8x96x160x128*": ("batched_gemm", (8, 96, 160, 128)),
    "conv2d_nhwc 14x128x256x1*": ("conv2d_nhwc", (1, 14, 128, 256, 1, 1)),
    "conv2d_nchw 14x128x64x3*": ("conv2d_nchw", (1, 14, 128, 64, 3, 1)),
    "transposed 300x500x400*": ("gemm transposed A", (300, 500, 400)),
}


def measured(name: str, count: int) -> dict[str, Any]:
    """Times of ``count`` candidates at random."""
    kind, sizes = PROGRAMS[name]
    func, generator = PLAIN[kind](*sizes), random.Random(0)
    source = RuleSource(space_of(TARGET), IRModule.of(func))
    sketches = [sch.trace for sch in source.draw(generator, 1)]
    rows: dict[str, tuple[int, list[Any]]] = {}
    for _ in range(20 * count):
        number = generator.randrange(len(sketches))
        values = [generator.randrange(len(s.args["candidates"])) for s in samplings(sketches[number])]
        rows.setdefault(repr((number, values)), (number, values))
        if len(rows) == count:
            break
    arrays = random_inputs(func)
    made = [(row, sch) for row in rows.values() if (sch := _scheduled(sketches, row, func)) is not None]
    modules = [tir.build(sch.mod, target=TARGET) for _, sch in made]
    seconds = timed([functools.partial(m, *arrays) for m in modules], 1, 0.12)
    return {
        "name": name,
        "sketches": [trace.as_json() for trace in sketches],
        "candidates": [{"sketch": r[0], "decisions": r[1], "seconds": t} for (r, _), t in zip(made, seconds)],
    }


def _scheduled(sketches: Sequence[Trace], row: tuple[int, list[Any]], func: tir.PrimFunc) -> tir.Schedule | None:
    return Replays(sketches[row[0]], IRModule.of(func), tir.Target(TARGET)).decided(row[1])


def judged(found: dict[str, Any]) -> tuple[float, float]:
    """Spearman's correlation of the model's seconds with those measured, and the least time of the eight that the model
    takes to be fastest, as a share of the best's speed. The model's terms are written beside the times."""
    kind, sizes = PROGRAMS[found["name"]]
    func, env = PLAIN[kind](*sizes), Env.of(TARGET)
    sketches = [Trace.from_json(trace) for trace in found["sketches"]]
    for one in found["candidates"]:
        sch = _scheduled(sketches, (one["sketch"], one["decisions"]), func)
        prediction = None if sch is None else predict(sch, env)
        assert prediction is not None
        one |= {"predicted": prediction.seconds, "terms": dict(prediction.terms)}
    times = [one["seconds"] for one in found["candidates"]]
    guesses = [one["predicted"] for one in found["candidates"]]
    first = sorted(range(len(times)), key=guesses.__getitem__)[:8]
    return spearman(times, guesses), min(times) / min(times[n] for n in first)


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """The correlation of ranks; equal values share the mean of theirs."""
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values)
    return np.array([(array < v).sum() + ((array == v).sum() - 1) / 2 for v in array])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="names of programs begin with one of these, separated by commas")
    options.add_argument("--count", type=int, default=48)
    options.add_argument("--again", type=pathlib.Path, help="times of an earlier run, judged anew")
    options.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "out" / "model_order.json")
    args = options.parse_args()
    wanted = tuple(name for name in args.only.split(",") if name)
    kept = {one["name"]: one for one in json.loads(args.again.read_text())} if args.again else {}
    rows, unseen = [], []
    for name in kept or PROGRAMS:
        if wanted and not name.startswith(wanted):
            continue
        start = time.perf_counter()
        found = kept.get(name) or measured(name, args.count)
        order, share = judged(found)
        unseen += [order] if name.endswith("*") else []
        rows.append(found)
        print(
            f"{name:<28} Spearman {order:5.2f}  best of first 8: {share:.2f}  ({time.perf_counter() - start:.0f} s)",
            flush=True,
        )
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(rows), encoding="utf-8")
    if unseen:
        print(f"median of those not used for fitting: {statistics.median(unseen):.2f}")


if __name__ == "__main__":
    main()
