"""Where a program violates the rules of :mod:`tir.analysis.wellformed`, and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..aliases import shares_memory
from ..arith import Analyzer
from ..buffer import Buffer, BufferRegion, IterVar
from ..expr import BinaryOp, BufferLoad, Let, Reduce, Var
from ..function import PrimFunc
from ..levels import is_launch_axis
from ..node import Node
from ..render import short_text
from ..stmt import (
    Allocate,
    AllocateConst,
    AttrStmt,
    BlockRealize,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
)
from ..visit import uses_var, vars_in
from .contents import sub_statements
from .wellformed import Problem, bound_values, bounds, named_in_predicate, parts_of


def violations(func: PrimFunc) -> list[Problem]:
    """Every violation in ``func``, in program order."""
    checker = Checker(func)
    checker.visit(func.body)
    return checker.problems


class Checker:
    """Finds the violations that a function has: what each statement may use is defined around it."""

    def __init__(self, func: PrimFunc) -> None:
        self.computed: dict[Var, Any] = {}  # variables that are no sizes, and the first size that is computed from each
        self.problems: list[Problem] = []
        self.defined: set[Any] = set()  # variables and buffers
        self.hidden: dict[Var, str] = {}  # loop variables outside the block being read: name of that block
        self.gone: set[Any] = set()  # buffers and pointers whose scope has ended
        self.blocks: set[str] = set()
        self.threads: list[For] = []
        self.loops: set[Var] = set()
        self.env: set[Var] = set()
        for param in func.params:
            if param in self.defined:
                self.report(func, f"parameter `{param.name}` is listed twice")
            self.defined.add(param)
        for param, buffer in func.buffer_map.items():
            if param not in self.defined:
                self.report(func, f"buffer `{buffer.name}` is bound to `{param.name}`, which is not a parameter")
            self.defined.update((buffer.data, buffer))
        given = [size for buffer in func.buffer_map.values() for size in buffer.sizes]
        if given:
            self.defined.update(s for s in given if isinstance(s, Var))  # one that a shape names first, it defines
            self.computed = {v: size for size in reversed(given) for v in vars_in(size) if v not in self.defined}
            self.expr(func, *given)

    def report(self, node: Any, message: str, undefined: Var | Buffer | None = None, bound: For | None = None) -> None:
        self.problems.append(Problem(node, message, undefined, bound))

    def report_all(self, node: Any, messages: Iterable[str]) -> None:
        for message in messages:
            self.report(node, message)

    def define(self, name: Var | Buffer, node: Any) -> bool:
        """Whether ``name`` is new here; a buffer may be declared again."""
        if name in self.defined and type(name) is Var:
            what = _WHAT.get(type(node), "variable")
            self.report(node, f"{what} `{name.name}` is already defined outside")
            return False
        self.defined.add(name)
        return True

    # ------------------------------------------------------------ expressions

    def expr(self, node: Any, *es: Any) -> None:
        left = [*es]
        for e in left:  # which grows
            kind = type(e)
            if kind is Var:
                if e not in self.defined or e in self.hidden:
                    self.misused(e, node)
            elif kind is BufferLoad:
                self.buffer_use(e.buffer, node)
                self.report_all(node, e.buffer.index_faults(e.indices))
                self.expr(node, *e.indices)
            elif isinstance(e, BinaryOp):
                if e.a.dtype is not e.b.dtype:
                    what = f"the operands of `{short_text(e)}` are {e.a.dtype} and {e.b.dtype}"
                    self.report(node, f"{what}; cast one of them")
                left += (e.a, e.b)
            elif isinstance(e, Let):
                self.expr(node, e.value)
                fresh = self.define(e.var, node)
                self.expr(node, e.body)
                if fresh:
                    self.defined.discard(e.var)
            elif isinstance(e, Reduce):
                axes = [axis.var for axis in e.axis]
                self.defined.update(axes)
                self.expr(node, *e.source, *e.init, e.condition)
                self.defined.difference_update(axes)
            elif isinstance(e, BufferRegion):
                self.region(e, node)
            elif isinstance(e, Node):
                left += e.children()

    def misused(self, var: Var, node: Any) -> None:
        """Report why a variable that is not defined, or hidden, cannot be used here."""
        if var in self.defined:
            block = self.hidden[var]
            self.report(
                node, f"block `{block}` uses `{var.name}` of a loop outside it; bind it to an iterator of the block"
            )
        elif var in self.gone:
            self.report(node, f"`{var.name}` is used outside its allocation", var)
        else:
            size = self.computed.get(var)
            part = (
                f": a shape has it in `{size!r}` only; make it a parameter, or a size of its own"
                if size is not None
                else ""
            )
            self.report(node, f"variable `{var.name}` is not defined here{part}", var)

    def buffer_use(self, buffer: Buffer, node: Any) -> None:
        if buffer in self.defined or shares_memory(buffer, self.defined):
            return
        where = "outside its allocation" if buffer in self.gone else "but not declared here"
        self.report(node, f"buffer `{buffer.name}` is used {where}", buffer)

    def region(self, region: BufferRegion, node: Any) -> None:
        self.buffer_use(region.buffer, node)
        self.report_all(node, region.faults())
        self.expr(node, *bounds(region.region))

    # ------------------------------------------------------------ statements

    def visit(self, s: Any) -> None:
        if type(s) is BufferStore:
            self.buffer_use(s.buffer, s)
        self.report_all(s, s.faults())
        _VISIT.get(type(s), Checker.statement)(self, s)

    def statement(self, s: Any) -> None:
        evaluated, defined, inside = parts_of(s)
        self.expr(s, *evaluated)
        fresh = [name for name in defined if self.define(name, s)]
        for x in inside:
            self.visit(x)
        self.defined.difference_update(fresh)
        if type(s) in _ALLOCATING:
            self.gone.update(defined)

    def loop(self, s: For) -> None:
        launched = len(self.threads)
        if s.thread and is_launch_axis(s.thread):
            self._bound_again(s)
            self.threads.append(s)
        self.loops.add(s.loop_var)
        self.statement(s)
        del self.threads[launched:]

    def _bound_again(self, s: For) -> None:
        """A loop nested in another of its thread axis distributes work that is common to all threads of the axis."""
        for outer in self.threads:
            if outer.thread != s.thread:
                continue
            if uses_var(s.body, outer.loop_var):
                name = outer.loop_var.name
                message = f"thread axis {s.thread} is bound inside itself, around a use of the outer loop `{name}`"
                self.report(s, message, bound=outer)
            elif not Analyzer().can_prove_equal(outer.extent, s.extent):
                self.report(s, f"thread axis {s.thread} is bound inside itself with another extent", bound=outer)

    def attr(self, s: AttrStmt) -> None:
        if not isinstance(s.node, IterVar):
            self.statement(s)
            return
        # one thread variable may be launched again by a nested or a following statement
        self.expr(s, s.value)
        var = s.node.var
        fresh = var not in self.defined
        self.defined.add(var)
        self.visit(s.body)
        if fresh and var not in self.env:
            self.env.add(var)
            self.defined.discard(var)

    def buffer_realize(self, s: BufferRealize) -> None:
        fresh = not shares_memory(s, self.defined)
        self.defined.update((s.buffer.data, s.buffer))
        self.expr(s, *[e for r in s.bounds for e in (r.min, r.extent)], s.condition)
        self.visit(s.body)
        if fresh:
            self.defined.discard(s.buffer.data)
        self.defined.discard(s.buffer)
        self.gone.add(s.buffer)

    def realize(self, s: BlockRealize) -> None:
        self.report_all(s, _predicate_faults(s))
        self.expr(s, *bound_values(s))
        block, outer = s.block, self.hidden
        if block.name in self.blocks:
            self.report(s, f"two blocks are called `{block.name}`; block names are unique in a function")
        self.blocks.update((block.name,) if block.name else ())
        if block.iter_vars:  # loops outside a block are only visible through its iterators
            self.hidden = {**self.hidden, **{v: block.name for v in self.loops if v in self.defined}}
        fresh = [iv.var for iv in block.iter_vars if self.define(iv.var, s)]
        allocated = block.alloc_buffers
        for n, buffer in enumerate(allocated):
            if buffer in self.defined or buffer in allocated[:n]:
                self.report(s, f"buffer `{buffer.name}` is allocated twice")
        self.expr(s, *[size for buffer in allocated for size in buffer.sizes])
        self.defined.update(allocated, [buffer.data for buffer in allocated])
        for match in block.match_buffers:
            self.region(match.source, s)
            self.report_all(s, match.faults())
            self.defined.add(match.buffer)
            fresh += [p for p in match.made() if p not in self.defined]
            self.defined.update(fresh)
        self.expr(s, *block.reads, *block.writes)
        for x in sub_statements(block):
            self.visit(x)
        ended = (*allocated, *(m.buffer for m in block.match_buffers))
        pointers = [buffer.data for buffer in ended]
        self.defined.difference_update(fresh, ended, pointers)
        self.gone.update(ended, pointers)
        self.hidden = outer


def _predicate_faults(s: BlockRealize) -> Iterator[str]:
    for own in named_in_predicate(s)[:1]:
        what = f"the predicate of block `{s.block.name}` names its iterator `{own.name}`"
        yield f"{what}, which has no value outside: write it of the loops that the iterator is bound to"


_VISIT: dict[type, Any] = {
    For: Checker.loop,
    AttrStmt: Checker.attr,
    BufferRealize: Checker.buffer_realize,
    BlockRealize: Checker.realize,
}
_ALLOCATING = (Allocate, AllocateConst, DeclBuffer)
_WHAT: dict[type, str] = {
    For: "loop variable",
    BlockRealize: "iterator",
    **dict.fromkeys((Allocate, AllocateConst), "pointer"),
}
