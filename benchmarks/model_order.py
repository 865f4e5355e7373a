"""How well the tuner's model orders candidates: ``python -m benchmarks.model_order [--only gemm] [--count 48]``.

Of each program, candidates with values at random (each as likely as any other, of every sketch) are built and timed by turns
on one thread, the least of each; Spearman's correlation of their times with the model's. ``--again`` judges the model by the times
of model_order.json.xz, without running anything; ``--save`` keeps those of this run there, beside what other processors took. A candidate is
kept as the text of its scheduled program, so that neither the rules nor the names of blocks have to be what they were. ``--retime`` times the
candidates that are kept once more, says how well the two takes agree, which no model can do better than, and keeps the lesser times with ``--save``.
"""

from __future__ import annotations

import argparse
import functools
import json
import lzma
import pathlib
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tir
from tir import ops, te
from tir.equal import structural_digest
from tir.function import IRModule
from tir.testing.oracle import random_inputs
from tir.tune.cost_model import floor, predict, smooth_maximum
from tir.tune.drawing import Replays, RuleSource
from tir.tune.ranking import samplings
from tir.tune.space import Env, space_of

from .arrays import placed
from .tune import processor
from .work import PLAIN

TARGET = "llvm -num-cores=1"
LEAST, SAME, PATIENCE = 6, 0.02, 4.0  # times of a candidate; the share by which three differ at most; seconds of it
FEWEST = 3  # calls at a time: the first ones find in the caches what other candidates left there
KEPT = pathlib.Path(__file__).with_name("model_order.json.xz")


def _of(made: Callable[..., te.Tensor], *shapes: tuple[int, ...], dtypes: tuple[str, ...] = ()) -> tir.PrimFunc:
    types = dtypes or ("float32",) * len(shapes)
    inputs = [te.placeholder(s, t, name=f"x{n}") for n, (s, t) in enumerate(zip(shapes, types))]
    return te.create_prim_func([*inputs, made(*inputs)])


PROGRAMS: dict[str, Callable[[], tir.PrimFunc]] = {
    "gemm 36x500x300": lambda: PLAIN["gemm"](36, 500, 300),
    "gemm 1000x120x333": lambda: PLAIN["gemm"](1000, 120, 333),
    "thin 8x1024x2048": lambda: PLAIN["gemm"](8, 1024, 2048),
    "transposed 50x40x2000": lambda: PLAIN["gemm transposed A"](50, 40, 2000),
    "conv2d_nhwc 28x64x64x3": lambda: PLAIN["conv2d_nhwc"](1, 28, 64, 64, 3, 1),
    "conv2d_nhwc 56x32x64x3 by 2": lambda: PLAIN["conv2d_nhwc"](1, 56, 32, 64, 3, 2),
    "conv2d_nchw 14x128x64x3": lambda: PLAIN["conv2d_nchw"](1, 14, 128, 64, 3, 1),
    "depthwise_nhwc 56x64x3": lambda: PLAIN["depthwise_nhwc"](1, 56, 64, 64, 3, 1),
    "depthwise_nhwc 28x96x5": lambda: PLAIN["depthwise_nhwc"](1, 28, 96, 96, 5, 1),
    "depthwise_nchw 64x56x3": lambda: _of(
        lambda x, w: ops.nn.conv2d(x, w, padding=1, groups=64), (1, 64, 56, 56), (64, 1, 3, 3)
    ),
    "max-pool 32x56 3x3 by 2": lambda: _of(lambda x: ops.nn.pool2d(x, 3, 2, 1, (1, 1, 1, 1), "max"), (1, 32, 56, 56)),
    "mean-pool 32x56 3x3": lambda: _of(lambda x: ops.nn.pool2d(x, 3, 1, 1, (1, 1, 1, 1), "avg"), (1, 32, 56, 56)),
    "bilinear 3x96x96 to 192": lambda: _of(
        lambda x: ops.image.resize2d(x, (0.0, 0.0, 0.0, 0.0), (192, 192)), (1, 3, 96, 96)
    ),
    "gather columns 256x1024": lambda: _of(
        lambda x, at: ops.take(x, at, axis=1), (256, 1024), (512,), dtypes=("float32", "int32")
    ),
    "sum of rows at places": lambda: _bags(),
    "blur 1000x1500": lambda: PLAIN["blur"](1000, 1500),
    "transpose 500x300": lambda: PLAIN["transpose"](500, 300),
    "row_sum 500x300": lambda: PLAIN["row_sum"](500, 300),
}


def _bags() -> tir.PrimFunc:
    """Means of rows at places that data gives."""
    x, at = te.placeholder((4096, 64), name="x"), te.placeholder((128, 16), "int32", name="at")
    k = te.reduce_axis((0, 16), "k")
    return te.create_prim_func([x, at, te.compute((128, 64), lambda i, j: te.sum(x[at[i, k], j], axis=k), name="bags")])


