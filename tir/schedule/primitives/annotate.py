"""Annotations on loops and blocks, for later passes."""

from __future__ import annotations

from typing import Any

from ...analysis.index import BlockRef, LoopRef, node_of
from ...annotations import PRIVATE
from ...errors import require
from ...names import near_names
from ...node import Node, freeze, frozendict
from ...stmt import SERIAL, UNROLLED
from ..invariants import Keeps
from ..primitive import primitive
from ..primitive_arguments import BadArgument, shown
from ..state import State, place_name
from ._annotations import check_annotation


@primitive(keeps=Keeps.ACCESSES | Keeps.KERNELS | Keeps.LOOPS | Keeps.FORM)
def annotate(state: State, block_or_loop: BlockRef | LoopRef, ann_key: str, ann_val: Any) -> State:
    """Add the annotation ``ann_key`` = ``ann_val`` to a block or loop.

    ``ann_val`` is a string, number, expression, or lists and dicts of them. Annotations that lowering implements are
    checked: ``software_pipeline_stage`` and ``software_pipeline_order`` (one number for each statement of the loop's
    body; the order is a permutation; no statement before its dependences), ``software_pipeline_async_stages`` (a subset
    of the stages), ``double_buffer_scope`` (the number of a buffer that the block writes). Any other key may be used; an
    existing one gets the new value. Raises ``ScheduleError`` for an annotation that lowering could not implement, for
    ``private``, which ``privatize`` proves, and for a key that is a misspelled one of these and the other known ones.

    Before, and after ``sch.annotate("B", "note", 1)``::

        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0

        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                T.block_attr({"note": 1})
                B[vi] = A[vi] * 2.0
    """
    node = node_of(block_or_loop)
    require(isinstance(ann_key, str), "an annotation key is a string, not {0}", type(ann_key).__name__)
    value = _plain(ann_val)
    require(ann_key != PRIVATE,
            "{0} is what steps trust of a loop; privatize adds it once it is proved",
            PRIVATE, nodes=[block_or_loop.node], legal="privatize(loop, buffer)")  # fmt: skip
    check_annotation(state, block_or_loop, ann_key, value)
    return state.replace(node, node.replace(annotations=frozendict({**node.annotations, ann_key: value})))


def _plain(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return int(value)
    if isinstance(value, (list, tuple)):
        return tuple(_plain(v) for v in value)
    if isinstance(value, dict):
        return frozendict((k, _plain(v)) for k, v in value.items())
    if not (value is None or isinstance(value, (str, bool, float, Node))):
        kind = type(value).__name__
        raise BadArgument(
            f"an annotation is a string, a number of 64 bits, an expression, or lists and dicts of them, not {kind}: "
            f"{shown(value)}"
        )
    return freeze(value)


@primitive(keeps=Keeps.ACCESSES | Keeps.KERNELS | Keeps.LOOPS | Keeps.FORM)
def unannotate(state: State, block_or_loop: BlockRef | LoopRef, ann_key: str) -> State:
    """Remove the annotation ``ann_key`` from a block or loop. Raises ``ScheduleError`` when there is none, and for
    ``private`` of a loop whose iterations do not run one after the other.

    Before, and after ``sch.unannotate("i", "note")``::

        for i in T.serial(4, annotations={"note": 1}):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0

        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0
    """
    node = node_of(block_or_loop)
    require(ann_key in node.annotations,
            "{0} has no annotation {1}", node, ann_key, nodes=[block_or_loop.node],
            legal=lambda: near_names(ann_key, node.annotations) or _where_annotated(state, ann_key))  # fmt: skip
    require(ann_key != PRIVATE or getattr(node, "kind", SERIAL) in (SERIAL, UNROLLED),
            "the iterations of {0} run in no order, each with its own {1}",
            block_or_loop, ", ".join(b.name for b in node.annotations[ann_key]) if ann_key == PRIVATE else "")  # fmt: skip
    kept = frozendict((k, v) for k, v in node.annotations.items() if k != ann_key)
    return state.replace(node, node.replace(annotations=kept))


def _where_annotated(state: State, key: str) -> str:
    """The loops and blocks that have the annotation."""
    places = [*state.index.loops.values(), *state.index.blocks.values()]
    found = [place_name(state, ref) for ref in places if key in node_of(ref).annotations]
    return ", ".join(found) or f"nothing; no loop and no block has an annotation {key}"
