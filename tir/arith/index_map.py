"""IndexMap: a function from index tuples to index tuples, as expressions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from ..buffer import Range, index_expr
from ..checked import checked
from ..expr import (
    BinaryOp,
    Call,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Select,
    Var,
    as_expr,
    const,
    is_const,
    logical_and,
    logical_not,
    matched,
)
from ..node import Node, node
from ..op import OPS
from ..visit import nodes_of, rewrite, substitute, walk
from .analyzer import Analyzer
from .divide import exact_quotient
from .inverse import inverse_iter_map
from .itermap import IterMap, detect_iter_map
from .linear import key, linear
from .regions import relax


class _OfAny(Protocol):
    def __call__(self, *indices: Var) -> Any: ...


# functions of indices: a union by their numbers, by which type checkers know the parameters of a lambda
IndexFunction: TypeAlias = (
    Callable[[], Any]
    | Callable[[Var], Any]
    | Callable[[Var, Var], Any]
    | Callable[[Var, Var, Var], Any]
    | Callable[[Var, Var, Var, Var], Any]
    | Callable[[Var, Var, Var, Var, Var], Any]
    | Callable[[Var, Var, Var, Var, Var, Var], Any]
    | Callable[[Var, Var, Var, Var, Var, Var, Var], Any]
    | Callable[[Var, Var, Var, Var, Var, Var, Var, Var], Any]
    | _OfAny
)


class _AxisSeparator:
    """The separator between groups of axes in the result of an index map's function."""

    def __repr__(self) -> str:
        return "IndexMap.AXIS_SEPARATOR"


AXIS_SEPARATOR = _AxisSeparator()


