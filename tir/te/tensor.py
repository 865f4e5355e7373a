"""Tensors, the operations that make them, and the expressions that read them.

An operation is immutable and knows what it reads; a tensor is one output of an operation. A step that changes the graph
makes new operations (:meth:`Operation.with_inputs`).
"""

from __future__ import annotations

import functools
import importlib
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..buffer import IterVar, Range, index_expr
from ..dtype import DType
from ..expr import Expr, IntImm, Var, as_expr, const
from ..function import IRModule
from ..neighbours import call_here
from ..node import EMPTY, Span, node
from ..visit import rewrite, walk
from .symbolic_sizes import Conditions, noted
from .user_lines import error, user_place

# ---------------------------------------------------------------- axes


class Axis(IterVar):
    """An axis of a computation; in an expression it stands for its variable.

    >>> from tir import te
    >>> k = te.reduce_axis((0, 8), "k")
    >>> k * 2 + 1
    k * 2 + 1
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def as_script(self) -> str:
        """How the printer shows it."""
        return self.var.name


def _operator(name: str) -> Callable[..., Any]:
    def apply(self: Axis, *others: Any) -> Any:
        return getattr(self.var, name)(*(o.var if isinstance(o, IterVar) else o for o in others))

    apply.__name__ = name
    return apply


_OPERATORS = [name for name in vars(Expr) if name.startswith("__") and callable(getattr(Expr, name))]
for _name in (
    *(n for n in _OPERATORS if n not in dir(object)),
    "__eq__",
    "__ne__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
):
    setattr(Axis, _name, _operator(_name))
Axis.astype = _operator("astype")  # type: ignore[attr-defined]

# reduction axes by the identity of their variables, to say what a stray variable is
_REDUCTION_AXES: weakref.WeakValueDictionary[int, Axis] = weakref.WeakValueDictionary()


def is_reduction_variable(var: Var) -> bool:
    """Whether ``var`` is the variable of an axis that ``te.reduce_axis`` made."""
    axis = _REDUCTION_AXES.get(id(var))
    return axis is not None and axis.var is var


def reduce_axis(dom: Any, name: str = "rv", thread_tag: str = "", span: Any = None) -> Axis:
    """An axis to reduce over: ``dom`` is ``(begin, end)``, a range, or an extent; the end does not belong to it.

    Raises ``TensorExpressionError`` for another domain, and for one that ends before it begins.

    >>> from tir import te
    >>> te.reduce_axis((0, 16), "k").dom
    T.Range(0, 16)
    """
    domain = _domain(dom)
    axis = Axis(domain, Var(name, domain.extent.dtype), "reduce", thread_tag)
    _REDUCTION_AXES[id(axis.var)] = axis
    return axis


def _domain(dom: Any) -> Range:
    if isinstance(dom, Range):
        return dom
    bounds = tuple(dom) if isinstance(dom, (tuple, list)) else (0, dom)
    if len(bounds) != 2:
        raise error(f"the domain of an axis is (begin, end), not {dom!r}", 'te.reduce_axis((0, 16), "k")')
    begin, end = (as_size(b, "a bound of an axis") for b in bounds)
    if isinstance(begin, IntImm) and isinstance(end, IntImm) and end.value < begin.value:
        raise error(
            f"the domain of an axis ends at {end.value}, before its begin {begin.value}", "(begin, end), as in (0, 16)"
        )
    if isinstance(begin, IntImm) and begin.value == 0:
        return Range(begin, end)
    return Range.of(begin, end)


def thread_axis(dom: Any = None, tag: str = "", name: str = "", span: Any = None) -> Axis:
    """A thread axis: ``te.thread_axis("threadIdx.x")``, ``te.thread_axis((0, 64), "threadIdx.x")``, or ``"vthread"``.

    >>> from tir import te
    >>> te.thread_axis((0, 64), "threadIdx.x").thread_tag
    'threadIdx.x'
    """
    if isinstance(dom, str):
        dom, tag = None, dom
    if not tag:
        raise error("a thread axis has a tag", 'te.thread_axis("threadIdx.x"), te.thread_axis((0, 64), "threadIdx.x")')
    domain = None if dom is None else _domain(dom)
    dtype = DType("int32") if domain is None else domain.extent.dtype
    return Axis(domain, Var(name or tag, dtype), "thread", tag)


def as_size(value: Any, what: str) -> Expr:
    """A size or an index, ``what`` of which it is in errors, as an integer expression; ``128 / 32`` is 4.

    Raises ``TensorExpressionError`` for anything else.

    >>> from tir import te
    >>> te.as_size(128 / 32, "a stride"), te.as_size(te.var("n"), "a stride").dtype
    (4, 'int32')
    """
    if isinstance(value, (Tensor, TensorSlice)):
        raise value.as_scalar_error()
    try:
        return index_expr(int(value) if isinstance(value, float) and value.is_integer() else value)
    except (TypeError, ValueError) as exc:
        raise error(f"{what} is an integer, not {value!r} ({exc})") from None


# ---------------------------------------------------------------- tensors


class _NoScalar(ABC):
    """A tensor, or a part of one, is no value: operators that take values say so."""

    __slots__ = ()
    __hash__ = object.__hash__

    @abstractmethod
    def as_scalar_error(self) -> Exception:
        """What is wrong, and how an element is read."""

    def _refuse(self, *_: Any) -> Any:
        raise self.as_scalar_error()

    @property
    def var(self) -> Any:
        """Axes have a variable that stands for them in expressions; tensors have none, and say so."""
        raise self.as_scalar_error()


_SCALAR_OPERATORS = [*(n for n in _OPERATORS if n not in dir(object)), "__pow__", "__rpow__", "__abs__", "__float__"]
for _name in (*_SCALAR_OPERATORS, "__int__", "__index__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(_NoScalar, _name, _NoScalar._refuse)
_NoScalar.__array_ufunc__ = None  # what stands on the left, a scalar or an array, leaves it to these operators


def _elementwise(name: str, swapped: bool = False) -> Callable[..., Any]:
    """An operator of Python on whole tensors, numbers and scalars, which is that of :mod:`tir.ops`."""

    def apply(self: Tensor, *others: Any) -> Any:
        for o in others:  # an element is a scalar of a formula, in which a whole tensor is a mistake
            is_scalar = isinstance(o, Expr) and not any(True for _ in loads_in(o))
            if not is_scalar and not isinstance(o, (Tensor, int, float)):
                raise self.as_scalar_error()
        operands = (*others, self) if swapped else (self, *others)
        return getattr(importlib.import_module("tir.ops"), name)(*operands)

    return apply


class Tensor(_NoScalar):
    """Output ``value_index`` of operation ``op``: ``shape`` (a tuple of integer expressions), ``dtype``, ``name``.

    ``A[i, j]`` and ``A(i, j)`` read an element, ``x[()]`` that of a 0-d tensor. ``A + B``, ``2.0 * A``, ``A @ B``, ``A > k`` are
    the operators of :mod:`tir.ops` on whole tensors, which broadcast, and scalars; ``A == B`` is whether they are one tensor.

    >>> from tir import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> A[1, 2], A.shape, A.dtype
    (A[1, 2], (4, 8), 'float32')
    >>> A * 2.0 + te.placeholder((8,), name="B")
    Tensor(add, (4, 8), float32)
    """

    __slots__ = ("op", "value_index", "__weakref__")
    op: Operation
    value_index: int

    def __init__(self, op: Operation, value_index: int):
        object.__setattr__(self, "op", op)
        object.__setattr__(self, "value_index", value_index)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("tensors are immutable")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            here = None if name.startswith("_") else call_here(name)
            raise AttributeError(f"a tensor has no attribute `{name}`" + (f"; write {here}" if here else ""))

    @property
    def shape(self) -> tuple[Expr, ...]:
        return self.op.output_shape(self.value_index)

    @property
    def dtype(self) -> DType:
        return self.op.output_dtype(self.value_index)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def mod(self) -> IRModule:
        """The program that computes the tensor from its inputs: ``tir.Schedule(t)`` and ``tir.build(t)`` take the tensor.

        >>> from tir import te
        >>> A = te.placeholder((4,), name="A")
        >>> [b.name for b in (A + 1.0).mod["main"].buffers()]
        ['A', 'add']
        """
        from .to_primfunc import function_of

        return IRModule.of(function_of(self))

    @property
    def name(self) -> str:
        """The operation's name; of one of several outputs with its number, as ``T_v1``."""
        return self.op.name if self.op.num_outputs == 1 else f"{self.op.name}_v{self.value_index}"

    def __call__(self, *indices: Any) -> TensorLoad:
        return read(self, indices)

    def __getitem__(self, indices: Any) -> Any:
        items = indices if isinstance(indices, tuple) else (indices,)
        return TensorSlice(self, items) if len(items) < self.ndim else read(self, items)

    def __len__(self) -> int:
        raise error(f"`{self.name}` has a shape, not a length: {self.name}.shape[0] is its first extent")

    def __iter__(self) -> Iterator[Any]:
        raise error(f"tensor `{self.name}` cannot be iterated over: index it, as in {self.name}[{_slots(self.ndim)}]")

    def __repr__(self) -> str:
        return f"Tensor({self.name}, {self.shape}, {self.dtype})"

    __add__, __radd__ = _elementwise("add"), _elementwise("add", swapped=True)
    __sub__, __rsub__ = _elementwise("subtract"), _elementwise("subtract", swapped=True)
    __mul__, __rmul__ = _elementwise("multiply"), _elementwise("multiply", swapped=True)
    __truediv__, __rtruediv__ = _elementwise("divide"), _elementwise("divide", swapped=True)
    __floordiv__, __rfloordiv__ = _elementwise("floor_divide"), _elementwise("floor_divide", swapped=True)
    __mod__, __rmod__ = _elementwise("remainder"), _elementwise("remainder", swapped=True)
    __pow__, __rpow__ = _elementwise("pow"), _elementwise("pow", swapped=True)
    __and__, __rand__ = _elementwise("bitwise_and"), _elementwise("bitwise_and", swapped=True)
    __or__, __ror__ = _elementwise("bitwise_or"), _elementwise("bitwise_or", swapped=True)
    __xor__, __rxor__ = _elementwise("bitwise_xor"), _elementwise("bitwise_xor", swapped=True)
    __lshift__, __rlshift__ = _elementwise("left_shift"), _elementwise("left_shift", swapped=True)
    __rshift__, __rrshift__ = _elementwise("right_shift"), _elementwise("right_shift", swapped=True)
    __matmul__, __rmatmul__ = _elementwise("matmul"), _elementwise("matmul", swapped=True)
    __lt__, __le__ = _elementwise("less"), _elementwise("less_equal")
    __gt__, __ge__ = _elementwise("greater"), _elementwise("greater_equal")
    __neg__, __abs__, __invert__ = _elementwise("negative"), _elementwise("abs"), _elementwise("bitwise_not")

    def astype(self, dtype: Any) -> Tensor:
        """The tensor in another data type, as :func:`tir.ops.astype` gives it."""
        return importlib.import_module("tir.ops").astype(self, dtype)

    def as_scalar_error(self) -> Exception:
        return error(
            f"tensor `{self.name}` of shape {self.shape} is used as a scalar",
            f"index it, as in {self.name}[{_slots(self.ndim)}]",
        )


