"""``double_buffer_scope``: prefetches the next iteration's tile while the current one is used."""

from __future__ import annotations

from typing import Any

from ..analysis.effects import effects
from ..annotations import DOUBLE_BUFFER, ORDER, STAGE, statements_of_pipeline
from ..buffer import Buffer
from ..errors import BuildError
from ..function import PrimFunc
from ..node import frozendict
from ..stmt import Block, BufferStore, For, Stmt
from ..visit import rewrite_statements, statements, walk
from .passes import func_pass


def _marked(root: Any) -> dict[str, Buffer]:
    """The buffer that each annotated block asks to be doubled."""
    found = {}
    for n in statements(root):
        if isinstance(n, Block) and DOUBLE_BUFFER in n.annotations:
            which = int(n.annotations[DOUBLE_BUFFER])
            if not 0 <= which < len(n.writes):
                raise BuildError(f"block `{n.name}` asks to double its write number {which}; it has {len(n.writes)}")
            found[n.name] = n.writes[which].buffer
    return found


def _writes(s: Stmt, buffers: set[Buffer]) -> bool:
    return any(isinstance(n, BufferStore) and n.buffer in buffers for n in walk(s))


class _Injector:
    def __init__(self, name: str, marked: dict[str, Buffer]):
        self.name = name
        self.marked = set(marked.values())
        self.done: set[Buffer] = set()

    def visit(self, s: Any) -> Any:
        if isinstance(s, For) and s.kind == "serial":
            if STAGE not in s.annotations:
                return self.loop(s)
            # a user-defined pipeline: it versions each buffer as its stages need
            self.done |= {b for b in self.marked if _writes(s, {b})}
        if isinstance(s, Block) and DOUBLE_BUFFER in s.annotations:
            return s.replace(annotations=frozendict({k: v for k, v in s.annotations.items() if k != DOUBLE_BUFFER}))
        return None

    def loop(self, s: For) -> For:
        """The innermost serial loop that fills a marked buffer and uses it pipelines its filling by one step."""
        parts = statements_of_pipeline(s)
        todo = self.marked - self.done
        fills = [_writes(p, todo) for p in parts]
        if not any(fills) or all(fills):
            return s
        self.done |= {b for b in todo if any(_writes(p, {b}) for p in parts)}
        touched = [effects(p) for p in parts]
        for n in reversed(range(len(parts))):  # what a fill reads is made in its stage
            fills[n] |= any(fills[m] and touched[m].reads & touched[n].writes for m in range(n + 1, len(parts)))
        notes = {STAGE: tuple(0 if f else 1 for f in fills), ORDER: tuple(range(len(parts)))}
        return s.replace(annotations=frozendict({**s.annotations, **notes}))


@func_pass
def inject_double_buffer(func: PrimFunc) -> PrimFunc:
    """A block annotated ``double_buffer_scope`` fills its buffer one iteration ahead, into the other of two copies.

    What it reads that an iteration makes before it is made ahead as well. The innermost serial loop around it that also uses the buffer becomes a two-stage pipeline. Raises ``BuildError`` if
    there is no such loop.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    ...     H = T.alloc_buffer((8,), "float32", scope="shared")
    ...     for i in range(4):
    ...         with T.block(""):
    ...             T.reads(A[i, 0:8])
    ...             T.writes(H[0:8])
    ...             T.block_attr({"double_buffer_scope": 0})
    ...             for j in range(8):
    ...                 H[j] = A[i, j]
    ...         for j in range(8):
    ...             B[i, j] = H[j]
    ... ''')
    >>> tir.transform.inject_double_buffer(f).body
    with T.block("root"):
        T.reads()
        T.writes()
        H = T.alloc_buffer((8,), "float32", scope="shared")
        for i in T.serial(4, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
            with T.block("block"):
                T.reads(A[i, 0:8])
                T.writes(H[0:8])
                for j in range(8):
                    H[j] = A[i, j]
            for j in range(8):
                B[i, j] = H[j]
    """
    marked = _marked(func.body)
    if not marked:
        return func
    injector = _Injector(func.name, marked)
    body = rewrite_statements(func.body, injector.visit)
    for name, buffer in marked.items():
        if buffer not in injector.done:
            raise BuildError(
                f"{func.name}: block `{name}` asks for a double buffer of `{buffer.name}`, but no serial loop around it "
                "fills and uses it"
            )
    return func.with_body(body)
