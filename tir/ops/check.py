"""Judging operators: what a case gives, beside what NumPy says in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import IRModule, PrimFunc, te
from ..interp import numbers, run
from .cases import Call, Case, concrete, stored, widened
from .registry import Operator, find


class Judged:
    """One case of an operator: its function, the arrays it is given, and what the results should be."""

    def __init__(self, operator: Operator, case: Case, seed: int = 0, name: str = "main"):
        self.operator = operator
        self.call: Call = concrete(case, seed)
        args, attributes = self.call.symbolic()
        made = operator.function(*args, **attributes)
        self.outputs: list[te.Tensor] = list(made) if isinstance(made, (list, tuple)) else [made]
        self.func: PrimFunc = te.create_prim_func([*self.call.inputs, *self.outputs], name)
        args, attributes = self.call.wide()
        with np.errstate(all="ignore"):
            expected = operator.reference(*args, **attributes)
        several = isinstance(made, (list, tuple))
        self.expected = [np.asarray(e) for e in (expected if several else [expected])]

    def __call__(self, engine: Callable[..., Any]) -> None:
        """Run by ``engine``, a function of all arrays; raises ``AssertionError`` for a result that is wrong."""
        inputs = [a.copy() for a in self.call.arrays.values()]
        results = [np.full(e.shape, 77, numbers.storage_dtype(t.dtype)) for t, e in zip(self.outputs, self.expected)]
        engine(*inputs, *results)
        for tensor, result, expected in zip(self.outputs, results, self.expected):
            self._compare(tensor, result, expected)

    def _compare(self, tensor: te.Tensor, result: np.ndarray, expected: np.ndarray) -> None:
        kinds = [t.dtype for t in (*self.call.inputs, tensor) if t.dtype.is_float]
        want = widened(stored(expected, tensor.dtype), tensor.dtype)
        got = widened(result, tensor.dtype)
        if tensor.dtype.is_float:
            allowed = self.operator.tolerance * max(2.0 ** (1 - k.digits) for k in kinds) * np.maximum(1, np.abs(want))
            with np.errstate(invalid="ignore"):
                right = (np.abs(got - want) <= allowed) | (got == want) | (np.isnan(got) & np.isnan(want))
        else:
            right = got == want
        if not np.all(right):
            at = tuple(int(i) for i in np.argwhere(~right)[0])
            raise AssertionError(
                f"{self.operator.name}{self.call.case!r}: element {at} of {tensor.dtype}{list(want.shape)} is "
                f"{got[at]}, and by the reference {want[at]}\n{self.func.script()}"
            )


def check(operator: Operator | str, engines: Sequence[str] = ("interpreter", "llvm"), seed: int = 0) -> None:
    """Judge every case of an operator on ``engines``: the reference executor, and targets.

    Raises ``AssertionError`` with the element that is wrong. What a package adds is tested by this.

    >>> check("add")
    """
    found = find(operator) if isinstance(operator, str) else operator
    judged = [Judged(found, case, seed, f"case{n}") for n, case in enumerate(found.cases)]
    for engine in engines:
        if engine == "interpreter":
            for one in judged:
                one(lambda *arrays, f=one.func: run(f, *arrays))
        else:
            from .. import build

            built = build(IRModule({f"case{n}": one.func for n, one in enumerate(judged)}), engine)
            for n, one in enumerate(judged):
                one(built[f"case{n}"])
