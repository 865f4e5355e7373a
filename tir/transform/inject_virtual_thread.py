"""Virtual threads: iterations interleaved statement by statement, with private buffers."""

from __future__ import annotations

from typing import Any

from ..aliases import shares_memory
from ..arith.linear import same
from ..buffer import Buffer
from ..errors import BuildError
from ..expr import BufferLoad, Call, Expr, IntImm, Var, const
from ..function import PrimFunc
from ..launches import is_launch
from ..levels import is_shared, is_virtual_axis
from ..op import OPS, effect_of
from ..stmt import (
    NOP,
    UNROLLED,
    VECTORIZED,
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    seq,
)
from ..visit import contains, has_load, rewrite, substitute, walk
from .layout import product, strides_of
from .passes import func_pass
from .thread_axes import REDUCE_SCOPE, flat


def _is_virtual(item: Any) -> bool:
    return is_launch(item, is_virtual_axis)


def _pointers(c: Call) -> set[Var]:
    """The buffers that a call may write: those whose pointers it takes, or addresses of elements, and the results of an
    all-reduce, which are loads."""
    if c.op == "tvm_thread_allreduce":
        return {a.buffer.data for a in c.args if isinstance(a, BufferLoad)}
    addresses = (n.args[0] for n in walk(c) if isinstance(n, Call) and n.op == "address_of")
    return {n for n in walk(c) if isinstance(n, Var)}.union(
        a.buffer.data for a in addresses if isinstance(a, BufferLoad)
    )


