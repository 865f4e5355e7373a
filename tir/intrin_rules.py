"""What an operator becomes on a kind of target, by rules of users' in the spelling of TVM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .expr import Call, Expr
from .names import did_you_mean
from .op import OPS, register

Rule = Callable[[Any], Any]

_rules: dict[tuple[str, str], tuple[int, Rule]] = {}  # by target kind and operator, with their level
_EFFECTS = ("pure", "read", "write", "opaque")


class OperatorName(str):
    """The name of an operator as a rule gets it: ``op.op.name`` is ``"tir.exp"`` for ``exp``."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"tir.{self}"


def register_intrin_rule(target: str, name: str, f: Rule | None = None, override: bool = False) -> Any:
    """Let ``f`` say what a call of operator ``name`` becomes in programs for targets of kind ``target``.

    ``f(op)`` takes the call (``op.args``, ``op.dtype``, ``op.op.name``) and gives an expression, or ``op`` itself where it
    has no rule for its type. Without ``f`` it is a decorator. Calls in what a rule gives are not rewritten again.

    Raises ``ValueError`` for an unknown operator, and where there is a rule and ``override`` is not given.

    >>> import tir
    >>> from tir.intrin_rules import forget_rule
    >>> rule = register_intrin_rule("cuda", "exp", lambda op: tir.call_pure_extern(op.dtype, "__expf", op.args[0]))
    >>> forget_rule("cuda", "exp")
    """
    return register_intrin_lowering(name, target, f, 10, override)


def register_intrin_lowering(
    op_name: str, target: str, f: Rule | None = None, level: int = 10, override: bool = False
) -> Any:
    """:func:`register_intrin_rule` under its newer name: a rule of a higher ``level`` takes the place of the others."""
    name = op_name.removeprefix("tir.")

    def add(rule: Rule) -> Rule:
        if name not in OPS:
            raise ValueError(f"unknown operator {name!r}{did_you_mean(name, OPS)}: see register_op_attr")
        old = _rules.get((target, name))
        if old is not None and not override and old[0] == level:
            raise ValueError(f"there is a rule for {name} on {target} already: register it with override=True")
        if old is None or override or level > old[0]:
            _rules[target, name] = (level, rule)
        return rule

    return add if f is None else add(f)


def forget_rule(target: str, name: str) -> None:
    """Take the rule for operator ``name`` on ``target`` away again."""
    del _rules[target, name]


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> None:
    """Add operator ``op_name`` by its effect, ``tvm.tir.CallEffectKind``; it is lowered by rules.

    Raises ``ValueError`` for another attribute than ``"TCallEffectKind"``, and for an operator with another effect.

    >>> register_op_attr("tir.exp", "TCallEffectKind", "pure")
    """
    name = op_name.removeprefix("tir.")
    if attr_key != "TCallEffectKind" or value not in _EFFECTS:
        raise ValueError(
            f"cannot set {attr_key} of operator {name} to {value!r}: TCallEffectKind is one of {', '.join(_EFFECTS)}"
        )
    if name not in OPS:
        register(name, effect=value)
    elif OPS[name].effect != value:
        raise ValueError(f"operator {name} has the effect {OPS[name].effect}, not {value}")


def has_rules(kind: str) -> bool:
    """Whether there is a rule for targets of ``kind``."""
    return any(target == kind for target, _ in _rules)


def lowered(call: Call, kind: str) -> Expr:
    """What ``call`` becomes on targets of ``kind``: itself, where no rule says anything else.

    Raises ``ValueError`` for a rule that does not give an expression of the type of the call.
    """
    found = _rules.get((kind, call.op))
    if found is None:
        return call
    asked = call.replace(op=OperatorName(call.op))
    made = found[1](asked)
    if made is asked or made is None:
        return call
    if not isinstance(made, Expr) or made.dtype is not call.dtype:
        what = f"{made.dtype}" if isinstance(made, Expr) else repr(made)
        raise ValueError(f"the rule for {call.op} on {kind} gives {what} for a call of type {call.dtype}: {call!r}")
    return made
