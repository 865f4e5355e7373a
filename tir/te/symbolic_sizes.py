"""What operations need of symbolic sizes: noted where an operation is made, and checked by the function that has it.

An operator on ``(n, k)`` and ``(m, 4)`` needs ``k == m``. The function has one of them for both, so that a call checks the
shapes of its arrays as it does where the user wrote one variable; what no variable is solved from becomes an assertion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..arith import simplify
from ..arith.linear import linear
from ..buffer import Range
from ..expr import EQ, Expr, IntImm, StringImm, Var, as_expr, cast, const
from ..stmt import AssertStmt
from ..visit import free_vars, substitute
from .user_lines import error

Conditions = tuple[Expr, ...]

_NOTED: ContextVar[Conditions] = ContextVar("noted", default=())


@contextmanager
def requirements(conditions: Iterable[Expr] = ()) -> Iterator[None]:
    """A scope whose operations need ``conditions``, and what is noted in it before they are made: those after it do not.

    A function with ``@ops.operator`` is such a scope.

    >>> from tir import te
    >>> n = te.var("n")
    >>> with te.requirements():
    ...     te.equate(n, 4)
    ...     A = te.placeholder((n,))
    True
    >>> A.op.requires, te.placeholder((n,)).op.requires
    ((n == 4,), ())
    """
    before = _NOTED.set((*_NOTED.get(), *conditions))
    try:
        yield
    finally:
        _NOTED.reset(before)


def noted() -> Conditions:
    """The conditions on sizes that an operation made now needs."""
    return _NOTED.get()


def _noted(condition: Expr) -> bool:
    """Whether ``condition`` can hold; it is noted where that depends on variables."""
    simple = _simple(condition)
    if isinstance(simple, IntImm):
        return bool(simple.value)
    _NOTED.set((*_NOTED.get(), simple))
    return True


def equate(a: Any, b: Any) -> bool:
    """Whether the sizes ``a`` and ``b`` can be equal; operations made from now on, in this scope, need them to be.

    A function that is made of these operations has one size for both, or an assertion.

    >>> from tir import te
    >>> n = te.var("n")
    >>> with te.requirements():
    ...     te.equate(4, 4), te.equate(n, n + 1), te.equate(n, 4), noted()
    (True, False, True, (n == 4,))
    """
    return _noted(as_expr(a) == as_expr(b))


def equate_shapes(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes can be equal: as many extents, and each as in :func:`equate`.

    >>> from tir import te
    >>> with te.requirements():
    ...     te.equate_shapes((4, te.var("n")), (4, 8)), te.equate_shapes((4,), (4, 1))
    (True, False)
    """
    return len(a) == len(b) and all(map(equate, a, b))


def at_most(a: Any, b: Any) -> bool:
    """Whether the size ``a`` can be at most ``b``; operations made from now on, in this scope, need it to be.

    >>> from tir import te
    >>> with te.requirements():
    ...     te.at_most(3, te.var("n")), te.at_most(5, 4)
    (True, False)
    """
    return _noted(as_expr(a) <= as_expr(b))


def is_multiple(a: Any, of: Any) -> bool:
    """Whether the size ``a`` can be a multiple of ``of``; operations made from now on, in this scope, need it to be.

    >>> from tir import te
    >>> with te.requirements():
    ...     te.is_multiple(te.var("n"), 4), te.is_multiple(6, 4)
    (True, False)
    """
    return equate(as_expr(a) % of, 0)


def unified(operations: Iterable[Any], fixed: Set[Var]) -> tuple[dict[Var, Expr], list[AssertStmt]]:
    """Values of variables, none of them ``fixed``, with which sizes are equal that ``operations`` need to be equal, and
    assertions of what they need besides.

    Raises ``TensorExpressionError`` for sizes that cannot be as an operation needs them.
    """
    values: dict[Var, Expr] = {}
    left: dict[Expr, Any] = {}
    for op, condition in [(each, c) for each in operations for c in each.requires]:
        found = _solved(_simple(substitute(condition, values)), fixed)
        if found is None:
            left.setdefault(condition, op)
        else:
            values = {v: simplify(substitute(e, dict([found]))) for v, e in values.items()} | dict([found])
    checks = []
    for condition, op in left.items():
        simple = _simple(substitute(condition, values))
        if isinstance(simple, IntImm) and not simple.value:
            raise error(f"`{op.name}` needs {condition}, which other sizes of the function rule out", place=op.place)
        if not isinstance(simple, IntImm):
            checks.append(AssertStmt(simple, StringImm(f"`{op.name}` needs {condition}"), span=op.place))
    return values, checks


def _simple(e: Expr) -> Expr:
    """``e`` as it is where each variable is a size: not negative."""
    return simplify(e, {v: Range(const(0, v.dtype), const(v.dtype.max_value, v.dtype)) for v in free_vars(e)})


def _solved(condition: Expr, fixed: Set[Var]) -> tuple[Var, Expr] | None:
    """A variable, the last one by preference, and its value where ``condition``, an equation, holds."""
    if not isinstance(condition, EQ):
        return None
    form = linear(condition.a - condition.b)
    for factors, scale in reversed(list(form.items())):
        var = factors[0]
        if len(factors) > 1 or not isinstance(var, Var) or var in fixed:
            continue
        using, rest = form.split([var])
        if len(using.terms) == 1 and all(c % scale == 0 for c in (rest.const, *(c for _, c in rest.items()))):
            rest.const //= -scale
            rest.terms = {k: (factors, c // -scale) for k, (factors, c) in rest.terms.items()}
            return var, cast(var.dtype, rest.build(condition.a.dtype))
    return None
