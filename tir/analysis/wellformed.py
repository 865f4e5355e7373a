"""The well-formedness rules of programs, and where they are violated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..aliases import shares_memory
from ..arith import Analyzer
from ..buffer import Buffer, BufferRegion, IterVar
from ..errors import WellFormedError
from ..expr import BinaryOp, BufferLoad, Call, FloatImm, IntImm, Let, Reduce, Var
from ..function import IRModule, PrimFunc
from ..levels import is_launch_axis
from ..node import Memo, Node, once
from ..render import short_text, to_lines
from ..stmt import (
    THREAD_BINDING,
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    While,
    is_long,
)
from ..visit import uses_var, vars_in, with_recursion_limit
from .contents import parts
from .index import index_of
from .private_clause import clause_problems

_PLAIN_KINDS = ("serial", "parallel", "vectorized", "unrolled")  # without a thread axis
LOOP_KINDS = (*_PLAIN_KINDS, THREAD_BINDING)


@dataclass(frozen=True, eq=False)
class Problem:
    """A violation of a rule at ``node``; ``undefined`` is the variable that is used there and nowhere defined around it,
    ``bound`` the loop around ``node`` that is bound to its thread axis already."""

    node: Any
    message: str
    undefined: Var | None = None
    bound: For | None = None

    def __str__(self) -> str:
        return self.message


@with_recursion_limit
def check(func: PrimFunc) -> list[Problem]:
    """Every violation in ``func``, in program order; empty for a well-formed function.

    Variables are defined before use and once in nested scopes; buffers are used inside their allocation, with as many
    indices as dimensions and integer indices; a store's value has the buffer's dtype, and the operands of an operator
    have one; a block's iterators match its bindings, which are the only way in for outer loop variables; block names
    are unique; one thread axis is not launched inside itself; a private buffer of a loop is allocated around it and used
    in it only.
    """
    checker = _Checker()
    checker.function(func)
    with_clause = () if checker.problems else index_of(func).with_clause
    return checker.problems or [Problem(ref.node, m) for ref in with_clause for m in clause_problems(func, ref)]


@with_recursion_limit
def verify(func_or_mod: PrimFunc | IRModule) -> None:
    """Raise ``WellFormedError`` with every violation and its place; return None for a well-formed program."""
    mod = IRModule.of(func_or_mod)
    for func in mod.functions.values():
        problems = check(func)
        if problems:
            raise WellFormedError(render(func, problems))


def render(func: PrimFunc, problems: Iterable[Problem]) -> str:
    problems = list(problems)
    lines = [f"`{func.name}` is not well-formed:", *(f"  {m}" for m in dict.fromkeys(p.message for p in problems))]
    lines.append(to_lines(func, underline=tuple(p.node for p in problems)))
    return "\n".join(lines)


@once
def _sizes(buffer: Buffer) -> tuple[Any, ...]:
    """The sizes of a buffer that are no constants, and its offset."""
    sizes = (*buffer.shape, *buffer.strides, buffer.elem_offset)
    return tuple(size for size in sizes if size is not None and type(size) is not IntImm)


class _Summary:
    """What a well-formed part uses from its context, and defines: it is well-formed wherever these fit."""

    __slots__ = ("uses", "used_in_blocks", "bound", "allocated", "blocks", "threads", "plain", "depth")

    def __init__(self, depth: int = 0) -> None:
        self.uses: _Names = set()  # variables and buffers
        self.used_in_blocks: _Names = set()  # in blocks with iterators, which hide the loops around
        self.bound: _Names = set()  # variables, and the buffers that are
        self.allocated: frozenset[Buffer] = _NOTHING
        self.blocks: set[str] = set()
        self.threads: frozenset[str] = _NOTHING
        self.plain = True  # only what is listed here matters
        self.depth = depth

    def close(self) -> None:
        """Remove what is defined inside the part. The summary is complete then, and not changed any more."""
        bound = self.bound
        self.uses = self.uses - bound or _NOTHING  # one for all summaries: most of their sets are empty
        self.used_in_blocks = self.used_in_blocks - bound or _NOTHING
        self.bound = bound or _NOTHING

    def add(self, part: _Summary, depth: int) -> None:
        """Add the summary of ``part``, nested in ``depth`` blocks."""
        if depth == self.depth:
            self.uses |= part.uses
        else:
            self.used_in_blocks |= part.uses
        self.used_in_blocks |= part.used_in_blocks
        self.bound |= part.bound
        self.blocks |= part.blocks
        self.allocated |= part.allocated
        self.threads |= part.threads
        self.plain = self.plain and part.plain


_NOTHING = frozenset[Any]()
_Names = set[Any] | frozenset[Any]
_SUMMARIES: Memo[_Summary] = Memo()


class _Checker:
    def __init__(self) -> None:
        self.computed: dict[Var, Any] = {}  # variables that are no sizes, and the first size that is computed from each
        self.problems: list[Problem] = []
        self.defined: set[Any] = set()  # variables and buffers
        self.hidden: dict[Var, str] = {}  # loop variables outside the block being read: name of that block
        self.gone: set[Any] = set()  # buffers and pointers whose scope has ended
        self.blocks: set[str] = set()
        self.threads: list[For] = []
        self.loops: set[Var] = set()
        self.env: set[Var] = set()
        self.part = _Summary()
        self.depth = 0  # of blocks with iterators

    def report(self, node: Any, message: str, undefined: Var | None = None, bound: For | None = None) -> None:
        self.problems.append(Problem(node, message, undefined, bound))

    def function(self, func: PrimFunc) -> None:
        for param in func.params:
            if param in self.defined:
                self.report(func, f"parameter `{param.name}` is listed twice")
            self.defined.add(param)
        for param, buffer in func.buffer_map.items():
            if param not in self.defined:
                self.report(func, f"buffer `{buffer.name}` is bound to `{param.name}`, which is not a parameter")
            self.defined.update((buffer.data, buffer))
        sizes = [*chain.from_iterable(map(_sizes, func.buffer_map.values()))]
        if sizes:
            self.defined.update(s for s in sizes if isinstance(s, Var))  # one that a shape names first, it defines
            self.computed = {v: size for size in reversed(sizes) for v in vars_in(size) if v not in self.defined}
            self.expr(func, *sizes)
        if type(func.body) is BlockRealize:
            self.bindings(func.body)
            self.inside(func.body.block, func.body)
        else:
            self.visit(func.body)

    # ------------------------------------------------------------ scopes

    def define(self, var: Var, node: Any, what: str) -> bool:
        if var in self.defined:
            self.report(node, f"{what} `{var.name}` is already defined outside")
            return False
        self.defined.add(var)
        self.part.bound.add(var)
        return True

    # ------------------------------------------------------------ expressions

    def expr(self, node: Any, *es: Any) -> None:
        uses = self.part.uses if self.depth == self.part.depth else self.part.used_in_blocks
        left, defined, hidden = [*es], self.defined, self.hidden
        for e in left:  # which grows
            kind = type(e)
            if kind is Var:
                uses.add(e)
                if e not in defined or e in hidden:
                    self.misused(e, node)
            elif kind is IntImm or kind is FloatImm:
                continue
            elif kind is BufferLoad:
                self.access(e.buffer, e.indices, node)
            elif isinstance(e, BinaryOp):
                if e.a.dtype is not e.b.dtype:
                    self.report(
                        node, f"the operands of `{short_text(e)}` are {e.a.dtype} and {e.b.dtype}; cast one of them"
                    )
                left += (e.a, e.b)
            elif isinstance(e, Let):
                self.expr(node, e.value)
                fresh = self.define(e.var, node, "variable")
                self.expr(node, e.body)
                if fresh:
                    self.defined.discard(e.var)
            elif isinstance(e, Reduce):
                self._reduced(e, node)
            elif isinstance(e, BufferRegion):
                self.region(e, node)
            elif isinstance(e, Call):
                left += [arg for arg in e.args if isinstance(arg, Node)]
            elif isinstance(e, Node):
                left += e.children()

    def _reduced(self, e: Reduce, node: Any) -> None:
        self.part.plain = False
        axes = [axis.var for axis in e.axis]
        self.defined.update(axes)
        self.expr(node, *e.source, *e.init, e.condition)
        self.defined.difference_update(axes)

    def misused(self, var: Var, node: Any) -> None:
        """Report why a variable that is not defined, or hidden, cannot be used here."""
        if var in self.defined:
            block = self.hidden[var]
            self.report(
                node, f"block `{block}` uses `{var.name}` of a loop outside it; bind it to an iterator of the block"
            )
        elif var in self.gone:
            self.report(node, f"`{var.name}` is used outside its allocation")
        else:
            size = self.computed.get(var)
            part = (
                f": a shape has it in `{size!r}` only; make it a parameter, or a size of its own"
                if size is not None
                else ""
            )
            self.report(node, f"variable `{var.name}` is not defined here{part}", var)

    def access(self, buffer: Buffer, indices: Any, node: Any) -> None:
        self.buffer_use(buffer, node)
        if len(indices) != buffer.ndim:
            self.report(
                node, f"buffer `{buffer.name}` has {buffer.ndim} dimensions, but {len(indices)} indices are given"
            )
        for axis, index in enumerate(indices[:-1]):
            if index.dtype.lanes > 1:
                self.report(
                    node,
                    f"index {axis} of `{buffer.name}` is a vector of {index.dtype.lanes} lanes; only the last index may be "
                    "one: transform_layout puts that axis last, or let `vectorize` make the vectors",
                )
        for index in indices:
            if not index.dtype.is_int and not index.dtype.is_bool:
                self.report(node, f"an index of `{buffer.name}` has dtype {index.dtype}; indices are integers")
        self.expr(node, *indices)

    def buffer_use(self, buffer: Buffer, node: Any) -> None:
        (self.part.uses if self.depth == self.part.depth else self.part.used_in_blocks).add(buffer)
        if buffer in self.defined or buffer.data in self.defined:
            return
        where = "outside its allocation" if buffer in self.gone else "but not declared here"
        self.report(node, f"buffer `{buffer.name}` is used {where}")

    def region(self, region: BufferRegion, node: Any) -> None:
        buffer = region.buffer
        self.buffer_use(buffer, node)
        if len(region.region) != buffer.ndim:
            self.report(
                node, f"buffer `{buffer.name}` has {buffer.ndim} dimensions, but its region {len(region.region)}"
            )
        self.expr(node, *[e for r in region.region for e in (r.min, r.extent) if type(e) is not IntImm])

    # ------------------------------------------------------------ statements

    def visit(self, s: Any) -> None:
        kind = type(s)
        if kind is SeqStmt and (len(s.stmts) < 2 or SeqStmt in map(type, s.stmts)):
            self.report(s, "a sequence holds two or more statements, none of them a sequence")
        if kind is BlockRealize or (kind is SeqStmt and is_long(s.stmts)):
            self.known_part(s)
        elif kind in _VISIT:
            _VISIT[kind](self, s)
        else:
            self.leaf(s)

    def known_part(self, s: Any, realize: BlockRealize | None = None) -> None:
        """Visit a block with its ``realize``, a long sequence or a part of it, or a loop in a sequence: if it is known to be
        well-formed, only check that it fits here."""
        known = _SUMMARIES.get(s)
        if known is not None and self.fits(known):
            self.blocks |= known.blocks
            if known.allocated:
                self.gone.update(known.allocated, [buffer.data for buffer in known.allocated])
            self.part.add(known, self.depth)
            return
        outer, problems = self.part, len(self.problems)
        self.part = made = _Summary(self.depth)
        _VISIT[type(s)](self, s) if realize is None else self.block(s, realize)
        made.close()
        if made.plain and len(self.problems) == problems:
            _SUMMARIES[s] = made
        self.part = outer
        outer.add(made, self.depth)

    def fits(self, part: _Summary) -> bool:
        """Whether a part that was well-formed elsewhere is well-formed here: its uses are defined, nothing is defined
        twice."""
        defined, hidden = self.defined, self.hidden
        return (
            (part.uses <= defined or self._has_memory(part.uses - defined))
            and (part.used_in_blocks <= defined or self._has_memory(part.used_in_blocks - defined))
            and part.used_in_blocks.isdisjoint(self.loops)
            and part.bound.isdisjoint(defined)
            and (not hidden or (part.uses.isdisjoint(hidden) and part.used_in_blocks.isdisjoint(hidden)))
            and (not self.blocks or part.blocks.isdisjoint(self.blocks))
            and (not self.threads or not any(loop.thread in part.threads for loop in self.threads))
        )

    def _has_memory(self, names: Iterable[Any]) -> bool:
        """Whether all of ``names`` are buffers that are declared here, or whose pointers are defined."""
        defined = self.defined
        return all(type(b) is Buffer and (b in defined or b.data in defined) for b in names)

    def leaf(self, s: Any) -> None:
        self.expr(s, *s.children())

    def seq(self, s: SeqStmt) -> None:
        """Visit the members of a sequence; of a long one, by parts."""
        for x in parts(s) if is_long(s.stmts) else s.stmts:
            kind = type(x)
            self.known_part(x) if kind is For or kind is BlockRealize or kind is SeqStmt else self.visit(x)

    def store(self, s: BufferStore) -> None:
        self.access(s.buffer, s.indices, s)
        self.expr(s, s.value)
        want = s.buffer.dtype
        if s.indices and s.indices[-1].dtype.lanes > 1:
            want = BufferLoad(s.buffer, s.indices).dtype
        if s.value.dtype is not want:
            self.report(s, f"a store of {s.value.dtype} into `{s.buffer.name}`, which holds {want}")

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

    def loop(self, s: Any) -> None:
        """Visit a nest of loops."""
        fresh, launched, defined = [], len(self.threads), self.defined
        while type(s) is For:
            var, low, extent = s.loop_var, s.min, s.extent
            dtype = var.dtype
            if type(low) is not IntImm or type(extent) is not IntImm:
                self.expr(s, low, extent)
            if s.thread or s.kind not in _PLAIN_KINDS or low.dtype is not dtype or extent.dtype is not dtype:
                self._head(s)
            if var in defined:
                self.define(var, s, "loop variable")
            else:
                defined.add(var)
                fresh.append(var)
            s = s.body
        self.part.bound.update(fresh)
        self.loops.update(fresh)
        self.visit(s)
        defined.difference_update(fresh)
        del self.threads[launched:]

    def _head(self, s: For) -> None:
        """The kind and the types of a loop, and its thread axis."""
        var, low, extent, thread = s.loop_var, s.min, s.extent, s.thread
        if s.kind not in LOOP_KINDS:
            self.report(s, f"loop `{var.name}` has the unknown kind {s.kind!r}")
        if (s.kind == THREAD_BINDING) is not (thread != ""):
            self.report(s, f"loop `{var.name}` of kind {s.kind} has the thread axis {thread!r}")
        if low.dtype is not var.dtype or extent.dtype is not var.dtype:
            part, e = ("minimum", low) if low.dtype is not var.dtype else ("extent", extent)
            self.report(s, f"loop `{var.name}` is {var.dtype}, but its {part} {e.dtype}")
        if thread and is_launch_axis(thread):
            self.part.threads |= {thread}
            self._bound_again(s)
            self.threads.append(s)

    def if_(self, s: IfThenElse) -> None:
        if not s.condition.dtype.is_bool:
            self.report(s, f"an `if` on a condition of dtype {s.condition.dtype}")
        self.expr(s, s.condition)
        self.visit(s.then_case)
        if s.else_case is not None:
            self.visit(s.else_case)

    def while_(self, s: While) -> None:
        self.expr(s, s.condition)
        self.visit(s.body)

    def let(self, s: LetStmt) -> None:
        self.expr(s, s.value)
        if s.value.dtype is not s.var.dtype and not s.var.dtype.is_handle:
            self.report(s, f"`{s.var.name}` is {s.var.dtype}, but its value {s.value.dtype}")
        fresh = self.define(s.var, s, "variable")
        self.visit(s.body)
        if fresh:
            self.defined.discard(s.var)

    def attr(self, s: AttrStmt) -> None:
        self.part.plain = False
        self.expr(s, s.value)
        if isinstance(s.node, IterVar):
            # one thread variable may be launched again by a nested or a following statement
            fresh = s.node.var not in self.defined
            self.defined.add(s.node.var)
            self.visit(s.body)
            if fresh and s.node.var not in self.env:
                self.env.add(s.node.var)
                self.defined.discard(s.node.var)
            return
        self.visit(s.body)

    def allocate(self, s: Any) -> None:
        self.part.plain = False
        self.expr(s, *s.extents)
        if isinstance(s, Allocate):
            self.expr(s, s.condition)
        fresh = self.define(s.buffer_var, s, "pointer")
        self.visit(s.body)
        if fresh:
            self.defined.discard(s.buffer_var)
        self.gone.add(s.buffer_var)

    def declare(self, s: DeclBuffer) -> None:
        self.part.plain = False
        self.expr(s, *_sizes(s.buffer), s.buffer.data)
        self.defined.add(s.buffer)
        self.visit(s.body)
        self.defined.discard(s.buffer)
        self.gone.add(s.buffer)

    def buffer_realize(self, s: BufferRealize) -> None:
        self.part.plain = False
        fresh = not shares_memory(s, self.defined)
        self.defined.update((s.buffer.data, s.buffer))
        self.expr(s, *[e for r in s.bounds for e in (r.min, r.extent)], s.condition)
        self.visit(s.body)
        if fresh:
            self.defined.discard(s.buffer.data)
        self.defined.discard(s.buffer)
        self.gone.add(s.buffer)

    def realize(self, s: BlockRealize) -> None:
        self.bindings(s)
        self.known_part(s.block, s)

    def bindings(self, s: BlockRealize) -> None:
        block, predicate, used = s.block, s.predicate, [*s.iter_values]
        if len(s.iter_values) != len(block.iter_vars):
            self.report(
                s, f"block `{block.name}` has {len(block.iter_vars)} iterators and {len(s.iter_values)} bindings"
            )
        if not predicate.dtype.is_bool:
            self.report(s, f"the predicate of block `{block.name}` has dtype {predicate.dtype}, not bool")
        own = None if type(predicate) is IntImm else [iv.var for iv in block.iter_vars if uses_var(predicate, iv.var)]
        if own:
            what = f"the predicate of block `{block.name}` names its iterator `{own[0].name}`"
            self.report(s, f"{what}, which has no value outside: write it of the loops that the iterator is bound to")
        elif own is not None:
            used.append(predicate)
        for iv, value in zip(block.iter_vars, s.iter_values):
            var, dom = iv.var, iv.dom
            if dom is not None and (type(dom.min) is not IntImm or type(dom.extent) is not IntImm):
                used += (dom.min, dom.extent)
            if var.dtype is not value.dtype:
                self.report(
                    s, f"iterator `{var.name}` of block `{block.name}` is {var.dtype}, its binding {value.dtype}"
                )
        if used:
            self.expr(s, *used)

    def allocate_buffers(self, buffers: tuple[Buffer, ...], node: Any) -> None:
        if not buffers:
            return
        if len({*buffers}) != len(buffers) or not self.defined.isdisjoint(buffers):
            for n, buffer in enumerate(buffers):
                if buffer in self.defined or buffer in buffers[:n]:
                    self.report(node, f"buffer `{buffer.name}` is allocated twice")
        self.expr(node, *chain.from_iterable(map(_sizes, buffers)))
        pointers = [buffer.data for buffer in buffers]
        self.defined.update(buffers, pointers)
        self.part.bound.update(buffers, pointers)
        self.part.allocated = self.part.allocated.union(buffers)

    def block(self, block: Block, s: Any) -> None:
        outer = self.hidden
        defined = self.inside(block, s)
        ended = (*block.alloc_buffers, *(m.buffer for m in block.match_buffers))
        pointers = [buffer.data for buffer in ended]
        self.defined.difference_update(defined, ended, pointers)
        self.gone.update(ended, pointers)
        self.hidden = outer
        self.depth -= bool(block.iter_vars)

    def inside(self, block: Block, s: Any) -> list[Var]:
        """Visit a block, and leave defined what is defined in it only: these variables, and its buffers."""
        if block.name:
            if block.name in self.blocks:
                self.report(s, f"two blocks are called `{block.name}`; block names are unique in a function")
            self.blocks.add(block.name)
            self.part.blocks.add(block.name)
        if block.match_buffers:
            self.part.plain = False
        if block.iter_vars:
            self.depth += 1
            # loops outside a block are only visible through its iterators
            self.hidden = {**self.hidden, **{v: block.name for v in self.loops if v in self.defined}}
        fresh = [iv.var for iv in block.iter_vars if self.define(iv.var, s, "iterator")]
        self.allocate_buffers(block.alloc_buffers, s)
        matched: list[Var] = []
        for match in block.match_buffers:
            self.region(match.source, s)
            view, source = match.buffer, match.source.buffer
            if view.dtype is not source.dtype:
                self.report(s, f"view `{view.name}` holds {view.dtype}, but `{source.name}` holds {source.dtype}")
            if view.scope != source.scope:
                self.report(
                    s, f'view `{view.name}` is in scope "{view.scope}", but `{source.name}` in "{source.scope}"'
                )
            self.defined.add(match.buffer)
            parts = (match.buffer.data, *match.buffer.strides)
            parts += (match.buffer.elem_offset,) if match.buffer.elem_offset is not None else ()
            matched += [p for p in parts if isinstance(p, Var) and p not in self.defined]
            self.defined.update(matched)
        for region in (*block.reads, *block.writes):
            self.region(region, s)
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)
        return fresh + matched


_VISIT: dict[type, Any] = {
    SeqStmt: _Checker.seq,
    BufferStore: _Checker.store,
    For: _Checker.loop,
    IfThenElse: _Checker.if_,
    While: _Checker.while_,
    LetStmt: _Checker.let,
    AttrStmt: _Checker.attr,
    Allocate: _Checker.allocate,
    AllocateConst: _Checker.allocate,
    DeclBuffer: _Checker.declare,
    BufferRealize: _Checker.buffer_realize,
    BlockRealize: _Checker.realize,
    Block: lambda checker, s: checker.block(s, s),
}
