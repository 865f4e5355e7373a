"""Named operators: each with its effect, result type and NumPy meaning, from the table in :mod:`tir.op_table`.

The code generators keep their own spelling tables keyed by these names. ``register`` adds an operator from outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .dtype import VOID, DType
from .expr import Call, Expr, IntImm, StringImm, as_expr, cast
from .names import did_you_mean
from .op_table import FLOAT_FUNCTIONS, WITH_NUMPY, WITHOUT_NUMPY, rows


@dataclass(frozen=True)
class Pointer:
    """What an operator does with the memory behind a pointer argument.

    ``mode``: "r" (read), "w" (written), "rw", or "" (neither). Which elements: ``offset`` is the position of the argument
    that moves the pointer (in elements), ``bytes`` the number of bytes accessed from there, or ``size`` the position of the
    argument that says it. A tile has the greatest of the arguments at ``rows`` and ``columns`` as its sizes, and the
    argument at ``stride`` elements from row to row. Without these, any element may be accessed. ``each_thread``: every
    thread makes the access for itself, otherwise a warp makes it together. ``asynchronous``: complete after a wait.
    ``ordered``: an engine beside the threads makes the access, and the program itself orders it, by transaction barriers
    and groups: a barrier of the block neither begins nor completes it. ``or_value``: a value may stand in its place.
    ``commutes``: the access is an update in one piece, and such updates of one element may run in any order, and at once, where
    nothing uses the value that the call gives.
    """

    mode: str = "rw"
    offset: int | None = None
    bytes: int | None = None
    size: int | None = None
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    stride: int | None = None
    each_thread: bool = False
    asynchronous: bool = False
    ordered: bool = False
    or_value: bool = False
    commutes: bool = False


ANY_ELEMENT = Pointer()


@dataclass(frozen=True)
class Op:
    """An operator.

    ``arity`` None takes any number of arguments that the ``parameters`` allow (a star: any; a question mark: may be left out). ``effect``: pure (value only), read, write, opaque (order matters).
    ``result``: "same" (dtype of the first argument), "given" (the call says), or a dtype; a pure operator on vectors
    gives it for every lane. ``numpy``: the meaning on NumPy scalars or arrays, where there is one. ``pointers`` has,
    by position, what is done to the memory behind a pointer argument (see :class:`Pointer`); where it says nothing, any
    element may be read and written. ``takes``: "integers" (and bools), "constants" (integers), "floats", "numbers" (both, no
    bools), "values" (all of these), "vectors", or "" for operands of any type; or such words by position, between commas.

    The rest is for readers: the names of the ``parameters``, a sentence on what the operator computes, and an example, as
    lines after ``>>>`` with what they show (see :mod:`tir.op_table`).
    """

    name: str
    arity: int | None
    effect: str = "pure"
    result: str = "same"
    numpy: Callable[..., Any] | None = None
    pointers: tuple[tuple[int, Pointer], ...] = ()
    takes: str = ""
    parameters: tuple[str, ...] = field(default=(), compare=False)
    about: str = field(default="", compare=False)
    example: str = field(default="", compare=False)

    def refused_count(self, count: int) -> str:
        """Why the operator does not take ``count`` arguments; "" if it does."""
        least = sum(not p.startswith("*") and not p.endswith("?") for p in self.parameters)
        open_end = not self.parameters or self.parameters[-1].startswith("*")
        most = math.inf if open_end else len(self.parameters)
        if self.arity is not None:
            least = most = self.arity
        if least <= count <= most:
            return ""
        bound = least if count < least else most
        how = "" if least == most else "at least " if count < least else "at most "
        names = f" ({', '.join(self.parameters)})" if len(self.parameters) > 2 else ""
        return f"{self.name} takes {how}{bound} argument{'s' * (bound != 1)}{names}, got {count}"

    def kinds(self, count: int) -> dict[int, str]:
        """By position, what kind of operand it takes of ``count``, where not any."""
        found = {p.offset: "integers" for _, p in self.pointers if p.offset is not None}
        found |= {at: "pointers" for at, p in self.pointers if not p.or_value}
        words = self.takes.split(",")
        found |= {at: word for at, word in enumerate(words if len(words) > 1 else words * count) if word}
        return {at: kind for at, kind in found.items() if at < count}

    def pointer(self, position: int) -> Pointer:
        """What is done to the memory behind the pointer at ``position``."""
        return dict(self.pointers).get(position, ANY_ELEMENT)

    def accesses(self, position: int) -> tuple[str, ...]:
        """What is done to the memory behind the pointer at ``position``: "read", "write", both, or nothing."""
        return tuple(kind for kind in ("read", "write") if kind[0] in self.pointer(position).mode)


OPS: dict[str, Op] = {}


def register(
    name: str,
    arity: int | None = None,
    *,
    effect: str = "opaque",
    result: str = "given",
    numpy: Any = None,
    pointers: Mapping[int, Pointer | str] | None = None,
    takes: str = "",
    parameters: Sequence[str] = (),
    about: str = "",
    example: str = "",
) -> Op:
    """Add an operator; raises ``ValueError`` when the name is taken by a different one. For the rest see :class:`Op`;
    of a pointer the mode is enough.

    >>> register("my_npu_sync", 0, effect="opaque", result="void").effect
    'opaque'
    """
    behind = tuple((at, Pointer(p) if isinstance(p, str) else p) for at, p in (pointers or {}).items())
    op = Op(name, arity, effect, result, numpy, behind, takes, tuple(parameters), about, example)
    old = OPS.get(name)
    if old is not None and old != op:
        raise ValueError(f"operator {name!r} is already registered as {old}")
    OPS[name] = op
    return op


def call(name: str, *args: Any, dtype: str | None = None) -> Call:
    """A call of operator ``name``. Raises ``ValueError`` for an unknown operator or a wrong number of arguments, and
    ``TypeError`` for operands of a type that it does not take.

    >>> call("exp", as_expr(1.0)).dtype
    'float32'
    """
    op = OPS.get(name)
    if op is None:
        raise ValueError(f"unknown operator {name!r}{did_you_mean(name, OPS)}")
    if refusal := op.refused_count(len(args)):
        raise ValueError(refusal)
    operands = tuple(_operand(a) for a in args)
    _check_types(op, operands)
    return Call(name, operands, _result_dtype(op, operands, dtype))


_FITS: dict[str, Callable[[Expr], bool]] = {
    "integers": lambda x: x.dtype.is_int or x.dtype.is_bool,
    "constants": lambda x: isinstance(x, IntImm),
    "floats": lambda x: x.dtype.is_float,
    "numbers": lambda x: x.dtype.is_int or x.dtype.is_float,
    "values": lambda x: x.dtype.is_int or x.dtype.is_float or x.dtype.is_bool,
    "vectors": lambda x: x.dtype.lanes > 1,
    "pointers": lambda x: x.dtype.is_handle,
}


def _check_types(op: Op, operands: tuple[Any, ...]) -> None:
    """Raises ``TypeError`` for an operand of a type that ``op`` does not take."""
    for position, kind in op.kinds(len(operands)).items():
        x = operands[position]
        if not _FITS[kind](x) or isinstance(x, StringImm):
            name = f" as `{op.parameters[position]}`" if op.takes != kind and op.parameters else ""
            given = "a string" if isinstance(x, StringImm) else x.dtype
            raise TypeError(f"{op.name} takes {kind}{name}, not {given}: `{x!r}`")


def _operand(value: Any) -> Any:
    from .buffer import Buffer, BufferRegion

    if isinstance(value, Buffer):
        return value.data
    if isinstance(value, BufferRegion):
        first = ", ".join(repr(r.min) for r in value.region)
        raise TypeError(
            f"`{value!r}` is no value: a call takes the address of its first element, T.address_of({value.buffer.name}[{first}])"
        )
    return as_expr(value)


def _result_dtype(op: Op, args: tuple[Any, ...], dtype: str | None) -> DType:
    if dtype is not None:
        return DType(dtype)
    if op.result == "given":
        return VOID
    if op.result == "same":
        return args[0].dtype
    result = DType(op.result)
    return result.with_lanes(args[0].dtype.lanes) if args and op.effect == "pure" else result


def math_call(name: str, *args: Any) -> Call:
    """A floating operator; integer arguments are taken as float32, and all arguments in the first one's dtype."""
    operands = [as_expr(a) for a in args]
    if not operands:
        return call(name)
    if not operands[0].dtype.is_float:
        operands[0] = cast(DType("float32").with_lanes(operands[0].dtype.lanes), operands[0])
    first = operands[0].dtype
    return call(name, *(a if a.dtype is first else cast(first, a) for a in operands))


