"""Named operators: one table, each with its effect, result type and NumPy meaning.

The code generators keep their own spelling tables keyed by these names. ``register`` adds an operator from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .dtype import VOID, DType
from .expr import Call, Expr, StringImm, as_expr, cast
from .names import did_you_mean
from .node import Memo
from .visit import LEAVES


@dataclass(frozen=True)
class Pointer:
    """What an operator does with the memory behind a pointer argument.

    ``mode``: "r" (read), "w" (written), "rw", or "" (neither). Which elements: ``offset`` is the position of the argument
    that moves the pointer (in elements), ``bytes`` the number of bytes accessed from there, or ``size`` the position of the
    argument that says it. A tile has the greatest of the arguments at ``rows`` and ``columns`` as its sizes, and the
    argument at ``stride`` elements from row to row. Without these, any element may be accessed. ``each_thread``: every
    thread makes the access for itself, otherwise a warp makes it together. ``asynchronous``: complete after a wait.
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


ANY_ELEMENT = Pointer()


@dataclass(frozen=True)
class Op:
    """An operator.

    ``arity`` None takes any number of arguments. ``effect``: pure (value only), read, write, opaque (order matters).
    ``result``: "same" (dtype of the first argument), "given" (the call says), or a dtype; a pure operator on vectors
    gives it for every lane. ``numpy``: the meaning on NumPy scalars or arrays, where there is one. ``pointers`` has,
    by position, what is done to the memory behind a pointer argument (see :class:`Pointer`); where it says nothing, any
    element may be read and written. ``takes``: "integers" (and bools), "floats", "numbers" (both, no bools), or
    "" for operands of any type.
    """

    name: str
    arity: int | None
    effect: str = "pure"
    result: str = "same"
    numpy: Callable[..., Any] | None = None
    pointers: tuple[tuple[int, Pointer], ...] = ()
    takes: str = ""

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
) -> Op:
    """Add an operator; raises ``ValueError`` when the name is taken by a different one. For the rest see :class:`Op`;
    of a pointer the mode is enough.

    >>> register("my_npu_sync", 0, effect="opaque", result="void").effect
    'opaque'
    """
    behind = tuple((at, Pointer(p) if isinstance(p, str) else p) for at, p in (pointers or {}).items())
    op = Op(name, arity, effect, result, numpy, behind, takes)
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
    if op.arity is not None and len(args) != op.arity:
        raise ValueError(f"{name} takes {op.arity} argument{'s' * (op.arity != 1)}, got {len(args)}")
    operands = tuple(_operand(a) for a in args)
    _check_types(op, operands)
    return Call(name, operands, _result_dtype(op, operands, dtype))


def _check_types(op: Op, operands: tuple[Any, ...]) -> None:
    """Raises ``TypeError`` for an operand of a type that ``op`` does not take."""
    for x in operands if op.takes else ():
        given = x.dtype
        number = given.is_int or given.is_float
        fits = {"integers": given.is_int or given.is_bool, "floats": given.is_float, "numbers": number}
        if not fits[op.takes]:
            raise TypeError(f"{op.name} takes {op.takes}, not {given}: `{x!r}`")


def _operand(value: Any) -> Any:
    from .buffer import Buffer, BufferRegion

    if isinstance(value, Buffer):
        return value.data
    return value if isinstance(value, BufferRegion) else as_expr(value)


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


def is_pure(e: Expr) -> bool:
    """Whether evaluating ``e`` has no effect beyond its value (loads count as pure)."""
    if type(e) in LEAVES:
        return True
    found = _PURE.get(e)
    if found is None:
        found = _PURE[e] = _has_no_effects(e)
    return found


_PURE: Memo[bool] = Memo()


def _has_no_effects(e: Expr) -> bool:
    stack: list[Any] = [e]
    while stack:
        item = stack.pop()
        if type(item) is Call and effect_of(item) not in ("pure", "read"):
            return False
        for child in item.children():
            known = True if type(child) in LEAVES else _PURE.get(child)
            if known is None:
                stack.append(child)
            elif not known:
                return False
    return True


def effect_of(e: Call) -> str:
    op = OPS.get(e.op)
    return op.effect if op is not None else "opaque"


def offsets_of(e: Call) -> list[tuple[int, int]]:
    """The positions of the pointers of ``e`` that an argument moves, each with the position of that argument."""
    op = OPS.get(e.op)
    pairs = [] if op is None else [(at, p.offset) for at, p in op.pointers]
    return [(at, offset) for at, offset in pairs if offset is not None and offset < len(e.args)]


def string_arg(value: Any) -> str:
    return value.value if isinstance(value, StringImm) else str(value)


FLOAT_UNARY = [
    "exp",
    "exp2",
    "exp10",
    "log",
    "log2",
    "log10",
    "log1p",
    "expm1",
    "sqrt",
    "rsqrt",
    "sigmoid",
    "erf",
    "erfc",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "floor",
    "ceil",
    "trunc",
    "round",
    "nearbyint",
]
FLOAT_BINARY = ["pow", "atan2", "fmod", "hypot", "copysign", "nextafter"]


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
    exact = {"copysign", "nextafter", "floor", "ceil", "trunc", "sqrt", "nearbyint", "fmod"}
    table = {}
    for name in (*FLOAT_UNARY, *FLOAT_BINARY):
        fn = special.get(name) or getattr(np, name)
        table[name] = fn if name in exact else same(fn)

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


