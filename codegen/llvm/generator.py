"""The state of generating one LLVM function, and dispatch by node type.

``expr.py``, ``ops.py``, ``memory.py`` and ``stmt.py`` register the rules of each kind of node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from tir.arith.analyzer import Analyzer
from tir.arith.linear import is_index
from tir.dtype import INT32, DType
from tir.expr import Add, BufferLoad, Expr, IntImm, Mul, Sub, Var
from tir.stmt import LetStmt, Stmt

from ..rules import Dispatch, Rules
from .convert import Converter
from .invariants import Hoisted
from .text import FunctionText, ModuleText
from .types import value_type, vector
from .workspace import free

INT_OPS = {Add: "add", Sub: "sub", Mul: "mul"}
RULES = Rules()
expr_rule, stmt_rule, op_rule = RULES.expr, RULES.stmt, RULES.op


@dataclass
class Program:
    """What the functions of one LLVM module share."""

    text: ModuleText
    fast_math: bool = False
    messages: list[str] = field(default_factory=list)  # run-time errors: code n is messages[n - 1]
    packed: list[dict[str, Any]] = field(default_factory=list)  # call sites into Python
    functions: dict[str, Any] = field(default_factory=dict)  # PrimFuncs of the module by name and global symbol
    entries: dict[str, str] = field(default_factory=dict)  # their names in the module
    parallel: bool = False

    def error_code(self, message: str) -> int:
        """The code (1, 2, …) that stands for ``message`` when a function returns it."""
        if message in self.messages:
            return self.messages.index(message) + 1
        self.messages.append(message)
        return len(self.messages)


class Generator(Dispatch):
    """Generates the body of one LLVM function that returns an int32: 0, or the code of a run-time error."""

    rules = RULES

    def __init__(self, program: Program, out: FunctionText, func_name: str, in_parallel: bool = False):
        self.program = program
        self.out = out
        self.func_name = func_name
        self.in_parallel = in_parallel
        self.env: dict[Var, str] = {}
        self.mask: str | None = None  # lanes that may access memory, under a vector condition
        self.mask_lanes = 1
        self.later: list[Callable[[], None]] | None = None  # stores that wait until other values are computed
        self.streamed: dict[str, int] = {}  # buffers stored non-temporally, and the least bytes of such a store
        self.address: Expr | None = None  # the index that is computed
        self.analyzer = Analyzer()
        self.owned_pointers: set[Var] = set()  # parameters and allocations: pairwise disjoint
        self.own: dict[Var, tuple[DType, int]] = {}  # allocations on this thread's stack: type and number of elements
        self.heap: list[tuple[str, str | None]] = []  # (memory, slot) to free at each return
        self.hoisted = Hoisted()  # to compute before each loop
        self.invariant: dict[Expr, str] = {}  # values of divisions hoisted before an enclosing loop
        self.reciprocals: dict[Expr, tuple[str, str]] = {}  # of divisors, as :func:`invariants.reciprocal` gives them
        self.speculative = False  # the value may not be used, so computing it must not fail
        self.returned: str | None = None  # where T.ret puts its value
        self.return_dtype: DType | None = None
        self.tiles: dict[Var, int] = {}  # the first tile register of each buffer of tiles
        self.convert_ = Converter(out)
        self.statements: tuple[Stmt, ...] = ()  # the statement that is generated, after the lets directly around it
        self.speculatable: frozenset[BufferLoad] = (
            frozenset()
        )  # loads in bounds even where their condition does not hold
        self.unconditional: set[Hashable] | None = None  # the loads that `statements` make anyway, once asked for

    def stmt(self, s: Stmt) -> None:
        around = self.statements[-1] if self.statements else None
        lets = self.statements if isinstance(around, LetStmt) and around.body is s else ()
        self.statements, self.unconditional = (*lets, s), None
        super().stmt(s)

    @property
    def flags(self) -> str:
        """Fast-math flags of float arithmetic: by default only contraction (fused multiply-add) is allowed."""
        return "fast " if self.program.fast_math else "contract "

    def no_wrap(self, e: Expr, text: str = "") -> str:
        """LLVM's flag of a sum, difference, product or ramp of integers that does not overflow: an index of parts that do not
        overflow does not, nor does arithmetic in one that is not of data, or known to fit. What has one ``text`` is equal in a block."""
        if self.address is None or not is_index(e.dtype.element):
            return ""
        if text not in self.out.fitting and self.may_wrap(e, self.address):
            return ""
        if text and not (e is self.address and (self.mask or self.speculative)):  # where an index need not be in bounds
            self.out.fitting.add(text)
        return "nsw "

    def index(self, e: Expr, whole: Expr | None = None) -> str:
        """An index as an int64 operand (vector when ``e`` is one), or a part of the index ``whole``."""
        if isinstance(e, IntImm):
            return str(e.value)
        out = self.out
        found = out.indices.get(e)
        if found is not None:
            return found
        before = out.impure, out.block
        found = self._computed(e, e if whole is None else whole)
        if before == (out.impure, out.block) and not (self.speculative or self.mask or out.terminated):
            out.indices[e] = found
        return found

    def _computed(self, e: Any, whole: Expr) -> str:
        """The int64 value of ``e``, a part of the index ``whole`` or all of it. A sum, difference or product that would wrap around in
        int32 is computed in int64: in any order the value of an index in bounds is the same."""
        if type(e) in INT_OPS and e.dtype == INT32 and self.may_wrap(e, whole):
            a, b = self.index(e.a, whole), self.index(e.b, whole)
            return self.out.value(f"{INT_OPS[type(e)]} nsw i64 {a}, {b}")
        return self._wide(e, self.in_address(e, whole))

    def _wide(self, e: Expr, value: str) -> str:
        """The value of an index, extended to int64."""
        if e.dtype.bits == 64:
            return value
        op = "sext" if e.dtype.code == "int" else "zext"
        return self.out.value(f"{op} {value_type(e.dtype)} {value} to {vector('i64', e.dtype.lanes)}")

    def plain(self, e: Expr) -> str:
        """``e`` outside of address arithmetic: its integers wrap around."""
        around, self.address = self.address, None
        value = self.expr(e)
        self.address = around
        return value

    def store(self, text: str, memory: Var) -> None:
        """Emit a store to ``memory``; what was loaded from memory that cannot overlap it remains valid."""
        owned, place = self.owned_pointers, self.env.get(memory)
        loads = self.out.loads.items() if memory in owned else ()
        self.out.emit(text, {m: names for m, names in loads if m in owned and self.env.get(m) != place})

    def convert(self, value: str, source: DType, target: DType) -> str:
        return self.convert_.convert(value, source, target)

    def fail(self, message: str) -> None:
        """Return with the code of ``message``."""
        self.leave(str(self.program.error_code(message)))

    def leave(self, code: str) -> None:
        """Free what this function allocated and return ``code``."""
        for pointer, slot in self.heap:
            self.release(pointer, slot)
        self.out.ret(f"i32 {code}")

    def release(self, pointer: str, slot: str | None) -> None:
        """Free memory: keep it in its slot for the next call, or return it to the C library."""
        if slot is not None:
            self.out.emit(f"call void @__tir_give(ptr {slot}, ptr {pointer})")
        else:
            free(self.out, pointer)

    def ahead(self, e: Expr) -> str:
        """``e`` computed speculatively: no division in it fails."""
        self.speculative = True
        value = self.plain(e)
        self.speculative = False
        return value

    def check(self, condition: str, message: str) -> None:
        """Continue if the i1 ``condition`` holds, else return with the error ``message``."""
        good, bad = self.out.label("ok"), self.out.label("fail")
        self.out.leave_unless(condition, good, bad)
        self.out.start(bad)
        self.fail(message)
        self.out.start(good)

    def check_code(self, code: str) -> None:
        """Continue if the called function returned 0, else return its code."""
        good, bad = self.out.label("ok"), self.out.label("failed")
        zero = self.out.value(f"icmp eq i32 {code}, 0")
        self.out.branch(zero, good, bad)
        self.out.start(bad)
        self.leave(code)
        self.out.start(good)

    def choose(self, condition: str, yes: Callable[[], str], no: Callable[[], str], type_: str) -> str:
        """The value of ``yes()`` or of ``no()``: only one is evaluated."""
        out = self.out
        then, other, end = out.label("then"), out.label("else"), out.label("end")
        out.branch(condition, then, other)
        out.start(then)
        a, a_block = yes(), out.block
        out.jump(end)
        out.start(other)
        b, b_block = no(), out.block
        out.start(end)
        return out.value(f"phi {type_} [ {a}, %{a_block} ], [ {b}, %{b_block} ]")

    def any_lane(self, mask: str, lanes: int) -> str:
        return self.out.reduced("or", mask, lanes)
