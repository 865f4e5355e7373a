"""Expression nodes. What builds them, Python's operators among it, is in ``expr.py``."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from .dtype import BOOL, HANDLE, INT32, DType  # noqa: F401 (BOOL: a computed field)
from .node import EMPTY, Node, node

if TYPE_CHECKING:
    from .buffer import Buffer


class Expr(Node):
    """Base of expressions. Every expression has a ``dtype``.

    >>> from tir import Var
    >>> i = Var("i")
    >>> (i * 4 + 1).dtype, i * 4 + 1
    ('int32', i * 4 + 1)
    """

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

    >>> from tir import Var
    >>> Var("n", "int64"), Var("n").dtype, Var("A", "handle", "float32", "global").pointer_dtype
    (n, 'int32', 'float32')
    """

    name: str
    dtype: DType = INT32
    pointer_dtype: DType | None = None
    scope: str = ""

    if TYPE_CHECKING:  # a name of a type will do

        def __init__(
            self, name: str, dtype: str = ..., pointer_dtype: DType | None = ..., scope: str = ..., span: Any = ...
        ) -> None: ...

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (shared_var, (self.name,)) if is_shared(self) else Expr.__reduce_ex__(self, protocol)


_SHARED: dict[str, Var] = {}


def shared_var(name: str) -> Var:
    """The int32 variable that there is one of for each name, also where it is unpickled: programs of several files have the same.

    >>> import pickle
    >>> n = shared_var("n")
    >>> n is shared_var("n"), n is pickle.loads(pickle.dumps(n))
    (True, True)
    """
    return _SHARED.setdefault(name, Var(name))


def is_shared(var: Var) -> bool:
    """Whether :func:`shared_var` made it."""
    return _SHARED.get(var.name) is var


_TYPE_FIRST = {"isinstance(value, str) and not isinstance(dtype, str)": "value, dtype = _cls._literal(value, dtype)"}


class _Literal(Expr):
    @classmethod
    def _literal(cls, dtype: str, value: Any) -> tuple[Any, DType]:
        """The value and the type of a constant that is written with the type first, as in TVM."""
        from .expr import const

        if isinstance(value, Expr):
            raise TypeError(f"{cls.__name__} is a number, not {value!r}")
        made = const(value, dtype)
        if type(made) is not cls:
            raise TypeError(f"{cls.__name__} is no constant of {dtype}; tir.const(value, dtype) makes one of any type")
        return made.value, made.dtype


@node
class IntImm(_Literal):
    """An integer or bool constant; the type may stand first, as in TVM.

    >>> from tir import IntImm
    >>> IntImm(3), IntImm(3, "int64"), IntImm("int64", 3), IntImm(1, "bool")
    (3, T.int64(3), T.int64(3), True)
    """

    upstream_order = _TYPE_FIRST
    value: int
    dtype: DType = INT32

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value


@node
class FloatImm(_Literal):
    """A floating constant; value may be inf, nan or -0.0. The type may stand first, as in TVM.

    >>> from tir import FloatImm
    >>> FloatImm(0.5, "float32"), FloatImm(float("inf"), "float64")
    (T.float32(0.5), T.float64("inf"))
    """

    upstream_order = _TYPE_FIRST
    value: float
    dtype: DType

    def __float__(self) -> float:
        return self.value


@node
class StringImm(Expr):
    """A string constant, an argument of calls.

    >>> from tir import StringImm
    >>> StringImm("my_function").value
    'my_function'
    """

    value: str
    dtype: DType = HANDLE


class BinaryOp(Expr):
    """Base of nodes of two operands, ``a`` and ``b``. A number of Python takes the type of the other.

    Raises ``TypeError`` for two numbers, and for what is neither an expression nor a number.

    >>> from tir import Add, BinaryOp, Var
    >>> node = Add(Var("i"), Var("j"))
    >>> isinstance(node, BinaryOp), node.a, node.b
    (True, i, j)
    >>> Add(1, Var("x", "float32")).a.dtype
    'float32'
    """

    __slots__ = ()
    from_numbers = {"a, b": "with_number(a, b, _cls)"}
    a: Expr
    b: Expr


class Arithmetic(BinaryOp):
    """Base of two-operand nodes whose dtype is that of their operands.

    >>> from tir import Arithmetic, Max, Var
    >>> isinstance(Max(Var("x", "float16"), Var("y", "float16")), Arithmetic)
    True
    """

    __slots__ = ()
    computed = {"dtype": "a.dtype"}


