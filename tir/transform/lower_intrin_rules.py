"""Operators for which users have rules of their own."""

from __future__ import annotations

from typing import Any

from ..errors import BuildError
from ..expr import Call
from ..function import PrimFunc
from ..intrin_rules import has_rules, lowered
from ..target import Target
from ..visit import rewrite
from .passes import func_pass


@func_pass
def lower_intrin_rules(func: PrimFunc, target: Any = "llvm") -> PrimFunc:
    """Replaces calls of operators by what the rules of ``register_intrin_rule`` for the kind of ``target`` say.

    Raises ``BuildError`` where a rule gives no expression of the type of the call.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         A[i] = T.exp(A[i])
    ... ''')
    >>> rule = tir.target.register_intrin_rule("cuda", "exp", lambda op: tir.call_pure_extern("float32", "__expf", op.args[0]))
    >>> tir.transform.lower_intrin_rules(f, target="cuda").body
    for i in range(8):
        A[i] = T.call_pure_extern("float32", "__expf", A[i])
    >>> tir.intrin_rules.forget_rule("cuda", "exp")
    """
    kind = Target.of(target).kind
    if not has_rules(kind):
        return func
    try:
        return func.with_body(rewrite(func.body, lambda item: lowered(item, kind) if isinstance(item, Call) else None))
    except ValueError as error:
        raise BuildError(str(error)) from None
