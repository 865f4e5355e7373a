"""Accesses that surely lie outside their buffer: compiled code would touch memory that is not its own."""

from __future__ import annotations

from typing import Any

from ..arith.linear import Linear, linear
from ..buffer import Buffer
from ..errors import BuildError
from ..expr import And, BufferLoad, Call, Expr, IntImm, Or, Select, Var, is_const
from ..function import IRModule, PrimFunc
from ..render import short_text, to_lines
from ..stmt import AttrStmt, Block, BlockRealize, BufferStore, For, IfThenElse, While

Bounds = dict[Var, tuple[int, int]]


def check_bounds(mod: IRModule) -> None:
    """Raise ``BuildError`` where an access is outside its buffer for some iteration of its loops.

    Only what is certain is refused: accesses under no condition, in loops of constant length, whose indices are sums of
    loop variables times constants. The reference executor and the simulator check every access as they run.
    """
    for func in mod.functions.values():
        _Search(func).visit(func.body, {}, {})


def _form(e: Expr, known: dict[Var, Linear]) -> Linear:
    """``e`` as a sum, iterators of blocks replaced by what is ``known`` of them."""
    made = Linear()
    form = linear(e)
    made.const = form.const
    for factors, coefficient in form.items():
        value = known.get(factors[0]) if len(factors) == 1 and isinstance(factors[0], Var) else None
        if value is None:
            made.add_term(factors, coefficient)
        else:
            made.add(value, coefficient)
    return made


class _Search:
    def __init__(self, func: PrimFunc):
        self.func = func
        self.buffers = set(func.buffer_map.values())  # whose memory is as large as they say; views may say anything

    def visit(self, item: Any, loops: Bounds, known: dict[Var, Linear]) -> None:
        if isinstance(item, For):
            low, extent = item.min, item.extent
            if isinstance(low, IntImm) and isinstance(extent, IntImm) and extent.value > 0:
                inner = {**loops, item.loop_var: (low.value, low.value + extent.value - 1)}
                self.visit(item.body, inner, known)
        elif isinstance(item, BlockRealize):
            if is_const(item.predicate, 1):
                values = {v.var: _form(e, known) for v, e in zip(item.block.iter_vars, item.iter_values)}
                self.visit(item.block, loops, {**known, **values})
        elif isinstance(item, Block):
            self.buffers.update(item.alloc_buffers)
            for part in (item.init, item.body):
                if part is not None:
                    self.visit(part, loops, known)
        elif isinstance(item, IfThenElse):
            self.visit(item.condition, loops, known)
        elif isinstance(item, (And, Or)):
            self.visit(item.a, loops, known)  # it may decide that the other is not asked
        elif isinstance(item, Select) or (isinstance(item, Call) and item.op == "if_then_else"):
            self.visit(item.condition if isinstance(item, Select) else item.args[0], loops, known)
        elif isinstance(item, While) or (isinstance(item, AttrStmt) and item.attr_key == "thread_extent"):
            return
        elif not isinstance(item, (Buffer, Var)):
            if isinstance(item, (BufferLoad, BufferStore)) and item.buffer in self.buffers:
                self.check(item, loops, known)
            for child in item.children():
                self.visit(child, loops, known)

    def check(self, access: BufferLoad | BufferStore, loops: Bounds, known: dict[Var, Linear]) -> None:
        for axis, (index, size) in enumerate(zip(access.indices, access.buffer.shape)):
            if not isinstance(size, IntImm) or index.dtype.lanes > 1 or not index.dtype.is_int:
                continue
            form = _form(index, known)
            terms = {f[0]: c for f, c in form.items() if len(f) == 1 and isinstance(f[0], Var) and f[0] in loops}
            if len(terms) != len(form.terms):
                continue
            for highest in (True, False):
                at = {v: loops[v][(c > 0) == highest] for v, c in terms.items()}
                value = form.const + sum(c * at[v] for v, c in terms.items())
                if value >= size.value if highest else value < 0:
                    self.refuse(access, axis, value, size.value, at)

    def refuse(self, access: Any, axis: int, value: int, size: int, at: dict[Var, int]) -> None:
        text = short_text(BufferLoad(access.buffer, access.indices))
        where = ", ".join(f"{v.name}={x}" for v, x in at.items())
        which = f"index {axis} is {value}" + (f" at ({where})" if where else "")
        head = f"{self.func.name}: `{text}` is out of bounds: {which}, and `{access.buffer.name}` has {size} there"
        raise BuildError("\n".join([head, to_lines(self.func, underline=(access,))]))
