"""What records of other sizes are worth: ``python -m benchmarks.tune_transfer [--only gemm]``.

Each kind of program is tuned at some sizes into a database. Sizes that the database does not have are then tuned twice: alone
with as many trials, and with the database in a few. Both winners are timed by turns, the least of each: the
ratio is the speed of the few trials as a share of the size's own tuned speed. The speed of the default schedule is beside it.
"""

from __future__ import annotations

import argparse
import functools
import pathlib
import shutil
import tempfile
from dataclasses import dataclass

import tir
from tir.testing.oracle import random_inputs

from .plain import timed
from .work import PLAIN

ROUNDS = 40  # at least, of the last comparison


@dataclass(frozen=True)
class Sizes:
    """A program of ``benchmarks.work``: the sizes that are ``known``, and the others."""

    kind: str
    known: tuple[tuple[int, ...], ...]
    other: tuple[tuple[int, ...], ...]

    def program(self, sizes: tuple[int, ...]) -> tir.PrimFunc:
        return PLAIN[self.kind](*sizes)


FAMILIES = (
    Sizes("gemm", tuple((n, n, n) for n in (512, 1024, 2048)), tuple((n, n, n) for n in (1536, 1000))),
    Sizes(
        "conv2d_nhwc",
        ((1, 56, 64, 64, 3, 1), (1, 28, 128, 128, 3, 1), (1, 14, 256, 256, 3, 1)),
        ((1, 42, 96, 96, 3, 1), (1, 20, 100, 200, 3, 1)),
    ),
    Sizes("softmax", ((512, 512), (1024, 1024), (2048, 2048)), ((1536, 1536), (1000, 1000))),
)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="kinds of programs, separated by commas")
    options.add_argument("--trials", type=int, default=32, help="of each size alone")
    options.add_argument("--few", type=int, default=4, help="with the records of the other sizes")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--seed", type=int, default=0)
    args = options.parse_args()
    wanted = [kind for kind in args.only.split(",") if kind]
    ratios: list[float] = []
    for family in FAMILIES:
        if not wanted or family.kind in wanted:
            with tempfile.TemporaryDirectory() as folder:
                ratios += _ratios(family, pathlib.Path(folder) / "tune.db", args)
    if ratios:
        print(f"least {min(ratios):.2f} of the own tuned speed in {args.few} trials")


def _ratios(family: Sizes, db: pathlib.Path, args: argparse.Namespace) -> list[float]:
    """The speed of few trials as a share of that of many, for each size that is not known."""
    tuned = functools.partial(
        tir.tune, target=f"llvm -num-cores={args.threads}", seconds=600.0, seed=args.seed, verbose=False
    )
    alone = {sizes: tuned(family.program(sizes), trials=args.trials) for sizes in family.other}
    for sizes in family.known:
        tuned(family.program(sizes), trials=args.trials, db=db)
    found: list[float] = []
    for sizes, own in alone.items():
        # a copy, so that no size that is judged helps another one
        few = tuned(family.program(sizes), trials=args.few, db=shutil.copy(db, db.with_name("copy.db")))
        default = few.trials[0].schedule
        arrays = random_inputs(family.program(sizes))
        modules = [own.module(), few.module(), tir.build(default.mod, target=own.target)]
        each = max(0.4, ROUNDS * few.best_seconds)
        mine, transferred, untuned = timed([functools.partial(m, *arrays) for m in modules], args.threads, each)
        found.append(mine / transferred)
        print(
            f"{family.kind} {'x'.join(map(str, sizes))}: alone {len(own.trials)} trials {mine * 1e6:.1f} us, "
            f"with records {len(few.trials)} trials {transferred * 1e6:.1f} us: {mine / transferred:.2f} "
            f"(default {mine / untuned:.2f}; origins {', '.join(t.origin for t in few.trials)})",
            flush=True,
        )
    return found


if __name__ == "__main__":
    main()