def measured(func: tir.PrimFunc, count: int) -> dict[str, Any]:
    """A program, and ``count`` scheduled ones at random, no two alike, with their times."""
    mod, generator = IRModule.of(func), random.Random(0)
    source = RuleSource(space_of(TARGET), mod)
    replays = [Replays(sch.trace, mod, tir.Target(TARGET)) for sch in source.draw(generator, 1)]
    made: dict[str, tir.PrimFunc] = {}
    for _ in range(4 * count):
        chosen = generator.choice(replays)
        sch = chosen.decided([generator.randrange(len(s.args["candidates"])) for s in samplings(chosen.trace)])
        if sch is not None:
            made.setdefault(structural_digest(sch.mod), sch.func)
        if len(made) == count:
            break
    times = timed(func, list(made.values()))
    kept = [{"text": one.script(), "seconds": t} for one, t in zip(made.values(), times)]
    return {"program": func.script(), "candidates": kept}


def timed(func: tir.PrimFunc, scheduled: list[tir.PrimFunc]) -> list[float]:
    """The least seconds of ``func`` as each of these, on the same arrays."""
    arrays = [placed(a) for a in random_inputs(func)]
    times = least_times([functools.partial(tir.build(one, target=TARGET), *arrays) for one in scheduled])
    return [float(f"{t:.4g}") for t in times]


def retimed(found: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """Kept candidates with the lesser of their times and those of another take; the correlation of both."""
    kept = found["candidates"]
    before = [one["seconds"] for one in kept]
    now = timed(_read(found["program"]), [_read(one["text"]) for one in kept])
    least = [{**one, "seconds": min(one["seconds"], t)} for one, t in zip(kept, now)]
    return {**found, "candidates": least}, spearman(before, now)


def _read(text: str) -> tir.PrimFunc:
    found = tir.script.parse(text)
    assert isinstance(found, tir.PrimFunc)
    return found


def least_times(calls: list[Callable[[], None]]) -> list[float]:
    """The least seconds of each call, taken by turns until it is met again: other work on the machine lengthens some."""
    found: list[list[float]] = [[] for _ in calls]
    begin = time.perf_counter()
    while left := [n for n, times in enumerate(found) if not _is_met_again(times)]:
        for n in left:
            calls[n]()
            number = max(FEWEST, min(500, int(5e-4 / min(found[n], default=1.0))))
            start = time.thread_time()
            for _ in range(number):
                calls[n]()
            found[n].append((time.thread_time() - start) / number)
        if time.perf_counter() - begin > PATIENCE * len(calls):
            break
    return [min(times) for times in found]


def _is_met_again(times: list[float]) -> bool:
    return len(times) >= LEAST and sorted(times)[2] <= (1 + SAME) * min(times)


def judged(found: dict[str, Any], env: Env) -> tuple[float, float]:
    """Spearman's correlation of the model's seconds with those measured, and the least time of the eight that the model
    takes to be fastest, as a share of the best's speed."""
    lowest = floor(tir.Schedule(tir.script.parse(found["program"])), env)
    times = [one["seconds"] for one in found["candidates"]]
    guesses = [_predicted(one["text"], lowest, env) for one in found["candidates"]]
    first = sorted(range(len(times)), key=guesses.__getitem__)[:8]
    return spearman(times, guesses), min(times) / min(times[n] for n in first)


def _predicted(text: str, lowest: float, env: Env) -> float:
    """The model's seconds of a candidate, whose program can take no less than ``lowest``."""
    found = predict(tir.script.parse(text), env)
    assert found is not None, f"the model has no answer for\n{text}"
    return max(lowest, smooth_maximum([*{**found.terms, "arguments": lowest}.values()]))


def spearman(a: list[float], b: list[float]) -> float:
    """The correlation of ranks; equal values share the mean of theirs."""
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: list[float]) -> np.ndarray:
    array = np.asarray(values)
    return np.array([(array < v).sum() + ((array == v).sum() - 1) / 2 for v in array])


def _kept() -> dict[str, Any]:
    """What is kept: programs, by processor and by name."""
    return json.loads(lzma.decompress(KEPT.read_bytes())) if KEPT.exists() else {}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="names of programs begin with one of these, separated by commas")
    options.add_argument("--count", type=int, default=48)
    options.add_argument("--again", action="store_true", help="times that are kept, judged anew")
    options.add_argument("--retime", action="store_true", help="candidates that are kept, timed again")
    options.add_argument("--save", action="store_true", help="keep the times of this run")
    args = options.parse_args()
    here = _kept().get(processor(), {})
    wanted, orders = tuple(name for name in args.only.split(",") if name), []
    for name in list(here) if args.again or args.retime else PROGRAMS:
        if wanted and not name.startswith(wanted):
            continue
        start = time.perf_counter()
        takes = ""
        if args.retime:
            found, agree = retimed(here[name])
            takes = f", two takes {agree:.2f}"
        else:
            found = here[name] if args.again else measured(PROGRAMS[name](), args.count)
        order, share = judged(found, Env.of(TARGET))
        orders.append(order)
        taken = f"{len(found['candidates'])} candidates, {time.perf_counter() - start:.0f} s{takes}"
        print(f"{name:<28} Spearman {order:5.2f}  best of first 8: {share:.2f}  ({taken})", flush=True)
        if args.save:
            kept = _kept()
            kept.setdefault(processor(), {})[name] = found
            KEPT.write_bytes(lzma.compress(json.dumps(kept).encode()))
    if orders:
        print(f"median {statistics.median(orders):.2f}, least {min(orders):.2f}")


if __name__ == "__main__":
    main()
