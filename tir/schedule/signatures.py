"""Signatures of steps as a user meets them: handles and names for places, and what is returned rather than the plan."""

from __future__ import annotations

import inspect
from typing import Any

from .primitive import Primitive, as_checked

_RESULTS = {"LoopRV": "LoopRV", "BlockRV": "BlockRV", "list[LoopRV]": "list[LoopRV]", "list[BlockRV]": "list[BlockRV]"}


def public_signature(p: Primitive, result: str | None = None) -> inspect.Signature:
    """What ``help(sch.split)`` shows: ``(loop: LoopRV | str, ...) -> list[LoopRV]``; ``result`` replaces the last."""
    parameters = [
        q.replace(annotation=shown_annotation(q.annotation, q.name in p.kinds)) for q in p.signature.parameters.values()
    ]
    return inspect.Signature(parameters, return_annotation=result or result_type(p))


def shown_annotation(annotation: Any, handle: bool) -> str:
    if annotation is inspect.Parameter.empty:
        return "Any"
    kind = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    if handle:
        kind = kind.replace(" | Location", "").replace("LoopRef", "LoopRV | str").replace("BlockRef", "BlockRV | str")
        return " | ".join(dict.fromkeys(kind.split(" | "))) if "[" not in kind else kind
    known = {
        "int", "str", "bool", "float", "None", "Any", "Expr", "Buffer", "Sequence", "Mapping", "list", "tuple", "dict",
    }  # fmt: skip
    words = set("".join(c if c.isalnum() or c == "_" else " " for c in kind).split())
    return kind if words <= known else "Any"


def result_type(p: Primitive) -> str:
    made = p.check if p.apply in (None, as_checked) else p.apply
    returns = inspect.signature(made, eval_str=False).return_annotation
    text = returns if isinstance(returns, str) else getattr(returns, "__name__", "Any")
    if p.apply is None:
        return text
    if text in ("State", "Stage"):
        return {"State": "None", "Stage": "BlockRV"}[text]
    if text.startswith("tuple[State, "):
        inner = text[len("tuple[State, ") : -1]
        return _RESULTS.get(inner, "Any")
    return "Any"