class _Virtual:
    """The body of one virtual thread axis."""

    def __init__(self, name: str, var: Var, extent: IntImm, body: Stmt):
        self.name, self.var, self.extent = name, var, extent
        self.lets: set[Var] = set()
        self.allocations = {n.buffer_var: n for n in walk(body) if isinstance(n, Allocate)}
        self.own = set(self.allocations)
        self.private: set[Var] = set()
        self._find_private(body)
        self.new: dict[Buffer, Buffer] = {}

    # ------------------------------------------------------------ what differs between virtual threads

    def touched(self, e: Any) -> bool:
        """Whether ``e`` may differ between virtual threads."""
        return any(
            n is self.var
            or (isinstance(n, Var) and (n in self.lets or n in self.private))
            or (isinstance(n, (BufferLoad, BufferStore)) and shares_memory(n, self.private))
            or (isinstance(n, Call) and self._counts(n))
            for n in walk(e)
        )

    def _counts(self, c: Call) -> bool:
        """Whether ``c`` updates memory of all virtual threads, which each of them does, and what it finds there differs."""
        pointers = OPS[c.op].pointers if c.op in OPS else ()
        return any(p.commutes and not _pointers(c) & self.own for _, p in pointers)

    def _find_private(self, body: Stmt) -> None:
        """Buffers allocated inside, and written with what differs at places that do not, need a copy for each.

        Of registers, so do those whose place only looks as if it differed: what one thread wrote no other may read, so
        nothing is lost but room.
        """
        while True:
            before = len(self.private), len(self.lets)
            self._scan(body, False)
            if (len(self.private), len(self.lets)) == before:
                return

    def _scan(self, s: Any, differs: bool) -> None:
        if isinstance(s, BufferStore):
            pointer = s.buffer.data
            if pointer in self.own and pointer not in self.private:
                placed = any(self.touched(i) for i in s.indices)
                shared = placed and is_shared(s.buffer.scope)
                if not shared and (placed or differs or self.touched(s.value)):
                    self.private.add(pointer)
        elif isinstance(s, (IfThenElse, While)):
            differs = differs or self.touched(s.condition)
        elif isinstance(s, LetStmt) and self.touched(s.value):
            self.lets.add(s.var)
        elif isinstance(s, For) and (self.touched(s.min) or self.touched(s.extent)):
            differs = True
        elif isinstance(s, Call):
            # the effects of a call behind a pointer are unknown: its buffers are private if any argument differs
            if effect_of(s) not in ("pure", "read") and (differs or self.touched(s)):
                self.private.update(_pointers(s) & self.own)
        if isinstance(s, (Buffer, Var)):
            return
        for child in s.children():
            self._scan(child, differs)

    # ------------------------------------------------------------ the rewriting

    def expanded(self, b: Buffer) -> Buffer:
        """A buffer with an axis for the virtual threads, which are as far apart as the memory of one is long."""
        found = self.new.get(b)
        if found is None:
            length = self._length(b)
            plain = not b.strides and same(product(b.shape), length)
            strides = () if plain else (length, *strides_of(b))
            found = self.new[b] = b.replace(shape=(self.extent, *b.shape), strides=strides)
        return found

    def _length(self, b: Buffer) -> Expr:
        """How many elements of ``b`` the memory of one virtual thread has."""
        memory = self.allocations[b.data]
        size = product(memory.extents)
        ours, theirs = b.dtype.bytes, memory.dtype.bytes
        if theirs % ours == 0:
            return size * (theirs // ours)
        if not isinstance(size, IntImm) or size.value * theirs % ours:
            raise BuildError(
                f"{self.name}: the elements of `{b.name}` ({b.dtype}) do not fill the memory of `{b.data.name}`, "
                f"{size!r} elements of {memory.dtype}, of which each virtual thread has its own"
            )
        return const(size.value * theirs // ours)

    def over(self, s: Stmt) -> Stmt:
        """``s`` for each virtual thread in turn. What ``s`` allocates is each one's own already."""
        if not self.touched(s):
            return s
        var = Var(self.var.name, self.var.dtype)
        copied = self.private - {n.buffer_var for n in walk(s) if isinstance(n, Allocate)}

        def change(item: Any) -> Any:
            if isinstance(item, (BufferLoad, BufferStore)) and shares_memory(item, copied):
                return item.replace(buffer=self.expanded(item.buffer), indices=(var, *item.indices))
            if isinstance(item, Call) and any(isinstance(a, Var) and a in copied for a in item.args):
                return self._call(item, var, copied)
            return None

        body = substitute(rewrite(s, change), {self.var: var})
        return For(var, const(0, var.dtype), self.extent, UNROLLED, body)

    def _call(self, c: Call, var: Var, copied: set[Var]) -> Call:
        """A pointer that is passed on refers to the copy of this virtual thread."""
        if c.op != "tvm_access_ptr":
            pointer = next(a for a in c.args if isinstance(a, Var) and a in copied)
            raise BuildError(
                f"{self.name}: `{c.op}` takes a pointer to `{pointer.name}`, which is private to each virtual thread; "
                "pass it by access_ptr, or bind another loop"
            )
        args = list(c.args)
        args[2] = args[2] + var * product(self.allocations[c.args[1]].extents)
        return c.replace(args=tuple(args))

    def visit(self, s: Any) -> Stmt:
        if isinstance(s, SeqStmt):
            return seq([self.visit(c) for c in s.stmts])
        if isinstance(s, Allocate):
            extents = (self.extent, *s.extents) if s.buffer_var in self.private else s.extents
            return s.replace(extents=extents, body=self.visit(s.body))
        if isinstance(s, DeclBuffer):
            buffer = self.expanded(s.buffer) if shares_memory(s, self.private) else s.buffer
            return s.replace(buffer=buffer, body=self.visit(s.body))
        if isinstance(s, For) and s.kind != VECTORIZED and not (self.touched(s.min) or self.touched(s.extent)):
            return s.replace(body=self.visit(s.body))
        if isinstance(s, IfThenElse) and not self.touched(s.condition):
            other = None if s.else_case is None else self.visit(s.else_case)
            return s.replace(then_case=self.visit(s.then_case), else_case=other)
        if isinstance(s, LetStmt) and not self.touched(s.value):
            return s.replace(body=self.visit(s.body))
        if isinstance(s, AttrStmt) and s.attr_key != REDUCE_SCOPE and not self.touched(s.value):
            return s.replace(body=self.visit(s.body))
        return self.over(s)


def _inject(name: str, s: AttrStmt) -> Stmt:
    if not isinstance(s.value, IntImm):
        raise BuildError(f"{name}: the virtual thread `{s.node.var.name}` has the extent `{s.value!r}`, not a constant")
    if s.value.value == 0:
        return NOP
    body = _without_pointer_names(name, s.body)
    return _Virtual(name, s.node.var, s.value, body).visit(body)


def _without_pointer_names(name: str, body: Stmt) -> Stmt:
    """``body`` with the pointers themselves in place of lets that name them: what is done by the name is done to that
    memory."""

    def visit(item: Any) -> Any:
        if not (isinstance(item, LetStmt) and item.var.dtype.is_handle):
            return None
        indices = [i for n in walk(item.value) if isinstance(n, BufferLoad) for i in n.indices]
        if has_load(*indices):
            raise BuildError(
                f"{name}: `{item.var.name}` = `{item.value!r}` names an address in a virtual thread that data chooses; "
                "write the address where it is used"
            )
        return substitute(item.body, {item.var: item.value})

    return rewrite(body, visit) if contains(LetStmt, body) else body


@func_pass
def inject_virtual_thread(func: PrimFunc) -> PrimFunc:
    """Each ``vthread`` axis becomes unrolled loops around the statements that depend on it.

    Loops and allocations stay outside these, so that the virtual threads are interleaved and share everything that is
    uniform. A buffer to which they would write different values at the same element gets one copy for each. Raises
    ``BuildError`` for an extent that is not constant.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     with T.launch_thread("vthread", 2) as v:
    ...         for i in range(4):
    ...             B[v * 4 + i] = A[v * 4 + i]
    ... ''')
    >>> tir.transform.inject_virtual_thread(f).body
    for i in range(4):
        for v in T.unroll(2):
            B[v * 4 + i] = A[v * 4 + i]
    """

    def visit(s: Any) -> Any:
        if _is_virtual(s):  # the outermost first, so that its loops stand outside those of the others
            return visit(_inject(func.name, s))
        return s.map_statements(visit)

    return func.with_body(flat(visit(func.body)))