def _slots(ndim: int) -> str:
    return ", ".join("ijklmnopqr"[:ndim]) or "()"


@dataclass(frozen=True, eq=False, repr=False)
class TensorSlice(_NoScalar):
    """``tensor`` with the first indices given: ``A[i][j]`` is ``A[i, j]``.

    >>> from tir import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> row = A[2]
    >>> type(row).__name__, te.compute((8,), lambda j: row[j], "B").op.body[0]
    ('TensorSlice', A[2, j])
    """

    tensor: Tensor
    indices: tuple[Any, ...]

    def __getitem__(self, indices: Any) -> Any:
        return self.tensor[(*self.indices, *(indices if isinstance(indices, tuple) else (indices,)))]

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    def __repr__(self) -> str:
        return f"{self.tensor.name}[{', '.join(map(repr, self.indices))}]"

    def __iter__(self) -> Iterator[Any]:
        raise self.as_scalar_error()

    def as_scalar_error(self) -> Exception:
        return rank_error(self.tensor, len(self.indices))


def rank_error(tensor: Tensor, count: int) -> Exception:
    return error(
        f"tensor `{tensor.name}` has {tensor.ndim} dimension{'s' * (tensor.ndim != 1)} {tensor.shape}, but is indexed "
        f"with {count}",
        f"{tensor.name}[{_slots(tensor.ndim)}]",
    )