def effect_of(e: Call) -> str:
    op = OPS.get(e.op)
    return op.effect if op is not None else "opaque"


def is_shift(e: Any) -> bool:
    return isinstance(e, Call) and e.op in ("shift_left", "shift_right")


def offsets_of(e: Call) -> list[tuple[int, int]]:
    """The positions of the pointers of ``e`` that an argument moves, each with the position of that argument."""
    op = OPS.get(e.op)
    pairs = [] if op is None else [(at, p.offset) for at, p in op.pointers]
    return [(at, offset) for at, offset in pairs if offset is not None and offset < len(e.args)]


def string_arg(value: Any) -> str:
    return value.value if isinstance(value, StringImm) else str(value)


FLOAT_UNARY = [row.name for row in rows(FLOAT_FUNCTIONS) if row.arity == 1]
FLOAT_BINARY = [row.name for row in rows(FLOAT_FUNCTIONS) if row.arity == 2]


def _numpy_meanings() -> dict[str, Callable[..., Any]]:
    import math

    import numpy as np

    def same(fn: Callable[..., Any]) -> Callable[..., Any]:
        """``fn`` computed in float64 and rounded once to the argument's type."""

        def run(*xs: Any) -> Any:
            dtype = np.asarray(xs[0]).dtype
            return np.asarray(fn(*(np.asarray(x, np.float64) for x in xs))).astype(dtype)[()]

        return run

    erf, erfc = np.vectorize(math.erf, otypes=[np.float64]), np.vectorize(math.erfc, otypes=[np.float64])
    special: dict[str, Callable[..., Any]] = {
        "exp10": lambda x: np.power(10.0, x),
        "rsqrt": lambda x: 1.0 / np.sqrt(x),
        "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
        "erf": lambda x: erf(x)[()],
        "erfc": lambda x: erfc(x)[()],
        "asin": np.arcsin,
        "acos": np.arccos,
        "atan": np.arctan,
        "asinh": np.arcsinh,
        "acosh": np.arccosh,
        "atanh": np.arctanh,
        # halves go away from zero; 0.5 itself would also take the number just below it to 1
        "round": lambda x: np.trunc(x + np.copysign(np.nextafter(0.5, 0.0), x)),
        "nearbyint": np.rint,
        # NumPy takes the square root where the exponent is 0.5, which of -infinity is nan
        "pow": lambda x, y: np.power(np.where((x == -np.inf) & (y == 0.5), np.inf, x), y),
        "atan2": np.arctan2,
    }

    def nextafter(x: Any, y: Any) -> Any:
        return np.where(x == y, y, np.nextafter(x, y))[()]  # NumPy's next after 0 to -0.0 is 0 in float16

    special["nextafter"] = nextafter
    exact = {"copysign", "nextafter", "floor", "ceil", "trunc", "sqrt", "nearbyint", "fmod"}
    table = {}
    for name in (*FLOAT_UNARY, *FLOAT_BINARY):
        fn = special.get(name) or getattr(np, name)
        table[name] = fn if name in exact else same(fn)

    def q_multiply_shift(*xs: Any) -> Any:
        x, y, q, s = (np.asarray(v, np.int64) for v in xs)
        left, right = np.maximum(s, 0), q - np.minimum(s, 0)
        return ((((x << left) * y) + (np.int64(1) << right >> 1)) >> right)[()]

    def bits_of(x: Any) -> int:
        return np.asarray(x).dtype.itemsize * 8

    def unsigned(x: Any) -> int:
        return int(x) & ((1 << bits_of(x)) - 1)

    def each(fn: Callable[[Any], int]) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            x = np.asarray(x)
            return np.array([fn(v) for v in x.ravel()]).reshape(x.shape).astype(x.dtype)[()]

        return run

    table.update(
        fabs=np.abs,
        abs=np.abs,
        isnan=np.isnan,
        isinf=np.isinf,
        isfinite=np.isfinite,
        fma=same(lambda a, b, c: a * b + c),
        ldexp=lambda x, n: np.ldexp(x, n).astype(np.asarray(x).dtype)[()],
        popcount=each(lambda x: bin(unsigned(x)).count("1")),
        clz=each(lambda x: bits_of(x) - unsigned(x).bit_length()),
        q_multiply_shift=q_multiply_shift,
        likely=lambda x: x,
        bitwise_and=np.bitwise_and,
        bitwise_or=np.bitwise_or,
        bitwise_xor=np.bitwise_xor,
        bitwise_not=np.invert,
        shift_left=np.left_shift,
        shift_right=np.right_shift,
    )
    return table


