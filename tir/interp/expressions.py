"""Expressions to Python source: each method returns text whose value is the expression's held form (see numbers).

Integer +, - and * are emitted without wrapping if their exact result provably fits, or is used only by more of them;
any other use wraps it to the dtype's range. Bounds of variables make most wrapping, and most bounds checks, unnecessary.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import expr as E
from ..arith.linear import is_data, is_index
from ..buffer import Buffer
from ..dtype import DType
from ..errors import RunError
from ..op import OPS, string_arg
from ..visit import walk
from . import lanes, memory, numbers, tiles
from .nesting import is_deep
from .numbers import is_small_float, storage_dtype, value_dtype

Bounds = tuple[int, int]
_DEFINED = re.compile(r"\((\w+) := ")
RING = {E.Add: "+", E.Sub: "-", E.Mul: "*"}
COMPARE = {E.EQ: "==", E.NE: "!=", E.LT: "<", E.LE: "<=", E.GT: ">", E.GE: ">="}
_BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}


class Expressions(ABC):
    """The expression half of the compiler; the statement half maintains the scopes."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        self.names: dict[E.Var, str] = {}
        self.bounds: dict[E.Var, Bounds] = {}
        self.data: set[E.Var] = set()  # variables that stand for what was computed from data
        self.counter = 0
        self.check = True
        self.masks: list[
            str
        ] = []  # names of the active lanes of the enclosing vector conditions, each a subset of the one before
        self.mask_depth: dict[E.Var, int] = {}  # how many masks there were where a vector variable was defined

    @abstractmethod
    def emit(self, line: str) -> None:
        """Add a line of source before the statement that is compiled."""

    @abstractmethod
    def load(self, e: E.BufferLoad) -> str:
        """Source of the element that ``e`` reads, with its checks."""

    @abstractmethod
    def site(self, what: str, buffer: Buffer | None) -> tuple[str, str]:
        """Source names of the place that a failed check reports, and of the values of the variables there."""

    @abstractmethod
    def pointer(self, e: Any) -> str:
        """Source of the memory behind a pointer, from the element that it points to."""

    @abstractmethod
    def call_function(self, e: E.Call) -> str:
        """Source of a call of another function of the module."""

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def const(self, value: Any, prefix: str = "k") -> str:
        """A name for a Python object in the compiled program's globals."""
        name = self.fresh(f"_{prefix}")
        self.constants[name] = value
        return name

    def helper(self, fn: Callable[..., Any]) -> str:
        name = f"_h_{fn.__name__}"
        self.constants[name] = fn
        return name

    # ------------------------------------------------------------------ entry

    def expr(self, e: Any) -> str:
        """Source of ``e`` in its held form, integers within their range."""
        if self.masks and e.dtype.lanes > 1:
            return self.active_lanes(e)
        return self.value(e)[0] if e.dtype.is_int and e.dtype.lanes == 1 else self.other(e)

    def active_lanes(self, e: Any) -> str:
        """Source of a vector under a vector condition, with only the active lanes. Arithmetic is elementwise, so it is
        enough to restrict the leaves to the active lanes."""
        if not _is_leaf(e):
            return self.other(e)
        inner, self.masks = self.masks, []
        text = self.other(e)
        self.masks = inner
        return text + "".join(f"[{m}]" for m in inner[self.mask_depth.get(e, 0) :])

    def lanes_of(self, condition: Any, case: Any) -> tuple[str, str]:
        """(name of the active lanes, source of ``case`` in them)."""
        name = self.fresh("m")
        self.masks.append(name)
        text = self.expr(case)
        self.masks.pop()
        return name, text

    def value(self, e: Any) -> tuple[str, Bounds]:
        """Source of a scalar integer within its dtype's range, and bounds of it."""
        text, (low, high) = self.integer(e)
        dtype = e.dtype
        least, most = int(dtype.min_value), int(dtype.max_value)
        if least <= low and high <= most:
            return text, (low, high)
        checked = self.check and type(e) in RING and is_index(dtype) and not is_data(e, self.data)
        if not checked or not any(isinstance(n, E.Var) for n in walk(e)):  # constants wrap as data does
            return self.wrapped(text, dtype), (least, most)
        held, (site, values) = self.fresh("x"), self.site("arithmetic", None)
        fail = f"{self.helper(memory.overflow)}({site}, {held}, {repr(e)!r}, {self.const(dtype)}, {values})"
        return f"({held} if {least} <= ({held} := {text}) <= {most} else {fail})", (least, most)

    def index(self, e: Any) -> tuple[str, Bounds]:
        """Source of a scalar integer that is checked against bounds of its own: its last sums and products do not wrap, whatever their order."""
        if type(e) not in RING or not is_index(e.dtype):
            return self.value(e)
        a, b = (self.index(part) if is_data(part, self.data) else self.value(part) for part in (e.a, e.b))
        return self._exact(type(e), a, b)

    def _exact(self, kind: Any, left: tuple[str, Bounds], right: tuple[str, Bounds]) -> tuple[str, Bounds]:
        """Source of the exact sum, difference or product, and its bounds."""
        (a, ra), (b, rb) = left, right
        if kind is E.Add:
            r = (ra[0] + rb[0], ra[1] + rb[1])
        elif kind is E.Sub:
            r = (ra[0] - rb[1], ra[1] - rb[0])
        else:
            products = [x * y for x in ra for y in rb]
            r = (min(products), max(products))
        return self.shallow(f"({a} {RING[kind]} {b})"), r

    def wrapped(self, text: str, dtype: DType) -> str:
        mask = (1 << dtype.bits) - 1
        if dtype.code == "uint":
            return f"({text} & {mask})"
        half = 1 << (dtype.bits - 1)
        return f"((({text} + {half}) & {mask}) - {half})"

    # ------------------------------------------------------------------ integers

    def integer(self, e: Any) -> tuple[str, Bounds]:
        """Source of a scalar integer, perhaps outside its dtype's range, and bounds of what it yields."""
        text, bounds = self._integer(e)
        return self.shallow(text), bounds

    def _integer(self, e: Any) -> tuple[str, Bounds]:
        dtype = e.dtype
        full = (int(dtype.min_value), int(dtype.max_value))
        kind = type(e)
        if kind is E.IntImm:
            value = numbers.wrap(e.value, dtype)
            return (str(value) if value >= 0 else f"({value})"), (value, value)
        if kind is E.Var:
            return self.name_of(e), self.bounds.get(e, full)
        if kind in RING:
            (a, ra), (b, rb) = self.integer(e.a), self.integer(e.b)
            if max(map(abs, (*ra, *rb))) > 1 << 160:  # bound the size of exact intermediates
                a, ra, b, rb = self.expr(e.a), full, self.expr(e.b), full
            return self._exact(kind, (a, ra), (b, rb))
        if kind in (E.FloorDiv, E.FloorMod, E.Div, E.Mod):
            return self.division(e)
        if kind in (E.Min, E.Max):
            (a, ra), (b, rb) = self.value(e.a), self.value(e.b)
            pick = min if kind is E.Min else max
            return f"{pick.__name__}({a}, {b})", (pick(ra[0], rb[0]), pick(ra[1], rb[1]))
        if kind is E.Cast and e.value.dtype.is_int:
            return self.value(e.value)
        if kind is E.Cast and e.value.dtype.is_bool:
            return f"int({self.expr(e.value)})", (0, 1)
        if kind is E.Select or (kind is E.Call and e.op == "if_then_else"):
            parts = (e.condition, e.true_value, e.false_value) if kind is E.Select else e.args
            (a, ra), (b, rb) = self.value(parts[1]), self.value(parts[2])
            pick = self.choice(parts[0], a, b, kind is E.Select and not _harmless(e))
            return pick, (min(ra[0], rb[0]), max(ra[1], rb[1]))
        if kind is E.Call and e.op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
            (a, ra), (b, rb) = self.value(e.args[0]), self.value(e.args[1])
            if e.op == "bitwise_and" and (ra[0] >= 0 or rb[0] >= 0):
                full = (0, min(r[1] for r in (ra, rb) if r[0] >= 0))
            return f"({a} {_BITWISE[e.op]} {b})", full
        if kind is E.Call and e.op in ("shift_left", "shift_right"):
            return self.shift(e)
        return self.other(e), full

    def division(self, e: Any) -> tuple[str, Bounds]:
        (a, ra), (b, rb) = self.value(e.a), self.value(e.b)
        floor = isinstance(e, (E.FloorDiv, E.FloorMod))
        quotient = isinstance(e, (E.FloorDiv, E.Div))
        size = max(abs(ra[0]), abs(ra[1]))
        if quotient:
            r = (ra[0] // rb[1], ra[1] // rb[0]) if rb[0] > 0 and ra[0] >= 0 else (-size, size)
            if floor and rb[0] == rb[1] > 0:
                r = (ra[0] // rb[0], ra[1] // rb[0])
        elif floor and rb[0] > 0:
            r = (0, min(rb[1] - 1, ra[1]) if ra[0] >= 0 else rb[1] - 1)
        elif ra[0] >= 0 and rb[0] > 0:
            r = (0, min(ra[1], rb[1] - 1))
        else:
            bound = max(abs(rb[0]), abs(rb[1]))
            r = (-bound, bound)
        how = ("//" if quotient else "%") if floor else ("truncdiv" if quotient else "truncmod")
        if rb[0] <= 0 <= rb[1]:
            site, values = self.site("division", None)
            return f"{self.helper(lanes.divide_checked)}({a}, {b}, {how!r}, {site}, {values})", r
        if floor or (ra[0] >= 0 and rb[0] > 0):
            return f"({a} {'//' if quotient else '%'} {b})", r
        return f"{self.helper(E.trunc_div if quotient else lanes.truncmod)}({a}, {b})", r

    # ------------------------------------------------------------------ everything else

    def other(self, e: Any) -> str:
        method = _TABLE.get(type(e))
        if method is None:
            raise RunError(f"the executor cannot evaluate a {type(e).__name__} here: `{e!r}`")
        return self.shallow(method(self, e))

    def shallow(self, text: str) -> str:
        """``text``, or the call of a function that has it if Python would refuse to nest it deeper. Names that it
        defines are those of the statement around."""
        if self.masks or not is_deep(text):
            return text
        name, defined = self.fresh("deep"), list(dict.fromkeys(_DEFINED.findall(text)))
        for held in defined:
            self.emit(f"{held} = None")
        self.emit(f"def {name}():")
        if defined:
            self.emit(f"    nonlocal {', '.join(defined)}")
        self.emit(f"    return {text}")
        return f"{name}()"

    def name_of(self, var: E.Var) -> str:
        name = self.names.get(var)
        if name is None:
            raise RunError(f"variable `{var.name}` is undefined")
        return name

    def _int_imm(self, e: E.IntImm) -> str:
        return str(bool(e.value)) if e.dtype.is_bool else str(e.value)

    def _float_imm(self, e: E.FloatImm) -> str:
        return self.const(numbers.constant(e.value, e.dtype))

    def _string(self, e: E.StringImm) -> str:
        return self.const(e.value)

    def _var(self, e: E.Var) -> str:
        return self.pointer(e) if e.dtype.is_handle else self.name_of(e)

    def rounded(self, text: str, dtype: DType) -> str:
        """Source that rounds a result to ``dtype``, if NumPy computes in a wider type."""
        if is_small_float(dtype):
            return f"{self.helper(numbers.round_small)}({text}, {self.const(dtype.element)})"
        if dtype.is_int and dtype.bits < 8:
            return f"{self.helper(numbers.wrap_lanes)}({text}, {self.const(dtype)})"
        return text

    def _arithmetic(self, e: Any) -> str:
        a, b, dtype = self.expr(e.a), self.expr(e.b), e.dtype
        kind = type(e)
        if kind in RING:
            return self.rounded(f"({a} {RING[kind]} {b})", dtype)
        if kind in (E.Min, E.Max):
            return f"{self.helper(np.minimum if kind is E.Min else np.maximum)}({a}, {b})"
        if dtype.is_float:
            if kind is E.Div:
                return self.rounded(f"({a} / {b})", dtype)
            if kind is E.Mod:
                return self.rounded(f"{self.helper(np.fmod)}({a}, {b})", dtype)
            if kind is E.FloorDiv:
                return self.rounded(f"{self.helper(np.floor)}({a} / {b})", dtype)
            return self.rounded(f"({a} - {b} * {self.helper(np.floor)}({a} / {b}))", dtype)
        site, values = self.site("division", None)
        how = {E.FloorDiv: "//", E.FloorMod: "%", E.Div: "truncdiv", E.Mod: "truncmod"}[kind]
        return self.rounded(f"{self.helper(lanes.divide_lanes)}({a}, {b}, {how!r}, {site}, {values})", dtype)

    def _comparison(self, e: Any) -> str:
        return f"({self.expr(e.a)} {COMPARE[type(e)]} {self.expr(e.b)})"

    def _and(self, e: Any) -> str:
        return self.junction(e, "and", "&")

    def _or(self, e: Any) -> str:
        return self.junction(e, "or", "|")

    def junction(self, e: Any, word: str, sign: str) -> str:
        """``e.a and e.b`` or ``e.a or e.b``: the right side is evaluated only if the left does not decide, for vectors
        in each lane."""
        if e.dtype.lanes == 1:
            return f"({self.expr(e.a)} {word} {self.expr(e.b)})"
        if not _may_fail(e.b):
            return f"({self.expr(e.a)} {sign} {self.expr(e.b)})"
        name, text = self.lanes_of(e.a, e.b)
        return f"{self.helper(lanes.lanes_left)}({self.expr(e.a)}, {word == 'and'}, lambda {name}: {text})"

    def _not(self, e: E.Not) -> str:
        return f"(not {self.expr(e.a)})" if e.dtype.lanes == 1 else f"(~{self.expr(e.a)})"

    def _select(self, e: E.Select) -> str:
        a, b = self.expr(e.true_value), self.expr(e.false_value)
        return self.choice(e.condition, a, b, not _harmless(e))

    def choice(self, condition: Any, a: str, b: str, both: bool) -> str:
        """``a`` or ``b``; with ``both`` the two are evaluated, so that errors in either are reported."""
        c = self.expr(condition)
        if condition.dtype.lanes > 1:
            return f"{self.helper(np.where)}({c}, {a}, {b})"
        return f"({a}, {b})[not {c}]" if both and self.check else f"({a} if {c} else {b})"

    def _if_then_else(self, e: E.Call) -> str:
        if e.args[0].dtype.lanes > 1:
            cases = [self.lanes_of(e.args[0], a) for a in e.args[1:]]
            lazy = ", ".join(f"lambda {name}: {text}" for name, text in cases)
            kind = self.const(value_dtype(e.dtype), "np")
            return f"{self.helper(lanes.lane_by_lane)}({self.expr(e.args[0])}, {lazy}, {kind})"
        return self.choice(e.args[0], self.expr(e.args[1]), self.expr(e.args[2]), False)

    def _cast(self, e: E.Cast) -> str:
        source, target = e.value.dtype, e.dtype
        narrow = source.is_int and source.lanes == 1
        text, (low, high) = self.value(e.value) if narrow else (self.expr(e.value), (0, 0))
        if source is target or source.is_handle or target.is_handle:
            return text
        if target.lanes == 1:
            if target.is_bool:
                return f"({text} != 0)"
            exact = 1 << (53 if target.bits == 64 else 24)
            if target.code == "float" and (source.is_float or narrow and -exact <= low and high <= exact):
                return f"{self.const(value_dtype(target).type, 'np')}({text})"
        return f"{self.helper(numbers.convert)}({text}, {self.const(source)}, {self.const(target)})"

    def _ramp(self, e: E.Ramp) -> str:
        lanes = self.const(np.arange(e.lanes, dtype=storage_dtype(e.base.dtype)))
        kind = self.const(storage_dtype(e.base.dtype).type, "np")
        if e.base.dtype.lanes > 1:
            return f"({self.expr(e.base)} + {lanes}[:, None] * {self.expr(e.stride)}).ravel()"
        return f"({kind}({self.expr(e.base)}) + {lanes} * {kind}({self.expr(e.stride)}))"

    def _broadcast(self, e: E.Broadcast) -> str:
        if e.value.dtype.lanes > 1:
            return f"{self.helper(np.tile)}({self.expr(e.value)}, {e.lanes})"
        kind = self.const(value_dtype(e.dtype), "np")
        return f"{self.helper(np.full)}({e.lanes}, {self.expr(e.value)}, {kind})"

    def _shuffle(self, e: E.Shuffle) -> str:
        parts = ", ".join(self.expr(v) for v in e.vectors)
        kind = self.const(value_dtype(e.dtype), "np")
        picks = ", ".join(self.expr(i) for i in e.indices)
        joined = f"{self.helper(lanes.joined)}(({parts},), {kind})"
        if len(e.indices) == 1:
            return f"{self.helper(numbers.from_numpy)}({joined}[{picks}], {self.const(e.dtype)})"
        return f"{joined}[[{picks}]]"

    def named(self, var: E.Var, value: Any) -> None:
        """Note what a variable stands for."""
        if is_data(value, self.data):
            self.data.add(var)

    def _let(self, e: E.Let) -> str:
        self.named(e.var, e.value)
        if e.value.dtype.is_int and e.value.dtype.lanes == 1:
            value, self.bounds[e.var] = self.value(e.value)
        else:
            value = self.expr(e.value)
            self.mask_depth[e.var] = len(self.masks)
        name = self.names[e.var] = self.fresh(f"{identifier(e.var.name)}_")
        return f"(({name} := {value}), {self.expr(e.body)})[1]"

    def _reduce(self, e: E.Reduce) -> str:
        raise RunError(
            "a Reduce expression is not allowed in a function body; write the reduction as a block with init"
        )

    # ------------------------------------------------------------------ calls

    def _call(self, e: E.Call) -> str:
        special = _CALLS.get(e.op)
        if special is not None:
            return special(self, e)
        op = OPS.get(e.op)
        if op is None or op.numpy is None:
            raise RunError(
                f"the executor cannot evaluate `{e.op}`; it can run it as a call_extern to a function given to "
                "tir.interp.register_extern"
            )
        args = ", ".join(self._numpy_arg(a) for a in e.args)
        return f"{self.helper(numbers.from_numpy)}({self.const(op.numpy, 'op')}({args}), {self.const(e.dtype)})"

    def _numpy_arg(self, a: Any) -> str:
        if a.dtype.is_int and a.dtype.lanes == 1:
            return f"{self.const(storage_dtype(a.dtype).type, 'np')}({self.expr(a)})"
        return self.expr(a)

    def _bitwise(self, e: E.Call) -> str:
        return f"({self.expr(e.args[0])} {_BITWISE[e.op]} {self.expr(e.args[1])})"

    def _bitwise_not(self, e: E.Call) -> str:
        text = f"(~{self.expr(e.args[0])})"
        return self.wrapped(text, e.dtype) if e.dtype.is_int and e.dtype.lanes == 1 else text

    def _shift(self, e: E.Call) -> str:
        symbol, (site, values) = "<<" if e.op == "shift_left" else ">>", self.site("shift", None)
        by = f"{self.helper(lanes.shift_amounts)}({self.expr(e.args[1])}, {e.dtype.bits}, {site}, {values})"
        return self.rounded(f"({self.expr(e.args[0])} {symbol} {by})", e.dtype)

    def shift(self, e: E.Call) -> tuple[str, Bounds]:
        (a, ra), (b, (low, high)) = self.value(e.args[0]), self.value(e.args[1])
        if low < 0 or high >= e.dtype.bits:
            site, values = self.site("shift", None)
            b = f"{self.helper(lanes.shift_amount)}({b}, {e.dtype.bits}, {site}, {values})"
            low, high = max(low, 0), min(high, e.dtype.bits - 1)
        full = (int(e.dtype.min_value), int(e.dtype.max_value))
        if e.op == "shift_left":
            r = (ra[0] << low, ra[1] << high) if ra[0] >= 0 and high >= low else (full[0] << 64, full[1] << 64)
            return f"({a} << {b})", r
        return f"({a} >> {b})", (0, ra[1]) if ra[0] >= 0 else (ra[0], max(ra[1], 0))

    def _abs(self, e: E.Call) -> str:
        text = f"abs({self.expr(e.args[0])})"
        return self.wrapped(text, e.dtype) if e.dtype.is_int and e.dtype.lanes == 1 else text

    def _first(self, e: E.Call) -> str:
        return self.expr(e.args[0])

    def _reinterpret(self, e: E.Call) -> str:
        source = self.const(e.args[0].dtype)
        if e.dtype.is_handle and isinstance(e.args[0], E.IntImm) and e.args[0].value == 0:
            return "None"
        return f"{self.helper(numbers.reinterpret)}({self.expr(e.args[0])}, {source}, {self.const(e.dtype)})"

    def _large(self, e: E.Call) -> str:
        return f"({self.expr(e.args[1])} << 32 | {self.expr(e.args[0])})"

    def _is_null(self, e: E.Call) -> str:
        return f"({self.expr(e.args[0])} is None)"

    def _half(self, e: E.Call) -> str:
        n = e.dtype.lanes
        return f"{self.expr(e.args[0])}[{':' + str(n) if e.op == 'vectorlow' else str(n) + ':'}]"

    def _combine(self, e: E.Call) -> str:
        parts = ", ".join(self.expr(a) for a in e.args)
        return f"{self.helper(lanes.joined)}(({parts},), {self.const(value_dtype(e.dtype), 'np')})"

    def _undef(self, e: E.Call) -> str:
        return self.const(
            np.zeros(e.dtype.lanes, value_dtype(e.dtype)) if e.dtype.lanes > 1 else numbers.constant(0, e.dtype)
        )

    def _lane_mask(self, e: E.Call) -> str:
        lanes = self.const(np.arange(e.dtype.lanes))
        return f"(({self.expr(e.args[0])} + {lanes}) < {self.expr(e.args[1])})"

    def _extern(self, e: E.Call) -> str:
        from .executor import call_extern

        name = string_arg(e.args[0])
        args = ", ".join(self.argument(a) for a in e.args[1:])
        return f"{self.helper(call_extern)}({name!r}, {self.const(e.dtype)}, ({args}{',' * bool(args)}))"

    def argument(self, a: Any) -> str:
        """Source of an argument of a foreign function: a pointer is a one-dimensional array from its element on."""
        if isinstance(a, E.StringImm):
            return repr(a.value)
        if isinstance(a, E.Call) and a.op == "tvm_stack_make_array":
            return self.array(a)
        return self.pointer(a) if a.dtype.is_handle else self.expr(a)

    def array(self, a: E.Call) -> str:
        """Source of a buffer as a foreign function gets it: an array of its shape."""
        data, shape, strides, _, _, offset = a.args
        sizes = [
            f"({', '.join(map(self.expr, e.args))},)" if isinstance(e, E.Call) and e.args else "()"
            for e in (shape, strides)
        ]
        return f"{self.helper(lanes.shaped)}({self.pointer(data)}, {self.expr(offset)}, {', '.join(sizes)})"

    def _pointer(self, e: E.Call) -> str:
        return self.pointer(e)

    def _assume(self, e: E.Call) -> str:
        if not self.check:
            return "0"
        site, values = self.site("assumption", None)
        condition = self.expr(e.args[0])
        return f"({condition} or {site}.fail('an assumption does not hold: ' + {repr(e.args[0])!r}, {values}))"

    def _tile(self, e: E.Call) -> str:
        return f"{self.helper(tiles.MEANING[e.op])}({', '.join(self.argument(a) for a in e.args)})"

    def _print(self, e: E.Call) -> str:
        return f"print({', '.join(self.argument(a) for a in e.args)})"

    def _atomic(self, e: E.Call) -> str:
        return f"{self.helper(numbers.atomic_add)}({self.pointer(e.args[0])}, {self.expr(e.args[1])})"

    def _dp4a(self, e: E.Call) -> str:
        a, b, total = (self.expr(x) for x in e.args)
        kinds = ", ".join(self.const(x.dtype) for x in (*e.args[:2], e))
        return f"{self.helper(numbers.dp4a)}({a}, {b}, {total}, {kinds})"

    def _nextafter(self, e: E.Call) -> str:
        x, y = (self.expr(a) for a in e.args)
        return f"{self.helper(numbers.next_after)}({x}, {y}, {self.const(e.dtype)})"

    def _return(self, e: E.Call) -> str:
        from .executor import returned

        return f"{self.helper(returned)}({', '.join(self.expr(a) for a in e.args[:1])})"


_WHOLE = ("vectorlow", "vectorhigh", "vectorcombine", "undef", "get_active_lane_mask", "reinterpret")


def _is_leaf(e: Any) -> bool:
    """Whether ``e`` makes a vector from operands that are not vectors of as many lanes."""
    if isinstance(e, E.BufferLoad):
        return not any(i.dtype.lanes > 1 for i in e.indices)
    return isinstance(e, (E.Ramp, E.Broadcast, E.Var, E.Shuffle)) or (isinstance(e, E.Call) and e.op in _WHOLE)


def _may_fail(e: Any) -> bool:
    """Whether evaluating ``e`` may fail: it reads memory, calls, or divides integers."""
    divides = (E.Div, E.FloorDiv, E.FloorMod, E.Mod)
    return any(isinstance(n, (E.BufferLoad, E.Call, *divides)) for n in walk(e))


def _harmless(e: E.Select) -> bool:
    """Whether evaluating both sides of a select cannot fail."""
    return all(isinstance(s, (E.IntImm, E.FloatImm, E.Var)) for s in (e.true_value, e.false_value))


def identifier(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name) or "v"


_TABLE: dict[type, Callable[[Any, Any], str]] = {
    E.IntImm: Expressions._int_imm, E.FloatImm: Expressions._float_imm, E.StringImm: Expressions._string,
    E.Var: Expressions._var, E.Not: Expressions._not, E.And: Expressions._and, E.Or: Expressions._or,
    E.Select: Expressions._select, E.Cast: Expressions._cast, E.Ramp: Expressions._ramp,
    E.Broadcast: Expressions._broadcast, E.Shuffle: Expressions._shuffle, E.Let: Expressions._let,
    E.Call: Expressions._call, E.BufferLoad: lambda self, e: self.load(e), E.Reduce: Expressions._reduce,
    **dict.fromkeys(COMPARE, Expressions._comparison),
    **dict.fromkeys((E.Add, E.Sub, E.Mul, E.Div, E.Mod, E.FloorDiv, E.FloorMod, E.Min, E.Max), Expressions._arithmetic),
}  # fmt: skip

_CALLS: dict[str, Callable[[Any, Any], str]] = {
    "if_then_else": Expressions._if_then_else, "bitwise_and": Expressions._bitwise, "bitwise_or": Expressions._bitwise,
    "bitwise_xor": Expressions._bitwise, "bitwise_not": Expressions._bitwise_not, "shift_left": Expressions._shift,
    "shift_right": Expressions._shift, "abs": Expressions._abs, "fabs": Expressions._abs, "likely": Expressions._first,
    "tvm_thread_invariant": Expressions._first, "reinterpret": Expressions._reinterpret,
    "large_uint_imm": Expressions._large, "isnullptr": Expressions._is_null,
    "vectorlow": Expressions._half, "vectorhigh": Expressions._half,
    "vectorcombine": Expressions._combine, "undef": Expressions._undef,
    "get_active_lane_mask": Expressions._lane_mask, "call_extern": Expressions._extern,
    "call_pure_extern": Expressions._extern, "call_packed": Expressions._extern, "call_cpacked": Expressions._extern,
    "tvm_call_packed": Expressions._extern, "tvm_call_cpacked": Expressions._extern,
    "call_llvm_intrin": Expressions._extern, "call_llvm_pure_intrin": Expressions._extern,
    "address_of": Expressions._pointer, "tvm_access_ptr": Expressions._pointer, "assume": Expressions._assume,
    "dp4a": Expressions._dp4a, "atomic_add": Expressions._atomic, "nextafter": Expressions._nextafter, "print": Expressions._print, "ret": Expressions._return, "thread_return": Expressions._return,
    "call_global": lambda self, e: self.call_function(e), **dict.fromkeys(tiles.MEANING, Expressions._tile),
}  # fmt: skip