def _fill() -> None:
    for name in FLOAT_UNARY:
        register(name, 1, effect="pure", result="same", numpy=_LazyNumpy(name), takes="floats")
    for name in FLOAT_BINARY:
        register(name, 2, effect="pure", result="same", numpy=_LazyNumpy(name), takes="floats")
    for name, arity, result, takes in (
        ("fabs", 1, "same", "floats"),
        ("abs", 1, "same", "numbers"),
        ("fma", 3, "same", "floats"),
        ("isnan", 1, "bool", ""),
        ("isinf", 1, "bool", ""),
        ("isfinite", 1, "bool", ""),
        ("likely", 1, "same", ""),
        ("ldexp", 2, "same", ""),
        ("popcount", 1, "same", "integers"),
        ("clz", 1, "int32", "integers"),
        ("bitwise_and", 2, "same", "integers"),
        ("bitwise_or", 2, "same", "integers"),
        ("bitwise_xor", 2, "same", "integers"),
        ("bitwise_not", 1, "same", "integers"),
        ("shift_left", 2, "same", "integers"),
        ("shift_right", 2, "same", "integers"),
    ):
        register(name, arity, effect="pure", result=result, numpy=_LazyNumpy(name), takes=takes)
    for text in _GIVEN.strip().splitlines():
        effect, _, names = text.partition(":")
        for entry in names.split():
            name, _, result = entry.partition("=")
            name, _, arity = name.partition("/")
            pointers = _POINTERS.get(name)
            register(name, int(arity) if arity else None, effect=effect, result=result or "given", pointers=pointers)


# what operators do with the pointers that they are given, by position
_TILE = (1, 2, 3)  # the sizes m, n, k of wmma operators
_POINTERS: dict[str, dict[int, Pointer | str]] = {
    "prefetch": {0: ""},
    "ptx_cp_async": {
        0: Pointer("w", offset=1, size=4, each_thread=True, asynchronous=True),
        2: Pointer("r", offset=3, size=4, each_thread=True),
    },
    "ptx_cp_async_bulk": {0: "w", 2: "r"},
    "ptx_ldmatrix": {3: Pointer("w", offset=4), 5: Pointer("r", offset=6, bytes=16)},
    "ptx_mma": {6: Pointer("r", offset=7), 8: Pointer("r", offset=9), 10: Pointer("rw", offset=11)},
    "mma_store": {2: Pointer("w", rows=(0,), columns=(1,), stride=5), 3: Pointer("r", offset=4)},
    "tvm_load_matrix_sync": {0: "w", 5: Pointer("r", rows=_TILE, columns=_TILE, stride=6)},
    "tvm_store_matrix_sync": {0: "r", 5: Pointer("w", rows=_TILE, columns=_TILE, stride=6)},
    "tvm_mma_sync": {0: "rw", 2: "r", 4: "r", 6: "r"},
    "tvm_fill_fragment": {0: "w"},
    "mma_fill": {1: Pointer("w", offset=2)},
}

# name/arity=result; without an arity any number of arguments, without a result the call names its type.
_GIVEN = """
pure: if_then_else/3 reinterpret/1 large_uint_imm/2 q_multiply_shift/4=same
pure: q_multiply_shift_per_axis/7=same shift_right_rounding=same
pure: call_pure_extern call_llvm_pure_intrin call_spirv_pure_glsl450 vectorlow/1 vectorhigh/1 vectorcombine/2
pure: undef/0 isnullptr/1 type_annotation/0 dp4a/3 get_active_lane_mask
read: address_of/1 tvm_access_ptr tvm_struct_get
pure: tvm_thread_invariant/1 tvm_warp_activemask/0 tvm_warp_shuffle tvm_warp_shuffle_up tvm_warp_shuffle_down tvm_warp_shuffle_xor tvm_tuple
opaque: call_extern call_packed call_cpacked call_llvm_intrin call_global tvm_call_packed tvm_call_cpacked
opaque: tvm_call_packed_lowered tvm_call_cpacked_lowered tvm_call_trace_packed tvm_check_return tvm_struct_set
opaque: tvm_stack_alloca=handle tvm_stack_make_shape=handle tvm_stack_make_array=handle tvm_context_id tvm_throw_last_error ret
opaque: thread_return continue_loop break_loop assume/1 prefetch tvm_storage_sync tvm_global_barrier_kinit
opaque: tvm_thread_allreduce tvm_load_matrix_sync tvm_mma_sync tvm_bmma_sync tvm_fill_fragment tvm_store_matrix_sync
opaque: amx_tile_zero/2 amx_tile_load/4 amx_tile_stream/4 amx_tile_store/4 amx_tile_dot/7
opaque: ptx_mma ptx_mma_sp ptx_ldmatrix ptx_cp_async ptx_cp_async_bulk ptx_commit_group ptx_wait_group
opaque: ptx_cp_async_barrier ptx_init_barrier_thread_count ptx_arrive_barrier ptx_arrive_barrier_expect_tx
opaque: ptx_wait_barrier create_barriers mma_store mma_fill mma_store_legacy mma_fill_legacy ptx_ldg32
opaque: simdgroup_load simdgroup_store simdgroup_multiply_accumulate make_filled_simdgroup_matrix
opaque: texture2d_load texture2d_store dma_copy dma_wait dma_start_group dma_end_group nd_mem_alloc_with_scope
opaque: start_profile_intrinsic end_profile_intrinsic anylist_getitem anylist_resetitem anylist_setitem_call_packed
opaque: anylist_setitem_call_cpacked vectorload vectorstore atomic_add lookup_param print
"""

_fill()
