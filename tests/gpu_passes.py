"""How the tests of GPU passes compare programs, and run lowered ones on the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

import tir
from tir import transform
from tir.arith import simplify
from tir.expr import Call, Var, const
from tir.function import IRModule
from tir.interp.gpu.simulate import simulate
from tir.script import parse
from tir.stmt import Allocate, AttrStmt, DeclBuffer, Evaluate, For, IfThenElse, SeqStmt, is_nop
from tir.testing.oracle import assert_roundtrip
from tir.visit import substitute

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


class _Host:
    """Runs a host function, each launch on the simulator; a report other than a clean one raises."""

    def __init__(self, mod: IRModule, name: str, arguments: Any, order: str):
        self.mod, self.order = mod, order
        self.reports: list[Any] = []
        host = mod[name]
        self.env: dict[Any, Any] = {}
        for param, value in zip(host.params, arguments):
            buffer = host.buffer_map.get(param)
            if buffer is None:
                self.env[param] = value
                continue
            self.env[buffer.data] = value
            for size, actual in zip(buffer.shape, value.shape):
                if isinstance(size, Var):
                    self.env[size] = actual
        self.run(host.body)

    def value(self, e: Any) -> Any:
        if isinstance(e, Var):
            return self.env[e]
        known = {v: const(x, v.dtype) for v, x in self.env.items() if v.dtype.is_int}
        return simplify(substitute(e, known)).value

    def run(self, s: Any) -> None:
        if isinstance(s, SeqStmt):
            for part in s.stmts:
                self.run(part)
        elif isinstance(s, For):
            first = self.value(s.min)
            for k in range(first, first + self.value(s.extent)):
                self.env[s.loop_var] = k
                self.run(s.body)
        elif isinstance(s, IfThenElse):
            if self.value(s.condition):
                self.run(s.then_case)
            elif s.else_case is not None:
                self.run(s.else_case)
        elif isinstance(s, Allocate):
            count = int(np.prod([self.value(e) for e in s.extents]))
            self.env[s.buffer_var] = np.zeros(count, str(s.dtype))
            self.run(s.body)
        elif isinstance(s, (AttrStmt, DeclBuffer)):
            self.run(s.body)
        elif isinstance(s, Evaluate) and isinstance(s.value, Call) and s.value.op == "tvm_call_packed":
            self.launch(s.value)
        else:
            assert is_nop(s), f"a host function holds {s!r}"

    def launch(self, call: Call) -> None:
        kernel = self.mod[call.args[0].value]
        count = len(kernel.params)
        values = [self.value(a) for a in call.args[1:]]
        extents = dict(zip(kernel.attrs["tir.kernel_launch_params"], values[count:]))
        grid, block = (tuple(extents.get(f"{kind}.{axis}", 1) for axis in "xyz") for kind in ("blockIdx", "threadIdx"))
        shared = extents.get("tir.use_dyn_shared_memory", 0)
        self.reports.append(simulate(kernel, values[:count], grid, block, shared, order=self.order))


def run_lowered(mod: IRModule, arguments: Any, order: str = "forward") -> list[Any]:
    """Run what ``tir.lower(…, target="cuda")`` gave on arrays, in place; the reports of its launches."""
    return _Host(mod, next(iter(mod)), arguments, order).reports