@node
class TensorLoad(Expr):
    """``tensor[indices]``: an element of a tensor, in a tensor expression.

    >>> from tir import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> B = te.compute((4, 8), lambda i, j: A[i, j] * 2.0, "B")
    >>> load = B.op.body[0].a
    >>> type(load).__name__, load, load.dtype
    ('TensorLoad', A[i, j], 'float32')
    """

    tensor: Any
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.tensor.dtype

    def as_script(self) -> str:
        """How the printer shows it."""
        return f"{self.tensor.name}[{', '.join(map(repr, self.indices)) or '()'}]"


def read(tensor: Tensor, indices: tuple[Any, ...]) -> TensorLoad:
    """The element of ``tensor`` at ``indices``. Raises ``TensorExpressionError`` for a wrong number or type of them."""
    if len(indices) == 1 and indices[0] == () and tensor.ndim == 0:
        indices = ()
    if len(indices) != tensor.ndim:
        raise rank_error(tensor, len(indices))
    if any(isinstance(i, slice) for i in indices):
        raise error(
            f"tensor `{tensor.name}` is read by element: a slice is no index of it",
            "for an instruction on parts of tensors, a te.compute of elements and s[C].tensorize(axis, intrin), or te.extern",
        )
    return TensorLoad(tensor, tuple(as_size(i, f"an index of `{tensor.name}`") for i in indices))


