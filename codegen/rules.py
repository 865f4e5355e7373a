"""The rules of a backend for each kind of node and each operator: tables filled by the files of the backend."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from tir.arith.analyzer import Analyzer
from tir.arith.bounds import wraps
from tir.dtype import DType
from tir.errors import BuildError
from tir.expr import Call, Expr, IntImm, Shuffle
from tir.stmt import Stmt


class Rules:
    """Three tables of functions ``(generator, node)``: for expressions and operators they return the text of the value,
    for statements they emit code.

    >>> rules = Rules()
    >>> @rules.op("exp", "exp2")
    ... def _power(g, e):
    ...     return "pow"
    >>> sorted(rules.ops)
    ['exp', 'exp2']
    """

    def __init__(self) -> None:
        self.exprs: dict[type, Callable[[Any, Any], str]] = {}
        self.stmts: dict[type, Callable[[Any, Any], None]] = {}
        self.ops: dict[str, Callable[[Any, Any], str]] = {}

    def expr(self, *types: type) -> Callable[[Any], Any]:
        """Register the decorated function for expression classes."""
        return registering(self.exprs, types)

    def stmt(self, *types: type) -> Callable[[Any], Any]:
        """Register the decorated function for statement classes."""
        return registering(self.stmts, types)

    def op(self, *names: str) -> Callable[[Any], Any]:
        """Register the decorated function for operators."""
        return registering(self.ops, names)


def registering(table: dict[Any, Any], keys: tuple[Hashable, ...]) -> Callable[[Any], Any]:
    """A decorator by which ``table`` has a function at each of ``keys``."""

    def register(fn: Any) -> Any:
        table.update(dict.fromkeys(keys, fn))
        return fn

    return register


def as_shuffle(e: Call) -> Shuffle:
    """A call of ``vectorlow``, ``vectorhigh`` or ``vectorcombine`` as the lanes that it takes."""
    count = sum(a.dtype.lanes for a in e.args)
    half = count // 2
    lanes = {"vectorlow": range(half), "vectorhigh": range(half, count)}.get(e.op, range(count))
    return Shuffle(e.args, tuple(map(IntImm, lanes)))


class Dispatch:
    """The part of a generator that looks up the rule of a node, and that knows the ranges of its variables."""

    rules: Rules
    func_name: str
    analyzer: Analyzer
    address: Expr | None = None  # the index that is written

    def is_nonnegative(self, e: Expr) -> bool:
        """Whether an integer, or every lane of a vector of integers, is proved to be at least zero."""
        low, _ = self.analyzer.bound(e)
        return low is not None and low >= 0

    def is_shift_amount(self, e: Expr, dtype: DType) -> bool:
        """Whether ``e`` is proved to be at least zero, and less than the bits of ``dtype``. By any other amount a shift is an
        error in the executor; compiled code shifts by its last bits."""
        low, high = self.analyzer.bound(e)
        return low is not None and low >= 0 and high is not None and high < dtype.bits

    def error(self, message: str) -> BuildError:
        """The error that refuses to compile a part of the function."""
        return BuildError(f"{self.func_name}: {message}")

    def expr(self, e: Expr) -> str:
        rule = self.rules.exprs.get(type(e))
        if rule is None:
            raise self.error(f"`{e!r}` ({type(e).__name__}) cannot be compiled; lower it first")
        return rule(self, e)

    def may_wrap(self, e: Expr, whole: Expr | None) -> bool:
        """Whether a sum, difference, product or ramp may differ from that of unbounded integers. An index, ``whole``, is in bounds,
        so its last operation does not, but for operands that may."""
        return any(wraps(self.analyzer, part) for part in (e.children() if e is whole else (e,)))

    def in_address(self, e: Expr, whole: Expr | None = None) -> str:
        """``e`` as an index, or as a part of the index ``whole``."""
        around, self.address = self.address, e if whole is None else whole
        text = self.expr(e)
        self.address = around
        return text

    def stmt(self, s: Stmt) -> None:
        rule = self.rules.stmts.get(type(s))
        if rule is None:
            raise self.error(f"{type(s).__name__} is not a lowered statement:\n{s!r}")
        rule(self, s)
