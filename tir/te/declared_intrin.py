"""``te.decl_tensor_intrin``: an instruction declared by a tensor computation and the statement that does the same."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..buffer import Buffer, decl_buffer
from ..checked import checked
from ..dtype import HANDLE, VOID
from ..expr import TRUE, Expr, Var
from ..function import PrimFunc
from ..intrin import TensorIntrin
from ..ir_builder import effect
from ..names import identifier
from ..node import EMPTY, frozendict
from ..stmt import Block, BlockRealize, Stmt
from ..visit import substitute
from .computation import ComputeOp
from .tensor import Tensor, require_name
from .to_primfunc import Lowering, bound_buffer, reset_and_update, statement_of
from .user_lines import error, users_errors


@dataclass(frozen=True, eq=False, repr=False)
class TensorIntrinDecl:
    """What ``op`` computes as an instruction: ``body`` does all of it; of a reduction, ``reset`` stores the initial
    values, and ``update`` adds to them. Those that the user did not give are None.

    ``ins`` and ``outs`` are the buffers that the statements access.

    >>> import tir
    >>> from tir import te
    >>> X = te.placeholder((4,), name="X")
    >>> Y = te.compute((4,), lambda i: X[i] * 2.0, "Y")
    >>> def body(ins, outs):
    ...     return tir.call_extern("int32", "double_4", ins[0].data, outs[0].data)
    >>> declared = te.decl_tensor_intrin(Y.op, body)
    >>> declared.name, [b.shape for b in declared.ins], declared.update
    ('tensor_intrin', [(4,)], None)
    """

    name: str
    op: ComputeOp
    ins: tuple[Buffer, ...]
    outs: tuple[Buffer, ...]
    body: Stmt | None
    reset: Stmt | None = None
    update: Stmt | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @functools.cached_property
    def whole_intrin(self) -> TensorIntrin:
        """The instruction that computes all of ``op``, which is no reduction, for ``Schedule.tensorize``."""
        return self._intrin(self.name, self._lowering(lambda lowering: statement_of(self.op, lowering)), self.body)

    @functools.cached_property
    def single_step_intrin(self) -> TensorIntrin:
        """The instruction that computes all of a reduction, in the place of the update that is its only step: the initial
        values, stored just before, are overwritten. Wrong where there are several steps."""
        return self._intrin(f"{self.name}_single_step", self._update(), self.body)

    @functools.cached_property
    def reset_intrin(self) -> TensorIntrin:
        """The instruction that stores the initial values of a reduction."""
        desc = self._lowering(lambda lowering: reset_and_update(self.op, lowering)[0])
        return self._intrin(f"{self.name}_reset", desc, self.reset, ())

    @functools.cached_property
    def update_intrin(self) -> TensorIntrin:
        """The instruction that adds to the results of a reduction."""
        return self._intrin(f"{self.name}_update", self._update(), self.update)

    def at(self, has_steps_outside: bool) -> tuple[TensorIntrin, TensorIntrin | None]:
        """The instruction for a loop of the operation, and the one for the initial values of a reduction, if any.

        ``has_steps_outside``: loops of the reduction stand around it, so that results are added to. Raises
        ``TensorExpressionError`` where the user gave no statement for that.
        """
        if not self.op.reduce_axis:
            return self.whole_intrin, None
        if not has_steps_outside and self.body is not None:
            return self.single_step_intrin, None
        return self.update_intrin, None if self.reset is None else self.reset_intrin

    def _update(self) -> Stmt:
        return self._lowering(lambda lowering: reset_and_update(self.op, lowering)[1])

    def _lowering(self, make: Callable[[Lowering], Stmt]) -> Stmt:
        """A statement of the operation in the declared buffers."""
        tensors = (*self.op.input_tensors, *self.op.outputs)
        lowering = Lowering(tensors, [*(t.op for t in self.op.input_tensors), self.op])
        stmt = make(lowering)
        pairs = [(lowering.buffers[t], b) for t, b in zip(tensors, (*self.ins, *self.outs))]
        return substitute(stmt, {old.data: new.data for old, new in pairs}, dict(pairs))

    def _intrin(self, name: str, desc: Stmt, impl: Stmt | None, ins: tuple[Buffer, ...] | None = None) -> TensorIntrin:
        if impl is None:
            raise error(
                f"tensor intrinsic `{self.name}` has no statement for this part", "return a tuple (body, reset, update)"
            )
        ins = self.ins if ins is None else ins
        made = [self._function(ins, stmt) for stmt in (desc, impl)]
        return TensorIntrin(made[0], made[1], name)

    def _function(self, ins: tuple[Buffer, ...], body: Stmt) -> PrimFunc:
        """``body`` in a root block that says what it accesses."""
        buffers = (*ins, *self.outs)
        params = tuple(Var(f"{b.name}_handle", HANDLE) for b in buffers)
        is_reset = not ins
        regions = tuple(b.full_region() for b in buffers)
        writes = regions[len(ins) :]
        root = Block((), () if is_reset else regions, writes, "root", body)
        return PrimFunc(params, BlockRealize((), TRUE, root), VOID, frozendict(zip(params, buffers)), EMPTY)


@checked
def decl_tensor_intrin(
    op: Any,
    fcompute: Callable[..., Any],
    name: str = "tensor_intrin",
    binds: Mapping[Tensor, Buffer] | None = None,
    scalar_params: Any = None,
    default_buffer_params: Mapping[str, Any] | None = None,
) -> TensorIntrinDecl:
    """Declare that ``fcompute`` does what ``op`` computes. It takes the buffers of inputs and outputs, and gives a
    statement, or a tuple ``(body, reset, update)`` of a reduction, any of which may be None.

    ``binds`` has buffers for tensors: with strides and an ``offset_factor``, so that the instruction works on a part of a
    larger buffer. ``default_buffer_params`` are options of ``tir.decl_buffer`` for the others.

    Raises ``TensorExpressionError`` for an operation that is no computation on inputs, and for what is no statement.

    >>> import tir
    >>> from tir import te
    >>> a = te.placeholder((4,), name="a")
    >>> b = te.compute((4,), lambda i: a[i] + 1.0, name="b")
    >>> call = lambda ins, outs: tir.call_extern("int32", "inc", outs[0].access_ptr("w"), ins[0].access_ptr("r"))
    >>> te.decl_tensor_intrin(b.op, call, name="inc").whole_intrin.name
    'inc'
    """
    require_name(name, "a tensor intrinsic")
    op = op.op if isinstance(op, Tensor) else op
    if not isinstance(op, ComputeOp):
        raise error(f"a tensor intrinsic is declared by a te.compute, not by {op!r}")
    if scalar_params:
        raise error("scalar_params are not supported: close over constants, or read them from a tensor")
    for t in op.input_tensors:
        if t.op.input_tensors or isinstance(t.op, ComputeOp):
            raise error(f"`{t.name}`, which tensor intrinsic `{name}` reads, is no placeholder", place=op.place)
    declared = [_declared(t, binds or {}, default_buffer_params) for t in (*op.input_tensors, *op.outputs)]
    buffers = [_with_offset(b) for b in declared]
    ins, outs = tuple(buffers[: len(op.input_tensors)]), tuple(buffers[len(op.input_tensors) :])
    with users_errors(f"te.decl_tensor_intrin `{name}`"):
        given = fcompute(list(ins), list(outs))
    parts = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if len(parts) not in (1, 3):
        raise error(f"tensor intrinsic `{name}` gives {len(parts)} statements", "one, or (body, reset, update)")
    same = {old: new for old, new in zip(declared, buffers) if old is not new}
    statements = [_statement(p, name, same) for p in parts]
    if all(s is None for s in statements):
        raise error(f"tensor intrinsic `{name}` gives no statement")
    return TensorIntrinDecl(identifier(name), op, ins, outs, *statements)


def _declared(tensor: Tensor, binds: Mapping[Tensor, Buffer], options: Mapping[str, Any] | None) -> Buffer:
    found = bound_buffer(tensor, binds)
    if found is None:
        return decl_buffer(tensor.shape, tensor.dtype, identifier(tensor.name), **(options or {"offset_factor": 1}))
    return found


def _with_offset(buffer: Buffer) -> Buffer:
    """What has an offset factor has an offset, whatever it is."""
    if not buffer.offset_factor or buffer.elem_offset is not None:
        return buffer
    return buffer.replace(elem_offset=Var(f"{buffer.name}_elem_offset"))


def _statement(made: Any, name: str, same: Mapping[Buffer, Buffer]) -> Stmt | None:
    if isinstance(made, Expr):
        made = effect(made)
    if made is not None and not isinstance(made, Stmt):
        raise error(f"tensor intrinsic `{name}` gives a statement or an expression, not {made!r}", "return ib.get()")
    return None if made is None else substitute(made, {}, same)
