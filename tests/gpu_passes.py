"""How the tests of GPU passes compare programs, and run lowered ones on the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

import tir
from tir import transform
from tir.function import IRModule
from tir.script import parse
from tir.testing.oracle import assert_roundtrip

ORDERS = ("forward", "reverse", "random", "warp_interleaved")


def assert_lowers(name: str, before: str, after: str, **options: Any) -> None:
    """The pass makes ``after`` of ``before``, which prints and parses, and leaves its own output as it is printed."""
    made = getattr(transform, name)(parse(before), **options)
    expected = parse(after)
    if isinstance(made, IRModule):
        for key, func in made.items():
            tir.assert_structural_equal(func, expected[key])
    else:
        tir.assert_structural_equal(made, expected)
    assert_roundtrip(made)


def run_everywhere(func: tir.PrimFunc, arguments: Any, orders: Any = ORDERS) -> Any:
    """Run ``func`` as a kernel on the simulator in several orders of threads; a finding raises.

    The results have to be the same each time, and are left in ``arguments``. Returns the built module.
    """
    mod = tir.build(func, target="cuda-sim")
    first = None
    for order in orders:
        mod.order = order
        mine = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        mod(*mine)
        if first is not None:
            for one, other in zip(first, mine):
                np.testing.assert_array_equal(one, other, err_msg=f"threads in the order {order!r}")
        first = mine
    for target, value in zip(arguments, first or ()):
        if isinstance(target, np.ndarray):
            target[...] = value
    return mod
