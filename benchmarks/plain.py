"""What the tuner's rules make of plain programs, beside schedules by hand: ``python -m benchmarks.plain [--only gemm]``.

Every work is written down as a user would write it, scheduled by ``tir.tune.default``, and timed by turns with the schedule of
``tests.hand_schedules`` for the same arguments: the least of each. A ratio above 1: the default schedule is faster.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

import tir
from tests.hand_schedules import attention, conv, conv_nchw, elementwise, gemm, gemv, rows
from tir.library.conv import Layer

from .arrays import inputs
from .work import Work, by_default, works

BY_HAND: dict[str, Callable[..., tir.Schedule]] = {
    "gemm": gemm.scheduled_gemm,
    "gemv": gemv.scheduled_gemv,
    "batched_gemm": gemm.scheduled_batched_gemm,
    "attention": lambda *sizes: attention.schedule_attention(
        tir.Schedule(attention.attention(*sizes[:-1])), sizes[-1] > 1
    ),
    "conv2d_nhwc": lambda *sizes: conv.scheduled_conv2d_nhwc(Layer(*sizes[:-1]), sizes[-1]),
    "conv2d_nchw": lambda *sizes: conv_nchw.scheduled_conv2d_nchw(Layer(*sizes[:-1]), sizes[-1]),
    "depthwise_nhwc": lambda *sizes: conv_nchw.schedule_depthwise_nhwc(
        tir.Schedule(conv_nchw.depthwise_nhwc(Layer(*sizes[:-1]))), sizes[-1] > 1
    ),
    **{
        kind: lambda *sizes, k=kind, m=module: getattr(m, f"schedule_{k}")(
            tir.Schedule(getattr(m, k)(*sizes[:-1])), parallel=sizes[-1] > 1 and math.prod(sizes[:-1]) >= 1 << 18
        )
        for module, kinds in (
            (rows, ("softmax", "layer_norm", "row_sum", "column_sum")),
            (elementwise, ("transpose", "blur", "scale_add", "gelu_chain")),
        )
        for kind in kinds
    },
}  # of sizes and threads


def all_works() -> Iterator[Work]:
    """Thin products, products written in other ways, and the works that have a schedule by hand."""
    for m in (1, 2, 4, 8, 24):
        yield by_default("gemm", (m, 1024, 1024), 2.0 * m * 1024 * 1024)
    for sizes in ((4, 4096, 4096), (1024, 8, 1024)):
        yield by_default("gemm", sizes, 2.0 * math.prod(sizes))
    for way, n in (("transposed A", 1024), ("transposed B", 1024), ("transposed A", 1000), ("of five axes", 1000)):
        yield by_default(f"gemm {way}", (n, n, n), 2.0 * n**3)
    yield from (work for work in works() if work.kind in BY_HAND)


def timed(calls: Sequence[Callable[[], None]], threads: int, seconds: float = 0.4) -> list[float]:
    """The least seconds of each call, taken by turns: of the thread for one thread, else on the clock."""
    now = time.thread_time if threads == 1 else time.perf_counter
    least = [math.inf] * len(calls)
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds * len(calls) or math.inf in least:
        for n, call in enumerate(calls):
            call()
            number = max(1, min(500, int(1e-3 / max(least[n], 1e-7))))
            start = now()
            for _ in range(number):
                call()
            least[n] = min(least[n], (now() - start) / number)
    return least


def compare(work: Work, threads: int) -> tuple[float, float, float]:
    """Seconds by hand, seconds of the default schedule, and seconds that scheduling took. Both results are compared."""
    target = f"llvm -num-cores={threads}"
    start = time.perf_counter()
    sch = work.schedule(threads)
    taken = time.perf_counter() - start
    kind = work.kind.partition(" ")[0]
    hand, ours = (tir.build(s.mod, target=target) for s in (BY_HAND[kind](*work.sizes, threads), sch))
    arrays = inputs(kind, work.sizes)
    own = [array.reshape([s.value for s in buffer.shape]) for array, buffer in zip(arrays, sch.func.buffers())]
    hand(*arrays)
    expected = arrays[-1].copy()
    ours(*own)
    if " " not in work.kind:
        np.testing.assert_allclose(arrays[-1], expected, rtol=work.tolerance, atol=30 * work.tolerance)
    times = timed([lambda: hand(*arrays), lambda: ours(*own)], threads)
    return times[0], times[1], taken


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="names of works begin with one of these, separated by commas")
    options.add_argument("--threads", type=int, default=1)
    args = options.parse_args()
    wanted = tuple(name for name in args.only.split(",") if name)
    ratios = []
    for work in all_works():
        if wanted and not work.name.startswith(wanted):
            continue
        hand, ours, taken = compare(work, args.threads)
        rate = f"{work.amount / ours * 1e-9:8.1f} G{'FLOP' if work.unit == 'flops' else 'B'}/s"
        print(
            f"{work.name:<44} hand {hand * 1e6:9.1f} us  default {ours * 1e6:9.1f} us {rate}  {hand / ours:5.2f}  ({taken:.2f} s)",
            flush=True,
        )
        ratios.append(hand / ours)
    if ratios:
        print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    sys.exit(main())
