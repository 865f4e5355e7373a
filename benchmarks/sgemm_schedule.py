"""A schedule of sgemm in 16 steps that TVM accepts too. Imports nothing: each library times it in its own Python."""

import statistics
import time


def schedule(sch, block):
    """Apply the steps to a matmul of 1024 whose block is ``block``; yields the name of each after it."""
    panel = sch.cache_read(block, 1, "global")
    yield "cache_read"
    tile = sch.cache_write(block, 0, "global")
    yield "cache_write"
    i, j, k = sch.get_loops(block)
    io, ii = sch.split(i, [None, 8])
    yield "split"
    jo, jv, lane = sch.split(j, [None, 2, 16])
    yield "split"
    ko, ki = sch.split(k, [None, 4])
    yield "split"
    sch.reorder(jo, io, ko, ki, ii, jv, lane)
    yield "reorder"
    sch.compute_at(panel, jo)
    yield "compute_at"
    sch.reverse_compute_at(tile, io)
    yield "reverse_compute_at"
    sch.parallel(jo)
    yield "parallel"
    sch.vectorize(lane)
    yield "vectorize"
    sch.unroll(ii)
    yield "unroll"
    sch.unroll(jv)
    yield "unroll"
    _, copied = sch.split(sch.get_loops(panel)[-1], [None, 16])
    yield "split"
    sch.vectorize(copied)
    yield "vectorize"
    sch.vectorize(sch.get_loops(tile)[-1])
    yield "vectorize"
    sch.decompose_reduction(block, ko)
    yield "decompose_reduction"


def measure(fresh, repeat=30):
    """Rows of medians in microseconds: the whole schedule, and each of its steps. ``fresh()`` returns a schedule and the
    block."""
    for _ in range(3):  # caches, imports
        list(schedule(*fresh()))
    wholes, parts = [], []
    for _ in range(repeat):
        sch, block = fresh()
        times, last = [], time.process_time()
        steps = schedule(sch, block)
        for name in steps:
            now = time.process_time()
            times.append((name, now - last))
            last = time.process_time()
        wholes.append(sum(t for _, t in times))
        parts.append(times)
    name = f"schedule of sgemm, {len(parts[0])} steps"
    rows = [{"what": name, "value": statistics.median(wholes) * 1e6, "unit": "us"}]
    for n, (step, _) in enumerate(parts[0]):
        value = statistics.median(times[n][1] for times in parts) * 1e6
        rows.append({"what": f"  {n + 1}. {step}", "value": value, "unit": "us"})
    return rows
