"""Expressions of a kernel to Python source over NumPy arrays with one entry per thread.

A uniform value, the same for all threads, stays a Python number; uniform integers are wrapped where they could overflow.
Loads and everything that can fail become statements of their own, under the mask of the active threads.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import expr as E
from ...dtype import DType
from ...errors import RunError
from ...op import OPS, string_arg
from .. import numbers
from ..expressions import COMPARE, RING, identifier
from ..lanes import truncdiv, truncmod
from ..nesting import is_deep
from ..numbers import is_small_float, storage_dtype, value_dtype
from .lanes import Lanes
from .report import Site

Value = tuple[str, bool]  # source, and whether it differs between threads

_DIVISIONS = {E.FloorDiv: operator.floordiv, E.FloorMod: operator.mod, E.Div: truncdiv, E.Mod: truncmod}
_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "shift_left": "<<", "shift_right": ">>"}
_SHUFFLES = {
    "tvm_warp_shuffle": "index",
    "tvm_warp_shuffle_up": "up",
    "tvm_warp_shuffle_down": "down",
    "tvm_warp_shuffle_xor": "xor",
}


class Values(ABC):
    """Compiles expressions; statements and memory are added by the subclass."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 1
        self.mask = "None"
        self.names: dict[E.Var, str] = {}
        self.varying: set[E.Var] = set()
        self.constants: dict[str, Any] = {}
        self._by_id: dict[int, str] = {}
        self._kept: list[Any] = []
        self.counter = 0
        self.stmt: Any = None

    # ------------------------------------------------------------------ text

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    def const(self, value: Any, stem: str = "k") -> str:
        """A name for a Python object."""
        name = self._by_id.get(id(value))
        if name is None:
            name = self._by_id[id(value)] = self.fresh(f"{stem}_")
            self.constants[name] = value
            self._kept.append(value)
        return name

    def helper(self, fn: Any) -> str:
        return self.const(fn, getattr(fn, "__name__", "f").strip("_<>"))

    @abstractmethod
    def site(self, what: str, buffer: str = "") -> str:
        """The source name of the place that a finding reports."""

    def keep(self, text: str, stem: str = "x") -> str:
        name = self.fresh(stem)
        self.emit(f"{name} = {text}")
        return name

    # ------------------------------------------------------------------ expressions

    def value(self, e: Any) -> Value:
        method = _TABLE.get(type(e))
        if method is None:
            raise RunError(f"the simulator cannot evaluate a {type(e).__name__} here: `{e!r}`")
        text, varies = method(self, e)
        return (self.keep(text) if is_deep(text) else text), varies

    def text(self, e: Any) -> str:
        return self.value(e)[0]

    def each(self, e: Any) -> str:
        """Source of a value; a vector has a row per thread."""
        text, varies = self.value(e)
        return text if varies or e.dtype.lanes == 1 else f"c.each({text})"

    def lanes(self, value: Value, dtype: DType) -> str:
        """Source of a scalar of ``dtype`` for each thread: uniform integers are Python ints and do not wrap."""
        text, varies = value
        return text if varies else f"c.spread({text}).astype({self.const(value_dtype(dtype))}, copy=False)"

    def _int(self, e: E.IntImm) -> Value:
        return (str(bool(e.value)) if e.dtype.is_bool else str(e.value)), False

    def _float(self, e: E.FloatImm) -> Value:
        return self.const(numbers.constant(e.value, e.dtype)), False

    def _string(self, e: E.StringImm) -> Value:
        return repr(e.value), False

    def _var(self, e: E.Var) -> Value:
        name = self.names.get(e)
        if name is None:
            raise RunError(f"variable `{e.name}` is undefined")
        return name, e in self.varying

    def fitted(self, text: str, dtype: DType, varies: bool) -> str:
        """Source that rounds or wraps a result to ``dtype``."""
        if is_small_float(dtype):
            return f"{self.helper(numbers.round_small)}({text}, {self.const(dtype.element)})"
        if dtype.is_int and dtype.lanes == 1 and not varies:
            return f"{self.helper(numbers.wrap)}({text}, {self.const(dtype)})"
        if dtype.is_int and dtype.bits < 8:
            return f"{self.helper(numbers.wrap_lanes)}({text}, {self.const(dtype)})"
        return text

    def _arithmetic(self, e: Any) -> Value:
        (a, va), (b, vb) = self.value(e.a), self.value(e.b)
        kind, dtype, varies = type(e), e.dtype, va or vb
        array = varies or dtype.lanes > 1
        if kind in RING:
            return self.fitted(f"({a} {RING[kind]} {b})", dtype, array), varies
        if kind in (E.Min, E.Max):
            if not array and not dtype.is_float:
                return f"{'min' if kind is E.Min else 'max'}({a}, {b})", varies
            return f"{self.helper(np.minimum if kind is E.Min else np.maximum)}({a}, {b})", varies
        if dtype.is_float:
            quotient = f"({a} / {b})"
            if kind is E.Mod:
                quotient = f"{self.helper(np.fmod)}({a}, {b})"
            elif kind is E.FloorDiv:
                quotient = f"{self.helper(np.floor)}({a} / {b})"
            elif kind is E.FloorMod:
                quotient = f"({a} - {b} * {self.helper(np.floor)}({a} / {b}))"
            return self.fitted(quotient, dtype, array), varies
        return self._divide(e, a, b, varies), varies

    def _divide(self, e: Any, a: str, b: str, varies: bool) -> str:
        kind = type(e)
        constant = e.b.value if isinstance(e.b, E.Broadcast) else e.b
        number = constant.value if isinstance(constant, E.IntImm) else 0
        if number > 0 and kind in (E.FloorDiv, E.FloorMod):
            if number & (number - 1) == 0:
                return f"({a} >> {number.bit_length() - 1})" if kind is E.FloorDiv else f"({a} & {number - 1})"
            return f"({a} {'//' if kind is E.FloorDiv else '%'} {number})"
        if number == 0:
            b = self.keep(f"{self.helper(_divisor)}(c, {b}, {self.mask}, {self.site('division')})")
        how = _DIVISIONS[kind]
        return self.fitted(f"{self.helper(how)}({a}, {b})", e.dtype, varies or e.dtype.lanes > 1)

    def _comparison(self, e: Any) -> Value:
        (a, va), (b, vb) = self.value(e.a), self.value(e.b)
        return f"({a} {COMPARE[type(e)]} {b})", va or vb

    def _logical(self, e: Any) -> Value:
        a, va = self.value(e.a)
        if not va and e.dtype.lanes == 1:
            if self.quiet(e.b):
                b, vb = self.value(e.b)
                text = f"({a} {'and' if type(e) is E.And else 'or'} {b})"
                return (f"c.spread{text}" if vb else text), vb
            name = self.fresh("t")
            self.emit(f"if {a if type(e) is E.And else f'not {a}'}:")
            self.indent += 1
            b, vb = self.value(e.b)
            self.emit(f"{name} = {b}")
            self.indent -= 1
            self.emit("else:")
            self.emit(f"    {name} = {type(e) is not E.And}")
            return (f"c.spread({name})" if vb else name), vb
        if va and e.dtype.lanes == 1 and not self.quiet(e.b):
            a = self.keep(a, "t")
            b, _ = self.under(a if type(e) is E.And else f"~{a}", e.b)
        else:
            b, _ = self.value(e.b)
        if type(e) is E.And:
            return f"({a} & {b})", True
        return f"({a} | {b})", True

    def quiet(self, e: Any) -> bool:
        """Whether evaluating ``e`` in every thread can neither fail nor have an effect."""
        from ...visit import walk

        return not any(
            isinstance(n, E.BufferLoad)
            or (isinstance(n, E.Call) and (n.op in _SHUFFLES or n.op not in _PLAIN and n.op not in OPS))
            or (isinstance(n, (E.FloorDiv, E.FloorMod, E.Div, E.Mod)) and not isinstance(n.b, (E.IntImm, E.FloatImm)))
            for n in walk(e)
        )

    def under(self, condition: str, e: Any) -> Value:
        """Source of ``e``, evaluated only by the threads where ``condition`` holds."""
        from .lanes import narrow

        outer = self.mask
        self.mask = self.keep(f"{self.helper(narrow)}({outer}, {condition})", "m")
        found = self.value(e)
        if found[0] != "" and not found[0].isidentifier():
            found = self.keep(found[0], "t"), found[1]
        self.mask = outer
        return found

    def _not(self, e: E.Not) -> Value:
        text, varies = self.value(e.a)
        return (f"(~{text})" if varies or e.dtype.lanes > 1 else f"(not {text})"), varies

    def _select(self, e: E.Select) -> Value:
        return self.choice(e.condition, self.value(e.true_value), self.value(e.false_value), e.dtype)

    def choice(self, condition: Any, a: Value, b: Value, dtype: DType) -> Value:
        c, vc = self.value(condition)
        varies = vc or a[1] or b[1]
        if not vc and condition.dtype.lanes == 1:
            x, y = a[0], b[0]
            if varies and dtype.lanes == 1:
                x, y = self.lanes(a, dtype), self.lanes(b, dtype)
            elif varies:
                x, y = (x if a[1] else f"c.each({x})"), (y if b[1] else f"c.each({y})")
            return f"({x} if {c} else {y})", varies
        if dtype.lanes > 1 and condition.dtype.lanes == 1:
            c = f"({c})[:, None]"
        made = f"{self.helper(np.where)}({c}, {a[0]}, {b[0]})"
        if dtype.lanes == 1 and not (a[1] and b[1]):
            made = f"{made}.astype({self.const(value_dtype(dtype))})"
        return made, varies

    def _if_then_else(self, e: E.Call) -> Value:
        condition, a, b = e.args
        if condition.dtype.lanes > 1 or self.quiet(a) and self.quiet(b):
            return self.choice(condition, self.value(a), self.value(b), e.dtype)
        c, varies = self.value(condition)
        if not varies:
            name = self.fresh("t")
            self.emit(f"if {c}:")
            for branch in (a, b):
                self.indent += 1
                chosen = self.each(branch) if e.dtype.lanes > 1 else self.lanes(self.value(branch), e.dtype)
                self.emit(f"{name} = {chosen}")
                self.indent -= 1
                if branch is a:
                    self.emit("else:")
            return name, True
        c = self.keep(c, "t")
        x, y = self.under(c, a), self.under(f"~{c}", b)
        if e.dtype.lanes > 1:
            c = f"{c}[:, None]"
        made = f"{self.helper(np.where)}({c}, {x[0]}, {y[0]})"
        return f"{made}.astype({self.const(value_dtype(e.dtype))}, copy=False)", True

    def _cast(self, e: E.Cast) -> Value:
        text, varies = self.value(e.value)
        source, target = e.value.dtype, e.dtype
        if source is target or source.is_handle or target.is_handle:
            return text, varies
        if not varies:
            return f"{self.helper(numbers.convert)}({text}, {self.const(source)}, {self.const(target)})", False
        kinds = f"{self.const(source.element)}, {self.const(target.element)}"
        return f"{self.helper(numbers.convert_lanes)}({text}, {kinds})", True

    def _ramp(self, e: E.Ramp) -> Value:
        if e.lanes == 1:  # its type is that of its first number
            return self.value(e.base)
        (a, va), (b, vb) = self.value(e.base), self.value(e.stride)
        if e.base.dtype.lanes > 1:
            raise RunError(f"the simulator cannot evaluate a ramp of vectors: `{e!r}`")
        steps = self.const(np.arange(e.lanes, dtype=storage_dtype(e.base.dtype)))
        column = [f"({t})[:, None]" if v else t for t, v in ((a, va), (b, vb))]
        return f"({column[0]} + {column[1]} * {steps})", va or vb

    def _broadcast(self, e: E.Broadcast) -> Value:
        text, varies = self.value(e.value)
        if e.lanes == 1:
            return text, varies
        if e.value.dtype.lanes > 1:
            shape = f"(1, {e.lanes})" if varies else str(e.lanes)
            return f"{self.helper(np.tile)}({text}, {shape})", varies
        if varies:
            return f"{self.helper(np.repeat)}(({text})[:, None], {e.lanes}, axis=1)", True
        return f"{self.helper(np.full)}({e.lanes}, {text}, {self.const(value_dtype(e.dtype))})", False

    def _shuffle(self, e: E.Shuffle) -> Value:
        parts = []
        for v in e.vectors:
            text, varies = self.value(v)
            if v.dtype.lanes == 1:
                text = f"c.spread({text})[:, None]"
            elif not varies:
                text = f"c.each({text})"
            parts.append(text)
        joined = f"{self.helper(np.concatenate)}(({', '.join(parts)},), axis=1)"
        picks = [self.text(i) for i in e.indices]
        if len(picks) == 1:
            return f"{joined}[:, {picks[0]}]", True
        return f"{joined}[:, [{', '.join(picks)}]]", True

    def bind(self, var: E.Var, value: Any) -> None:
        text, varies = self.value(value)
        if varies:
            self.varying.add(var)
        name = self.names[var] = self.fresh(f"{identifier(var.name)}_")
        self.emit(f"{name} = {text}")

    def _let(self, e: E.Let) -> Value:
        self.bind(e.var, e.value)
        return self.value(e.body)

    def _reduce(self, e: E.Reduce) -> Value:
        raise RunError("a Reduce expression is not allowed in a kernel")

    # ------------------------------------------------------------------ calls

    def _call(self, e: E.Call) -> Value:
        special = _CALLS.get(e.op)
        if special is not None:
            return special(self, e)
        op = OPS.get(e.op)
        if op is None or op.numpy is None:
            raise RunError(f"the simulator cannot evaluate `{e.op}` in an expression: `{e!r}`")
        parts = [self.value(a) for a in e.args]
        varies = any(v for _, v in parts)
        args = []
        for a, (text, v) in zip(e.args, parts):
            scalar = not v and a.dtype.is_int and a.dtype.lanes == 1
            args.append(f"{self.const(storage_dtype(a.dtype).type)}({text})" if scalar else text)
        called = f"{self.const(op.numpy, 'op')}({', '.join(args)})"
        if varies:
            return f"{self.helper(numbers.typed_lanes)}({called}, {self.const(e.dtype.element)})", True
        return f"{self.helper(numbers.from_numpy)}({called}, {self.const(e.dtype)})", False

    def _bitwise(self, e: E.Call) -> Value:
        (a, va), (b, vb) = self.value(e.args[0]), self.value(e.args[1])
        return self.fitted(f"({a} {_BITS[e.op]} {b})", e.dtype, va or vb or e.dtype.lanes > 1), va or vb

    def _bitwise_not(self, e: E.Call) -> Value:
        text, varies = self.value(e.args[0])
        return self.fitted(f"(~{text})", e.dtype, varies or e.dtype.lanes > 1), varies

    def _abs(self, e: E.Call) -> Value:
        text, varies = self.value(e.args[0])
        return f"abs({text})", varies

    def _first(self, e: E.Call) -> Value:
        return self.value(e.args[0])

    def _reinterpret(self, e: E.Call) -> Value:
        text, varies = self.value(e.args[0])
        source, target = self.const(e.args[0].dtype), self.const(e.dtype)
        if not varies:
            return f"{self.helper(numbers.reinterpret)}({text}, {source}, {target})", False
        return f"{self.helper(_reinterpret)}({text}, {source}, {target})", True

    def _large(self, e: E.Call) -> Value:
        return f"({self.text(e.args[1])} << 32 | {self.text(e.args[0])})", False

    def _warp_shuffle(self, e: E.Call) -> Value:
        mask, value, other, width, *_ = (self.text(a) for a in e.args)
        site = self.site(f"{e.op}")
        how = _SHUFFLES[e.op]
        return self.keep(f"c.shuffle({how!r}, {mask}, {value}, {other}, {width}, {self.mask}, {site})"), True

    def _active_mask(self, e: E.Call) -> Value:
        return self.keep(f"c.active_mask({self.mask}).astype({self.const(value_dtype(e.dtype))})"), True

    def _half(self, e: E.Call) -> Value:
        text, varies = self.value(e.args[0])
        n = e.dtype.lanes
        return f"({text})[..., {':' + str(n) if e.op == 'vectorlow' else str(n) + ':'}]", varies

    def _combine(self, e: E.Call) -> Value:
        parts = ", ".join(self.each(a) if self.value(a)[1] is False else self.text(a) for a in e.args)
        return f"{self.helper(np.concatenate)}(({parts},), axis=1)", True

    def _undef(self, e: E.Call) -> Value:
        zero = np.zeros(e.dtype.lanes, value_dtype(e.dtype)) if e.dtype.lanes > 1 else numbers.constant(0, e.dtype)
        return self.const(zero), False

    def _dp4a(self, e: E.Call) -> Value:
        a, b, total = (self.text(x) for x in e.args)
        kinds = ", ".join(self.const(x.dtype) for x in (*e.args[:2], e))
        return f"{self.helper(numbers.dp4a)}({a}, {b}, {total}, {kinds})", True

    def _nextafter(self, e: E.Call) -> Value:
        (x, one), (y, other) = (self.value(a) for a in e.args)
        return f"{self.helper(numbers.next_after)}({x}, {y}, {self.const(e.dtype)})", one or other

    def _extern(self, e: E.Call) -> Value:
        raise RunError(
            f"the kernel calls the function {string_arg(e.args[0])!r}, which the simulator does not implement; legal: operators "
            "of T, as T.atomic_add is for atomicAdd"
        )