class Comparison(BinaryOp):
    """Base of two-operand nodes that are a bool (a bool in each lane, for vectors).

    >>> from tir import LT, Comparison, Var
    >>> node = LT(Var("x", "float16"), Var("y", "float16"))
    >>> isinstance(node, Comparison), node.dtype
    (True, 'bool')
    """

    __slots__ = ()
    computed = {"dtype": "BOOL if a.dtype.lanes == 1 else BOOL.with_lanes(a.dtype.lanes)"}


def _binary(name: str, base: type, what: str, shown: str, dtype: str = "int32", **more: Any) -> Any:
    """One binary node class; all have the same shape. ``shown`` is the text of it with operands i and j of ``dtype``;
    ``more`` are other attributes of the class."""
    doc = f"""{what}.

    >>> from tir import Var, {name}
    >>> {name}(Var("i", "{dtype}"), Var("j", "{dtype}"))
    {shown}
    """

    namespace = {
        "__module__": __name__,
        "__qualname__": name,
        "__doc__": doc,
        "__annotations__": {"a": Expr, "b": Expr, "dtype": DType},
        "dtype": field(init=False),
        **more,
    }
    return node(type(name, (base,), namespace))


_CONDITIONS = {"a": "as_bool(a)", "b": "as_bool(b)"}
Add = _binary("Add", Arithmetic, "The sum ``a + b``; its dtype is that of both operands", "i + j")
Sub = _binary("Sub", Arithmetic, "The difference ``a - b``; its dtype is that of both operands", "i - j")
Mul = _binary("Mul", Arithmetic, "The product ``a * b``; its dtype is that of both operands", "i * j")
Div = _binary(
    "Div", Arithmetic, "The quotient ``a / b`` of floats; of integers rounded toward zero, as in C", "T.truncdiv(i, j)"
)
Mod = _binary("Mod", Arithmetic, "The remainder of ``Div``, with the sign of ``a``, as ``%`` in C", "T.truncmod(i, j)")
FloorDiv = _binary(
    "FloorDiv", Arithmetic, "The quotient ``a // b``, rounded toward minus infinity, as in Python", "i // j"
)
FloorMod = _binary(
    "FloorMod", Arithmetic, "The remainder ``a % b`` of ``FloorDiv``, with the sign of ``b``, as in Python", "i % j"
)
Min = _binary("Min", Arithmetic, "The smaller of ``a`` and ``b``", "T.min(i, j)")
Max = _binary("Max", Arithmetic, "The larger of ``a`` and ``b``", "T.max(i, j)")


def _by_identity(holds: bool) -> Any:
    """``bool`` of a comparison: ``holds`` where both sides are one expression of integers; else it is not known."""

    def known(self: Any) -> bool:
        return holds if self.a is self.b and not self.a.dtype.is_float else Expr.__bool__(self)

    return known


EQ = _binary("EQ", Comparison, "Whether ``a == b``, a bool", "i == j", __bool__=_by_identity(True))
NE = _binary("NE", Comparison, "Whether ``a != b``, a bool", "i != j", __bool__=_by_identity(False))
LT = _binary("LT", Comparison, "Whether ``a < b``, a bool", "i < j")
LE = _binary("LE", Comparison, "Whether ``a <= b``, a bool", "i <= j")
GT = _binary("GT", Comparison, "Whether ``a > b``, a bool", "i > j")
GE = _binary("GE", Comparison, "Whether ``a >= b``, a bool", "i >= j")
And = _binary(
    "And",
    Comparison,
    "Whether both bools hold; the second is not evaluated where the first does not",
    "i and j",
    "bool",
    from_numbers=_CONDITIONS,
)
Or = _binary(
    "Or",
    Comparison,
    "Whether one of two bools holds; the second is not evaluated where the first does",
    "i or j",
    "bool",
    from_numbers=_CONDITIONS,
)


@node
class Not(Expr):
    """Whether a bool does not hold.

    >>> from tir import Not, Var
    >>> Not(Var("c", "bool"))
    not c
    """

    from_numbers = {"a": "as_bool(a)"}
    a: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.a.dtype


@node
class Select(Expr):
    """The one or the other value, as ``condition`` says; both are evaluated (``T.if_then_else`` evaluates one).

    A number of Python takes the type of the other value. Raises ``TypeError`` for values of types that do not mix.

    >>> from tir import Select, Var
    >>> Select(Var("i") < 4, Var("x", "float32"), Var("y", "float32"))
    T.Select(i < 4, x, y)
    >>> Select(Var("i") < 4, Var("x", "float16"), 0).false_value.dtype
    'float16'
    """

    from_numbers = {
        "condition": "as_bool(condition)",
        "true_value, false_value": "matched(true_value, false_value, _cls)",
    }
    condition: Expr
    true_value: Expr
    false_value: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.true_value.dtype


