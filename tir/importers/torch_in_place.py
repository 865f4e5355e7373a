"""Operators of torch that change their first argument, read as those that make a new tensor."""

from __future__ import annotations

from collections import defaultdict
from typing import Any


def changed_alone(graph: Any) -> set[Any]:
    """The nodes that change a tensor which a node before made, and whose memory nothing but their result reads afterwards.

    What shares memory with what is known of the tensors with which torch traced the program; of one that was read from a file it is not.
    """
    candidates = [node for node in graph.nodes if _is_in_place(node)]
    if not candidates:
        return set()
    order = {node: place for place, node in enumerate(graph.nodes)}
    sharing: dict[int, list[Any]] = defaultdict(list)
    for node in graph.nodes:
        for memory in _memories(node.meta.get("val")):
            sharing[memory].append(node)

    def is_alone(node: Any) -> bool:
        own = _memories(node.meta.get("val"))
        before = [other for memory in own for other in sharing[memory] if order[other] < order[node]]
        return node.args[0] in before and all(
            other.op == "call_function" and all(order[user] <= order[node] for user in other.users) for other in before
        )

    return {node for node in candidates if is_alone(node)}


def changes(node: Any) -> bool:
    """Whether a node changes an argument. That a normalization in training changes its running moments is not in its schema."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return False
    given = {**dict(zip((a.name for a in schema.arguments), node.args)), **node.kwargs}
    in_training = given.get("training") or given.get("use_input_stats")
    return (
        schema.is_mutable
        or bool(in_training)
        and given.get("running_mean") is not None
        and "functional" not in schema.name
    )


def _is_in_place(node: Any) -> bool:
    """Whether a node is an operator as ``add_``, which changes its first argument alone."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return False
    name = str(node.target.overloadpacket)
    if not name.endswith("_") or name.endswith("__"):
        return False
    return [n for n, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write] == [0]


def _memories(made: Any) -> set[int]:
    """The memory of a tensor, or of several, as numbers."""
    if isinstance(made, (list, tuple)):
        return set().union(*map(_memories, made))
    storage = getattr(made, "untyped_storage", None)
    return {storage()._cdata} if storage is not None else set()