def _reinterpret(x: np.ndarray, source: DType, target: DType) -> np.ndarray:
    raw = numbers.encode(x, source.element) if is_small_float(source) else x
    raw = np.ascontiguousarray(raw, storage_dtype(source))
    raw = (raw[:, None] if raw.ndim == 1 else raw).view(storage_dtype(target))
    if raw.shape[1] != target.lanes:
        raise RunError(f"reinterpret from {source} to {target}: the sizes differ")
    made = numbers.decode_table(target.element)[raw] if is_small_float(target) else raw
    return made if target.lanes > 1 else made[:, 0]


def _divisor(lanes: Lanes, b: Any, act: Any, site: Site) -> Any:
    """The divisor with zeros replaced by ones; division by zero in an active thread is a finding."""
    zero = np.asarray(b) == 0
    if not zero.any():
        return b
    each = lanes.spread(zero) if zero.ndim < 2 else zero.any(axis=1)
    here = lanes.all if act is None else act
    bad = here[each[here]]
    if len(bad):
        lanes.fail("division", "an integer is divided by zero", site, bad)
    return np.where(zero, np.ones_like(b), b) if zero.ndim else 1


_PLAIN = {
    "if_then_else", "likely", "tvm_thread_invariant", "reinterpret", "large_uint_imm", "undef", "vectorlow",
    "vectorhigh", "vectorcombine", "tvm_warp_activemask", "dp4a",
}  # fmt: skip

