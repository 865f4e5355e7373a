"""Expression nodes. What builds them, Python's operators among it, is in ``expr.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from .dtype import BOOL, HANDLE, INT32, DType  # noqa: F401 (BOOL: a computed field)
from .node import EMPTY, Node, node


class Expr(Node):
    """Base of expressions. Every expression has a ``dtype``."""

    __slots__ = ()
    dtype: DType
    __hash__ = object.__hash__

    if TYPE_CHECKING:  # given to the class by `expr.py`, which builds expressions

        def __add__(self, other: ExprLike) -> Expr: ...
        def __radd__(self, other: ExprLike) -> Expr: ...
        def __sub__(self, other: ExprLike) -> Expr: ...
        def __rsub__(self, other: ExprLike) -> Expr: ...
        def __mul__(self, other: ExprLike) -> Expr: ...
        def __rmul__(self, other: ExprLike) -> Expr: ...
        def __truediv__(self, other: ExprLike) -> Expr: ...
        def __rtruediv__(self, other: ExprLike) -> Expr: ...
        def __floordiv__(self, other: ExprLike) -> Expr: ...
        def __rfloordiv__(self, other: ExprLike) -> Expr: ...
        def __mod__(self, other: ExprLike) -> Expr: ...
        def __rmod__(self, other: ExprLike) -> Expr: ...
        def __lshift__(self, other: ExprLike) -> Expr: ...
        def __rlshift__(self, other: ExprLike) -> Expr: ...
        def __rshift__(self, other: ExprLike) -> Expr: ...
        def __rrshift__(self, other: ExprLike) -> Expr: ...
        def __and__(self, other: ExprLike) -> Expr: ...
        def __rand__(self, other: ExprLike) -> Expr: ...
        def __or__(self, other: ExprLike) -> Expr: ...
        def __ror__(self, other: ExprLike) -> Expr: ...
        def __xor__(self, other: ExprLike) -> Expr: ...
        def __rxor__(self, other: ExprLike) -> Expr: ...
        def __lt__(self, other: ExprLike) -> Expr: ...
        def __le__(self, other: ExprLike) -> Expr: ...
        def __gt__(self, other: ExprLike) -> Expr: ...
        def __ge__(self, other: ExprLike) -> Expr: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...
        def __neg__(self) -> Expr: ...
        def __invert__(self) -> Expr: ...
        def astype(self, dtype: str) -> Expr: ...
        def equal(self, other: Any) -> Expr: ...

    def __pos__(self) -> Expr:
        return self

    def __bool__(self) -> bool:
        raise TypeError(
            f"the value of `{self!r}` is not known while the program is being built, so Python cannot branch on it; "
            "use T.if_then_else(cond, a, b), T.Select, or an `if` statement inside the prim_func"
        )

    def __float__(self) -> float:
        raise TypeError(
            f"the value of `{self!r}` is not known while the program is being built, so a function of Python's numbers cannot "
            "take it; T.exp, T.sqrt … and te.exp, te.sqrt … take expressions"
        )


ExprLike: TypeAlias = Expr | int | float | bool


@node
class Var(Expr):
    """A variable: a loop variable, parameter, let binding, or (dtype handle) a pointer.

    For a pointer ``pointer_dtype`` and ``scope`` describe the pointee, if known. Variables are distinguished by
    identity: two variables called ``i`` are different.
    """

    name: str
    dtype: DType = INT32
    pointer_dtype: DType | None = None
    scope: str = ""

    if TYPE_CHECKING:  # a name of a type will do

        def __init__(
            self, name: str, dtype: str = ..., pointer_dtype: DType | None = ..., scope: str = ..., span: Any = ...
        ) -> None: ...

    computed = {"dtype": "dtype if type(dtype) is DType else DType(dtype)"}


@node
class IntImm(Expr):
    """An integer or bool constant."""

    value: int
    dtype: DType = INT32

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value


@node
class FloatImm(Expr):
    """A floating constant; value may be inf, nan or -0.0."""

    value: float
    dtype: DType

    def __float__(self) -> float:
        return self.value


@node
class StringImm(Expr):
    value: str
    dtype: DType = HANDLE


class BinaryOp(Expr):
    """Base of two-operand nodes ``a``, ``b``; arithmetic ones have the operands' dtype."""

    __slots__ = ()
    a: Expr
    b: Expr


