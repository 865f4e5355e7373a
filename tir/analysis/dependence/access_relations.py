"""Statements and accesses as exact integer relations: access maps and schedule maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...buffer import Range
from ...expr import (
    Call,
    Expr,
    IntImm,
    Ramp,
    Var,
    const,
)
from ...poly import Formula, Names, NotAffine, Relation
from ...visit import walk
from .statements import Access, Loop, Statement


def add_loops(formula: Formula, loops: Sequence[Loop]) -> None:
    """Add that the variables are in the ranges of their loops. Raises ``NotAffine``."""
    for var, low, extent in loops:
        formula.within(var, low, extent)


def add_affine_loops(formula: Formula, loops: Sequence[Loop]) -> None:
    """As :func:`add_loops`; the variable of a loop with data-dependent bounds may have any value."""
    for var, low, extent in loops:
        try:
            formula.within(var, low, extent)
        except NotAffine:
            formula.var(var)


def schedule_map(unit: Statement, names: Names, length: int, coord_names: Sequence[str]) -> Relation:
    """The schedule map: from instances (``coord_names``) to timestamps. Raises ``NotAffine``."""
    formula = Formula(names)
    add_loops(formula, unit.loops)
    for guard in unit.guards:
        try:
            formula.require(guard)
        except NotAffine:
            continue  # data-dependent: both programs are assumed to evaluate the same condition
    mine = {v for v, _, _ in unit.loops}
    for name, value in zip(coord_names, unit.values):
        formula.equal(name, value)
    moments = [formula.var(t) if isinstance(t, Var) else str(t) for t in unit.time]
    moments += ["0"] * (length - len(moments))
    return formula.map(coord_names, moments, [names.of(v) for v in mine])


def access_map(
    unit: Statement,
    access: Access,
    names: Names,
    coord_names: Sequence[str],
    rough: bool = False,
) -> Relation:
    """The access map: from instances to the elements of ``access`` (all elements if an index is not affine).

    Where the coordinates are the statement's loops, their bounds and guards are added; ``rough``: only the affine ones (an
    over-approximation of instances and elements).
    """
    formula = Formula(names)
    hidden: list[str] = []
    if unit.is_on_loops:
        (add_affine_loops if rough else add_loops)(formula, unit.loops)
        for var, value in unit.inner:
            hidden.append(formula.var(var))
            try:
                formula.equal(names.of(var), value)
            except NotAffine:
                if not rough:
                    raise
        for guard in unit.guards:
            _try_require(formula, guard)
    elif has_bits(access):
        _know_coords(formula, unit)
    for var, low, extent in access.loops:
        formula.var(var)
        if names.of(var) not in coord_names:
            hidden.append(names.of(var))
        try:
            formula.within(var, low, extent)
        except NotAffine:
            continue
    for guard in access.guards:
        _try_require(formula, guard)
    element = []
    for axis in range(access.buffer.ndim):
        name = names.fresh("e")
        element.append(name)
        if access.indices is None:
            continue
        index = access.indices[axis]
        try:
            if isinstance(index, tuple):
                formula.between(name, *index)
            elif isinstance(index, Ramp):
                if not isinstance(index.stride, IntImm):
                    raise NotAffine(index)
                formula.lane_of(name, index.base, index.stride.value, index.lanes)
            else:
                formula.equal(name, index)
        except NotAffine:
            continue
    return formula.map(coord_names, element, [*hidden, *element])


def without_swizzles(units: Sequence[Statement]) -> list[Statement]:
    """``units`` with swizzles removed: a swizzle is a bijection on elements, so if every access of a buffer uses the
    same one, removing it preserves the dependences. Buffers with differently swizzled accesses are unchanged."""
    swizzled = dict.fromkeys(a.buffer.data for u in units for a in u.accesses if has_bits(a))
    if not swizzled:
        return list(units)
    from ...arith import Analyzer
    from ...arith.swizzle import unswizzled

    plain: dict[int, Access] = {}
    rules: dict[Var, set[Any]] = {}
    for unit in units:
        for access in unit.accesses:
            if access.buffer.data not in swizzled:
                continue
            ctx = Analyzer({v: Range(low, extent) for v, low, extent in (*unit.loops, *access.loops)})
            for var, value in (*zip(unit.coords, unit.values), *unit.inner):
                if not any(var is v for v, _, _ in unit.loops):
                    least, most = ctx.bound(value)
                    if least is not None and most is not None:
                        ctx.bind(var, Range(const(least, var.dtype), const(most - least + 1, var.dtype)))
            indices = access.indices
            found = None
            if indices is not None and all(isinstance(i, Expr) and not isinstance(i, Ramp) for i in indices):
                found = unswizzled(indices, ctx)
            rules.setdefault(access.buffer.data, set()).add(None if found is None else (access.buffer, found.rule))
            if found is not None:
                plain[id(access)] = replace(access, indices=found.indices)
    alike = {data for data, seen in rules.items() if len(seen) == 1 and None not in seen}
    return [replace(u, accesses=[plain[id(a)] if a.buffer.data in alike else a for a in u.accesses]) for u in units]


def has_bits(access: Access) -> bool:
    """Whether an index has bitwise operations: exact sets can represent them, but slowly."""
    parts = [p for i in access.indices or () for p in (i if isinstance(i, tuple) else (i,))]
    return any(isinstance(n, Call) and n.op.startswith("bitwise") for p in parts for n in walk(p))


def _know_coords(formula: Formula, unit: Statement) -> None:
    """Bounds of the coordinates, from the loops."""
    from ...arith import Analyzer

    ctx = Analyzer({var: Range(low, extent) for var, low, extent in unit.loops})
    for var, value in zip(unit.coords, unit.values):
        least, most = ctx.bound(value)
        if least is not None and most is not None:
            formula.know(var, least, most)


def _try_require(formula: Formula, condition: Expr) -> None:
    try:
        formula.require(condition)
    except NotAffine:
        return


def is_exact(unit: Statement, access: Access) -> bool:
    """Whether the elements of ``access`` are exact: no index, bound or guard is data-dependent."""
    return access.indices is not None and why_inexact(unit, access) is None


def why_inexact(unit: Statement, access: Access) -> NotAffine | None:
    """The expression because of which the elements of ``access`` are not exact."""
    formula = Formula(Names())
    try:
        add_loops(formula, (*unit.loops, *access.loops))
        for guard in (*unit.guards, *access.guards):
            formula.require(guard)
        _know_coords(formula, unit)
        for index in access.indices or ():
            for part in index if isinstance(index, tuple) else (index.base,) if isinstance(index, Ramp) else (index,):
                formula.sum(part)
    except NotAffine as error:
        return error
    return None