_TABLE: dict[type, Callable[[Any, Any], Value]] = {
    E.IntImm: Values._int, E.FloatImm: Values._float, E.StringImm: Values._string, E.Var: Values._var,
    E.Not: Values._not, E.And: Values._logical, E.Or: Values._logical, E.Select: Values._select, E.Cast: Values._cast,
    E.Ramp: Values._ramp, E.Broadcast: Values._broadcast, E.Shuffle: Values._shuffle, E.Let: Values._let,
    E.Call: Values._call, E.Reduce: Values._reduce, E.BufferLoad: lambda self, e: self.load(e),
    **dict.fromkeys(COMPARE, Values._comparison),
    **dict.fromkeys((E.Add, E.Sub, E.Mul, E.Div, E.Mod, E.FloorDiv, E.FloorMod, E.Min, E.Max), Values._arithmetic),
}  # fmt: skip

_CALLS: dict[str, Callable[[Any, Any], Value]] = {
    "if_then_else": Values._if_then_else, **dict.fromkeys(_BITS, Values._bitwise), "bitwise_not": Values._bitwise_not,
    "abs": Values._abs, "fabs": Values._abs, "likely": Values._first, "tvm_thread_invariant": Values._first,
    "reinterpret": Values._reinterpret, "large_uint_imm": Values._large,
    **dict.fromkeys(_SHUFFLES, Values._warp_shuffle), "tvm_warp_activemask": Values._active_mask,
    "vectorlow": Values._half, "vectorhigh": Values._half, "vectorcombine": Values._combine, "undef": Values._undef,
    "dp4a": Values._dp4a, "nextafter": Values._nextafter, "call_extern": Values._extern, "call_pure_extern": Values._extern,
    "atomic_add": lambda self, e: self.atomic(e),
}  # fmt: skip
