"""The cost of scheduling in counts: exact-set operations and simplifications of whole schedules.

``python -m benchmarks.counts`` prints a table; ``--against FILE`` adds the counts of an earlier run. Unlike seconds,
counts are the same in each run and on each machine, so they can be compared from commit to commit. The methods of
islpy's sets and maps, and ``Analyzer.simplify``, are replaced by ones that count.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import islpy

import tir
from tests.gpu_examples import load
from tests.hand_schedules import attention, gemm, rows
from tests.tier_checks import tiers
from tir.analysis.dependence.tiers import Tier
from tir.arith import Analyzer
from tir.display import text_table

SETS = ("BasicSet", "BasicMap", "Set", "Map", "UnionSet", "UnionMap")
# methods that query an object or make the Python object do no work on sets
FREE = re.compile(r"get_|dim|space$|is_null|copy|plain_|tuple|to_|has_|find_dim|set_dim_name|ctx$|user|_")
OPERATORS = ("__init__", "__and__", "__or__", "__sub__", "__le__", "__lt__", "__ge__", "__gt__", "__eq__")
COLUMNS = ("steps", "set operations", "simplify calls")


def _gpu(name: str) -> tir.Schedule:
    return load(name).full()[1]


SCHEDULES: dict[str, Callable[[], tir.Schedule]] = {
    "gemm": lambda: gemm.scheduled_gemm(1024, 1024, 1024, 1),
    "batched gemm": lambda: gemm.scheduled_batched_gemm(32, 128, 128, 64, 1),
    "attention": lambda: attention.schedule_attention(tir.Schedule(attention.attention(1024, 1024, 64))),
    "softmax": lambda: rows.schedule_softmax(tir.Schedule(rows.softmax(4096, 4096))),
    "layer norm": lambda: rows.schedule_layer_norm(tir.Schedule(rows.layer_norm(4096, 4096))),
    "gpu/sgemm": lambda: _gpu("sgemm"),
    "gpu/mma_gemm": lambda: _gpu("mma_gemm"),
    "gpu/conv2d": lambda: _gpu("conv2d"),
}


class Counting:
    """Counts calls of replaced methods, from its creation on; ``counts`` by kind."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._inside = False
        for name in SETS:
            cls = getattr(islpy, name)
            for method in [m for m in vars(cls) if m in OPERATORS or not FREE.match(m)]:
                if callable(getattr(cls, method)):
                    self._replace(cls, method, "set operations")
        self._replace(Analyzer, "simplify", "simplify calls")

    def _replace(self, cls: type, name: str, kind: str) -> None:
        """Count the calls of a method; for sets only the outermost call (islpy implements some by others)."""
        known = vars(cls)[name]
        static = type(known).__name__ in ("nb_func", "staticmethod")
        call = getattr(cls, name)

        @functools.wraps(call, assigned=("__name__",), updated=())
        def counted(*args: Any, **kwargs: Any) -> Any:
            if kind == "set operations" and self._inside:
                return call(*args, **kwargs)
            self.counts[kind] += 1
            before, self._inside = self._inside, kind == "set operations"
            try:
                return call(*args, **kwargs)
            finally:
                self._inside = before

        setattr(cls, name, staticmethod(counted) if static else counted)


def count(name: str) -> dict[str, int]:
    """The counts of one schedule. Run it in a new process: methods stay replaced, and caches stay filled."""
    counting = Counting()
    sch = SCHEDULES[name]()
    return {"steps": len(sch.history) - 1, **{c: counting.counts[c] for c in COLUMNS[1:]}}


MOVED = """
@T.prim_func
def main(A: T.Buffer((34, 34), "float32"), C: T.Buffer((32, 32), "float32")):
    B = T.alloc_buffer((34, 34), "float32")
    for i, j in T.grid(34, 34):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] * 2.0
    for i, j in T.grid(32, 32):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = B[v, w] + B[v + 1, w] + B[v + 2, w + 2]
"""


def files_entered() -> list[str]:
    """The files of tir that have a function which runs in one ``compute_at`` that exact sets decide."""
    sch = tir.Schedule(tir.script.parse(MOVED))
    package = Path(tir.__file__).parent
    found: set[str] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    with tiers(without=[Tier.SIMPLE_BLOCK]):
        sch.copy().compute_at("B", "C.i")  # imports
        sys.setprofile(note)
        try:
            sch.compute_at("B", "C.i")
        finally:
            sys.setprofile(None)
    inside = (Path(name) for name in found)
    return sorted(str(f.relative_to(package)) for f in inside if f.is_relative_to(package))


def table(rows: dict[str, dict[str, int]]) -> str:
    return _text({name: [str(row[c]) for c in COLUMNS] for name, row in rows.items()})


def _text(rows: dict[str, list[str]]) -> str:
    head = ("schedule", *COLUMNS)
    return text_table(head, [(name, *cells) for name, cells in rows.items()], right=range(1, len(head)))


def parsed(text: str) -> dict[str, dict[str, int]]:
    """The rows of a printed table."""
    found = re.findall(r"^(\S.*?)\s{2,}(\d+)\s+(\d+)\s+(\d+)", text, flags=re.M)
    return {name: dict(zip(COLUMNS, map(int, numbers))) for name, *numbers in found}


def difference(old: dict[str, dict[str, int]], new: dict[str, dict[str, int]]) -> str:
    """The table of ``new``, with the old number after each one that differs."""

    def cell(now: int, before: int) -> str:
        return str(now) if now == before else f"{now} (was {before})"

    return _text({n: [cell(row[c], old.get(n, row)[c]) for c in COLUMNS] for n, row in new.items()})


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--against", type=Path, help="what an earlier run printed, in a file")
    options.add_argument("--jobs", type=int, default=1)
    args = options.parse_args()
    with multiprocessing.get_context("spawn").Pool(args.jobs, maxtasksperchild=1) as pool:
        found = dict(zip(SCHEDULES, pool.map(count, SCHEDULES, chunksize=1)))
    print(difference(parsed(args.against.read_text(encoding="utf-8")), found) if args.against else table(found))
    print(f"files entered by compute_at, by sets: {len(files_entered())}")


if __name__ == "__main__":
    main()
