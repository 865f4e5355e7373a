"""Lowers sub-region views (``T.match_buffer(B[i0:i1, …])`` in a block) to accesses of their source buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arith import Analyzer
from ..buffer import BufferRegion, IterVar, MatchBufferRegion, Range
from ..errors import BuildError
from ..expr import EQ, BufferLoad, Expr, IntImm, Let, StringImm, Var, cast, const, is_const
from ..function import PrimFunc
from ..stmt import AssertStmt, Block, BufferStore, For, LetStmt, Stmt, seq
from ..visit import free_vars, rewrite, statements, substitute, walk
from .layout import dot, plus, strides_of
from .passes import func_pass


class _Declaration:
    """The declarations of views: values of their symbolic variables, and conditions to check."""

    def __init__(self, defined: set[Var]):
        self.defined = defined  # outside of any view
        self.values: dict[Var, Any] = {}
        self.conditions: list[AssertStmt] = []

    def agree(self, declared: Expr, actual: Expr, what: str) -> None:
        """A variable that nothing else defines takes the actual value; anything else must equal it: proved here, or
        checked at run time. Raises ``BuildError`` if it never does."""
        if isinstance(declared, Var) and declared not in self.defined and declared not in self.values:
            self.values[declared] = cast(declared.dtype, actual)
            return
        told = substitute(declared, self.values)
        if Analyzer().can_prove_equal(told, actual):
            return
        about = f"{what} is declared as `{declared!r}`, but the region it views has `{actual!r}`"
        wide = [e if e.dtype == told.dtype == actual.dtype else cast("int64", e) for e in (told, actual)]
        condition = Analyzer().simplify(EQ(*wide))
        self.require(condition, about)

    def require(self, condition: Expr, about: str) -> None:
        """``condition``, simplified and not proved, is checked at run time. Raises ``BuildError`` if it is false."""
        if isinstance(condition, IntImm):
            raise BuildError(about)
        self.conditions.append(AssertStmt(condition, StringImm(about)))

    def divides(self, factor: int, offset: Expr, name: str) -> None:
        """``offset`` is a multiple of ``factor``."""
        condition = Analyzer().simplify(EQ(offset % factor, const(0, offset.dtype)))
        if not is_const(condition, 1):
            about = f"{name}: offset_factor is declared as {factor}, but the region it views starts at element"
            self.require(condition, f"{about} `{offset!r}`")

    def add(self, match: MatchBufferRegion) -> None:
        """The variables and conditions of one view. Raises ``BuildError`` if its type or rank does not match."""
        view, source = match.buffer, match.source
        name = f"match_buffer `{view.name}`"
        if view.dtype != source.buffer.dtype:
            raise BuildError(f"{name} holds {view.dtype}, but `{source.buffer.name}` holds {source.buffer.dtype}")
        extra = len(source.region) - view.ndim
        if extra < 0:
            raise BuildError(f"{name} has {view.ndim} axes, but `{source.buffer.name}` has {len(source.region)}")
        self.values[view.data] = source.buffer.data
        for axis, rng in enumerate(source.region[:extra]):
            if not Analyzer().can_prove_equal(rng.extent, const(1, rng.extent.dtype)):
                raise BuildError(
                    f"{name} drops axis {axis} of its region, so the extent must be 1, not `{rng.extent!r}`"
                )
        for axis, (size, rng) in enumerate(zip(view.shape, source.region[extra:])):
            self.agree(size, rng.extent, f"{name}: shape[{axis}]")
        strides = strides_of(source.buffer)
        for axis, (stride, actual) in enumerate(zip(view.strides, strides[extra:])):
            self.agree(stride, actual, f"{name}: strides[{axis}]")
        offset = dot([r.min for r in source.region], strides)
        if source.buffer.elem_offset is not None:
            offset = plus(source.buffer.elem_offset, offset)
        if view.elem_offset is not None:
            self.agree(view.elem_offset, offset, f"{name}: elem_offset")
        if view.offset_factor > 1:
            self.divides(view.offset_factor, offset, name)


def _moved(source: BufferRegion, indices: Sequence[Expr]) -> tuple[Expr, ...]:
    """Indices of the view as indices of its source."""
    mins = [r.min for r in source.region]
    extra = len(mins) - len(indices)
    return (*mins[:extra], *(plus(low, index) for low, index in zip(mins[extra:], indices)))


def _without_views(block: Block, defined: set[Var]) -> Block:
    views = {m.buffer: m.source for m in block.match_buffers}
    declaration = _Declaration(defined)
    for match in block.match_buffers:
        declaration.add(match)

    def redirect(node: Any) -> Any:
        if not isinstance(node, (BufferLoad, BufferStore, BufferRegion)):
            return None
        source = views.get(node.buffer)
        if source is None:
            return None
        if not isinstance(node, BufferRegion):
            return node.replace(buffer=source.buffer, indices=_moved(source, node.indices))
        mins = _moved(source, [r.min for r in node.region])
        dropped = source.region[: len(mins) - len(node.region)]
        extents = [*(r.extent for r in dropped), *(r.extent for r in node.region)]
        return BufferRegion(source.buffer, tuple(Range(m, e) for m, e in zip(mins, extents)))

    accesses = substitute(rewrite(block.replace(match_buffers=()), redirect), declaration.values)
    return accesses.replace(body=seq([*declaration.conditions, accesses.body]))


def _defined(func: PrimFunc) -> set[Var]:
    """Variables that something other than a view defines: parameters, sizes of their buffers, loops, iterators, lets."""
    found = set(func.params)
    for buffer in func.buffers():
        found.update(free_vars(buffer))
    for item in walk(func.body):
        if isinstance(item, For):
            found.add(item.loop_var)
        elif isinstance(item, (Let, LetStmt, IterVar)):
            found.add(item.var)
    return found


@func_pass
def lower_match_buffer(func: PrimFunc) -> PrimFunc:
    """Accesses of a view become accesses of its source; its symbolic strides and offset get their values.

    A declared quantity that is defined elsewhere (a constant, a parameter, a loop variable) becomes a condition: an
    assertion if it cannot be proved; so is an offset that ``offset_factor`` should divide. Raises ``BuildError`` if the
    view's type, shape, strides or offset contradict the region.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8, 8), "float32")):
    ...     for i in range(8):
    ...         with T.block(""):
    ...             row = T.match_buffer(A[i, 0:8], (8,), "float32")
    ...             for j in range(8):
    ...                 row[j] = 1.0
    ... ''')
    >>> tir.transform.lower_match_buffer(f).body
    with T.block("root"):
        T.reads()
        T.writes()
        for i in range(8):
            with T.block("block"):
                T.reads()
                T.writes(A[i, 0:8])
                for j in range(8):
                    A[i, j] = T.float32(1)
    """
    if not any(isinstance(item, Block) and item.match_buffers for item in statements(func.body)):
        return func
    defined = _defined(func)

    def visit(item: Any) -> Any:
        """Outer views first, so that a nested view already refers to memory."""
        if isinstance(item, Block) and item.match_buffers:
            item = _without_views(item, defined)
        return item.map_children(visit) if isinstance(item, Stmt) else item

    return func.with_body(visit(func.body))
