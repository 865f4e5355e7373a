"""Kernels on the simulator: the source that each becomes, what is reported of it, and what it computes; also without each of
its barriers, waits and fences, and with the faults that the tests of the simulator plant."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np

from tests import hopper_kernels as hopper
from tests.interp.test_gpu_barriers import FAULTS as OF_THE_RING
from tests.interp.test_gpu_barriers import RING
from tests.interp.test_gpu_faults import FAULTS, GOOD, copies
from tir.interp.gpu import simulate
from tir.interp.gpu.compiler import Compiler
from tir.script import parse

from .stages import Texts, attempt

ORDERING = re.compile(r" +T\.(ptx|tvm_storage)_(?!cp_async_bulk_tensor|wgmma\()\w+\(.*\)\n")
LAUNCHES: dict[str, tuple[str, list[Any]]] = {
    "ring": (RING, [np.arange(512, dtype="float32") % 11, np.zeros(128, "float32")]),
    "registers": (hopper.REGISTERS, [np.ones(s, t) for s, t in (((64, 16), "float16"), ((8, 16), "float16"), ((64, 8), "float32"))]),
    "stores": (hopper.STORES, [np.arange(128, dtype="float32"), np.zeros(128, "float32")]),
    "cluster": (hopper.CLUSTER, [np.arange(128, dtype="float32"), np.zeros(256, "float32")]),
}  # fmt: skip


def kernel(text: str) -> Any:
    return parse(text if "@T.prim_func" in text else f"@T.prim_func\n{text.strip()}\n")


def source(text: str) -> Texts:
    for stepping, traced in ((False, False), (True, False), (False, True)):
        compiler = Compiler(kernel(text), stepping, traced)
        made = compiler.compile()
        yield f"source{stepping:d}{traced:d}", f"{made}\n{compiler.axes}"
        if not stepping and not traced:
            yield "listing", "\n".join(compiler.listing)


def launched(text: str, given: list[Any], order: str) -> str:
    """The report of a launch as text and as HTML, and the arrays after it."""
    args = copies(given)

    def run() -> str:
        report = simulate(kernel(text), args, order=order, seed=2, strict=False)
        figures = [report.conflicts, report.sectors, report.barriers, report.shared_bytes]
        return f"{report}\n{report._repr_html_()}\n{figures}"

    return "\n".join([attempt(run), *(f"{a.dtype} {a.tolist()}" for a in args)])


def good(number: int) -> Texts:
    text = [*GOOD][number]
    yield from source(text)
    yield from ((order, launched(text, GOOD[text].args, order)) for order in ("forward", "warp_interleaved"))


def faulty(number: int) -> Texts:
    fault = FAULTS[number]
    text = fault.good.replace(fault.right, fault.wrong, 1)
    yield from ((order, launched(text, fault.args, order)) for order in ("forward", "reverse"))


def ring(name: str) -> Texts:
    right, wrong, *_ = OF_THE_RING[name]
    yield "forward", launched(RING.replace(right, wrong), LAUNCHES["ring"][1], "forward")


def without(name: str) -> Texts:
    """A kernel, and the kernel without each line that orders something."""
    text, given = LAUNCHES[name]
    yield from source(text)
    yield "whole", launched(text, given, "forward")
    for number, line in enumerate(ORDERING.finditer(text)):
        indent = line[0][: len(line[0]) - len(line[0].lstrip())]
        less = f"{text[: line.start()]}{indent}T.evaluate(0)\n{text[line.end() :]}"
        yield str(number), launched(less, given, "reverse" if number % 2 else "forward")


def product(number: int) -> Texts:
    a, b, d, n, swizzle, ta, tb = hopper.CASES[number]
    yield from source(hopper.product(a, b, d, n, swizzle, ta, tb, True))


CASES = {
    **{f"good-{text.split('(')[0].split()[-1]}": partial(good, n) for n, text in enumerate(GOOD)},
    **{f"fault-{f.name.replace(' ', '-')}": partial(faulty, n) for n, f in enumerate(FAULTS)},
    **{f"ring-{name.replace(' ', '-')}": partial(ring, name) for name in OF_THE_RING},
    **{f"without-{name}": partial(without, name) for name in LAUNCHES},
    **{f"wgmma-{number}": partial(product, number) for number in range(len(hopper.CASES))},
}
