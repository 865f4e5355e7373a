"""What a step costs in functions of 10, 500 and 1000 blocks; parsing and lowering the largest of them.

``python -m benchmarks.many_blocks`` prints a table in milliseconds of processor time, the least of several runs. A step
concerns one block in the middle of a chain of them, and is the third of its schedule: what is computed once for a
program has been computed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import tir
from tir.display import text_table
from tir.script import from_source

SIZES = (10, 500, 1000)


def chain(blocks: int) -> str:
    """The text of a function of so many element-wise nests, each of which reads what the one before it wrote."""
    lines = ["@T.prim_func", 'def chain(A: T.Buffer((64, 64), "float32"), Z: T.Buffer((64, 64), "float32")):']
    names = ["A", *(f"B{n}" for n in range(1, blocks)), "Z"]
    lines += [f"    {name} = T.alloc_buffer((64, 64))" for name in names[1:-1]]
    for n in range(blocks):
        lines += [
            "    for i, j in T.grid(64, 64):",
            f'        with T.block("{names[n + 1]}"):',
            '            vi, vj = T.axis.remap("SS", [i, j])',
            f"            {names[n + 1]}[vi, vj] = {names[n]}[vi, vj] + T.float32(1)",
        ]
    return "\n".join(lines)


class Subject:
    """A schedule of a chain, the block in the middle of it with its loops, and the next block with its own."""

    def __init__(self, blocks: int):
        self.sch = tir.Schedule(from_source(chain(blocks)))
        self.block, self.next = (self.sch.get_block(f"B{blocks // 2 + n}") for n in (0, 1))
        self.i, self.j = self.sch.get_loops(self.block)
        self.ni, _ = self.sch.get_loops(self.next)
        for loop in self.sch.get_loops("B1"):
            self.sch.split(loop, [None, 4])


STEPS: dict[str, Callable[[tir.Schedule, Subject], Any]] = {
    "split": lambda sch, on: sch.split(on.i, [None, 8]),
    "fuse": lambda sch, on: sch.fuse(on.i, on.j),
    "reorder": lambda sch, on: sch.reorder(on.j, on.i),
    "parallel": lambda sch, on: sch.parallel(on.i),
    "vectorize": lambda sch, on: sch.vectorize(on.j),
    "bind": lambda sch, on: sch.bind(on.i, "threadIdx.x"),
    "unroll": lambda sch, on: sch.unroll(on.j),
    "compute_at": lambda sch, on: sch.compute_at(on.block, on.ni),
    "reverse_compute_at": lambda sch, on: sch.reverse_compute_at(on.next, on.i),
    "compute_inline": lambda sch, on: sch.compute_inline(on.block),
    "reverse_compute_inline": lambda sch, on: sch.reverse_compute_inline(on.next),
    "cache_read": lambda sch, on: sch.cache_read(on.next, 0, "global"),
    "cache_write": lambda sch, on: sch.cache_write(on.block, 0, "global"),
    "set_scope": lambda sch, on: sch.set_scope(on.block, 0, "shared"),
    "annotate": lambda sch, on: sch.annotate(on.i, "note", 1),
}


def least(call: Callable[[], Any], repeat: int) -> float:
    """Milliseconds of processor time of ``call``, the least of ``repeat`` runs."""
    samples = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        samples.append(time.process_time() - start)
    return min(samples) * 1e3


def steps(blocks: int, repeat: int) -> dict[str, float]:
    """The milliseconds of each step in a function of so many blocks."""
    on = Subject(blocks)
    return {name: _of_one(step, on, repeat) for name, step in STEPS.items()}


def _of_one(step: Callable[[tir.Schedule, Subject], Any], on: Subject, repeat: int) -> float:
    copies = iter([on.sch.copy() for _ in range(repeat)])
    return least(lambda: step(next(copies), on), repeat)


def whole(blocks: int) -> dict[str, float]:
    """The milliseconds of parsing a function of so many blocks, and of lowering it for a CPU, and for a GPU with each
    nest bound to threads by default."""
    text = chain(blocks)
    func = from_source(text)
    return {
        "parse": least(lambda: from_source(text), 2),
        "lower for a CPU": least(lambda: tir.lower(func), 1),
        "lower for a GPU": least(lambda: tir.lower(func, target="cuda"), 1),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--steps", action="store_true", help="no parsing and lowering")
    args = options.parse_args()
    found = [steps(size, args.repeat) for size in SIZES]
    head = ("step, in ms", *map(str, SIZES), "500 : 10")
    rows = [(name, [times[name] for times in found]) for name in STEPS]
    cells = [(name, *(f"{t:.2f}" for t in row), f"{row[1] / row[0]:.1f}") for name, row in rows]
    print(text_table(head, cells, right=range(1, len(head))))
    for name, value in {} if args.steps else whole(SIZES[-1]).items():
        print(f"{name:<42}{value:>9.0f}")


if __name__ == "__main__":
    main()