@node
class IndexMap(Node):
    """Index tuples to index tuples: ``final_indices`` in terms of the variables ``initial_indices``.

    ``axis_separators`` are the positions in ``final_indices`` before which a new group of axes starts.

    >>> m = IndexMap.from_func(lambda i, j: [j // 4, i, j % 4])
    >>> [int(e) for e in m.map_indices([3, 9])]
    [2, 3, 1]
    >>> [int(e) for e in m.map_shape([8, 16])]
    [4, 8, 4]
    """

    AXIS_SEPARATOR = AXIS_SEPARATOR

    initial_indices: tuple[Var, ...]
    final_indices: tuple[Expr, ...]
    axis_separators: tuple[int, ...] = ()

    @staticmethod
    @checked
    def from_func(func: IndexFunction, ndim: int | None = None, index_dtype: str = "int32") -> IndexMap:
        """The map that ``func`` computes; ``*args`` parameters take the axes that ``ndim`` leaves.

        The result may be one expression, or a list with ``IndexMap.AXIS_SEPARATOR`` between groups of axes. Raises
        ``ValueError`` when ``ndim`` does not agree with the parameters, or is needed and missing, ``TypeError`` for an index
        that is no integer.
        """
        names = _parameter_names(func, ndim)
        variables = tuple(Var(name, index_dtype) for name in names)  # type: ignore[arg-type]
        result = _call(func, variables)
        items = list(result) if isinstance(result, (list, tuple)) else [result]
        final: list[Expr] = []
        separators: list[int] = []
        for item in items:
            if item is AXIS_SEPARATOR:
                separators.append(len(final))
            else:
                final.append(index_expr(as_expr(item, index_dtype)))
        return IndexMap(variables, tuple(final), tuple(separators))

    @staticmethod
    def of(value: IndexMap | IndexFunction, ndim: int | None = None, index_dtype: str = "int32") -> IndexMap:
        """``value`` if it is an IndexMap, else the map of the function; checks the number of inputs."""
        made = value if isinstance(value, IndexMap) else IndexMap.from_func(value, ndim, index_dtype)
        if ndim is not None and len(made.initial_indices) != ndim:
            raise ValueError(f"the index map takes {_indices(made.ndim)}, but {ndim} are given")
        return made

    def as_python(self) -> str:
        """The map as a Python lambda.

        >>> IndexMap.from_func(lambda i, j: [j // 4, i, j % 4]).as_python()
        'lambda i, j: [j // 4, i, j % 4]'
        """
        parts = [repr(e) for e in self.final_indices]
        for place in reversed(self.axis_separators):
            parts.insert(place, "tir.IndexMap.AXIS_SEPARATOR")
        return f"lambda {', '.join(v.name for v in self.initial_indices)}: [{', '.join(parts)}]"

    @property
    def ndim(self) -> int:
        return len(self.initial_indices)

    def _count(self, values: Sequence[Any], what: str) -> None:
        if len(values) != self.ndim:
            raise ValueError(f"the index map takes {_indices(self.ndim)}, got {len(values)} {what}")

    @checked
    def map_indices(self, indices: Sequence[Any], analyzer: Analyzer | None = None) -> tuple[Expr, ...]:
        """The final indices at ``indices``, simplified (:meth:`Analyzer.simplify_index`)."""
        self._count(indices, "indices")
        ctx = analyzer or Analyzer()
        values = {v: as_expr(i, v.dtype) for v, i in zip(self.initial_indices, indices)}
        return tuple(ctx.simplify_index(in_wider(e, values)) for e in self.final_indices)

    def map_ranges(self, ranges: Sequence[Range], analyzer: Analyzer | None = None) -> tuple[Range, ...]:
        """The box that contains the images of the box ``ranges``.

        Raises ``ValueError`` for an index whose bounds cannot be found.
        """
        self._count(ranges, "ranges")
        domains = dict(zip(self.initial_indices, ranges))
        points = [Range(e, const(1, e.dtype)) for e in self.final_indices]
        box = relax(points, domains, analyzer=analyzer)
        if (
            box is not None
        ):  # an index by itself keeps its range, which may be empty and is not a point where it has one value
            return tuple(
                domains.get(e, axis) if isinstance(e, Var) else axis for e, axis in zip(self.final_indices, box)
            )
        found = detect_iter_map(self.final_indices, domains, check="none")
        if not isinstance(found, IterMap):
            raise ValueError(f"the index map has no known bounds over these ranges: {found.error}")
        return tuple(Range(index.base, index.extent) for index in found.indices)

    @checked
    def map_shape(self, shape: Sequence[Any], analyzer: Analyzer | None = None) -> tuple[Expr, ...]:
        """The shape that contains the image of ``shape``: greatest index plus one, per axis.

        Raises ``ValueError`` when a final index can be negative.
        """
        self._count(shape, "extents")
        ctx = analyzer or Analyzer()
        return tuple(_end(axis.min, axis.extent, ctx) for axis in self.map_ranges(self._ranges(shape), ctx))

    def _ranges(self, shape: Sequence[Any]) -> list[Range]:
        return [Range(const(0, e.dtype), e) for e in (as_expr(s, v.dtype) for s, v in zip(shape, self.initial_indices))]

    def _domains(self, shape: Sequence[Any]) -> dict[Var, Range]:
        return dict(zip(self.initial_indices, self._ranges(shape)))

    def _fresh(self) -> tuple[Var, ...]:
        taken = {v.name for v in self.initial_indices}
        names = []
        for n, e in enumerate(self.final_indices):
            name = e.name if isinstance(e, Var) else f"axis{n}"
            while name in names or (name in taken and not isinstance(e, Var)):
                name += "_"
            names.append(name)
        return tuple(Var(name, e.dtype) for name, e in zip(names, self.final_indices))

    def inverse(self, shape: Sequence[Any]) -> IndexMap:
        """The inverse map, for indices in ``shape``.

        Raises ``ValueError`` when the map is not a bijection onto the box of its results (see
        :meth:`non_surjective_inverse` for maps that leave padding).
        """
        self._count(shape, "extents")
        found = detect_iter_map(self.final_indices, self._domains(shape), check="bijective")
        if not isinstance(found, IterMap):
            raise ValueError(f"the index map has no inverse: {found.error}")
        outputs = self._fresh()
        back = self._back(found, outputs)
        return IndexMap(outputs, tuple(back[v] for v in self.initial_indices))

    def padded_shape(self, shape: Sequence[Any]) -> tuple[Expr, ...]:
        """The shape of the image with all digits whole: what :meth:`non_surjective_inverse` finds padding in.

        >>> [int(e) for e in IndexMap.from_func(lambda i: [i // 4, i % 4]).padded_shape([3])]
        [1, 4]

        Raises ``ValueError`` as it does, and when a final index can be negative.
        """
        return tuple(_end(i.base, i.extent, Analyzer()) for i in self._whole(shape).found.indices)

    def non_surjective_inverse(self, shape: Sequence[Any]) -> tuple[IndexMap, Expr]:
        """The inverse map, and the condition on its inputs (final indices) that identifies padding.

        The condition is true at final indices that no initial index in ``shape`` maps to; it is the constant false
        when there are none. Digits are whole: of ``i // 4, i % 4`` all four values of the second, also for fewer
        initial indices. Raises ``ValueError`` when the map is not injective, or is not a sum of quotients and
        remainders.
        """
        whole = self._whole(shape)
        outputs = self._fresh()
        back = self._back(whole.found, outputs)
        ctx = Analyzer({o: Range(i.base, i.extent) for o, i in zip(outputs, whole.found.indices)})
        inside: Expr = as_expr(True)
        final = []
        for var, size, wide, shift in zip(self.initial_indices, shape, whole.shape, whole.shifts):
            end = as_expr(size + shift, var.dtype)
            if shift:
                inside = logical_and(inside, back[var] >= shift)
            if not ctx.can_prove_equal(end, wide):
                inside = logical_and(inside, back[var] < end)
            final.append(ctx.simplify(back[var] - shift) if shift else back[var])
        return IndexMap(outputs, tuple(final)), ctx.simplify(logical_not(inside))

    def symbolic_divisors(self) -> list[tuple[Var, Expr]]:
        """The initial indices, each with what the final indices divide it by, except constants.

        >>> n = Var("n")
        >>> [divisor for _, divisor in IndexMap.from_func(lambda i, j: [i // n, i % n, j // 4]).symbolic_divisors()]
        [n]
        """
        found = {(v, key(f)): (v, f) for v in self.initial_indices for f in _factors(self.final_indices, v)}
        return [(v, f) for v, f in found.values() if not isinstance(f, IntImm)]

    def _whole(self, shape: Sequence[Any]) -> _Whole:
        """The map on axes padded to multiples of what they are divided by: a bijection, or else ``ValueError``."""
        self._count(shape, "extents")
        shifts = [_shift(self.final_indices, var) for var in self.initial_indices]
        moved = IndexMap(self.initial_indices, self._moved_by(shifts))
        padded = moved._padded([size + shift for size, shift in zip(shape, shifts)])
        found = detect_iter_map(moved.final_indices, self._domains(padded), check="bijective")
        if isinstance(found, IterMap):
            return _Whole(found, padded, shifts)
        exact = detect_iter_map(self.final_indices, self._domains(shape), check="bijective")
        if isinstance(exact, IterMap):
            return _Whole(exact, list(shape), [0] * self.ndim)
        raise ValueError(f"the index map has no inverse, with padding or without: {found.error}")

    def _back(self, found: IterMap, outputs: Sequence[Var]) -> dict[Var, Expr]:
        """The initial indices in terms of ``outputs``: of one value, too, if it is a final index by itself."""
        same = {e: out for e, out in zip(self.final_indices, outputs) if isinstance(e, Var)}
        return {v: same.get(v, e) if is_const(e) else e for v, e in inverse_iter_map(found, outputs).items()}

    def _moved_by(self, shifts: Sequence[int]) -> tuple[Expr, ...]:
        """The final indices in terms of initial ones that are larger by ``shifts``."""
        values = {v: v - shift for v, shift in zip(self.initial_indices, shifts) if shift}
        return (
            tuple(Analyzer().simplify(in_wider(e, values)) for e in self.final_indices)
            if values
            else self.final_indices
        )

    def _padded(self, shape: Sequence[Any]) -> list[Expr]:
        """``shape`` with each axis rounded up to a multiple of the divisors applied to it."""
        ctx = Analyzer()
        out = []
        for var, size in zip(self.initial_indices, shape):
            size = as_expr(size, var.dtype)
            for factor in _factors(self.final_indices, var):
                if exact_quotient(size, factor) is None:
                    size = ctx.simplify((size + (factor - 1)) // factor * factor)
            out.append(size)
        return out

    def is_equivalent_to(self, other: IndexMap) -> bool:
        """Whether both maps are proved to give the same final indices everywhere."""
        if self.ndim != other.ndim or len(self.final_indices) != len(other.final_indices):
            return False
        if self.axis_separators != other.axis_separators:
            return False
        ctx = Analyzer()
        mine = self.map_indices(self.initial_indices, ctx)
        theirs = other.map_indices(self.initial_indices, ctx)
        return all(ctx.can_prove_equal(a, b) for a, b in zip(mine, theirs))

    def map_ndarray(self, array: Any) -> Any:
        """The NumPy array with each element moved to its final index; positions without an element are zero."""
        import numpy as np

        source = np.asarray(array)
        shape = tuple(int(e) for e in self.map_shape(source.shape))  # type: ignore[call-overload]
        out = np.zeros(shape, source.dtype)
        if source.size == 0:
            return out
        from .pointwise import compile_numpy

        grid = np.indices(source.shape)
        places = [compile_numpy(e, self.initial_indices)(*grid) for e in self.final_indices]
        out[tuple(np.broadcast_to(p, source.shape) for p in places)] = source
        return out


@dataclass(frozen=True)
class _Whole:
    """A map as a bijection: of the initial indices moved by ``shifts``, in ``shape``."""

    found: IterMap
    shape: Sequence[Any]
    shifts: Sequence[int]


def _end(low: Expr, extent: Expr, analyzer: Analyzer) -> Expr:
    """The size of an axis with so many indices from ``low`` on. Raises ``ValueError`` for negative ones."""
    least, _ = analyzer.bound(low)
    if least is not None and least < 0:
        raise ValueError(f"a final index of the index map can be {least}; indices must not be negative")
    return analyzer.simplify(low + extent)


def _indices(count: int) -> str:
    return f"{count} {'index' if count == 1 else 'indices'}"


def _parameter_names(func: Callable[..., Any], ndim: int | None) -> list[str]:
    names: list[str] = []
    varargs: str | None = None
    place = 0
    for p in inspect.signature(func).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            varargs, place = p.name, len(names)
        elif p.kind is p.VAR_KEYWORD:
            raise ValueError("the function of an index map takes no **keywords")
        else:
            names.append(p.name)
    if varargs is None:
        if ndim is not None and ndim != len(names):
            raise ValueError(f"the index map takes {_indices(len(names))}, but the buffer has {ndim} axes")
        return names
    if ndim is None:
        raise ValueError(f"an index map over *{varargs} needs ndim")
    if ndim < len(names):
        raise ValueError(f"the index map takes at least {len(names)} indices, but the buffer has {ndim} axes")
    more = [f"{varargs}_{n}" for n in range(ndim - len(names))]
    return names[:place] + more + names[place:]


def _call(func: Callable[..., Any], variables: tuple[Var, ...]) -> Any:
    keywords: dict[str, Var] = {}
    positional = list(variables)
    parameters = list(inspect.signature(func).parameters.values())
    for p in reversed(parameters):
        if p.kind is p.KEYWORD_ONLY:
            keywords[p.name] = positional.pop()
    return func(*positional, **keywords)


def in_wider(e: Expr, values: Mapping[Var, Expr]) -> Expr:
    """``e`` of other values of its variables, which may be wider."""
    made = substitute(e, values)
    return made if made is e else rewrite(made, typed_by_operands)


def typed_by_operands(e: Any) -> Expr | None:
    """An operator whose operands have one type, which is that of its result or says nothing of it, after some of them have
    become wider; None for anything else.

    >>> from tir import Var
    >>> from tir.visit import substitute
    >>> x, y = Var("x", "int32"), Var("y", "int64")
    >>> typed_by_operands(substitute(x ^ 3, {x: y})).dtype
    'int64'
    """
    if isinstance(e, (BinaryOp, Select)):
        kind: Any = type(e)
        *rest, a, b = e.children()
        return None if a.dtype is b.dtype else kind(*rest, *matched(a, b, kind))
    if not isinstance(e, Call):
        return None
    first = 1 if e.op == "if_then_else" else 0 if e.op in OPS and OPS[e.op].result == "same" else len(e.args)
    values: tuple[Expr, ...] = e.args[first:]
    if all(v.dtype is e.dtype for v in values):
        return None
    if len(values) == 2:
        values = matched(*values, f"`{e.op}`")
    return e.replace(args=(*e.args[:first], *values), dtype=values[0].dtype)


def _shift(indices: Sequence[Expr], var: Var) -> int:
    """The number added to ``var`` wherever it is divided: of (i + 1) // 4 and (i + 1) % 4 it is 1; 0 if there is no such
    number."""
    divided = [n.a for e in indices for n in walk(e) if isinstance(n, (FloorDiv, FloorMod))]
    added = {linear(a - var).const for a in divided if linear(a - var).is_const}
    return min(added) if len(added) == 1 and min(added) > 0 else 0


def _factors(indices: Sequence[Expr], var: Var) -> list[Expr]:
    """The products of divisors applied to ``var``: i // 4 % 8 needs 32. Each once, the greatest constant first."""
    found: dict[Any, Expr] = {}

    def see(e: Expr) -> None:
        for n in walk(e):
            if isinstance(n, (FloorDiv, FloorMod)) and any(x is var for x in nodes_of(n.a)):
                inner = _lower(n.a)
                factor = n.b if inner is None else Analyzer().simplify(inner * n.b)
                found.setdefault(key(factor), factor)

    for e in indices:
        see(e)
    constants = sorted((f for f in found.values() if isinstance(f, IntImm)), key=lambda f: -f.value)
    kept: list[Expr] = []
    for f in constants:
        if not any(isinstance(k, IntImm) and k.value % f.value == 0 for k in kept):
            kept.append(f)
    return kept + [f for f in found.values() if not isinstance(f, IntImm)]


def _lower(e: Expr) -> Expr | None:
    """The divisor already applied: i // 4 has 4."""
    if isinstance(e, FloorDiv):
        inner = _lower(e.a)
        return e.b if inner is None else Analyzer().simplify(inner * e.b)
    return None


@dataclass(frozen=True)
class RangesMap:
    """A function of a block's iterators to one (begin, end) for each axis; ``ends`` has them flat."""

    ends: IndexMap

    def __call__(self, *iterators: Any) -> list[tuple[Expr, Expr]]:
        flat = self.ends.map_indices(iterators)
        return list(zip(flat[::2], flat[1::2]))

    def as_python(self) -> str:
        flat = [repr(e) for e in self.ends.final_indices]
        pairs = ", ".join(f"({a}, {b})" for a, b in zip(flat[::2], flat[1::2]))
        return f"lambda {', '.join(v.name for v in self.ends.initial_indices)}: [{pairs}]"
