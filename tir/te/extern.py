"""``te.extern``: tensors that a statement makes, built by hand or calling functions of the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..buffer import Buffer, decl_buffer
from ..dtype import DType
from ..expr import Expr, Var
from ..ir_builder import effect
from ..stmt import Stmt
from ..visit import free_vars
from .tag import notes
from .tensor import Operation, Tensor, data_type, extents, require_name
from .user_lines import error, users_errors


@dataclass(frozen=True, eq=False, repr=False)
class ExternOp(Operation):
    """``body`` makes all outputs at once; in it, ``in_buffers`` and ``out_buffers`` stand for inputs and outputs.

    >>> import tir
    >>> from tir import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.extern((8,), [A], lambda ins, outs: tir.call_packed("sort", ins[0], outs[0]), "B", dtype="float32")
    >>> type(B.op).__name__, [t.op.name for t in B.op.inputs], [b.shape for b in B.op.out_buffers]
    ('ExternOp', ['A'], [(8,)])
    """

    inputs: tuple[Tensor, ...]
    in_buffers: tuple[Buffer, ...]
    out_buffers: tuple[Buffer, ...]
    body: Stmt

    @property
    def num_outputs(self) -> int:
        return len(self.out_buffers)

    def output_shape(self, index: int) -> tuple[Expr, ...]:
        return self.out_buffers[index].shape

    def output_dtype(self, index: int) -> DType:
        return self.out_buffers[index].dtype

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(self.inputs))

    def with_inputs(self, tensors: Mapping[Tensor, Tensor]) -> Operation:
        if not any(t in tensors for t in self.inputs):
            return self
        inputs = tuple(tensors.get(t, t) for t in self.inputs)
        return replace(self, inputs=inputs)

    def variables(self) -> Iterable[Var]:
        """The scalars of the body: not those that its buffers declare."""
        own = {v for b in (*self.in_buffers, *self.out_buffers) for v in own_variables(b)}
        return [v for v in free_vars(self.body) if v not in own and not v.dtype.is_handle]


def own_variables(buffer: Buffer) -> set[Var]:
    """The variables that stand for a buffer's pointer, offset and strides."""
    parts = (buffer.data, buffer.elem_offset, *buffer.strides)
    return {v for v in parts if isinstance(v, Var)}


def extern(
    shape: Any,
    inputs: Any,
    fcompute: Callable[..., Any],
    name: str = "extern",
    dtype: Any = None,
    in_buffers: Any = None,
    out_buffers: Any = None,
    tag: str = "",
    attrs: Any = None,
) -> Any:
    """Tensors made by a statement: ``fcompute(ins, outs)`` takes a buffer for each input and output, and gives it.

    ``shape`` is that of the output, or a list of them for several outputs (a list is returned). ``fcompute`` gives a
    statement (of ``tir.ir_builder``), or an expression for its effect: ``tir.call_packed("name", ins[0], outs[0])`` calls
    what ``tir.register_func`` registered, with NumPy arrays. ``dtype`` is one type or one each; without it, that of all
    inputs. ``in_buffers`` and ``out_buffers`` say how the memory is to be laid out for the body.

    Raises ``TensorExpressionError`` for what is no statement, and where a type is missing or buffers do not match.

    >>> import tir
    >>> from tir import te
    >>> A = te.placeholder((8,), name="A")
    >>> te.extern((8,), [A], lambda ins, outs: tir.call_packed("my.sort", ins[0], outs[0]), name="sorted")
    Tensor(sorted, (8,), float32)
    """
    require_name(name, "a computation")
    several = isinstance(shape, list) or (isinstance(shape, tuple) and any(isinstance(s, (list, tuple)) for s in shape))
    shapes = [extents(s, f"`{name}`") for s in (shape if several else [shape])]
    if not shapes:
        raise error(f"`{name}` has no outputs", "a shape, or a list of the shapes of its outputs")
    tensors = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
    for t in tensors:
        if not isinstance(t, Tensor):
            raise error(f"an input of `{name}` is a tensor, not {t!r}")
    ins = _given(in_buffers, [(t.shape, t.dtype, t.name) for t in tensors], "input", name)
    dtypes = _dtypes(dtype, out_buffers, tensors, len(shapes), name)
    outs = _given(out_buffers, [(s, d, name) for s, d in zip(shapes, dtypes)], "output", name)
    with users_errors(f"te.extern `{name}`"):
        body = _statement(fcompute(list(ins), list(outs)), name)
    op = ExternOp(name, tensors, ins, outs, body, **notes(tag, attrs))
    return list(op.outputs) if several else op.output(0)


def _statement(made: Any, name: str) -> Stmt:
    if isinstance(made, Expr):
        return effect(made)
    if isinstance(made, Stmt):
        return made
    raise error(f"the function of `{name}` gives a statement or an expression, not {made!r}", "return ib.get()")


def _dtypes(dtype: Any, buffers: Any, inputs: tuple[Tensor, ...], count: int, name: str) -> list[DType]:
    if buffers is not None:
        return [b.dtype for b in _buffers(buffers, "output", name)]
    if dtype is not None:
        given = [data_type(d) for d in (dtype if isinstance(dtype, (list, tuple)) else [dtype] * count)]
        if len(given) != count:
            raise error(f"`{name}` has {count} outputs, and {len(given)} data types")
        return given
    kinds = dict.fromkeys(t.dtype for t in inputs)
    if len(kinds) != 1:
        raise error(f"the data type of `{name}` cannot be that of its inputs ({', '.join(kinds) or 'none'})", "dtype=…")
    return list(kinds) * count


def _buffers(buffers: Any, what: str, name: str) -> list[Any]:
    given = list(buffers) if isinstance(buffers, (list, tuple)) else [buffers]
    for buffer in given:
        if not isinstance(buffer, Buffer):
            raise error(f"an {what} buffer of `{name}` is a buffer, not {buffer!r}", "tir.decl_buffer")
    return given


def _given(buffers: Any, expected: list[Any], what: str, name: str) -> tuple[Buffer, ...]:
    """The user's buffers, or compact ones."""
    if buffers is None:
        return tuple(decl_buffer(shape, dtype, called) for shape, dtype, called in expected)
    given = _buffers(buffers, what, name)
    if len(given) != len(expected):
        raise error(f"`{name}` has {len(expected)} {what}s, and buffers for {len(given)}")
    for buffer, (shape, dtype, _) in zip(given, expected):
        if not isinstance(buffer, Buffer):
            raise error(f"an {what} buffer of `{name}` is a buffer, not {buffer!r}", "tir.decl_buffer(shape, dtype)")
        if buffer.dtype is not dtype or buffer.ndim != len(shape):
            raise error(
                f"an {what} buffer of `{name}` is {buffer.dtype} of {buffer.ndim} dimensions; what it stands for is "
                f"{dtype} of {len(shape)}"
            )
    return tuple(given)