@node
class Cast(Expr):
    """``value`` converted to ``dtype``.

    >>> from tir import Cast, Var
    >>> Cast("float32", Var("i"))
    T.Cast("float32", i)
    """

    dtype: DType
    value: Expr


def _vector_type(kind: type, of: DType, lanes: int) -> DType:
    """The type of a vector of ``lanes`` values of a type. Raises ``ValueError`` for none, with the class that wants it."""
    if lanes < 1:
        raise ValueError(f"a {kind.__name__} has at least one lane, not {lanes}")
    return of.with_lanes(lanes * of.lanes)


@node
class Ramp(Expr):
    """The vector of ``lanes`` integers ``base``, ``base + stride``, … ``base + (lanes - 1) * stride``.

    >>> from tir import IntImm, Ramp, Var
    >>> ramp = Ramp(Var("i"), IntImm(2), 4)
    >>> ramp, ramp.dtype
    (T.Ramp(i, 2, 4), 'int32x4')
    """

    from_numbers = {"base, stride": "matched(base, stride, 'Ramp')"}
    computed = {"dtype": "_vector_type(_cls, base.dtype, lanes)"}
    base: Expr
    stride: Expr
    lanes: int
    dtype: DType = field(init=False)


@node
class Broadcast(Expr):
    """``value`` in every one of ``lanes`` lanes.

    >>> from tir import Broadcast, FloatImm
    >>> vector = Broadcast(FloatImm(1.0, "float32"), 4)
    >>> vector, vector.dtype
    (T.Broadcast(T.float32(1), 4), 'float32x4')
    """

    computed = {"dtype": "_vector_type(_cls, value.dtype, lanes)"}
    value: Expr
    lanes: int
    dtype: DType = field(init=False)


@node
class Shuffle(Expr):
    """Lanes picked by ``indices`` from the concatenation of ``vectors``.

    >>> from tir import Broadcast, IntImm, Ramp, Shuffle
    >>> Shuffle((Ramp(IntImm(0), IntImm(1), 4),), (IntImm(3), IntImm(0)))
    T.Shuffle([T.Ramp(0, 1, 4)], [3, 0])
    """

    vectors: tuple[Expr, ...]
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.vectors[0].dtype.with_lanes(len(self.indices))


@node
class Let(Expr):
    """``body`` with ``var`` bound to ``value``.

    >>> from tir import IntImm, Let, Var
    >>> x = Var("x")
    >>> Let(x, IntImm(3), x * x)
    T.Let(x * x, where={x: 3})
    """

    from_numbers = {"value": "as_expr(value, var.dtype)"}
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
    and ``StringImm``. The type may stand first, as in TVM: ``Call("float32", "tir.exp", (x,))``.

    >>> from tir import Call, Var
    >>> Call("exp", (Var("x", "float32"),), "float32")
    T.exp(x)
    """

    upstream_order = {"isinstance(args, str)": "op, args, dtype = args.removeprefix('tir.'), tuple(dtype), op"}
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
    """``buffer[indices]``; a Ramp as last index makes it a vector load.

    >>> from tir import BufferLoad, Var, decl_buffer
    >>> A = decl_buffer((4, 8), "float32", "A")
    >>> load = BufferLoad(A, (Var("i"), Var("j")))
    >>> load, load.dtype
    (A[i, j], 'float32')
    """

    computed = {"dtype": "_vector_type(_cls, buffer.dtype, indices[-1].dtype.lanes if indices else 1)"}
    buffer: Buffer
    indices: tuple[Expr, ...]
    dtype: DType = field(init=False)


@node
class CommReducer(Node):
    """A commutative reducer: ``result`` over the parameters ``lhs`` and ``rhs``, with its ``identity`` elements.

    >>> from tir import CommReducer, FloatImm, Var
    >>> x, y = Var("x", "float32"), Var("y", "float32")
    >>> CommReducer((x,), (y,), (x + y,), (FloatImm(0.0, "float32"),))
    T.comm_reducer(lambda x, y: x + y, [T.float32(0)])
    """

    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[Expr, ...]
    identity: tuple[Expr, ...]


@node
class Reduce(Expr):
    """Component ``value_index`` of reducing ``source`` over ``axis`` (IterVars) where ``condition``.

    >>> from tir import te
    >>> A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), "k")
    >>> node = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), "B").op.body[0]
    >>> type(node).__name__, node.source, [axis.var for axis in node.axis], node.value_index
    ('Reduce', (A[i, k],), [k], 0)
    """

    combiner: CommReducer
    source: tuple[Expr, ...]
    init: tuple[Expr, ...]
    axis: tuple[Any, ...]
    condition: Expr
    value_index: int = 0

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.source[self.value_index].dtype
