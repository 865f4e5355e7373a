"""Memory of a warp becomes registers of its lanes."""

from __future__ import annotations

from typing import Any

from ..arith import Analyzer
from ..arith.linear import linear
from ..buffer import Buffer, Range
from ..errors import BuildError
from ..expr import BufferLoad, Call, Expr, IntImm, Ramp, Var, const
from ..function import PrimFunc
from ..script.printer import short_text
from ..stmt import Allocate, BufferStore, DeclBuffer, Stmt
from ..visit import rewrite, substitute, uses_var, walk
from .passes import func_pass
from .threads import is_launch, number

WARP = 32

# where operators take a pointer into a warp's memory and an offset in elements next to it
_POINTERS = {
    "ptx_mma": ((6, 7), (8, 9), (10, 11)),
    "ptx_ldmatrix": ((3, 4),),
    "mma_fill": ((1, 2),),
    "mma_store": ((3, 4),),
}


class _Lowering:
    def __init__(self, name: str):
        self.name = name
        self.lane: Var | None = None
        self.analyzer = Analyzer()
        self.width: dict[Var, int] = {}  # neighbouring elements that one lane holds
        self.new: dict[Var, Var] = {}
        self.views: dict[Buffer, Buffer] = {}

    # ------------------------------------------------------------ what a lane holds

    def survey(self, root: Any) -> None:
        """The elements a lane holds, from how far apart the elements of neighbouring lanes lie."""
        for n in walk(root):
            for pointer, index in self._places(n):
                step = self._step(index)
                if step and self.width.setdefault(pointer, step) != step:
                    raise BuildError(
                        f"{self.name}: lanes of a warp are {self.width[pointer]} elements of `{pointer.name}` apart in "
                        f"one access and {step} in another"
                    )

    def _places(self, n: Any) -> list[tuple[Var, Expr]]:
        if isinstance(n, (BufferLoad, BufferStore)) and n.buffer.data.scope == "warp" and len(n.indices) == 1:
            index = n.indices[0].base if isinstance(n.indices[0], Ramp) else n.indices[0]
            return [(n.buffer.data, index)]
        if isinstance(n, Call) and n.op in _POINTERS:
            pairs = [(n.args[a], n.args[b]) for a, b in _POINTERS[n.op] if b < len(n.args)]
            return [(p, e) for p, e in pairs if isinstance(p, Var) and p.scope == "warp"]
        return []

    def _step(self, index: Expr) -> int:
        """How far the index moves from one lane to the next."""
        if self.lane is None or not uses_var(index, self.lane):
            return 0
        moved = linear(substitute(index, {self.lane: self.lane + 1})).minus(linear(index))
        step = self.analyzer.simplify(moved.build(index.dtype))
        if not isinstance(step, IntImm) or step.value <= 0:
            raise BuildError(f"{self.name}: `{index!r}` does not move evenly from lane to lane of a warp")
        return step.value

    def own(self, pointer: Var, index: Any, what: Any) -> Any:
        """The place among a lane's own registers."""
        if isinstance(index, Ramp):
            return index.replace(base=self.own(pointer, index.base, what))
        width = self.width.get(pointer)
        if width is None or self.lane is None:
            raise BuildError(
                f"{self.name}: no access of `{pointer.name}` in warp memory tells which lane holds what; index it by "
                "threadIdx.x"
            )
        start = substitute(index, {self.lane: const(0, self.lane.dtype)})
        inner = self.analyzer.simplify(start % (WARP * width))
        if not self.analyzer.can_prove(inner < width):
            raise BuildError(
                f"{self.name}: `{short_text(what)}` touches registers of another lane at `{index!r}` of "
                f"`{pointer.name}`; go through shared memory"
            )
        return self.analyzer.simplify(start // (WARP * width) * width + inner)

    # ------------------------------------------------------------ the rewriting

    def view(self, b: Buffer) -> Buffer:
        found = self.views.get(b)
        if found is None:
            shape = (self._share(b.shape[0], b.data),)
            found = self.views[b] = b.replace(data=self.new[b.data], scope="local", shape=shape)
        return found

    def _share(self, size: Expr, pointer: Var) -> Expr:
        count = number(size)
        if count is None or count % WARP:
            raise BuildError(
                f"{self.name}: `{pointer.name}` has `{size!r}` elements in warp memory, which {WARP} lanes cannot share evenly"
            )
        return const(count // WARP, size.dtype)

    def change(self, item: Any) -> Any:
        if isinstance(item, (BufferLoad, BufferStore)) and item.buffer.data in self.new:
            (index,) = item.indices
            return item.replace(buffer=self.view(item.buffer), indices=(self.own(item.buffer.data, index, item),))
        if isinstance(item, DeclBuffer) and item.buffer.data in self.new:
            return item.replace(buffer=self.view(item.buffer))
        if isinstance(item, Allocate) and item.buffer_var in self.new:
            extents = tuple(self._share(e, item.buffer_var) for e in item.extents)
            return item.replace(buffer_var=self.new[item.buffer_var], extents=extents)
        if isinstance(item, Call):
            return self._call(item)
        return None

    def _call(self, c: Call) -> Call | None:
        args = list(c.args)
        for pointer, index in self._places(c):
            at = next(i for i, a in enumerate(args) if a is pointer and args[i + 1] is index)
            args[at], args[at + 1] = self.new[pointer], self.own(pointer, index, c)
        for a in args:
            if isinstance(a, Var) and a in self.new:
                raise BuildError(f"{self.name}: `{c.op}` takes a pointer to `{a.name}`, which is spread over a warp")
        return c.replace(args=tuple(args)) if any(x is not y for x, y in zip(args, c.args)) else None


def _lower(name: str, kernel: Stmt) -> Stmt:
    pointers = [n.buffer_var for n in walk(kernel) if isinstance(n, Allocate) and n.buffer_var.scope == "warp"]
    if not pointers:
        return kernel
    lowering = _Lowering(name)
    for n in walk(kernel):
        extent = getattr(n, "extent", None)
        if is_launch(n):
            lowering.analyzer.bind(n.node.var, Range(const(0, n.value.dtype), n.value))
            if n.node.thread_tag == "threadIdx.x":
                lowering.lane = n.node.var
                if number(n.value) != WARP:
                    raise BuildError(f"{name}: warp memory needs {WARP} threads in threadIdx.x, there are {n.value!r}")
        elif extent is not None and hasattr(n, "loop_var"):
            lowering.analyzer.bind(n.loop_var, Range(n.min, extent))
    lowering.new = {p: Var(p.name, p.dtype, p.pointer_dtype, "local") for p in pointers}
    lowering.survey(kernel)
    return rewrite(kernel, lowering.change)


@func_pass
def lower_warp_memory(func: PrimFunc) -> PrimFunc:
    """Buffers of the scope ``warp`` become ``local`` ones of a 32nd of their size.

    An index of such a buffer is, per group of 32 times w elements, lane times w plus one of the w elements that the lane
    holds; w is read off the accesses. Expects flat buffers and 32 threads in ``threadIdx.x``. Raises ``BuildError`` for
    an access to what another lane holds.
    """

    def visit(s: Any) -> Any:
        if is_launch(s):
            return _lower(func.name, s)
        return s.map_children(lambda c: visit(c) if isinstance(c, Stmt) else c)

    return func.with_body(visit(func.body))
