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
    """
    kind = Target.of(target).kind
    if not has_rules(kind):
        return func
    try:
        return func.with_body(rewrite(func.body, lambda item: lowered(item, kind) if isinstance(item, Call) else None))
    except ValueError as error:
        raise BuildError(str(error)) from None