class Arithmetic(BinaryOp):
    __slots__ = ()
    computed = {"dtype": "a.dtype"}


class Comparison(BinaryOp):
    __slots__ = ()
    computed = {"dtype": "BOOL if a.dtype.lanes == 1 else BOOL.with_lanes(a.dtype.lanes)"}


def _binary(name: str, base: type, doc: str) -> Any:
    """One binary node class; all have the same shape."""
    from dataclasses import field

    namespace = {
        "__module__": __name__,
        "__qualname__": name,
        "__doc__": doc,
        "__annotations__": {"a": Expr, "b": Expr, "dtype": DType},
        "dtype": field(init=False),
    }
    return node(type(name, (base,), namespace))


Add = _binary("Add", Arithmetic, "a + b")
Sub = _binary("Sub", Arithmetic, "a - b")
Mul = _binary("Mul", Arithmetic, "a * b")
Div = _binary("Div", Arithmetic, "a / b for floats; division rounding toward zero for integers")
Mod = _binary("Mod", Arithmetic, "remainder of Div: sign of a")
FloorDiv = _binary("FloorDiv", Arithmetic, "a // b, rounding toward minus infinity")
FloorMod = _binary("FloorMod", Arithmetic, "a % b, sign of b")
Min = _binary("Min", Arithmetic, "min(a, b)")
Max = _binary("Max", Arithmetic, "max(a, b)")
EQ = _binary("EQ", Comparison, "a == b")
NE = _binary("NE", Comparison, "a != b")
LT = _binary("LT", Comparison, "a < b")
LE = _binary("LE", Comparison, "a <= b")
GT = _binary("GT", Comparison, "a > b")
GE = _binary("GE", Comparison, "a >= b")
And = _binary("And", Comparison, "a and b")
Or = _binary("Or", Comparison, "a or b")


@node
class Not(Expr):
    """not a"""

    a: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.a.dtype


@node
class Select(Expr):
    """condition ? true_value : false_value, both sides evaluated."""

    condition: Expr
    true_value: Expr
    false_value: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.true_value.dtype


@node
class Cast(Expr):
    """``value`` converted to ``dtype``."""

    dtype: DType
    value: Expr


@node
class Ramp(Expr):
    """The vector base, base + stride, …, base + (lanes-1) * stride."""

    base: Expr
    stride: Expr
    lanes: int

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.base.dtype.with_lanes(self.lanes * self.base.dtype.lanes)


@node
class Broadcast(Expr):
    """``value`` in every one of ``lanes`` lanes."""

    value: Expr
    lanes: int

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.value.dtype.with_lanes(self.lanes * self.value.dtype.lanes)


@node
class Shuffle(Expr):
    """Lanes picked by ``indices`` from the concatenation of ``vectors``."""

    vectors: tuple[Expr, ...]
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.vectors[0].dtype.with_lanes(len(self.indices))


@node
class Let(Expr):
    """``body`` with ``var`` bound to ``value``."""

    var: Var
    value: Expr
    body: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.body.dtype


@node
class Call(Expr):
    """A call of the named operator ``op`` (see :mod:`tir.op`); arguments are expressions, strings as ``StringImm``.

    ``address_of`` takes a ``BufferLoad``. Operators that take a buffer region or a type get them as ``BufferRegion``
    and ``StringImm``.
    """

    op: str
    args: tuple[Any, ...]
    dtype: DType
    annotations: Any = EMPTY

    @property
    def name(self) -> str:
        """The name of the operator, as rules that are written for older TVM ask for it."""
        return self.op


@node
class BufferLoad(Expr):
    """``buffer[indices]``; a Ramp as last index makes it a vector load."""

    buffer: Any
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        base = self.buffer.dtype
        lanes = self.indices[-1].dtype.lanes if self.indices else 1
        return base if lanes == 1 else base.with_lanes(base.lanes * lanes)


@node
class CommReducer(Node):
    """A commutative reducer: ``result`` over the parameters ``lhs`` and ``rhs``, with its ``identity`` elements."""

    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[Expr, ...]
    identity: tuple[Expr, ...]


@node
class Reduce(Expr):
    """Component ``value_index`` of reducing ``source`` over ``axis`` (IterVars) where ``condition``."""

    combiner: CommReducer
    source: tuple[Expr, ...]
    init: tuple[Expr, ...]
    axis: tuple[Any, ...]
    condition: Expr
    value_index: int = 0

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.source[self.value_index].dtype
