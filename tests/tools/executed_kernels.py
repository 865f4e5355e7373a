"""Every case of every operator by its default GPU schedule, compiled by NVRTC and executed as PTX:
``python -m tests.tools.executed_kernels [--part 0 --of 8] [--order reverse] [NAME…]``.

Prints what is wrong or does not compile, a count, and the instruction forms that were executed; exits with 1 on any failure.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator

import tir
from tir import ops
from tir.errors import TirError
from tir.ops.check import Judged
from tir.ops.registry import find
from tir.progress import track


def cases(names: list[str]) -> Iterator[tuple[str, Judged]]:
    for name in names:
        operator = find(name)
        for n, case in enumerate(operator.cases):
            yield f"{name}, case {n}", Judged(operator, case, 0, f"case{n}")


def executed(judged: Judged, order: str, forms: Counter[str]) -> None:
    """Judge one case. Raises what is wrong."""
    sch = tir.tune.default(judged.func, "cuda")
    mod = tir.build(sch.mod, f"cuda-ptx -arch=sm_80 -order={order}")
    (function,) = mod.functions.values()
    judged(function)
    for launch in mod.simulated.launches:
        forms.update(launch.executed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.executed_kernels", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--of", type=int, default=1, help="of that many parts")
    parser.add_argument("--order", default="reverse")
    options = parser.parse_args()
    names = options.names or list(ops.operators())[options.part :: options.of]
    bad, right, forms = 0, 0, Counter[str]()
    for title, judged in track(list(cases(names)), "cases"):
        try:
            executed(judged, options.order, forms)
            right += 1
        except (TirError, AssertionError) as error:
            bad += 1
            print(f"{title}: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
    print(f"{right} cases right, {bad} not; {len(forms)} forms executed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