class _LazyNumpy:
    """NumPy's meaning of an operator, looked up when first used: the IR does not import NumPy."""

    _table: dict[str, Callable[..., Any]] | None = None

    def __init__(self, name: str):
        self.name = name

    def __call__(self, *args: Any) -> Any:
        if _LazyNumpy._table is None:
            _LazyNumpy._table = _numpy_meanings()
        return _LazyNumpy._table[self.name](*args)


# what operators do with the pointers that they are given, by position
_TILE = (1, 2, 3)  # the sizes m, n, k of wmma operators
_READ, _WRITTEN = Pointer("r", ordered=True), Pointer("w", ordered=True)
_POINTERS: dict[str, dict[int, Pointer | str]] = {
    "prefetch": {0: ""},
    "ptx_cp_async": {
        0: Pointer("w", offset=1, size=4, each_thread=True, asynchronous=True),
        2: Pointer("r", offset=3, size=4, each_thread=True),
    },
    "ptx_cp_async_bulk": {0: replace(_WRITTEN, offset=1, size=4), 2: replace(_READ, offset=3, size=4)},
    **dict.fromkeys(
        ("ptx_cp_async_bulk_tensor", "ptx_cp_async_bulk_tensor_multicast"), {0: replace(_WRITTEN, offset=1), 2: _READ}
    ),
    "ptx_cp_async_bulk_tensor_store": {0: _WRITTEN, 1: replace(_READ, offset=2)},
    "ptx_wgmma": {4: Pointer("rw", offset=5, ordered=True), 6: replace(_READ, offset=7), 12: replace(_READ, offset=13)},
    "atomic_add": {0: Pointer("rw", bytes=1, each_thread=True, commutes=True)},  # within one element, whatever its type
    "ptx_ldmatrix": {3: Pointer("w", offset=4), 5: Pointer("r", offset=6, bytes=16)},
    "ptx_mma": {6: Pointer("r", offset=7), 8: Pointer("r", offset=9), 10: Pointer("rw", offset=11)},
    "mma_store": {2: Pointer("w", rows=(0,), columns=(1,), stride=5), 3: Pointer("r", offset=4)},
    "tvm_load_matrix_sync": {0: "w", 5: Pointer("r", rows=_TILE, columns=_TILE, stride=6)},
    "tvm_store_matrix_sync": {0: "r", 5: Pointer("w", rows=_TILE, columns=_TILE, stride=6)},
    "tvm_mma_sync": {0: "rw", 2: "r", 4: "r", 6: "r"},
    "tvm_fill_fragment": {0: "w"},
    "mma_fill": {1: Pointer("w", offset=2)},
    "ptx_ldg32": {
        0: Pointer("w", offset=3, bytes=4, each_thread=True),
        2: Pointer("r", bytes=4, each_thread=True, or_value=True),
    },
}


# what all 32 threads of a warp execute together
OF_WARPS = frozenset([
    "mma_store", "ptx_ldmatrix", "ptx_mma", "tvm_fill_fragment", "tvm_load_matrix_sync", "tvm_mma_sync", "tvm_store_matrix_sync",
])  # fmt: skip


def _fill(table: str, meaning: Callable[[str], Callable[..., Any] | None]) -> None:
    for row in rows(table):
        register(
            row.name,
            row.arity,
            effect=row.effect,
            result=row.result,
            numpy=meaning(row.name),
            pointers=_POINTERS.get(row.name),
            takes=row.takes,
            parameters=row.parameters,
            about=row.about,
            example=row.example,
        )


_fill(FLOAT_FUNCTIONS, _LazyNumpy)
_fill(WITH_NUMPY, _LazyNumpy)
_fill(WITHOUT_NUMPY, lambda name: None)
