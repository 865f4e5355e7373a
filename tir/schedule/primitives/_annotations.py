"""Annotations that lowering implements (software pipelines, double buffers), checked when they are added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...aliases import shares_memory
from ...analysis.effects import effects
from ...analysis.index import BlockRef, LoopRef
from ...annotations import ASYNC, DOUBLE_BUFFER, ORDER, STAGE, expected_value, misspelled, statements_of_pipeline
from ...errors import require, require_none
from ...stmt import Block, Stmt
from ...visit import walk
from ..state import State


def check_annotation(state: State, place: LoopRef | BlockRef, key: str, value: Any) -> None:
    """Refuse an annotation ``key`` = ``value`` that lowering could not implement on ``place``; unknown keys are
    accepted, except misspelled ones."""
    require(not misspelled(key),
            "the annotation {0!r} means nothing, and is nearly one that does", key, legal=lambda: misspelled(key))  # fmt: skip
    expected = expected_value(key, value)
    require(not expected, "{0} is {1}, not {2}", key, expected, repr(value), nodes=[place.node], legal=expected)
    if key in (STAGE, ORDER, ASYNC):
        require(
            isinstance(place, LoopRef),
            "{0} annotates a loop, but {1} is a block",
            key,
            place,
            legal=[r.name for r in place.loops()],
            nodes=(),
        )
        assert isinstance(place, LoopRef)
        require(not place.node.thread,
                "{0} annotates a serial loop, but loop {1} is bound to {2}: its iterations are concurrent",
                key, place, place.node.thread, nodes=[place.node])  # fmt: skip
        _check_pipeline(place, {**place.node.annotations, key: value}, key)
    elif key == DOUBLE_BUFFER:
        require(isinstance(place, BlockRef),
                "{0} annotates a block, but {1} is a loop",
                key, place, legal=lambda: [b.name for b in state.index.blocks_below(place)], nodes=())  # fmt: skip
        assert isinstance(place, BlockRef)
        writes = [r.buffer.name for r in place.block.writes]
        require(isinstance(value, int) and 0 <= value < len(writes),
                "{0} is the number of a buffer that block {1} writes, not {2}",
                key, place, value, legal=[f"{n} ({name})" for n, name in enumerate(writes)])  # fmt: skip


def _check_pipeline(loop: LoopRef, notes: Mapping[str, Any], key: str) -> None:
    value = notes[key]
    require(isinstance(value, tuple) and all(isinstance(n, int) and n >= 0 for n in value),
            "{0} is a list of non-negative numbers, not {1!r}",
            key, value, nodes=[loop.node], legal="a list of numbers from 0 on, as in [0, 1]")  # fmt: skip
    parts = statements_of_pipeline(loop.node)
    names = [_name(p, n) for n, p in enumerate(parts)]
    if key == ASYNC:
        stages = notes.get(STAGE)
        unknown = [n for n in value if stages is not None and n not in stages]
        legal = sorted(map(str, set(stages or ())))
        rule = "there is no stage {0} in the pipeline of loop {1}"
        require_none(unknown, rule, loop, nodes=[loop.node], legal=legal)
        return
    if len(value) > len(names):
        # steps to come may place more, and lowering takes copies through registers and nested pipelines apart: it counts them
        names = [f"statement {n}" for n in range(len(value))]
    require(len(value) == len(names),
            "{0} has {1} numbers, one for each statement, but the body of loop {2} has {3}: {4}",
            key, len(value), loop.node, len(parts), ", ".join(names), legal=f"a list of {len(names)} numbers")  # fmt: skip
    if key == ORDER:
        require(sorted(value) == list(range(len(names))),
                "{0} is a permutation of the numbers 0 to {1}, the position of each statement; {2} is not", key,
                len(names) - 1, list(value), nodes=[loop.node], legal=f"a permutation of {list(range(len(names)))}")  # fmt: skip
    if len(names) == len(parts):
        _check_dependences(loop, parts, names, notes)


def _check_dependences(loop: LoopRef, parts: list[Stmt], names: list[str], notes: Mapping[str, Any]) -> None:
    """Refuse a pipeline in which a statement would run before one of the same iteration that it depends on."""
    stages, orders = notes.get(STAGE), notes.get(ORDER)
    if stages is None or len(stages) != len(parts):
        return
    places = orders if orders is not None and len(orders) == len(parts) else (0,) * len(parts)
    touched = [effects(p) for p in parts]
    for y, reader in enumerate(touched):
        for x in range(y):
            for buffer in dict.fromkeys(e.buffer for e in touched[x] if e.write):
                late = (stages[x], places[x]) > (stages[y], places[y])
                require(
                    not (late and shares_memory(buffer, reader.reads)),
                    "`{0}` (stage {1}, order {2}) would run before `{3}` (stage {4}, order {5}) of the same iteration "
                    "of loop {6}, which writes the `{7}` that it reads",
                    names[y],
                    stages[y],
                    places[y],
                    names[x],
                    stages[x],
                    places[x],
                    loop.node,
                    buffer.name,
                    nodes=[loop.node, parts[x], parts[y]],
                    legal=f"a stage for `{names[y]}` of at least {stages[x]}, and in the same stage a later order",
                )


def _name(stmt: Stmt, number: int) -> str:
    return next((n.name for n in walk(stmt) if isinstance(n, Block)), f"statement {number}")