def loads_in(root: Any) -> Iterator[TensorLoad]:
    """Every read of a tensor under ``root``, in program order."""
    return (item for item in walk(root) if isinstance(item, TensorLoad))


def redirected(root: Any, tensors: Mapping[Tensor, Tensor]) -> Any:
    """``root`` reading other tensors in the place of those that ``tensors`` maps."""

    def visit(item: Any) -> Any:
        if isinstance(item, TensorLoad) and item.tensor in tensors:
            return item.replace(tensor=tensors[item.tensor])
        return None

    return rewrite(root, visit)


# ---------------------------------------------------------------- operations


@dataclass(frozen=True, eq=False, repr=False)
class Operation(ABC):
    """What makes tensors. ``place`` is the user's line that made it; ``tag`` and ``attrs`` are the user's own notes;
    ``requires`` are conditions on symbolic sizes, which the function that computes it checks.

    >>> from tir import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] + 1.0, "B")
    >>> B.op.name, [t.op.name for t in B.op.input_tensors], B.op.num_outputs, B.op.output(0) == B
    ('B', ['A'], 1, True)
    """

    name: str
    tag: str = field(default="", kw_only=True)
    attrs: Any = field(default_factory=lambda: EMPTY, kw_only=True)
    place: Span | None = field(default=None, kw_only=True)
    requires: Conditions = field(default_factory=noted, kw_only=True)

    @property
    def num_outputs(self) -> int:
        return 1

    @abstractmethod
    def output_shape(self, index: int) -> tuple[Expr, ...]:
        """The shape of output ``index``."""

    @abstractmethod
    def output_dtype(self, index: int) -> DType:
        """The dtype of output ``index``."""

    @functools.cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(Tensor(self, i) for i in range(self.num_outputs))

    def output(self, index: int) -> Tensor:
        """Its tensor number ``index``, the same object every time. Raises ``TensorExpressionError`` if it has none."""
        if not hasattr(index, "__index__") or not 0 <= index < self.num_outputs:
            raise error(
                f"operation `{self.name}` has no output {index!r}", ", ".join(map(str, range(self.num_outputs)))
            )
        return self.outputs[index]

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors it reads, in order of first use."""
        return ()

    def with_inputs(self, tensors: Mapping[Tensor, Tensor]) -> Operation:
        """The operation reading other tensors in the place of those that ``tensors`` maps."""
        return self

    @property
    def axis(self) -> tuple[Axis, ...]:
        """The axes of its output, outermost first."""
        return ()

    @property
    def reduce_axis(self) -> tuple[Axis, ...]:
        """The axes it reduces over."""
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


def operations_of(tensors: Iterable[Tensor]) -> list[Operation]:
    """The operations that ``tensors`` need, each after those that it reads."""
    done: dict[Operation, None] = {}
    stack: list[tuple[Operation, bool]] = [(t.op, False) for t in reversed(list(tensors))]
    while stack:
        op, is_ready = stack.pop()
        if op in done:
            continue
        if is_ready:
            done[op] = None
        else:
            stack.append((op, True))
            stack += [(t.op, False) for t in reversed(op.input_tensors)]
    return list(done)


@dataclass(frozen=True, eq=False, repr=False)
class PlaceholderOp(Operation):
    """An input.

    >>> from tir import te
    >>> A = te.placeholder((4, 8), "int8", name="A")
    >>> A.op.name, A.op.shape, A.op.dtype, A.op.input_tensors
    ('A', (4, 8), 'int8', ())
    """

    shape: tuple[Expr, ...]
    dtype: DType

    def output_shape(self, index: int) -> tuple[Expr, ...]:
        return self.shape

    def output_dtype(self, index: int) -> DType:
        return self.dtype


def require_name(name: Any, what: str) -> None:
    """Raise ``TensorExpressionError`` unless ``name``, that of ``what``, is a string that is not empty."""
    if not isinstance(name, str) or not name:
        raise error(f"the name of {what} is a string, not {name!r}")


def placeholder(shape: Any, dtype: Any = None, name: str = "placeholder") -> Tensor:
    """An input tensor of ``shape``, a tuple of integers and integer expressions (``()`` for a scalar), or one of them.

    Raises ``TensorExpressionError`` for a shape that is not made of integers.

    >>> from tir import te
    >>> n = te.var("n")
    >>> te.placeholder((n, 4), "float16", name="A")
    Tensor(A, (n, 4), float16)
    """
    require_name(name, "an input")
    sizes, kind = extents(shape, f"`{name}`"), data_type(dtype or "float32")
    return PlaceholderOp(name, sizes, kind, place=user_place()).output(0)


def extents(shape: Any, what: str) -> tuple[Expr, ...]:
    """A shape as integer expressions. Raises ``TensorExpressionError`` for one that is none."""
    items = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    made = tuple(as_size(s, f"extent {axis} of {what}") for axis, s in enumerate(items))
    for axis, extent in enumerate(made):
        if isinstance(extent, IntImm) and extent.value < 0:
            raise error(f"extent {axis} of {what} is {extent.value}; an extent is at least 0")
    return made


def data_type(value: Any) -> DType:
    """The data type that ``"float32"``, ``T.float32``, ``numpy.float32`` or ``A.dtype`` names.

    Raises ``TensorExpressionError`` for what names none.

    >>> import numpy as np
    >>> from tir import te
    >>> te.data_type(np.int8), te.data_type("float16x4").lanes
    ('int8', 4)
    """
    from ..script.values import dtype_of

    try:
        return DType(dtype_of(value))
    except (TypeError, ValueError) as exc:
        raise error(str(exc)) from None


def var(name: str = "tindex", dtype: Any = "int32", span: Any = None) -> Var:
    """A scalar: a symbolic size, or a parameter to be passed to the function.

    >>> from tir import te
    >>> te.var("n").dtype
    'int32'
    """
    require_name(name, "a variable")
    return Var(name, data_type(dtype))


size_var = var


def constant(value: Any, dtype: Any = None) -> Expr:
    """A constant of ``dtype``; without one: bool, int32 (int64 where it does not fit), float32.

    Raises ``TensorExpressionError`` for a number that does not fit.

    >>> from tir import te
    >>> te.const(0, "int8").dtype
    'int8'
    """
    try:
        return const(value, None if dtype is None else data_type(dtype))
    except (TypeError, ValueError) as exc:
        raise error(str(exc)) from None


def value_of(value: Any, dtype: DType | None = None) -> Expr:
    """A scalar that the user wrote, as an expression. Raises ``TensorExpressionError`` for a tensor."""
    if isinstance(value, _NoScalar):
        raise value.as_scalar_error()
    if isinstance(value, Expr) or dtype is None:
        return as_expr(value)
    return const(value, dtype) if not isinstance(value, IterVar) else value.var
