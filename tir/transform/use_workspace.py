"""Large allocations of constant size as parameters: memory that the caller of a function plans and gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..buffer import Buffer
from ..dtype import HANDLE
from ..expr import BufferLoad, Call, Expr, IntImm, Var, const, is_const
from ..function import PrimFunc
from ..levels import GLOBAL, LOCAL
from ..stmt import Allocate, For, LetStmt, Stmt
from ..visit import substitute
from .layout import allocated_bytes, element_count
from .passes import func_pass

WORKSPACE = "tir.workspace"
STACK_BYTES = (
    16 * 1024
)  # a constant-size buffer up to this size lives on the stack, where LLVM can keep it in registers
_LINE = 64


class Temporary(NamedTuple):
    """An allocation that may be a parameter, and the parallel loop around it."""

    allocation: Allocate
    loop: For | None

    @property
    def iterations(self) -> int:
        """How many of it may be in use at once."""
        return self.loop.extent.value if self.loop is not None and isinstance(self.loop.extent, IntImm) else 1

    @property
    def elements(self) -> int:
        """Elements of one: those of the allocation in whole cache lines, and a line more to read ahead in."""
        size = allocated_bytes(self.allocation)
        assert size is not None
        return -(-(size + _LINE) // _LINE) * _LINE // self.allocation.dtype.bytes


def temporaries(func: PrimFunc) -> tuple[Temporary, ...]:
    """The allocations of a lowered function that may be parameters, in order: of constant size, too large for the stack, and not in a parallel
    loop of unknown extent.

    >>> import tir
    >>> A, B = tir.te.placeholder((64, 128), name="A"), None
    >>> B = tir.te.compute((64, 128), lambda i, j: A[i, j] + 1.0, name="B")
    >>> func = tir.te.create_prim_func([A, tir.te.compute((64, 128), lambda i, j: B[63 - i, j], name="C")])
    >>> [(t.allocation.buffer_var.name, t.elements) for t in temporaries(tir.lower(func)["main"])]
    [('B', 8208)]
    """
    found: list[Temporary] = []

    def visit(s: Stmt, loop: For | None) -> None:
        if isinstance(s, For) and s.kind == "parallel" and loop is None:
            loop = s
        if isinstance(s, Allocate) and _is_large(s) and (loop is None or isinstance(loop.extent, IntImm)):
            found.append(Temporary(s, loop))
        for child in s.children():
            if isinstance(child, Stmt):
                visit(child, loop)  # noqa: F821  (deleted only afterwards)

    visit(func.body, None)
    del visit  # it refers to itself, and would stay until garbage is collected
    return tuple(found)


def fits_stack(s: Allocate) -> bool:
    """Whether an allocation lives on the stack of a CPU."""
    size = allocated_bytes(s)
    return size is not None and size <= STACK_BYTES


def is_plain(s: Allocate) -> bool:
    """Whether memory is allocated unconditionally, and in no special place: it may be elsewhere in its function."""
    return is_const(s.condition, 1) and not s.annotations and s.buffer_var.scope in ("", GLOBAL, LOCAL)


def _is_large(s: Allocate) -> bool:
    return is_plain(s) and allocated_bytes(s) is not None and not fits_stack(s) and _LINE % s.dtype.bytes == 0


@func_pass
def use_workspace(func: PrimFunc) -> PrimFunc:
    """Puts large allocations into the parameters that ``"tir.workspace"`` of the function names, in order.

    A parameter is a buffer of one axis and of the allocation's type. In a parallel loop, each iteration needs memory of its own: of a parameter with room
    for *n* allocations and a line (64 bytes) more each, the iterations have *n* equal parts, and run in so many shares, each one after another.
    An allocation that does not fit stays, as in a function without the attribute.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((4096,), "float64"), B: T.Buffer((4096,), "float64"), work: T.Buffer((4104,), "float64")):
    ...     T.func_attr({"tir.workspace": ["work"]})
    ...     p = T.allocate([4096], "float64", "global")
    ...     C = T.decl_buffer((4096,), "float64", data=p)
    ...     for i in range(4096):
    ...         C[i] = A[i]
    ...     for i in range(4096):
    ...         B[i] = C[4095 - i]
    ... ''')
    >>> tir.transform.use_workspace(f).body
    work = T.handle("float64")
    C = T.decl_buffer((4096,), "float64", data=work)
    for i in range(4096):
        C[i] = A[i]
    for i in range(4096):
        B[i] = C[4095 - i]
    """
    named = {b.name: b for b in func.buffers()}
    given = [named[name] for name in func.attrs.get(WORKSPACE, ()) if name in named]
    fitting = [(t, buffer, parts) for t, buffer in zip(temporaries(func), given) if (parts := _parts(t, buffer))]
    shares: dict[For, int] = {}
    for t, _, parts in fitting:
        if t.loop is not None:
            shares[t.loop] = min(parts, shares.get(t.loop, parts))
    if not fitting:
        return func
    return func.with_body(
        _Placing({t.allocation: (t, buffer) for t, buffer, _ in fitting}, shares).visit(func.body, None)
    )


def _parts(t: Temporary, buffer: Buffer) -> int:
    """How many of an allocation a parameter has room for; none if it is of another type."""
    room = element_count(buffer.shape)
    if buffer.dtype != t.allocation.dtype or len(buffer.shape) != 1 or room is None:
        return 0
    return min(room // t.elements, t.iterations)


class _Placing:
    """Allocations in parameters; ``shares`` are those in which parallel loops run."""

    def __init__(self, placed: Mapping[Allocate, tuple[Temporary, Buffer]], shares: Mapping[For, int]):
        self._placed = placed
        self._shares = shares

    def visit(self, s: Stmt, share: Expr | None) -> Stmt:
        """A statement; in a parallel loop, ``share`` is the number of the share that runs it."""
        if isinstance(s, For) and s in self._shares:
            return self._in_shares(s, self._shares[s])
        if not isinstance(s, Allocate) or s not in self._placed:
            return s.map_statements(lambda child: self.visit(child, share))
        t, buffer = self._placed[s]
        if share is None:
            return substitute(self.visit(s.body, share), {s.buffer_var: buffer.data})
        place = Call("address_of", (BufferLoad(buffer, (share * const(t.elements, share.dtype),)),), HANDLE)
        return LetStmt(s.buffer_var, place, self.visit(s.body, share))

    def _in_shares(self, s: For, count: int) -> Stmt:
        assert isinstance(s.extent, IntImm)
        if count == s.extent.value:
            return s.replace(body=self.visit(s.body, s.loop_var - s.min))
        share = Var("share", s.loop_var.dtype)
        whole = s.extent.value
        first, after = (k * whole // count for k in (share, share + 1))
        extent = after - first if whole % count else s.extent.replace(value=whole // count)
        within = s.replace(
            min=s.min + first, extent=extent, kind="serial", body=self.visit(s.body, share), annotations={}
        )
        return s.replace(loop_var=share, min=const(0, share.dtype), extent=const(count, share.dtype), body=within)
