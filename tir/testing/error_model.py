"""A model of rounding errors: how far two evaluations of a program may differ, whatever the order of their sums.

Every float value x of the program gets three numbers in float64: ``inherited``, a bound of the error that comes from
operands; ``magnitude``, the sum of the magnitudes of the terms that are added up in it; and ``rate``, the roundings of these
additions, each the unit roundoff u of its type. Its error is at most ``inherited + rate * magnitude``: n terms added in any
order are off by at most (n - 1) u sum |x_i| to first order in u (Higham, Accuracy and Stability of Numerical Algorithms,
2nd ed., section 4.2). A program of the same shape computes all four; it runs once on the given arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..buffer import Buffer, BufferRegion, decl_buffer
from ..dtype import DType
from ..errors import RunError
from ..expr import (
    TRUE,
    Add,
    BufferLoad,
    Call,
    Cast,
    Comparison,
    Div,
    Expr,
    FloatImm,
    Let,
    Max,
    Min,
    Mul,
    Not,
    Select,
    Sub,
    Var,
    cast,
    const,
    logical_and,
    logical_or,
    max_,
)
from ..function import PrimFunc
from ..interp import numbers
from ..node import Node, frozendict
from ..op import call
from ..stmt import Block, BlockRealize, BufferStore, For, LetStmt, SeqStmt, Stmt, in_lets
from ..visit import walk

# how many units a library's function is off by
_FUNCTION = 8
_LIPSCHITZ = frozenset(("sin", "cos"))  # |f(x + e) - f(x)| <= |e|
# monotone, or convex: within an interval the most that f differs by is at an end
_BY_ENDS = frozenset(
    [
        "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "expm1", "sqrt", "rsqrt", "sigmoid", "erf", "erfc",
        "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    ]
)  # fmt: skip
_STEPS = frozenset(("floor", "ceil", "trunc", "round", "nearbyint"))
_ZERO, _ONE = FloatImm(0.0, DType("float64")), FloatImm(1.0, DType("float64"))


def error_bounds(func: PrimFunc, inputs: Sequence[Any], engine: str = "llvm") -> dict[str, np.ndarray]:
    """For each float buffer among the parameters, by how much the results of two evaluations of ``func`` may differ.

    Two programs that compute the same up to the order of additions and multiplications, each in the types of ``func``, from
    the arguments ``inputs`` (as the call of ``func`` takes them; they are not changed) differ at most by this, element for
    element: arrays of float64 of the buffers' shapes, for ``atol=`` of :func:`assert_same_result`. A result that is not
    bounded (a division by what may be zero) is ``inf``.

    Raises ``RunError`` for what the model does not follow: integers, indices and branches computed from floats, vectors,
    calls with effects, and functions that it does not know.

    >>> import numpy as np
    >>> import tir
    >>> from tir import testing
    >>> total = tir.script.parse('''
    ... @T.prim_func
    ... def total(A: T.Buffer((4,), "float32"), S: T.Buffer((1,), "float32")):
    ...     S[0] = T.float32(0)
    ...     for i in range(4):
    ...         S[0] = S[0] + A[i]
    ... ''')
    >>> large = np.array([1e8, 1, -1e8, 1], "float32")  # 1 or 2, by the order of the sum
    >>> bound = testing.error_bounds(total, [large, np.zeros(1, "float32")], engine="interpreter")["S"]
    >>> bool(1 < bound[0] < 100)
    True
    """
    from codegen.build import build

    model = _Model(func)
    shadow = model.function()
    args: list[Any] = []
    for param, value in zip(func.params, inputs):
        buffer = func.buffer_map.get(param)
        if buffer is not None and buffer.dtype.is_float:
            exact = _as_float64(value, buffer.dtype)
            args += [exact, np.zeros_like(exact), np.abs(exact), np.zeros_like(exact)]
        else:
            args.append(value.copy() if isinstance(value, np.ndarray) else value)
    places = {p: n for n, p in enumerate(shadow.params)}
    with np.errstate(all="ignore"):
        build(shadow, target=engine)(*args)
        found = {}
        for param, buffer in func.buffer_map.items():
            if buffer.dtype.is_float:
                _, inherited, magnitude, rate = (args[places[p]] for p in model.params[param])
                error = inherited + np.where(rate == 0, 0.0, rate * magnitude)
                found[buffer.name] = np.where(np.isnan(error), np.inf, 2 * error)
    return found


def _as_float64(value: Any, dtype: DType) -> np.ndarray:
    array = np.asarray(value)
    if numbers.is_small_float(dtype) and array.dtype.kind in "ui":
        array = numbers.decode_table(dtype.element)[array]
    return np.array(array, np.float64)


@dataclass(frozen=True)
class _Terms:
    """A float value and its error: four expressions of float64."""

    value: Expr
    inherited: Expr
    magnitude: Expr
    rate: Expr

    @property
    def error(self) -> Expr:
        return self.inherited + self.rate * self.magnitude

    def parts(self) -> tuple[Expr, ...]:
        return self.value, self.inherited, self.magnitude, self.rate


def _unit(dtype: DType) -> Expr:
    return _number(2.0**-dtype.digits)


def _tiny(dtype: DType) -> Expr:
    return _number(dtype.least_normal)


def _number(value: float) -> Expr:
    return const(value, "float64")


def _abs(x: Expr) -> Expr:
    return call("fabs", x)


def _exact(value: Expr) -> _Terms:
    return _Terms(value, _ZERO, _abs(value), _ZERO)


def _either(condition: Expr, first: Expr, second: Expr) -> Expr:
    return call("if_then_else", condition, first, second, dtype="float64")


def _has_float(item: Any) -> bool:
    return any(isinstance(n, Expr) and n.dtype.is_float for n in walk(item))


class _Model:
    """Makes the program that computes the four numbers of every float value of ``func``."""

    def __init__(self, func: PrimFunc):
        self.func = func
        self.buffers: dict[Buffer, tuple[Buffer, ...]] = {}
        self.params: dict[Var, tuple[Var, ...]] = {}
        self.terms: dict[Var, _Terms] = {}
        self.bound: list[tuple[Var, Expr]] = []
        self.within: Expr = TRUE  # the branch that an expression stands in

    def function(self) -> PrimFunc:
        params: list[Var] = []
        buffer_map: dict[Var, Buffer] = {}
        for param in self.func.params:
            buffer = self.func.buffer_map.get(param)
            if buffer is not None and buffer.dtype.is_float:
                mine = self._of(buffer)
                self.params[param] = tuple(b.data.replace(name=f"{b.name}_handle") for b in mine)
                params += self.params[param]
                buffer_map |= dict(zip(self.params[param], mine))
                continue
            params.append(param)
            if buffer is not None:
                buffer_map[param] = buffer
            elif param.dtype.is_float:
                self.terms[param] = _exact(cast("float64", param))
        body = self._statement(self.func.body)
        return self.func.replace(params=tuple(params), body=body, buffer_map=frozendict(buffer_map))

    def _of(self, buffer: Buffer) -> tuple[Buffer, ...]:
        if buffer not in self.buffers:
            if buffer.dtype.lanes > 1:
                raise _unknown("vectors", buffer)
            names = (buffer.name, *(f"{buffer.name}_{part}" for part in ("inherited", "magnitude", "rate")))
            self.buffers[buffer] = tuple(decl_buffer(buffer.shape, "float64", name) for name in names)
        return self.buffers[buffer]

    # ------------------------------------------------------------ statements

    def _statement(self, s: Any) -> Any:
        if isinstance(s, BufferStore):
            return self._store(s)
        if isinstance(s, LetStmt) and s.var.dtype.is_float:
            terms, lets = self._bound(s.value)
            self.terms[s.var] = terms
            return in_lets(lets, self._statement(s.body))
        if isinstance(s, Block):
            return self._block(s)
        if isinstance(s, (SeqStmt, BlockRealize)):
            self._refuse_floats(*(s.iter_values, (s.predicate,)) if isinstance(s, BlockRealize) else ())
            return s.map_children(lambda c: self._statement(c) if isinstance(c, Stmt) else c)
        if isinstance(s, For):
            self._refuse_floats((s.min, s.extent))
            return For(s.loop_var, s.min, s.extent, "serial", self._statement(s.body))
        children = s.children()
        self._refuse_floats([c for c in children if not isinstance(c, Stmt)])
        if any(isinstance(c, Buffer) and c.dtype.is_float for c in children):
            raise _unknown("views of buffers, and flat memory", s)
        return s.map_statements(self._statement)

    def _refuse_floats(self, *groups: Sequence[Any]) -> None:
        for group in groups:
            for item in group:
                if isinstance(item, Node) and _has_float(item):
                    raise _unknown("integers, indices, branches and calls that depend on floats", item)

    def _block(self, block: Block) -> Block:
        if any(m.buffer.dtype.is_float for m in block.match_buffers):
            raise _unknown("views of buffers", block.match_buffers[0])
        allocated = [b for a in block.alloc_buffers for b in (self._of(a) if a.dtype.is_float else (a,))]
        return block.replace(
            reads=self._regions((*block.reads, *block.writes)),  # the sums of a reduction are read, too
            writes=self._regions(block.writes),
            body=self._statement(block.body),
            init=None if block.init is None else self._statement(block.init),
            alloc_buffers=tuple(allocated),
            annotations=frozendict(),
        )

    def _regions(self, regions: Sequence[BufferRegion]) -> tuple[BufferRegion, ...]:
        found = []
        for region in regions:
            mine = self._of(region.buffer) if region.buffer.dtype.is_float else (region.buffer,)
            found += [BufferRegion(b, region.region) for b in mine]
        return tuple(found)

    def _store(self, s: BufferStore) -> Stmt:
        self._refuse_floats(s.indices)
        if not s.buffer.dtype.is_float:
            self._refuse_floats((s.value,))
            return s
        terms, lets = self._bound(s.value)
        stores = [BufferStore(b, part, s.indices) for b, part in zip(self._of(s.buffer), terms.parts())]
        return in_lets(lets, SeqStmt(tuple(stores)))

    # ------------------------------------------------------------ expressions

    def _bound(self, e: Expr) -> tuple[_Terms, list[tuple[Var, Expr]]]:
        """The numbers of a value, and the variables to bind before they are used."""
        self.bound = []
        terms = self._terms(e)
        lets, self.bound = self.bound, []
        return terms, lets

    def _named(self, terms: _Terms) -> _Terms:
        """The numbers in variables, so that each is computed once, and before anything is stored."""
        parts = []
        for part in terms.parts():
            if not isinstance(part, (Var, FloatImm)):
                var = Var("t", "float64")
                self.bound.append((var, part))
                part = var
            parts.append(part)
        return _Terms(*parts)

    def _terms(self, e: Expr) -> _Terms:
        if e.dtype.lanes > 1:
            raise _unknown("vectors", e)
        return self._named(self._computed(e))

    def _computed(self, e: Expr) -> _Terms:
        if isinstance(e, FloatImm):
            return _Terms(_number(e.value), _ZERO, _number(abs(e.value)), _ZERO)
        if isinstance(e, Var):
            return self.terms[e]
        if isinstance(e, BufferLoad):
            self._refuse_floats(e.indices)
            loads = (BufferLoad(b, e.indices) for b in self._of(e.buffer))
            return _Terms(*(x if self.within is TRUE else _either(self.within, x, _ZERO) for x in loads))
        if isinstance(e, Cast):
            return self._cast(e)
        if isinstance(e, (Add, Sub)):
            return self._sum(self._terms(e.a), self._terms(e.b), e)
        if isinstance(e, (Mul, Div)):
            return (_product if isinstance(e, Mul) else _quotient)(self._terms(e.a), self._terms(e.b), e.dtype)
        if isinstance(e, (Min, Max)):
            a, b = self._terms(e.a), self._terms(e.b)
            value = e.replace(a=a.value, b=b.value)
            return _Terms(value, max_(a.error, b.error), _abs(value), _ZERO)
        if isinstance(e, Select):
            return self._choice(e.condition, e.true_value, e.false_value)
        if isinstance(e, Let) and e.var.dtype.is_float:
            self.terms[e.var] = self._terms(e.value)
            return self._terms(e.body)
        if isinstance(e, Call):
            return self._call(e)
        raise _unknown(f"`{type(e).__name__}`", e)

    def _sum(self, a: _Terms, b: _Terms, e: Expr) -> _Terms:
        value = a.value + b.value if isinstance(e, Add) else a.value - b.value
        return _Terms(value, a.inherited + b.inherited, a.magnitude + b.magnitude, a.rate + b.rate + _unit(e.dtype))

    def _cast(self, e: Cast) -> _Terms:
        source = e.value.dtype
        if not source.is_float:
            self._refuse_floats((e.value,))
            value = cast("float64", e.value)
            return _Terms(value, _ZERO, _abs(value), _unit(e.dtype))
        terms = self._terms(e.value)
        narrower = e.dtype.digits < source.digits
        rate = terms.rate + _unit(e.dtype) if narrower else terms.rate
        return _Terms(terms.value, terms.inherited, terms.magnitude, rate)

    def _call(self, e: Call) -> _Terms:
        if e.op in ("if_then_else", "tir.if_then_else"):
            return self._choice(*e.args)
        if e.op in ("abs", "fabs"):
            x = self._terms(e.args[0])
            return _Terms(_abs(x.value), x.inherited, x.magnitude, x.rate)
        if e.op == "fma":
            a, b, c = (self._terms(x) for x in e.args)
            product = self._named(_product(a, b, e.dtype))
            return self._sum(product, c, Add(e.args[2], e.args[2]))
        if e.op == "pow" and isinstance(e.args[1], FloatImm):
            return self._by_ends(e, lambda x: call("pow", x, _number(e.args[1].value)), _FUNCTION)
        if e.op in _LIPSCHITZ:
            x = self._terms(e.args[0])
            value = call(e.op, x.value)
            return _Terms(value, x.error + _tiny(e.dtype), _abs(value), _unit(e.dtype) * _number(_FUNCTION))
        if e.op in _BY_ENDS or e.op in _STEPS:
            return self._by_ends(e, lambda x: call(e.op, x), 0 if e.op in _STEPS else _FUNCTION)
        raise _unknown(f"`{e.op}`", e)

    def _by_ends(self, e: Call, f: Callable[[Expr], Expr], units: int) -> _Terms:
        x = self._terms(e.args[0])
        value = self._named(_exact(f(x.value))).value
        spread = max_(_abs(f(x.value + x.error) - value), _abs(f(x.value - x.error) - value))
        inherited = _either(x.error > _ZERO, spread, _ZERO) + (_tiny(e.dtype) if units else _ZERO)
        return _Terms(value, inherited, _abs(value), _unit(e.dtype) * _number(units))

    def _choice(self, condition: Expr, first: Expr, second: Expr) -> _Terms:
        """One of two values. Where rounding may decide which, the error is the distance of both, too."""
        chosen, unsure = self._condition(condition)
        outer = self.within
        self.within = logical_and(outer, logical_or(chosen, unsure))
        a = self._terms(first)
        self.within = logical_and(outer, logical_or(Not(chosen), unsure))
        b = self._terms(second)
        self.within = outer
        either = max_(a.error, b.error) + _abs(a.value - b.value)
        value, inherited, magnitude, rate = (Select(chosen, x, y) for x, y in zip(a.parts(), b.parts()))
        if unsure is not _FALSE:
            inherited = Select(unsure, either, inherited)
            rate = Select(unsure, _ZERO, rate)
        return _Terms(value, inherited, magnitude, rate)

    def _condition(self, e: Expr) -> tuple[Expr, Expr]:
        """The condition on exact values, and whether errors may turn it."""
        if not _has_float(e):
            return e, _FALSE
        if isinstance(e, Not):
            chosen, unsure = self._condition(e.a)
            return Not(chosen), unsure
        if isinstance(e, Comparison) and e.a.dtype.is_float:
            a, b = self._terms(e.a), self._terms(e.b)
            return e.replace(a=a.value, b=b.value), _abs(a.value - b.value) < a.error + b.error
        if isinstance(e, Comparison) and e.a.dtype.is_bool:
            (a, first), (b, second) = self._condition(e.a), self._condition(e.b)
            return e.replace(a=a, b=b), logical_or(first, second)
        raise _unknown("this condition on floats", e)


_FALSE = const(False)


def _product(a: _Terms, b: _Terms, dtype: DType) -> _Terms:
    inherited = a.error * _abs(b.value) + b.error * _abs(a.value) + a.error * b.error + _tiny(dtype)
    return _Terms(a.value * b.value, inherited, _abs(a.value * b.value), _unit(dtype))


def _quotient(a: _Terms, b: _Terms, dtype: DType) -> _Terms:
    value = a.value / b.value
    least = _abs(b.value) - b.error
    far = _either(least > _ZERO, (a.error + _abs(value) * b.error) / least + _tiny(dtype), _number(float("inf")))
    return _Terms(value, far, _abs(value), _unit(dtype))


def _unknown(what: str, item: Any) -> RunError:
    return RunError(f"the model of rounding errors does not follow {what}: `{item!r}`; compare with rtol= and atol=")
